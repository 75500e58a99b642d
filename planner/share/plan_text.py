"""A plan as text for a terminal."""

from collections.abc import Iterable, Sequence

from planner.cluster.digest import snapshot_digest
from planner.cluster.text import count, quantity
from planner.explain.doubt import doubt_about
from planner.explain.finding import Finding
from planner.explain.switched_off import switched_off
from planner.share.commands import final_moves
from planner.share.follow import STATES, Following
from planner.simulate.measures import MEASURES
from planner.simulate.summary import summary
from planner.simulate.trace import Trace

_SHORT = 12
_MOVES_SHOWN = 20


def plan_text(trace: Trace, snapshot_name: str, findings: tuple[Finding, ...]) -> str:
    """Return measures, moves and diagnosis of a plan, a line each."""
    scenario = trace.scenario
    size = f"{count(len(scenario.edits), 'edit')}, {count(len(trace.cycles), 'cycle')}, seed {scenario.seed}"
    lines = [
        f"Snapshot   {snapshot_name} ({snapshot_digest(trace.start)[:_SHORT]})",
        f"Scenario   {scenario.name or 'without a name'}: {size}",
        f"Plan       {trace.digest()[:_SHORT]}",
        "",
    ]
    if off := switched_off(trace.start):
        lines += [*(one.text for one in off), ""]
    if doubt := doubt_about(trace.start, trace.scenario).sentence:
        lines += [doubt, ""]
    if trace.cycles:
        numbers = summary(trace)
        width = max(len(measure.label) for measure in MEASURES)
        for measure in MEASURES:
            value = getattr(numbers, measure.name)
            lines.append(f"{measure.label:<{width}}  {quantity(value, measure.unit, ',.2f')}")
        lines.append("")
    moves = final_moves(trace)
    lines.append(f"Moves: {count(len(moves), 'bundle')} with a different owner at the end")
    lines += first_moves([f"{move.bundle}: {move.source or 'unowned'} -> {move.destination}" for move in moves])
    lines += ["", f"Diagnosis: {'no findings' if not findings else ''}".rstrip()]
    lines += [
        f"  {one.severity}: {one.title}. {one.evidence} {one.remedy}{one.tried and f' {one.tried}'}" for one in findings
    ]
    if trace.notes:
        lines += ["", "Notes:", *(f"  {note}" for note in trace.notes)]
    return printed(lines)


def following_text(found: Following) -> str:
    """Return what became of a plan, a line for each step that is not done and for each bundle that strayed."""
    lines = [f"After {found.minutes:,.0f} minutes. {found.sentence} {found.advice}".rstrip(), ""]
    undone = [step for step in found.steps if step.state != "done"]
    lines += [f"  {STATES[step.state]}: {step.kind} {step.name} -> {step.wanted}; now {step.found}" for step in undone]
    if found.strayed:
        lines += ["", f"Moved, but not by this plan: {count(len(found.strayed), 'bundle')}"]
        shown = found.strayed[:_MOVES_SHOWN]
        lines += [f"  {bundle}: {then or 'unowned'} -> {now or 'unowned'}" for bundle, then, now in shown]
        if len(found.strayed) > len(shown):
            lines.append(f"  and {len(found.strayed) - len(shown):,} more")
    return printed(lines)


def first_moves(moves: Sequence[str]) -> list[str]:
    """Return the first moves, a line each, and how many more there are."""
    more = [f"  and {len(moves) - _MOVES_SHOWN:,} more; --json has all"] if len(moves) > _MOVES_SHOWN else []
    return [f"  {move}" for move in moves[:_MOVES_SHOWN]] + more


def printed(lines: Iterable[str]) -> str:
    """Return lines as a terminal may show them: names have no power over it."""
    return "".join("".join(sign if sign.isprintable() else "?" for sign in line) + "\n" for line in lines)
