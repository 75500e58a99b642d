"""The best plan that was found, and what no plan can beat."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.arrays import BoolArray, FloatArray, frozen
from planner.cluster.digest import snapshot_digest
from planner.cluster.relocation import Relocation
from planner.cluster.snapshot import Snapshot
from planner.optimize.bound import SLACK
from planner.optimize.question import Question
from planner.optimize.search import Step
from planner.optimize.splits import Split
from planner.simulate.assumptions import Assumptions
from planner.simulate.load_model import with_usage
from planner.simulate.usage_model import UsageModel


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """An answer.

    Attributes:
        question: What was asked.
        snapshot: The cluster it is about.
        at_start: The same with the splits made; the same object where there are none.
        moves: Bundles with their brokers, in an order in which every rule holds; each bundle once.
        usage_before: Weighted usage of each broker (1.0 = 100 %). Shape (brokers,).
        usage_after: The same with the plan. Shape (brokers,).
        counts: Brokers whose usage counts: those that are there and are not drained. Shape (brokers,).
        spent: What the moves cost, as `COSTS`.
        peak: Highest usage after the plan.
        bound: What no plan can get below: in peak, or where the question names a usage in its cost.
        peak_bound: What no plan can get below in peak, whatever it costs or within the budgets.
        demand_after: CPU (percent of one core), bandwidth in and out (kbit/s) of each machine with the plan.
            Shape (3, brokers).
        limit: Why no plan gets below the bound, one sentence.
        frontier: Peak after each further move, from no move on; empty where the question is not about moves.
        least: What no plan can get below with so many moves, from 0 on; empty likewise.
        splits: Bundles that are cut before anything moves.
        uncounted: Moves that a drain asks for, which lower no usage that counts.
        floor: What no plan can get below with any number of moves.
        alone: Bundle that alone makes the bound, its position in `at_start`; -1 for none.
        without_it: What the bound would be without that bundle.
        notes: What to know.
        complete: Whether nobody stopped it.
        repairs: Bundles that move because their broker is against their isolation policy, full names.
    """

    question: Question
    snapshot: Snapshot
    at_start: Snapshot
    moves: tuple[Relocation, ...]
    usage_before: FloatArray
    usage_after: FloatArray
    counts: BoolArray
    spent: Mapping[str, float]
    peak: float
    bound: float
    peak_bound: float
    demand_after: FloatArray
    limit: str
    frontier: tuple[Step, ...] = ()
    least: tuple[float, ...] = ()
    splits: tuple[Split, ...] = ()
    uncounted: int = 0
    floor: float = 0.0
    alone: int = -1
    without_it: float = 0.0
    notes: tuple[str, ...] = ()
    complete: bool = True
    repairs: tuple[str, ...] = ()

    @property
    def gap_percent(self) -> float:
        """How far the plan is from the bound, percent of it; infinite where the bound is 0 and the plan is not."""
        if self.value <= self.bound + 2 * SLACK:
            return 0.0
        return 100 * (self.value - self.bound) / self.bound if self.bound > 0 else math.inf

    @property
    def value(self) -> float:
        """What is to be as low as it can be: the peak, or where the question names a usage the cost."""
        return self.peak if self.question.under_percent is None else self.spent[self.question.cost]

    @property
    def lower_bound(self) -> str:
        """The lower bound of the peak, with the budgets that it holds for: `lower bound with 18 moves: 38.2 %`."""
        return self.question.lower_bound(f"{self.peak_bound * 100:.1f} %")

    @property
    def demand_before(self) -> FloatArray:
        """The same as `demand_after` without the plan. Shape (3, brokers)."""
        usage = UsageModel.of(self.snapshot, self.snapshot.settings, Assumptions())
        return frozen(usage.own + usage.served())

    @property
    def deviation(self) -> float:
        """Standard deviation of the usage that counts after the plan."""
        return float(self.usage_after[self.counts].std())

    @property
    def deviation_before(self) -> float:
        """The same before it."""
        return float(self.usage_before[self.counts].std())

    def least_with(self, moves: int) -> float:
        """Return what no plan can get below with so many moves; the bound of the question where it is higher."""
        useful = moves - self.uncounted
        rung = self.least[useful] if 0 <= useful < len(self.least) else 0.0
        return max(rung - SLACK, self.floor)

    def digest(self) -> str:
        """Return a SHA-256 over the cluster and the moves; equal plans have equal digests on every machine."""
        moves = [[move.bundle, move.source, move.destination] for move in self.moves]
        content = [snapshot_digest(self.snapshot), [[one.bundle, one.boundary] for one in self.splits], moves]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()

    def after(self) -> Snapshot:
        """Return the cluster with the splits made, other owners, and what that asks of the machines."""
        start = self.at_start
        owner = start.bundles.owner.copy()
        for move in self.moves:
            owner[start.bundle_position[move.bundle]] = start.brokers.position[move.destination]
        brokers = with_usage(start.brokers, self.demand_after)
        return start.with_owner(owner).with_columns(brokers=brokers)


BOUNDS = ("bound", "peak_bound", "limit", "least", "floor", "question")
"""What of a plan is proven of its question, whatever its moves."""


def better_of(first: Plan, later: Plan) -> Plan:
    """Return a later answer to a question, or the first one where that is lower, with what was proven since.

    A longer search takes other turns, and may end above a short one.
    """
    if later.value <= first.value + SLACK or not first.complete:
        return later
    return replace(first, **{name: getattr(later, name) for name in BOUNDS})


def lowest(*curves: Sequence[Step]) -> tuple[Step, ...]:
    """Return the lowest known peak of each number of moves, as long as more of them bring more."""
    steps: list[Step] = []
    for step in sorted((step for curve in curves for step in curve), key=lambda one: (one.moves, one.peak)):
        if not steps or step.peak < steps[-1].peak:
            steps.append(step)
    return tuple(steps)
