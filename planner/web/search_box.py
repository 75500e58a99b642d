"""The field that finds a topic, bundle, namespace or broker from any page, and goes there."""

from typing import Any

import streamlit as st

from planner.explain.search import search
from planner.explain.text import plain
from planner.web import address, state
from planner.web.names import tell

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
            tell(view.snapshot, at)
