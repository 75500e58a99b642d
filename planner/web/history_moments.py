"""Moments of the histories of this server, opened as snapshots without an import.

A moment has an address of its own, `history/cluster/2026-11-25T03:00:00Z`, beside the digest of its content.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import streamlit as st

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import PlannerError
from planner.cluster.moments import iso_moment, parse_moment
from planner.cluster.snapshot import Snapshot
from planner.history.days import snapshot_at, times_of_day
from planner.history.manifest import day_of
from planner.replay.jobs import histories
from planner.shadow.record import clusters_of
from planner.workspace.database import SavedSnapshot

_KEPT: Final = 3
_KNOWN: Final = 1_000
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Opened:
    """A moment that was opened.

    Attributes:
        text: Its address.
        day: Folder of its day.
        saved: What there is to know of it without loading it.
    """

    text: str
    day: Path
    saved: SavedSnapshot


_OPENED: OrderedDict[str, Opened] = OrderedDict()
"""Moments by digest, those opened last at the end."""


def clusters() -> dict[str, Path]:
    """Return the clusters of all histories as `history/cluster`, and the folder of each.

    Raises:
        PlannerError: A folder cannot be read.
    """
    places = histories().items()
    return {f"{name}/{cluster}": folder for name, place in places for cluster, folder in clusters_of(place).items()}


@lru_cache(maxsize=_KEPT)
def _content(day: Path, time_ms: int) -> Snapshot:
    return snapshot_at(day, time_ms)


def open_moment(text: str) -> SavedSnapshot:
    """Return what a moment is; of a time between two moments it is the one before.

    Raises:
        PlannerError: This is no address of a moment, or there is no such moment.
    """
    with _LOCK:
        for known in _OPENED.values():
            if known.text == text:
                return known.saved
    cluster, _, at = text.rpartition("/")
    try:
        time_ms = parse_moment(at, 0)
    except ValueError:
        time_ms = 0
    folder = clusters().get(cluster) if time_ms else None
    if folder is None:
        raise PlannerError(
            f"This link needs the moment {text[:200]}, and this server has no such history.",
            remedy="Choose a moment with the button History, or another snapshot.",
        )
    day = folder / f"day={day_of(time_ms)}"
    try:
        before = [one for one in times_of_day(day) if one <= time_ms]
    except OSError:
        before = []
    if not before:
        raise PlannerError(
            f"The history {cluster[:200]} has nothing at {at[:40]}.",
            remedy="Choose a moment with the button History, or another snapshot.",
        )
    return _opened(f"{cluster}/{iso_moment(before[-1])}", day, before[-1])


def _opened(text: str, day: Path, time_ms: int) -> SavedSnapshot:
    snapshot = _content(day, time_ms)
    info, digest = snapshot.info, snapshot_digest(snapshot)
    saved = SavedSnapshot(
        digest=digest,
        name=text.rpartition("/")[0],
        cluster=info.cluster,
        load_manager=info.load_manager.value,
        pulsar_version=info.pulsar_version,
        captured_at_ms=info.captured_at_ms,
        brokers=len(snapshot.brokers),
        namespaces=len(snapshot.namespaces),
        bundles=len(snapshot.bundles),
        topics=len(snapshot.topics),
        source=info.source,
        description=info.description,
        warnings=info.warnings,
        stored_at_ms=0,
    )
    with _LOCK:
        _OPENED[digest] = Opened(text, day, saved)
        while len(_OPENED) > _KNOWN:
            _OPENED.popitem(last=False)
    return saved


def find(digest: str) -> Opened | None:
    """Return an opened moment by the first digits of its digest; None when there is none."""
    with _LOCK:
        if digest in _OPENED:
            return _OPENED[digest]
        found = [one for name, one in _OPENED.items() if digest and name.startswith(digest.lower())]
    return found[0] if len(found) == 1 else None


def content(opened: Opened) -> Snapshot:
    """Return an opened moment; the latest few are kept.

    Raises:
        FormatError: It is no longer there, or is damaged.
    """
    return _content(opened.day, opened.saved.captured_at_ms)


def choose() -> str:
    """Draw the choice of a history, a day and a time; return the address when a person opens it, else nothing.

    Raises:
        PlannerError: A folder or day cannot be read.
    """
    offered = clusters()
    if not offered:
        st.caption("This server has no history.")
        return ""
    cluster = st.selectbox("History", list(offered), key="moment-cluster")
    folder = offered[cluster or next(iter(offered))]
    days = sorted((path.name.removeprefix("day=") for path in folder.glob("day=*")), reverse=True)
    day = st.selectbox("Day", days, key=f"moment-day-{cluster}")
    times = [iso_moment(one) for one in times_of_day(folder / f"day={day}")] if day else []
    if not times:
        st.caption("This day has no moment yet.")
        return ""
    at = st.selectbox("Time (UTC)", times[::-1], format_func=lambda one: one[11:], key=f"moment-time-{cluster}-{day}")
    sent = st.button("Open this moment", type="primary", icon=":material/history:", key="moment-open")
    return f"{cluster}/{at}" if sent else ""
