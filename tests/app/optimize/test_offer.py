"""What is offered of a best plan: repairs, what is worth it, what limits it, and what Pulsar leaves alone."""

from dataclasses import replace

import pytest

from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.simulate.breaches import breaches
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

SPEC = ClusterSpec(brokers=6, namespaces=4, bundles=48, topics=400, msg_rate_per_s=40_000)


def with_policy(snapshot: Snapshot, *primary: int) -> Snapshot:
    """Return a cluster whose first namespace has an isolation policy since after its bundles were assigned."""
    hosts = tuple(snapshot.brokers.name[at].rpartition(":")[0].replace(".", r"\.") for at in primary)
    policy = IsolationPolicy(
        name="since-later", namespaces=(snapshot.namespaces[0],), primary=hosts, secondary=(), min_limit=1
    )
    return replace(snapshot, policies=replace(snapshot.policies, isolation=(policy,)))


@pytest.fixture(scope="module")
def breached() -> Snapshot:
    return with_policy(generate(SPEC, 3), 0, 1)


def test_bundles_against_their_policy_are_moved_first(breached: Snapshot) -> None:
    wrong = len(breaches(breached))
    plan = best_plan(breached, Question(splits=0))
    assert wrong > 3
    assert len(plan.repairs) == wrong
    assert not len(breaches(plan.after()))
    few = best_plan(breached, Question(moves=3, splits=0))
    assert len(few.repairs) == len(few.moves) == 3
    assert len(breaches(few.after())) == wrong - 3
    assert all(move.why.startswith("repair: ") for move in few.moves)


def test_a_pinned_bundle_is_not_repaired(breached: Snapshot) -> None:
    kept = int(breaches(breached)[0])
    name, home = breached.bundle_names[kept], breached.brokers.name[int(breached.bundles.owner[kept])]
    plan = best_plan(breached, Question(splits=0, pins={name: home}))
    assert name not in {move.bundle for move in plan.moves}
    assert breaches(plan.after()).tolist() == [kept]
