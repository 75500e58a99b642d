"""Arrays of the columnar model."""

import numpy as np
import pytest

from planner.cluster.arrays import sorted_places


@pytest.mark.parametrize("most", [0, 5, 32_767, 32_768, 70_000])
def test_places_are_those_of_a_stable_sort(most: int) -> None:
    numbers = np.random.default_rng(most).integers(-1, most + 1, 2_000).astype(np.int32)
    numbers[[3, 700, 701]] = -1, most, most
    places = sorted_places(numbers, most)
    assert places.dtype == np.int64
    assert places.tolist() == sorted(range(len(numbers)), key=lambda at: (numbers[at], at))
