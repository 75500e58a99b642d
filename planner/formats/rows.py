"""Snapshots as rows of Arrow tables, and back, driven by `column_info`; a snapshot is a history of one moment.

The same for a snapshot folder, the workspace database and a run of a history. In all of them namespaces and owners of
bundles are names (no owner is null), so that a table can be read without the others, and the hash of a topic may be
left out, since it follows from the name. A history has more:

- two columns in each table, `time_ms` and `position`, the row's place in its snapshot. Its rows are sorted by time,
  then by the broker they belong to;
- a table `moments` with a row for each snapshot: its info, settings, policies and namespaces as JSON;
- texts as dictionaries. Row groups of all tables cover the same moments.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from planner.cluster.arrays import Int64Array, IntArray, UInt32Array
from planner.cluster.errors import SnapshotError, Violation
from planner.cluster.hashing import topic_hashes
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.releases import Release, release
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BundleTable, ColumnInfo, column_info, make_brokers, make_bundles, make_topics
from planner.formats.encoding import compact_json, head_to_json, parse_json, read_info, read_policies, read_settings
from planner.formats.validate import MAX_NAME_LENGTH, TABLES

NAMED = frozenset({"namespace", "owner"})
"""Columns, of bundles, that hold names in a table and positions in a snapshot."""

MOMENTS = "moments"
"""The table of a history that has one row for each snapshot."""

_TEXT = pa.large_string()
_DICTIONARY = pa.dictionary(pa.int32(), _TEXT)
_ARROW: Mapping[str, pa.DataType] = {
    "text": _TEXT,
    "float": pa.float64(),
    "int": pa.int64(),
    "bool": pa.bool_(),
    "id": pa.int32(),
    "hash": pa.uint32(),
}
_MAX_TEXT_BYTES = 1 << 29
_LISTED = 100
_UNKNOWN = -2
_WELL_FORMED = r"(?i)^(persistent|non-persistent|topic|segment)://[^/]+/[^/]+/"


# Out of snapshots.


def table_to_arrow(snapshot: Snapshot, part: str, *, hashes: bool = False) -> pa.Table:
    """Return `brokers`, `bundles` or `topics` of a snapshot as Arrow; with hashes of topics, these come last."""
    table = getattr(snapshot, part)
    columns: dict[str, Any] = {}
    infos = column_info(TABLES[part])
    for info in sorted(infos, key=lambda i: i.kind == "hash"):
        values = getattr(table, info.name)
        if info.kind == "hash" and not hashes:
            continue
        if info.name in NAMED:
            names = snapshot.namespaces if info.name == "namespace" else snapshot.brokers.name
            indices = pa.array(values, mask=values < 0, type=pa.int32())
            columns[info.name] = pa.DictionaryArray.from_arrays(indices, pa.array(names, type=_TEXT))
        elif isinstance(values, pa.Array | pa.ChunkedArray):
            columns[info.name] = values.cast(_ARROW[info.kind])
        else:
            columns[info.name] = pa.array(values, type=_ARROW[info.kind])
    return pa.table(columns)


def _schema(part: str) -> pa.Schema:
    fields = [pa.field("time_ms", pa.int64(), nullable=False), pa.field("position", pa.int32(), nullable=False)]
    for info in column_info(TABLES[part]):
        is_text = info.kind == "text" or info.name in NAMED
        if info.kind != "hash":
            fields.append(pa.field(info.name, _DICTIONARY if is_text else _ARROW[info.kind]))
    return pa.schema(fields)


SCHEMAS: Mapping[str, pa.Schema] = {
    MOMENTS: pa.schema(
        [
            ("time_ms", pa.int64()),
            ("row_group", pa.int32()),
            *((part, pa.int64()) for part in TABLES),
            *((name, _TEXT) for name in ("info", "settings", "policies", "namespaces")),
        ]
    ),
    **{part: _schema(part) for part in TABLES},
}
"""Columns of each table of a history."""


def row_of_moment(snapshot: Snapshot, row_group: int) -> dict[str, Any]:
    """Return the row of a snapshot in `moments`."""
    head = head_to_json(snapshot) | {"namespaces": list(snapshot.namespaces)}
    return {
        "time_ms": snapshot.info.captured_at_ms,
        "row_group": row_group,
        **{part: len(getattr(snapshot, part)) for part in TABLES},
        **{name: compact_json(value) for name, value in head.items()},
    }


def rows_of_moments(snapshots: Sequence[Snapshot]) -> dict[str, pa.Table]:
    """Return the rows of snapshots, one after the other, in each of the other tables of a history."""
    orders = [_order(snapshot) for snapshot in snapshots]
    made: dict[str, pa.Table] = {}
    for part, schema in ((part, SCHEMAS[part]) for part in TABLES):
        mine = [order[part] for order in orders]
        starts = accumulate((len(order) for order in mine[:-1]), initial=0)
        rows = np.concatenate([order + start for order, start in zip(mine, starts, strict=True)])
        tables = [getattr(snapshot, part) for snapshot in snapshots]
        times = np.array([snapshot.info.captured_at_ms for snapshot in snapshots], dtype=np.int64)
        columns: dict[str, Any] = {
            "time_ms": pa.array(np.repeat(times, [len(order) for order in mine])),
            "position": pa.array(np.concatenate(mine).astype(np.int32)),
        }
        for name in schema.names[len(columns) :]:
            values = [getattr(table, name) for table in tables]
            if name in NAMED:
                spaces = [s.namespaces if name == "namespace" else s.brokers.name for s in snapshots]
                columns[name] = _named(values, mine, spaces)
            elif isinstance(values[0], np.ndarray):
                columns[name] = pa.array(np.concatenate(values)[rows], schema.field(name).type)
            else:
                texts = [_taken(column, order) for column, order in zip(values, mine, strict=True)]
                columns[name] = pa.concat_arrays(texts).dictionary_encode().cast(_DICTIONARY)
        made[part] = pa.table(columns, schema=schema)
    return made


def _named(
    values: Sequence[IntArray], orders: Sequence[Int64Array], spaces: Sequence[tuple[str, ...]]
) -> pa.DictionaryArray:
    """Return positions among the names of each moment, -1 for none, as positions among the names of all."""
    number: dict[str, int] = {}
    lookups: dict[tuple[str, ...], IntArray] = {}
    pieces = []
    for column, order, names in zip(values, orders, spaces, strict=True):
        if names not in lookups:
            places = [number.setdefault(name, len(number)) for name in names]
            lookups[names] = np.array([*places, -1], dtype=np.int32)
        pieces.append(lookups[names][column[order]])
    flat = np.concatenate(pieces)
    return pa.DictionaryArray.from_arrays(pa.array(flat, mask=flat < 0), pa.array(list(number), type=_TEXT))


def _taken(column: Any, order: Int64Array) -> pa.Array:
    """Return texts in another order."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array):
        return column.cast(_TEXT).take(pa.array(order))
    return pa.array([column[at] for at in order.tolist()], type=_TEXT)


