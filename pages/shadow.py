"""Shadow: what was predicted of a watched cluster, and what it did."""

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.relocation import Relocation
from planner.cluster.text import count, moment, percent, plain
from planner.figures.shadow import shadow_score, shadow_text
from planner.history.passed_over import passed_over
from planner.replay.jobs import histories_root, watch_command
from planner.shadow.record import (
    NEXT,
    RECORD,
    NextCycle,
    ShadowCycle,
    ShadowRecord,
    Split,
    read_next,
    score_of,
    scores_by_strategy,
)
from planner.web import address, names
from planner.web.live_history import watched_clusters
from planner.web.page import Page, Subject
from planner.web.widgets import chart, metrics, show_error, show_notes, table

_LOOK_S = 5.0
_MOST_CYCLES = 2_000
_DRAWN = 200
_FRESH_S = 120
_CARD_PX, _REASON_PX = 150, 210
_HOW = """
No watched cluster on this server yet. Shadow mode predicts each load-balancer cycle from the capture before it,
then compares the prediction with what the cluster does. To start a watch:
"""


def cycles_frame(cycles: Sequence[ShadowCycle]) -> pd.DataFrame:
    """Return one row for each cycle."""
    return pd.DataFrame(
        {
            "cycle": [c.number for c in cycles],
            "when": [moment(c.to_ms) for c in cycles],
            "as predicted": ["yes" if c.right else "no" for c in cycles],
            "predicted": [len(c.predicted) for c in cycles],
            "unloaded": [len(c.actual) for c in cycles],
            "splits predicted": [len(c.predicted_splits) for c in cycles],
            "splits": [len(c.actual_splits) for c in cycles],
            "likely reason": [", ".join(c.causes) for c in cycles],
            "inputs captured in time": ["yes" if c.in_time else "no" for c in cycles],
            "strategy": [c.shedder for c in cycles],
            "leader": [c.leader or "unknown" for c in cycles],
        }
    )


def changes_frame(cycle: ShadowCycle) -> pd.DataFrame:
    """Return one row for each bundle that was unloaded or split, or was to be."""
    causes = {(d.bundle, "split" in d.what): (d.what, d.cause.value) for d in cycle.differences}
    predicted = {u.bundle: u for u in cycle.predicted}
    actual = {u.bundle: u for u in (*cycle.actual, *cycle.outside)}
    rows = []
    for bundle in {**predicted, **actual}:
        went, unload = actual.get(bundle), predicted.get(bundle) or actual[bundle]
        happened = "stayed" if went is None else f"to {went.destination or 'no broker yet'}"
        foreseen = _to(unload) if bundle in predicted else "stays"
        rows.append((bundle, unload.source, foreseen, happened, *causes.get((bundle, False), ("", ""))))
    cuts = {split.bundle: _at(split) for split in cycle.predicted_splits}
    made = {split.bundle: _at(split) for split in cycle.actual_splits}
    for bundle in {**cuts, **made}:
        splits = (cuts.get(bundle, "no split"), made.get(bundle, "no split"))
        rows.append((bundle, "", *splits, *causes.get((bundle, True), ("", ""))))
    return pd.DataFrame(rows, columns=["bundle", "from", "predicted", "actual", "difference", "likely reason"])


def brokers_of(cycles: Sequence[ShadowCycle]) -> tuple[str, ...]:
    """Return the ids of all brokers that cycles name, in order."""
    unloads = (unload for c in cycles for unload in (*c.predicted, *c.actual, *c.outside))
    named = {broker for u in unloads for broker in (u.source, u.destination, *u.acceptable)}
    return tuple(sorted({*named, *(c.leader for c in cycles)} - {""}))


def _to(unload: Relocation) -> str:
    return f"to {' or '.join(unload.acceptable) or 'no broker'}{', or stays' if unload.may_stay else ''}"


def _at(split: Split) -> str:
    cuts = "?" if split.boundaries is None else ", ".join(f"0x{boundary:08x}" for boundary in split.boundaries)
    return f"split at {cuts}"


@st.cache_resource(max_entries=4, show_spinner="Reading predictions …")
def _record(folder: str, changed_ns: int, size: int) -> tuple[ShadowCycle, ...]:
    """Return the newest cycles; the stamps of the file change with it."""
    del changed_ns, size
    return ShadowRecord(Path(folder)).read(last=_MOST_CYCLES)


@st.cache_data(ttl=30, show_spinner=False)
def _passed_over(root: str) -> list[str]:
    return passed_over(Path(root))


def _stamp(folder: Path) -> tuple[int, int]:
    try:
        status = (folder / RECORD).stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


@st.fragment(run_every=_LOOK_S)
def _following(folder: Path, stamp: tuple[int, int]) -> None:
    """Draw the next cycle every few seconds; redraw the whole page when another cycle has been recorded."""
    if _stamp(folder) != stamp:
        st.rerun()
    try:
        following = read_next(folder)
    except PlannerError as error:
        show_error(error)
        return
    if following is not None:
        if following.too_seldom:
            st.warning(following.too_seldom, icon=":material/timer_off:")
        _next(following)


