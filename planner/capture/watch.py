"""Captures a cluster again and again, at every report interval, into a history folder."""

import errno
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from statistics import median

from planner.capture.catalogue import CATALOGUE
from planner.capture.collect import MOMENT
from planner.capture.estimate import with_estimated_averages
from planner.capture.options import CaptureOptions, check_url
from planner.capture.run import RAW, capture_cluster, check_options
from planner.cluster.errors import CaptureError, PlannerError
from planner.cluster.names import REPORT_UPDATE_MIN_INTERVAL_MILLIS
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import NS_PER_MS
from planner.formats.raw_capture.metadata_store import DUMP
from planner.history.watched import HistoryFolder

CAPTURING = ".capturing-"
"""Prefix of the folder in the history that holds a capture in progress; the rest of its name is the cluster."""

FAST: frozenset[str] = frozenset(
    {"brokers-all", "brokers-after", "leader", "dynamic-config-values", "bundles", DUMP, *MOMENT}
)
"""Requests of every interval; the rest changes by hand and is requested less often."""

_SLOWEST_S = 86_400.0
_LEAST_S = 1.0
_LONGEST_PAUSE_S = 60.0
_MOST_DOUBLINGS = 10
_MOST_LEARNED = 20
_BEFORE_CYCLE_S = 0.25
"""Time between a finished capture and the cycle: a leader decides some tenths of a second early or late."""
_READS_S = 0.13
"""Time between reading load reports and the cycle; most leaders decide a tenth of a second early."""
_RECENT = 5
_ENDS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
"""Errors of a folder that cannot be written until an operator changes it."""
_OF_BROKERS = "owned."
_AFTERWARDS = "brokers-after."
"""Requests after the load reports, which may take long."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How a cluster is watched.

    Attributes:
        capture: What is captured; `out` is not used.
        history: The history folder.
        interval_s: Time from one capture to the next; 0 for the cluster's own report interval.
        refresh_s: How long what people change (namespaces, policies, topic lists, settings) is taken from before.
        max_bytes: What the snapshots of the cluster may take on disk; the oldest go.
        captures: How many captures; 0 for no end.
        failures: How many in a row may fail before watching ends; 0 for any number.
        spare_urls: Further admin addresses, asked in turn when one does not answer. The brokers that answered last are
            asked after them.
    """

    capture: CaptureOptions
    history: Path
    interval_s: float = 0.0
    refresh_s: float = 300.0
    max_bytes: int = 10 << 30
    captures: int = 0
    failures: int = 0
    spare_urls: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse options that cannot be carried out.

        Raises:
            CaptureError: Naming the option.
        """
        check_options(self.capture)
        for url in self.spare_urls:
            check_url(url, "--spare-admin-url")
        for name, low, high in (
            ("interval_s", 0, _SLOWEST_S),
            ("refresh_s", 0, _SLOWEST_S),
            ("max_bytes", 1, float("inf")),
            ("captures", 0, float("inf")),
            ("failures", 0, float("inf")),
        ):
            if not low <= getattr(self, name) <= high:
                raise CaptureError(
                    f"{getattr(self, name)} is out of range.", where=name, remedy=f"Use {low} to {high:g}."
                )


@dataclass(frozen=True, slots=True)
class Watched:
    """One moment of watching.

    Attributes:
        number: Which one, from 1.
        snapshot: What was captured; None when it failed.
        folder: Where it is in the history.
        error: Why it failed.
        took_s: How long the capture took.
        interval_s: Time from one capture to the next.
        raw: The raw answers, until the next capture.
    """

    number: int
    snapshot: Snapshot | None
    folder: Path | None
    error: PlannerError | None
    took_s: float
    interval_s: float
    raw: Path | None = None


WatchSink = Callable[[Watched], None]
"""Called after each capture, failed ones included."""


@dataclass
class _State:
    interval_s: float
    refreshed_s: float = -float("inf")
    failed: int = 0
    last: Snapshot | None = None
    leads_s: tuple[float, ...] = ()
    url: str = ""
    learned: tuple[str, ...] = ()
    names: frozenset[str] = field(default_factory=lambda: frozenset(r.name for r in CATALOGUE) | FAST)


def watch_cluster(
    options: WatchOptions,
    sink: WatchSink,
    stop: threading.Event | None = None,
    cycle_ms: Callable[[], int] = lambda: 0,
) -> int:
    """Capture at every interval, telling of each capture, until told to stop.

    Where it is known when the load balancer decides next, a capture is made that is done shortly before, so that it
    holds the load reports that the leader knows; the interval counts from there on.

    A capture that fails, whatever it fails at, is told and tried again at the next interval with the next address; when
    all have failed, at longer and longer intervals, up to a minute. Only a history that may not be written ends it. A
    capture that takes longer than the interval moves the next one to the next multiple. Killed at any moment, the
    history holds whole snapshots only.

    Args:
        options: What is watched, and how.
        sink: Told of each capture.
        stop: Set to end it.
        cycle_ms: Asked after each capture when the load balancer decides next, ms since 1970; 0 for unknown.

    Returns:
        How many captures succeeded.

    Raises:
        CaptureError: The options cannot be carried out, the history may not be written, or too many captures in a row
            failed.
    """
    options.check()
    ended = stop or threading.Event()
    history = HistoryFolder(options.history, options.max_bytes)
    working = options.history / (CAPTURING + sha256(options.capture.admin_url.encode()).hexdigest()[:12])
    shutil.rmtree(working, ignore_errors=True)
    state = _State(options.interval_s or 5.0, url=options.capture.admin_url)
    number = succeeded = 0
    due_s, timed_ms, reports_at_s = time.monotonic(), 0, 0.0
    took_s: tuple[float, ...] = ()
    try:
        while not ended.wait(max(0.0, due_s - time.monotonic())):
            number, began_s = number + 1, time.monotonic()
            watched = _once(options, history, working, state, number, reports_at_s)
            succeeded += watched.snapshot is not None
            sink(watched)
            if 0 < options.failures <= state.failed:
                raise CaptureError(
                    f"{state.failed} captures in a row failed; the last one: {watched.error}",
                    where=state.url,
                    remedy="Fix the cause, then watch again.",
                )
            if options.captures and number >= options.captures:
                break
            now_s = time.monotonic()
            due_s += max(1, -(-(now_s - due_s) // state.interval_s)) * state.interval_s
            rounds = state.failed // len(_addresses(options, state))
            if rounds:
                pause_s = min(state.interval_s * 2 ** min(rounds, _MOST_DOUBLINGS), _LONGEST_PAUSE_S)
                due_s = max(due_s, now_s + pause_s)
            took_s = (*took_s, now_s - began_s)[-_RECENT:]
            cycle_s = (at_ms := cycle_ms()) / 1000 - time.time() + now_s
            begin_s = cycle_s - _BEFORE_CYCLE_S - (median(state.leads_s) if state.leads_s else 0.0)
            if at_ms != timed_ms:
                begin_s = max(begin_s, min(now_s, cycle_s - _BEFORE_CYCLE_S))
            # What begins just before would still be under way then.
            timed = not state.failed and now_s <= begin_s <= due_s + max(took_s)
            due_s, timed_ms = (begin_s, at_ms) if timed else (due_s, timed_ms)
            reports_at_s = at_ms / 1000 - _READS_S if timed else 0.0
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return succeeded


def _addresses(options: WatchOptions, state: _State) -> tuple[str, ...]:
    """Return whom to ask: those that were named, then brokers of the last capture."""
    return tuple(dict.fromkeys((options.capture.admin_url, *options.spare_urls, *state.learned)))


def _next_address(options: WatchOptions, state: _State, working: Path) -> None:
    """Ask another address from now on, and everything anew."""
    known = _addresses(options, state)
    state.refreshed_s = -float("inf")
    if len(known) > 1:
        state.url = known[(known.index(state.url) + 1) % len(known)] if state.url in known else known[0]
        shutil.rmtree(working, ignore_errors=True)


def _check_same(before: Snapshot | None, now: Snapshot, url: str) -> None:
    """Refuse a capture of another cluster than the one before.

    Raises:
        CaptureError: Naming both.
    """
    if before is not None and before.info.cluster != now.info.cluster:
        raise CaptureError(
            f"This is the cluster {now.info.cluster}, not {before.info.cluster}.",
            where=url,
            remedy="Use admin addresses of one cluster.",
        )


def _may_not_be_written(error: BaseException | None, history: Path) -> bool:
    """Say whether a capture failed since the history may not be written, so that every other one will, too."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _ENDS and error.filename is not None:
            return Path(str(error.filename)).is_relative_to(history)
        error = error.__cause__
    return False


