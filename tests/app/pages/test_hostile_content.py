"""What stands in a workspace may be hostile, old or damaged: every page opens, and Snapshots can delete it."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.snapshot import Snapshot
from planner.web import registry, state

Page = Callable[..., AppTest]
_MICROSECONDS = 1_763_700_000_000_000


def errors(test: AppTest) -> str:
    return "\n".join(str(error.value) for error in test.error)


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_far_moment_that_an_older_release_saved(page: Page, small: Snapshot, name: str) -> None:
    state.workspace().add(replace(small, info=replace(small.info, captured_at_ms=_MICROSECONDS)), "far")
    test = page(name)
    assert not test.exception
    if registry.page(name).subject.value:
        assert "cannot be read from the workspace any more" in errors(test)
        picker = next(box for box in test.selectbox if box.label == "Snapshot")
        assert "after the year 9999" in picker.options[0]


def test_snapshots_offers_to_delete_what_cannot_be_read(page: Page, small: Snapshot) -> None:
    state.workspace().add(replace(small, info=replace(small.info, captured_at_ms=_MICROSECONDS)), "far")
    test = page("snapshots")
    assert not test.exception
    next(button for button in test.button if button.label == "Delete").click().run()
    assert not test.exception
    assert any("“far” (" in text.value and "will be deleted" in text.value for text in test.markdown)


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_workspace_that_cannot_be_opened(page: Page, workspace_file: Path, name: str) -> None:
    workspace_file.write_bytes(b"damaged" * 1_000)
    test = page(name, snapshot="0123456789ab", scenario="1.ADX0ZI21SGEAOdtADZH3rWlq")
    assert not test.exception
    assert "The workspace is damaged" in errors(test) or name in {"replay", "advisor", "shadow"}
    assert str(workspace_file) not in errors(test)
    workspace_file.unlink()


@pytest.mark.parametrize("name", ["overview", "snapshots"])
def test_a_workspace_that_another_process_holds(page: Page, workspace_file: Path, name: str) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(workspace_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        test = page(name)
        assert not test.exception
        assert "Another process has the workspace open" in errors(test)
        other.communicate()
    assert not page(name).error
