"""What stands behind a gate, what a verdict says where a finding explains a gate, and what doubts nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.finding import Finding
from planner.explain.gate_patterns import held_by_gate
from planner.explain.health import Health, health
from planner.explain.outcome import Outcome
from planner.optimize.answer import best_plan
from planner.optimize.constraint import constraint_of
from planner.optimize.question import Question
from planner.share.export import json_text, plan_document
from planner.simulate.assumptions import Assumptions
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from planner.simulate.usage_model import standing
from planner.simulate.what_if import Target, what_if
from tests.app.remedy.operator_reports import CLASS, PLACEMENT, SHEDDING, Asked, Row, bundles, cluster, isolation
from tests.app.remedy.test_more_reports import with_brokers

EXCLUDED: Final = "loadBalancerSheddingExcludedNamespaces"
MINIMUM: Final = "loadBalancerBundleUnloadMinThroughputThreshold"
HITS: Final = "loadBalancerSheddingConditionHitCountThreshold"
POLICIES: Final = "loadBalancerSheddingBundlesWithPoliciesEnabled"
REPORTED: Final = "loadBalancerMaxNumberOfBundlesInBundleLoadReport"
MOST_TOPICS: Final = "loadBalancerBrokerMaxTopics"
MOST_BUNDLES: Final = "maxUnloadBundleNumPerShedding"
UNIFORM: Final = {SHEDDING: CLASS["UniformLoadShedder"]}
AVG: Final = {SHEDDING: CLASS["AvgShedder"], PLACEMENT: CLASS["AvgShedder"]}
EXTENSIBLE_CLASS: Final = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
_AT_MS: Final = 1_800_000_000_000


def hot(
    rows: Sequence[Row], settings: Mapping[str, Any] | None = None, *, manager: str = "modular", **more: Any
) -> Snapshot:
    """Three brokers, the first of them hot, whatever they carry."""
    given = {"loadBalancerAutoBundleSplitEnabled": False, **(settings or {})}
    if manager == "extensible":
        given[SHEDDING] = CLASS["TransferShedder"]
    rest = {"cpu_percent": (90, 10, 10), "release": "4.2.4", **more}
    return cluster(3, rows, settings=given, manager=manager, **rest)


def verdict(asked: Asked) -> Health:
    snapshot = asked.snapshot
    now = standing(snapshot, snapshot.settings, Assumptions())
    return health(snapshot, snapshot.settings, now, asked.outcome, asked.findings)


def shed_from(snapshot: Snapshot, broker: str, settings: Mapping[str, Any]) -> int:
    scenario = unchanged(snapshot.info.pulsar_version, settings=settings)
    cycles = Outcome(simulate(snapshot, scenario)).trace.cycles
    return sum(one.move.source == broker and one.carried_out for cycle in cycles for one in cycle.unloads)


def only(asked: Asked, code: str) -> Finding:
    (found,) = [one for one in asked.findings if one.code == code]
    return found


OTHERS: Final = bundles("p/c", (2, 3) * 4, 1.0)
TWO_GATES: Final[Mapping[str, tuple[Snapshot, set[str]]]] = {
    "threshold, minimum and exclusion": (
        hot(bundles("p/a", (1,) * 8, 0.3) + bundles("p/c", (2, 3) * 4, 0.05), {EXCLUDED: "p/a"}),
        {MINIMUM, EXCLUDED},
    ),
    "transfer, hit counter and exclusion": (
        hot(bundles("p/a", (1,) * 8, 9.0) + OTHERS, {EXCLUDED: "p/a", HITS: 900}, manager="extensible"),
        {HITS, EXCLUDED},
    ),
    "transfer, exclusion and policy": (
        hot(
            bundles("vip/a", (1,) * 8, 9.0) + OTHERS,
            {EXCLUDED: "vip/a"},
            manager="extensible",
            policies=isolation(["b[12]"]),
        ),
        {POLICIES, EXCLUDED},
    ),
    "transfer, exclusion and report of one bundle": (
        hot(bundles("p/a", (1,) * 8, 9.0) + OTHERS, {EXCLUDED: "p/a", REPORTED: 1}, manager="extensible"),
        {REPORTED, EXCLUDED},
    ),
    "uniform, minimum and share": (
        hot(bundles("p/a", (1,) * 2, 0.3, msg_per_s=300.0) + bundles("p/c", (2, 3) * 4, 0.05, msg_per_s=5.0), UNIFORM),
        {"minUnloadMessage", "maxUnloadPercentage"},
    ),
}


@pytest.mark.parametrize("case", TWO_GATES)
def test_two_gates_are_opened_together(case: str) -> None:
    snapshot, names = TWO_GATES[case]
    found = only(Asked(snapshot), "held_by_gate")
    assert set(found.changes) == names
    assert shed_from(snapshot, "b1:8080", found.changes)
    for name in names:
        left = {one: value for one, value in found.changes.items() if one != name}
        assert not shed_from(snapshot, "b1:8080", left)


@pytest.mark.parametrize("case", TWO_GATES)
def test_why_knows_what_a_finding_offers(case: str) -> None:
    """The page Why must not say that no setting opens what a finding opens."""
    snapshot, names = TWO_GATES[case]
    trace = Asked(snapshot).outcome.trace
    answer = what_if(trace, len(trace.cycles) - 1, Target(broker="b1:8080"))[0]
    assert [{change.setting for change in one.changes} for one in answer.answers] == [names]


def test_a_bound_names_the_excluded_namespace() -> None:
    snapshot, _ = TWO_GATES["threshold, minimum and exclusion"]
    said = [one.sentence for one in [constraint_of(best_plan(snapshot, Question()))] if one is not None]
    assert [one.partition(":")[0] for one in said] == ["The excluded namespace “p/a” sets the lower bound"]


def test_shedding_waits_for_the_load_data_of_every_broker() -> None:
    made = hot(bundles("p/d", (1,) * 8, 9.0) + OTHERS, manager="extensible")
    text = verdict(Asked(with_brokers(made, has_load_data={2: False}))).text
    assert "Once there is load data of b3:8080, Pulsar fixes this on its own" in text


def test_a_broker_whose_report_is_missing_is_not_called_healthy() -> None:
    """The other two are idle, and the hot one is the one that nothing is known of."""
    asked = Asked(with_brokers(hot(bundles("p/d", (1,) * 8, 9.0) + OTHERS), has_load_data={0: False}))
    found = verdict(asked)
    assert found.word == "At risk"
    assert found.text.endswith("there is no load report of b1:8080.")


def test_brokers_of_another_load_manager_explain_a_minimum_too() -> None:
    made = hot(GATED, {"loadBalancerDistributeBundlesEvenlyEnabled": False}, cpu_percent=(80, 10, 10))
    classes = ("org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl", *[EXTENSIBLE_CLASS] * 2)
    asked = Asked(made.with_columns(brokers=replace(made.brokers, load_manager_class=classes)))
    assert "held_by_gate" not in asked.codes
    assert "brokers run different load managers" in verdict(asked).text


def test_a_grace_period_behind_a_gate_is_named_and_passes() -> None:
    rows = bundles("vip/a", (1,) * 8, 9.0) + bundles("p/d", (3,) * 4, 1.0)
    found = only(Asked(hot(rows, policies=isolation(["b.*"]))), "held_by_gate")
    assert "because of loadBalancerSheddingGracePeriodMinutes" in found.remedy
    assert found.remedy.endswith("That passes by itself.")


def test_a_policy_behind_a_minimum_is_the_cause() -> None:
    rows = bundles("vip/a", (1,) * 8, 0.9) + bundles("p/d", (3,) * 4, 0.1)
    asked = Asked(hot(rows, policies=isolation(["b1"])))
    found = only(asked, "held_by_gate")
    assert found.title == "The isolation policy 'vip' keeps bundles on b1:8080"
    assert set(found.changes) == {MINIMUM}
    assert found.edits
    assert "idle_broker" not in asked.codes
    trial = asked.tried("held_by_gate").trial
    assert trial is not None
    assert trial.is_worth_it


def test_no_bundle_may_leave_in_a_cycle() -> None:
    snapshot = hot(
        bundles("p/a", (1,) * 8, 11.0, msg_per_s=3_000.0) + bundles("p/c", (2, 3) * 4, 1.0, msg_per_s=300.0),
        {**UNIFORM, MOST_BUNDLES: 0},
    )
    found = only(Asked(snapshot), "held_by_gate")
    assert MOST_BUNDLES in found.title
    assert found.remedy.startswith(f"Set {MOST_BUNDLES} to -1 (now 0)")
    assert shed_from(snapshot, "b1:8080", found.changes)


class TestAvgShedder:
    """Pairs are apart by usage, and move a share of the difference of their traffic."""

    def test_a_busier_broker_that_carries_less_is_no_matter_of_minimums(self) -> None:
        rows = bundles("p/d", (1,) * 4, 1.0, msg_per_s=500.0) + bundles("p/e", (2, 3) * 4, 8.0, msg_per_s=3_000.0)
        found = only(Asked(hot(rows, AVG)), "avg_held_back")
        assert found.title == "AvgShedder moves nothing, as b1:8080 uses more than b2:8080 and carries no more"
        assert "-2000 msg/s" in found.evidence
        assert "minUnload" not in found.remedy

    def test_a_share_of_nothing_is_named(self) -> None:
        rows = bundles("p/d", (1,) * 8, 11.0, msg_per_s=3_000.0) + bundles("p/e", (2, 3) * 4, 1.0, msg_per_s=300.0)
        found = only(Asked(hot(rows, {**AVG, "maxUnloadPercentage": 0.0})), "avg_held_back")
        assert found.title == "AvgShedder moves nothing, as maxUnloadPercentage is 0"
        assert found.changes == {"maxUnloadPercentage": 0.5}

    def test_a_gate_behind_its_counters_is_named_though_bundles_were_shed_before(self) -> None:
        rows = bundles("p/d", (1,) * 8, 11.0, msg_per_s=3_000.0) + bundles("p/e", (2, 3) * 4, 2.0, msg_per_s=300.0)
        asked = Asked(hot(rows, AVG, cpu_percent=(80, 20, 20)))
        assert asked.outcome.summary.shed == 2
        assert "maxUnloadPercentage holds it back" in verdict(asked).text
        found = only(asked, "held_by_gate")
        assert shed_from(asked.snapshot, "b1:8080", found.changes) == 3


def test_the_setting_that_opens_a_gate_is_the_one_that_is_named() -> None:
    rows = bundles("p/d", (1,) * 8, 11.0, msg_per_s=3_000.0) + bundles("p/e", (2, 3) * 4, 1.0, msg_per_s=300.0)
    found = only(Asked(hot(rows, {**UNIFORM, "maxUnloadPercentage": 0.0})), "held_by_gate")
    assert found.title == "b1:8080 is above the threshold, but maxUnloadPercentage holds it back"
    assert set(found.changes) == {"maxUnloadPercentage"}


def no_broker() -> Snapshot:
    rows = bundles("vip/a", (1,) * 8, 9.0) + OTHERS
    return hot(rows, policies=isolation(["b1:8080"], secondary=["b2:8080"]))


def full_of_topics() -> Snapshot:
    rows = bundles("p/d", (1,) * 4, 9.0, topics=10) + bundles("p/c", (2, 3) * 4, 1.0, topics=100)
    made = hot(rows, {MOST_TOPICS: 300}, manager="extensible")
    return with_brokers(made, topics={0: 40, 1: 400, 2: 400})


def expired() -> Snapshot:
    made = hot(
        bundles("p/d", (1,) * 8, 9.0) + OTHERS, {"loadBalancerBrokerLoadDataTTLInSeconds": 10}, manager="extensible"
    )
    return with_brokers(made, updated_at_ms=dict.fromkeys(range(3), _AT_MS - 60_000))


@pytest.mark.parametrize(
    ("made", "code", "reason"),
    [
        (no_broker, "policy_matches_no_broker", "the isolation policy 'vip' leaves its namespaces no broker."),
        (full_of_topics, "topics_full", f"b2:8080, b3:8080 have as many topics as {MOST_TOPICS} allows."),
        (expired, "load_data_expires", "load data expires before the next report."),
    ],
)
def test_a_verdict_names_what_explains_a_gate(made: Any, code: str, reason: str) -> None:
    asked = Asked(made())
    assert code in asked.codes
    assert "held_by_gate" not in asked.codes
    assert verdict(asked).text.endswith(f": {reason}")


def test_a_plan_says_a_finding_without_what_follows_from_it() -> None:
    asked = Asked(expired())
    document = plan_document(asked.outcome.trace, findings=asked.findings)
    (found,) = json.loads(json_text(document))["diagnosis"]
    assert found["code"] == "load_data_expires"
    assert "explains" not in found


def test_topics_that_fill_every_other_broker_are_offered_a_higher_limit() -> None:
    trial = Asked(full_of_topics()).tried("topics_full").trial
    assert trial is not None
    assert trial.is_worth_it


@pytest.mark.parametrize(
    "settings",
    [
        {SHEDDING: "com.acme.MyShedder"},
        {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"},
    ],
)
def test_nothing_is_promised_of_rules_that_are_not_simulated(settings: Mapping[str, Any]) -> None:
    asked = Asked(hot(bundles("p/d", (1,) * 4, 9.0) + OTHERS, settings))
    assert "What Pulsar does about it is unknown" in verdict(asked).text
    assert not {"held_by_gate", "threshold_no_longer_reached", "ema_lag"} & set(asked.codes)


GATED: Final = bundles("p/d", (1,) * 8, 0.5) + bundles("p/c", (2, 3) * 4, 0.05)


@pytest.mark.parametrize(
    "columns",
    [
        {"updated_at_ms": {0: _AT_MS + 120_000, 1: _AT_MS, 2: _AT_MS}},
        {"updated_at_ms": dict.fromkeys(range(3), _AT_MS + 120_000)},
        {"memory_usage_mib": {0: 9_000.0}},
    ],
)
def test_a_measurement_that_decides_nothing_hides_no_gate(columns: Mapping[str, Mapping[int, float]]) -> None:
    asked = Asked(with_brokers(hot(GATED), **columns))
    assert asked.codes[:2] == ["held_by_gate", "impossible_measurement"]
    assert f"but {MINIMUM} holds it back" in verdict(asked).text
    assert "no prediction" not in only(asked, "impossible_measurement").remedy


def test_a_usage_that_is_not_seen_makes_the_least_used_broker_doubtful() -> None:
    rows = bundles("p/d", (1,) * 8, 5.0) + bundles("p/c", (2, 3) * 4, 5.0)
    asked = Asked(with_brokers(hot(rows, cpu_percent=(80, 30, 30)), cpu_limit_percent={0: -1.0}))
    assert verdict(asked).text.endswith("But this may be untrue: the CPU limit of b1:8080 is -1.")


def test_a_wrong_network_speed_is_no_other_user_of_the_machine() -> None:
    rows = bundles("p/d", (1,) * 8, 50.0) + bundles("p/c", (2, 3) * 4, 5.0)
    wrong = {"bandwidth_out_usage_kbit_per_s": {0: 9.5e6}, "bandwidth_out_limit_kbit_per_s": {0: 1e6}}
    codes = Asked(with_brokers(hot(rows, cpu_percent=(30, 30, 30)), **wrong)).codes
    assert codes[0] == "impossible_measurement"
    assert "used_by_others" not in codes


def test_secondary_brokers_are_never_used_with_a_least_number_of_0() -> None:
    policies = isolation(["b9"], secondary=["b2"])
    policies["isolation"][0]["min_limit"] = 0
    asked = Asked(hot(bundles("vip/a", (None,) * 4) + OTHERS, policies=policies, cpu_percent=(20, 10, 10)))
    found = only(asked, "policy_matches_no_broker")
    assert found.severity == "high"
    assert "With a min_limit of 0, secondary brokers (b2) are never used." in found.evidence


@pytest.mark.parametrize("secondary", [(), ("b2",)])
def test_brokers_that_a_policy_keeps_idle_are_no_finding_beside_it(secondary: Sequence[str]) -> None:
    rows = bundles("vip/a", (1,) * 8, 9.0) + bundles("p/d", (3,) * 4, 1.0)
    codes = Asked(hot(rows, policies=isolation(["b1"], secondary=secondary))).codes
    assert "held_by_gate" in codes
    assert "idle_broker" not in codes


def test_brokers_that_stay_idle_beside_a_hot_topic_are_no_finding() -> None:
    codes = Asked(hot(bundles("p/a", (1,), 50.0) + bundles("p/d", (3,) * 4, 1.0))).codes
    assert "hot_topic" in codes
    assert "idle_broker" not in codes


def test_a_hot_broker_is_not_relieved_by_the_gate_of_another_one() -> None:
    """UniformLoadShedder looks at the broker with most traffic, and another one is hot."""
    rows = bundles("p/d", (1,) * 4, 1.0, msg_per_s=1_000.0) + bundles("p/e", (2,) * 4, 5.0, msg_per_s=20_000.0)
    rows += bundles("p/f", (3,) * 4, 1.0, msg_per_s=1_000.0)
    asked = Asked(hot(rows, UNIFORM, cpu_percent=(95, 40, 20)))
    assert asked.codes[:2] == ["usage_not_compared", "held_by_gate"]
    assert "b2:8080 is to shed, and not b1:8080" in only(asked, "usage_not_compared").evidence
    assert "b1:8080 is hot, but UniformLoadShedder compares only" in verdict(asked).text


def test_a_hot_topic_that_comes_back_is_no_ping_pong_beside_it() -> None:
    rows = bundles("p/h", (1,), 60.0) + bundles("p/d", (1,) * 2 + (2,) * 2, 2.0)
    made = cluster(
        2, rows, settings={"loadBalancerSheddingGracePeriodMinutes": 1}, cpu_percent=(95, 20), release="4.2.4"
    )
    codes = Asked(made).codes
    assert codes[0] == "hot_topic"
    assert "ping_pong" not in codes


def test_a_resource_that_hides_a_full_broker_explains_that_no_score_reaches_the_threshold() -> None:
    given = {SHEDDING: CLASS["OverloadShedder"], "loadBalancerCPUResourceWeight": 0.5}
    codes = Asked(hot(bundles("p/d", (1,) * 8, 9.0) + OTHERS, given)).codes
    assert codes == ["resource_not_counted"]


def test_bundles_unloaded_a_moment_ago_are_why_nothing_more_is_shed() -> None:
    """OverloadShedder with a limit of 50 %: what reached the next broker may not leave it for half an hour."""
    given = {SHEDDING: CLASS["OverloadShedder"], "loadBalancerBrokerOverloadedThresholdPercentage": 50}
    rows = bundles("p/d", (1,) * 2, 0.05) + bundles("p/c", (1,), 0.0, msg_per_s=0.0)
    asked = Asked(hot(rows, given, cpu_percent=(84, 40, 3)))
    assert "calls for more" not in verdict(asked).text


def test_a_filter_that_fails_for_want_of_releases_is_named() -> None:
    made = hot(bundles("p/d", (1,) * 8, 9.0) + OTHERS, {"preferLaterVersions": True}, manager="extensible")
    found = only(Asked(made), "held_by_gate")
    assert "preferLaterVersions holds it back" in found.title
    assert shed_from(made, "b1:8080", found.changes)


def test_brokers_reserved_for_others_are_left_by_a_policy_of_theirs() -> None:
    policies = isolation(["b2", "b3"], namespaces=["vip/.*"])
    rows = bundles("p/d", (1,) * 8, 9.0) + bundles("vip/a", (2, 3) * 4, 1.0)
    found = only(Asked(hot(rows, policies=policies)), "held_by_gate")
    assert found.remedy.startswith("Leave more brokers to namespaces without a policy, such as by primary brokers b")
    assert found.remedy.endswith("No setting moves these bundles.")


def test_why_no_value_opens_a_gate_is_said() -> None:
    rows = bundles("p/d", (1,) * 2, 1.0, msg_per_s=9_000.0, topics=20)
    rows += bundles("p/c", (2, 3) * 2, 1.0, msg_per_s=5_000.0, topics=20)
    (found,) = held_by_gate(Asked(hot(rows, UNIFORM)).outcome)
    assert "Even with 1.0: it has the most traffic, but none of its bundles fits" in found.remedy


def test_no_share_above_one_is_offered() -> None:
    rows = bundles("p/d", (1,) * 2, 1.0, msg_per_s=9_000.0, topics=20)
    rows += bundles("p/c", (2, 3) * 2, 1.0, msg_per_s=4_300.0, topics=20)
    (found,) = held_by_gate(Asked(hot(rows, UNIFORM)).outcome)
    assert found.changes == {"maxUnloadPercentage": 1.0}
    assert "Set maxUnloadPercentage to 0.9" in found.remedy
