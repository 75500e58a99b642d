"""The head of a script: what a reviewer reads before it runs."""

import re

from planner.cluster.snapshot import Snapshot
from planner.share.asked import asked_of
from planner.share.commands import CommandOptions, final_moves
from planner.share.hand_over import commands_of, plan_script
from planner.share.link import decode_link
from planner.share.script_head import CALL_S, STATUSES, disconnected_lines, duration_s
from planner.share.step_table import plan_steps, steps_json, steps_markdown
from planner.simulate.admin_commands import Command
from planner.simulate.edits.drain_broker import DrainBroker
from tests.app.plan.scripts import trace_of


def test_the_head_says_what_a_reviewer_needs(several: Snapshot) -> None:
    trace = trace_of(several, DrainBroker(broker=several.brokers.name[0]), cycles=2)
    asked, start = asked_of(trace), several.info.captured_at_ms
    script = plan_script(asked, CommandOptions(), made_at_ms=start + 3 * 3_600_000)
    head = script.split("set -eu")[0].replace("\n# ", " ")
    moves = final_moves(asked.trace)
    clients = sum(move.producers + move.consumers for move in moves)
    early = plan_script(asked, CommandOptions(), made_at_ms=start - 1)
    assert "08:00:00 UTC, which is after this script was made: compare the clocks." in early.replace("\n# ", " ")
    assert "Cluster: generated, captured 2027-01-15 08:00:00 UTC, 3 h old when this script was made." in head
    assert f"Question: drain {several.brokers.name[0]} at 60 bundles per minute." in head
    link = re.search(r"\?scenario=(\S+)", head)
    assert link
    assert decode_link(link[1]).scenario == trace.scenario
    assert re.search(r"Duration: about \d+ (s|min), plus 1 step by hand\.", head)
    assert f"Disconnected: {clients:,} clients of" in head
    namespace = moves[0].bundle.rpartition("/")[0]
    theirs = sum(m.producers + m.consumers for m in moves if m.bundle.startswith(f"{namespace}/"))
    assert f"{namespace}: {theirs:,} client" in head
    for number, meaning in STATUSES.items():
        assert f"{number} {meaning}" in head
    commands = commands_of(asked)
    rows = steps_markdown(commands, "t").splitlines()
    for step in plan_steps(commands):
        assert re.search(rf"^#   {step.number} .*{re.escape(step.what[:60])}", script, re.MULTILINE)
        if step.kind == "move":
            assert f"| {step.number} | move | {step.what.replace('_', chr(92) + '_')} |" in "\n".join(rows)
            assert f"\nmove {step.number} {step.what} {step.source} {step.destination} {step.clients}\n" in script
    assert [one["number"] for one in steps_json(commands)] == list(range(1, len(plan_steps(commands)) + 1))


def test_who_is_disconnected_is_bounded() -> None:
    moves = [
        Command(
            section="unloads", bundle=f"t{at // 20}/n{at}/0x0_0x1", source="a", destination="b", topics=1, clients=at
        )
        for at in range(400)
    ]
    lines = list(disconnected_lines(moves))
    assert lines[0] == "Disconnected: 79,800 clients of 400 topics, in 400 namespaces. They reconnect by themselves."
    assert lines[1].startswith("- t19, 7,790 clients of 20 topics (t19/n399: 399 clients, t19/n398: 398 clients")
    assert lines[1].endswith("and 10 more)")
    assert lines[-1].startswith("- 10 other tenants, ")
    assert len(lines) == 12


def test_a_longer_plan_takes_longer() -> None:
    def plan(batches: int, pause_s: int) -> list[Command]:
        move = Command(section="unloads", words=("x",), bundle="t/n/0x0_0x1", source="a", destination="b")
        return [Command(section="unloads", wave_s=pause_s), move] * batches

    assert duration_s(plan(2, 60)) > duration_s(plan(1, 60)) + 60 + 2 * CALL_S
    assert duration_s(plan(1, 600)) - duration_s(plan(1, 60)) == 540
