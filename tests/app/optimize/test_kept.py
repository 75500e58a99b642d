"""Bundles that the order of failure domains keeps, against every order of moves in small clusters."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from planner.cluster.arrays import BoolArray
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import FAILURE_DOMAINS_ENABLED
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.optimize.below import none_below
from planner.optimize.kept import kept_by_order
from planner.optimize.leaving import CLOSER, CLOSEST, QUICK, leaving
from planner.optimize.question import Model, Question, model_of
from planner.optimize.state import State
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.app.optimize.brute import every_reachable, peaks_of

STATES = 150_000


def cluster(random: Random, seed: int) -> Snapshot:
    """Return a small cluster, all of it one group in failure domains, most namespaces in a pool of brokers."""
    brokers = random.randint(3, 6)
    spec = ClusterSpec(
        brokers=brokers,
        bundles=random.randint(5, 9),
        namespaces=random.randint(2, 3),
        topics=40,
        msg_rate_per_s=20_000,
        topic_skew=0.5,
        ownership_skew=random.random(),
        load_manager=LoadManager.EXTENSIBLE,
        cluster="brute",
    )
    snapshot = generate(spec, seed)
    names, spaces = snapshot.brokers.name, snapshot.namespaces
    hosts = random.sample([name.rpartition(":")[0].replace(".", r"\.") for name in names], brokers)
    pool = IsolationPolicy(
        name="pool",
        namespaces=tuple(space for space in spaces if random.random() < 0.85) or (spaces[0],),
        primary=tuple(hosts[: random.randint(1, brokers - 1)]),
        secondary=(),
        min_limit=1,
    )
    places = random.randint(2, 3)
    policies = Policies(
        isolation=(pool,),
        anti_affinity_group=dict.fromkeys(spaces, "group"),
        failure_domains={f"domain-{at}": tuple(names[at::places]) for at in range(places)},
    )
    changed = snapshot.settings.changed(**{FAILURE_DOMAINS_ENABLED: True})
    return replace(snapshot, policies=policies, settings=changed)


def asked(seed: int) -> Model:
    """Return a question about such a cluster; some bundles must move."""
    random = Random(seed)  # noqa: S311 - no secret
    model = model_of(cluster(random, seed), Question(moves=random.randint(2, 6)))
    must = np.zeros(len(model.owner), dtype=np.bool_)
    must[random.sample(range(len(must)), random.randint(0, 2))] = True
    return replace(model, forced=must & model.movable)


def ever_moved(model: Model) -> BoolArray | None:
    """Say which bundles any order of moves moves that moves all that must, each once. Shape (bundles,).

    None where no order does.
    """
    start, rules = State(model), model.rules
    spaces = np.unique(start.space).tolist()
    may = {at: rules.static(at) & model.takes for at in spaces}
    edge: set[tuple[tuple[int, ...], frozenset[int]]] = {(tuple(model.owner.tolist()), frozenset())}
    every = {frozenset[int]()}
    for _ in range(int(model.budgets[0])):
        following = set()
        for owners, moved in edge:
            counts = np.zeros_like(start.counts)
            served = np.array(owners) >= 0
            np.add.at(counts, (start.space[served], np.array(owners)[served]), 1)
            now = {at: np.flatnonzero(may[at] & rules.dynamic(at, counts, start.topics)).tolist() for at in spaces}
            for bundle in np.flatnonzero(model.movable).tolist():
                for to in now[int(start.space[bundle])] if bundle not in moved else []:
                    if to != owners[bundle]:
                        following.add(((*owners[:bundle], to, *owners[bundle + 1 :]), moved | {bundle}))
        edge = following
        every |= {moved for _, moved in edge}
    must = frozenset(np.flatnonzero(model.forced).tolist())
    done = [moved for moved in every if must <= moved]
    ever: BoolArray = np.isin(np.arange(len(model.owner)), sorted(frozenset[int]().union(*done)))
    return ever if done else None


def best_of_orders(model: Model) -> float:
    """Return the lowest peak of all orders of moves that move all that must, each once; infinite where none does."""
    start, rules = State(model), model.rules
    spaces = np.unique(start.space).tolist()
    may = {at: rules.static(at) & model.takes for at in spaces}
    edge = {(tuple(model.owner.tolist()), frozenset[int]())}
    every, known = set(edge), dict[tuple[int, ...], dict[int, list[int]]]()
    for _ in range(int(model.budgets[0])):
        following = set()
        for owners, moved in edge:
            if owners not in known:
                counts = np.zeros_like(start.counts)
                served = np.array(owners) >= 0
                np.add.at(counts, (start.space[served], np.array(owners)[served]), 1)
                known[owners] = {
                    at: np.flatnonzero(may[at] & rules.dynamic(at, counts, start.topics)).tolist() for at in spaces
                }
            for bundle in np.flatnonzero(model.movable).tolist():
                for to in known[owners][int(start.space[bundle])] if bundle not in moved else []:
                    if to != owners[bundle]:
                        following.add(((*owners[:bundle], to, *owners[bundle + 1 :]), moved | {bundle}))
        edge = following
        every |= edge
    must = frozenset(np.flatnonzero(model.forced).tolist())
    done = [owners for owners, moved in every if must <= moved]
    return float(peaks_of(model.usage, np.array(done)).min()) if done else np.inf


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param((1077, 1343, 1413, 1618, 1687), id="a domain gives bundles to others"),
        pytest.param((2115,), id="HiGHS calls a worse solution the best"),
        range(20),
        pytest.param(range(20, 2_000), marks=pytest.mark.slow),
    ],
)
def test_no_bound_is_above_the_best_order_of_moves(seeds: Sequence[int]) -> None:
    """A broker with many bundles of a group can give them to other domains, and then takes one."""
    near = 0
    for seed in seeds:
        model = asked(seed)
        start, best = State(model), best_of_orders(model)
        if best == np.inf:
            near += 1
            continue
        bound = 0.0
        for depth in (QUICK, CLOSER, CLOSEST):
            bound = leaving(model, start, low=0.0, high=max(best, start.peak()), depth=depth).bound
            assert bound <= best, (seed, depth)
        assert not none_below(model, start, best + 1e-9), seed
        near += bound > best - 1e-6
    assert near > len(seeds) * 0.5


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 600), marks=pytest.mark.slow)])
def test_no_order_moves_what_is_kept(seeds: range) -> None:
    kept = never = 0
    for seed in seeds:
        model = asked(seed)
        ever, found = ever_moved(model), kept_by_order(model, State(model), STATES)
        if ever is None:
            continue
        assert not (ever & found).any(), seed
        kept += int(found.sum())
        never += int((model.movable & ~ever).sum())
    assert kept > never * 0.6 > 0


@pytest.mark.parametrize("seed", [324, 573, 717, 783, 793, 991, 1001])
def test_the_bound_is_the_best_plan(seed: int) -> None:
    """Without what is kept, the program let large bundles leave that no broker can ever take."""
    model = asked(seed)
    start = State(model)
    owners, peaks = every_reachable(model.snapshot, int(model.budgets[0]), model.movable)
    best = float(peaks[(owners[:, model.forced] != model.owner[model.forced]).all(axis=1)].min())
    without = leaving(model, start, low=0.0, high=start.peak(), depth=replace(CLOSEST, states=0))
    assert without.bound < best - 0.05
    assert leaving(model, start, low=0.0, high=start.peak(), depth=CLOSEST).bound == pytest.approx(best, abs=1e-6)


def test_too_many_states_keep_nothing() -> None:
    models = [model for model in map(asked, range(30)) if kept_by_order(model, State(model), STATES).any()]
    last = 0
    for model in models:
        start = State(model)
        enough = [kept_by_order(model, start, most).any() for most in range(0, 1_000, 10)]
        assert enough == sorted(enough)
        last += not enough[0]
    assert last


def test_none_is_kept_where_domains_do_not_count() -> None:
    for seed in range(20):
        model = asked(seed)
        snapshot = model.snapshot
        free = replace(snapshot, settings=snapshot.settings.changed(**{FAILURE_DOMAINS_ENABLED: False}))
        model = model_of(free, model.question)
        assert not kept_by_order(model, State(model), STATES).any()