def _order(snapshot: Snapshot) -> dict[str, Int64Array]:
    """Return the rows of each table sorted by the name of their broker; what nobody owns comes last."""
    names = snapshot.brokers.name
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[by_name] = np.arange(len(names))
    rank[-1] = len(names)
    owner = rank[snapshot.bundles.owner]
    beside = np.append(owner, len(names) + 1)[snapshot.topics.bundle]
    return {
        "brokers": by_name,
        "bundles": np.argsort(owner, kind="stable"),
        "topics": np.argsort(beside, kind="stable"),
    }


# Into snapshots.


class _Part:
    """The rows of one table, as arrays over all its moments.

    Attributes:
        file: Its name, for messages.
        arrays: Numbers; of a dictionary, positions in `texts`, -1 for null.
        texts: Texts of a dictionary; of a plain column of texts, the column.
    """

    def __init__(self, part: str, columns: Mapping[str, pa.Array], file: str) -> None:
        self.file = file
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self.texts: dict[str, pa.Array] = {}
        self._lists: dict[str, list[str]] = {}
        for name, column in columns.items():
            if pa.types.is_dictionary(column.type):
                self.texts[name] = column.dictionary
                self.arrays[name] = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            elif column.type == _TEXT:
                self.texts[name] = column
            else:
                self.arrays[name] = column.to_numpy(zero_copy_only=False)
        if part == "topics" and "hash" not in self.arrays:
            self.hashes = topic_hashes(self.texts["name"].cast(pa.large_binary()).to_pylist(), len(self.texts["name"]))

    def names(self, column: str) -> list[str]:
        """Return the texts of a column; once for all moments."""
        if column not in self._lists:
            self._lists[column] = self.texts[column].to_pylist()
        return self._lists[column]

    def rows(self, first: int, count: int) -> "Int64Array | slice":
        """Return the rows of a moment in the order of its snapshot. Shape (rows of the moment,)."""
        if "position" not in self.arrays:
            return slice(first, first + count)
        rows = np.empty(count, dtype=np.int64)
        rows[self.arrays["position"][first : first + count]] = np.arange(first, first + count)
        return rows

    def numbers(self, rows: "Int64Array | slice") -> dict[str, Any]:
        """Return the columns that hold numbers."""
        leave_out = {"time_ms", "position", *self.texts}
        return {name: array[rows] for name, array in self.arrays.items() if name not in leave_out}

    def text(self, column: str, rows: "Int64Array | slice") -> tuple[str, ...]:
        """Return a column of texts."""
        names = self.names(column)
        return tuple(names[i] for i in self.arrays[column][rows].tolist()) if column in self.arrays else tuple(names)

    def positions(self, column: str, rows: "Int64Array | slice", position: Mapping[str, int]) -> IntArray:
        """Return a column of names as positions, -1 for null. Shape (rows,).

        Raises:
            SnapshotError: A name has no position.
        """
        names = self.names(column)
        lookup = np.array([*(position.get(name, _UNKNOWN) for name in names), -1], dtype=np.int32)
        indices = self.arrays[column][rows]
        ids: IntArray = lookup[indices]  # the last place, -1, stands for null
        unknown = np.flatnonzero(ids == _UNKNOWN)
        if len(unknown):
            what, remedy = "is not one of the brokers.", "Add that broker, or correct the owner."
            found = [
                Violation(self.file, row + 1, f"The {column} '{names[indices[row]][:120]}' {what}", remedy)
                for row in unknown[:_LISTED].tolist()
            ]
            raise SnapshotError(found, len(unknown))
        return ids


