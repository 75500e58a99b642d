"""The brokers that a placement strategy chooses among: names as Pulsar has them, positions to work with."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import overload

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.errors import PulsarError
from planner.cluster.once import once
from planner.cluster.tables import BrokerTable


def no_load_report(broker: str) -> PulsarError:
    """Return the error with which a strategy ends when a candidate has no load report."""
    return PulsarError(
        "NullPointerException",
        f"{broker} is a candidate but has no load report, so Pulsar's placement fails.",
        remedy="Wait for its first report, or remove the broker from the isolation policy.",
    )


@once
def _every_broker_reports(brokers: BrokerTable) -> bool:
    return bool(brokers.has_load_data.all())


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
        self._given = None if names is None else tuple(names)

    @staticmethod
    def named(brokers: BrokerTable, names: Sequence[str]) -> "Candidates":
        """Return candidates by name, as they are."""
        if isinstance(names, Candidates) and names.brokers is brokers:
            return names
        return Candidates(brokers, np.array([brokers.position.get(n, -1) for n in names], dtype=np.int64), names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The broker ids."""
        return self._given or self._named(self.positions)

    def _named(self, positions: Int64Array) -> tuple[str, ...]:
        return tuple(self.brokers.names_array[positions].tolist())

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """The broker ids in alphabetical order."""
        if self._given is not None:
            return tuple(sorted(self._given))
        return self._named(self.positions[np.argsort(self.brokers.alphabetical[self.positions])])

    @cached_property
    def reporting(self) -> BoolArray:
        """Which candidates have a load report. Shape (candidates,)."""
        if self._given is None:  # all are known
            return frozen(self.brokers.has_load_data[self.positions])
        return frozen(np.append(self.brokers.has_load_data, False)[self.positions])

    @cached_property
    def _all_report(self) -> bool:
        every = self._given is None and _every_broker_reports(self.brokers)
        return every or bool(np.count_nonzero(self.reporting) == len(self))

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

    @cached_property
    def _pick(self) -> Callable[[Mapping[str, float]], tuple[float, ...]]:
        return itemgetter(*self.names, self.names[0])  # of one name alone it would return no tuple

    def values_in(self, table: Mapping[str, float]) -> tuple[FloatArray, BoolArray]:
        """Return what a table says of the candidates, and whether it knows them. Shapes (candidates,).

        There is at least one candidate; where one is unknown the value is NaN.
        """
        try:
            return np.array(self._pick(table)[:-1]), np.ones(len(self), dtype=np.bool_)
        except KeyError:
            known = np.array([name in table for name in self.names], dtype=np.bool_)
            return np.array([table.get(name, np.nan) for name in self.names]), known

    def those(self, which: BoolArray) -> tuple[str, ...]:
        """Return some of the candidates. Shape of the argument: (candidates,)."""
        places = np.flatnonzero(which)
        if len(places) == len(self):
            return self.names
        if self._given is None:
            return self._named(self.positions[places])
        return tuple([self._given[place] for place in places.tolist()])

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        at = self.brokers.position.get(str(name))
        return bool((self.positions == at).any()) if at is not None else name in (self._given or ())

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        return self.names[at]
