"""Several simulations side by side in a few numbers and a sentence: who balances best, and at what price.

The judge of outcomes decides first: what has more overload than others, or is worse than another one, is never best.
"""

import math
from collections.abc import Sequence
from typing import Final

from planner.cluster.text import count, number
from planner.pulsar.manager.cycle import effective_shedder
from planner.simulate.judge import Result, judge_overload, unbeaten
from planner.simulate.measures import Comparison, ComparisonRow
from planner.simulate.strategies import obstacle, with_obstacle
from planner.simulate.trace import Trace

KEY_MEASURES: Final = (
    "final_peak_usage_percent",
    "final_std_percent",
    "final_brokers_over_threshold",
    "topics_disconnected",
    "thrashing_percent",
)
"""Measures of the result, and of the cost to get there; simulations that agree in all of them are alike."""

_NAMED: Final = 3
_OVERLOAD: Final = ("overloaded_broker_min", "highest_percent")


def idle(found: Comparison) -> tuple[bool, ...]:
    """Return which simulations shed nothing, though others do, and move no more by command than others."""
    shed, moved = found.of("shed"), [value or 0 for value in found.of("moved")]
    least = min(moved, default=0)
    lazy = [not value and by_hand <= least for value, by_hand in zip(shed, moved, strict=True)]
    return tuple(lazy) if any(shed) else (False,) * len(shed)


def obstacle_of(trace: Trace) -> str:
    """Return why the cluster of a simulation cannot change to its strategy by settings alone; empty when it can."""
    own = trace.start.info.load_manager
    manager = trace.cycles[0].view.info.load_manager if trace.cycles else own
    return obstacle(effective_shedder(manager, trace.settings)[0], own, trace.settings.release)


def leaders(results: Sequence[Result], obstacles: Sequence[str] = ()) -> tuple[bool, ...]:
    """Return which simulations can be called best: no other one that can be chosen is better by the judge.

    Args:
        results: What the judge compares.
        obstacles: As in `marks`.
    """
    free = [at for at in range(len(results)) if not (obstacles and obstacles[at])]
    first = dict(zip(free, unbeaten([results[at] for at in free]), strict=True))
    return tuple(first.get(at, False) for at in range(len(results)))


def ranked(results: Sequence[Result], obstacles: Sequence[str] = ()) -> list[int]:
    """Return the places of simulations in the order of the judge, the best balanced first where it finds none better.

    Those with an obstacle, as in `marks`, come last.
    """
    lead = leaders(results, obstacles)
    cool = unbeaten(results, judge_overload)

    def key(at: int) -> tuple[object, ...]:
        one, barred = results[at], bool(obstacles and obstacles[at])
        overload = 0.0 if cool[at] else one.overloaded_broker_min
        return barred, not lead[at], not cool[at], overload, round(one.deviation_points, 2), one.topics

    return sorted(range(len(results)), key=key)


def judged_marks(
    found: Comparison, row: ComparisonRow, results: Sequence[Result], obstacles: Sequence[str] = ()
) -> tuple[bool, ...]:
    """Return which values are the best ones, as `marks`, but only of simulations that can be called best."""
    lead = leaders(results, obstacles)
    if sum(lead) > 1:
        return marks(found, row, ["" if one else "beaten" for one in lead])
    return tuple(one and best for one, best in zip(lead, marks(found, row, obstacles), strict=True))


def marks(found: Comparison, row: ComparisonRow, obstacles: Sequence[str] = ()) -> tuple[bool, ...]:
    """Return which values are the best ones, without those that are so because nothing was done.

    Args:
        found: The simulations.
        row: One measure of them.
        obstacles: For each why the cluster cannot change to it by settings alone, empty where it can; such a one is
            never the best. Without any all can be chosen.
    """
    free = _free(found, obstacles)
    if len(free) < len(found.names):
        fewer = found.among(free)
        best = dict(zip(free, marks(fewer, fewer.by_name[row.measure.name]), strict=True))
        return tuple(best.get(at, False) for at in range(len(found.names)))
    if not row.measure.of_moves or not any(idle(found)):
        return row.best
    working = [value for value, lazy in zip(row.values, idle(found), strict=True) if not lazy]
    known = [value for value in working if value is not None]
    least = min(known, default=None)
    good = [
        not lazy and value is not None and value == least for value, lazy in zip(row.values, idle(found), strict=True)
    ]
    return tuple(good) if len(set(working)) > 1 else (False,) * len(good)


def _free(found: Comparison, obstacles: Sequence[str]) -> list[int]:
    return [at for at in range(len(found.names)) if not (obstacles and obstacles[at])]


