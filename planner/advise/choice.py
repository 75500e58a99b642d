"""Which settings of a replay are worth having, and which one is chosen: overload first, then the Pareto front.

Settings with more overload than others, by the judge of outcomes, are out. Of the rest, those that no other one beats
in balance and disruption are the front, and one of them is chosen by its knee or by a weight.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.advise.advice import ALIKE
from planner.advise.pareto import knee_scores, pareto_front, weighted_scores
from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.simulate.judge import Result, judge, judge_overload, unbeaten


@dataclass(frozen=True, eq=False)
class Field:
    """Candidates over the same days, in the same order in every column.

    Attributes:
        names: Of the candidates.
        indices: Balance and disruption of each; small is good. Shape (candidates, 2).
        results: What the judge compares; none where the candidates are measured differently.
        order: How near each candidate is to the current settings: whether it is another one, number of changes.
    """

    names: tuple[str, ...]
    indices: FloatArray
    results: tuple[Result, ...]
    order: Mapping[str, tuple[int, int]]

    @cached_property
    def least_overloaded(self) -> BoolArray:
        """Which candidates no other one beats by overload. Shape (candidates,)."""
        if not self.results:
            return frozen(np.ones(len(self.names), dtype=np.bool_))
        keys = [(one.overloaded_broker_min, one.highest_percent, one.unserved) for one in self.results]
        distinct = dict(zip(keys, self.results, strict=True))  # many have none, and each is compared with each
        least = dict(zip(distinct, unbeaten(list(distinct.values()), judge_overload), strict=True))
        return frozen(np.array([least[key] for key in keys], dtype=np.bool_))

    @cached_property
    def front(self) -> BoolArray:
        """Which of the least overloaded ones no other of them beats in balance and disruption. Shape (candidates,)."""
        least = np.flatnonzero(self.least_overloaded)
        on_front: BoolArray = np.zeros(len(self.names), dtype=np.bool_)
        on_front[least] = pareto_front(self.indices[least])
        return frozen(on_front)

    @property
    def knee(self) -> str:
        """Name of the candidate at the knee of the front; empty where it has none: no end of a front is its knee."""
        members = np.flatnonzero(self.front)
        scores = knee_scores(self.indices[members])
        lowest = float(scores.min())
        # The ends lie at 1. A front of a single point lies at 0.
        return self._nearest(members, scores) if lowest < 1 - ALIKE else ""

    def choose(self, weight: float | None, current: str) -> str:
        """Return the name of the candidate that a rule chooses.

        Of members of the front that the rule finds alike, the current settings come first, then the fewest changes,
        then the least disruption, then the first in the order given. Where the front has no knee, nothing speaks for
        one of its members: the current settings stay when they are one; else a member that is better by the judge
        comes first, then the least disruption.

        Args:
            weight: Share of balance; None for the knee.
            current: Name of the candidate with the current settings; empty when there is none.
        """
        members = np.flatnonzero(self.front)
        if weight is not None:
            return self._nearest(members, weighted_scores(self.indices[members], weight))
        if knee := self.knee:
            return knee
        now = self.names.index(current) if current else -1
        if now in members:
            return current
        better = {at: now >= 0 and self.compared(now, at) == "better" for at in members.tolist()}
        ranked = sorted(better, key=lambda at: (not better[at], self.indices[at, 1], *self.order[self.names[at]], at))
        return self.names[ranked[0]]

    def compared(self, before: int, after: int) -> str:
        """Return what the judge says of one candidate against another one; empty where they cannot be compared."""
        return judge(self.results[before], self.results[after]).word if self.results else ""

    def _nearest(self, members: Int64Array, scores: FloatArray) -> str:
        lowest = float(scores.min())
        alike = [at for at, score in zip(members.tolist(), scores, strict=True) if score <= lowest + ALIKE]
        nearest: int = min(alike, key=lambda at: (*self.order[self.names[at]], float(self.indices[at, 1]), at))
        return self.names[nearest]
