"""Further small clusters on public reports of operators: two causes at once, and measurements that decide nothing."""

import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.simulate.demand import demand
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from tests.app.namespaces.public_reports import cluster as reported
from tests.app.namespaces.public_reports import topic, topics
from tests.app.remedy.operator_reports import CLASS, PLACEMENT, SHEDDING, Asked, bundles, cluster, isolation
from tests.app.remedy.test_advice_of_reports import verdict
from tests.app.remedy.test_more_reports import with_brokers

EVEN = bundles("p/d", (1, 2, 3) * 6, 3.0, topics=10)
HOT = bundles("p/d", (1,) * 9 + (2, 3), 8.0, msg_per_s=600.0, topics=10)
CPU, HEAP, DIRECT = (f"loadBalancer{one}ResourceWeight" for one in ("CPU", "Memory", "DirectMemory"))
DELAY, LIFE = "loadBalanceSheddingDelayInSeconds", "loadBalancerBrokerLoadDataTTLInSeconds"
TARGET = "loadBalancerBrokerLoadTargetStd"


def full_heap() -> Snapshot:
    made = cluster(3, EVEN, manager="extensible", settings={HEAP: 1.0})
    return with_brokers(made, memory_usage_mib={0: 3_800.0})


def full_direct_memory() -> Snapshot:
    made = cluster(3, EVEN, settings={SHEDDING: CLASS["OverloadShedder"], DIRECT: 1.0})
    return with_brokers(made, direct_memory_usage_mib={0: 3_600.0})


class TestWeights:
    @pytest.mark.parametrize(
        ("made", "name"), [(full_heap, HEAP), (full_direct_memory, DIRECT)], ids=["heap", "direct memory"]
    )
    def test_memory_that_no_longer_counts_fills_no_broker(self, made: object, name: str) -> None:
        """Setting a weight to its default was measured by both weights: overloaded for 1 of 30 min, and at 95 %."""
        assert callable(made)
        seen = Asked(made())
        tried = seen.tried("memory_stays")
        assert tried.trial is not None
        assert tried.trial.offered
        assert tried.trial.after.overloaded_broker_min == 0
        assert tried.trial.after.end_peak_percent < 30
        assert tried.trial.after.apart_points < 15
        assert seen.fix().sentence.startswith(f"Set {name} = 0.0 (")
        assert "Even then" not in seen.fix().sentence

    @pytest.mark.parametrize(("weight", "least"), [(0.0, 0.9), (0.5, 0.9), (2.0, 0.9)])
    def test_a_weight_that_hides_usage_does_not_improve_it(self, weight: float, least: float) -> None:
        made = cluster(3, bundles("p/d", (1, 2, 3) * 4, 22.0, topics=10))
        trace = simulate(made, Scenario(settings={CPU: weight}, cycles=2))
        assert demand(trace).usage.min() > least

    def test_every_moment_is_measured_alike(self) -> None:
        """A weight of 2 that a scenario sets to 1, its default."""
        made = cluster(3, EVEN, settings={CPU: 2.0})
        usage = demand(simulate(made, Scenario(settings={CPU: 1.0}, cycles=3))).usage
        assert usage.max() - usage.min() < 0.01
        assert usage.max() < 0.24

    def test_an_overload_by_a_weight_is_untrue_though_brokers_are_apart(self) -> None:
        """Pulsar was said to fix an overload of brokers that use half of their CPU at most."""
        rows = bundles("p/d", (1,) * 8 + (2, 3) * 2, 5.0, msg_per_s=900.0)
        said = verdict(Asked(cluster(3, rows, settings={CPU: 2.0}))).text
        assert f"But this is untrue: {CPU} is 2" in said
        assert "With a weight of 1, usage is from 15 % to 45 %." in said
        assert "Pulsar fixes" not in said

    def test_no_topic_is_hot_by_a_weight(self) -> None:
        """One topic was said to use 675 % of a broker."""
        rows = bundles("p/d", (1, 2, 3) * 4, 6.0)
        assert Asked(cluster(3, rows, settings={CPU: 100.0})).codes == ["weight_above_one"]


