"""Answers are worked out once, and keep nothing alive."""

import gc
from dataclasses import dataclass
from weakref import ref

from planner.cluster.once import once


@dataclass(frozen=True, eq=False)
class Big:
    """Compared by identity, as snapshots are."""

    number: int


def test_an_answer_about_two_objects_keeps_neither_alive() -> None:
    asked = []

    @once
    def total(one: Big, other: Big, more: int = 0) -> int:
        asked.append(more)
        return one.number + other.number + more

    first, second = Big(1), Big(2)
    assert [total(first, second), total(first, second), total(first, second, 5), total(first, second, more=5)] == [
        3,
        3,
        8,
        8,
    ]
    assert asked == [0, 5, 5]
    assert total(first, Big(2)) == 3
    assert asked == [0, 5, 5, 0]
    gone = ref(second)
    del second
    gc.collect()
    assert gone() is None
    assert total(first, Big(4)) == 5
