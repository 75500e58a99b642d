"""The JSON document: one file that a person can read and edit, for small clusters.

Brokers, bundles and topics are objects keyed by their names; a value at its default is left out. The other fields are
the columns of the tables, so that the document, the Parquet files and the database say the same words.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from planner.formats.encoding import (
    info_to_json,
    parse_json,
    policies_to_json,
    read_info,
    read_policies,
    read_settings,
)
from planner.formats.tables import bundle_of_topics
from planner.formats.validate import validate
from planner.model.errors import FormatError, SnapshotError, Violation
from planner.model.hashing import topic_hashes
from planner.model.ranges import parse_bundle
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

__all__ = ["FORMAT", "snapshot_of_document", "write_document"]

FORMAT = "pulsar-bundle-planner document"
_VERSION = 1
_FIELDS = {"format", "version", "info", "settings", "policies", "brokers", "bundles", "topics"}
_KEYS = {"namespace", "low", "high", "owner"}


def _cells(table: BrokerTable | BundleTable | TopicTable, kind: type, skip: set[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(len(table))]
    for info in column_info(kind):
        if info.name in skip:
            continue
        values = getattr(table, info.name)
        for row, value in zip(rows, values if isinstance(values, tuple) else values.tolist(), strict=True):
            unknown = isinstance(value, float) and math.isnan(value)
            if not unknown and value != info.default:
                row[info.name] = value
    return rows


def write_document(snapshot: Snapshot) -> str:
    """Return a snapshot as a JSON document; values at their default are left out."""
    brokers = _cells(snapshot.brokers, BrokerTable, {"name"})
    bundles = _cells(snapshot.bundles, BundleTable, _KEYS)
    for row, owner in zip(bundles, snapshot.bundles.owner.tolist(), strict=True):
        if owner >= 0:
            row["owner"] = snapshot.brokers.name[owner]
    topics = _cells(snapshot.topics, TopicTable, {"name", "hash", "bundle"})
    names = {
        "brokers": snapshot.brokers.name,
        "bundles": snapshot.bundle_names,
        "topics": snapshot.topics.name.to_pylist(),
    }
    parts = {"brokers": brokers, "bundles": bundles, "topics": topics}
    head = {
        "format": FORMAT,
        "version": _VERSION,
        "info": info_to_json(snapshot.info),
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in snapshot.settings.overrides.items()},
        "policies": policies_to_json(snapshot.policies),
    }
    return "".join(_lines(head, {p: dict(zip(names[p], rows, strict=True)) for p, rows in parts.items() if rows}))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(head: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the document with one line for each broker, bundle and topic."""
    yield "{\n"
    yield ",\n".join(f" {_dump(k)}: {_dump(v)}" for k, v in head.items())
    for part, rows in parts.items():
        yield f",\n {_dump(part)}: {{\n"
        yield ",\n".join(f"  {_dump(name)}: {_dump(row)}" for name, row in rows.items())
        yield "\n }"
    yield "\n}\n"


_TYPES: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "float": (int, float),
    "int": (int,),
    "bool": (bool,),
    "id": (int,),
}


def _read_cell(value: Any, info: ColumnInfo, where: tuple[str, int]) -> Any:
    right = isinstance(value, _TYPES[info.kind]) and (info.kind == "bool" or not isinstance(value, bool))
    if right and info.kind in {"int", "id"} and abs(value) >= (1 << 53 if info.kind == "int" else 1 << 31):
        right = False
    if right and info.kind == "float":
        try:
            right = math.isfinite(float(value))
        except OverflowError:
            right = False
    if not right:
        remedy = f"Give a value of type {'number' if info.kind == 'float' else info.kind}."
        raise SnapshotError([Violation(where[0], where[1], f"'{info.name}' is {str(value)[:60]!r}.", remedy)])
    return value


