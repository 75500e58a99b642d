"""A few brokers share their bundles anew: a lower peak with no more moves, in an order that every filter allows."""

from collections.abc import Callable

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.optimize.bound import room
from planner.optimize.nearby import exchange_nearby
from planner.optimize.question import Question, model_of
from planner.optimize.search import lower_peak, order_moves, place_forced
from planner.optimize.state import State
from tests.app.optimize.brute import FREE, refused
from tests.app.optimize.test_together import MOVES, cluster


def planned(question: Question, manager: LoadManager, *, domains: bool = False) -> State:
    """Return what single moves, swaps and chains lead to."""
    state = State(model_of(cluster(manager, domains=domains), question))
    place_forced(state, lambda: False)
    forced = state.moves()
    lower_peak(state, np.full(len(state.usage), np.inf), lambda: False)
    order_moves(state, forced)
    return state


@pytest.mark.parametrize("domains", [False, True])
@pytest.mark.parametrize("manager", LoadManager)
def test_a_lower_peak_that_every_filter_allows(manager: LoadManager, *, domains: bool) -> None:
    state = planned(Question(moves=MOVES), manager, domains=domains)
    snapshot, before = state.model.snapshot, state.peak()
    exchange_nearby(state, lambda: False, goal=0.0, programs=40)
    assert state.peak() < before
    assert len(state.order) <= MOVES
    names, brokers = snapshot.bundle_names, snapshot.brokers.name
    moves = [(names[bundle], brokers[to]) for bundle, to in state.moves()]
    assert not refused(snapshot, Settings({**snapshot.settings.overrides, **FREE}), moves)


def test_what_is_pinned_drained_and_kept_stays_so() -> None:
    snapshot = cluster(LoadManager.EXTENSIBLE, domains=False)
    drained = snapshot.brokers.name[6]
    pinned, kept = snapshot.bundle_names[3], snapshot.namespaces[0]
    home = snapshot.brokers.name[int(snapshot.bundles.owner[3])]
    question = Question(moves=60, drain=(drained,), pins={pinned: home}, keep_namespaces=(kept,))
    state = planned(question, LoadManager.EXTENSIBLE)
    before, gone = state.peak(), state.model.forced & (state.owner != state.model.owner)
    exchange_nearby(state, lambda: False, goal=room(state.model, State(state.model)), programs=40)
    assert state.peak() < before
    assert gone.any()
    assert (state.owner[gone] != state.model.owner[gone]).all()
    assert snapshot.brokers.name[int(state.owner[3])] == home
    stays = (state.space == 0) & (state.model.owner != 6)
    assert (state.owner[stays] == state.model.owner[stays]).all()


@pytest.mark.parametrize(
    ("goal", "stop"), [(1.0, lambda: False), (0.0, lambda: True)], ids=["low enough already", "stopped"]
)
def test_nothing_changes(goal: float, stop: Callable[[], bool]) -> None:
    state = planned(Question(moves=MOVES), LoadManager.EXTENSIBLE)
    before = state.moves()
    exchange_nearby(state, stop, goal=goal, programs=40)
    assert state.moves() == before


def test_the_same_plan_each_time() -> None:
    plans = []
    for _ in range(2):
        state = planned(Question(moves=MOVES), LoadManager.EXTENSIBLE)
        exchange_nearby(state, lambda: False, goal=0.0, programs=15)
        plans.append(state.moves())
    assert plans[0] == plans[1]
