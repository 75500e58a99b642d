"""Simulations of scenarios, run in the background, each once for all sessions."""

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, plain
from planner.explain.outcome import Outcome
from planner.share.link import scenario_digest
from planner.simulate.measures import Summary
from planner.simulate.price import price_of, price_text
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.shelf import MOST_CYCLES, CycleStore
from planner.web import state
from planner.web.heap import trim_memory
from planner.web.session import SESSION, SessionValue, draw_again
from planner.web.widgets import button, show_error
from planner.workspace.place import default_path

_KEPT_RUNS = 12
_MOST_OPEN = 24
"""How many runs there may be while people look at them."""
_PATIENCE_S = 1.2
_LOOK_S = 0.5
_AT_ONCE = 2
_ALONE_S = 20.0
"""How long a large run that began has the memory for itself; one that takes longer keeps no other large one waiting."""
_LARGE_ROWS = 500_000
"""From how many bundles and topics on a run takes hundreds of megabytes."""
_MOST_UNFINISHED = 24
_TURN_S = 2.0
_RELOAD_S = 5.0
"""How long a tab may be gone until its run stops."""
_MOST_DISK_BYTES = 4 << 30

_Key: TypeAlias = tuple[str, str]
"""Names a run: digests of its snapshot and of its scenario."""

_STOPPED: SessionValue[frozenset[_Key]] = SessionValue("stopped_runs", frozenset)
_PAID: SessionValue[frozenset[_Key]] = SessionValue("paid_runs", frozenset)
"""Runs of a high price that a person asked for."""


@dataclass(eq=False)
class Run:
    """A simulation in the background.

    Attributes:
        cycles: How many cycles there are.
        done: How many are done.
        outcome: What it found; None until then.
        error: Why it failed; None unless it did.
        watchers: The sessions that wait for it; when none is left it stops.
        tabs: What Streamlit calls the tabs of these; when all are closed it stops.
        shelf: Where its cycles are; None before it begins.
        stop: Set to stop it.
        finished: Set when it has ended, however.
    """

    cycles: int
    done: int = 0
    outcome: Outcome | None = None
    error: PlannerError | None = None
    watchers: set[str] = field(default_factory=set)
    tabs: set[str] = field(default_factory=set)
    shelf: CycleStore | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)

    def is_open(self) -> bool:
        """Say whether a tab that shows it is open."""
        return bool(self.watchers) and any(map(_is_open, tuple(self.tabs)))


@dataclass(frozen=True, eq=False, slots=True)
class _Ticket:
    """A run that waits for its turn: its number, the tabs it is for (which may grow), if it began, if it is large."""

    number: int
    tabs: Collection[str]
    under_way: bool
    large: bool


class _Turns:
    """Lets a few runs work at a time, for the tabs in turn; one passes on its turn to other tabs alone.

    Those of one tab work one after the other, so that few are in memory at once, and the first result comes early.
    Large ones begin one after the other, a second one beside one that takes long: who waits in the middle keeps its
    memory.
    """

    def __init__(self) -> None:
        self._waiting: list[_Ticket] = []
        self._working = self._large = 0
        self._large_since = 0.0
        self._numbers = itertools.count(1)
        self._last: dict[str, int] = {}
        """Number of the last run of each tab that had a turn."""
        self._changed = threading.Condition()

    def begin(
        self, stopped: Callable[[], bool], tabs: Collection[str], *, under_way: bool = False, large: bool = False
    ) -> None:
        """Wait for a turn; it is given at once to a run that is stopped, so that it can end."""
        with self._changed:
            ticket = _Ticket(next(self._numbers), tabs, under_way, large)
            self._waiting.append(ticket)
            while not stopped() and (self._working >= _AT_ONCE or self._next() is not ticket):
                self._changed.wait(_LOOK_S)
            self._waiting.remove(ticket)
            self._working += 1
            if large and not under_way:
                self._large, self._large_since = self._large + 1, time.monotonic()
            self._last |= dict.fromkeys(tuple(tabs), next(self._numbers))

    def _may_begin(self, ticket: _Ticket) -> bool:
        if ticket.under_way or not ticket.large or not self._large:
            return True
        return self._large < _AT_ONCE and time.monotonic() - self._large_since > _ALONE_S

    def _next(self) -> _Ticket | None:
        """Return the session that has the next turn; None when none may run now."""
        return min(filter(self._may_begin, self._waiting), key=self._place, default=None)

    def _place(self, ticket: _Ticket) -> tuple[int, bool, int]:
        """Return what runs are ordered by: whose tab had no turn for longest, then who is under way, then who came."""
        last = min((self._last.get(tab, 0) for tab in tuple(ticket.tabs)), default=0)
        return last, not ticket.under_way, ticket.number

    def end(self, *, large: bool = False) -> None:
        """Give the turn to the next one; `large` when it was that of a large run, which is over."""
        with self._changed:
            self._working -= 1
            self._large -= large
            if not self._working and not self._waiting:
                self._last.clear()
            self._changed.notify_all()

    def pass_on(self, stopped: Callable[[], bool], tabs: Collection[str]) -> None:
        """Let runs of other tabs have a turn, if any waits."""
        mine = set(tabs)
        with self._changed:
            others = any(mine.isdisjoint(tuple(t.tabs)) for t in self._waiting if self._may_begin(t))
        if others:
            self.end()
            self.begin(stopped, tabs, under_way=True)


