"""The form of the Replay page: which history, which scenarios, what it will take, and where it runs."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, cast

import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.names import LOAD_BALANCER_ENABLED, SHEDDING_INTERVAL_MINUTES
from planner.cluster.releases import REFERENCE, RELEASES, release
from planner.cluster.resources import import_root
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, plain
from planner.history.manifest import complete_days
from planner.history.passed_over import passed_over
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.shedding.registry import SHEDDERS, offered_shedders
from planner.replay import jobs
from planner.replay.estimate import Estimate, Pace, estimate, measure_pace
from planner.replay.grid import Grid, first_snapshot, scenarios_of, values_of
from planner.replay.runner import Runner
from planner.replay.spec import Job, job_from_json, job_to_json, tasks_of
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import WITH_A_STRATEGY, obstacle, with_obstacle
from planner.spark.runners import cores
from planner.spark.session import spark_place
from planner.web import address, scenario_history, state
from planner.web.session import bound
from planner.web.widgets import show_notes

_SAMPLE: Final = "sample"
_SAMPLE_ARGUMENTS: Final = (
    *("--brokers", "5", "--bundles", "80", "--topic-count", "400", "--msg-rate-per-s", "60000", "--cluster", "sample"),
    *("--ownership-skew", "0.5", "--days", "2", "--interval-s", "300", "--workers", "1"),
)
_RUNNERS: Final[dict[Runner, str]] = {"spark": "Spark", "processes": "Processes", "local": "One process"}
"""The first is taken unless another is chosen or the work is small."""
_MOST_SETTINGS: Final = 4
_SMALL_S: Final = 120.0
"""Work of each core up to which a pool of processes is offered first, s."""


@st.cache_data(ttl=5, show_spinner=False)
def _covered(root: str, name: str) -> pd.DataFrame:
    """Return one row for each complete day of each cluster of a history: its snapshots, and their rows of bundles."""
    days = complete_days(Path(root) / name)
    rows = [(day.manifest.cluster, day.manifest.day, day.manifest.moments, day.rows("bundles")) for day in days]
    return pd.DataFrame(rows, columns=["cluster", "day", "moments", "rows"])


@st.cache_data(ttl=5, show_spinner=False)
def _passed_over(root: str, name: str) -> list[str]:
    return passed_over(Path(root) / name)


def histories() -> dict[str, str]:
    """Return what the histories of this server are called, by name; no other folder can be replayed from a browser."""
    found = {name: place for name, place in jobs.histories().items() if any(place.glob("cluster=*/day=*"))}
    return {name: place.resolve().name if name == "." else name for name, place in found.items()}


def _make_sample() -> None:
    """Generate a small history in a process of its own, and put it in place when it is complete."""
    root = jobs.histories_root()
    fresh, final = root / f".{_SAMPLE}", root / _SAMPLE
    command = [sys.executable, "-m", "planner", "history", "generate", "--out", str(fresh.resolve())]
    try:
        root.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        done = subprocess.run(  # noqa: S603 - our own module
            [*command, *_SAMPLE_ARGUMENTS], cwd=import_root(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["?"]
            raise PlannerError(
                f"Cannot generate the sample: {said[-1][:200]}", remedy="Free some disk space, then try again."
            )
        if not final.exists():
            fresh.rename(final)
    except OSError as error:
        raise PlannerError(
            f"Cannot write the sample: {error.strerror}.",
            where=root.name,
            remedy="Free some disk space, or set PLANNER_HISTORIES to another folder.",
        ) from error


def _no_history() -> None:
    root = jobs.histories_root().absolute()
    st.info(
        "No history in this server's folder of histories. Record a running cluster, or turn your recordings into a"
        " history; or start with a small generated sample.",
        icon=":material/history:",
    )
    st.code(
        f"python -m planner history ingest RECORDINGS --out {shlex.quote(str(root / 'mine'))}",
        language=None,
        wrap_lines=True,
    )
    st.code(jobs.watch_command("mine"), language=None, wrap_lines=True)
    if st.button("Generate a small sample history", icon=":material/auto_awesome:"):
        with st.spinner("Generating two days of a small cluster …"):
            _make_sample()
        st.rerun()


# What is chosen


def _time(history: str) -> tuple[pd.DataFrame, tuple[str, ...], str, str, int] | None:
    """Draw which clusters and days, and return them with all days there are of them; None while nothing is chosen."""
    covered = _covered(str(jobs.histories_root()), history)
    show_notes(_passed_over(str(jobs.histories_root()), history), "Skipped folders")
    names = sorted(set(covered["cluster"]))
    left, begin, end, right = st.columns([2, 1, 1, 2])
    chosen = address.several("clusters", "Clusters", names, names, place=left)
    mine = covered[covered["cluster"].isin(chosen)]
    days = sorted(set(mine["day"]))
    if not days:
        st.info("Choose a cluster.", icon=":material/dns:")
        return None
    first = address.choice("first", "First day (UTC)", days, place=begin)
    last = address.choice("last", "Last day", [day for day in days if day >= first], days[-1], place=end)
    whole = address.choice(
        "task",
        "Days per task",
        {"day": "one day", "all": "all days"},
        place=right,
        help="With one day per task, each day starts with the owners recorded at midnight, so days run in parallel."
        " With all days in one task, each day continues where the previous one ended.",
    )
    return mine, chosen, first, last, 0 if whole == "all" else 1


def _base() -> Scenario:
    """Draw whether the open What-if scenario is the base."""
    try:
        view = state.current() if address.part("snapshot") or state.SELECTED.get() else None
    except PlannerError:
        view = None
    if view is None:
        return Scenario()
    present, as_it_is = scenario_history.present(view), scenario_history.as_captured(view)
    if present == as_it_is:
        return as_it_is
    parts = [count(len(present.edits), "edit"), count(len(present.settings), "setting")]
    name = present.name or "unnamed"
    use = st.toggle(
        f"Start from the open What-if scenario ({', '.join(parts)})",
        key="replay-base",
        help=f"{name}: its edits and settings apply to every scenario of the replay. Edits refer to brokers and"
        " bundles of its snapshot. If the history does not have them, tasks fail with an error.",
    )
    return present if use else as_it_is


def _grid(snapshot: Snapshot) -> Grid:
    """Draw strategies and values of settings.

    Raises:
        PlannerError: A value is wrong.
    """
    base, manager = _base(), snapshot.info.load_manager
    left, right = st.columns(2)
    strategies = address.several(
        "strategies",
        "Shedding strategies",
        {one.name: with_obstacle(one.name, obstacle(one, manager, snapshot.settings.release)) for one in SHEDDERS},
        () if _axes() else _rivals(snapshot),
        place=left,
        placeholder="current strategy",
        help="Each strategy runs with the load manager and placement that it requires.",
    )
    known = _axes()

    def choose(names: list[str]) -> None:
        now = _axes()
        _write_axes({name: now.get(name) or _suggested(name, snapshot) for name in names})
        if strategies:
            address.put(strategies=",".join(strategies))

    box = partial(
        right.multiselect,
        "Settings to vary",
        list(dict.fromkeys([*_offered(strategies, snapshot), *known])),
        max_selections=_MOST_SETTINGS,
        placeholder="none",
    )
    bound("replay-settings", list(known), box, choose)
    settings: dict[str, tuple[object, ...]] = {}
    for column, (name, values) in zip(st.columns(max(len(known), 1)), known.items(), strict=False):
        setting = REFERENCE.settings[name]
        label = f"{name}{f' ({setting.unit})' if setting.unit else ''}"
        help_ = f"{setting.meaning} Comma-separated values. Current value: {conf_value(snapshot.settings[name])}."
        field = partial(column.text_input, label, max_chars=200, help=help_)
        bound(f"values-{name}", values, field, partial(_vary, name), typed=True)
        settings[name] = values_of(name, values)
    own = release(snapshot.info.pulsar_version).name
    help_ = "Also replays each scenario under these releases, to show the effect of an upgrade."
    others = [name for name in RELEASES if name != own]
    releases = address.several("releases", "Also on other releases", others, placeholder=f"{own} alone", help=help_)
    chosen = tuple(release(name).name for name in releases)
    return Grid(base=base, strategies=strategies, settings=settings, releases=chosen)


def _rivals(snapshot: Snapshot) -> list[str]:
    """Return the other strategies of the load manager in force, so that a first replay compares something."""
    manager = snapshot.info.load_manager
    running, _ = effective_shedder(manager, snapshot.settings)
    return [one.name for one in offered_shedders(manager, snapshot.settings.release) if one is not running]


def _offered(strategies: Sequence[str], snapshot: Snapshot) -> list[str]:
    """Return the settings to vary: what the strategies read first, then other numbers, then what is on or off."""
    read = [name for shedder in SHEDDERS if shedder.name in strategies for name in shedder.settings]
    known = {
        s.name: s
        for s in snapshot.settings.release.settings.values()
        if s.group == "load balancer" and s.kind != "names" and s.name not in (*WITH_A_STRATEGY, LOAD_BALANCER_ENABLED)
    }
    rest = sorted(known, key=lambda name: known[name].kind in {"boolean", "text"})
    return list(dict.fromkeys([name for name in read if name in known] + rest))


def _vary(name: str, values: str) -> None:
    _write_axes({**_axes(), name: values})


def _write_axes(axes: dict[str, str]) -> None:
    """Write settings and their values into the address."""
    address.put(grid=";".join(f"{name}:{values.replace(', ', ',')}" for name, values in axes.items()))


def _axes() -> dict[str, str]:
    """Read settings and their values from the address."""
    pairs = [part.partition(":") for part in address.part("grid").split(";")]
    found = {name: values.replace(",", ", ") for name, colon, values in pairs if colon and name in REFERENCE.settings}
    return dict(list(found.items())[:_MOST_SETTINGS])


def _suggested(name: str, snapshot: Snapshot) -> str:
    """Return values around the one in force."""
    setting, now = REFERENCE.settings[name], snapshot.settings[name]
    if setting.kind == "boolean":
        return "true, false"
    if isinstance(now, int | float) and now > 0:
        tried = [now / 2, now, now * 2]
        low = setting.minimum if setting.minimum is not None else 0
        usual = 1.0 if setting.unit == "fraction" and now <= 1 else max(tried)
        high = setting.maximum if setting.maximum is not None else usual
        kept = [value for value in tried if low <= value <= high]
        whole = setting.kind in {"int", "long"}
        return ", ".join(dict.fromkeys(f"{int(v)}" if whole else f"{v:g}" for v in kept))
    return ", ".join(setting.choices) or conf_value(now)


def _where(work_s: float) -> tuple[Runner, int]:
    """Draw where it runs: small work on a local machine is done before Spark has started."""
    left, right = st.columns([3, 1])
    local = spark_place().kind == "local"
    small = local and work_s < _SMALL_S * cores() and "processes" in _RUNNERS
    usual = "processes" if small else next(iter(_RUNNERS))
    runner = cast("Runner", address.choice("runner", "Where it runs", _RUNNERS, usual, segments=True, place=left))
    workers = 0
    if runner == "processes" or (runner == "spark" and local):
        help_ = f"This machine has {cores()} cores."
        workers = address.number("workers", "Parallel tasks", cores(), 1, 4 * cores(), place=right, help=help_)
    return runner, workers


# What it takes


@st.cache_data(max_entries=200, show_spinner="Measuring the first minutes …")
def _pace(job: str) -> Pace:
    return measure_pace(tasks_of(job_from_json(job))[0])


@st.cache_data(scope="session", ttl=600, max_entries=50, show_spinner=False)
def _load(job: str) -> float:  # noqa: ARG001 - asked once for a job: a time that jumps with every key says nothing
    return os.getloadavg()[0]


def _estimate(job: Job, snapshot: Snapshot) -> Estimate:
    """Estimate a job by the first minutes of each of its clusters, under its first and its last scenario."""
    paces: dict[str, Pace] = {}
    for cluster in job.clusters[:3]:
        for scenario in {job.scenarios[0].name: job.scenarios[0], job.scenarios[-1].name: job.scenarios[-1]}.values():
            one = Job(
                name="",
                history=job.history,
                clusters=(cluster,),
                first_day=job.first_day,
                last_day=job.last_day,
                scenarios=(scenario,),
            )
            pace = _pace(job_to_json(one))
            if cluster not in paces or pace.cycle_s > paces[cluster].cycle_s:
                paces[cluster] = pace
    return estimate(job, paces, snapshot.settings.integer(SHEDDING_INTERVAL_MINUTES))


def duration(seconds: float) -> str:
    """Return a duration in two units at most, such as `1 h 20 min`."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - seconds of a minute
        return f"{whole} s"
    minutes = round(whole / 60)
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    days, left = divmod(hours, 24)
    return f"{days} d {left} h" if days else f"{hours} h {rest} min"


