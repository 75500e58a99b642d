"""The workspace: one DuckDB file with every snapshot a person has loaded, and the scenarios made over them."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import PlannerError, StoreError
from planner.cluster.files import NO_FILE, plain_file
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import column_info
from planner.formats.encoding import head_to_json, read_head
from planner.formats.rows import NAMED, snapshot_of_tables, table_to_arrow
from planner.formats.validate import TABLES
from planner.workspace.place import WORKSPACE_VARIABLE, default_path
from planner.workspace.scenarios import Scenarios

_SCHEMA_VERSION = 1
_BROWSERS = 10_000
"""Browsers of which the snapshot that they looked at last is kept."""

_TYPES = {"text": "VARCHAR", "float": "DOUBLE", "int": "BIGINT", "bool": "BOOLEAN", "id": "INTEGER", "hash": "UINTEGER"}


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """What the workspace knows of a snapshot without loading it.

    Attributes:
        digest: SHA-256 of the content; the name of the snapshot in links.
        name: What the person calls it.
        cluster: Name of the cluster.
        load_manager: `modular` or `extensible`.
        pulsar_version: Version of the brokers.
        captured_at_ms: When it was captured, ms since 1970.
        brokers: How many brokers.
        namespaces: How many namespaces.
        bundles: How many bundles.
        topics: How many topics.
        source: What it was made from.
        description: What there is to see in it.
        warnings: What is missing or estimated.
        stored_at_ms: When it was added, ms since 1970.
    """

    digest: str
    name: str
    cluster: str
    load_manager: str
    pulsar_version: str
    captured_at_ms: int
    brokers: int
    namespaces: int
    bundles: int
    topics: int
    source: str
    description: str
    warnings: tuple[str, ...]
    stored_at_ms: int


def open_workspace(path: Path | None = None) -> "Workspace":
    """Open the workspace, by default the one of `default_path()`, making it when there is none.

    The file, and a folder made for it, can be read by its owner alone.

    Raises:
        StoreError: The file is damaged, newer than this planner, in use by another process, or cannot be written.
    """
    file = path or default_path()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if file.exists() and not file.is_dir():
            plain_file(file)
        connection = duckdb.connect(str(file))
    except (duckdb.Error, OSError, RuntimeError) as error:  # the last where its name is not UTF-8
        raise _trouble(error, file) from error
    try:
        _check_ours(connection, file)
        with suppress(PermissionError):  # somebody else's, who lets us write
            file.chmod(0o600)
        return Workspace(connection, file)
    except (duckdb.Error, OSError) as error:
        connection.close()
        raise _trouble(error, file) from error
    except BaseException:
        connection.close()
        raise


_ELSEWHERE = f"or set {WORKSPACE_VARIABLE} to another file."
_TROUBLES: tuple[tuple[str, str, str], ...] = (
    ("set lock on file", "Another process has the workspace open.", f"Close it, {_ELSEWHERE}"),
    (
        "no space left|disk quota|file too large|out of disk",
        "The disk is full. Nothing was stored.",
        "Free some disk space, then try again.",
    ),
    (
        "permission denied|read-only|operation not permitted",
        "The workspace is not writable.",
        f"Check the permissions of the file and its folder, {_ELSEWHERE}",
    ),
    (
        f"is a directory|file exists|{NO_FILE}",
        "The workspace is not a file.",
        f"Move it away, {_ELSEWHERE}",
    ),
    (
        "file with version number|newer version|newer duckdb",
        "A newer planner wrote the workspace.",
        f"Update the planner, {_ELSEWHERE}",
    ),
    (
        "corrupt|checksum|not a valid duckdb|could not read enough|replaying wal|serializ|internal error|invalidated",
        "The workspace is damaged.",
        (f"Stop the planner, restore a copy of the file or move it away, and start the planner again, {_ELSEWHERE}"),
    ),
    ("out of memory|failed to allocate", "There is not enough memory.", "Close other programs, then try again."),
)
"""Words of DuckDB or the system that identify an error, what is wrong, and what to do."""


def _trouble(error: Exception, file: Path) -> StoreError:
    """Say what DuckDB or the system complains about; only the name of the file is told, as visitors see it."""
    for signs, what, remedy in _TROUBLES:
        if re.search(signs, str(error), re.IGNORECASE):
            return StoreError(what, where=file.name, remedy=remedy)
    reason = (str(error).splitlines() or [type(error).__name__])[0][:300].replace(str(file), file.name)
    return StoreError(
        f"The workspace failed: {reason.rstrip('.')}.",
        where=file.name,
        remedy=f"Check that the disk has space and the file is writable, {_ELSEWHERE}",
    )


def _check_ours(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """See that a database holds nothing, or a workspace; what belongs to another program is not written to.

    Raises:
        StoreError: It has tables, and none of a workspace.
    """
    found: dict[str, set[str]] = {}
    query = "SELECT schema_name, table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    for schema, table, column in connection.execute(query).fetchall():
        found.setdefault(table if schema == "main" else f"{schema}.{table}", set()).add(column)
    snapshots = found.get("snapshots", {"digest", "info"})
    if found and not (found.get("schema_version") == {"version"} and {"digest", "info"} <= snapshots):
        named = min(found.keys() - {"schema_version"}, default="schema_version")
        raise StoreError(
            f"This database is not a workspace: it has the table {named[:100]!r} of another program.",
            where=file.name,
            remedy=f"Nothing was written to it. Set {WORKSPACE_VARIABLE} to another file.",
        )


class Workspace:
    """The saved snapshots. Safe to use from several threads; every call works on a cursor of its own.

    Attributes:
        path: The file.
        scenarios: The saved scenarios.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._file = self._identity()
        self._writing = threading.Lock()
        self._create()
        self.scenarios = Scenarios(self._cursor, self._writes)

    def close(self) -> None:
        """Close the file; the workspace cannot be used afterwards."""
        self._connection.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        except duckdb.Error as error:
            raise _trouble(error, self.path) from error
        finally:
            cursor.close()  # what was begun and not committed is taken back

    def _identity(self) -> tuple[int, int] | None:
        """Return which file is at the path; None where there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_in_place(self) -> None:
        """See that what is written goes to the file that the next start opens.

        Raises:
            StoreError: Another file is there by now, or none.
        """
        if (now := self._identity()) != self._file:
            raise StoreError(
                f"The workspace file was {'deleted' if now is None else 'replaced'} while it was open. "
                "Nothing more is stored, because it would be lost.",
                where=self.path.name,
                remedy=(
                    "Export the data that is only here, stop the planner, restore the file, and start the "
                    "planner again."
                ),
            )

    @contextmanager
    def _writes(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor to write with, to one thread at a time, as long as the file is the one that was opened."""
        with self._writing:
            self._check_in_place()
            with self._cursor() as cursor:
                yield cursor
            self._check_in_place()

    def _create(self) -> None:
        with self._cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER)")
            version = cursor.execute("SELECT max(version) FROM schema_version").fetchall()[0][0]
            if version is None:
                cursor.execute("INSERT INTO schema_version VALUES (?)", [_SCHEMA_VERSION])
            elif version != _SCHEMA_VERSION:
                raise StoreError(
                    f"The workspace has version {version}; this planner uses version {_SCHEMA_VERSION}.",
                    where=self.path.name,
                    remedy=f"Update the planner, or set {WORKSPACE_VARIABLE} to another file.",
                )
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS snapshots (digest VARCHAR PRIMARY KEY, name VARCHAR, cluster VARCHAR,"
                " load_manager VARCHAR, pulsar_version VARCHAR, captured_at_ms BIGINT, brokers BIGINT,"
                " namespaces BIGINT, bundles BIGINT, topics BIGINT, source VARCHAR, description VARCHAR,"
                " warnings VARCHAR, stored_at_ms BIGINT, info VARCHAR, settings VARCHAR, policies VARCHAR)"
            )
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS browsers (browser VARCHAR PRIMARY KEY, snapshot VARCHAR, at_ms BIGINT)"
            )
            for part, kind in TABLES.items():
                columns = ", ".join(
                    f"{i.name} {'VARCHAR' if i.name in NAMED else _TYPES[i.kind]}" for i in column_info(kind)
                )
                cursor.execute(f"CREATE TABLE IF NOT EXISTS {part} (snapshot VARCHAR, row INTEGER, {columns})")

    def add(self, snapshot: Snapshot, name: str) -> SavedSnapshot:
        """Save a validated snapshot under a name; the same content is recognised by its digest and not stored twice.

        Everything is written in one transaction: when it fails, the workspace is as it was.

        Raises:
            StoreError: It cannot be written.
        """
        digest = snapshot_digest(snapshot)
        with self._writes() as cursor:
            known = self.find(digest)
            if known is not None:
                return known
            info = snapshot.info
            info_columns = ("cluster", "pulsar_version", "captured_at_ms", "source", "description", "warnings")
            columns: dict[str, Any] = {column: getattr(info, column) for column in info_columns}
            columns |= {part: len(getattr(snapshot, part)) for part in ("brokers", "namespaces", "bundles", "topics")}
            saved = SavedSnapshot(
                digest=digest,
                name=name.strip()[:200] or info.cluster,
                load_manager=info.load_manager.value,
                stored_at_ms=int(time.time() * 1000),
                **columns,
            )
            cursor.execute("BEGIN")
            self._insert(cursor, snapshot, saved)
            cursor.execute("COMMIT")
        return saved

    def _insert(self, cursor: duckdb.DuckDBPyConnection, snapshot: Snapshot, saved: SavedSnapshot) -> None:
        head = {name: json.dumps(value) for name, value in head_to_json(snapshot).items()}
        row = asdict(saved) | {"warnings": json.dumps(saved.warnings)} | head
        places = ", ".join("?" * len(row))
        cursor.execute(f"INSERT INTO snapshots ({', '.join(row)}) VALUES ({places})", list(row.values()))
        for part, kind in TABLES.items():
            table = table_to_arrow(snapshot, part, hashes=True)
            if not table.num_rows:
                continue
            table = table.append_column("row", pa.array(np.arange(table.num_rows, dtype=np.int32)))
            columns = ", ".join(info.name for info in column_info(kind))
            cursor.register("incoming", table)
            cursor.execute(
                f"INSERT INTO {part} (snapshot, row, {columns}) SELECT ?, row, {columns} FROM incoming",
                [saved.digest],
            )
            cursor.unregister("incoming")

    _SAVED = f"SELECT {', '.join(field.name for field in fields(SavedSnapshot))} FROM snapshots"

    @staticmethod
    def _saved(row: tuple[Any, ...]) -> SavedSnapshot:
        """Return a row; one that was changed in the file is told all the same, so that it can be deleted."""
        values = dict(zip((field.name for field in fields(SavedSnapshot)), row, strict=True))
        for field in fields(SavedSnapshot):
            kind = int if field.type is int else str
            if not isinstance(values[field.name], kind):
                values[field.name] = kind()
        try:
            warnings = tuple(map(str, json.loads(values["warnings"])))
        except (ValueError, TypeError):
            warnings = ("The notes of this snapshot are damaged.",)
        return SavedSnapshot(**{**values, "warnings": warnings})

    def saved(self) -> tuple[SavedSnapshot, ...]:
        """Return every saved snapshot, the one added last first."""
        with self._cursor() as cursor:
            rows = cursor.execute(f"{self._SAVED} ORDER BY stored_at_ms DESC, digest").fetchall()
        return tuple(map(self._saved, rows))

    def find(self, digest_prefix: str) -> SavedSnapshot | None:
        """Return the snapshot whose digest starts so; None when there is none or it is not the only one."""
        with self._cursor() as cursor:
            rows = cursor.execute(
                f"{self._SAVED} WHERE starts_with(digest, ?) LIMIT 2", [digest_prefix.lower()]
            ).fetchall()
        return self._saved(rows[0]) if digest_prefix and len(rows) == 1 else None

    def snapshot(self, digest: str) -> Snapshot:
        """Load a saved snapshot as a whole.

        Raises:
            StoreError: There is no such snapshot, or it is not what was saved.
        """
        with self._cursor() as cursor:
            heads = cursor.execute(
                "SELECT info, settings, policies FROM snapshots WHERE digest = ?", [digest]
            ).fetchall()
            if not heads:
                raise StoreError(
                    "This workspace does not have the snapshot.",
                    where=digest[:12],
                    remedy="Load it on the Snapshots page.",
                )
            cursor.execute("BEGIN")  # so that all columns are of one moment
            tables = {part: self._table(cursor, part, digest) for part in TABLES}
        try:
            head = dict(zip(("info", "settings", "policies"), map(json.loads, heads[0]), strict=True))
            snapshot = snapshot_of_tables(read_head(head, "workspace"), tables)
            if snapshot_digest(snapshot) == digest:
                return snapshot
            trouble = "the digest of its content differs"
        except (PlannerError, ValueError, TypeError, LookupError) as error:
            trouble = str(error) if isinstance(error, PlannerError) else type(error).__name__
        raise StoreError(
            f"This snapshot can no longer be read from the workspace ({trouble.rstrip('.')[:300]}).",
            where=digest[:12],
            remedy="Delete it on the Snapshots page, and load its file again.",
        )

    @staticmethod
    def _table(cursor: duckdb.DuckDBPyConnection, part: str, digest: str) -> pa.Table:
        """Read a part column by column; all columns at once take three times their size, and DuckDB keeps it."""

        def column(name: str, order: str = "") -> pa.Array:
            query = f"SELECT {name} FROM {part} WHERE snapshot = ?{order}"
            return cursor.sql(query, params=[digest]).to_arrow_table().column(0).combine_chunks()

        in_order = np.all(np.diff(column("row").to_numpy(zero_copy_only=False)) > 0)
        order = "" if in_order else " ORDER BY row"
        return pa.table({info.name: column(info.name, order) for info in column_info(TABLES[part])})

    def rename(self, digest: str, name: str) -> None:
        """Give a saved snapshot another name; an empty one changes nothing."""
        if name.strip():
            with self._writes() as cursor:
                cursor.execute("UPDATE snapshots SET name = ? WHERE digest = ?", [name.strip()[:200], digest])

    def delete(self, digest: str) -> None:
        """Delete a saved snapshot; one that is not there is no error."""
        with self._writes() as cursor:
            cursor.execute("BEGIN")
            for part in TABLES:
                cursor.execute(f"DELETE FROM {part} WHERE snapshot = ?", [digest])
            cursor.execute("DELETE FROM snapshots WHERE digest = ?", [digest])
            cursor.execute("COMMIT")

    def looks_at(self, browser: str, digest: str) -> None:
        """Keep which snapshot a browser looks at; the browsers that came last are kept."""
        with self._writes() as cursor:
            now_ms = int(time.time() * 1000)
            cursor.execute("INSERT OR REPLACE INTO browsers VALUES (?, ?, ?)", [browser, digest, now_ms])
            cursor.execute(
                "DELETE FROM browsers WHERE at_ms < (SELECT min(at_ms) FROM"
                " (SELECT at_ms FROM browsers ORDER BY at_ms DESC LIMIT ?))",
                [_BROWSERS],
            )

    def looked_at(self, browser: str) -> str:
        """Return the digest of what a browser looked at last; empty when it is not known."""
        with self._cursor() as cursor:
            rows = cursor.execute("SELECT snapshot FROM browsers WHERE browser = ?", [browser]).fetchall()
        return str(rows[0][0]) if rows else ""
