"""Snapshot tables to Arrow tables and back, driven by `column_info`; the same for Parquet files and DuckDB.

On disk, namespaces and owners of bundles are names (no owner is null), so that a file can be read without the others.
Hashes of topics are not stored: they follow from the names.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from planner.cluster.arrays import IntArray, UInt32Array
from planner.cluster.errors import SnapshotError, Violation
from planner.cluster.hashing import topic_hashes
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import (
    BrokerTable,
    BundleTable,
    ColumnInfo,
    Snapshot,
    TopicTable,
    column_info,
    make_brokers,
    make_bundles,
    make_topics,
)
from planner.formats.validate import TABLES

NAMED: Mapping[str, frozenset[str]] = {"bundles": frozenset({"namespace", "owner"})}
"""Columns that hold names on disk and positions in memory."""

_ARROW: Mapping[str, pa.DataType] = {
    "text": pa.large_string(),
    "float": pa.float64(),
    "int": pa.int64(),
    "bool": pa.bool_(),
    "id": pa.int32(),
    "hash": pa.uint32(),
}
_DICTIONARY = pa.dictionary(pa.int32(), pa.large_string())
_MAX_TEXT_BYTES = 1 << 31
_LISTED = 100
_WELL_FORMED = r"^(persistent|non-persistent)://[^/]+/[^/]+/"


def _named(ids: IntArray, names: Sequence[str]) -> pa.Array:
    """Return positions as a dictionary of names; negative positions are null."""
    indices = pa.array(ids, mask=ids < 0, type=pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, type=pa.large_string()))


def table_to_arrow(snapshot: Snapshot, part: str) -> pa.Table:
    """Return one table of a snapshot as Arrow; namespaces and owners are names there.

    Args:
        snapshot: The snapshot.
        part: `brokers`, `bundles` or `topics`.
    """
    table = getattr(snapshot, part)
    columns: dict[str, Any] = {}
    for info in column_info(TABLES[part]):
        values = getattr(table, info.name)
        if info.kind == "hash":
            continue
        if info.name in NAMED.get(part, ()):
            names = snapshot.namespaces if info.name == "namespace" else snapshot.brokers.name
            columns[info.name] = _named(values, names)
        elif isinstance(values, pa.Array | pa.ChunkedArray):
            columns[info.name] = values.cast(_ARROW[info.kind])
        else:
            columns[info.name] = pa.array(values, type=_ARROW[info.kind])
    return pa.table(columns)


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


def _fits(kind: pa.DataType, info: ColumnInfo, *, named: bool) -> bool:
    """Say whether a column of this type can hold what is asked, without guessing."""
    if named or info.kind == "text":
        return _is_text(kind)
    if info.kind == "float":
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
    if info.kind == "bool":
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_integer(kind))


def _refuse(file: str, what: str, remedy: str, row: int | None = None) -> SnapshotError:
    return SnapshotError([Violation(file, row, what, remedy)])


def _columns(table: pa.Table, part: str, file: str) -> dict[str, pa.Array]:
    """Return the columns of a part, each of the type of its kind."""
    known = {info.name: info for info in column_info(TABLES[part])}
    names = table.column_names
    found = [
        Violation(file, None, f"The column '{name}' is missing.", f"Add it: {info.meaning}.")
        for name, info in known.items()
        if info.required and name not in names
    ]
    found += [
        Violation(file, None, f"The column '{name[:80]}' is unknown.", f"Drop it; there are {', '.join(known)}.")
        for name in names
        if name not in known
    ]
    found += [
        Violation(file, None, f"The column '{name[:80]}' occurs twice.", "Keep one of the two.")
        for name in {n for n in names if names.count(n) > 1}
    ]
    if found:
        raise SnapshotError(found[:_LISTED], len(found))
    return {name: _cast(table[name], known[name], part, file) for name in names}


def _cast(column: pa.ChunkedArray, info: ColumnInfo, part: str, file: str) -> pa.Array:
    named = info.name in NAMED.get(part, ())
    if not _fits(column.type, info, named=named):
        kind = "text" if named else info.kind
        raise _refuse(
            file,
            f"The column '{info.name}' has type {column.type}, not {kind}.",
            f"Write {_ARROW[kind]}{f' ({info.unit})' if info.unit else ''}.",
        )
    try:
        column.validate(full=True)
        if info.name != "owner" and column.null_count:
            row = int(pc.index(pc.is_null(column), value=True).as_py()) + 1
            raise _refuse(file, f"'{info.name}' is empty.", "Give a value, or drop the column.", row)
        if pa.types.is_dictionary(column.type) and not named:
            _check_size(column, info.name, file)
        if named and not pa.types.is_dictionary(column.type):
            column = column.cast(pa.large_string()).dictionary_encode()
        column = column.cast(_DICTIONARY if named else _ARROW[info.kind])
        return _one(column.unify_dictionaries() if named else column)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0][:200].rstrip(".")
        raise _refuse(file, f"The column '{info.name}' cannot be read: {reason}.", "Write it again.") from error


def _check_size(column: pa.ChunkedArray, name: str, file: str) -> None:
    """Refuse repeated texts that unfold to more than anybody has."""
    size = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
        size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    if size > _MAX_TEXT_BYTES:
        raise _refuse(
            file, f"The column '{name}' unfolds to {size >> 20:,} MiB of text.", "Names are shorter; write it again."
        )


def _one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)


def _numbers(columns: Mapping[str, pa.Array]) -> dict[str, npt.NDArray[Any]]:
    return {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()}


def brokers_from_arrow(table: pa.Table, file: str) -> BrokerTable:
    """Build the broker table.

    Args:
        table: Columns as `table_to_arrow` names them; those with a default may be absent.
        file: Its name, for the messages.

    Raises:
        SnapshotError: A column is missing, unknown, empty or of another type.
    """
    columns = _columns(table, "brokers", file)
    made: dict[str, Any] = {name: tuple(c.to_pylist()) for name, c in columns.items() if c.type == _ARROW["text"]}
    made |= _numbers({n: c for n, c in columns.items() if n not in made})
    return make_brokers(**made)


def _positions(column: pa.Array, position: Mapping[str, int]) -> tuple[IntArray, list[tuple[int, str]]]:
    """Return positions of names (-1 for null), and the first rows of names that have none."""
    names = column.dictionary.to_pylist()
    lookup = np.array([*(position.get(name, -2) for name in names), -1], dtype=np.int32)
    indices = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    ids: IntArray = lookup[indices]  # the last place, -1, stands for null
    unknown = np.flatnonzero(ids == -2)[:_LISTED]  # noqa: PLR2004 - the mark set above
    return ids, [(row, names[indices[row]]) for row in unknown.tolist()]


def bundles_from_arrow(table: pa.Table, brokers: BrokerTable, file: str) -> tuple[BundleTable, tuple[str, ...]]:
    """Build the bundle table.

    Args:
        table: Columns as `table_to_arrow` names them; those with a default may be absent.
        brokers: The brokers that may own bundles.
        file: Its name, for the messages.

    Returns:
        The table, and the names of the namespaces in the order of their first bundle.

    Raises:
        SnapshotError: A column is missing, unknown, empty or of another type; an owner is not among the brokers.
    """
    columns = _columns(table, "bundles", file)
    made = _numbers({n: c for n, c in columns.items() if n not in NAMED["bundles"]})
    spaces = columns["namespace"]
    used = pc.unique(spaces.indices).to_pylist()
    listed = spaces.dictionary.to_pylist()
    namespaces = tuple(dict.fromkeys(listed[i] for i in used))
    made["namespace"], _ = _positions(spaces, {name: i for i, name in enumerate(namespaces)})
    if "owner" in columns:
        made["owner"], unknown = _positions(columns["owner"], brokers.position)
        if unknown:
            total = int((made["owner"] == -2).sum())  # noqa: PLR2004 - the mark of `_positions`
            raise SnapshotError(
                [
                    Violation(
                        file,
                        row + 1,
                        f"The owner '{name[:120]}' is not one of the brokers.",
                        "Add that broker, or correct the owner.",
                    )
                    for row, name in unknown
                ],
                total,
            )
    return make_bundles(**made), namespaces


def topics_from_arrow(table: pa.Table, file: str, bundles: BundleTable, namespaces: Sequence[str]) -> TopicTable:
    """Build the topic table; the bundle of each topic is computed where it is not given, the hash where it is not.

    Args:
        table: Columns as `table_to_arrow` names them; those with a default may be absent.
        file: Its name, for the messages.
        bundles: The bundles that hold the topics.
        namespaces: Names that the bundles refer to.

    Raises:
        SnapshotError: A column is missing, unknown, empty or of another type.
    """
    columns = _columns(table, "topics", file)
    name = columns.pop("name")
    made = _numbers(columns)
    if "hash" not in made:
        made["hash"] = topic_hashes(name.cast(pa.large_binary()).to_pylist(), len(name))
    if "bundle" not in made:
        made["bundle"] = bundle_of_topics(name, made["hash"], bundles, namespaces)
    return make_topics(**made, name=name)


def bundle_of_topics(
    names: Sequence[str] | pa.Array, hashes: UInt32Array, bundles: BundleTable, namespaces: Sequence[str]
) -> IntArray:
    """Return the bundle that holds each topic.

    -1 stands for a topic of no namespace listed, in a hole of its ranges, or with hash 0xffffffff, for which Pulsar
    finds no bundle either.

    Args:
        names: Full topic names.
        hashes: Their hashes.
        bundles: The bundles.
        namespaces: Names that the bundles refer to.
    """
    if not len(bundles) or not len(hashes):
        return np.full(len(hashes), -1, dtype=np.int32)
    texts = names if isinstance(names, pa.Array) else pa.array(names, type=pa.large_string())
    texts = pc.if_else(
        pc.match_substring_regex(texts, _WELL_FORMED), texts, pa.scalar("//none/none/none", type=texts.type)
    )
    parts = pc.split_pattern(texts, "/", max_splits=4)
    slash = pa.scalar("/", type=texts.type)
    full = pc.binary_join_element_wise(pc.list_element(parts, 2), pc.list_element(parts, 3), slash)
    known = pa.array(namespaces, type=full.type)
    spaces = pc.index_in(full, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort((bundles.low, bundles.namespace))
    starts = (bundles.namespace[order].astype(np.int64) << 32) | bundles.low[order]
    at = np.searchsorted(starts, (spaces << 32) | hashes.astype(np.int64), side="right") - 1
    found = order[np.maximum(at, 0)]
    inside = (at >= 0) & (spaces >= 0) & (bundles.namespace[found] == spaces) & (hashes < bundles.high[found])
    return np.where(inside & (hashes != FULL_HIGH), found, -1).astype(np.int32)
