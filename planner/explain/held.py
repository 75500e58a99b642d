"""Brokers above the threshold of the strategy that a rule holds back, cycle by cycle, and which rule it is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.decisions import Reason, ReasonCode
from planner.cluster.snapshot import Snapshot
from planner.explain.outcome import Outcome
from planner.pulsar.manager.cycle import FRAME_GATES, CycleDecision
from planner.pulsar.shedding.profile import Gate

APART: Final = 0.15
"""From which difference on between the most and the least used broker a cluster counts as unbalanced."""
_LOOKED_BACK: Final = 10
"""Cycles, back from the last one, that may be skipped, as in the delay after an unload."""


@dataclass(frozen=True, slots=True)
class Held:
    """A broker that a rule holds back.

    Attributes:
        broker: Its id.
        cycle: Index of the cycle: the last one that was not skipped.
        gate: The rule.
        code: The reason that the decision gives.
        text: The same in words.
        bundles: The bundles that it concerns, as far as the decision names them.
    """

    broker: str
    cycle: int
    gate: Gate
    code: ReasonCode
    text: str
    bundles: tuple[str, ...]


def held_brokers(case: Outcome) -> tuple[Held, ...]:
    """Return the brokers that a cycle leaves alone although their threshold calls for shedding, the busiest first.

    It is the last cycle, or the last one before it that was not skipped, as in the delay after an unload. Where many
    cycles in a row are skipped, that delay is what holds them back. None where the brokers are as alike as they have to
    be, and none of them is above the limit.
    """
    return case.once("held_brokers", lambda: _held(case))


def _held(case: Outcome) -> tuple[Held, ...]:
    usage = case.reported_usage[-1]
    limit = case.limit
    if not np.isfinite(usage).any():
        return ()
    if float(np.nanmax(usage) - np.nanmin(usage)) < APART and float(np.nanmax(usage)) <= limit:
        return ()
    last = len(case.trace.cycles) - 1
    passing: tuple[Held, ...] = ()
    skipped: list[tuple[Held, ...]] = []
    for cycle in range(last, max(last - _LOOKED_BACK, -1), -1):
        if _acts(case, cycle):
            return passing
        held = list(held_in(case, cycle))
        lasting = tuple(one for one in held if not one.gate.passes or not case.summary.shed)
        if lasting and all(one.gate.passes for one in lasting):  # a counter: look at a cycle in which it is full
            passing = passing or lasting
        elif lasting or not (passing or any(one.gate.skips or one.gate.passes for one in held)):
            return lasting
        skipped.append(tuple(one for one in held if one.gate.skips))
    return passing or (skipped[0] if len(skipped) == _LOOKED_BACK and all(skipped) else ())


def waiting_brokers(case: Outcome) -> tuple[Held, ...]:
    """Return the brokers that the last cycle is to shed from, with what holds each back, also what passes by itself."""
    last = len(case.trace.cycles) - 1
    return case.once("waiting_brokers", lambda: tuple(held_in(case, last)))


def held_in(case: Outcome, cycle: int) -> Iterator[Held]:
    """Yield the brokers that a cycle, by its index, leaves alone, the busiest first."""
    view, usage = case.trace.cycles[cycle].view, case.reported_usage[cycle]
    decision = case.decision(cycle)
    average = float(np.nanmean(usage))
    place = {name: i for i, name in enumerate(case.series.brokers)}
    order = sorted(view.brokers.name, key=lambda name: -float(np.nan_to_num(usage[place[name]], nan=-1.0)))
    sources = {move.source for move in decision.moves}
    every = {**case.profile.gates, **FRAME_GATES}
    reasons = gate_reasons(view, decision, every)
    there = set(case.last.brokers.name)
    for broker in order:
        if broker in sources or broker not in there:
            continue
        if case.profile.measure == "usage" and not usage[place[broker]] >= average:
            continue
        if found := reasons.get(broker, []) or reasons.get("", []):
            yield worst(broker, cycle, found, every)


def _acts(case: Outcome, cycle: int) -> bool:
    """Say whether a cycle, by its index, sheds from the broker that is the busiest then."""
    usage = case.reported_usage[cycle]
    if not np.isfinite(usage).any():
        return False
    busiest = case.series.brokers[int(np.nanargmax(usage))]
    return any(unload.move.source == busiest and unload.carried_out for unload in case.trace.cycles[cycle].unloads)


def gate_reasons(view: Snapshot, decision: CycleDecision, every: Mapping[ReasonCode, Gate]) -> dict[str, list[Reason]]:
    """Return the reasons of a decision that are gates, by broker; those of the whole cluster under no name."""
    names, bundles = view.brokers.name, view.bundle_names
    found: dict[str, list[Reason]] = {}
    for group in decision.shedding.reasons:
        if group.code in every:
            for reason in group.rows(names, bundles):
                found.setdefault(reason.broker or "", []).append(reason)
    for unload in decision.unloads:
        if not unload.carried_out:
            found.setdefault(unload.move.source, []).insert(0, unload.reason)
    return found


def worst(broker: str, cycle: int, reasons: Sequence[Reason], every: Mapping[ReasonCode, Gate]) -> Held:
    """Return what holds a broker back: what is said of itself, else what holds most of its bundles."""
    order = list(every)
    counted = Counter(reason.code for reason in reasons)
    frame = [code for code in counted if code in FRAME_GATES]
    own = [r.code for r in reasons if r.bundle is None and not every[r.code].of_bundles]
    of_bundles = [r.code for r in reasons if r.bundle is not None] or list(counted)
    code = max(frame or own[:1] or of_bundles, key=lambda one: (counted[one], -order.index(one)))
    mine = [reason for reason in reasons if reason.code is code]
    about = tuple(dict.fromkeys(reason.bundle for reason in mine if reason.bundle))
    return Held(broker, cycle, every[code], code, mine[0].text, about)
