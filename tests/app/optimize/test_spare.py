"""How many bundles leave each broker in any plan below a usage: never more than leave in plans found by brute force."""

import numpy as np

from planner.optimize.question import Question, model_of
from planner.optimize.spare import Spare
from planner.optimize.state import State
from tests.app.optimize.brute import every_reachable, small_cluster

MOVES = 3


def test_what_all_plans_below_a_usage_have_in_common() -> None:
    """No plan loses fewer bundles of a broker, or a small one without one more; and none moves what may not leave."""
    tight = kept = exact = 0
    for seed in range(60):
        snapshot = small_cluster(seed, bundles=8)
        model = model_of(snapshot, Question(moves=MOVES))
        owners, peaks = every_reachable(snapshot, MOVES, model.movable)
        usage = float(np.quantile(peaks, 0.02))
        spare = Spare(model, State(model), usage)
        away = owners[peaks <= usage] != model.owner
        lost = np.array([away[:, model.owner == broker].sum(axis=1) for broker in range(len(spare.least))]).T
        assert (lost >= spare.least).all(), seed
        more = (lost > spare.least)[:, model.owner]
        assert more[away & spare.small].all(), seed
        assert not (away & ~spare.may).any(), seed
        assert spare.moves == MOVES - spare.least.sum()
        tight += spare.moves < 1
        kept += int((model.movable & ~spare.may).sum())
        exact += bool((lost.min(axis=0) == spare.least).all())
    assert exact > 20
    assert tight > 5
    assert kept > 10


def test_without_a_budget_of_moves_all_may_leave() -> None:
    model = model_of(small_cluster(1, bundles=8), Question(clients=1_000))
    start = State(model)
    spare = Spare(model, start, start.peak() * 0.7)
    assert spare.moves == np.inf
    assert (spare.may == model.movable).all()
