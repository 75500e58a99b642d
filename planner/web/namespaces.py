"""What the page *Namespaces* asks for: advice and forecasts in the background, at once where that is cheap."""

from dataclasses import dataclass
from typing import Final

import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.text import count
from planner.namespaces.advice import BundleAdvice, bundle_advice
from planner.namespaces.impact import SplitForecast, growing, split_forecasts
from planner.namespaces.overview import namespaces_frame
from planner.namespaces.successor import SuccessorTrial
from planner.remedy.tried import AT_ONCE_S, tried_at_once
from planner.share.bundle_advice import advice_steps, tried_successor
from planner.simulate.admin_commands import Command
from planner.simulate.price import price_of
from planner.simulate.run import simulate
from planner.web import best_plan, scenario_history, state, tasks
from planner.web.doubts import doubt
from planner.web.session import SessionValue
from planner.web.task import Report, Stopped
from planner.web.widgets import button

_ASKED: Final[SessionValue[frozenset[str]]] = SessionValue("asked_namespaces", frozenset)
"""Keys of what a person asked to be worked out."""
_ADVICE, _STEPS, _SUCCESSOR = _ABOUT = ("bundles", "steps", "successor")
"""What is worked out about one namespace; their keys begin with these."""


@st.cache_data(max_entries=32, show_spinner=False)
def _frame(key: str, _view: state.Current) -> pd.DataFrame:
    del key
    return namespaces_frame(_view.snapshot)


def frame_of(view: state.Current) -> pd.DataFrame:
    """Return every namespace of the cluster that is shown, the worst first."""
    return _frame(f"{view.digest}{view.variant}", view)


def _key(what: str, view: state.Current, namespace: str) -> str:
    return f"{what} {view.digest}{view.variant} {namespace}"


def is_advised(view: state.Current, namespace: str) -> bool:
    """Return whether the advice on the bundles of a namespace is already there."""
    return tasks.is_answered(_key(_ADVICE, view, namespace))


def advice_of(view: state.Current, namespace: str) -> BundleAdvice | None:
    """Return the advice on the bundles of a namespace; None while it is worked out, or before somebody asks.

    It takes seconds of a processor that the page needs too, so it is asked for when all else is drawn. What the session
    waited for about another namespace stops.

    Raises:
        PlannerError: There is none, as its topics are not listed.
    """
    key = _key(_ADVICE, view, namespace)
    session = tasks.watcher()
    others = (one.key for one in tasks.ANSWERS.pending(session))
    of_others = [one for one in others if one.startswith(_ABOUT) and not one.endswith(f" {namespace}")]
    tasks.ANSWERS.leave(session, *of_others)
    if not _is_wanted(
        key, "Work out the advice", cheap=tried_at_once(view.captured, scenario_history.as_captured(view))
    ):
        return None
    doubted = doubt(view)

    def look(_: Report, stopped: Stopped) -> BundleAdvice:
        return bundle_advice(view.snapshot, namespace, doubt=doubted, cancelled=stopped)

    return tasks.answer(key, look, "Trying numbers of bundles and cuts", last=True, at_end=True)


def steps_of(view: state.Current, advice: BundleAdvice) -> tuple[Command, ...] | None:
    """Return the commands that cut a namespace, with what each disconnects; None while they are simulated."""
    key = _key(_STEPS, view, advice.namespace)
    return tasks.answer(key, lambda _report, _stopped: advice_steps(advice), "Simulating the steps", last=True)


def successor_of(view: state.Current, advice: BundleAdvice) -> SuccessorTrial | None:
    """Return the move to a successor, each batch simulated; None while it is, or where none is recommended."""
    if not advice.successor:
        return None
    key = _key(_SUCCESSOR, view, advice.namespace)

    def look(_: Report, stopped: Stopped) -> SuccessorTrial | None:
        return tried_successor(advice, stopped)

    return tasks.answer(key, look, "Simulating the move to a successor", last=True)


def forecast_of(view: state.Current, hours: float, factor: float) -> tuple[SplitForecast, ...] | None:
    """Return which namespaces split within some hours of growth; None while that is simulated, or before.

    Raises:
        PlannerError: A number is out of range.
    """
    scenario = growing(view.captured, hours, factor, scenario_history.present(view))
    key = f"splits {view.digest} {scenario!r}"
    if not _is_wanted(key, "Simulate the splits", cheap=price_of(view.captured, scenario).seconds <= AT_ONCE_S):
        return None

    def look(_: Report, stopped: Stopped) -> tuple[SplitForecast, ...]:
        trace = simulate(view.captured, scenario, cancelled=stopped)
        return split_forecasts(trace, trace.end)

    return tasks.answer(key, look, "Simulating the splits", last=True)


def _is_wanted(key: str, label: str, *, cheap: bool) -> bool:
    """Say whether something is to be worked out; where it takes long, a button asks first."""
    if cheap or key in _ASKED.get():
        return True
    button(label, "science", lambda: _ASKED.put(_ASKED.get() | {key}), key=f"ask-{key}")
    return False


@dataclass(frozen=True, slots=True)
class PlanImpact:
    """What the best plan disconnects of a namespace.

    Attributes:
        moves: Moves of its bundles.
        topics: Topics disconnected.
        clients: Producers and consumers disconnected.
    """

    moves: int
    topics: int
    clients: int

    @property
    def text(self) -> str:
        """The answer in a sentence."""
        if not self.moves:
            return "Nothing happens to it."
        disconnected = f"{count(self.topics, 'topic')} and {count(self.clients, 'client')} disconnected"
        return f"{count(self.moves, 'move')}; {disconnected}."


def plan_impact(view: state.Current, namespace: str) -> PlanImpact | None:
    """Return what the best plan, as offered, does to a namespace; None where no page has looked for it yet."""
    try:
        found = best_plan.offered_before(view)
    except PlannerError:
        return None
    if found is None:
        return None
    mine = [one for one in found.moves if one.bundle.rpartition("/")[0] == namespace]
    return PlanImpact(len(mine), sum(one.topics for one in mine), sum(one.producers + one.consumers for one in mine))
