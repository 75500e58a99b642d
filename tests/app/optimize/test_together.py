"""Many bundles placed anew at once: a lower peak, in an order that the filters of the load manager allow."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import FAILURE_DOMAINS_ENABLED
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.optimize.placement import ordered
from planner.optimize.question import Question, model_of
from planner.optimize.search import lower_peak, order_moves, place_forced
from planner.optimize.state import State
from planner.optimize.together import place_together
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.app.optimize.brute import FREE, refused

MOVES = 20


def cluster(manager: LoadManager, *, domains: bool) -> Snapshot:
    spec = ClusterSpec(
        brokers=8,
        bundles=160,
        namespaces=10,
        topics=2_000,
        load_manager=manager,
        msg_rate_per_s=80_000,
        topic_skew=0.8,
        ownership_skew=0.6,
        heterogeneity=0.6,
        joined_brokers=1,
        anti_affinity_namespaces=6,
        cluster="together",
    )
    snapshot = generate(spec, 8)
    places = {f"domain-{at}": snapshot.brokers.name[at::2] for at in range(2)} if domains else {}
    return replace(
        snapshot,
        policies=replace(snapshot.policies, failure_domains=places),
        settings=snapshot.settings.changed(**{FAILURE_DOMAINS_ENABLED: domains}),
    )


@pytest.mark.parametrize("domains", [False, True])
@pytest.mark.parametrize("manager", LoadManager)
def test_a_lower_peak_that_every_filter_allows(manager: LoadManager, *, domains: bool) -> None:
    snapshot = cluster(manager, domains=domains)
    state = State(model_of(snapshot, Question(moves=MOVES)))
    caps = np.full(len(state.usage), np.inf)
    place_forced(state, lambda: False)
    lower_peak(state, caps, lambda: False)
    order_moves(state, [])
    before = state.peak()
    place_together(state, lambda: None, lambda: False, goal=0.0, rounds=2)
    assert state.peak() < before
    assert len(state.order) <= MOVES
    names, brokers = snapshot.bundle_names, snapshot.brokers.name
    moves = [(names[bundle], brokers[to]) for bundle, to in state.moves()]
    assert not refused(snapshot, Settings({**snapshot.settings.overrides, **FREE}), moves)


def test_an_order_is_found_for_moves_in_any_order() -> None:
    """What has the fewest takes first, whatever the order that moves are given in."""
    model = model_of(cluster(LoadManager.EXTENSIBLE, domains=False), Question(moves=MOVES))
    state = State(model)
    lower_peak(state, np.full(len(state.usage), np.inf), lambda: False)
    order_moves(state, [])
    moves = state.moves()
    assert any(model.rules.changes(int(state.space[bundle])) for bundle, _ in moves)
    assert {*ordered(model, moves[::-1])} == {*moves}
