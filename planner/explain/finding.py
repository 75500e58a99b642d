"""What a diagnosis says, and what its patterns look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.setting import SettingValue
from planner.cluster.snapshot import LoadManager, Snapshot
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.manager.cycle import CycleDecision, effective_shedder
from planner.simulate.measures import BrokerSeries, CycleCounts, broker_series, cycle_counts
from planner.simulate.moves import Journey, Return, journeys, returns
from planner.simulate.trace import Trace

Severity: TypeAlias = Literal["high", "medium", "low"]
"""`high`: clients suffer; `medium`: the cluster does not get or stay balanced; `low`: it could be tidier."""

_NO_CHANGES: Mapping[str, SettingValue] = MappingProxyType({})
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One failure pattern that was recognised.

    Attributes:
        code: Stable name, such as `unload_storm`.
        title: What it is, one line.
        evidence: The numbers that show it, one or two sentences.
        remedy: What to do about it.
        severity: How bad it is.
        brokers: Broker ids concerned, the worst first.
        bundles: Full names of bundles concerned, the worst first.
        settings: Names of the settings concerned.
        changes: Values to try, by setting; empty when the remedy is no setting.
    """

    code: str
    title: str
    evidence: str
    remedy: str
    severity: Severity
    brokers: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    changes: Mapping[str, SettingValue] = field(default_factory=lambda: _NO_CHANGES)


def listed(names: tuple[str, ...] | list[str], shown: int = _SHOWN) -> str:
    """Return names as one piece of text, the first few of many."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")


@dataclass(frozen=True, eq=False)
class Case:
    """A simulation, and what several patterns want to know of it.

    Attributes:
        trace: The simulation; it has at least one cycle.
    """

    trace: Trace
    _decisions: dict[int, CycleDecision] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def series(self) -> BrokerSeries:
        """Every broker at every cycle."""
        return broker_series(self.trace)

    @cached_property
    def counts(self) -> CycleCounts:
        """What happened in each cycle."""
        return cycle_counts(self.trace)

    @cached_property
    def ways(self) -> tuple[Journey, ...]:
        """Where bundles went."""
        return journeys(self.trace)

    @cached_property
    def ledger(self) -> tuple[Return, ...]:
        """Which bundles came back."""
        return returns(self.ways)

    @cached_property
    def load_manager(self) -> LoadManager:
        """The load manager that runs."""
        return self.trace.cycles[0].view.info.load_manager

    @cached_property
    def shedder(self) -> str:
        """Name of the strategy that really runs."""
        return effective_shedder(self.load_manager, self.trace.settings)[0].name

    @cached_property
    def placement(self) -> str:
        """Simple class name of the placement strategy that really runs."""
        if self.load_manager is LoadManager.EXTENSIBLE:
            return "LeastResourceUsageWithWeight"
        return self.trace.settings.text("loadBalancerLoadPlacementStrategy").rpartition(".")[2]

    @cached_property
    def last(self) -> Snapshot:
        """The cluster as the leader knew it at the last cycle."""
        return self.trace.cycles[-1].view

    @cached_property
    def scores(self) -> FloatArray:
        """Scores that the strategy compared, in the columns of `series`; NaN where none. Shape (cycles, brokers)."""
        return self._in_columns([cycle.scores for cycle in self.trace.cycles])

    @cached_property
    def reported_usage(self) -> FloatArray:
        """Weighted usage of the brokers' last reports, in the columns of `series`. Shape (cycles, brokers)."""
        config = self.trace.settings
        return self._in_columns([weighted_usage(c.view.brokers, config, self.load_manager) for c in self.trace.cycles])

    def _in_columns(self, rows: list[FloatArray]) -> FloatArray:
        place = {name: i for i, name in enumerate(self.series.brokers)}
        table = np.full((len(rows), len(place)), np.nan)
        for at, (cycle, row) in enumerate(zip(self.trace.cycles, rows, strict=True)):
            table[at, [place[name] for name in cycle.view.brokers.name]] = row
        return np.where(self.series.present, table, np.nan)

    def decision(self, index: int) -> CycleDecision:
        """Return the full decision of a cycle; it is worked out once."""
        if index not in self._decisions:
            self._decisions[index] = self.trace.decision(index)
        return self._decisions[index]
