"""The one validator: what every snapshot must hold, whatever it was read from."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model.arrays import BoolArray, Int64Array
from planner.model.errors import SnapshotError, Violation
from planner.model.ranges import FULL_HIGH, format_range
from planner.model.snapshot import BrokerTable, BundleTable, Snapshot, TopicTable, column_info

__all__ = ["MAX_BROKERS", "MAX_BUNDLES", "MAX_TOPICS", "validate"]

MAX_BROKERS = 20_000
"""More brokers than any cluster has."""
MAX_BUNDLES = 5_000_000
"""More bundles than any cluster has."""
MAX_TOPICS = 20_000_000
"""More topics than fit the page server's memory."""

_LISTED = 100
_MAY_BE_NEGATIVE = re.compile(r"_limit_")
_MINUS_ONE = {"reported_bundles", "owner", "top_rank", "bundle", "namespace"}
_BROKER = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:]+):[0-9]{1,5}")
_NAMESPACE = re.compile(r"[-=:.\w]+/[-=:.\w]+")

_FILES: Mapping[str, str] = {"brokers": "brokers", "bundles": "bundles", "topics": "topics"}


class _Findings:
    """Collects violations, keeping the first and counting all."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.kept: list[Violation] = []
        self.total = 0

    def add(self, part: str, row: int | None, what: str, remedy: str) -> None:
        self.total += 1
        if len(self.kept) < _LISTED:
            self.kept.append(Violation(self.files[part], row, what, remedy))

    def rows(self, bad: BoolArray | Int64Array) -> Iterable[int]:
        """Yield the first bad positions and count the others."""
        at = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
        room = max(0, _LISTED - len(self.kept))
        self.total += max(0, len(at) - room)
        yield from at[:room].tolist()


def validate(snapshot: Snapshot, files: Mapping[str, str] = _FILES) -> None:
    """Refuse a snapshot that no Pulsar cluster could have answered.

    Checked: names are well formed and unique; numbers are finite and not negative (limits may be: the NIC speed is
    unknown then); the ranges of each namespace tile 0x00000000..0xffffffff; owners exist; topics lie in their bundles.

    Args:
        snapshot: What was read.
        files: Name of the file or section of each part, for the messages.

    Raises:
        SnapshotError: With the first 100 violations, and their total.
    """
    found = _Findings(files)
    _sizes(snapshot, found)
    _numbers(snapshot, found)
    _brokers(snapshot.brokers, found)
    _ranges(snapshot, found)
    _owners(snapshot, found)
    if not found.total:
        _topics(snapshot, found)
    if found.total:
        raise SnapshotError(found.kept, found.total)


def _sizes(snapshot: Snapshot, found: _Findings) -> None:
    limits = (("brokers", MAX_BROKERS), ("bundles", MAX_BUNDLES), ("topics", MAX_TOPICS))
    for part, limit in limits:
        rows = len(getattr(snapshot, part))
        if rows > limit:
            found.add(part, None, f"There are {rows:,} {part}; at most {limit:,} load.", "Capture fewer namespaces.")
    if not len(snapshot.brokers):
        found.add("brokers", None, "There is no broker.", "Capture at least one broker.")


def _numbers(snapshot: Snapshot, found: _Findings) -> None:
    tables = (("brokers", BrokerTable), ("bundles", BundleTable), ("topics", TopicTable))
    for part, kind in tables:
        table = getattr(snapshot, part)
        for info in column_info(kind):
            if info.kind not in {"float", "int", "id"}:
                continue
            values = getattr(table, info.name)
            if info.kind == "float":
                odd = np.isinf(values) if info.may_be_unknown else ~np.isfinite(values)
                for row in found.rows(odd):
                    found.add(part, row + 1, f"'{info.name}' is {values[row]}, not a finite number.", "Give a number.")
            least = -1 if info.name in _MINUS_ONE else 0
            if _MAY_BE_NEGATIVE.search(info.name):
                continue
            with np.errstate(invalid="ignore"):
                negative = values < least
            for row in found.rows(negative):
                found.add(
                    part, row + 1, f"'{info.name}' is {values[row]:g}, below {least}.", "Give a number from 0 on."
                )


def _duplicates(names: tuple[str, ...]) -> list[tuple[int, int]]:
    first: dict[str, int] = {}
    return [(row, first[name]) for row, name in enumerate(names) if first.setdefault(name, row) != row]


def _brokers(brokers: BrokerTable, found: _Findings) -> None:
    for row, name in enumerate(brokers.name):
        if not _BROKER.fullmatch(name):
            found.add("brokers", row + 1, f"'{name[:80]}' is not a broker id.", "Write host:port.")
    for row, first in _duplicates(brokers.name):
        found.add(
            "brokers", row + 1, f"'{brokers.name[row]}' is listed again (first in row {first + 1}).", "Keep one row."
        )


def _ranges(snapshot: Snapshot, found: _Findings) -> None:
    table = snapshot.bundles
    for position, name in enumerate(snapshot.namespaces):
        if not _NAMESPACE.fullmatch(name):
            rows = np.flatnonzero(table.namespace == position)
            row = int(rows[0]) + 1 if len(rows) else None
            found.add("bundles", row, f"'{name[:80]}' is not a namespace.", "Write tenant/namespace.")
    outside = (table.low < 0) | (table.high > FULL_HIGH) | (table.low >= table.high)
    for row in found.rows(outside):
        text = f"{int(table.low[row]):#x}_{int(table.high[row]):#x}"
        found.add("bundles", row + 1, f"{text} is no range.", "Boundaries go up, from 0x00000000 to 0xffffffff.")
    if outside.any() or not len(table):
        return
    order = np.lexsort((table.high, table.low, table.namespace))
    space, low, high = table.namespace[order], table.low[order], table.high[order]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = space[1:] != space[:-1]
    ends = np.roll(starts, -1)
    before = np.roll(high, 1)
    for at in found.rows(starts & (low != 0)):
        _hole(snapshot, int(order[at]), 0, int(low[at]), found)
    for at in found.rows(~starts & (low > before)):
        _hole(snapshot, int(order[at]), int(before[at]), int(low[at]), found)
    for at in found.rows(ends & (high != FULL_HIGH)):
        _hole(snapshot, int(order[at]), int(high[at]), FULL_HIGH, found)
    for at in found.rows(~starts & (low < before)):
        row, other = int(order[at]), int(order[at - 1])
        same = table.low[row] == table.low[other] and table.high[row] == table.high[other]
        what = "is listed again" if same else "overlaps"
        found.add(
            "bundles",
            row + 1,
            f"{_bundle(snapshot, row)} {what} ({_bundle(snapshot, other)}, row {other + 1}).",
            "Keep one of the two." if same else "The ranges of a namespace must meet without overlap.",
        )


def _bundle(snapshot: Snapshot, row: int) -> str:
    table = snapshot.bundles
    return f"{snapshot.namespaces[table.namespace[row]]}/{format_range(int(table.low[row]), int(table.high[row]))}"


def _hole(snapshot: Snapshot, row: int, low: int, high: int, found: _Findings) -> None:
    namespace = snapshot.namespaces[snapshot.bundles.namespace[row]]
    found.add(
        "bundles",
        row + 1,
        f"Nothing covers {format_range(low, high)} of {namespace}.",
        "The ranges of a namespace must cover 0x00000000 to 0xffffffff.",
    )


def _owners(snapshot: Snapshot, found: _Findings) -> None:
    table = snapshot.bundles
    for row in found.rows(table.owner >= len(snapshot.brokers)):
        found.add(
            "bundles", row + 1, f"Its owner is broker {table.owner[row]}, which is not listed.", "Add the broker."
        )
    for row in found.rows((table.namespace < 0) | (table.namespace >= len(snapshot.namespaces))):
        found.add("bundles", row + 1, "Its namespace is not listed.", "Give tenant/namespace.")
    for domain, members in snapshot.policies.failure_domains.items():
        if not domain or any(not m for m in members):
            found.add(
                "brokers", None, f"The failure domain '{domain}' has an empty name.", "Name the domain and brokers."
            )


def _topics(snapshot: Snapshot, found: _Findings) -> None:
    topics, bundles = snapshot.topics, snapshot.bundles
    if not len(topics):
        return
    names = topics.name.cast(pa.large_string())
    for row in found.rows((topics.bundle < 0) | (topics.bundle >= len(bundles))):
        found.add(
            "topics", row + 1, f"No bundle holds '{names[row]}'.", "List the bundles of its namespace, or leave it out."
        )
    if found.total:
        return
    hashes = topics.hash.astype(np.int64)
    low, high = bundles.low[topics.bundle], bundles.high[topics.bundle]
    outside = (hashes < low) | ((hashes >= high) & (high != FULL_HIGH))
    for row in found.rows(outside):
        bundle = _bundle(snapshot, int(topics.bundle[row]))
        what = f"'{names[row]}' (0x{hashes[row]:08x}) lies outside its bundle {bundle}."
        found.add("topics", row + 1, what, "Leave out the column 'bundle'; it follows from the name.")
    space = bundles.namespace[topics.bundle]
    order = np.argsort(space, kind="stable")
    bounds = np.searchsorted(space, np.arange(len(snapshot.namespaces) + 1), sorter=order)
    sorted_names = names.take(pa.array(order))
    for position, namespace in enumerate(snapshot.namespaces):
        start, stop = int(bounds[position]), int(bounds[position + 1])
        if start == stop:
            continue
        part = sorted_names.slice(start, stop - start)
        right = pc.or_(
            pc.starts_with(part, f"persistent://{namespace}/"), pc.starts_with(part, f"non-persistent://{namespace}/")
        )
        for at in found.rows(~right.to_numpy(zero_copy_only=False)):
            row = int(order[start + at])
            found.add(
                "topics",
                row + 1,
                f"'{names[row]}' is no topic of {namespace}.",
                "Write domain://tenant/namespace/topic.",
            )
    _repeated_topics(names, hashes, found)


def _repeated_topics(names: pa.Array, hashes: Int64Array, found: _Findings) -> None:
    """Names are compared only where hashes are equal, which is rare."""
    order = np.argsort(hashes, kind="stable")
    same = hashes[order][1:] == hashes[order][:-1]
    rows = order[np.union1d(np.flatnonzero(same), np.flatnonzero(same) + 1)]
    first: dict[str, int] = {}
    for row in np.sort(rows).tolist():
        name = names[row].as_py()
        if first.setdefault(name, row) != row:
            found.add("topics", row + 1, f"'{name}' is listed again (first in row {first[name] + 1}).", "Keep one row.")
