"""The part of the page *Namespaces* that looks at the weeks of a history: a form, a job, and its table.

The job is the command `bundles --history` in a process of its own, so that Spark and its Java live only as long as it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Final

import pandas as pd
import streamlit as st

from planner.cluster.errors import ReplayError
from planner.cluster.moments import iso_moment
from planner.cluster.resources import process_environment
from planner.cluster.text import count, plain
from planner.replay import jobs
from planner.replay.runner import Runner
from planner.web.session import SessionValue
from planner.web.task import Progress, Report, Stopped
from planner.web.tasks import ANSWERS, WAITS, watch, watcher
from planner.web.widgets import note_list, table
from planner.weeks.run import MOST_MOMENTS, MOST_WEEKS
from planner.weeks.spec import HORIZON_WEEKS, Weeks

_RUNNERS: Final[Mapping[str, Runner]] = {"Spark": "spark", "Processes of this machine": "processes"}
_LOOK_S: Final = 0.2
_DONE: Final = re.compile(r"([0-9,]+) of ([0-9,]+) tasks done")
_ASKED: Final[SessionValue[Weeks | None]] = SessionValue("asked_weeks", lambda: None)
"""What was asked for last; None before."""
_COLUMNS: Final = {
    "cluster": "cluster",
    "namespace": "namespace",
    "sentence": "what to do",
    "bundles": "bundles",
    "even_bundles": "even with",
    "recommended_bundles": "if recreated",
    "new_cuts": "cuts",
    "cuts_hold": "cuts hold at",
    "growth_percent_per_week": "growth per week (%)",
    "split_due_weeks": "next split (weeks)",
    "later_bundles": "if recreated, later",
    "is_lasting": "advice lasts",
    "horizon_weeks": "weeks ahead",
    "outlook": "outlook",
    "moments": "moments",
    "largest_percent": "largest bundle (%)",
    "placed_percent": "busiest broker (%)",
    "topics": "topics",
    "brokers": "brokers",
    "busiest": "busiest moment",
}
"""Columns of the table, by the fields of `planner.weeks.advice.WeekRow`."""


@dataclass(frozen=True, slots=True)
class WeekTable:
    """What a job came to.

    Attributes:
        frame: A row for each namespace, as `_COLUMNS` names it; what changes something first.
        cut: Namespaces that are to be cut.
        notes: Why tasks failed, and what is left out.
    """

    frame: pd.DataFrame
    cut: int
    notes: tuple[str, ...]


def weeks_part() -> None:
    """Draw the form, how far the job is, and its table.

    Raises:
        PlannerError: The folder of histories cannot be read.
    """
    places = {name: place for name, place in jobs.histories().items() if any(place.glob("cluster=*/day=*"))}
    if not places:
        st.caption("A history shows whether advice holds at other times. This server has none yet; record one with:")
        st.code(jobs.watch_command("mine"), language=None, wrap_lines=True)
        return
    with st.form("weeks", border=True):
        left, middle, ahead, right = st.columns([3, 1, 1, 2])
        name = left.selectbox("History", list(places), format_func=lambda one: places[one].resolve().name)
        moments = middle.number_input("Moments per day", 1, MOST_MOMENTS, 4)
        weeks = ahead.number_input("Weeks ahead", 1, MOST_WEEKS, HORIZON_WEEKS)
        runner = right.selectbox("Where", list(_RUNNERS))
        if st.form_submit_button("Advise on all namespaces", type="primary", icon=":material/date_range:") and name:
            place = places[name].absolute()
            wanted = Weeks(
                history=place, moments_per_day=int(moments), horizon_weeks=int(weeks), runner=_RUNNERS[runner]
            )
            ANSWERS.forget(_key(wanted))  # the history may have grown
            _ASKED.put(wanted)
    if (asked := _ASKED.get()) is not None:
        found = _found(asked)
        if found is not None:
            _draw(found)


def _key(asked: Weeks) -> str:
    return f"weeks {asked!r}"


def _found(asked: Weeks) -> WeekTable | None:
    """Return what a job came to; None while it runs.

    Raises:
        PlannerError: It failed.
    """
    task = ANSWERS.ask(_key(asked), lambda report, stopped: _run(asked, report, stopped), watcher())
    ANSWERS.wait(task)
    if task.finished.is_set():
        return task.value()

    def say() -> None:
        st.caption(f"{WAITS} {task.state[0].words or 'Starting'} …")

    watch(ANSWERS, (task,), say)
    return None


def _run(asked: Weeks, report: Report, stopped: Stopped) -> WeekTable:
    """Run the command to its end, or until it is to stop.

    Raises:
        ReplayError: It failed.
    """
    report(Progress(words="Starting Spark" if asked.runner == "spark" else "Starting"))
    with tempfile.TemporaryFile() as out, _started(asked, out) as process:
        said: list[str] = []
        errors = process.stderr
        reader = threading.Thread(target=lambda: _listen(errors, said, report), daemon=True)
        reader.start()
        while process.poll() is None and not stopped():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
        if process.poll() is None:
            return WeekTable(pd.DataFrame(columns=list(_COLUMNS.values())), 0, ())
        reader.join(_LOOK_S)
        out.seek(0)
        text = out.read()
    if process.returncode not in {0, 1} or not text:
        last = next((line for line in reversed(said) if line.startswith("error: ")), "error: It ended without a word.")
        raise ReplayError(last.removeprefix("error: ")[:300], remedy="Choose another history, or try again.")
    content = json.loads(text)
    rows = content["weeks"]
    frame = pd.DataFrame(rows)
    whole = ["split_due_weeks", "later_bundles", "horizon_weeks"]
    frame = frame.astype({**dict.fromkeys(whole, "Int64"), "growth_percent_per_week": float, "is_lasting": "boolean"})
    frame["busiest"] = [iso_moment(at) for at in frame["busiest_ms"]]
    return WeekTable(
        frame[list(_COLUMNS)].rename(columns=_COLUMNS),
        sum(row["is_steady"] for row in rows),
        tuple(content["notes"]),
    )


def _listen(errors: IO[str] | None, said: list[str], report: Report) -> None:
    """Take what the command says: how far it is, and what is wrong."""
    for line in errors or ():
        if found := _DONE.match(line):
            done, every = (int(text.replace(",", "")) for text in found.groups())
            report(Progress(done, every, f"Advising: {done:,} of {count(every, 'task')}"))
        else:
            said.append(line.strip())


@contextmanager
def _started(asked: Weeks, out: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    """Start the command, and end it with all that it started."""
    words = ["--history", str(asked.history), "--moments-per-day", str(asked.moments_per_day)]
    words += ["--horizon-weeks", str(asked.horizon_weeks), "--runner", asked.runner]
    with subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "planner", "bundles", *words, "--json"],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=process_environment(),
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _draw(found: WeekTable) -> None:
    """Draw the table, and what is to be done first."""
    frame = found.frame
    if frame.empty:
        st.caption("The job was stopped.")
        return
    clusters = frame["cluster"].nunique()
    st.markdown(
        f"**{count(len(frame), 'namespace')} of {count(clusters, 'cluster')}; {found.cut:,} to cut.** Cuts are"
        " recommended where they help at the busiest moment and bring at least half of what any cuts could at all"
        " others. Shares are those of the worst moment."
    )
    table(
        frame,
        "weeks",
        formats={"largest bundle (%)": "%.1f", "busiest broker (%)": "%.1f", "growth per week (%)": "%+.1f"},
        widths={"what to do": 420, "outlook": 420},
        height=320,
    )
    note_list(tuple(plain(note) for note in found.notes))
