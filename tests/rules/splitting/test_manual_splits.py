"""Requests to split a bundle get the answer that a real cluster, or Pulsar's own classes, gave to them."""

import gzip
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.decisions import ReasonCode
from planner.cluster.errors import PlannerError
from planner.cluster.hashing import topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import bundle_name, bundles_of_hashes, format_range
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.splitting import manual
from planner.pulsar.splitting.manual import SplitCommand, SplitOutcome, Verdict, answer

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "manual_splits"
TRAFFIC = (
    "msg_rate_in_per_s",
    "msg_rate_out_per_s",
    "msg_throughput_in_bytes_per_s",
    "msg_throughput_out_bytes_per_s",
)


def recorded(name: str) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress((GOLDENS / f"{name}.jsonl.gz").read_bytes()).splitlines()]


def cluster(case: Any, config: Settings) -> Snapshot:
    """Build the one namespace that a recorded case is about, as it was before the request."""
    edges = [int(boundary, 16) for boundary in case["boundaries"]]
    ranges = [format_range(*ends) for ends in pairwise(edges)]
    names = list(case["topics"])
    hashes = np.array([topic_hash(name) for name in names], dtype=np.int64)
    rates = [stats or (0.0, 0.0, 0.0, 0.0) for stats in case["topics"].values()]
    topics = make_topics(
        hashes.astype(np.uint32),
        name=pa.array(names, pa.large_string()),
        bundle=bundles_of_hashes(np.array(edges), hashes),
        has_stats=[stats is not None for stats in case["topics"].values()],
        **{column: [row[at] for row in rates] for at, column in enumerate(TRAFFIC)},
    )
    data = case["bundleData"]
    bundles = make_bundles(
        edges[:-1],
        high=edges[1:],
        namespace=0,
        owner=0,
        has_data=[name in data for name in ranges],
        data_topics=[data.get(name, (0, 0, 0))[0] for name in ranges],
        long_term_msg_throughput_in_bytes_per_s=[data.get(name, (0, 0, 0))[1] for name in ranges],
        long_term_msg_throughput_out_bytes_per_s=[data.get(name, (0, 0, 0))[2] for name in ranges],
    )
    info = SnapshotInfo("planner", LoadManager(case["loadManager"]), 0)
    return Snapshot(info, config, make_brokers(["b1:8080"]), (case["namespace"],), bundles, topics)


def ask(case: Any) -> tuple[Snapshot, SplitOutcome]:
    config, request = Settings(case["config"]), case["request"]
    snapshot = cluster(case, config)
    positions = request["positions"]
    command = SplitCommand(
        case["namespace"],
        request["bundle"],
        request["algorithm"],
        None if positions is None else tuple(positions),
        unload=request["unload"],
    )
    return snapshot, answer(snapshot, command, config)


# A thousand cases in three tests: handing each to a worker by itself takes longer than deciding it.


def test_real_cluster() -> None:
    for case in recorded("captured"):
        _, outcome = ask(case)
        expected, name = case["expected"], case["id"]
        assert outcome.status == expected["status"], name
        assert [f"0x{boundary:08x}" for boundary in outcome.namespace_boundaries] == expected["boundaries"], name
        assert {topic: topic_hash(topic) for topic in case["hashes"]} == case["hashes"], name


def test_official_classes() -> None:
    for case in recorded("official"):
        _, outcome = ask(case)
        expected, name = case["expected"], case["id"]
        if "accepted" not in expected:
            assert outcome.status == expected["status"], name
            assert outcome.verdict is not Verdict.SPLIT, name
            continue
        assert outcome.verdict is Verdict.SPLIT, name
        assert outcome.bundle == expected["accepted"], name
        if "children" in expected:
            assert sorted(child.rpartition("/")[2] for child in outcome.children) == expected["children"], name


