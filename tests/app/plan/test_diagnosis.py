"""Each failure pattern on a cluster that shows it, and on one that does not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.hashing import topic_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import release
from planner.cluster.setting import conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_topics
from planner.explain.bundle_patterns import fitting_bundle_count
from planner.explain.diagnosis import PATTERNS, diagnose
from planner.explain.finding import Finding
from planner.explain.health import within
from planner.explain.outcome import Outcome
from planner.explain.shedding_patterns import held_back
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.leader import LeaderMemory
from planner.pulsar.shedding.avg import AvgState
from planner.pulsar.shedding.registry import shedder_by_name
from planner.pulsar.shedding.threshold import ThresholdState
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.event import Event
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, unchanged
from planner.simulate.trace import Trace
from tests.app.simulate.traces import MB, START_MS, cluster, shed, trace_of

SHEDDING = "loadBalancerLoadSheddingStrategy"
PLACEMENT = "loadBalancerLoadPlacementStrategy"
TO_AND_FRO = {at: [shed("x", f"b{at % 2 + 1}:8080", f"b{2 - at % 2}:8080", at)] for at in range(4)}
LOWER = "lowerBoundarySheddingEnabled"


def found(trace: Trace, code: str) -> list[Finding]:
    return [finding for finding in diagnose(trace) if finding.code == code]


def only(trace: Trace, code: str) -> Finding:
    (finding,) = found(trace, code)
    return finding


class TestUnloadStorm:
    VIEW = cluster([0.9, 0.1], {0: (10,) * 10, 1: (10,) * 2})

    def storm(self, bundles: int, view: Snapshot = VIEW, settings: Mapping[str, object] | None = None) -> Trace:
        names = view.bundle_names
        size = float(view.bundles.throughput_bytes_per_s()[0]) / MB
        events = {1: [shed(names[i], "b1:8080", "b2:8080", 1, size, producers=50) for i in range(bundles)]}
        return trace_of([[0.9, 0.1]] * 3, events, view=view, settings=settings)

    def test_half_the_traffic_at_once(self) -> None:
        finding = only(self.storm(6), "unload_storm")
        assert "Cycle 2 sheds 6 bundles with 50 %" in finding.evidence
        assert "disconnects 300 clients" in finding.evidence
        assert finding.brokers == ("b1:8080",)
        assert finding.changes == {"loadBalancerBrokerThresholdShedderPercentage": 20}

    def test_no_room_anywhere_is_said(self) -> None:
        finding = only(
            self.storm(
                6, settings={SHEDDING: "OverloadShedder", "loadBalancerBrokerOverloadedThresholdPercentage": 40}
            ),
            "unload_storm",
        )
        assert "so no broker has room" in finding.evidence
        assert finding.changes[SHEDDING] == "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"

    def test_what_had_to_move_is_no_alarm(self) -> None:
        """37 % of the throughput is what the hot broker has beyond the average: 25 % at once is on the way there."""
        small = cluster([0.9, 0.1], {0: (5,) * 20, 1: (5,) * 4})
        finding = only(self.storm(6, small), "unload_storm")
        assert finding.severity == "medium"
        assert "To even out the brokers takes 37 % of the throughput" in finding.evidence
        assert only(self.storm(6), "unload_storm").severity == "high"

    @pytest.mark.parametrize("bundles", [0, 1, 4])
    def test_a_few_are_none(self, bundles: int) -> None:
        assert not found(self.storm(bundles), "unload_storm")


class TestPingPong:
    def test_to_and_fro(self) -> None:
        finding = only(trace_of([[0.6, 0.4]] * 4, TO_AND_FRO), "ping_pong")
        assert finding.evidence.startswith("75 % of the shed traffic")
        assert "Bundles returned 3 times" in finding.evidence
        assert (finding.severity, finding.bundles) == ("high", ("x",))

    def test_other_bundles_going_back(self) -> None:
        events = {0: [shed("x", "b1:8080", "b2:8080", 0)], 1: [shed("y", "b2:8080", "b1:8080", 1)]}
        assert only(trace_of([[0.6, 0.4]] * 2, events), "ping_pong").bundles == ()

    def test_one_way(self) -> None:
        events = {at: [shed(f"x{at}", "b1:8080", "b2:8080", at)] for at in range(4)}
        assert not found(trace_of([[0.6, 0.4]] * 4, events), "ping_pong")


class TestIdleBroker:
    def back(self, last: float, mb: int = 200, **settings: object) -> Trace:
        events = {0: [Event(source="b3:8080", at_ms=START_MS, kind="broker_added")]}
        view = cluster([0.8, 0.8, 0.05], {0: (mb, mb), 1: (mb, mb), 2: ()})
        return trace_of([[0.8, 0.8, last]] * 6, events, view=view, settings=settings)

    def test_stays_empty(self) -> None:
        finding = only(self.back(0.05), "idle_broker")
        assert finding.brokers == ("b3:8080",)
        assert "the usage of b3:8080 is 5 %, compared with an average of 55 %" in finding.evidence
        assert finding.changes == {LOWER: True}

    def test_the_remedy_is_another_where_the_switch_is_on(self) -> None:
        assert only(self.back(0.05, **{LOWER: True}), "idle_broker").changes == {}

    def test_gets_its_share(self) -> None:
        assert not found(self.back(0.5), "idle_broker")

    def test_it_follows_from_a_gate_that_holds_the_others_back(self) -> None:
        """The switch was offered beside the minimum throughput, which alone kept the broker idle."""
        trace = self.back(0.05, mb=20)
        assert only(trace, "held_by_gate").changes
        assert not found(trace, "idle_broker")

    def test_one_that_was_always_there_is_none(self) -> None:
        assert not found(trace_of([[0.8, 0.8, 0.05]] * 6), "idle_broker")


class TestThresholdNeverReached:
    USAGE = (0.8,) * 10 + (0.05,)
    VIEW = cluster(USAGE, dict.fromkeys(range(11), (100, 100)))

    def test_one_idle_broker_among_ten_full_ones(self) -> None:
        """The deep dive's example: the average is 73.18 %, the limit 83.18 %, and 80 % does not reach it."""
        finding = only(trace_of([self.USAGE] * 2, view=self.VIEW), "threshold_never_reached")
        assert "the highest score was 80.0 %, the threshold 83.2 %" in finding.evidence
        assert finding.changes == {LOWER: True}
        assert "It then sheds in the last cycle." in finding.remedy

    def test_the_minimum_is_lowered_where_it_stops_what_the_switch_sheds(self) -> None:
        """Half of 10 % of 60 MiB/s is less than 10: the switch alone sheds nothing, and its restart looked like it."""
        small = cluster(self.USAGE, dict.fromkeys(range(11), (30, 30)))
        changes = only(trace_of([self.USAGE] * 2, view=small), "threshold_never_reached").changes
        assert changes == {LOWER: True, "loadBalancerBundleUnloadMinThroughputThreshold": 2.5}
        asked = [{name: conf_value(value)} for name, value in changes.items()]
        assert not any(simulate(small, Scenario(cycles=3, settings=one)).events for one in asked)
        assert simulate(small, Scenario(cycles=3, settings={**asked[0], **asked[1]})).events

    def test_a_lower_threshold_where_the_switch_does_not_help(self) -> None:
        usage = (0.56, 0.48, 0.40)
        finding = only(trace_of([usage] * 2), "threshold_never_reached")
        minimum = "loadBalancerBundleUnloadMinThroughputThreshold"  # the threshold alone sheds nothing
        assert finding.changes == {"loadBalancerBrokerThresholdShedderPercentage": 8, minimum: 1.6}

    def test_overload_shedder_below_its_fixed_threshold(self) -> None:
        trace = trace_of([(0.8, 0.1)], settings={SHEDDING: "OverloadShedder"})
        assert "85.0 %" in only(trace, "threshold_never_reached").evidence

    def test_a_broker_above_the_limit_that_stays_below_the_threshold(self) -> None:
        """The brokers are less than 15 points apart: what counts is that one of them is too full."""
        finding = only(trace_of([(0.88, 0.80, 0.79, 0.76)] * 2), "threshold_never_reached")
        assert finding.severity == "high"
        minimum = "loadBalancerBundleUnloadMinThroughputThreshold"
        assert finding.changes == {"loadBalancerBrokerThresholdShedderPercentage": 7, minimum: 1.7}
        assert not found(trace_of([(0.98, 0.90, 0.89, 0.86)] * 2), "threshold_never_reached")

    @pytest.mark.parametrize(
        ("now", "usage", "lower"), [(15, (0.88, 0.80, 0.79, 0.76), 6), (30, (0.70, 0.50, 0.48, 0.45), 15)]
    )
    def test_pairs_that_differ_by_less_than_avg_shedder_asks_for(
        self, now: int, usage: Sequence[float], lower: int
    ) -> None:
        both = {SHEDDING: "AvgShedder", PLACEMENT: "AvgShedder"}
        asked: dict[str, str | int] = {**both, "loadBalancerAvgShedderLowThreshold": now}
        finding = only(
            simulate(cluster(usage), Scenario(cycles=10, settings=in_full(asked))), "threshold_never_reached"
        )
        assert finding.changes == {"loadBalancerAvgShedderLowThreshold": lower}
        counting = {**asked, "loadBalancerAvgShedderLowThreshold": 1, "loadBalancerAvgShedderHitCountLowThreshold": 99}
        later = simulate(cluster(usage), Scenario(cycles=10, settings=in_full(counting)))
        assert not found(later, "threshold_never_reached")

    @pytest.mark.parametrize(("high", "rest", "lower"), [(0.6, 0.3, 0.04), (0.92, 0.7, 0.03)])
    def test_loads_that_deviate_by_less_than_transfer_shedder_asks_for(
        self, high: float, rest: float, lower: float
    ) -> None:
        snapshot = cluster((high, *(rest,) * 9), load_manager=LoadManager.EXTENSIBLE)
        asked = in_full({SHEDDING: "TransferShedder"})
        finding = only(simulate(snapshot, Scenario(cycles=10, settings=asked)), "threshold_never_reached")
        assert finding.changes == {"loadBalancerBrokerLoadTargetStd": lower}
        reached = Scenario(cycles=10, settings={**asked, "loadBalancerBrokerLoadTargetStd": 0.01})
        assert not found(simulate(snapshot, reached), "threshold_never_reached")

    @pytest.mark.parametrize("usage", [(0.5, 0.45, 0.4), (0.9, 0.1, 0.1)])
    def test_balanced_or_reached(self, usage: Sequence[float]) -> None:
        assert not found(trace_of([usage] * 2), "threshold_never_reached")


