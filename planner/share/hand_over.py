"""A plan as what is handed over: the commands of a script, what they leave to Pulsar, and the warnings of both.

The page Moves, the report, `plan --commands` and `plan --json` all call this, so that they give the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.cluster.digest import snapshot_digest
from planner.cluster.setting import conf_value
from planner.explain.doubt import doubt_about
from planner.explain.gate import Gate
from planner.explain.health import within
from planner.share.asked import Asked, advised_against
from planner.share.commands import CommandOptions, changed_settings, plan_commands
from planner.share.link import scenario_part
from planner.share.script import command_script
from planner.share.script_head import Facts, facts_of, head_lines
from planner.share.step_table import is_step, steps_markdown
from planner.simulate.admin_commands import Command
from planner.simulate.trace import Trace

_SHOWN = 20
_PHRASES = 12


def commands_of(
    asked: Asked, options: CommandOptions | None = None, *, everything: bool = False
) -> tuple[Command, ...]:
    """Return what to do for a plan, in order.

    Args:
        asked: The simulation, divided.
        options: How commands are written.
        everything: Also what only the load balancer does.
    """
    trace = asked.commanded(everything=everything)
    return tuple(_warned(plan_commands(trace, options), advised_against(trace)))


def plan_title(asked: Asked) -> str:
    """Return what a plan is called at the top of its script and of its table."""
    name = asked.whole.scenario.name or "without a name"
    return f"Plan {name} for the cluster {asked.whole.start.info.cluster}"


def plan_script(
    asked: Asked, options: CommandOptions, *, made_at_ms: int, everything: bool = False, gate: Gate | None = None
) -> str:
    """Return the script of a plan, the same wherever it is handed over; see `commands_of`.

    Args:
        asked: The simulation, divided.
        options: How commands are written.
        made_at_ms: When the script is made, ms since 1970.
        everything: Also what only the load balancer does.
        gate: The simulation beside doing nothing; where it is worse, the script says so before it asks.
    """
    commands = commands_of(asked, options, everything=everything)
    facts = _facts(asked, made_at_ms, objection(commands, gate))
    return command_script(commands, plan_title(asked), options.program, asked.whole.start.info.cluster, facts)


def plan_markdown(
    asked: Asked, options: CommandOptions, *, made_at_ms: int, everything: bool = False, gate: Gate | None = None
) -> str:
    """Return the head and the steps of the script as Markdown, for a change ticket; see `plan_script`."""
    commands = commands_of(asked, options, everything=everything)
    facts = _facts(asked, made_at_ms, objection(commands, gate))
    head = head_lines(commands, asked.whole.start.info.cluster, facts)
    return steps_markdown(commands, plan_title(asked), head)


def objection(commands: Iterable[Command], gate: Gate | None) -> str:
    """Return what speaks against carrying commands out; empty for nothing, or where there is nothing to carry out."""
    if gate is None or not gate.objections or not any(map(is_step, commands)):
        return ""
    return f"{gate.headline} {' '.join(gate.objections)}"


def _facts(asked: Asked, made_at_ms: int, against: str) -> Facts:
    trace = asked.whole
    warning = f"{against} {doubt_about(trace.start, trace.scenario).sentence}".strip()
    link = scenario_part(trace.scenario, snapshot_digest(trace.start))
    return facts_of(trace.start, question=question_of(trace), link=link, made_at_ms=made_at_ms, warning=within(warning))


def question_of(trace: Trace) -> str:
    """Return what a scenario asks for, in words."""
    parts = [edit.phrase() for edit in trace.scenario.edits]
    parts += [f"set {name} to {conf_value(after) or 'nothing'}" for name, (_, after) in changed_settings(trace).items()]
    if not parts:
        return "what does the load balancer do by itself?"
    more = f"; and {len(parts) - _PHRASES:,} more" if len(parts) > _PHRASES else ""
    return f"{'; '.join(parts[:_PHRASES])}{more}."


def _warned(commands: Iterable[Command], against: dict[str, str]) -> Iterator[Command]:
    """Yield steps; a split that Split lab advises against says so."""
    for command in commands:
        advice = against.get(command.bundle, "") if command.section == "splits" else ""
        yield replace(command, note=f"{command.note} Split lab: not worth it. {advice}".strip()) if advice else command


def preview_lines(asked: Asked, shown: int = _SHOWN) -> list[str]:
    """Return what only the load balancer does, a line each, the first ones and how many more there are."""
    lines = [f"split {event.bundle}: {event.why or 'split'}" for event in asked.splits]
    lines += [f"move {move.bundle}: {move.source or 'unowned'} -> {move.destination}" for move in asked.moves]
    more = len(lines) - shown
    return lines if more <= 0 else [*lines[:shown], f"and {more:,} more"]
