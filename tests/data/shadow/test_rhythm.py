"""When shadow mode expects the leader to decide, and what a newly elected leader remembers."""

from dataclasses import replace

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.leader import elected
from planner.pulsar.shedding.registry import shedder_by_name
from planner.shadow.follow import shadow_step
from planner.shadow.record import Cause
from planner.shadow.state import ShadowState
from tests.app.simulate.traces import START_MS, cluster
from tests.data.shadow.captures import (
    AVG,
    BUSY,
    STEP_S,
    THRESHOLD,
    UNIFORM,
    at,
    calmed,
    counted,
    every,
    follow,
    moved,
    since,
    still,
)


def test_an_election_empties_the_memory(busy: Snapshot, chosen: dict[str, int]) -> None:
    after = moved(busy, chosen)
    elected = [at(after, second, leader="b2:8080") for second in range(100, 180, STEP_S)]
    state, cycles, result = follow([*still(busy, (0, 60)), *still(after, (60, 100)), *elected])
    assert cycles[0].leader == "b1:8080"
    assert state.leader[0] == "b2:8080"
    assert state.memory is None
    assert not result.rhythm_known
    assert result.due_ms == START_MS + 150_000
    assert result.prediction.before is None


def test_another_strategy_over_a_gap_begins_with_an_empty_memory(busy: Snapshot) -> None:
    """All brokers were started again with another strategy, and nobody captured meanwhile."""
    settings = {"loadBalancerLoadSheddingStrategy": UNIFORM}
    uniform = replace(busy, settings=busy.settings.changed(**settings))
    avg = {"loadBalancerLoadSheddingStrategy": AVG, "loadBalancerLoadPlacementStrategy": AVG}
    restarted = replace(busy, settings=busy.settings.changed(**avg))
    state, cycles, result = follow(still(uniform, (0, 130)) + still(restarted, (300, 400)))
    assert result.prediction.decision.shedder.name == cycles[-1].shedder == "AvgShedder"
    assert type(state.memory.shedding.state).__name__ == "AvgState" if state.memory else True
    assert cycles[0].shedder == "UniformLoadShedder"


def test_the_election_gives_the_rhythm(busy: Snapshot) -> None:
    """Elected 6 s before the first capture: the first cycle is 60 s after the election, and then every 60 s."""
    _, cycles, result = follow(still(since(calmed(busy), -6), (0, 180)))
    assert result.rhythm_known
    assert result.due_ms == START_MS + 174_000
    assert [c.to_ms for c in cycles] == [START_MS + 60_000, START_MS + 120_000]
    state, _, again = follow([*every(since(calmed(busy), -6), 0, 90), *every(since(calmed(busy), 87), 90, 100)])
    assert again.due_ms == START_MS + 147_000
    assert state.memory is None, "the same broker, elected again"


def test_what_was_decided_before_the_last_capture(busy: Snapshot, chosen: dict[str, int]) -> None:
    """The leader decides at 60 s; the first bundle has left at 70 s, and at 65 s the brokers report equal loads."""
    slow = [*every(busy, 0, 65), at(calmed(busy), 65), *every(moved(calmed(busy), chosen), 70, 130)]
    _, (unknown,), result = follow(slow)
    assert {d.cause for d in unknown.differences} == {Cause.EARLIER}
    assert not unknown.in_time
    assert result.due_ms <= START_MS + 125_000, "the rhythm is that of the decision"
    _, (known,), _ = follow([since(s, 1) for s in slow])
    assert known.right, "an election tells when it was due, so that later captures do not count"
    assert not known.in_time, "the loads changed within seconds of the decision"
    assert known.from_ms == START_MS + 60_000


def test_a_series_of_unloads_is_one_cycle() -> None:
    """A slow cluster: one bundle every 15 s, the last one 45 s after the decision and more."""
    many = cluster((0.8, 0.2, 0.2), {**BUSY, 0: (6.0,) * 8}, settings=THRESHOLD)
    _, result = shadow_step(ShadowState(), at(many, 0), at(many, 10))
    wanted = {u.bundle: many.brokers.position[u.destination] for u in result.prediction.unloads}
    assert len(wanted) > 2
    steps = [at(many, second) for second in range(0, 60, 5)]
    for count in range(1, len(wanted) + 1):
        so_far = dict(list(wanted.items())[:count])
        steps += every(moved(many, so_far), 45 + 15 * count, 60 + 15 * count)
    last = steps[-1].info.captured_at_ms // 1000 - START_MS // 1000
    steps += every(moved(calmed(many), wanted), last + 5, last + 40)
    _, cycles, result = follow(steps)
    assert cycles[0].right
    assert {u.bundle for u in cycles[0].actual} == set(wanted)
    assert not [d for c in cycles for d in c.differences]


