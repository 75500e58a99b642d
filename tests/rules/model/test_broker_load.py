"""The load data of the extensible load manager."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.settings import Settings
from planner.cluster.tables import BrokerTable, make_brokers
from planner.pulsar.load import broker_load


def reports(*cpu_percent: float, throughput: float = 100.0) -> BrokerTable:
    return make_brokers(
        [f"b{i}" for i in range(len(cpu_percent))],
        cpu_usage_percent=cpu_percent,
        cpu_limit_percent=100.0,
        msg_throughput_in_bytes_per_s=throughput / 4,
        msg_throughput_out_bytes_per_s=throughput * 3 / 4,
    )


def test_broker_without_a_report_counts_as_full() -> None:
    data = broker_load.fresh(1)
    assert (data.max_resource_usage[0], data.weighted_max_ema[0]) == (1.0, 1.0)
    assert (data.msg_throughput_ema_bytes_per_s[0], data.updated_at_ms[0]) == (0.0, 0)


def test_first_report_replaces_and_later_ones_count_a_tenth() -> None:
    config = Settings()
    data = broker_load.update(broker_load.fresh(1), reports(80.0), config, 1)
    first = data.weighted_max_ema[0]
    assert first == pytest.approx(0.8)
    assert data.msg_throughput_ema_bytes_per_s[0] == 100.0
    data = broker_load.update(data, reports(50.0, throughput=200.0), config, 2)
    assert data.weighted_max_ema[0] == first * 0.9 + (1 - 0.9) * 0.5
    assert data.msg_throughput_ema_bytes_per_s[0] == 100.0 * 0.9 + (1 - 0.9) * 200.0
    assert data.max_resource_usage[0] == 0.5
    assert data.updated_at_ms[0] == 2


def test_clear_resets_the_chosen_brokers_only_and_the_next_report_starts_again() -> None:
    config = Settings()
    data = broker_load.update(broker_load.fresh(2), reports(20.0, 40.0), config, 1)
    data = broker_load.clear(data, np.array([True, False]))
    assert data.weighted_max_ema.tolist() == [1.0, data.max_resource_usage[1]]
    data = broker_load.update(data, reports(60.0, 40.0), config, 2)
    assert data.weighted_max_ema[0] == data.max_resource_usage[0] == pytest.approx(0.6)


def test_reset_broker_has_no_load_data_for_its_peers() -> None:
    brokers = reports(20.0, 40.0)
    data = broker_load.update(broker_load.fresh(2), brokers, Settings(), 5)
    written = broker_load.write(broker_load.clear(data, np.array([False, True])), brokers)
    assert written.has_load_data.tolist() == [True, False]
    assert broker_load.read(written).weighted_max_ema.tolist() == [data.weighted_max_ema[0], 1.0]


def test_unknown_averages_are_assumed_from_the_current_report() -> None:
    brokers = reports(20.0, 40.0)
    assumed = broker_load.averages(brokers, Settings())
    assert assumed.assumed.tolist() == [True, True]
    assert assumed.weighted_max_ema == pytest.approx([0.2, 0.4])
    known = broker_load.write(broker_load.update(broker_load.fresh(2), brokers, Settings(), 5), brokers)
    assert not broker_load.averages(known, Settings()).assumed.any()


@given(st.lists(st.floats(0, 200), min_size=1, max_size=20), st.floats(0, 1))
def test_average_stays_within_what_was_reported(usages: list[float], history: float) -> None:
    config = Settings({"loadBalancerHistoryResourcePercentage": history})
    data = broker_load.fresh(1)
    for now_ms, usage in enumerate(usages, start=1):
        data = broker_load.update(data, reports(usage), config, now_ms)
    low, high = min(usages) / 100, max(usages) / 100
    assert low * (1 - 1e-5) - 1e-9 <= data.weighted_max_ema[0] <= high * (1 + 1e-5) + 1e-9