def _snapshot(
    head: Mapping[str, Any],
    parts: Mapping[str, _Part],
    first: Mapping[str, int],
    size: Mapping[str, int],
    namespaces: tuple[str, ...] | None = None,
) -> Snapshot:
    """Build a snapshot of some rows; without `namespaces`, they come in the order of their first bundle."""
    rows = {part: parts[part].rows(first[part], size[part]) for part in parts}
    of_brokers, of_bundles = parts["brokers"], parts["bundles"]
    texts = {name: of_brokers.text(name, rows["brokers"]) for name in of_brokers.texts}
    brokers = make_brokers(**texts, **of_brokers.numbers(rows["brokers"]))
    if namespaces is None:
        used = pc.unique(pa.array(of_bundles.arrays["namespace"][rows["bundles"]])).to_pylist()
        namespaces = tuple(dict.fromkeys(of_bundles.names("namespace")[i] for i in used))
    place = {name: i for i, name in enumerate(namespaces)}
    named: dict[str, Any] = {"namespace": of_bundles.positions("namespace", rows["bundles"], place)}
    if "owner" in of_bundles.arrays:
        named["owner"] = of_bundles.positions("owner", rows["bundles"], brokers.position)
    bundles = make_bundles(**named, **of_bundles.numbers(rows["bundles"]))
    topics = make_topics()
    if "topics" in parts and size["topics"]:
        of_topics, at = parts["topics"], rows["topics"]
        columns = of_topics.numbers(at)
        ids = of_topics.arrays["name"][at] if "name" in of_topics.arrays else None
        name = of_topics.texts["name"] if ids is None else of_topics.texts["name"].take(pa.array(ids))
        if "hash" not in columns:
            columns["hash"] = of_topics.hashes if ids is None else of_topics.hashes[ids]
        if "bundle" not in columns:
            columns["bundle"] = bundle_of_topics(name, columns["hash"], bundles, namespaces)
        topics = make_topics(**columns, name=name)
    return Snapshot(**head, brokers=brokers, namespaces=namespaces, bundles=bundles, topics=topics)


