"""Advice, and the best actions, that several tests look at from different sides: worked out once by a worker."""

from dataclasses import dataclass
from functools import cache

from planner.cluster.snapshot import Snapshot
from planner.explain.outcome import Outcome
from planner.namespaces.advice import BundleAdvice, advisable, bundle_advice
from planner.remedy.trials import Trials
from planner.remedy.tried import Fix, fix
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.namespaces.public_reports import REPORTS
from tests.app.namespaces.random_clusters import random_cluster

ONE_WORKER = "advice on namespaces"
"""Group of the tests that ask here about random clusters."""


@cache
def of_report(report: str) -> BundleAdvice:
    """Return the advice on the namespace of a report."""
    namespace, made = REPORTS[report]
    return bundle_advice(made(), namespace)


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
    return {name: bundle_advice(snapshot, name) for name in advisable(snapshot)}
