"""Several simulations side by side in a few numbers and a sentence: who balances best, and at what price."""

import math
from collections.abc import Sequence
from typing import Final

from planner.explain.text import count, number
from planner.simulate.measures import Comparison, ComparisonRow

KEY_MEASURES: Final = (
    "final_peak_usage_percent",
    "final_std_percent",
    "final_brokers_over_threshold",
    "topics_disconnected",
    "thrashing_percent",
)
"""Where a cluster ends, and what it costs to get there."""

_NAMED: Final = 3


def idle(found: Comparison) -> tuple[bool, ...]:
    """Return which simulations shed nothing, though others do."""
    shed = found.of("shed")
    return tuple(not value for value in shed) if any(shed) else (False,) * len(shed)


def marks(found: Comparison, row: ComparisonRow) -> tuple[bool, ...]:
    """Return which values are the best ones, without those that are so because nothing was done."""
    if not row.measure.of_moves or not any(idle(found)):
        return row.best
    working = [value for value, lazy in zip(row.values, idle(found), strict=True) if not lazy]
    known = [value for value in working if value is not None]
    least = min(known, default=None)
    good = [
        not lazy and value is not None and value == least for value, lazy in zip(row.values, idle(found), strict=True)
    ]
    return tuple(good) if len(set(working)) > 1 else (False,) * len(good)


def trade_off(found: Comparison, words: Sequence[str]) -> str:
    """Say who ends best balanced, who disturbs least, and who does nothing; `words` are the names as written."""
    lazy, shed = idle(found), found.of("shed")
    topics = [value or 0 for value in found.of("topics_disconnected")]
    deviation = [math.inf if value is None else value for value in found.of("final_std_percent")]
    if all(len(set(found.of(name))) == 1 for name in (*KEY_MEASURES, "shed")):
        why = "" if any(shed) else " None of them sheds a bundle: no broker is beyond what they look for."
        return f"All {len(words)} do the same here, and end the same.{why}"
    if min(deviation) == math.inf:
        return "Who ends best balanced cannot be told: at the end no broker tells its load."
    best = min(range(len(words)), key=lambda at: (round(deviation[at], 2), topics[at]))
    alike = [at for at in range(len(words)) if round(deviation[at], 2) == round(deviation[best], 2)]
    parts = [f"{_names(words, alike)} {'end' if len(alike) > 1 else 'ends'} best balanced: {_end(found, best)}"]
    working = [at for at in range(len(words)) if not lazy[at]]
    calm = min(working, key=lambda at: topics[at])
    if topics[calm] < topics[best]:
        parts.append(f"{_names(words, [calm])} disconnects fewer topics: {_end(found, calm)}")
    over = found.of("final_brokers_over_threshold")[best]
    if over:
        parts.append(f"even the best balanced one ends with {count(round(over), 'broker')} over the limit")
    if any(lazy):
        at = [place for place, is_lazy in enumerate(lazy) if is_lazy]
        verb = "shed" if len(at) > 1 else "sheds"
        parts.append(f"{_names(words, at)} {verb} nothing: that disturbs nobody, and balances nothing")
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


def _names(words: Sequence[str], places: Sequence[int]) -> str:
    named = [f"**{words[at]}**" for at in places[:_NAMED]]
    if len(places) > _NAMED:
        named[1:] = [f"{len(places) - 1} others"]
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


def _end(found: Comparison, at: int) -> str:
    peak, deviation, topics = (
        number(round(found.of(name)[at] or 0, 1))
        for name in ("final_peak_usage_percent", "final_std_percent", "topics_disconnected")
    )
    return f"highest usage {peak} %, deviation {deviation} points, {topics} topics disconnected"
