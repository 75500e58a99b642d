"""What the leader counts itself: its own unloads, manual ones, and those taken back."""

from dataclasses import replace

import numpy as np

from planner.cluster.load_manager import LoadManager
from planner.cluster.relocation import Relocation
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.shedding.transfer import SHEDDER as TRANSFER
from planner.pulsar.shedding.transfer import TransferState
from planner.shadow.follow import shadow_step
from planner.shadow.observe import observe
from planner.shadow.record import Cause, score_of
from planner.shadow.state import ShadowState
from tests.app.simulate.traces import START_MS, cluster
from tests.data.shadow.captures import (
    BUSY,
    STEP_S,
    THRESHOLD,
    at,
    calmed,
    counted,
    follow,
    moved,
    other_bundle,
    since,
    still,
)


def test_what_the_leader_unloads_from_a_broker_that_starts_again_is_the_leaders_alone() -> None:
    """As recorded: the busy broker starts again, and the leader counts those of its bundles that it was to unload."""
    busy = cluster((0.2, 0.8, 0.2), {0: BUSY[1], 1: BUSY[0], 2: BUSY[2]}, settings=THRESHOLD)
    lost = [n for n, o in zip(busy.bundle_names, busy.bundles.owner.tolist(), strict=True) if o == 1]

    def started(snapshot: Snapshot, second: int, unloaded: int) -> Snapshot:
        started_at_ms = np.array([0, START_MS + second * 1000, 0])
        anew = replace(snapshot, brokers=replace(snapshot.brokers, started_at_ms=started_at_ms))
        return since(counted(anew, unloaded), -5)

    _, result = shadow_step(ShadowState(), at(busy, 0), at(busy, 10))
    own = result.prediction.bundles
    assert 0 < len(own) < len(lost)
    gone = started(moved(busy, dict.fromkeys(lost, 2)), 54, len(own))
    _, (cycle, *_), _ = follow(still(started(busy, -50, 0), (0, 60)) + still(gone, (60, 130)))
    assert {u.bundle for u in cycle.actual} == own
    assert {u.bundle for u in cycle.outside} == set(lost) - own
    assert {d.bundle: d.cause for d in cycle.differences} == dict.fromkeys(set(lost) - own, Cause.BROKER_LEFT)


def test_a_leader_that_skipped_before_it_compared_counts_no_hit() -> None:
    """As recorded: a broker without load data; the loads that were compared last look like those of this cycle."""
    counters = TRANSFER.profile.counters
    assert counters is not None
    assert counters.reported is not None
    config = cluster((0.2,), {0: (1.0,)}, load_manager=LoadManager.EXTENSIBLE).settings
    before, after = TransferState(0, 0.3, 0.4), TransferState(1, 0.3, 0.4)
    said = {"load_std": 0.4, "load_avg": 0.3}
    for reason, state in (("NoLoadData", before), ("CoolDown", before), ("HitCount", after), ("NoBundles", after)):
        was = {"Skip/NoLoadData": 2.0, "Skip/CoolDown": 1.0}
        now = {**was, **said, f"Skip/{reason}": was.get(f"Skip/{reason}", 0) + 1}
        assert counters.reported(before, after, was, now, config) is state, reason


def test_what_the_leader_did_not_count_was_unloaded_by_hand(busy: Snapshot, chosen: dict[str, int]) -> None:
    """As recorded: the leader unloads some bundles, and somebody two more seconds later."""
    names = zip(busy.bundle_names, busy.bundles.owner.tolist(), strict=True)
    by_hand = {n: 2 for n, owner in names if owner == 1}
    assert len(by_hand) == 2
    after = counted(moved(busy, {**chosen, **by_hand}), 7 + len(chosen))
    state, (cycle,), _ = follow(still(counted(busy, 7), (0, 60)) + still(after, (60, 120)))
    assert cycle.right
    assert {u.bundle for u in cycle.outside} == set(by_hand)
    assert {d.cause for d in cycle.differences} == {Cause.MANUAL}
    assert state.memory is not None
    assert set(state.memory.shedding.recently_unloaded_bundles) == set(chosen)