class TestEmaLag:
    def lagging(self, counted: float, used: float, cycles: int = 4) -> Trace:
        view = cluster([used, 0.5])
        return trace_of([[used, 0.5]] * cycles, view=view, scores=[[counted, 0.5]] * cycles)

    def test_counts_as_much_more_than_it_uses(self) -> None:
        finding = only(self.lagging(0.77, 0.5), "ema_lag")
        assert "b1:8080 has a usage of 50 % but a score of 77 %" in finding.evidence
        assert "In 4 cases, the score of a broker was on the wrong side of the threshold" in finding.evidence
        assert finding.changes == {"loadBalancerHistoryResourcePercentage": 0.5}
        assert "half of a change takes 7 cycles to show" in finding.remedy

    @pytest.mark.parametrize(("counted", "cycles"), [(0.55, 9), (0.77, 2)])
    def test_near_or_short(self, counted: float, cycles: int) -> None:
        assert not found(self.lagging(counted, 0.5, cycles), "ema_lag")


def with_topics(view: Snapshot, bundles: Sequence[int], mib_per_s: Sequence[float]) -> Snapshot:
    names = pa.array([f"persistent://acme/orders/t{i}" for i in range(len(bundles))], type=pa.large_string())
    size = np.array(mib_per_s) * MB / 2
    hashes = topic_hashes(names.cast(pa.large_binary()).to_pylist(), len(names))
    topics = make_topics(
        hashes,
        name=names,
        bundle=np.array(bundles, np.int32),
        msg_throughput_in_bytes_per_s=size,
        msg_throughput_out_bytes_per_s=size,
        msg_rate_in_per_s=size / 1000,
    )
    return replace(view, topics=topics)


