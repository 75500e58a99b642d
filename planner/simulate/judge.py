"""The one judge of outcomes: is a cluster better off after this than after that, and why.

Overload counts first, then disruption, then balance. Whatever recommends something asks here: findings, Fix it,
Compare, the advisor, the gate on Moves, the best plan, the failure review, Upgrade, the report and the exit status of
commands.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.text import count
from planner.simulate.breaches import breaches, stranded
from planner.simulate.demand import demand
from planner.simulate.moves import disconnections, relocations, thrashing_percent
from planner.simulate.trace import Trace

Word: TypeAlias = Literal["better", "worse", "trade-off", "same"]
"""What the judge answers."""

# The tolerances: within them two outcomes are alike.
PEAK_POINTS: Final = 1.0
"""Points of the highest usage."""
OVERLOAD_BROKER_MIN: Final = 2.0
"""Broker-minutes above the limit; more than the reports of one broker can be late by."""
OVERLOAD_SHARE: Final = 0.02
"""Share of the broker-minutes above the limit, where there are many."""
TOPICS_SHARE: Final = 0.01
"""Share of the cluster's topics that is disconnected."""
TOPICS_RELATIVE: Final = 0.1
"""Share of the topics disconnected by the outcome that disconnects more."""
DEVIATION_POINTS: Final = 0.5
"""Points of the standard deviation of usage."""
THRASHING_POINTS: Final = 5.0
"""Points of the thrashing score."""

