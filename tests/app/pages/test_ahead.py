"""What a page needs is begun when it is asked for, and once."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import streamlit as st

from planner.cluster.errors import StoreError
from planner.cluster.snapshot import Snapshot
from planner.web import address, ahead, state
from planner.web.tasks import Tasks
from planner.workspace.database import Workspace

STATIC = Path(st.__file__).parent / "static"


def _link_of_answer(content_type: bytes, query: bytes) -> str:
    told: list[Any] = []

    async def page(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", content_type)]})

    async def send(message: Any) -> None:
        told.append(message)

    scope = {"type": "http", "method": "GET", "path": "/what-if", "query_string": query, "headers": []}
    asyncio.run(ahead.Ahead(page)(scope, None, send))  # type: ignore[arg-type]
    return str(dict(told[0]["headers"]).get(b"link", b"").decode())


def test_a_browser_is_told_what_code_its_page_will_need(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: SimpleQueue[str] = SimpleQueue()
    monkeypatch.setattr(state, "load_ahead", loaded.put)
    files = [part.partition(">")[0].removeprefix("<./") for part in _link_of_answer(b"text/html", b"").split(", ")]
    assert [Path(file).name.partition(".")[0] for file in files] == ["PlotlyChart", "DataFrame", "arrowFormatUtils"]
    assert all((STATIC / file).is_file() for file in files)
    assert not _link_of_answer(b"text/javascript", b"snapshot=a")
    assert _link_of_answer(b"text/html; charset=utf-8", b"scenario=1.x&snapshot=b")
    assert loaded.get(timeout=60) == "b"
    assert loaded.empty()


def test_many_requests_wait_for_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of addresses with a snapshot starts no flood of threads; what is left out, its page loads."""
    gate, begun = threading.Event(), SimpleQueue[str]()

    def slow(asked: str) -> None:
        begun.put(asked)
        assert gate.wait(60)

    monkeypatch.setattr(state, "load_ahead", slow)
    before = threading.active_count()
    for number in range(50):
        assert _link_of_answer(b"text/html", f"snapshot={number}".encode())
    assert threading.active_count() <= before + 4
    gate.set()
    for thread in threading.enumerate():
        if thread.name.endswith("(_load)"):
            thread.join(60)
    assert 0 < begun.qsize() <= 4
    assert _link_of_answer(b"text/html", b"snapshot=later")
    while begun.get(timeout=60) != "later":
        pass


@pytest.fixture
def reads(workspace_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is read from the workspace, which is another one than before; the first time it cannot be read."""
    assert not workspace_file.exists()
    state.workspace.clear()
    asked: list[str] = []
    real = Workspace.snapshot

    def read(workspace: Workspace, digest: str) -> Snapshot:
        asked.append(digest)
        if len(asked) == 1:
            raise StoreError("The disk is away.", remedy="Bring it back.")
        return real(workspace, digest)

    monkeypatch.setattr(Workspace, "snapshot", read)
    monkeypatch.setattr(state, "SNAPSHOTS", Tasks(state.SNAPSHOTS.limits, after=lambda: None))
    yield asked
    state.workspace().close()
    state.workspace.clear()


def test_a_snapshot_is_read_once_for_all_who_ask_and_again_where_that_failed(reads: list[str], small: Snapshot) -> None:
    digest = state.workspace().add(small, "small").digest
    state.load_ahead("none such")
    assert not reads
    with pytest.raises(StoreError, match="The disk is away"):
        state.snapshot_of(digest)
    state.load_ahead(digest[:12])
    found = state.snapshot_of(digest)
    assert state.snapshot_of(digest) is found
    assert reads == [digest] * 2


@pytest.mark.usefixtures("reads")
def test_few_snapshots_are_kept() -> None:
    for digest in ("a", "b", "c", "d"):
        with pytest.raises(StoreError):
            state.snapshot_of(digest)
    assert [digest for digest in "abcd" if state.SNAPSHOTS.find(digest) is not None] == ["b", "c", "d"]


@pytest.mark.usefixtures("reads")
def test_a_snapshot_can_be_looked_at_though_its_file_is_gone(
    small: Snapshot, workspace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = state.workspace().add(small, "small").digest
    workspace_file.unlink()
    said: list[str] = []
    monkeypatch.setattr(address, "note", said.append)
    monkeypatch.setattr(address, "browser", lambda: "a")
    monkeypatch.setattr(address, "replace", lambda **_: None)
    state.select(digest)
    assert len(said) == 1
    assert "was deleted while it was open" in said[0]
