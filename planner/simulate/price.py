"""What a run will cost, told before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.simulate.clock import WATCHED_MIN
from planner.simulate.scenario import Scenario

TOLD_FROM_S: Final = 60.0
"""Runs that take longer are announced before they start."""

_CYCLE_S = 3e-3
_BUNDLE_S = 1e-6
_MINUTE_S = 2.5e-4
_MINUTE_BUNDLE_S = 1.5e-7
_PAIR_S = 1e-9
_LOOKUP_S = 1e-3
_LOOKUP_BUNDLE_S = 2e-8
_JOIN_S = 1e-7


@dataclass(frozen=True, slots=True)
class Price:
    """What a run goes through: cycles x bundles x brokers.

    Attributes:
        cycles: Shedding cycles.
        bundles: Bundles, with those of namespaces that are made anew.
        brokers: Brokers, with those that join.
        seconds: About how long a processor works on it; measured on two cores, right to a factor of a few.
    """

    cycles: int
    bundles: int
    brokers: int
    seconds: float


def price_of(snapshot: Snapshot, scenario: Scenario) -> Price:
    """Return what the run of a scenario will cost."""
    joining = sum(len(edit.joining()) for edit in scenario.edits)
    recreated = sum(int(getattr(edit, "bundles", 0)) for edit in scenario.edits if edit.recreated())
    bundles, brokers = len(snapshot.bundles) + recreated, len(snapshot.brokers) + joining
    quiet_min = min(scenario.settings_over(snapshot).integer(SHEDDING_INTERVAL_MINUTES), WATCHED_MIN) - 1
    each_s = _CYCLE_S + bundles * (_BUNDLE_S + brokers * _PAIR_S)
    each_s += max(quiet_min, 0) * (_MINUTE_S + bundles * _MINUTE_BUNDLE_S)
    once_s = recreated * (_LOOKUP_S + bundles * _LOOKUP_BUNDLE_S) + joining * brokers * _JOIN_S
    return Price(scenario.cycles, bundles, brokers, scenario.cycles * each_s + once_s)


def price_text(prices: Sequence[Price]) -> str:
    """Return what runs go through together, and how long that is; empty when they are short."""
    seconds = sum(price.seconds for price in prices)
    if seconds <= TOLD_FROM_S:
        return ""
    longest = max(prices, key=lambda price: price.seconds)
    return (
        f"This simulates {count(longest.cycles, 'cycle')} of {count(longest.bundles, 'bundle')} "
        "on "
        f"{count(longest.brokers, 'broker')}{'' if len(prices) == 1 else f', {len(prices)} times'}: "
        f"about {seconds / 60:,.0f} min of work"
    )
