"""The steps of a plan as one table for a second pair of eyes: in a script, as Markdown, as JSON.

The numbers are those that the script prints, so that a person can point at a step.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner.cluster.text import count
from planner.simulate.admin_commands import Command

_KINDS: Final = {"hold": "pause", "release": "restore", "policies": "policy", "splits": "split", "unloads": "move"}
_HEADER: Final = ("#", "step", "what", "from", "to", "topics", "clients")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#!~&$])")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step that a person can check.

    Attributes:
        number: Its number in the script, from 1.
        kind: `by hand`, `pause`, `policy`, `split`, `move`, `wait`, `setting`, `restore`.
        what: The bundle, the setting with its value, or what to do.
        source: Broker that owns the bundle before, or the value of the setting before.
        destination: Broker that is to own it after, or the value of the setting after.
        topics: Topics that it disconnects.
        clients: Producers and consumers that it disconnects.
        batch: Which batch of moves it belongs to, from 1; 0 for none.
        command: The command as a shell reads it; empty for a step by hand without one.
    """

    number: int
    kind: str
    what: str
    source: str
    destination: str
    topics: int
    clients: int
    batch: int
    command: str


def is_step(command: Command) -> bool:
    """Say whether something is to be done; the rest are notes and heads of batches."""
    return bool(command.words) or command.by_hand or command.wait_s is not None


def plan_steps(commands: Sequence[Command]) -> tuple[PlanStep, ...]:
    """Return the steps of a plan, in order."""
    return tuple(_steps(commands))


def _steps(commands: Sequence[Command]) -> Iterator[PlanStep]:
    number = batch = 0
    for command in commands:
        batch += command.wave_s is not None
        if not is_step(command):
            continue
        number += 1
        kind = "by hand" if command.by_hand else _KINDS.get(command.section, "setting" if command.setting else "run")
        kind = "wait" if command.wait_s is not None else kind
        what = command.bundle or command.note.removeprefix("By hand: ") or command.line
        before, after = command.source, command.destination
        if command.setting is not None:
            change = command.setting
            what, before, after = change.name, change.before or "not set", change.value or "not set"
            if kind == "restore":
                before, after = "false", "as before"
        elif command.section == "policies" and not command.by_hand:
            what = command.line
        yield PlanStep(
            number=number,
            kind=kind,
            what=what,
            source=before,
            destination=after,
            topics=command.topics,
            clients=command.clients,
            batch=batch if command.section == "unloads" else 0,
            command=command.line,
        )


def steps_json(commands: Sequence[Command]) -> list[dict[str, Any]]:
    """Return the steps as JSON values."""
    return [
        {
            "number": step.number,
            "kind": step.kind,
            "what": step.what,
            "from": step.source,
            "to": step.destination,
            "topics": step.topics,
            "clients": step.clients,
            "batch": step.batch or None,
            "command": step.command,
        }
        for step in plan_steps(commands)
    ]


def _cells(step: PlanStep) -> tuple[str, ...]:
    moved = step.kind == "move"
    numbers = (f"{step.topics:,}", f"{step.clients:,}") if moved else ("", "")
    return (str(step.number), step.kind, step.what, step.source, step.destination, *numbers)


def steps_text(commands: Sequence[Command]) -> list[str]:
    """Return the steps as lines with columns, header first; none without steps. A step by hand ends its line."""
    rows = [_cells(step) for step in plan_steps(commands)]
    if not rows:
        return []
    short = [row for row in rows if row[1] not in {"by hand", "policy"}]
    widths = [max(len(row[at]) for row in (_HEADER, *short)) for at in range(len(_HEADER))]
    widths[0] = max(len(rows[-1][0]), 1)
    widths[1] = max(len(row[1]) for row in (_HEADER, *rows))
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (_HEADER, *rows)
    ]


def steps_markdown(commands: Sequence[Command], title: str, head: Iterable[str] = ()) -> str:
    """Return the steps as a Markdown table with a heading, for a change ticket.

    Args:
        commands: The plan.
        title: The heading.
        head: What stands above the table, a paragraph each, as `script_head.head_lines` has it.
    """
    steps = plan_steps(commands)
    clients, topics = sum(step.clients for step in steps), sum(step.topics for step in steps)
    rows = [[_escaped(cell) for cell in _cells(step)] for step in steps]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in ([*_HEADER], ["---"] * len(_HEADER), *rows))
    said = f"{count(len(steps), 'step')}; {count(clients, 'client')} of {count(topics, 'topic')} disconnected."
    above = "\n\n".join([f"# {_escaped(title)}", *map(_escaped, head), said])
    return f"{above}\n\n{table}\n"


def _escaped(value: str) -> str:
    return _SPECIAL.sub(r"\\\1", "".join(sign if sign.isprintable() else " " for sign in value))
