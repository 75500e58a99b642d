"""Known failure patterns of Pulsar's load balancing in a simulation, with evidence and remedy."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from planner.explain import (
    bundle_patterns,
    class_patterns,
    cluster_patterns,
    core_patterns,
    gate_patterns,
    kind_patterns,
    measurement_patterns,
    policy_patterns,
    setting_patterns,
    shedding_patterns,
    switch_patterns,
    topic_patterns,
)
from planner.explain.causes import without_consequences
from planner.explain.finding import Finding, Severity
from planner.explain.outcome import Outcome
from planner.simulate.trace import Trace

Pattern: TypeAlias = Callable[[Outcome], Iterable[Finding]]
"""Detects one failure pattern."""

PATTERNS: tuple[Pattern, ...] = (
    class_patterns.class_not_loaded,
    class_patterns.other_load_manager,
    measurement_patterns.impossible_measurement,
    measurement_patterns.report_outdated,
    measurement_patterns.report_missing,
    cluster_patterns.out_of_capacity,
    cluster_patterns.unlike_machines,
    cluster_patterns.topics_full,
    core_patterns.fewer_cores,
    core_patterns.more_cores,
    kind_patterns.topics_refused,
    policy_patterns.policy_matches_no_broker,
    policy_patterns.no_broker_allowed,
    policy_patterns.policy_without_namespaces,
    switch_patterns.shedding_off,
    gate_patterns.held_by_gate,
    policy_patterns.policy_full,
    policy_patterns.against_policy,
    measurement_patterns.used_by_others,
    measurement_patterns.memory_stays,
    measurement_patterns.network_stays,
    measurement_patterns.resource_not_counted,
    shedding_patterns.usage_not_compared,
    shedding_patterns.idle_bundles_shed,
    shedding_patterns.unload_storm,
    shedding_patterns.ping_pong,
    shedding_patterns.idle_broker,
    topic_patterns.hot_topic,
    topic_patterns.topic_above_limit,
    bundle_patterns.bundle_count_too_low,
    bundle_patterns.bundle_count_too_high,
    shedding_patterns.threshold_never_reached,
    shedding_patterns.ema_lag,
    bundle_patterns.split_cascade,
    bundle_patterns.split_refused,
    bundle_patterns.namespace_full,
    shedding_patterns.held_back,
    shedding_patterns.fighting_strategies,
    shedding_patterns.strategy_replaced,
    cluster_patterns.drawn_at_random,
    cluster_patterns.clients_cut_off,
    cluster_patterns.throttled,
    class_patterns.topics_placed_otherwise,
    setting_patterns.settings_that_fight,
    setting_patterns.exclusion_without_effect,
    class_patterns.own_class,
    policy_patterns.domains_without_effect,
    policy_patterns.group_without_effect,
    policy_patterns.group_not_spread,
    policy_patterns.old_namespace,
)
"""Every pattern."""

_OF_BALANCE: Final = frozenset(
    {
        "avg_held_back",
        "bundle_count_too_low",
        "drawn_at_random",
        "ema_lag",
        "fighting_strategies",
        "held_by_gate",
        "idle_broker",
        "load_data_expires",
        "no_grace_period",
        "threshold_always_acts",
        "threshold_never_acts",
        "threshold_never_reached",
        "threshold_no_longer_reached",
        "thresholds_crossed",
        "usage_not_compared",
    }
)
"""Findings about how even brokers are: notes where every broker has most of its capacity left."""
_ORDER: Final[tuple[Severity, ...]] = ("high", "medium", "low")


def diagnose(source: Trace | Outcome) -> tuple[Finding, ...]:
    """Return every failure pattern that a simulation shows, the worst first; none when it shows none.

    What follows from another one is left out (see `planner.explain.causes`).

    An outcome keeps the answer.
    """
    outcome = source if isinstance(source, Outcome) else Outcome(source)
    return outcome.once("diagnosis", lambda: _found(outcome)) if outcome.trace.cycles else ()


@np.errstate(over="ignore", invalid="ignore")  # averages can run away
def _found(outcome: Outcome) -> tuple[Finding, ...]:
    found = without_consequences([finding for pattern in PATTERNS for finding in pattern(outcome)], outcome)
    if outcome.calm:
        found = [replace(one, severity="low") if one.code in _OF_BALANCE else one for one in found]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))
