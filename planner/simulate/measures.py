"""How far a cluster is from balance, and what it costs to get there."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.files import packaged_rows
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.units import MS_PER_MIN, S_PER_MIN
from planner.simulate.event import Event, EventKind
from planner.simulate.moves import THRASHING_WINDOW_MIN, disconnections, relocations, returns, thrashing_percent
from planner.simulate.trace import Stretch, Trace

Quantity: TypeAlias = Literal["usage", "msg_rate_per_s", "throughput_bytes_per_s", "bundles"]
"""Quantities of a broker, as `BrokerSeries` names them."""

Better: TypeAlias = Literal["lower", "higher", ""]
"""Which values of a measure are the good ones; empty for those that are neither."""


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
        table: FloatArray = getattr(self, quantity)
        return table

    @property
    def minutes(self) -> FloatArray:
        """Minutes from the first cycle to each one. Shape (cycles,)."""
        return (self.at_ms - self.at_ms[:1]) / MS_PER_MIN


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
class Imbalance:
    """Spread over the brokers, in the unit of what was measured. Shape of every value: (cycles,), or () for one moment.

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
        """Largest minus smallest. Shape as the others."""
        return self.highest - self.lowest

    @property
    def max_over_average(self) -> FloatArray:
        """Largest by mean; NaN where the mean is 0. Shape as the others."""
        ratio: FloatArray = np.full_like(self.average, np.nan)
        return np.divide(self.highest, self.average, out=ratio, where=self.average != 0)


def imbalance(scores: FloatArray) -> Imbalance:
    """Measure the spread of scores; unknown (NaN) ones are left out. All NaN when none is known."""
    known = scores[np.isfinite(scores)]
    found: tuple[Any, ...] = (np.float64("nan"),) * 4
    if len(known):
        found = known.mean(), known.std(), known.max(), known.min()
    return Imbalance(*found)


def _of_known(measure: Callable[[FloatArray], Any], values: FloatArray) -> float:
    """Return a measure of what is known of some values; NaN where nothing is, as no broker was there."""
    return float(measure(values)) if np.isfinite(values).any() else float("nan")


