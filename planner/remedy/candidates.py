"""What an operator can do about a cluster: the actions worth trying, the likeliest first."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from planner.cluster.errors import PlannerError
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
    LOAD_BALANCER_ENABLED,
    LOAD_MANAGER_CLASS_NAME,
    MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT,
    SHEDDING_ENABLED,
    SHEDDING_INTERVAL_MINUTES,
    SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS,
)
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.halving import divided
from planner.explain.health import usage_of
from planner.explain.held import APART
from planner.explain.outcome import Outcome
from planner.explain.setting_rules import setting_findings
from planner.explain.split_advice import split_advice
from planner.explain.switched_off import switched_off
from planner.optimize.absorb import left_by
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.optimize.waves import scenario_of
from planner.pulsar.shedding.registry import offered_shedders, shedder_by_name
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.pulsar.splitting.request import topics_listed
from planner.remedy.action import Action, Kind, settings_action, words_of
from planner.remedy.split import split_action
from planner.simulate.edits.registry import (
    BalancerHold,
    BundleMoves,
    BundleSplit,
    MachineChange,
    MorePartitions,
    NewBrokers,
)
from planner.simulate.judge import Result
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import under_strategy
from planner.simulate.usage_model import settled

_MOVES: Final = (3, 10)
"""Budgets of moves by hand."""
_MOVED: Final = 4
"""In a cluster of few bundles, one of this number moves at most."""
_SPLITS: Final = 3
_PARTS: Final = (2, 4)
"""Parts into which a bundle is split whose topics are not listed."""
_DIVISIBLE: Final = 2
"""Topics of a bundle that can be divided."""
_LARGEST: Final = 12
"""Bundles that are looked at for a split, by throughput."""
_STEPS: Final = (0.5, 0.75, 1.5, 2.0)
"""Values of a threshold to try, relative to its own."""
_ASKED_APART: Final = frozenset({SHEDDING_ENABLED, MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT})
"""Settings by which a strategy decides whose values are tried by a rule of their own."""
_SPLIT_IN_VAIN: Final = frozenset({"split_cascade", "topic_above_limit", "split_refused"})
"""Findings that say that splits bring nothing."""
_REPORTED: Final = (2, 5)
"""How many times as many bundles brokers report: the extensible load manager moves no others."""
_EVEN: Final = 1.25
"""How far above the average the busiest broker is after as many moves as even out a cluster."""
_FULL_PERCENT: Final = 100
_USAGE_UNITS: Final = frozenset({"percent", "percentage points", "score points"})
"""Units of whole numbers that are compared with usage; differences of rates are fractions."""

_KINDS: Final[tuple[tuple[type, Kind], ...]] = (
    (BundleMoves, "moves"),
    (BundleSplit, "split"),
    (NewBrokers, "brokers"),
    (MorePartitions, "partitions"),
    (MachineChange, "machines"),
)


def of_finding(finding: Finding, config: Settings) -> Action | None:
    """Return the remedy of a finding as an action; None where it is not one that can be simulated."""
    if not finding.changes and not finding.edits:
        return None
    action = settings_action("setting", finding.changes, config)
    if not finding.edits:
        return action
    also = f", and {action.words[:1].lower()}{action.words[1:]}" if finding.changes else ""
    said = f"{words_of(finding.edits)}{also}"
    kind: Kind = next((kind for edit, kind in _KINDS if isinstance(finding.edits[0], edit)), "policy")
    return replace(action, kind=kind, words=said, edits=finding.edits)


def candidates(snapshot: Snapshot, scenario: Scenario, outcome: Outcome) -> Iterator[Action]:
    """Yield what can be done about a cluster with a scenario, each action once.

    Args:
        snapshot: The cluster as captured.
        scenario: What is changed already.
        outcome: What comes of it.
    """
    seen: set[tuple[object, ...]] = set()
    config = scenario.settings_over(snapshot)
    sources: tuple[Callable[[], Iterator[Action]], ...] = (
        lambda: filter(None, (of_finding(finding, config) for finding in diagnose(outcome))),
        lambda: _strategies(snapshot, scenario, outcome),
        lambda: _switches(config, outcome, listed=topics_listed(snapshot)),
        lambda: _thresholds(config, outcome),
        lambda: moves_after(snapshot, scenario, outcome.result),
        lambda: _splits(snapshot, config),
        lambda: iter((more_brokers(scenario, 1),)),
    )
    for source in sources:
        for action in source():
            if action.key not in seen:
                seen.add(action.key)
                yield action


def namespace_splits(snapshot: Snapshot, scenario: Scenario, outcome: Outcome, namespace: str) -> Iterator[Action]:
    """Yield those of the candidates that only split bundles of a namespace, each once.

    Args:
        snapshot: The cluster as captured.
        scenario: What is changed already.
        outcome: What comes of it.
        namespace: The namespace.
    """
    config = scenario.settings_over(snapshot)
    findings = (of_finding(finding, config) for finding in diagnose(outcome))
    seen: set[tuple[object, ...]] = set()
    for action in (*filter(None, findings), *_splits(snapshot, config)):
        mine = (isinstance(one, BundleSplit) and one.bundle.rpartition("/")[0] == namespace for one in action.edits)
        if action.edits and not action.settings and action.key not in seen and all(mine):
            seen.add(action.key)
            yield action


def more_brokers(scenario: Scenario, number: int) -> Action:
    """Return the action that adds so many brokers of the median size to a scenario."""
    added = NewBrokers.beside(scenario.edits, number)
    return Action(kind="brokers", words=f"Add {count(number, 'broker')}", edits=(added,))


def _strategies(snapshot: Snapshot, scenario: Scenario, outcome: Outcome) -> Iterator[Action]:
    """Yield the other strategies of the same load manager, each with its placement: never a migration.

    Where shedding is off, each comes with the switch: alone, all it brings is that of the restart which it needs.
    """
    manager, config = outcome.load_manager, scenario.settings_over(snapshot)
    on = [name for name in (LOAD_BALANCER_ENABLED, SHEDDING_ENABLED) if not config.flag(name)]
    if on and any(one.hold is not None for one in switched_off(snapshot)):
        return  # the script that holds it off switches it on again
    also = ", and switch shedding on" if on else ""
    for shedder in offered_shedders(manager, config.release):
        if shedder.name == outcome.shedder:
            continue
        under = under_strategy(scenario, config, manager, shedder.name)
        changes: dict[str, SettingValue] = {
            name: value
            for name, value in under.settings.items()
            if scenario.settings.get(name) != value and name != LOAD_MANAGER_CLASS_NAME
        }
        changes |= dict.fromkeys(on, True)
        yield settings_action("strategy", changes, config, f"Change to {shedder.name}{also}")


def _switches(config: Settings, outcome: Outcome, *, listed: bool) -> Iterator[Action]:
    """Yield the switches the other way round, and the other split algorithms.

    Automatic splits are switched off only where they are in vain: elsewhere that spares clients once, and the bundles
    stay above their limits. Without a list of topics, algorithms that read it would split nothing in a simulation, and
    in Pulsar they do.
    """
    release = config.release.settings
    in_vain = any(finding.code in _SPLIT_IN_VAIN for finding in diagnose(outcome))
    flips = [SHEDDING_ENABLED, AUTO_BUNDLE_SPLIT_ENABLED, DISTRIBUTE_BUNDLES_EVENLY_ENABLED]
    for name in flips:
        off = config.flag(name)
        if off and (name == SHEDDING_ENABLED or (name == AUTO_BUNDLE_SPLIT_ENABLED and not in_vain)):
            continue
        if name in release:
            yield settings_action("switch", {name: not config.flag(name)}, config)
    supported = config[SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS]
    for algorithm in SPLIT_ALGORITHMS:
        name = DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM
        known = isinstance(supported, tuple) and algorithm.name in supported and not algorithm.needs_positions
        if known and (listed or not algorithm.reads_topics) and config.text(name) != algorithm.name:
            yield settings_action("switch", {name: algorithm.name}, config)


def _thresholds(config: Settings, outcome: Outcome) -> Iterator[Action]:
    """Yield other values of the settings by which the strategy decides: nearer, farther, and as its profile says.

    None where shedding is off: nothing reads them.
    """
    if not (config.flag(LOAD_BALANCER_ENABLED) and config.flag(SHEDDING_ENABLED)):
        return
    for name in shedder_by_name(outcome.shedder).profile.bounds:
        yield from values_of(name, config, outcome)
    if outcome.load_manager is LoadManager.EXTENSIBLE:
        for times in _REPORTED:
            most = config.integer(MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT) * times
            if _fits(config, MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT, most, LoadManager.EXTENSIBLE):
                yield settings_action("setting", {MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT: most}, config)


def values_of(name: str, config: Settings, outcome: Outcome) -> Iterator[Action]:
    """Yield other values of a setting by which the strategy decides; none of any other setting."""
    profile = shedder_by_name(outcome.shedder).profile
    if name in _ASKED_APART or name not in profile.bounds or name not in config.release.settings:
        return
    of_its_own = profile.threshold is not None and not profile.above_average
    if name == BROKER_OVERLOADED_THRESHOLD_PERCENTAGE and not of_its_own:
        return  # it says when a broker is too full, whatever makes a strategy shed
    value, bounds = config[name], profile.bounds[name]
    if bounds is None and isinstance(value, bool):
        yield settings_action("setting", {name: not value}, config)
    elif bounds is not None and isinstance(value, int | float) and not isinstance(value, bool):
        low, high = bounds
        usual = config.of(name).default
        others: list[float] = [value * step for step in _STEPS] if value >= 0 else []  # -1 means no limit
        others += [usual] if isinstance(usual, int | float) else []
        for other in others:
            tried = round(other) if isinstance(value, int) else round(other, 3)
            if (
                low <= tried <= high
                and tried != value
                and _is_usage(config, name, tried)
                and (tried != 0 or name != profile.most_bundles)  # it would shed nothing: a switch in disguise
                and _fits(config, name, tried, outcome.load_manager)
            ):
                yield settings_action("setting", {name: tried}, config)


def _is_usage(config: Settings, name: str, value: float) -> bool:
    """Say whether a threshold of usage can be reached: with more than 100 % it would be a switch in disguise."""
    return value <= _FULL_PERCENT or config.of(name).unit not in _USAGE_UNITS or not isinstance(config[name], int)


def _fits(config: Settings, name: str, value: SettingValue, manager: LoadManager) -> bool:
    """Say whether a setting can have a value, and the value is none that a finding about settings would object to."""
    try:
        changed = config.changed(**{name: value})
    except PlannerError:
        return False
    usual = config.changed(**{name: config.of(name).default})
    return _objections(changed, name, manager) <= _objections(usual, name, manager)


def _objections(config: Settings, name: str, manager: LoadManager) -> set[str]:
    return {one.code for one in setting_findings(config, manager) if name in one.settings}


def moves_after(snapshot: Snapshot, scenario: Scenario, result: Result, *, few: bool = True) -> Iterator[Action]:
    """Yield the best plans of few moves, the fewest that end an overload or even out brokers, and the best of any size.

    The last one is what *Best plan* shows. All start after the edits.

    Args:
        snapshot: The cluster as captured.
        scenario: What is changed already.
        result: What comes of it.
        few: Whether to yield the plans of few moves and the best of any size too.
    """
    try:
        start, at_min = _after_edits(snapshot, scenario)
        if start is None:
            return
        budgets = [min(budget, len(start.bundles) // _MOVED) for budget in _MOVES] if few else []
        asked = [Question(moves=budget, rounds=2) for budget in budgets]
        if result.end_peak_percent > result.limit_percent:
            asked.append(Question(under_percent=float(result.limit_percent), cost="moves", rounds=2))
        elif few and result.end_peak_percent - (mean := usage_of(start, start.settings)[1] * 100) >= APART * 100:
            asked.append(Question(under_percent=mean * _EVEN, cost="moves", rounds=2))
        asked += [Question(rounds=2)] if few else []
        for question in asked:
            plan = best_plan(start, question)
            if plan.moves:
                edits = (
                    replace(edit, at_min=edit.at_min + at_min)
                    for edit in scenario_of(plan, held=False).edits
                    if isinstance(edit, BalancerHold | BundleSplit | BundleMoves)
                )
                cuts = f"Split {count(len(plan.splits), 'bundle')} and move" if plan.splits else "Move"
                words = f"{cuts} {count(len(plan.moves), 'bundle')}"
                yield Action(kind="moves", words=words, edits=tuple(edits))
    except PlannerError:
        return


def _after_edits(snapshot: Snapshot, scenario: Scenario) -> tuple[Snapshot | None, float]:
    """Return the cluster after the last edit of a scenario, and the minute; None where that is after the last cycle.

    Until then the load balancer decides as it does without any remedy.
    """
    last_min = max(
        (getattr(edit, "at_min", 0.0) + getattr(edit, "duration_min", 0.0) for edit in scenario.edits), default=0.0
    )
    if last_min <= 0:
        return (left_by(snapshot, replace(scenario, cycles=1)) if scenario.edits else snapshot), 0.0
    every_min = max(scenario.settings_over(snapshot).integer(SHEDDING_INTERVAL_MINUTES), 1)
    cycles = int(last_min // every_min) + 1
    if cycles >= scenario.cycles:
        return None, 0.0
    return settled(simulate(snapshot, replace(scenario, cycles=cycles))), float(cycles * every_min)


def _splits(snapshot: Snapshot, config: Settings) -> Iterator[Action]:
    """Yield splits of the largest bundles that Split lab calls worth it."""
    found = 0
    throughput = snapshot.bundles.throughput_bytes_per_s()
    for bundle in np.argsort(-throughput, kind="stable")[:_LARGEST].tolist():
        advice = split_advice(snapshot, bundle, config)
        best = advice.best
        if advice.verdict != "Worth it" or best is None:
            continue
        yield split_action(snapshot.bundle_names[bundle], best)
        found += 1
        if found == _SPLITS:
            return


def splits_in_parts(snapshot: Snapshot) -> Iterator[Action]:
    """Yield splits of the heaviest bundle into two and into four equal parts, where no topics are listed.

    It has to carry more than a fair share. Its parts are moved afterwards: alone, the splits bring little.

    Args:
        snapshot: The cluster as captured.
    """
    if topics_listed(snapshot) or not len(snapshot.bundles):
        return
    table = snapshot.bundles
    throughput = np.where(internal_bundles(snapshot) | (table.topics < _DIVISIBLE), 0.0, table.throughput_bytes_per_s())
    heaviest = int(throughput.argmax())
    if throughput[heaviest] <= float(table.throughput_bytes_per_s().sum()) / max(len(snapshot.brokers), 1):
        return
    for parts in _PARTS:
        edits = divided(snapshot, snapshot.bundle_names[heaviest], parts)
        yield Action(kind="split", words=words_of(edits), edits=edits)
