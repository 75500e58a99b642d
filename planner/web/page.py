"""What a page is, and what all pages have: a head with the snapshot in view, its notes, errors, the empty state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.cluster.errors import PlannerError
from planner.cluster.release_notes import release_notes
from planner.cluster.settings import Settings
from planner.cluster.text import count, moment, plain, short_digest
from planner.explain.captured_settings import settings_warning
from planner.explain.search import search
from planner.pulsar.load.namespace_policies import expression_notes
from planner.pulsar.release_rules import RELEASE_RULES
from planner.replay.jobs import histories
from planner.web import address, history_moments, registry, scenario_address, scenario_history, simulations, state
from planner.web.choices import adopt_settings, adopt_strategies
from planner.web.names import BROKERS, IN_VIEW, draw_place
from planner.web.scenario_bar import copy_link, draw_bar
from planner.web.session import SessionValue, bound
from planner.web.widgets import button, note_list, show_error, show_refused
from planner.workspace.database import SavedSnapshot
from planner.workspace.samples import sample_by_digest, samples

_TITLE = 60
"""Longest name of a snapshot in a window's title."""
_NAMED = "Find a topic, bundle, broker …"
"""Result of the field *Find*, and the page that it opens."""
_FIND_PX, _PICKER_PX = 200, 250
_ARRIVED = SessionValue("arrived", lambda: ("", "", ""))
"""Message about a snapshot that was just loaded: title of its page, digest, text. It ends with the next page."""


class Subject(Enum):
    """What a page is about; its value is what it says of a scenario that is open."""

    NOTHING = "nothing"
    SNAPSHOT = "This page shows the cluster as captured, without the scenario."
    DECISION = "This page uses the strategies and settings of the scenario, with brokers and traffic as captured."
    SCENARIO = ""


@dataclass(frozen=True)
class Page:
    """A page, declared in its file as `PAGE`.

    Attributes:
        title: Its name in the menu and its heading.
        icon: Name of a Material icon.
        purpose: What it is for, in one sentence.
        draw: Draws its content. It is called with the snapshot in view; where the page is about nothing in particular,
            with the place beside the title.
        subject: What it is about.
        changes_scenario: Whether it is the page on which scenarios are changed.
        welcomes: Whether it is the page that new visitors see first; any other ends the welcome.
        has_drawer: Whether it draws a form into the sidebar, which is a closed drawer on small screens.
        with_scenario: What it shows with the scenario, where that is not the cluster after its cycles.
        at_end: The parts of its address that show the cluster after the scenario, where it has a choice of its own.
    """

    title: str
    icon: str
    purpose: str
    draw: Callable[[Any], None]
    subject: Subject = Subject.SNAPSHOT
    changes_scenario: bool = False
    has_drawer: bool = False
    welcomes: bool = False
    with_scenario: str = ""
    at_end: Mapping[str, str] = field(default_factory=dict)

    @property
    def offers_after(self) -> bool:
        """Whether it shows the cluster as captured, and on request after the scenario."""
        return self.subject in {Subject.SNAPSHOT, Subject.DECISION}

    @property
    def after_scenario(self) -> dict[str, str]:
        """The parts of its address that show the cluster after the scenario; none where it knows no other one."""
        return {registry.AFTER: "1"} if self.offers_after else dict(self.at_end)

    def show(self) -> None:
        """Draw the page, or the error of what cannot be shown."""
        try:
            self._show()
        except PlannerError as error:
            show_error(error)
        finally:
            simulations.SIMULATIONS.rest()

    def _show(self) -> None:
        st.set_page_config(page_title=f"{self.title} · Pulsar bundle planner")
        if self.subject is not Subject.NOTHING:
            scenario_address.open_link(self.title, scenario_history.adopt)
        with st.container(key="page-head", gap="xxsmall"):
            top = st.container(horizontal=True, vertical_alignment="center", key="page-line")
            bar = st.container()
        with top:
            st.title(self.title, help=self.purpose, width="content")
            if self.has_drawer:
                with st.container(key="open-drawer", width="content"):
                    st.button("Edit", icon=":material/tune:")  # what it does is in drawer.js
        show_refused()
        arrived = _ARRIVED.take()
        IN_VIEW.put("")
        BROKERS.put(())
        registry.SHOWS_AFTER.put(value=False)
        if self.subject is Subject.NOTHING:
            with top:
                st.caption(self.purpose, width="stretch")
                aside = st.container(width=_PICKER_PX)
                copy_link(lambda: address.at(**address.parts()))
            self.draw(aside)
        elif (view := _snapshot_in_view()) is not None:
            self._show_cluster(view, arrived, top, bar)

    def _show_cluster(
        self, view: state.Current, arrived: tuple[str, str, str], top: DeltaGenerator, bar: DeltaGenerator
    ) -> None:
        """Draw a page about a snapshot: its facts and the scenario into the head, then the page."""
        title, digest, words = arrived
        st.set_page_config(page_title=f"{self.title} · {view.saved.name[:_TITLE]}")
        IN_VIEW.put(view.digest)
        if (title, digest) == (self.title, view.digest):
            _ARRIVED.put(arrived)
            st.success(words, icon=":material/check_circle:")
        with top:
            warnings, text = _line(view)
        for icon, warning in warnings:
            st.warning(plain(warning), icon=f":material/{icon}:")
        found_place = st.container() if text.strip() else None
        if self.subject is Subject.DECISION:
            adopt_strategies(view)
            adopt_settings(view)
        scenario_history.attach(view)
        with bar:
            after = draw_bar(
                view, self.subject.value, offers=self.offers_after, own=self.changes_scenario, shown=self.with_scenario
            )
        registry.SHOWS_AFTER.put(after)
        outcomes = simulations.run(view, scenario_history.present(view)) if after else []
        view = view.after(outcomes[0]) if outcomes else view
        if found_place is not None:
            with found_place:
                _find(view, text)
        if outcomes is None:
            return
        self.draw(view)
        if not self.welcomes:
            state.no_longer_new()


