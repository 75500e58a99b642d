"""Which pages there are, in the order of the menu, and how to get from one to another.

A page is a file of the folder `pages` with a `PAGE`; its name here is the whole registration. The address of a page is
its name with dashes; the first page is the root.
"""

import importlib.util
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from planner.cluster.resources import resources
from planner.web import address
from planner.web.session import SessionValue, is_history_navigation

if TYPE_CHECKING:
    from planner.web.page import Page

GROUPS: Mapping[str, tuple[str, ...]] = {
    "": ("overview",),
    "Explain": ("why", "shedding", "hit_counters", "throttling"),
    "Map": ("namespaces", "bundle_map", "brokers", "split_lab"),
    "Plan": ("best_plan", "what_if", "compare", "failure_review", "upgrade"),
    "Execute": ("moves",),
    "History": ("replay", "advisor", "shadow"),
    "Data": ("load", "snapshots"),
}
"""The entries of the menu with their pages, by purpose; the first one is a page itself."""
NAMES: tuple[str, ...] = tuple(name for names in GROUPS.values() for name in names)
"""All pages."""
AFTER = "with"
"""The part of the address by which a page shows the cluster after the scenario."""
SHOWS_AFTER = SessionValue("shows_after", bool)
"""Whether the page in view shows the cluster after the scenario, so that its links lead to pages that do so, too."""
LEFT_S = 1.0
"""How long a click on a page that was left counts as the second half of a double click."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How a page was left: its path, the name of the other one with parts of its address, and when."""

    start: str
    name: str
    parts: Mapping[str, str]
    at_s: float


_HERE = SessionValue("here", str)
"""The path of the page in view."""
_LEFT: SessionValue[_Way | None] = SessionValue("left", lambda: None)
"""How the last page was left by a button."""
_READING = threading.RLock()
"""Guards the import of a page: no thread sees a partially imported module."""


def pages_folder() -> Path:
    """Return the folder of the pages."""
    return resources() / "pages"


def module(name: str) -> ModuleType:
    """Return the module of a page, which is imported once.

    Raises:
        KeyError: There is no such page.
    """
    if name not in NAMES:
        raise KeyError(name)
    full = f"pages.{name}"
    with _READING:
        if full not in sys.modules:
            spec = importlib.util.spec_from_file_location(full, pages_folder() / f"{name}.py")
            assert spec is not None  # noqa: S101 - for mypy: the path ends with .py
            assert spec.loader is not None  # noqa: S101
            sys.modules[full] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(sys.modules[full])
            except BaseException:
                del sys.modules[full]
                raise
        return sys.modules[full]


def read_pages() -> None:
    """Import every page."""
    for name in NAMES:
        module(name)


def page(name: str) -> "Page":
    """Return a page."""
    found: Page = module(name).PAGE
    return found


def streamlit_page(name: str) -> StreamlitPage:
    """Return a page for Streamlit's navigation."""
    one = page(name)
    first = name == NAMES[0]
    path = "" if first else name.replace("_", "-")
    return st.Page(one.show, title=one.title, icon=one.icon, url_path=path, default=first)


def navigation() -> StreamlitPage:
    """Draw the menu and return the page of the address.

    The first page has an address with its name, too, and every page one with the name of its file.
    """
    others = {NAMES[0]: NAMES[0].replace("_", "-"), **{name: name for name in NAMES[1:] if "_" in name}}
    hidden = [
        st.Page(partial(go, name, keep=True), title=page(name).title, url_path=path, visibility="hidden")
        for name, path in others.items()
    ]
    menu = {group: [streamlit_page(name) for name in names] for group, names in GROUPS.items()}
    menu[next(iter(menu))] += hidden
    found = st.navigation(menu, position="top")
    _follow(found.url_path)
    _HERE.put(found.url_path)
    return found


_OF_THE_CLUSTER = ("snapshot", "moment", "scenario")
"""Parts of an address that every page about a cluster has.

A page that has to add them to its address is more steps of the browser's history, and another tab lacks the scenario.
"""


def _same_cluster() -> dict[str, str]:
    parts = address.parts()
    return {name: parts[name] for name in _OF_THE_CLUSTER if name in parts}


def link(name: str, label: str, icon: str = "", **parts: str) -> None:
    """Draw a link to a page, with parts of an address; it shows the same cluster as the page in view."""
    after = page(name).after_scenario if SHOWS_AFTER.get() else {}
    parts = {**_same_cluster(), **after, **parts}
    st.page_link(streamlit_page(name), label=label, icon=icon or page(name).icon, query_params=parts or None)


def go(name: str, *, keep: bool = False) -> None:
    """Go to a page about the same cluster; with `keep` all parts of the address go along."""
    parts = address.parts() if keep else _same_cluster()
    _LEFT.put(_Way(_HERE.get(), name, parts, time.monotonic()))
    st.switch_page(streamlit_page(name), query_params=parts)


def _follow(path: str) -> None:
    """Go where the page of an address was just left for.

    The second half of a double click comes from the page that the browser still shows. Drawn once more, that page would
    do a second time what its button does, or stay in view.
    """
    way = _LEFT.get()
    soon = way is not None and time.monotonic() - way.at_s < LEFT_S
    if way is not None and soon and way.start == path and not is_history_navigation():
        st.switch_page(streamlit_page(way.name), query_params=way.parts)
