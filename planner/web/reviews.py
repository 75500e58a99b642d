"""How near the cluster in view is to its limits, now and after losses; each worked out once for all sessions."""

from dataclasses import replace
from typing import Literal

import streamlit as st

from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.share.link import scenario_digest
from planner.simulate.assumptions import Assumptions
from planner.simulate.failure_review import FailureReview, review_losses
from planner.simulate.losses import Losses, simulate_losses
from planner.simulate.scenario import Scenario
from planner.simulate.usage_model import Standing, standing
from planner.web import state, tasks
from planner.web.task import Report, Stopped


def losses(
    key: str, snapshot: Snapshot, config: Settings, lost: Literal[1, 2], assumptions: Assumptions
) -> FailureReview | None:
    """Return a review of every loss of one or two brokers, None while it is computed; the key names the snapshot."""

    def review(*_: object) -> FailureReview:
        return review_losses(snapshot, config, lost=lost, assumptions=assumptions)

    return tasks.answer(f"losses {key} {lost} {assumptions} {config!r}", review, "Reviewing broker losses")


def simulated(key: str, snapshot: Snapshot, scenario: Scenario, *, last: bool = False) -> Losses | None:
    """Return the simulated losses of any one broker, None while they are computed; the key names the snapshot.

    With `last` they begin when the session waits for nothing else.
    """

    def look(_: Report, stopped: Stopped) -> Losses:
        return simulate_losses(snapshot, scenario, cancelled=stopped)

    name = f"simulated losses {key} {scenario_digest(replace(scenario, name=''))}"
    return tasks.answer(name, look, "Simulating the loss of brokers", last=last)


@st.cache_data(max_entries=32, show_spinner=False)
def _standing(key: str, _snapshot: Snapshot) -> Standing:
    del key
    return standing(_snapshot, _snapshot.settings, Assumptions())


def standing_of(view: state.Current) -> Standing:
    """Return how near the cluster that is shown is to its limits."""
    if view.outcome is not None:
        return view.outcome.before_after.after
    return _standing(f"{view.digest}{view.variant}", view.snapshot)
