"""Which placement strategies a vector may name."""

import pytest

from planner.cluster.errors import VectorError
from planner.conform.placements import placement


def test_extensible_strategies_are_answered_too() -> None:
    given = {"strategy": "RoundRobinBrokerSelectionStrategy", "steps": [{"candidates": ["b:1"]}]}
    assert placement({"config": {}, "input": given}) == {"steps": [{"selected": "b:1"}]}


def test_unknown_strategy_is_named() -> None:
    vector = {"id": "x", "config": {}, "input": {"strategy": "Magic", "steps": []}}
    with pytest.raises(VectorError, match=r"x: Unknown strategy 'Magic'.*RoundRobinBrokerSelectionStrategy"):
        placement(vector)
