"""Remedies that are tried while the page is open: those of findings at once where that is cheap, else on a click."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.remedy.trials import Trial, Trials
from planner.remedy.tried import Fix, Tried, fix, tried_at_once, tried_findings, untried
from planner.share.fix import shown
from planner.share.link import scenario_digest
from planner.web import registry, scenario_history, state, tasks
from planner.web.session import SessionValue
from planner.web.task import Report, Stopped
from planner.web.widgets import button

_ASKED: Final[SessionValue[frozenset[str]]] = SessionValue("asked_remedies", frozenset)
"""Keys of what a person asked to be tried."""


def _key(view: state.Current, outcome: Outcome) -> str:
    return f"{view.digest} {scenario_digest(replace(outcome.trace.scenario, name=''))}"


def _trials(view: state.Current, outcome: Outcome, stopped: Stopped) -> Trials:
    return Trials(view.captured, outcome.trace.scenario, outcome, stopped)


def findings_of(view: state.Current, outcome: Outcome, *, last: bool = False) -> Sequence[Tried]:
    """Return the findings of an outcome with their remedies tried; not yet tried ones while that is worked on.

    With `last` they are tried when the session waits for nothing else.
    """
    plain = untried(diagnose(outcome))
    if not any(finding.changes or finding.edits for finding in diagnose(outcome)):
        return plain
    key = f"remedies {_key(view, outcome)}"
    if not _is_wanted(view, outcome, key, "Try the remedies"):
        return plain

    def look(_: Report, stopped: Stopped) -> tuple[Tried, ...]:
        return tried_findings(diagnose(outcome), _trials(view, outcome, stopped))

    return tasks.answer(key, look, "Trying the remedies on this cluster", last=last) or plain


def _is_wanted(view: state.Current, outcome: Outcome, key: str, label: str) -> bool:
    """Say whether something is to be tried; where it takes long, a button asks first."""
    if tried_at_once(view.captured, outcome.trace.scenario) or key in _ASKED.get():
        return True
    _ask_for(key, label)
    return False


def _ask_for(key: str, label: str) -> None:
    button(label, "science", lambda: _ASKED.put(_ASKED.get() | {key}), key=f"ask-{key}")


def apply(view: state.Current, trial: Trial) -> None:
    """Put an action into the scenario as it was tried, and open What-if."""
    scenario_history.change(view, trial.on(scenario_history.present(view)))
    registry.go("what_if")


def fix_box(view: state.Current, outcome: Outcome) -> None:
    """Draw *Fix it*: a button that looks for the best single action and the best pair, then what was found."""
    key = f"fix {_key(view, outcome)}"
    with st.container(border=True, key="fix-it"):
        if key not in _ASKED.get():
            st.markdown(
                "**Fix it.** Simulate what an operator can do, one action and pairs of them, and show the best."
            )
            _ask_for(key, "Find the best action")
            return

        def look(_: Report, stopped: Stopped) -> Fix:
            return fix(_trials(view, outcome, stopped), outcome)

        found = tasks.answer(key, look, "Trying strategies, thresholds, moves, splits and brokers")
        if found is None:
            st.markdown("**Fix it.** The result appears here.")
            return
        _draw(view, found)


def _draw(view: state.Current, found: Fix) -> None:
    st.markdown(f"**Fix it.** {found.sentence}")
    for title, trial in shown(found):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{title}: {trial.action.words}. {trial.text}", width="stretch")
            key = f"apply-{title}-{trial.action.words}"
            if st.button("Add to the scenario", icon=":material/add:", key=key):
                apply(view, trial)
