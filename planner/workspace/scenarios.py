"""The scenarios that a workspace keeps: those a person saved, and those too large for a link."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, fields

import duckdb

from planner.cluster.errors import PlannerError, StoreError
from planner.share.link import canonical_text, from_canonical, read_json, scenario_digest
from planner.simulate.scenario import Scenario

_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class SavedScenario:
    """What the workspace knows of a scenario without reading it.

    Attributes:
        digest: `scenario_digest` of its content.
        snapshot: Digest of the snapshot that it changes; empty when none was said.
        name: What the person calls it.
        snapshot_name: What the snapshot was called.
        edits: How many edits it has, those switched off too.
        stored_at_ms: When it was saved, ms since 1970.
    """

    digest: str
    snapshot: str
    name: str
    snapshot_name: str
    edits: int
    stored_at_ms: int


class Scenarios:
    """The saved scenarios of a workspace; safe to use from several threads."""

    def __init__(
        self,
        cursor: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]],
        writes: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]],
    ) -> None:
        """Take what the workspace shares: what gives a cursor for one use, and what gives one to write with."""
        self._cursor = cursor
        self._writes = writes
        with cursor() as opened:
            opened.execute(
                "CREATE TABLE IF NOT EXISTS scenarios (digest VARCHAR, snapshot VARCHAR, name VARCHAR,"
                " snapshot_name VARCHAR, edits INTEGER, stored_at_ms BIGINT, content VARCHAR,"
                " PRIMARY KEY (digest, snapshot))"
            )

    _COLUMNS = ", ".join(field.name for field in fields(SavedScenario))

    def save(self, scenario: Scenario, snapshot: str = "", snapshot_name: str = "") -> SavedScenario:
        """Save a scenario; over the same snapshot, known by its digest, it is kept once, and moves to the front.

        Raises:
            PlannerError: A value of the scenario is out of bounds.
            StoreError: It cannot be written.
        """
        content = canonical_text(scenario)
        saved = SavedScenario(
            digest=scenario_digest(scenario),
            snapshot=snapshot,
            name=scenario.name,
            snapshot_name=snapshot_name.strip()[:_MAX_NAME],
            edits=len(scenario.steps),
            stored_at_ms=int(time.time() * 1000),
        )
        with self._writes() as cursor:
            cursor.execute(
                f"INSERT OR REPLACE INTO scenarios ({self._COLUMNS}, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [*astuple(saved), content],
            )
        return saved

    def list(self, snapshot: str | None = None) -> tuple[SavedScenario, ...]:
        """Return the saved scenarios, of one snapshot (its digest) or of all, the one saved last first."""
        query = (
            f"SELECT {self._COLUMNS} FROM scenarios WHERE ? IS NULL OR snapshot = ?"
            " ORDER BY stored_at_ms DESC, digest, snapshot"
        )
        with self._cursor() as cursor:
            rows = cursor.execute(query, [snapshot, snapshot]).fetchall()
        return tuple(SavedScenario(*row) for row in rows)

    def load(self, digest: str) -> Scenario:
        """Read a saved scenario.

        Raises:
            StoreError: There is none of this digest, or it was changed in the file.
        """
        with self._cursor() as cursor:
            rows = cursor.execute("SELECT content FROM scenarios WHERE digest = ? LIMIT 1", [digest]).fetchall()
        if not rows:
            raise StoreError(
                f"The scenario {digest[:12]} is not stored on this server.",
                remedy="Open the link on the server that made it, export the scenario there, and import the file here.",
            )
        try:
            scenario = from_canonical(read_json(rows[0][0]))
            whole = scenario_digest(scenario) == digest
        except (PlannerError, ValueError):
            whole = False
        if not whole:
            raise StoreError(
                "The saved scenario is damaged.", where=digest[:12], remedy="Delete it and import it again."
            )
        return scenario

    def delete(self, digest: str, snapshot: str | None = None) -> None:
        """Delete a saved scenario, of one snapshot or of all; one that is not there is no error."""
        with self._writes() as cursor:
            cursor.execute(
                "DELETE FROM scenarios WHERE digest = ? AND (? IS NULL OR snapshot = ?)", [digest, snapshot, snapshot]
            )
