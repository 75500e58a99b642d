"""The tables of a day of history, and snapshots to rows and back, driven by `column_info`.

Four files: `moments.parquet` has a row for each snapshot (its info, settings, policies and namespaces as JSON), the
others have the rows of all snapshots, sorted by time, then by the broker they belong to. `position` is the row's place
in its snapshot, so that each can be rebuilt exactly. Row groups of all files cover the same moments.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from planner.cluster.arrays import Int64Array
from planner.cluster.hashing import topic_hashes
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot, column_info, make_brokers, make_bundles, make_topics
from planner.formats.encoding import (
    info_to_json,
    parse_json,
    policies_to_json,
    read_info,
    read_policies,
    read_settings,
    settings_to_json,
)
from planner.formats.tables import NAMED, table_to_arrow
from planner.formats.validate import TABLES

PARTS = tuple(TABLES)
"""The tables that have rows for each broker, bundle and topic."""

MOMENTS = "moments"
"""The table that has one row for each snapshot."""

FILES: Mapping[str, str] = {part: f"{part}.parquet" for part in (MOMENTS, *PARTS)}
"""Name of the file of each table."""

_TEXT = pa.large_string()
_NAME = pa.dictionary(pa.int32(), _TEXT)
_ARROW: Mapping[str, pa.DataType] = {
    "text": _NAME,
    "float": pa.float64(),
    "int": pa.int64(),
    "bool": pa.bool_(),
    "id": pa.int32(),
}


def _schema(part: str) -> pa.Schema:
    fields = [pa.field("time_ms", pa.int64(), nullable=False), pa.field("position", pa.int32(), nullable=False)]
    for info in column_info(TABLES[part]):
        if info.kind != "hash":  # it follows from the name
            kind = _NAME if info.name in NAMED.get(part, ()) else _ARROW[info.kind]
            fields.append(pa.field(info.name, kind))
    return pa.schema(fields)


SCHEMAS: Mapping[str, pa.Schema] = {
    MOMENTS: pa.schema(
        [
            ("time_ms", pa.int64()),
            ("row_group", pa.int32()),
            *((part, pa.int64()) for part in PARTS),
            ("info", _TEXT),
            ("settings", _TEXT),
            ("policies", _TEXT),
            ("namespaces", _TEXT),
        ]
    ),
    **{part: _schema(part) for part in PARTS},
}
"""Columns of each file."""


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def rows_of_moment(snapshot: Snapshot, row_group: int) -> dict[str, Any]:
    """Return the row of a snapshot in `moments`."""
    return {
        "time_ms": snapshot.info.captured_at_ms,
        "row_group": row_group,
        **{part: len(getattr(snapshot, part)) for part in PARTS},
        "info": _compact(info_to_json(snapshot.info)),
        "settings": _compact(settings_to_json(snapshot.settings)),
        "policies": _compact(policies_to_json(snapshot.policies)),
        "namespaces": _compact(list(snapshot.namespaces)),
    }


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


def rows_of_tables(snapshot: Snapshot) -> dict[str, pa.Table]:
    """Return the rows of a snapshot in each of the other files."""
    made: dict[str, pa.Table] = {}
    for part, order in _order(snapshot).items():
        table = table_to_arrow(snapshot, part).take(pa.array(order))
        columns: dict[str, Any] = {
            "time_ms": pa.array(np.full(len(order), snapshot.info.captured_at_ms), pa.int64()),
            "position": pa.array(order.astype(np.int32)),
        }
        schema = SCHEMAS[part]
        for name in table.column_names:
            kind = schema.field(name).type
            column = table[name].combine_chunks()
            columns[name] = column if column.type == kind else _cast(column, kind)
        made[part] = pa.table(columns, schema=schema)
    return made


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column.dictionary_encode().cast(kind) if kind == _NAME else column.cast(kind)


class _Group:
    """The rows of some moments in one file, as arrays over all of them."""

    def __init__(self, table: pa.Table, part: str) -> None:
        self.part = part
        self.infos = column_info(TABLES[part])
        self.names: dict[str, list[str]] = {}
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self.texts: dict[str, pa.Array] = {}
        for name in table.column_names:
            column = table[name]
            if pa.types.is_dictionary(column.type):
                whole = column.unify_dictionaries().combine_chunks()
                whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
                self.texts[name] = whole.dictionary
                self.names[name] = whole.dictionary.to_pylist() if part != "topics" else []
                self.arrays[name] = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            else:
                self.arrays[name] = column.to_numpy()
        if part == "topics":
            texts = self.texts["name"]
            self.hashes = topic_hashes(texts.cast(pa.large_binary()).to_pylist(), len(texts))

    def columns(self, first: int, count: int) -> dict[str, Any]:
        """Return the columns of one moment in the order of its snapshot; names as positions in `names`."""
        rows = np.empty(count, dtype=np.int64)
        rows[self.arrays["position"][first : first + count]] = np.arange(first, first + count)
        wanted = [info.name for info in self.infos if info.name in self.arrays]
        return {name: self.arrays[name][rows] for name in wanted}


def _positions(ids: npt.NDArray[Any], names: Sequence[str], place: Mapping[str, int]) -> npt.NDArray[np.int32]:
    lookup = np.array([*(place.get(name, -1) for name in names), -1], dtype=np.int32)
    found: npt.NDArray[np.int32] = lookup[ids]
    return found


def snapshots_of_group(moments: Sequence[Mapping[str, Any]], tables: Mapping[str, pa.Table]) -> Iterator[Snapshot]:
    """Yield the snapshots of one row group.

    Args:
        moments: Their rows of `moments`, in the order of time.
        tables: Rows of all of them in each of the other files; without `topics`, the snapshots have none.
    """
    groups = {part: _Group(table, part) for part, table in tables.items()}
    first = dict.fromkeys(tables, 0)
    for moment in moments:
        columns = {part: groups[part].columns(first[part], moment[part]) for part in tables}
        for part in tables:
            first[part] += moment[part]
        yield _snapshot(moment, columns, groups)


@lru_cache(maxsize=8)
def _settings(text: str) -> Settings:
    return read_settings(parse_json(text, FILES[MOMENTS]), FILES[MOMENTS])


@lru_cache(maxsize=8)
def _policies(text: str) -> Policies:
    return read_policies(parse_json(text, FILES[MOMENTS]), FILES[MOMENTS])


@lru_cache(maxsize=8)
def _namespaces(text: str) -> tuple[str, ...]:
    return tuple(parse_json(text, FILES[MOMENTS]))


def _snapshot(
    moment: Mapping[str, Any], columns: Mapping[str, dict[str, Any]], groups: Mapping[str, _Group]
) -> Snapshot:
    where = f"moments.parquet, {moment['time_ms']}"
    brokers = columns["brokers"]
    for name, listed in groups["brokers"].names.items():
        brokers[name] = tuple(listed[i] for i in brokers[name].tolist())
    made_brokers = make_brokers(**brokers)
    namespaces = _namespaces(moment["namespaces"])
    bundles = columns["bundles"]
    names = groups["bundles"].names
    place = {name: i for i, name in enumerate(namespaces)}
    bundles["namespace"] = _positions(bundles["namespace"], names["namespace"], place)
    bundles["owner"] = _positions(bundles["owner"], names["owner"], made_brokers.position)
    topics = make_topics()
    if "topics" in groups and moment["topics"]:
        given = columns["topics"]
        ids = given.pop("name")
        topics = make_topics(
            groups["topics"].hashes[ids], name=groups["topics"].texts["name"].take(pa.array(ids)), **given
        )
    return Snapshot(
        info=read_info(parse_json(moment["info"], where), where),
        settings=_settings(moment["settings"]),
        brokers=made_brokers,
        namespaces=namespaces,
        bundles=make_bundles(**bundles),
        topics=topics,
        policies=_policies(moment["policies"]),
    )
