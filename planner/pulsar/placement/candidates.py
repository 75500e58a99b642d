"""The brokers that a placement strategy chooses among: names as Pulsar has them, positions to work with."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, frozen
from planner.cluster.errors import PulsarError
from planner.cluster.snapshot import BrokerTable


def no_load_report(broker: str) -> PulsarError:
    """Return the error with which a strategy ends when a candidate has no load report."""
    return PulsarError(
        "NullPointerException",
        f"{broker} is a candidate although it has no load report, with which Pulsar's placement fails.",
        remedy="Wait for its first report, or take it out of the isolation policy.",
    )


class Candidates(Sequence[str]):
    """Broker ids in the order in which Pulsar's set would be visited; what no bundle changes is worked out once.

    Attributes:
        brokers: The brokers of the cluster.
        positions: Where the candidates stand there, -1 for one that is unknown. Shape (candidates,).
    """

    def __init__(self, brokers: BrokerTable, positions: Int64Array, names: Iterable[str] | None = None) -> None:
        """Take candidates by position; names are needed only when some are unknown."""
        self.brokers = brokers
        self.positions = frozen(positions)
        if names is not None:
            self.names = tuple(names)

    @staticmethod
    def named(brokers: BrokerTable, names: Sequence[str]) -> "Candidates":
        """Return candidates by name, as they are."""
        if isinstance(names, Candidates) and names.brokers is brokers:
            return names
        return Candidates(brokers, np.array([brokers.position.get(n, -1) for n in names], dtype=np.int64), names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The broker ids."""
        names = self.brokers.name
        return tuple([names[at] for at in self.positions.tolist()])

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """The broker ids in alphabetical order."""
        return tuple(sorted(self.names))

    @cached_property
    def _members(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def reporting(self) -> BoolArray:
        """Which candidates have a load report. Shape (candidates,)."""
        return frozen(np.append(self.brokers.has_load_data, False)[self.positions])

    @cached_property
    def _all_report(self) -> bool:
        return bool(self.reporting.all())

    def check_reports(self) -> None:
        """Require that all have a load report.

        Raises:
            PulsarError: One has none; Pulsar ends in a NullPointerException.
        """
        if not self._all_report:
            raise no_load_report(self.names[int(self.reporting.argmin())])

    def those_reporting(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of some candidates have a load report."""
        if self._all_report:
            return names
        here = dict(zip(self.names, self.reporting.tolist(), strict=True))
        return tuple(name for name in names if here[name])

    def those(self, which: BoolArray) -> tuple[str, ...]:
        """Return some of the candidates. Shape of the argument: (candidates,)."""
        places = np.flatnonzero(which)
        if len(places) == len(self):
            return self.names
        if "names" in self.__dict__:  # given, or asked for before
            return tuple([self.names[place] for place in places.tolist()])
        names = self.brokers.name
        return tuple([names[at] for at in self.positions[places].tolist()])

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        return self.names[at]
