"""The digest that names the content of a snapshot, whatever format it came from."""

import dataclasses
import hashlib
import json

import numpy as np
import pyarrow as pa

from planner.model.snapshot import BrokerTable, BundleTable, Snapshot, TopicTable, column_info

__all__ = ["snapshot_digest"]


def _text_bytes(values: "tuple[str, ...] | pa.Array | pa.ChunkedArray") -> tuple[bytes, memoryview | bytes]:
    """Return lengths and characters of a text column."""
    if isinstance(values, tuple):
        encoded = [v.encode() for v in values]
        return np.array([len(e) for e in encoded], dtype=np.int64).tobytes(), b"".join(encoded)
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    if not len(array) or data is None:
        return np.zeros(len(array), dtype=np.int64).tobytes(), b""
    return np.diff(bounds).tobytes(), memoryview(data)[int(bounds[0]) : int(bounds[-1])]


def snapshot_digest(snapshot: Snapshot) -> str:
    """Return SHA-256 (64 hex digits) over everything that can change a decision or a figure.

    Covered: cluster, version, load manager, leader, moment, settings, policies, names and every column. Not covered:
    source, description and warnings, which only tell people where it came from.
    """
    info = snapshot.info
    head = {
        "cluster": info.cluster,
        "load_manager": info.load_manager.value,
        "captured_at_ms": info.captured_at_ms,
        "pulsar_version": info.pulsar_version,
        "leader": info.leader,
        "settings": dict(snapshot.settings.overrides),
        "policies": dataclasses.asdict(snapshot.policies),
        "namespaces": snapshot.namespaces,
    }
    total = hashlib.sha256(json.dumps(head, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode())
    tables = ((BrokerTable, snapshot.brokers), (BundleTable, snapshot.bundles), (TopicTable, snapshot.topics))
    for kind, table in tables:
        for column in column_info(kind):
            values = getattr(table, column.name)
            total.update(f"{kind.__name__}.{column.name}:{len(values)};".encode())
            if column.kind == "text":
                for part in _text_bytes(values):
                    total.update(part)
            else:
                canonical = values + 0.0 if column.kind == "float" else values  # -0.0 is 0.0
                total.update(np.ascontiguousarray(canonical).tobytes())
    return total.hexdigest()
