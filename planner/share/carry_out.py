"""A plan as something to carry out: steps, a script, JSON and the undo script. Text only; no cluster is contacted."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from planner.cluster.digest import snapshot_digest
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES, SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS
from planner.cluster.relocation import Relocation
from planner.cluster.setting import SettingValue
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, short_digest
from planner.optimize.offer import Offer
from planner.optimize.plan import Plan
from planner.optimize.question import cost_text, unit_of
from planner.optimize.stability import LEFT_OFF, Stability
from planner.optimize.waves import REPORTED, Wave, scenario_of
from planner.share.commands import (
    CAPTURE_AGAIN,
    CommandOptions,
    hold,
    in_order,
    needs_restart,
    setting_changes,
    settings_commands,
    split_commands,
    unload_batches,
)
from planner.share.export import csv_text
from planner.share.link import scenario_part
from planner.share.script import command_script
from planner.share.script_head import Facts, facts_of, head_lines
from planner.share.step_table import steps_json, steps_markdown
from planner.simulate.admin_commands import SHOWN, Command, Role, shutdown_command, waiting
from planner.simulate.edits.edit import some_of
from planner.simulate.event import Event
from planner.simulate.scenario import MOST_STEPS, Scenario

FORMAT_VERSION: Final = 1
"""Version of the JSON document."""

_LEAVE_OFF = (
    "Pulsar undoes part of this plan, and no single threshold prevents that. To keep the plan, run the script with"
    " --leave-shedding-off. If every step succeeds, shedding then stays off until you turn it on."
)
_NAMES = "By hand: start these brokers if they are not running yet, and specify their real ids: {}."
_AFTER_SCENARIO = (
    "This plan starts from the cluster at the end of the scenario. Carry out the scenario first. Bundles that have"
    " moved by then are skipped."
)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan starts from where that is not the cluster as captured.

    Attributes:
        captured: The cluster as captured.
        scenario: The scenario whose end the plan starts from.
    """

    captured: Snapshot
    scenario: Scenario

    @property
    def settings(self) -> dict[str, tuple[SettingValue, SettingValue]]:
        """Settings that the scenario changes: value before and after."""
        managers = self.captured.info.load_manager, self.scenario.load_manager_over(self.captured)
        return setting_changes(self.captured.settings, self.scenario.settings_over(self.captured), managers)

    def asked(self, program: Sequence[str]) -> list[Command]:
        """Return what the edits ask of an operator."""
        made = self.scenario.within(self.captured).edits
        cluster, edits = self.captured.info.cluster, [edit.over(self.captured) for edit in made]
        return [command for edit in edits for command in edit.commands(cluster, program)]


def steps(
    plan: Plan,
    waves: Sequence[Wave],
    stability: Stability | None = None,
    options: CommandOptions | None = None,
    basis: Basis | None = None,
) -> tuple[Command, ...]:
    """Return what to do, in order: what the scenario asks for, hold, split, unload in waves, settings, release.

    Args:
        plan: The plan.
        waves: Its waves.
        stability: What the load balancer makes of it; the script asks whether to set what keeps it.
        options: How commands are written.
        basis: Where the plan starts from the end of a scenario.
    """
    how, start = options or CommandOptions(), plan.snapshot
    before = basis.captured if basis else start
    asked = [*basis.asked(how.program), Command(section="notes", note=_AFTER_SCENARIO)] if basis else []
    changes = basis.settings if basis else {}
    dynamic = before.info.dynamic_settings
    if needs_restart(changes):
        kept = [command for command in asked if command.section != "leaving"]
        again = Command(section="settings", note=CAPTURE_AGAIN)
        return in_order([*kept, *settings_commands(changes, how, dynamic=dynamic), again])
    supported = start.settings.names(SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS)
    found = [Command(section="notes", note=note) for note in plan.notes]
    for one in plan.splits:
        event = Event(bundle=one.bundle, source=one.broker, why=one.why, kind="split", children=one.children)
        extensible = start.info.load_manager is LoadManager.EXTENSIBLE
        found += split_commands(event, one.broker, supported, how, two_at_a_time=extensible)
    found += unload_batches([wave.moves for wave in waves], how)
    held = [*hold(before, how)] if how.hold and any(command.words for command in found) else []
    stopped = {command.stops for command in asked}
    leaving = [shutdown_command(broker, how.program) for broker in plan.question.drain if broker not in stopped]
    settings = [*settings_commands(changes, how, dynamic=dynamic), *_keeping(plan, stability, how, "offered", dynamic)]
    every_min = max(start.settings.integer(SHEDDING_INTERVAL_MINUTES), 1)
    wait = [waiting(REPORTED * every_min)] if plan.moves else []
    return in_order([*asked, *_real_names(start, before, asked), *held, *found, *leaving, *settings, *wait])


