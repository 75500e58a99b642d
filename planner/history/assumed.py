"""What has to be assumed where recordings do not say it, and what they prove about an assumption."""

from collections.abc import Iterable, Iterator

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array
from planner.history.labels import WEB_PORT, has_port, with_port

_BITS = 32
_NAMED = 5
_LONGEST_NAME = 120


class Hosts:
    """The brokers of a day by host, for series that name the host, or the pod that its name begins with, alone.

    Attributes:
        assumed: Hosts of which no broker is known; their port is assumed.
        unclear: Hosts with several brokers; what is said of such a host is of no single one.
    """

    def __init__(self, brokers: Iterable[str]) -> None:
        self.assumed: dict[str, None] = {}
        self.unclear: dict[str, None] = {}
        self._brokers: dict[str, set[str]] = {}
        self._pods: dict[str, set[str]] = {}
        self._full: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        for broker in brokers:
            if has_port(broker):
                host = broker.rpartition(":")[0]
                self._brokers.setdefault(host, set()).add(broker)
                self._pods.setdefault(host.partition(".")[0], set()).add(broker)

    def broker_of(self, name: str) -> str:
        """Return the broker id of a broker, host or pod; empty where there are several of that name."""
        if has_port(name):
            return name
        known = self._brokers.get(name) or self._pods.get(name, set())
        if len(known) > 1:
            self.unclear[name] = None
            return ""
        return next(iter(known)) if known else self._assume(name)

    def _assume(self, name: str) -> str:
        """Return the broker of an unknown name; a pod and the only host whose name begins with it are one."""
        self.assumed[name] = None
        if name not in self._ids:
            pod, _, domain = name.partition(".")
            other = self._full.get(pod, "") if not domain else pod if self._full.setdefault(pod, name) == name else ""
            self._ids[name] = self._ids.get(other, with_port(name, str(WEB_PORT)))
        return self._ids[name]


def roundest(after: int, upto: int) -> int:
    """Return the roundest number of an interval, its start excluded: that with the most zero bits at the end.

    Pulsar halves ranges, so that a boundary that nobody reports is most likely there.
    """
    for bit in range(_BITS - 1, -1, -1):
        if (found := upto >> bit << bit) > after:
            return found
    return upto


def cuts(bundle: Int64Array, hashes: Int64Array, owner: Int64Array, may_cut: BoolArray) -> Iterator[tuple[int, int]]:
    """Yield where bundles have to be cut so that each has one owner: bundle and boundary, in the order of both.

    A bundle has one owner, so that brokers that serve topics of the same range at the same time prove that there are
    more bundles. As many boundaries as brokers alternate are the fewest.

    Args:
        bundle: Position of the bundle of each topic.
        hashes: Hash of each.
        owner: The broker that serves it.
        may_cut: Whether nobody reports the bundle. Shape (bundles,).
    """
    if not len(bundle):
        return
    least, most = np.full(len(may_cut), np.iinfo(np.int64).max), np.full(len(may_cut), -1, dtype=np.int64)
    np.minimum.at(least, bundle, owner)
    np.maximum.at(most, bundle, owner)
    shared = np.flatnonzero(((least < most) & may_cut)[bundle])
    order = shared[np.lexsort((hashes[shared], bundle[shared]))]
    before, after = order[:-1], order[1:]
    apart = (bundle[before] == bundle[after]) & (owner[before] != owner[after]) & (hashes[before] < hashes[after])
    for left, right in zip(before[apart].tolist(), after[apart].tolist(), strict=True):
        yield int(bundle[left]), roundest(int(hashes[left]), int(hashes[right]))


def listed(names: Iterable[str]) -> str:
    """Return the first names of many as text."""
    every = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…" for name in names]
    return ", ".join(every[:_NAMED]) + (" and others" if len(every) > _NAMED else "")