def imbalance_series(series: BrokerSeries, quantity: Quantity = "usage") -> Imbalance:
    """Measure the spread of a quantity over the brokers that are there, cycle by cycle; NaN where none is."""
    table = series.of(quantity)
    known = np.isfinite(table)
    count = known.sum(axis=1)
    none = np.full(len(table), np.nan)
    average = np.divide(np.where(known, table, 0.0).sum(axis=1), count, out=none.copy(), where=count > 0)
    deviation = np.where(known, table - average[:, np.newaxis], 0.0)
    variance = np.divide((deviation**2).sum(axis=1), count, out=none.copy(), where=count > 0)
    highest = np.where(known, table, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(known, table, np.inf).min(axis=1, initial=np.inf)
    return Imbalance(
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
    """Add up who is disconnected by events as `planner.simulate.moves.disconnections` finds them."""
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


def cycle_counts(trace: Stretch) -> CycleCounts:
    """Count the events of each cycle."""
    counted: tuple[EventKind, ...] = ("shed", "moved", "placed", "split", "split_refused")
    rows: list[tuple[float, ...]] = []
    for cycle, hit in zip(trace.cycles, disconnections(trace), strict=True):
        kinds, blast = Counter(event.kind for event in cycle.events), blast_radius(hit)
        shed = math.fsum(e.throughput_bytes_per_s for e in cycle.events if e.kind == "shed")
        rows.append((*(kinds[kind] for kind in counted), blast.topics, blast.producers, blast.consumers, shed))
    *counts, throughput = np.array(rows, dtype=np.float64).reshape(-1, len(fields(CycleCounts))).T.copy()
    columns: list[Any] = [*(frozen(column.astype(np.int64)) for column in counts), frozen(throughput)]
    return CycleCounts(*columns)


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
        of_moves: Whether it is what moving costs, so that whoever moves nothing is the best.
        meaning: One sentence.
    """

    name: str
    label: str
    unit: str
    better: Better
    of_moves: bool
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A simulation in numbers. `MEASURES` tells the unit and meaning of each, and whether more of it is good."""

    cycles: int
    duration_min: float
    settled_after_cycles: int | None
    settled_after_min: float | None
    final_std_percent: float
    mean_std_percent: float
    final_spread_percent: float
    final_max_over_average: float
    final_msg_rate_std_over_average: float
    final_throughput_std_over_average: float
    peak_usage_percent: float
    final_peak_usage_percent: float
    shed: int
    moved: int
    splits: int
    splits_refused: int
    most_shed_in_one_cycle: int
    topics_disconnected: int
    producers_disconnected: int
    consumers_disconnected: int
    most_clients_in_one_cycle: int
    client_time_lost_min: float
    returned_bundles: int
    thrashing_percent: float
    most_brokers_over_threshold: int
    final_brokers_over_threshold: int
    overloaded_broker_min: float
    final_headroom_factor: float
    unserved: int


def _measure(row: Mapping[str, str]) -> Measure:
    better: Mapping[str, Better] = {one: one for one in get_args(Better)}
    meaning = row["meaning"].format(window_min=THRASHING_WINDOW_MIN)
    return Measure(row["name"], row["label"], row["unit"], better[row["better"]], row["of_moves"] == "yes", meaning)


MEASURES: tuple[Measure, ...] = tuple(map(_measure, packaged_rows("planner.simulate", "measures.csv")))
"""Description of each number of a `Summary`."""


def std_over_average(values: FloatArray) -> float:
    """Return the standard deviation of one value for each broker, divided by their mean; 0 where that is 0."""
    spread = imbalance(values)
    return float(spread.std / spread.average) if spread.average else 0.0


def summary_of_cycles(trace: Stretch) -> Summary:
    """Return at least one cycle in numbers, by the settings in force; see `planner.simulate.summary` for a simulation.

    The state of the brokers is that at the beginning of a cycle, so what the last cycle moves does not show in it.
    """
    series, counts = broker_series(trace), cycle_counts(trace)
    spread = imbalance_series(series)
    last = imbalance(series.usage[-1])
    limit = trace.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
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
        final_std_percent=float(last.std) * 100,
        mean_std_percent=_of_known(np.nanmean, spread.std) * 100,
        final_spread_percent=float(last.spread) * 100,
        final_max_over_average=float(last.max_over_average),
        final_msg_rate_std_over_average=std_over_average(series.msg_rate_per_s[-1]),
        final_throughput_std_over_average=std_over_average(series.throughput_bytes_per_s[-1]),
        peak_usage_percent=_of_known(np.nanmax, spread.highest) * 100,
        final_peak_usage_percent=float(last.highest) * 100,
        shed=int(counts.shed.sum()),
        moved=int(counts.moved.sum()),
        splits=int(counts.splits.sum()),
        splits_refused=int(counts.splits_refused.sum()),
        most_shed_in_one_cycle=int(counts.shed.max()),
        topics_disconnected=int(counts.topics.sum()),
        producers_disconnected=int(counts.producers.sum()),
        consumers_disconnected=int(counts.consumers.sum()),
        most_clients_in_one_cycle=int((counts.producers + counts.consumers).max()),
        client_time_lost_min=clients * trace.scenario.assumptions.reconnection_s / S_PER_MIN,
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

    @property
    def by_name(self) -> Mapping[str, ComparisonRow]:
        """The rows by the names of their measures."""
        return {row.measure.name: row for row in self.rows}

    def of(self, measure: str) -> tuple[float | None, ...]:
        """Return the values of a measure by its name, one for each simulation."""
        return self.by_name[measure].values

    def among(self, places: Sequence[int]) -> "Comparison":
        """Return the comparison of some of the simulations, by their places."""
        rows = []
        for row in self.rows:
            values = tuple(row.values[at] for at in places)
            rows.append(ComparisonRow(row.measure, values, _best(values, row.measure.better)))
        settings = {name: tuple(values[at] for at in places) for name, values in self.settings.items()}
        return Comparison(tuple(self.names[at] for at in places), tuple(rows), settings)


_ALIKE = 1e-9


def _best(values: Sequence[float | None], better: Better) -> tuple[bool, ...]:
    known = [value for value in values if value is not None]
    if not better or not known:
        return (False,) * len(values)
    top = min(known) if better == "lower" else max(known)
    good = tuple(v is not None and (v == top or math.isclose(v, top, rel_tol=_ALIKE, abs_tol=_ALIKE)) for v in values)
    return (False,) * len(values) if all(good) else good


def compare_summaries(summaries: Mapping[str, Summary]) -> tuple[ComparisonRow, ...]:
    """Put numbers of several simulations side by side, each under what to call it."""

    def known(value: float | None) -> float | None:
        return None if value is None or math.isnan(value) else value  # no broker told its load

    values = {measure: tuple(known(getattr(one, measure.name)) for one in summaries.values()) for measure in MEASURES}
    return tuple(ComparisonRow(measure, held, _best(held, measure.better)) for measure, held in values.items())


def compare(traces: Mapping[str, Trace], summaries: Mapping[str, Summary]) -> Comparison:
    """Put several simulations and their numbers side by side, each under what to call it, the best of each marked."""
    rows = compare_summaries(summaries)
    every = [trace.settings for trace in traces.values()]
    changed = sorted({name for settings in every for name in settings.overrides})
    differing = {name: tuple(settings[name] for settings in every) for name in changed}
    settings = {name: values for name, values in differing.items() if any(v != values[0] for v in values)}
    return Comparison(tuple(traces), rows, settings)
