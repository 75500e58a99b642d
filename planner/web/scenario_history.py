"""The scenario that a person works on, with what can be undone.

A scenario belongs to a snapshot. The session keeps one for each, and each change goes into the address.
"""

from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from planner.share.link import canonical_text
from planner.simulate.scenario import Scenario, unchanged
from planner.web import scenario_address, state
from planner.web.session import SessionValue
from planner.workspace.database import SavedSnapshot

_DEPTH = 100


@dataclass
class History:
    """A scenario with what was before it and after it.

    Attributes:
        present: The scenario.
        past: What can be undone, the latest last.
        future: What can be done again, the latest last.
    """

    present: Scenario
    past: list[Scenario] = field(default_factory=list)
    future: list[Scenario] = field(default_factory=list)

    def add(self, scenario: Scenario) -> None:
        """Make another scenario the present one; what was undone before cannot be done again."""
        self.past = [*self.past, self.present][-_DEPTH:]
        self.present, self.future = scenario, []

    def step(self, taken: list[Scenario], kept: list[Scenario]) -> None:
        """Go on to the latest scenario of the past or the future, and keep the present one in the other."""
        kept.append(self.present)
        self.present = taken.pop()


_HISTORIES: SessionValue[dict[str, History]] = SessionValue("scenario_histories", dict)


def as_captured(view: state.Current, **fields: Any) -> Scenario:
    """Return the scenario that changes nothing about the snapshot in view."""
    return unchanged(view.captured.info.pulsar_version, **fields)


def history(view: state.Current) -> History:
    """Return the history of the scenario about the snapshot in view."""
    return _HISTORIES.get().setdefault(view.digest, History(as_captured(view)))


def present(view: state.Current) -> Scenario:
    """Return the scenario about the snapshot in view."""
    return history(view).present


def _write(view: state.Current) -> None:
    """Put the scenario into the address; one that changes nothing is left out."""
    now = present(view)
    scenario_address.write(view, None if now == as_captured(view) else now)


def change(view: state.Current, scenario: Scenario) -> None:
    """Make another scenario the present one, so that it can be undone.

    Raises:
        PlannerError: A value is out of bounds; nothing changes.
    """
    scenario = scenario.over(view.captured)
    canonical_text(scenario)
    scenario.settings_over(view.captured)
    known = history(view)
    if scenario == known.present:
        return
    known.add(scenario)
    _write(view)


def undo(view: state.Current) -> None:
    """Go back to the scenario before."""
    known = history(view)
    if known.past:
        known.step(known.past, known.future)
        _write(view)


def redo(view: state.Current) -> None:
    """Do again what was undone."""
    known = history(view)
    if known.future:
        known.step(known.future, known.past)
        _write(view)


def adopt(saved: SavedSnapshot, scenario: Scenario) -> None:
    """Make the scenario of a link the one about its snapshot, so that it can be undone."""
    known = _HISTORIES.get().setdefault(saved.digest, History(unchanged(saved.pulsar_version)))
    if known.present != (scenario := scenario.on_brokers_of(saved.pulsar_version)):
        known.add(scenario)


def attach(view: state.Current) -> None:
    """Open the scenario that has waited for the snapshot in view, and write the address."""
    arrived = scenario_address.arrived(view)
    if arrived is not None:
        change(view, arrived)
        st.success("Opened the scenario of the link.", icon=":material/check_circle:")
    _write(view)