def trade_off(
    found: Comparison, words: Sequence[str], obstacles: Sequence[str] = (), results: Sequence[Result] = ()
) -> str:
    """Say which simulation ends best balanced, which disturbs least, which is overloaded, and which does nothing.

    Args:
        found: The simulations.
        words: What to call each.
        obstacles: As in `marks`; what has one is named last, with it.
        results: What the judge compares; without any, all are alike to it.
    """
    free = _free(found, obstacles)
    if len(free) == len(found.names):
        return _of_all(found, words, results)
    parts = []
    if _alike(found):
        parts.append(_of_all(found, words, results))
    elif len(free) == 1:
        parts.append(f"{_names(words, free)} ends with {_end(found, free[0], results)}.")
    elif free:
        some = [results[at] for at in free] if results else ()
        parts.append(_of_all(found.among(free), [words[at] for at in free], some))
    grouped: dict[str, list[str]] = {}
    for at in range(len(words)):
        if at not in free:
            grouped.setdefault(obstacles[at], []).append(f"**{words[at]}**")
    barred = [with_obstacle(", ".join(names), why) for why, names in grouped.items()]
    return " ".join([*parts, f"Not possible by settings alone: {', '.join(barred)}."])


def _alike(found: Comparison) -> bool:
    return all(len(set(found.of(name))) == 1 for name in (*KEY_MEASURES, "shed"))


def _of_all(found: Comparison, words: Sequence[str], results: Sequence[Result]) -> str:
    lazy, shed = idle(found), found.of("shed")
    topics: list[float] = [value or 0 for value in found.of("topics_disconnected")]
    deviation = [math.inf if value is None else value for value in found.of("final_std_percent")]
    if results and min(deviation) < math.inf:
        topics, deviation = [one.topics for one in results], [one.deviation_points for one in results]
    every = range(len(words))
    cool = [at for at, least in enumerate(unbeaten(results, judge_overload)) if least] if results else list(every)
    lead = [at for at in cool if leaders(results)[at]] or cool if results else cool
    if _alike(found) and len(cool) == len(words):
        why = "" if any(shed) else " None of them sheds a bundle: no broker exceeds their thresholds."
        return f"All {len(words)} have the same result here.{why}"
    if min(deviation) == math.inf:
        return "Cannot rank the scenarios: no broker reports load at the end."
    best = min(lead, key=lambda at: (round(deviation[at], 2), topics[at]))
    alike = [at for at in lead if round(deviation[at], 2) == round(deviation[best], 2)]
    verb = "end" if len(alike) > 1 else "ends"
    parts = [f"{_names(words, alike)} {verb} best balanced: {_end(found, best, results)}"]
    if len(cool) == 1:
        balanced = " and ends best balanced" if deviation[best] == min(deviation) else ""
        parts = [f"{_names(words, cool)} has the least overload{balanced}: {_end(found, best, results)}"]
    elif among := _among(deviation, best, cool):
        parts[0] = f"of those {among}, {parts[0]}"
    working = [at for at in cool if not lazy[at]]
    calm = min(working, key=lambda at: topics[at], default=best)
    if topics[calm] < topics[best]:
        parts.append(f"{_names(words, [calm])} disconnects fewer topics: {_end(found, calm, results)}")
    over = results[best].over_at_end if results else found.of("final_brokers_over_threshold")[best]
    if over:
        parts.append(f"even the best balanced one ends with {count(round(over), 'broker')} above the limit")
    if len(cool) < len(words):
        parts.append(_overload(words, [at for at in every if at not in cool], results))
    if any(lazy):
        at = [place for place, is_lazy in enumerate(lazy) if is_lazy]
        verb = "shed" if len(at) > 1 else "sheds"
        parts.append(f"{_names(words, at)} {verb} nothing, which causes no disconnections and no improvement")
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


def _among(deviation: Sequence[float], best: int, cool: Sequence[int]) -> str:
    """Return among which simulations one ends best balanced; empty where it does among all."""
    if round(min(deviation[at] for at in cool), 2) < round(deviation[best], 2):
        return "that no other one is better than"
    return "with the least overload" if min(deviation) < deviation[best] and len(cool) < len(deviation) else ""


def _overload(words: Sequence[str], hot: Sequence[int], results: Sequence[Result]) -> str:
    minutes, peak = (max(getattr(results[at], name) for at in hot) for name in _OVERLOAD)
    upto = "up to " if len(hot) > 1 else ""
    text = f"{_names(words, hot)} {'have' if len(hot) > 1 else 'has'} more overload: {upto}"
    return f"{text}{count(round(minutes), 'broker-minute')} above the limit and a peak of {upto}{peak:.1f} %"


def _names(words: Sequence[str], places: Sequence[int]) -> str:
    named = [f"**{words[at]}**" for at in places[:_NAMED]]
    if len(places) > _NAMED:
        named[1:] = [f"{len(places) - 1} others"]
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


def _end(found: Comparison, at: int, results: Sequence[Result]) -> str:
    values: tuple[float, ...] = tuple(
        found.of(name)[at] or 0 for name in ("final_peak_usage_percent", "final_std_percent", "topics_disconnected")
    )
    if results:
        values = results[at].end_peak_percent, results[at].deviation_points, results[at].topics
    peak, deviation, topics = (number(round(value, 1)) for value in values)
    return (
        f"highest usage {peak} %, deviation {deviation} points, {topics} {'topic' if topics == '1' else 'topics'}"
        " disconnected"
    )
