"""Small clusters on what operators asked about load balancing in public, as documents that list no topics."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from planner.cluster.ranges import equal_boundaries, format_range
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.formats.document import FORMAT, snapshot_of_document
from planner.pulsar.shedding.registry import SHEDDERS
from planner.remedy.trials import Trials
from planner.remedy.tried import Fix, Tried, fix, tried_findings
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged

SHEDDING: Final = "loadBalancerLoadSheddingStrategy"
PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"
CLASS: Final = {one.name: one.java_class for one in SHEDDERS}
_AT_MS: Final = 1_800_000_000_000
_CORES: Final = 4
_OWN_PERCENT: Final = 5.0
"""CPU of a broker without bundles."""

Row = dict[str, Any]


def bundle(name: str, low: int, high: int, owner: int | None, mb_per_s: float = 1.0, **more: Any) -> Row:
    """A bundle with 1 MB/s and one topic, or as said; brokers are numbered from 1."""
    rates = {"msg_rate_in_per_s": more.pop("msg_per_s", 100.0), "msg_throughput_in_bytes_per_s": mb_per_s * 1e6}
    topics = more.pop("topics", 1)
    averages = {"short_term": {"samples": 10, **rates}, "long_term": {"samples": 1_000, **rates}}
    placed = {} if owner is None else {"owner": f"b{owner}:8080"}
    held = dict.fromkeys(("topics", "data_topics", "producers", "consumers"), topics)
    return {"namespace": name, "range": format_range(low, high), **placed, **rates, **held, **averages, **more}


def bundles(name: str, owners: Sequence[int | None], mb_per_s: float = 1.0, **more: Any) -> list[Row]:
    """Equal bundles of a namespace, one for each owner."""
    cuts = pairwise(equal_boundaries(len(owners)))
    return [bundle(name, *ends, owner, mb_per_s, **more) for ends, owner in zip(cuts, owners, strict=True)]


def cluster(
    brokers: int,
    rows: Sequence[Row],
    *,
    settings: Mapping[str, Any] | None = None,
    policies: Row | None = None,
    manager: str = "modular",
    percent_per_mb: float = 1.0,
    cpu_percent: Sequence[float] = (),
    release: str = "4.0.8",
) -> Snapshot:
    """Brokers whose CPU follows their traffic, unless it is given."""

    def broker(at: int) -> Row:
        mine = [row for row in rows if row.get("owner") == f"b{at}:8080"]
        size = sum(row["msg_throughput_in_bytes_per_s"] for row in mine)
        cpu = cpu_percent[at - 1] if cpu_percent else _OWN_PERCENT + percent_per_mb * size / 1e6
        return {
            "name": f"b{at}:8080",
            "cpu_percent": {"usage": cpu * _CORES, "limit": 100.0 * _CORES},
            "memory_mib": {"usage": 1_000.0, "limit": 4_000.0},
            "direct_memory_mib": {"usage": 100.0, "limit": 4_000.0},
            "bandwidth_in_kbit_per_s": {"usage": size / 125, "limit": 1e7},
            "bandwidth_out_kbit_per_s": {"usage": 0.0, "limit": 1e7},
            "msg_throughput_in_bytes_per_s": size,
            "msg_rate_in_per_s": sum(row["msg_rate_in_per_s"] for row in mine),
        }

    document = {
        "format": FORMAT,
        "version": 1,
        "info": {
            "cluster": "east",
            "load_manager": manager,
            "captured_at_ms": _AT_MS,
            "leader": "b1:8080",
            "pulsar_version": release,
        },
        "settings": dict(settings or {}),
        "policies": policies or {},
        "brokers": [broker(at) for at in range(1, brokers + 1)],
        "bundles": list(rows),
    }
    return snapshot_of_document(json.dumps(document).encode(), "report.json")


def isolation(primary: Sequence[str], namespaces: Sequence[str] = ("vip/.*",), secondary: Sequence[str] = ()) -> Row:
    """One isolation policy, called vip."""
    names = {"namespaces": list(namespaces), "primary": list(primary), "secondary": list(secondary)}
    return {"isolation": [{"name": "vip", **names, "min_limit": 1}]}


class Asked:
    """A cluster with all that is said about it."""

    def __init__(self, snapshot: Snapshot) -> None:
        scenario = unchanged(snapshot.info.pulsar_version)
        self.snapshot = snapshot
        self.outcome = Outcome(simulate(snapshot, scenario))
        self.trials = Trials(snapshot, scenario, self.outcome)

    @property
    def codes(self) -> list[str]:
        """Codes of the findings."""
        return [one.code for one in diagnose(self.outcome)]

    def tried(self, code: str) -> Tried:
        """Return the only finding of a code with its remedy tried."""
        (found,) = [one for one in diagnose(self.outcome) if one.code == code]
        (tried,) = tried_findings([found], self.trials)
        return tried

    def all_tried(self) -> tuple[Tried, ...]:
        """Return every finding with its remedy tried."""
        return tried_findings(diagnose(self.outcome), self.trials)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding as pages show it."""
        return tuple(one.finding for one in self.all_tried())

    def fix(self) -> Fix:
        """Return what Fix it says."""
        return fix(self.trials, self.outcome)
