"""Whether a gain is no luck: it holds under other seeds, and with somewhat more or less traffic.

The seed decides when each broker reports, and what is drawn where Pulsar draws. Traffic is another one by tomorrow.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.judge import Result, judge, share_gone
from planner.simulate.scenario import Scenario, Step

OTHER_SEEDS: Final = 3
"""Seeds under which a gain has to hold besides the scenario's own."""
OTHER_TRAFFIC: Final = (1.1, 0.9)
"""Factors of all traffic under which it has to hold. More traffic comes first: nine of ten that fail do so there."""
KEPT: Final = 0.5
"""Share of a gain that has to hold."""
LOST: Final = "under another seed or 10 % more or less traffic, most of the gain is lost"
"""What is said of one that does not."""
VARIANTS: Final = ("with 10 % more traffic", "with 10 % less traffic", *("under another seed",) * OTHER_SEEDS)
"""What is different in each scenario that `variants` returns."""


def variants(scenario: Scenario) -> list[Scenario]:
    """Return a scenario with other traffic and under other seeds, those under which most gains fail first."""
    busier = [scenario.with_steps(Step(TrafficGrowth(factor=factor)), *scenario.steps) for factor in OTHER_TRAFFIC]
    return [*busier, *(replace(scenario, seed=(scenario.seed + 1 + at) % 2**31) for at in range(OTHER_SEEDS))]


def why_lost(gain: tuple[str, float] | None, outcomes: Iterable[tuple[Result, Result]]) -> str:
    """Return where less than half of a gain is left or the outcome is worse, a clause; empty where it holds.

    Args:
        gain: The measure in which most is gained, and the share of it that is gone, as `gained` returns it.
        outcomes: What comes of each of `variants` without what is tried, and with it. The rest is not asked for once
            one fails.
    """
    for words, (before, after) in zip(VARIANTS, outcomes, strict=False):
        if judge(before, after).word == "worse":
            return f"{words}, it is worse than doing nothing"
        if gain is not None and share_gone(gain[0], before, after) < KEPT * gain[1]:
            return f"{words}, most of the gain is lost"
    return ""


def holds(gain: tuple[str, float], outcomes: Iterable[tuple[Result, Result]]) -> bool:
    """Say whether at least half of a gain is left in every other outcome, and none is worse; see `why_lost`."""
    return not why_lost(gain, outcomes)