def _place_and_time(runner: Runner, workers: int, found: Estimate, load: float) -> str:
    place = spark_place()
    if runner == "spark" and place.kind != "local":
        return f"{place.in_words}, **{duration(found.work_s)}** of CPU time shared by its cores"
    least, most = map(duration, found.span_s(runner, workers or 1, cores(), load))
    taken = f"**{least} to {most}**" if least != most else f"about **{least}**"
    if runner == "local":
        return f"one process on this machine, {taken}"
    where = (
        f"{workers} processes on this machine" if runner == "processes" else f"{place.in_words} ({workers} in parallel)"
    )
    return f"{where}, {taken}"


@st.cache_data(max_entries=500, show_spinner=False)
def _load_manager(root: str, cluster: str) -> str:
    return str(first_snapshot(Path(root), cluster).info.load_manager)


def _warn_of_managers(managers: Mapping[str, str]) -> None:
    """Say so when clusters differ in their load manager, by name."""
    if len(set(managers.values())) > 1:
        each = ", ".join(f"{plain(name)}: {manager}" for name, manager in managers.items())
        st.warning(
            f"These clusters run different load managers ({each}). As in Pulsar, a strategy that a load manager"
            " cannot run is replaced. To choose settings for each cluster, replay them separately.",
            icon=":material/warning:",
        )


