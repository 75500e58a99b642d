"""The workspace keeps what is added, whole, and nothing of what fails."""

import os
import resource
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import StoreError
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import moment
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.scenario import Scenario
from planner.workspace.database import Workspace, open_workspace
from planner.workspace.place import default_path


def test_round_trip_survives_a_restart(small: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "w.duckdb"
    first = open_workspace(path)
    saved = first.add(small, "  Mine ")
    first.close()
    second = open_workspace(path)
    assert second.saved() == (saved,)
    assert saved.name == "Mine"
    assert (saved.brokers, saved.bundles, saved.topics) == (5, 60, 400)
    again = second.snapshot(saved.digest)
    assert snapshot_digest(again) == saved.digest == snapshot_digest(small)
    assert again.settings == small.settings
    assert again.info == small.info
    second.close()


def test_rows_that_a_file_holds_in_another_order_come_in_their_own(small: Snapshot, tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    saved = workspace.add(small, "one")
    workspace.close()
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        for part in ("brokers", "bundles", "topics"):
            connection.execute(f"CREATE TEMP TABLE turned AS FROM {part} ORDER BY row DESC")
            connection.execute(f"DELETE FROM {part}")  # noqa: S608
            connection.execute(f"INSERT INTO {part} FROM turned; DROP TABLE turned")
    workspace = open_workspace(tmp_path / "w.duckdb")
    assert snapshot_digest(workspace.snapshot(saved.digest)) == saved.digest
    workspace.close()


def test_same_content_is_recognised(small: Snapshot, tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    first = workspace.add(small, "one")
    assert workspace.add(replace(small, info=replace(small.info, source="elsewhere")), "two") == first
    assert len(workspace.saved()) == 1
    other = workspace.add(replace(small, info=replace(small.info, captured_at_ms=1)), "later")
    assert {s.digest for s in workspace.saved()} == {first.digest, other.digest}
    workspace.close()


def test_find_by_prefix(small: Snapshot, tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    saved = workspace.add(small, "one")
    assert workspace.find(saved.digest[:8].upper()) == saved
    assert workspace.find("") is None
    assert workspace.find("zz") is None
    assert workspace.find("' OR 1=1 --") is None
    workspace.close()


def test_failed_load_changes_nothing(small: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    kept = workspace.add(small, "kept")
    broken = replace(
        small, info=replace(small.info, captured_at_ms=5), topics=replace(small.topics, hash=np.zeros(3, np.uint32))
    )
    with pytest.raises((StoreError, ValueError)):
        workspace.add(broken, "broken")
    assert workspace.saved() == (kept,)
    with duckdb_reader(workspace) as cursor:
        assert cursor.execute("SELECT count(*), count(DISTINCT snapshot) FROM bundles").fetchall() == [(60, 1)]
    monkeypatch.undo()
    workspace.close()


def duckdb_reader(workspace: Workspace) -> duckdb.DuckDBPyConnection:
    return workspace._connection.cursor()


def test_delete_and_rename(small: Snapshot, tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    saved = workspace.add(small, "one")
    workspace.rename(saved.digest, "'; DROP TABLE snapshots; --")
    workspace.rename(saved.digest, "   ")
    assert workspace.saved()[0].name == "'; DROP TABLE snapshots; --"
    workspace.delete(saved.digest)
    workspace.delete(saved.digest)
    assert workspace.saved() == ()
    with pytest.raises(StoreError, match="does not have the snapshot"):
        workspace.snapshot(saved.digest)
    with duckdb_reader(workspace) as cursor:
        assert cursor.execute("SELECT count(*) FROM topics").fetchall() == [(0,)]
    workspace.close()


def test_each_browser_has_a_snapshot_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.workspace.database._BROWSERS", 2)
    workspace = open_workspace(tmp_path / "w.duckdb")
    assert workspace.looked_at("a") == ""
    now = iter(range(1, 9))
    monkeypatch.setattr("time.time", lambda: float(next(now)))
    for browser, digest in (("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")):
        workspace.looks_at(browser, digest)
    assert [workspace.looked_at(browser) for browser in "abc"] == ["3", "", "4"]
    workspace.close()
    again = open_workspace(tmp_path / "w.duckdb")
    assert again.looked_at("a") == "3"
    again.close()


def test_threads_share_a_workspace(small: Snapshot, tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            saved = workspace.add(replace(small, info=replace(small.info, captured_at_ms=number)), str(number))
            assert len(workspace.snapshot(saved.digest).bundles) == 60
        except BaseException as error:  # noqa: BLE001 - reported by the test below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(workspace.saved()) == 6
    workspace.close()


class TestTroubles:
    """A workspace that cannot be used says what is wrong, and blames no other process for damage."""

    def test_no_database(self, tmp_path: Path) -> None:
        path = tmp_path / "w.duckdb"
        path.write_bytes(b"this is no database" * 500)
        with pytest.raises(StoreError, match=r"^w\.duckdb: The workspace is damaged\..*PLANNER_WORKSPACE"):
            open_workspace(path)

    @pytest.mark.parametrize("at", [0, 8, 20, 4_100, 8_200, 12_300])
    def test_damaged_head(self, small: Snapshot, tmp_path: Path, at: int) -> None:
        path = tmp_path / "w.duckdb"
        workspace = open_workspace(path)
        workspace.add(small, "one")
        workspace.close()
        data = bytearray(path.read_bytes())
        data[at : at + 10] = bytes(byte ^ 0xFF for byte in data[at : at + 10])
        path.write_bytes(data)
        with pytest.raises(StoreError) as caught:
            open_workspace(path).add(small, "one")
        assert caught.value.what in {"The workspace is damaged.", "A newer planner wrote the workspace."}

    def test_held_by_another_process(self, tmp_path: Path) -> None:
        path = tmp_path / "w.duckdb"
        open_workspace(path).close()
        code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            with pytest.raises(StoreError, match="Another process has the workspace open") as caught:
                open_workspace(path)
            assert str(tmp_path) not in str(caught.value)
            other.communicate()
        open_workspace(path).close()

    def test_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="is not a file"):
            open_workspace(tmp_path)

    def test_full_disk_is_the_cause_that_is_told(self, small: Snapshot, tmp_path: Path) -> None:
        path = tmp_path / "w.duckdb"
        workspace = open_workspace(path)
        kept = workspace.add(small, "kept")
        large = generate(ClusterSpec(brokers=9, bundles=20_000, topics=50_000), 1)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100_000, limits[1]))
        try:
            with pytest.raises(StoreError, match=r"The disk is full\. Nothing was stored"):
                workspace.add(large, "large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert workspace.saved() == (kept,)
        workspace.add(large, "large")
        workspace.close()

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE snapshots SET info = NULL",
            "UPDATE snapshots SET info = '[]'",
            "UPDATE snapshots SET warnings = 'x', name = NULL, brokers = NULL, captured_at_ms = 9e18::BIGINT",
            "UPDATE snapshots SET captured_at_ms = -1, policies = '{'",
            "UPDATE bundles SET low = low + 1",
            "UPDATE bundles SET owner = 'nobody:1'",
            "UPDATE brokers SET name = NULL",
            "UPDATE bundles SET row = NULL, low = low + 1",
            "ALTER TABLE snapshots ALTER captured_at_ms TYPE VARCHAR; UPDATE snapshots SET info = NULL",
            "DELETE FROM topics",
        ],
    )
    def test_what_was_changed_in_the_file_is_refused_and_can_be_deleted(
        self, small: Snapshot, tmp_path: Path, change: str
    ) -> None:
        workspace = open_workspace(tmp_path / "w.duckdb")
        digest = workspace.add(small, "one").digest
        with duckdb_reader(workspace) as cursor:
            cursor.execute(change)
        (saved,) = workspace.saved()
        assert moment(saved.captured_at_ms)
        if "warnings" in change:
            assert (saved.name, saved.brokers) == ("", 0)
        else:
            with pytest.raises(StoreError, match="can no longer be read from the workspace") as caught:
                workspace.snapshot(digest)
            assert "Delete it on the Snapshots page" in caught.value.remedy
        workspace.delete(digest)
        assert workspace.saved() == ()
        workspace.close()

    def test_only_the_owner_reads_it(self, tmp_path: Path) -> None:
        path = tmp_path / "made" / "w.duckdb"
        open_workspace(path).close()
        assert [place.stat().st_mode & 0o777 for place in (path, path.parent)] == [0o600, 0o700]


def test_newer_workspace_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    workspace = open_workspace(path)
    with duckdb_reader(workspace) as cursor:
        cursor.execute("UPDATE schema_version SET version = 99")
    workspace.close()
    with pytest.raises(StoreError, match="version 99"):
        open_workspace(path)


def test_place_of_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_WORKSPACE", "/some/where.duckdb")
    assert default_path() == Path("/some/where.duckdb")
    monkeypatch.delenv("PLANNER_WORKSPACE")
    assert default_path() == Path(".workspace/planner.duckdb")


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_what_would_be_lost_at_the_next_start_is_not_stored(small: Snapshot, tmp_path: Path, how: str) -> None:
    path = tmp_path / "w.duckdb"
    workspace = open_workspace(path)
    kept = workspace.add(small, "kept")
    other = generate(ClusterSpec(brokers=2, bundles=4, topics=0), 1)
    if how == "deleted":
        path.unlink()
    else:
        open_workspace(tmp_path / "other.duckdb").close()
        (tmp_path / "other.duckdb").replace(path)
    for write in (
        lambda: workspace.add(other, "lost"),
        lambda: workspace.add(small, "kept"),
        lambda: workspace.rename(kept.digest, "x"),
        lambda: workspace.delete(kept.digest),
        lambda: workspace.looks_at("browser", kept.digest),
        lambda: workspace.scenarios.save(Scenario(name="lost")),
        lambda: workspace.scenarios.delete("0" * 64),
    ):
        with pytest.raises(StoreError, match=f"was {how} while it was open.*stop the planner"):
            write()
    assert workspace.saved() == (kept,), "what is there can be read, and exported"
    assert workspace.snapshot(kept.digest).info == small.info
    workspace.close()


@pytest.mark.parametrize(
    "tables",
    [
        "CREATE TABLE sales (day DATE)",
        "CREATE TABLE snapshots (name VARCHAR)",
        "CREATE TABLE schema_version (version INTEGER, day DATE); CREATE TABLE x (a INTEGER)",
        "CREATE TABLE schema_version (version INTEGER); CREATE TABLE snapshots (name VARCHAR)",
        "CREATE SCHEMA shop; CREATE TABLE shop.sales (day DATE)",
        "CREATE VIEW recent AS SELECT 1 AS a",
    ],
)
def test_a_database_of_another_program_is_left_alone(tmp_path: Path, tables: str) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(tables)
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"not a workspace: it has the table .*Nothing was written"):
        open_workspace(path)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_pipe_is_no_workspace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.duckdb")
    with pytest.raises(StoreError, match="The workspace is not a file"):
        open_workspace(tmp_path / "w.duckdb")
