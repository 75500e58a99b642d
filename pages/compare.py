"""Compare: several scenarios side by side, the best of each measure marked."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from planner.explain.outcome import Outcome
from planner.explain.text import count, number, plain
from planner.figures.simulation import MOST_CURVES, Curve, overlaid_curves, overlaid_text
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.measures import Comparison, ComparisonRow, compare
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import under_strategy
from planner.web import address, scenarios, state
from planner.web.choices import written
from planner.web.page import Page, Subject
from planner.web.widgets import chart, table

_CURVES = {
    "std": "Deviation of usage (points)",
    "highest": "Highest usage (%)",
    "spread": "Highest minus lowest usage (points)",
    "shed": "Bundles shed so far",
}
_ARROWS = {"lower": "↓", "higher": "↑", "": "\u2002"}
_WINS = {"final_std_percent": "Best balanced at the end", "topics_disconnected": "Fewest topics disconnected"}
_SAME = "each with the edits and settings of the scenario that is open, under another strategy"
_MODES = {"shedders": "All five strategies", "mine": "My scenarios"}


def each_shedder(view: state.Current, base: Scenario) -> dict[str, Scenario]:
    """Return the same scenario under each of the shedding strategies, each under the load manager that can run it."""
    config, manager = view.snapshot.settings, view.snapshot.info.load_manager
    return {shedder.name: under_strategy(base, config, manager, shedder.name) for shedder in SHEDDERS}


def _mine(view: state.Current, present: Scenario) -> dict[str, Scenario]:
    """Let saved scenarios be chosen beside the present one and the cluster as it is."""
    offered = {
        f"{present.name or 'This scenario'} (open)": present,
        "The cluster as it is": scenarios.as_captured(view, cycles=present.cycles, seed=present.seed),
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


def comparison_frame(found: Comparison, *, alike: bool = True) -> pd.DataFrame:
    """Return one row for each measure, one column for each scenario; the best are marked with a star.

    Args:
        found: What was compared.
        alike: Also those measures that are the same in all.
    """
    rows = []
    for row in found.rows:
        if not alike and _alike(row):
            continue
        unit = f" ({row.measure.unit})" if row.measure.unit else ""
        shown: dict[str, str] = {"measure": f"{_ARROWS[row.measure.better]} {row.measure.label}{unit}"}
        for name, value, best in _values(found, row):
            text = "not yet" if value is None else number(value)
            shown[name] = f"★ {text}" if best else text
        rows.append(shown)
    return pd.DataFrame(rows)


def _curve(name: str, outcome: Outcome, which: str) -> Curve:
    if which == "shed":
        values = np.cumsum(outcome.counts.shed).astype(np.float64)
    else:
        spread = outcome.spread
        values = {"std": spread.std, "highest": spread.highest, "spread": spread.spread}[which] * 100
    return Curve(name, outcome.series.minutes, values)


def _winners(found: Comparison) -> str:
    """Say who is best balanced and who disturbs least; doing nothing is always the calmest."""
    rows = {row.measure.name: row for row in found.rows}
    parts = []
    for measure, words in _WINS.items():
        best = [(name, value) for name, value, wins in _values(found, rows[measure]) if wins and value is not None]
        if best:
            names = ", ".join(plain(name) for name, _ in best)
            parts.append(f"{words}: **{names}** ({number(best[0][1])} {rows[measure].measure.unit or 'topics'})")
    idle = [plain(name) for name, value, _ in _values(found, rows["shed"]) if not value]
    remark = ""
    if idle and len(idle) < len(found.names):
        verb = "sheds" if len(idle) == 1 else "shed"
        remark = f" {' and '.join(idle)} {verb} nothing: that disturbs nobody, and balances nothing."
    return (f"{'; '.join(parts)}." if parts else "The scenarios do the same.") + remark


def _values(found: Comparison, row: ComparisonRow) -> Iterator[tuple[str, float | None, bool]]:
    """Yield each scenario's name, its value of a measure, and whether it is the best."""
    return zip(found.names, row.values, row.best, strict=True)


def _show(names: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    by_name = dict(zip(names, outcomes, strict=True))
    found = compare({n: o.trace for n, o in by_name.items()}, {n: o.summary for n, o in by_name.items()})
    which = address.choice("curve", "Curve", _CURVES, segments=True)
    curves = [_curve(name, one, which) for name, one in zip(names, outcomes, strict=True)]
    summary = plain(overlaid_text(curves, _CURVES[which]))
    chart(overlaid_curves(curves, "minute", _CURVES[which]), summary, f"compare-{which}")
    st.markdown(f"{_winners(found)} ★ marks the best of a measure, ↓ where less is better, ↑ where more is.")
    alike = sum(_alike(row) for row in found.rows)
    every = st.toggle(f"Also the {count(alike, 'measure')} that are the same in all", key="alike") if alike else False
    table(comparison_frame(found, alike=every), "comparison", height="content")
    rows = _differences(found, outcomes)
    if rows:
        st.markdown("**Settings that differ**")
        frame = pd.DataFrame(rows)
        if len(frame) <= len(found.names):  # the way round that is narrower
            frame = frame.set_index("setting").T.rename_axis("scenario").reset_index()
        table(frame, "settings-that-differ")


def _alike(row: ComparisonRow) -> bool:
    return len(set(row.values)) == 1


def _differences(found: Comparison, outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    """Return the load manager and the settings that are not the same in all scenarios, one row for each."""
    managers = [str(one.trace.cycles[0].view.info.load_manager) for one in outcomes]
    rows = [("load manager", managers)] if len(set(managers)) > 1 else []
    for name, values in found.settings.items():
        rows.append((name, [_short(written(value)) for value in values]))  # type: ignore[arg-type]
    return [{"setting": name, **dict(zip(found.names, values, strict=True))} for name, values in rows]


def _short(value: str) -> str:
    """Return a class without its package."""
    return value.rpartition(".")[2] if value.startswith("org.apache.") else value


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenarios.present(view)
    mine = address.choice("compare", "Compare", _MODES, segments=True) == "mine"
    chosen = _mine(view, present) if mine else each_shedder(view, present)
    if len(chosen) < 2:  # noqa: PLR2004 - one with another
        st.info("Choose at least two scenarios.", icon=":material/balance:")
        return
    outcomes = scenarios.run(view, *chosen.values(), names=list(chosen))
    if outcomes is None:
        return
    how = "each with its own edits and settings" if mine else _SAME
    st.caption(f"{count(len(chosen), 'scenario')} over {count(present.cycles, 'cycle')} of the same cluster, {how}.")
    _show(list(chosen), outcomes)


PAGE = Page(
    title="Compare",
    icon=":material/balance:",
    purpose="Two to eight scenarios on the same cluster, side by side.",
    draw=draw,
    subject=Subject.SCENARIO,
)
