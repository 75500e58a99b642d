"""Names of brokers, bundles, namespaces and topics wherever they stand: written short, with ways to learn more.

A panel beside a clicked cell or bar shows each name of its row with links to the pages about it, and texts that are too
long for their columns in full.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from planner.cluster.snapshot import Snapshot
from planner.cluster.text import plain
from planner.explain.search import Place, search
from planner.figures.theme import short_names, without_endings
from planner.web import registry, state
from planner.web.session import SessionValue

IN_VIEW: SessionValue[str] = SessionValue("named-in", str)
"""Digest of the snapshot whose names the page shows; empty for none."""

BROKERS: SessionValue[tuple[str, ...]] = SessionValue("named-brokers", tuple)
"""Ids of the brokers that a page names which is about no snapshot."""

_RANGE = re.compile(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}")
_LONG_BUNDLE = re.compile(r"^(.{11}).{8,}(.{8}/0x[0-9a-f]{8}_0x[0-9a-f]{8})$")
"""A bundle whose namespace is so long that it leaves no room for the range, which distinguishes it from others."""
_BUNDLES = {"bundle", "about"}
_BROKERS = {"broker", "about", "owner", "from", "to", "on", "lost"}
_MOST_DOMAINS = 16
_LONG = 34
"""Text with more letters than this may be truncated in a table."""
_MOST = 6
_PANEL_PX = 340


def snapshot() -> Snapshot | None:
    """Return the snapshot whose names the page shows; None where it is about none."""
    digest = IN_VIEW.get()
    return state.snapshot_of(digest) if digest else None


def _brokers() -> tuple[str, ...]:
    of = snapshot()
    return of.brokers.name if of is not None else BROKERS.get()


def endings(brokers: Sequence[str]) -> list[str]:
    """Return the few domains and ports of brokers, the longest first, which are not needed to distinguish them."""
    heads = without_endings(brokers)
    found = {name.removeprefix(head) for name, head in zip(brokers, heads, strict=True)}
    domains = sorted((ending for ending in found if ending.startswith(".")), key=len, reverse=True)
    return domains if len(domains) <= _MOST_DOMAINS else []


def short(text: str) -> str:
    """Return a text that names brokers, or its Markdown, without their domains and ports."""
    for ending in endings(_brokers()):
        text = text.replace(ending, "").replace(plain(ending), "")
    return text


def shortened(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose cells name brokers without domain and port, long ones by their end; of bundles the range."""
    brokers = _brokers()
    left_out, heads = endings(brokers), without_endings(brokers)
    clipped = {head: name for head, name in zip(heads, short_names(brokers), strict=True) if head != name}

    def brief(texts: pd.Series) -> pd.Series:
        for ending in left_out:
            texts = texts.str.replace(ending, "", regex=False)
        texts = texts.replace(clipped) if clipped and texts.name in _BROKERS else texts
        return texts.str.replace(_LONG_BUNDLE, r"\1…\2", regex=True) if texts.name in _BUNDLES else texts

    strings = [name for name in frame.columns if pd.api.types.is_string_dtype(frame[name])]
    return frame.assign(**{name: brief(frame[name]) for name in strings})


def draw_place(of: Snapshot, place: Place) -> None:
    """Draw what and where something is, with links to the pages about it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_place_text(of, place), width="stretch")
        if place.namespace:
            range_ = {"bundle": place.bundle.rpartition("/")[2]} if place.bundle else {}
            registry.link("namespaces", "Namespace", namespace=place.namespace)
            registry.link("bundle_map", "Map", namespace=place.namespace, **range_)
            registry.link("split_lab", "Split", namespace=place.namespace, **range_)
        if place.broker:
            registry.link("brokers", "Broker", broker=place.broker)
            registry.link("why", "Why", broker=place.broker, bundle=place.bundle)


def _place_text(of: Snapshot, at: Place) -> str:
    names = of.brokers.name
    owner = "**unowned**"
    if at.broker:
        owner = f"on **{plain(short_names(names)[of.brokers.position[at.broker]] if len(names) > 1 else at.broker)}**"
    if at.kind == "topic":
        unknown = "" if at.listed else ", not in this snapshot"
        return (
            f":material/topic: **{plain(at.name)}** (topic{unknown}): hash 0x{at.topic_hash:08x}, bundle"
            f" `{at.bundle.rpartition('/')[2]}`, {owner}"
        )
    if at.kind == "bundle":
        return f":material/grid_on: **{plain(at.name)}** (bundle): {owner}"
    return f":material/{'dns' if at.kind == 'broker' else 'folder'}: **{plain(at.name)}** ({at.kind})"


def named(of: Snapshot, texts: Iterable[str]) -> list[Place]:
    """Return what texts name, each once; of a namespace and a range the bundle."""
    found: dict[str, Place] = {}
    said = [part for text in texts for part in text.split(", ")]
    spaces = [text for text in said if text in of.namespaces]
    bundles = [f"{space}/{text}" for space in spaces for text in said if _RANGE.fullmatch(text)]
    full = dict(zip(short_names(of.brokers.name), of.brokers.name, strict=True))
    for text in (*bundles, *said) if bundles else said:
        name = full.get(text, text)
        known = name in of.bundle_position or name in of.brokers.position or (name in spaces and not bundles)
        if known or "://" in name:
            found |= {place.name: place for place in search(of, name) if place.name == name}
    return list(found.values())[:_MOST]


def in_figure(figure: Any) -> bool:
    """Say whether a figure has bars, rows or curves that are brokers."""
    of = snapshot()
    if of is None:
        return False
    brokers = {*of.brokers.name, *short_names(of.brokers.name)}
    drawn = (trace for trace in figure.data if hasattr(trace, "x"))
    firsts = ((trace.name, *_first(trace.x), *_first(trace.y)) for trace in drawn)
    return any(text in brokers for texts in firsts for text in texts if isinstance(text, str))


def _first(values: Any) -> tuple[Any, ...]:
    return tuple(values[:1]) if values is not None else ()


def panel(row: Mapping[str, Any], key: str) -> None:
    """Draw what a row or point of the page names, and its long texts in full; nothing if there is nothing to add.

    Args:
        row: The texts, by column.
        key: Names the table or figure; several of a page may have a panel at once.
    """
    of = snapshot()
    texts = {str(column): value for column, value in row.items() if isinstance(value, str)}
    places = named(of, texts.values()) if of is not None else []
    names = {place.name for place in places}
    long = {column: text for column, text in texts.items() if len(text) > _LONG and text not in names}
    if not places and not long:
        return
    with st.container(border=True, width=_PANEL_PX, key=f"panel-{key}"):
        for column, text in long.items():
            st.markdown(f"**{plain(column)}:** {plain(text)}")
        for place in places:
            if of is not None:
                draw_place(of, place)