class TestHotTopic:
    def test_above_what_a_bundle_may_have(self) -> None:
        view = with_topics(cluster([0.5, 0.5], {0: (130, 10), 1: (10,)}), (0, 0, 1, 2), (120, 10, 10, 10))
        finding = only(trace_of([[0.5, 0.5]], view=view), "topic_above_limit")
        assert "persistent://acme/orders/t0 has 120 MiB/s" in finding.evidence
        assert finding.bundles == (view.bundle_names[0],)
        assert finding.severity == "low"

    def test_most_of_a_full_broker(self) -> None:
        view = with_topics(cluster([0.9, 0.1], {0: (60, 10), 1: (10,)}), (0, 0, 1, 2), (50, 10, 10, 10))
        assert "71 % of its broker's throughput" in only(trace_of([[0.9, 0.1]], view=view), "hot_topic").evidence

    def test_the_same_share_of_a_calm_broker_is_none(self) -> None:
        view = with_topics(cluster([0.3, 0.3], {0: (60, 10), 1: (10,)}), (0, 0, 1, 2), (50, 10, 10, 10))
        assert not found(trace_of([[0.3, 0.3]], view=view), "hot_topic")

    @pytest.mark.parametrize(("topics", "expected"), [(1, 1), (2, 0)])
    def test_where_topics_are_not_listed(self, topics: int, expected: int) -> None:
        view = cluster([0.5, 0.5], {0: (130, 10), 1: (10,)}, topics=topics)
        assert len(found(trace_of([[0.5, 0.5]], view=view), "hot_topic")) == expected