def test_every_outcome_explains_itself() -> None:
    for case in (*recorded("captured"), *recorded("official")):
        snapshot, outcome = ask(case)
        name = case["id"]
        assert outcome.reasons, name
        assert all("{" not in reason.text for reason in outcome.reasons), name
        split = outcome.verdict is Verdict.SPLIT
        assert bool(outcome.children) == bool(outcome.boundaries) == split, name
        if split:
            low, high = (int(end, 16) for end in outcome.bundle.rpartition("/")[2].split("_"))
            tiles = [bundle_name(case["namespace"], *ends) for ends in pairwise((low, *outcome.boundaries, high))]
            assert list(outcome.children) == tiles, name
            edges = {*map(int, snapshot.bundles.low), *outcome.boundaries, 0xFFFFFFFF}
            assert set(outcome.namespace_boundaries) == edges, name
        else:
            assert len(outcome.namespace_boundaries) == len(snapshot.bundles) + 1, name
        assert (outcome.error is None) == (outcome.verdict in {Verdict.SPLIT, Verdict.UNCHANGED}), name


def test_goldens_cover_every_reason() -> None:
    seen = {
        reason.code.code
        for name in ("captured", "official")
        for case in recorded(name)
        for reason in ask(case)[1].reasons
    }
    assert {one.code for one in vars(manual).values() if isinstance(one, ReasonCode)} - seen == {
        "split_manual.topics_unknown"
    }


BASE: dict[str, Any] = {
    "loadManager": "modular",
    "config": {},
    "namespace": "acme/orders",
    "boundaries": ["0x00000000", "0x80000000", "0xffffffff"],
    "topics": {f"persistent://acme/orders/order-{n}": (1.0, 1.0, 1.0, 1.0) for n in range(8)},
    "bundleData": {},
}
FIRST = "0x00000000_0x80000000"


def request(bundle: str = FIRST, algorithm: str = "", positions: Any = None, *, unload: bool = False) -> Any:
    return {"bundle": bundle, "algorithm": algorithm, "positions": positions, "unload": unload}


def test_unload_is_heeded_by_the_modular_manager_only() -> None:
    _, modular = ask({**BASE, "request": request(unload=True)})
    _, extensible = ask({**BASE, "loadManager": "extensible", "request": request(unload=True)})
    assert modular.children_unloaded
    assert not extensible.children_unloaded
    assert "ignores the request to unload" in extensible.notes[0]


def test_supported_but_unknown_name_means_the_default() -> None:
    config = {
        "supportedNamespaceBundleSplitAlgorithms": ["mine"],
        "defaultNamespaceBundleSplitAlgorithm": "topic_count_equally_divide",
    }
    _, outcome = ask({**BASE, "config": config, "request": request(algorithm="mine")})
    assert outcome.algorithm == "topic_count_equally_divide"
    assert "mine" in outcome.notes[0]


def test_ignored_positions_and_replaced_algorithms_are_noted() -> None:
    _, ignored = ask({**BASE, "request": request(positions=[5])})
    assert ignored.boundaries == (0x40000000,)
    assert ignored.notes == ("range_equally_divide ignores the positions.",)
    config = {"defaultNamespaceBundleSplitAlgorithm": "no_such_algorithm"}
    _, replaced = ask({**BASE, "config": config, "request": request()})
    assert replaced.algorithm == "range_equally_divide"
    assert "no_such_algorithm" in replaced.notes[0]


def test_without_listed_topics_the_answer_is_unknown() -> None:
    snapshot, _ = ask({**BASE, "topics": {}, "request": request()})
    busy = replace(snapshot, bundles=replace(snapshot.bundles, topics=np.array([3, 3])))
    for command in (
        SplitCommand("acme/orders", FIRST, "topic_count_equally_divide"),
        SplitCommand("acme/orders", "LARGEST"),
    ):
        outcome = answer(busy, command, Settings())
        assert outcome.verdict is Verdict.UNKNOWN
        assert outcome.status is None
    assert answer(busy, SplitCommand("acme/orders", FIRST), Settings()).verdict is Verdict.SPLIT


def test_unowned_bundle_has_no_owner() -> None:
    snapshot, owned = ask({**BASE, "request": request()})
    assert owned.owner == "b1:8080"
    free = snapshot.with_owner(np.array([-1, -1], dtype=np.int32))
    assert answer(free, SplitCommand("acme/orders", FIRST), Settings()).owner is None


def test_unknown_namespace_is_refused() -> None:
    snapshot, _ = ask({**BASE, "request": request()})
    with pytest.raises(PlannerError, match="acme/none"):
        answer(snapshot, SplitCommand("acme/none", FIRST), Settings())
