"""What the Compare page draws: several scenarios side by side."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.figures.simulation import MOST_CURVES, Curve, overlaid_curves, overlaid_text
from planner.model.errors import PlannerError
from planner.model.snapshot import LoadManager
from planner.placement.registry import PLACEMENTS
from planner.shedding.registry import SHEDDERS
from planner.simulate.measures import Comparison, compare
from planner.simulate.scenario import Scenario
from planner.web import scenarios, state
from planner.web.outcome import Outcome
from planner.web.setting_form import written
from planner.web.text import count
from planner.web.widgets import chart, show_error, table

__all__ = ["comparison_frame", "draw", "five_shedders"]

_SHEDDING = "loadBalancerLoadSheddingStrategy"
_PLACEMENT = "loadBalancerLoadPlacementStrategy"
_CURVES = {
    "std": "Deviation of usage (points)",
    "highest": "Highest usage (%)",
    "spread": "Highest minus lowest usage (points)",
    "shed": "Bundles shed so far",
}
_ARROWS = {"lower": "↓", "higher": "↑", "": "\u2002"}
_TOLD = {"final_std_percent": "Best balanced at the end", "topics_disconnected": "Fewest topics disconnected"}
_MODES = {"shedders": "All five strategies", "mine": "My scenarios"}


def five_shedders(view: state.Current, base: Scenario) -> dict[str, Scenario]:
    """Return the same scenario under each of the shedding strategies, each under the load manager that can run it."""
    config = base.settings_over(view.snapshot)
    placed = config.text(_PLACEMENT).rpartition(".")[2]
    made = {}
    for shedder in SHEDDERS:
        settings: dict[str, Any] = {**base.settings, _SHEDDING: shedder.name}
        if shedder.load_manager is LoadManager.MODULAR:
            default = PLACEMENTS[0].name if placed == "AvgShedder" else placed
            settings[_PLACEMENT] = "AvgShedder" if shedder.name == "AvgShedder" else default
        manager: Any = "" if shedder.load_manager is view.snapshot.info.load_manager else str(shedder.load_manager)
        made[shedder.name] = replace(base, name=shedder.name, settings=settings, load_manager=manager)
    return made


def _mine(view: state.Current, present: Scenario) -> dict[str, Scenario]:
    """Let saved scenarios be chosen beside the present one and the cluster as it is."""
    offered = {
        f"{present.name or 'This scenario'} (open)": present,
        "The cluster as it is": Scenario(cycles=present.cycles, seed=present.seed),
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
        help="Save scenarios on the What-if page to find them here.",
    )
    return {name: replace(offered[name], cycles=present.cycles) for name in chosen}


def comparison_frame(found: Comparison) -> pd.DataFrame:
    """Return one row for each measure, one column for each scenario; the best are marked with a star."""
    rows = []
    for row in found.rows:
        unit = f" ({row.measure.unit})" if row.measure.unit else ""
        shown: dict[str, str] = {"measure": f"{_ARROWS[row.measure.better]} {row.measure.label}{unit}"}
        for name, value, best in zip(found.names, row.values, row.best, strict=True):
            text = "not yet" if value is None else f"{value:,.4g}" if np.isfinite(value) else "unlimited"
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
    parts = []
    for measure, words in _TOLD.items():
        row = next(row for row in found.rows if row.measure.name == measure)
        names = [name for name, best in zip(found.names, row.best, strict=True) if best]
        value = next((v for v, best in zip(row.values, row.best, strict=True) if best), None)
        if names and value is not None:
            parts.append(f"{words}: **{', '.join(names)}** ({value:,.3g} {row.measure.unit or 'topics'})")
    return f"{'; '.join(parts)}." if parts else "The scenarios do the same."


def _show(names: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    by_name = dict(zip(names, outcomes, strict=True))
    found = compare({n: o.trace for n, o in by_name.items()}, {n: o.summary for n, o in by_name.items()})
    which = st.segmented_control("Curve", list(_CURVES), default="std", format_func=_CURVES.__getitem__) or "std"
    curves = [_curve(name, one, which) for name, one in zip(names, outcomes, strict=True)]
    chart(overlaid_curves(curves, "minute", _CURVES[which]), overlaid_text(curves, _CURVES[which]), f"compare-{which}")
    st.markdown(f"{_winners(found)} ★ marks the best of a measure, ↓ where less is better, ↑ where more is.")
    table(comparison_frame(found), "comparison", height="content")
    if found.settings:
        st.markdown("**Settings that differ**")
        rows = [
            {"setting": name, **{n: written(v) for n, v in zip(found.names, values, strict=True)}}  # type: ignore[arg-type]
            for name, values in found.settings.items()
        ]
        table(pd.DataFrame(rows), "settings-that-differ")


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenarios.history(view).present
    asked = state.param("compare")
    mode = st.segmented_control(
        "Compare", list(_MODES), default=asked if asked in _MODES else "shedders", format_func=_MODES.__getitem__
    )
    state.set_params(compare="" if mode in {None, "shedders"} else str(mode))
    try:
        chosen = _mine(view, present) if mode == "mine" else five_shedders(view, present)
        if len(chosen) < 2:  # noqa: PLR2004 - one with another
            st.info("Choose at least two scenarios.", icon=":material/balance:")
            return
        outcomes = scenarios.run(view, *chosen.values())
        if outcomes is None:
            return
        st.caption(
            f"{count(len(chosen), 'scenario')} over {count(present.cycles, 'cycle')} of the same cluster, with the"
            " edits and settings of the scenario that is open."
        )
        _show(list(chosen), outcomes)
    except PlannerError as error:
        show_error(error)
