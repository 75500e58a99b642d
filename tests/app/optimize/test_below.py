"""All bundles as a whole: moves that bring every broker below a usage, with an order for nearly all."""

from dataclasses import replace

import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.optimize import below
from planner.optimize.below import moves_below
from planner.optimize.placement import carry_out
from planner.optimize.question import Question, model_of
from planner.optimize.state import State
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.app.optimize.brute import FREE, refused
from tests.app.optimize.test_together import cluster


def with_primaries(seed: int) -> Snapshot:
    """Return a cluster in which most namespaces of groups have one primary broker, and all others as secondary ones."""
    spec = ClusterSpec(
        brokers=16,
        bundles=100,
        namespaces=20,
        topics=2_000,
        load_manager=LoadManager.EXTENSIBLE,
        msg_rate_per_s=80_000,
        topic_skew=0.8,
        ownership_skew=0.6,
        heterogeneity=0.6,
        joined_brokers=1,
        isolated_namespaces=16,
        anti_affinity_namespaces=16,
        cluster="primaries",
    )
    return generate(spec, seed)


@pytest.mark.parametrize("domains", [False, True])
def test_moves_that_every_filter_allows(*, domains: bool) -> None:
    snapshot = cluster(LoadManager.EXTENSIBLE, domains=domains)
    model = model_of(snapshot, Question(moves=40))
    state = State(model)
    usage = state.peak() * 0.6
    wanted = moves_below(model, State(model), usage)
    assert 0 < len(wanted) <= 40
    left = carry_out(state, wanted)
    assert 3 * len(left) <= len(wanted)
    names, brokers = snapshot.bundle_names, snapshot.brokers.name
    moves = [(names[bundle], brokers[to]) for bundle, to in state.moves()]
    assert not refused(snapshot, Settings({**snapshot.settings.overrides, **FREE}), moves)
    if not left:
        assert state.peak() <= usage + 1e-6


def without_order(seeds: range) -> int:
    """Return how many moves of all plans below a usage have no order."""
    left = 0
    for seed in seeds:
        state = State(model_of(with_primaries(seed), Question(moves=30)))
        left += len(carry_out(state, moves_below(state.model, State(state.model), state.peak() * 0.6)))
    return left


def test_a_primary_broker_takes_bundles_before_secondary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """All moves have an order then; without this rule several have none."""
    assert without_order(range(6)) == 0
    monkeypatch.setattr(below, "_primary_first", lambda *_: None)
    assert without_order(range(6)) > 0


def test_nothing_is_asked_of_a_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(cluster(LoadManager.EXTENSIBLE, domains=False), Question(moves=40))
    start = State(model)
    assert moves_below(model, start, start.peak() * 0.6)
    monkeypatch.setattr(below, "_MOST_CHOICES", 100)
    assert moves_below(model, start, start.peak() * 0.6) == []


def test_nothing_is_asked_where_groups_count_namespaces() -> None:
    snapshot = cluster(LoadManager.MODULAR, domains=False)
    free = replace(snapshot, policies=replace(snapshot.policies, anti_affinity_group={}))
    for asked, some in ((snapshot, False), (free, True)):
        start = State(model_of(asked, Question(moves=40)))
        assert bool(moves_below(start.model, start, start.peak() * 0.6)) is some
