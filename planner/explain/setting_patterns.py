"""Settings that fight each other, whatever the cluster does with them just now."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from planner.cluster.names import SHEDDING_EXCLUDED_NAMESPACES
from planner.explain.also_needed import with_what_else
from planner.explain.finding import Finding, listed
from planner.explain.misses import miss
from planner.explain.outcome import Outcome
from planner.explain.setting_rules import setting_findings
from planner.explain.shedding_patterns import would_shed_now
from planner.explain.units_meant import SENSIBLE
from planner.pulsar.load.java_pattern import java_pattern
from planner.pulsar.shedding.profile import Remedy

SEEN_IN_CYCLES: Final = frozenset(
    {
        "balancer_off",
        "class_not_loaded",
        "exclusion_without_effect",
        "fighting_strategies",
        "sheds_nothing",
        "strategy_replaced",
    }
)
"""Codes of rules that patterns of their own look for, which see what comes of them."""


def settings_that_fight(case: Outcome) -> Iterator[Finding]:
    """Settings contradict each other, or keep the load balancer from its work; see `planner.explain.setting_rules`."""
    found = setting_findings(case.trace.settings, case.load_manager)
    for one in found:
        if one.code == "threshold_never_acts":
            more = with_what_else(Remedy(one.remedy, one.changes), case, would_shed_now(case))
            yield replace(one, remedy=more.words, changes=dict(more.changes), settings=tuple(more.changes))
        elif one.code == "value_in_wrong_unit" and not all(SENSIBLE[name].simulated for name in one.changes):
            yield replace(one, changes={})  # no simulation shows what it comes to
        elif one.code not in SEEN_IN_CYCLES:
            yield one


def exclusion_without_effect(case: Outcome) -> Iterator[Finding]:
    """A namespace that is to be excluded from shedding is written so that it is none: as an expression, or misspelt."""
    spaces = case.trace.end.namespaces
    excluded = case.trace.settings.names(SHEDDING_EXCLUDED_NAMESPACES)
    meant = {one: found for one in excluded if one not in spaces and (found := _namespaces_meant(one, spaces))}
    if not meant:
        return
    better = tuple(dict.fromkeys(name for one in excluded for name in meant.get(one, (one,))))
    added = [name for names in meant.values() for name in names]
    yield Finding(
        code="exclusion_without_effect",
        title=f"{SHEDDING_EXCLUDED_NAMESPACES} excludes no {listed(list(meant))}",
        evidence=(
            f"No namespace is called {listed(list(meant))}. Pulsar compares whole names there and reads no expressions,"
            f" so that bundles of {listed(added)} are shed as all others."
        ),
        remedy=f"Write {','.join(better)}, or take it out if they may be shed.",
        severity="low",
        settings=(SHEDDING_EXCLUDED_NAMESPACES,),
        changes={SHEDDING_EXCLUDED_NAMESPACES: better},
    )


def _namespaces_meant(text: str, spaces: Sequence[str]) -> tuple[str, ...]:
    """Return the namespaces that an entry means: those that match it, or would without a mistake."""
    for one in (text, *miss(text, spaces).better):
        pattern = java_pattern(one)
        if found := tuple(name for name in spaces if pattern.matches(name)):
            return found
    return ()
