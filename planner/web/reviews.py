"""How near the cluster in view is to its limits, now and after losses; each worked out once for all sessions."""

from typing import Literal

import streamlit as st

from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.simulate.assumptions import Assumptions
from planner.simulate.failure_review import FailureReview, review_losses
from planner.simulate.usage_model import Standing, standing
from planner.web import state, tasks


def losses(
    key: str, snapshot: Snapshot, config: Settings, lost: Literal[1, 2], assumptions: Assumptions
) -> FailureReview | None:
    """Return a review of every loss of one or two brokers, None while it is computed; the key names the snapshot."""

    def review(*_: object) -> FailureReview:
        return review_losses(snapshot, config, lost=lost, assumptions=assumptions)

    return tasks.answer(f"losses {key} {lost} {assumptions} {config!r}", review, "Reviewing broker losses")


@st.cache_data(max_entries=32, show_spinner=False)
def _standing(key: str, _snapshot: Snapshot) -> Standing:
    del key
    return standing(_snapshot, _snapshot.settings, Assumptions())


def standing_of(view: state.Current) -> Standing:
    """Return how near the cluster that is shown is to its limits."""
    if view.outcome is not None:
        return view.outcome.before_after.after
    return _standing(f"{view.digest}{view.variant}", view.snapshot)
