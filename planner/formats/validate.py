"""The one validator: what every snapshot must hold, whatever it was read from."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from planner.cluster.arrays import BoolArray, Int64Array
from planner.cluster.errors import HIDDEN, FormatError, SnapshotError, Violation
from planner.cluster.moments import LAST_MS
from planner.cluster.pulsar_json import MOST
from planner.cluster.ranges import FULL_HIGH, format_range
from planner.cluster.releases import Release
from planner.cluster.snapshot import MAX_NAME, MAX_NOTES, MAX_TEXT, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import BrokerTable, BundleTable, ColumnInfo, TopicTable, column_info
from planner.cluster.topic_names import FOUR_PARTS, is_namespace_with_cluster, refusal, topic_name
from planner.formats.encoding import compact_json, head_to_json, parse_json, read_head
from planner.pulsar.load.java_pattern import java_pattern

MAX_NAME_LENGTH = MAX_NAME
"""Longest name of a broker, namespace or topic, in bytes."""

TABLES: Mapping[str, type[BrokerTable] | type[BundleTable] | type[TopicTable]] = {
    "brokers": BrokerTable,
    "bundles": BundleTable,
    "topics": TopicTable,
}
"""The tables of a snapshot by the name of their part."""

MAX_ROWS: Mapping[str, int] = {"brokers": 20_000, "bundles": 1_000_000, "topics": 10_000_000}
"""More brokers, bundles and topics than any cluster has."""

_LISTED = 100
_MOST_POLICIES = {
    "isolation": 1_000,
    "anti_affinity_group": 100_000,
    "failure_domains": 10_000,
    "dispatch_rates": 100_000,
}
_MOST_EXPRESSIONS = 10_000
_BROKER = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*)|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:]+):([0-9]{1,5})")
_LAST_PORT = 65_535
_WORD = "[-=:.A-Za-z0-9_]+"
_NAMESPACE = re.compile(f"(?:(?:pulsar|sla-monitor)/)?{_WORD}/{_WORD}")  # monitors up to 4.0.8 name the cluster, too
_TOPIC = re.compile(rf"(?:persistent|non-persistent)://{_NAMESPACE.pattern}/.+", re.DOTALL)
_UNKNOWN_USAGE = -1.0
_LIMITS = f", 0 or at least {1 / MOST:g}"
_CHARACTER = "Write texts in Unicode, without halves of surrogate pairs."
_BOUNDS = f"Names have 1 to {MAX_NAME:,} characters and texts {MAX_TEXT:,} at most. Whole numbers have 32 bits."
_MS = f"Use milliseconds since 1970, from 0 to {LAST_MS} (the end of the year 9999)."


class Findings:
    """Collects violations: the first 100, and how many there are in all where counting them costs nothing."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.kept: list[Violation] = []
        self.total = 0

    def add(self, part: str, row: int | None, what: str, remedy: str) -> None:
        """Add one; `row` counts from 0.

        Raises:
            SnapshotError: There are more than 100, and no more are looked for.
        """
        self.total += 1
        if len(self.kept) == _LISTED:
            self.check()
        self.kept.append(Violation(self.files[part], None if row is None else row + 1, what, remedy))

    def rows(self, part: str, bad: BoolArray | Int64Array, what: Callable[[int], str], remedy: str) -> bool:
        """Add one for each bad row, given as a mask or as positions; say whether there was any."""
        at: Int64Array = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad.astype(np.int64)
        room = max(0, _LISTED - len(self.kept))
        for row in at[:room].tolist():
            self.add(part, row, what(row), remedy)
        self.total += max(0, len(at) - room)
        return len(at) > 0

    def check(self) -> None:
        """Raise what was found.

        Raises:
            SnapshotError: There was something.
        """
        if self.total:
            raise SnapshotError(self.kept, self.total)


