"""Hit counters: what a leader counts over consecutive snapshots, and what fires when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.cluster.decisions import SheddingDecision
from planner.cluster.errors import PlannerError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager, Snapshot
from planner.explain.decision_tables import reason_rows
from planner.explain.text import count, moment, short_digest
from planner.figures.counters import counter_grid, counter_lines, paired_scores
from planner.pulsar.shedding import avg, threshold, transfer
from planner.pulsar.shedding.avg import AvgState
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.splitting import automatic_extensible
from planner.simulate.sequence import CycleStep, decide_cycles, decide_split_checks, same_load
from planner.web import address, state
from planner.web.live_history import LOOK_S, ask_to_follow, last_cycles, newest
from planner.web.moves import show_memory
from planner.web.page import Page
from planner.web.setting_form import setting_form
from planner.web.strategies import as_if_running
from planner.web.widgets import chart, show_error, show_notes, table

_MOST_CYCLES = 60
_CYCLES = 10
_ROWS = 12
_SAID = 12
_PAIRS = 20
_PALETTE = 8
_REASONS = 2_000
_SPLITS = "Automatic splits"
_COUNTING: dict[LoadManager, tuple[str, ...]] = {
    LoadManager.MODULAR: (avg.SHEDDER.name, threshold.SHEDDER.name),
    LoadManager.EXTENSIBLE: (transfer.SHEDDER.name, _SPLITS),
}
_SHEDDERS: Mapping[str, Shedder] = {s.name: s for s in (avg.SHEDDER, threshold.SHEDDER, transfer.SHEDDER)}


@dataclass(frozen=True)
class _Choice:
    """What to go through: snapshots, oldest first, and how many cycles see the last one."""

    snapshots: tuple[Snapshot, ...]
    cycles: int

    def sequence(self, config: Settings) -> tuple[Snapshot, ...]:
        return (*self.snapshots[:-1], *same_load(self.snapshots[-1], self.cycles, config))


def _choose(view: state.Current, left: DeltaGenerator, right: DeltaGenerator) -> _Choice:
    """Draw which snapshots of the cluster to go through; the address keeps them."""
    own = view.saved
    mine = [s for s in state.workspace().saved() if (s.cluster, s.load_manager) == (own.cluster, own.load_manager)]
    mine = sorted(mine, key=lambda s: (s.captured_at_ms, s.digest))
    chosen = address.several(
        "sequence",
        "Snapshots of this cluster, oldest first",
        {short_digest(s.digest): f"{s.name} · {moment(s.captured_at_ms)}" for s in mine},
        (short_digest(view.digest),),
        place=left,
        help="Those of the same cluster and load manager that are on this server.",
    )
    cycles = _cycles(right, "Cycles with the last one", "How many cycles in a row see the load of the last snapshot.")
    digests = [s.digest for s in mine if short_digest(s.digest) in chosen] or [view.digest]
    return _Choice(tuple(state.snapshot_of(digest) for digest in digests[-_MOST_CYCLES:]), cycles)


def _cycles(place: DeltaGenerator, label: str, help_: str) -> int:
    return address.number("cycles", label, _CYCLES, 1, _MOST_CYCLES, place=place, help=help_)


def _paired(decision: SheddingDecision) -> list[tuple[int, int]]:
    """Return the pairs that AvgShedder's reasons name, lower score first, by that score."""
    scores, pairs = decision.scores, set()
    for group in decision.reasons:
        if group.code.code.startswith("avg.") and (group.bundles < 0).all():
            for broker, other in zip(group.brokers.tolist(), group.others.tolist(), strict=True):
                two = sorted((broker, other if other >= 0 else broker), key=lambda i: (scores[i], i))
                pairs.add((two[0], two[1]))
    return sorted(pairs, key=lambda pair: scores[pair[0]])


