"""The front holds whatever nothing dominates, and nothing else; each rule chooses what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.advise.pareto import distance_to_front, knee_scores, pareto_front, weighted_scores
from planner.cluster.arrays import FloatArray

# Few different values, so that ties and weakly dominated rows are common.
VALUE = st.one_of(st.integers(0, 4).map(float), st.floats(0, 1e6))
TABLES = (
    st.integers(1, 3)
    .flatmap(lambda width: st.lists(st.lists(VALUE, min_size=width, max_size=width), min_size=1, max_size=25))
    .map(np.array)
)


def dominates(a: FloatArray, b: FloatArray) -> bool:
    return bool((a <= b).all() and (a < b).any())


@given(TABLES)
def test_no_member_is_dominated_and_everybody_else_is(costs: FloatArray) -> None:
    front = pareto_front(costs)
    assert front.any()
    for row, kept in zip(costs, front.tolist(), strict=True):
        assert kept is not any(dominates(other, row) for other in costs)
        assert kept or any(dominates(member, row) for member in costs[front])


@given(TABLES, st.randoms())
def test_the_order_of_rows_and_copies_of_them_change_nothing(costs: FloatArray, draw: object) -> None:
    order = np.arange(len(costs))
    draw.shuffle(order)  # type: ignore[attr-defined]
    assert pareto_front(costs[order]).tolist() == pareto_front(costs)[order].tolist()
    assert pareto_front(np.vstack([costs, costs])).tolist() == pareto_front(costs).tolist() * 2


def test_weakly_dominated_out_ties_kept() -> None:
    costs = np.array([[1.0, 5.0], [1.0, 6.0], [1.0, 5.0], [2.0, 5.0], [3.0, 1.0]])
    assert pareto_front(costs).tolist() == [True, False, True, False, True]


@given(TABLES)
def test_distance_is_nought_exactly_where_nobody_is_better_in_everything(costs: FloatArray) -> None:
    for row in costs:
        distance = distance_to_front(row, costs)
        assert 0 <= distance <= 1
        # A difference in the last digit may be lost in the share.
        if distance > 0:
            assert any((other < row).all() for other in costs)
        if pareto_front(costs)[(costs == row).all(axis=1)].all():
            assert distance == 0


def test_distance_is_what_could_be_gained_in_both() -> None:
    costs = np.array([[5.0, 9.0], [8.0, 8.0], [10.0, 10.0]])
    assert distance_to_front(costs[2], costs) == pytest.approx(0.2)
    assert distance_to_front(np.array([10.0, 9.0]), costs) == pytest.approx(1 / 9)


class TestRules:
    FRONT = np.array([[0.0, 10.0], [1.0, 3.0], [5.0, 2.0], [10.0, 0.0]])

    def test_the_knee_is_farthest_from_the_line_between_the_ends(self) -> None:
        ends = self.FRONT[[0, -1]] / 10
        along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        offset = self.FRONT / 10 - ends[0]
        distance = np.abs(along[0] * offset[:, 1] - along[1] * offset[:, 0])
        scores = knee_scores(self.FRONT)
        assert int(np.argmin(scores)) == int(np.argmax(distance)) == 1
        assert (1 - scores) / np.sqrt(2) == pytest.approx(distance)

    def test_a_weight_reaches_the_ends(self) -> None:
        assert int(np.argmin(weighted_scores(self.FRONT, 1.0))) == 0
        assert int(np.argmin(weighted_scores(self.FRONT, 0.0))) == 3

    def test_a_weight_reaches_members_where_the_front_bends_the_wrong_way(self) -> None:
        front = np.array([[0.0, 10.0], [6.0, 7.0], [10.0, 0.0]])
        chosen = {int(np.argmin(weighted_scores(front, share / 100))) for share in range(101)}
        assert chosen == {0, 1, 2}
        sums = {int(np.argmin(front @ [share / 100, 1 - share / 100])) for share in range(101)}
        assert sums == {0, 2}

    def test_one_member_is_the_choice(self) -> None:
        assert knee_scores(np.array([[3.0, 4.0]])).tolist() == [0.0]

    @given(TABLES.filter(lambda t: t.shape[1] == 2), st.floats(0, 1))
    def test_more_weight_never_makes_that_side_worse(self, costs: FloatArray, weight: float) -> None:
        front = costs[pareto_front(costs)]
        less = front[int(np.argmin(weighted_scores(front, weight)))]
        more = front[int(np.argmin(weighted_scores(front, 1.0)))]
        assert more[0] <= less[0]
