"""How far a cluster is from balance, and what it costs to get there."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.simulate.moves import THRASHING_WINDOW_MIN, disconnections, relocations, returns, thrashing_percent
from planner.simulate.trace import Event, EventKind, Stretch, Trace

Quantity: TypeAlias = Literal["usage", "msg_rate_per_s", "throughput_bytes_per_s", "bundles"]
"""What of a broker is looked at, as `BrokerSeries` names it."""

Better: TypeAlias = Literal["lower", "higher", ""]
"""Which values of a measure are the good ones; empty for those that are neither."""

_MS_PER_MIN = 60_000
_S_PER_MIN = 60


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Spread of the broker scores.

    Attributes:
        average: Mean.
        std: Population standard deviation.
        highest: Largest.
        lowest: Smallest.
    """

    average: float
    std: float
    highest: float
    lowest: float

    @property
    def spread(self) -> float:
        """Largest minus smallest."""
        return self.highest - self.lowest

    @property
    def max_over_average(self) -> float:
        """Largest by mean; NaN when the mean is 0."""
        return self.highest / self.average if self.average else float("nan")


def imbalance(scores: FloatArray) -> Imbalance:
    """Measure the spread of scores; unknown (NaN) ones are left out. All NaN when none is known."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        nan = float("nan")
        return Imbalance(nan, nan, nan, nan)
    return Imbalance(float(known.mean()), float(known.std()), float(known.max()), float(known.min()))


@dataclass(frozen=True, eq=False)
class BrokerSeries:
    """Every broker at the beginning of every cycle. Shape of each table: (cycles, brokers).

    Attributes:
        brokers: Broker ids; all that ever were there, in the order in which they came.
        at_ms: When each cycle began. Shape (cycles,).
        present: Whether a broker was up and part of the cluster.
        usage: Weighted usage (1.0 = 100 %); NaN while a broker was not there, as in the tables below.
        cpu_demand_percent: CPU that its traffic asks for, percent of one core.
        msg_rate_per_s: Message rate in + out.
        throughput_bytes_per_s: Throughput in + out.
        bundles: Bundles served.
    """

    brokers: tuple[str, ...]
    at_ms: Int64Array
    present: BoolArray
    usage: FloatArray
    cpu_demand_percent: FloatArray
    msg_rate_per_s: FloatArray
    throughput_bytes_per_s: FloatArray
    bundles: FloatArray

    def of(self, quantity: Quantity) -> FloatArray:
        """Return one of the tables by its name. Shape (cycles, brokers)."""
        tables: Mapping[Quantity, FloatArray] = {
            "usage": self.usage,
            "msg_rate_per_s": self.msg_rate_per_s,
            "throughput_bytes_per_s": self.throughput_bytes_per_s,
            "bundles": self.bundles,
        }
        return tables[quantity]

    @property
    def minutes(self) -> FloatArray:
        """Minutes from the first cycle to each one. Shape (cycles,)."""
        return (self.at_ms - self.at_ms[:1]) / _MS_PER_MIN


_TABLES = ("usage", "cpu_demand_percent", "msg_rate_per_s", "throughput_bytes_per_s", "bundles")


def broker_series(trace: Stretch) -> BrokerSeries:
    """Return how every broker fared over the cycles."""
    place: dict[str, int] = {}
    columns: list[Int64Array] = []
    last_names: tuple[str, ...] | None = None
    for cycle in trace.cycles:
        names = cycle.view.brokers.name
        if names is not last_names and names != last_names:
            columns.append(np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64))
        else:
            columns.append(columns[-1])
        last_names = names
    shape = (len(trace.cycles), len(place))
    present = np.zeros(shape, dtype=np.bool_)
    tables = {name: np.full(shape, np.nan) for name in _TABLES}
    for row, (cycle, column) in enumerate(zip(trace.cycles, columns, strict=True)):
        here = cycle.state.present
        present[row, column] = here
        for name, table in tables.items():
            table[row, column] = np.where(here, getattr(cycle.state, name), np.nan)
    at_ms = np.array([cycle.at_ms for cycle in trace.cycles], dtype=np.int64)
    made: dict[str, Any] = {name: frozen(table) for name, table in tables.items()}
    return BrokerSeries(brokers=tuple(place), at_ms=frozen(at_ms), present=frozen(present), **made)


@dataclass(frozen=True, eq=False)
class ImbalanceSeries:
    """Spread over the brokers at each cycle, in the unit of what was measured. Shape of every column: (cycles,).

    Attributes:
        average: Mean.
        std: Population standard deviation.
        highest: Largest.
        lowest: Smallest.
    """

    average: FloatArray
    std: FloatArray
    highest: FloatArray
    lowest: FloatArray

    @property
    def spread(self) -> FloatArray:
        """Largest minus smallest. Shape (cycles,)."""
        return self.highest - self.lowest

    @property
    def max_over_average(self) -> FloatArray:
        """Largest by mean; NaN where the mean is 0. Shape (cycles,)."""
        ratio: FloatArray = np.full(len(self.average), np.nan)
        np.divide(self.highest, self.average, out=ratio, where=self.average != 0)
        return ratio


def imbalance_series(series: BrokerSeries, quantity: Quantity = "usage") -> ImbalanceSeries:
    """Measure the spread over the brokers that are there, cycle by cycle; NaN where none is.

    Args:
        series: As `broker_series` returns it.
        quantity: What to measure.
    """
    table = series.of(quantity)
    known = np.isfinite(table)
    count = known.sum(axis=1)
    none = np.full(len(table), np.nan)
    average = np.divide(np.where(known, table, 0.0).sum(axis=1), count, out=none.copy(), where=count > 0)
    deviation = np.where(known, table - average[:, np.newaxis], 0.0)
    variance = np.divide((deviation**2).sum(axis=1), count, out=none.copy(), where=count > 0)
    highest = np.where(known, table, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(known, table, np.inf).min(axis=1, initial=np.inf)
    return ImbalanceSeries(
        frozen(average),
        frozen(np.sqrt(variance)),
        frozen(np.where(count > 0, highest, np.nan)),
        frozen(np.where(count > 0, lowest, np.nan)),
    )


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """Who is disconnected. Someone who is disconnected several times counts as often.

    Attributes:
        bundles: Bundles whose topics are closed.
        topics: Topics closed.
        producers: Producers that have to reconnect.
        consumers: Consumers that have to reconnect.
        throughput_bytes_per_s: Throughput in + out that is interrupted.
    """

    bundles: int = 0
    topics: int = 0
    producers: int = 0
    consumers: int = 0
    throughput_bytes_per_s: float = 0.0


def blast_radius(events: Sequence[Event]) -> BlastRadius:
    """Add up who is disconnected.

    Args:
        events: Those that disconnect somebody, as `planner.simulate.moves.disconnections` finds them.
    """
    return BlastRadius(
        bundles=len(events),
        topics=sum(e.topics for e in events),
        producers=sum(e.producers for e in events),
        consumers=sum(e.consumers for e in events),
        throughput_bytes_per_s=math.fsum(e.throughput_bytes_per_s for e in events),
    )


@dataclass(frozen=True, eq=False)
class CycleCounts:
    """What happened in each cycle, up to the next. Shape of every column: (cycles,).

    Attributes:
        shed: Bundles shed by the load balancer.
        moved: Bundles moved by an operator.
        placed: Bundles without owner that were placed.
        splits: Bundles split.
        splits_refused: Splits that Pulsar refused.
        topics: Topics disconnected.
        producers: Producers disconnected.
        consumers: Consumers disconnected.
        shed_throughput_bytes_per_s: Throughput of the bundles shed.
    """

    shed: Int64Array
    moved: Int64Array
    placed: Int64Array
    splits: Int64Array
    splits_refused: Int64Array
    topics: Int64Array
    producers: Int64Array
    consumers: Int64Array
    shed_throughput_bytes_per_s: FloatArray

    @property
    def unloads(self) -> Int64Array:
        """Bundles unloaded, by the load balancer or an operator. Shape (cycles,)."""
        return self.shed + self.moved


def cycle_counts(trace: Stretch) -> CycleCounts:
    """Count the events of each cycle."""
    kinds: dict[EventKind, Int64Array] = {
        kind: np.zeros(len(trace.cycles), dtype=np.int64)
        for kind in ("shed", "moved", "placed", "split", "split_refused")
    }
    people = np.zeros((3, len(trace.cycles)), dtype=np.int64)
    throughput = np.zeros(len(trace.cycles))
    hit = disconnections(trace)
    for at, cycle in enumerate(trace.cycles):
        for event in cycle.events:
            if event.kind in kinds:
                kinds[event.kind][at] += 1
        blast = blast_radius(hit[at])
        people[:, at] = (blast.topics, blast.producers, blast.consumers)
        throughput[at] = math.fsum(e.throughput_bytes_per_s for e in cycle.events if e.kind == "shed")
    return CycleCounts(
        shed=frozen(kinds["shed"]),
        moved=frozen(kinds["moved"]),
        placed=frozen(kinds["placed"]),
        splits=frozen(kinds["split"]),
        splits_refused=frozen(kinds["split_refused"]),
        topics=frozen(people[0]),
        producers=frozen(people[1]),
        consumers=frozen(people[2]),
        shed_throughput_bytes_per_s=frozen(throughput),
    )


def settled_after(trace: Stretch) -> int | None:
    """Return the first cycle after which nothing is shed any more: 0 when nothing is shed at all.

    Returns:
        How many cycles had to pass; None when the last cycle still shed, so that nobody can say.
    """
    shedding = [at for at, cycle in enumerate(trace.cycles, start=1) if any(e.kind == "shed" for e in cycle.events)]
    if not shedding:
        return 0
    return None if shedding[-1] == len(trace.cycles) else shedding[-1]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a simulation.

    Attributes:
        name: Name in `Summary`.
        label: What to call it.
        unit: Its unit; empty for counts.
        better: Which values are the good ones.
        meaning: One sentence.
    """

    name: str
    label: str
    unit: str
    better: Better
    meaning: str


