"""Load your cluster: whatever an operator has becomes a snapshot."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from planner.web import registry, state
from planner.web.capture_form import capture_form
from planner.web.load_files import files_part
from planner.web.load_planned import planned_part
from planner.web.load_prometheus import prometheus_part
from planner.web.page import Page, Subject

PARTS: Mapping[str, Callable[[], None]] = {
    "Files or text": files_part,
    "Admin URL": capture_form,
    "Prometheus": prometheus_part,
    "Nothing yet": planned_part,
}
"""What a person may have, and what is drawn then."""


def draw(_: Any) -> None:
    """Draw the page."""
    state.workspace()  # what cannot be kept in the end is said at once
    have = st.radio("What do you have?", list(PARTS), horizontal=True, key="load-have")
    PARTS[have or "Files or text"]()
    registry.link("snapshots", "Snapshots in this workspace, and samples")


PAGE = Page(
    title="Load your cluster",
    icon=":material/upload_file:",
    purpose="Make a snapshot of what you have: outputs, files, an address, or a plan.",
    draw=draw,
    subject=Subject.NOTHING,
)