def test_no_cycle_is_judged_while_shedding_is_off(busy: Snapshot, chosen: dict[str, int]) -> None:
    off = replace(busy, settings=busy.settings.changed(loadBalancerSheddingEnabled=False))
    _, cycles, _ = follow(still(off, (0, 60)) + still(moved(off, chosen), (60, 200)))
    assert cycles == []
    calm = calmed(moved(busy, chosen))
    _, cycles, _ = follow(still(off, (0, 60)) + still(moved(off, chosen), (60, 100)) + still(calm, (100, 170)))
    assert [c.right for c in cycles] == [True]
    assert {u.bundle for u in cycles[0].outside} == set(chosen)
    assert set(cycles[0].causes) == {Cause.MANUAL}


def test_what_the_leader_unloads_as_soon_as_shedding_is_switched_on(busy: Snapshot, chosen: dict[str, int]) -> None:
    """As recorded: shedding is switched on, the leader decides within the second, and somebody unloads a bundle."""
    off = counted(replace(busy, settings=busy.settings.changed(loadBalancerSheddingEnabled=False)), 3)
    by_hand = next(n for n, owner in zip(busy.bundle_names, busy.bundles.owner.tolist(), strict=True) if owner == 1)
    after = counted(moved(busy, {**chosen, by_hand: 2}), 3 + len(chosen))
    state, cycles, _ = follow(still(off, (0, 60)) + still(after, (60, 120)))
    assert {u.bundle for u in cycles[0].actual} == set(chosen)
    assert cycles[0].right
    assert not cycles[0].in_time
    assert {d.bundle: d.cause for d in cycles[0].differences} == {by_hand: Cause.MANUAL}
    assert state.memory is not None
    assert set(state.memory.shedding.recently_unloaded_bundles) == set(chosen)


def test_an_extensible_leader_tells_when_it_decides() -> None:
    """As recorded: cycles come 35 s later than the election says; each counts why it unloads nothing."""
    calm = cluster((0.2, 0.2, 0.2), {0: (5.0, 5.0), 1: (5.0, 5.0), 2: (5.0,)}, load_manager=LoadManager.EXTENSIBLE)
    calm = replace(calm, info=replace(calm.info, leader_since_ms=START_MS))
    skips = {second: counted(calm, 0, **{"Skip/HitCount": (second + 25) // 60}) for second in range(0, 240, STEP_S)}
    _, cycles, result = follow([at(skipped, second) for second, skipped in skips.items()])
    assert [round((cycle.from_ms - START_MS) / 1000) for cycle in cycles] == [30, 90, 150]
    assert all(cycle.right for cycle in cycles)
    assert result.rhythm_known
    assert round((result.due_ms - START_MS) / 1000) in range(210, 276)


def test_an_unload_that_is_forgotten_when_the_leader_decides(busy: Snapshot, chosen: dict[str, int]) -> None:
    """It was inside the grace period at the last capture, and is not when the next cycle is due."""
    grace = replace(busy, settings=busy.settings.changed(loadBalancerSheddingGracePeriodMinutes=1))
    state, _, _ = follow(still(since(grace, 0), (0, 50)))
    leader = elected(shedder_by_name("ThresholdShedder"), LoadManager.MODULAR, grace.settings)
    for age_s, told in ((61, True), (49, False)):
        recent = dict.fromkeys(chosen, START_MS + (60 - age_s) * 1_000)
        memory = replace(leader, shedding=replace(leader.shedding, recently_unloaded_bundles=recent))
        _, result = shadow_step(replace(state, memory=memory), at(since(grace, 0), 40), at(since(grace, 0), 50))
        assert (result.prediction.bundles == set(chosen)) is told


def test_no_cycle_is_judged_between_two_leaders(busy: Snapshot) -> None:
    """The cycle was due when its leader was gone; the next one decides an interval after its election."""
    gone = every(counted(since(busy, -3), None), 55, 75)
    new = [at(counted(since(busy, 72), 0), second, leader="b2:8080") for second in range(75, 100, 5)]
    _, cycles, result = follow([*every(counted(since(busy, -3), 4), 0, 55), *gone, *new])
    assert cycles == []
    assert result.due_ms == START_MS + 132_000