class TestBundleCounts:
    def test_too_few(self) -> None:
        snapshot = generate(ClusterSpec(brokers=6, namespaces=1, bundles=4, topics=500, topic_skew=0.2), 5)
        finding = only(trace_of([[0.5] * 6], view=snapshot), "bundle_count_too_low")
        assert "has 4 bundles" in finding.evidence
        assert "for example into" in finding.remedy

    def test_enough(self) -> None:
        snapshot = generate(ClusterSpec(brokers=6, namespaces=1, bundles=64, topics=5000, topic_skew=0.2), 5)
        assert not found(trace_of([[0.5] * 6], view=snapshot), "bundle_count_too_low")

    def test_a_heavy_topic_is_not_a_matter_of_bundles(self) -> None:
        view = with_topics(cluster([0.9, 0.1], {0: (50,), 1: (10,)}), (0, 0, 1), (49, 1, 10))
        assert not found(trace_of([[0.9, 0.1]], view=view), "bundle_count_too_low")

    def test_most_of_many_are_empty(self) -> None:
        snapshot = generate(ClusterSpec(brokers=4, namespaces=1, bundles=256, topics=60), 5)
        finding = only(trace_of([[0.5] * 4], view=snapshot), "bundle_count_too_high")
        assert "of 256 bundles hold no topic" in finding.evidence
        assert finding.severity == "low"

    def test_few_are_empty(self) -> None:
        snapshot = generate(ClusterSpec(brokers=4, namespaces=1, bundles=64, topics=900), 5)
        assert not found(trace_of([[0.5] * 4], view=snapshot), "bundle_count_too_high")

    def test_no_namespace_has_both_too_few_and_too_many(self) -> None:
        """One bundle with two busy topics among many empty ones is too large: their number is not the fault."""
        titles = []
        for seed in range(12):
            spec = ClusterSpec(brokers=8, namespaces=1, bundles=40, topics=24, topic_skew=0.4)
            findings = diagnose(trace_of([[0.5] * 8], view=generate(spec, seed)))
            counts = [one for one in findings if one.code.startswith("bundle_count")]
            assert len(counts) <= 1, counts
            titles += [one.title for one in counts]
        assert any(title.endswith("is too large") for title in titles)
        assert any(title.startswith("Too many") for title in titles)
        assert not any(title.startswith("Too few") for title in titles)

    def test_the_fitting_count_holds_its_promise(self) -> None:
        rng = np.random.default_rng(3)
        hashes = rng.integers(0, 2**32, 1000)
        count, busiest = fitting_bundle_count(hashes, np.ones(1000), fair=100, most=128)
        assert count == 32
        assert busiest <= 50
        assert fitting_bundle_count(hashes, np.ones(1000), fair=100, most=8)[0] == 8


