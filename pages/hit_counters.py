"""Hit counters: what a leader counts over consecutive snapshots, and what fires when."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.cluster.errors import PlannerError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD,
    SHEDDING_INTERVAL_MINUTES,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, moment, short_digest
from planner.explain.decision_tables import reason_rows
from planner.figures.counters import counter_grid, counter_lines, paired_scores
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.shedding.profile import Profile, Tally
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS, offered_shedders
from planner.pulsar.splitting import automatic_extensible
from planner.simulate.sequence import CycleStep, decide_cycles, decide_split_checks, same_load
from planner.web import address, scenario_history, state
from planner.web.choices import SPLITS, choose_shedder
from planner.web.live_history import LOOK_S, ask_to_follow, last_cycles, newest
from planner.web.moves import show_memory
from planner.web.names import short
from planner.web.page import Page, Subject
from planner.web.session import bound
from planner.web.setting_form import setting_form
from planner.web.strategies import as_if_running
from planner.web.tasks import answer
from planner.web.widgets import chart, show_error, show_notes, table

_MOST_CYCLES = 60
_CYCLES = 10
_ROWS = 8
_SAID = 12
_PAIRS = 10
_PALETTE = 8
_REASONS = 2_000
_SHEDDERS: Mapping[str, Shedder] = {
    one.name: one  # those that count before those that average
    for one in sorted(SHEDDERS, key=lambda one: all(tally.needed is None for tally in one.profile.tallies))
    if one.profile.tallies
}


def _counting(manager: LoadManager, config: Settings) -> tuple[str, ...]:
    """Return what a load manager counts, of what its release has; and what is in force."""
    offered = {*offered_shedders(manager, config.release), effective_shedder(manager, config)[0]}
    own = tuple(one.name for one in _SHEDDERS.values() if one in offered)
    return (*own, SPLITS) if manager is LoadManager.EXTENSIBLE else own


@dataclass(frozen=True)
class _Choice:
    """What to go through: snapshots, oldest first, how many cycles see the last one, and what all that is called."""

    snapshots: tuple[Snapshot, ...]
    cycles: int
    names: tuple[str, ...]

    def key(self) -> tuple[object, ...]:
        return (*self.names, self.cycles)

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
        help="Snapshots on this server with the same cluster and load manager.",
    )
    cycles = _cycles(
        right, "Cycles with the last snapshot", "Number of consecutive cycles that see the load of the last snapshot."
    )
    digests = [s.digest for s in mine if short_digest(s.digest) in chosen] or [view.digest]
    found = [view.snapshot if d == view.digest else state.snapshot_of(d) for d in digests[-_MOST_CYCLES:]]
    return _Choice(tuple(found), cycles, (view.digest, view.variant, *digests))


def _cycles(place: DeltaGenerator, label: str, help_: str) -> int:
    return address.number("cycles", label, _CYCLES, 1, _MOST_CYCLES, place=place, help=help_)


def pair_frame(step: CycleStep, before: Any, profile: Profile, config: Settings) -> pd.DataFrame:
    """Return one row for each pair that a strategy compares in a cycle, with its counters afterwards and `before`."""
    shedding, names = step.decision.shedding, step.snapshot.brokers.name
    points, after = shedding.scores * 100, step.after.shedding.state
    moves = {move.source for move in shedding.moves}
    rows = []
    for low, high in profile.pairs(shedding) if profile.pairs else ():
        row = {
            "lower broker": names[low],
            "lower score": points[low],
            "higher broker": names[high],
            "higher score": points[high],
            "difference": points[high] - points[low],
        }
        for tally in profile.tallies:
            pair = (names[low], names[high])
            row |= {
                f"{tally.name} hits{when}": int(max(tally.of(state, pair).values()))
                for when, state in ((" before", before), ("", after))
            }
            row[f"needed ({tally.name})"] = tally.needed(config) if tally.needed else None
        rows.append({**row, "unloads": names[high] in moves})
    return pd.DataFrame(rows)


def _when(what: str, fired: Sequence[int], cycles: int) -> str:
    if not fired:
        return f"**{what}** does not act in any of these cycles."
    if len(fired) == cycles:
        return f"**{what}** acts in every cycle."
    return f"**{what}** acts in cycle {', '.join(map(str, fired[:_SAID]))}{' …' if len(fired) > _SAID else ''}."


def _grid(
    label: str,
    values: Mapping[str, list[float]],
    needed: int,
    marked: set[tuple[str, int]],
    mark: str,
    in_vain: Collection[tuple[str, int]] = (),
) -> None:
    """Draw counters as cells, those with the largest counts first; nothing when nothing was counted."""
    rows = sorted((name for name in values if max(values[name]) > 0), key=lambda name: -max(values[name]))
    visible = rows[:_ROWS]
    if not visible:
        st.markdown(f"{label}: no counters to show.")
        return
    more = f" Showing the {_ROWS} of {len(rows)} with the highest counts." if len(rows) > _ROWS else ""
    marks = [(visible.index(name), cycle) for name, cycle in sorted(marked) if name in visible]
    crosses = [(visible.index(name), cycle) for name, cycle in sorted(in_vain) if name in visible]
    figure = counter_grid(
        [short(name) for name in visible],
        np.array([values[name] for name in visible]),
        float(needed),
        marks,
        mark,
        crosses,
    )
    framed = f" A frame marks a cell that {mark}; its count then restarts." if marks else ""
    framed += " A cross marks a count that was reached, although no bundle fits; it also restarts." if crosses else ""
    chart(
        figure, f"{label}: {count(needed, 'hit')} needed; the cells show the count in each cycle.{framed}{more}", label
    )


def _reached(
    steps: Sequence[CycleStep], shedder: Shedder, tally: Tally, config: Settings, values: Mapping[str, list[float]]
) -> tuple[dict[str, list[float]], set[tuple[str, int]], set[tuple[str, int]]]:
    """Return the counts with those that were reached, which are 0 after the cycle; who acts then, and who in vain."""
    drawn = {name: list(counts) for name, counts in values.items()}
    acting: set[tuple[str, int]] = set()
    in_vain: set[tuple[str, int]] = set()
    if shedder.profile.spent is None or tally.needed is None or tally.apart is None:
        return drawn, acting, in_vain
    state = shedder.initial()
    for cycle, step in enumerate(steps, start=1):
        for broker, (acts, points) in shedder.profile.spent(step.decision.shedding).items():
            name = step.snapshot.brokers.name[broker]
            count = tally.of(state, (name,))[name] + 1
            if name in drawn and points >= tally.apart(config) and count >= tally.needed(config):
                drawn[name][cycle - 1] = count
                (acting if acts else in_vain).add((name, cycle))
        state = step.after.shedding.state
    return drawn, acting, in_vain


def _tallied(
    steps: Sequence[CycleStep], shedder: Shedder, tally: Tally, config: Settings, fired: list[int]
) -> dict[str, list[float]]:
    """Draw what is counted or averaged from cycle to cycle, and return it by broker."""
    states = [step.after.shedding.state for step in steps]
    rows = [tally.of(state, steps[-1].snapshot.brokers.name) for state in states]
    values = {name: [row[name] for row in rows] for name in rows[-1]}
    label, needed = tally.label(config), tally.needed(config) if tally.needed else 0
    if tally.unit == "hits":
        drawn, marked, in_vain = _reached(steps, shedder, tally, config, values)
        _grid(f"**{label.replace(' (', '** (', 1)}", drawn, needed, marked, "sheds or receives", in_vain)
        return {f"{name} ({tally.name})": counts for name, counts in values.items() if max(counts) > 0}
    if tally.unit == "cycles":
        figure = counter_lines(
            {short(name): counts for name, counts in values.items()},
            float(needed),
            "must be exceeded:",
            fired,
            "Consecutive cycles that call for shedding",
        )
        chart(figure, f"{label}; the count then restarts at 0.", "hits")
        return values
    values = {name: [value * 100 for value in shares] for name, shares in values.items()}
    largest = sorted(values, key=lambda name: -np.nan_to_num(values[name]).max())[:_PALETTE]
    limit = {line.label: line.value for line in steps[-1].decision.shedding.lines}.get("average + threshold")
    figure = counter_lines(
        {short(name): values[name] for name in largest},
        None if limit is None else limit * 100,
        "average + threshold in the last cycle",
        fired if len(fired) < len(steps) else (),
        "averaged usage (%)",
    )
    more = f", the {_PALETTE} highest of {len(values)} brokers" if len(values) > _PALETTE else ""
    chart(figure, f"{label}{more}.", "averages")
    return values


def _look_at(steps: Sequence[object], fired: list[int]) -> int:
    """Draw which cycle to look into and return its place."""
    if len(steps) < 2:  # noqa: PLR2004 - nothing to choose
        return 0
    return address.number("at", "Cycle", fired[0] if fired else 1, 1, len(steps), slider=True) - 1


@st.cache_resource(max_entries=3, show_spinner="Deciding …", hash_funcs={Settings: repr, _Choice: _Choice.key})
def _steps(choice: _Choice, config: Settings) -> Sequence[CycleStep]:
    """Return the cycles under a strategy."""
    return decide_cycles(choice.sequence(config), config, 0, explain=False)


def _acts(steps: Sequence[CycleStep]) -> list[int]:
    """Return in which cycles a strategy acts."""
    return [at for at, step in enumerate(steps, start=1) if step.decision.shedding.moves]


def _instead(choice: _Choice, other: Shedder, config: Settings, cycles: int) -> None:
    """Draw in which cycles another strategy acts, which the page does not wait for."""
    config = config.changed(loadBalancerLoadSheddingStrategy=other.java_class)

    def make(*_: object) -> list[int]:
        return _acts(decide_cycles(choice.sequence(config), config, 0, explain=False))

    acts = answer(f"acts-{choice.key()}-{config!r}", make, f"When would {other.name} act?")
    if acts is not None:
        st.caption(f"Instead: {_when(other.name, acts, cycles)}")


def _shedding(choice: _Choice, shedder: Shedder, config: Settings) -> None:
    """Draw the counters of a shedding strategy, and one of its cycles; of others, when they act."""
    config, off = as_if_running(config.changed(loadBalancerLoadSheddingStrategy=shedder.java_class))
    if off:
        st.info(off, icon=":material/toggle_off:")
    steps = _steps(choice, config)
    fired = _acts(steps)
    st.markdown(_when(shedder.name, fired, len(steps)))
    offered = offered_shedders(shedder.load_manager, config.release)
    for other in (one for one in _SHEDDERS.values() if one in offered and one is not shedder):
        _instead(choice, other, config, len(steps))
    series: dict[str, list[float]] = {}
    tallies = shedder.profile.tallies
    for place, tally in zip(st.columns(len(tallies)), tallies, strict=True):
        with place:
            series |= _tallied(steps, shedder, tally, config, fired)
    chosen = [len(s.decision.shedding.moves) for s in steps]
    numbers = pd.DataFrame({"cycle": range(1, len(steps) + 1), "bundles selected": chosen, **series})
    _one_cycle(steps, fired, shedder, config, numbers)


def _one_cycle(
    steps: Sequence[CycleStep], fired: list[int], shedder: Shedder, config: Settings, numbers: pd.DataFrame
) -> None:
    """Draw the numbers of all cycles, and what one of them compares and decides."""
    with st.expander("The counters as a table"):
        table(numbers, "counters")
    at = _look_at(steps, fired)
    step = steps[at]
    paired = shedder.profile.pairs is not None
    names = [*(["Pairs"] if paired else []), "Why each broker acts or not", "Selected bundles"]
    *pairs, why, chosen = st.tabs(names)
    for place in pairs:
        before = steps[at - 1].after.shedding.state if at else shedder.initial()
        with place:
            _pairs(pair_frame(step, before, shedder.profile, config), shedder.profile, at + 1, config)
    with why:
        reasons = reason_rows(step.snapshot, step.decision.shedding.reasons, bundles=False)
        table(pd.DataFrame(reasons), "reasons-of-cycle")
    with chosen:
        moves = step.decision.shedding.moves
        st.markdown(f"**{count(len(moves), 'bundle')} selected in cycle {at + 1}**")
        if moves:
            moved = [{"bundle": m.bundle, "from": m.source, "why": m.reason.text} for m in moves]
            table(pd.DataFrame(moved), "moves-of-cycle")
    show_memory(step.after, "counters")
    show_notes(shedder.profile.differences, "Where the public documentation differs from the code")


def _pairs(frame: pd.DataFrame, profile: Profile, cycle: int, config: Settings) -> None:
    """Draw the scores of a cycle, ranked and paired."""
    if frame.empty:
        st.markdown(f"Cycle {cycle}: no brokers to pair.")
        return
    columns = ["lower broker", "lower score", "higher broker", "higher score"]
    ranked = frame[columns].assign(**{name: frame[name].map(short) for name in columns[::2]})
    pairs = list(ranked.itertuples(index=False, name=None))
    low, high = (tally.apart(config) if tally.apart else 0 for tally in profile.tallies)
    apart = int((frame["difference"] >= low).sum())
    summary = (
        f"**Cycle {cycle}, ranked and paired**: lowest with highest, second lowest with second highest, and so on."
        f" {apart} of {count(len(frame), 'pair')} differ by at least {low} points,"
        f" {int((frame['difference'] >= high).sum())} by at least"
        f" {high}.{f' Showing the first {_PAIRS}.' if len(frame) > _PAIRS else ''}"
    )
    chart(paired_scores(pairs[:_PAIRS], low, high), summary, "pairs")
    table(frame, "pairs", formats=dict.fromkeys(("lower score", "higher score", "difference"), "%.2f"))


def _splitting(choice: _Choice, config: Settings) -> None:
    """Draw the hit counts of automatic splitting, and one check."""
    if not config.flag(AUTO_BUNDLE_SPLIT_ENABLED):
        st.info(
            "loadBalancerAutoBundleSplitEnabled is off in this cluster. The page shows what its brokers would do"
            " with this setting on.",
            icon=":material/toggle_off:",
        )
    steps = decide_split_checks(choice.sequence(config), config)
    fired = [at for at, step in enumerate(steps, start=1) if step.decision.splits]
    st.markdown(_when(SPLITS, fired, len(steps)))
    threshold_ = config.integer(NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD)
    counted = [{b: h for held in step.after.values() for b, h in held.hit_counts.items()} for step in steps]
    marked = {(order.bundle, at) for at, step in enumerate(steps, start=1) for order in step.decision.splits}
    names = sorted({name for hits in counted for name in hits} | {name for name, _ in marked})
    values = {name: [float(hits.get(name, 0)) for hits in counted] for name in names}
    _grid("**Consecutive checks above a limit**", values, threshold_ + 1, marked, "is split")
    at = _look_at(steps, fired)
    rows = reason_rows(steps[at].snapshot, steps[at].decision.reasons, bundles=True)
    rows = sorted(rows, key=lambda row: (not row["moves"], row["code"].endswith(".below")))
    st.markdown(f"**Why each bundle is or is not split at check {at + 1}**")
    table(pd.DataFrame(rows[:_REASONS]).rename(columns={"moves": "splits"}), "splits-of-check")


def _decide(picked: str, choice: _Choice, config: Settings) -> None:
    """Draw what is counted."""
    if picked == SPLITS:
        _splitting(choice, config)
    else:
        _shedding(choice, _SHEDDERS[picked], config)


@st.fragment(run_every=LOOK_S)
def _live(folder: Path, cycles: int, manager: LoadManager, picked: str, config: Settings) -> None:
    """Draw the last cycles of a watched cluster, and redraw them every few seconds."""
    try:
        seen = last_cycles(folder, cycles, config, manager)
        names = (str(folder), *(str(snapshot.info.captured_at_ms) for snapshot in seen))
        _decide(picked, _Choice(seen, 1, names), config)
    except PlannerError as error:
        show_error(error)


def _config(view: state.Current, folder: Path | None) -> Settings:
    """Return the settings in force, those of the scenario over the cluster's own; a followed cluster has newer ones."""
    if folder is None:
        return scenario_history.present(view).settings_over(view.captured)
    return newest(folder).settings.changed(**in_full(scenario_history.present(view).settings))


