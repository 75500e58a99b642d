"""Why a cycle differs from its prediction, on captures made by hand."""

from dataclasses import replace

import numpy as np

from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.shadow.follow import shadow_step
from planner.shadow.record import Cause, score_of
from planner.shadow.state import ShadowState
from tests.app.simulate.traces import START_MS, cluster
from tests.data.shadow.captures import (
    AVG,
    BUSY,
    STEP_S,
    THRESHOLD,
    at,
    calmed,
    follow,
    moved,
    other_bundle,
    since,
    still,
)


def test_a_bundle_moved_by_hand_between_cycles_is_no_cycle(busy: Snapshot, chosen: dict[str, int]) -> None:
    after = moved(busy, chosen)
    extra = other_bundle(busy, chosen)
    by_hand = moved(after, {extra: 1})
    _, cycles, _ = follow(still(busy, (0, 60)) + still(calmed(after), (60, 90)) + still(calmed(by_hand), (90, 150)))
    first, second = cycles
    assert first.right
    assert [u.bundle for u in second.outside] == [extra]
    assert extra not in {u.bundle for u in second.actual}
    assert second.causes[0] is Cause.MANUAL


def test_a_bundle_moved_by_hand_during_a_cycle_is_named(busy: Snapshot, chosen: dict[str, int]) -> None:
    extra = next(n for n, o in zip(busy.bundle_names, busy.bundles.owner, strict=True) if o == 1)
    _, cycles, _ = follow(still(busy, (0, 60)) + still(moved(busy, {**chosen, extra: 2}), (60, 120)))
    (cycle,) = cycles
    assert not cycle.right
    assert [(d.bundle, d.what, d.cause) for d in cycle.differences] == [(extra, "unloaded", Cause.MANUAL)]


def test_a_report_that_came_after_the_last_capture() -> None:
    """Until 50 s the first broker is busy, then the second one is; the leader saw that before it decided."""
    shares = {0: (5.0, 5.0), 1: (20.0, 10.0, 10.0, 5.0), 2: (5.0, 5.0)}
    early = cluster((0.3, 0.3, 0.3), shares, settings=THRESHOLD)
    late = cluster((0.2, 0.8, 0.2), shares, settings=THRESHOLD)
    _, result = shadow_step(ShadowState(), at(late, 0), at(late, 10))
    wanted = {m.bundle: late.brokers.position[m.destination or ""] for m in result.prediction.decision.moves}
    _, cycles, _ = follow(still(early, (0, 60)) + still(moved(late, wanted), (60, 120)))
    (cycle,) = cycles
    assert wanted
    assert not cycle.right
    assert cycle.causes == (Cause.LATE_REPORT,)
    assert not cycle.in_time


def test_a_leader_whose_counters_are_ahead() -> None:
    """AvgShedder acts after two hits; this one had one before the first capture."""
    settings = {
        "loadBalancerLoadSheddingStrategy": AVG,
        "loadBalancerLoadPlacementStrategy": AVG,
        "loadBalancerAvgShedderHitCountHighThreshold": 2,
        "minUnloadMessage": 10,
        "minUnloadMessageThroughput": 1,
    }
    skewed = cluster((0.9, 0.1), {0: (20.0, 5.0, 5.0, 5.0), 1: (5.0,)}, settings=settings)
    primed, _, result = follow(still(skewed, (0, 100)))
    moves = result.prediction.decision.moves
    assert moves
    wanted = {m.bundle: skewed.brokers.position[m.destination or ""] for m in moves}
    _, cycles, _ = follow(still(skewed, (0, 30)) + still(moved(skewed, wanted), (30, 80)))
    (cycle,) = cycles
    assert cycle.predicted == ()
    assert cycle.causes == (Cause.MEMORY,)
    assert not cycle.in_time
    assert primed.memory is not None


def test_a_leader_that_remembers_unloads_from_before_the_watch(busy: Snapshot, chosen: dict[str, int]) -> None:
    first = next(iter(chosen))
    settings = busy.settings.changed(loadBalancerSheddingGracePeriodMinutes=0)
    known = replace(busy, settings=settings)
    assert set(chosen) != {other_bundle(busy, chosen)}
    second = other_bundle(known, {first: 0})
    _, cycles, _ = follow(still(busy, (0, 60)) + still(moved(busy, {second: 1}), (60, 130)))
    cycle = cycles[0]
    assert not cycle.right
    assert {d.cause for d in cycle.differences} == {Cause.MEMORY}
    later = [c for c in cycles[1:] if c.acts]
    assert not any(first in {u.bundle for u in c.predicted} for c in later)


