"""Compare: several scenarios side by side, the best of each measure marked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.releases import RELEASES, release
from planner.cluster.setting import conf_value
from planner.cluster.text import count, number, plain, without_package
from planner.explain.doubt import doubt_in_any
from planner.explain.outcome import Outcome
from planner.explain.trade_off import judged_marks, obstacle_of, ranked, trade_off
from planner.explain.upgrade import before_upgrade, next_release, upgraded
from planner.figures.simulation import MOST_CURVES, Curve, overlaid_curves, overlaid_text
from planner.figures.theme import WARNING
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.judge import Result
from planner.simulate.measures import Comparison, ComparisonRow, compare
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import strategy_pairs, under_strategy, with_obstacle
from planner.web import address, best_plan, doubts, scenario_history, simulations, state
from planner.web.page import Page, Subject
from planner.web.widgets import chart, table

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

_CURVES = {
    "std": "Deviation of usage (points)",
    "highest": "Highest usage (%)",
    "spread": "Highest minus lowest usage (points)",
    "shed": "Bundles shed so far",
}
_PEAK, _OVERLOADED, _END = "peak (%)", "overloaded (broker min)", "highest usage (%)"
_KEY = {
    "highest_percent": _PEAK,
    "overloaded_broker_min": _OVERLOADED,
    "end_peak_percent": _END,
    "deviation_points": "deviation (points)",
    "topics": "disconnected topics",
    "thrashing_percent": "thrashing (%)",
}
"""The measures of the judge that the table shows, in the order in which they count."""
_BAD = f"color: {WARNING}; font-weight: bold"
_ARROWS = {"lower": "↓", "higher": "↑", "": "\u2002"}
_SAME = "each with the edits and settings of the open scenario, under a different strategy"
_MODES = {"shedders": "All five strategies", "pairs": "All pairs with placement", "mine": "My scenarios"}


def each_shedder(view: state.Current, base: Scenario) -> dict[str, Scenario]:
    """Return the same scenario under each of the shedding strategies, each under the load manager that can run it."""
    config, manager = view.snapshot.settings, view.snapshot.info.load_manager
    return {shedder.name: under_strategy(base, config, manager, shedder.name) for shedder in SHEDDERS}


def _mine(view: state.Current, present: Scenario) -> dict[str, Scenario]:
    """Let saved scenarios be chosen beside the present one and the cluster as it is."""
    offered = {
        f"{present.name or 'This scenario'} (open)": present,
        "The cluster as captured": scenario_history.as_captured(view, cycles=present.cycles, seed=present.seed),
    }
    for saved in state.workspace().scenarios.list(view.digest):
        label = saved.name or saved.digest[:8]
        while label in offered:
            label += " "
        offered[label] = state.workspace().scenarios.load(saved.digest)
    chosen = st.multiselect(
        "Scenarios",
        list(offered),
        list(offered)[:MOST_CURVES],
        max_selections=MOST_CURVES,
        key="compare-scenarios",
        help="Save scenarios on the What-if page to find them here.",
    )
    return {name: replace(offered[name], cycles=present.cycles) for name in chosen}


def _upgraded(view: state.Current, chosen: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """Let a release be chosen; return the same scenarios as it decides."""
    own = release(view.captured.info.pulsar_version).name
    known = [name for name in RELEASES if name != own]
    to = address.choice("to", "Release", known, next_release(own))
    before = {name: before_upgrade(scenario, view.captured) for name, scenario in chosen.items()}
    return {f"{name}, on {to}": upgraded(one, view.captured, release(to).name) for name, one in before.items()}


def comparison_frame(
    found: Comparison,
    results: Sequence[Result],
    obstacles: Sequence[str] = (),
    *,
    alike: bool = True,
    judged: bool = True,
) -> pd.DataFrame:
    """Return one row for each measure, one column for each scenario; the best are marked with a star.

    Obstacles are those of `marks`; what the judge finds worse has no star. Measures that are the same in all are
    there only when `alike` says so. Without `judged`, nothing has a star.
    """
    rows = []
    for row in found.rows:
        if not alike and _alike(row):
            continue
        cells = {"measure": _heading(row)}
        best = judged_marks(found, row, results, obstacles) if judged else (False,) * len(found.names)
        for name, value, starred in zip(found.names, row.values, best, strict=True):
            text = "not yet" if value is None else number(value)
            cells[name] = f"★ {text}" if starred else text
        rows.append(cells)
    return pd.DataFrame(rows)


def _curve(name: str, outcome: Outcome, which: str) -> Curve:
    if which == "shed":
        values = np.cumsum(outcome.counts.shed).astype(np.float64)
    else:
        spread = outcome.demand_spread
        values = {"std": spread.std, "highest": spread.highest, "spread": spread.spread}[which] * 100
    return Curve(name, outcome.series.minutes, values)


def key_frame(
    names: Sequence[str], results: Sequence[Result], obstacles: Sequence[str] = (), *, judged: bool = True
) -> pd.DataFrame:
    """Return one row for each scenario in the order of the judge, and one column for each measure that counts.

    Those with one of the obstacles of `marks` come last, and name it. Without `judged`, they are in the given order.
    """
    against = obstacles or ("",) * len(names)
    rows = [
        {
            "scenario": with_obstacle(names[at], against[at]),
            **{words: round(getattr(results[at], name), 1) for name, words in _KEY.items()},
        }
        for at in (ranked(results, obstacles) if judged else range(len(names)))
    ]
    return pd.DataFrame(rows)


def _red(frame: pd.DataFrame, limit_percent: float) -> "Styler":
    """Return the frame with usage above the limit, and any time spent there, in red."""
    above = {_PEAK: limit_percent, _END: limit_percent, _OVERLOADED: 0.0}

    def colours(column: pd.Series) -> list[str]:
        limit = above.get(str(column.name), math.inf)
        return [_BAD if isinstance(value, int | float) and value > limit else "" for value in column.tolist()]

    return frame.style.apply(colours).format(dict.fromkeys(above, "{:,.1f}"))


def _heading(row: ComparisonRow) -> str:
    unit = f" ({row.measure.unit})" if row.measure.unit else ""
    return f"{_ARROWS[row.measure.better]} {row.measure.label}{unit}"


def _bars(frame: pd.DataFrame) -> dict[str, float]:
    """Return what the bar of each column is full at: 100 for percentages, else the largest value."""
    plain_text = {"scenario", _PEAK, _OVERLOADED, _END}
    largest = {str(name): float(values.max()) for name, values in frame.items() if name not in plain_text}
    return {name: max(100.0 if name.endswith("(%)") else 1.0, value) for name, value in largest.items()}  # not NaN


def _show(names: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    by_name = dict(zip(names, outcomes, strict=True))
    found = compare({n: o.trace for n, o in by_name.items()}, {n: o.summary for n, o in by_name.items()})
    obstacles = [obstacle_of(one.trace) for one in outcomes]
    results = [one.result for one in outcomes]
    doubt = doubt_in_any(outcomes)
    doubts.say(doubt, "rankings")
    if judged := not doubt.everywhere:
        st.markdown(trade_off(found, [plain(name) for name in found.names], obstacles, results))
    frame = key_frame(found.names, results, obstacles, judged=judged)
    limit, widths = results[0].limit_percent, {"scenario": 420 if any(obstacles) else 310}
    style = _red(frame, limit)
    table(frame, "key-measures", height="content", style=style, bars=_bars(frame), widths=widths)
    order = "Overload counts first, then disruption, then balance. " if judged else ""
    st.caption(
        f"{order}Red: above the limit of {limit:g} %. Peak and time"
        " overloaded count from the first moves on; highest usage and deviation are those at the end. Lower is better"
        " in every column."
    )
    which = address.choice("curve", "Curve", _CURVES, segments=True)
    drawn = _drawn(found, results, obstacles) if judged else list(found.names[:MOST_CURVES])
    curves = [_curve(name, by_name[name], which) for name in drawn]
    summary = plain(overlaid_text(curves, _CURVES[which]))
    if len(drawn) < len(found.names):
        summary += f" Showing the first {len(drawn)} of the table."
    chart(overlaid_curves(curves, "minute", _CURVES[which]), summary, "compare-curves", about=which)
    if st.toggle("All measures", key="all-measures"):
        stars = "★ marks the best value among scenarios that no other one is better than. " if judged else ""
        st.caption(f"{stars}↓ means lower is better, ↑ means higher is better.")
        alike = sum(_alike(row) for row in found.rows)
        every = st.toggle(f"Include the {count(alike, 'measure')} with equal values", key="alike") if alike else True
        table(comparison_frame(found, results, obstacles, alike=every, judged=judged), "comparison", height="content")
    rows = _differences(found, outcomes)
    if rows:
        st.markdown("**Settings that differ**")
        frame = pd.DataFrame(rows)
        if len(frame) <= len(found.names):  # the way round that is narrower
            frame = frame.set_index("setting").T.rename_axis("scenario").reset_index()
        table(frame, "settings-that-differ")


def _drawn(found: Comparison, results: Sequence[Result], obstacles: Sequence[str]) -> list[str]:
    """Return those scenarios whose curves can be distinguished, in their order; the best by the judge."""
    best = ranked(results, obstacles)[:MOST_CURVES]
    return [name for at, name in enumerate(found.names) if at in best]


def _alike(row: ComparisonRow) -> bool:
    return len(set(row.values)) == 1


def _differences(found: Comparison, outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    """Return the load manager and the settings that are not the same in all scenarios, one row for each."""
    managers = [str(one.trace.cycles[0].view.info.load_manager) for one in outcomes]
    rows = [("load manager", managers)] if len(set(managers)) > 1 else []
    for name, values in found.settings.items():
        rows.append((name, [without_package(conf_value(value)) for value in values]))  # type: ignore[arg-type]
    return [{"setting": name, **dict(zip(found.names, values, strict=True))} for name, values in rows]


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenario_history.present(view)
    mode = address.choice("compare", "Compare", _MODES, segments=True)
    mine, snapshot, caution = mode == "mine", view.snapshot, ""
    if mode == "pairs":
        chosen = strategy_pairs(present, snapshot.settings, snapshot.info.load_manager)
    else:
        chosen = _mine(view, present) if mine else each_shedder(view, present)
        if address.toggle(
            "best",
            "With the best plan",
            help="Makes the moves of the best plan first, as the page Best plan opens them, then continues with the"
            " current settings.",
        ):
            planned = best_plan.as_scenario(view, present)
            if planned is not None:
                chosen["Best plan"], caution = planned
    if address.toggle("upgraded", "With an upgrade", help="Also runs each scenario under another release."):
        chosen |= _upgraded(view, chosen)
    if len(chosen) < 2:  # noqa: PLR2004 - one with another
        st.info("Choose at least two scenarios.", icon=":material/balance:")
        return
    outcomes = simulations.run(view, *chosen.values(), names=list(chosen))
    if outcomes is None:
        return
    how = "each with its own edits and settings" if mine else _SAME
    st.caption(f"{count(len(chosen), 'scenario')} of the same cluster over {count(present.cycles, 'cycle')}, {how}.")
    if caution:
        st.warning(f"**Best plan.** {plain(caution)}", icon=":material/casino:")
    _show(list(chosen), outcomes)


PAGE = Page(
    title="Compare",
    icon=":material/balance:",
    purpose="Compares strategies, their pairs, or your scenarios on the same cluster: overload, disruption"
    " and balance of each.",
    draw=draw,
    subject=Subject.SCENARIO,
)
