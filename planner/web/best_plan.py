"""Best plans of the snapshot in view, each worked out once for all sessions, and the sentence other pages show."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.explain.text import count
from planner.optimize.absorb import surviving
from planner.optimize.answer import best_plan
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.stability import Stability, stability_of
from planner.optimize.waves import Wave, scenario_of, waves_of
from planner.simulate.scenario import MOST_STEPS, Scenario
from planner.web import state

AT_ONCE_BUNDLES = 20_000
"""Bundles up to which a page answers what it was not asked."""

_LITTLE = 0.02


@st.cache_resource(max_entries=24, show_spinner="Looking for the best plan …")
def _plan(digest: str, asked: str, _snapshot: Snapshot, _question: Question) -> Plan:
    del digest, asked
    return best_plan(_snapshot, _question)


def plan_of(view: state.Current, question: Question) -> Plan:
    """Return the answer to a question about the snapshot in view.

    Raises:
        PlannerError: It has none.
    """
    return _plan(f"{view.digest}{view.variant}", repr(question), view.snapshot, question)


def frontier_of(view: state.Current, question: Question) -> Plan:
    """Return the plan without a budget, quickly: its frontier has what every number of moves comes to."""
    free = replace(question, moves=None, topics=None, clients=None, bytes_per_s=None, under_percent=None, rounds=0)
    return plan_of(view, replace(free, splits=0))


@st.cache_resource(max_entries=24, show_spinner="Watching what Pulsar makes of it …")
def stability(plan_digest: str, _plan: Plan) -> Stability:
    """Return what the load balancer makes of a plan."""
    del plan_digest
    return stability_of(_plan)


@st.cache_resource(max_entries=24, show_spinner=False)
def waves(plan_digest: str, most_clients: int, _plan: Plan) -> Sequence[Wave]:
    """Return the waves of a plan."""
    del plan_digest
    return waves_of(_plan, most_clients)


@st.cache_resource(max_entries=8, show_spinner="Trying plans of several sizes …")
def _safe(digest: str, _snapshot: Snapshot) -> Plan:
    del digest
    return surviving(_snapshot, Question(splits=0))


def safe_of(view: state.Current) -> Plan:
    """Return few moves after which the loss of any one broker is as mild as can be.

    Raises:
        PlannerError: There is no such plan.
    """
    return _safe(view.digest, view.snapshot)


def as_scenario(view: state.Current, base: Scenario) -> Scenario:
    """Return a scenario with the moves of the best plan first, as many as bring most.

    Raises:
        PlannerError: There is no such plan.
    """
    question = Question(splits=0)
    plan = plan_of(view, replace(question, moves=min(knee(frontier_of(view, question)), MOST_STEPS - len(base.steps))))
    return replace(base, name="Best plan", steps=(*scenario_of(plan).steps, *base.steps))


def knee(frontier: Plan) -> int:
    """Return the number of moves after which further ones bring little: the farthest from the straight line."""
    moves = np.array([step.moves for step in frontier.frontier], dtype=np.float64)
    peaks = np.array([step.peak for step in frontier.frontier])
    if len(moves) < 3 or peaks[0] <= peaks[-1]:  # noqa: PLR2004 - a line has no knee
        return max(int(moves[-1]), 1) if len(moves) else 1
    along = (moves - moves[0]) / max(moves[-1] - moves[0], 1)
    fall = (peaks[0] - peaks) / (peaks[0] - peaks[-1])
    return max(int(moves[int((fall - along).argmax())]), 1)


def best_plan_sentence(view: state.Current) -> str:
    """Return what the best plan of a few moves brings, for other pages; empty where that would keep them waiting."""
    if len(view.snapshot.bundles) > AT_ONCE_BUNDLES:
        return ""
    try:
        frontier = frontier_of(view, Question())
    except PlannerError:
        return ""
    steps = frontier.frontier
    first = steps[0].peak if steps else 0.0
    if len(steps) < 2 or first - steps[-1].peak < _LITTLE:  # noqa: PLR2004 - the first is the cluster as it is
        return f"No plan lowers the highest usage of {first * 100:.1f} % by much."
    at = knee(frontier)
    chosen = max((step for step in steps if step.moves <= at), key=lambda step: step.moves)
    return (
        f"{count(chosen.moves, 'move')} would bring the highest usage from {first * 100:.1f} to"
        f" {chosen.peak * 100:.1f} %; no plan gets below {frontier.least_with(chosen.moves) * 100:.1f} % with so many."
    )
