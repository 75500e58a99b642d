"""Which snapshot a person looks at, and what is kept between reruns.

The address names the snapshot by the first digits of its digest, so that a link works on a server that was just
started; the session remembers it from page to page, and the workspace what each browser looked at last. What others
load changes nothing for anybody else.
"""

from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import streamlit as st

from planner.cluster.decisions import SplitDecision
from planner.cluster.errors import PlannerError, StoreError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import plain, short_digest
from planner.pulsar.manager.splits import next_splits
from planner.simulate.sequence import CycleStep, decide_cycles, same_load
from planner.simulate.usage_model import end_by_capture
from planner.web import address, history_moments
from planner.web.session import SessionValue
from planner.web.task import Limits, Task
from planner.web.tasks import Tasks, watcher
from planner.workspace.database import SavedSnapshot, Workspace, open_workspace
from planner.workspace.samples import Sample, load_sample, sample_by_digest, samples

if TYPE_CHECKING:
    from planner.cluster.load_manager import LoadManager
    from planner.explain.outcome import Outcome

SELECTED = SessionValue("selected_digest", str)
"""Digest of the snapshot in view; empty when none was looked at."""

IS_NEW = SessionValue("is_new", bool)
"""Whether this browser has chosen nothing yet and sees the first sample."""

_STARTED = SessionValue("was_started", bool)
_SEED = 0


@dataclass(frozen=True)
class Current:
    """The snapshot in view.

    Attributes:
        saved: Its entry in the workspace.
        captured: Its content.
        visible: What a page shows in its place, such as the cluster after a scenario; None for itself.
        variant: Names what is visible in its place.
        outcome: The simulation at whose end it is shown; None for others.
    """

    saved: SavedSnapshot
    captured: Snapshot
    visible: Snapshot | None = None
    variant: str = ""
    outcome: "Outcome | None" = None

    @property
    def snapshot(self) -> Snapshot:
        """What the page shows."""
        return self.captured if self.visible is None else self.visible

    @property
    def measured(self) -> Snapshot:
        """What the page shows, as the judge measures it: with the demand on machines, and the capture's settings.

        After a scenario, `snapshot` has what brokers report, which is 100 % at most, and the settings that decide.
        """
        if self.outcome is None or self.visible is not _end_of(self.outcome):
            return self.snapshot
        trace = self.outcome.trace
        measured: Snapshot = self.outcome.once("measured at the end", lambda: end_by_capture(trace))
        return measured

    @property
    def digest(self) -> str:
        """Digest of the snapshot in view, even while its state after a scenario is visible."""
        return self.saved.digest

    def after(self, outcome: "Outcome") -> "Current":
        """Return the view of the cluster at the end of a simulation, with the settings that were in force."""
        return replace(self, visible=_end_of(outcome), variant=outcome.digest, outcome=outcome)

    def under(self, manager: "LoadManager") -> "Current":
        """Return the view of the same cluster run by a load manager."""
        if manager is self.snapshot.info.load_manager:
            return self
        other = replace(self.snapshot, info=replace(self.snapshot.info, load_manager=manager))
        return replace(self, visible=other, variant=f"{self.variant}-{manager}")


def _end_of(outcome: "Outcome") -> Snapshot:
    """Return the cluster at the end of a simulation, with the settings that were in force."""
    trace = outcome.trace
    end: Snapshot = outcome.once("shown at the end", lambda: replace(trace.end, settings=trace.settings))
    return end


@st.cache_resource(show_spinner=False)
def workspace() -> Workspace:
    """Return the one workspace of this server."""
    return open_workspace()


SNAPSHOTS: Final = Tasks(Limits(kept=3, unwatched_s=None, retried=True), after=lambda: None)
"""The contents of saved snapshots, each loaded once for all sessions."""
_MOST_AHEAD = 4
"""Snapshots that are under way up to which one more is loaded before its page asks."""


def _coming(digest: str, *, ahead: bool = False) -> Task[Snapshot]:
    """Return the task that loads a saved snapshot."""
    return SNAPSHOTS.ask(digest, lambda *_: _load(digest), watcher(), ahead=ahead)


def _load(digest: str) -> Snapshot:
    """Load a snapshot of the workspace, or a moment of a history that it does not have."""
    opened = history_moments.find(digest)
    if opened is not None and workspace().find(digest) is None:
        return history_moments.content(opened)
    return workspace().snapshot(digest)


def load_ahead(asked: str) -> None:
    """Begin to load a saved snapshot, by the first digits of its digest; what cannot be read the page will say."""
    if len(SNAPSHOTS.unfinished()) >= _MOST_AHEAD:
        return
    with suppress(PlannerError):
        if (saved := workspace().find(asked)) is not None:
            _coming(saved.digest, ahead=True)


def snapshot_of(digest: str) -> Snapshot:
    """Return the content of a saved snapshot; the latest few are kept.

    Raises:
        PlannerError: It cannot be read.
    """
    coming = _coming(digest)
    with nullcontext() if coming.finished.is_set() else st.spinner("Loading the snapshot …"):
        coming.finished.wait()
    return coming.value()


@st.cache_resource(max_entries=32, show_spinner="Deciding …", hash_funcs={Settings: repr})
def _step(names: tuple[str, str], _snapshot: Snapshot, settings: Settings, cycle: int, seed: int) -> CycleStep:
    del names
    return decide_cycles(same_load(_snapshot, cycle, settings), settings, seed)[-1]