_TURNS = _Turns()


class Runs:
    """The simulations of this server, each scenario once; the oldest that have ended are dropped."""

    def __init__(self) -> None:
        self._runs: OrderedDict[_Key, Run] = OrderedDict()
        self._lock = threading.Lock()

    def knows(self, view: state.Current, scenario: Scenario) -> bool:
        """Say whether the run of a scenario was started, and not stopped."""
        found = self._runs.get(_key(view, scenario))
        return found is not None and not found.stop.is_set()

    def of(self, view: state.Current, scenario: Scenario, watcher: str) -> Run:
        """Return the run of a scenario; it is started when there is none, or when it was stopped.

        Raises:
            PlannerError: Too many runs have not ended yet.
        """
        key = _key(view, scenario)
        with self._lock:
            found = self._runs.get(key)
            if found is None or found.stop.is_set():
                if sum(not job.finished.is_set() for job in self._runs.values()) >= _MOST_UNFINISHED:
                    raise PlannerError(
                        "Too many simulations are running on this server.",
                        remedy="Wait until others finish, then reload the page.",
                    )
                found = Run(scenario.cycles, tabs={_tab()})
                self._runs[key] = found
                nameless = replace(scenario, name="")
                threading.Thread(target=_work, args=(found, view.captured, nameless), daemon=True).start()
            found.watchers.add(watcher)
            found.tabs.add(_tab())
            self._runs.move_to_end(key)
            self._drop()
        return found

    def _drop(self) -> None:
        """Drop the oldest runs that have ended: first those that nobody has open, who would have them run again."""
        ended = [(job.is_open(), key) for key, job in self._runs.items() if job.finished.is_set()]
        for is_open, key in sorted(ended, key=lambda one: one[0]):
            most = _MOST_OPEN if is_open else _KEPT_RUNS
            if len(self._runs) > most or self._disk_bytes() > _MOST_DISK_BYTES:
                del self._runs[key]

    def rest(self) -> None:
        """Take no memory for cycles that somebody looked at; what is looked at again is read from the disk."""
        with self._lock:
            for job in self._runs.values():
                if job.finished.is_set() and job.shelf is not None:
                    job.shelf.rest()

    def _disk_bytes(self) -> int:
        return sum(job.shelf.disk_bytes for job in self._runs.values() if job.shelf is not None)

    def leave(self, watcher: str, but: Collection[_Key] = ()) -> None:
        """Let a session wait for nothing but some runs; what nobody waits for any more stops."""
        with self._lock:
            for key, job in self._runs.items():
                if key in but or watcher not in job.watchers:
                    continue
                job.watchers.discard(watcher)
                if not job.watchers and not job.finished.is_set():
                    job.stop.set()


def _key(view: state.Current, scenario: Scenario) -> _Key:
    return view.digest, scenario_digest(replace(scenario, name=""))


