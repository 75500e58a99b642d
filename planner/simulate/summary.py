"""A whole simulation in numbers: those of its cycles, with the judge's own wherever the judge measures them."""

from dataclasses import replace

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.simulate.demand import Demand, demand
from planner.simulate.judge import Result
from planner.simulate.load_model import broker_sums
from planner.simulate.measures import Summary, std_over_average, summary_of_cycles
from planner.simulate.trace import Trace


def summary(trace: Trace, result: Result | None = None) -> Summary:
    """Return a simulation of at least one cycle in numbers.

    A moment counts as it is after the moves of its cycle, by the limit and the weights of the capture: the end is after
    the moves of the last cycle, and the state before the first one does not count.

    Args:
        trace: The simulation.
        result: What the judge measured in it, where that is known already.
    """
    found = demand(trace)
    judged = Result.of(trace) if result is None else result
    rates, throughputs = _rates(found)
    return replace(
        summary_of_cycles(trace),
        final_std_percent=judged.deviation_points,
        final_spread_percent=float(found.balance.spread) * 100,
        final_max_over_average=float(found.balance.max_over_average),
        final_msg_rate_std_over_average=std_over_average(rates),
        final_throughput_std_over_average=std_over_average(throughputs),
        peak_usage_percent=judged.highest_percent,
        final_peak_usage_percent=judged.end_peak_percent,
        most_brokers_over_threshold=int(found.over.max()),
        final_brokers_over_threshold=judged.over_at_end,
        overloaded_broker_min=judged.overloaded_broker_min,
        final_headroom_factor=found.standing.growth.factor,
    )


def _rates(found: Demand) -> FloatArray:
    """Return message rate and throughput of the brokers at the end. Shape (2, brokers that tell their load)."""
    table, brokers = found.end.bundles, found.end.brokers
    load = np.stack([table.msg_rate_per_s(), table.throughput_bytes_per_s()])
    return broker_sums(load, table.owner, len(brokers))[:-1, brokers.registered & brokers.has_load_data]
