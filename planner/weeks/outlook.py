"""What growth, as a history measures it, does to a namespace up to some weeks after its last moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import DAY_MS
from planner.namespaces.advice import BundleAdvice, advice_then
from planner.namespaces.outlook import MOST_FACTOR, first_week, grown, weeks_ahead, will_split
from planner.weeks.growth import TOO_SHORT, Rates, growth_per_week

_WEEK_MS: Final = 7 * DAY_MS
_STEADY_PERCENT: Final = 0.05
"""Growth per week, in percent, that is shown as 0.0."""
_LATELY_WEEKS: Final = 1.0
"""Weeks within which the busiest moment of growing traffic is; an earlier one is a spike, and is taken as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What growth does to a namespace.

    Attributes:
        growth_percent_per_week: By how much its traffic grows in a week, in percent; None where the history is too
            short.
        horizon_weeks: How many weeks after the last moment are looked at; 0 where growth is not known.
        split_due_weeks: In which week an automatic split is due, at its busiest time of day: 0 is now. None where none
            is up to the horizon.
        later_bundles: Recommended number at the horizon; None where growth is not known, or where no usage is true.
        is_lasting: Whether the advice of today is still right at the horizon; None likewise.
        text: It in a few sentences.
    """

    growth_percent_per_week: float | None
    horizon_weeks: int
    split_due_weeks: int | None
    later_bundles: int | None
    is_lasting: bool | None
    text: str


def outlook(advice: BundleAdvice, last: Snapshot, rates: Sequence[Rates], horizon_weeks: int) -> Outlook:
    """Return what growth does to a namespace.

    The split is that of the split forecast: today's bundles at the traffic of the busiest moment, grown; the bundles of
    that moment where there is no traffic at the last one. Whether advice lasts is asked of the busiest moment, for
    which it was given, grown as well. The rest of the cluster grows as it did.

    Args:
        advice: The advice at its busiest moment.
        last: The cluster at the last moment.
        rates: Traffic at all moments, in the order of time.
        horizon_weeks: Weeks after the last moment to look at.
    """
    name, busiest = advice.namespace, advice.snapshot
    measured = growth_per_week(rates, name)
    growth, rest = (min(one or 1.0, MOST_FACTOR) for one in (measured, growth_per_week(rates)))
    weeks = 0 if measured is None else weeks_ahead(max(growth, rest), horizon_weeks)
    since = (last.info.captured_at_ms - busiest.info.captured_at_ms) / _WEEK_MS

    def times(factor: float, week: int) -> float:
        """Return how many times the traffic of the busiest moment it is then."""
        return float(factor ** (week + (min(since, _LATELY_WEEKS) if factor > 1 else since)))

    at_peak = next(one for one in rates if one.at_ms == busiest.info.captured_at_ms)
    now = next(one for one in rates if one.at_ms == last.info.captured_at_ms)
    base, peak, others = busiest, 1.0, 1.0  # what is silent at the last moment cannot be scaled
    if all(rate > 0 for rate in (now.of[name][0], now.whole[0])):
        base, peak, others = last, at_peak.of[name][0] / now.of[name][0], at_peak.whole[0] / now.whole[0]

    def splits(week: int) -> bool:
        factors = peak * times(growth, week), others * times(rest, week)
        return will_split(grown(base, name, *factors, averages=growth**week), name)

    due = first_week(splits, weeks)
    if measured is None:
        return Outlook(
            growth_percent_per_week=None,
            horizon_weeks=0,
            split_due_weeks=due,
            later_bundles=None,
            is_lasting=None,
            text=f"The history is too short to measure growth: {TOO_SHORT}. {_due(due, 0)}",
        )
    percent = (measured - 1) * 100
    bundles, lasts, text = None, None, f"{_grows(percent)} {_due(due, weeks)}"
    if not advice.withheld:
        then = times(growth, weeks)
        later = grown(busiest, name, then, times(rest, weeks), averages=then)
        bundles, cuts = advice_then(advice, later)
        lasts = bundles == advice.recommended and cuts == advice.cuts_help
        text = f"{text} {_lasts(advice, bundles, weeks, cuts=cuts)}"
    return Outlook(
        growth_percent_per_week=percent,
        horizon_weeks=weeks,
        split_due_weeks=due,
        later_bundles=bundles,
        is_lasting=lasts,
        text=text,
    )


def _grows(percent: float) -> str:
    if abs(percent) < _STEADY_PERCENT:
        return "Its traffic neither grows nor shrinks."
    return f"Its traffic {'grows' if percent > 0 else 'shrinks'} by {abs(percent):.1f} % a week."


def _due(due: int | None, weeks: int) -> str:
    if due is None:
        return (
            f"No automatic split is due within {count(weeks, 'week')}." if weeks else "No automatic split is due now."
        )
    if not due:
        return "An automatic split is due now, at its busiest time of day."
    return f"The next automatic split is due in {count(due, 'week')}."


def _lasts(advice: BundleAdvice, bundles: int, weeks: int, *, cuts: bool) -> str:
    parts = []
    if cuts != advice.cuts_help:
        parts.append("cuts will be worth it" if cuts else "the cuts will no longer be worth it")
    if bundles != advice.recommended:
        parts.append(f"{count(bundles, 'bundle')} will be better than {advice.recommended:,} if it is recreated")
    if not parts:
        return f"This advice is still right in {count(weeks, 'week')}."
    return f"In {count(weeks, 'week')}, {' and '.join(parts)}."
