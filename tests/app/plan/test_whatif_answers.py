"""What would have to change: every answer is taken at its word and decided again."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.errors import PlannerError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import ReleaseName
from planner.cluster.settings import Settings
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.shedding.registry import SHEDDERS, shedder_by_name
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Trace, cycle_seed
from planner.simulate.what_if import Answer, Target, WhatIf, what_if
from tests.app.simulate.traces import cluster, trace_of

THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
HALF = Target("b1:8080")


def asked(trace: Trace, target: Target = HALF, shedder: str = "ThresholdShedder", cycle: int = 0) -> WhatIf:
    (found,) = what_if(trace, cycle, target, (shedder_by_name(shedder),))
    return found


def answer_by(found: WhatIf, setting: str) -> Answer:
    return next(a for a in found.answers if [c.setting for c in a.changes] == [setting])


def sheds(trace: Trace, target: Target, config: Settings, cycle: int = 0) -> bool:
    at = trace.cycles[cycle]
    moves = next_cycle(at.view, at.memory, config, cycle_seed(trace.scenario.seed, cycle))[1].moves
    return target.is_shed(moves)


class TestThreshold:
    TRACE = trace_of([[0.562, 0.44, 0.5]], view=cluster([0.562, 0.44, 0.5], {0: (200, 100), 1: (300,), 2: (300,)}))

    def test_the_threshold_at_which_it_flips(self) -> None:
        found = asked(self.TRACE)
        assert (found.ran, found.shed) == (True, False)
        (change,) = answer_by(found, THRESHOLD).changes
        assert change.text == f"{THRESHOLD} <= 6"
        assert change.exact == pytest.approx(6.13, abs=0.01)
        assert found.reasons == ("score 56.2 % < average score 50.1 % + threshold 10.0 points = 60.1 %",)

    def test_it_flips_there_and_not_next_to_it(self) -> None:
        assert sheds(self.TRACE, HALF, self.TRACE.settings.changed(**{THRESHOLD: 6}))
        assert not sheds(self.TRACE, HALF, self.TRACE.settings.changed(**{THRESHOLD: 7}))

    def test_what_would_leave_it_alone(self) -> None:
        trace = trace_of([[0.562, 0.44, 0.5]], view=self.TRACE.start, settings={THRESHOLD: 2, "minUnloadMessage": 1})
        found = asked(trace)
        assert found.shed
        (change,) = answer_by(found, THRESHOLD).changes
        assert change.text == f"{THRESHOLD} >= 7"
        (throughput,) = answer_by(found, "loadBalancerBundleUnloadMinThroughputThreshold").changes
        assert throughput.relation == ">="
        assert not answer_by(found, THRESHOLD).moves

    def test_the_traffic_at_which_it_flips(self) -> None:
        found = asked(self.TRACE)
        assert found.traffic_factor is not None
        assert found.usage_percent == pytest.approx(56.2 * found.traffic_factor, rel=1e-6)
        usage = 0.562 * found.traffic_factor
        assert usage == pytest.approx((usage + 0.94) / 3 + 0.1, abs=1e-3)

    def test_several_changes_where_one_is_not_enough(self) -> None:
        trace = trace_of([[0.5, 0.3, 0.4]])
        found = asked(trace)
        (answer,) = found.answers
        assert len(answer.changes) == 2
        together = {c.setting: c.value for c in answer.changes}
        assert sheds(trace, HALF, trace.settings.changed(**together))
        for name in together:
            rest = {n: v for n, v in together.items() if n != name}
            assert not sheds(trace, HALF, trace.settings.changed(**rest))

    def test_no_setting_sheds_the_only_bundle(self) -> None:
        trace = trace_of([[0.9, 0.1]], view=cluster([0.9, 0.1], {0: (200,), 1: (10, 10)}))
        found = asked(trace)
        assert not found.answers
        assert "but it has 1 bundle" in found.reasons[0]


class TestOtherTargets:
    TRACE = trace_of([[0.9, 0.1]], view=cluster([0.9, 0.1], {0: (200, 100, 90), 1: (10, 10)}))

    def test_a_bundle_and_the_rule_that_holds_it(self) -> None:
        second = self.TRACE.start.bundle_names[1]
        found = asked(self.TRACE, Target(bundle=second))
        assert not found.shed
        assert "larger bundles already cover" in found.reasons[0]
        for answer in found.answers:
            config = self.TRACE.settings.changed(**{c.setting: c.value for c in answer.changes})
            assert sheds(self.TRACE, Target(bundle=second), config)

    def test_an_excluded_namespace(self) -> None:
        trace = trace_of(
            [[0.9, 0.1]], view=self.TRACE.start, settings={"loadBalancerSheddingExcludedNamespaces": "acme/orders,a/b"}
        )
        found = asked(trace, Target(bundle=trace.start.bundle_names[0]))
        (change,) = answer_by(found, "loadBalancerSheddingExcludedNamespaces").changes
        assert change.value == ("a/b",)
        assert change.text == "loadBalancerSheddingExcludedNamespaces = a/b"

    def test_recently_unloaded(self) -> None:
        view, first = self.TRACE.start, self.TRACE.start.bundle_names[0]
        memory = self.TRACE.cycles[0].memory
        recent = dict.fromkeys(view.bundle_names[:3], view.info.captured_at_ms - 12 * 60000)
        memory = replace(memory, shedding=replace(memory.shedding, recently_unloaded_bundles=recent))
        trace = trace_of([[0.9, 0.1]], view=view, memories=[memory])
        (change,) = answer_by(asked(trace, Target(bundle=first)), "loadBalancerSheddingGracePeriodMinutes").changes
        assert change.text == "loadBalancerSheddingGracePeriodMinutes <= 11"

    @pytest.mark.parametrize("target", [Target("b9:8080"), Target(bundle="acme/orders/0x00000000_0x00000001")])
    def test_what_is_not_there_is_named(self, target: Target) -> None:
        with pytest.raises(PlannerError, match="no such"):
            what_if(self.TRACE, 0, target)


def test_a_bundle_that_comes_back_flips_the_decision_before_the_strategy_does() -> None:
    """At 99 % it is still unloaded, and placed where it was."""
    name = "loadBalancerBrokerOverloadedThresholdPercentage"
    spec = ClusterSpec(brokers=5, bundles=29, topics=120, ownership_skew=0.18217015545444548)
    config: dict[str, str | int] = {
        "loadBalancerLoadSheddingStrategy": "OverloadShedder",
        "loadBalancerBundleUnloadMinThroughputThreshold": 1,
    }
    trace = simulate(generate(spec, 690588), Scenario(cycles=1, settings=config))
    found = asked(trace, Target("broker-2.generated.example:8080"), "OverloadShedder")
    assert found.shed
    (change,) = answer_by(found, name).changes
    assert change.text == f"{name} >= 99"


class TestOtherStrategies:
    def test_the_one_that_ran_comes_first_and_each_answers(self) -> None:
        trace = trace_of([[0.9, 0.1]], settings={"loadBalancerLoadSheddingStrategy": "OverloadShedder"})
        found = what_if(trace, 0, HALF)
        assert [(w.shedder, w.ran) for w in found][:2] == [("OverloadShedder", True), ("ThresholdShedder", False)]
        assert {w.shedder for w in found} == {s.name for s in SHEDDERS if s.load_manager is LoadManager.MODULAR}
        assert not any(w.obstacle for w in found)

    def test_a_strategy_of_the_other_load_manager_is_marked(self) -> None:
        found = what_if(trace_of([[0.9, 0.1]]), 0, HALF, SHEDDERS)
        barred = {w.shedder: w.obstacle for w in found if w.obstacle}
        assert barred == {"TransferShedder": "needs the extensible load manager: a migration"}

    @pytest.mark.parametrize("version", ["3.0.0", "3.2.3"])
    @pytest.mark.parametrize("manager", LoadManager)
    def test_a_release_without_a_strategy_answers_without_it(self, version: ReleaseName, manager: LoadManager) -> None:
        own = cluster([0.9, 0.1], load_manager=manager)
        own = replace(own, info=replace(own.info, pulsar_version=version))
        trace = simulate(own, Scenario(cycles=2, pulsar_version=version))
        broker = own.brokers.name[0]
        found = what_if(trace, 1, Target(broker))
        assert found[0].ran
        assert "AvgShedder" not in {w.shedder for w in found}
        asked = {w.shedder: w.obstacle for w in what_if(trace, 1, Target(broker), SHEDDERS)}
        assert set(asked) == {s.name for s in SHEDDERS}
        if manager is LoadManager.MODULAR:
            assert asked["AvgShedder"] == f"not in Pulsar {version}: simulated as if it were"

    def test_hit_counts_of_the_cycles_watched(self) -> None:
        rates = {0: (16_000, 1500), 1: (100,)}
        trace = trace_of([[0.9, 0.1]] * 2, view=cluster([0.9, 0.1], {0: (200, 100), 1: (10,)}, rates=rates))
        first, second = (asked(trace, shedder="AvgShedder", cycle=cycle) for cycle in (0, 1))
        assert (first.shed, second.shed) == (False, True), "one hit, then two"
        (change,) = answer_by(first, "loadBalancerAvgShedderHitCountHighThreshold").changes
        assert change.text == "loadBalancerAvgShedderHitCountHighThreshold <= 1"
        (difference,) = answer_by(second, "loadBalancerAvgShedderHighThreshold").changes
        assert difference.text == "loadBalancerAvgShedderHighThreshold >= 81"

    def test_the_extensible_strategy_is_asked_about_a_modular_cluster(self) -> None:
        trace = trace_of([[0.9, 0.1]] * 4, view=cluster([0.9, 0.1], {0: (200, 100), 1: (10,)}))
        found = asked(trace, shedder="TransferShedder", cycle=3)
        assert found.shed
        (change,) = answer_by(found, "loadBalancerSheddingConditionHitCountThreshold").changes
        assert change.text == "loadBalancerSheddingConditionHitCountThreshold >= 4"


@st.composite
def questions(draw: st.DrawFn) -> tuple[Trace, int, Target]:
    shedder = draw(st.sampled_from(SHEDDERS))
    spec = ClusterSpec(
        brokers=draw(st.integers(2, 5)),
        bundles=draw(st.integers(4, 30)),
        topics=120,
        ownership_skew=draw(st.floats(0, 1)),
        load_manager=shedder.load_manager,
    )
    config: dict[str, str | int] = {"loadBalancerLoadSheddingStrategy": shedder.name}
    if shedder.load_manager is LoadManager.MODULAR and shedder.name == "AvgShedder":
        config["loadBalancerLoadPlacementStrategy"] = "AvgShedder"
    config["loadBalancerBundleUnloadMinThroughputThreshold"] = 1
    trace = simulate(generate(spec, draw(st.integers(0, 10**6))), Scenario(cycles=4, settings=config))
    cycle = draw(st.integers(0, 3))
    view = trace.cycles[cycle].view
    if draw(st.booleans()):
        return trace, cycle, Target(draw(st.sampled_from(view.brokers.name)))
    return trace, cycle, Target(bundle=draw(st.sampled_from(view.bundle_names)))


@given(questions())
@settings(max_examples=20, deadline=None)
def test_every_answer_flips_the_decision(question: tuple[Trace, int, Target]) -> None:
    trace, cycle, target = question
    running = trace.settings.text("loadBalancerLoadSheddingStrategy")
    (ran,) = what_if(trace, cycle, target, (shedder_by_name(running),))
    assert ran.ran
    assert ran.shed == sheds(trace, target, trace.settings, cycle)
    for answer in ran.answers:
        config = trace.settings.changed(**{c.setting: c.value for c in answer.changes})
        assert sheds(trace, target, config, cycle) is not ran.shed
        assert bool(answer.moves) is not ran.shed
        for change in answer.changes:
            if isinstance(change.value, int) and not isinstance(change.value, bool):
                less = change.value + (1 if change.relation == "<=" else -1)
                assert sheds(trace, target, config.changed(**{change.setting: less}), cycle) is ran.shed