def _tab() -> str:
    """Return what Streamlit calls this tab; empty where no browser is."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def _is_open(tab: str) -> bool:
    return not tab or not runtime.exists() or runtime.get_instance().is_active_session(tab)


def _work(job: Run, snapshot: Snapshot, scenario: Scenario) -> None:
    begun = seen = time.monotonic()

    def progress(done: int, _: int) -> None:
        job.done = done

    def cancelled() -> bool:
        """Now and then, pass the turn on; and stop when every tab that waits has been closed for a while."""
        nonlocal begun, seen
        now = time.monotonic()
        if now - begun > _TURN_S:
            if any(map(_is_open, tuple(job.tabs))):
                seen = now
            elif now - seen > _RELOAD_S:
                job.stop.set()
            _TURNS.pass_on(job.stop.is_set, job.tabs)
            begun = time.monotonic()
        return job.stop.is_set()

    large = len(snapshot.bundles) + len(snapshot.topics) > _LARGE_ROWS
    _TURNS.begin(job.stop.is_set, job.tabs, large=large)
    try:
        job.shelf = CycleStore(scenario.cycles, snapshot, default_path().parent)
        trace = simulate(snapshot, scenario, progress=progress, cancelled=cancelled, keep=job.shelf.keep)
        if trace.complete:
            trace = replace(trace, end=job.shelf.keep_end(trace.end))
            outcome = Outcome(trace)
            outcome.prepare()
            job.shelf.rest()
            job.outcome = outcome
    except PlannerError as error:
        job.error = error
    except Exception as error:  # noqa: BLE001 - the page must say something whatever fails in the thread
        job.error = PlannerError(
            f"The simulation failed: {type(error).__name__}.",
            remedy="Undo the last edit, or report a bug with this scenario.",
        )
    finally:
        trim_memory()
        _TURNS.end(large=large)
        job.finished.set()


@st.cache_resource(show_spinner=False)
def runs() -> Runs:
    """Return the simulations of this server."""
    return Runs()


@st.fragment(run_every=_LOOK_S)
def _watch(jobs: Sequence[Run], keys: Collection[_Key], names: Sequence[str]) -> None:
    """Show how far runs are, with a button to stop them; draw the page again when they have ended.

    Of those that have names, each is told in a line as soon as it has ended.
    """
    done, cycles = sum(job.done for job in jobs), sum(job.cycles for job in jobs)
    bar, stop = st.columns([5, 1], vertical_alignment="bottom")
    bar.progress(min(done / max(cycles, 1), 1.0), f"Simulating: {done:,} of {cycles:,} cycles")
    if stop.button("Stop", icon=":material/stop_circle:", key="stop-run", width="stretch"):
        runs().leave(SESSION.get())
        _STOPPED.put(frozenset(keys))
        st.rerun()
    arrived = [(name, job.outcome.summary) for name, job in zip(names, jobs, strict=False) if job.outcome is not None]
    if arrived:
        st.markdown("\n".join(f"- **{plain(name)}**: {_in_short(summary)}" for name, summary in arrived))
    if all(job.finished.is_set() for job in jobs):
        draw_again()


def _in_short(summary: Summary) -> str:
    return (
        f"{count(summary.shed, 'bundle')} shed, {count(summary.topics_disconnected, 'topic')} disconnected, deviation"
        f" of usage {summary.final_std_percent:.1f} points at the end"
    )


def _agreed(view: state.Current, scenarios: Collection[Scenario], keys: frozenset[_Key]) -> bool:
    """Tell the price of what was not started yet, where it is high; say whether it may start.

    Raises:
        PlannerError: There are more cycles than can be kept.
    """
    fresh = [price_of(view.captured, scenario) for scenario in scenarios if not runs().knows(view, scenario)]
    if max((price.cycles for price in fresh), default=0) > MOST_CYCLES:
        raise PlannerError(
            f"A page can simulate at most {MOST_CYCLES:,} cycles.",
            remedy="Use fewer cycles, or run the command `plan`, which has no limit.",
        )
    told = price_text(fresh)
    if not told or keys <= _PAID.get():
        return True
    st.info(f"{told} for this server.", icon=":material/hourglass_top:")
    button("Run", "play_arrow", lambda: _PAID.put(_PAID.get() | keys))
    return False


def run(view: state.Current, *scenarios: Scenario, names: Sequence[str] = ()) -> list[Outcome] | None:
    """Return the outcomes of scenarios; None while they are computed, or after a failure, which is shown.

    What the session waited for before stops, unless another one waits for it.

    Args:
        view: The snapshot in view.
        scenarios: What to run. The names that they bear do not matter: what is found bears none.
        names: What to call them while some are still worked out; none when there is nothing to tell before the end.
    """
    keys = frozenset(_key(view, scenario) for scenario in scenarios)
    runs().leave(SESSION.get(), keys)
    if _STOPPED.get() & keys:
        st.warning("Simulation stopped. Change the scenario, or run it again.", icon=":material/stop_circle:")
        button("Run again", "play_arrow", lambda: _STOPPED.put(frozenset()))
        return None
    if not _agreed(view, scenarios, keys):
        return None
    jobs = [runs().of(view, scenario, SESSION.get()) for scenario in scenarios]
    until = time.monotonic() + _PATIENCE_S
    for job in jobs:
        job.finished.wait(max(until - time.monotonic(), 0.0))
    for job in jobs:
        if job.error is not None:
            show_error(job.error)
            return None
    outcomes = [job.outcome for job in jobs if job.outcome is not None]
    if len(outcomes) == len(jobs):
        return outcomes
    _watch(jobs, keys, names)
    return None
