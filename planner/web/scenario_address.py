"""The scenario in the address: its parameter, links that open it elsewhere, and those that wait for a snapshot.

The address holds the scenario whole, so that the page that opens it elsewhere shows the same plan; one too long for an
address is kept in the workspace, and the address names it.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.text import short_digest
from planner.share.link import LinkedScenario, decode_link, encode_link, encode_reference, scenario_link
from planner.simulate.scenario import Scenario
from planner.web import address, history_moments, registry, state
from planner.web.session import SessionValue
from planner.web.widgets import show_error
from planner.workspace.database import SavedSnapshot

_PARAM = "scenario"
_LONGEST = 1_500
"""Characters of a scenario in an address; a longer one is kept in the workspace."""

_WRITTEN = SessionValue("scenario_param", str)
"""The scenario that the planner itself put into the address."""
_NOT_OPENED: SessionValue[tuple[str, str, PlannerError | None]] = SessionValue(
    "link_not_opened", lambda: ("", "", None)
)
"""The link that is not opened: title of the page, digest of the snapshot that it waits for, or the error."""
PENDING: SessionValue[dict[str, tuple[Scenario, str]]] = SessionValue("pending_scenarios", dict)
"""Scenarios of opened links whose snapshot is missing: by digest, with the snapshot's name."""


def write(view: state.Current, scenario: Scenario | None) -> None:
    """Put the scenario about the snapshot in view into the address; None for one that changes nothing."""
    text = ""
    if scenario is not None:
        text = encode_link(scenario, view.digest, view.saved.name)
        if len(text) > _LONGEST:
            text = encode_reference(_keep(view, scenario), view.digest, view.saved.name)
    _WRITTEN.put(text)
    address.put(**{_PARAM: text})


def _keep(view: state.Current, large: Scenario) -> str:
    """Keep a scenario that is too long for an address in the workspace; return its digest."""
    return state.workspace().scenarios.save(large, view.digest, view.saved.name).digest


def _scenario_of(linked: LinkedScenario) -> Scenario:
    if linked.scenario is not None:
        return linked.scenario
    return state.workspace().scenarios.load(linked.scenario_digest)


def _open(text: str, adopt: Callable[[SavedSnapshot, Scenario], None]) -> str:
    """Open the scenario of a link; return the digest of its snapshot if it waits for that, else nothing.

    Raises:
        PlannerError: The link is not valid, or the workspace does not have its scenario.
    """
    linked = decode_link(text)
    if moment := address.part("moment"):
        with suppress(PlannerError):  # said where the snapshot is looked for
            history_moments.open_moment(moment)
    scenario, digest = _scenario_of(linked), linked.snapshot_digest
    found = state.find(digest)
    if found is None:
        PENDING.get()[digest] = (scenario, linked.snapshot_name or "unnamed")
        return digest
    adopt(found, scenario)
    state.select(found.digest, **{name: value for name, value in address.parts().items() if name != "snapshot"})
    return ""


def open_link(page: str, adopt: Callable[[SavedSnapshot, Scenario], None]) -> None:
    """Open the scenario of the address, unless the planner itself put it there.

    A link names its snapshot; when that is not here, its scenario waits until it is. Why a link is not opened is shown
    until somebody goes to another page: this one may draw itself again at any time.

    Args:
        page: Title of this page.
        adopt: Makes a scenario the one about a snapshot that is here.
    """
    text = address.part(_PARAM)
    if text and text != _WRITTEN.get():
        _WRITTEN.put(text)
        digest, error = "", None
        try:
            digest = _open(text, adopt)
        except PlannerError as rejected:
            error = rejected
        if digest or error:
            address.put(**{_PARAM: ""})
        _NOT_OPENED.put((page, digest, error))
    where, digest, error = _NOT_OPENED.get()
    if where == page and error is not None:
        show_error(error)
    elif where == page and digest in PENDING.get():
        _show_awaited(digest)
    else:
        _NOT_OPENED.take()


def _show_awaited(digest: str) -> None:
    """Show that a link waits for a snapshot, and how to load that."""
    name = PENDING.get()[digest][1]
    show_error(
        PlannerError(
            f"This link needs the snapshot '{name}' ({short_digest(digest)}), which is not on this server.",
            remedy="Load that snapshot on the page Snapshots. The scenario then opens.",
        )
    )
    st.caption(f"Digest of the snapshot: {digest}")
    registry.link("snapshots", "Load the snapshot")


def is_awaited(digest: str) -> bool:
    """Say whether the scenario of a link waits for the snapshot whose digest begins so."""
    return bool(digest) and any(one.startswith(digest) for one in PENDING.get())


def arrived(view: state.Current) -> Scenario | None:
    """Return the scenario of a link that has waited for the snapshot in view, which waits no more."""
    waiting = PENDING.get().pop(view.digest, None)
    return None if waiting is None else waiting[0]


def link_to(view: state.Current, scenario: Scenario, page: str = "what-if", **parts: str) -> str:
    """Return the whole address that opens a scenario on a page, with further parts.

    Raises:
        PlannerError: It cannot be written.
    """
    start = address.at(page, **state.moment_part(view.digest), **parts, **{_PARAM: ""})
    return scenario_link(scenario, view.digest, view.saved.name, address=start, keep=partial(_keep, view))
