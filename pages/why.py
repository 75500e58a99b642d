"""Why: every rule examined about a broker or bundle, and what would have to change."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from planner.cluster.decisions import ReasonBlock
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, plain
from planner.explain.outcome import Outcome
from planner.pulsar.manager.cycle import CycleDecision
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.strategies import obstacle, with_obstacle
from planner.simulate.trace import Trace
from planner.simulate.what_if import Answer, Target, WhatIf, what_if
from planner.web import address, names, scenario_history, simulations, state
from planner.web.page import Page, Subject
from planner.web.widgets import show_notes, table

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
                        "of_bundle": reason.bundle is not None,
                        "about": reason.bundle or reason.broker or "the whole cluster",
                        "acts": reason.code.acts,
                        "rule": reason.text,
                        "numbers": ", ".join(f"{name} {value:.6g}" for name, value in reason.values.items()),  # noqa: PD011 - no pandas
                        "code": reason.code.code,
                    }
                )
    rows.sort(key=lambda row: (row["of_bundle"], not row["acts"]))
    return pd.DataFrame(rows, columns=["about", "acts", "rule", "numbers", "code", "of_bundle"])


def _target(trace: Trace, cycle: int, place: Any) -> Target:
    """Let a broker, and perhaps one of its bundles, be chosen; a bundle of the address is looked for where it is."""
    view = trace.cycles[cycle].view
    usage = trace.cycles[cycle].state.usage
    busiest = view.brokers.name[int(usage.argmax())]
    left, right = place.columns(2)
    asked, linked = address.part("broker"), address.part("bundle")
    row = view.bundle_position.get(linked, -1)
    owner = int(view.bundles.owner[row]) if row >= 0 else -1
    if owner >= 0 and asked != view.brokers.name[owner]:
        if asked:
            st.info(
                plain(names.short(f"In cycle {cycle + 1}, {linked} is on {view.brokers.name[owner]}, not on {asked}.")),
                icon=":material/info:",
            )
        address.put(broker=view.brokers.name[owner])
    broker = address.choice(
        "broker", "Broker", list(view.brokers.name), busiest, named=True, clears=("bundle",), place=left
    )
    rows = view.bundles_of(view.brokers.position[broker])
    traffic = view.bundles.throughput_bytes_per_s()
    ordered = sorted(rows.tolist(), key=lambda i: -float(traffic[i]))
    bundles = ["", *(view.bundle_names[i] for i in ordered)]
    itself = "the broker itself"
    bundle = address.choice("bundle", "Bundle", bundles, words=lambda name: name or itself, place=right)
    return Target(broker=broker, bundle=bundle)


def _outcome(decision: CycleDecision, target: Target) -> str:
    moves = [
        unload
        for unload in decision.unloads
        if (unload.move.bundle == target.bundle if target.bundle else unload.move.source == target.broker)
    ]
    subject = names.short(target.bundle or target.broker)
    if not moves:
        return f"**{decision.shedder.name} selected no bundle of {subject}.**"
    gone = [unload for unload in moves if unload.carried_out]
    if not gone:
        return f"**{count(len(moves), 'bundle')} selected, but kept in place:** {moves[0].reason.text}."
    where = names.short(", ".join(sorted({unload.move.destination or "no broker" for unload in gone})))
    if target.bundle:
        return f"**{subject} is shed**, to {where}."
    return f"**{count(len(gone), 'bundle')} of {subject} shed**, to {where}."


def _said(reasons: Sequence[str]) -> None:
    """Draw reasons; many of them are like the first."""
    for reason in reasons[:_REASONS]:
        st.text(names.short(reason))
    if len(reasons) > _REASONS:
        st.caption(f"The table above has {count(len(reasons) - _REASONS, 'more reason')}.")


def _answers(found: WhatIf, *, bundle: bool) -> None:
    title = f"{found.shedder}{' (in force)' if found.ran else ''} {'sheds it' if found.shed else 'does not shed it'}"
    with st.container(border=True):
        st.markdown(f"**{title}**")
        _said(found.reasons)
        if found.answers:
            st.markdown(f"It would {'not be shed' if found.shed else 'be shed'} with:")
            rows = pd.DataFrame([_row(answer, bundle=bundle) for answer in found.answers])
            table(rows, "changes", widths={"setting": 400})
        else:
            st.markdown(f"No setting of {found.shedder} changes that.")
            if found.held:
                st.markdown("Even with the lowest thresholds and minimums:")
                _said(found.held)
        if found.traffic_factor is not None:
            usage = "" if found.usage_percent is None else f", at a usage of {found.usage_percent:.1f} %"
            st.caption(
                f"It would {'not be' if found.shed else 'be'} shed with {found.traffic_factor:.3g} times the traffic of"
                f" its broker{usage}."
            )


def _row(answer: Answer, *, bundle: bool) -> dict[str, str]:
    """Return settings that flip the decision together: from which value on, what they are now, what happens then."""
    units = [REFERENCE.settings[change.setting].unit for change in answer.changes]
    now = [f"{conf_value(c.now)} {unit}".rstrip() for c, unit in zip(answer.changes, units, strict=True)]
    exact = [
        f"; the exact value is {c.exact:.4g}, but the setting takes whole numbers only"
        for c in answer.changes
        if c.exact is not None
    ]
    if bundle:
        then = "it is shed" if answer.moves else "it stays"
    else:
        then = f"{count(len(answer.moves), 'bundle')} shed" if answer.moves else "none of its bundles is shed"
    return {
        "setting": " and ".join(change.setting for change in answer.changes),
        "required value": " and ".join(change.condition for change in answer.changes),
        "now": " and ".join(now),
        "what happens": then + "".join(exact[:1]),
    }


def _what_if(outcome: Outcome, cycle: int, target: Target, running: Shedder) -> None:
    """Let a strategy be chosen, and draw what would have to change under it."""
    view, release = outcome.trace.cycles[cycle].view, outcome.trace.settings.release
    against = {s.name: obstacle(s, view.info.load_manager, release) for s in SHEDDERS}
    others = {s.name: s for s in sorted(SHEDDERS, key=lambda s: bool(against[s.name])) if s.name != running.name}
    labels = {running.name: f"{running.name} (in force)"}
    labels |= {name: with_obstacle(name, against[name]) for name in others}
    chosen = others.get(address.choice("ask", "Ask", labels), running)
    with st.spinner("Trying changes …"):
        key = ("what if", cycle, target, chosen.name)
        (answer,) = outcome.once(key, lambda: what_if(outcome.trace, cycle, target, (chosen,)))
    _answers(answer, bundle=bool(target.bundle))


def _rules(decision: CycleDecision, snapshot: Snapshot, target: Target) -> None:
    """Draw every rule that was examined about the broker or bundle, and where the bundle goes."""
    st.header("Every rule examined")
    rules = rules_about(snapshot, decision.shedding.reasons, target)
    if target.bundle and not len(rules):
        st.caption("The strategy did not examine this bundle. Its rules for the broker:")
        own = rules_about(snapshot, decision.shedding.reasons, Target(broker=target.broker))
        rules = own[~own["of_bundle"].astype(bool)]
    if len(rules):
        visible = rules.drop(columns="of_bundle").rename(columns={"acts": "sheds"})
        table(visible, "rules", widths={"sheds": 55, "rule": 560}, hidden=("numbers",))
    else:
        st.info("The strategy did not examine it in this cycle.", icon=":material/info:")
    for unload in decision.unloads:
        if unload.selection is None or unload.move.bundle != target.bundle:
            continue
        st.markdown("**Destination: every candidate of placement**")
        reasons = unload.selection.decision.reasons
        named = [row for group in reasons for row in group.rows(snapshot.brokers.name, snapshot.bundle_names)]
        frame = pd.DataFrame([{"broker": r.broker, "possible": r.code.acts, "why": r.text} for r in named])
        table(frame, "candidates", widths={"why": 620})


def draw(view: state.Current) -> None:
    """Draw the page."""
    found = simulations.run(view, scenario_history.present(view))
    if found is None:
        return
    outcome, trace = found[0], found[0].trace
    shedding = [cycle.index + 1 for cycle in trace.cycles if any(unload.carried_out for unload in cycle.unloads)]
    left, right = st.columns([1, 4])
    first = shedding[0] if shedding else 1
    cycle = address.number("cycle", "Cycle", first, 1, len(trace.cycles), named=True, place=left) - 1
    target = _target(trace, cycle, right)
    if shedding:
        listed = ", ".join(map(str, shedding[:_LISTED]))
        st.caption(f"Cycles that shed: {listed}{' …' if len(shedding) > _LISTED else ''}.")
    decision = outcome.decision(cycle)
    st.markdown(_outcome(decision, target))
    _rules(decision, trace.cycles[cycle].view, target)
    st.header("What would change the answer")
    st.caption("Each answer was verified by running this cycle again with the change.")
    _what_if(outcome, cycle, target, decision.shedder)
    show_notes(decision.notes, "Notes on this decision")


PAGE = Page(
    title="Why",
    icon=":material/help:",
    purpose="Why a broker or bundle is shed or not: every rule examined in a cycle, and what would change the answer.",
    draw=draw,
    subject=Subject.SCENARIO,
)
