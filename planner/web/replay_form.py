"""The form of the Replay page: which history, which scenarios, what it will take, and where it runs."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import Snapshot
from planner.history.manifest import complete_days
from planner.pulsar.shedding.registry import SHEDDERS
from planner.replay import jobs
from planner.replay.estimate import Estimate, Pace, estimate, measure_pace
from planner.replay.grid import Grid, first_snapshot, scenarios_of, values_of
from planner.replay.runners import cores
from planner.replay.spec import Job, Runner, job_from_json, job_to_json, tasks_of
from planner.simulate.scenario import Scenario
from planner.spark.session import spark_place
from planner.web import scenarios, state
from planner.web.setting_form import written
from planner.web.text import count
from planner.web.widgets import plain, show_error

_SAMPLE: Final = "sample"
_SAMPLE_ARGUMENTS: Final = (
    *("--brokers", "5", "--bundles", "80", "--topic-count", "400", "--msg-rate-per-s", "60000", "--cluster", "sample"),
    *("--ownership-skew", "0.5", "--days", "2", "--interval-s", "300", "--workers", "1"),
)
_RUNNERS: Final[dict[Runner, str]] = {"spark": "Spark", "processes": "Processes", "local": "One process"}
"""The first is taken unless another is chosen."""
_MOST_SETTINGS: Final = 4
_INTERVAL: Final = "loadBalancerSheddingIntervalMinutes"
_SPARK_START_S: Final = 15
_POOL_START_S: Final = 3


@dataclass(frozen=True, slots=True)
class Covered:
    """What a history holds of a cluster.

    Attributes:
        days: Its complete days in order, `yyyy-mm-dd`.
        moments: How many snapshots.
        rows: How many rows of bundles.
    """

    days: tuple[str, ...]
    moments: int
    rows: int


@st.cache_data(ttl=5, show_spinner=False)
def _covered(root: str, name: str) -> dict[str, Covered]:
    found: dict[str, Covered] = {}
    for day in complete_days(Path(root) / name):
        manifest = day.manifest
        known = found.get(manifest.cluster, Covered((), 0, 0))
        rows = day.rows("bundles")
        found[manifest.cluster] = Covered(
            tuple(sorted((*known.days, manifest.day))), known.moments + manifest.moments, known.rows + rows
        )
    return found


def histories() -> list[str]:
    """Return the names of the histories of this server; no other folder can be replayed from a browser."""
    root = jobs.histories_root()
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if path.is_dir() and any(path.glob("cluster=*/day=*")))


def _make_sample() -> None:
    """Generate a small history in a process of its own, and put it in place when it is complete."""
    root = jobs.histories_root()
    fresh, final = root / f".{_SAMPLE}", root / _SAMPLE
    command = [sys.executable, "-m", "planner", "history", "generate", "--out", str(fresh.resolve())]
    package = Path(jobs.__file__).resolve().parents[2]
    try:
        root.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        done = subprocess.run(  # noqa: S603 - our own module
            [*command, *_SAMPLE_ARGUMENTS], cwd=package, capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["?"]
            raise PlannerError(f"The sample cannot be made: {said[-1][:200]}", remedy="Free some room, and try again.")
        if not final.exists():
            fresh.rename(final)
    except OSError as error:
        raise PlannerError(
            f"The sample cannot be written: {error.strerror}.",
            where=root.name,
            remedy="Free some room, or let PLANNER_HISTORIES name another folder.",
        ) from error


def _no_history() -> None:
    st.info(
        "There is no history yet. Make one of your recordings with `python -m planner history ingest`, in the folder"
        f" `{jobs.histories_root().name}` beside the workspace, or begin with a small generated one.",
        icon=":material/history:",
    )
    if st.button("Make a small sample history", icon=":material/auto_awesome:"):
        try:
            with st.spinner("Generating two days of a small cluster …"):
                _make_sample()
        except PlannerError as error:
            show_error(error)
            return
        st.rerun()


# What is chosen


def _option(name: str, options: list[str], default: str) -> str:
    asked = state.param(name)
    return asked if asked in options else default


def _time(history: str) -> tuple[dict[str, Covered], tuple[str, ...], str, str, int] | None:
    """Draw which clusters and days; None while nothing is chosen."""
    covered = _covered(str(jobs.histories_root()), history)
    names = sorted(covered)
    asked = [name for name in state.param("clusters").split(",") if name in names]
    left, middle, right = st.columns([2, 2, 2])
    with left:
        chosen = st.multiselect("Clusters", names, asked or names, key=f"clusters-{history}")
    days = sorted({day for name in chosen for day in covered[name].days})
    if not chosen or not days:
        st.info("Choose a cluster.", icon=":material/dns:")
        return None
    with middle:
        first, last = days[0], days[-1]
        if len(days) > 1:
            begin = (_option("first", days, days[0]), _option("last", days, days[-1]))
            ends = begin if begin[0] <= begin[1] else (days[0], days[-1])
            first, last = st.select_slider("Days (UTC)", days, ends, key=f"days-{history}-{len(days)}")
        else:
            st.selectbox("Days (UTC)", days)
    with right:
        whole = st.selectbox(
            "Each task",
            ["a day", "all days"],
            1 if state.param("task") == "all" else 0,
            key="replay-task",
            help="A task of a day begins with who served what in the history at midnight, so that days can be replayed"
            " at once. One over all days goes on where the day before ended.",
        )
    state.set_params(
        clusters="" if len(chosen) == len(names) else ",".join(chosen),
        first="" if first == days[0] else first,
        last="" if last == days[-1] else last,
        task="all" if whole == "all days" else "",
    )
    return covered, tuple(chosen), first, last, 0 if whole == "all days" else 1


def _base() -> Scenario:
    """Draw whether the open What-if scenario is the base."""
    try:
        view = state.current() if state.param("snapshot") or st.session_state.get("selected_digest") else None
    except PlannerError:
        view = None
    present = scenarios.history(view).present if view is not None else Scenario()
    if present == Scenario():
        return Scenario()
    parts = [count(len(present.edits), "edit"), count(len(present.settings), "setting")]
    name = present.name or "without a name"
    use = st.toggle(
        f"Start from the open What-if scenario ({', '.join(parts)})",
        value=False,
        help=f"{name}: its edits and settings apply to every scenario of the replay. Edits name brokers and bundles"
        " of its snapshot; where the history does not have them, tasks fail and say so.",
    )
    return present if use else Scenario()


def _grid(snapshot: Snapshot) -> Grid | None:
    """Draw strategies and values of settings; None while a value is wrong."""
    base = _base()
    names = [shedder.name for shedder in SHEDDERS]
    asked = [name for name in state.param("strategies").split(",") if name in names]
    left, right = st.columns(2)
    with left:
        strategies = st.multiselect(
            "Shedding strategies",
            names,
            asked,
            key="replay-strategies",
            placeholder="the one in force",
            help="Each comes with the load manager and placement that it needs.",
        )
    known = _axes(state.param("grid"))
    offered = [s.name for s in REFERENCE.settings.values() if s.group == "load balancer" and s.kind != "names"]
    with right:
        chosen = st.multiselect(
            "Settings to vary",
            offered,
            list(known),
            key="replay-settings",
            max_selections=_MOST_SETTINGS,
            placeholder="none",
        )
    settings: dict[str, tuple[object, ...]] = {}
    good = True
    for column, name in zip(st.columns(max(len(chosen), 1)), chosen, strict=False):
        setting = REFERENCE.settings[name]
        with column:
            text = st.text_input(
                f"{name}{f' ({setting.unit})' if setting.unit else ''}",
                known.get(name) or _suggested(name, snapshot),
                max_chars=200,
                key=f"values-{name}",
                help=f"{setting.meaning} Values with commas in between. In force: {written(snapshot.settings[name])}.",
            )
        try:
            settings[name] = values_of(name, text)
        except PlannerError as error:
            show_error(error)
            good = False
    state.set_params(
        strategies=",".join(strategies),
        grid=";".join(f"{name}:{','.join(written(v) for v in values)}" for name, values in settings.items()),  # type: ignore[arg-type]
    )
    return Grid(base=base, strategies=tuple(strategies), settings=settings) if good else None


def _axes(text: str) -> dict[str, str]:
    """Read settings and values from the address."""
    pairs = [part.partition(":") for part in text.split(";")]
    found = {name: values for name, colon, values in pairs if colon and name in REFERENCE.settings}
    return dict(list(found.items())[:_MOST_SETTINGS])


def _suggested(name: str, snapshot: Snapshot) -> str:
    """Return values around the one in force."""
    setting, now = REFERENCE.settings[name], snapshot.settings[name]
    if setting.kind == "boolean":
        return "true, false"
    if isinstance(now, int | float) and now > 0:
        tried = [now / 2, now, now * 2]
        low = setting.minimum if setting.minimum is not None else 0
        high = setting.maximum if setting.maximum is not None else max(tried)
        kept = [value for value in tried if low <= value <= high]
        whole = setting.kind in {"int", "long"}
        return ", ".join(dict.fromkeys(f"{int(v)}" if whole else f"{v:g}" for v in kept))
    return ", ".join(setting.choices) or written(now)


def _where() -> tuple[Runner, int]:
    """Draw where it runs."""
    left, right = st.columns([3, 1])
    with left:
        asked, first = state.param("runner"), next(iter(_RUNNERS))
        runner = cast(
            "Runner",
            st.segmented_control(
                "Where it runs",
                list(_RUNNERS),
                default=asked if asked in _RUNNERS else first,
                format_func=_RUNNERS.__getitem__,
                key="replay-runner",
            )
            or first,
        )
    workers = 0
    if runner == "processes" or (runner == "spark" and spark_place().kind == "local"):
        with right:
            workers = int(
                st.number_input("At once", 1, 4 * cores(), cores(), help=f"This machine has {cores()} cores.")
            )
    state.set_params(runner="" if runner == first else runner)
    return runner, workers


# What it takes


@st.cache_data(max_entries=200, show_spinner="Measuring the first minutes …")
def _pace(job: str) -> Pace:
    return measure_pace(tasks_of(job_from_json(job))[0])


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
    return estimate(job, paces, snapshot.settings.integer(_INTERVAL))


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


def _say_where(runner: Runner, workers: int, found: Estimate) -> str:
    if runner == "local":
        return f"one process of this machine, about **{duration(found.seconds(1))}**"
    if runner == "processes":
        return f"{workers} processes of this machine, about **{duration(found.seconds(workers) + _POOL_START_S)}**"
    place = spark_place()
    if place.kind == "local":
        taken = duration(found.seconds(workers) + _SPARK_START_S)
        return f"{place.in_words} ({workers} at once), about **{taken}**"
    return f"{place.in_words}, **{duration(found.work_s)}** of processor time shared by its cores"


@st.cache_data(max_entries=500, show_spinner=False)
def _load_manager(root: str, cluster: str) -> str:
    return str(first_snapshot(Path(root), cluster).info.load_manager)


def _warn_of_managers(managers: Mapping[str, str]) -> None:
    """Say so when clusters differ in their load manager, by name."""
    if len(set(managers.values())) > 1:
        each = ", ".join(f"{plain(name)}: {manager}" for name, manager in managers.items())
        st.warning(
            f"These clusters run different load managers ({each}). A strategy that one of them cannot run is replaced"
            " there, as Pulsar does. Replay them apart to choose settings for each.",
            icon=":material/warning:",
        )


def draw_form() -> None:
    """Draw the form; what is submitted becomes the job in view."""
    names = histories()
    if not names:
        _no_history()
        return
    asked = state.param("history")
    history = st.selectbox("History", names, names.index(asked) if asked in names else 0, key="replay-history")
    try:
        state.set_params(history=history)
        time = _time(history)
        if time is None:
            return
        covered, clusters, first, last, days_per_task = time
        root = jobs.histories_root() / history
        snapshot = first_snapshot(root, clusters[0])
        moments, rows = (sum(getattr(covered[c], name) for c in clusters) for name in ("moments", "rows"))
        st.caption(f"{count(len(clusters), 'cluster')}, {moments:,} snapshots, {rows:,} rows of bundles in all.")
        _warn_of_managers({name: _load_manager(str(root), name) for name in clusters})
        grid = _grid(snapshot)
        if grid is None:
            return
        runner, workers = _where()
        job = Job(
            name=st.text_input("Name", max_chars=100, placeholder="what this replay is to find out"),
            history=str(root.resolve()),
            clusters=clusters,
            first_day=first,
            last_day=last,
            days_per_task=days_per_task,
            scenarios=scenarios_of(grid, snapshot),
            runner=runner,
            workers=workers,
        )
        found = _estimate(job, snapshot)
        st.markdown(
            f"**{count(len(job.scenarios), 'scenario')}, {count(found.tasks, 'task')}**: {found.cycles:,} cycles over"
            f" {found.rows:,} rows. Runs on {_say_where(runner, workers, found)}, by the first minutes measured here."
        )
        if st.button("Replay", type="primary", icon=":material/play_arrow:"):
            stored = jobs.submit(job)
            st.query_params.clear()
            state.set_params(job=stored.name)
            st.rerun()
    except PlannerError as error:
        show_error(error)
