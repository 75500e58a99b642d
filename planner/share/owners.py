"""Which bundles a snapshot has in a range, and who serves them, whatever the ranges are called later."""

from bisect import bisect_left, bisect_right
from collections import defaultdict

from planner.cluster.ranges import parse_bundle
from planner.cluster.snapshot import Snapshot


class Owners:
    """The ranges of a snapshot's namespaces with their brokers; empty where nobody serves one."""

    def __init__(self, snapshot: Snapshot) -> None:
        found: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
        table = snapshot.bundles
        names = (*snapshot.brokers.name, "")
        owners = [names[owner] for owner in table.owner.tolist()]
        for namespace, low, high, owner in zip(
            table.namespace.tolist(), table.low.tolist(), table.high.tolist(), owners, strict=True
        ):
            found[snapshot.namespaces[namespace]].append((low, high, owner))
        self._found = {name: sorted(parts) for name, parts in found.items()}
        self._same: dict[str, str] = dict(zip(snapshot.bundle_names, owners, strict=True))

    def of(self, bundle: str) -> str:
        """Return who serves the range where a bundle begins; empty for nobody, or where its namespace is not there."""
        if bundle in self._same:
            return self._same[bundle]
        namespace, low, _ = parse_bundle(bundle)
        parts = self._found.get(namespace, [])
        at = bisect_right(parts, low, key=lambda part: part[0]) - 1
        return parts[at][2] if at >= 0 else ""

    def boundaries(self, namespace: str) -> list[int]:
        """Return where the bundles of a namespace begin."""
        return [low for low, _, _ in self._found.get(namespace, [])]

    def over(self, bundle: str) -> list[tuple[int, int, str]]:
        """Return the bundles that share hashes with another one: low, high, broker."""
        namespace, low, high = parse_bundle(bundle)
        parts = self._found.get(namespace, [])
        first = bisect_right(parts, low, key=lambda part: part[0]) - 1
        return parts[max(first, 0) : bisect_left(parts, high, key=lambda part: part[0])]
