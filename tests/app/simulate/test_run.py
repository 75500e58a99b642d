"""Simulations: what must hold in any of them, and what each kind of edit does."""

import gc
from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.errors import PlannerError
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, make_topics
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster import Cluster
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.change_capacity import ChangeCapacity
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.pin_bundle import PinBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.rolling_restart import RollingRestart
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.set_anti_affinity import SetAntiAffinity
from planner.simulate.edits.set_bundle_count import SetBundleCount
from planner.simulate.edits.set_dispatch_rate import SetDispatchRate
from planner.simulate.edits.set_isolation import SetIsolation
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.leader_view import LeaderView
from planner.simulate.load_model import COUNT_COLUMNS
from planner.simulate.price import price_of
from planner.simulate.run import Simulation, simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace
from planner.workspace import samples as shipped
from tests.app.simulate.small_runs import QUIET, quiet, run, small


@pytest.mark.parametrize("load_manager", LoadManager)
@pytest.mark.parametrize("stops", [0, 1])
@pytest.mark.parametrize("dispatch_limited", [0, 1])
def test_a_simulation_is_gone_as_soon_as_it_is_over(
    load_manager: LoadManager, stops: int, dispatch_limited: int
) -> None:
    """It is 0.1 to 0.4 GiB of a large cluster, and Python looks for circles after so many new objects alone."""
    start = small(load_manager)

    def left() -> int:
        return sum(isinstance(one, LeaderView | Cluster | Simulation) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    before = left()
    try:
        settings = {"dispatchThrottlingRateInMsg": 10} if dispatch_limited else {}
        steps = (Step(ScaleTraffic(factor=1.5)), Step(AddBrokers(at_min=60)))
        trace = simulate(start, Scenario(steps=steps, settings=settings, cycles=3), cancelled=lambda: bool(stops))
        assert trace.complete == (not stops)
        assert left() == before
    finally:
        gc.enable()


def test_a_leader_that_claims_more_samples_than_its_window_has_a_full_one() -> None:
    start = small(seed=3)
    seen = []
    for samples in (10, 2**63 - 1):
        bundles = replace(start.bundles, short_term_samples=np.full(len(start.bundles), samples))
        trace = run(replace(start, bundles=bundles), cycles=3)
        seen.append([[unload.move.bundle for unload in cycle.unloads] for cycle in trace.cycles])
    assert seen[0] == seen[1] != [[], [], []]


def test_nobody_is_asked_when_no_broker_has_anything_to_say() -> None:
    start = small()
    cluster = Cluster(start, Assumptions(), LoadManager.MODULAR, start.settings)
    view, everybody, late = cluster.leader_view, np.arange(len(start.brokers)), 15 * 60_000
    at = int(view.updated_ms.max())
    assert cluster.report(everybody, at + late + 1)
    assert not view.stirs(at + late + 60_000)
    assert view.stirs(at + 2 * late + 2)
    view.note_changes(np.array([2]))
    assert view.stirs(at + late + 60_000)


def owner_of(trace: Trace, bundle: str) -> str:
    at = trace.end.bundle_position[bundle]
    owner = int(trace.end.bundles.owner[at])
    return trace.end.brokers.name[owner] if owner >= 0 else ""


def total_rate(snapshot: Snapshot) -> float:
    return float((snapshot.bundles.msg_rate_in_per_s + snapshot.bundles.msg_rate_out_per_s).sum())


def edits_for(snapshot: Snapshot) -> st.SearchStrategy[Any]:
    broker = st.sampled_from(snapshot.brokers.name)
    bundle = st.sampled_from(snapshot.bundle_names)
    namespace = st.sampled_from(snapshot.namespaces)
    minute = st.sampled_from([0.0, 0.5, 1.0, 3.0])
    return st.one_of(
        st.builds(AddBrokers, count=st.integers(1, 3), at_min=minute, name_prefix=st.sampled_from(["one", "two"])),
        st.builds(RemoveBroker, broker=broker, at_min=minute),
        st.builds(DrainBroker, broker=broker, at_min=minute),
        st.builds(KillBroker, broker=broker, at_min=minute),
        st.builds(RollingRestart, at_min=minute, down_min=st.just(1.0), pause_min=st.just(1.0)),
        st.builds(ChangeCapacity, brokers=st.tuples(broker), cores=st.just(2.0), at_min=minute),
        st.builds(
            ScaleTraffic,
            factor=st.sampled_from([0.0, 0.5, 3.0]),
            shape=st.sampled_from(["step", "growth", "daily", "spike"]),
            duration_min=st.sampled_from([0.0, 4.0]),
            at_min=minute,
        ),
        st.builds(ScaleTraffic, scope=st.just("namespace"), target=namespace, factor=st.just(4.0), at_min=minute),
        st.builds(
            SplitBundle, bundle=bundle, algorithm=st.sampled_from(["", "topic_count_equally_divide"]), at_min=st.just(0)
        ),
        st.builds(SetBundleCount, namespace=namespace, bundles=st.integers(1, 9)),
        st.builds(
            SetIsolation, name=st.just("p"), namespaces=st.tuples(namespace), primary=st.just(("broker-[01].*",))
        ),
        st.builds(SetDispatchRate, target=namespace, msg_per_period=st.sampled_from([-1, 0, 1, 100])),
        st.builds(SetAntiAffinity, namespace=namespace, group=st.sampled_from(["", "g"])),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[Snapshot, Scenario]:
    manager = draw(st.sampled_from(list(LoadManager)))
    snapshot = small(manager, draw(st.integers(0, 20)), bundles=24, topics=draw(st.sampled_from([0, 120])))
    edits = draw(st.lists(edits_for(snapshot), max_size=4))
    config: dict[str, Any] = {
        "loadBalancerNamespaceBundleMaxTopics": draw(st.sampled_from([5, 1000])),
        "loadBalancerBrokerThresholdShedderPercentage": 2,
        "loadBalancerSheddingConditionHitCountThreshold": 0,
        "loadBalancerBrokerLoadTargetStd": 0.05,
    }
    scenario = Scenario(steps=tuple(Step(e) for e in edits), cycles=5, seed=draw(st.integers(0, 9)), settings=config)
    return snapshot, scenario


def attempted(snapshot: Snapshot, scenario: Scenario) -> Trace | None:
    """Return what a scenario comes to; None when its edits contradict one another, which is said in a sentence."""
    try:
        return simulate(snapshot, scenario)
    except PlannerError:
        return None


def nothing_is_lost(trace: Trace) -> None:
    """Assert that the bundles of each namespace tile its hashes, and that topics lie in theirs."""
    table = trace.end.bundles
    for namespace in range(len(trace.end.namespaces)):
        rows = np.flatnonzero(table.namespace == namespace)
        low, high = np.sort(table.low[rows]), np.sort(table.high[rows])
        assert low[0] == 0
        assert high[-1] == FULL_HIGH
        assert (low[1:] == high[:-1]).all()
    assert len(set(trace.end.bundle_names)) == len(table)
    topics = trace.end.topics
    inside = topics.bundle >= 0
    hashes, bundle = topics.hash[inside].astype(np.int64), topics.bundle[inside]
    assert (table.low[bundle] <= hashes).all()
    assert ((hashes < table.high[bundle]) | (table.high[bundle] == FULL_HIGH)).all()


def only_brokers_that_are_there_serve(trace: Trace) -> None:
    """Assert that a broker that is gone has no bundle, and that bundles go where they may."""
    gone = {event.source for event in trace.events if event.kind == "broker_lost"}
    back = {event.source for event in trace.events if event.kind == "broker_added"}
    served = {trace.end.brokers.name[i] for i in trace.end.bundles.owner.tolist() if i >= 0}
    assert not served & (gone - back)
    for event in trace.events:
        assert not event.destination or event.destination in trace.end.brokers.name
        if event.kind in {"shed", "placed"}:
            assert event.destination in event.acceptable
        assert min(event.topics, event.producers, event.consumers, event.msg_rate_per_s) >= 0


def test_cycles_share_what_has_not_changed() -> None:
    """A trace keeps the view of every cycle; of a quiet cluster they are one, but for the averages."""
    views = [cycle.view.bundles for cycle in quiet(small(), cycles=20).cycles]
    for name in (*TRAFFIC_COLUMNS, *COUNT_COLUMNS, "owner", "has_stats", "data_topics", "averages_estimated"):
        assert len({id(getattr(view, name)) for view in views}) <= 2, name


def test_a_trace_does_not_keep_the_bundle_of_each_topic() -> None:
    snapshot = small()
    splits = [SplitBundle(bundle=snapshot.bundle_names[at], at_min=at + 0.5) for at in range(3)]
    trace = run(snapshot, *splits)
    views = [
        view for view in (*(cycle.view for cycle in trace.cycles), trace.end) if view.topics is not snapshot.topics
    ]
    assert len({id(view.topics) for view in views}) > 1
    assert not any({"bundle", "by_bundle"} & set(vars(view.topics)) for view in views)
    for view in views:
        bundle, place = view.topics.bundle, view.topics.hash.astype(np.int64)
        assert (view.bundles.low[bundle] <= place).all()
        assert ((place < view.bundles.high[bundle]) | (view.bundles.high[bundle] == FULL_HIGH)).all()


class TestAnyScenario:
    @given(scenarios())
    @settings(max_examples=120, deadline=None)
    def test_nothing_is_lost_and_only_brokers_that_are_there_serve(self, given_: tuple[Snapshot, Scenario]) -> None:
        trace = attempted(*given_)
        if trace is not None:
            nothing_is_lost(trace)
            only_brokers_that_are_there_serve(trace)

    @given(scenarios())
    @settings(max_examples=60, deadline=None)
    def test_traffic_is_neither_made_nor_lost(self, given_: tuple[Snapshot, Scenario]) -> None:
        snapshot, scenario = given_
        steps = tuple(step for step in scenario.steps if not isinstance(step.edit, ScaleTraffic | SetDispatchRate))
        trace = attempted(snapshot, replace(scenario, steps=steps))
        if trace is not None:
            assert total_rate(trace.end) == pytest.approx(total_rate(snapshot))

    @given(scenarios())
    @settings(max_examples=60, deadline=None)
    def test_the_same_again(self, given_: tuple[Snapshot, Scenario]) -> None:
        trace, again = attempted(*given_), attempted(*given_)
        assert (trace is None) == (again is None)
        if trace is not None and again is not None:
            assert trace.digest() == again.digest()
            for cycle in trace.cycles:
                decided = [(u.move.bundle, u.move.destination) for u in trace.decision(cycle.index).unloads]
                assert decided == [(u.move.bundle, u.move.destination) for u in cycle.unloads]

    @given(scenarios())
    @settings(max_examples=30, deadline=None)
    def test_edits_switched_off_do_nothing(self, given_: tuple[Snapshot, Scenario]) -> None:
        snapshot, scenario = given_
        off = scenario.with_steps(*(replace(step, on=False) for step in scenario.steps))
        assert simulate(snapshot, off).digest() == simulate(snapshot, scenario.with_steps()).digest()


class TestBrokers:
    @pytest.mark.parametrize("manager", list(LoadManager))
    def test_bundles_of_a_broker_that_leaves_are_placed(self, manager: LoadManager) -> None:
        snapshot = small(manager)
        name = snapshot.brokers.name[0]
        before = {snapshot.bundle_names[i] for i in snapshot.bundles_of(0) if snapshot.bundles.topics[i] > 0}
        trace = quiet(snapshot, RemoveBroker(broker=name))
        placed = {event.bundle for event in trace.events if event.kind == "placed"}
        assert placed == before
        assert trace.events[0].kind == "broker_removed"
        assert not any(owner_of(trace, bundle) in {name, ""} for bundle in before)
        assert sum(event.topics for event in trace.events) == snapshot.bundles.topics[snapshot.bundles_of(0)].sum()

    def test_a_dead_broker_is_noticed_when_its_session_ends(self) -> None:
        snapshot = small()
        trace = quiet(snapshot, KillBroker(broker=snapshot.brokers.name[0], at_min=1))
        lost = next(event for event in trace.events if event.kind == "broker_lost")
        assert lost.at_ms - snapshot.info.captured_at_ms == 90_000
        assert all(event.at_ms >= lost.at_ms for event in trace.events)

    def test_a_drained_broker_gives_up_bundle_by_bundle(self) -> None:
        snapshot = small()
        name = snapshot.brokers.name[int(snapshot.bundle_counts().argmax())]
        trace = quiet(snapshot, DrainBroker(broker=name, bundles_per_min=4))
        moments = [event.at_ms for event in trace.events if event.kind == "placed"]
        assert len(set(moments)) == len(moments) > 1
        assert name not in {owner_of(trace, bundle) for bundle in snapshot.bundle_names}

    def test_new_brokers_are_used(self) -> None:
        snapshot = small(ownership_skew=0.2)
        name = snapshot.brokers.name[1]
        trace = quiet(snapshot, AddBrokers(count=2, cores=8), RemoveBroker(broker=name, at_min=1))
        placed = Counter(event.destination for event in trace.events if event.kind == "placed")
        assert {"added-1:8080", "added-2:8080"} <= set(placed)
        assert trace.end.brokers.cpu_limit_percent[trace.end.brokers.position["added-1:8080"]] == 800

    def test_a_new_broker_takes_over_in_shedding(self) -> None:
        snapshot = small(LoadManager.EXTENSIBLE)
        config = {"loadBalancerSheddingConditionHitCountThreshold": 0, "loadBalancerBrokerLoadTargetStd": 0.05}
        trace = run(snapshot, AddBrokers(count=1), cycles=10, settings=config)
        assert "added-1:8080" in {event.destination for event in trace.events if event.kind == "shed"}

    def test_a_rolling_restart_empties_each_broker_in_turn(self) -> None:
        snapshot = small()
        trace = quiet(snapshot, RollingRestart(down_min=1, pause_min=1), cycles=12)
        order = [event.source for event in trace.events if event.kind == "broker_removed"]
        assert order == list(snapshot.brokers.name)
        assert [event.source for event in trace.events if event.kind == "broker_added"] == order

    def test_a_leader_that_leaves_takes_its_memory_along(self) -> None:
        snapshot = small()
        leader = snapshot.brokers.name[2]
        snapshot = replace(snapshot, info=replace(snapshot.info, leader=leader))
        config = {"loadBalancerLoadSheddingStrategy": "ThresholdShedder"}
        trace = run(snapshot, RemoveBroker(broker=leader, at_min=2.5), cycles=5, settings=config)
        assert trace.cycles[2].memory.shedding.state.usage_ema
        assert not trace.cycles[3].memory.shedding.state.usage_ema
        assert any("was the leader" in note for note in trace.notes)

    def test_what_a_leader_may_count_for_itself_is_told(self) -> None:
        snapshot = small()
        leader = snapshot.brokers.name[2]
        used = replace(snapshot, info=replace(snapshot.info, leader=leader))
        idle = np.flatnonzero(snapshot.bundles.owner == 2)[:2]
        has_stats = snapshot.bundles.has_stats.copy()
        has_stats[idle] = False
        unused = replace(used, bundles=replace(used.bundles, has_stats=has_stats))

        def told(start: Snapshot, **changes: Any) -> list[str]:
            return [note for note in run(start, cycles=1, **changes).notes if "without topics" in note]

        (said,) = told(unused)
        assert said.startswith(f"The leader, {leader}, owns bundles without topics (2).")
        assert "(100 msg/s each" in said
        assert not told(used)
        assert not told(replace(unused, info=replace(unused.info, leader="")))
        assert not told(unused, settings={"loadBalancerLoadPlacementStrategy": "LeastResourceUsageWithWeight"})

    def test_a_smaller_machine_is_fuller(self) -> None:
        snapshot = small()
        halved = float(snapshot.brokers.cpu_limit_percent[0]) / 200
        trace = quiet(snapshot, ChangeCapacity(brokers=(snapshot.brokers.name[0],), cores=halved))
        before = quiet(snapshot).cycles[0].state.usage[0]
        assert trace.cycles[0].state.usage[0] == pytest.approx(min(2 * before, 1.0), rel=1e-6)


class TestTraffic:
    def rates(self, edit: ScaleTraffic, cycles: int = 8) -> list[float]:
        trace = quiet(small(), edit, cycles=cycles)
        first = float(quiet(small()).cycles[0].state.msg_rate_per_s.sum())
        return [round(float(cycle.state.msg_rate_per_s.sum()) / first, 3) for cycle in trace.cycles]

    def test_step(self) -> None:
        assert self.rates(ScaleTraffic(factor=3, at_min=2, duration_min=3)) == [1, 1, 3, 3, 3, 1, 1, 1]

    def test_growth(self) -> None:
        assert self.rates(ScaleTraffic(factor=3, shape="growth", duration_min=4)) == [1, 1.5, 2, 2.5, 3, 3, 3, 3]

    def test_spike(self) -> None:
        edit = ScaleTraffic(factor=5, shape="spike", at_min=1, duration_min=4)
        assert self.rates(edit) == [1, 1, 3, 5, 3, 1, 1, 1]

    def test_daily(self) -> None:
        assert self.rates(ScaleTraffic(factor=2, shape="daily", duration_min=4)) == [1, 1.5, 2, 1.5, 1, 1.5, 2, 1.5]

    def test_a_topic_and_its_partitions(self) -> None:
        snapshot = small(partitioned=1.0, idle=0.0)
        name = snapshot.topics.name.to_pylist()[0].rpartition("-partition-")[0]
        mine = [i for i, n in enumerate(snapshot.topics.name.to_pylist()) if n.startswith(f"{name}-partition-")]
        table = snapshot.topics
        rate = (table.msg_rate_in_per_s + table.msg_rate_out_per_s)[mine].sum()
        trace = quiet(snapshot, ScaleTraffic(scope="topic", target=name, factor=3))
        grown = trace.cycles[0].state.msg_rate_per_s.sum() - quiet(snapshot).cycles[0].state.msg_rate_per_s.sum()
        assert len(mine) > 1
        assert grown == pytest.approx(2 * rate)

    def test_reports_show_it_only_after_a_while(self) -> None:
        trace = quiet(small(), ScaleTraffic(factor=3))
        real = trace.cycles[0].state.msg_rate_per_s.sum()
        views = [cycle.view.brokers.msg_rate_in_per_s + cycle.view.brokers.msg_rate_out_per_s for cycle in trace.cycles]
        assert views[0].sum() == pytest.approx(real / 3, rel=1e-3)
        assert views[2].sum() == pytest.approx(real, rel=1e-3)

    def test_averages_lag_further(self) -> None:
        trace = quiet(small(), ScaleTraffic(factor=3), cycles=40)
        known = [float(cycle.view.bundles.long_term_msg_rate_in_per_s.sum()) for cycle in trace.cycles]
        current = float(trace.cycles[-1].view.bundles.msg_rate_in_per_s.sum())
        assert all(later >= earlier - 1e-6 for earlier, later in pairwise(known))
        assert known[0] < known[-1] < current

    def test_later_snapshots_are_followed(self) -> None:
        first = small()
        later = replace(
            first,
            info=replace(first.info, captured_at_ms=first.info.captured_at_ms + 180_000),
            bundles=replace(first.bundles, msg_rate_in_per_s=first.bundles.msg_rate_in_per_s * 2),
        )
        scenario = Scenario(cycles=6, settings=QUIET)
        trace = simulate([first, later], scenario)
        rates = [float(cycle.state.msg_rate_per_s.sum()) for cycle in trace.cycles]
        added = float(first.bundles.msg_rate_in_per_s.sum())
        assert rates[2] == pytest.approx(rates[0])
        assert rates[3] == pytest.approx(rates[0] + added)

    def test_a_namespace_of_later_snapshots_is_left_out_and_said_once(self) -> None:
        whole = small()
        begin, last = whole.info.captured_at_ms, len(whole.namespaces) - 1
        kept = np.flatnonzero(whole.bundles.namespace < last)
        bundles = replace(
            whole.bundles,
            **{column.name: getattr(whole.bundles, column.name)[kept] for column in fields(whole.bundles)},
        )
        first = replace(whole, namespaces=whole.namespaces[:last], bundles=bundles, topics=make_topics())
        later = [
            replace(whole, topics=make_topics(), info=replace(whole.info, captured_at_ms=begin + minute * 60_000))
            for minute in (1, 2)
        ]
        trace = simulate([first, *later], Scenario(cycles=4, settings=QUIET))
        said = [note for note in trace.notes if "is new in the recorded history" in note]
        assert said == [f"{whole.namespaces[last]} is new in the recorded history: its traffic is ignored."]
        rates = [float(cycle.state.msg_rate_per_s.sum()) for cycle in trace.cycles]
        assert rates[3] == pytest.approx(rates[0])

    def test_brokers_of_later_snapshots_come_and_go(self) -> None:
        first = small()
        begin = first.info.captured_at_ms

        def at(minute: int, registered: list[bool]) -> Snapshot:
            brokers = replace(first.brokers, registered=np.array(registered))
            return replace(first, info=replace(first.info, captured_at_ms=begin + minute * 60_000), brokers=brokers)

        without = [True, False, True, True, True]
        trace = simulate([first, at(2, without), at(5, [True] * 5)], Scenario(cycles=8, settings=QUIET))
        name = first.brokers.name[1]
        kinds = [(event.kind, (event.at_ms - begin) // 60_000) for event in trace.events if event.source == name]
        assert ("broker_removed", 2) in kinds
        assert ("broker_added", 5) in kinds
        assert trace.cycles[3].state.bundles[1] == 0


class TestBundles:
    def test_a_split_shares_topics_out_by_their_hash(self) -> None:
        snapshot = small()
        at = int(np.argmax(snapshot.bundles.topics))
        name = snapshot.bundle_names[at]
        trace = quiet(snapshot, SplitBundle(bundle=name, algorithm="topic_count_equally_divide"))
        event = next(event for event in trace.events if event.kind == "split")
        topics = [int(trace.end.bundles.topics[trace.end.bundle_position[child]]) for child in event.children]
        assert sum(topics) == snapshot.bundles.topics[at]
        assert abs(topics[0] - topics[1]) <= 1
        assert {owner_of(trace, child) for child in event.children} == {event.source}

    def test_children_are_placed_when_they_are_unloaded(self) -> None:
        snapshot = small()
        name = snapshot.bundle_names[int(np.argmax(snapshot.bundles.topics))]
        trace = quiet(snapshot, SplitBundle(bundle=name, unload=True))
        event = next(event for event in trace.events if event.kind == "split")
        assert {e.bundle for e in trace.events if e.kind == "placed"} == set(event.children)

    def test_a_refused_split_changes_nothing(self) -> None:
        snapshot = small()
        trace = quiet(snapshot, SplitBundle(bundle=snapshot.bundle_names[0], algorithm="flow_or_qps_equally_divide"))
        assert [event.kind for event in trace.events] == ["split_refused"]
        assert trace.end.bundle_names == snapshot.bundle_names

    @pytest.mark.parametrize("manager", list(LoadManager))
    def test_hot_bundles_split_by_themselves_up_to_the_cap(self, manager: LoadManager) -> None:
        snapshot = small(manager, namespaces=1, bundles=4, topics=400)
        config = {
            "loadBalancerSheddingEnabled": False,
            "loadBalancerNamespaceBundleMaxTopics": 10,
            "loadBalancerNamespaceMaximumBundles": 12,
        }
        trace = run(snapshot, cycles=60, settings=config)
        assert len(trace.end.bundles) == 12

    def test_moved_and_pinned_bundles_are_where_they_were_sent(self) -> None:
        snapshot = small()
        names, brokers = snapshot.bundle_names, snapshot.brokers.name
        config = {"loadBalancerBrokerThresholdShedderPercentage": 1}
        pins = [PinBundle(bundle=name, broker=brokers[0]) for name in names[:5]]
        trace = run(snapshot, *pins, MoveBundle(bundle=names[9], destination=brokers[3]), cycles=10, settings=config)
        assert {owner_of(trace, name) for name in names[:5]} == {brokers[0]}
        moved = next(event for event in trace.events if event.bundle == names[9] and event.kind == "moved")
        assert moved.destination == brokers[3]

    def test_a_namespace_made_anew(self) -> None:
        snapshot = small()
        namespace = snapshot.namespaces[1]
        trace = quiet(snapshot, SetBundleCount(namespace=namespace, bundles=3))
        mine = [name for name in trace.end.bundle_names if name.startswith(f"{namespace}/")]
        assert mine == [
            f"{namespace}/0x00000000_0x55555555",
            f"{namespace}/0x55555555_0xaaaaaaaa",
            f"{namespace}/0xaaaaaaaa_0xffffffff",
        ]
        assert all(owner_of(trace, name) for name in mine)


class TestPolicies:
    @pytest.mark.parametrize("manager", list(LoadManager))
    def test_isolation_moves_what_is_on_other_brokers(self, manager: LoadManager) -> None:
        snapshot = small(manager)
        namespace = snapshot.namespaces[0]
        host = snapshot.brokers.name[3].rpartition(":")[0]
        edit = SetIsolation(name="only", namespaces=(namespace,), primary=(host.replace(".", r"\."),))
        trace = run(snapshot, edit)
        owners = {owner_of(trace, name) for name in trace.end.bundle_names if name.startswith(f"{namespace}/")}
        assert owners <= {snapshot.brokers.name[3], ""}

    def test_a_group_is_spread(self) -> None:
        snapshot = small(brokers=4, ownership_skew=0.0)
        edits = [SetAntiAffinity(namespace=name, group="apart") for name in snapshot.namespaces[:2]]
        recut = [SetBundleCount(namespace=name, bundles=1) for name in snapshot.namespaces[:2]]
        trace = quiet(snapshot, *edits, *recut)
        homes = [owner_of(trace, f"{name}/0x00000000_0xffffffff") for name in snapshot.namespaces[:2]]
        assert len(set(homes)) == 2


class TestDispatchLimits:
    def limited(self, *edits: Any, **settings: Any) -> list[float]:
        """Return the message rates of the brokers under limits, relative to those without."""
        always = {**QUIET, "dispatchThrottlingOnNonBacklogConsumerEnabled": True}
        snapshot = small(fan_out=2.0)
        free = run(snapshot, settings=always).cycles[0].state
        bound = run(snapshot, *edits, settings={**always, **settings}).cycles[0].state
        assert (bound.usage <= free.usage + 1e-12).all()
        busy = free.msg_rate_per_s > 0
        return [float(rate) for rate in bound.msg_rate_per_s[busy] / free.msg_rate_per_s[busy]]

    def test_a_namespace_policy_holds_dispatch_back(self) -> None:
        rates = self.limited(SetDispatchRate(target=small().namespaces[0], msg_per_period=5))
        assert max(rates) <= 1
        assert min(rates) < 0.999

    def test_a_limit_far_above_changes_nothing(self) -> None:
        assert self.limited(SetDispatchRate(target=small().namespaces[0], msg_per_period=2**31 - 1)) == [1.0] * 4

    def test_a_broker_setting_holds_every_topic_back(self) -> None:
        snapshot = small(fan_out=2.0)
        published = float(snapshot.bundles.msg_rate_in_per_s.sum())
        always = {**QUIET, "dispatchThrottlingOnNonBacklogConsumerEnabled": True}
        trace = run(snapshot, settings={**always, "dispatchThrottlingRatePerTopicInMsg": 1})
        rate = float(trace.cycles[0].state.msg_rate_per_s.sum())
        assert published < rate <= published + len(snapshot.topics) + 1e-6

    def test_reports_follow(self) -> None:
        snapshot = small(fan_out=2.0)
        always = {**QUIET, "dispatchThrottlingOnNonBacklogConsumerEnabled": True}
        trace = run(snapshot, settings={**always, "dispatchThrottlingRatePerTopicInMsg": 1})
        assert trace.cycles[3].view.brokers.msg_rate_out_per_s.sum() < snapshot.brokers.msg_rate_out_per_s.sum() / 10


def test_promises_are_judged_by_who_really_serves_their_bundles_after_a_split() -> None:
    snapshot = small()
    cluster = Cluster(snapshot, Assumptions(), LoadManager.MODULAR, snapshot.settings)
    low, high = (int(getattr(snapshot.bundles, end)[0]) for end in ("low", "high"))
    gone, other = snapshot.bundle_names[0], snapshot.bundle_names[-1]
    children = cluster.split(0, [(low + high) // 2])
    cluster.serve(len(cluster.names) - 1, (int(snapshot.bundles.owner[-1]) + 1) % len(snapshot.brokers))
    child = cluster.names[int(children[0])]
    seen = cluster.leader_view.evaluated(2, [other, gone, child])
    assert dict(seen.bundle_position) == {other: 0, child: 1}
    assert seen.bundle_names == (other, child)
    assert seen.bundles.owner.tolist() == [cluster.owner[-1], snapshot.bundles.owner[0]]
    assert seen.bundles.has_stats.tolist() == [False, False], "one has moved, the other one is not reported yet"
    assert seen.bundles.has_data.tolist() == [True, False]


class TestStoredAverages:
    def test_a_bundle_that_is_looked_up_has_its_stored_averages(self) -> None:
        snapshot = small()
        cluster = Cluster(snapshot, Assumptions(), LoadManager.MODULAR, snapshot.settings)
        known = cluster.leader_view
        broker = int(snapshot.bundle_counts().argmax())
        bundle = int(snapshot.bundles_of(broker)[0])
        before = known.view(1).bundles.long_term_msg_rate_in_per_s[bundle]
        cluster.leave(broker)
        assert not known.view(2).bundles.has_data[bundle]
        known.recall(bundle)
        after = known.view(3).bundles
        assert after.has_data[bundle]
        assert after.long_term_msg_rate_in_per_s[bundle] == before

    def test_only_the_busiest_are_written_back(self) -> None:
        snapshot = small()
        config = snapshot.settings.changed(loadBalancerMaxNumberOfBundlesInBundleLoadReport=1)
        cluster = Cluster(snapshot, Assumptions(), LoadManager.MODULAR, config)
        known = cluster.leader_view
        known.write_back()
        for broker in range(len(snapshot.brokers)):
            cluster.leave(broker)
        for bundle in range(len(snapshot.bundles)):
            known.recall(bundle)
        long_term = snapshot.bundles.long_term_samples
        changed = known.view(1).bundles.long_term_samples != long_term
        assert 0 < changed.sum() == 5 < len(snapshot.bundles)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("sample", ["pip-364.json", "transfer-shedder.json"])
def test_an_interval_without_end_is_gone_through_where_something_may_happen(sample: str) -> None:
    snapshot = shipped.load_sample(next(one for one in shipped.samples() if one.file == sample))

    def run(minutes: int) -> Trace:
        return simulate(snapshot, Scenario(cycles=2, settings={"loadBalancerSheddingIntervalMinutes": minutes}))

    days, never = run(5_000), run(2**31 - 1)
    assert [event.bundle for event in never.events] == [event.bundle for event in days.events]
    assert [list(cycle.owner) for cycle in never.cycles] == [list(cycle.owner) for cycle in days.cycles]
    assert not any("long interval" in note for note in days.notes)
    assert any("long interval" in note for note in never.notes)
    assert price_of(snapshot, never.scenario).seconds > 30 * price_of(snapshot, Scenario(cycles=2)).seconds
