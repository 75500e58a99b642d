"""What operators asked about load balancing in public: the cause is named, and what is recommended works."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.doubt import doubt_about
from planner.explain.split_advice import split_advice
from planner.formats.reading import read_snapshot
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.remedy.candidates import candidates
from planner.share.fix import fix_document, fix_text
from planner.simulate.breaches import stranded
from planner.simulate.edits.registry import BundleSplit, IsolationChange
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from planner.simulate.usage_model import at_the_end
from tests.app.namespaces.public_reports import cluster as reported
from tests.app.namespaces.public_reports import topic
from tests.app.remedy.operator_reports import CLASS, PLACEMENT, SHEDDING, Asked, bundle, bundles, cluster, isolation

CASES = Path(__file__).parents[4] / "shared" / "cases"
QUARTERS = (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)
ALGORITHM = "defaultNamespaceBundleSplitAlgorithm"


def one_hot_topic() -> Snapshot:
    """One topic without partitions, alone on a broker; the capture lists no topics, and counts them."""
    loads = ((1, 80.0), (2, 1.0), (3, 1.0), (2, 1.0))
    ends = pairwise(QUARTERS)
    return cluster(3, [bundle("p/d", *end, at, mb) for end, (at, mb) in zip(ends, loads, strict=True)])


class TestASingleTopicIsDividedByNoSplit:
    def test_the_simulation_keeps_it_whole(self) -> None:
        snapshot = one_hot_topic()
        name = snapshot.bundle_names[0]
        split = BundleSplit(bundle=name, algorithm="range_equally_divide", unload=True)
        end = simulate(snapshot, unchanged("4.0.8", cycles=1, steps=(Step(split),))).end
        assert sorted(end.bundles.throughput_bytes_per_s())[-2:] == pytest.approx([1e6, 80e6])

    def test_no_page_recommends_a_split(self) -> None:
        seen = Asked(one_hot_topic())
        assert "no split can divide" in seen.tried("hot_topic").finding.title
        assert "held_by_gate" not in seen.codes, "no value opens its gate, because of that topic"
        found = seen.fix()
        assert found.best is None
        assert not any(isinstance(edit, BundleSplit) for one in found.others for edit in one.action.edits)
        assert split_advice(seen.snapshot, 0, seen.snapshot.settings).verdict == "Not worth it"

    def test_the_best_plan_names_the_topic(self) -> None:
        plan = best_plan(one_hot_topic(), Question(splits=3))
        assert not plan.splits
        assert any("the only topic of p/d/0x00000000_0x40000000" in note for note in plan.notes)

    def test_several_topics_are_divided(self) -> None:
        snapshot = cluster(3, [bundle("p/d", 0, 0xFFFFFFFF, 1, 80.0, topics=600)])
        assert best_plan(snapshot, Question(splits=3)).splits


class TestBundlesThatNobodyServes:
    def test_clients_look_them_up_whatever_is_done(self) -> None:
        """Otherwise any restart would look as if it brought them back."""
        rows = [*bundles("vip/a", (None,) * 4), *bundles("p/d", (1, 2, 3) * 2)]
        seen = Asked(cluster(3, rows))
        assert (seen.outcome.trace.end.bundles.owner >= 0).all()
        assert seen.outcome.trace.cycles[0].events
        assert seen.fix().best is None

    def test_a_policy_that_is_mended_gives_them_a_broker(self) -> None:
        rows = [*bundles("vip/a", (None,) * 4), *bundles("p/d", (1, 2, 3) * 2)]
        seen = Asked(cluster(3, rows, policies=isolation(["b1:8080"], ["vip/.*"])))
        tried = seen.tried("policy_matches_no_broker")
        assert tried.trial is not None
        assert tried.trial.offered
        assert "bundles without a broker 4 to 0" in tried.finding.tried
        best = seen.fix().best
        assert best is not None
        assert isinstance(best.action.edits[0], IsolationChange)

    @pytest.mark.skipif(not CASES.is_dir(), reason="the cases lie beside the repository")
    def test_the_handed_out_case_has_a_remedy(self) -> None:
        (path,) = CASES.glob("h01_*.json")
        best = Asked(read_snapshot(path)).fix().best
        assert best is not None
        assert best.after.unserved == 0

    def test_a_policy_that_is_mended_may_not_reserve_every_broker(self) -> None:
        """Its namespaces are misspelt as well, so that with `b.*` nobody might own anything."""
        rows = [*bundles("vip/a", (None,) * 4), *bundles("p/d", (1, 2, 3) * 2)]
        seen = Asked(cluster(3, rows, policies=isolation(["b*"], ["vip/*"])))
        tried = seen.tried("policy_matches_no_broker")
        assert tried.trial is not None
        assert tried.trial.verdict.word == "worse"
        assert "bundles that no broker may own 0 to 6" in tried.finding.tried
        assert (
            "Write vip/.* (it is written as a glob, and Pulsar reads a regular"
            in seen.tried("policy_without_namespaces").finding.remedy
        )
        assert seen.fix().best is None


def full_policy(shared: int) -> Snapshot:
    """Two brokers of a policy are full; so many others serve a namespace without one."""
    others = [3 + at % shared for at in range(8)]
    rows = [*bundles("vip/a", (1, 2) * 4, 22.0), *bundles("p/d", others, 5.0)]
    return cluster(2 + shared, rows, policies=isolation(["b1", "b2"]))


class TestAPolicyThatGetsMoreBrokers:
    def test_it_leaves_some_to_namespaces_without_a_policy(self) -> None:
        seen = Asked(full_policy(4))
        tried = seen.tried("policy_full")
        assert tried.trial is not None
        (edit,) = tried.trial.action.edits
        assert isinstance(edit, IsolationChange)
        assert set(edit.primary) < {"b1", "b2", "b3", "b4", "b5", "b6"}
        assert tried.trial.after.stranded == 0
        answer = seen.fix()
        chosen = answer.pair or answer.best
        assert chosen is not None
        assert chosen.after.stranded == 0

    def test_all_of_them_would_be_worse(self) -> None:
        seen = Asked(full_policy(4))
        edit = IsolationChange(name="vip", namespaces=("vip/.*",), primary=("b.",), secondary=(), min_limit=1)
        scenario = unchanged("4.0.8", steps=(Step(edit),))
        end = at_the_end(simulate(seen.snapshot, scenario))
        assert len(stranded(end)) == 8

    def test_secondary_brokers_that_are_used_become_primary_ones(self) -> None:
        """The primary brokers were replaced: with one new primary broker, the secondary ones would be used no more."""
        rows = [*bundles("vip/a", (3,) * 8, 10.0), *bundles("p/d", (1, 2, 4) * 2, 0.1)]
        seen = Asked(cluster(4, rows, policies=isolation(["old-1", "old-2"], secondary=["b3"])))
        tried = seen.tried("held_by_gate")
        assert tried.trial is not None
        assert tried.trial.offered
        assert tried.trial.after.end_peak_percent < 60

    def test_one_that_reserves_every_broker_gives_some_up(self) -> None:
        rows = [*bundles("vip/a", (1,) * 4), *bundles("p/d", (1, 2) * 2, 0.1)]
        seen = Asked(cluster(2, rows, policies=isolation(["b.*"])))
        tried = seen.tried("no_broker_allowed")
        assert "'vip' with primary brokers b1 only" in tried.finding.remedy
        assert "bundles that no broker may own 4 to 0" in tried.finding.tried
        best = seen.fix().best
        assert best is not None
        assert best.after.stranded == 0

    def test_the_last_broker_stays_with_them(self) -> None:
        assert "policy_full" not in Asked(full_policy(1)).codes


class TestFixIt:
    def test_it_knows_the_best_plan(self) -> None:
        """A quarter of eight bundles is too few moves."""
        loads = (25.0, 10.0, 10.0, 9.0, 8.0, 8.0)
        cuts = np.linspace(0, 0xFFFFFFFF, len(loads) + 1).astype(int).tolist()
        rows = [bundle("p/d", *ends, 1, mb) for ends, mb in zip(pairwise(cuts), loads, strict=True)]
        seen = Asked(cluster(3, rows))
        moves = [one for one in candidates(seen.snapshot, seen.trials.scenario, seen.outcome) if one.kind == "moves"]
        best = best_plan(seen.snapshot, Question())
        assert f"Move {len(best.moves)} bundles" in {one.words for one in moves}

    def test_what_helps_by_luck_is_told(self) -> None:
        rows = [*bundles("p/heavy", (1,) * 4, 16.0), *bundles("p/idle", (2,) * 12 + (3,) * 12, 0.001)]
        answer = Asked(cluster(3, rows)).fix()
        if answer.best is None:
            assert answer.lucky is not None
            assert "helps here, but not reliably" in answer.sentence
            assert "Not recommended: under another seed" in fix_text(answer)

    @pytest.mark.skipif(not CASES.is_dir(), reason="the cases lie beside the repository")
    def test_a_wrong_measurement_is_told_though_its_broker_sheds(self) -> None:
        (path,) = CASES.glob("h05_*.json")
        assert "may be untrue: b1:8080 reports more CPU usage" in Asked(read_snapshot(path)).fix().sentence

    def test_its_scenarios_name_the_release_that_decided(self) -> None:
        seen = Asked(full_policy(4))
        document = fix_document(seen.fix(), seen.trials.scenario.pulsar_version)
        chosen = document["pair"] or document["best"]
        assert chosen["scenario"]["pulsar_version"] == "4.0.8"

    def test_no_limit_is_not_halved_to_nothing(self) -> None:
        """Without a single bundle to unload, a strategy is switched off."""
        rows = bundles("p/d", (1,) * 6 + (2, 3), 8.0, msg_per_s=4_000.0)
        seen = Asked(cluster(3, rows, settings={SHEDDING: CLASS["UniformLoadShedder"]}))
        tried = [one.settings for one in candidates(seen.snapshot, seen.trials.scenario, seen.outcome)]
        assert 0 not in [one.get("maxUnloadBundleNumPerShedding") for one in tried]

    def test_an_algorithm_that_needs_topics_is_not_tried_without_them(self) -> None:
        """In a simulation it would split nothing, and so seem to end every split cascade."""
        rows = bundles("p/d", (1, 2, 3) * 4, 6.0, msg_per_s=5_000.0, topics=50)
        seen = Asked(cluster(3, rows, settings={"loadBalancerNamespaceBundleMaxMsgRate": 100}))
        cascade = seen.tried("split_cascade")
        assert set(cascade.finding.changes) == {"loadBalancerNamespaceBundleMaxMsgRate"}
        assert "loadBalancerNamespaceBundleMaxMsgRate = 6,300, nothing is split" in cascade.finding.remedy
        tried = [one.settings for one in candidates(seen.snapshot, seen.trials.scenario, seen.outcome)]
        assert not any(ALGORITHM in one for one in tried)


class TestTooFewBundles:
    def test_each_topic_is_disconnected_once(self) -> None:
        rows = bundles("p/d", (1, 2, 3, 4), 70.0, topics=100)
        seen = Asked(cluster(8, rows))
        tried = seen.tried("bundle_count_too_low")
        assert tried.trial is not None
        assert tried.trial.offered
        assert tried.trial.after.topics <= 400
        answer = seen.fix()
        assert answer.best is not None
        assert answer.pair is not None
        assert answer.pair.after.end_peak_percent < 50, "the best one lowers the peak"
        assert answer.pair.after.topics <= 200, "halves that stay where they are disconnect nobody"
        assert not any(one.unload for one in answer.pair.action.edits if isinstance(one, BundleSplit))

    def test_they_are_why_brokers_stay_idle(self) -> None:
        assert "idle_broker" not in Asked(cluster(8, bundles("p/d", (1, 2, 3, 4), 70.0, topics=100))).codes

    def test_nobody_says_that_a_broker_joined_where_that_is_not_known(self) -> None:
        rows = [row for at in range(1, 6) for row in bundles(f"t/n{at}", (at,) * 8, 5.6)]
        finding = Asked(cluster(6, rows)).tried("idle_broker").finding
        assert finding.title == "A broker stays idle"
        assert "b6:8080 serves nothing; the capture does not say when it started" in finding.evidence


class TestAvgShedder:
    def test_its_minimums_are_named_and_not_its_counters(self) -> None:
        """The counters stand at six of eight in the last cycle, and were full in the cycles before."""
        both = {SHEDDING: CLASS["AvgShedder"], PLACEMENT: CLASS["AvgShedder"]}
        rows = bundles("p/d", (1,) * 6 + (2,) * 3 + (3,) * 3, 0.05)
        seen = Asked(cluster(3, rows, settings=both, percent_per_mb=180.0))
        assert "held_by_gate" not in seen.codes
        tried = seen.tried("avg_held_back")
        assert tried.trial is not None
        assert tried.trial.is_worth_it
        assert set(tried.trial.action.settings) == {"minUnloadMessage", "maxUnloadPercentage"}

    def test_half_a_pair_that_did_no_harm_is_a_warning(self) -> None:
        rows = bundles("p/d", (1,) * 12 + (2,) * 6 + (3,) * 6, 4.0, msg_per_s=1_000.0)
        seen = Asked(cluster(3, rows, settings={SHEDDING: CLASS["AvgShedder"]}))
        finding = seen.tried("fighting_strategies").finding
        assert finding.severity == "medium"
        assert "none went elsewhere here" in finding.evidence


class TestTheBestPlanNamesATopic:
    """One partition fills its broker; its siblings are as large, or all but idle."""

    @staticmethod
    def notes(siblings_msg_per_s: float) -> str:
        names = [f"persistent://p/d/orders-partition-{at}" for at in range(4)]
        rates = (8_000.0, *(siblings_msg_per_s,) * 3)
        listed = [topic(name, rate, size_bytes=8_000, consumers=0) for name, rate in zip(names, rates, strict=True)]
        cuts = (0, *sorted(middle_of(topic_hash(one), topic_hash(two)) for one, two in neighbours(names)), FULL_HIGH)
        plan = best_plan(reported(8, "p/d", cuts, listed), Question(splits=3))
        return " ".join(plan.notes)

    def test_partitions_that_are_alike_get_more(self) -> None:
        assert "partitions instead of 4 for this topic" in self.notes(7_900.0)

    def test_a_hot_key_is_divided_by_none(self) -> None:
        said = self.notes(10.0)
        assert "has far more than its share of 4 partitions" in said
        assert "Use at least" not in said


def neighbours(names: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(sorted(names, key=topic_hash)))


def middle_of(one: int, two: int) -> int:
    return (one + two) // 2


class TestAWrongMeasurement:
    def test_every_command_doubts_it(self) -> None:
        """Fix it and Overview did, and the best plan did not."""
        rows = bundles("p/d", (1, 2, 3) * 4)
        seen = Asked(cluster(3, rows, cpu_percent=(150.0, 20.0, 20.0)))
        assert "b1:8080 reports more CPU usage" in seen.fix().sentence
        assert "untrue: b1:8080 reports more CPU usage" in doubt_about(seen.snapshot).sentence
        assert not doubt_about(cluster(3, rows)).sentence


class TestUniformLoadShedder:
    def test_its_numbers_have_units(self) -> None:
        rows = bundles("p/d", (1,) * 2 + (2, 3), 40.0, msg_per_s=100.0) + bundles("p/e", (1,) * 2 + (2, 3), 0.1)
        shedder = {SHEDDING: CLASS["UniformLoadShedder"]}
        off = {"loadBalancerMsgRateDifferenceShedderThreshold": 0.0, "maxUnloadPercentage": 0.1}
        limits = {"loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 1.5}
        seen = Asked(cluster(3, rows, settings={**shedder, **off, **limits}))
        names = seen.outcome.trace.cycles[0].view.brokers.name, seen.outcome.trace.cycles[0].view.bundle_names
        said = " ".join(
            reason.text
            for block in seen.outcome.trace.decision(0).shedding.reasons
            for reason in block.rows(*names)
            if reason.code.code.startswith("uniform.")
        )
        assert "MiB/s that may leave" in said or "MiB/s left to move" in said
        assert not re.search(r"\d{6}", said), "throughput is in MiB/s"


class TestMemoryThatFillsEveryBroker:
    @staticmethod
    def full() -> Snapshot:
        """OverloadShedder of 3.0.7 compares direct memory without its weight, and no bundle takes it along."""
        rows = bundles("p/d", (1, 2, 3) * 6, 3.0)
        made = cluster(3, rows, settings={SHEDDING: CLASS["OverloadShedder"]}, release="3.0.7")
        used = np.array([3_900.0, 3_850.0, 3_700.0])
        return made.with_columns(brokers=replace(made.brokers, direct_memory_usage_mib=used))

    def test_it_is_the_only_cause(self) -> None:
        """More brokers were advised beside it, with a headroom of 3.5 for full brokers."""
        codes = Asked(self.full()).codes
        assert "memory_stays" in codes
        assert not {"out_of_capacity", "fighting_strategies", "ping_pong", "unload_storm"} & set(codes)

    def test_its_remedy_is_tried(self) -> None:
        seen = Asked(self.full())
        tried = seen.tried("memory_stays")
        assert tried.trial is not None
        assert set(tried.trial.action.settings) == {SHEDDING, "loadBalancerDirectMemoryResourceWeight"}
        assert tried.trial.after.thrashing_percent < tried.trial.before.thrashing_percent
        assert "rolling restart that it needs is included" in tried.finding.tried

    def test_brokers_that_other_resources_fill_need_capacity(self) -> None:
        rows = bundles("p/d", (1, 2, 3) * 6, 15.5)
        made = cluster(3, rows, settings={SHEDDING: CLASS["OverloadShedder"]}, release="3.0.7")
        assert "out_of_capacity" in Asked(made).codes


class TestAStrategyThatCameLater:
    def test_it_is_named_as_a_class_that_cannot_be_loaded(self) -> None:
        """A cluster of 3.0.2 was decided by AvgShedder, which it does not have, without a finding."""
        both = {SHEDDING: CLASS["AvgShedder"], PLACEMENT: CLASS["AvgShedder"]}
        rows = bundles("p/d", (1,) * 8 + (2, 3) * 2, 9.0, msg_per_s=900.0)
        found = [
            one
            for one in diagnose(Asked(cluster(3, rows, settings=both, release="3.0.2")).outcome)
            if one.code == "class_not_loaded"
        ]
        assert {one.title for one in found} == {"Pulsar 3.0.2 does not have AvgShedder"}
        assert {"OverloadShedder decides" in found[0].evidence, "cannot be created" in found[1].evidence} == {True}
        assert set(found[0].changes) == {SHEDDING, PLACEMENT}
        assert "class_not_loaded" not in Asked(cluster(3, rows, settings=both, release="3.0.7")).codes


class TestReasonsOfAvgShedder:
    def test_a_pair_that_is_compared_by_throughput_is_told_in_its_unit(self) -> None:
        """It said that at most 4800000 per second may move."""
        both = {SHEDDING: CLASS["AvgShedder"], PLACEMENT: CLASS["AvgShedder"]}
        rows = [row for at in (1, 2, 3) for row in bundles(f"t/n{at}", (at,) * 8, 6.0, msg_per_s=90.0)]
        seen = Asked(cluster(4, rows, settings=both, cpu_percent=(62, 60, 61, 3), release="3.0.7"))
        said = " ".join(event.why for event in seen.outcome.trace.events)
        assert "MiB/s fits into the" in said
        assert not re.search(r"\d{6}", said)
