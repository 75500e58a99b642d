"""The question as one program: bundles that differ in nothing are counted, and the answer is proven at once."""

from random import Random

import numpy as np
import pytest

from planner.optimize.answer import best_plan
from planner.optimize.question import Model, Question, model_of
from planner.optimize.state import State
from planner.optimize.whole import Answer, adopt, kinds_of, solve_whole
from tests.app.optimize.brute import every_placement
from tests.app.simulate.traces import cluster


def asked(model: Model, nodes: int = 2_000) -> Answer:
    return solve_whole(model, State(model), np.arange(len(model.owner)), np.arange(len(model.counts)), nodes=nodes)


@pytest.mark.parametrize("seed", range(30))
def test_alike_bundles_are_placed_as_well_as_each_by_itself(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    sizes = {at: tuple(random.choice((2.0, 3.0)) for _ in range(random.randint(1, 3))) for at in range(3)}
    snapshot = cluster([random.uniform(0.1, 0.9) for _ in range(3)], sizes, topics=random.randint(1, 10))
    moves = random.choice((None, 1, 2))
    model = model_of(snapshot, Question(moves=moves))
    best = float(every_placement(snapshot, len(model.owner) if moves is None else moves)[1].min())
    found = asked(model)
    assert found.value == pytest.approx(best, abs=1e-5)
    assert found.bound <= best + 1e-9
    state = State(model)
    assert len({bundle for bundle, _ in found.moves}) == len(found.moves) == len(model.owner)
    assert adopt(state, found.moves)
    assert state.peak() == pytest.approx(found.value, abs=1e-6)


def test_a_proof_does_not_go_through_exchanges_of_alike_bundles() -> None:
    sizes = {0: (2.5,) * 10, 1: (2.5,) * 8, 2: (2.5,) * 8, 3: (2.5,) * 7, 4: (2.5,) * 7}
    snapshot = cluster((0.9, 0.5, 0.5, 0.5, 0.5), sizes)
    model = model_of(snapshot, Question(moves=10))
    assert len(kinds_of(model, np.arange(40))) == 5
    found = asked(model, nodes=360)
    assert found.bound == pytest.approx(found.value, rel=1e-4)
    plan = best_plan(snapshot, Question(moves=10))
    assert plan.gap_percent == pytest.approx(0.0, abs=0.01)