def step(view: Current, settings: Settings | None = None, cycle: int = 1) -> CycleStep:
    """Return what a later cycle does, and what the leader remembers then.

    Args:
        view: The snapshot in view.
        settings: Those in force; the snapshot's when None.
        cycle: 1 for the next one; later ones see the same load, as nothing is carried out in between.
    """
    settings = settings if settings is not None else view.snapshot.settings
    return _step((view.digest, view.variant), view.snapshot, settings, cycle, _SEED)


@st.cache_resource(max_entries=32, show_spinner="Deciding …", hash_funcs={Settings: repr})
def _splits(names: tuple[str, str], _snapshot: Snapshot, settings: Settings) -> SplitDecision:
    del names
    return next_splits(_snapshot, settings)


def splits(view: Current, settings: Settings | None = None) -> SplitDecision:
    """Return which bundles are split at the next check, with the snapshot's settings or others."""
    settings = settings if settings is not None else view.snapshot.settings
    return _splits((view.digest, view.variant), view.snapshot, settings)


def add_sample(sample: Sample) -> SavedSnapshot:
    """Load a sample into the workspace."""
    return workspace().add(load_sample(sample), sample.title)


def open_sample(sample: Sample) -> None:
    """Load a sample into the workspace and look at it from now on."""
    select(add_sample(sample).digest)


def has_samples_only() -> bool:
    """Return whether every snapshot of the workspace is a sample."""
    return all(sample_by_digest(saved.digest) is not None for saved in workspace().saved())


def no_longer_new() -> None:
    """Remember that this browser has been welcomed."""
    if IS_NEW.get():
        IS_NEW.put(False)
        _remember_browser(SELECTED.get())


def select(digest: str, **parts: str) -> None:
    """Look at another snapshot from now on, with parts of an address that go with it."""
    _remember(digest)
    address.replace(snapshot=short_digest(digest), **parts)


def _remember(digest: str) -> None:
    """Keep what is looked at, for this tab and for its browser."""
    if digest != SELECTED.get():
        SELECTED.put(digest)
        _remember_browser(digest)
    IS_NEW.put(False)


def _remember_browser(digest: str) -> None:
    """Keep what this browser looks at, for its next visit."""
    browser = address.browser()
    try:
        if browser:
            workspace().looks_at(browser, digest)
    except StoreError as error:  # the snapshot can be looked at, and exported, all the same
        address.note(plain(str(error)))


def forget(digest: str) -> None:
    """Delete a snapshot, and look at another one if it was in view."""
    workspace().delete(digest)
    if SELECTED.get() == digest:
        _remember("")
        address.replace()


def find(digest: str) -> SavedSnapshot | None:
    """Return a snapshot by the first digits of its digest; a sample is loaded when it is not in the workspace yet.

    A moment of a history counts once it was opened.
    """
    found = _here(digest)
    sample = sample_by_digest(digest) if found is None else None
    return found if sample is None else add_sample(sample)


def _here(digest: str) -> SavedSnapshot | None:
    """Return a saved snapshot, or an opened moment, by the first digits of its digest."""
    found = workspace().find(digest)
    if found is None and (opened := history_moments.find(digest)) is not None:
        return opened.saved
    return found


def moment_part(digest: str) -> dict[str, str]:
    """Return the part of an address that opens a moment of a history; empty for a snapshot of the workspace."""
    opened = history_moments.find(digest)
    return {} if opened is None else {"moment": opened.text}


def select_moment(text: str) -> None:
    """Look at a moment of a history from now on.

    Raises:
        PlannerError: There is no such moment.
    """
    digest = history_moments.open_moment(text).digest
    select(digest, **moment_part(digest))


def _wanted() -> SavedSnapshot | None:
    """Find the moment or snapshot of the address, else of the session, else the one that this browser looked at last.

    Raises:
        PlannerError: The address names one that is neither saved nor a sample.
    """
    if moment := address.part("moment"):
        return history_moments.open_moment(moment)
    asked = address.part("snapshot")
    if asked:
        found = find(asked)
        if found is None:
            raise PlannerError(
                f"This link needs the snapshot {short_digest(asked)}, which is not on this server.",
                remedy="Load it on the page Snapshots, then open the link again. Or choose another snapshot.",
            )
        return found
    browser = address.browser()
    remembered = SELECTED.get() or (workspace().looked_at(browser) if browser else "")
    return _here(remembered) if remembered else None


def saved_in_view() -> SavedSnapshot | None:
    """Return the entry of the snapshot in view, which need not be readable, in the workspace; None when there is none.

    A browser that has not looked at anything yet is shown the first sample, never what somebody else has loaded.

    Raises:
        PlannerError: The address names a snapshot that is not here.
    """
    saved = _wanted()
    if saved is None and not _STARTED.get():
        saved = next(map(add_sample, samples()[:1]), None)
        if saved is not None:
            SELECTED.put(saved.digest)
            IS_NEW.put(True)
    _STARTED.put(True)
    if saved is not None:
        if saved.digest != SELECTED.get():
            _remember(saved.digest)
        address.put(snapshot=short_digest(saved.digest), **moment_part(saved.digest))
    return saved


def current() -> Current | None:
    """Return the snapshot in view; None when there is none at all (see `saved_in_view`).

    Raises:
        PlannerError: The address names a snapshot that is not here, or it cannot be read.
    """
    saved = saved_in_view()
    return None if saved is None else Current(saved, snapshot_of(saved.digest))
