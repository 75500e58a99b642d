"""Each bound on its own, against every choice there is: together they hide what one of them misses."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import ScenarioError
from planner.cluster.names import FAILURE_DOMAINS_ENABLED
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.optimize.answer import best_plan
from planner.optimize.below import none_below
from planner.optimize.bound import SLACK, alone, at_rung, cover, covers, ladder, room
from planner.optimize.counted import counted
from planner.optimize.leaving import CLOSER, CLOSEST, QUICK, leaving
from planner.optimize.question import Model, Question, model_of
from planner.optimize.state import State
from tests.app.optimize.brute import every_reachable, small_cluster
from tests.app.simulate.traces import cluster

seeds = st.integers(0, 10_000)
shares = st.floats(0.3, 1.0)


def subsets(items: Int64Array) -> Iterator[Int64Array]:
    for size in range(len(items) + 1):
        for chosen in combinations(items.tolist(), size):
            yield np.array(chosen, dtype=np.int64)


def used(model: Model, start: State, broker: int, gone: Int64Array) -> float:
    """Return the usage of a broker without some of its bundles."""
    demand = model.usage.own[:, broker] + start.served[:, broker] - model.usage.bundle[:, gone].sum(axis=1)
    return max(float((demand * model.scale[:, broker]).max()), float(model.usage.fixed[broker]))


def mine(model: Model, broker: int) -> Int64Array:
    return np.array([at for at in np.flatnonzero(model.movable) if model.owner[at] == broker], dtype=np.int64)


def cheapest(model: Model, start: State, broker: int, under: float, weight: FloatArray) -> float:
    """Return the least cost of what must leave a broker, of every subset of its bundles."""
    fits = (gone for gone in subsets(mine(model, broker)) if used(model, start, broker, gone) <= under + 1e-9)
    return min((float(weight[gone].sum()) for gone in fits), default=np.inf)


@settings(max_examples=25, deadline=None)
@given(seeds, shares, st.integers(0, 3))
def test_what_must_leave_a_broker(seed: int, share: float, unit: int) -> None:
    model = model_of(small_cluster(seed, bundles=10), Question())
    start, weight = State(model), model.cost[unit]
    under = float(start.usage[model.counts].max()) * share
    total = 0.0
    for broker in np.flatnonzero(model.counts).tolist():
        least = cheapest(model, start, broker, under, weight)
        cost, leaving = cover(model, start, broker, under, weight)
        assert cost == pytest.approx(least, rel=1e-4, abs=1e-4)
        assert cost <= least
        if np.isfinite(cost):
            assert used(model, start, broker, leaving) <= under + 1e-6
            assert {int(model.owner[at]) for at in leaving} <= {broker}
        total += least
    found, leaving = covers(model, start, under, weight)
    assert found == pytest.approx(total, rel=1e-4, abs=1e-4)
    assert len(leaving) == len(set(leaving.tolist()))


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_the_ladder(seed: int) -> None:
    """With k moves some broker keeps more than its share; of one resource alone the ladder is exact."""
    model = model_of(small_cluster(seed, bundles=10), Question())
    start = State(model)
    rungs = ladder(model, start)
    assert (np.diff(rungs) <= 0).all()
    brokers = np.flatnonzero(model.counts).tolist()
    best = [np.full(len(mine(model, broker)) + 1, np.inf) for broker in brokers]
    for place, broker in enumerate(brokers):
        for gone in subsets(mine(model, broker)):
            best[place][len(gone)] = min(best[place][len(gone)], used(model, start, broker, gone))
    for moves in range(min(len(rungs), 4)):
        ways = (split for split in np.ndindex(*(min(moves, len(one) - 1) + 1 for one in best)) if sum(split) == moves)
        least = min((max(one[taken] for one, taken in zip(best, split, strict=True)) for split in ways), default=np.inf)
        assert at_rung(rungs, moves) <= least
        if len(model.scale) and np.allclose(model.scale[1:], 0):
            assert at_rung(rungs, moves) == pytest.approx(least)
    assert at_rung(rungs, len(rungs)) == 0.0
    if len(rungs):
        assert at_rung(rungs, -1) == at_rung(rungs, 0) == pytest.approx(start.usage[brokers].max(), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, grouped=st.booleans())
def test_a_single_bundle_and_room(*, seed: int, grouped: bool) -> None:
    """The least peak with one bundle on the broker that suits it best; nothing below what can be cut at will."""
    model = model_of(small_cluster(seed, bundles=8, grouped=grouped), Question())
    start = State(model)
    least, bundle, suits = alone(model)
    stays = [np.flatnonzero((model.owner == broker) & ~model.movable) for broker in range(len(start.usage))]
    for at in np.flatnonzero(model.movable).tolist():
        may = model.rules.static(int(model.snapshot.bundles.namespace[at])) & model.takes
        may[model.owner[at]] |= not model.forced[at]
        with_it = []
        for broker in np.flatnonzero(may & model.counts).tolist():
            kept = model.usage.bundle[:, [*stays[broker].tolist(), at]].sum(axis=1)
            demand = (model.usage.own[:, broker] + kept) * model.scale[:, broker]
            with_it.append((max(float(demand.max()), float(model.usage.fixed[broker])), broker))
        if with_it:
            assert min(with_it)[0] >= least - 1e-6 or at != bundle
            if at == bundle:
                assert min(with_it)[0] == pytest.approx(least, abs=1e-6)
                assert min(with_it)[1] == suits
            assert min(with_it)[0] <= least + 1e-6
    assert room(model, start) <= float(start.usage[model.counts].max()) + 1e-6
    assert room(model, start, under=0.0, weight=model.cost[0]) in {0.0, np.inf}


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.slow)])
def test_whole_bundles_that_leave(seeds: range) -> None:
    """No order of unloads gets below it, with or without groups; it often says more than what may be cut."""
    more = 0
    for seed in seeds:
        snapshot = small_cluster(seed, bundles=8, grouped=True)
        if seed % 2:
            places = {f"domain-{at}": snapshot.brokers.name[at::2] for at in range(2)}
            snapshot = replace(
                snapshot,
                policies=replace(snapshot.policies, failure_domains=places),
                settings=snapshot.settings.changed(**{FAILURE_DOMAINS_ENABLED: True}),
            )
        moves = 1 + seed % 3
        model = model_of(snapshot, Question(moves=moves))
        start = State(model)
        known = room(model, start)
        best = float(every_reachable(snapshot, moves)[1].min())
        found = leaving(model, start, low=known, high=start.peak())
        assert found.bound <= best + 1e-9, seed
        more += found.bound > known + 1e-3
    assert more > len(seeds) // 4


def test_presolve_takes_no_optimum_away() -> None:
    """HiGHS 1.15 with presolve finds 60.7 % here, and calls that the optimum."""
    snapshot = small_cluster(482, bundles=8)
    names = snapshot.brokers.name
    hosts = tuple(names[at].rpartition(":")[0].replace(".", r"\.") for at in (3, 0, 1))
    pool = IsolationPolicy(name="pool", namespaces=("acme/orders",), primary=hosts, secondary=(), min_limit=1)
    snapshot = replace(snapshot, policies=Policies(isolation=(pool,)))
    model = model_of(snapshot, Question(moves=3))
    start = State(model)
    best = float(every_reachable(snapshot, 3)[1].min())
    assert best == pytest.approx(0.5498, abs=1e-4)
    assert leaving(model, start, low=0.0, high=start.peak()).bound == pytest.approx(best, abs=1e-6)


def with_pool(seed: int) -> Snapshot:
    """Return a small cluster with a pool of primary and secondary brokers, two groups, and often failure domains."""
    random, snapshot = Random(seed), small_cluster(seed, bundles=8)  # noqa: S311 - no secret
    names, spaces = list(snapshot.brokers.name), list(snapshot.namespaces)
    hosts = random.sample([name.rpartition(":")[0].replace(".", r"\.") for name in names], len(names))
    size = random.randint(1, max(len(hosts) - 1, 1))
    pool = IsolationPolicy(
        name="pool",
        namespaces=tuple(space for space in spaces if random.random() < 0.6) or (spaces[0],),
        primary=tuple(hosts[:size]),
        secondary=tuple(hosts[size : size + random.randint(0, 2)]),
        min_limit=random.randint(1, size + 1),
    )
    groups = {space: f"group-{random.randint(0, 1)}" for space in spaces if random.random() < 0.7}
    places = {f"domain-{at}": tuple(names[at::2]) for at in range(2)} if random.random() < 0.5 else {}
    policies = Policies(isolation=(pool,), anti_affinity_group=groups, failure_domains=places)
    changed = snapshot.settings.changed(**{FAILURE_DOMAINS_ENABLED: bool(places)})
    return replace(snapshot, policies=policies, settings=changed)


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 600), marks=pytest.mark.slow)])
def test_no_bound_is_above_what_can_be_reached(seeds: range) -> None:
    """Isolation with secondary brokers, groups and domains together, and repairs of what is against its policy."""
    repaired = near = asked = proven = 0
    for seed in seeds:
        snapshot, moves = with_pool(seed), 1 + seed % 3
        question = Question(moves=moves, splits=0, rounds=1)
        model = model_of(snapshot, question)
        start = State(model)
        owners, peaks = every_reachable(snapshot, moves, model.movable)  # where not all can be repaired, nothing else
        done = (owners[:, model.forced] != model.owner[model.forced]).all(axis=1)
        if not done.any():
            continue
        best = float(peaks[done].min())
        repaired += bool(model.repairs.any())
        assert counted(model, 0.0, max(best, start.peak())) <= best, seed
        for depth in (QUICK, CLOSER, CLOSEST):
            found = leaving(model, start, low=0.0, high=max(best, start.peak()), depth=depth)
            assert found.bound <= best, (seed, depth)
        assert not none_below(model, start, best + 1e-9), seed
        proven += none_below(model, start, best * 0.99)
        if model.repairs_in_part:  # a plan has as many of them as it can, whatever that costs
            continue
        plan = best_plan(snapshot, question)
        assert plan.peak_bound <= best + 1e-9, seed
        near += plan.peak <= best * 1.01
        asked += 1
    assert repaired > len(seeds) // 10
    assert proven > len(seeds) // 2
    assert near > asked * 0.8 > len(seeds) * 0.5


def all_on_one(bundles: Sequence[float], brokers: int) -> Snapshot:
    """Return a cluster with bundles of given MiB/s on the first of some brokers, which are alike."""
    return cluster([0.9, *[0.0] * (brokers - 1)], {0: bundles})


@pytest.mark.parametrize("brokers", [2, 3, 4])
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 100), marks=pytest.mark.slow)])
def test_so_many_bundles_fit(seeds: range, brokers: int) -> None:
    """Never above the best of all placements; the best itself where all bundles are equal, with small ones or not."""
    for seed in seeds:
        random = Random(seed)  # noqa: S311 - no secret
        large = random.randint(brokers, 7)
        others = [random.uniform(0.001, 0.002) for _ in range(random.randint(0, 2))]
        spread = random.choice([0.0, 0.0, 0.1])
        sizes = [10 + random.uniform(0, spread) for _ in range(large)] + others
        model = model_of(all_on_one(sizes, brokers), Question())
        start = State(model)
        owners = np.array(list(np.ndindex(*[brokers] * len(sizes))))
        at = owners[..., np.newaxis] == np.arange(brokers)
        demand = np.einsum("rb,pbk->prk", model.usage.bundle, at) + model.usage.own
        best = float((demand * model.scale).max(axis=(1, 2)).min())
        found = counted(model, 0.0, start.peak())
        assert found <= best
        assert found >= best * (1 - 0.01 * bool(spread) - 0.001 * len(others)) - 2 * SLACK, seed


@pytest.mark.parametrize(("bundles", "brokers"), [(25, 4), (26, 8), (101, 10)])
def test_equal_bundles_that_cannot_be_shared_evenly_are_proven_at_once(
    bundles: int, brokers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ways to place them were looked through, for half a minute: one more bundle than an even part is the least."""
    asked: list[int] = []
    for name in ("answer.solve_whole", "answer.leaving", "far.leaving"):
        monkeypatch.setattr(f"planner.optimize.{name}", lambda *_, **__: asked.append(1))
    snapshot = all_on_one([10.0] * bundles, brokers)
    plan = best_plan(snapshot, Question())
    most = -(-bundles // brokers)
    model = model_of(snapshot, Question())
    assert plan.peak == pytest.approx(float((model.usage.bundle[:, 0] * model.scale[:, 1] * most).max()))
    assert plan.gap_percent == 0
    assert plan.limit.startswith("Bundles are whole: below ")
    assert plan.floor == pytest.approx(plan.peak, abs=1e-6)
    assert not asked, "no program has to be solved"


def test_no_cost_is_looked_for_where_whole_bundles_do_not_fit() -> None:
    snapshot = all_on_one([10.0] * 25, 4)
    least = best_plan(snapshot, Question()).peak * 100
    with pytest.raises(ScenarioError, match="brokers have room for fewer of them than there are"):
        best_plan(snapshot, Question(under_percent=least - 0.1))
    assert best_plan(snapshot, Question(under_percent=least + 0.1)).peak * 100 <= least + 0.1


def pool_and_best(seed: int) -> tuple[Model, State, float]:
    """Return a question about a cluster with a pool, its start, and the peak of the best plan by brute force."""
    snapshot, moves = with_pool(seed), 1 + seed % 3
    model = model_of(snapshot, Question(moves=moves))
    owners, peaks = every_reachable(snapshot, moves, model.movable)
    best = float(peaks[(owners[:, model.forced] != model.owner[model.forced]).all(axis=1)].min())
    return model, State(model), best


@pytest.mark.parametrize("seed", [162, 255, 339])
def test_a_broker_that_takes_none_keeps_others_from_taking_any(seed: int) -> None:
    """It has the fewest of a group for good, so that its domain has, or no other broker of the domain: proven."""
    model, start, best = pool_and_best(seed)
    assert leaving(model, start, low=0.0, high=start.peak()).bound == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", [12, 17, 23, 35, 52])
def test_a_bundle_that_arrives_as_a_whole_proves_the_best_plan(seed: int) -> None:
    """Cut into shares it would fit; no broker has room for all of it."""
    model, start, best = pool_and_best(seed)
    cut = leaving(model, start, low=0.0, high=start.peak(), depth=replace(CLOSEST, placed=0))
    assert cut.bound < best - 0.04
    assert leaving(model, start, low=0.0, high=start.peak(), depth=CLOSEST).bound == pytest.approx(best, abs=1e-6)


def test_who_gives_one_away_is_the_next_to_take_one() -> None:
    """No broker ends with fewer of a group than all others had when the last one took a bundle, but for one of them."""
    snapshot = with_pool(254)
    model = model_of(snapshot, Question(moves=3))
    start = State(model)
    best = float(every_reachable(snapshot, 3, model.movable)[1].min())
    assert 0.68 < leaving(model, start, low=0.0, high=start.peak()).bound <= best