_WHOLE: Final = frozenset({"unserved", "misplaced", "stranded", "over_at_end", "topics", "clients", "all_topics"})
"""What results count in whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One outcome in the numbers that count.

    Attributes:
        limit_percent: `loadBalancerBrokerOverloadedThresholdPercentage` of the cluster as it was captured.
        overloaded_broker_min: Broker-minutes with a usage above it.
        highest_percent: Highest usage of a broker on the way or at the end, in percent; above 100 where demand exceeds
            capacity.
        end_peak_percent: Highest usage at the end, likewise.
        unserved: Bundles in use that no broker serves at the end.
        misplaced: Bundles that a broker serves against their isolation policy at the end.
        topics: Topics disconnected on the way, each as often as it is.
        clients: Producers and consumers disconnected, likewise.
        all_topics: Topics of the cluster.
        thrashing_percent: Share of the shed traffic that was shed in vain.
        deviation_points: Standard deviation of usage at the end, in points.
        stranded: Bundles that a broker serves at the end, and that none may own after the next unload.
        over_at_end: Brokers above the limit at the end.
        apart_points: Points between the most and the least used broker at the end; not judged.
    """

    limit_percent: float
    overloaded_broker_min: float
    highest_percent: float
    end_peak_percent: float
    unserved: int
    misplaced: int
    topics: int
    clients: int
    all_topics: int
    thrashing_percent: float
    deviation_points: float
    stranded: int = 0
    over_at_end: int = 0
    apart_points: float = 0.0

    @staticmethod
    def of(trace: Trace) -> "Result":
        """Measure a simulation of at least one cycle.

        Usage, weights and limit follow the settings of the capture, so that no scenario improves by measuring
        differently. A moment counts as it is after the moves of its cycle: the state before the first cycle is the
        same in every outcome.
        """
        found, cut = demand(trace), [event for events in disconnections(trace) for event in events]
        return Result(
            limit_percent=found.limit * 100,
            overloaded_broker_min=float(np.dot(found.over, found.minutes)),
            highest_percent=float(found.usage.max(initial=0.0)) * 100,
            end_peak_percent=float(found.usage[-1].max(initial=0.0)) * 100,
            unserved=found.standing.unserved,
            misplaced=len(breaches(found.end)),
            topics=sum(event.topics for event in cut),
            clients=sum(event.producers + event.consumers for event in cut),
            all_topics=int(trace.start.bundles.topics[~internal_bundles(trace.start)].sum()),
            thrashing_percent=thrashing_percent(relocations(trace)),
            deviation_points=found.standing.std * 100,
            stranded=len(stranded(found.end)),
            over_at_end=int(found.over[-1]),
            apart_points=float(found.balance.spread) * 100,
        )

    @staticmethod
    def mean(results: Sequence["Result"]) -> "Result":
        """Return the mean of at least one outcome of the same cluster, such as of the same change under several seeds.

        What is counted in whole numbers is rounded.
        """
        means = {one.name: float(np.mean([getattr(result, one.name) for result in results])) for one in fields(Result)}
        values: dict[str, Any] = {name: round(value) if name in _WHOLE else value for name, value in means.items()}
        return Result(**values)

    @staticmethod
    def over_days(measures: Mapping[str, float | None], limit_percent: float) -> "Result":
        """Return replayed days as one outcome.

        The highest usage at the end and the deviation are those of the whole time: a day has no end that counts more
        than its other moments. Bundles against their policy are not measured, and the topics of the cluster are not
        known, so only relative tolerances apply to topics. Clients are disconnected as often as on those days.

        Args:
            measures: Of all days, named as in `planner.simulate.measures.Summary`; what is missing is 0.
            limit_percent: `loadBalancerBrokerOverloadedThresholdPercentage` that the days were measured with.
        """
        of = {name: value or 0.0 for name, value in measures.items()}
        peak = of.get("peak_usage_percent", 0.0)
        return Result(
            limit_percent=limit_percent,
            overloaded_broker_min=of.get("overloaded_broker_min", 0.0),
            highest_percent=peak,
            end_peak_percent=peak,
            unserved=int(of.get("unserved", 0)),
            misplaced=0,
            topics=int(of.get("topics_disconnected", 0)),
            clients=int(of.get("producers_disconnected", 0) + of.get("consumers_disconnected", 0)),
            all_topics=0,
            thrashing_percent=of.get("thrashing_percent", 0.0),
            deviation_points=of.get("mean_std_percent", 0.0),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge answers.

    Attributes:
        word: The answer.
        text: Why, one sentence.
        overload: 1 where overload is less, -1 where it is more, 0 where it is alike; None where one measure is better
            and another one worse.
        disruption: Likewise of disconnections.
        balance: Likewise of balance.
    """

    word: Word
    text: str
    overload: int | None
    disruption: int | None
    balance: int | None


@dataclass(frozen=True, slots=True)
class _Part:
    """One measure of two outcomes: which, 1 where the second one is better, and the words for it."""

    measure: str
    sign: int
    text: str


def judge(before: Result, after: Result) -> Verdict:
    """Say whether an outcome is better than another one.

    Both are of the same cluster over the same time. A peak below the limit is a question of balance, one above it of
    overload. Worse overload is worse whatever else improves, less overload is better whatever it disconnects; where
    overload is alike, disruption and balance either agree, or are a trade-off.

    Args:
        before: What it is compared with, such as doing nothing.
        after: The outcome in question.
    """
    overload = _overload(before, after)
    disruption = _disruption(before, after)
    balance = _balance(before, after)
    signs = [_sign(parts) for parts in (overload, disruption, balance)]
    word = _word(*signs)
    said = [part for parts in (overload, disruption, balance) for part in parts if part.sign]
    return Verdict(word, _sentence(word, said), *signs)


def gained(before: Result, after: Result) -> tuple[str, float] | None:
    """Return the measure in which an outcome gains most, and the share of it that is gone.

    Overload alone decides where it is less. The measure is named as `Result` has it, or is `excess`: the points of the
    peak above the limit. None where nothing is better.
    """
    for parts in (_overload(before, after), [*_disruption(before, after), *_balance(before, after)]):
        if shares := _shares(parts, before, after):
            return max(shares.items(), key=lambda one: one[1])
    return None


def gains(before: Result, after: Result) -> dict[str, float]:
    """Return every measure in which an outcome is better, named as by `gained`, and the share of it that is gone."""
    return _shares([*_overload(before, after), *_disruption(before, after), *_balance(before, after)], before, after)


def _shares(parts: Iterable["_Part"], before: Result, after: Result) -> dict[str, float]:
    return {part.measure: share_gone(part.measure, before, after) for part in parts if part.sign > 0}


def share_gone(measure: str, before: Result, after: Result) -> float:
    """Return which share of a measure, as `gained` names it, is gone; 1 where there was nothing to gain."""
    one, two = (_amount(measure, result) for result in (before, after))
    return (one - two) / one if one > 0 else 1.0


def _amount(measure: str, result: Result) -> float:
    if measure == "excess":
        return max(result.highest_percent - result.limit_percent, 0.0)
    return float(getattr(result, measure))


def judge_overload(before: Result, after: Result) -> Verdict:
    """Say whether an outcome is better by overload alone: brokers above the limit, and bundles nobody may serve."""
    overload = _overload(before, after)
    sign = _sign(overload)
    word: Word = "trade-off" if sign is None else ("worse", "same", "better")[sign + 1]
    return Verdict(word, _sentence(word, [part for part in overload if part.sign]), sign, 0, 0)


def unbeaten(results: Sequence[Result], by: Callable[[Result, Result], Verdict] = judge) -> tuple[bool, ...]:
    """Return which outcomes no other one is better than; all where they beat each other in a circle."""
    found = tuple(all(by(mine, other).word != "better" for other in results) for mine in results)
    return found if any(found) else (True,) * len(results)


def _word(overload: int | None, disruption: int | None, balance: int | None) -> Word:
    if overload is None:
        return "trade-off"
    if overload:
        return "better" if overload > 0 else "worse"
    known = {disruption, balance} - {0}
    if not known:
        return "same"
    if known == {1}:
        return "better"
    return "worse" if known == {-1} else "trade-off"


def _sign(parts: list[_Part]) -> int | None:
    signs = {part.sign for part in parts} - {0}
    if len(signs) > 1:
        return None
    return signs.pop() if signs else 0


def _overload(before: Result, after: Result) -> list[_Part]:
    limit = max(before.limit_percent, after.limit_percent)
    one, two = before.overloaded_broker_min, after.overloaded_broker_min
    tolerance = max(OVERLOAD_BROKER_MIN, OVERLOAD_SHARE * max(one, two))
    parts = [
        _part("overloaded_broker_min", one, two, tolerance, "broker-minutes above the limit {} to {}", _whole),
        _part("unserved", before.unserved, after.unserved, 0, "bundles without a broker {} to {}", _whole),
        _part("stranded", before.stranded, after.stranded, 0, "bundles that no broker may own {} to {}", _whole),
        _part("misplaced", before.misplaced, after.misplaced, 0, "bundles against their policy {} to {}", _whole),
    ]
    if max(before.highest_percent, after.highest_percent) > limit + PEAK_POINTS:
        lower = max(before.highest_percent, limit), max(after.highest_percent, limit)
        sign = _compared(*lower, PEAK_POINTS)
        shown = f"peak {before.highest_percent:.1f} to {after.highest_percent:.1f} %"
        parts.insert(0, _Part("excess", sign, shown))
    return parts


def _disruption(before: Result, after: Result) -> list[_Part]:
    all_topics = max(before.all_topics, after.all_topics)
    most = max(before.topics, after.topics)
    tolerance = max(TOPICS_SHARE * all_topics, TOPICS_RELATIVE * most)
    less = after.topics < before.topics
    shown = f"{count(abs(after.topics - before.topics), 'topic')} {'fewer' if less else 'more'} disconnected"
    topics = _Part("topics", _compared(before.topics, after.topics, tolerance), shown)
    shares = before.thrashing_percent, after.thrashing_percent
    thrashing = _part("thrashing_percent", *shares, THRASHING_POINTS, "thrashing {} to {} %", _one)
    if topics.sign or not (before.topics and after.topics):
        return [topics]  # shares of unlike amounts of traffic, or of none, say nothing
    return [topics, thrashing]


def _balance(before: Result, after: Result) -> list[_Part]:
    limit = max(before.limit_percent, after.limit_percent)
    peaks, deviations = (
        (getattr(before, name), getattr(after, name)) for name in ("end_peak_percent", "deviation_points")
    )
    parts = [_part("deviation_points", *deviations, DEVIATION_POINTS, "deviation {} to {} points", _one)]
    if max(peaks) <= limit + PEAK_POINTS:
        parts.insert(0, _part("end_peak_percent", *peaks, PEAK_POINTS, "highest usage {} to {} %", _one))
    signs = {part.sign for part in parts} - {0}
    if len(signs) > 1:  # the broker next to its limit is what an operator looks at
        return parts[:1]
    return parts


def _part(
    measure: str, before: float, after: float, tolerance: float, text: str, shown: Callable[[float], str]
) -> _Part:
    return _Part(measure, _compared(before, after, tolerance), text.format(shown(before), shown(after)))


def _compared(before: float, after: float, tolerance: float) -> int:
    if math.isclose(before, after) or abs(after - before) <= tolerance:
        return 0
    return 1 if after < before else -1


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _one(value: float) -> str:
    return f"{value:.1f}"


def _sentence(word: Word, parts: list[_Part]) -> str:
    if word == "same" or not parts:
        return "No difference that counts."
    good = ", ".join(part.text for part in parts if part.sign > 0)
    bad = ", ".join(part.text for part in parts if part.sign < 0)
    said = f"{good}, but {bad}" if good and bad else good or bad
    return f"{word.capitalize()}: {said}."