def avg_frame(step: CycleStep, before: AvgState, config: Settings) -> pd.DataFrame:
    """Return one row for each pair that AvgShedder compares in a cycle, with the counters before and afterwards.

    Args:
        step: The cycle.
        before: What the strategy remembered before.
        config: Settings in force.
    """
    snapshot, shedding = step.snapshot, step.decision.shedding
    points = shedding.scores * 100
    after = step.after.shedding.state
    moves = {move.source for move in shedding.moves}
    names = snapshot.brokers.name

    def most(hits: Mapping[str, int], *pair: int) -> int:
        return max(hits.get(names[i], 0) for i in pair)

    return pd.DataFrame(
        [
            {
                "lower broker": names[low],
                "lower score": points[low],
                "higher broker": names[high],
                "higher score": points[high],
                "difference": points[high] - points[low],
                "low hits before": most(before.hits_low, low, high),
                "low hits": most(after.hits_low, low, high),
                "needed (low)": config.integer("loadBalancerAvgShedderHitCountLowThreshold"),
                "high hits before": most(before.hits_high, low, high),
                "high hits": most(after.hits_high, low, high),
                "needed (high)": config.integer("loadBalancerAvgShedderHitCountHighThreshold"),
                "unloads": names[high] in moves,
            }
            for low, high in _paired(shedding)
        ]
    )


def _when(what: str, fired: Sequence[int], cycles: int) -> str:
    if not fired:
        return f"**{what}** does not act in any of these cycles."
    if len(fired) == cycles:
        return f"**{what}** acts in every cycle."
    return f"**{what}** acts in cycle {', '.join(map(str, fired[:_SAID]))}{' …' if len(fired) > _SAID else ''}."


def _grid(label: str, values: Mapping[str, list[float]], needed: int, marked: set[tuple[str, int]], mark: str) -> None:
    """Draw counters as cells, those with the largest counts first; nothing when nothing was counted."""
    rows = sorted((name for name in values if max(values[name]) > 0), key=lambda name: -max(values[name]))
    shown = rows[:_ROWS]
    if not shown:
        st.markdown(f"{label}: nothing is counted.")
        return
    more = f" The {_ROWS} with the most of {len(rows)} are drawn." if len(rows) > _ROWS else ""
    marks = [(shown.index(name), cycle) for name, cycle in sorted(marked) if name in shown]
    figure = counter_grid(shown, np.array([values[name] for name in shown]), float(needed), marks, mark)
    framed = f" A frame marks who {mark}; the count starts again there." if marks else ""
    chart(figure, f"{label}: {needed} needed; the cells show the count after each cycle.{framed}{more}", label)


def _avg(steps: Sequence[CycleStep], config: Settings) -> dict[str, list[float]]:
    """Draw both kinds of counters of AvgShedder and return them."""
    names = steps[-1].snapshot.brokers.name
    marked = {(m.source, at) for at, step in enumerate(steps, start=1) for m in step.decision.shedding.moves}
    columns: dict[str, list[float]] = {}
    for kind, field in (("Low", "hits_low"), ("High", "hits_high")):
        values = {n: [float(getattr(s.after.shedding.state, field).get(n, 0)) for s in steps] for n in names}
        needed = config.integer(f"loadBalancerAvgShedderHitCount{kind}Threshold")
        points = config.integer(f"loadBalancerAvgShedder{kind}Threshold")
        _grid(f"**{kind} hits** (a pair at least {points} points apart)", values, needed, marked, "unloads")
        columns |= {f"{name} ({kind.lower()})": counts for name, counts in values.items() if max(counts) > 0}
    return columns


def _threshold(steps: Sequence[CycleStep], fired: list[int]) -> dict[str, list[float]]:
    """Draw the averages of ThresholdShedder and return them."""
    names = steps[-1].snapshot.brokers.name
    values = {n: [s.after.shedding.state.usage_ema.get(n, float("nan")) * 100 for s in steps] for n in names}
    largest = sorted(values, key=lambda name: -np.nan_to_num(values[name]).max())[:_PALETTE]
    lines = {line.label: line.value for line in steps[-1].decision.shedding.lines}
    limit = lines.get("average + threshold")
    figure = counter_lines(
        {name: values[name] for name in largest},
        None if limit is None else limit * 100,
        "average + threshold in the last cycle",
        fired if len(fired) < len(steps) else (),
        "averaged usage (%)",
    )
    more = f", the {_PALETTE} highest of {len(names)} brokers" if len(names) > _PALETTE else ""
    chart(figure, f"The usage that the strategy remembers after each cycle{more}.", "averages")
    return values


