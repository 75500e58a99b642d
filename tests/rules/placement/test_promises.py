"""Filters that are told of one promise after the other answer as filters that are made after all of them."""

import pickle
from dataclasses import asdict, replace

import numpy as np
import pytest

from planner.cluster.errors import PulsarError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.placement.least_long_term_message_rate import Preallocated
from planner.pulsar.placement.modular import fresh_memory, least_loaded
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.pulsar.placement.selection import Selection
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

EVEN = {"loadBalancerDistributeBundlesEvenlyEnabled": True}


def orphaned(seed: int) -> Snapshot:
    """A cluster with policies, of whose bundles most have no owner; the leader knows the rates of some."""
    draw = np.random.default_rng(seed)
    brokers, isolated, grouped = (int(draw.choice(some)) for some in ((3, 7), (0, 1), (0, 2)))
    spec = ClusterSpec(
        brokers=brokers,
        bundles=48,
        topics=300,
        namespaces=3,
        isolated_namespaces=isolated,
        anti_affinity_namespaces=grouped,
    )
    cluster = generate(spec, seed)
    lost = np.array([draw.random() < 0.8 for _ in range(len(cluster.bundles))])
    known = np.array([draw.random() < 0.7 for _ in range(len(cluster.bundles))])
    table = cluster.bundles
    owner = np.where(lost, -1, table.owner).astype(table.owner.dtype)
    return replace(cluster, bundles=replace(table, owner=owner, has_data=table.has_data & known))


def answer(snapshot: Snapshot, found: Selection) -> tuple[object, ...]:
    """Return what was decided, and every reason for it."""
    names, bundles = snapshot.brokers.name, snapshot.bundle_names
    reasons = [(row.broker, row.text) for block in found.decision.reasons for row in block.rows(names, bundles)]
    return found.decision.acceptable, found.decision.selected, reasons


@pytest.mark.parametrize(
    "changed", [{}, EVEN, {"loadBalancerBrokerMaxTopics": 60}], ids=["plain", "even", "few topics"]
)
@pytest.mark.parametrize("seed", range(6))
def test_answers_are_those_of_filters_made_afterwards(seed: int, changed: dict[str, int | bool]) -> None:
    snapshot = orphaned(seed)
    config = Settings({**snapshot.settings.overrides, **changed})
    # A promise to a broker that left, one of a bundle that is reported elsewhere, and one of a bundle that went away.
    before = {snapshot.bundle_names[0]: "gone:8080", snapshot.bundle_names[1]: snapshot.brokers.name[0]}
    before["acme/none/0x00000000_0xffffffff"] = snapshot.brokers.name[1]
    told = anew = replace(fresh_memory(config), preallocated=before)
    filters = ModularFilters(snapshot, config, before)
    for name in np.random.default_rng(seed).permutation(snapshot.bundle_names).tolist():
        try:
            anew, expected = least_loaded(snapshot, name, anew, config, 1)
        except PulsarError as error:
            with pytest.raises(PulsarError, match=str(error)):
                least_loaded(snapshot, name, told, config, 1, filters=filters)
            continue
        told, found = least_loaded(snapshot, name, told, config, 1, filters=filters)
        assert answer(snapshot, found) == answer(snapshot, expected)
        assert told.preallocated == anew.preallocated
    made = ModularFilters(snapshot, config, anew.preallocated)
    assert filters.waiting == made.waiting
    assert list(filters.waiting.bundles) == list(made.waiting.bundles)
    for namespace in snapshot.namespaces:
        assert filters.bundle_counts(namespace).tolist() == made.bundle_counts(namespace).tolist()
    assert filters.waiting.sums(snapshot) == made.waiting.sums(snapshot)


def test_what_is_known_of_a_snapshot_stays_in_the_process() -> None:
    snapshot = orphaned(0)
    waiting = Preallocated({snapshot.brokers.name[0]: snapshot.bundle_names[:3]})
    sums = dict(waiting.sums(snapshot))
    copy = pickle.loads(pickle.dumps(waiting))  # noqa: S301 - our own
    assert copy == waiting
    assert asdict(waiting) == {"bundles": dict(waiting.bundles)}
    assert copy.sums(snapshot) == sums
