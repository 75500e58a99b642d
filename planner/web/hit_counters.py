"""What the Hit counters page draws."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from planner.figures.counters import counter_lines, paired_scores
from planner.model.errors import PlannerError
from planner.model.settings import Settings
from planner.model.snapshot import LoadManager, Snapshot
from planner.shedding import avg, threshold, transfer
from planner.shedding.protocol import Shedder
from planner.simulate.sequence import CycleStep, decide_cycles, same_load
from planner.web import state
from planner.web.setting_form import setting_form
from planner.web.strategies import as_if_running
from planner.web.text import count, moment
from planner.web.widgets import chart, show_error, table

__all__ = ["avg_frame", "draw", "sequence_of"]

_MOST_CYCLES = 60
_DRAWN_BROKERS = 10
_COUNTING: dict[LoadManager, tuple[Shedder, ...]] = {
    LoadManager.MODULAR: (avg.SHEDDER, threshold.SHEDDER),
    LoadManager.EXTENSIBLE: (transfer.SHEDDER,),
}


def sequence_of(view: state.Current) -> tuple[list[Snapshot], str]:
    """Return the snapshots to go through, oldest first, and a sentence about them."""
    saved = [s for s in state.workspace().saved() if s.cluster == view.saved.cluster]
    saved = sorted(saved, key=lambda s: (s.captured_at_ms, s.digest))
    earlier = [s.digest for s in saved]
    labels = {s.digest: f"{s.name} · {moment(s.captured_at_ms)}" for s in saved}
    left, right = st.columns([3, 1])
    chosen = left.multiselect(
        "Snapshots of this cluster, in the order of time",
        earlier,
        default=[view.digest],
        format_func=lambda d: labels[d],
        key=f"sequence-{view.digest}",
    )
    repeats = int(right.number_input("Cycles with the last one", 1, _MOST_CYCLES, 10, key="sequence-repeats"))
    picked = [d for d in earlier if d in chosen] or [view.digest]
    snapshots = [state.snapshot_of(d) for d in picked]
    snapshots += same_load(snapshots[-1], repeats, view.snapshot.settings)[1:]
    what = f"{count(len(picked), 'snapshot')}, the last one seen in {count(repeats, 'cycle')}"
    return snapshots[: _MOST_CYCLES + len(picked)], what


def avg_frame(step: CycleStep, config: Settings) -> pd.DataFrame:
    """Return one row for each pair that AvgShedder compares in a cycle, with the counters afterwards."""
    snapshot = step.snapshot
    points = step.decision.shedding.scores * 100
    order = [i for i in snapshot.brokers.map_order.tolist() if np.isfinite(points[i])]
    state_ = step.after.shedding.state
    moves = {(m.source, m.destination) for m in step.decision.shedding.moves}
    names = snapshot.brokers.name
    return pd.DataFrame(
        [
            {
                "lower broker": names[pair.low],
                "lower score": points[pair.low],
                "higher broker": names[pair.high],
                "higher score": points[pair.high],
                "difference": pair.difference,
                "low hits": max(state_.hits_low.get(names[i], 0) for i in (pair.low, pair.high)),
                "needed (low)": config.integer("loadBalancerAvgShedderHitCountLowThreshold"),
                "high hits": max(state_.hits_high.get(names[i], 0) for i in (pair.low, pair.high)),
                "needed (high)": config.integer("loadBalancerAvgShedderHitCountHighThreshold"),
                "unloads": (names[pair.high], names[pair.low]) in moves,
            }
            for pair in avg.pair_brokers(order, points)
        ]
    )


def _series(steps: Sequence[CycleStep], shedder: Shedder) -> tuple[dict[str, list[float]], str]:
    """Return what the strategy remembers after each cycle, of the brokers with the largest values."""
    if shedder is transfer.SHEDDER:
        return {
            "hit count": [float(s.after.shedding.state.hit_count) for s in steps]
        }, "cycles in a row that call for shedding"
    brokers = steps[-1].snapshot.brokers.name
    if shedder is avg.SHEDDER:
        values = {b: [float(s.after.shedding.state.hits_low.get(b, 0)) for s in steps] for b in brokers}
        values |= {f"{b} (high)": [float(s.after.shedding.state.hits_high.get(b, 0)) for s in steps] for b in brokers}
        title = "hits after the cycle"
    else:
        values = {b: [s.after.shedding.state.usage_ema.get(b, float("nan")) * 100 for s in steps] for b in brokers}
        title = "averaged usage (%)"
    largest = sorted(values, key=lambda name: -max(values[name]))[:_DRAWN_BROKERS]
    return {name: values[name] for name in largest if max(values[name]) > 0}, title


def _limit(shedder: Shedder, steps: Sequence[CycleStep], config: Settings) -> tuple[float | None, str]:
    if shedder is avg.SHEDDER:
        return float(config.integer("loadBalancerAvgShedderHitCountHighThreshold")), "high hits needed"
    if shedder is transfer.SHEDDER:
        return float(config.integer("loadBalancerSheddingConditionHitCountThreshold")), "must be exceeded:"
    lines = {line.label: line.value for line in steps[-1].decision.shedding.lines}
    limit = lines.get("average + threshold")
    return (None if limit is None else limit * 100), "average + threshold in the last cycle"


def draw(view: state.Current) -> None:
    """Draw the page."""
    offered = {s.name: s for s in _COUNTING[view.snapshot.info.load_manager]}
    asked = state.param("strategy")
    names = list(offered)
    start = asked if asked in offered else names[0]
    picked = st.selectbox("Strategy that remembers", names, index=names.index(start), key=f"counts-{start}") or start
    state.set_params(strategy="" if picked == names[0] else picked)
    shedder = offered[picked]
    try:
        snapshots, what = sequence_of(view)
        with st.expander("Settings"):
            config = setting_form(shedder.settings, view.snapshot.settings, f"counters-{view.digest}-{picked}")
        config, off = as_if_running(config.changed(loadBalancerLoadSheddingStrategy=picked))
        steps = decide_cycles(snapshots, config, 0, explain=False)
    except PlannerError as error:
        show_error(error)
        return
    if off:
        st.info(off, icon=":material/toggle_off:")
    fired = [at for at, step in enumerate(steps, start=1) if step.decision.shedding.moves]
    when = (
        f"It acts in cycle {', '.join(map(str, fired[:12]))}{' …' if len(fired) > 12 else ''}."  # noqa: PLR2004 - room
        if fired
        else "It does not act in any of these cycles."
    )
    st.caption(
        f"{what}. Nothing is carried out in between: the snapshots show what the cluster really did, so that a strategy"
        " that acts goes on counting from the same load."
    )
    series, title = _series(steps, shedder)
    limit, label = _limit(shedder, steps, config)
    if series:
        chart(counter_lines(series, limit, label, fired, title), f"**{picked}.** {when}", "counters")
    else:
        st.markdown(f"**{picked}.** {when} Nothing is counted.")
    numbers = {
        "cycle": list(range(1, len(steps) + 1)),
        **series,
        "bundles unloaded": [len(s.decision.shedding.moves) for s in steps],
    }
    table(pd.DataFrame(numbers), "counters")
    cycle = st.slider("Look at cycle", 1, len(steps), fired[0] if fired else 1) if len(steps) > 1 else 1
    step = steps[int(cycle) - 1]
    if shedder is avg.SHEDDER:
        frame = avg_frame(step, config)
        pairs = list(
            frame[["lower broker", "lower score", "higher broker", "higher score"]].itertuples(index=False, name=None)
        )
        low = config.integer("loadBalancerAvgShedderLowThreshold")
        high = config.integer("loadBalancerAvgShedderHighThreshold")
        apart = int((frame["difference"] >= low).sum())
        summary = (
            f"Cycle {cycle}: {apart} of {len(frame)} pairs are at least {low} points apart,"
            f" {int((frame['difference'] >= high).sum())} at least {high}."
        )
        chart(paired_scores(pairs[:40], low, high), summary, "pairs")
        table(frame, "pairs")
    elif step.decision.shedding.moves:
        moved = [{"bundle": m.bundle, "from": m.source, "why": m.reason.text} for m in step.decision.shedding.moves]
        table(pd.DataFrame(moved), "moves-of-cycle")
