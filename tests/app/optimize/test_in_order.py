"""What is known of all orders in which the bundles of a group can move, against every order in small clusters."""

from dataclasses import replace

import numpy as np
import pytest

from planner.optimize import below
from planner.optimize.kept import orders_of_groups
from planner.optimize.leaving import CLOSEST, leaving
from planner.optimize.placement import carry_out
from planner.optimize.question import Model
from planner.optimize.state import State
from tests.app.optimize.test_kept import STATES, asked, best_of_orders


def ways_of(model: Model) -> set[tuple[int, ...]]:
    """Return how many bundles move in all orders that move all that must, each once.

    First how many leave each domain, then how many come there, of these with a blocking broker in turn, and last how
    many move from each domain to each.
    """
    start, rules, members = State(model), model.rules, next(iter(model.rules.members.values()))
    candidates = rules.before_group(int(members[0]))
    may = {at: rules.static(at) & model.takes for at in members.tolist()}
    never = candidates & ~np.any([*may.values()], axis=0)
    here = start.counts[members].sum(axis=0)
    blocks = never & (here == here[never].min(initial=len(model.owner)))
    domain = rules.domains_of(candidates)
    width = int(domain.max()) + 1
    edge = {(tuple(model.owner.tolist()), frozenset[int](), (0,) * (3 * width + width * width))}
    every = set(edge)
    for _ in range(int(model.budgets[0])):
        following = set()
        for owners, moved, way in edge:
            counts = np.zeros_like(start.counts)
            np.add.at(counts, (start.space, np.array(owners)), 1)
            sums = np.bincount(domain, counts[members].sum(axis=0), minlength=width)
            blocked = bool((blocks & (sums[domain] == sums.min())).any())
            now = {at: np.flatnonzero(may[at] & rules.dynamic(at, counts, start.topics)).tolist() for at in may}
            for bundle in np.flatnonzero(model.movable).tolist():
                for to in now[int(start.space[bundle])] if bundle not in moved else []:
                    if to != owners[bundle]:
                        after = list(way)
                        after[domain[owners[bundle]]] += 1
                        after[width + domain[to]] += 1
                        after[2 * width + domain[to]] += blocked
                        after[3 * width + width * domain[owners[bundle]] + domain[to]] += 1
                        following.add(((*owners[:bundle], to, *owners[bundle + 1 :]), moved | {bundle}, tuple(after)))
        edge = following
        every |= edge
    must = frozenset(np.flatnonzero(model.forced).tolist())
    return {way for _, moved, way in every if must <= moved}


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 600), marks=pytest.mark.slow)])
def test_no_order_moves_more_than_is_known(seeds: range) -> None:
    """Domains lose and take only so many bundles together as is known of all orders."""
    known = possible = 0
    for seed in seeds:
        model = asked(seed)
        done = ways_of(model)
        for order in orders_of_groups(model, State(model), STATES) if done else []:
            width = order.domains
            assert order.moved.shape[1] == 3 * width + 1 + (width + 1) * width
            # every broker is a candidate: none moves from another one
            ways = {(*way[:width], 0, *way[width:], *[0] * width) for way in done}
            assert ways <= {tuple(way) for way in order.moved.tolist()}, seed
            for factors, most in order.limits():
                assert (np.array(sorted(ways))[:, : len(factors)] @ factors).max() <= most, seed
            known += len(order.moved)
            possible += len(ways)
    assert possible > known * 0.2 > 0


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 600), marks=pytest.mark.slow)])
def test_the_program_leaves_out_no_order(seeds: range) -> None:
    for seed in seeds:
        model = asked(seed)
        start, best = State(model), best_of_orders(model)
        if np.isfinite(best):
            depth = replace(CLOSEST, in_order=True)
            assert leaving(model, start, low=0.0, high=max(best, start.peak()), depth=depth).bound <= best, seed


@pytest.mark.parametrize("seed", [120, 336])
def test_it_asks_for_moves_that_have_an_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what is known of all orders, one of the moves has none."""
    model = asked(seed)
    start, left = State(model), []
    monkeypatch.setattr(below, "_MOST_CHOICES", 0)
    monkeypatch.setattr(below, "_SPARE_PART", -1.0)
    for depth in (below._IN_ORDER, replace(below._IN_ORDER, in_order=False)):
        monkeypatch.setattr(below, "_IN_ORDER", depth)
        moves = next(below.ways_below(model, start, start.peak() * 0.8, set()))
        left.append(len(carry_out(State(model), moves)))
    assert left == [0, 1]


def test_only_sums_are_limited_where_a_group_moves_in_many_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.optimize.in_order._MOST_WAYS", 0)
    for seed in range(20):
        model = asked(seed)
        start, best = State(model), best_of_orders(model)
        if np.isfinite(best):
            depth = replace(CLOSEST, in_order=True)
            assert leaving(model, start, low=0.0, high=max(best, start.peak()), depth=depth).bound <= best, seed