class TestSplits:
    def cascade(self, depth: int, cap: int = 128) -> Trace:
        view = cluster([0.5, 0.5])
        names = ["acme/orders/p", *(f"acme/orders/p{i}" for i in range(depth))]
        events = {
            at: [
                Event(
                    a, "b1:8080", "b1:8080", children=(b, f"{b}-rest"), why="30,001 msg/s", at_ms=START_MS, kind="split"
                )
            ]
            for at, (a, b) in enumerate(pairwise(names))
        }
        config = {"loadBalancerNamespaceMaximumBundles": cap}
        return trace_of([[0.5, 0.5]] * max(depth, 1), events, view=view, settings=config)

    def test_children_of_children(self) -> None:
        finding = only(self.cascade(4), "split_cascade")
        assert "children split again up to 4 times: from 2 to 6 bundles" in finding.evidence
        assert finding.severity == "medium"

    def test_up_to_the_cap(self) -> None:
        assert only(self.cascade(1, cap=6), "split_cascade").severity == "high"

    @pytest.mark.parametrize("depth", [0, 1, 2])
    def test_a_split_or_two_are_none(self, depth: int) -> None:
        assert not found(self.cascade(depth), "split_cascade")

    def test_refused(self) -> None:
        events = {0: [Event("acme/orders/p", "b1:8080", why="no positions", at_ms=START_MS, kind="split_refused")]}
        config = {"defaultNamespaceBundleSplitAlgorithm": "specified_positions_divide"}
        finding = only(trace_of([[0.5, 0.5]], events, settings=config), "split_refused")
        assert "every automatic split fails" in finding.remedy
        assert finding.changes == {"defaultNamespaceBundleSplitAlgorithm": "range_equally_divide"}

    @pytest.mark.parametrize("manager", LoadManager)
    def test_a_namespace_with_the_most_bundles(self, manager: LoadManager) -> None:
        spec = ClusterSpec(
            brokers=3, bundles=6, namespaces=1, topics=600, msg_rate_per_s=9_000, topic_skew=0.0, load_manager=manager
        )
        snapshot, limit = generate(spec, 1), {"loadBalancerNamespaceBundleMaxTopics": 60}
        full = {**limit, "loadBalancerNamespaceMaximumBundles": 6}
        finding = only(simulate(snapshot, Scenario(cycles=6, settings=full)), "namespace_full")
        assert len(finding.bundles) == int((snapshot.bundles.topics > 60).sum())
        assert "has 6; loadBalancerNamespaceMaximumBundles is 6" in finding.evidence
        assert finding.changes == {"loadBalancerNamespaceMaximumBundles": 12}
        for room in (limit, {**full, "loadBalancerAutoBundleSplitEnabled": False}):
            assert not found(simulate(snapshot, Scenario(cycles=6, settings=room)), "namespace_full")

    def test_not_refused(self) -> None:
        assert not found(trace_of([[0.5, 0.5]]), "split_refused")

    def test_what_the_engine_cannot_split(self) -> None:
        snapshot = generate(ClusterSpec(brokers=3, bundles=6, namespaces=1, topics=60, msg_rate_per_s=400_000), 1)
        config = {"defaultNamespaceBundleSplitAlgorithm": "specified_positions_divide"}
        assert found(simulate(snapshot, Scenario(cycles=4, settings=config)), "split_refused")

    CUTS: ClassVar[dict[str, Any]] = {
        "defaultNamespaceBundleSplitAlgorithm": "flow_or_qps_equally_divide",
        "loadBalancerNamespaceBundleMaxMsgRate": 4_000,
        "loadBalancerAutoUnloadSplitBundlesEnabled": "false",
    }

    def cut_into_many(self, **settings: Any) -> Trace:
        """An extensible cluster of one bundle, in which many topics have much traffic together."""
        spec = ClusterSpec(
            brokers=2, bundles=1, namespaces=1, topics=30, msg_rate_per_s=15_000, load_manager=LoadManager.EXTENSIBLE
        )
        return simulate(generate(spec, 1), Scenario(cycles=5, settings={**self.CUTS, **settings}))

    def test_more_than_one_boundary_is_an_event_and_a_rate_leaves_one(self) -> None:
        trace = self.cut_into_many()
        refused = [event for event in trace.events if event.kind == "split_refused"]
        assert "boundaries instead of one" in (refused[0].why or "")
        finding = only(trace, "split_refused")
        assert finding.evidence.startswith(f"{len(refused)} splits of 1 bundle refused")
        (name,) = finding.changes
        assert name == "loadBalancerNamespaceBundleMaxMsgRate"
        mended = self.cut_into_many(**finding.changes)
        assert [len(event.children) for event in mended.events if event.kind == "split"] == [2]
        assert not [event for event in mended.events if event.kind == "split_refused"]

    def test_where_the_bandwidth_cuts_no_message_rate_helps(self) -> None:
        finding = only(self.cut_into_many(loadBalancerNamespaceBundleMaxBandwidthMbytes=1), "split_refused")
        assert "No value of loadBalancerNamespaceBundleMaxMsgRate gives" in finding.remedy
        assert finding.changes == {"defaultNamespaceBundleSplitAlgorithm": "range_equally_divide"}


