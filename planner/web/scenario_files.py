"""The scenario as a file: a download of it, and a field that imports one."""

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.text import plain, short_digest
from planner.share.link import LinkedScenario, scenario_digest
from planner.share.scenario_file import read_scenario_file, scenario_file
from planner.web import scenario_history, state
from planner.web.session import SessionValue, widget_state
from planner.web.widgets import REFUSED, download, show_error

_JSON = "application/json"
_IMPORTS = SessionValue("imports", int)
"""Number of imported files."""
_FOREIGN: SessionValue[tuple[str, str]] = SessionValue("foreign_scenario", lambda: ("", ""))
"""Digest of the scenario that was imported last, and what to say where it was made for another snapshot."""


def show_foreign(view: state.Current) -> None:
    """Say that the scenario in view was made for another snapshot, where it was imported so."""
    imported, text = _FOREIGN.get()
    if imported and imported == scenario_digest(scenario_history.present(view)):
        st.warning(text, icon=":material/swap_horiz:")


def _foreign(linked: LinkedScenario) -> str:
    return (
        f"The file was made for the snapshot “{plain(linked.snapshot_name or 'unnamed')}”"
        f" (`{short_digest(linked.snapshot_digest)}`), which is another one. Brokers and bundles can have other names"
        " here."
    )


def file_exchange(view: state.Current) -> None:
    """Draw a button that exports the scenario as a file, or why it has none, and a field that imports one.

    The file is written at once: of what fails in a download that makes it later, the browser says nothing of use.
    """
    scenario = scenario_history.present(view)
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
            scenario_history.change(view, linked.scenario)
            other = linked.snapshot_digest not in {"", view.digest}
            _FOREIGN.put((scenario_digest(scenario_history.present(view)), _foreign(linked)) if other else ("", ""))
    except PlannerError as error:
        REFUSED.put(error)
