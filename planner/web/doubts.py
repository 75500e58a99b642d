"""What cannot be right about the usage of the cluster in view, said alike on every page that recommends by it."""

import streamlit as st

from planner.cluster.snapshot import Snapshot
from planner.cluster.text import plain
from planner.explain.doubt import Doubt, doubt_about
from planner.share.link import canonical_text
from planner.simulate.scenario import Scenario
from planner.web import names, state


def doubt(view: state.Current, scenario: Scenario | None = None) -> Doubt:
    """Return what cannot be right about the measurements that advice rests on.

    Args:
        view: The cluster in view.
        scenario: What may correct them; the scenario of the view by default.
    """
    if scenario is None and view.outcome is not None:
        scenario = view.outcome.trace.scenario
    key = f"{view.digest} {'' if scenario is None else canonical_text(scenario)}"
    return _doubt(key, view.captured, scenario)


@st.cache_resource(max_entries=24, show_spinner=False)
def _doubt(key: str, _captured: Snapshot, _scenario: Scenario | None) -> Doubt:
    del key
    return doubt_about(_captured, _scenario)


def say(found: Doubt, withheld: str = "") -> None:
    """Say a doubt above what rests on it, and what is withheld where no usage is true; nothing without a doubt."""
    if sentence := (withheld and found.instead_of(withheld)) or found.sentence:
        st.warning(plain(names.short(sentence)), icon=":material/report:")
