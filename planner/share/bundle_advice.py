"""How many bundles a namespace should have, as text and as JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from planner.cluster.arrays import Int64Array
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.explain.cluster_tables import bundles_of_namespace
from planner.explain.finding import admin
from planner.namespaces.advice import BundleAdvice
from planner.namespaces.costs import CostRow
from planner.namespaces.counts import CountRow
from planner.namespaces.impact import SplitForecast
from planner.namespaces.successor import SuccessorBatch, SuccessorTrial, successor_move, successor_trial
from planner.pulsar.load.namespace_policies import isolation_policy
from planner.share.asked import asked_of
from planner.share.commands import CommandOptions
from planner.share.hand_over import commands_of
from planner.share.plan_text import printed
from planner.share.step_table import steps_json, steps_text
from planner.simulate.admin_commands import Command
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, scenario_to_json, unchanged

NO_TOPICS: Final = "The snapshot lists no topics, so no bundles can be advised."
"""Said instead of advice on all namespaces."""

_SHOWN = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def advice_scenario(advice: BundleAdvice) -> Scenario:
    """Return what is recommended as a scenario; without edits where the namespace is well as it is."""
    release = advice.snapshot.info.pulsar_version
    return unchanged(
        release,
        name=f"{'Cut' if advice.cuts_help else 'Split'} {advice.namespace}"[:120],
        steps=tuple(map(Step, advice.edits)),
    )


def advice_steps(advice: BundleAdvice) -> tuple[Command, ...]:
    """Return the commands that cut it, in order, with what each disconnects; none where nothing is recommended."""
    scenario = advice_scenario(advice)
    if not scenario.steps:
        return ()
    return commands_of(asked_of(simulate(advice.snapshot, scenario)), CommandOptions())


def successor_commands(advice: BundleAdvice, trial: SuccessorTrial | None) -> tuple[str, ...]:
    """Return how to move to a successor with fewer bundles, in order; nothing where that is not worth it as simulated.

    Lines that begin with `#` are done by hand. Topics get other names, so clients have to change theirs. Pasted all at
    once, or again, the commands disconnect nothing.
    """
    if trial is None or not trial.is_worth_it:
        return ()
    move = trial.edit
    old, new = advice.namespace, move.successor
    policies = [line for line in _policy_commands(advice, new) if line]
    rows = bundles_of_namespace(advice.snapshot, old)
    consumers, producers = (int(column[rows].sum()) for column in _clients(advice.snapshot))
    return (
        f"# Refused where {new} exists: go on if it is empty, with {count(move.bundles, 'bundle')}.",
        admin("namespaces", "create", new, "--bundles", str(move.bundles)),
        "# Set the same policies for the successor.",
        admin("namespaces", "policies", old),
        *policies,
        f"# Move clients in batches ({move.batches:,}, {move.pause_min:g} min apart).",
        f"# Consumers of a batch first ({consumers:,} in all): let them read both until nothing is left in {old}.",
        f"# Then its producers ({producers:,} in all). Messages keep their order only within one of the two.",
        f"# Delete the topics of {old}, once nothing uses them. Pulsar refuses to delete a namespace with topics.",
        admin("namespaces", "delete", old),
    )


def recreated_sentence(advice: BundleAdvice) -> str:
    """Return how many equal bundles a namespace is to have if it is recreated; empty where that makes no difference."""
    number = count(advice.recommended, "bundle")
    if advice.withheld or len(advice.brokers) < 2:  # noqa: PLR2004 - one broker takes all of it
        return ""
    if advice.recommended == advice.now.bundles:
        kept = f"create it with {number} again" if advice.will_split else f"keep {number}"
        return f"If it is recreated, {kept}: no other number is better once it has settled."
    said = f"If it is recreated, create it with {number}."
    if advice.successor or advice.recreated is None:
        return said
    return f"{said} Simulated, once it has settled: {advice.recreated.text[:1].lower()}{advice.recreated.text[1:]}"


def successor_sentence(advice: BundleAdvice) -> str:
    """Return what the simulation of a successor came to; empty where none is recommended."""
    if not advice.successor or advice.recreated is None:
        return ""
    return (
        f"Simulated with {count(advice.successor, 'bundle')}, once it has settled: {advice.recreated.text}"
        " Creating it, its policies and the deletion disconnect no client."
    )


def tried_successor(advice: BundleAdvice, cancelled: Callable[[], bool] = lambda: False) -> SuccessorTrial | None:
    """Simulate the move to a successor, batch by batch; None where none is recommended, or no client is left."""
    if not advice.successor:
        return None
    return successor_trial(
        advice.snapshot, successor_move(advice.snapshot, advice.namespace, advice.successor), cancelled
    )


def _batch_json(one: SuccessorBatch) -> dict[str, Any]:
    return {**asdict(one), "verdict": one.verdict.word, "why": one.verdict.text}


def move_scenario(trial: SuccessorTrial, present: Scenario) -> Scenario:
    """Return the move to a successor added to a scenario, which lasts until it has settled."""
    steps = (*present.steps, *trial.scenario.steps)
    return replace(present.with_steps(*steps), cycles=max(present.cycles, trial.scenario.cycles))


def _batch_lines(trial: SuccessorTrial) -> Iterator[str]:
    """Yield a heading and a line for each batch."""
    yield f"{'batch':>6} {'minute':>7} {'topics':>8} {'clients':>8} {'highest':>8} {'shed':>5} {'splits':>7}  overload"
    for one in trial.batches:
        yield (
            f"{one.batch:6,} {one.at_min:7,.0f} {one.topics:8,} {one.clients:8,} {one.highest_percent:6.1f} %"
            f" {one.shed:5,} {one.splits:7,}  {one.verdict.word}"
        )


def _clients(snapshot: Snapshot) -> tuple[Int64Array, Int64Array]:
    return snapshot.bundles.consumers, snapshot.bundles.producers


def _policy_commands(advice: BundleAdvice, new: str) -> Iterator[str]:
    """Yield the commands for what the snapshot knows of the policies."""
    group = advice.snapshot.policies.anti_affinity_group.get(advice.namespace)
    if group:
        yield admin("namespaces", "set-anti-affinity-group", new, "--group", group)
    policy = isolation_policy(advice.snapshot.policies, advice.namespace)
    if policy is not None and isolation_policy(advice.snapshot.policies, new) is not policy:
        yield f"# Add {new} to the namespaces of the isolation policy {policy.name}."


def advice_document(advice: BundleAdvice, splits: Sequence[SplitForecast] | None = None) -> dict[str, Any]:
    """Return advice as JSON values.

    `counts` has a row for each number of equal bundles, with what it costs (`CostRow`); rows that were simulated have
    `simulated`, the mean result once it had settled, as `planner.simulate.judge.Result` names it, and `seeds`, how
    many simulations it is the mean of. `withheld` says why nothing is recommended although it may help. `scenario` is
    what `plan --scenario` takes, and `steps` are its commands in order. Where there are too many bundles,
    `successor_batches` has what each batch of clients does that goes over to a namespace with fewer
    (`SuccessorBatch`). Where that is worth it, `successor` has the commands, and `successor_scenario` is the move as a
    scenario. `splits` is there where splits to come were asked for.
    """
    scenario, trial = advice_scenario(advice), tried_successor(advice)
    tried = {one.bundles: one for one in advice.tried}
    return {
        "namespace": advice.namespace,
        "sentence": advice.sentence,
        "withheld": advice.withheld,
        "topics": advice.topics,
        "brokers": list(advice.brokers),
        "now": asdict(advice.now),
        "counts": [
            {
                **asdict(row),
                **asdict(cost),
                "simulated": asdict(tried[row.bundles].result) if row.bundles in tried else None,
                "seeds": len(tried[row.bundles].results) if row.bundles in tried else 0,
                "topics_disconnected": tried[row.bundles].topics if row.bundles in tried else None,
            }
            for row, cost in zip(advice.counts, advice.costs, strict=True)
        ],
        "recommended": advice.recommended,
        "successor": list(successor_commands(advice, trial)),
        "successor_tried": successor_sentence(advice) or None,
        "successor_batches": [_batch_json(one) for one in trial.batches] if trial is not None else [],
        "successor_recommended": trial is not None and trial.is_worth_it,
        "successor_move": trial.text if trial is not None else None,
        "successor_scenario": scenario_to_json(trial.scenario) if trial is not None and trial.is_worth_it else None,
        "cuts": {
            "recommended": advice.cuts_help,
            "boundaries": [f"0x{one:08x}" for one in advice.cuts.boundaries],
            "new": [f"0x{one:08x}" for one in advice.cuts.new],
            "placed_percent": advice.cuts.placed_percent,
            "bound_percent": advice.cuts.bound_percent,
            "limited_by_topic": advice.cuts.limited_by_topic,
            "tried": advice.cut.text if advice.cut is not None else None,
        },
        "topics_no_cut_helps": [
            {
                "topic": one.topic,
                "share_percent": one.share_percent,
                "partitions": one.advice.partitions,
                "skewed": one.advice.skewed,
                "wanted": one.advice.wanted,
                "bundles": list(one.advice.bundles),
                "remedy": one.advice.remedy,
            }
            for one in advice.stuck
        ],
        "notes": list(advice.notes),
        **({} if splits is None else {"splits": [asdict(one) for one in splits if one.namespace == advice.namespace]}),
        "scenario": scenario_to_json(scenario),
        "steps": steps_json(advice_steps(advice)),
    }


def advice_text(advice: BundleAdvice) -> str:
    """Return advice as lines for a terminal."""
    lines = [
        (
            f"{advice.namespace}: {count(advice.topics, 'topic')}"
            f"{'' if advice.is_planned else ' in ' + count(advice.now.bundles, 'bundle')}, on"
            f" {count(len(advice.brokers), 'broker')}."
        ),
        advice.sentence,
    ]
    if not advice.is_planned and (again := recreated_sentence(advice)):
        lines.append(again)
    lines += [
        f"No cut helps {one.topic} ({one.share_percent:.0f} %). {one.advice.remedy}" for one in advice.further_stuck
    ]
    lines += list(advice.notes)
    if steps := steps_text(advice_steps(advice)):
        lines += ["", "Steps, with what each disconnects:", *(f"  {line}" for line in steps)]
    if (trial := tried_successor(advice)) is not None:
        said = (successor_sentence(advice), trial.text, *_batch_lines(trial), *successor_commands(advice, trial))
        lines += [trial.heading, *(f"  {line}" for line in said)]
    tried = {one.bundles for one in advice.tried}
    costs = {row.bundles: cost for row, cost in zip(advice.counts, advice.costs, strict=True)}
    shown = [row for row in advice.counts if row.bundles in {*_SHOWN, *tried, advice.recommended}]
    lines += [
        "",
        (
            f"{'bundles':>8} {'topics, most':>13} {'empty':>6} {'largest':>8} {'bound':>7} {'placed':>7} {'lookups':>8}"
            f" {'will split':>10}"
        ),
        *(_line(row, costs[row.bundles]) for row in shown),
    ]
    return printed(lines)


def _line(row: CountRow, cost: CostRow) -> str:
    return (
        f"{row.bundles:8,} {row.topics_most:13,} {row.empty:6,} {row.largest_share_percent:6.1f} %"
        f" {row.bound_percent:5.1f} % {row.placed_percent:5.1f} % {cost.lookups_most:8,} {cost.will_split:10,}"
    )


def overview_text(advices: list[BundleAdvice]) -> str:
    """Return one line for each namespace, the most uneven first."""
    if not advices:
        return printed([NO_TOPICS])
    order = sorted(advices, key=lambda one: one.now.placed_percent * len(one.brokers), reverse=True)
    return printed([f"{one.namespace} ({count(one.now.bundles, 'bundle')}): {one.sentence}" for one in order])


def forecast_text(splits: Sequence[SplitForecast], namespaces: Sequence[str] = ()) -> str:
    """Return the splits to come of some namespaces, of all without one, as lines for a terminal."""
    found = [one for one in splits if not namespaces or one.namespace in namespaces]
    lines = [f"{one.namespace}: {one.text}" for one in found]
    return printed(["", "Splits to come:", *lines] if lines else ["", "No splits to come."])
