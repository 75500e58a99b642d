"""Replay: a history under other strategies and settings; a form, the jobs there are, and what one came to."""

from functools import partial
from typing import Any, Final, cast, get_args

import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.text import count, moment, period, plain, rounded
from planner.cluster.units import MIB
from planner.figures.simulation import MOST_CURVES, curves_over_days
from planner.replay import jobs
from planner.replay.jobs import Status, StoredJob, log_tail, read_status, results_folder
from planner.replay.queries import CURVES, SCENARIO_MEASURES, Curve, ReplayResults
from planner.replay.results import result_files
from planner.web import address, registry
from planner.web.names import BROKERS
from planner.web.page import Page, Subject
from planner.web.replay_form import draw_form, duration
from planner.web.widgets import button, chart, show_error, show_refused, table

_FIRST: Final = (
    "mean_std_percent",
    "peak_usage_percent",
    "overloaded_broker_min",
    "shed",
    "topics_disconnected",
    "thrashing_percent",
    "returned_bundles",
    "splits",
)
"""The measures shown first; the others unfold."""
_LOOK_S: Final = 2.0
_COMPACT: Final = 1e4
_COLUMNS: Final = {
    "cluster": "cluster",
    "at_ms": "when (UTC)",
    "kind": "what",
    "bundle": "bundle",
    "source": "from",
    "destination": "to",
    "msg_rate_per_s": "msg/s",
    "throughput_bytes_per_s": "MiB/s",
    "topics": "topics",
    "producers": "producers",
    "consumers": "consumers",
    "why": "why",
}


def job_rows(found: list[StoredJob]) -> pd.DataFrame:
    """Return one row for each job."""
    rows = []
    for stored in found:
        status, job = stored.status, stored.job
        took_ms = status.ended_ms - status.started_ms
        rows.append(
            {
                "name": (job.name if job is not None else "") or "unnamed",
                "state": status.state,
                "tasks": f"{status.done:,} of {status.tasks:,}",
                "scenarios": len(job.scenarios) if job is not None else 0,
                "history": job.history.rpartition("/")[2] if job is not None else "",
                "submitted": moment(status.submitted_ms),
                "took": duration(took_ms / 1000) if took_ms >= 0 < status.started_ms else "",
                "job": stored.name,
            }
        )
    return pd.DataFrame(rows)


def _list(chosen: str) -> None:
    """Draw the jobs; while one is running, redraw them every few seconds."""
    busy = any(not stored.status.ended for stored in jobs.list_jobs())
    st.fragment(_jobs, run_every=_LOOK_S if busy else None)(chosen)


def _jobs(chosen: str) -> None:
    found = jobs.list_jobs()
    st.header("Jobs")
    if not found:
        st.caption("No jobs yet. Jobs run one after the other, and continue when this page or its server is closed.")
        return
    # With another job in view the selection begins anew, so that any row can be selected.
    table(job_rows(found), "jobs", key=f"jobs-{chosen}", pick=lambda row: address.replace(job=found[row].name))


# A job


def _progress(status: Status) -> None:
    share = status.done / status.tasks if status.tasks else 0.0
    text = f"{status.stage}: {status.done:,} of {count(status.tasks, 'task')}"
    if status.rate_per_min > 0 and status.remaining_s is not None:
        text += f" · {status.rate_per_min:,.1f} per minute · about {duration(status.remaining_s)} left"
    st.progress(min(share, 1.0), text)
    notes = []
    if status.where:
        notes.append(f"Runs on {status.where}.")
    if status.kept:
        notes.append(f"{count(status.kept, 'task')} finished in an earlier run.")
    if status.failed:
        notes.append(f"{count(status.failed, 'task')} failed; see the log.")
    if notes:
        st.caption(" ".join(notes))


@st.fragment(run_every=1.0)
def _watch(stored: StoredJob) -> None:
    """Show how far a job is until it has ended; then draw the page again."""
    status = read_status(stored.folder)
    if status.ended:
        st.rerun()
    _progress(status)
    show_refused()
    button("Cancel", "stop_circle", partial(jobs.ask_to_cancel, stored), key="cancel-job")
    _log(stored)


