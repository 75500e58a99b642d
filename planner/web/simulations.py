"""Simulations of scenarios, run in the background, each once for all sessions."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import streamlit as st

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
from planner.web.session import SessionValue
from planner.web.task import Limits, Progress, Report, Stopped, Task
from planner.web.tasks import Tasks, is_open, kept_place, watch, watcher
from planner.web.widgets import button, show_error
from planner.workspace.place import default_path

LIMITS: Final = Limits(
    unfinished=24,
    kept=12,
    kept_open=24,
    disk_bytes=4 << 30,
    patience_s=1.2,
    look_s=0.5,
    unwatched_s=5.0,
    large_rows=500_000,
    alone_s=20.0,
)
"""Bundles and topics are the rows of a simulation; a large one takes hundreds of megabytes of memory."""


def _too_many(_: int) -> PlannerError:
    return PlannerError(
        "Too many simulations are running on this server.", remedy="Wait until others finish, then reload the page."
    )


SIMULATIONS: Final = Tasks(LIMITS, is_open=is_open, too_many=_too_many)
"""The simulations of this server."""

_STOPPED: SessionValue[frozenset[str]] = SessionValue("stopped_simulations", frozenset)
"""Keys of the simulations that a person stopped."""
_CONFIRMED: SessionValue[frozenset[str]] = SessionValue("confirmed_simulations", frozenset)
"""Keys of the simulations of a high price that a person asked for."""


class _Cycles:
    """Where the cycles of one simulation are on disk, once it has begun."""

    def __init__(self) -> None:
        self._store: CycleStore | None = None

    @property
    def disk_bytes(self) -> int:
        """How much of the file is used."""
        return 0 if self._store is None else self._store.disk_bytes

    def rest(self) -> None:
        """Take no memory for cycles that somebody looked at."""
        if self._store is not None:
            self._store.rest()

    def simulate(self, snapshot: Snapshot, scenario: Scenario, report: Report, stopped: Stopped) -> Outcome:
        """Return the outcome of a scenario; an unprepared one of the first cycles if it is stopped.

        Raises:
            PlannerError: A value is out of bounds, or there are more cycles than can be kept.
        """

        def progress(done: int, cycles: int) -> None:
            report(Progress(done, cycles))

        self._store = store = CycleStore(scenario.cycles, snapshot, default_path().parent)
        trace = simulate(snapshot, scenario, progress=progress, cancelled=stopped, keep=store.keep)
        if not trace.complete:
            return Outcome(trace)
        outcome = Outcome(replace(trace, end=store.keep_end(trace.end)))
        outcome.prepare()
        store.rest()
        return outcome


def _key(view: state.Current, scenario: Scenario) -> str:
    return f"{view.digest} {scenario_digest(replace(scenario, name=''))}"


def ask(view: state.Current, scenario: Scenario, session: str, tasks: Tasks = SIMULATIONS) -> Task[Outcome]:
    """Return the simulation of a scenario for a session; its name does not matter.

    Raises:
        PlannerError: Too many simulations have not ended yet.
    """
    cycles = _Cycles()
    return tasks.ask(
        _key(view, scenario),
        partial(cycles.simulate, view.captured, replace(scenario, name="")),
        session,
        cost=price_of(view.captured, scenario).seconds,
        rows=len(view.captured.bundles) + len(view.captured.topics),
        files=cycles,
    )


def _watch(asked: Sequence[Task[Outcome]], cycles: int, keys: Collection[str], names: Sequence[str]) -> None:
    """Show how far simulations of so many cycles are, with a button to stop them, until all have ended.

    Of those that have names, each is summarised in a line as soon as it has ended.
    """

    def draw() -> None:
        done = sum(task.state[0].done for task in asked)
        bar, stop = st.columns([5, 1], vertical_alignment="bottom")
        bar.progress(Progress(done, cycles).fraction, f"Simulating: {done:,} of {cycles:,} cycles")
        if stop.button("Stop", icon=":material/stop_circle:", key="stop-run", width="stretch"):
            SIMULATIONS.leave_others(watcher())
            _STOPPED.put(frozenset(keys))
            st.rerun()
        arrived = [(name, task.result.summary) for name, task in zip(names, asked, strict=False) if task.result]
        if arrived:
            st.markdown("\n".join(f"- **{plain(name)}**: {_in_short(summary)}" for name, summary in arrived))

    watch(SIMULATIONS, asked, draw)


def _in_short(summary: Summary) -> str:
    return (
        f"{count(summary.shed, 'bundle')} shed, {count(summary.topics_disconnected, 'topic')} disconnected, deviation"
        f" of usage {summary.final_std_percent:.1f} points at the end"
    )


def _as_planner_error(error: BaseException) -> PlannerError:
    """Return what to show of an error, because a page must say something whatever fails in another thread."""
    if isinstance(error, PlannerError):
        return error
    return PlannerError(
        f"The simulation failed: {type(error).__name__}.",
        remedy="Undo the last edit, or report a bug with this scenario.",
    )


def _is_confirmed(view: state.Current, scenarios: Collection[Scenario], keys: frozenset[str]) -> bool:
    """Show the price of what was not started yet, where it is high; return whether it may start.

    Raises:
        PlannerError: There are more cycles than can be kept.
    """
    fresh = [price_of(view.captured, one) for one in scenarios if SIMULATIONS.find(_key(view, one)) is None]
    if max((price.cycles for price in fresh), default=0) > MOST_CYCLES:
        raise PlannerError(
            f"A page can simulate at most {MOST_CYCLES:,} cycles.",
            remedy="Use fewer cycles, or run the command `plan`, which has no limit.",
        )
    text = price_text(fresh)
    if not text or keys <= _CONFIRMED.get():
        return True
    st.info(f"{text} for this server.", icon=":material/hourglass_top:")
    button("Run", "play_arrow", lambda: _CONFIRMED.put(_CONFIRMED.get() | keys))
    return False


def run(view: state.Current, *scenarios: Scenario, names: Sequence[str] = ()) -> list[Outcome] | None:
    """Return the outcomes of scenarios; None while they are computed, or after a failure, which is shown.

    What the session waited for before stops, unless another one waits for it.

    Args:
        view: The snapshot in view.
        scenarios: What to run. The names that they have do not matter: outcomes have none.
        names: What to call them while others are still computed; none to summarise none of them before the end.
    """
    with kept_place():
        return _run(view, scenarios, names)


def _run(view: state.Current, scenarios: Sequence[Scenario], names: Sequence[str]) -> list[Outcome] | None:
    keys = frozenset(_key(view, scenario) for scenario in scenarios)
    SIMULATIONS.leave_others(watcher(), keys)
    if _STOPPED.get() & keys:
        st.warning("Simulation stopped. Change the scenario, or run it again.", icon=":material/stop_circle:")
        button("Run again", "play_arrow", lambda: _STOPPED.put(frozenset()))
        return None
    if not _is_confirmed(view, scenarios, keys):
        return None
    asked = [ask(view, scenario, watcher()) for scenario in scenarios]
    SIMULATIONS.wait(*asked)
    for task in asked:
        if task.error is not None:
            show_error(_as_planner_error(task.error))
            return None
    outcomes = [task.result for task in asked if task.result is not None]
    if len(outcomes) == len(asked):
        return outcomes
    _watch(asked, sum(scenario.cycles for scenario in scenarios), keys, names)
    return None
