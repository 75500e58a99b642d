"""A plan as what is handed over: the commands of a script, what they leave to Pulsar, and the warnings of both.

The page Moves, the report, `plan --commands` and `plan --json` all call this, so that they give the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.cluster.digest import snapshot_digest
from planner.cluster.text import short_digest
from planner.share.asked import Asked, advised_against
from planner.share.commands import CommandOptions, plan_commands
from planner.share.script import command_script
from planner.simulate.admin_commands import Command

_SHOWN = 20


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


def plan_script(asked: Asked, options: CommandOptions, *, everything: bool = False) -> str:
    """Return the script of a plan, the same wherever it is handed over; see `commands_of`."""
    start = asked.whole.start
    title = f"Plan {asked.whole.scenario.name or 'without a name'} ({short_digest(snapshot_digest(start))})"
    commands = commands_of(asked, options, everything=everything)
    return command_script(commands, title, options.program, start.info.cluster)


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
