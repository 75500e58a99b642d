"""Simulations of edits, and the commands and scripts that carry them out."""

from collections.abc import Sequence
from typing import Any

from planner.cluster.ranges import bundle_name, parse_range
from planner.cluster.snapshot import Snapshot
from planner.share.commands import (
    CommandOptions,
    plan_commands,
)
from planner.share.hand_over import question_of
from planner.share.script import SECTIONS, command_list, command_script
from planner.share.script_head import facts_of
from planner.simulate.admin_commands import Command
from planner.simulate.edits.edit import Edit
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace

HOSTILE = "a'b\"c`touch pwned`$(touch pwned)\\;&|<>*?[x]{y}~#! %"


def trace_of(snapshot: Snapshot, *edits: Edit, cycles: int = 3, **settings: str | float | bool) -> Trace:
    steps = tuple(Step(edit) for edit in edits)
    return simulate(snapshot, Scenario(steps=steps, settings=settings, cycles=cycles))


def script_of(trace: Trace, title: str = "t", **options: Any) -> str:
    how, start = CommandOptions(**options), trace.start
    facts = facts_of(start, question=question_of(trace), link="", made_at_ms=start.info.captured_at_ms)
    return command_script(plan_commands(trace, how), title, how.program, start.info.cluster, facts)


def listed(commands: Sequence[Command]) -> str:
    """What a person reads."""
    return "\n".join(command_list(commands, section) for section in SECTIONS)


def carried_out(snapshot: Snapshot, commands: Sequence[Command]) -> dict[str, str]:
    """Return who serves what after the splits and unloads of a plan."""
    owners = {
        name: snapshot.brokers.name[owner] if owner >= 0 else ""
        for name, owner in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
    }
    for command in commands:
        words = list(command.words)
        if command.section not in {"splits", "unloads"} or words[1:2] != ["namespaces"]:
            continue
        namespace, given = words[3], dict(zip(words[4::2], words[5::2], strict=True))
        name = f"{namespace}/{given['--bundle']}"
        if words[2] == "unload":
            assert name in owners
            owners[name] = given["--destinationBroker"]
            continue
        low, high = parse_range(given["--bundle"])
        cuts = [low + (high - low) // 2]
        if given["--split-algorithm-name"] == "specified_positions_divide":
            cuts = [
                int(cut) for flag, cut in zip(words[4::2], words[5::2], strict=True) if flag == "--split-boundaries"
            ]
        owner = owners.pop(name)
        for start, stop in zip((low, *cuts), (*cuts, high), strict=True):
            owners[bundle_name(namespace, start, stop)] = owner
    return owners


def other_broker(snapshot: Snapshot, bundle: int) -> str:
    owner = int(snapshot.bundles.owner[bundle])
    return snapshot.brokers.name[(owner + 1) % len(snapshot.brokers)]
