"""The modular leader works out the averages of brokers with each report, and not when a bundle is split."""

from dataclasses import replace

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.load.averages import broker_averages, with_broker_averages
from planner.pulsar.placement.least_long_term_message_rate import long_term_rates
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster import Cluster
from planner.simulate.edits.move_bundle import MoveBundle
from tests.app.simulate.small_runs import run, small


def _told() -> Snapshot:
    """Return a cluster of which the averages of brokers are known, as those of most captures are."""
    snapshot = small()
    return replace(snapshot, brokers=with_broker_averages(snapshot))


def _summed_up(view: Snapshot) -> list[float]:
    sums = broker_averages(view)
    total = sums["long_term_msg_rate_in_per_s"] + sums["long_term_msg_rate_out_per_s"]
    return [float(value) for value in total]


def test_they_follow_bundles_that_move() -> None:
    """They stayed those of the capture, so that a broker that was relieved got no more bundles for all 30 cycles."""
    snapshot = _told()
    names, owner = snapshot.brokers.name, snapshot.bundles.owner
    mine = np.flatnonzero(owner == owner[0]).tolist()
    moves = [MoveBundle(bundle=snapshot.bundle_names[at], destination=names[owner[0] - 1]) for at in mine]
    trace = run(snapshot, *moves, cycles=30)
    first, last = trace.cycles[0].view, trace.cycles[-1].view
    assert long_term_rates(first).tolist() == _summed_up(first)
    assert long_term_rates(last).tolist() == _summed_up(last)
    assert long_term_rates(last)[owner[0]] < long_term_rates(first)[owner[0]] / 2
    end = replace(trace.end, bundles=last.bundles)
    np.testing.assert_array_equal(end.brokers.long_term_msg_rate_in_per_s, last.brokers.long_term_msg_rate_in_per_s)


def test_those_of_a_capture_are_the_same_whether_it_tells_them() -> None:
    told, untold = run(_told(), cycles=30), run(small(), cycles=30)
    assert [event.bundle for event in told.events] == [event.bundle for event in untold.events]
    for one, other in zip(told.cycles, untold.cycles, strict=True):
        np.testing.assert_allclose(long_term_rates(one.view), long_term_rates(other.view), rtol=1e-12)


def test_a_split_changes_them_with_the_next_report_of_that_broker() -> None:
    snapshot = small()
    cluster = Cluster(snapshot, Assumptions(), snapshot.info.load_manager, snapshot.settings)
    before = long_term_rates(cluster.leader_view.view(1)).tolist()
    busiest = int(snapshot.bundles.msg_rate_per_s(term="long_term_").argmax())
    for _ in range(2):
        middle = (int(cluster.traffic.low[busiest]) + int(cluster.traffic.high[busiest])) // 2
        cluster.split(busiest, [middle])
        view = cluster.leader_view.view(2)
        assert not view.bundles.has_data[busiest : busiest + 2].any()
        assert long_term_rates(view).tolist() == before != _summed_up(view)
    mine = int(snapshot.bundles.owner[busiest])
    others = np.flatnonzero(np.arange(len(snapshot.brokers)) != mine)
    later_ms = snapshot.info.captured_at_ms + 20 * MS_PER_MIN
    assert cluster.report(others, later_ms)
    between = cluster.leader_view.view(later_ms)
    assert long_term_rates(between)[mine] == before[mine] > _summed_up(between)[mine]
    assert long_term_rates(between)[others].tolist() == np.array(_summed_up(between))[others].tolist()
    assert cluster.report(np.array([mine]), later_ms)
    after = cluster.leader_view.view(later_ms)
    assert long_term_rates(after).tolist() == _summed_up(after) != before