def test_an_election_during_a_cycle_is_the_reason(busy: Snapshot, chosen: dict[str, int]) -> None:
    extra = other_bundle(busy, chosen)
    late = [at(moved(busy, {extra: 1}), second, leader="b2:8080") for second in range(60, 130, STEP_S)]
    _, cycles, _ = follow([*still(busy, (0, 60)), *late])
    assert Cause.LEADER in cycles[0].causes
    assert not cycles[0].in_time


def test_changed_settings_are_the_reason(busy: Snapshot, chosen: dict[str, int]) -> None:
    quiet = replace(busy, settings=busy.settings.changed(loadBalancerBrokerThresholdShedderPercentage=90))
    _, cycles, _ = follow(still(quiet, (0, 60)) + still(moved(busy, chosen), (60, 120)))
    assert cycles[0].causes == (Cause.SETTINGS,)
    assert not cycles[0].in_time


def test_bundles_of_a_broker_that_left_were_not_shed(busy: Snapshot) -> None:
    calm = replace(busy, settings=busy.settings.changed(loadBalancerBrokerThresholdShedderPercentage=90))
    orphans = [n for n, o in zip(calm.bundle_names, calm.bundles.owner, strict=True) if o == 2]
    gone = moved(calm, dict.fromkeys(orphans, 1))
    gone = replace(gone, brokers=replace(gone.brokers, registered=np.array([True, True, False])))
    _, cycles, _ = follow(still(calm, (0, 30)) + still(gone, (30, 120)))
    assert {u.bundle for u in cycles[0].outside} == set(orphans)
    assert {d.cause for d in cycles[0].differences} == {Cause.BROKER_LEFT}
    assert cycles[0].right


def test_several_bundles_that_nothing_explains_are_not_called_manual(busy: Snapshot, chosen: dict[str, int]) -> None:
    names = zip(busy.bundle_names, busy.bundles.owner.tolist(), strict=True)
    extra = {n: 2 for n, owner in names if owner == 1}
    assert len(extra) > 1
    _, (cycle,), _ = follow(still(busy, (0, 60)) + still(moved(busy, {**chosen, **extra}), (60, 120)))
    assert {d.cause for d in cycle.differences} == {Cause.UNKNOWN}


def test_a_bundle_that_its_broker_took_again(busy: Snapshot, chosen: dict[str, int]) -> None:
    """Unloaded as predicted; two lookups at once, and the old owner won the lock: its node is new."""
    first, *rest = chosen
    left = {bundle: chosen[bundle] for bundle in rest}
    after = since(moved(busy, left), 0, {first: 61.0})
    _, (cycle,), _ = follow([*still(since(busy, 0), (0, 60)), *still(after, (60, 120))])
    assert cycle.right
    assert [(d.bundle, d.cause) for d in cycle.differences] == [(first, Cause.RETURNED)]
    assert {u.bundle: u.destination for u in cycle.actual}[first] == busy.brokers.name[0]


def test_changed_policies_are_the_reason(busy: Snapshot, chosen: dict[str, int]) -> None:
    """Every namespace was held on its broker until the policy was deleted, seconds before the cycle."""
    hosts = tuple(name.partition(":")[0] for name in busy.brokers.name)
    policy = IsolationPolicy(name="hold", namespaces=(".*",), primary=hosts[:1], min_limit=1)
    held = replace(busy, policies=Policies(isolation=(policy,)))
    _, result = shadow_step(ShadowState(), at(held, 0), at(held, 10))
    assert not result.prediction.unloads
    _, (cycle,), _ = follow(still(held, (0, 60)) + still(moved(busy, chosen), (60, 120)))
    assert cycle.causes == (Cause.POLICIES,)
    assert not cycle.in_time