def _unforeseen(error: Exception, url: str) -> CaptureError:
    """Return what to say of an error of the planner itself."""
    text = (str(error).splitlines() or [""])[0][:200].rstrip(".")
    return CaptureError(
        f"The capture failed: {type(error).__name__}{': ' if text else ''}{text}.",
        where=url,
        remedy=(
            "Watching continues. If it happens again, capture once with `capture --out FOLDER` and report the folder."
        ),
    )


def _once(
    options: WatchOptions, history: HistoryFolder, working: Path, state: _State, number: int, reports_at_s: float
) -> Watched:
    """Capture once; shortly before a cycle, for which `reports_at_s` is given, only what changes fast if possible."""
    began_s, began_ms = time.monotonic(), time.time_ns() // NS_PER_MS
    whole = began_s - state.refreshed_s >= options.refresh_s * (2 if reports_at_s else 1)
    asked = replace(options.capture, out=working, admin_url=state.url)
    try:
        result = capture_cluster(asked, fresh=state.names if whole else FAST, reports_at_s=reports_at_s)
        _check_same(state.last, result.snapshot, state.url)
        snapshot = with_estimated_averages(result.snapshot, state.last)
        folder = history.add(snapshot)
    except Exception as error:
        if _may_not_be_written(error, options.history):
            raise
        state.failed += 1
        _next_address(options, state, working)
        known = error if isinstance(error, PlannerError) else _unforeseen(error, asked.admin_url)
        return Watched(number, None, None, known, time.monotonic() - began_s, state.interval_s)
    if whole:
        state.refreshed_s = began_s
    else:
        asked_ms = max(part.time_ms for part in result.parts if not part.file.startswith(_AFTERWARDS))
        state.leads_s = (*state.leads_s, max(asked_ms - began_ms, 0) / 1000)[-_RECENT:]
    state.failed, state.last = 0, snapshot
    requests = {part.asked: None for part in result.parts if part.good and part.file.startswith(_OF_BROKERS)}
    state.learned = tuple(requests)[:_MOST_LEARNED]
    if not options.interval_s:
        interval_ms = snapshot.settings.integer(REPORT_UPDATE_MIN_INTERVAL_MILLIS)
        state.interval_s = min(max(interval_ms / 1000, _LEAST_S), _SLOWEST_S)
    return Watched(number, snapshot, folder, None, time.monotonic() - began_s, state.interval_s, working / RAW)
