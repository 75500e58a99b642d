"""What the machines were asked for during a simulation, moment by moment: the usage that outcomes are measured by."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array, frozen
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE, SHEDDING_INTERVAL_MINUTES
from planner.cluster.once import once
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable
from planner.pulsar.load.usage import uncounted_usage, weighted_usage
from planner.simulate.measures import BrokerSeries, Imbalance, broker_series, imbalance
from planner.simulate.measuring import measured_by, weighs_otherwise
from planner.simulate.trace import Trace
from planner.simulate.usage_model import MOST_USAGE, Standing, UsageModel, at_the_end, standing_of


@dataclass(frozen=True, eq=False)
class Demand:
    """The demand on every broker after the moves of every cycle, by the weights of `measured_by`.

    The state before the first cycle is no moment of it: that is the same whatever is done.

    Attributes:
        brokers: Broker ids.
        at_ms: When each moment was measured: as the next cycle began, and after the last one. Shape (cycles,).
        minutes: How long it lasted. Shape (cycles,).
        usage: Weighted usage (1.0 = 100 %), above 1 where demand exceeds capacity; 0 where a broker is not there.
            Shape (cycles, brokers).
        limit: `loadBalancerBrokerOverloadedThresholdPercentage` of the capture (1.0 = 100 %).
        end: The cluster after the last cycle, with the demand on its machines as their usage.
        standing: How near it is to its limits then, without what weights hide.
        balance: The spread of usage over its brokers then, likewise.
    """

    brokers: tuple[str, ...]
    at_ms: Int64Array
    minutes: FloatArray
    usage: FloatArray
    limit: float
    end: Snapshot
    standing: Standing
    balance: Imbalance

    @property
    def over(self) -> Int64Array:
        """How many brokers are above the limit. Shape (cycles,)."""
        counts: Int64Array = (self.usage > self.limit).sum(axis=1)
        return counts


@once
def demand(trace: Trace) -> Demand:
    """Return the demand on every broker during a simulation of at least one cycle."""
    config, series = measured_by(trace.start.settings, trace.settings), broker_series(trace)
    hidden, end = _hidden(trace.start), at_the_end(trace)
    model = UsageModel.of(end, config, trace.scenario.assumptions)
    used = model.usage(model.served())
    place = {name: at for at, name in enumerate(dict.fromkeys((*series.brokers, *end.brokers.name)))}
    usage = np.zeros((len(trace.cycles), len(place)))
    usage[:-1, : len(series.brokers)] = _as_cycles_begin(trace, series, config, hidden)[1:]
    usage[-1, [place[name] for name in end.brokers.name]] = np.maximum(
        np.where(model.alive, used, 0.0), hidden(end.brokers)
    )
    lasted = np.diff(series.minutes)
    step = float(np.median(lasted)) if len(lasted) else float(config.integer(SHEDDING_INTERVAL_MINUTES))
    return Demand(
        brokers=tuple(place),
        at_ms=frozen(np.append(series.at_ms[1:], series.at_ms[-1])),
        minutes=frozen(np.append(lasted, step)),
        usage=frozen(usage),
        limit=config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100,
        end=end,
        standing=standing_of(model, used),
        balance=imbalance(used[model.alive]),
    )


@once
def demand_series(trace: Trace) -> BrokerSeries:
    """Return every broker as every cycle begins, its usage above 1 where demand exceeds capacity, as `Demand` has it.

    The first cycle begins with the cluster as captured; what the last one moves shows in `Demand` only.
    """
    series = broker_series(trace)
    config = measured_by(trace.start.settings, trace.settings)
    usage = np.where(series.present, _as_cycles_begin(trace, series, config, _hidden(trace.start)), np.nan)
    return replace(series, usage=frozen(usage))


def _hidden(start: Snapshot) -> Callable[[BrokerTable], FloatArray]:
    """Return what gives the usage that weights hide where a machine is too full by it, and -inf elsewhere.

    Where that is so in the capture already, all of it: every outcome is then measured alike.
    """
    config, manager = start.settings, start.info.load_manager
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    captured = bool((uncounted_usage(start.brokers, config, manager) > limit).any())

    def hidden(brokers: BrokerTable) -> FloatArray:
        bare = uncounted_usage(brokers, config, manager)
        return bare if captured else np.where(bare > limit, bare, -np.inf)

    return hidden


def _as_cycles_begin(
    trace: Trace, series: BrokerSeries, config: Settings, hidden: Callable[[BrokerTable], FloatArray]
) -> FloatArray:
    """Return the usage of every broker at the beginning of every cycle, above 1 where demand exceeds capacity.

    Where the scenario weighs resources differently, the brokers' reports by the weights of `measured_by`; with the
    usage that weights hide from load balancing, where a machine is too full by it. Shape (cycles, brokers).
    """
    manager = trace.start.info.load_manager
    column = {name: at for at, name in enumerate(series.brokers)}
    places = [[column[name] for name in cycle.view.brokers.name] for cycle in trace.cycles]
    usage = np.nan_to_num(series.usage)
    if weighs_otherwise(trace.settings, config):
        usage = np.zeros(series.usage.shape)
        for row, place, cycle in zip(usage, places, trace.cycles, strict=True):
            row[place] = weighted_usage(cycle.view.brokers, config, manager)
    for row, place, cycle in zip(usage, places, trace.cycles, strict=True):
        factors = np.where(cycle.state.present & (cycle.state.growth_factor > 0), cycle.state.growth_factor, 1.0)
        asked = 1 / np.maximum(factors, 1 / MOST_USAGE)  # usage is capped at capacity
        row[place] = np.where(asked > 1, np.maximum(row[place], asked), row[place])
        row[place] = np.maximum(row[place], hidden(cycle.view.brokers))
    return usage
