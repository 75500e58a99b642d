"""Questions that are one click away: an edit of the scenario, and the page that shows what comes of it."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import offered_shedders
from planner.simulate.edits.edit import Edit, EditContext
from planner.simulate.edits.registry import BrokerDrain, NewBrokers, TrafficGrowth
from planner.simulate.losses import with_loss
from planner.simulate.scenario import Scenario, Step
from planner.simulate.strategies import under_strategy
from planner.web import registry, scenario_history, state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_GROWTHS = (30, 50)
"""Growth of all traffic offered with one click, in percent."""


def quick_edits(view: state.Current, lost: str, busiest: str) -> None:
    """Draw the questions as buttons; each adds to the scenario and opens What-if.

    The loss of `lost` is the worst of all, and `busiest` is used most.
    """
    running, rivals = _strategies(view)
    asked: Mapping[str, tuple[str, str, Callable[[Scenario], Scenario]]] = {
        "Lose a broker": ("heart_broken", f"{lost} fails", lambda present: with_loss(present, lost)),
        **{
            f"Grow {more} %": (
                "trending_up",
                f"All traffic grows by {more} %",
                partial(_with, TrafficGrowth(factor=1 + more / 100)),
            )
            for more in _GROWTHS
        },
        "Add a broker": ("add_circle", "Same size as the others", partial(_with_new_broker, view)),
        **{
            f"What if {other.name}": ("swap_horiz", f"Instead of {running}", partial(_under, view, other.name))
            for other in rivals[:1]
        },
        "Drain a broker": ("output", f"Move all bundles off {busiest}", partial(_with, BrokerDrain(broker=busiest))),
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, (icon, help_, change) in asked.items():
            if st.button(label, icon=f":material/{icon}:", help=f"{help_}; opens What-if.", key=f"quick-{label}"):
                scenario_history.change(view, change(scenario_history.present(view)))
                registry.go("what_if")
        registry.link("replay", "Replay days of history")


def _strategies(view: state.Current) -> tuple[str, list[Shedder]]:
    """Return the strategy that runs in the scenario, and the other ones, those with their own placement first."""
    present, manager, config = scenario_history.present(view), view.captured.info.load_manager, view.captured.settings
    with suppress(PlannerError):  # the page says what does not fit
        manager, config = present.load_manager_over(view.captured), present.settings_over(view.captured)
    running = effective_shedder(manager, config)[0].name
    rivals = [one for one in offered_shedders(manager, config.release) if one.name != running]
    return running, sorted(rivals, key=lambda one: not one.profile.paired_placement)


def _with(edit: Edit, present: Scenario) -> Scenario:
    return present.with_steps(*present.steps, Step(edit))


def _with_new_broker(view: state.Current, present: Scenario) -> Scenario:
    known = set(EditContext(view.captured, [step.edit for step in present.steps]).brokers)
    edits = (NewBrokers(count=1, name_prefix=f"added{number}" if number > 1 else "added") for number in count(1))
    return _with(next(edit for edit in edits if known.isdisjoint(edit.joining())), present)


def _under(view: state.Current, shedder: str, present: Scenario) -> Scenario:
    found = under_strategy(present, view.captured.settings, view.captured.info.load_manager, shedder)
    return replace(found, name=present.name)
