"""What the advisor found, in words: what the page and the command line both say, and the same as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from planner.advise.advice import COUNTED, Advice, Candidate, Configured, Counted, Evidence, Holdout
from planner.advise.applying import apply_commands, changes_of
from planner.advise.objectives import objective_by_name, value_of
from planner.advise.verdict import verdict_of
from planner.cluster.setting import conf_value
from planner.cluster.text import count
from planner.replay.aggregate import AGGREGATION
from planner.share.script import command_script
from planner.simulate.admin_commands import PROGRAM
from planner.simulate.scenario import Scenario, scenario_to_json

_LONG: Final = 120
_ALIKE: Final = 0.05
_WORSE: Final = {True: "better", False: "worse"}
_VERDICT: Final = {True: "better", False: "worse", None: ""}


def shown(name: str, most: int = _LONG) -> str:
    """Return the name of a scenario, cut where it is longer than so many characters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _better(one: Candidate, other: Candidate) -> str:
    gaps = {"balance": other.balance - one.balance, "disruption": other.disruption - one.disruption}
    return ", ".join(
        f"{side} {'equal' if abs(gap) < _ALIKE else f'{abs(gap):.1f} % {_WORSE[gap > 0]}'}"
        for side, gap in gaps.items()
    )


def compared_text(advice: Advice) -> str:
    """Return how much was compared, and how to read indices."""
    return (
        f"{count(len(advice.candidates), 'scenario')} over {count(len(advice.days), 'day')} of"
        f" {count(len(advice.clusters), 'cluster')}. Indices: 100 is the average of all scenarios; lower is better."
    )


def verdict_text(advice: Advice) -> str:
    """Return what follows, in a sentence or two."""
    verdict = verdict_of(advice)
    others = count(len(advice.candidates) - 1, "other setting")
    judgement = advice.judgement
    if verdict.kind == "nothing":
        return f"Nothing to compare: {_small(verdict.doubts[0])} Replay at least two settings with different results."
    if verdict.kind == "untrue":
        return " ".join(verdict.doubts)
    left = [text] if (text := overload_left(advice)) else []
    if verdict.kind == "keep":
        kept = f"Keep the current settings: none of the {others} is better by this rule."
        return " ".join((kept, *left, *verdict.doubts))
    change = _better(advice.candidate(advice.chosen), advice.candidate(advice.current)) if advice.current else ""
    text = f"{shown(advice.chosen)}{f' ({change} than now)' if change else ''}"
    said = [judgement.text] if judgement and judgement.text not in verdict.doubts else []
    if verdict.kind == "recommended":
        return " ".join((f"Recommended: {text}.", *said, *left))
    step = "Keep the current settings until more days agree." if advice.current else "Replay the current settings, too."
    best = f"The best candidate is {text}."
    return " ".join(("Not enough evidence for a change.", best, *said, *verdict.doubts, step))


def overload_left(advice: Advice) -> str:
    """Return how long brokers are overloaded with the chosen settings, a sentence; empty when none is."""
    minutes = value_of(advice.candidate(advice.chosen).totals, objective_by_name("overload")) or 0.0
    if minutes <= 0:
        return ""
    length = "less than a broker minute" if minutes < 1 else count(round(minutes), "broker minute")
    return f"They do not end the overload: brokers are above the overload threshold for {length}."


