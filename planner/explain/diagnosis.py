"""Known failure patterns of Pulsar's load balancing in a simulation, with evidence and remedy."""

from collections.abc import Callable
from typing import Final, TypeAlias

from planner.explain.bundle_patterns import (
    bundle_count_too_high,
    bundle_count_too_low,
    hot_topic,
    split_cascade,
    split_refused,
)
from planner.explain.cluster_patterns import (
    clients_cut_off,
    drawn_at_random,
    out_of_capacity,
    throttled,
    unlike_machines,
)
from planner.explain.finding import Finding, Severity
from planner.explain.outcome import Outcome
from planner.explain.shedding_patterns import (
    ema_lag,
    fighting_strategies,
    held_back,
    idle_broker,
    ping_pong,
    strategy_replaced,
    threshold_never_reached,
    unload_storm,
)
from planner.simulate.trace import Trace

Pattern: TypeAlias = Callable[[Outcome], tuple[Finding, ...]]
"""Detects one failure pattern."""

PATTERNS: tuple[Pattern, ...] = (
    out_of_capacity,
    unlike_machines,
    unload_storm,
    ping_pong,
    idle_broker,
    hot_topic,
    bundle_count_too_low,
    bundle_count_too_high,
    threshold_never_reached,
    ema_lag,
    split_cascade,
    split_refused,
    held_back,
    fighting_strategies,
    strategy_replaced,
    drawn_at_random,
    clients_cut_off,
    throttled,
)
"""Every pattern."""

_ORDER: Final[tuple[Severity, ...]] = ("high", "medium", "low")


def diagnose(source: Trace | Outcome) -> tuple[Finding, ...]:
    """Return every failure pattern that a simulation shows, the worst first; none when it shows none.

    Args:
        source: A simulation, or its outcome, which keeps the answer.
    """
    outcome = source if isinstance(source, Outcome) else Outcome(source)
    return outcome.once("diagnosis", lambda: _found(outcome)) if outcome.trace.cycles else ()


def _found(outcome: Outcome) -> tuple[Finding, ...]:
    found = [finding for pattern in PATTERNS for finding in pattern(outcome)]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))