def test_what_went_elsewhere_is_what_the_leader_did_not_count() -> None:
    """As recorded: somebody unloads a foreseen bundle to another broker just before the leader unloads the rest."""
    first = cluster((0.9, 0.2, 0.2), {0: (10.0, 9.0, 8.0, 7.0, 5.0), 1: (5.0, 5.0), 2: (45.0,)}, settings=THRESHOLD)
    _, result = shadow_step(ShadowState(), at(first, 0), at(first, 10))
    foreseen = {unload.bundle: unload.acceptable for unload in result.prediction.unloads}
    assert len(foreseen) > 1
    assert set(foreseen.values()) == {("b3:8080",)}
    for by_hand in foreseen:
        after = counted(moved(first, {**dict.fromkeys(foreseen, 2), by_hand: 1}), len(foreseen) - 1)
        _, (cycle,), _ = follow(still(counted(first, 0), (0, 60)) + still(after, (60, 120)))
        assert [unload.bundle for unload in cycle.outside] == [by_hand]
        assert score_of([cycle]).destinations_right == len(foreseen) - 1
        assert cycle.by_hand
        of_it = [(d.what, d.cause) for d in cycle.differences if d.bundle == by_hand]
        assert of_it == [("unloaded", Cause.MANUAL), ("stayed", Cause.MANUAL)]


def test_what_was_unloaded_before_the_cycle_was_due_is_not_the_leaders(busy: Snapshot, chosen: dict[str, int]) -> None:
    """As recorded: somebody unloads a bundle a second before the leader unloads those predicted, and one more."""
    early, own = (n for n, o in zip(busy.bundle_names, busy.bundles.owner.tolist(), strict=True) if o == 1)
    taken = {early: 58.5, own: 60.5} | dict.fromkeys(chosen, 60.3)
    after = counted(since(moved(busy, {**chosen, early: 2, own: 2}), 0, taken), len(chosen) + 1)
    _, cycles, _ = follow([*still(counted(since(busy, 0), 0), (0, 60)), *still(after, (61, 120))])
    by_hand = [d.bundle for d in cycles[0].differences if d.cause is Cause.MANUAL]
    assert by_hand == [early]


def test_a_bundle_that_was_foreseen_and_unloaded_by_hand_long_before(busy: Snapshot, chosen: dict[str, int]) -> None:
    """As recorded: somebody unloads it half a minute too early, and the leader, who counts, the others in time."""
    first, *others = chosen
    early = dict.fromkeys([first], 2)
    later = {**early, **{bundle: chosen[bundle] for bundle in others}}
    by_hand = counted(since(moved(busy, early), 0, {first: 31}), 0)
    after = counted(since(moved(busy, later), 0, {first: 31} | dict.fromkeys(others, 60.5)), len(others))
    captures = [*still(counted(since(busy, 0), 0), (0, 40)), *still(by_hand, (40, 61)), *still(after, (70, 130))]
    _, cycles, _ = follow(captures)
    assert [d.cause for d in cycles[0].differences if d.bundle == first] == [Cause.MANUAL]
    assert cycles[0].from_ms == START_MS + 50_000, "the cycle did not begin with what was done by hand"
    assert {u.bundle for u in cycles[0].outside} == {first}


def test_a_leader_that_counted_nothing_unloaded_nothing(busy: Snapshot, chosen: dict[str, int]) -> None:
    """Somebody unloads the very bundles that the leader would have, which is no cycle of its."""
    after = counted(moved(calmed(busy), chosen), 3)
    state, cycles, _ = follow(still(counted(busy, 3), (0, 60)) + still(after, (60, 130)))
    assert cycles[0].actual == ()
    assert {u.bundle for u in cycles[0].outside} == set(chosen)
    assert state.memory is not None
    assert not state.memory.shedding.recently_unloaded_bundles