def _next(following: NextCycle) -> None:
    now_s = time.time()
    behind_s = now_s - following.captured_at_ms / 1000
    st.header("Next cycle")
    if behind_s < -_FRESH_S:
        st.caption(f"Last capture: {moment(following.captured_at_ms)}. The clock of the capturing machine is ahead.")
    elif behind_s > _FRESH_S:
        st.caption(f"Last capture: {moment(following.captured_at_ms)}. The watch seems to have stopped.")
    else:
        left_s = following.due_ms / 1000 - now_s
        when = f"in about {left_s:,.0f} s" if left_s > 0 else "about now"
        known = "" if following.rhythm_known else " at the latest; the exact time is known after the first unload"
        st.caption(f"As of {moment(following.captured_at_ms)}. {following.shedder} decides {when}{known}.")
    if not following.unloads and not following.splits:
        st.markdown("No unloads or splits predicted.")
    rows = [(u.bundle, u.source, _to(u)) for u in following.unloads]
    rows += [(s.bundle, "", _at(s)) for s in following.splits]
    if rows:
        frame = pd.DataFrame(rows, columns=["bundle", "from", "predicted"])
        st.dataframe(names.shortened(frame), hide_index=True, width="stretch", key="next-cycle")
    show_notes(following.notes, "Notes on this prediction")


def _score(cycles: Sequence[ShadowCycle]) -> None:
    score = score_of(cycles)
    cards = (
        (
            "Cycles as predicted",
            score.right,
            score.cycles,
            "Cycles in which exactly the predicted bundles were unloaded.",
        ),
        ("With unloads", score.acting_right, score.acting, "Cycles with a predicted or actual unload."),
        (
            "Inputs captured in time",
            score.in_time_right,
            score.in_time,
            "Cycles with unloads whose inputs were captured before the leader decided.",
        ),
        ("Destinations", score.destinations_right, score.destinations, "Bundles that moved to a predicted broker."),
        (
            "Splits",
            score.splits_right,
            score.splits,
            "Splits made as predicted, at the same boundaries. A child may have been split again.",
        ),
    )
    shares = [(label, percent(right / of) if of else "none yet", meaning) for label, right, of, meaning in cards]
    metrics(shares, _CARD_PX, {label: f"{right:,} of {of:,}" for label, right, of, _ in cards if of})
    scores = scores_by_strategy(cycles)
    lines = [f"{strategy}: {one.text}" for strategy, one in scores.items()] if len(scores) > 1 else []
    if score.by_hand:
        verb = "differs" if score.by_hand == 1 else "differ"
        lines.append(f"{count(score.by_hand, 'more cycle')} {verb} only because of manual unloads.")
    for line in lines:
        st.caption(line)


def _acting(cycles: Sequence[ShadowCycle]) -> None:
    """Draw the cycles with unloads: predicted against actual."""
    acting = [c for c in cycles if c.acts][-_DRAWN:]
    if not acting:
        return
    numbers, right = [c.number for c in acting], [c.right for c in acting]
    figure = shadow_score(numbers, [len(c.predicted) for c in acting], [len(c.actual) for c in acting], right)
    last = f" Showing the last {_DRAWN}." if len(acting) == _DRAWN else ""
    chart(figure, f"Cycles with unloads: {shadow_text(numbers, right)}{last}", "shadow-score")


def _cycles(cycles: Sequence[ShadowCycle]) -> None:
    """Draw the cycles, the newest first, and one of them in detail."""
    _acting(cycles)
    st.header("Cycles")
    only = st.toggle("Only cycles with predicted or actual activity", value=True, key="shadow-only")
    visible = [c for c in reversed(cycles) if not only or c.acts or c.differences or c.actual_splits]
    if not visible:
        st.markdown("No activity yet: nothing was predicted and nothing happened.")
        return
    # Another cycle moves the rows: the selection begins anew then, and the address keeps what was looked at.
    key = f"shadow-cycles-{len(visible)}-{visible[0].number}"
    table(
        cycles_frame(visible),
        "shadow-cycles",
        key=key,
        pick=lambda row: address.put(cycle=str(visible[row].number)),
        widths={"likely reason": _REASON_PX},
    )
    asked = address.part("cycle")
    cycle = next((c for c in cycles if str(c.number) == asked), visible[0])
    if asked and asked != str(cycle.number):
        address.note(f"Cycle {plain(asked)} was not recorded; showing the latest cycle.")
    st.header(f"Cycle {cycle.number}")
    st.caption(
        f"Predicted from the capture at {moment(cycle.from_ms)}, compared with the capture at {moment(cycle.to_ms)}."
        " Select a row above for another cycle."
    )
    frame = changes_frame(cycle)
    if frame.empty:
        st.markdown("As predicted, nothing was unloaded or split.")
    else:
        table(frame, "shadow-cycle", widths={"bundle": 310})


def _how_to_record() -> None:
    st.info("No predictions recorded.", icon=":material/visibility:")
    st.markdown(_HOW)
    st.code(watch_command("live"), language=None, wrap_lines=True)
    st.markdown("To judge a history that was captured without `--shadow`:")
    live = shlex.quote(str(histories_root().absolute() / "live"))
    st.code(f"python -m planner shadow --history {live} --record", language=None, wrap_lines=True)


def draw(aside: Any) -> None:
    """Draw the page."""
    watched = watched_clusters().items()
    found = {name: path for name, path in watched if (path / RECORD).is_file() or (path / NEXT).is_file()}
    if not found:
        _how_to_record()
        return
    name = address.choice("cluster", "Cluster", list(found), named=True, clears=("cycle",), place=aside)
    show_notes(_passed_over(str(found[name].parent)), "Skipped folders of this history")
    stamp = _stamp(found[name])
    cycles = _record(str(found[name]), *stamp)
    names.BROKERS.put(brokers_of(cycles))
    if cycles:
        st.caption(f"{count(len(cycles), 'cycle')} recorded since {moment(cycles[0].from_ms)}.")
        _score(cycles)
    else:
        st.info("No complete cycle yet.", icon=":material/hourglass_empty:")
    _following(found[name], stamp)
    if cycles:
        _cycles(cycles)


PAGE = Page(
    title="Shadow",
    icon=":material/visibility:",
    purpose="Predictions for a watched cluster, what the cluster did, and why the two differ.",
    draw=draw,
    subject=Subject.NOTHING,
)
