"""The field that finds a topic, bundle, namespace or broker from any page, and goes there."""

from typing import Any

import streamlit as st

from planner.explain.search import Place, search
from planner.explain.text import plain
from planner.figures.theme import short_names
from planner.web import address, registry, state

_PART = "q"


def ask(place: Any) -> str:
    """Draw the field and return what it says."""
    return address.text(_PART, "Find", placeholder="topic, bundle, namespace, broker", max_chars=500, place=place)


def answer(view: state.Current, text: str) -> None:
    """Draw what a text names, with ways to go there; nothing for an empty one."""
    if not text.strip():
        return
    found = search(view.snapshot, text)
    with st.container(border=True, key="found"):
        if not found:
            st.markdown(
                f":material/search_off: Nothing here is called “{plain(text)}”, and no namespace has such a topic."
            )
        for at in found:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(_told(view, at), width="stretch")
                _links(at)


def _told(view: state.Current, at: Place) -> str:
    owner = f"on **{plain(_short(view, at.broker))}**" if at.broker else "**not loaded**"
    if at.kind == "topic":
        unknown = "" if at.listed else ", not listed here"
        return (
            f":material/topic: **{plain(at.name)}** (topic{unknown}): hash 0x{at.topic_hash:08x}, bundle"
            f" `{at.bundle.rpartition('/')[2]}`, {owner}"
        )
    if at.kind == "bundle":
        return f":material/grid_on: **{plain(at.name)}** (bundle): {owner}"
    return f":material/{'dns' if at.kind == 'broker' else 'folder'}: **{plain(at.name)}** ({at.kind})"


def _short(view: state.Current, broker: str) -> str:
    names = view.snapshot.brokers.name
    return short_names(names)[view.snapshot.brokers.position[broker]] if len(names) > 1 else broker


def _links(at: Place) -> None:
    """Draw links to the pages about it, each with the context."""
    if at.namespace:
        range_ = {"bundle": at.bundle.rpartition("/")[2]} if at.bundle else {}
        registry.link("bundle_map", "Map", namespace=at.namespace, **range_)
        registry.link("split_lab", "Split", namespace=at.namespace, **range_)
    if at.broker:
        registry.link("brokers", "Broker", broker=at.broker)
        registry.link("why", "Why", broker=at.broker, bundle=at.bundle)
