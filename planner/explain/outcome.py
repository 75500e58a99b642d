"""What the pages ask of a simulation, each answer worked out once."""

from functools import cached_property

import numpy as np
import pandas as pd

from planner.cluster.arrays import FloatArray
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Case, Finding
from planner.explain.what_if import Target, WhatIf, what_if
from planner.pulsar.manager.cycle import CycleDecision
from planner.pulsar.shedding.protocol import Shedder
from planner.simulate.measures import BrokerSeries, CycleCounts, ImbalanceSeries, Summary, imbalance_series, summary
from planner.simulate.moves import Journey
from planner.simulate.trace import Event, Trace

EVENT_COLUMNS = ("cycle", "minute", "what", "bundle", "from", "to", "MB/s", "topics", "why")
"""Columns of events as a table."""


def event_row(cycle: int, start_ms: int, event: Event) -> dict[str, object]:
    """Return one event as a row.

    Args:
        cycle: The cycle in which it happened, 1 for the first.
        start_ms: When the simulation began, ms since 1970.
        event: The event.
    """
    values = (
        cycle,
        (event.at_ms - start_ms) / 60_000,
        event.kind.replace("_", " "),
        event.bundle,
        event.source,
        event.destination or ", ".join(child.rpartition("/")[2] for child in event.children),
        event.throughput_bytes_per_s / 1e6,
        event.topics,
        event.why,
    )
    return dict(zip(EVENT_COLUMNS, values, strict=True))


class Outcome:
    """A simulation with what follows from it. It is shared by the sessions, and never changes.

    Attributes:
        trace: The simulation; it has at least one cycle.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._case = Case(trace)
        self._answers: dict[tuple[int, Target, str], WhatIf] = {}

    def prepare(self) -> None:
        """Work out what the pages show first."""
        _ = self.digest, self.summary, self.findings, self.ways, self.top_score, self.events

    @cached_property
    def digest(self) -> str:
        """Digest of the plan."""
        return self.trace.digest()

    @cached_property
    def summary(self) -> Summary:
        """The simulation in numbers."""
        return summary(self.trace)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The failure patterns that it shows."""
        return diagnose(self._case)

    @cached_property
    def spread(self) -> ImbalanceSeries:
        """Spread of usage at each cycle."""
        return imbalance_series(self.series)

    @property
    def series(self) -> BrokerSeries:
        """Every broker at every cycle."""
        return self._case.series

    @property
    def counts(self) -> CycleCounts:
        """What happened in each cycle."""
        return self._case.counts

    @property
    def ways(self) -> tuple[Journey, ...]:
        """Where bundles went."""
        return self._case.ways

    @property
    def scores(self) -> FloatArray:
        """Scores that the strategy compared, NaN where none. Shape (cycles, brokers), as `series`."""
        return self._case.scores

    @cached_property
    def top_score(self) -> float:
        """The highest score of any cycle; 0 when there is none."""
        known = self.scores[np.isfinite(self.scores)]
        return float(known.max(initial=0.0))

    @cached_property
    def events(self) -> pd.DataFrame:
        """Everything that happened, one row for each event."""
        minutes = self.trace.start.info.captured_at_ms
        rows = [event_row(cycle.index + 1, minutes, event) for cycle in self.trace.cycles for event in cycle.events]
        return pd.DataFrame(rows, columns=list(EVENT_COLUMNS))

    def decision(self, index: int) -> CycleDecision:
        """Return the full decision of a cycle, every rule examined."""
        return self._case.decision(index)

    def answer(self, index: int, target: Target, shedder: Shedder) -> WhatIf:
        """Return what would have to change about a broker or bundle in a cycle, by one strategy.

        Raises:
            PlannerError: There is no such broker or bundle in that cycle.
        """
        key = (index, target, shedder.name)
        if key not in self._answers:
            (self._answers[key],) = what_if(self.trace, index, target, (shedder,))
        return self._answers[key]