def test_policies_that_change_while_bundles_are_on_their_way_are_why_they_went_elsewhere() -> None:
    """As recorded: the leader unloads what was predicted, and before the owners are drawn a policy keeps one away."""
    first = cluster((0.9, 0.2, 0.2), {0: (10.0, 9.0, 8.0, 7.0, 5.0), 1: (5.0, 5.0), 2: (45.0,)}, settings=THRESHOLD)
    _, result = shadow_step(ShadowState(), at(first, 0), at(first, 10))
    assert {unload.acceptable for unload in result.prediction.unloads} == {("b3:8080",)}
    foreseen = dict.fromkeys(result.prediction.bundles, 1)
    policy = IsolationPolicy(name="away", namespaces=("other/.*",), primary=("b3",), min_limit=1)
    after = replace(moved(first, foreseen), policies=Policies(isolation=(policy,)))
    _, (cycle,), _ = follow(still(first, (0, 60)) + still(after, (60, 120)))
    assert cycle.right
    assert {d.cause for d in cycle.differences if d.what == "went elsewhere"} == {Cause.POLICIES}


def test_cycles_that_differ_by_manual_unloads_alone_are_counted_apart(busy: Snapshot, chosen: dict[str, int]) -> None:
    extra = next(n for n, o in zip(busy.bundle_names, busy.bundles.owner, strict=True) if o == 1)
    _, cycles, _ = follow(still(busy, (0, 60)) + still(moved(busy, {**chosen, extra: 2}), (60, 120)))
    score = score_of(cycles)
    assert (score.by_hand, score.cycles, score.right) == (1, 0, 0)
    assert "1 differ only by manual unloads" in score.text


def test_bundles_of_a_broker_that_was_killed_and_is_back_were_not_shed(busy: Snapshot) -> None:
    """It reports again only after what it had is given away; until then captures show its last report."""
    quiet = replace(busy, settings=busy.settings.changed(loadBalancerBrokerThresholdShedderPercentage=90))
    lost = [n for n, o in zip(quiet.bundle_names, quiet.bundles.owner, strict=True) if o == 1]
    old = START_MS + 20_000

    def silent(snapshot: Snapshot) -> Snapshot:
        updated = snapshot.brokers.updated_at_ms.copy()
        updated[1] = old
        return replace(snapshot, brokers=replace(snapshot.brokers, updated_at_ms=updated))

    captures = still(since(quiet, -5), (0, 30)) + [silent(s) for s in still(since(quiet, -5), (30, 50))]
    gone = since(moved(quiet, dict.fromkeys(lost, -1)), -5)
    captures += [silent(s) for s in still(gone, (50, 60))] + still(gone, (60, 130))
    _, cycles, _ = follow(captures)
    assert {u.bundle for c in cycles for u in c.outside} == set(lost)
    assert {d.cause for c in cycles for d in c.differences} == {Cause.BROKER_LEFT}
    assert all(c.right for c in cycles)


def test_what_left_with_a_broker_just_before_the_cycle_stayed_for_that_reason() -> None:
    """As recorded: a busy broker is killed; what it had is given away before the leader would have unloaded it."""
    busy = cluster((0.2, 0.8, 0.2), {0: BUSY[1], 1: BUSY[0], 2: BUSY[2]}, settings=THRESHOLD)
    lost = [n for n, o in zip(busy.bundle_names, busy.bundles.owner.tolist(), strict=True) if o == 1]

    def started(snapshot: Snapshot, second: int) -> Snapshot:
        started_at_ms = np.array([0, START_MS + second * 1000, 0])
        return since(replace(snapshot, brokers=replace(snapshot.brokers, started_at_ms=started_at_ms)), -5)

    gone = moved(busy, dict.fromkeys(lost, 2))
    _, cycles, _ = follow(still(started(busy, -50), (0, 60)) + still(started(gone, 54), (60, 130)))
    foreseen = {unload.bundle for unload in cycles[0].predicted}
    stayed = {d.bundle: d.cause for d in cycles[0].differences if d.what == "stayed"}
    assert stayed == dict.fromkeys(foreseen, Cause.BROKER_LEFT) != {}


def test_a_report_that_no_capture_holds_is_late(busy: Snapshot, chosen: dict[str, int]) -> None:
    """The brokers reported twice between two captures, the first time before the decision."""
    extra = {n: 2 for n, owner in zip(busy.bundle_names, busy.bundles.owner.tolist(), strict=True) if owner == 1}
    causes = []
    for every_ms in (5_000, 40_000):
        odd = replace(busy, settings=busy.settings.changed(loadBalancerReportUpdateMinIntervalMillis=every_ms))
        last = since(moved(odd, {**chosen, **extra}), 0)
        _, cycles, _ = follow([*still(since(odd, 0), (0, 60)), *still(last, (65, 130))])
        causes.append({d.cause for d in cycles[0].differences})
    assert causes == [{Cause.LATE_REPORT}, {Cause.UNKNOWN}]