def _transfer(steps: Sequence[CycleStep], config: Settings, fired: list[int]) -> dict[str, list[float]]:
    """Draw the hit count of TransferShedder and return it."""
    hits = {"hit count": [float(s.after.shedding.state.hit_count) for s in steps]}
    limit = config.integer("loadBalancerSheddingConditionHitCountThreshold")
    figure = counter_lines(hits, float(limit), "must be exceeded:", fired, "cycles in a row that call for shedding")
    chart(figure, f"It acts when more than {limit} cycles in a row call for shedding; then the count is 0.", "hits")
    return hits


def _look_at(steps: Sequence[object], fired: list[int]) -> int:
    """Draw which cycle to look into and return its place."""
    if len(steps) < 2:  # noqa: PLR2004 - nothing to choose
        return 0
    return address.number("at", "Look at cycle", fired[0] if fired else 1, 1, len(steps), slider=True) - 1


def _shedding(choice: _Choice, shedder: Shedder, config: Settings) -> None:
    """Draw the counters of a shedding strategy, and one of its cycles."""
    config, off = as_if_running(config.changed(loadBalancerLoadSheddingStrategy=shedder.name))
    if off:
        st.info(off, icon=":material/toggle_off:")
    steps = decide_cycles(choice.sequence(config), config, 0, explain=False)
    fired = [at for at, step in enumerate(steps, start=1) if step.decision.shedding.moves]
    st.markdown(_when(shedder.name, fired, len(steps)))
    if shedder is avg.SHEDDER:
        series = _avg(steps, config)
    elif shedder is threshold.SHEDDER:
        series = _threshold(steps, fired)
    else:
        series = _transfer(steps, config, fired)
    chosen = [len(s.decision.shedding.moves) for s in steps]
    numbers = pd.DataFrame({"cycle": range(1, len(steps) + 1), "bundles chosen": chosen, **series})
    _one_cycle(steps, fired, shedder, config, numbers)


def _one_cycle(
    steps: Sequence[CycleStep], fired: list[int], shedder: Shedder, config: Settings, numbers: pd.DataFrame
) -> None:
    """Draw the numbers of all cycles, and what one of them compares and decides."""
    with st.expander("The counters as a table"):
        table(numbers, "counters")
    at = _look_at(steps, fired)
    step = steps[at]
    if shedder is avg.SHEDDER:
        before = steps[at - 1].after.shedding.state if at else shedder.initial()
        _pairs(step, before, at + 1, config)
    moves = step.decision.shedding.moves
    if moves:
        st.markdown(f"**Chosen in cycle {at + 1}**")
        moved = [{"bundle": m.bundle, "from": m.source, "why": m.reason.text} for m in moves]
        table(pd.DataFrame(moved), "moves-of-cycle")
    st.markdown(f"**Why each broker acts or not in cycle {at + 1}**")
    reasons = reason_rows(step.snapshot, step.decision.shedding.reasons, bundles=False)
    table(pd.DataFrame(reasons), "reasons-of-cycle")
    show_memory(step.after, "counters")
    show_notes(shedder.profile.differences, "Where the public documentation differs from the code")


def _pairs(step: CycleStep, before: AvgState, cycle: int, config: Settings) -> None:
    """Draw the scores of a cycle, ranked and paired."""
    frame = avg_frame(step, before, config)
    if frame.empty:
        st.markdown(f"Cycle {cycle}: there is nobody to pair.")
        return
    columns = ["lower broker", "lower score", "higher broker", "higher score"]
    pairs = list(frame[columns].itertuples(index=False, name=None))
    low = config.integer("loadBalancerAvgShedderLowThreshold")
    high = config.integer("loadBalancerAvgShedderHighThreshold")
    apart = int((frame["difference"] >= low).sum())
    summary = (
        f"**Cycle {cycle}, ranked and paired**: lowest with highest, second lowest with second highest, and so on."
        f" {apart} of {len(frame)} pairs are at least {low} points apart,"
        f" {int((frame['difference'] >= high).sum())} at least {high}."
        f"{f' The first {_PAIRS} are drawn.' if len(frame) > _PAIRS else ''}"
    )
    chart(paired_scores(pairs[:_PAIRS], low, high), summary, "pairs")
    table(frame, "pairs", formats=dict.fromkeys(("lower score", "higher score", "difference"), "%.4f"))