def draw_form() -> None:
    """Draw the form; what is submitted becomes the job in view."""
    names = histories()
    if not names:
        _no_history()
        return
    history = address.choice("history", "History", names, named=True, clears=("clusters", "first", "last"))
    time = _time(history)
    if time is None:
        return
    covered, clusters, first, last, days_per_task = time
    root = jobs.histories_root() / history
    snapshot = first_snapshot(root, clusters[0])
    moments, rows = covered[["moments", "rows"]].sum()
    st.caption(
        f"{count(len(clusters), 'cluster')}, {count(moments, 'snapshot')}, {count(rows, 'bundle row')} in total."
    )
    _warn_of_managers({name: _load_manager(str(root), name) for name in clusters})
    grid = _grid(snapshot)
    job = Job(
        name="",
        history=str(root.resolve()),
        clusters=clusters,
        first_day=first,
        last_day=last,
        days_per_task=days_per_task,
        scenarios=scenarios_of(grid, snapshot),
    )
    found, load = _estimate(job, snapshot), _load(job_to_json(job))
    runner, workers = _where(found.work_s)
    name = st.text_input("Name", max_chars=100, key="job-name", placeholder="purpose of this replay")
    job = replace(job, name=name, runner=runner, workers=workers)
    st.markdown(
        f"**{count(len(job.scenarios), 'scenario')}, {count(found.tasks, 'task')}**: {count(found.cycles, 'cycle')}"
        f" over {count(found.rows, 'row')}. Runs on {_place_and_time(runner, workers, found, load)}, estimated from"
        " the first minutes."
    )
    if st.button("Replay", type="primary", icon=":material/play_arrow:"):
        address.replace(job=jobs.submit(job).name)
        st.rerun()