def _snapshot_in_view() -> state.Current | None:
    """Return the snapshot in view; where there is none, say what to do and return None."""
    try:
        view = state.current()
    except PlannerError as error:
        saved = state.workspace().saved()  # where the workspace is the trouble, that is said once
        if not scenario_address.is_awaited(address.part("snapshot")):  # the link of its scenario says so already
            show_error(error)
        if saved:
            _picker("")
        _empty_state("Choose another snapshot, or open a sample.")
        return None
    if view is None:
        _empty_state("No snapshot yet. Load your cluster, or open a sample.")
    return view


def _empty_state(text: str) -> None:
    """Say what to do when there is no snapshot, and offer the cards of the first start."""
    st.info(text, icon=":material/upload_file:")
    _cards()


def welcome(view: state.Current) -> None:
    """Welcome whoever is new with three cards; later in one line, as long as the workspace has nothing but samples."""
    if state.IS_NEW.get():
        _first_start()
    elif sample_by_digest(view.digest) is not None and state.has_samples_only():
        with st.container(horizontal=True, vertical_alignment="center", key="welcome-line"):
            st.caption("This is a sample cluster.", width="content")
            registry.link("load", "Load your own cluster")


def _first_start() -> None:
    """Draw what this is, and the three cards."""
    st.markdown(
        "**Welcome.** This planner predicts the decisions of Pulsar's load balancer, explains each one, and shows"
        " the result of a change. It never changes a cluster. The first sample below is already open:"
    )
    _cards()


def _cards() -> None:
    """Draw three cards: a cluster with a story, a real one, one of your own."""
    offered = samples()
    groups = list(dict.fromkeys(sample.group for sample in offered))[:2]
    places = st.columns(len(groups) + 1)
    for place, group in zip(places, groups, strict=False):
        sample = next(one for one in offered if one.group == group)
        with place.container(border=True, height="stretch"):
            st.markdown(f"**{sample.title}**")
            st.caption(sample.shows)
            key = f"empty-{sample.file}"
            button("Open this sample", "open_in_new", partial(state.open_sample, sample), key=key, width="stretch")
    with places[-1].container(border=True, height="stretch"):
        st.markdown("**Your own cluster**")
        st.caption(
            "Upload or paste what your tools print, or let the planner capture your cluster. Your data stays on this"
            " server."
        )
        registry.link("load", "Load your cluster")