def _splitting(choice: _Choice, config: Settings) -> None:
    """Draw the hit counts of automatic splitting, and one check."""
    if not config.flag("loadBalancerAutoBundleSplitEnabled"):
        st.info(
            "loadBalancerAutoBundleSplitEnabled is off in this cluster. Shown is what its brokers would do.",
            icon=":material/toggle_off:",
        )
    steps = decide_split_checks(choice.sequence(config), config)
    fired = [at for at, step in enumerate(steps, start=1) if step.decision.splits]
    st.markdown(_when(_SPLITS, fired, len(steps)))
    threshold_ = config.integer("loadBalancerNamespaceBundleSplitConditionHitCountThreshold")
    counted = [{b: h for held in step.after.values() for b, h in held.hit_counts.items()} for step in steps]
    marked = {(order.bundle, at) for at, step in enumerate(steps, start=1) for order in step.decision.splits}
    names = sorted({name for hits in counted for name in hits} | {name for name, _ in marked})
    values = {name: [float(hits.get(name, 0)) for hits in counted] for name in names}
    _grid("**Checks in a row above a limit**", values, threshold_ + 1, marked, "is split")
    at = _look_at(steps, fired)
    rows = reason_rows(steps[at].snapshot, steps[at].decision.reasons, bundles=True)
    rows = sorted(rows, key=lambda row: (not row["moves"], row["code"].endswith(".below")))
    st.markdown(f"**Why each bundle is split or not at check {at + 1}**")
    table(pd.DataFrame(rows[:_REASONS]).rename(columns={"moves": "splits"}), "splits-of-check")


def _decide(picked: str, choice: _Choice, config: Settings) -> None:
    """Draw what is counted."""
    if picked == _SPLITS:
        _splitting(choice, config)
    else:
        _shedding(choice, _SHEDDERS[picked], config)


@st.fragment(run_every=LOOK_S)
def _live(folder: Path, cycles: int, manager: LoadManager, picked: str, config: Settings) -> None:
    """Draw the last cycles of a cluster that is being watched, anew every few seconds."""
    try:
        _decide(picked, _Choice(last_cycles(folder, cycles, config, manager), 1), config)
    except PlannerError as error:
        show_error(error)


def _settings(picked: str, view: state.Current, folder: Path | None) -> Settings:
    """Draw the settings and return those in force; a cluster that is followed begins with its own."""
    st.subheader("Settings")
    given = view.snapshot.settings if folder is None else newest(folder).settings
    own = automatic_extensible.SETTINGS if picked == _SPLITS else _SHEDDERS[picked].settings
    interval = () if picked == _SPLITS else ("loadBalancerSheddingIntervalMinutes",)
    return setting_form((*own, *interval), given, columns=1)


def draw(view: state.Current) -> None:
    """Draw the page: choices on top, counters beside the settings; in a narrow window counters come first."""
    manager = view.snapshot.info.load_manager
    folder = ask_to_follow(view)
    first, middle, last = st.columns([2, 4, 2])
    picked = address.choice("strategy", "What counts", _COUNTING[manager], place=first)
    choice = _choose(view, middle, last) if folder is None else None
    shown = _cycles(middle, "Last cycles", "") if folder is not None else 0
    results, settings = st.columns([2, 1], gap="large")
    with settings:
        config = _settings(picked, view, folder)
    with results:
        if folder is not None:
            _live(folder, shown, manager, picked, config)
        elif choice is not None:
            st.caption(
                f"{count(len(choice.snapshots), 'snapshot')}, the last one seen in {count(choice.cycles, 'cycle')}."
                " Nothing is carried out in between: the snapshots show what the cluster really did, so that what"
                " acts goes on counting from the same load."
            )
            _decide(picked, choice, config)


PAGE = Page(
    title="Hit counters",
    icon=":material/exposure_plus_1:",
    purpose="How the counters of a strategy fill over consecutive snapshots, and in which cycle it acts.",
    draw=draw,
)
