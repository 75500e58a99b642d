"""Runs a page as Streamlit does, without a browser."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.web import capture_form, registry, state


def script(name: str) -> AppTest:
    """A page that has not run yet."""
    return AppTest.from_string(f"from planner.web.registry import page\npage({name!r}).show()\n", default_timeout=60)


def forget() -> None:
    """Forget what belongs to one test; what was decided or simulated of a digest stays, as on a server."""
    advisor = registry.module("advisor")
    for cache in (state.workspace, capture_form._captures, advisor._material, advisor._configured, advisor._advice):
        cache.clear()


@pytest.fixture
def page(workspace_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    """Returns a function that runs a page with parts of an address; the workspace is empty at first."""
    assert not workspace_file.exists()
    forget()
    # Links between pages need the router, which AppTest does not run.
    monkeypatch.setattr(st, "page_link", lambda *_, **__: None)

    def run(name: str, **address: str) -> AppTest:
        test = script(name)
        for key, value in address.items():
            test.query_params[key] = value
        return test.run()

    yield run
    state.workspace().close()
    forget()