def snapshot_of_tables(
    head: Mapping[str, Any], tables: Mapping[str, pa.Table], files: Mapping[str, str] | None = None
) -> Snapshot:
    """Build a snapshot of untrusted tables; it is not validated.

    Args:
        head: Its info, settings and policies (see `read_head`).
        tables: Columns as `table_to_arrow` names them, by part; those with a default may be absent, and so may topics.
        files: Name of each part, for the messages.

    Raises:
        SnapshotError: A column is missing, unknown, empty or of another type; an owner is not among the brokers.
    """
    names = files or {part: part for part in tables}
    parts = {part: _Part(part, _columns(table, part, names[part]), names[part]) for part, table in tables.items()}
    return _snapshot(head, parts, dict.fromkeys(tables, 0), {part: t.num_rows for part, t in tables.items()})


def snapshots_of_rows(moments: Sequence[Mapping[str, Any]], tables: Mapping[str, pa.Table]) -> Iterator[Snapshot]:
    """Yield the snapshots of some rows of a history.

    Args:
        moments: Their rows of `moments`, in the order of time.
        tables: Rows of all of them in each of the other tables; without `topics`, the snapshots have none.

    Raises:
        FormatError: What `moments` says cannot be read.
        SnapshotError: An owner is not among the brokers.
    """
    parts = {
        part: _Part(part, {name: _one(table[name]) for name in table.column_names}, part)
        for part, table in tables.items()
    }
    first = dict.fromkeys(tables, 0)
    for moment in moments:
        where = f"{MOMENTS}, {moment['time_ms']}"
        info = read_info(parse_json(moment["info"], where), where)
        head = {
            "info": info,
            "settings": _seldom_changed("settings", moment["settings"], release(info.pulsar_version)),
            "policies": _seldom_changed("policies", moment["policies"]),
        }
        yield _snapshot(head, parts, first, moment, _seldom_changed("namespaces", moment["namespaces"]))
        for part in tables:
            first[part] += moment[part]


_READERS: Mapping[str, Callable[..., Any]] = {
    "settings": read_settings,
    "policies": read_policies,
    "namespaces": lambda names, _: tuple(names),
}


@lru_cache(maxsize=24)
def _seldom_changed(name: str, text: str, *decides: Release) -> Any:
    return _READERS[name](parse_json(text, MOMENTS), MOMENTS, *decides)


def _one(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)


# Untrusted tables.


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


def _fits(kind: pa.DataType, info: ColumnInfo) -> bool:
    """Say whether a column of this type can hold what is asked, without guessing."""
    if info.name in NAMED or info.kind == "text":
        return _is_text(kind)
    if info.kind == "float":
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
    if info.kind == "bool":
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_integer(kind))


def _refuse(file: str, what: str, remedy: str, row: int | None = None) -> SnapshotError:
    return SnapshotError([Violation(file, row, what, remedy)])


def check_schema(schema: pa.Schema, part: str, file: str) -> None:
    """Refuse columns that a part does not have, or that are of another type; before any of them is read.

    Raises:
        SnapshotError: A column is missing, unknown, twice there or of another type.
    """
    known = {info.name: info for info in column_info(TABLES[part])}
    names = schema.names
    found = [
        Violation(file, None, f"The column '{name}' is missing.", f"Add it: {info.meaning}.")
        for name, info in known.items()
        if info.required and name not in names
    ]
    found += [
        Violation(file, None, f"The column '{name[:80]}' is unknown.", f"Remove it. Known columns: {', '.join(known)}.")
        for name in names
        if name not in known
    ]
    found += [
        Violation(file, None, f"The column '{name[:80]}' occurs twice.", "Keep one of them.")
        for name in {n for n in names if names.count(n) > 1}
    ]
    for info in known.values():
        if names.count(info.name) == 1 and not _fits(kind := schema.field(info.name).type, info):
            wanted = "text" if info.name in NAMED else info.kind
            what = f"The column '{info.name}' has type {str(kind)[:80]}, not {wanted}."
            unit = f" ({info.unit})" if info.unit else ""
            found.append(Violation(file, None, what, f"Write {_ARROW[wanted]}{unit}."))
    if found:
        raise SnapshotError(found[:_LISTED], len(found))


