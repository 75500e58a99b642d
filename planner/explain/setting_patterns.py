"""Settings that fight each other, whatever the cluster does with them just now."""

from collections.abc import Iterator
from typing import Final

from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.explain.setting_rules import setting_findings

SEEN_IN_CYCLES: Final = frozenset({"balancer_off", "class_not_loaded", "fighting_strategies", "strategy_replaced"})
"""Codes of rules that patterns of their own look for, which see what comes of them."""


def settings_that_fight(case: Outcome) -> Iterator[Finding]:
    """Settings contradict each other, or keep the load balancer from its work; see `planner.explain.setting_rules`."""
    found = setting_findings(case.trace.settings, case.load_manager)
    yield from (one for one in found if one.code not in SEEN_IN_CYCLES)
