"""Advisor: settings chosen by evidence from replays, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from planner.advise.advice import COUNTED, Advice, Configured
from planner.advise.advice_text import (
    apply_script,
    compared_text,
    evidence_text,
    front_text,
    holdout_text,
    measure_rows,
    overload_left,
    settings_changed,
    verdict_text,
)
from planner.advise.advisor import advise
from planner.advise.material import Material, configured_of, fits, material_of, snapshot_of, usable
from planner.advise.objectives import OBJECTIVES, SIDES, Question, Side, objective_by_name, value_of
from planner.advise.search import Method, neighbours, propose, space_of, trials_of, widened
from planner.advise.verdict import Verdict, verdict_of
from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_SHEDDING_STRATEGY
from planner.cluster.text import count, moment, period, plain
from planner.figures.advisor import front_figure, holdout_figure, sensitivity_figure
from planner.pulsar.shedding.registry import offered_shedders
from planner.replay.jobs import StoredJob, list_jobs, open_job, submit
from planner.replay.spec import Job
from planner.simulate.scenario import Scenario
from planner.web import address, registry, scenario_history, state
from planner.web.page import Page, Subject, history_button
from planner.web.session import bound
from planner.web.widgets import chart, download, show_error, show_notes, table

_KNEE, _WEIGHT = "knee", "weight"
_RULES = {_KNEE: "Balanced choice", _WEIGHT: "My own weights"}
_OVERLOAD = objective_by_name("overload")
_MOST_FIGURES = 6
_BATCH = 8


# What is looked at


def _label(stored: StoredJob) -> str:
    job = stored.job
    if job is None:
        return stored.name
    days = period(job.first_day, job.last_day)
    parts = (job.name or "unnamed", count(len(job.scenarios), "scenario"), days)
    return " · ".join((*parts, moment(stored.status.submitted_ms)))


def _pick() -> tuple[StoredJob, ...]:
    """Draw the choice of a job, and of others over the same time; none when there is none."""
    asked = address.part("job")
    if asked:
        open_job(asked)
    jobs = {stored.name: stored for stored in list_jobs()}
    offered = {name: _label(stored) for name, stored in jobs.items() if usable(stored)}
    if not offered:
        st.info(
            "No finished replay yet. First replay a grid of settings over a history, including the current settings.",
            icon=":material/history:",
        )
        registry.link("replay", "Replay a history", icon=":material/play_circle:")
        return ()
    name = address.choice("job", "Replay", offered, named=True)
    return (jobs[name], *(jobs[one] for one in _beside(jobs[name], jobs, offered)))


def _beside(main: StoredJob, jobs: Mapping[str, StoredJob], offered: Mapping[str, str]) -> list[str]:
    """Draw the choice of others over the same time; those of the link that still run join when they are done."""
    ready = {name: label for name, label in offered.items() if name != main.name and _same_time(main, jobs[name])}
    waiting = [name for name, one in jobs.items() if not one.status.ended and _same_time(main, one)]
    linked = [name for name in address.part("with").split(",") if name in ready or name in waiting]
    chosen = [name for name in linked if name in ready]
    joining = [name for name in linked if name in waiting]
    address.put(**{"with": ",".join(linked)})

    def store(names: list[str]) -> None:
        address.put(**{"with": ",".join([*names, *joining])})

    if ready:
        help_ = "Combines replays of the same history, clusters and days."
        box = partial(st.multiselect, "Combine with", list(ready), format_func=ready.__getitem__, help=help_)
        bound("advisor-with", chosen, box, store)
    if waiting:
        st.caption(f"Not finished yet: {count(len(waiting), 'replay')} over the same days.")
    return chosen


def _same_time(one: StoredJob, other: StoredJob) -> bool:
    return one.job is not None and other.job is not None and fits(one.job, other.job)


@st.cache_resource(max_entries=8, show_spinner="Reading the results …", hash_funcs={StoredJob: lambda s: s.name})
def _material(stored: Sequence[StoredJob], ended_ms: tuple[int, ...]) -> Material:
    del ended_ms  # a job that was retried is read again
    return material_of(stored)


@st.cache_resource(max_entries=8, show_spinner="Reading the current settings …")
def _configured(name: str) -> Mapping[str, Configured]:
    job = open_job(name).job
    return configured_of(job) if job is not None else {}


@st.cache_resource(max_entries=16, show_spinner="Comparing …", hash_funcs={StoredJob: lambda s: s.name, Question: repr})
def _advice(stored: Sequence[StoredJob], ended_ms: tuple[int, ...], question: Question) -> Advice:
    material = _material(stored, ended_ms)
    return advise(material.rows, material.scenarios, question, _configured(stored[0].name))


# What counts


def _objectives(side: Side, default: Sequence[str]) -> tuple[str, ...]:
    offered = {one.name: one for one in OBJECTIVES if one.side == side}
    labels = {name: one.label for name, one in offered.items()}
    help_ = " ".join(f"{one.label}: {one.meaning}" for one in offered.values())
    return address.several(side, f"Objectives of {side}", labels, default, help=help_)


def _weight() -> float | None:
    """Draw the rule that recommends; a weight in the address means that it decides."""
    left, right = st.columns([2, 3], gap="large")

    def store(rule: str) -> None:
        address.put(weight="50" if rule == _WEIGHT else "")

    rule = _WEIGHT if address.part("weight") else _KNEE
    box = partial(
        left.segmented_control,
        "Recommend by",
        list(_RULES),
        format_func=_RULES.__getitem__,
        required=True,
        help="Settings with more overload than others are left out first. The balanced choice is the point of the"
        " Pareto front beyond which a small gain on one side costs a lot on the other. With your own weights, the"
        " advisor recommends the setting whose weighted worse side is best.",
    )
    bound("advisor-rule", rule, box, store)
    if rule == _KNEE:
        return None
    label = "Weight of balance, as opposed to disruption (%)"
    return address.number("weight", label, 50, 0, 100, step=5, slider=True, named=True, place=right) / 100


def _question() -> Question:
    """Draw what counts and how much; what differs from the usual goes into the address."""
    usual = Question()
    weight = _weight()
    with st.expander("Objectives", icon=":material/tune:"):
        left, right = st.columns(2, gap="large")
        with left:
            balance = _objectives("balance", usual.balance)
            help_ = "How much worse balance or disruption may become, in percent of its average over all settings."
            loss = address.number("loss", "Accepted loss (%)", usual.loss_percent, 0.0, 1000.0, help=help_)
        with right:
            disruption = _objectives("disruption", usual.disruption)
            share = round(usual.first_share * 100)
            help_ = "The advisor chooses settings on the first days and tests them on the remaining days."
            first = address.number("first", "Share of days for the choice (%)", share, 10, 90, slider=True, help=help_)
    return Question(balance=balance, disruption=disruption, weight=weight, loss_percent=loss, first_share=first / 100)


# What is found


def _days(advice: Advice, mark: str) -> pd.DataFrame:
    assert advice.evidence is not None  # noqa: S101 - asked only then
    return pd.DataFrame(
        [
            {
                "day": one.day,
                "cluster": one.cluster,
                "balance now": one.balance[0],
                f"balance {mark}": one.balance[1],
                "disruption now": one.disruption[0],
                f"disruption {mark}": one.disruption[1],
            }
            for one in advice.evidence.days
        ]
    )


def _verdict(advice: Advice, verdict: Verdict) -> None:
    """Say first what follows."""
    left = verdict.kind in {"keep", "recommended"} and bool(overload_left(advice))
    sure = verdict.kind == "recommended" or (verdict.kind == "keep" and not verdict.doubts and not left)
    say = st.success if sure else st.warning
    icon = ":material/check_circle:" if say is st.success else ":material/help:"
    say(f"**{plain(verdict_text(advice))}**", icon=icon)
    if verdict.kind == "nothing":
        registry.link("replay", "Replay more settings", icon=":material/play_circle:")
    if left:
        st.markdown(
            "Open a busy moment and choose *Fix it* on Overview, or try more settings under *Continue the search*."
        )
        history_button("busy-moment", "Open a busy moment")


def _recommendation(advice: Advice, configured: Mapping[str, Configured], verdict: Verdict) -> None:
    if verdict.kind == "keep":
        return
    st.header("Evidence")
    chosen = advice.candidate(advice.chosen).scenario
    for cluster, now in configured.items():
        changes = settings_changed(chosen, now, verdict.mark)
        if len(configured) > 1:
            st.markdown(f"**{plain(cluster)}**")
        if changes:
            table(pd.DataFrame(changes), f"advice-settings-{cluster}")
    if not configured:
        st.info("The history no longer exists, so the current settings are unknown.", icon=":material/info:")
    if advice.evidence is None:
        return
    for side in COUNTED:
        st.markdown(f"**{side.capitalize()}**: {evidence_text(advice.evidence, side)}")
    table(pd.DataFrame(measure_rows(advice.evidence, verdict.mark)), "advice-measures")
    with st.expander("Day by day (index, 100 = average of all days and settings)", icon=":material/calendar_month:"):
        table(_days(advice, verdict.mark), "advice-days")


def _sensitivity(advice: Advice) -> None:
    if not advice.sensitivity:
        return
    st.header("Range of each setting")
    st.caption(
        "A value is acceptable if no other setting is better in both balance and disruption, and if neither side"
        " becomes worse than the accepted loss. All other settings stay as chosen."
    )
    for found in advice.sensitivity:
        st.markdown(f"- {plain(found.sentence)}")
    tried = [found for found in advice.sensitivity if found.tried]
    for at in range(0, min(len(tried), _MOST_FIGURES), 2):
        for column, found in zip(st.columns(2), tried[at : at + 2], strict=False):
            with column:
                chart(sensitivity_figure(found), f"**{found.setting}**", f"sensitivity-{found.setting}")


def _holdout(advice: Advice) -> None:
    st.header("Test on later days")
    found = advice.holdout
    if found is None:
        st.info("Not possible with only one day. Replay several days.", icon=":material/info:")
        return
    (st.success if found.holds else st.warning)(
        "The choice also holds up on days that were not used for it."
        if found.holds
        else "The choice does not hold up on later days.",
        icon=":material/check_circle:" if found.holds else ":material/warning:",
    )
    if found.days:
        chart(holdout_figure(found), plain(holdout_text(found)), "holdout")
    else:
        st.markdown(plain(holdout_text(found)))


def _all(advice: Advice, verdict: Verdict) -> None:
    rows = []
    objectives = [one for side in SIDES for one in advice.question.objectives(side)]
    place = {one.name: number for number, one in enumerate(advice.front, start=1)}
    for one in sorted(advice.candidates, key=lambda c: (not c.on_front, c.balance)):
        marks = {advice.chosen: verdict.mark, advice.current: "current"}
        if advice.chosen == advice.current:
            marks = {advice.chosen: "current"}
        rows.append(
            {
                "scenario": one.name,
                "front": str(place[one.name]) if one.on_front else "more overload" if one.more_overload else "",
                "mark": marks.get(one.name, ""),
                "balance": one.balance,
                "disruption": one.disruption,
                _OVERLOAD.label: value_of(one.totals, _OVERLOAD),
                **{o.label: value_of(one.totals, o) for o in objectives},
            }
        )
    with st.expander(f"All {count(len(rows), 'scenario')}", icon=":material/table_rows:"):
        table(pd.DataFrame(rows), "advice-all", height=400)


# What to do


def _what_if(job: Job, advice: Advice) -> None:
    """Offer to open the chosen settings on the last snapshot of the history."""
    cluster = advice.clusters[0]
    if len(advice.clusters) > 1:
        cluster = st.selectbox("Cluster", advice.clusters, key="advisor-cluster") or cluster
    which = "current" if advice.chosen == advice.current else "best"
    help_ = (
        f"Adds the last snapshot of the history to the workspace and opens it with the {which} settings. It is one"
        " moment, and can be a quiet one: a replay covers all of them."
    )
    if not st.button("Open in What-if", icon=":material/science:", type="primary", help=help_):
        return
    snapshot = snapshot_of(job, cluster, last=True)
    saved = state.workspace().add(snapshot, f"{cluster}, end of {job.name}"[:200])
    chosen = advice.candidate(advice.chosen).scenario
    scenario_history.change(state.Current(saved, snapshot), replace(chosen, name=f"Advisor: {chosen.name}"[:120]))
    state.select(saved.digest)
    registry.go("what_if")


def _commands(advice: Advice, configured: Mapping[str, Configured]) -> None:
    for cluster, now in configured.items():
        script = apply_script(advice, cluster, now)
        if not script:
            continue
        st.markdown(f"**Commands for {plain(cluster)}**" if len(configured) > 1 else "**Commands**")
        st.code(script, language="bash", wrap_lines=True)
        key = f"advice-script-{cluster}"
        download("Download the script", script, f"advice-{cluster}.sh", "text/x-shellscript", key=key)


def _submit(job: Job, fresh: Sequence[Scenario], what: str) -> None:
    if not fresh:
        st.info("All settings in this search space have already been replayed.", icon=":material/info:")
        return
    made = submit(replace(job, name=f"{job.name}: {what}"[:100], scenarios=tuple(fresh)))
    joined = [name for name in address.part("with").split(",") if name]
    address.put(**{"with": ",".join([*joined, made.name])})
    st.success(
        f"{count(len(fresh), 'scenario')} submitted as a replay of {what}. When it has finished, reload the page to"
        " include it.",
        icon=":material/check_circle:",
    )


def _search(job: Job, material: Material, advice: Advice, configured: Mapping[str, Configured]) -> None:
    """Offer to replay more: proposals of a search, or what lies around the recommendation."""
    if not configured:
        return
    now = next(iter(configured.values()))
    base = advice.candidate(advice.current).scenario if advice.current else replace(material.scenarios[0], settings={})
    manager = LoadManager(base.load_manager) if base.load_manager else now.load_manager
    offered = [one.name for one in offered_shedders(manager, now.settings.release)]
    with st.expander("Continue the search", icon=":material/travel_explore:"):
        st.caption("Replays more settings, within ranges derived from Pulsar's defaults.")
        left, middle, right = st.columns([3, 2, 1])
        with left:
            running = now.settings.changed(**base.settings).text(LOAD_SHEDDING_STRATEGY).rpartition(".")[2]
            shedders = st.multiselect(
                "Strategies", offered, [running] if running in offered else offered[:1], key="search-strategies"
            )
        with middle:
            method: Any = st.selectbox(
                "Method", ["bayesian", "random"], help="The Bayesian search learns from earlier results."
            )
        with right:
            size = int(st.number_input("Scenarios", 1, 100, _BATCH))
        columns = st.columns(2)
        try:
            space = widened(space_of(base, now, shedders or offered[:1]), material.scenarios)
            st.caption(
                f"Search space: {', '.join(_range_text(one.name, one.low, one.high) for one in space.parameters)}."
            )
            if columns[0].button("Replay proposals", icon=":material/play_arrow:"):
                chosen_method: Method = method
                trials = trials_of(advice, material.scenarios)
                _submit(job, propose(space, trials, size, method=chosen_method), f"{method} search")
            chosen = advice.candidate(advice.chosen).scenario
            if columns[1].button("Replay values near the recommendation", icon=":material/filter_center_focus:"):
                own = now.settings.changed(**chosen.settings).text(LOAD_SHEDDING_STRATEGY)
                around = widened(space_of(base, now, [own]), material.scenarios)
                _submit(job, neighbours(around, chosen, known=material.scenarios), "neighbours")
        except PlannerError as error:
            show_error(error)


def _range_text(name: str, low: float | None, high: float | None) -> str:
    return f"{name} on and off" if low is None or high is None else f"{name} {low:g} to {high:g}"


def _findings(stored: StoredJob, material: Material, advice: Advice, configured: Mapping[str, Configured]) -> None:
    job = stored.job
    assert job is not None  # noqa: S101 - only such jobs are offered
    verdict = verdict_of(advice)
    _verdict(advice, verdict)
    show_notes((*material.notes, *advice.notes), "Notes on this comparison")
    st.caption(compared_text(advice))
    if is_judged := verdict.kind not in {"nothing", "untrue"}:
        chart(front_figure(advice), plain(front_text(advice)), "front")
    _all(advice, verdict)
    if is_judged:
        _recommendation(advice, configured, verdict)
        _what_if(job, advice)
        _sensitivity(advice)
        _holdout(advice)
    if verdict.kind == "recommended":
        st.header("Apply it")
        _commands(advice, configured)
    if verdict.kind == "untrue":
        return
    _search(job, material, advice, configured)


def draw(_: Any) -> None:
    """Draw the page."""
    stored = _pick()
    if not stored:
        return
    question = _question()
    for side in SIDES:
        if not getattr(question, side):
            raise SettingError(f"No objective of {side} is chosen.", remedy="Choose one under “Objectives”.")
    ended = tuple(one.status.ended_ms for one in stored)
    material, configured = _material(stored, ended), _configured(stored[0].name)
    advice = _advice(stored, ended, question)
    _findings(stored[0], material, advice, configured)


PAGE = Page(
    title="Advisor",
    icon=":material/lightbulb:",
    purpose="Recommends settings, based on balance and disruption in replays of your history.",
    draw=draw,
    subject=Subject.NOTHING,
)
