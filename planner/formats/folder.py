"""The snapshot folder: `manifest.json` and one Parquet file for each table."""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.formats.encoding import (
    first_error,
    info_to_json,
    parse_json,
    policies_to_json,
    read_info,
    read_policies,
    read_settings,
)
from planner.formats.tables import brokers_from_arrow, bundles_from_arrow, table_to_arrow, topics_from_arrow
from planner.formats.validate import validate
from planner.model.errors import FormatError
from planner.model.snapshot import Snapshot, make_topics

__all__ = ["MANIFEST", "PARTS", "parts_of_snapshot", "snapshot_of_parts", "write_folder"]

MANIFEST = "manifest.json"
PARTS = ("brokers", "bundles", "topics")

_FORMAT = "pulsar-bundle-planner snapshot"
_VERSION = 1
_FILES = {part: f"{part}.parquet" for part in PARTS}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    rows: Annotated[int, Field(ge=0)]


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    format: Literal["pulsar-bundle-planner snapshot"]
    version: int
    info: dict[str, Any]
    settings: dict[str, Any] = {}
    policies: dict[str, Any] = {}
    parts: dict[Literal["brokers", "bundles", "topics"], _Part]


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=9, use_dictionary=True)
    return sink.getvalue()


def parts_of_snapshot(snapshot: Snapshot) -> dict[str, bytes]:
    """Return the files of a snapshot folder by name; `manifest.json` first."""
    files: dict[str, bytes] = {}
    parts: dict[str, Any] = {}
    for part in PARTS:
        table = table_to_arrow(snapshot, part)
        if part == "topics" and not table.num_rows:
            continue
        files[_FILES[part]] = _parquet(table)
        parts[part] = {"sha256": hashlib.sha256(files[_FILES[part]]).hexdigest(), "rows": table.num_rows}
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "info": info_to_json(snapshot.info),
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in snapshot.settings.overrides.items()},
        "policies": policies_to_json(snapshot.policies),
        "parts": parts,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    return {MANIFEST: text.encode() + b"\n", **files}


def write_folder(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot folder; the manifest comes last, so that a folder cut short is not taken for a whole one.

    Raises:
        FormatError: The folder cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        files = parts_of_snapshot(snapshot)
        for name in [*(n for n in files if n != MANIFEST), MANIFEST]:
            (path / name).write_bytes(files[name])
    except OSError as error:
        raise FormatError(
            f"Cannot write: {error.strerror}.", where=str(path), remedy="Choose another folder."
        ) from error


def _manifest(files: Mapping[str, bytes]) -> _Manifest:
    if MANIFEST not in files:
        raise FormatError(
            "There is no manifest.json.", remedy="Give a snapshot folder, or a raw capture with index.json."
        )
    value = parse_json(files[MANIFEST], MANIFEST)
    version = value.get("version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > _VERSION:
        raise FormatError(
            f"The snapshot has format version {version}; this planner reads up to {_VERSION}.",
            where=MANIFEST,
            remedy="Update the planner.",
        )
    try:
        return _Manifest.model_validate(value)
    except ValidationError as error:
        raise first_error(error, MANIFEST) from error


def _table(files: Mapping[str, bytes], part: str, expected: _Part) -> pa.Table:
    name = _FILES[part]
    if name not in files:
        raise FormatError("The file is missing, though manifest.json lists it.", where=name, remedy="Write it again.")
    if hashlib.sha256(files[name]).hexdigest() != expected.sha256:
        raise FormatError(
            "The content is not what manifest.json says (SHA-256 differs).",
            where=name,
            remedy="Copy or download the snapshot again; after editing by hand use the JSON document instead.",
        )
    try:
        table = pq.read_table(io.BytesIO(files[name]))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0][:200]
        raise FormatError(f"Not a Parquet file: {reason}.", where=name, remedy="Write it again.") from error
    if table.num_rows != expected.rows:
        raise FormatError(
            f"It has {table.num_rows} rows, manifest.json says {expected.rows}.", where=name, remedy="Write it again."
        )
    return table


def snapshot_of_parts(files: Mapping[str, bytes]) -> Snapshot:
    """Read a snapshot from the files of its folder, and validate it.

    Args:
        files: Content by file name.

    Raises:
        FormatError: A file is missing, changed, or not what it claims to be.
        SnapshotError: The content is not a cluster.
        SettingError: A setting is unknown or out of bounds.
    """
    manifest = _manifest(files)
    for part in ("brokers", "bundles"):
        if part not in manifest.parts:
            raise FormatError(f"It lists no {part}.", where=f"{MANIFEST}: parts", remedy="Write the snapshot again.")
    tables = {part: _table(files, part, expected) for part, expected in manifest.parts.items()}
    brokers = brokers_from_arrow(tables["brokers"], _FILES["brokers"])
    bundles, namespaces = bundles_from_arrow(tables["bundles"], brokers, _FILES["bundles"])
    topics = (
        topics_from_arrow(tables["topics"], _FILES["topics"], bundles, namespaces)
        if "topics" in tables
        else make_topics(np.zeros(0, np.uint32))
    )
    snapshot = Snapshot(
        info=read_info(manifest.info, MANIFEST),
        settings=read_settings(manifest.settings, MANIFEST),
        brokers=brokers,
        namespaces=namespaces,
        bundles=bundles,
        topics=topics,
        policies=read_policies(manifest.policies, MANIFEST),
    )
    validate(snapshot, _FILES)
    return snapshot
