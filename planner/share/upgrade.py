"""What another release does with a cluster, as text and as data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from planner.cluster.release_notes import release_notes
from planner.cluster.releases import ReleaseName
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import without_package
from planner.explain.upgrade import (
    Difference,
    RunNumbers,
    Step,
    Upgrade,
    before_upgrade,
    cycles_of,
    difference,
    steps_of,
    upgrade_of,
)
from planner.pulsar.release_rules import RELEASE_RULES
from planner.simulate.judge import Result
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, scenario_to_json
from planner.simulate.trace import Trace


@dataclass(frozen=True, slots=True)
class UpgradeAnswer:
    """An upgrade with what its runs came to.

    Attributes:
        upgrade: What is asked.
        runs: What each run of `Upgrade.runs` came to, by its name.
        found: How they differ.
        steps: The way to the other release.
        notes: What to know about the releases that decide.
    """

    upgrade: Upgrade
    runs: Mapping[str, RunNumbers]
    found: Difference
    steps: tuple[Step, ...]
    notes: tuple[str, ...]


def answer_of(
    snapshot: Snapshot, upgrade: Upgrade, traces: Sequence[Trace], results: Sequence[Result]
) -> UpgradeAnswer:
    """Return the answer from what the runs of an upgrade came to, in their order, and from what the judge measured."""
    runs = [RunNumbers.of(*run) for run in zip(traces, results, strict=True)]
    now = upgrade.today.settings_over(snapshot)
    return UpgradeAnswer(
        upgrade,
        dict(zip(upgrade.runs, runs, strict=True)),
        difference(upgrade, traces, runs, results),
        steps_of(upgrade, snapshot),
        release_notes(snapshot.info.pulsar_version, now, RELEASE_RULES),
    )


def ask_upgrade(
    snapshot: Snapshot,
    target: ReleaseName,
    scenario: Scenario | None = None,
    hours: int = 1,
    before: Callable[..., None] = lambda *_: None,
) -> UpgradeAnswer:
    """Answer what another release does with a cluster, by simulating its first hours on both.

    Args:
        snapshot: The cluster.
        target: The release that is asked about.
        scenario: What is changed besides; nothing when None.
        hours: How long to watch; 0 for as many cycles as the scenario has.
        before: Told the snapshot and what is simulated, before it is.

    Raises:
        PlannerError: The scenario does not fit the cluster, or a value is out of bounds.
    """
    today = before_upgrade(scenario or Scenario(), snapshot)
    if hours:
        today = replace(today, cycles=cycles_of(hours, today.settings_over(snapshot)))
    upgrade = upgrade_of(snapshot, today, target)
    before(snapshot, *upgrade.runs.values())
    traces = [simulate(snapshot, one) for one in upgrade.runs.values()]
    return answer_of(snapshot, upgrade, traces, [Result.of(trace) for trace in traces])


def setting_rows(upgrade: Upgrade) -> list[dict[str, str]]:
    """Return one row for each setting that is another one."""
    return [
        {
            "setting": one.name,
            "what happens": one.happens,
            upgrade.source.name: without_package(conf_value(one.before)) or "empty",
            upgrade.target.name: without_package(conf_value(one.after)) or "empty",
            "set here": "yes" if one.given else "no",
            "meaning": one.meaning,
        }
        for one in upgrade.settings
    ]


def upgrade_lines(answer: UpgradeAnswer) -> Iterator[str]:
    """Yield an answer line by line."""
    upgrade = answer.upgrade
    yield f"From {upgrade.source.name} to {upgrade.target.name}"
    yield from (f"BLOCKER: {blocker}" for blocker in upgrade.blockers)
    yield ""
    yield from (part for part in (answer.found.answer, answer.found.sentence, answer.found.kept) if part)
    before, after = (" + ".join(pair) for pair in upgrade.strategies)
    yield f"Strategies: {before}{'' if before == after else f', then {after}'}"
    yield from answer.notes
    yield ""
    yield "Settings:" if upgrade.settings else "Settings: none of this cluster's settings changes."
    for row in setting_rows(upgrade):
        name, happens, old, new, given, meaning = row.values()
        yield f"  {name} {happens}: {old} -> {new}{' (set here)' if given == 'yes' else ''}. {meaning}"
    yield ""
    yield (
        "Changed rules that concern this cluster:" if upgrade.rules else "Rules: no changed rule concerns this cluster."
    )
    yield from (f"  {rule}" for rule in upgrade.rules)
    yield ""
    yield "Steps:"
    for number, step in enumerate(answer.steps, start=1):
        yield f"  {number}. {step.when}: {step.what}"
        yield from (f"       {line}" for line in step.lines)


def upgrade_json(answer: UpgradeAnswer) -> dict[str, Any]:
    """Return an answer as data."""
    upgrade = answer.upgrade
    return {
        "from": upgrade.source.name,
        "to": upgrade.target.name,
        "verdict": answer.found.word,
        "verdict_text": answer.found.answer,
        "answer": answer.found.sentence,
        "same_moves": answer.found.same_moves,
        "todays_values": answer.found.kept,
        "runs": {
            name: {**asdict(numbers), "scenario": scenario_to_json(scenario)}
            for (name, scenario), numbers in zip(upgrade.runs.items(), answer.runs.values(), strict=True)
        },
        "strategies": [list(pair) for pair in upgrade.strategies],
        "settings": [asdict(one) for one in upgrade.settings],
        "to_keep": upgrade.to_keep,
        "blockers": list(upgrade.blockers),
        "rules": list(upgrade.rules),
        "other_rules": list(upgrade.other_rules),
        "steps": [asdict(step) for step in answer.steps],
        "notes": list(answer.notes),
    }