class TestMeasurementsThatDecideNothing:
    def test_a_network_without_a_speed_is_no_cause_where_the_cpu_decides(self) -> None:
        """The verdict named it instead of the gate that holds a broker back."""
        limits = {"bandwidth_in_limit_kbit_per_s": {0: -1.0}, "bandwidth_out_limit_kbit_per_s": {0: -1.0}}
        seen = Asked(with_brokers(cluster(3, HOT), **limits))
        (found,) = [one for one in seen.findings if one.code == "impossible_measurement"]
        assert found.severity == "low"
        assert "With 10,000,000 kbit/s, as others have, another resource would decide there." in found.evidence
        assert "loadBalancerBundleUnloadMinThroughputThreshold holds it back" in verdict(seen).text

    def test_it_is_a_warning_where_the_network_would_decide(self) -> None:
        rows = bundles("p/d", (1, 2, 3) * 6, 60.0, topics=10)
        made = cluster(3, rows, percent_per_mb=0.01)
        limits = dict.fromkeys(range(3), 4e6)
        made = with_brokers(made, bandwidth_in_limit_kbit_per_s={**limits, 0: -1.0})
        (found,) = [one for one in Asked(made).findings if one.code == "impossible_measurement"]
        assert found.severity == "medium"
        assert "as others have" not in found.evidence

    @pytest.mark.parametrize(("gbps", "severity"), [(20.0, "medium"), (0.7, "high")])
    def test_another_network_speed_matters_where_it_decides(self, gbps: float, severity: str) -> None:
        """A network counted twice was critical, though no score changes with it."""
        limits = {f"bandwidth_{way}_limit_kbit_per_s": {0: gbps * 1e6} for way in ("in", "out")}
        (found,) = [
            one for one in Asked(with_brokers(cluster(3, HOT), **limits)).findings if one.code == "unlike_machines"
        ]
        assert found.severity == severity
        assert ("nothing is decided by it now" in found.evidence) is (severity == "medium")


class TestSkippedCycles:
    ROWS = bundles("p/d", (1,) * 16 + (2, 3), 5.0, msg_per_s=600.0, topics=10)

    def test_a_long_delay_after_an_unload_is_the_gate(self) -> None:
        """No finding named it, as all cycles that were looked back at are skipped."""
        settings = {DELAY: 7_200, "loadBalancerMaxNumberOfBrokerSheddingPerCycle": 1, TARGET: 0.05}
        seen = Asked(cluster(3, self.ROWS, manager="extensible", settings=settings))
        tried = seen.tried("held_by_gate")
        assert f"but {DELAY} holds it back" in tried.finding.title
        assert "or less, such as 180, its default (now 7200): cycles are then no longer skipped" in tried.finding.remedy
        assert tried.finding.changes == {DELAY: 180}
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < tried.trial.before.end_peak_percent - 5

    def test_the_usual_delay_is_no_gate(self) -> None:
        assert "held_by_gate" not in Asked(cluster(3, self.ROWS, manager="extensible")).codes

    @pytest.mark.parametrize(("name", "value", "usual"), [(DELAY, 3_600, 180), (LIFE, 60, 1_800)])
    def test_a_threshold_in_skipped_cycles_is_lowered_with_what_skips_them(
        self, name: str, value: int, usual: int
    ) -> None:
        """Either remedy alone changed nothing, and none was offered."""
        seen = Asked(cluster(3, HOT, manager="extensible", settings={name: value}))
        tried = seen.tried("threshold_no_longer_reached")
        assert f"That alone sheds nothing: set {name} to {usual}, its default as well." in tried.finding.remedy
        assert tried.finding.changes == {TARGET: 0.08, name: usual}
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < 45


class TestPolicies:
    def test_a_policy_without_namespaces_that_keeps_a_broker_idle_is_the_cause(self) -> None:
        """It was a note, and a gate was named whose remedy made things worse."""
        rows = bundles("vip/a", (1,) * 8, 9.0, topics=10) + bundles("p/d", (2, 3) * 3, 1.0, topics=10)
        seen = Asked(cluster(3, rows, policies=isolation(["b2"], ["a.*"])))
        tried = seen.tried("policy_without_namespaces")
        assert tried.finding.severity == "medium"
        assert tried.trial is not None
        assert tried.trial.offered
        assert tried.trial.action.words == "Remove the isolation policy vip"
        assert "the isolation policy 'vip' reserves b2:8080, and applies to no namespace" in verdict(seen).text
        assert seen.fix().sentence.startswith("Remove the isolation policy vip")

    def test_one_that_keeps_no_broker_idle_is_a_note(self) -> None:
        (found,) = [
            one
            for one in Asked(cluster(3, EVEN, policies=isolation(["b2"], ["a.*"]))).findings
            if one.code == "policy_without_namespaces"
        ]
        assert found.severity == "low"

    @pytest.mark.parametrize(("size_mb", "severity"), [(19.0, "medium"), (9.0, "low"), (5.0, "low")])
    def test_a_policy_whose_brokers_are_busier_than_all_others_is_why_they_stay_apart(
        self, size_mb: float, severity: str
    ) -> None:
        """The minimum of an unload was named, which only moves bundles between equally busy brokers.

        Where all fits on the brokers of the policy, also with a little more traffic, it may be meant so.
        """
        rows = bundles("vip/a", (1,) * 4 + (2,) * 4, size_mb, topics=10) + bundles("p/d", (3, 4) * 3, 0.1, topics=10)
        seen = Asked(cluster(4, rows, policies=isolation(["b1", "b2"])))
        said = "the isolation policy 'vip' leaves its namespaces 2 brokers, which are busier than the others"
        assert said in verdict(seen).text
        (found,) = [one for one in seen.findings if one.code == "policy_full"]
        assert found.severity == severity
        assert "unless these are meant to be apart" in found.remedy

    def test_brokers_of_a_policy_that_are_little_busier_are_no_finding(self) -> None:
        rows = bundles("vip/a", (1, 2) * 4, 6.0, topics=10) + bundles("p/d", (3, 4) * 8, 2.0, topics=10)
        assert "policy_full" not in Asked(cluster(4, rows, policies=isolation(["b1", "b2"]))).codes


