"""What the leader knew when it decided: averages, preallocated bundles, and the order of tied bundles."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cluster.arrays import frozen
from planner.cluster.hashing import hash_map_buckets
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_bundles
from planner.pulsar.load.top_bundles import StatisticsMap, undecided, with_top_ranks
from planner.pulsar.manager.cycle import next_cycle, the_other_way_round
from planner.pulsar.placement.modular import unreported
from planner.shadow.record import Cause
from planner.shadow.view import at_decision, leader_view, other_orders, statistics_maps, with_reported_order
from tests.app.simulate.traces import START_MS, cluster
from tests.data.shadow.captures import THRESHOLD, at, calmed, follow, moved, since, still


def test_averages_go_on_with_each_report_and_from_when_they_were_written() -> None:
    """Two brokers report twice as much, one after the other; the leader wrote between the two, or did not write."""
    first = cluster((0.3, 0.3, 0.3), {0: (8.0,), 1: (8.0,), 2: (8.0,)})
    rate = first.bundles.msg_rate_in_per_s[0]
    doubled = replace(first.bundles, msg_rate_in_per_s=first.bundles.msg_rate_in_per_s * np.array([2.0, 2.0, 1.0]))
    later = at(replace(first, bundles=doubled), 10)
    times = frozen(first.brokers.updated_at_ms + np.array([4_000, 6_000, 0]))
    later = replace(later, brokers=replace(later.brokers, updated_at_ms=times))

    def averages(view: Snapshot) -> list[float]:
        told = leader_view(first, first, view).bundles.short_term_msg_rate_in_per_s / rate
        return [round(value, 9) for value in told.tolist()]

    assert averages(later) == [1.19, 1.1, 1.0], "two samples, of which the second broker's report brought one"
    wrote = later.bundles.short_term_msg_rate_in_per_s + rate
    written = replace(later, bundles=replace(later.bundles, short_term_msg_rate_in_per_s=wrote))
    for after_ms, told in ((3_000, [2.0, 1.91, 1.81]), (5_000, [2.0, 2.0, 1.9]), (7_000, [2.0, 2.0, 2.0])):
        when_ms = int(first.brokers.updated_at_ms[0]) + after_ms
        assert averages(replace(written, info=replace(written.info, averages_written_ms=when_ms))) == told


@pytest.mark.parametrize(("old_ms", "new_ms", "samples"), [(4_000, 6_000, 1), (6_000, 4_000, 12)])
def test_averages_of_a_bundle_that_moves_begin_anew_when_nobody_reports_it(
    old_ms: int, new_ms: int, samples: int
) -> None:
    first = cluster((0.3, 0.3), {0: (8.0, 4.0), 1: (8.0,)})
    first = replace(first, bundles=replace(first.bundles, long_term_samples=first.bundles.long_term_samples * 0 + 10))
    later = at(moved(first, {first.bundle_names[0]: 1}), 10)
    times = frozen(first.brokers.updated_at_ms + np.array([old_ms, new_ms]))
    view = leader_view(first, first, replace(later, brokers=replace(later.brokers, updated_at_ms=times)))
    assert view.bundles.long_term_samples.tolist() == [samples, 12, 12]


def test_what_the_leader_gave_to_itself_and_does_not_report_counts_on() -> None:
    """As recorded: a bundle without topics makes its own leader the worse choice, until another one is elected."""
    first = cluster((0.8, 0.2, 0.3), {0: (20.0, 10.0, 10.0), 1: (0.001, 0.001), 2: (0.002, 0.002)}, settings=THRESHOLD)
    silent = first.bundle_names[first.bundles.owner.tolist().index(1)]
    has_stats = first.bundles.has_stats & (np.array(first.bundle_names) != silent)
    first = replace(
        first,
        info=replace(first.info, leader="b2:8080"),
        bundles=replace(first.bundles, has_stats=has_stats, has_data=has_stats),
    )
    unknown, _, _ = follow(still(since(first, 0), (10, 40)))
    given = since(first, 0, {silent: 5})
    known, _, of_known = follow(still(given, (10, 40)))
    assert unknown.preallocated == {}
    assert known.preallocated == {silent: "b2:8080"}
    assert {m.destination for m in of_known.prediction.decision.moves} == {"b3:8080"}
    seen, _, _ = follow([*still(since(moved(first, {silent: 2}), 0), (10, 30)), *still(since(first, 0), (30, 50))])
    assert seen.preallocated == {silent: "b2:8080"}, "it was seen to be given"
    again, _, _ = follow([*still(given, (10, 40)), *still(since(first, 35, {silent: 5}), (40, 60))])
    assert again.preallocated == {}, "whoever was elected anew did not give it"
    reported = replace(first, bundles=replace(first.bundles, has_stats=has_stats | True))
    over, _, _ = follow([*still(given, (10, 40)), *still(since(reported, 0, {silent: 5}), (40, 60))])
    assert over.preallocated == {}


def test_a_report_between_a_capture_and_the_decision() -> None:
    """The second broker reported 3 s after the first capture, the third one 8 s after it; the decision came between."""
    shares = {0: (20.0, 10.0), 1: (5.0, 5.0), 2: (5.0, 5.0)}
    first = at(cluster((0.8, 0.2, 0.2), shares, settings=THRESHOLD), 0)
    second = at(cluster((0.8, 0.6, 0.7), {**shares, 1: (9.0, 9.0)}, settings=THRESHOLD), 10)
    moments = np.array([START_MS, START_MS + 3_000, START_MS + 8_000])
    second = replace(second, brokers=replace(second.brokers, updated_at_ms=moments))
    then = at_decision(first, second, START_MS + 5_000)
    used = (then.brokers.cpu_usage_percent / then.brokers.cpu_limit_percent).round(2).tolist()
    assert used == [0.8, 0.6, 0.2]
    sizes = (then.bundles.msg_throughput_in_bytes_per_s / first.bundles.msg_throughput_in_bytes_per_s).tolist()
    assert sizes == pytest.approx([1, 1, 1.8, 1.8, 1, 1])
    assert at_decision(first, second, START_MS + 2_000) is first


def test_the_order_of_a_broker_that_once_had_more_bundles() -> None:
    """Recorded: five equally loaded bundles, in the order of a map that had grown to 32 buckets."""
    recorded = (0x90000000, 0x40000000, 0xF8000000, 0xC8000000, 0x78000000)
    edges = sorted({0, *(low + size for low in recorded for size in (0, 1 << 27) if low + size < 1 << 32)})
    base = cluster((0.3,), {0: (0.001,) * len(edges)}, load_manager=LoadManager.EXTENSIBLE)
    has = np.isin(np.array(edges), recorded)
    table = make_bundles(
        edges,
        high=[*edges[1:], FULL_HIGH],
        namespace=0,
        owner=0,
        has_stats=has,
        msg_throughput_in_bytes_per_s=np.where(has, 1000.0, 0.0),
    )
    now = with_top_ranks(replace(base, namespaces=("globex/shadow",), bundles=table), base.settings)
    name, grew = base.brokers.name[0], StatisticsMap(most=20)
    grown = with_reported_order(now, {name: grew})

    def order(snapshot: Snapshot) -> list[int]:
        ranks = snapshot.bundles.top_rank.tolist()
        return [edges[i] for i in sorted(range(len(edges)), key=ranks.__getitem__) if ranks[i] >= 0]

    assert order(grown) == list(recorded) != order(now)
    read = replace(now, bundles=replace(now.bundles, top_rank=now.bundles.top_rank[::-1].copy()))
    assert with_reported_order(read, {name: grew}) is read, "those that were read stay"
    known = statistics_maps({name: grew}, now)
    came_ms = dict.fromkeys([now.bundle_names[edges.index(low)] for low in recorded], now.info.captured_at_ms)
    assert known == {name: StatisticsMap(0, 20, came_ms)}
    restarted = replace(now, brokers=replace(now.brokers, started_at_ms=now.brokers.started_at_ms + 5))
    assert statistics_maps(known, restarted) == {name: StatisticsMap(5, 5, came_ms)}


def test_equally_loaded_bundles_of_one_bucket_come_in_the_order_in_which_they_were_seen() -> None:
    base = cluster((0.3, 0.3), {0: (0.001,) * 8, 1: (0.001,)}, load_manager=LoadManager.EXTENSIBLE)
    at, other = next(iter(undecided(base, base.settings)))
    owner = base.bundles.owner.copy()
    owner[at] = 1
    away = base.with_columns(bundles=replace(base.bundles, owner=owner))
    later = replace(away.info, captured_at_ms=away.info.captured_at_ms + 1_000)
    back = with_top_ranks(base.with_columns(info=later), base.settings)
    maps = statistics_maps(statistics_maps({}, away), back)
    before, after = back.bundles.top_rank, with_reported_order(back, maps).bundles.top_rank
    assert before[at] > before[other], "lightest first: what is visited first stands last"
    assert after[at] < after[other]
    there = statistics_maps(statistics_maps({}, base), back)
    assert with_reported_order(back, there).bundles.top_rank.tolist() == before.tolist()


def test_equally_loaded_bundles_of_one_bucket_may_leave_in_another_order() -> None:
    def shed(snapshot: Snapshot) -> dict[str, int]:
        moves = next_cycle(snapshot, None, snapshot.settings, 0)[1].moves
        return {m.bundle: snapshot.brokers.position[m.destination or ""] for m in moves}

    alike = [cluster((0.8, 0.2, 0.2), {0: (1.0,) * n, 1: (1.0,), 2: (1.0,)}, settings=THRESHOLD) for n in range(12, 40)]
    tied = next(c for c in alike if shed(c).keys() != shed(the_other_way_round(c)).keys())
    mine, yours = shed(tied), shed(the_other_way_round(tied))
    other = dict.fromkeys(yours, 1)
    _, cycles, _ = follow(still(tied, (0, 60)) + still(calmed(moved(tied, other)), (60, 130)))
    assert {d.bundle: d.cause for d in cycles[0].differences} == dict.fromkeys(mine.keys() ^ yours.keys(), Cause.ORDER)
    _, cycles, _ = follow(still(tied, (0, 60)) + still(calmed(moved(tied, dict.fromkeys(mine, 1))), (60, 130)))
    assert cycles[0].right
    assert not cycles[0].in_time, "it may as well have been the other ones"


def test_pairs_that_only_their_arrival_orders() -> None:
    edges = [n << 26 for n in range(40)]
    base = cluster((0.3,), {0: (0.001,) * 40}, load_manager=LoadManager.EXTENSIBLE)
    pairs = undecided(base, base.settings)
    buckets = hash_map_buckets(base.bundle_name_hashes, 64)
    loads = base.bundles.msg_throughput_in_bytes_per_s
    assert pairs
    assert all(buckets[one] == buckets[other] and loads[one] == loads[other] for one, other in pairs)
    assert len(pairs) == sum(int(buckets[i] == buckets[j]) for i in range(len(edges)) for j in range(i))
    view = with_top_ranks(base, base.settings)
    turned = list(other_orders(view, {}, {base.bundle_names[pairs[0][0]]}))
    ranks = [tuple(other.bundles.top_rank[list(pairs[0])].tolist()) for other in turned]
    assert tuple(view.bundles.top_rank[list(pairs[0])][::-1].tolist()) in ranks


@pytest.mark.parametrize(("decides", "counted"), [("4.2.4", False), ("4.0.8", True)])
def test_a_leader_counts_monitors_that_its_release_does_not_know(
    small: Snapshot, decides: str, *, counted: bool
) -> None:
    names = ("sla-monitor/broker-1:8080", *small.namespaces[1:])
    first = int(np.flatnonzero(small.bundles.namespace == 0)[0])
    leader = small.brokers.name[int(small.bundles.owner[first])]
    nothing: Any = np.zeros(len(small.bundles), dtype=np.bool_)
    quiet = small.with_columns(bundles=replace(small.bundles, has_stats=frozen(nothing)))
    settings = Settings(small.settings.overrides, release(decides))
    seen = replace(quiet, namespaces=names, settings=settings, info=replace(quiet.info, leader=leader))
    assert any(name.startswith(names[0]) for name in unreported(seen)) == counted
