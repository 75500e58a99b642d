"""What pages and patterns ask of a simulation, each answer worked out once."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from planner.cluster.arrays import FloatArray
from planner.cluster.internal_bundles import is_internal_bundle
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB, MS_PER_MIN
from planner.explain.before_after import BeforeAfter, before_after
from planner.explain.gate import Gate, gate
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.manager.cycle import CycleDecision, effective_shedder
from planner.pulsar.manager.pairing import running_placement
from planner.pulsar.shedding.profile import Profile
from planner.simulate import measures
from planner.simulate.demand import demand_series
from planner.simulate.event import Event
from planner.simulate.judge import Result
from planner.simulate.moves import Return, relocations, returns
from planner.simulate.summary import summary
from planner.simulate.trace import Trace

_T = TypeVar("_T")
_CALM = 1 / 3


class Outcome:
    """A simulation with what follows from it: the one wrapper of a trace. It is shared by sessions, and never changes.

    Args:
        trace: The simulation; it has at least one cycle.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._kept: dict[Hashable, Any] = {}
        self._decided: tuple[int, Snapshot, CycleDecision] | None = None

    def prepare(self) -> None:
        """Work out what the pages show first."""
        _ = self.digest, self.summary, self.moves, self.top_score, self.events

    @cached_property
    def digest(self) -> str:
        """Digest of the plan."""
        return self.trace.digest()

    @cached_property
    def summary(self) -> measures.Summary:
        """The simulation in numbers."""
        return summary(self.trace, self.result)

    @cached_property
    def spread(self) -> measures.Imbalance:
        """Spread of usage at each cycle, as brokers report it."""
        return measures.imbalance_series(self.series)

    @cached_property
    def demand_series(self) -> measures.BrokerSeries:
        """Every broker at every cycle, for charts: usage as it is measured everywhere, above 1 beyond capacity."""
        return demand_series(self.trace)

    @cached_property
    def demand_spread(self) -> measures.Imbalance:
        """Spread of that usage at each cycle."""
        return measures.imbalance_series(self.demand_series)

    @cached_property
    def top_score(self) -> float:
        """The highest score of any cycle; 0 when there is none."""
        known = self.scores[np.isfinite(self.scores)]
        return float(known.max(initial=0.0))

    @cached_property
    def events(self) -> pd.DataFrame:
        """Everything that happened, one row for each event."""
        start_ms = self.trace.start.info.captured_at_ms
        events = [(cycle.index, event) for cycle in self.trace.cycles for event in cycle.events]
        columns = {
            "cycle": [index + 1 for index, _ in events],
            "minute": [(event.at_ms - start_ms) / MS_PER_MIN for _, event in events],
            "what": [event.kind.replace("_", " ") for _, event in events],
            "bundle": [event.bundle for _, event in events],
            "from": [event.source for _, event in events],
            "to": [event.destination or ", ".join(c.rpartition("/")[2] for c in event.children) for _, event in events],
            "MiB/s": [event.throughput_bytes_per_s / MIB for _, event in events],
            "topics": [event.topics for _, event in events],
            "why": [event.why for _, event in events],
        }
        return pd.DataFrame(columns)

    @cached_property
    def series(self) -> measures.BrokerSeries:
        """Every broker at every cycle."""
        return measures.broker_series(self.trace)

    @cached_property
    def counts(self) -> measures.CycleCounts:
        """What happened in each cycle."""
        return measures.cycle_counts(self.trace)

    @cached_property
    def moves(self) -> tuple[Event, ...]:
        """Where bundles went."""
        return relocations(self.trace)

    @cached_property
    def ledger(self) -> tuple[Return, ...]:
        """Which bundles came back."""
        return returns(self.moves)

    @cached_property
    def before_after(self) -> BeforeAfter:
        """What the plan changes."""
        return before_after(self.trace, self.result)

    @cached_property
    def result(self) -> Result:
        """The simulation in the numbers that the judge weighs."""
        return Result.of(self.trace)

    @cached_property
    def gate(self) -> Gate:
        """What the judge says of it beside doing nothing, which is simulated when this is first asked."""
        return gate(self.trace, self.result)

    def is_internal(self, bundle: str) -> bool:
        """Say whether Pulsar keeps a bundle for itself: it is never advised on, nor counted as harm."""
        return is_internal_bundle(bundle, self.trace.start.settings.release)

    @cached_property
    def limit(self) -> float:
        """Usage above which a broker is overloaded: the limit of the capture, as the judge has it (1.0 = 100 %)."""
        return self.trace.start.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100

    @cached_property
    def load_manager(self) -> LoadManager:
        """The load manager that runs."""
        return self.trace.cycles[0].view.info.load_manager

    @cached_property
    def shedder(self) -> str:
        """Name of the strategy that really runs."""
        return effective_shedder(self.load_manager, self.trace.settings)[0].name

    @cached_property
    def profile(self) -> Profile:
        """What is known about that strategy."""
        return effective_shedder(self.load_manager, self.trace.settings)[0].profile

    @cached_property
    def placement(self) -> str:
        """Simple class name of the placement strategy that really runs."""
        return running_placement(self.load_manager, self.trace.settings).name

    @cached_property
    def calm(self) -> bool:
        """Whether no broker ever uses a third of its capacity: what is uneven then harms nobody."""
        return float(np.nan_to_num(self.series.usage).max(initial=0.0)) < _CALM

    @cached_property
    def last(self) -> Snapshot:
        """The cluster as the leader knew it at the last cycle."""
        return self.trace.cycles[-1].view

    @cached_property
    def scores(self) -> FloatArray:
        """Scores that the strategy compared, in the columns of `series`; NaN where none. Shape (cycles, brokers)."""
        return self.in_columns([cycle.scores for cycle in self.trace.cycles])

    @cached_property
    def reported_usage(self) -> FloatArray:
        """Weighted usage of the brokers' last reports, in the columns of `series`. Shape (cycles, brokers)."""
        config = self.trace.settings
        return self.in_columns([weighted_usage(c.view.brokers, config, self.load_manager) for c in self.trace.cycles])

    def in_columns(self, rows: list[FloatArray]) -> FloatArray:
        """Return what is known of the brokers of the first views, a row for each view, in the columns of `series`.

        NaN where a broker is not there. Shape (rows, brokers).
        """
        place = {name: i for i, name in enumerate(self.series.brokers)}
        table = np.full((len(rows), len(place)), np.nan)
        for at, row in enumerate(rows):
            table[at, [place[name] for name in self.trace.cycles[at].view.brokers.name]] = row
        return np.where(self.series.present[: len(rows)], table, np.nan)

    def decision(self, index: int) -> CycleDecision:
        """Return the full decision of a cycle, every rule examined; the one asked for last is kept."""
        last = self._decided
        if last is None or last[0] != index:
            known = self.trace.cycles[index].view
            # A view of its own, so that what is worked out goes with it: orders of the names and who owns what.
            view = replace(known).sharing(known).sharing(last[1] if last is not None else None)
            last = self._decided = index, view, self.trace.decision(index, view)
        return last[2]

    def once(self, key: Hashable, work: Callable[[], _T]) -> _T:
        """Return what was worked out under a key before, or work it out now."""
        if key not in self._kept:
            self._kept[key] = work()
        kept: _T = self._kept[key]
        return kept
