"""What the Why page draws: every rule that was examined about one broker or bundle in one cycle."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from planner.cluster.decisions import ReasonBlock
from planner.cluster.errors import PlannerError
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import Snapshot
from planner.explain.outcome import Outcome
from planner.explain.what_if import Answer, Target, WhatIf, what_if
from planner.pulsar.manager.cycle import CycleDecision
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.trace import Trace
from planner.web import scenarios, state
from planner.web.setting_form import written
from planner.web.text import count
from planner.web.widgets import show_error, show_notes, table

_WIDTHS = {
    "acts": st.column_config.CheckboxColumn("sheds", width=55, help="Whether this rule lets something be shed."),
    "rule": st.column_config.TextColumn(width=560),
}
_LISTED = 15
_REASONS = 6


def rules_about(snapshot: Snapshot, blocks: Sequence[ReasonBlock], target: Target) -> pd.DataFrame:
    """Return every rule that was examined about a broker (and its bundles), or about a bundle, as a table."""
    rows: list[Mapping[str, Any]] = []
    broker = snapshot.brokers.position.get(target.broker, -1)
    bundle = snapshot.bundle_position.get(target.bundle, -1)
    for group in blocks:
        hits = group.bundles == bundle if target.bundle else (group.brokers == broker) | (group.brokers < 0)
        if not hits.any():
            continue
        for reason, hit in zip(group.rows(snapshot.brokers.name, snapshot.bundle_names), hits.tolist(), strict=True):
            if hit:
                rows.append(
                    {
                        "about": reason.bundle or reason.broker or "the whole cluster",
                        "acts": reason.code.acts,
                        "rule": reason.text,
                        "numbers": ", ".join(f"{name} {value:.6g}" for name, value in reason.values.items()),  # noqa: PD011 - no pandas
                        "code": reason.code.code,
                    }
                )
    rows.sort(key=lambda row: ("/" in str(row["about"]), not row["acts"]))
    return pd.DataFrame(rows, columns=["about", "acts", "rule", "numbers", "code"])


def _target(trace: Trace, cycle: int) -> Target:
    """Let a broker, and perhaps one of its bundles, be chosen."""
    view = trace.cycles[cycle].view
    names = list(view.brokers.name)
    usage = trace.cycles[cycle].state.usage
    asked = state.param("broker")
    busiest = names[int(usage.argmax())] if len(usage) else ""
    left, right = st.columns(2)
    start = names.index(asked) if asked in names else names.index(busiest)
    broker = left.selectbox("Broker", names, start, key=f"why-broker-{start}") or busiest
    rows = view.bundles_of(view.brokers.position[broker])
    traffic = view.bundles.msg_throughput_in_bytes_per_s + view.bundles.msg_throughput_out_bytes_per_s
    ordered = sorted(rows.tolist(), key=lambda i: -float(traffic[i]))
    every = "the broker itself"
    bundles = [every, *(view.bundle_names[i] for i in ordered)]
    wanted = state.param("bundle")
    at = bundles.index(wanted) if wanted in bundles else 0
    bundle = right.selectbox("Bundle", bundles, at, key=f"why-bundle-{broker}-{at}") or every
    state.set_params(broker=broker, bundle="" if bundle == every else bundle)
    if (broker, bundle) != (names[start], bundles[at]):  # drawn anew, else the next choice in these boxes would be lost
        st.rerun()
    return Target(broker=broker, bundle="" if bundle == every else bundle)


def _outcome(decision: CycleDecision, target: Target) -> str:
    moves = [
        unload
        for unload in decision.unloads
        if (unload.move.bundle == target.bundle if target.bundle else unload.move.source == target.broker)
    ]
    subject = target.bundle or target.broker
    if not moves:
        return f"**{decision.shedder.name} chose nothing of {subject}.**"
    gone = [unload for unload in moves if unload.carried_out]
    if not gone:
        return f"**{count(len(moves), 'bundle')} chosen, but kept:** {moves[0].reason.text}."
    where = ", ".join(sorted({unload.move.destination or "nobody" for unload in gone}))
    if target.bundle:
        return f"**{subject} is shed**, to {where}."
    return f"**{count(len(gone), 'bundle')} of {subject} shed**, to {where}."


def _said(reasons: Sequence[str]) -> None:
    """Draw reasons; many of them are like the first."""
    for reason in reasons[:_REASONS]:
        st.text(reason)
    if len(reasons) > _REASONS:
        st.caption(f"And {count(len(reasons) - _REASONS, 'reason')} more, in the table above.")


def _answers(found: WhatIf, *, bundle: bool) -> None:
    title = f"{found.shedder}{' (in force)' if found.ran else ''}: {'sheds' if found.shed else 'does not shed'} it"
    with st.container(border=True):
        st.markdown(f"**{title}**")
        _said(found.reasons)
        if found.answers:
            st.markdown(f"It would {'not be shed' if found.shed else 'be shed'} with:")
            for answer in found.answers:
                conditions = " and ".join(change.text for change in answer.changes)
                st.code(conditions, language=None, wrap_lines=True)
                st.caption(_then(answer, bundle=bundle))
        else:
            st.markdown(f"No setting of {found.shedder} changes that.")
            if found.held:
                st.markdown("Even with every threshold and minimum at its lowest:")
                _said(found.held)
        if found.traffic_factor is not None:
            usage = "" if found.usage_percent is None else f", at a usage of {found.usage_percent:.1f} %"
            st.caption(
                f"It would {'not be' if found.shed else 'be'} shed with {found.traffic_factor:.3g} times the traffic of"
                f" its broker{usage}."
            )


def _then(answer: Answer, *, bundle: bool) -> str:
    """Say what the settings of an answer are now, and what happens with the others."""
    now = []
    for change in answer.changes:
        unit = REFERENCE.settings[change.setting].unit
        now.append(f"{written(change.now)}{f' {unit}' if unit else ''}")
    exact = [f"; exactly at {c.exact:.4g}, but it takes whole numbers" for c in answer.changes if c.exact is not None]
    if bundle:
        then = "it is shed then" if answer.moves else "it stays then"
    else:
        then = f"{count(len(answer.moves), 'bundle')} shed then" if answer.moves else "none of its bundles is shed then"
    return f"Now {' and '.join(now)}{''.join(exact[:1])}; {then}."


def _what_if(outcome: Outcome, cycle: int, target: Target, running: Shedder) -> None:
    """Let a strategy be chosen, and draw what would have to change under it."""
    others = [s for s in SHEDDERS if s.name != running.name]
    labels = {running.name: f"{running.name} (in force)", **{s.name: s.name for s in others}}
    asked = state.param("ask")
    at = list(labels).index(asked) if asked in labels else 0
    name = st.selectbox("Ask", list(labels), at, format_func=labels.__getitem__, key="why-ask")
    state.set_params(ask="" if name in {None, running.name} else str(name))
    chosen = next((s for s in others if s.name == name), running)
    with st.spinner("Trying changes ..."):
        key = ("what if", cycle, target, chosen.name)
        (answer,) = outcome.once(key, lambda: what_if(outcome.trace, cycle, target, (chosen,)))
    _answers(answer, bundle=bool(target.bundle))


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenarios.history(view).present
    found = scenarios.run(view, present)
    if found is None:
        return
    outcome, trace = found[0], found[0].trace
    last = len(trace.cycles)
    asked = state.param("cycle")
    shedding = [cycle.index for cycle in trace.cycles if any(unload.carried_out for unload in cycle.unloads)]
    first = shedding[0] + 1 if shedding else 1
    start = int(asked) if asked.isdecimal() and 1 <= int(asked) <= last else first
    left, right = st.columns([1, 4])
    cycle = int(left.number_input("Cycle", 1, last, start, key=f"why-cycle-{start}")) - 1
    state.set_params(cycle=str(cycle + 1))
    if cycle + 1 != start:  # as for the broker: the box must be drawn with what was chosen
        st.rerun()
    try:
        with right:
            target = _target(trace, cycle)
        if shedding:
            shown = ", ".join(str(at + 1) for at in shedding[:_LISTED])
            st.caption(f"Something is shed in cycle {shown}{' ...' if len(shedding) > _LISTED else ''}.")
        decision = outcome.decision(cycle)
        st.markdown(_outcome(decision, target))
        snapshot = trace.cycles[cycle].view
        selections = [
            unload.selection.decision.reasons
            for unload in decision.unloads
            if unload.selection is not None and unload.move.bundle == target.bundle
        ]
        rules = rules_about(snapshot, decision.shedding.reasons, target)
        st.subheader("Every rule examined")
        if target.bundle and not len(rules):
            st.caption("The strategy did not come to this bundle; what it says about its broker:")
            own = rules_about(snapshot, decision.shedding.reasons, Target(broker=target.broker))
            rules = own[~own["about"].str.contains("/")]
        if len(rules):
            table(rules, "rules", column_config=_WIDTHS)
        else:
            st.info("The strategy did not come to it in this cycle.", icon=":material/info:")
        for reasons in selections:
            st.markdown("**Where it goes: every candidate of placement**")
            named = [row for group in reasons for row in group.rows(snapshot.brokers.name, snapshot.bundle_names)]
            frame = pd.DataFrame([{"broker": r.broker, "may take it": r.code.acts, "why": r.text} for r in named])
            table(frame, "candidates", column_config={"why": st.column_config.TextColumn(width=620)})
        st.subheader("What would have to change")
        st.caption("Each answer was verified by deciding this cycle again with it.")
        _what_if(outcome, cycle, target, decision.shedder)
        show_notes(decision.notes, "Notes on this decision")
    except PlannerError as error:
        show_error(error)
