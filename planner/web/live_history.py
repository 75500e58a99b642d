"""A cluster that is being watched into the histories of this server, followed by a page."""

import time
from pathlib import Path

import streamlit as st

from planner.cluster.errors import CaptureError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, moment
from planner.cluster.units import MS_PER_MIN
from planner.history.days import snapshot_at
from planner.history.latest import recent_moments
from planner.replay.jobs import histories
from planner.shadow.record import clusters_of, read_next
from planner.web import address, state

LOOK_S = 5.0
"""Seconds between two looks for a new snapshot."""

_FRESH_S = 120


@st.cache_resource(max_entries=80, show_spinner=False)
def _snapshot(day: str, time_ms: int) -> Snapshot:
    return snapshot_at(Path(day), time_ms)


def ask_to_follow(view: state.Current) -> Path | None:
    """Draw whether to follow the cluster in view, where it is watched; the address keeps the answer.

    Returns:
        Folder of its history; None when it is not to be followed.

    Raises:
        CaptureError: The histories cannot be read.
    """
    folder = watched_clusters().get(view.saved.cluster)
    if folder is None or not recent_moments(folder, 1, MS_PER_MIN):
        address.put(live="")
        return None
    help_ = (
        "A watch writes captures of this cluster into the histories of this server. The page uses one capture per"
        " cycle."
    )
    return folder if address.toggle("live", "Follow this cluster live", help=help_) else None


def watched_clusters() -> dict[str, Path]:
    """Return the clusters whose histories this server reads, and the folder of each; of several the first history's.

    Raises:
        CaptureError: A folder cannot be read.
        ReplayError: The folder of histories cannot be read.
    """
    found: dict[str, Path] = {}
    for place in histories().values():
        found = clusters_of(place) | found
    return dict(sorted(found.items()))


def newest(folder: Path) -> Snapshot:
    """Return the newest snapshot of a history that is followed.

    Raises:
        CaptureError: There is none any more, or the history cannot be read.
        FormatError: It cannot be read.
        SnapshotError: It is no cluster.
    """
    moments = recent_moments(folder, 1, MS_PER_MIN)
    if not moments:
        raise CaptureError(
            "The snapshots of this history no longer exist.",
            where=folder.name,
            remedy="Turn off “Follow this cluster live”.",
        )
    day, time_ms = moments[0]
    return _snapshot(str(day), time_ms)


def last_cycles(folder: Path, cycles: int, config: Settings, manager: LoadManager) -> tuple[Snapshot, ...]:
    """Return what the last cycles saw, oldest first, and say how fresh that is.

    The moments of the cycles, so many at most, are those that shadow mode has learned, else those of the clock; only
    snapshots of the load manager count.

    Raises:
        CaptureError: The history cannot be read.
        FormatError: A snapshot cannot be read.
        SnapshotError: One is no cluster.
    """
    interval_ms = max(config.integer(SHEDDING_INTERVAL_MINUTES), 1) * MS_PER_MIN
    following = read_next(folder)
    cycle_ms = following.due_ms if following is not None and following.rhythm_known else 0
    moments = recent_moments(folder, cycles, interval_ms, cycle_ms)
    seen = (_snapshot(str(day), time_ms) for day, time_ms in moments)
    found = tuple(s for s in seen if s.info.load_manager is manager)
    if not found:
        raise CaptureError(
            "No snapshot with this load manager exists any longer.",
            where=folder.name,
            remedy="Turn off “Follow this cluster live”.",
        )
    _, last_ms = moments[-1]
    behind_s = time.time() - last_ms / 1000
    rhythm = (
        "at the times learned by shadow mode"
        if cycle_ms
        else "at regular intervals, because the leader's schedule is unknown"
    )
    fresh = (
        f"{max(behind_s, 0):,.0f} s ago"
        if behind_s < _FRESH_S
        else f"{moment(last_ms)}; the watch seems to have stopped"
    )
    st.caption(
        f"Following {count(len(found), 'cycle')}, {rhythm}. Each cycle uses the last capture before it; the last one"
        f" is what the next cycle would see. Last capture: {fresh}. No unload is simulated between them."
    )
    return found
