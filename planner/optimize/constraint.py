"""Which constraint makes the lower bound, and what the peak could be without it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planner.cluster.names import SHEDDING_EXCLUDED_NAMESPACES
from planner.cluster.snapshot import Snapshot
from planner.optimize.bound import alone, at_rung, ladder, room
from planner.optimize.counted import counted
from planner.optimize.leaving import MOST_QUICKLY, leaving
from planner.optimize.plan import Plan
from planner.optimize.question import model_of
from planner.optimize.state import State
from planner.simulate.edits.edit import some_of

LEAST_POINTS = 1.0
"""Points by which the bound falls without a constraint, for it to be named."""
_MOST_ASKED = 12
"""Policies that are asked one by one."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What keeps every plan from a lower peak.

    Attributes:
        kind: What it is.
        name: Its name; empty for a budget.
        without_percent: The lower bound without it, in percent.
    """

    kind: Literal["isolation policy", "anti-affinity group", "excluded namespace", "bundle", "budget"]
    name: str
    without_percent: float

    @property
    def sentence(self) -> str:
        """What there is to know, in a sentence."""
        without = f"without it, the lower bound is {self.without_percent:.1f} %"
        which = self.kind if self.kind == "budget" else f"{self.kind} “{self.name}”"
        return f"The {which} sets the lower bound: {without}."


def constraint_of(plan: Plan) -> Constraint | None:
    """Return the constraint without which the bound of a plan is lowest; None where none makes a point.

    Isolation policies are asked one by one, groups and excluded namespaces all at once, then one bundle alone, then the
    budget.
    """
    least = plan.peak_bound - LEAST_POINTS / 100
    if plan.question.under_percent is not None or least <= 0:
        return None
    named = [*_policies(plan), *_groups(plan), *_excluded(plan)]
    if plan.alone >= 0:
        named.append(Constraint("bundle", plan.at_start.bundle_names[plan.alone], plan.without_it * 100))
    found = min(named, key=lambda one: one.without_percent, default=None)
    if found is not None and found.without_percent <= least * 100:
        return found
    if plan.floor <= least and np.isfinite(plan.question.budgets).any():
        return Constraint("budget", "", plan.floor * 100)
    return None


def _policies(plan: Plan) -> Iterator[Constraint]:
    """Yield the isolation policies without which the bound that knows no groups is a point lower."""
    policies = plan.at_start.policies
    if not policies.isolation:
        return
    known = _ungrouped(plan.at_start, plan)
    for at, policy in enumerate(policies.isolation[:_MOST_ASKED]):
        others = replace(policies, isolation=policies.isolation[:at] + policies.isolation[at + 1 :])
        without = _ungrouped(replace(plan.at_start, policies=others), plan)
        if without <= known - LEAST_POINTS / 100:
            yield Constraint("isolation policy", policy.name, without * 100)


def _groups(plan: Plan) -> Iterator[Constraint]:
    """Yield the anti-affinity groups together, where they raise the bound."""
    policies = plan.at_start.policies
    names = sorted(set(policies.anti_affinity_group.values()))
    if not names or _ungrouped(plan.at_start, plan) > plan.peak_bound - LEAST_POINTS / 100:
        return
    model = model_of(replace(plan.at_start, policies=replace(policies, anti_affinity_group={})), plan.question)
    if int(model.movable.sum()) <= MOST_QUICKLY:
        without = leaving(model, State(model), low=0.0, high=plan.peak).bound
        yield Constraint("anti-affinity group", some_of(names), without * 100)


def _excluded(plan: Plan) -> Iterator[Constraint]:
    """Yield the namespaces that are excluded from shedding, together, where they raise the bound without groups."""
    settings, known = plan.at_start.settings, plan.at_start.namespaces
    names = [name for name in settings.names(SHEDDING_EXCLUDED_NAMESPACES) if name in known]
    if not names:
        return
    without = _ungrouped(replace(plan.at_start, settings=settings.changed(**{SHEDDING_EXCLUDED_NAMESPACES: ()})), plan)
    if without <= _ungrouped(plan.at_start, plan) - LEAST_POINTS / 100:
        yield Constraint("excluded namespace", some_of(names), without * 100)


def _ungrouped(snapshot: Snapshot, plan: Plan) -> float:
    """Return what no plan for a cluster gets below with the budgets of a plan, anti-affinity groups left out."""
    model = model_of(snapshot, plan.question)
    start = State(model)
    fit = counted(model, 0.0, start.peak())
    return max(alone(model)[0], fit, room(model, start), at_rung(ladder(model, start), float(model.budgets[0])))
