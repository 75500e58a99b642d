"""Traffic on the network of a machine that is not of its bundles: none of them takes it along."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.cluster.units import KBIT_PER_BYTE
from planner.simulate.assumptions import Assumptions
from planner.simulate.load_model import COPIES, MACHINE, load_of, network_of_bundles
from tests.app.simulate.traces import cluster


def busy(times: float) -> Snapshot:
    """Two brokers that use their networks as many times as the messages of their bundles need."""
    made = cluster((0.5, 0.2))
    carried = made.brokers.throughput_bytes_per_s() * KBIT_PER_BYTE
    used = carried * times
    table = replace(made.brokers, bandwidth_in_usage_kbit_per_s=used, bandwidth_out_usage_kbit_per_s=used)
    return replace(made, brokers=table)


@pytest.mark.parametrize("times", [1.0, 2.0, float(COPIES)])
def test_what_bookies_may_need_goes_along(times: float) -> None:
    made = busy(times)
    own, bundles = load_of(made, Assumptions())
    assert np.allclose(own[1:], 0.0)
    used = made.brokers.bandwidth_out_usage_kbit_per_s
    assert np.allclose(np.bincount(made.bundles.owner, bundles[MACHINE][2]), used)


@pytest.mark.parametrize("times", [4.0, 50.0])
def test_what_is_beyond_that_stays(times: float) -> None:
    """Bundles took all of it along: after three unloads, a broker with a bookie beside it was no longer busy."""
    made = busy(times)
    own, bundles = load_of(made, Assumptions())
    used, most = made.brokers.bandwidth_out_usage_kbit_per_s, network_of_bundles(made.brokers, made.bundles)
    assert np.allclose(own[2], used - most)
    assert np.allclose(np.bincount(made.bundles.owner, bundles[MACHINE][2]), most)


def test_bundles_that_a_report_leaves_out_are_counted_by_the_totals_of_their_broker() -> None:
    made = busy(2.0)
    few = made.bundles.throughput_bytes_per_s() / 100
    thin = replace(
        made,
        bundles=replace(made.bundles, msg_throughput_in_bytes_per_s=few / 2, msg_throughput_out_bytes_per_s=few / 2),
    )
    assert np.allclose(load_of(thin, Assumptions())[0][1:], 0.0)
