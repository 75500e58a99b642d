"""A broker above its threshold that a rule holds back: the rule is named, with the value that opens it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.cluster.units import MIB
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding, Severity
from planner.explain.health import Health, health, within
from planner.explain.outcome import Outcome
from planner.formats.reading import read_snapshot
from planner.pulsar.load.top_bundles import with_top_ranks
from planner.pulsar.shedding.registry import SHEDDERS
from planner.remedy.candidates import of_finding
from planner.remedy.trials import Trials
from planner.remedy.tried import tried_findings
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.registry import GroupChange
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from planner.simulate.usage_model import standing
from planner.workspace.samples import load_sample, samples
from tests.app.simulate.traces import cluster

SHEDDING: Final = "loadBalancerLoadSheddingStrategy"
PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"
CASES = Path(__file__).parents[4] / "shared" / "cases"
CLASS: Final = {one.name: one.java_class for one in SHEDDERS}
SMALL: Final = {0: (0.5,) * 8, 1: (0.5,), 2: (0.5,)}
LARGE: Final = {0: (20.0,) * 8, 1: (10.0,), 2: (10.0,)}


def hot(
    strategy: str,
    bundles: Mapping[int, tuple[float, ...]] = LARGE,
    policies: Policies | None = None,
    usage: tuple[float, ...] = (0.95, 0.1, 0.1),
    settings: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Three brokers, the first of them hot."""
    manager = LoadManager.EXTENSIBLE if strategy == "TransferShedder" else LoadManager.MODULAR
    given = {SHEDDING: CLASS[strategy], "loadBalancerAutoBundleSplitEnabled": False, **(settings or {})}
    if strategy == "AvgShedder":
        given[PLACEMENT] = CLASS[strategy]
    made = cluster(usage, bundles, load_manager=manager, settings=given)
    return replace(made, policies=policies or Policies())


