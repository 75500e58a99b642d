"""Whether what the advisor found is enough to change anything: one verdict, and what speaks against more.

Which of two outcomes is better, `planner.simulate.judge` says; this adds whether days and chance allow to rely on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from planner.advise.advice import Advice, Counted, Evidence
from planner.advise.objectives import SIDES

Kind: TypeAlias = Literal["nothing", "untrue", "keep", "recommended", "unproven"]

_CHANCE: Final = 0.05
_WORTH_PERCENT: Final = 1.0
_FEWEST_DAYS: Final = 6  # the least of which all better come by chance in fewer than 5 % of cases
_ALIKE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a comparison.

    Attributes:
        kind: `nothing` to compare, `untrue` usage in the history so that nothing is recommended, `keep` the current
            settings, another one `recommended`, or better by the rule but `unproven`.
        doubts: Why it is no more than that, one sentence each; none with `recommended`, and with `keep` only where
            other days choose otherwise.
    """

    kind: Kind
    doubts: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """What the chosen candidate is called; empty where none is chosen."""
        if self.kind == "untrue":
            return ""
        return "recommended" if self.kind in {"keep", "recommended"} else "best candidate"


def verdict_of(advice: Advice) -> Verdict:
    """Say what follows from a comparison.

    Another setting is recommended when the judge of outcomes does not find it worse than the current ones, or alike;
    when it is better in overload, or on one side by a percent of the average, and on more days than chance explains
    (sign test, 5 %); when it makes the other side no more worse than may be lost (unless a weight says what a side is
    worth, or overload is less); and when the choice on the first days holds on the rest. Where no usage is true,
    nothing is recommended.
    """
    number = len(advice.candidates)
    if number == 1:
        return Verdict("nothing", ("Only one setting was replayed.",))
    if _all_alike(advice):
        return Verdict("nothing", (f"All {number} settings have the same result in this history.",))
    if advice.doubt.everywhere:
        return Verdict("untrue", (advice.doubt.instead_of("settings"),))
    if advice.current == advice.chosen:
        return Verdict("keep", tuple(_other_days(advice)))
    doubts = tuple(_doubts(advice))
    return Verdict("unproven", doubts) if doubts else Verdict("recommended")


def _all_alike(advice: Advice) -> bool:
    first = advice.candidates[0]
    return all(
        one.more_overload == first.more_overload
        and all(abs(gap) <= _ALIKE for gap in _gaps_between(advice, first.name, one.name))
        for one in advice.candidates
    )


def _gaps_between(advice: Advice, one: str, other: str) -> tuple[float, float]:
    """Return how much better the other candidate is, in percent of the average of all: balance, disruption."""
    mine, theirs = advice.candidate(one), advice.candidate(other)
    return mine.balance - theirs.balance, mine.disruption - theirs.disruption


def _doubts(advice: Advice) -> Iterator[str]:
    if advice.evidence is None:
        yield "The current settings were not replayed, so the effect of a change is unknown."
        return
    judgement = advice.judgement
    less_overload = judgement is not None and judgement.overload == 1
    gaps = dict(zip(SIDES, _gaps_between(advice, advice.current, advice.chosen), strict=True))
    if judgement is not None and judgement.word in {"worse", "same"}:
        yield judgement.text
    elif not less_overload and not any(gap >= _WORTH_PERCENT for gap in gaps.values()):
        yield "It is better by less than 1 % of the average of all settings."
    else:
        gained: list[Counted] = ["overload"] if less_overload else [side for side in SIDES if gaps[side] > 0]
        yield from _chance(advice.evidence, gained)
    loss = advice.question.loss_percent
    if advice.question.weight is None and not less_overload:
        yield from (
            f"It makes {side} {-gaps[side]:.1f} % worse, which exceeds the accepted loss of {loss:g} %."
            for side in SIDES
            if -gaps[side] > loss
        )
    yield from _other_days(advice)


def _chance(evidence: Evidence, gained: Sequence[Counted]) -> Iterator[str]:
    """Say when what is gained could be chance."""
    days, wins = len(evidence.days), {one: evidence.wins(one) for one in gained}
    if any(evidence.chance(one) <= _CHANCE and wins[one][0] > wins[one][1] for one in gained):
        return
    days_won = ", ".join(f"{one} on {wins[one][0]} of {days}" for one in gained)
    more = f" Replay at least {_FEWEST_DAYS} days." if days < _FEWEST_DAYS else ""
    yield f"It is better in {days_won} cluster days, which could be chance.{more}"


def _other_days(advice: Advice) -> Iterator[str]:
    if advice.holdout is not None and not advice.holdout.holds:
        yield "The choice on the first days does not hold up on the remaining days."