def _log(stored: StoredJob) -> None:
    with st.expander("Log", icon=":material/notes:"):
        st.code(log_tail(stored.folder) or "The log is empty.", language=None, wrap_lines=True)


def _ended(stored: StoredJob) -> None:
    """Show how a job ended, and what can be done with it."""
    status = stored.status
    if status.what and status.state == "cancelled":
        st.info(f"{plain(status.what)} {plain(status.remedy)}", icon=":material/stop_circle:")
    elif status.what:
        show_error(PlannerError(status.what, remedy=status.remedy))
    if status.state == "done":
        took = duration((status.ended_ms - status.started_ms) / 1000)
        st.success(
            f"{count(status.done, 'task')} in {took} on {status.where or 'this machine'} · digest"
            f" `{status.digest[:12]}`",
            icon=":material/check_circle:",
        )
    left, right, more = st.columns([1, 1, 3], vertical_alignment="center")
    complete = status.state == "done" and not status.failed
    idle = complete or stored.job is None
    button("Retry", "refresh", partial(jobs.retry, stored), place=left, disabled=idle, width="stretch")
    if right.button("Delete", icon=":material/delete:", width="stretch"):
        _confirm_delete(stored)
    if status.done > status.failed:
        with more:
            registry.link("advisor", "Open in Advisor", job=stored.name)
    _log(stored)


@st.dialog("Delete this job?")
def _confirm_delete(stored: StoredJob) -> None:
    st.markdown("This also deletes its results. The history stays.")
    if st.button("Delete", type="primary", icon=":material/delete:", key="confirm-delete-job"):
        try:
            jobs.delete(stored)
        except PlannerError as error:
            show_error(error)
            return
        address.replace()
        st.rerun()


def _job(stored: StoredJob) -> None:
    job = stored.job
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    left.header(plain((job.name if job is not None else "") or f"Replay {stored.name}"))
    button("New replay", "add", address.replace, place=right, width="stretch")
    if job is not None:
        days = period(job.first_day, job.last_day)
        st.caption(
            f"{count(len(job.scenarios), 'scenario')} · {plain(', '.join(job.clusters))} · {days} ·"
            f" submitted {moment(stored.status.submitted_ms)} · {stored.name}"
        )
    if stored.status.ended:
        _ended(stored)
    else:
        _watch(stored)
    _results(stored)


# What it came to


def scenario_frame(results: ReplayResults, order: list[str]) -> pd.DataFrame:
    """Return one row for each scenario, in the order of the job, with its measures under their labels."""
    found: pd.DataFrame = results.scenarios().to_pandas().set_index("scenario")
    frame = found.loc[[name for name in order if name in found.index]].reset_index()
    first = [m for name in _FIRST for m in SCENARIO_MEASURES if m.name == name]
    others = [m for m in SCENARIO_MEASURES if m.name not in _FIRST]
    labels = {m.name: f"{m.label}{f' ({m.unit})' if m.unit else ''}" for m in (*first, *others)}
    return frame[["scenario", "days", "cycles", *labels]].rename(columns=labels)


def _results(stored: StoredJob) -> None:
    results = ReplayResults(result_files(results_folder(stored.folder)))
    if results.empty or stored.job is None:
        return
    order = [scenario.name for scenario in stored.job.scenarios]
    frame = scenario_frame(results, order)
    if frame.empty:
        return
    st.header("Scenarios" if stored.status.state == "done" else "Scenarios so far")
    if stored.status.state != "done":
        st.caption(
            "Some tasks are still running, so the scenarios cover different days. Reload the page to update the"
            " numbers."
        )
    formats = {name: "compact" if frame[name].max() >= _COMPACT else "%.4g" for name in frame.columns[3:]}
    table(frame, f"scenarios-{stored.name}", formats=formats)
    st.caption(
        "Counts are sums over all days and clusters, peaks are maximums, headroom is the minimum, and all other"
        " values are means over the days. Click a column to sort."
    )
    names = list(frame["scenario"])
    _curves(results, names, stored.name)
    _moves(results, names, stored.name)


