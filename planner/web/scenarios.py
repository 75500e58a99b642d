"""The scenario that a person works on: its history, its link and its file.

A scenario belongs to a snapshot. The session keeps one for each, with what can be undone; the address holds it whole,
so that the page that opens it elsewhere shows the same plan.
"""

from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.text import short_digest
from planner.share.link import (
    LinkedScenario,
    canonical_text,
    decode_link,
    encode_link,
    encode_reference,
    scenario_link,
)
from planner.share.scenario_file import read_scenario_file, scenario_file
from planner.simulate.scenario import Scenario, unchanged
from planner.web import address, registry, state
from planner.web.session import SessionValue, widget_state
from planner.web.widgets import REFUSED, download, show_error

_PARAM, _JSON = "scenario", "application/json"
_LONGEST_IN_ADDRESS = 1_500
_DEPTH = 100


@dataclass
class History:
    """A scenario with what was before it and after it.

    Attributes:
        present: The scenario.
        past: What can be undone, the latest last.
        future: What can be done again, the latest last.
    """

    present: Scenario
    past: list[Scenario] = field(default_factory=list)
    future: list[Scenario] = field(default_factory=list)


_HISTORIES: SessionValue[dict[str, History]] = SessionValue("scenario_histories", dict)
_IN_ADDRESS = SessionValue("scenario_param", str)
"""The scenario that the planner itself put into the address."""
_UNTAKEN: SessionValue[tuple[str, str, PlannerError | None]] = SessionValue("untaken", lambda: ("", "", None))
"""The link that could not be taken: title of the page, digest of the snapshot that it waits for, or the error."""
PENDING: SessionValue[dict[str, tuple[Scenario, str]]] = SessionValue("pending_scenarios", dict)
"""Scenarios whose snapshot was not here when their link was opened: by digest, with the snapshot's name."""
_IMPORTS = SessionValue("imports", int)


def as_captured(view: state.Current, **fields: Any) -> Scenario:
    """Return the scenario that changes nothing about the snapshot in view."""
    return unchanged(view.captured.info.pulsar_version, **fields)


def history(view: state.Current) -> History:
    """Return the history of the scenario about the snapshot in view."""
    return _HISTORIES.get().setdefault(view.digest, History(as_captured(view)))


def present(view: state.Current) -> Scenario:
    """Return the scenario about the snapshot in view."""
    return history(view).present


def _write_address(view: state.Current) -> None:
    """Put the scenario into the address; one that changes nothing is left out."""
    open_now = present(view)
    text = ""
    if open_now != as_captured(view):
        text = encode_link(open_now, view.digest, view.saved.name)
        if len(text) > _LONGEST_IN_ADDRESS:
            kept = state.workspace().scenarios.save(open_now, view.digest, view.saved.name)
            text = encode_reference(kept.digest, view.digest, view.saved.name)
    _IN_ADDRESS.put(text)
    address.put(**{_PARAM: text})


def change(view: state.Current, scenario: Scenario) -> None:
    """Take another scenario, so that it can be undone.

    Raises:
        PlannerError: A value is out of bounds; nothing changes.
    """
    canonical_text(scenario)
    scenario.settings_over(view.captured)
    known = history(view)
    if scenario == known.present:
        return
    known.past = [*known.past, known.present][-_DEPTH:]
    known.present, known.future = scenario, []
    _write_address(view)


def undo(view: state.Current) -> None:
    """Go back to the scenario before."""
    known = history(view)
    if known.past:
        known.future.append(known.present)
        known.present = known.past.pop()
        _write_address(view)


def redo(view: state.Current) -> None:
    """Take back what was undone."""
    known = history(view)
    if known.future:
        known.past.append(known.present)
        known.present = known.future.pop()
        _write_address(view)


# Links


def _scenario_of(linked: LinkedScenario) -> Scenario:
    if linked.scenario is not None:
        return linked.scenario
    return state.workspace().scenarios.load(linked.scenario_digest)