def steps_back(
    plan: Plan,
    waves: Sequence[Wave],
    stability: Stability | None = None,
    options: CommandOptions | None = None,
    basis: Basis | None = None,
) -> tuple[Command, ...]:
    """Return what takes a plan back: its moves, and the settings that its script sets. What was split stays split.

    Args:
        plan: The plan.
        waves: Its waves, as they were carried out.
        stability: As for `steps`.
        options: How commands are written.
        basis: As for `steps`; what the scenario asks for itself is not taken back.
    """
    how, start = options or CommandOptions(), plan.snapshot
    before = basis.captured if basis else start
    found = [*unload_batches([wave.moves for wave in way_back(waves)], how)]
    held = [*hold(before, how)] if how.hold and any(command.words for command in found) else []
    undone = _keeping(plan, stability, how, "undone", before.info.dynamic_settings)
    return in_order([*_real_names(start, before, ()), *held, *found, *undone])


def best_plan_script(
    plan: Plan,
    waves: Sequence[Wave],
    stability: Stability | None,
    options: CommandOptions,
    basis: Basis | None = None,
    *,
    made_at_ms: int,
    back: bool = False,
) -> str:
    """Return the script of a best plan, or the undo script, the same wherever it is handed over.

    Args:
        plan: The plan.
        waves: Its waves.
        stability: As for `steps`.
        options: How commands are written.
        basis: As for `steps`.
        made_at_ms: When the script is made, ms since 1970.
        back: The undo script.
    """
    commands = (steps_back if back else steps)(plan, waves, stability, options, basis)
    facts, cluster = _facts(plan, waves, basis, made_at_ms), plan.snapshot.info.cluster
    return command_script(commands, _title(plan, back=back), options.program, cluster, facts)


def best_plan_markdown(
    plan: Plan,
    waves: Sequence[Wave],
    stability: Stability | None,
    options: CommandOptions,
    basis: Basis | None = None,
    *,
    made_at_ms: int,
) -> str:
    """Return the head and the steps of the script as Markdown, for a change ticket; see `best_plan_script`."""
    commands = steps(plan, waves, stability, options, basis)
    head = head_lines(commands, plan.snapshot.info.cluster, _facts(plan, waves, basis, made_at_ms))
    return steps_markdown(commands, _title(plan), head)


def _title(plan: Plan, *, back: bool = False) -> str:
    undo = ", undo" if back else ""
    return f"Best plan {short_digest(plan.digest())}{undo} for the cluster {plan.snapshot.info.cluster}"


def _facts(plan: Plan, waves: Sequence[Wave], basis: Basis | None, made_at_ms: int) -> Facts:
    start = basis.captured if basis else plan.snapshot
    link = _link(plan, waves, start, basis)
    return facts_of(start, question=question_text(plan), link=link, made_at_ms=made_at_ms)


def question_text(plan: Plan) -> str:
    """Return what a plan was asked for and what it answers, in words."""
    question = plan.question
    if question.drain:
        asked = f"empty {some_of(question.drain, shown=SHOWN)}"
    elif question.under_percent is not None:
        asked = f"bring every broker to at most {question.under_percent:g} %, with the fewest {question.cost}"
    else:
        asked = "bring the highest usage down"
    return f"{asked}. {summary(plan)}"


def _link(plan: Plan, waves: Sequence[Wave], start: Snapshot, basis: Basis | None) -> str:
    """Return the part of an address that opens the scenario of a plan, or the one it starts from; empty if too long."""
    if basis is not None:
        return scenario_part(basis.scenario, snapshot_digest(start))
    if len(waves) + len(plan.splits) > MOST_STEPS:
        return ""
    return scenario_part(scenario_of(plan, waves, held=False), snapshot_digest(start))