def asked(
    snapshot: Snapshot,
    cycles: int = 6,
    steps: tuple[Edit, ...] = (),
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> Outcome:
    scenario = unchanged(snapshot.info.pulsar_version, cycles=cycles, settings=settings or {})
    scenario = scenario if seed is None else replace(scenario, seed=seed)
    return Outcome(simulate(snapshot, scenario.with_steps(*map(Step, steps))))


def verdict(outcome: Outcome) -> Health:
    snapshot = outcome.trace.start
    now = standing(snapshot, snapshot.settings, Assumptions())
    return health(snapshot, snapshot.settings, now, outcome, diagnose(outcome))


def gate_of(outcome: Outcome) -> Finding:
    (found,) = [finding for finding in diagnose(outcome) if finding.code == "held_by_gate"]
    return found


ONLY_B1 = Policies(isolation=(IsolationPolicy("only", ("acme/.*",), ("b1",)),))
EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
WITH_POLICIES = "loadBalancerSheddingBundlesWithPoliciesEnabled"
REPORTED = "loadBalancerMaxNumberOfBundlesInBundleLoadReport"
WIDE = Policies(isolation=(IsolationPolicy("wide", ("acme/.*",), ("b[0-9]",)),))

OPENED: Final[Mapping[str, tuple[Callable[[], Snapshot], str]]] = {
    "threshold, minimum throughput": (
        lambda: hot("ThresholdShedder", SMALL),
        "loadBalancerBundleUnloadMinThroughputThreshold",
    ),
    "threshold, excluded namespace": (lambda: hot("ThresholdShedder", settings={EXCLUDED: "acme/orders"}), EXCLUDED),
    "overload, excluded namespace": (lambda: hot("OverloadShedder", settings={EXCLUDED: "acme/orders"}), EXCLUDED),
    "uniform, minimum of messages": (
        lambda: hot("UniformLoadShedder", settings={"minUnloadMessage": 500_000}),
        "minUnloadMessage",
    ),
    "average, minimum of messages": (
        lambda: hot("AvgShedder", settings={"minUnloadMessage": 500_000, "minUnloadMessageThroughput": 2_000_000_000}),
        "minUnloadMessage",
    ),
    "average, hit counters": (
        lambda: hot(
            "AvgShedder",
            settings={
                "loadBalancerAvgShedderHitCountLowThreshold": 900,
                "loadBalancerAvgShedderHitCountHighThreshold": 900,
            },
        ),
        "loadBalancerAvgShedderHitCountLowThreshold",
    ),
    "transfer, hit counter": (
        lambda: hot("TransferShedder", settings={"loadBalancerSheddingConditionHitCountThreshold": 900}),
        "loadBalancerSheddingConditionHitCountThreshold",
    ),
    "transfer, bundles with policies": (
        lambda: hot("TransferShedder", policies=WIDE, settings={WITH_POLICIES: False}),
        WITH_POLICIES,
    ),
    "transfer, excluded namespace": (lambda: hot("TransferShedder", settings={EXCLUDED: "acme/orders"}), EXCLUDED),
}


@pytest.mark.parametrize("case", OPENED)
def test_the_gate_is_named_with_a_value_that_opens_it(case: str) -> None:
    build, setting = OPENED[case]
    snapshot = build()
    outcome = asked(snapshot)
    assert not outcome.summary.shed
    found = gate_of(outcome)
    assert found.brokers[0] == "b1:8080"
    assert setting in found.changes, found
    opened = asked(snapshot, 7, settings={name: conf_value(value) for name, value in found.changes.items()})
    assert any(event.kind == "shed" and event.source == "b1:8080" for event in opened.trace.events)
    assert setting in verdict(outcome).text or "sheds nothing" in verdict(outcome).text
    assert "no rule" not in verdict(outcome).text


@pytest.mark.parametrize("strategy", ["ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder"])
def test_a_policy_that_allows_only_the_hot_broker_is_named(strategy: str) -> None:
    outcome = asked(hot(strategy, policies=ONLY_B1))
    found = gate_of(outcome)
    assert "isolation policy 'only'" in found.title
    assert "an even spread would be 38 %" in found.evidence
    assert not found.changes
    assert "'only'" in verdict(outcome).text
    mended = asked(outcome.trace.start, 12, found.edits)
    assert any(event.kind == "shed" for event in mended.trace.events), "the edit of the remedy lets bundles leave"


def test_the_extensible_load_manager_names_the_policy_as_well() -> None:
    found = gate_of(asked(hot("TransferShedder", policies=ONLY_B1, settings={WITH_POLICIES: True})))
    assert "isolation policy 'only'" in found.title


@pytest.mark.parametrize("reported", [True, False])
def test_the_policy_is_named_with_the_switch_that_keeps_its_bundles(reported: bool) -> None:  # noqa: FBT001 - a case
    full = hot("TransferShedder", policies=ONLY_B1)
    outcome = asked(full if reported else with_top_ranks(full, full.settings))
    found = gate_of(outcome)
    assert "isolation policy 'only'" in found.title
    assert f"{WITH_POLICIES} is off, so that none of its 8 bundles of acme/orders is shed." in found.evidence
    assert found.changes == {WITH_POLICIES: True}
    action = of_finding(found, outcome.trace.settings)
    assert action is not None
    assert action.words.endswith(f", and set {WITH_POLICIES} = true")
    mended = asked(outcome.trace.start, 12, found.edits, found.changes)
    assert any(event.kind == "shed" for event in mended.trace.events)


def test_a_report_without_room_for_bundles_is_named() -> None:
    full = hot("TransferShedder", settings={REPORTED: 0})
    found = gate_of(asked(with_top_ranks(full, full.settings)))
    assert list(found.changes) == [REPORTED]


@pytest.mark.parametrize("strategy", ["ThresholdShedder", "OverloadShedder", "UniformLoadShedder"])
def test_a_group_of_one_namespace_that_keeps_bundles_is_deleted(strategy: str) -> None:
    """It keeps nothing apart, but every broker has as few of it as any other, so that nothing may leave."""
    full = hot(strategy, policies=Policies(anti_affinity_group={"acme/orders": "apart"}))
    outcome = asked(full)
    found = gate_of(outcome)
    assert found.edits == (GroupChange(namespace="acme/orders"),)
    assert "delete-anti-affinity-group acme/orders" in found.remedy
    assert {one.code for one in diagnose(outcome)}.isdisjoint({"group_without_effect"})
    assert not outcome.summary.shed
    assert asked(full, steps=found.edits).summary.shed


def test_a_group_that_keeps_namespaces_apart_is_not_deleted() -> None:
    full = hot("ThresholdShedder", {0: (20.0,) * 8, 1: (10.0,) * 2, 2: (10.0,) * 2})
    where = (np.arange(len(full.bundles)) % 2).astype(full.bundles.namespace.dtype)
    both = replace(
        full,
        namespaces=("acme/orders", "acme/other"),
        bundles=replace(full.bundles, namespace=where),
        policies=Policies(anti_affinity_group={"acme/orders": "apart", "acme/other": "apart"}),
    )
    found = [one for one in diagnose(asked(both)) if one.code == "held_by_gate"]
    assert found
    assert not found[0].edits


def test_cycles_that_are_skipped_after_an_unload_hide_no_gate() -> None:
    """The hot broker reports one bundle, as the others have a policy; the next one sheds, and all wait for it."""
    loads = (24.0, *(4.0,) * 9)
    own = hot(
        "TransferShedder",
        {0: loads, 1: loads, 2: (2.0,), 3: (2.0,)},
        usage=(0.95, 0.9, 0.1, 0.1),
        settings={"loadBalancerSheddingConditionHitCountThreshold": 0},
    )
    names = ("acme/orders", "acme/private")
    private = np.where((own.bundles.owner == 0) & (own.bundles.throughput_bytes_per_s() < 20 * MIB), 1, 0)
    own = replace(
        own,
        namespaces=names,
        bundles=replace(own.bundles, namespace=private.astype(own.bundles.namespace.dtype)),
        policies=Policies(anti_affinity_group={"acme/private": "apart"}),
    )
    own = with_top_ranks(own, own.settings)
    outcome = asked(own, cycles=3)
    assert outcome.trace.cycles[0].unloads
    assert not any(cycle.unloads for cycle in outcome.trace.cycles[1:]), "they wait for the broker that shed"
    found = gate_of(outcome)
    assert found.brokers == ("b1:8080",)
    assert found.evidence == "In cycle 1, b1:8080: load 95.0 %: it reports a single top bundle."
    assert found.changes == {WITH_POLICIES: True}
    assert found.remedy == f"Set {WITH_POLICIES} to true (now false): the next cycle then sheds from b1:8080."
    assert found.title == f"b1:8080 is above the threshold, but {WITH_POLICIES} holds it back"
    first = asked(own, cycles=3, settings=found.changes).trace.cycles[0]
    assert any(unload.move.source == "b1:8080" for unload in first.unloads)


def test_a_setting_that_lets_other_bundles_be_reported_is_found() -> None:
    """Every bundle that is reported may go nowhere; those with policies may, and one setting reports them."""
    spec = ClusterSpec(
        brokers=6, bundles=60, topics=600, namespaces=4, ownership_skew=0.9, isolated_namespaces=2,
        msg_rate_per_s=60_000, load_manager=LoadManager.EXTENSIBLE,
    )  # fmt: skip
    full = generate(spec, 11)
    found = gate_of(asked(full, cycles=30))
    assert found.changes == {WITH_POLICIES: True}
    assert "the placement filters do not allow" in found.evidence
    assert found.title.endswith(f"but {WITH_POLICIES} holds it back")
    assert not any(cycle.unloads for cycle in asked(full, cycles=30).trace.cycles)
    assert any(cycle.unloads for cycle in asked(full, cycles=30, settings=found.changes).trace.cycles)


@pytest.mark.parametrize(
    ("broker", "severity", "cause"), [("b1:8080", "high", True), ("b1:8080", "low", False), ("b2:8080", "high", False)]
)
def test_what_keeps_a_cluster_overloaded_concerns_its_busiest_broker(
    broker: str,
    severity: Severity,
    cause: bool,  # noqa: FBT001
) -> None:
    outcome = asked(hot("ThresholdShedder", SMALL))
    snapshot = outcome.trace.start
    skew = Finding(
        code="key_skew", title="Key skew", evidence="", remedy="", severity=severity, brokers=(broker,), bundles=()
    )
    now = standing(snapshot, snapshot.settings, Assumptions())
    said = health(snapshot, snapshot.settings, now, outcome, [skew]).text
    assert ("key skew" in said) == cause, said


@pytest.mark.parametrize("strategy", ["ThresholdShedder", "OverloadShedder", "UniformLoadShedder"])
def test_the_only_bundle_stays_and_split_lab_is_asked(strategy: str) -> None:
    outcome = asked(hot(strategy, {0: (200.0,), 1: (1.0,), 2: (1.0,)}))
    found = gate_of(outcome)
    assert "keeps its only bundle" in found.title
    assert "Its only bundle is acme/orders/0x00000000" in found.remedy


@pytest.mark.parametrize("strategy", CLASS)
@pytest.mark.parametrize("switch", ["loadBalancerEnabled", "loadBalancerSheddingEnabled"])
def test_a_switch_that_is_off_is_named_and_switching_it_on_sheds(strategy: str, switch: str) -> None:
    off = hot(strategy, settings={switch: False})
    (finding,) = [one for one in diagnose(asked(off, 12)) if one.code == "shedding_off"]
    assert switch in finding.title
    assert finding.severity == "high"
    assert finding.brokers[0] == "b1:8080"
    on = asked(off, 12, settings=finding.changes)
    assert on.summary.shed
    assert f"shed {on.summary.shed} bundle" in finding.evidence
    assert not [one for one in diagnose(on) if one.code == "shedding_off"]


def test_a_switch_is_no_finding_where_nothing_would_be_shed() -> None:
    calm = hot("ThresholdShedder", usage=(0.3, 0.3, 0.3), settings={"loadBalancerSheddingEnabled": False})
    assert "shedding_off" not in {one.code for one in diagnose(asked(calm))}


def test_a_script_that_holds_the_switch_is_asked_to_continue() -> None:
    mark = "false.held-by-6ee77aa694a4.since-20261125T033100Z.was-unset-true"
    off = hot("ThresholdShedder", settings={"loadBalancerSheddingEnabled": False})
    held = replace(off, info=replace(off.info, dynamic_settings={"loadBalancerSheddingEnabled": mark}))
    (finding,) = [one for one in diagnose(asked(held)) if one.code == "shedding_off"]
    assert "run it again" in finding.remedy
    assert not finding.changes


def test_a_broker_below_the_threshold_is_held_by_no_gate() -> None:
    outcome = asked(hot("OverloadShedder", usage=(0.6, 0.1, 0.1)))
    assert "held_by_gate" not in {finding.code for finding in diagnose(outcome)}
    calm = asked(hot("ThresholdShedder", SMALL, usage=(0.3, 0.28, 0.29)))
    assert "held_by_gate" not in {finding.code for finding in diagnose(calm)}


def test_a_broker_that_only_ends_above_the_threshold_is_said_to_end_there() -> None:
    """Pages show the first cycle beside the verdict: a broker at less than the average is above nothing there."""
    split = load_sample(next(one for one in samples() if one.file == "split-flow-or-qps.json"))
    outcome = asked(split, cycles=30)
    found = gate_of(outcome)
    assert f"{found.brokers[0]} ends above the threshold, but " in found.title
    at_first = outcome.reported_usage[0][outcome.series.brokers.index(found.brokers[0])]
    assert at_first < np.nanmean(outcome.reported_usage[0])
    assert "ends above the threshold" in verdict(outcome).text
    always = asked(hot("ThresholdShedder", usage=(0.6, 0.1, 0.1), settings={EXCLUDED: "acme/orders"}))
    assert "b1:8080 is above the threshold, but " in gate_of(always).title


NEWEST: Final = "TransferShedder"
EVEN: Final = {0: (10.0, 10.0), 1: (10.0, 10.0), 2: (10.0, 10.0)}


@pytest.mark.parametrize(("usage", "severity"), [(0.6, "medium"), (0.92, "high"), (0.31, "low")])
def test_a_strategy_that_compares_only_traffic_is_named(usage: float, severity: str) -> None:
    """Usage is uneven and rates are even: nothing is shed, and the verdict says why."""
    outcome = asked(hot("UniformLoadShedder", EVEN, usage=(usage, 0.1, 0.1)))
    assert not outcome.summary.shed
    (finding,) = [one for one in diagnose(outcome) if one.code == "usage_not_compared"]
    assert (finding.severity, finding.brokers) == (severity, ("b1:8080",))
    assert finding.title == "b1:8080 is hot, but UniformLoadShedder compares only message rate or throughput"
    assert finding.title in verdict(outcome).text
    (offer,) = tried_findings([finding], Trials(outcome.trace.start, outcome.trace.scenario, outcome))
    assert offer.finding.tried


@pytest.mark.parametrize("usage", [(0.3, 0.28, 0.29), (0.6, 0.1, 0.1)])
def test_what_a_strategy_compares_is_no_finding_elsewhere(usage: tuple[float, ...]) -> None:
    calm = usage[0] < 0.5
    outcome = asked(hot("UniformLoadShedder" if calm else "OverloadShedder", EVEN, usage=usage))
    assert "usage_not_compared" not in {one.code for one in diagnose(outcome)}


def test_a_threshold_that_is_no_longer_reached_is_named() -> None:
    """TransferShedder sheds until its target is reached: brokers are still apart, and no rule calls for more."""
    spread = dict.fromkeys(range(5), (4.0,) * 10)
    made = cluster((*[0.5] * 5, 0.0), spread, load_manager=LoadManager.EXTENSIBLE, settings={SHEDDING: CLASS[NEWEST]})
    outcome = asked(made, cycles=30)
    assert outcome.summary.shed
    assert "the threshold is no longer reached" in verdict(outcome).text
    (finding,) = [one for one in diagnose(outcome) if one.code == "threshold_no_longer_reached"]
    assert list(finding.changes) == ["loadBalancerBrokerLoadTargetStd"]
    assert asked(made, cycles=30, settings=finding.changes).summary.shed > outcome.summary.shed
    assert "threshold_no_longer_reached" not in {one.code for one in diagnose(asked(made, cycles=9))}, (
        "too early to say"
    )


EVENLY: Final = "loadBalancerDistributeBundlesEvenlyEnabled"
FEWEST: Final[dict[int, tuple[float, ...]]] = {0: (40.0,) * 2, 1: (0.7,) * 7, 2: (0.7,) * 7}
"""The hot broker has the fewest bundles, so that the filter that distributes them evenly gives them back to it."""


def test_the_switch_that_gives_bundles_back_is_named() -> None:
    made = hot("ThresholdShedder", FEWEST, usage=(0.8, 0.2, 0.2))
    outcome = asked(made)
    assert not outcome.summary.shed
    found = gate_of(outcome)
    assert found.title == f"b1:8080 is above the threshold, but {EVENLY} keeps bundles there"
    assert found.changes == {EVENLY: False}
    assert asked(made, settings={EVENLY: False}).summary.shed


def test_the_switch_is_named_beside_a_minimum() -> None:
    small: dict[int, tuple[float, ...]] = {0: (4.0,) * 2, 1: (0.2,) * 7, 2: (0.2,) * 7}
    made = hot("ThresholdShedder", small, usage=(0.8, 0.2, 0.2))
    found = gate_of(asked(made))
    assert f"such as 2.2 (now 10.0), and {EVENLY} to false: the next cycle then sheds from b1:8080" in found.remedy
    settings = {name: conf_value(value) for name, value in found.changes.items()}
    assert len(settings) == 2
    assert asked(made, settings=settings).summary.shed
    assert not any(asked(made, settings={name: value}).summary.shed for name, value in settings.items())


def test_a_later_version_keeps_its_bundles() -> None:
    even = dict.fromkeys(range(3), (20.0,) * 4)
    made = hot("ThresholdShedder", even, usage=(0.8, 0.2, 0.2), settings={"preferLaterVersions": True})
    later = replace(made.brokers, version=("4.2.5", "4.2.4", "4.2.4"))
    found = gate_of(asked(made.with_columns(brokers=later)))
    assert found.changes == {"preferLaterVersions": False}


def test_why_placement_chooses_a_broker_again_is_said_where_no_switch_helps() -> None:
    """Large messages: the hot broker has the lowest message rate, by which the default placement goes."""
    sizes: dict[int, tuple[float, ...]] = {0: (10.0,) * 8, 1: (0.7,) * 8, 2: (0.7,) * 8}
    rates = {0: (10.0,) * 8, 1: (90.0,) * 8, 2: (90.0,) * 8}
    found = gate_of(asked(cluster((0.8, 0.2, 0.2), sizes, rates=rates, settings={EVENLY: False})))
    assert found.title.endswith("sheds nothing: placement would assign its bundles to it again")
    assert found.remedy.startswith("LeastLongTermMessageRate places by long-term message rate, and so chooses b1:8080")


def test_a_draw_that_keeps_a_bundle_opens_a_gate_all_the_same() -> None:
    """Brokers with equal message rates: Pulsar draws one of them, which is the bundle's own in some cycles."""
    equal = dict.fromkeys(range(3), (4.0,) * 4)
    for cycles in range(1, 9):
        found = gate_of(asked(hot("ThresholdShedder", equal, usage=(0.8, 0.3, 0.3)), cycles=cycles))
        assert list(found.changes) == ["loadBalancerBundleUnloadMinThroughputThreshold"], cycles


def test_a_remedy_that_a_draw_may_undo_says_so() -> None:
    """With the gate open, the cycle chooses bundles: in some they go, in others Pulsar draws their own broker."""
    made = hot("ThresholdShedder", dict.fromkeys(range(3), (4.0,) * 4), usage=(0.8, 0.3, 0.3))
    found = gate_of(asked(made, cycles=1))
    assert (
        "then chooses 2 bundles of b1:8080, and draws from 3 brokers with b1:8080 among them for each." in found.remedy
    )
    assert found.remedy.endswith("Where it draws b1:8080, a bundle stays, and the cycle after it draws again.")
    settings = {name: conf_value(value) for name, value in found.changes.items()}
    first = {bool(asked(made, cycles=1, settings=settings, seed=seed).summary.shed) for seed in range(12)}
    assert first == {False, True}


def test_a_remedy_that_no_draw_undoes_says_that_it_sheds() -> None:
    """The two other brokers have fewer bundles, and the draw is between them."""
    sizes: dict[int, tuple[float, ...]] = {0: (4.0,) * 4, 1: (4.0,) * 3, 2: (4.0,) * 3}
    made = hot("ThresholdShedder", sizes, usage=(0.8, 0.3, 0.3))
    found = gate_of(asked(made, cycles=1))
    assert found.remedy.endswith(": the next cycle then sheds from b1:8080.")
    settings = {name: conf_value(value) for name, value in found.changes.items()}
    assert all(asked(made, cycles=1, settings=settings, seed=seed).summary.shed for seed in range(12))


def test_where_another_rule_stands_behind_a_gate_it_is_named() -> None:
    """Whatever the minimum of an unload, the leader would give the bundle back to its broker, which has the fewest."""
    sizes: dict[int, tuple[float, ...]] = {0: (6.0,) * 6, 1: (6.0,) * 9, 2: (6.0,) * 9}
    held = gate_of(asked(hot("ThresholdShedder", sizes, usage=(0.62, 0.446, 0.446)), cycles=1))
    assert "No value of loadBalancerBundleUnloadMinThroughputThreshold opens it alone" in held.remedy
    assert held.remedy.endswith("a chosen bundle stays, as the leader would assign it to b1:8080 again.")


def test_a_gate_that_no_value_opens_follows_from_too_few_bundles() -> None:
    """Four bundles for ten brokers: the minimum of an unload is no cause where its value changes nothing."""
    usage, four = (*[0.7] * 4, *[0.02] * 6), range(4)
    made = cluster(usage, dict.fromkeys(four, (80.0,)), rates=dict.fromkeys(four, (40_000.0,)), topics=200)
    outcome = asked(made, cycles=30)
    codes = {one.code for one in diagnose(outcome)}
    assert "bundle_count_too_low" in codes
    assert "held_by_gate" not in codes
    assert "too few bundles in acme/orders" in verdict(outcome).text


def test_a_strategy_whose_comparisons_are_switched_off_is_named() -> None:
    off = {
        "loadBalancerMsgRateDifferenceShedderThreshold": 0.0,
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 0.0,
    }
    outcome = asked(hot("UniformLoadShedder", usage=(0.8, 0.1, 0.1), settings=off))
    (finding,) = [one for one in diagnose(outcome) if one.code == "usage_not_compared"]
    assert finding.title == "b1:8080 is hot, but UniformLoadShedder compares nothing"
    assert finding.changes == {name: outcome.trace.settings.of(name).default for name in off}


def test_a_policy_whose_brokers_are_full_together_is_the_cause() -> None:
    policy = IsolationPolicy(name="gold", namespaces=(".*",), primary=("b1", "b2"), secondary=(), min_limit=1)
    both = {0: (20.0,) * 8, 1: (20.0,) * 8}
    outcome = asked(
        hot("ThresholdShedder", both, Policies(isolation=(policy,)), usage=(0.9, 0.88, 0.1)),
        cycles=30,
    )
    seen = {one.code: one for one in diagnose(outcome)}
    finding = seen["policy_full"]
    assert finding.title == "The isolation policy 'gold' leaves its namespaces 2 brokers, which are full"
    assert {"ping_pong", "fighting_strategies", "held_by_gate", "clients_cut_off"}.isdisjoint(seen)
    assert within(finding.title) in verdict(outcome).text
    (offer,) = tried_findings([finding], Trials(outcome.trace.start, outcome.trace.scenario, outcome))
    assert "better" in offer.finding.tried
    assert offer.finding.edits


def test_a_full_policy_under_the_extensible_load_manager_takes_its_switch_as_well() -> None:
    """More brokers alone change nothing there: no bundle with a policy is shed."""
    policy = IsolationPolicy(name="gold", namespaces=(".*",), primary=("b1", "b2"), secondary=(), min_limit=1)
    both = {0: (5.0,) * 12, 1: (5.0,) * 12}
    made = hot("TransferShedder", both, Policies(isolation=(policy,)), usage=(0.93, 0.88, 0.1))
    outcome = asked(made, cycles=30)
    (finding,) = [one for one in diagnose(outcome) if one.code == "policy_full"]
    assert "nothing with a policy is shed without it" in finding.remedy
    assert finding.changes == {"loadBalancerSheddingBundlesWithPoliciesEnabled": True}
    (offer,) = tried_findings([finding], Trials(made, outcome.trace.scenario, outcome))
    assert offer.finding.edits
    assert "better" in offer.finding.tried


def test_a_policy_whose_brokers_have_room_is_no_finding() -> None:
    policy = IsolationPolicy(name="gold", namespaces=(".*",), primary=("b1", "b2"), secondary=(), min_limit=1)
    room = asked(hot("ThresholdShedder", EVEN, Policies(isolation=(policy,)), usage=(0.9, 0.3, 0.1)))
    assert "policy_full" not in {one.code for one in diagnose(room)}


def test_a_threshold_far_above_its_default_goes_back_to_it() -> None:
    """The least change that makes a cycle shed moves next to nothing."""
    far = asked(
        hot("ThresholdShedder", usage=(0.92, 0.5, 0.5), settings={"loadBalancerBrokerThresholdShedderPercentage": 60})
    )
    (finding,) = [one for one in diagnose(far) if one.code == "threshold_never_reached"]
    assert finding.changes == {"loadBalancerBrokerThresholdShedderPercentage": 10}
    assert "to 10, its default" in finding.remedy


def test_a_gate_is_named_though_the_cluster_is_nearly_idle() -> None:
    """The finding is a note where every broker has room; the verdict still must not say that no rule calls for more."""
    settings = {SHEDDING: CLASS["UniformLoadShedder"], "loadBalancerMsgRateDifferenceShedderThreshold": 1.0}
    rates = {0: (50.0,) * 12, 1: (25.0,) * 4}
    outcome = asked(cluster((0.3, 0.1), {0: (0.1,) * 12, 1: (0.05,) * 4}, rates=rates, settings=settings))
    gate = gate_of(outcome)
    assert gate.severity == "low"
    assert "minUnloadMessage holds it back" in gate.title
    assert gate.title in verdict(outcome).text


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases lie beside the repository")
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("h03", ("loadBalancerBundleUnloadMinThroughputThreshold", "3.17 or less")),
        ("h17", ("isolation policy 'only'", "37 %")),
    ],
)
def test_the_cases_that_operators_reported(case: str, words: tuple[str, ...]) -> None:
    (path,) = CASES.glob(f"{case}_*.json")
    outcome = asked(read_snapshot(path), 30)
    found = gate_of(outcome)
    assert all(word in f"{found.title} {found.evidence} {found.remedy}" for word in words)
    assert found.brokers == ("b1:8080",)
    assert "no rule" not in verdict(outcome).text


def test_one_large_bundle_among_many_is_split_and_not_all_of_them() -> None:
    """Their number is not the fault, and a namespace that is full is split by command."""
    many = {0: (1.0,) * 40, 1: (1.0,) * 40, 2: (*(1.0,) * 39, 200.0)}
    made = cluster((0.2, 0.2, 0.9), many, settings={"loadBalancerNamespaceMaximumBundles": 120})
    outcome = asked(made)
    (finding,) = [one for one in diagnose(outcome) if one.code.startswith("bundle_count")]
    assert finding.title == f"A bundle of {made.namespaces[0]} is too large"
    assert finding.remedy.startswith(f"Split {made.bundle_names[-1]}, for example into 4.")
    assert "loadBalancerNamespaceMaximumBundles is 120, so it is not split automatically." in finding.evidence
    assert len(finding.edits) == 3
    (offer,) = tried_findings([finding], Trials(made, outcome.trace.scenario, outcome))
    assert "better" in offer.finding.tried