def validate(snapshot: Snapshot, files: Mapping[str, str] | None = None) -> None:
    """Refuse a snapshot that no Pulsar cluster could have answered.

    Checked: sizes; names are well formed and unique; the ranges of each namespace tile 0x00000000..0xffffffff; owners
    exist; numbers are finite and not negative (limits may be: the NIC speed is unknown then); topics have the hash of
    their name and lie in their bundle; policies name what can exist; and info, settings and policies come back from
    every format as they are. Messages call the file or section of each part as `files` says; `brokers`, `bundles`,
    `topics` by default.

    Raises:
        SnapshotError: With the first 100 violations. Rows count from 1.
    """
    found = Findings({part: part for part in (*TABLES, "info", "policies")} | dict(files or {}))
    _sizes(snapshot, found)
    _info(snapshot.info, found)
    _brokers(snapshot.brokers, found)
    if _positions(snapshot, found):
        _namespaces(snapshot, found)
        _ranges(snapshot, found)
    _numbers(snapshot, found)
    for what, remedy in [*_too_many(snapshot.policies)] or _policies(snapshot.policies, snapshot.settings.release):
        found.add("policies", None, what, remedy)
    if not found.total:
        _comes_back(snapshot, found)
    if not found.total and len(snapshot.topics):
        _topics(snapshot, found)
    found.check()


def _sizes(snapshot: Snapshot, found: Findings) -> None:
    for part, most in MAX_ROWS.items():
        if (rows := len(getattr(snapshot, part))) > most:
            what = f"There are {rows:,} {part}; the maximum is {most:,}."
            found.add(part, None, what, "Capture fewer namespaces.")
    if not len(snapshot.brokers):
        found.add("brokers", None, "There is no broker.", "A cluster has at least one broker; add it.")


def _is_plain(text: str) -> bool:
    """Say whether a text shows what it says: neither control signs nor signs that turn its direction around."""
    return text.isprintable() or not HIDDEN.search(text)


def _info(info: SnapshotInfo, found: Findings) -> None:
    if not info.cluster.strip():
        found.add("info", None, "The name of the cluster is empty.", "Use any name.")
    for name in ("cluster", "pulsar_version", "leader", "source", "description", "warnings"):
        value = getattr(info, name)
        if not all(_is_plain(text) for text in ((value,) if isinstance(value, str) else value)):
            what = f"'{name}' contains control characters or characters that change the text direction."
            found.add("info", None, what, "Remove those characters.")
    if not 0 <= info.captured_at_ms <= LAST_MS:
        found.add("info", None, f"captured_at_ms is {info.captured_at_ms}.", _MS)


