"""Places many bundles anew at once: a mixed-integer program of whole bundles around the plan that was found.

What has moved may go anywhere else, go home, or make way for others; large bundles of full brokers may move instead.
What has no order is asked again without it.
"""

from collections.abc import Callable

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.optimize.highs import Solution
from planner.optimize.placement import Placement, carry_out, forced_stay
from planner.optimize.state import EPSILON, State

_MOST_CHOICES = 9_000
"""Bundles x brokers of a program at most."""
_LARGEST = (30, 15, 8)
"""Bundles of a full broker that may move instead: as many as the choices allow."""
_SMALLEST_PART = 5
"""Small bundles of a group that may move from any broker, so that a level rises: a fifth of the large ones."""
_NODES = 40
_LEVELS_TRIED = 2
_GAP = 1e-3
_ANY = 1e9
"""Cost of a program at or below which its first solution is enough: more than any."""
_RETRIES = 3
"""Times that a program is asked again without moves that had no order."""


def place_together(
    state: State,
    finish: Callable[[], None],
    should_stop: Callable[[], bool],
    *,
    goal: float,
    rounds: int,
) -> None:
    """Lower the peak of a plan by placing many of its bundles anew at once, as long as that helps.

    Args:
        state: The plan; is changed.
        finish: Improves `state` further, after each program.
        should_stop: Says whether to stop.
        goal: Peak that is low enough.
        rounds: Programs that help at most.
    """
    for _ in range(rounds):
        before, peak = state.moves(), state.peak()
        refused: set[tuple[int, int]] = set()
        for _ in range(_RETRIES):
            if peak <= goal or should_stop():
                return
            state.restore(before)
            program = _Together(state, goal, refused)
            wanted = program.solve(peak)
            if wanted is None:
                break
            left = carry_out(state, wanted)
            if not forced_stay(state):
                finish()
                if state.peak() < peak - EPSILON and (state.spent <= state.model.budgets + EPSILON).all():
                    break
            if not left:
                state.restore(before)
                break
            refused |= left
        if state.peak() >= peak - EPSILON or forced_stay(state):
            state.restore(before)
            return


class _Together(Placement):
    """The program of one round.

    Args:
        state: The plan so far.
        goal: Peak that is low enough.
        refused: Moves that had no order.
    """

    def __init__(self, state: State, goal: float, refused: set[tuple[int, int]]) -> None:
        self.goal, self.start = goal, State(state.model)
        for many in _LARGEST:
            free = self._around(state, many)
            may = self.where(state, free, refused)
            if may.sum() <= _MOST_CHOICES:
                break
        alive = np.flatnonzero(state.model.usage.alive)
        super().__init__(state, free, may, alive, above=0.0, apart=False)
        self.peak = int(self.over[0])
        self.lowest = max([goal, *self.model.usage.fixed[self.model.counts].tolist()])

    def _around(self, state: State, many: int) -> Int64Array:
        """Return what has moved, so many of the largest bundles of full brokers, and small ones of groups."""
        model = state.model
        free = np.zeros(len(model.owner), dtype=np.bool_)
        free[[bundle for bundle in state.order if bundle not in model.pinned]] = True
        size = (model.usage.bundle * model.scale[:, np.maximum(model.owner, 0)]).max(axis=0)
        may = model.movable & ~free & (model.owner >= 0)
        for broker in np.flatnonzero(self.start.usage > 0).tolist():
            mine = np.flatnonzero(may & (model.owner == broker))
            mine = mine[np.argsort(-size[mine], kind="stable")]
            if self.start.usage[broker] > self.goal and model.counts[broker]:
                free[mine[:many]] = True
            if not model.rules.counts_namespaces:
                for members in model.rules.members.values():
                    free[mine[np.isin(state.space[mine], members)][-(many // _SMALLEST_PART) :]] = True
        found: Int64Array = np.flatnonzero(free)
        return found

    def solve(self, peak: float) -> list[tuple[int, int]] | None:
        """Return all moves of a better plan, None where the program knows none.

        It is asked for any plan at or below a level, then for one half as low, and last for the lowest peak.
        """
        level = self.lowest
        if len(self.choice.column) > _MOST_CHOICES:
            return None
        for _ in range(_LEVELS_TRIED):
            found = self.program.solve(nodes=_NODES, presolve=True, enough=_ANY, most={self.peak: level})
            if len(found.values):
                break
            level = (level + peak) / 2
        if not len(found.values):
            found = self._lowest_peak(peak)
            if not len(found.values) or found.objective >= peak - EPSILON:
                return None
        return self.moves(found.values)

    def _lowest_peak(self, peak: float) -> Solution:
        """Ask for the lowest peak, from the plan so far."""
        program = self.program
        program.cost = [np.append(1.0, np.zeros(program.columns - 1))]
        program.low[0][:] = self.lowest
        first = self.as_it_is({self.peak: peak})
        return program.solve(nodes=_NODES, gap=_GAP, presolve=True, enough=self.goal, first=first)