def _small(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def front_text(advice: Advice) -> str:
    """Return what the front and the choice by the rule are, in words."""
    front, number = len(advice.front), len(advice.candidates)
    mark = verdict_of(advice).mark.capitalize()
    text = f"{front} of {number} settings {'is' if front == 1 else 'are'} Pareto-optimal."
    if beaten := sum(one.more_overload for one in advice.candidates):
        text += f" {beaten} {'has' if beaten == 1 else 'have'} more overload than others."
    if not advice.knee:
        text += " The front has no balanced choice: what one setting gains in balance it loses in disruption."
    if not advice.current:
        return f"{text} {mark}: {shown(advice.chosen)}."
    if advice.current == advice.chosen:
        return f"{text} The current settings are among them."
    now = advice.candidate(advice.current)
    here = "are Pareto-optimal, too" if now.on_front else "are not Pareto-optimal"
    here = "have more overload than others" if now.more_overload else here
    change = _better(advice.candidate(advice.chosen), advice.candidate(advice.current))
    return (
        f"{text} The current settings {here}. {mark}: {shown(advice.chosen)} ({change} than now, in percent of the"
        " average of all settings)."
    )


def holdout_text(found: Holdout) -> str:
    """Return what the holdout says, in words."""
    first, rest = len(found.first_days), len(found.rest_days)
    days = f"Chosen on the first {first} of {first + rest} days, tested on the rest: {shown(found.chosen)}"
    verdict = "holds up" if found.holds else "does not hold up"
    return f"{days} {verdict}. {' '.join(found.reasons)}"


def evidence_text(evidence: Evidence, side: Counted) -> str:
    """Return on how many days the recommended settings are better on a side, and how likely that is by chance."""
    better, worse, alike = evidence.wins(side)
    chance = evidence.chance(side)
    likely = f" (the probability of such an uneven count by chance is {chance * 100:.0f} %)" if better + worse else ""
    return f"better on {count(better, 'cluster day')}, worse on {worse}, equal on {alike}{likely}."


def measure_rows(evidence: Evidence, mark: str = "recommended") -> list[dict[str, str]]:
    """Return a row for each measure that has a good end: measure, current, what the choice is called, verdict.

    When a whole history settles means little, so that is not among them.
    """
    return [
        {
            "measure": f"{one.measure.label}{f' ({one.measure.unit})' if one.measure.unit else ''}",
            "current": _number(one.current),
            mark: _number(one.chosen),
            "verdict": _VERDICT[one.better],
        }
        for one in evidence.measures
        if one.measure.better and AGGREGATION[one.measure.name] != "worst"
    ]


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:,.4g}"


def settings_changed(scenario: Scenario, now: Configured, mark: str = "recommended") -> list[dict[str, str]]:
    """Return a row for each setting that a scenario changes: setting, now, what the choice is called."""
    return [
        {"setting": name, "now": conf_value(old) or "not set", mark: conf_value(new) or "not set"}
        for name, (old, new) in changes_of(scenario, now).items()
    ]


def apply_script(advice: Advice, cluster: str, now: Configured) -> str:
    """Return the commands that give a cluster the recommended settings, as a script; empty when there is none."""
    chosen = advice.candidate(advice.chosen).scenario
    commands = apply_commands(chosen, now)
    if not commands:
        return ""
    title = f"Settings recommended for {cluster}: {chosen.name}"
    return command_script(commands, title, PROGRAM, cluster)


# All of it


def advice_lines(advice: Advice, configured: Mapping[str, Configured]) -> list[str]:
    """Return everything that the advisor says, as lines of text; `configured` is how each cluster is set now."""
    verdict = verdict_of(advice)
    lines = [verdict_text(advice), "", compared_text(advice)]
    if verdict.kind == "untrue":
        return lines
    lines += [front_text(advice), "", *_front_lines(advice)]
    if verdict.kind == "nothing":
        return lines
    if advice.current != advice.chosen:
        for cluster, now in configured.items():
            rows = settings_changed(advice.candidate(advice.chosen).scenario, now)
            lines += ["", f"Settings of {cluster}:"]
            lines += [f"  {row['setting']}: {row['now']} -> {row['recommended']}" for row in rows]
        lines += _evidence_lines(advice)
    if advice.sensitivity:
        lines += ["", "Range of each setting:", *(f"  {found.sentence}" for found in advice.sensitivity)]
    lines += ["", "Test on later days"]
    if advice.holdout is None:
        lines.append("  Not possible with only one day. Replay several days.")
    else:
        lines.append(f"  {holdout_text(advice.holdout)}")
    if verdict.kind == "recommended":
        for cluster, now in configured.items():
            script = apply_script(advice, cluster, now)
            lines += ["", f"Commands for {cluster}:", *(f"  {line}".rstrip() for line in script.splitlines())]
    return lines


