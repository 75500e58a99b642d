"""Load your cluster: whatever an operator has becomes a snapshot."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from planner.web import registry, state
from planner.web.capture_form import capture_form
from planner.web.load_files import files_part
from planner.web.load_planned import planned_part
from planner.web.page import Page, Subject

_QUERY = """
curl -sG PROMETHEUS/api/v1/query --data-urlencode \\
  'query={__name__=~"pulsar_(lb_.*usage|(rate|throughput)_(in|out)|(producers|consumers)_count|bundle_.*)"}' \\
  > now.json
""".strip()


def _prometheus() -> None:
    st.markdown(
        "Query one moment, and upload the answer below. Thanos, Mimir and VictoriaMetrics answer the same query. With"
        " `splitTopicAndPartitionLabelInPrometheus` nothing else is needed: labels of partitions are read."
    )
    st.code(_QUERY, language=None, wrap_lines=True)
    st.caption("`python -m planner history ingest` turns an answer over hours or days into a history.")
    files_part()


PARTS: Mapping[str, Callable[[], None]] = {
    "Files or text": files_part,
    "Admin URL": capture_form,
    "Prometheus": _prometheus,
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
