"""Small clusters on public reports of operators: what is advised is right, and two answers are the same."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import equal_boundaries
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.health import Health, health
from planner.explain.setting_rules import unpaired_placement
from planner.remedy.values import single_setting
from planner.simulate.edits.registry import BundleSplit, IsolationChange
from planner.simulate.judge import judge
from planner.simulate.usage_model import standing
from tests.app.namespaces.public_reports import cluster as reported
from tests.app.namespaces.public_reports import topic
from tests.app.remedy.operator_reports import CLASS, PLACEMENT, SHEDDING, Asked, bundle, bundles, cluster, isolation

UNIFORM = {SHEDDING: CLASS["UniformLoadShedder"]}
AVG = {SHEDDING: CLASS["AvgShedder"], PLACEMENT: CLASS["AvgShedder"]}
RATE, SIZE = (
    "loadBalancerMsgRateDifferenceShedderThreshold",
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
)
HITS, LOW_HITS = "loadBalancerSheddingConditionHitCountThreshold", "loadBalancerAvgShedderHitCountLowThreshold"
MINIMUM, TARGET = "loadBalancerBundleUnloadMinThroughputThreshold", "loadBalancerBrokerLoadTargetStd"
MOST, MAX_RATE = "loadBalancerNamespaceMaximumBundles", "loadBalancerNamespaceBundleMaxMsgRate"
GRACE = "loadBalancerSheddingGracePeriodMinutes"
HOT = bundles("p/d", (1,) * 9 + (2, 3), 8.0, msg_per_s=600.0, topics=10)
EVEN = bundles("p/d", (1, 2, 3) * 6, 3.0, topics=10)


def verdict(seen: Asked) -> Health:
    config = seen.trials.scenario.settings_over(seen.snapshot)
    now = standing(seen.snapshot, config, seen.trials.scenario.assumptions)
    return health(seen.snapshot, config, now, seen.outcome, seen.findings)


class TestGates:
    @pytest.mark.parametrize(
        ("manager", "size_mb", "settings", "usual"),
        [("extensible", 6.0, {HITS: 30}, {HITS: 3}), ("modular", 4.0, {**AVG, LOW_HITS: 60}, {LOW_HITS: 8})],
    )
    def test_a_counter_goes_back_to_its_default(
        self, manager: str, size_mb: float, settings: dict[str, str | int], usual: dict[str, int]
    ) -> None:
        """A value just below the cycles that were simulated was advised: brokers stay apart for as long."""
        rows = bundles("p/d", (1,) * 12 + (2, 3) * 3, size_mb, msg_per_s=900.0, topics=10)
        finding = Asked(cluster(3, rows, settings=settings, manager=manager)).tried("held_by_gate").finding
        assert finding.changes == usual
        assert f"such as {next(iter(usual.values()))}, its default" in finding.remedy

    def test_an_idle_broker_follows_from_the_gate_of_the_busy_ones(self) -> None:
        rows = bundles("p/d", (1, 2) * 6, 5.0, msg_per_s=600.0, topics=10)
        codes = Asked(cluster(3, rows, settings=UNIFORM)).codes
        assert "held_by_gate" in codes
        assert "idle_broker" not in codes

    def test_one_comparison_that_moves_too_little_is_not_switched_on(self) -> None:
        """With both, the message rate triggers first and moves less than its minimum, so that nothing is shed."""
        rows = bundles("p/d", (1,) * 8 + (2, 3), 5.0, msg_per_s=600.0, topics=10)
        seen = Asked(cluster(3, rows, settings={**UNIFORM, RATE: 0.0, SIZE: 0.0}, cpu_percent=(60, 10, 10)))
        tried = seen.tried("usage_not_compared")
        assert tried.finding.changes == {SIZE: 4.0}
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < 50


class TestOneAnswer:
    """A finding and Fix it are asked for the same setting."""

    @pytest.mark.parametrize(
        ("made", "code", "setting"),
        [
            (
                lambda: cluster(
                    3, bundles("p/d", (1,) * 12 + (2, 3) * 4, 5.0, msg_per_s=900.0, topics=10), settings={GRACE: 0}
                ),
                "held_by_gate",
                MINIMUM,
            ),
            (
                lambda: cluster(5, bundles("p/d", (1,) * 40 + (2, 3, 4, 5) * 5, 2.0, topics=10), manager="extensible"),
                "threshold_no_longer_reached",
                TARGET,
            ),
        ],
    )
    def test_it_is_one_value(self, made: Callable[[], Snapshot], code: str, setting: str) -> None:
        """Fix it preferred another value that the judge did not call better, or the finding did not know a better."""
        seen = Asked(made())
        tried = seen.tried(code)
        assert tried.trial is not None
        assert tried.trial.offered
        answer = seen.fix()
        of_it = [one for one in (answer.best, *answer.others) if one is not None and single_setting(one) == setting]
        assert [one.action.settings for one in of_it] == [tried.finding.changes]
        for other in (0.5, 0.75, 1.5, 2.0):
            value = seen.snapshot.settings.number(setting) * other
            trial = seen.trials.try_out(replace(of_it[0].action, settings={setting: value}))
            assert trial is not None
            better = trial.is_worth_it and judge(tried.trial.after, trial.after).word == "better"
            assert not (better and seen.trials.confirmed(trial).offered)

    def test_the_limit_of_a_broker_is_no_knob_of_another_strategy(self) -> None:
        """With 42 % every broker would be called overloaded."""
        rows = bundles("p/d", (1,) * 40 + (2, 3, 4, 5) * 5, 2.0, topics=10)
        answer = Asked(cluster(5, rows, manager="extensible")).fix()
        names = {name for one in (answer.best, *answer.others) if one is not None for name in one.action.settings}
        assert "loadBalancerBrokerOverloadedThresholdPercentage" not in names

    def test_no_answer_is_shown_twice(self) -> None:
        answer = Asked(cluster(3, HOT, manager="extensible")).fix()
        words = [one.action.words for one in (answer.best, *answer.others) if one is not None]
        assert len(words) == len(set(words))


class TestSettings:
    def test_a_grace_period_is_longer_than_the_interval(self) -> None:
        """It advised the 30 minutes that were set."""
        settings = {"loadBalancerSheddingIntervalMinutes": 60, GRACE: 30}
        finding = Asked(cluster(3, EVEN, settings=settings)).tried("no_grace_period").finding
        assert f"Set {GRACE} to 120" in finding.remedy
        assert "no_grace_period" not in Asked(cluster(3, EVEN, settings={**settings, GRACE: 120})).codes

    def test_a_full_namespace_names_the_limits_that_are_exceeded(self) -> None:
        rows = bundles("p/d", (1, 2, 3, 4) * 32, 1.2, msg_per_s=40_000.0, topics=20)
        made = cluster(4, rows, settings={MAX_RATE: 30_000}, percent_per_mb=0.5)
        finding = Asked(made).tried("namespace_full").finding
        assert f"Raise {MAX_RATE} to 50,000, if one broker can serve that, or {MOST} to 256" in finding.remedy
        assert "MaxTopics" not in finding.remedy

    def test_a_cascade_by_topics_and_sessions_says_how_far_limits_are_raised(self) -> None:
        rows = bundles("p/d", (1, 2) * 6, 3.0, msg_per_s=300.0, topics=6_000) + bundles("p/e", (3, 3))
        finding = Asked(cluster(3, rows)).tried("split_cascade").finding
        raised = "loadBalancerNamespaceBundleMaxTopics = 7,500 and loadBalancerNamespaceBundleMaxSessions = 15,000"
        assert f"With {raised}, nothing is split." in finding.remedy

    def test_automatic_splits_that_serve_their_purpose_stay_on(self) -> None:
        """Clients would have been spared once, and the bundles stayed above their limit for good."""
        rows = bundles("p/d", (1, 2, 3) * 4, topics=600)
        answer = Asked(cluster(3, rows)).fix()
        assert answer.best is None
        assert answer.sentence.startswith("No action is needed: nothing that was tried makes it better")


def partitions(rates: list[float]) -> list[str]:
    return [f"persistent://p/d/orders-partition-{at}" for at in range(len(rates))]


def one_hot(rates: list[float], names: list[str]) -> Snapshot:
    """Topics in eight bundles, dealt out over three brokers."""
    listed = [topic(name, rate, consumers=2) for name, rate in zip(names, rates, strict=True)]
    return reported(3, "p/d", 8, listed)


class TestATopicThatNoSplitDivides:
    def test_the_verdict_names_the_hot_key_and_no_gate(self) -> None:
        rates = [120_000.0, *[1_000.0] * 5]
        seen = Asked(one_hot(rates, partitions(rates)))
        assert "key_skew" in seen.codes
        assert "held_by_gate" not in seen.codes, "no value opens the gate of a broker with one topic"
        assert "key skew: one of 6 partitions" in verdict(seen).text

    def test_the_verdict_names_the_topic_where_opening_a_gate_leaves_brokers_apart(self) -> None:
        names = [f"persistent://p/d/t-{at}" for at in range(40)] + ["persistent://p/d/hot"]
        seen = Asked(one_hot([*[600.0] * 40, 100_000.0], names))
        assert "hot_topic" in seen.codes
        assert "a single hot topic, which no split can divide" in verdict(seen).text

    def test_it_stands_before_the_cascade_that_follows_from_it(self) -> None:
        names = [f"persistent://p/d/t-{at}" for at in range(40)] + ["persistent://p/d/hot"]
        made = one_hot([*[600.0] * 40, 120_000.0], names)
        codes = [one.finding.code for one in Asked(made).all_tried()]
        assert codes.index("hot_topic") < codes.index("split_cascade")

    def test_what_helps_a_little_says_what_is_left(self) -> None:
        rates = [120_000.0, *[1_000.0] * 5]
        answer = Asked(one_hot(rates, partitions(rates))).fix()
        chosen = answer.pair or answer.best
        if chosen is not None:
            assert f"Brokers stay {chosen.after.apart_points:.0f} points apart." in answer.sentence


class TestWrongMeasurements:
    def test_an_overload_that_may_be_untrue_is_doubted(self) -> None:
        """Pulsar was said to fix it on its own."""
        made = cluster(3, EVEN, cpu_percent=(150.0, 25.0, 25.0))
        said = verdict(Asked(made)).text
        assert "But this may be untrue: b1:8080 reports more CPU usage than its limit." in said
        assert "Pulsar fixes" not in said
        assert "Pulsar will not" not in said

    def test_a_weight_above_one_needs_no_brokers(self) -> None:
        """A hundred brokers were advised for a cluster whose machines are used to 29 %."""
        settings = {"loadBalancerCPUResourceWeight": 100.0}
        seen = Asked(cluster(3, bundles("p/d", (1, 2, 3) * 4, 6.0), settings=settings))
        assert "out_of_capacity" not in seen.codes
        (finding,) = [one for one in seen.findings if one.code == "weight_above_one"]
        assert "a broker passes the limit of 85 % at 0.85 % already" in finding.evidence
        assert "But this is untrue: loadBalancerCPUResourceWeight is 100" in verdict(seen).text
        assert "With a weight of 1, the highest usage is 29 %." in verdict(seen).text
        assert "weight_above_one" not in Asked(cluster(3, EVEN)).codes

    def test_a_weight_above_one_hides_no_broker_that_is_full(self) -> None:
        settings = {"loadBalancerCPUResourceWeight": 1.2}
        seen = Asked(cluster(3, bundles("p/d", (1, 2, 3) * 4, 21.0), settings=settings))
        assert {"out_of_capacity", "weight_above_one"} <= set(seen.codes)
        assert "untrue" not in verdict(seen).text

    def test_a_wrong_network_speed_is_one_finding(self) -> None:
        """It was critical twice: as a difference between machines, and as traffic above the speed."""
        made = cluster(3, bundles("p/d", (1, 2, 3) * 6, 3.0))
        speed = made.brokers.bandwidth_in_limit_kbit_per_s * np.array([0.01, 1.0, 1.0])
        limits = {"bandwidth_in_limit_kbit_per_s": speed, "bandwidth_out_limit_kbit_per_s": speed}
        seen = Asked(made.with_columns(brokers=replace(made.brokers, **limits)))
        assert seen.codes == ["impossible_measurement"]
        tried = seen.tried("impossible_measurement")
        assert "inbound network 0.1 Gbit/s on b1:8080, 10 Gbit/s on others" in tried.finding.evidence
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < 25


class TestOneHeavyBundle:
    """Its topics are not listed, so that the topics of each part are unknown."""

    SIZES = ((1, 55.0), (2, 6.0), (3, 5.0), (2, 6.0), (3, 5.0), (2, 4.0))

    def asked(self, manager: str) -> Asked:
        cuts = pairwise(equal_boundaries(len(self.SIZES)))
        rows = [
            bundle("p/d", *ends, owner, size, msg_per_s=3_000.0, topics=200)
            for ends, (owner, size) in zip(cuts, self.SIZES, strict=True)
        ]
        return Asked(cluster(3, rows, manager=manager))

    def test_it_is_split_and_its_parts_are_moved(self) -> None:
        """TransferShedder never reaches its target, so that splits alone help nothing, and nothing was advised."""
        seen = self.asked("extensible")
        answer = seen.fix()
        chosen = answer.pair
        assert chosen is not None
        assert chosen.action.words == "Split p/d/0x00000000_0x2aaaaaaa by range_equally_divide, and move 2 bundles"
        first = next(one for one in chosen.action.edits if isinstance(one, BundleSplit))
        assert first.bundle == "p/d/0x00000000_0x2aaaaaaa"
        assert chosen.after.end_peak_percent < 38

    def test_the_heaviest_bundle_is_split_first(self) -> None:
        """42 bundles were split, the light ones first."""
        finding = self.asked("modular").tried("bundle_count_too_low").finding
        splits = [one.bundle for one in finding.edits if isinstance(one, BundleSplit)]
        assert splits[0] == "p/d/0x00000000_0x2aaaaaaa"
        assert len(splits) <= 4


class TestFullBrokers:
    def test_what_is_shed_in_vain_is_no_finding_beside_it(self) -> None:
        rows = bundles("p/d", (1, 2, 3) * 8, 10.8, msg_per_s=900.0, topics=10)
        codes = Asked(cluster(3, rows, settings={SHEDDING: CLASS["OverloadShedder"]})).codes
        assert "out_of_capacity" in codes
        assert not {"ping_pong", "unload_storm", "clients_cut_off"} & set(codes)

    def test_memory_that_fills_all_needs_no_brokers(self) -> None:
        """One more was advised, which the trial called worse: memory fills it as well."""
        made = cluster(3, EVEN, settings={"loadBalancerDirectMemoryResourceWeight": 1.0})
        used = made.brokers.direct_memory_limit_mib * 0.925
        seen = Asked(made.with_columns(brokers=replace(made.brokers, direct_memory_usage_mib=used)))
        assert seen.codes == ["memory_stays"]
        tried = seen.tried("memory_stays")
        assert tried.finding.changes == {"loadBalancerDirectMemoryResourceWeight": 0.0}
        assert "shedding goes on" not in tried.finding.evidence

    def test_what_stops_it_until_there_are_more_is_said(self) -> None:
        rows = bundles("p/d", (1, 2, 3) * 8, 10.8, msg_per_s=900.0, topics=10)
        finding = (
            Asked(cluster(3, rows, settings={SHEDDING: CLASS["OverloadShedder"]})).tried("out_of_capacity").finding
        )
        assert "set loadBalancerSheddingEnabled to false until they have joined" in finding.remedy


class TestHalfAPair:
    def test_a_finding_and_lint_mend_the_same_setting(self) -> None:
        """One exchanged the placement, the other one the shedding strategy as well."""
        settings = {PLACEMENT: CLASS["AvgShedder"]}
        seen = Asked(cluster(3, HOT, settings=settings))
        (found,) = [one for one in diagnose(seen.outcome) if one.code == "fighting_strategies"]
        (linted,) = unpaired_placement(seen.snapshot.settings)
        assert set(linted.changes) == {PLACEMENT}
        assert f"Set {PLACEMENT} to {linted.changes[PLACEMENT]}." in found.remedy
        assert not found.changes, "such brokers do not start: nothing can be compared with them"


class TestAnUpgradeUnderWay:
    def test_it_is_about_releases_and_not_about_machines(self) -> None:
        made = cluster(3, EVEN)
        snapshot = made.with_columns(brokers=replace(made.brokers, version=("4.0.8", "4.0.8", "3.0.7")))
        finding = Asked(snapshot).tried("unlike_machines").finding
        assert finding.title == "Brokers run different releases"
        assert "cores" not in finding.evidence
        assert finding.remedy.startswith("Bring all brokers to one release.")


class TestAClusterThatIsWell:
    def test_what_would_be_nice_is_optional(self) -> None:
        """Overview called it healthy, and Fix it said only what to move."""
        rows = bundles("p/d", (1, 1, 1, 2, 3, 3), 4.0, topics=10)
        answer = Asked(cluster(3, rows)).fix()
        assert answer.best is not None
        assert answer.sentence.startswith("No action is needed. Optional: move ")

    def test_a_cluster_apart_is_not(self) -> None:
        assert not Asked(cluster(3, HOT)).fix().optional


class TestSplits:
    def test_few_are_made_before_moves(self) -> None:
        """42 splits were advised, as many as an even number of bundles takes, where two are enough."""
        sizes = (70.0, 5.0, 5.0, 20.0, 5.0, 5.0)
        cuts = equal_boundaries(6)
        rows = [
            bundle("p/d", low, high, 1 + at % 3, size, topics=10, msg_per_s=900.0)
            for at, (low, high, size) in enumerate(zip(cuts, cuts[1:], sizes, strict=False))
        ]
        answer = Asked(cluster(3, rows, settings={SHEDDING: CLASS["OverloadShedder"]})).fix()
        chosen = answer.pair or answer.best
        assert chosen is not None
        splits = [one.bundle for one in chosen.action.edits if isinstance(one, BundleSplit)]
        assert 0 < len(splits) <= 4
        assert splits[0] == "p/d/0x00000000_0x2aaaaaaa", "the heaviest first"
        assert chosen.after.end_peak_percent < 50


class TestPolicies:
    @pytest.mark.parametrize("manager", LoadManager)
    def test_reserved_brokers_that_serve_others_are_named(self, manager: LoadManager) -> None:
        rows = bundles("vip/a", (1, 2) * 2, 5.0, topics=10) + bundles("p/d", (1, 2, 3, 4) * 3, 6.0, topics=10)
        seen = Asked(cluster(4, rows, policies=isolation(["b1", "b2"]), manager=manager.value))
        tried = seen.tried("against_policy")
        assert tried.finding.brokers == ("b1:8080", "b2:8080")
        assert "only b3:8080, b4:8080 may own them" in tried.finding.evidence
        assert tried.trial is not None
        assert not tried.trial.offered, "the other two would be fuller than all four are"

    def test_no_broker_is_reserved_for_namespaces_that_do_not_exist(self) -> None:
        assert "against_policy" not in Asked(cluster(3, EVEN, policies=isolation(["b1"]))).codes

    def test_a_broker_that_is_down_is_stood_in_for(self) -> None:
        """Nothing was offered, though four bundles had no broker."""
        rows = bundles("vip/a", (None,) * 4, topics=10) + bundles("p/d", (1, 2, 3) * 2, 5.0, topics=10)
        seen = Asked(cluster(3, rows, policies=isolation(["b9"])))
        tried = seen.tried("policy_matches_no_broker")
        assert "If such a broker is down, start it." in tried.finding.remedy
        best = seen.fix().best
        assert best is not None
        (edit,) = best.action.edits
        assert isinstance(edit, IsolationChange)
        assert edit.primary[0] == "b9"
        assert best.after.unserved == 0

    def test_the_name_of_a_tenant_is_no_namespace(self) -> None:
        rows = bundles("vip/a", (1, 2, 3), 5.0)
        finding = (
            Asked(cluster(3, rows, policies=isolation(["b1"], ["vip"]))).tried("policy_without_namespaces").finding
        )
        assert finding.remedy.startswith("Write vip/.* for all namespaces of the tenant")
