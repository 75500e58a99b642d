"""Snapshot tables to Arrow tables and back, driven by `column_info`; the same for Parquet files and DuckDB."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model.arrays import IntArray, UInt32Array
from planner.model.errors import SnapshotError, Violation
from planner.model.hashing import topic_hashes
from planner.model.ranges import FULL_HIGH
from planner.model.snapshot import (
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

__all__ = [
    "NAMED",
    "TABLES",
    "brokers_from_arrow",
    "bundle_of_topics",
    "bundles_from_arrow",
    "table_to_arrow",
    "topics_from_arrow",
]

TABLES: Mapping[str, type[BrokerTable] | type[BundleTable] | type[TopicTable]] = {
    "brokers": BrokerTable,
    "bundles": BundleTable,
    "topics": TopicTable,
}
"""The tables of a snapshot by the name of their part."""

NAMED = {"bundles": {"namespace", "owner"}}
"""Columns that hold names on disk and positions in memory."""

_ARROW: dict[str, pa.DataType] = {
    "text": pa.large_string(),
    "float": pa.float64(),
    "int": pa.int64(),
    "bool": pa.bool_(),
    "id": pa.int32(),
    "hash": pa.uint32(),
}
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def _named(ids: np.ndarray[Any, Any], names: Sequence[str]) -> pa.Array:
    """Return positions as a dictionary of names; negative positions are null."""
    indices = pa.array(ids, mask=ids < 0, type=pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, type=pa.string()))


def table_to_arrow(snapshot: Snapshot, part: str) -> pa.Table:
    """Return one table of a snapshot as Arrow; namespaces and owners are names there."""
    table = getattr(snapshot, part)
    columns: dict[str, Any] = {}
    for info in column_info(TABLES[part]):
        if info.kind == "hash":
            continue  # follows from the name
        values = getattr(table, info.name)
        if info.name in NAMED.get(part, ()):
            columns[info.name] = _named(
                values, snapshot.namespaces if info.name == "namespace" else snapshot.brokers.name
            )
        else:
            columns[info.name] = pa.array(values, type=_ARROW[info.kind]) if isinstance(values, tuple) else values
    arrays = [c if isinstance(c, pa.Array | pa.ChunkedArray) else pa.array(c) for c in columns.values()]
    return pa.table(arrays, names=list(columns))


def _columns(table: pa.Table, part: str, file: str) -> dict[str, pa.ChunkedArray]:
    known = {info.name: info for info in column_info(TABLES[part])}
    present = set(table.column_names)
    found = [
        Violation(file, None, f"The column '{name}' is missing.", f"Add it ({info.meaning.lower()}).")
        for name, info in known.items()
        if info.required and name not in present
    ]
    found += [
        Violation(file, None, f"The column '{name}' is unknown.", "Remove it, or see the format page for the names.")
        for name in table.column_names
        if name not in known
    ]
    if len(present) != len(table.column_names):
        found.append(Violation(file, None, "A column occurs twice.", "Keep one of the two."))
    if found:
        raise SnapshotError(found)
    return {name: _cast(table[name], known[name], part, file) for name in table.column_names}


def _cast(column: pa.ChunkedArray, info: ColumnInfo, part: str, file: str) -> pa.ChunkedArray:
    named = info.name in NAMED.get(part, ())
    if not named and column.null_count:
        row = int(pc.index(pc.is_null(column), value=True).as_py()) + 1
        raise SnapshotError(
            [Violation(file, row, f"'{info.name}' is empty.", "Give a value, or leave out the column.")]
        )
    wanted = _DICTIONARY if named else _ARROW[info.kind]
    if column.type == wanted:
        return column
    try:
        if named:
            return column.cast(pa.string()).dictionary_encode()
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SnapshotError(
            [
                Violation(
                    file,
                    None,
                    f"The column '{info.name}' has type {column.type}, not {info.kind}.",
                    "Write the type that the format page names.",
                )
            ]
        ) from error


def _numpy(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, Any]:
    return {name: column.to_numpy() for name, column in columns.items()}


def brokers_from_arrow(table: pa.Table, file: str) -> BrokerTable:
    """Build the broker table.

    Raises:
        SnapshotError: A column is missing, unknown, empty or of another type.
    """
    columns = _columns(table, "brokers", file)
    texts = {n for n in columns if column_of("brokers", n).kind == "text"}
    made = _numpy({n: c for n, c in columns.items() if n not in texts})
    made |= {n: tuple(columns[n].to_pylist()) for n in texts}
    return make_brokers(**made)


def column_of(part: str, name: str) -> ColumnInfo:
    """Return what a column of a part holds."""
    return next(info for info in column_info(TABLES[part]) if info.name == name)


def _positions(
    column: pa.ChunkedArray, position: Mapping[str, int]
) -> tuple[np.ndarray[Any, Any], list[tuple[int, str]]]:
    """Return positions of names (-1 for null, -2 for unknown), and the first rows of unknown names."""
    chunked = column.unify_dictionaries().combine_chunks()
    encoded = chunked.chunk(0) if isinstance(chunked, pa.ChunkedArray) else chunked
    names = encoded.dictionary.to_pylist()
    lookup = np.array([position.get(name, -2) for name in names] or [-2], dtype=np.int32)
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    ids = np.where(indices >= 0, lookup[indices], np.int32(-1)).astype(np.int32)
    unknown = np.flatnonzero(ids == -2)[:100]  # noqa: PLR2004 - the mark set above
    return ids, [(int(row), names[indices[row]]) for row in unknown]


def bundles_from_arrow(table: pa.Table, brokers: BrokerTable, file: str) -> tuple[BundleTable, tuple[str, ...]]:
    """Build the bundle table.

    Returns:
        The table, and the names of the namespaces in the order of their first bundle.

    Raises:
        SnapshotError: A column is missing, unknown, empty or of another type; an owner is not among the brokers.
    """
    columns = _columns(table, "bundles", file)
    made = _numpy({n: c for n, c in columns.items() if n not in NAMED["bundles"]})
    spaces = columns["namespace"]
    if spaces.null_count:
        row = int(pc.index(pc.is_null(spaces), value=True).as_py()) + 1
        raise SnapshotError([Violation(file, row, "'namespace' is empty.", "Give tenant/namespace.")])
    namespaces = tuple(spaces.unique().cast(pa.string()).to_pylist()) if len(spaces) else ()
    made["namespace"], _ = (
        _positions(spaces, {n: i for i, n in enumerate(namespaces)}) if len(spaces) else (np.zeros(0, np.int32), [])
    )
    if "owner" in columns and len(spaces):
        made["owner"], unknown = _positions(columns["owner"], brokers.position)
        if unknown:
            raise SnapshotError(
                [
                    Violation(
                        file,
                        row + 1,
                        f"The owner '{name}' is not one of the brokers.",
                        "Add that broker or correct the owner.",
                    )
                    for row, name in unknown
                ]
            )
    elif "owner" in columns:
        made["owner"] = np.zeros(0, np.int32)
    return make_bundles(**made), namespaces


def topics_from_arrow(table: pa.Table, file: str, bundles: BundleTable, namespaces: Sequence[str]) -> TopicTable:
    """Build the topic table; hashes are computed from the names, and the bundle of each topic where it is not given.

    Raises:
        SnapshotError: A column is missing, unknown, empty or of another type; a given hash is not that of the name.
    """
    columns = _columns(table, "topics", file)
    name = columns.pop("name").combine_chunks()
    name = name.chunk(0) if isinstance(name, pa.ChunkedArray) else name
    made = _numpy(columns)
    hashes = topic_hashes(name.cast(pa.large_binary()).to_pylist(), len(name))
    wrong = np.flatnonzero(made["hash"] != hashes)[:100] if "hash" in made else np.zeros(0, np.int64)
    if len(wrong):
        raise SnapshotError(
            [
                Violation(
                    file,
                    int(row) + 1,
                    f"'{name[int(row)]}' has the hash 0x{int(hashes[row]):08x}, not 0x{int(made['hash'][row]):08x}.",
                    "Leave out the column 'hash'; it is computed.",
                )
                for row in wrong
            ]
        )
    made["hash"] = hashes
    if "bundle" not in made:
        made["bundle"] = bundle_of_topics(name.to_pylist(), hashes, bundles, namespaces)
    return make_topics(**made, name=name)


def bundle_of_topics(
    names: Sequence[str], hashes: UInt32Array, bundles: BundleTable, namespaces: Sequence[str]
) -> IntArray:
    """Return the bundle that holds each topic, -1 where its namespace is unknown or its ranges leave a hole there.

    Args:
        names: Full topic names.
        hashes: Their hashes.
        bundles: The bundles.
        namespaces: Names that the bundles refer to.
    """
    position = {namespace: i for i, namespace in enumerate(namespaces)}
    spaces = np.fromiter((position.get("/".join(n.split("/", 4)[2:4]), -1) for n in names), np.int64, len(names))
    order = np.lexsort((bundles.low, bundles.namespace))
    starts = (bundles.namespace[order].astype(np.int64) << 32) | bundles.low[order]
    at = np.searchsorted(starts, (spaces << 32) | hashes.astype(np.int64), side="right") - 1
    found = order[np.maximum(at, 0)] if len(order) else np.zeros(len(names), np.int64)
    if not len(order):
        return np.full(len(names), -1, np.int32)
    inside = (
        (at >= 0)
        & (spaces >= 0)
        & (bundles.namespace[found] == spaces)
        & ((hashes < bundles.high[found]) | (bundles.high[found] == FULL_HIGH))
    )
    return np.where(inside, found, -1).astype(np.int32)