def avg_memory(trace: Trace, hits: int) -> LeaderMemory:
    memory = trace.cycles[0].memory
    counted = dict.fromkeys(trace.start.brokers.name, hits)
    return replace(memory, shedding=memory.shedding.with_state(AvgState(counted, counted)))


class TestAvgHeldBack:
    CONFIG: ClassVar = {SHEDDING: "AvgShedder", PLACEMENT: "AvgShedder"}

    def trace(self, rates: dict[int, tuple[float, ...]], **settings: object) -> Trace:
        view = cluster([0.8, 0.2], {0: (0.4, 0.3, 0.2), 1: (0.1,)}, rates=rates)
        config = {**self.CONFIG, **settings}
        fresh = trace_of([[0.8, 0.2]], view=view, settings=config)
        return trace_of([[0.8, 0.2]], view=view, settings=config, memories=[avg_memory(fresh, 2)])

    def held(self, trace: Trace) -> list[Finding]:
        """What the pattern says, also where the finding of the rule behind it says the same."""
        return list(held_back(Outcome(trace)))

    def test_two_hundred_and_fifty_a_second_are_less_than_a_thousand(self) -> None:
        """The Concepts page's example: 1000 against 500 msg/s, half of the difference may move."""
        (finding,) = self.held(self.trace({0: (400, 300, 300), 1: (500,)}, maxUnloadPercentage=0.5))
        assert "is 250 msg/s (minUnloadMessage: 1000)" in finding.evidence
        assert finding.changes == {"minUnloadMessage": 199}
        assert "b1:8080" in finding.brokers

    def test_the_remedy_helps(self) -> None:
        rates: dict[int, tuple[float, ...]] = {0: (400, 300, 300), 1: (500,)}
        (finding,) = self.held(self.trace(rates, maxUnloadPercentage=0.5))
        assert not self.held(self.trace(rates, maxUnloadPercentage=0.5, **finding.changes))

    def test_enough_to_move(self) -> None:
        assert not self.held(self.trace({0: (40_000, 300, 300), 1: (500,)}))


