"""Measurements that cannot be, memory that stays, bundles that carry nothing; one cause instead of what follows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import KBIT_PER_BYTE
from planner.explain.causes import EXPLAINS, without_consequences
from planner.explain.diagnosis import PATTERNS, diagnose
from planner.explain.finding import Finding
from planner.explain.health import health
from planner.explain.outcome import Outcome
from planner.formats.reading import read_snapshot
from planner.pulsar.shedding.registry import SHEDDERS
from planner.remedy.trials import Trials
from planner.remedy.tried import fix
from planner.simulate.assumptions import Assumptions
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from planner.simulate.usage_model import standing
from planner.web.findings import _PAGES
from tests.app.simulate.traces import cluster

CASES = Path(__file__).parents[4] / "shared" / "cases"
SHEDDING: Final = "loadBalancerLoadSheddingStrategy"
CLASS: Final = {one.name: one.java_class for one in SHEDDERS}
FIVE: Final = dict.fromkeys(range(5), (5.0,) * 4)


def five(usage: Sequence[float] = (0.3,) * 5, manager: LoadManager = LoadManager.MODULAR, **settings: Any) -> Snapshot:
    """Five calm brokers."""
    own = {SHEDDING: CLASS["TransferShedder"]} if manager is LoadManager.EXTENSIBLE else {}
    return cluster(usage, FIVE, load_manager=manager, settings={**own, **settings})


def brokers(snapshot: Snapshot, **columns: Any) -> Snapshot:
    """The same cluster with other columns of its brokers."""
    arrays: dict[str, Any] = {name: np.asarray(values) for name, values in columns.items()}
    return replace(snapshot, brokers=replace(snapshot.brokers, **arrays))


def found(snapshot: Snapshot, cycles: int = 5, decides: str = "") -> dict[str, Finding]:
    scenario = unchanged(decides or snapshot.info.pulsar_version or "4.2.4", cycles=cycles)
    return {finding.code: finding for finding in diagnose(simulate(snapshot, scenario))}


@pytest.mark.parametrize("manager", LoadManager)
@pytest.mark.parametrize(
    ("columns", "what", "severity"),
    [
        ({"cpu_usage_percent": [1500.0, *[300.0] * 4]}, "more CPU usage than its limit", "high"),
        ({"bandwidth_out_usage_kbit_per_s": [2e7, *[1e6] * 4]}, "more outbound network usage", "high"),
        (
            {"memory_usage_mib": [5000.0, *[100.0] * 4], "memory_limit_mib": [4000.0] * 5},
            "more heap usage than its limit",
            "low",
        ),
    ],
)
def test_usage_above_its_limit(manager: LoadManager, columns: dict[str, list[float]], what: str, severity: str) -> None:
    finding = found(brokers(five(manager=manager), **columns))["impossible_measurement"]
    assert what in finding.title
    assert (finding.severity, finding.brokers) == (severity, ("b1:8080",))


@pytest.mark.parametrize("usage", [0.3, 0.95, 1.0, 1.04])
def test_a_full_broker_is_possible(usage: float) -> None:
    assert "impossible_measurement" not in found(five((usage, *[0.3] * 4)))


def test_several_are_one_finding() -> None:
    finding = found(five((1.2, 1.7, 0.3, 0.3, 0.3)))["impossible_measurement"]
    assert finding.brokers == ("b2:8080", "b1:8080")
    assert "(170 %), which cannot be. The same is true of b1:8080." in finding.evidence


def test_a_limit_of_nothing_hides_all_usage() -> None:
    finding = found(brokers(five(), cpu_limit_percent=[1000.0, 0.0, *[1000.0] * 3]))["impossible_measurement"]
    assert finding.title == "The CPU limit of b2:8080 is 0"
    assert "unused" in finding.evidence


def test_no_usage_and_no_limit_is_nothing() -> None:
    calm = brokers(five(), direct_memory_usage_mib=[0.0] * 5, direct_memory_limit_mib=[0.0] * 5)
    assert "impossible_measurement" not in found(calm)


@pytest.mark.parametrize(("minutes", "reported"), [((12, 0, 0, 0, 0), 1), ((0.5, 0, -3, 0, 0), 0), ((90,) * 5, 5)])
def test_reports_of_the_future(minutes: tuple[float, ...], reported: int) -> None:
    snapshot = five()
    at = np.array([snapshot.info.captured_at_ms + int(by * 60_000) for by in minutes])
    finding = found(brokers(snapshot, updated_at_ms=at)).get("impossible_measurement")
    assert len(finding.brokers if finding else ()) == reported
    if finding is not None:
        whose = "the machine that captured" if reported == len(minutes) else "that broker"
        assert f"the clock of {whose} is wrong" in finding.evidence


def full_of_memory(strategy: str, weight: float, version: str = "4.2.4") -> Snapshot:
    config = {SHEDDING: CLASS[strategy], "loadBalancerDirectMemoryResourceWeight": weight}
    snapshot = five()
    snapshot = replace(
        snapshot,
        settings=Settings(config, release(version)),
        info=replace(snapshot.info, pulsar_version=version),
    )
    return brokers(snapshot, direct_memory_usage_mib=[3800.0, *[400.0] * 4], direct_memory_limit_mib=[4000.0] * 5)


@pytest.mark.parametrize("strategy", ["OverloadShedder", "ThresholdShedder"])
def test_memory_that_no_bundle_takes_along(strategy: str) -> None:
    snapshot = full_of_memory(strategy, 1.0)
    seen = found(snapshot, 12)
    finding = seen["memory_stays"]
    assert finding.brokers == ("b1:8080",)
    assert "direct memory" in finding.title
    assert "95 % used" in finding.evidence
    assert finding.changes == {"loadBalancerDirectMemoryResourceWeight": 0.0}
    assert {"unload_storm", "held_by_gate", "ping_pong"}.isdisjoint(seen)
    config = snapshot.settings.changed(**finding.changes)
    assert "memory_stays" not in found(replace(snapshot, settings=config), 12)


def test_heap_that_counts_holds_a_broker_without_a_threshold_above_the_limit() -> None:
    """TransferShedder compares pairs: it has no threshold, and sheds in vain from a broker whose heap is full."""
    snapshot = five(manager=LoadManager.EXTENSIBLE, loadBalancerMemoryResourceWeight=1.0)
    full = brokers(snapshot, memory_usage_mib=[3700.0, *[400.0] * 4], memory_limit_mib=[4000.0] * 5)
    finding = found(full, 12)["memory_stays"]
    assert "by its heap, which no bundle takes along" in finding.title
    assert finding.changes == {"loadBalancerMemoryResourceWeight": 0.0}


def test_nobody_is_full_by_measurements_that_cannot_be() -> None:
    """No machines are bought for a network that is said to be used by 168 %."""
    wrong = brokers(five(), bandwidth_in_usage_kbit_per_s=[1.68e7] * 5)
    scenario = unchanged("4.2.4", cycles=5)
    outcome = Outcome(simulate(wrong, scenario))
    seen = {one.code: one for one in diagnose(outcome)}
    assert "out_of_capacity" not in seen
    advice = fix(Trials(wrong, scenario, outcome), outcome)
    assert advice.capacity is None
    assert advice.sentence.startswith("No advice until this is corrected: all 5 brokers report more inbound")


def test_a_full_cluster_stays_full_with_one_wrong_measurement() -> None:
    wrong = found(brokers(five((0.9,) * 5), bandwidth_in_usage_kbit_per_s=[1.68e7, *[1e6] * 4]))
    assert {"out_of_capacity", "impossible_measurement"} <= wrong.keys()


def test_old_releases_ignore_the_weight() -> None:
    finding = found(full_of_memory("OverloadShedder", 0.0, "3.0.7"), 12)["memory_stays"]
    assert finding.changes == {
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
        "loadBalancerDirectMemoryResourceWeight": 0.0,
    }
    assert "ignores the weights: use ThresholdShedder" in finding.remedy


def test_memory_that_does_not_count() -> None:
    assert "memory_stays" not in found(full_of_memory("ThresholdShedder", 0.0), 12)


def hidden(weight: str, value: float, **columns: Any) -> Snapshot:
    """Five brokers, one resource of which counts for less than it is."""
    changed: dict[str, Any] = {weight: value}
    return brokers(five(**changed), **columns)


FULL_CPU: Final = {"cpu_usage_percent": [950.0, 900.0, *[200.0] * 3]}
FULL_NETWORK: Final = {"bandwidth_out_usage_kbit_per_s": [9.3e6, *[1e6] * 4]}
FULL_MEMORY: Final = {"direct_memory_usage_mib": [3600.0, *[400.0] * 4], "direct_memory_limit_mib": [4000.0] * 5}


@pytest.mark.parametrize(
    ("snapshot", "title", "severity"),
    [
        (hidden("loadBalancerCPUResourceWeight", 0.0, **FULL_CPU), "95 % of its CPU, which counts for nothing", "high"),
        (hidden("loadBalancerCPUResourceWeight", 0.5, **FULL_CPU), "95 % of its CPU, which counts for little", "high"),
        (
            hidden("loadBalancerBandwidthOutResourceWeight", 0.0, **FULL_NETWORK),
            "93 % of its outbound network, which counts for nothing",
            "high",
        ),
        (
            hidden("loadBalancerDirectMemoryResourceWeight", 0.0, **FULL_MEMORY),
            "90 % of its direct memory, which counts for nothing",
            "medium",
        ),
    ],
)
def test_a_full_machine_that_weights_hide_is_not_healthy(snapshot: Snapshot, title: str, severity: str) -> None:
    seen = found(snapshot)
    finding = seen["resource_not_counted"]
    assert title in finding.title
    assert (finding.severity, finding.brokers[0]) == (severity, "b1:8080")
    now = standing(snapshot, snapshot.settings, Assumptions())
    said = health(snapshot, snapshot.settings, now, None, tuple(seen.values()))
    assert finding.title in said.text
    assert (said.level, said.word) == (("bad", "Overloaded") if severity == "high" else ("good", "Healthy"))
    if finding.changes:
        counted = found(replace(snapshot, settings=snapshot.settings.changed(**finding.changes)))
        assert "resource_not_counted" not in counted


@pytest.mark.parametrize("weight", [0.9, 1.0, 2.0])
def test_what_counts_enough_is_not_hidden(weight: float) -> None:
    snapshot = hidden("loadBalancerCPUResourceWeight", weight, cpu_usage_percent=[990.0, *[200.0] * 4])
    assert "resource_not_counted" not in found(snapshot)


def uniform(idle: int, carrying: int = 2) -> Snapshot:
    sizes = {0: (30.0,) * carrying + (0.0,) * idle, 1: (1.0,), 2: (1.0,)}
    return cluster((0.5, 0.1, 0.1), sizes, settings={SHEDDING: CLASS["UniformLoadShedder"]})


@pytest.mark.parametrize(("idle", "told"), [(12, True), (7, True), (3, False), (0, False)])
def test_bundles_that_carry_nothing(idle: int, *, told: bool) -> None:
    seen = found(uniform(idle))
    assert ("idle_bundles_shed" in seen) is told
    if not told:
        return
    finding = seen["idle_bundles_shed"]
    assert f"{idle} of the " in finding.evidence
    assert "unload_storm" not in seen
    (limit,) = finding.changes.values()
    again = uniform(idle)
    assert "idle_bundles_shed" not in found(replace(again, settings=again.settings.changed(**finding.changes)))
    assert isinstance(limit, int)


def finding_of(code: str, of_brokers: Sequence[str] = (), bundles: Sequence[str] = ()) -> Finding:
    return Finding(
        code=code,
        title=code,
        evidence="",
        remedy="",
        severity="medium",
        brokers=tuple(of_brokers),
        bundles=tuple(bundles),
    )


class TestCauses:
    CASE = Outcome(simulate(cluster((0.3,) * 20, dict.fromkeys(range(20), (5.0,))), unchanged("4.2.4", cycles=1)))

    def left(self, *findings: Finding) -> list[str]:
        return [finding.code for finding in without_consequences(findings, self.CASE)]

    @pytest.mark.parametrize("code", EXPLAINS)
    def test_a_cause_is_a_finding_and_not_its_own_consequence(self, code: str) -> None:
        follow, _ = EXPLAINS[code]
        assert {code, *follow} <= set(_PAGES)
        assert code not in follow

    def test_other_brokers_are_another_story(self) -> None:
        cause = finding_of("impossible_measurement", ["b1:8080"])
        same, other = (finding_of("unload_storm", [name]) for name in ("b1:8080", "b2:8080"))
        assert self.left(cause, same, other) == ["impossible_measurement", "unload_storm"]

    def test_many_suspects_are_the_cluster(self) -> None:
        cause = finding_of("impossible_measurement", ["b1:8080", "b2:8080"])
        assert self.left(cause, finding_of("unload_storm", ["b9:8080"])) == ["impossible_measurement"]

    def test_children_are_the_same_bundle(self) -> None:
        cause = finding_of("split_cascade", bundles=["a/b/0x00000000_0x10000000"])
        parent = finding_of("topic_above_limit", bundles=["a/b/0x00000000_0x40000000"])
        other = finding_of("topic_above_limit", bundles=["a/c/0x00000000_0x40000000"])
        assert self.left(cause, parent) == ["split_cascade"]
        assert self.left(cause, other) == ["split_cascade", "topic_above_limit"]

    def test_a_load_manager_that_is_not_simulated_explains_all_shedding(self) -> None:
        all_of_it = [finding_of(code) for code in ("unload_storm", "ping_pong", "split_cascade", "hot_topic")]
        assert self.left(finding_of("other_load_manager"), *all_of_it) == ["other_load_manager", "hot_topic"]

    def test_what_is_left_out_explains_nothing(self) -> None:
        gate = finding_of("held_by_gate", ["b1:8080"])
        never = finding_of("threshold_never_reached")
        assert self.left(finding_of("out_of_capacity"), gate, never) == ["out_of_capacity"]


def test_every_finding_has_a_page() -> None:
    assert len(_PAGES) >= len(PATTERNS)


RIGHT: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "h05_cpu_above_limit.json": ("impossible_measurement", ("150 %",)),
    "h06_zero_traffic_bundles.json": ("idle_bundles_shed", ("12 of the 13 bundles",)),
}


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the handed-out cases")
@pytest.mark.parametrize("name", RIGHT)
def test_the_handed_out_cases(name: str) -> None:
    seen, (code, texts) = found(read_snapshot(CASES / name), 30, "4.2.4"), RIGHT[name]
    assert "unload_storm" not in seen
    assert [text for text in texts if text not in seen[code].evidence] == []


def test_traffic_without_any_cpu_usage_cannot_be() -> None:
    idle = [5000.0, 5000.0, 10.0, 5000.0, 5000.0]
    silent = brokers(five(), cpu_usage_percent=[0.0] * 5, msg_rate_in_per_s=idle, msg_rate_out_per_s=[0.0] * 5)
    finding = found(silent)["impossible_measurement"]
    assert finding.title == "b1:8080 reports no CPU usage"
    assert "b3:8080" not in finding.brokers, "one that does nearly nothing may use none"
    assert "impossible_measurement" not in found(five())


@pytest.mark.parametrize(("minutes", "late"), [(10, False), (29, False), (31, True), (60 * 24, True)])
def test_a_report_that_is_overdue(minutes: int, late: bool) -> None:  # noqa: FBT001 - a case
    snapshot = five()
    old = snapshot.info.captured_at_ms - minutes * 60_000
    given = brokers(snapshot, updated_at_ms=[old, *[snapshot.info.captured_at_ms] * 4])
    finding = found(given).get("report_outdated")
    assert (finding is not None) == late
    if finding is not None:
        assert finding.brokers == ("b1:8080",)
        assert ("24 h old" in finding.title) == (minutes == 60 * 24)


@pytest.mark.parametrize("manager", LoadManager)
def test_a_broker_without_load_data_stops_transfers(manager: LoadManager) -> None:
    """It reports in the simulation, which then sheds what Pulsar does not."""
    made = cluster((0.9, 0.1, 0.1, 0.0), {0: (9.0,) * 8, 1: (1.0,), 2: (1.0,), 3: ()}, load_manager=manager)
    seen = found(brokers(made, has_load_data=[True, True, True, False]))
    if manager is LoadManager.EXTENSIBLE:
        assert seen["report_missing"].title == "There is no load data of b4:8080"
        assert "skips every cycle (NoLoadData)" in seen["report_missing"].evidence
    else:
        assert seen["report_missing"].title == "There is no load report of b4:8080"
        assert "placement fails" in seen["report_missing"].evidence
    assert "idle_broker" not in seen
    assert "report_missing" not in found(made)


def test_a_limit_below_zero_is_told_as_it_is() -> None:
    used = {"bandwidth_in_usage_kbit_per_s": [5.0] * 5, "bandwidth_in_limit_kbit_per_s": [-1.0] * 5}
    finding = found(brokers(five(), **used))["impossible_measurement"]
    assert finding.title.endswith("is -1")


@pytest.mark.parametrize("manager", LoadManager)
def test_a_broker_that_is_busy_without_traffic_is_used_by_something_else(manager: LoadManager) -> None:
    own = {SHEDDING: CLASS["TransferShedder"]} if manager is LoadManager.EXTENSIBLE else {}
    idle = cluster((0.3, 0.3, 0.9), {0: (5.0,) * 8, 1: (5.0,) * 8}, load_manager=manager, settings=own)
    seen = found(idle)
    assert "b3:8080 is busy without any traffic" in seen["used_by_others"].title
    assert "uses 90 % of its CPU" in seen["used_by_others"].evidence
    assert seen["used_by_others"].severity == "high"
    assert seen.keys().isdisjoint({"held_by_gate", "threshold_never_reached"})
    outcome = Outcome(simulate(idle, unchanged("4.2.4", cycles=5)))
    now = standing(idle, idle.settings, Assumptions())
    assert "b3:8080 is busy without any traffic" in health(idle, idle.settings, now, outcome, diagnose(outcome)).text
    calm = cluster((0.3, 0.3, 0.3), {0: (5.0,) * 8, 1: (5.0,) * 8}, load_manager=manager, settings=own)
    assert "used_by_others" not in found(calm)


def test_a_verdict_on_even_brokers_names_what_drives_them_apart() -> None:
    """Splits, not the gate that holds a broker back once they have."""
    apart = Finding(code="held_by_gate", title="b1 is above", evidence="", remedy="", severity="high")
    splits = Finding(code="split_cascade", title="Split cascade in t/ns", evidence="", remedy="", severity="high")
    even = five()
    now = standing(even, even.settings, Assumptions())
    assert "split cascade in t/ns" in health(even, even.settings, now, None, (apart, splits)).text
    assert "b1 is above" in health(even, even.settings, now, None, (apart,)).text


def busy_network(of_bundles: float, strategy: str = "OverloadShedder", **settings: object) -> Snapshot:
    """Five brokers, the first of which uses 95 % of its outbound network, a share of that for its bundles."""
    snapshot = five()
    carried = float(snapshot.bundles.throughput_bytes_per_s(snapshot.bundles.owner == 0).sum()) * KBIT_PER_BYTE
    speed = carried / of_bundles
    config = Settings({SHEDDING: CLASS[strategy], **settings}, snapshot.settings.release)
    return brokers(
        replace(snapshot, settings=config),
        bandwidth_out_usage_kbit_per_s=[0.95 * speed, *[0.05 * speed] * 4],
        bandwidth_out_limit_kbit_per_s=[speed] * 5,
        bandwidth_in_limit_kbit_per_s=[speed] * 5,
    )


@pytest.mark.parametrize("strategy", ["OverloadShedder", "ThresholdShedder"])
def test_traffic_of_a_network_that_no_bundle_takes_along(strategy: str) -> None:
    """It was a storm of unloads, or a minimum that held them back: none of them lowers the usage."""
    seen = found(busy_network(0.01, strategy), 12)
    finding = seen["network_stays"]
    assert finding.brokers == ("b1:8080",)
    assert "% used" in finding.evidence
    assert not finding.changes
    assert not finding.edits
    assert {"unload_storm", "held_by_gate", "ping_pong", "clients_cut_off", "out_of_capacity"}.isdisjoint(seen)


@pytest.mark.parametrize("of_bundles", [0.2, 0.5, 0.9])
def test_a_network_that_bundles_and_bookies_fill_is_left_to_shedding(of_bundles: float) -> None:
    assert "network_stays" not in found(busy_network(of_bundles), 12)


def test_a_network_without_weight_lifts_no_broker() -> None:
    off = {"loadBalancerBandwidthOutResourceWeight": 0.0}
    assert "network_stays" not in found(busy_network(0.01, "ThresholdShedder", **off), 12)