def test_a_limit_of_overload_shedder_above_its_default_goes_back_to_it() -> None:
    """Another strategy was named, with a rolling restart that made things worse."""
    limit = "loadBalancerBrokerOverloadedThresholdPercentage"
    rows = bundles("p/d", (1,) * 9 + (2, 3) * 3, 10.0, topics=10)
    settings = {SHEDDING: CLASS["OverloadShedder"], limit: 100}
    seen = Asked(cluster(3, rows, settings=settings, cpu_percent=(99.0, 35.0, 35.0)))
    tried = seen.tried("threshold_never_reached")
    assert "Lower loadBalancerBrokerOverloadedThresholdPercentage from 100 to 85, its default." in tried.finding.remedy
    assert tried.finding.changes == {limit: 85}


class TestClasses:
    def test_a_class_that_is_meant_and_decides_is_a_note(self) -> None:
        """The verdict named it as the cause, and a restart of all brokers was tried."""
        name = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferSheder"
        seen = Asked(cluster(3, HOT, manager="extensible", settings={SHEDDING: name}))
        (found,) = [one for one in seen.findings if one.code == "class_not_loaded"]
        assert found.severity == "low"
        assert "No decision depends on it." in found.remedy
        assert "cannot load" not in verdict(seen).text
        assert "threshold_no_longer_reached" in seen.codes

    def test_nothing_is_promised_of_a_load_manager_that_starts_instead(self) -> None:
        """Values of ThresholdShedder were advised, which SimpleLoadManagerImpl does not read."""
        seen = Asked(cluster(3, HOT, settings={PLACEMENT: "LeastResourceUsageWithWeight"}, release="4.0.8"))
        assert seen.codes == ["class_not_loaded"]
        assert "What Pulsar does about it is unknown" in verdict(seen).text


def test_two_hot_topics_are_hot_beside_one_idle_broker() -> None:
    """With two of three brokers hot, the average is near them: only a gate and splits were told."""
    listed = [topic(f"persistent://p/d/h{at}", 60_000, 500) for at in (1, 2)]
    seen = Asked(reported(3, "p/d", 8, [*listed, *topics("persistent://p/d/t-%d", [100.0] * 60)]))
    (found,) = [one for one in seen.findings if one.code == "hot_topic"]
    assert "2 such topics in total: persistent://p/d/h2, persistent://p/d/h1" in found.evidence
    assert "a single hot topic" in verdict(seen).text