def fitting_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Return notes as a snapshot can hold them: each once, short enough, without signs that control a terminal.

    They quote what a cluster answered, which may be anything.
    """
    plain = (HIDDEN.sub("\N{REPLACEMENT CHARACTER}", note) for note in notes)
    cut = (note if len(note) <= MAX_TEXT else f"{note[: MAX_TEXT - 1]}…" for note in plain)
    return tuple(dict.fromkeys(cut))[:MAX_NOTES]


def _comes_back(snapshot: Snapshot, found: Findings) -> None:
    """Write and read all that is not a table, so that whatever passes comes back from every format.

    The readers' own types say what that is: bounds, empty names, halves of surrogate pairs.
    """
    try:
        read = read_head(parse_json(compact_json(head_to_json(snapshot)).encode(), ""), "")
        for part in ("info", "policies"):
            if read[part] != getattr(snapshot, part):  # a key with half of a surrogate pair is written as another one
                found.add(part, None, "A name or text changes when it is written and read back.", _CHARACTER)
    except UnicodeEncodeError:
        found.add("info", None, "A text of info, settings or policies contains half of a surrogate pair.", _CHARACTER)
    except (FormatError, ValueError) as error:
        part, _, place = (error.where if isinstance(error, FormatError) else "").removeprefix(": ").partition(": ")
        what = error.what if isinstance(error, FormatError) else "It cannot be written as JSON."
        found.add(part if part in found.files else "info", None, f"{place}: {what}" if place else what, _BOUNDS)


def _shown(name: str) -> str:
    cut = name if len(name) <= 120 else f"{name[:120]}…"  # noqa: PLR2004 - what fits a line of a page
    return f"'{cut.encode('utf-8', 'replace').decode()}'"


def _brokers(brokers: BrokerTable, found: Findings) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(brokers.name):
        match = _BROKER.fullmatch(name)
        if not match or not 0 < int(match[1]) <= _LAST_PORT or len(name) > MAX_NAME_LENGTH:
            found.add("brokers", row, f"{_shown(name)} is not a broker id.", "Write host:port, as in broker-1:8080.")
        if first.setdefault(name, row) != row:
            what = f"Broker {_shown(name)} is listed twice, first in row {first[name] + 1}."
            found.add("brokers", row, what, "Keep one of the two rows.")
    for column in ("version", "load_manager_class"):
        for row, text in enumerate(getattr(brokers, column)):
            if len(text) > MAX_NAME_LENGTH or not text.isprintable():
                found.add("brokers", row, f"'{column}' is not a valid name.", "Leave it out.")


def _positions(snapshot: Snapshot, found: Findings) -> bool:
    """Check what refers to other tables; say whether every namespace can be followed."""
    table = snapshot.bundles
    found.rows(
        "bundles",
        (table.owner < -1) | (table.owner >= len(snapshot.brokers)),
        lambda row: f"Its owner is broker number {table.owner[row] + 1}; there are {len(snapshot.brokers)}.",
        "Add that broker, or correct the owner.",
    )
    return not found.rows(
        "bundles",
        (table.namespace < 0) | (table.namespace >= len(snapshot.namespaces)),
        lambda row: f"Its namespace is number {table.namespace[row] + 1}; there are {len(snapshot.namespaces)}.",
        "Write the namespace as tenant/namespace.",
    )


def _no_namespace(name: str, decides: Release) -> str:
    """Return why a name is that of no namespace of a release; empty when it is."""
    if len(name) <= MAX_NAME_LENGTH and _NAMESPACE.fullmatch(name):
        return ""
    if len(name) > MAX_NAME_LENGTH or not is_namespace_with_cluster(name):
        return f"{_shown(name)} is not a namespace."
    if decides.has(FOUR_PARTS):
        return ""
    return f"{_shown(name)} includes a cluster, which Pulsar accepts only up to 4.1. Decisions follow {decides.name}."


def _namespaces(snapshot: Snapshot, found: Findings) -> None:
    first_row = np.full(len(snapshot.namespaces), -1, dtype=np.int64)
    ids, rows = np.unique(snapshot.bundles.namespace, return_index=True)
    first_row[ids] = rows
    seen: set[str] = set()
    for name, row in zip(snapshot.namespaces, first_row.tolist(), strict=True):
        place = row if row >= 0 else None
        if why := _no_namespace(name, snapshot.settings.release):
            found.add("bundles", place, why, "Write tenant/namespace.")
        elif name in seen:
            found.add("bundles", place, f"The namespace {_shown(name)} is listed twice.", "Keep one of the two.")
        elif row < 0:
            found.add(
                "bundles", None, f"The namespace {_shown(name)} has no bundle.", "List its bundles, or remove it."
            )
        seen.add(name)


def _bundle(snapshot: Snapshot, row: int) -> str:
    table = snapshot.bundles
    return f"{snapshot.namespaces[table.namespace[row]]}/{format_range(int(table.low[row]), int(table.high[row]))}"


def _ranges(snapshot: Snapshot, found: Findings) -> None:
    """Check that the ranges of each namespace follow one another from 0x00000000 to 0xffffffff."""
    table = snapshot.bundles
    beyond = (table.low < 0) | (table.high > FULL_HIGH)
    found.rows(
        "bundles",
        beyond,
        lambda row: f"A boundary of {table.low[row]:#x}_{table.high[row]:#x} does not fit in 32 bits.",
        "Boundaries go from 0x00000000 to 0xffffffff.",
    )
    empty = table.low >= table.high
    found.rows(
        "bundles",
        empty & ~beyond,
        lambda row: f"The range {format_range(int(table.low[row]), int(table.high[row]))} is empty.",
        "The lower boundary must come before the upper one.",
    )
    if len(table) and not beyond.any() and not empty.any():
        _tiling(snapshot, found)


_TILE = "The ranges of a namespace must follow one another from 0x00000000 to 0xffffffff."


def _tiling(snapshot: Snapshot, found: Findings) -> None:
    table = snapshot.bundles
    order = np.lexsort((table.high, table.low, table.namespace))
    place = np.empty_like(order)  # of each row in that order
    place[order] = np.arange(len(order))
    space, low, high = table.namespace[order].astype(np.int64), table.low[order], table.high[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = space[1:] != space[:-1]
    # How far the ranges before reach, and which row reaches that far.
    reach = np.maximum.accumulate((space << 33) | high)
    furthest = np.maximum.accumulate(np.where(((space << 33) | high) == reach, np.arange(len(order)), 0))
    covered = np.where(begins, 0, np.roll(reach & ((1 << 33) - 1), 1))
    before = np.where(begins, -1, order[np.roll(furthest, 1)])

    def overlap(row: int) -> str:
        twin = int(before[place[row]])
        if table.low[row] == table.low[twin] and table.high[row] == table.high[twin]:
            return f"The bundle {_bundle(snapshot, row)} is listed twice, also in row {twin + 1}."
        return f"The bundle {_bundle(snapshot, row)} overlaps {_bundle(snapshot, twin)} of row {twin + 1}."

    def hole(row: int) -> str:
        at, name = place[row], snapshot.namespaces[table.namespace[row]]
        where = f"between row {before[at] + 1} and row {row + 1}" if before[at] >= 0 else f"before row {row + 1}"
        return f"No bundle covers {format_range(int(covered[at]), int(low[at]))} of {name}, {where}."

    def missing_end(row: int) -> str:
        last, name = int(order[furthest[place[row]]]), snapshot.namespaces[table.namespace[row]]
        return f"No bundle covers {format_range(int(table.high[last]), FULL_HIGH)} of {name}, after row {last + 1}."

    found.rows("bundles", order[low < covered], overlap, f"Correct one of the two rows. {_TILE}")
    found.rows("bundles", order[low > covered], hole, _TILE)
    short = np.roll(begins, -1) & ((reach & ((1 << 33) - 1)) < FULL_HIGH)
    found.rows("bundles", order[short], missing_end, _TILE)


_COUNTED_IN_32_BITS = {"topics", "producers", "consumers"}
_INT_MAX = 2**31 - 1
_FEWER = f"Pulsar counts them in 32 bits: use {_INT_MAX:,} at most."


def _numbers(snapshot: Snapshot, found: Findings) -> None:
    for part, kind in TABLES.items():
        table = getattr(snapshot, part)
        for info in column_info(kind):
            if info.kind == "float":
                _floats(table, info, part, found)
            elif info.kind in {"int", "id"} and not info.required:
                least = min(0, int(info.default))
                values = getattr(table, info.name)
                if info.name not in {"owner", "bundle"}:
                    found.rows(part, values < least, _is(info.name, values), f"Use a number of at least {least}.")
                if info.unit in _COUNTED_IN_32_BITS:
                    found.rows(part, values > _INT_MAX, _is(info.name, values), _FEWER)
                if info.name.endswith("_at_ms"):
                    found.rows(part, values > LAST_MS, _is(info.name, values), _MS)


def _is(name: str, values: npt.NDArray[Any]) -> Callable[[int], str]:
    return lambda row: f"'{name}' is {values[row].item()}."


def _floats(table: Any, info: ColumnInfo, part: str, found: Findings) -> None:
    values = getattr(table, info.name)
    odd = np.isinf(values) if info.may_be_unknown else ~np.isfinite(values)
    odd |= (np.abs(values) > MOST) | (("_limit_" in info.name) & (values > 0) & (values < 1 / MOST))
    found.rows(
        part,
        odd,
        _is(info.name, values),
        "Leave it out if it is unknown."
        if info.may_be_unknown
        else f"Use a finite number, {MOST:g} at most{_LIMITS if '_limit_' in info.name else ''}.",
    )
    if "_limit_" in info.name:
        return
    negative = ~odd & (values < 0)
    if negative.any() and "_usage_" in info.name:
        # Pulsar starts every resource as (-1, -1) and leaves it so where the host does not tell.
        negative &= (values != _UNKNOWN_USAGE) | (getattr(table, info.name.replace("_usage_", "_limit_")) > 0)
    found.rows(part, negative, _is(info.name, values), "Use a number of 0 or more.")


def _too_many(policies: Policies) -> Iterator[tuple[str, str]]:
    """Yield of what there is more than any cluster has; each policy is looked at only when there is nothing."""
    for name, most in _MOST_POLICIES.items():
        if (there := len(getattr(policies, name))) > most:
            yield f"{name}: there are {there:,}; the maximum is {most:,}.", "Remove some."
    there = sum(len((*p.namespaces, *p.primary, *p.secondary)) for p in policies.isolation)
    if there > _MOST_EXPRESSIONS:
        what = f"The isolation policies have {there:,} expressions; the maximum is {_MOST_EXPRESSIONS:,}."
        yield what, "Remove some."


def _policies(policies: Policies, decides: Release) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the policies, and what to do about it."""
    for policy in policies.isolation:
        name = _shown(policy.name)
        if not policy.name or not _is_plain(policy.name) or not policy.namespaces or policy.min_limit < 0:
            remedy = "Set a name, expressions for the namespaces and the primary brokers, and a min_limit of 0 or more."
            yield f"The isolation policy {name} is incomplete.", remedy
        for expression in (*policy.primary, *policy.secondary):  # Pulsar stores any expression for namespaces
            pattern, place = java_pattern(expression), f"{_shown(expression)} of the isolation policy {name}"
            if pattern.invalid:
                remedy = "Use Java regex syntax (java.util.regex.Pattern)."
                yield f"{place} is not a valid regular expression: {pattern.problem}.", remedy
    for name in policies.anti_affinity_group:
        if why := _no_namespace(name, decides):
            yield f"anti_affinity_group: {why}", "Write tenant/name."
    for rate in policies.dispatch_rates:
        other = _no_namespace(rate.target, decides) and not _TOPIC.fullmatch(rate.target)
        if other and refusal(rate.target, decides):
            what = f"dispatch_rates: {_shown(rate.target)} is neither a namespace nor a full topic name."
            yield what, "Write tenant/namespace or persistent://tenant/namespace/topic."
        if rate.rate.period_s < 1:
            yield f"dispatch_rates: period_s is {rate.rate.period_s}.", "Use 1 or more seconds."


