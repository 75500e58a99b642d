"""Which snapshot a person looks at, and what is kept between reruns.

The address names the snapshot by the first digits of its digest, so that a link works on a server that was just
started; the session remembers it from page to page.
"""

from dataclasses import dataclass

import streamlit as st

from planner.cluster.decisions import SplitDecision
from planner.cluster.errors import PlannerError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.text import short_digest
from planner.pulsar.manager.splits import next_splits
from planner.simulate.sequence import CycleStep, decide_cycles, same_load
from planner.web import address
from planner.web.session import Kept
from planner.workspace.database import SavedSnapshot, Workspace, open_workspace
from planner.workspace.samples import Sample, load_sample, sample_by_digest, samples

SELECTED = Kept("selected_digest", str)
"""Digest of the snapshot in view; empty when none was looked at."""

_STARTED = Kept("was_started", bool)
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
def snapshot_of(digest: str) -> Snapshot:
    """Return the content of a saved snapshot."""
    return workspace().snapshot(digest)


@st.cache_resource(max_entries=32, show_spinner="Deciding …", hash_funcs={Settings: repr})
def _step(digest: str, settings: Settings, cycle: int, seed: int) -> CycleStep:
    return decide_cycles(same_load(snapshot_of(digest), cycle, settings), settings, seed)[-1]


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
    return next_splits(snapshot_of(digest), settings)


def splits(view: Current, settings: Settings | None = None) -> SplitDecision:
    """Return which bundles are split at the next check, with the snapshot's settings or others."""
    return _splits(view.digest, settings if settings is not None else view.snapshot.settings)


def add_sample(sample: Sample) -> SavedSnapshot:
    """Load a sample into the workspace."""
    return workspace().add(load_sample(sample), sample.title)


def open_sample(sample: Sample) -> None:
    """Load a sample into the workspace and look at it from now on."""
    select(add_sample(sample).digest)


def select(digest: str, **parts: str) -> None:
    """Look at another snapshot from now on, with parts of an address that go with it."""
    SELECTED.put(digest)
    address.replace(snapshot=short_digest(digest), **parts)


def forget(digest: str) -> None:
    """Delete a snapshot, and look at another one if it was in view."""
    workspace().delete(digest)
    if SELECTED.get() == digest:
        SELECTED.put("")
        address.replace()


def find(digest: str) -> SavedSnapshot | None:
    """Return a snapshot by the first digits of its digest; a sample is loaded when it is not in the workspace yet."""
    found = workspace().find(digest)
    sample = sample_by_digest(digest) if found is None else None
    return found if sample is None else add_sample(sample)


def _wanted() -> SavedSnapshot | None:
    """Find the snapshot of the address, else of the session, else the one added last.

    Raises:
        PlannerError: The address names one that is neither saved nor a sample.
    """
    asked = address.part("snapshot")
    if asked:
        found = find(asked)
        if found is None:
            raise PlannerError(
                f"This link shows the snapshot {short_digest(asked)}, which is not on this server.",
                remedy="Load it on the Snapshots page, then open the link again; or choose another snapshot.",
            )
        return found
    remembered = SELECTED.get()
    found = workspace().find(remembered) if remembered else None
    saved = workspace().saved()
    return found or (saved[0] if saved else None)


def saved_in_view() -> SavedSnapshot | None:
    """Return what the workspace knows of the snapshot in view, which need not be readable; None when there is none.

    On the very first start the first sample is loaded, so that there is something to see.

    Raises:
        PlannerError: The address names a snapshot that is not here.
    """
    if not address.part("snapshot") and not workspace().saved() and not _STARTED.get():
        for first in samples()[:1]:
            add_sample(first)
    _STARTED.put(True)
    saved = _wanted()
    if saved is not None:
        SELECTED.put(saved.digest)
        address.put(snapshot=short_digest(saved.digest))
    return saved


def current() -> Current | None:
    """Return the snapshot in view; None when there is none at all (see `saved_in_view`).

    Raises:
        PlannerError: The address names a snapshot that is not here, or it cannot be read.
    """
    saved = saved_in_view()
    return None if saved is None else Current(saved, snapshot_of(saved.digest))