class TestTwoCausesAtOnce:
    """A threshold that no score reaches, and a setting behind it that holds the broker back: neither was offered."""

    ROWS = bundles("p/d", (1,) * 8 + (2, 3), 6.0, topics=10)
    PERCENT = "loadBalancerBrokerThresholdShedderPercentage"
    MINIMUM = "loadBalancerBundleUnloadMinThroughputThreshold"

    def test_a_minimum_goes_back_to_its_default_with_the_threshold(self) -> None:
        settings = {self.MINIMUM: 30, self.PERCENT: 60}
        tried = Asked(cluster(3, self.ROWS, settings=settings, cpu_percent=(80.0, 10.0, 10.0))).tried(
            "threshold_never_reached"
        )
        assert tried.finding.changes == {self.PERCENT: 10, self.MINIMUM: 10.0}
        assert f"set {self.MINIMUM} to 10.0, its default as well" in tried.finding.remedy
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < 45

    def test_the_nearest_value_is_named_where_the_default_is_not_enough(self) -> None:
        rows = bundles("p/d", (1,) * 8 + (2, 3), 1.5, topics=10)
        tried = Asked(cluster(3, rows, settings={self.PERCENT: 60}, cpu_percent=(80.0, 10.0, 10.0))).tried(
            "threshold_never_reached"
        )
        assert tried.finding.changes.keys() == {self.PERCENT, self.MINIMUM}
        assert float(str(tried.finding.changes[self.MINIMUM])) < 5
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < 60

    def test_a_threshold_alone_stays_alone(self) -> None:
        made = cluster(3, self.ROWS, settings={self.PERCENT: 60}, cpu_percent=(80.0, 10.0, 10.0))
        assert Asked(made).tried("threshold_never_reached").finding.changes == {self.PERCENT: 10}

    def test_a_comparison_is_switched_on_with_a_maximum_that_lets_bundles_leave(self) -> None:
        names = ("MsgRateDifference", "MsgThroughputMultiplierDifference")
        off = {f"loadBalancer{name}ShedderThreshold": 0.0 for name in names}
        settings = {SHEDDING: CLASS["UniformLoadShedder"], "maxUnloadBundleNumPerShedding": 0, **off}
        rows = bundles("p/d", (1,) * 9 + (2, 3), 8.0, msg_per_s=900.0, topics=10)
        tried = Asked(cluster(3, rows, settings=settings)).tried("usage_not_compared")
        assert "set maxUnloadBundleNumPerShedding to -1, its default as well" in tried.finding.remedy
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < tried.trial.before.end_peak_percent - 5

    def test_a_threshold_that_never_acts_is_lowered_with_the_minimum(self) -> None:
        settings = {self.MINIMUM: 30, self.PERCENT: 100}
        seen = Asked(cluster(3, self.ROWS, settings=settings, cpu_percent=(80.0, 10.0, 10.0)))
        assert seen.tried("threshold_never_acts").finding.changes == {self.PERCENT: 10, self.MINIMUM: 10.0}

    def test_namespaces_that_are_not_shed_are_named_as_well(self) -> None:
        excluded = "loadBalancerSheddingExcludedNamespaces"
        made = cluster(3, HOT, settings={excluded: ["p/d"], self.PERCENT: 60}, release="4.2.4")
        tried = Asked(made).tried("threshold_never_reached")
        assert f"set {excluded} to nothing, its default as well" in tried.finding.remedy
        assert tried.finding.changes == {self.PERCENT: 10, excluded: ()}

    def test_a_policy_behind_a_threshold_is_the_cause(self) -> None:
        rows = bundles("vip/a", (1,) * 8, 8.0, topics=10) + bundles("p/d", (2, 3) * 3, 1.0, topics=10)
        made = cluster(3, rows, policies=isolation(["b1"]), settings={self.PERCENT: 60}, release="4.2.4")
        seen = Asked(made)
        tried = seen.tried("held_by_gate")
        assert tried.finding.title == "The isolation policy 'vip' keeps bundles on b1:8080"
        assert "b1:8080 is the busiest one." in tried.finding.evidence
        assert tried.finding.changes == {self.PERCENT: 10}
        assert tried.trial is not None
        assert tried.trial.after.end_peak_percent < 60
        assert "the isolation policy 'vip' keeps bundles on b1:8080" in verdict(seen).text


@pytest.mark.parametrize("name", ["loadBalancerBandwidthOutResourceWeight", "loadBalancerBandwithOutResourceWeight"])
def test_the_weight_that_hides_a_network_is_the_one_that_is_set(name: str) -> None:
    """The misspelt name of older releases counts as well, and the right one was set to the 1 that it already is."""
    rows = bundles("p/d", (1,) * 8 + (2, 3) * 2, 6.0, topics=10)
    made = cluster(3, rows, release="4.2.4", percent_per_mb=0.2, settings={name: 0.0})
    made = with_brokers(made, bandwidth_out_usage_kbit_per_s={0: 9.2e6, 1: 2e6, 2: 2e6})
    seen = Asked(made)
    (finding,) = [one for one in diagnose(seen.outcome) if one.code == "resource_not_counted"]
    assert f"{name} is 0" in finding.evidence
    assert finding.changes == {name: 1.0}


def test_a_remedy_of_another_strategy_is_asked_for_nothing_behind_it() -> None:
    """A limit that OverloadShedder does not reach, and the only bundle of its broker."""
    rows = bundles("p/h", (1,), 60.0, topics=50) + bundles("p/d", (2, 3) * 4, 3.0, topics=10)
    settings = {SHEDDING: CLASS["OverloadShedder"], "loadBalancerBrokerOverloadedThresholdPercentage": 99}
    seen = Asked(cluster(3, rows, cpu_percent=(95.0, 20.0, 20.0), settings=settings, release="4.2.4"))
    assert "threshold_never_reached" in seen.codes
