"""Whether what the advisor found is enough to change anything: one verdict, and what speaks against more."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from planner.advise.advice import Advice
from planner.advise.objectives import SIDES

Kind: TypeAlias = Literal["nothing", "keep", "recommended", "unproven"]

_CHANCE: Final = 0.05
_WORTH_PERCENT: Final = 1.0
_FEWEST_DAYS: Final = 6  # the least of which all better come by chance in fewer than 5 % of cases
_ALIKE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a comparison.

    Attributes:
        kind: `nothing` to compare, `keep` the current settings, another one `recommended`, or better by the rule but
            `unproven`.
        doubts: Why it is no more than that, one sentence each; none with `keep` and `recommended`.
    """

    kind: Kind
    doubts: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """What the chosen candidate is called."""
        return "recommended" if self.kind in {"keep", "recommended"} else "best candidate"


def judge(advice: Advice) -> Verdict:
    """Judge a comparison.

    Another setting is recommended when it is better than the current ones on one side by a percent of the average and
    on more days than chance explains (sign test, 5 %), makes the other side no more worse than may be lost (unless a
    weight says what a side is worth), and, chosen on the first days alone, would have held on the rest.
    """
    number = len(advice.candidates)
    if number == 1:
        return Verdict("nothing", ("Only one setting was replayed.",))
    first = advice.candidates[0]
    if all(abs(gap) <= _ALIKE for one in advice.candidates for gap in _gaps_between(advice, first.name, one.name)):
        return Verdict("nothing", (f"All {number} settings have the same result in this history.",))
    if advice.current == advice.chosen:
        return Verdict("keep")
    doubts = tuple(_doubts(advice))
    return Verdict("unproven", doubts) if doubts else Verdict("recommended")


def _gaps_between(advice: Advice, one: str, other: str) -> tuple[float, float]:
    """Return how much better the other candidate is, in percent of the average of all: balance, disruption."""
    mine, theirs = advice.candidate(one), advice.candidate(other)
    return mine.balance - theirs.balance, mine.disruption - theirs.disruption


def _doubts(advice: Advice) -> Iterator[str]:
    if advice.evidence is None:
        yield "The current settings were not replayed, so the effect of a change is unknown."
        return
    gaps = dict(zip(SIDES, _gaps_between(advice, advice.current, advice.chosen), strict=True))
    wins = {side: advice.evidence.wins(side) for side in SIDES}
    sure = {side: advice.evidence.chance(side) <= _CHANCE for side in SIDES}
    gained = [side for side in SIDES if gaps[side] > 0]
    if not any(gaps[side] >= _WORTH_PERCENT for side in gained):
        yield "It is better by less than 1 % of the average of all settings."
    elif not any(sure[side] and wins[side][0] > wins[side][1] for side in gained):
        days = len(advice.evidence.days)
        days_won = ", ".join(f"{side} on {wins[side][0]} of {days}" for side in gained)
        more = f" Replay at least {_FEWEST_DAYS} days." if days < _FEWEST_DAYS else ""
        yield f"It is better in {days_won} cluster days, which could be chance.{more}"
    loss = advice.question.loss_percent
    if advice.question.weight is None:
        yield from (
            f"It makes {side} {-gaps[side]:.1f} % worse, which exceeds the accepted loss of {loss:g} %."
            for side in SIDES
            if -gaps[side] > loss
        )
    if advice.holdout is not None and not advice.holdout.holds:
        yield "The choice on the first days does not hold up on the remaining days."
