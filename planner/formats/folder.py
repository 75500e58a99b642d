"""The snapshot folder: `manifest.json` and one Parquet file for each table.

The manifest holds everything but the tables, SHA-256 and number of rows of each file, and its own digest, which those
of earlier versions lack; it is written last.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.cluster.errors import FormatError
from planner.cluster.files import clear_unfinished, is_unfinished, sync_folder, write_whole, writing
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import column_info
from planner.cluster.units import GIB
from planner.formats.encoding import digest_of, first_error, head_to_json, parse_json, read_head
from planner.formats.rows import NAMED, check_schema, snapshot_of_tables, table_to_arrow
from planner.formats.validate import MAX_ROWS, TABLES, validate

MANIFEST = "manifest.json"
"""Name of the file that describes the others."""

FILES: Mapping[str, str] = {part: f"{part}.parquet" for part in TABLES}
"""Name of the file of each table."""

MAX_UNPACKED_BYTES = GIB
"""Limits of unpacked data of a zip, or of the columns of a Parquet file."""

_FORMAT = "pulsar-bundle-planner snapshot"
_VERSION = 1
_OPTIONAL = "topics"
_REPEATED = ["namespace", "owner", "version", "load_manager_class"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    rows: Annotated[int, Field(ge=0)]


class _Parts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    brokers: _Part
    bundles: _Part
    topics: _Part | None = None


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    format: str
    version: int
    info: dict[str, Any]
    settings: dict[str, Any] = {}
    policies: dict[str, Any] = {}
    parts: _Parts
    digest: str = ""


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=[n for n in _REPEATED if n in table.column_names])
    return sink.getvalue()


def parts_of_snapshot(snapshot: Snapshot) -> dict[str, bytes]:
    """Return the files of a snapshot folder by name; `manifest.json` last.

    The same snapshot gives the same bytes. A snapshot without topics has no file of topics.
    """
    files: dict[str, bytes] = {}
    parts: dict[str, Any] = {}
    for part, name in FILES.items():
        table = table_to_arrow(snapshot, part, hashes=True)
        if part == _OPTIONAL and not table.num_rows:
            continue
        files[name] = _parquet(table)
        parts[part] = {"sha256": hashlib.sha256(files[name]).hexdigest(), "rows": table.num_rows}
    manifest: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, **head_to_json(snapshot), "parts": parts}
    manifest["digest"] = digest_of(manifest)
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    return {**files, MANIFEST: text.encode() + b"\n"}


def write_folder(snapshot: Snapshot, path: Path) -> None:
    """Write a validated snapshot as a folder, made when there is none, in place of the snapshot that is there.

    The manifest goes first and comes back last, so that a folder cut short is not taken for a whole one.

    Raises:
        FormatError: The folder holds something else, or cannot be written.
    """
    files = parts_of_snapshot(snapshot)
    with writing(path, FormatError):
        path.mkdir(parents=True, exist_ok=True)
        found = {entry.name for entry in path.iterdir()}
        if not (path / MANIFEST).is_file() and not all(name in FILES.values() or is_unfinished(name) for name in found):
            raise FormatError(
                "The folder contains files that are not a snapshot.", where=str(path), remedy="Choose an empty folder."
            )
        (path / MANIFEST).unlink(missing_ok=True)
        clear_unfinished(path)
        for name in FILES.values():
            if name not in files:
                (path / name).unlink(missing_ok=True)
        for name, data in files.items():
            write_whole(path / name, data)
        sync_folder(path)


def _manifest(files: Mapping[str, bytes]) -> _Manifest:
    value = parse_json(files[MANIFEST], MANIFEST)
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise FormatError(
            "This is not the manifest of a snapshot.",
            where=MANIFEST,
            remedy=f'A manifest has "format": "{_FORMAT}".',
        )
    if value.get("version") != _VERSION:
        raise FormatError(
            f"The snapshot has format version {str(value.get('version'))[:20]}; this planner reads {_VERSION}.",
            where=MANIFEST,
            remedy="Use the version of the planner that wrote it, or a newer one.",
        )
    if value.get("digest", "") not in ("", digest_of(value)):
        raise FormatError(
            "The manifest has changed since it was written (its digest differs).",
            where=MANIFEST,
            remedy="Copy the snapshot again. To edit a snapshot by hand, use the JSON document.",
        )
    try:
        return _Manifest.model_validate(value)
    except ValidationError as error:
        raise first_error(error, MANIFEST) from error


def _table(files: Mapping[str, bytes], part: str, expected: _Part, *, trusted: bool) -> pa.Table:
    name = FILES[part]
    if name not in files:
        raise FormatError(
            "The file is missing, though manifest.json lists it.",
            where=name,
            remedy="Copy the whole snapshot, or write it again.",
        )
    data = files[name]
    if hashlib.sha256(data).hexdigest() != expected.sha256:
        raise FormatError(
            "The content does not match manifest.json (its SHA-256 differs).",
            where=name,
            remedy="Copy the snapshot again. To edit a snapshot by hand, use the JSON document.",
        )
    try:
        table = _read_parquet(data, part, trusted=trusted)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["?"])[0][:200].rstrip(".")
        raise FormatError(
            f"Not a readable Parquet file: {reason}.",
            where=name,
            remedy="Write it again, with texts plain or dictionary-encoded.",
        ) from error
    if table.num_rows != expected.rows:
        raise FormatError(
            f"The file has {table.num_rows:,} rows; manifest.json lists {expected.rows:,}.",
            where=name,
            remedy="Copy the whole snapshot, or write it again.",
        )
    return table


def _read_parquet(data: bytes, part: str, *, trusted: bool) -> pa.Table:
    """Read a Parquet file, size first, then the columns.

    A small file can unfold a repeated text to any size. Unless the file is trusted, texts therefore stay dictionaries,
    whose size `tables` checks before it unfolds them; that takes twice as long. Metadata of single columns is not
    looked at: damaged ones make pyarrow end the process.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as parquet:
        meta = parquet.metadata
        if meta.num_rows > MAX_ROWS[part]:
            raise FormatError(
                f"The file has {meta.num_rows:,} rows; the maximum is {MAX_ROWS[part]:,}.",
                where=FILES[part],
                remedy="Capture fewer namespaces.",
            )
        if sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)) > MAX_UNPACKED_BYTES:
            raise FormatError(
                f"The file unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB.",
                where=FILES[part],
                remedy="Capture fewer namespaces, or leave out the topics.",
            )
        check_schema(parquet.schema_arrow, part, FILES[part])
        if trusted:
            return parquet.read()
        present = set(parquet.schema_arrow.names)
    infos = column_info(TABLES[part])
    texts = [info.name for info in infos if info.kind == "text" or info.name in NAMED]
    return pq.ParquetFile(pa.BufferReader(data), read_dictionary=[n for n in texts if n in present]).read()


def snapshot_of_parts(files: Mapping[str, bytes], *, trusted: bool = False) -> Snapshot:
    """Read a snapshot from the files of its folder, and validate it.

    Args:
        files: Content by file name; other files are left alone.
        trusted: The files were not made to do harm, so that a small one need not be suspected of unfolding to a large
            one; twice as fast. Everything else is checked all the same.

    Raises:
        FormatError: A file is missing, changed, or not what it claims to be.
        SnapshotError: The content is not a cluster.
    """
    manifest = _manifest(files)
    tables = {
        part: _table(files, part, expected, trusted=trusted)
        for part in FILES
        if (expected := getattr(manifest.parts, part)) is not None
    }
    snapshot = snapshot_of_tables(read_head(manifest.model_dump(), MANIFEST), tables, FILES)
    validate(snapshot, {**FILES, "info": MANIFEST, "policies": MANIFEST})
    return snapshot