def _adopt(text: str) -> str:
    """Take the scenario of a link; return the digest of its snapshot, or nothing when it was taken.

    A link names its snapshot. When it is not here the scenario waits until it is.

    Raises:
        PlannerError: The link is none.
    """
    linked = decode_link(text)
    scenario, digest = _scenario_of(linked), linked.snapshot_digest
    found = state.find(digest)
    if found is None:
        PENDING.get()[digest] = (scenario, linked.snapshot_name or "unnamed")
        return digest
    known = _HISTORIES.get().setdefault(found.digest, History(unchanged(found.pulsar_version)))
    if known.present != scenario:
        known.past.append(known.present)
        known.present, known.future = scenario, []
    state.select(found.digest, **{name: value for name, value in address.parts().items() if name != "snapshot"})
    return ""


def take_from_address(page: str) -> None:
    """Take the scenario of the address, unless the planner itself put it there.

    Why that fails is said until somebody goes to another page: this one may draw itself again at any time.
    """
    text = address.part(_PARAM)
    if text and text != _IN_ADDRESS.get():
        _IN_ADDRESS.put(text)
        digest, error = "", None
        try:
            digest = _adopt(text)
        except PlannerError as refused:
            error = refused
        if digest or error:
            address.put(**{_PARAM: ""})
        _UNTAKEN.put((page, digest, error))
    where, digest, error = _UNTAKEN.get()
    if where == page and error is not None:
        show_error(error)
    elif where == page and digest in PENDING.get():
        _say_awaited(digest)
    else:
        _UNTAKEN.take()


def _say_awaited(digest: str) -> None:
    """Say that a link waits for a snapshot, and how it comes here."""
    name = PENDING.get()[digest][1]
    show_error(
        PlannerError(
            f"This link needs the snapshot '{name}' ({short_digest(digest)}), which is not on this server.",
            remedy="Load that snapshot on the page Snapshots. The scenario then opens.",
        )
    )
    st.caption(f"Digest of the snapshot: {digest}")
    registry.link("snapshots", "Load the snapshot")


def attach(view: state.Current) -> None:
    """Take the scenario that has waited for the snapshot in view, and write the address."""
    waiting = PENDING.get().pop(view.digest, None)
    if waiting is not None:
        change(view, waiting[0])
        st.success("Opened the scenario of the link.", icon=":material/check_circle:")
    _write_address(view)


def link_to(view: state.Current, scenario: Scenario, page: str = "what-if", **parts: str) -> str:
    """Return the whole address that opens a scenario on a page, with further parts.

    Raises:
        PlannerError: It cannot be written.
    """
    start = address.at(page, **parts, **{_PARAM: ""})

    def keep(large: Scenario) -> str:
        return state.workspace().scenarios.save(large, view.digest, view.saved.name).digest

    return scenario_link(scenario, view.digest, view.saved.name, address=start, keep=keep)


def file_exchange(view: state.Current) -> None:
    """Draw a button that exports the scenario as a file, or why it has none, and a field that imports one.

    The file is written at once: of what fails in a download that makes it later, the browser says nothing of use.
    """
    scenario = present(view)
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in scenario.name) or "scenario"

    try:
        download("Export as a file", scenario_file(scenario, view.digest, view.saved.name), f"{name}.json", _JSON)
    except PlannerError as error:
        show_error(error)
    # Another key after each import, so that the field is empty again.
    key = f"import-{_IMPORTS.get()}"
    st.file_uploader("Import a file", type=["json"], key=key, on_change=_import_file, args=(view, key))


def _import_file(view: state.Current, key: str) -> None:
    given = widget_state(key)
    if given is None:
        return
    _IMPORTS.put(_IMPORTS.get() + 1)
    try:
        linked = read_scenario_file(given.getvalue())
        if linked.scenario is not None:
            change(view, linked.scenario)
    except PlannerError as error:
        REFUSED.put(error)
