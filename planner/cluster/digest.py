"""The digest that names the content of a snapshot, whatever format it came from."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable, BundleTable, ColumnInfo, TopicTable, column_info

_LITTLE_ENDIAN = {"float": "<f8", "int": "<i8", "bool": "u1", "id": "<i4", "hash": "<u4"}


def snapshot_digest(snapshot: Snapshot) -> str:
    """Return SHA-256 (64 hex digits) over everything that can change a decision or a figure.

    Covered: cluster, version, load manager, leader, moment, settings that differ from their default, policies, names
    and every column, rows in their order. Not covered: source, description and warnings, which only tell people where
    the snapshot came from; the order of the namespaces, which nothing depends on; and columns that hold nothing but
    their default, so that a column added later leaves the digest of older snapshots alone.
    """
    spaces, namespaces = _namespaces(snapshot)
    head = json.dumps({**_head(snapshot), "namespaces": namespaces}, sort_keys=True, separators=(",", ":"))
    total = hashlib.sha256(head.encode())
    tables = ((BrokerTable, snapshot.brokers), (BundleTable, snapshot.bundles), (TopicTable, snapshot.topics))
    for kind, table in tables:
        total.update(f"{kind.__name__}:{len(table)};".encode())
        for column in column_info(kind):
            values = spaces if column.name == "namespace" else getattr(table, column.name)
            first = True
            for piece in _text(values) if column.kind == "text" else _numbers(values, column):
                if first:
                    total.update(f"{column.name}:".encode())
                first = False
                total.update(piece)
    return total.hexdigest()


def _namespaces(snapshot: Snapshot) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return the namespace column and names renumbered in the order of their first bundle."""
    ids, first, inverse = np.unique(snapshot.bundles.namespace, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[inverse], [snapshot.namespaces[i] for i in ids[order].tolist()]


def _head(snapshot: Snapshot) -> dict[str, Any]:
    info, policies = snapshot.info, snapshot.policies
    return {
        "cluster": info.cluster,
        "load_manager": info.load_manager.value,
        "captured_at_ms": info.captured_at_ms,
        "pulsar_version": info.pulsar_version,
        "leader": info.leader,
        "settings": dict(snapshot.settings.overrides),
        "policies": {
            "isolation": [dataclasses.asdict(policy) for policy in policies.isolation],
            "anti_affinity_group": dict(policies.anti_affinity_group),
            "failure_domains": dict(policies.failure_domains),
            "dispatch_rates": [dataclasses.asdict(policy) for policy in policies.dispatch_rates],
        },
    }


def _numbers(values: npt.NDArray[Any], column: ColumnInfo) -> Iterator[memoryview]:
    """Yield the bytes of a column; nothing when it is all default. -0.0 is 0.0, and there is one NaN."""
    if column.kind == "float":
        unknown = np.isnan(values)
        values = values + 0.0
        if unknown.any():
            values[unknown] = np.nan
        plain = unknown if column.may_be_unknown else values == column.default
    else:
        plain = values == column.default
    if not plain.all():
        yield np.ascontiguousarray(values, dtype=_LITTLE_ENDIAN[column.kind]).data


def _text(values: "tuple[str, ...] | pa.Array | pa.ChunkedArray") -> Iterator[bytes | memoryview]:
    """Yield lengths and characters of a text column; nothing when it is all empty."""
    array = pa.array(values) if isinstance(values, tuple) else values
    array = array.cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=pa.large_string())
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return
    bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    if bounds[0] == bounds[-1]:
        return
    yield np.diff(bounds).astype("<i8").data
    yield memoryview(data)[int(bounds[0]) : int(bounds[-1])]