class TestFightingStrategies:
    def trace(self, destination: str, **settings: object) -> Trace:
        events = {0: [shed("x", "b1:8080", destination, 0)]}
        return trace_of([[0.9, 0.7, 0.2]] * 2, events, settings=settings)

    def test_what_is_shed_goes_to_a_full_broker(self) -> None:
        finding = only(self.trace("b2:8080"), "fighting_strategies")
        assert finding.title == "ThresholdShedder and LeastLongTermMessageRate work against each other"
        assert "1 of 1 shed bundle went to a broker above the average" in finding.evidence
        assert "loadBalancerDistributeBundlesEvenlyEnabled is on" in finding.remedy
        assert set(finding.changes) == {SHEDDING, PLACEMENT}

    def test_what_is_shed_goes_to_an_empty_broker(self) -> None:
        assert not found(self.trace("b3:8080"), "fighting_strategies")

    @pytest.mark.parametrize("side", [SHEDDING, PLACEMENT])
    def test_avg_shedder_on_one_side(self, side: str) -> None:
        finding = only(self.trace("b3:8080", **{side: "AvgShedder"}), "fighting_strategies")
        assert "only one of shedding and placement" in finding.title
        assert finding.severity == "high"

    def test_avg_shedder_on_both_sides(self) -> None:
        both = {SHEDDING: "AvgShedder", PLACEMENT: "AvgShedder"}
        assert not found(self.trace("b2:8080", **both), "fighting_strategies")


class TestStrategyReplaced:
    def test_the_default_strategy_under_the_extensible_load_manager(self) -> None:
        view = cluster([0.5, 0.5], load_manager=LoadManager.EXTENSIBLE)
        finding = only(trace_of([[0.5, 0.5]], view=view), "strategy_replaced")
        assert finding.title.startswith("TransferShedder runs")
        assert (finding.severity, finding.changes) == ("low", {})  # whatever is configured, TransferShedder decides

    @pytest.mark.parametrize("given", ["ThresholdShedder", "org.apache.TransferSheder", "TransferShedder"])
    def test_what_is_configured_does_not_hide_why_transfer_shedder_sheds_nothing(self, given: str) -> None:
        view = cluster([0.93, *[0.68] * 5], load_manager=LoadManager.EXTENSIBLE)
        trace = trace_of([[0.93, *[0.68] * 5]] * 30, view=view, settings={SHEDDING: given})
        assert found(trace, "threshold_never_reached")

    @pytest.mark.parametrize(
        ("version", "runs", "said"),
        [
            ("3.2.3", "OverloadShedder", "Pulsar logs an error and uses OverloadShedder"),
            ("4.2.4", "ThresholdShedder", "a broker of Pulsar 4.2.4 does not start with it"),
        ],
    )
    def test_a_strategy_of_the_extensible_one_under_the_modular(self, version: str, runs: str, said: str) -> None:
        view = cluster([0.5, 0.5])
        given = Settings({SHEDDING: shedder_by_name("TransferShedder").java_class}, release(version))
        view = replace(view, info=replace(view.info, pulsar_version=version), settings=given)
        finding = only(simulate(view, unchanged(version, cycles=1)), "strategy_replaced")
        title = f"{runs} runs instead of the configured strategy"
        assert finding.title == (title if version == "3.2.3" else "Brokers do not start with TransferShedder")
        assert said in finding.evidence
        assert finding.changes == {SHEDDING: shedder_by_name("ThresholdShedder").java_class}

    def test_the_right_one(self) -> None:
        view = cluster([0.5, 0.5], load_manager=LoadManager.EXTENSIBLE)
        trace = trace_of([[0.5, 0.5]], view=view, settings={SHEDDING: "TransferShedder"})
        assert not found(trace, "strategy_replaced")


class TestAll:
    def test_codes_are_told_apart_and_every_pattern_is_explained(self) -> None:
        assert len({pattern.__name__ for pattern in PATTERNS}) == len(PATTERNS)
        assert all((pattern.__doc__ or "").endswith(".") for pattern in PATTERNS)

    def test_the_worst_comes_first(self) -> None:
        severities = [f.severity for f in diagnose(trace_of([[0.9, 0.1]] * 6, TO_AND_FRO))]
        assert severities == sorted(severities, key=("high", "medium", "low").index)

    def test_a_calm_cluster_has_none(self) -> None:
        assert diagnose(trace_of([[0.5, 0.5]] * 6)) == ()

    @pytest.mark.parametrize("load_manager", list(LoadManager))
    @pytest.mark.parametrize("seed", range(3))
    def test_real_simulations_are_read_without_error(self, load_manager: LoadManager, seed: int) -> None:
        spec = ClusterSpec(brokers=4, bundles=30, topics=200, ownership_skew=0.9, load_manager=load_manager)
        trace = simulate(generate(spec, seed), Scenario(cycles=8))
        for finding in diagnose(trace):
            assert finding.evidence.endswith(".")
            assert finding.remedy.endswith(".")
            trace.settings.changed(**finding.changes)
            assert set(finding.changes) <= set(finding.settings)
            assert "nan" not in finding.evidence

    def test_case_is_shared(self) -> None:
        case = Outcome(trace_of([[0.5, 0.5]]))
        assert case.decision(0) is case.decision(0)
        assert isinstance(case.trace.cycles[0].memory.shedding.state, ThresholdState)