def _real_names(start: Snapshot, captured: Snapshot, asked: Sequence[Command]) -> Iterator[Command]:
    """Yield the question for the real ids of brokers that the captured cluster does not have."""
    known = {*captured.brokers.name, *(name for command in asked for name in command.asks)}
    invented = tuple(name for name in start.brokers.name if name not in known)
    if invented:
        note = _NAMES.format(some_of(invented, shown=SHOWN))
        yield Command(section="brokers", note=note, by_hand=True, asks=invented)


def _keeping(
    plan: Plan, stability: Stability | None, how: CommandOptions, role: Role, dynamic: Mapping[str, str] | None
) -> Iterator[Command]:
    """Yield what keeps a plan: settings to be set or taken back, or that shedding has to stay off."""
    keeps, start = stability.keeps if stability is not None else {}, plan.snapshot
    if keeps == LEFT_OFF:
        if role == "offered":
            yield Command(section="notes", note=_LEAVE_OFF)
        return
    manager = start.info.load_manager
    changes = setting_changes(start.settings, start.settings.changed(**keeps), (manager, manager))
    yield from settings_commands(changes, how, role, dynamic)


def way_back(waves: Sequence[Wave]) -> tuple[Wave, ...]:
    """Return the waves that undo others: the last one first, each move the other way. What was split stays split."""
    back = []
    for wave in reversed(waves):
        moves = [_returning(move) for move in reversed(wave.moves)]
        back.append(Wave(tuple(moves), wave.clients))
    return tuple(back)


def _returning(move: Relocation) -> Relocation:
    return replace(
        move, source=move.destination, destination=move.source, acceptable=(move.source,), why="undoes the plan"
    )


def document(
    plan: Plan,
    waves: Sequence[Wave],
    stability: Stability | None,
    *,
    name: str = "",
    options: CommandOptions | None = None,
    ungrouped: float | None = None,
    basis: Basis | None = None,
    offer: Offer | None = None,
) -> dict[str, Any]:
    """Return everything about a plan as JSON values; `ungrouped` is what `peak_without_groups` says.

    With an `offer` also what the judge says, what limits the plan, and what Pulsar leaves alone instead.
    """
    by_cost = plan.question.under_percent is not None
    commands = steps(plan, waves, stability, options, basis)
    return {
        "format_version": FORMAT_VERSION,
        "plan_digest": plan.digest(),
        "snapshot": {"digest": snapshot_digest(plan.snapshot), "name": name, "cluster": plan.snapshot.info.cluster},
        "complete": plan.complete,
        "before_percent": float(plan.usage_before[plan.counts].max(initial=0.0)) * 100,
        "peak_percent": plan.peak * 100,
        "bound_percent": plan.peak_bound * 100,
        "deviation_before_points": plan.deviation_before * 100,
        "deviation_points": plan.deviation * 100,
        "least_cost": {plan.question.cost: plan.bound} if by_cost else None,
        "gap_percent": plan.gap_percent if math.isfinite(plan.gap_percent) else None,
        "limit": plan.limit,
        "without_groups": ungrouped if by_cost or ungrouped is None else ungrouped * 100,
        "spent": dict(plan.spent),
        "splits": [
            {"bundle": one.bundle, "boundary": one.boundary, "children": list(one.children), "why": one.why}
            for one in plan.splits
        ],
        "moves": [_move(move) for move in plan.moves],
        "waves": [
            {"clients": wave.clients, "over": list(wave.over), "moves": [_move(move) for move in wave.moves]}
            for wave in waves
        ],
        "stable": None if stability is None else stability.stable,
        "stability": None if stability is None else _stability(stability),
        "frontier": [
            {"moves": step.moves, "peak_percent": step.peak * 100, "bound_percent": plan.least_with(step.moves) * 100}
            for step in plan.frontier
        ],
        "repairs": list(plan.repairs),
        **(_offer(offer) if offer is not None else {}),
        "notes": list(plan.notes),
        "commands": [command.line for command in commands if command.words],
        "steps": steps_json(commands),
    }