def _no_topic(name: bytes, namespace: str, decides: Release) -> str:
    """Return why a name is no full name of a topic of a namespace of a release; empty when it is."""
    text = name.decode("utf-8", "replace")
    if why := refusal(text, decides):
        return f"{_shown(text)} is not a full topic name: {why}."
    known = topic_name(text, decides)
    if known.full != text:
        return f"{_shown(text)} has its domain in capitals, which Pulsar {decides.name} converts to lower case."
    return "" if known.namespace == namespace else f"{_shown(text)} is not a full topic name of {namespace}."


def _topics(snapshot: Snapshot, found: Findings) -> None:
    topics, bundles, decides = snapshot.topics, snapshot.bundles, snapshot.settings.release
    names = topics.name.cast(pa.large_binary()).to_pylist()

    def name(row: int) -> str:
        return _shown(names[row].decode("utf-8", "replace"))

    def unheld(row: int) -> str:
        why = refusal(names[row].decode("utf-8", "replace"), decides)
        return f"No bundle of the snapshot contains {name(row)}{f': {why}' if why else ''}."

    if found.rows(
        "topics",
        (topics.bundle < 0) | (topics.bundle >= len(bundles)),
        unheld,
        "List the bundles of its namespace, or leave the topic out.",
    ):
        return
    starts = np.array([b"persistent://" + ns.encode() + b"/" for ns in snapshot.namespaces] or [b""], dtype=object)
    space = bundles.namespace[topics.bundle]
    usual = np.fromiter(map(bytes.startswith, names, starts[space]), np.bool_, len(names))
    wrong = {
        row: why
        for row in np.flatnonzero(~usual).tolist()
        if not names[row].startswith(b"non-" + starts[space[row]])
        and (why := _no_topic(names[row], snapshot.namespaces[space[row]], decides))
    }
    found.rows(
        "topics",
        np.array(list(wrong), dtype=np.int64),
        wrong.__getitem__,
        "Write domain://tenant/namespace/topic.",
    )
    lengths = pc.binary_length(topics.name).to_numpy(zero_copy_only=False)
    least = np.fromiter(map(len, starts), np.int64, len(starts))[space] + len(b"non-") * ~usual
    found.rows(
        "topics",
        (lengths == least) | (lengths > MAX_NAME_LENGTH),
        lambda row: f"The local name of {name(row)} is empty or too long.",
        f"Write domain://tenant/namespace/topic, at most {MAX_NAME_LENGTH} bytes.",
    )
    _hashes(snapshot, names, name, found)
    _repeated(topics, names, name, found)


