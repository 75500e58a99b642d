"""The advisor on hand-made replays: front, choice, evidence, sensitivity, holdout, commands."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.advise.advice import Advice, Configured
from planner.advise.advice_text import advice_lines, advice_to_json, front_text, verdict_text
from planner.advise.advisor import advise, comparable
from planner.advise.applying import apply_commands
from planner.advise.objectives import Question
from planner.advise.verdict import verdict_of
from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.explain.doubt import NO_DOUBT, Doubt
from planner.figures.advisor import front_figure
from planner.replay.aggregate import DayRow
from planner.share.script import command_script
from planner.simulate.admin_commands import PROGRAM
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.scenario import Scenario, Step

THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
SMALLEST = "loadBalancerBundleUnloadMinThroughputThreshold"
STRATEGY = "loadBalancerLoadSheddingStrategy"
ASK = Question(balance=("deviation",), disruption=("unloads",))
NOW = {"east": Configured(Settings(), LoadManager.MODULAR)}


def row(scenario: str, day: int, std: float, shed: float, cluster: str = "east", **more: float) -> DayRow:
    measures = {"mean_std_percent": std, "shed": shed, "moved": 0.0, **more}
    return DayRow(cluster=cluster, scenario=scenario, day=f"2027-01-{day:02}", cycles=10, measures=measures)


def replay(values: Mapping[str, Sequence[tuple[float, float]]]) -> list[DayRow]:
    """Deviation and unloads of each day, by scenario."""
    return [row(name, day, *pair) for name, days in values.items() for day, pair in enumerate(days, start=1)]


def scenario(name: str, **settings: str | float | bool) -> Scenario:
    return Scenario(name=name, settings=settings)


def thresholds(**values: int) -> list[Scenario]:
    return [scenario(name, **{THRESHOLD: value}) for name, value in values.items()]


class TestFront:
    VALUES: Mapping[str, Sequence[tuple[float, float]]] = {
        "now": [(10.0, 10.0)],
        "calm": [(20.0, 0.0)],
        "knee": [(6.0, 3.0)],
        "keen": [(5.0, 40.0)],
        "twin": [(6.0, 3.0)],
        "bad": [(30.0, 40.0)],
    }
    SCENARIOS = thresholds(now=10, calm=90, knee=5, keen=1, twin=6, bad=2)

    def advice(self, weight: float | None = None) -> Advice:
        asked = Question(balance=("deviation",), disruption=("unloads",), weight=weight)
        return advise(replay(self.VALUES), self.SCENARIOS, asked, NOW)

    def test_front_current_and_knee(self) -> None:
        advice = self.advice()
        assert [one.name for one in advice.front] == ["keen", "knee", "twin", "calm"]
        assert (advice.current, advice.knee, advice.chosen) == ("now", "knee", "knee")
        mean = sum(days[0][0] for days in self.VALUES.values()) / len(self.VALUES)
        assert advice.candidate("now").balance == pytest.approx(100 * 10 / mean)

    def test_a_weight_moves_the_choice_to_the_ends(self) -> None:
        assert self.advice(1.0).chosen == "keen"
        assert self.advice(0.0).chosen == "calm"
        assert self.advice(0.0).knee == "knee"

    def test_of_equals_the_current_one_is_chosen(self) -> None:
        same = {name: [(6.0, 3.0)] for name in ("other", "now")}
        assert advise(replay(same), thresholds(other=5, now=10), ASK, NOW).chosen == "now"

    def test_what_failed_somewhere_is_left_out_and_said(self) -> None:
        rows = replay({"now": [(1, 1), (1, 1)], "half": [(0, 0)]})
        advice = advise(rows, thresholds(now=10, half=5), ASK, NOW)
        assert [one.name for one in advice.candidates] == ["now"]
        assert "half is left out because 1 of 2 cluster days are missing" in advice.notes[0]

    def test_nothing_to_compare_is_said(self) -> None:
        with pytest.raises(PlannerError, match="no scenario that can be compared"):
            advise([], thresholds(now=10), ASK, NOW)

    def test_a_day_twice_is_refused(self) -> None:
        with pytest.raises(PlannerError, match="Duplicate results of east on 2027-01-01"):
            advise([row("now", 1, 1, 1)] * 2, thresholds(now=10), ASK, NOW)

    def test_without_current_settings_there_is_no_evidence_but_a_note(self) -> None:
        advice = advise(replay({"a": [(1, 1)], "b": [(2, 2)]}), thresholds(a=5, b=6), ASK, NOW)
        assert advice.evidence is None
        assert any("current settings were not replayed" in note for note in advice.notes)

    def test_an_objective_that_is_nought_everywhere_is_said(self) -> None:
        advice = advise(replay({"now": [(1, 0)], "a": [(2, 0)]}), thresholds(now=10, a=5), ASK, NOW)
        assert advice.chosen == "now"
        assert any("Bundles unloaded is ignored, because it is 0 with all settings" in note for note in advice.notes)

    @pytest.mark.parametrize(
        "asked",
        [
            Question(weight=1.5),
            Question(balance=()),
            Question(balance=("unloads",)),
            Question(first_share=-1),
            Question(disruption=("nothing",)),
        ],
    )
    def test_a_bad_question_is_said(self, asked: Question) -> None:
        with pytest.raises(SettingError):
            advise(replay(self.VALUES), self.SCENARIOS, asked, NOW)

    def test_the_current_settings_are_found_whatever_way_they_are_written(self) -> None:
        assert self.advice().current == "now"
        rows = replay({"as it is": [(1, 1)], "a": [(2, 0)]})
        plain = [scenario("as it is"), scenario("a", **{THRESHOLD: 5})]
        assert advise(rows, plain, ASK).current == "as it is"
        other = {"east": Configured(Settings({THRESHOLD: 5}), LoadManager.MODULAR)}
        assert advise(rows, [scenario("as it is", **{THRESHOLD: 10}), plain[1]], ASK, other).current == "a"
        full = {STRATEGY: "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"}
        named = [scenario("as it is", **{STRATEGY: "OverloadShedder"}), plain[1]]
        assert advise(rows, named, ASK, {"east": Configured(Settings(full), LoadManager.MODULAR)}).current == "as it is"


def hot(values: Mapping[str, Sequence[tuple[float, float, float]]]) -> list[DayRow]:
    """Deviation, unloads and overloaded broker-minutes of each day, by scenario; a bundle has ten topics."""
    return [
        row(name, day, std, shed, overloaded_broker_min=over, topics_disconnected=10 * shed)
        for name, days in values.items()
        for day, (std, shed, over) in enumerate(days, start=1)
    ]


class TestOverloadFirst:
    """What the judge of outcomes puts first decides before the front does."""

    SCENARIOS = thresholds(now=10, avg=5, mild=20)

    def test_the_settings_with_the_most_overload_are_never_kept(self) -> None:
        """The worst balance with the most overload was kept, for its few disconnected topics."""
        days = {"now": [(16.3, 17, 900)] * 6, "avg": [(5.8, 55, 370)] * 6, "mild": [(12.0, 40, 700)] * 6}
        advice = advise(hot(days), self.SCENARIOS, ASK, NOW)
        assert advice.chosen == "avg"
        assert [one.name for one in advice.candidates if one.more_overload] == ["now", "mild"]
        assert [one.name for one in advice.front] == ["avg"]
        assert verdict_of(advice).kind == "recommended"
        assert "broker-minutes above the limit 5,400 to 2,220" in verdict_text(advice)
        assert "topics more disconnected" in verdict_text(advice)

    def test_less_overload_is_proved_on_days_like_anything_else(self) -> None:
        days = {"now": [(16.3, 17, 900)] * 2, "avg": [(5.8, 55, 370)] * 2, "mild": [(12.0, 40, 700)] * 2}
        advice = advise(hot(days), self.SCENARIOS, ASK, NOW)
        verdict = verdict_of(advice)
        assert (advice.chosen, verdict.kind) == ("avg", "unproven")
        assert verdict.doubts == (
            "It is better in overload on 2 of 2 cluster days, which could be chance. Replay at least 6 days.",
        )

    def test_overload_within_the_tolerance_decides_nothing(self) -> None:
        days = {"now": [(6, 4, 100)], "avg": [(5, 40, 101)], "mild": [(20, 1, 99)]}
        advice = advise(hot(days), self.SCENARIOS, ASK, NOW)
        assert not any(one.more_overload for one in advice.candidates)
        assert (advice.knee, len(advice.front)) == ("now", 3)

    def test_other_limits_are_not_compared(self) -> None:
        lax = [scenario("now"), scenario("avg", loadBalancerBrokerOverloadedThresholdPercentage=100)]
        advice = advise(hot({"now": [(9, 9, 900)], "avg": [(1, 1, 0)]}), lax, ASK, NOW)
        assert advice.judgement is None
        assert any("Overload is not compared, because it depends on" in note for note in advice.notes)


class TestEndsOfTheFront:
    """An end of the front is not its knee."""

    def test_two_ends_have_no_knee_and_the_current_one_stays(self) -> None:
        advice = advise(replay({"now": [(10, 1)], "new": [(1, 10)]}), thresholds(now=10, new=5), ASK, NOW)
        assert (advice.knee, advice.chosen, len(advice.front)) == ("", "now", 2)
        assert "no balanced choice" in front_text(advice)
        (star,) = [trace for trace in front_figure(advice).data if "star" in str(trace.marker.symbol)]
        assert (star.name, list(star.text)) == ("recommended", ["now"])

    def test_a_front_that_bends_the_wrong_way_has_none(self) -> None:
        days = {"now": [(10, 1)], "new": [(1, 10)], "mid": [(9, 9)]}
        advice = advise(replay(days), thresholds(now=10, new=5, mid=7), ASK, NOW)
        assert (advice.knee, len(advice.front)) == ("", 3)

    def test_without_a_knee_what_the_judge_finds_better_comes_first(self) -> None:
        days = {"now": [(12.0, 12.0)], "calm": [(11.9, 1.0)], "keen": [(1.0, 11.0)]}
        advice = advise(replay(days), thresholds(now=10, calm=50, keen=5), ASK, NOW)
        assert (advice.knee, advice.candidate("now").on_front, advice.chosen) == ("", False, "keen")

    def test_every_point_of_the_front_is_named(self) -> None:
        days: dict[str, Sequence[tuple[float, float]]] = {f"t{n}": [(20.0 - n, n * n)] for n in range(1, 6)}
        advice = advise(replay(days), thresholds(**{f"t{n}": n for n in range(1, 6)}), ASK)
        said = {note.text.replace("<b>", "").replace("</b>", "") for note in front_figure(advice).layout.annotations}
        marked = {advice.chosen, advice.current}
        assert len(advice.front) == 5
        assert {one.name for one in advice.front} - marked <= said

    def test_many_points_are_numbered_as_in_the_table(self) -> None:
        days: dict[str, Sequence[tuple[float, float]]] = {f"t{n}": [(20.0 - n, n * n)] for n in range(1, 12)}
        advice = advise(replay(days), thresholds(**{f"t{n}": n for n in range(1, 12)}), ASK)
        said = {note.text for note in front_figure(advice).layout.annotations}
        assert {str(n) for n in range(1, 12)} <= said


class TestSupposed:
    """What all scenarios share does not keep the current settings from being found."""

    EVERY = "loadBalancerSheddingIntervalMinutes"

    def test_shared_settings_are_said_and_passed_over(self) -> None:
        both = [scenario("a", **{self.EVERY: 5, THRESHOLD: 10}), scenario("b", **{self.EVERY: 5, THRESHOLD: 20})]
        advice = advise(replay({"a": [(1, 1)], "b": [(2, 2)]}), both, ASK, NOW)
        assert advice.current == "a"
        (note,) = advice.notes
        assert note == (
            f"All scenarios assume {self.EVERY} = 5, including the current settings with which the others are compared."
        )

    def test_a_setting_that_only_some_change_counts(self) -> None:
        both = [scenario("a", **{self.EVERY: 5, THRESHOLD: 10}), scenario("b", **{self.EVERY: 1, THRESHOLD: 20})]
        assert advise(replay({"a": [(1, 1)], "b": [(2, 2)]}), both, ASK, NOW).current == ""

    def test_what_all_share_may_be_as_it_is(self) -> None:
        both = [scenario("a", **{self.EVERY: 1}), scenario("b", **{self.EVERY: 1, THRESHOLD: 20})]
        advice = advise(replay({"a": [(1, 1)], "b": [(2, 2)]}), both, ASK, NOW)
        assert (advice.current, advice.notes) == ("a", ())


class TestYardsticks:
    """Scenarios that measure with different rulers are not compared by them."""

    OVERLOADED = "loadBalancerBrokerOverloadedThresholdPercentage"
    CPU = "loadBalancerCPUResourceWeight"

    def rows(self) -> list[DayRow]:
        numbers = {"now": (5.0, 50.0), "a": (6.0, 0.0)}
        return [
            DayRow(
                cluster="east",
                scenario=name,
                day="2027-01-01",
                cycles=1,
                measures={
                    "mean_std_percent": std,
                    "overloaded_broker_min": late,
                    "final_throughput_std_over_average": std,
                    "shed": 1.0,
                    "moved": 0.0,
                },
            )
            for name, (std, late) in numbers.items()
        ]

    def test_another_limit_makes_no_less_overload(self) -> None:
        asked = Question(balance=("deviation", "overload"), disruption=("unloads",))
        lax = [scenario("now"), scenario("a", **{self.OVERLOADED: 100})]
        advice = advise(self.rows(), lax, asked, NOW)
        assert advice.chosen == "now"
        assert advice.question.balance == ("deviation",)
        assert any(f"Time overloaded is ignored, because it depends on {self.OVERLOADED}" in n for n in advice.notes)
        same = [scenario("now"), scenario("a", **{THRESHOLD: 5})]
        assert advise(self.rows(), same, asked, NOW).question == asked

    def test_other_weights_leave_no_measure_of_usage(self) -> None:
        light = [scenario("now"), scenario("a", **{self.CPU: 0.5})]
        with pytest.raises(SettingError, match="depends on loadBalancerCPUResourceWeight"):
            advise(self.rows(), light, ASK, NOW)
        asked = Question(balance=("throughput",), disruption=("unloads",))
        assert advise(self.rows(), light, asked, NOW).chosen == "now"

    def test_heap_memory_counts_only_where_it_does(self) -> None:
        heap = Settings({"loadBalancerMemoryResourceWeight": 1.0})
        modular = {"east": Configured(heap, LoadManager.MODULAR)}
        other = [scenario("now"), Scenario(name="a", load_manager="extensible")]
        with pytest.raises(SettingError, match="loadBalancerMemoryResourceWeight"):
            comparable(ASK, other, modular)
        assert comparable(ASK, other, NOW) == (ASK, [])

    def test_another_load_manager_is_never_advised(self) -> None:
        """Changing the load manager is a migration, however much better it is."""
        other = [scenario("now"), Scenario(name="TransferShedder", load_manager="extensible")]
        rows = replay({"now": [(9, 9)], "TransferShedder": [(1, 1)]})
        advice = advise(rows, other, ASK, NOW)
        assert (advice.chosen, advice.knee, advice.current) == ("now", "now", "now")
        assert advice.notes == ("TransferShedder (needs the extensible load manager: a migration) is left out.",)
        with pytest.raises(PlannerError, match="no scenario that this cluster can change to by settings alone"):
            advise(rows, other[1:], ASK, NOW)

    def test_a_strategy_that_the_release_lacks_is_never_advised(self) -> None:
        old = {"east": Configured(Settings({}, release("3.2.3")), LoadManager.MODULAR)}
        avg = {"loadBalancerLoadSheddingStrategy": "AvgShedder", "loadBalancerLoadPlacementStrategy": "AvgShedder"}
        both = [Scenario(name=name, settings=own, pulsar_version="3.2.3") for name, own in (("now", {}), ("a", avg))]
        advice = advise(replay({"now": [(9, 9)], "a": [(1, 1)]}), both, ASK, old)
        assert advice.chosen == "now"
        assert advice.notes == ("a (not in Pulsar 3.2.3: simulated as if it were) is left out.",)


class TestEvidence:
    DAYS: Mapping[str, Sequence[tuple[float, float]]] = {
        "now": [(10, 1)] * 6,
        "new": [(5, 2), (6, 2), (7, 0), (8, 1), (9, 3), (11, 4)],
    }

    def test_wins_losses_and_chance(self) -> None:
        advice = advise(
            replay(self.DAYS),
            thresholds(now=10, new=5),
            Question(balance=("deviation",), disruption=("unloads",), weight=1.0),
            NOW,
        )
        assert advice.chosen == "new"
        evidence = advice.evidence
        assert evidence is not None
        assert evidence.wins("balance") == (5, 1, 0)
        assert evidence.wins("disruption") == (1, 4, 1)
        assert evidence.chance("balance") == pytest.approx(2 * (1 + 6) / 64)
        by_name = {change.measure.name: change for change in evidence.measures}
        assert (by_name["shed"].current, by_name["shed"].chosen, by_name["shed"].better) == (6, 12, False)
        assert by_name["mean_std_percent"].better is True
        assert by_name["splits"].better is None
        assert [day.day for day in evidence.days] == [f"2027-01-{day:02}" for day in range(1, 7)]

    def test_days_of_several_clusters_count_each(self) -> None:
        rows = [row(name, 1, std, 1, cluster) for name, std in (("now", 9), ("new", 5)) for cluster in ("a", "b")]
        now = dict.fromkeys(("a", "b"), NOW["east"])
        advice = advise(rows, thresholds(now=10, new=5), ASK, now)
        assert advice.clusters == ("a", "b")
        assert advice.evidence is not None
        assert advice.evidence.wins("balance") == (2, 0, 0)
        assert advice.candidate("now").totals["shed"] == 2


class TestSensitivity:
    """A line of thresholds; the choice is 10 and its neighbours become worse step by step."""

    VALUES: Mapping[str, Sequence[tuple[float, float]]] = {
        "t5": [(8, 16)],  # far more unloads
        "t8": [(9, 10.5)],
        "t10": [(10, 10)],
        "t12": [(10.5, 9.8)],
        "t20": [(14, 9.8)],  # beaten by t12
        "t30": [(15, 9)],
    }

    def advice(self, loss: float) -> Advice:
        scenarios = thresholds(t5=5, t8=8, t10=10, t12=12, t20=20, t30=30)
        asked = Question(balance=("deviation",), disruption=("unloads",), weight=0.3, loss_percent=loss)
        return advise(replay(self.VALUES), scenarios, asked, NOW)

    def test_how_far_a_threshold_can_move(self) -> None:
        advice = self.advice(15)
        assert advice.chosen == "t10"
        (found,) = advice.sensitivity
        assert (found.setting, found.chosen, found.low, found.high) == (THRESHOLD, 10, 8, 12)
        assert [step.value for step in found.steps] == [5, 8, 10, 12, 20, 30]
        assert [step.on_front for step in found.steps] == [True, True, True, True, False, True]
        mean = sum(days[0][1] for days in self.VALUES.values()) / len(self.VALUES)
        assert found.steps[0].loss_percent == pytest.approx(100 * 6 / mean)
        assert "every replayed value from 8 to 12 is acceptable" in found.sentence

    def test_less_may_be_lost(self) -> None:
        (found,) = self.advice(1).sensitivity
        assert (found.low, found.high) == (10, 10)
        assert "narrow" in found.sentence

    def test_more_may_be_lost_but_the_front_still_counts(self) -> None:
        (found,) = self.advice(1000).sensitivity
        assert (found.low, found.high) == (5, 12)

    def test_only_what_differs_in_one_setting_is_a_neighbour(self) -> None:
        scenarios = [
            scenario("now"),
            scenario("a", **{THRESHOLD: 5}),
            scenario("b", **{THRESHOLD: 5, SMALLEST: 20.0}),
            scenario("c", **{THRESHOLD: 30, SMALLEST: 20.0}),
        ]
        rows = replay({"now": [(9, 9)], "a": [(1, 1)], "b": [(1, 5)], "c": [(1, 1)]})
        advice = advise(rows, scenarios, ASK, NOW)
        assert advice.chosen == "a"
        by_name = {one.setting: one for one in advice.sensitivity}
        assert [step.name for step in by_name[THRESHOLD].steps] == ["a", "now"]
        assert [step.name for step in by_name[SMALLEST].steps] == ["a", "b"]
        assert by_name[SMALLEST].high == 10.0

    def test_a_setting_that_was_not_tried_alone_is_said(self) -> None:
        scenarios = [scenario("now"), scenario("a", **{THRESHOLD: 5, SMALLEST: 20.0})]
        advice = advise(replay({"now": [(9, 9)], "a": [(1, 1)]}), scenarios, ASK, NOW)
        assert all(not one.tried and "its range is unknown" in one.sentence for one in advice.sensitivity)

    def test_names_have_no_range(self) -> None:
        scenarios = [scenario("now"), scenario("a", **{STRATEGY: "OverloadShedder"})]
        advice = advise(replay({"now": [(1, 1)], "a": [(9, 9)]}), scenarios, ASK, NOW)
        (found,) = advice.sensitivity
        assert found.chosen == "ThresholdShedder"
        assert "OverloadShedder would be worse" in found.sentence


class TestHoldout:
    def advice(self, days: Mapping[str, Sequence[tuple[float, float]]], share: float = 0.6) -> Advice:
        scenarios = thresholds(
            **{name: value for name, value in (("now", 10), ("new", 5), ("old", 20)) if name in days}
        )
        asked = Question(balance=("deviation",), disruption=("unloads",), first_share=share)
        return advise(replay(days), scenarios, asked, NOW)

    def test_a_choice_that_holds(self) -> None:
        found = self.advice({"now": [(10, 10)] * 5, "new": [(5, 5)] * 5}).holdout
        assert found is not None
        assert (len(found.first_days), len(found.rest_days)) == (3, 2)
        assert (found.chosen, found.best, found.holds, found.distance) == ("new", "new", True, 0.0)
        assert found.promised == pytest.approx((-100 * 5 / 7.5, -100 * 5 / 7.5))
        assert [day.day for day in found.days] == [*found.first_days, *found.rest_days]
        assert found.days[0].balance == pytest.approx((100 * 10 / 7.5, 100 * 5 / 7.5))

    def test_a_choice_that_turns_does_not_hold(self) -> None:
        advice = self.advice({"now": [(10, 10)] * 5, "new": [(1, 1)] * 3 + [(15, 20)] * 2})
        found = advice.holdout
        assert found is not None
        assert (found.chosen, found.best, found.holds) == ("new", "now", False)
        assert found.distance == pytest.approx(1 / 3)
        assert "Balance is" in found.reasons[0]
        assert "worse on the remaining days" in found.reasons[1]
        assert "33.3 % better in both" in found.reasons[2]

    def test_a_promise_that_is_broken_on_one_side_only(self) -> None:
        found = self.advice({"now": [(10, 10)] * 5, "new": [(5, 5)] * 3 + [(12, 5)] * 2}).holdout
        assert found is not None
        assert not found.holds
        assert len(found.reasons) == 2
        assert found.reasons[1] == (
            "The choice on the remaining days alone is now. Better: deviation 12.0 to 10.0 points."
        )
        assert "Balance" in found.reasons[0]

    def test_a_gain_that_is_lost_by_little_is_said_but_holds(self) -> None:
        found = self.advice({"now": [(10, 10)] * 5, "new": [(5, 5)] * 3 + [(10.5, 5)] * 2}).holdout
        assert found is not None
        assert found.holds
        assert f"on the first days, and {100 * 0.5 / 10.25:.1f} % worse on the remaining days" in found.reasons[1]
        assert f"on the first days, and {100 * 5 / 7.5:.1f} % better on the remaining days" in found.reasons[2]

    def test_another_choice_on_the_rest_does_not_hold_unless_it_is_as_good(self) -> None:
        """It said that the choice holds, and in the next sentence that the rest would have chosen another one."""
        days = {"now": [(20, 20)] * 4, "new": [(5, 5)] * 4, "old": [(5, 9)] * 2 + [(3, 5)] * 2}
        found = self.advice(days, share=0.5).holdout
        assert found is not None
        assert (found.chosen, found.best, found.holds) == ("new", "old", False)
        assert (
            found.reasons[-1] == "The choice on the remaining days alone is old. Better: deviation 5.0 to 3.0 points."
        )
        as_good = days | {"old": [(5, 9)] * 2 + [(4.8, 5)] * 2}
        found = self.advice(as_good, share=0.5).holdout
        assert found is not None
        assert (found.chosen, found.best, found.holds) == ("new", "old", True)
        assert found.reasons[-1] == "The choice on the remaining days alone is old, which is as good there."

    def test_it_is_chosen_on_the_first_days_only(self) -> None:
        days = {"now": [(9, 9)] * 4, "new": [(5, 5)] * 2 + [(9, 9)] * 2, "old": [(8, 8)] * 2 + [(1, 1)] * 2}
        advice = self.advice(days, share=0.5)
        assert advice.holdout is not None
        assert (advice.chosen, advice.holdout.chosen, advice.holdout.best) == ("old", "new", "old")

    def test_both_parts_have_a_day_whatever_the_share(self) -> None:
        for share in (0.0, 1.0):
            found = self.advice({"now": [(1, 1)] * 3, "new": [(2, 2)] * 3}, share).holdout
            assert found is not None
            assert found.first_days
            assert found.rest_days

    def test_one_day_has_no_holdout(self) -> None:
        assert self.advice({"now": [(1, 1)], "new": [(2, 2)]}).holdout is None


class TestCommands:
    def test_settings_as_commands(self) -> None:
        script = command_script(apply_commands(scenario("a", **{THRESHOLD: 5}), NOW["east"]), "Advice", PROGRAM, "east")
        assert f"pulsar-admin brokers update-dynamic-config --config {THRESHOLD} --value 5" in script
        assert "restart the brokers" not in script

    def test_nothing_to_change_needs_no_command(self) -> None:
        assert apply_commands(scenario("a", **{THRESHOLD: 10}), NOW["east"]) == ()

    def test_edits_are_no_settings(self) -> None:
        supposed = Scenario(name="x", settings={STRATEGY: "TransferShedder"}, load_manager="extensible")
        supposed = supposed.with_steps(Step(KillBroker(broker="b1:8080")))
        script = command_script(apply_commands(supposed, NOW["east"]), "Advice", PROGRAM, "east")
        assert "assumes 1 edits" not in script
        assert "assumes 1 edit of the cluster" in script
        assert "ExtensibleLoadManagerImpl" in script
        assert "Changing the load manager is a migration" in script
        assert "update-dynamic-config --config" not in script.split("=== Settings")[1]


PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=2)


@given(st.lists(PAIRS, min_size=1, max_size=12), st.one_of(st.none(), st.floats(0, 1)))
def test_what_is_chosen_is_on_the_front(values: list[list[tuple[int, int]]], weight: float | None) -> None:
    names = [f"s{at}" for at in range(len(values))]
    asked = Question(weight=weight)
    advice = advise(
        [
            DayRow(
                cluster="c",
                scenario=name,
                day=f"2027-01-{day:02}",
                cycles=1,
                measures={
                    "mean_std_percent": float(std),
                    "overloaded_broker_min": 0.0,
                    "shed": float(shed),
                    "moved": 0.0,
                    "topics_disconnected": float(shed * 7),
                    "producers_disconnected": 0.0,
                    "consumers_disconnected": 0.0,
                    "thrashing_percent": 0.0,
                },
            )
            for name, days in zip(names, values, strict=True)
            for day, (std, shed) in enumerate(days, start=1)
        ],
        [scenario(name, **{THRESHOLD: at}) for at, name in enumerate(names)],
        asked,
    )
    assert advice.candidate(advice.chosen).on_front
    assert not advice.knee or advice.candidate(advice.knee).on_front
    beaten: Callable[[str], bool] = lambda name: any(  # noqa: E731 - reads as a sentence below
        other.balance < advice.candidate(name).balance and other.disruption < advice.candidate(name).disruption
        for other in advice.candidates
    )
    assert not beaten(advice.chosen)


class TestUntrueUsage:
    ROWS = replay({"now": [(10.0, 10.0)] * 8, "good": [(2.0, 1.0)] * 8})
    SCENARIOS = thresholds(now=10, good=5)

    def advice(self, doubt: Doubt) -> tuple[Advice, dict[str, Configured]]:
        now = {"east": Configured(Settings({THRESHOLD: 10}), LoadManager.MODULAR, doubt)}
        return advise(self.ROWS, self.SCENARIOS, ASK, now), now

    def test_nothing_is_recommended_where_no_usage_is_true(self) -> None:
        """It recommended settings by usage that cannot be."""
        assert verdict_of(self.advice(NO_DOUBT)[0]).kind == "recommended"
        advice, now = self.advice(Doubt("The reported usage is untrue: b. Correct that.", everywhere=True))
        assert verdict_of(advice).kind == "untrue"
        assert verdict_text(advice) == "No settings are offered. The reported usage is untrue: b. Correct that."
        lines = advice_lines(advice, now)
        assert lines[0] == verdict_text(advice)
        assert "good" not in "\n".join(lines)
        told = advice_to_json(advice, now)
        assert (told["verdict"], told["recommended"], told["keep_current"]) == ("untrue", None, True)
        assert (told["commands"], told["settings_changed"]) == ({}, {"east": []})

    def test_a_doubt_about_one_broker_is_a_note(self) -> None:
        advice, _ = self.advice(Doubt("The reported usage may be untrue: b.", everywhere=False))
        assert verdict_of(advice).kind == "recommended"
        assert "The reported usage may be untrue: b." in advice.notes
