"""Which snapshot a person looks at, and what is kept between reruns.

The address names the snapshot by the first digits of its digest, so that a link works on a server that was just
started; the session remembers it from page to page.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from planner.cluster.decisions import SplitDecision
from planner.cluster.errors import PlannerError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import CycleDecision
from planner.pulsar.manager.splits import next_splits
from planner.simulate.sequence import CycleStep, decide_cycles, same_load
from planner.workspace.database import SavedSnapshot, Workspace, open_workspace
from planner.workspace.samples import Sample, load_sample, sample_by_digest, samples

PAGES = Path(__file__).resolve().parents[2] / "pages"
"""Where the scripts of the pages are."""
SNAPSHOTS_PAGE = PAGES / "snapshots.py"
"""The page that loads snapshots."""

_SELECTED = "selected_digest"
_SHORT = 12
_SEED = 0


@dataclass(frozen=True)
class Current:
    """The snapshot in view.

    Attributes:
        saved: What the workspace knows of it.
        snapshot: Its content.
    """

    saved: SavedSnapshot
    snapshot: Snapshot

    @property
    def digest(self) -> str:
        """Its digest."""
        return self.saved.digest


@st.cache_resource(show_spinner=False)
def workspace() -> Workspace:
    """Return the one workspace of this server."""
    return open_workspace()


@st.cache_resource(max_entries=3, show_spinner="Loading the snapshot …")
def _load(digest: str) -> Snapshot:
    return workspace().snapshot(digest)


@st.cache_resource(max_entries=32, show_spinner="Deciding …", hash_funcs={Settings: repr})
def _step(digest: str, settings: Settings, cycle: int, seed: int) -> CycleStep:
    return decide_cycles(same_load(_load(digest), cycle, settings), settings, seed)[-1]


def snapshot_of(digest: str) -> Snapshot:
    """Return the content of a saved snapshot."""
    return _load(digest)


def cycle(view: Current, settings: Settings | None = None) -> CycleDecision:
    """Return what the next load-balancer cycle does, with the snapshot's settings or others."""
    return step(view, settings).decision


def step(view: Current, settings: Settings | None = None, cycle: int = 1) -> CycleStep:
    """Return what a later cycle does, and what the leader remembers then.

    Args:
        view: The snapshot in view.
        settings: Those in force; the snapshot's when None.
        cycle: 1 for the next one; later ones see the same load, as nothing is carried out in between.
    """
    return _step(view.digest, settings if settings is not None else view.snapshot.settings, cycle, _SEED)


@st.cache_resource(max_entries=32, show_spinner="Deciding …", hash_funcs={Settings: repr})
def _splits(digest: str, settings: Settings) -> SplitDecision:
    return next_splits(_load(digest), settings)


def splits(view: Current, settings: Settings | None = None) -> SplitDecision:
    """Return which bundles are split at the next check, with the snapshot's settings or others."""
    return _splits(view.digest, settings if settings is not None else view.snapshot.settings)


def add_sample(sample: Sample) -> SavedSnapshot:
    """Load a sample into the workspace."""
    return workspace().add(load_sample(sample), sample.title)


def param(name: str) -> str:
    """Return a part of the address, empty when it is not there."""
    value: Any = st.query_params.get(name, "")
    return value if isinstance(value, str) and len(value) <= 2_000 else ""  # noqa: PLR2004 - longer is no link of ours


def set_params(**values: str) -> None:
    """Put values into the address; empty ones are taken out, others stay."""
    for name, value in values.items():
        if not value:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != value:
            st.query_params[name] = value


def select(digest: str) -> None:
    """Look at another snapshot from now on."""
    st.session_state[_SELECTED] = digest
    st.query_params.clear()
    st.query_params["snapshot"] = digest[:_SHORT]


def forget(digest: str) -> None:
    """Delete a snapshot, and look at another one if it was in view."""
    workspace().delete(digest)
    if st.session_state.get(_SELECTED) == digest:
        del st.session_state[_SELECTED]
        st.query_params.clear()


def _wanted() -> SavedSnapshot | None:
    """Find the snapshot of the address, else of the session, else the one added last.

    Raises:
        PlannerError: The address names one that is neither saved nor a sample.
    """
    asked = param("snapshot")
    if asked:
        found = workspace().find(asked)
        if found is None:
            sample = sample_by_digest(asked)
            found = add_sample(sample) if sample is not None else None
        if found is None:
            raise PlannerError(
                f"This link shows the snapshot {asked[:_SHORT]}, which is not on this server.",
                remedy="Load it on the Snapshots page, then open the link again; or choose another snapshot.",
            )
        return found
    remembered = st.session_state.get(_SELECTED)
    found = workspace().find(remembered) if remembered else None
    saved = workspace().saved()
    return found or (saved[0] if saved else None)


def current() -> Current | None:
    """Return the snapshot in view; None when there is none at all.

    On the very first start the first sample is loaded, so that there is something to see.

    Raises:
        PlannerError: The address names a snapshot that is not here.
    """
    if not param("snapshot") and not workspace().saved() and not st.session_state.get("was_started"):
        first = samples()
        if first:
            add_sample(first[0])
    st.session_state["was_started"] = True
    saved = _wanted()
    if saved is None:
        return None
    st.session_state[_SELECTED] = saved.digest
    set_params(snapshot=saved.digest[:_SHORT])
    return Current(saved, _load(saved.digest))