def _curves(results: ReplayResults, names: list[str], key: str) -> None:
    st.header("Over time")
    curves_by_name = {name: CURVES[name] for name in get_args(Curve)}
    which = cast("Curve", address.choice("curve", "Curve", curves_by_name, "std", segments=True))
    clusters = results.clusters()
    left, right = st.columns([3, 1])
    with left:
        chosen = st.multiselect(
            "Scenarios", names, names[:MOST_CURVES], max_selections=MOST_CURVES, key=f"curves-of-{key}"
        )
    with right:
        cluster = st.selectbox(
            "Cluster",
            ["", *clusters],
            format_func=lambda c: c or f"all {len(clusters)}",
            key=f"cluster-{key}",
            disabled=len(clusters) == 1,
        )
    if not chosen:
        st.info("Choose a scenario.", icon=":material/show_chart:")
        return
    found = dict(list(results.curves(which, chosen, cluster or "").to_pandas().groupby("scenario")))
    curves = {n: (found[n]["at_ms"].tolist(), found[n]["value"].tolist()) for n in chosen if n in found}
    if not curves:
        st.info("These scenarios have no data for this cluster.", icon=":material/show_chart:")
        return
    means = {name: sum(values) / len(values) for name, (_, values) in curves.items()}
    if which == "shed":
        means = {name: values[-1] for name, (_, values) in curves.items()}
    lowest = min(means, key=lambda name: means[name])
    when = "At the end" if which == "shed" else "On average"
    summary = (
        f"{CURVES[which]} over time (UTC). {when}, **{plain(lowest)}** has the lowest value: {rounded(means[lowest])}."
    )
    chart(curves_over_days(curves, CURVES[which]), summary, "replay-curves", about=which)


def _moves(results: ReplayResults, names: list[str], key: str) -> None:
    st.header("What happened")
    left, middle, right = st.columns([2, 1, 1])
    with left:
        scenario = st.selectbox("Scenario", names, key=f"moves-of-{key}") or names[0]
    kinds = results.kinds(scenario)
    with middle:
        kind = st.selectbox(
            "What",
            ["", *kinds],
            format_func=lambda k: f"{k.replace('_', ' ')} ({kinds[k]:,})" if k else f"all ({sum(kinds.values()):,})",
            key=f"kind-{key}-{scenario}",
        )
    with right:
        text = st.text_input("Bundle or broker", max_chars=200, placeholder="part of a name", key=f"text-{key}")
    found = results.moves(scenario, kind=kind or "", text=text.strip()).to_pandas()
    if found.empty:
        st.caption("No event matches this text." if text.strip() else "No events.")
        return
    found["kind"] = found["kind"].str.replace("_", " ")
    found["at_ms"] = [moment(at).removesuffix(" UTC") for at in found["at_ms"]]
    found["throughput_bytes_per_s"] /= MIB
    BROKERS.put(tuple(sorted({*found["source"], *found["destination"]} - {"", None})))
    hidden = ("cluster",) if len(set(found["cluster"])) == 1 else ()
    table(found[list(_COLUMNS)].rename(columns=_COLUMNS), f"moves-{key}", height=380, hidden=hidden)
    total = kinds[kind] if kind else sum(kinds.values())
    if len(found) < total and not text.strip():
        st.caption(f"Showing the first {len(found):,} of {total:,}. Search for a bundle or broker to see others.")


def draw(_: Any) -> None:
    """Draw the page."""
    name = address.part("job")
    try:
        if name:
            _job(jobs.open_job(name))
        else:
            draw_form()
    except PlannerError as error:
        show_error(error)
        if name:
            button("New replay", "add", address.replace, key="new-after-error")
    _list(name)


PAGE = Page(
    title="Replay",
    icon=":material/replay:",
    purpose="Run a recorded history again under other strategies and settings, and compare the results.",
    draw=draw,
    subject=Subject.NOTHING,
)