def _front_lines(advice: Advice) -> list[str]:
    """Return the front, the best balance first, and the current settings where they are beaten."""
    marked = {advice.current: ["current"]} if advice.current else {}
    if advice.knee:
        marked.setdefault(advice.knee, []).append("balanced choice")
    marked.setdefault(advice.chosen, []).append(verdict_of(advice).mark)
    named = [one for one in advice.candidates if one.name == advice.current and not one.on_front]
    lines = [f"  {'balance':>8} {'disruption':>11}  scenario"]
    for one in (*advice.front, *named):
        place = "more overload" if one.more_overload else "not Pareto-optimal"
        marks = [*marked.get(one.name, []), *([] if one.on_front else [place])]
        text = f"  [{', '.join(marks)}]" if marks else ""
        lines.append(f"  {one.balance:8.1f} {one.disruption:11.1f}  {shown(one.name)}{text}")
    return lines


def _evidence_lines(advice: Advice) -> list[str]:
    if advice.evidence is None:
        return []
    mark = verdict_of(advice).mark
    rows = measure_rows(advice.evidence, mark)
    lines = ["", "Evidence:"]
    lines += [f"  {side.capitalize()}: {evidence_text(advice.evidence, side)}" for side in COUNTED]
    lines += [
        f"  {row['measure']}: {row['current']} now, {row[mark]} {mark}{', ' if row['verdict'] else ''}{row['verdict']}"
        for row in rows
    ]
    return lines


def advice_to_json(advice: Advice, configured: Mapping[str, Configured]) -> dict[str, Any]:
    """Return everything that the advisor found, as JSON content; `configured` is how each cluster is set now."""
    chosen, keep = advice.candidate(advice.chosen), advice.current == advice.chosen
    evidence, verdict = advice.evidence, verdict_of(advice)
    untrue = verdict.kind == "untrue"
    return {
        "verdict": verdict.kind,
        "doubts": list(verdict.doubts),
        "question": asdict(advice.question),
        "clusters": list(advice.clusters),
        "days": list(advice.days),
        "candidates": [_candidate(one) for one in advice.candidates],
        "front": [one.name for one in advice.front],
        "current": advice.current or None,
        "knee": advice.knee or None,
        "judged": None if advice.judgement is None else asdict(advice.judgement),
        "recommended": None if untrue else advice.chosen,
        "keep_current": keep or untrue,
        "settings_changed": {
            cluster: [] if untrue else settings_changed(chosen.scenario, now) for cluster, now in configured.items()
        },
        "evidence": None if evidence is None else _evidence(evidence),
        "sensitivity": [{**asdict(found), "sentence": found.sentence} for found in advice.sensitivity],
        "holdout": None if advice.holdout is None else asdict(advice.holdout),
        "commands": {cluster: apply_script(advice, cluster, now) for cluster, now in configured.items()}
        if verdict.kind == "recommended"
        else {},
        "notes": list(advice.notes),
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    return {
        "name": one.name,
        "scenario": scenario_to_json(one.scenario),
        "balance": one.balance,
        "disruption": one.disruption,
        "on_front": one.on_front,
        "more_overload": one.more_overload,
        "measures": dict(one.totals),
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "measures": [
            {"name": one.measure.name, "current": one.current, "recommended": one.chosen, "better": one.better}
            for one in evidence.measures
        ],
        "days": [asdict(day) for day in evidence.days],
        "sides": {side: _side(evidence, side) for side in COUNTED},
    }


def _side(evidence: Evidence, side: Counted) -> dict[str, float]:
    better, worse, alike = evidence.wins(side)
    return {"better": better, "worse": worse, "alike": alike, "chance": evidence.chance(side)}
