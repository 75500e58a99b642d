"""The bar that all pages have: what the scenario changes, whether the page shows it, and the link."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.release_notes import ignored_note
from planner.cluster.releases import release
from planner.cluster.text import count, plain
from planner.pulsar.manager.cycle import effective_shedder
from planner.simulate.scenario import Scenario
from planner.web import address, names, registry, scenario_address, scenario_history, state
from planner.web.choices import STRATEGIES
from planner.web.widgets import button

_EDITS = 3
_NAMES = 60


def words(view: state.Current, scenario: Scenario) -> str:
    """Return what a scenario changes, in one line of Markdown."""
    parts = [f"“{scenario.name[:_NAMES]}”"] if scenario.name else []
    manager = scenario.load_manager_over(view.captured)
    try:
        config = scenario.settings_over(view.captured)
        now = effective_shedder(manager, config)[0].name
        before = effective_shedder(view.captured.info.load_manager, view.captured.settings)[0].name
        if now != before:
            parts.append(f"{now} instead of {before}")
    except PlannerError as error:
        parts.append(error.what)
    edits = [edit.phrase() for edit in scenario.edits]
    parts += edits[:_EDITS]
    if len(edits) > _EDITS:
        parts.append(count(len(edits) - _EDITS, "more edit"))
    settings = [name for name in scenario.settings if name not in STRATEGIES]
    if settings:
        parts.append(count(len(settings), "setting"))
    if scenario.pulsar_version != release(view.captured.info.pulsar_version).name:
        parts.append(f"decided as Pulsar {scenario.pulsar_version}")
    if scenario.load_manager:
        parts.append(f"{manager} load manager")
    return plain(names.short(" · ".join([*parts, count(scenario.cycles, "cycle")])))


def draw_bar(view: state.Current, about: str, *, offers: bool, own: bool, shown: str = "") -> bool:
    """Draw what is applied, with ways to change it, to leave it, and to link to it.

    Args:
        view: The snapshot in view.
        about: What the page has to do with an open scenario, as a sentence; empty when that needs no words.
        offers: Whether the page shows the cluster as captured and can show it after the scenario.
        own: Whether the scenario is changed on this very page.
        shown: What the page shows with the scenario, where that is not the cluster after its cycles.

    Returns:
        Whether the cluster after the scenario is asked for.
    """
    present = scenario_history.present(view)
    is_open, after = present != scenario_history.as_captured(view), False
    if not is_open:
        address.put(**{registry.AFTER: ""})
    with st.container(horizontal=True, vertical_alignment="center", key="scenario-bar"):
        if is_open:
            said = words(view, present)
            st.markdown(f":material/science: **Scenario:** {said}", width="stretch", help=said)
        else:
            st.markdown(":material/photo_camera: **As captured:** no scenario is open.", width="stretch")
        with st.container(horizontal=True, vertical_alignment="center", width="content", gap="xsmall"):
            if is_open:
                after = _ways(view, offers=offers, own=own)
            elif not own:
                registry.link("what_if", "What if …?")
            copy_link(partial(_link, view, present))
    for note in _notes(view, present, plans=after and bool(shown)) if is_open else ():
        st.caption(plain(names.short(note)))
    if is_open and about:
        end = shown or f"This page shows the cluster after {count(present.cycles, 'cycle')} of the scenario."
        st.caption(end if after else about)
    return after


def _notes(view: state.Current, scenario: Scenario, *, plans: bool) -> list[str]:
    """Return what all pages say of a scenario: what is not made or ignored, and by what usage is measured."""
    with suppress(PlannerError):  # the page says what does not fit
        by = scenario.measured_by_plans if plans else scenario.measured_as_captured
        ignored = ignored_note(scenario.settings_over(view.captured), scenario.settings)
        return [*scenario.too_late(view.captured), *ignored, *by(view.captured)]
    return []


def _ways(view: state.Current, *, offers: bool, own: bool) -> bool:
    """Draw what can be done with an open scenario; return whether the cluster after it is asked for."""
    after = False
    if offers:
        help_ = "On: brokers, bundles and traffic at the end of the scenario. Off: as captured."
        after = address.toggle(registry.AFTER, "Show with the scenario", help=help_)
    if not own:
        registry.link("what_if", "Edit", ":material/edit:")
    clear = partial(scenario_history.change, view, scenario_history.as_captured(view))
    button(
        "Clear",
        "close",
        clear,
        key="clear-scenario",
        type="tertiary",
        help="Back to the cluster as captured. You can undo this on What-if.",
    )
    registry.link("moves", "Commands", ":material/terminal:", tab="commands")
    return after


def _link(view: state.Current, present: Scenario) -> str:
    """Return the link to this page; one with a scenario names the snapshot in it."""
    parts = address.parts()
    if present == scenario_history.as_captured(view):
        return address.at(**parts)
    others = {name: value for name, value in parts.items() if name not in {"scenario", "snapshot"}}
    page = urlsplit(address.host()).path.strip("/")
    return scenario_address.link_to(view, present, page, **others)


def copy_link(link: Callable[[], str]) -> None:
    """Draw a button that unfolds a link to copy; it is made then."""
    with st.popover(
        "Copy link", icon=":material/link:", type="tertiary", key="copy-link", on_change="rerun"
    ) as unfolded:
        if unfolded.open:
            st.caption(
                "Opens this page in its current state, on any server that has the snapshot. The link contains no"
                " secrets."
            )
            with st.container(key="link"):
                st.code(link(), language=None, wrap_lines=True)