def test_what_the_leader_counted_and_nobody_saw_was_taken_back(busy: Snapshot, chosen: dict[str, int]) -> None:
    first, *rest = chosen
    after = counted(moved(busy, {bundle: chosen[bundle] for bundle in rest}), len(chosen))
    _, cycles, _ = follow(still(counted(busy, 0), (0, 60)) + still(after, (60, 130)))
    assert cycles[0].right
    assert [(d.bundle, d.cause) for d in cycles[0].differences] == [(first, Cause.RETURNED)]


def test_a_leader_that_never_unloaded_remembers_no_unloads(busy: Snapshot, chosen: dict[str, int]) -> None:
    second = other_bundle(busy, chosen)
    after = counted(moved(busy, {second: 1}), 1)
    _, cycles, _ = follow(still(counted(busy, 0), (0, 60)) + still(after, (60, 130)))
    assert Cause.MEMORY not in cycles[0].causes


def test_a_cycle_without_an_answer_of_the_leader_is_not_seen_in_time(busy: Snapshot) -> None:
    """The leader was killed before it could decide; its session ends later."""
    _, cycles, _ = follow(still(counted(busy, 0), (0, 60)) + still(counted(busy, None), (60, 140)))
    assert not cycles[0].right
    assert not cycles[0].in_time


def test_the_extensible_leader_says_which_loads_it_compared() -> None:
    """Recorded: the loads that were seen called for shedding, and those that the leader had did not."""
    counters = TRANSFER.profile.counters
    assert counters is not None
    assert counters.reported is not None
    before = TransferState(0, 0.2241, 0.18456)
    seen = TransferState(1, 0.2241, 0.18457)
    config = Settings().changed(loadBalancerBrokerLoadTargetStd=0.1)
    said = {"load_avg": 0.2, "load_std": 0.068}
    assert counters.reported(before, seen, {}, said, config) == TransferState(0, 0.2, 0.068)
    assert counters.reported(before, seen, {}, {"load_std": 0.18456}, config) == before, "it skipped the cycle"
    assert counters.reported(before, seen, {}, {"load_std": 0.18457}, config) is seen
    assert counters.reported(before, seen, {}, {}, config) is seen
    held = TransferState(0, 0.2241, 0.05)
    assert counters.reported(before, held, {}, {"load_std": 0.2}, config).hit_count == 1


def test_what_is_counted_before_it_is_seen_belongs_to_the_next_cycle(busy: Snapshot, chosen: dict[str, int]) -> None:
    """A capture asks for owners first: recorded was a count in the capture that closed the cycle before."""
    _, (stayed,), _ = follow(captures := still(counted(busy, 0), (0, 100)))
    closed = next(n for n in range(2, len(captures) + 1) if follow(captures[:n])[1]) - 1
    counting = at(counted(busy, len(chosen)), STEP_S * closed)
    after = still(counted(moved(busy, chosen), len(chosen)), (STEP_S * (closed + 1), STEP_S * (closed + 8)))
    _, cycles, _ = follow([*captures[:closed], counting, *after])
    assert not stayed.right
    assert {u.bundle for u in cycles[1].actual} == set(chosen)
    assert not any(d.cause is Cause.MANUAL for c in cycles for d in c.differences)


def test_a_leader_that_counts_anew_was_started_again(busy: Snapshot, chosen: dict[str, int]) -> None:
    after = counted(moved(busy, chosen), 5 + len(chosen))
    again = still(counted(moved(busy, chosen), 0), (90, 110))
    state, _, _ = follow([*still(counted(busy, 5), (0, 60)), *still(after, (60, 90)), *again[:1]])
    assert state.memory is None


def test_a_bundle_that_left_and_was_split_since_is_no_fault(busy: Snapshot) -> None:
    """What left in a cycle stays known after the bundle is gone; the count of the leader may put it outside later."""
    seen = observe(at(busy, 0), at(busy, 10), ShadowState())
    bundle = busy.bundle_names[0]
    assert seen.relocations({bundle: "broker-1"})[0].destination == seen.owners[bundle]
    gone = replace(seen, owners={name: owner for name, owner in seen.owners.items() if name != bundle})
    assert gone.relocations({bundle: "broker-1"}) == (Relocation(bundle, "broker-1", ""),)