def _settings(picked: str, view: state.Current, config: Settings) -> None:
    """Draw the settings that count."""
    st.header("Settings")
    own = automatic_extensible.SETTINGS if picked == SPLITS else _SHEDDERS[picked].settings
    interval = () if picked == SPLITS else (SHEDDING_INTERVAL_MINUTES,)
    setting_form(view, (*own, *interval), config, columns=1)


def _what_counts(view: state.Current, manager: LoadManager, config: Settings, place: DeltaGenerator) -> str:
    """Draw the choice of what counts: a strategy becomes the scenario's, automatic splits are looked at beside it."""
    names = _counting(manager, config)
    running = effective_shedder(manager, config)[0].name
    picked = SPLITS if address.part("strategy") == SPLITS and SPLITS in names else running
    if picked not in names:
        picked = names[0]
        place.caption(
            f"The current strategy, {running}, has no counters. The page shows what another strategy would count."
        )

    def take(chosen: str) -> None:
        address.put(strategy=SPLITS if chosen == SPLITS else "")
        if chosen != SPLITS:
            choose_shedder(view, chosen)

    bound("what-counts", picked, partial(place.selectbox, "Show counters of", names), take)
    return picked


def draw(view: state.Current) -> None:
    """Draw the page: choices on top, settings in the drawer."""
    manager = scenario_history.present(view).load_manager_over(view.captured)
    view = view.under(manager)
    folder = ask_to_follow(view)
    config = _config(view, folder)
    first, middle, last = st.columns([2, 4, 2])
    picked = _what_counts(view, manager, config, first)
    choice = _choose(view, middle, last) if folder is None else None
    latest = _cycles(middle, "Last cycles", "") if folder is not None else 0
    with st.sidebar:
        _settings(picked, view, config)
    if folder is not None:
        _live(folder, latest, manager, picked, config)
    elif choice is not None:
        st.caption(
            f"{count(len(choice.snapshots), 'snapshot')}, the last one used for {count(choice.cycles, 'cycle')}. No"
            " unload is simulated between them, because the snapshots already show what the cluster did."
        )
        _decide(picked, choice, config)


PAGE = Page(
    title="Hit counters",
    icon=":material/exposure_plus_1:",
    purpose="How the hit counters of a strategy increase over consecutive snapshots, and in which cycle it acts.",
    draw=draw,
    subject=Subject.DECISION,
    has_drawer=True,
)