def _columns(table: pa.Table, part: str, file: str) -> dict[str, pa.Array]:
    """Return the columns of a part, each of the type of its kind."""
    check_schema(table.schema, part, file)
    known = {info.name: info for info in column_info(TABLES[part])}
    return {name: _cast(table[name], known[name], file) for name in table.column_names}


def _cast(column: pa.ChunkedArray, info: ColumnInfo, file: str) -> pa.Array:
    named = info.name in NAMED
    try:
        column.validate(full=True)
        if info.name != "owner" and column.null_count:
            row = int(pc.index(pc.is_null(column), value=True).as_py()) + 1
            raise _refuse(file, f"'{info.name}' is empty.", "Use a value, or remove the column.", row)
        if pa.types.is_dictionary(column.type):
            _check_size(column, info.name, file)
        if named and not pa.types.is_dictionary(column.type):
            column = column.cast(pa.large_string()).dictionary_encode()
        column = column.cast(_DICTIONARY if named else _ARROW[info.kind])
        return _one(column)
    except MemoryError:
        raise
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0][:200].rstrip(".")
        raise _refuse(file, f"The column '{info.name}' cannot be read: {reason}.", "Write the file again.") from error


def _check_size(column: pa.ChunkedArray, name: str, file: str) -> None:
    """Refuse texts longer than any name, and repeated ones that unfold to more than anybody has."""
    size = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
        if (longest := pc.max(lengths).as_py() or 0) > MAX_NAME_LENGTH:
            what = (
                f"A text in the column '{name}' has {longest:,} bytes; the maximum for a name is {MAX_NAME_LENGTH:,}."
            )
            raise _refuse(file, what, "Shorten the names.")
        size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    if size > _MAX_TEXT_BYTES:
        raise _refuse(file, f"The column '{name}' unpacks to {size >> 20:,} MiB of text.", "Shorten the names.")


def _places(topics: pa.Array, namespaces: Sequence[str], parts: int) -> Int64Array:
    """Return the place of each topic's namespace, whose name has so many parts; -1 for none. Shape (topics,)."""
    split = pc.split_pattern(topics, "/", max_splits=2 + parts)
    slash = pa.scalar("/", type=topics.type)
    full = pc.binary_join_element_wise(*(pc.list_element(split, 2 + part) for part in range(parts)), slash)
    known = pa.array(namespaces, type=full.type)
    found: Int64Array = pc.index_in(full, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def bundle_of_topics(
    names: Sequence[str] | pa.Array, hashes: UInt32Array, bundles: BundleTable, namespaces: Sequence[str]
) -> IntArray:
    """Return the bundle that holds each topic. Shape (topics,).

    -1 stands for a topic of no namespace listed, in a hole of its ranges, or with hash 0xffffffff, for which Pulsar
    finds no bundle either.
    """
    if not len(bundles) or not len(hashes):
        return np.full(len(hashes), -1, dtype=np.int32)
    texts = names if isinstance(names, pa.Array) else pa.array(names, type=pa.large_string())
    texts = pc.if_else(
        pc.match_substring_regex(texts, _WELL_FORMED), texts, pa.scalar("//none/none/none", type=texts.type)
    )
    spaces = _places(texts, namespaces, 2)
    if any(name.count("/") > 1 for name in namespaces):  # then a name of four parts is of one of those
        longer = np.flatnonzero(pc.greater(pc.count_substring(texts, "/"), 4).to_numpy(zero_copy_only=False))
        if len(longer):
            spaces[longer] = _places(texts.take(pa.array(longer)), namespaces, 3)
    order = np.lexsort((bundles.low, bundles.namespace))
    starts = (bundles.namespace[order].astype(np.int64) << 32) | bundles.low[order]
    at = np.searchsorted(starts, (spaces << 32) | hashes.astype(np.int64), side="right") - 1
    found = order[np.maximum(at, 0)]
    inside = (at >= 0) & (spaces >= 0) & (bundles.namespace[found] == spaces) & (hashes < bundles.high[found])
    return np.where(inside & (hashes != FULL_HIGH), found, -1).astype(np.int32)
