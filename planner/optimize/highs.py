"""Linear and mixed-integer programs for HiGHS, put together from columns of numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import highspy
import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array

_TWICE_COLUMNS = 500
"""Columns up to which a program is solved twice."""


@dataclass(frozen=True, eq=False, slots=True)
class Solution:
    """What HiGHS found.

    Attributes:
        feasible: Whether there is a solution at all, as far as it knows.
        values: The best one found; empty when none was. Shape (columns,).
        objective: What it costs; infinite when there is none.
        bound: Proven to be at or below what any solution costs.
    """

    feasible: bool
    values: FloatArray
    objective: float
    bound: float


@dataclass(eq=False)
class Program:
    """Minimise a cost under constraints.

    Attributes:
        cost: Of each column.
        low: Its least value.
        high: Its greatest value.
        whole: Whether it is a whole number.
    """

    cost: list[FloatArray] = field(default_factory=list)
    low: list[FloatArray] = field(default_factory=list)
    high: list[FloatArray] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    columns: int = 0
    _rows: list[tuple[float, float]] = field(default_factory=list)
    _entries: list[tuple[Int64Array, Int64Array, FloatArray]] = field(default_factory=list)

    def add(
        self, count: int, *, cost: FloatArray | float = 0.0, low: float = 0.0, high: float = np.inf, whole: bool = False
    ) -> Int64Array:
        """Add columns; return their places. Shape (count,)."""
        self.cost.append(np.broadcast_to(np.asarray(cost, dtype=np.float64), (count,)))
        self.low.append(np.full(count, low))
        self.high.append(np.full(count, high))
        self.whole += [whole] * count
        self.columns += count
        return np.arange(self.columns - count, self.columns)

    def row(self, columns: Int64Array, values: FloatArray, low: float = -np.inf, high: float = np.inf) -> None:
        """Require that a weighted sum of columns lies between two values."""
        kept = values != 0
        at = np.full(int(kept.sum()), len(self._rows), dtype=np.int64)
        self._entries.append((at, columns[kept], values[kept]))
        self._rows.append((low, high))

    def solve(
        self,
        *,
        nodes: int = 0,
        gap: float = 1e-4,
        guess: bool = True,
        presolve: bool = False,
        enough: float = -np.inf,
        most: Mapping[int, float] | None = None,
        first: FloatArray | None = None,
    ) -> Solution:
        """Solve it on one thread: the same program has the same answer everywhere.

        A small program of whole numbers is solved twice, and the lower bound counts: HiGHS 1.15 now and then calls a
        worse solution the best, with presolve or without.

        Args:
            nodes: How many nodes of the search are visited at most where columns are whole numbers.
            gap: How near the bound a solution is good enough, relative to it.
            guess: Whether to look for solutions besides the bound.
            presolve: Whether to simplify it first: faster, but the bound is no proof.
            enough: Cost that is low enough to stop.
            most: Greatest values of some columns, in place of those given with them.
            first: A solution that is known. Shape (columns,).
        """
        found = self._solved(nodes, gap, enough, most, first, guess=guess, presolve=presolve)
        if presolve or not any(self.whole) or self.columns > _TWICE_COLUMNS:
            return found
        other = self._solved(nodes, gap, enough, most, first, guess=guess, presolve=True)
        best = found if len(found.values) else other
        return replace(best, feasible=found.feasible or other.feasible, bound=min(found.bound, other.bound))

    def _solved(
        self,
        nodes: int,
        gap: float,
        enough: float,
        most: Mapping[int, float] | None,
        first: FloatArray | None,
        *,
        guess: bool,
        presolve: bool,
    ) -> Solution:
        rows, columns, values = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        order = np.lexsort((columns, rows))
        problem = highspy.HighsLp()
        problem.num_col_, problem.num_row_ = self.columns, len(self._rows)
        problem.col_cost_ = np.concatenate(self.cost)
        problem.col_lower_, high = np.concatenate(self.low), np.concatenate(self.high)
        for column, limit in (most or {}).items():
            high[column] = limit
        problem.col_upper_ = high
        problem.row_lower_ = np.array([low for low, _ in self._rows])
        problem.row_upper_ = np.array([high for _, high in self._rows])
        problem.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        starts = np.searchsorted(rows[order], np.arange(len(self._rows) + 1))
        problem.a_matrix_.start_ = starts.astype(np.int32)
        problem.a_matrix_.index_ = columns[order].astype(np.int32)
        problem.a_matrix_.value_ = values[order]
        options: list[tuple[str, object]] = [
            ("threads", 1),
            ("random_seed", 0),
            ("mip_rel_gap", gap),
            ("mip_max_nodes", nodes or 1),
        ]
        if any(self.whole):
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            problem.integrality_ = [kinds[one] for one in self.whole]
            options.append(("objective_target", enough))
            options.append(
                ("presolve", "on" if presolve else "off")
            )  # 1.15 presolves optima of whole numbers away, now and then
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.silent()
        for name, value in options:
            solver.setOptionValue(name, value)
        if not guess:
            solver.setOptionValue("mip_heuristic_effort", 0.0)
        solver.passModel(problem)
        if first is not None:
            known = highspy.HighsSolution()
            known.col_value = first.tolist()
            solver.setSolution(known)
        solver.run()
        return self._solution(solver)

    def _solution(self, solver: Any) -> Solution:
        info, status = solver.getInfo(), solver.getModelStatus()
        never = {highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible}
        if status in never:
            return Solution(False, np.zeros(0), np.inf, np.inf)
        found = np.array(solver.getSolution().col_value)
        has_values = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible and len(found) > 0
        optimal = status == highspy.HighsModelStatus.kOptimal
        proven = info.mip_dual_bound if any(self.whole) else info.objective_function_value if optimal else -np.inf
        objective = float(info.objective_function_value) if has_values else np.inf
        return Solution(True, found if has_values else np.zeros(0), objective, float(proven))
