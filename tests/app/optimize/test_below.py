"""All bundles as a whole: moves that bring every broker below a usage, with an order for nearly all."""

from dataclasses import replace

import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.optimize import below
from planner.optimize.below import ways_below
from planner.optimize.placement import carry_out
from planner.optimize.question import Model, Question, model_of
from planner.optimize.spare import Spare
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


def first_below(model: Model, usage: float) -> list[tuple[int, int]]:
    """Return the first moves that are said to bring every broker below a usage; none where none are."""
    return next(ways_below(model, State(model), usage, set()), [])


@pytest.mark.parametrize("domains", [False, True])
def test_moves_that_every_filter_allows(*, domains: bool) -> None:
    snapshot = cluster(LoadManager.EXTENSIBLE, domains=domains)
    model = model_of(snapshot, Question(moves=40))
    state = State(model)
    usage = state.peak() * 0.6
    wanted = first_below(model, usage)
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
        left += len(carry_out(state, first_below(state.model, state.peak() * 0.6)))
    return left


def test_a_primary_broker_takes_bundles_before_secondary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """All moves have an order then; without this rule several have none."""
    assert without_order(range(6)) == 0
    monkeypatch.setattr(below, "_primary_first", lambda *_: None)
    assert without_order(range(6)) > 0


def test_nothing_is_asked_of_a_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(cluster(LoadManager.EXTENSIBLE, domains=False), Question(moves=40))
    usage = State(model).peak() * 0.6
    assert first_below(model, usage)
    monkeypatch.setattr(below, "_MOST_CHOICES", 100)
    monkeypatch.setattr(below, "_MOST_EASY", 200)
    assert first_below(model, usage) == []


def test_a_larger_cluster_is_asked_where_moves_are_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not asked at all. Some moves are kept back to make up for those without an order."""
    model = model_of(cluster(LoadManager.EXTENSIBLE, domains=True), Question(moves=40))
    usage = State(model).peak() * 0.6
    spare = Spare(model, State(model), usage).moves
    monkeypatch.setattr(below, "_MOST_CHOICES", 100)
    monkeypatch.setattr(below, "_SPARE_PART", spare / 40)
    monkeypatch.setattr(below, "_KEPT_BACK", 0.1)
    assert 0 < len(first_below(model, usage)) <= 36
    monkeypatch.setattr(below, "_SPARE_PART", (spare + 1) / 40)
    assert first_below(model, usage) == []


def test_it_is_asked_again_without_moves_that_found_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(cluster(LoadManager.EXTENSIBLE, domains=True), Question(moves=40))
    monkeypatch.setattr(below, "_MOST_CHOICES", 100)
    monkeypatch.setattr(below, "_SPARE_PART", 0.0)
    start, known, asked = State(model), set[tuple[int, int]](), 0
    for moves in ways_below(model, start, start.peak() * 0.6, known):
        assert not known.intersection(moves)
        bundle, to = next(move for move in moves if int(start.space[move[0]]) in model.rules.group)
        known.add((bundle, to))
        asked += 1
    assert asked > 1


def test_a_small_cluster_is_asked_once() -> None:
    model = model_of(cluster(LoadManager.EXTENSIBLE, domains=True), Question(moves=40))
    start, known = State(model), set[tuple[int, int]]()
    for asked, moves in enumerate(ways_below(model, start, start.peak() * 0.6, known)):
        assert not asked
        known.update(moves[:1])


def test_nothing_is_asked_where_groups_count_namespaces() -> None:
    snapshot = cluster(LoadManager.MODULAR, domains=False)
    free = replace(snapshot, policies=replace(snapshot.policies, anti_affinity_group={}))
    for asked, some in ((snapshot, False), (free, True)):
        start = State(model_of(asked, Question(moves=40)))
        assert bool(first_below(start.model, start.peak() * 0.6)) is some