def _move(move: Relocation) -> dict[str, Any]:
    return {
        "bundle": move.bundle,
        "from": move.source,
        "to": move.destination,
        "topics": move.topics,
        "clients": move.producers + move.consumers,
        "throughput_bytes_per_s": move.throughput_bytes_per_s,
        "why": move.why,
    }


def _stability(found: Stability) -> dict[str, Any]:
    return {
        "sentence": found.sentence,
        "first_cycle": found.cycle or None,
        "shed": len(found.shed),
        "undone": found.undone,
        "splits": found.splits,
        "splits_of_moved": len(found.divided),
        "why": found.why,
        "keeps": dict(found.keeps),
    }


def _offer(found: Offer) -> dict[str, Any]:
    other, limit, verdict = found.alternative, found.constraint, found.verdict
    return {
        "verdict": None if verdict is None else {"word": verdict.word, "text": verdict.text},
        "tried": found.tried or None,
        "recommended": found.recommended,
        "caution": found.caution or None,
        "constraint": None
        if limit is None
        else {"kind": limit.kind, "name": limit.name, "bound_without_percent": limit.without_percent},
        "stable_alternative": None
        if other is None
        else {
            "sentence": other.sentence,
            "settings": dict(other.settings),
            "stable": other.stable,
            "moves": [] if other.plan is None else [_move(move) for move in other.plan.moves],
            "peak_percent": (found.plan if other.plan is None else other.plan).peak * 100,
        },
    }


def moves_csv(waves: Sequence[Wave]) -> str:
    """Return one row for each move, wave by wave."""
    header = ("wave", "bundle", "from", "to", "topics", "clients", "throughput_bytes_per_s", "why")
    rows = ([number, *_move(move).values()] for number, wave in enumerate(waves, start=1) for move in wave.moves)
    return csv_text(header, rows)


def of_groups(plan: Plan, ungrouped: float | None) -> str:
    """Return what part of the gap anti-affinity groups may have; empty where `peak_without_groups` says nothing."""
    if ungrouped is None:
        return ""
    by_cost = plan.question.under_percent is not None
    scale, digits, unit, step = (1, 0, f" {unit_of(plan.question.cost)}", "") if by_cost else (100, 1, " %", " points")
    gap = plan.value - plan.bound
    theirs = min(max(plan.value - ungrouped, 0.0), gap)
    return (
        f"Anti-affinity groups account for about {theirs * scale:,.{digits}f} of the"
        f" {gap * scale:,.{digits}f}{step or unit} between the plan and its lower bound. Without these groups, the"
        f" search finds {ungrouped * scale:,.{digits}f}{unit}."
    )


def headline(found: Offer) -> str:
    """Return what is offered in a few sentences, first whether it is not recommended, last whether it is enough."""
    lasting = f"{found.lasting}." if found.lasting else ""
    return " ".join(filter(None, (found.caution, summary(found.plan), lasting, found.too_full)))


def summary(plan: Plan) -> str:
    """Return the answer in one sentence."""
    before = float(plan.usage_before[plan.counts].max(initial=0.0)) * 100
    moves, clients = round(plan.spent["moves"]), round(plan.spent["clients"])
    if not plan.moves:
        return f"Nothing to move: the highest usage is {before:.1f} %; {plan.lower_bound}."
    splits = f" and {count(len(plan.splits), 'split')}" if plan.splits else ""
    moves_text = f"{count(moves, 'move')}{splits} ({count(clients, 'client')} disconnected)"
    verb = "brings" if moves == 1 and not plan.splits else "bring"
    text = f"{moves_text} {verb} the highest usage from {before:.1f} % to {plan.peak * 100:.1f} %"
    if plan.question.drain:
        who = plan.question.drain[0] if len(plan.question.drain) == 1 else f"{len(plan.question.drain)} brokers"
        text = (
            f"{moves_text} {'empties' if verb == 'brings' else 'empty'} {who}; the highest usage of the others goes"
            f" from {before:.1f} % to {plan.peak * 100:.1f} %"
        )
    if plan.question.under_percent is not None:
        least = cost_text(plan.question.cost, plan.bound)
        return f"{text}; {plan.question.lower_bound(least)}."
    return f"{text}; {plan.lower_bound}."
