"""What a page is, and what all pages have: a head with the snapshot in view, its notes, errors, the empty state."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.settings import Settings
from planner.explain.captured_settings import settings_warning
from planner.explain.search import search
from planner.explain.text import count, moment, plain, short_digest
from planner.pulsar.load.namespace_policies import expression_notes
from planner.pulsar.release_notes import release_notes
from planner.web import address, registry, scenarios, simulations, state
from planner.web.choices import adopt_settings, adopt_strategies
from planner.web.names import BROKERS, IN_VIEW, tell
from planner.web.scenario_bar import copy_link, draw_bar
from planner.web.session import SessionValue, bound
from planner.web.widgets import button, show_error, show_notes, show_refused
from planner.workspace.database import SavedSnapshot
from planner.workspace.samples import samples

_TITLE = 60
"""Longest name of a snapshot in a window's title."""
_NAMED = "topic, bundle, namespace, broker"
"""What the field that all pages have finds, and goes to."""
_ARRIVED = SessionValue("arrived", lambda: ("", "", ""))
"""What is said of a snapshot that was just loaded, until somebody goes on: title of the page, digest, words."""


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
    """

    title: str
    icon: str
    purpose: str
    draw: Callable[[Any], None]
    subject: Subject = Subject.SNAPSHOT
    changes_scenario: bool = False

    def show(self) -> None:
        """Draw the page; what cannot be shown is said."""
        try:
            self._show()
        except PlannerError as error:
            show_error(error)
        finally:
            simulations.runs().rest()

    def _show(self) -> None:
        st.set_page_config(page_title=f"{self.title} · Pulsar bundle planner")
        if self.subject is not Subject.NOTHING:
            scenarios.take_from_address(self.title)
        head, aside = st.columns([1, 1], vertical_alignment="bottom")
        with head:
            st.title(self.title)
            st.caption(self.purpose)
        show_refused()
        title, digest, words = _ARRIVED.take()
        IN_VIEW.put("")
        BROKERS.put(())
        if self.subject is Subject.NOTHING:
            copy_link(lambda: address.at(**address.parts()))
            self.draw(aside)
            return
        view = _snapshot_in_view()
        if view is None:
            return
        st.set_page_config(page_title=f"{self.title} · {view.saved.name[:_TITLE]}")
        IN_VIEW.put(view.digest)
        if (title, digest) == (self.title, view.digest):
            _ARRIVED.put((title, digest, words))
            st.success(words, icon=":material/check_circle:")
        finder, picker = aside.columns(2, vertical_alignment="bottom")
        text = address.text("q", "Find", placeholder=_NAMED, max_chars=500, place=finder)
        with picker:
            _picker(view.digest)
        _find(view, text)
        _describe(view, scenarios.present(view).settings_over(view.captured))
        if self.subject is Subject.DECISION:
            adopt_strategies(view)
            adopt_settings(view)
        scenarios.attach(view)
        offers = self.subject in {Subject.SNAPSHOT, Subject.DECISION}
        if draw_bar(view, self.subject.value, offers=offers, own=self.changes_scenario):
            found = simulations.run(view, scenarios.present(view))
            if found is None:
                return
            view = view.after(found[0])
        self.draw(view)


def _snapshot_in_view() -> state.Current | None:
    """Return the snapshot in view; where there is none, say what to do and return None."""
    try:
        view = state.current()
    except PlannerError as error:
        saved = state.workspace().saved()  # where the workspace is the trouble, that is said once
        show_error(error)
        if saved:
            _picker("")
        _empty_state("Choose another snapshot, or open a sample.")
        return None
    if view is None:
        _empty_state("No snapshot yet. Upload one of your cluster, or open a sample.")
    return view


def _empty_state(text: str) -> None:
    """Say what to do when there is no snapshot, and offer the cards of the first start."""
    st.info(text, icon=":material/upload_file:")
    _cards()


def first_start() -> None:
    """Welcome whoever is new with three cards: what is shown already, a real cluster, one of their own."""
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
            "Upload a capture, or let the planner capture your cluster through the admin API. Your data stays on"
            " this server."
        )
        registry.link("snapshots", "Add a snapshot")


def _picker(digest: str) -> None:
    """Draw the choice of another snapshot; no one is chosen when the digest is empty."""
    names = {s.digest: f"{s.name} · {moment(s.captured_at_ms)}" for s in state.workspace().saved()}

    def draw(**bindings: Any) -> None:
        st.selectbox("Snapshot", list(names), format_func=lambda d: names.get(d, short_digest(d)), **bindings)

    bound("picker", digest or None, draw, lambda chosen: state.select(chosen or ""))


def _find(view: state.Current, text: str) -> None:
    """Draw what a text names, with ways to go there; nothing for an empty one."""
    if not text.strip():
        return
    found = search(view.snapshot, text)
    with st.container(border=True, key="found"):
        if not found:
            st.markdown(f":material/search_off: No topic, bundle, namespace or broker matches “{plain(text)}”.")
        for at in found:
            tell(view.snapshot, at)


def _describe(view: state.Current, config: Settings) -> None:
    saved = view.saved
    st.caption(
        f"{plain(saved.cluster)} · Pulsar {plain(saved.pulsar_version)} · {saved.load_manager} load manager ·"
        f" captured {moment(saved.captured_at_ms)} · {count(saved.brokers, 'broker')},"
        f" {count(saved.bundles, 'bundle')}, {count(saved.topics, 'topic') if saved.topics else 'no topic names'} ·"
        f" `{short_digest(saved.digest)}`"
    )
    if warning := settings_warning(view.snapshot.info):
        st.warning(plain(warning), icon=":material/settings_alert:")
    if saved.description:
        st.markdown(plain(saved.description))
    release = release_notes(saved.pulsar_version, config)
    for note in release[:1]:
        st.warning(plain(note), icon=":material/rule:")
    notes = (*release[1:], *saved.warnings, *expression_notes(view.snapshot.policies))
    show_notes(notes, "Notes on this snapshot")


def arrival(saved: SavedSnapshot, what: str) -> str:
    """Say how a snapshot came into the workspace."""
    return (
        f"“{plain(saved.name)}” {what}: {count(saved.brokers, 'broker')}, {count(saved.bundles, 'bundle')},"
        f" {count(saved.topics, 'topic')}."
    )


def arrive(saved: SavedSnapshot, what: str, name: str) -> None:
    """Look at a snapshot that was just loaded from now on, and go to a page that says how it came."""
    state.select(saved.digest)
    _ARRIVED.put((registry.page(name).title, saved.digest, arrival(saved, what)))
    registry.go(name)