def _picker(digest: str) -> None:
    """Draw the choice of another snapshot; no one is chosen when the digest is empty."""
    saved = list(state.workspace().saved())
    opened = history_moments.find(digest)
    if opened is not None and digest not in {one.digest for one in saved}:
        saved.insert(0, opened.saved)
    names = {s.digest: f"{s.name} · {moment(s.captured_at_ms)}" for s in saved}

    def draw(**bindings: Any) -> None:
        st.selectbox(
            "Snapshot",
            list(names),
            format_func=lambda d: names.get(d, short_digest(d)),
            label_visibility="collapsed",
            width=_PICKER_PX,
            **bindings,
        )

    bound("picker", digest or None, draw, _select)
    history_button("history-button")


def _select(chosen: str | None) -> None:
    state.select(chosen or "", **state.moment_part(chosen or ""))


def history_button(key: str, label: str = "History") -> None:
    """Draw a button that offers the moments of all histories; nothing where there is no history."""
    if histories() and st.button(
        label, icon=":material/history:", type="tertiary", key=key, help="Open a moment of a history."
    ):
        _choose_moment()


@st.dialog("Open a moment of a history")
def _choose_moment() -> None:
    try:
        if text := history_moments.choose():
            state.select_moment(text)
            st.rerun()
    except PlannerError as error:
        show_error(error)


def _find(view: state.Current, text: str) -> None:
    """Draw what a text names, with ways to go there."""
    found = search(view.snapshot, text)
    with st.container(border=True, key="found"):
        if not found:
            st.markdown(f":material/search_off: No topic, bundle, namespace or broker matches “{plain(text)}”.")
        for at in found:
            draw_place(view.snapshot, at)


def _line(view: state.Current) -> tuple[list[tuple[str, str]], str]:
    """Draw the facts, the field that finds, and the choice of a snapshot; return warnings, and the text to find."""
    notes, warnings = _notes(view, scenario_history.present(view).settings_over(view.captured))
    st.caption(_facts(view.saved), width="stretch")
    _details(view.saved, notes)
    text = address.text("q", "Find", placeholder=_NAMED, max_chars=500, label_visibility="collapsed", width=_FIND_PX)
    _picker(view.digest)
    return warnings, text


def _facts(saved: SavedSnapshot) -> str:
    """Return what a snapshot is, in a line."""
    topics = count(saved.topics, "topic") if saved.topics else "no topic names"
    return (
        f"{plain(saved.cluster)} · Pulsar {plain(saved.pulsar_version)} · {saved.load_manager} load manager ·"
        f" {count(saved.brokers, 'broker')}, {count(saved.bundles, 'bundle')}, {topics} ·"
        f" captured {moment(saved.captured_at_ms)} · `{short_digest(saved.digest)}`"
    )


def _notes(view: state.Current, config: Settings) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the notes on a snapshot, and its warnings, each with an icon."""
    saved = view.saved
    release = release_notes(saved.pulsar_version, config, RELEASE_RULES)
    warnings = [("rule", note) for note in release[:1]]
    if warning := settings_warning(view.snapshot.info):
        warnings.insert(0, ("settings_alert", warning))
    return [*release[1:], *saved.warnings, *expression_notes(view.snapshot.policies)], warnings


def _details(saved: SavedSnapshot, notes: Sequence[str]) -> None:
    """Draw a button that unfolds what a snapshot is, in full, and the notes on it."""
    label = f"Notes ({len(notes)})" if notes else "About"
    with st.popover(label, icon=":material/info:", type="tertiary", key="about-snapshot"):
        if saved.description:
            st.markdown(plain(saved.description))
        st.caption(_facts(saved))
        note_list(notes)


def arrival(saved: SavedSnapshot, what: str) -> str:
    """Say how a snapshot came into the workspace."""
    return (
        f"“{plain(saved.name)}” {what}: {count(saved.brokers, 'broker')}, {count(saved.bundles, 'bundle')},"
        f" {count(saved.topics, 'topic')}."
    )


def arrive(saved: SavedSnapshot, what: str, name: str, note: str = "") -> None:
    """Look at a snapshot that was just loaded from now on, and go to a page that says how it came, and a note."""
    state.select(saved.digest)
    _ARRIVED.put((registry.page(name).title, saved.digest, f"{arrival(saved, what)} {plain(note)}".rstrip()))
    registry.go(name)