def _rows(value: Any, part: str, kind: type, skip: set[str], file: str) -> tuple[list[str], dict[str, list[Any]]]:
    """Return names, and the columns that occur in any row."""
    place = f"{file}: {part}"
    if not isinstance(value, dict):
        raise FormatError(f"'{part}' is not an object of names and values.", where=file, remedy='Write {"name": {…}}.')
    infos = {info.name: info for info in column_info(kind) if info.name not in skip}
    used: dict[str, list[Any]] = {}
    for number, (name, row) in enumerate(value.items(), start=1):
        if not isinstance(row, dict):
            raise SnapshotError([Violation(place, number, f"'{name[:80]}' is not an object.", "Write {…}.")])
        for key, cell in row.items():
            if key not in infos:
                remedy = "Remove it, or see the format page for the names."
                raise SnapshotError([Violation(place, number, f"The field '{key[:80]}' is unknown.", remedy)])
            column = used.setdefault(key, [infos[key].default] * len(value))
            column[number - 1] = _read_cell(cell, infos[key], (place, number))
    return list(value), used


def _read_bundles(value: Any, brokers: BrokerTable, file: str) -> tuple[BundleTable, tuple[str, ...]]:
    place = f"{file}: bundles"
    owners: dict[str, Any] = {}
    if isinstance(value, dict):
        owners = {n: row["owner"] for n, row in value.items() if isinstance(row, dict) and "owner" in row}
        value = {
            n: {k: v for k, v in row.items() if k != "owner"} if isinstance(row, dict) else row
            for n, row in value.items()
        }
    names, columns = _rows(value, "bundles", BundleTable, _KEYS, file)
    parsed = [parse_bundle(name, f"{place}, row {row}") for row, name in enumerate(names, start=1)]
    namespaces = tuple(dict.fromkeys(namespace for namespace, _, _ in parsed))
    position = {namespace: i for i, namespace in enumerate(namespaces)}
    unknown = [
        Violation(
            place,
            row,
            f"The owner {str(owners[n])[:80]!r} is not one of the brokers.",
            "Add that broker or correct it.",
        )
        for row, n in enumerate(names, start=1)
        if n in owners and (not isinstance(owners[n], str) or owners[n] not in brokers.position)
    ]
    if unknown:
        raise SnapshotError(unknown)
    bundles = make_bundles(
        [low for _, low, _ in parsed],
        high=[high for _, _, high in parsed],
        namespace=[position[namespace] for namespace, _, _ in parsed],
        owner=[brokers.position[owners[n]] if n in owners else -1 for n in names],
        **columns,
    )
    return bundles, namespaces


def snapshot_of_document(data: bytes, file: str) -> Snapshot:
    """Read and validate a JSON document.

    Args:
        data: Its bytes, UTF-8.
        file: Its name, for the messages.

    Raises:
        FormatError: It is not JSON, or not a document of this format.
        SnapshotError: The content is not a cluster.
        SettingError: A setting is unknown or out of bounds.
    """
    value = parse_json(data, file)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise FormatError(
            "This JSON is not a snapshot document.",
            where=file,
            remedy=f'A document says "format": "{FORMAT}"; a raw capture is a folder or zip with index.json.',
        )
    if value.get("version") != _VERSION:
        raise FormatError(
            f"The document has version {str(value.get('version'))[:20]}; this planner reads version {_VERSION}.",
            where=file,
            remedy="Update the planner.",
        )
    unknown = sorted(set(value) - _FIELDS)
    if unknown:
        raise FormatError(f"The field '{unknown[0][:80]}' is unknown.", where=file, remedy="Remove it.")
    names, columns = _rows(value.get("brokers", {}), "brokers", BrokerTable, {"name"}, file)
    brokers = make_brokers(tuple(names), **columns)
    bundles, namespaces = _read_bundles(value.get("bundles", {}), brokers, file)
    topic_names, topic_columns = _rows(value.get("topics", {}), "topics", TopicTable, {"name", "hash", "bundle"}, file)
    hashes = topic_hashes((n.encode() for n in topic_names), len(topic_names))
    topics = make_topics(
        hashes,
        name=pa.array(topic_names, type=pa.large_string()),
        bundle=bundle_of_topics(topic_names, hashes, bundles, namespaces),
        **topic_columns,
    )
    snapshot = Snapshot(
        info=read_info(value.get("info"), file),
        settings=read_settings(value.get("settings", {}), file),
        brokers=brokers,
        namespaces=namespaces,
        bundles=bundles,
        topics=topics if len(topics) else make_topics(np.zeros(0, np.uint32)),
        policies=read_policies(value.get("policies"), file),
    )
    validate(snapshot, {part: f"{file}: {part}" for part in ("brokers", "bundles", "topics")})
    return snapshot
