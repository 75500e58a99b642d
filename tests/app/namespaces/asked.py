"""Advice, and the best actions, that several tests look at from different sides: worked out once by a worker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.cluster.digest import snapshot_digest
from planner.cluster.snapshot import Snapshot
from planner.explain.doubt import Doubt, doubt_about
from planner.explain.outcome import Outcome
from planner.namespaces.advice import BundleAdvice, advisable, bundle_advice
from planner.namespaces.population import Population
from planner.remedy.trials import Trials
from planner.remedy.tried import Fix, fix
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, unchanged
from tests.app.namespaces.public_reports import REPORTS
from tests.app.namespaces.random_clusters import random_cluster

ONE_WORKER = "advice on namespaces"
"""Group of the tests that ask here about random clusters."""

_ADVICE: dict[tuple[str, ...], BundleAdvice] = {}


def advice_on(
    snapshot: Snapshot,
    namespace: str,
    scenario: Scenario | None = None,
    *,
    history: Sequence[Population] = (),
    doubt: Doubt | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    **more: Any,
) -> BundleAdvice:
    """Return the advice on a namespace, as `bundle_advice` does: what is asked again comes to the same."""
    if history:
        return bundle_advice(snapshot, namespace, scenario, history=history, doubt=doubt, cancelled=cancelled, **more)
    doubt = doubt or doubt_about(snapshot, scenario)
    asked = (snapshot_digest(snapshot), namespace, repr((scenario, doubt, sorted(more.items()))))
    if asked not in _ADVICE:
        found = bundle_advice(snapshot, namespace, scenario, doubt=doubt, cancelled=cancelled, **more)
        if cancelled():
            return found
        _ADVICE[asked] = found
    return _ADVICE[asked]


@cache
def of_report(report: str) -> BundleAdvice:
    """Return the advice on the namespace of a report."""
    namespace, made = REPORTS[report]
    return advice_on(made(), namespace)


@dataclass(frozen=True, eq=False)
class Asked:
    """A random cluster, what it comes to, and what is tried on it."""

    snapshot: Snapshot
    outcome: Outcome
    trials: Trials


@cache
def about(seed: int) -> Asked:
    """Return a random cluster with its outcome."""
    snapshot = random_cluster(seed)
    outcome = Outcome(simulate(snapshot, unchanged(snapshot.info.pulsar_version)))
    return Asked(snapshot, outcome, Trials(snapshot, outcome.trace.scenario, outcome))


@cache
def fixed(seed: int) -> Fix:
    """Return the best actions on a random cluster."""
    one = about(seed)
    return fix(one.trials, one.outcome)


@cache
def advised(seed: int) -> dict[str, BundleAdvice]:
    """Return the advice on each namespace of a random cluster."""
    snapshot = about(seed).snapshot
    return {name: advice_on(snapshot, name) for name in advisable(snapshot)}
