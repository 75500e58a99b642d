"""The averages of the modular load manager's leader, and the totals of load reports."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.hashing import hash_map_order, java_string_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.load.averages import (
    DEFAULT_TRAFFIC,
    Traffic,
    broker_averages,
    refresh,
    start,
    update,
    with_broker_averages,
)
from planner.pulsar.load.broker_report import bundle_changes, with_report_totals

rates = st.floats(0, 1e9)


def mean_of(values: list[float], window: int) -> float:
    """The true mean until the window is full, then each value counts one of the window."""
    average = 0.0
    for number, value in enumerate(values, start=1):
        parts = min(number, window)
        average = ((parts - 1) * average + value) / parts
    return average


class TestTimeAverage:
    def test_plain_mean_until_the_window_is_full(self) -> None:
        average = start(1, 3)
        for value in (3.0, 6.0, 9.0):
            average = update(average, Traffic(msg_rate_in_per_s=value))
        assert average.traffic.msg_rate_in_per_s == 6.0
        average = update(average, Traffic(msg_rate_in_per_s=12.0))
        assert average.traffic.msg_rate_in_per_s == (2 * 6.0 + 12.0) / 3
        assert average.samples.tolist() == [3]

    def test_first_sample_replaces_what_was_assumed(self) -> None:
        average = start(2, 10, DEFAULT_TRAFFIC)
        assert np.asarray(average.traffic.msg_rate_out_per_s).tolist() == [50.0, 50.0]
        average = update(average, Traffic(msg_rate_out_per_s=np.array([1.0, 2.0])))
        assert np.asarray(average.traffic.msg_rate_out_per_s).tolist() == [1.0, 2.0]
        assert np.asarray(average.traffic.msg_throughput_in_bytes_per_s).tolist() == [0.0, 0.0]

    @given(st.lists(rates, min_size=1, max_size=30), st.integers(1, 12))
    def test_many_samples(self, values: list[float], window: int) -> None:
        average = start(1, window)
        for value in values:
            average = update(average, Traffic(msg_throughput_out_bytes_per_s=value))
        assert np.asarray(average.traffic.msg_throughput_out_bytes_per_s).tolist() == [mean_of(values, window)]
        assert average.samples.tolist() == [min(len(values), window)]


def cluster() -> Snapshot:
    """Two brokers: bundles of b0, of b1, one that nobody owns, one without a report, one without averages."""
    bounds = (0, 10, 20, 30, 40, 50, 0xFFFFFFFF)
    bundles = make_bundles(
        bounds[:-1],
        high=bounds[1:],
        namespace=0,
        owner=[0, 0, 1, -1, 1, 1],
        has_stats=[True, True, True, True, False, True],
        has_data=[True, True, True, True, True, False],
        averages_estimated=[True, False, False, True, False, True],
        topics=[1, 2, 3, 4, 5, 6],
        producers=[10, 20, 30, 40, 50, 60],
        consumers=[0, 1, 0, 1, 0, 1],
        msg_rate_in_per_s=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        short_term_samples=[10, 4, 1, 1, 1, 7],
        long_term_samples=[10, 1000, 1, 1, 1, 7],
        short_term_msg_rate_in_per_s=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        long_term_msg_rate_in_per_s=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    )
    info = SnapshotInfo("test", LoadManager.MODULAR, 1)
    return Snapshot(info, Settings(), make_brokers(["b0:1", "b1:1"]), ("t/n",), bundles, make_topics())


class TestRefresh:
    def test_each_report_is_one_sample(self) -> None:
        after = refresh(cluster().bundles)
        assert after.short_term_samples.tolist() == [10, 5, 2, 0, 0, 1]
        assert after.long_term_samples.tolist() == [11, 1000, 2, 0, 0, 1]
        short = [(9 * 1.0 + 0.1) / 10, (4 * 2.0 + 0.2) / 5, (3.0 + 0.3) / 2, 0.0, 0.0, 0.6]
        assert after.short_term_msg_rate_in_per_s.tolist() == short
        assert after.long_term_msg_rate_in_per_s[1] == (999 * 2.0 + 0.2) / 1000

    def test_no_number_of_samples_is_too_large(self) -> None:
        before = cluster().bundles
        most = replace(before, short_term_samples=np.full(6, 2**63 - 1), long_term_samples=np.full(6, 2**63 - 1))
        after = refresh(most)
        assert after.short_term_samples.tolist() == [10, 10, 10, 0, 0, 1]
        assert after.short_term_msg_rate_in_per_s.tolist()[:2] == [(9 * 1.0 + 0.1) / 10, (9 * 2.0 + 0.2) / 10]

    def test_unreported_bundles_are_forgotten(self) -> None:
        after = refresh(cluster().bundles)
        assert after.has_data.tolist() == [True, True, True, False, False, True]
        assert after.data_topics.tolist() == [1, 2, 3, 0, 0, 6]

    def test_estimates_stay_marked_unless_they_start_again(self) -> None:
        assert refresh(cluster().bundles).averages_estimated.tolist() == [True, False, False, False, False, False]

    def test_nothing_else_changes(self) -> None:
        before = cluster().bundles
        after = refresh(before)
        assert after.owner is before.owner
        assert after.msg_rate_in_per_s is before.msg_rate_in_per_s
        with pytest.raises(ValueError, match="read-only"):
            after.short_term_samples[0] = 5


class TestBrokerAverages:
    def test_sum_of_the_reported_bundles(self) -> None:
        sums = broker_averages(cluster())
        assert sums["short_term_msg_rate_in_per_s"].tolist() == [3.0, 3.0 + 50.0]
        assert sums["long_term_msg_throughput_out_bytes_per_s"].tolist() == [0.0, 50_000.0]
        assert len(sums) == 8

    def test_what_an_unknown_bundle_counts_may_be_given(self) -> None:
        sums = broker_averages(cluster(), Traffic(msg_rate_in_per_s=7.0))
        assert sums["long_term_msg_rate_in_per_s"].tolist() == [3.0, 3.0 + 7.0]

    def test_written_into_the_table(self) -> None:
        brokers = with_broker_averages(cluster())
        assert brokers.short_term_msg_rate_in_per_s.tolist() == [3.0, 53.0]
        assert brokers.name == ("b0:1", "b1:1")

    def test_added_in_the_order_of_each_brokers_map(self, small: Snapshot) -> None:
        """Sums are equal to the last bit to those of Java, which adds from left to right."""
        sums = broker_averages(small)["long_term_msg_rate_in_per_s"].tolist()
        for broker, total in enumerate(sums):
            owned = small.bundles_of(broker)
            names = [small.bundle_names[i] for i in owned.tolist()]
            visited = owned[hash_map_order(java_string_hashes(names), concurrent=True)]
            expected = 0.0
            for value in small.bundles.long_term_msg_rate_in_per_s[visited].tolist():
                expected += value
            assert total == expected


class TestReport:
    def test_totals(self) -> None:
        totals = with_report_totals(cluster())
        assert totals.topics.tolist() == [3, 9]
        assert totals.producers.tolist() == [30, 90]
        assert totals.consumers.tolist() == [1, 1]
        assert totals.reported_bundles.tolist() == [2, 2]
        assert totals.msg_rate_in_per_s.tolist() == [pytest.approx(0.3), pytest.approx(0.9)]

    def test_clients_are_counted_in_as_many_bits_as_pulsar_has(self) -> None:
        snapshot = cluster()
        most = np.full(len(snapshot.bundles), 2**31 - 1)
        full = replace(snapshot.bundles, producers=most, consumers=most, topics=most)
        totals = with_report_totals(snapshot.with_columns(bundles=full))
        assert totals.producers.tolist() == totals.consumers.tolist() == [-2, -2]
        assert totals.topics.tolist() == [2**32 - 2] * 2, "topics have 64 bits"

    def test_a_broker_without_bundles_has_totals_of_nothing(self) -> None:
        snapshot = cluster().with_owner(np.zeros(6, dtype=np.int32))
        assert with_report_totals(snapshot).reported_bundles.tolist() == [5, 0]
        empty = replace(snapshot, bundles=make_bundles([], high=[], namespace=[]))
        assert with_report_totals(empty).msg_rate_in_per_s.tolist() == [0.0, 0.0]
        assert empty.reported.tolist() == []

    def test_the_order_of_reports_is_worked_out_once(self, small: Snapshot) -> None:
        visited = small.reported
        assert small.with_columns(brokers=with_report_totals(small)).reported is visited
        moved = small.with_owner(small.bundles.owner[::-1].copy())
        assert moved.reported is not visited
        assert moved.bundles.owner[moved.reported].tolist() == sorted(moved.bundles.owner[moved.reported].tolist())

    def test_written_into_the_table(self, small: Snapshot) -> None:
        brokers = with_report_totals(small)
        assert brokers.reported_bundles.tolist() == small.bundle_counts().tolist()
        assert brokers.topics.sum() == small.bundles.topics.sum()
        assert brokers.msg_throughput_out_bytes_per_s == pytest.approx(small.brokers.msg_throughput_out_bytes_per_s)
        assert brokers.cpu_usage_percent is small.brokers.cpu_usage_percent

    def test_gains_and_losses(self) -> None:
        assert bundle_changes(["a", "b"], ["b", "c"]) == (frozenset({"c"}), frozenset({"a"}))