def _hashes(snapshot: Snapshot, names: list[bytes], name: Callable[[int], str], found: Findings) -> None:
    topics, bundles = snapshot.topics, snapshot.bundles
    hashes = np.fromiter(map(zlib.crc32, names), dtype=np.uint32, count=len(names))
    if found.rows(
        "topics",
        topics.hash != hashes,
        lambda row: f"The hash of {name(row)} is 0x{hashes[row]:08x}, not 0x{topics.hash[row]:08x}.",
        "Leave out the hash. The planner computes it from the name.",
    ):
        return

    def outside(row: int) -> str:
        bundle = _bundle(snapshot, int(topics.bundle[row]))
        return f"{name(row)} has hash 0x{hashes[row]:08x}, outside its bundle {bundle}."

    found.rows(
        "topics",
        (hashes < bundles.low[topics.bundle]) | ((hashes >= bundles.high[topics.bundle]) & (hashes != FULL_HIGH)),
        outside,
        "Leave out the bundle. The planner finds it from the name.",
    )
    found.rows(
        "topics",
        hashes == FULL_HIGH,
        lambda row: f"{name(row)} has hash 0xffffffff, for which Pulsar finds no bundle.",
        "Leave the topic out.",
    )


def _repeated(topics: TopicTable, names: list[bytes], name: Callable[[int], str], found: Findings) -> None:
    order = np.argsort(topics.hash, kind="stable")
    ordered = topics.hash[order]
    twins = np.flatnonzero(ordered[1:] == ordered[:-1])
    first: dict[bytes, int] = {}
    again: dict[int, int] = {}
    for at in np.union1d(twins, twins + 1).tolist():
        row = int(order[at])
        if first.setdefault(names[row], row) != row:
            again[row] = first[names[row]]
    found.rows(
        "topics",
        np.array(sorted(again), dtype=np.int64),
        lambda row: f"{name(row)} is listed twice, first in row {again[row] + 1}.",
        "Keep one of the two rows.",
    )
