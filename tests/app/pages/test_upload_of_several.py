"""A zip of several captures on the page Snapshots: the last one opens, and the page says how to use all."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from planner.formats.folder import parts_of_snapshot
from planner.web import registry, state
from planner.workspace.database import SavedSnapshot
from tests.app.simulate.traces import cluster

START = 1_800_000_000_000


def test_the_last_is_kept_and_the_page_says_so(page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    """It was refused: zip one of them."""
    gone: list[str] = []
    notes: list[str] = []

    def arrive(_saved: SavedSnapshot, _what: str, name: str, note: str) -> None:
        gone.append(name)
        notes.append(note)

    monkeypatch.setattr(registry.module("snapshots"), "arrive", arrive)
    made, target = cluster((0.5, 0.3)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for folder, minute in (("b", 1), ("a", 2)):
            moment = replace(made, info=replace(made.info, captured_at_ms=START + minute * 60_000))
            for name, data in parts_of_snapshot(moment).items():
                archive.writestr(f"{folder}/{name}", data)
    test = page("snapshots")
    (box,) = [one for one in test.file_uploader if one.label == "Snapshot file"]
    box.upload("both.zip", target.getvalue(), "application/zip").run()
    assert not test.exception
    assert not test.error
    assert gone == ["overview"]
    saved = next(one for one in state.workspace().saved() if one.name == "both")
    assert saved.captured_at_ms == START + 120_000
    assert "The last of the 2 captures in the zip was opened: they are of 2027-01-15 08:01:00 UTC to" in notes[0]