def _measure(label: str, unit: str, better: Better, meaning: str) -> Any:
    return field(metadata={"label": label, "unit": unit, "better": better, "meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A simulation in numbers. `MEASURES` tells the unit and meaning of each, and whether more of it is good."""

    cycles: int = _measure("Cycles", "", "", "Shedding cycles watched.")
    duration_min: float = _measure("Time watched", "min", "", "From the first cycle to the last.")
    settled_after_cycles: int | None = _measure(
        "Settled after", "cycles", "lower", "Cycles until nothing is shed any more; none when the last one still shed."
    )
    settled_after_min: float | None = _measure(
        "Settled after", "min", "lower", "Minutes until the last bundle is shed; none when the last cycle still shed."
    )
    final_std_percent: float = _measure(
        "Deviation of usage at the end", "points", "lower", "Standard deviation over the brokers at the last cycle."
    )
    mean_std_percent: float = _measure(
        "Deviation of usage on average", "points", "lower", "Mean over all cycles of that deviation."
    )
    final_spread_percent: float = _measure(
        "Spread of usage at the end", "points", "lower", "Highest minus lowest usage at the last cycle."
    )
    final_max_over_average: float = _measure(
        "Highest relative to average usage at the end", "", "lower", "1 when all brokers are used alike."
    )
    final_msg_rate_std_over_average: float = _measure(
        "Deviation of message rates at the end", "of the average", "lower", "Standard deviation by mean, over brokers."
    )
    final_throughput_std_over_average: float = _measure(
        "Deviation of throughputs at the end", "of the average", "lower", "Standard deviation by mean, over brokers."
    )
    peak_usage_percent: float = _measure(
        "Highest usage at any time", "%", "lower", "Of the most used broker in the worst cycle."
    )
    final_peak_usage_percent: float = _measure("Highest usage at the end", "%", "lower", "Of the most used broker.")
    shed: int = _measure("Bundles shed", "bundles", "lower", "Unloads by the load balancer.")
    moved: int = _measure("Bundles moved by operators", "bundles", "", "Unloads that the scenario asks for.")
    splits: int = _measure("Bundles split", "bundles", "", "Automatic splits and those that the scenario asks for.")
    splits_refused: int = _measure("Splits refused", "", "lower", "Splits that Pulsar did not carry out.")
    most_shed_in_one_cycle: int = _measure(
        "Most bundles shed in one cycle", "bundles", "lower", "The largest wave of reconnections that shedding made."
    )
    topics_disconnected: int = _measure("Topics disconnected", "", "lower", "Each as often as it was.")
    producers_disconnected: int = _measure("Producers disconnected", "", "lower", "Each as often as it was.")
    consumers_disconnected: int = _measure("Consumers disconnected", "", "lower", "Each as often as it was.")
    most_clients_in_one_cycle: int = _measure(
        "Most clients disconnected in one cycle", "", "lower", "Producers and consumers."
    )
    client_time_lost_min: float = _measure(
        "Time that clients were away",
        "client minutes",
        "lower",
        "Disconnected producers and consumers, times the assumed time that each takes to reconnect.",
    )
    returned_bundles: int = _measure(
        "Bundles that came back", "bundles", "lower", "Bundles shed, and shed back to a broker that they had left."
    )
    thrashing_percent: float = _measure(
        "Thrashing",
        "%",
        "lower",
        f"Share of the shed traffic that left a broker to which shedding had given as much within the last"
        f" {THRASHING_WINDOW_MIN:.0f} minutes.",
    )
    most_brokers_over_threshold: int = _measure(
        "Most brokers overloaded at once",
        "brokers",
        "lower",
        "Usage above loadBalancerBrokerOverloadedThresholdPercentage.",
    )
    final_brokers_over_threshold: int = _measure(
        "Brokers overloaded at the end", "brokers", "lower", "As above, at the last cycle."
    )
    overloaded_broker_min: float = _measure(
        "Time overloaded", "broker minutes", "lower", "Summed over the brokers: minutes above that threshold."
    )
    final_headroom_factor: float = _measure(
        "Capacity headroom at the end",
        "times the traffic",
        "higher",
        "Times that all traffic could grow, nothing being moved, until CPU or network of the first broker is used up;"
        " below 1 its traffic already asks for more than there is. Memory does not count: it stays as it is.",
    )
    unserved: int = _measure(
        "Bundles that nobody could serve", "bundles", "lower", "No broker was allowed to have them."
    )


MEASURES: tuple[Measure, ...] = tuple(Measure(f.name, **f.metadata) for f in fields(Summary))
"""What each number of a `Summary` is."""


def _over_average(series: BrokerSeries, quantity: Quantity) -> float:
    last = imbalance(series.of(quantity)[-1])
    return last.std / last.average if last.average else 0.0


def summary(trace: Stretch) -> Summary:
    """Return a simulation in numbers.

    The state of the brokers is that at the beginning of a cycle, so what the last cycle moves does not show in it.

    Args:
        trace: With at least one cycle.
    """
    series, counts = broker_series(trace), cycle_counts(trace)
    spread = imbalance_series(series)
    last = imbalance(series.usage[-1])
    limit = trace.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage") / 100
    with np.errstate(invalid="ignore"):
        over = (series.usage > limit).sum(axis=1)
    end = trace.cycles[-1].state
    clients = int(counts.producers.sum() + counts.consumers.sum())
    steps = np.diff(series.minutes, append=series.minutes[-1:])
    moves = relocations(trace)
    settled = settled_after(trace)
    back = {entry.bundle for entry in returns(moves) if entry.by_shedding}
    return Summary(
        cycles=len(trace.cycles),
        duration_min=float(series.minutes[-1]),
        settled_after_cycles=settled,
        settled_after_min=None if settled is None else float(series.minutes[max(settled - 1, 0)]),
        final_std_percent=last.std * 100,
        mean_std_percent=float(np.nanmean(spread.std)) * 100,
        final_spread_percent=last.spread * 100,
        final_max_over_average=last.max_over_average,
        final_msg_rate_std_over_average=_over_average(series, "msg_rate_per_s"),
        final_throughput_std_over_average=_over_average(series, "throughput_bytes_per_s"),
        peak_usage_percent=float(np.nanmax(spread.highest)) * 100,
        final_peak_usage_percent=last.highest * 100,
        shed=int(counts.shed.sum()),
        moved=int(counts.moved.sum()),
        splits=int(counts.splits.sum()),
        splits_refused=int(counts.splits_refused.sum()),
        most_shed_in_one_cycle=int(counts.shed.max()),
        topics_disconnected=int(counts.topics.sum()),
        producers_disconnected=int(counts.producers.sum()),
        consumers_disconnected=int(counts.consumers.sum()),
        most_clients_in_one_cycle=int((counts.producers + counts.consumers).max()),
        client_time_lost_min=clients * trace.scenario.assumptions.reconnection_s / _S_PER_MIN,
        returned_bundles=len(back),
        thrashing_percent=thrashing_percent(moves),
        most_brokers_over_threshold=int(over.max()),
        final_brokers_over_threshold=int(over[-1]),
        overloaded_broker_min=float((over * steps).sum()),
        final_headroom_factor=float(end.growth_factor[end.present].min(initial=math.inf)),
        unserved=len({e.bundle for e in trace.events if e.kind == "unserved"}),
    )


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One measure of several simulations.

    Attributes:
        measure: Which.
        values: Its value in each; None where there is none.
        best: Whether each value is the best, or as good as it; all False when they are all alike, or none is better.
    """

    measure: Measure
    values: tuple[float | None, ...]
    best: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several simulations side by side.

    Attributes:
        names: What to call each.
        rows: One for each of `MEASURES`.
        settings: Settings that are not the same in all, by name, with the value in each.
    """

    names: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    settings: Mapping[str, tuple[object, ...]]


_ALIKE = 1e-9


def _best(values: Sequence[float | None], better: Better) -> tuple[bool, ...]:
    known = [value for value in values if value is not None and not math.isnan(value)]
    if not better or not known:
        return (False,) * len(values)
    top = min(known) if better == "lower" else max(known)
    good = tuple(v is not None and (v == top or math.isclose(v, top, rel_tol=_ALIKE, abs_tol=_ALIKE)) for v in values)
    return (False,) * len(values) if all(good) else good


def compare_summaries(summaries: Mapping[str, Summary]) -> tuple[ComparisonRow, ...]:
    """Put numbers of several simulations side by side.

    Args:
        summaries: By what to call each.
    """
    rows = []
    for measure in MEASURES:
        values = tuple(getattr(one, measure.name) for one in summaries.values())
        rows.append(ComparisonRow(measure, values, _best(values, measure.better)))
    return tuple(rows)


def compare(traces: Mapping[str, Trace], summaries: Mapping[str, Summary] | None = None) -> Comparison:
    """Put several simulations side by side, the best of each measure marked.

    Args:
        traces: By what to call each.
        summaries: What `summary` returns for each, where that is known already.
    """
    known = summaries if summaries is not None else {name: summary(trace) for name, trace in traces.items()}
    rows = compare_summaries(known)
    every = [trace.settings for trace in traces.values()]
    changed = sorted({name for settings in every for name in settings.overrides})
    differing = {name: tuple(settings[name] for settings in every) for name in changed}
    settings = {name: values for name, values in differing.items() if any(v != values[0] for v in values)}
    return Comparison(tuple(traces), rows, settings)