@pytest.mark.parametrize(("usage", "severity"), [(0.06, "low"), (0.3, "low"), (0.5, "medium")])
def test_machines_that_differ_are_a_note_where_all_have_room(usage: float, severity: str) -> None:
    made = cluster([usage] * 4, dict.fromkeys(range(4), (0.5,)))
    nic = np.array([100_000.0, *[1_000_000.0] * 3])
    brokers = replace(made.brokers, bandwidth_in_limit_kbit_per_s=nic, bandwidth_out_limit_kbit_per_s=nic)
    outcome = Outcome(simulate(replace(made, brokers=brokers), unchanged("4.2.4", cycles=2)))
    (finding,) = [one for one in diagnose(outcome) if one.code == "unlike_machines"]
    assert finding.severity == severity


@pytest.mark.parametrize(("versions", "older"), [(("4.2.4", "4.0.1", "4.2.4"), 1), (("4.0.1", "4.0.1", "4.2.4"), 2)])
@pytest.mark.parametrize("prefer", [True, False])
def test_where_later_releases_are_preferred_the_others_are_named(
    versions: tuple[str, ...], older: int, *, prefer: bool
) -> None:
    made = cluster([0.5] * 3, dict.fromkeys(range(3), (0.5,)), settings={"preferLaterVersions": prefer})
    made = replace(made, brokers=replace(made.brokers, version=versions))
    (finding,) = [
        one for one in diagnose(Outcome(simulate(made, unchanged("4.2.4", cycles=2)))) if one.code == "unlike_machines"
    ]
    assert ("so that nothing is placed on" in finding.evidence) is prefer
    assert finding.changes == ({"preferLaterVersions": False} if prefer else {})
    if prefer:
        names = [name for name, version in zip(made.brokers.name, versions, strict=True) if version != "4.2.4"]
        assert len(names) == older
        assert all(name in finding.evidence.partition("nothing is placed on")[2] for name in names)


@pytest.mark.parametrize("usage", [0.3, 0.6])
def test_uneven_brokers_are_a_note_where_all_have_room(usage: float) -> None:
    """The score lags behind the usage in both: nobody suffers from it below a third of a broker."""
    trace = trace_of([[usage, 0.01]] * 20, scores=[[0.01, 0.01]] * 20)
    assert only(trace, "ema_lag").severity == ("low" if usage < 1 / 3 else "medium")


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("AvgShedder sheds nothing because of its minimums", "AvgShedder sheds nothing because of its minimums"),
        ("A single hot topic, which no split can divide", "a single hot topic, which no split can divide"),
    ],
)
def test_a_title_within_a_sentence_keeps_the_capital_of_a_name(title: str, said: str) -> None:
    assert within(title) == said


@pytest.mark.parametrize("load_manager", list(LoadManager))
@pytest.mark.parametrize("column", ["registered", "has_load_data"])
@pytest.mark.parametrize("brokers", [1, 2, 4])
def test_a_cluster_that_no_broker_answers_for(load_manager: LoadManager, column: str, brokers: int) -> None:
    spec = ClusterSpec(brokers=brokers, bundles=20, topics=60, load_manager=load_manager, topic_skew=2.0)
    made = generate(spec, 1)
    table = replace(made.brokers, **{column: np.zeros(brokers, dtype=np.bool_)})  # type: ignore[arg-type]
    for finding in diagnose(simulate(replace(made, brokers=table), Scenario(cycles=3))):
        assert "nan" not in finding.evidence
