"""Array types of the columnar model, and how they are frozen; the unit in which people read bytes."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt32Array = npt.NDArray[np.uint32]
BoolArray = npt.NDArray[np.bool_]


_A = TypeVar("_A", bound=npt.NDArray[Any])

_DIGIT_BITS = 15
_MOST_SHORT = np.iinfo(np.int16).max
_MANY = 100_000
"""Numbers from which on it pays to sort longer ones digit by digit."""


def sorted_places(numbers: IntArray, most: int) -> Int64Array:
    """Return the places of numbers in ascending order, equal ones in the order in which they stand.

    Short numbers are sorted by their digits, which is four to nine times as fast; many longer ones by two of them.

    Args:
        numbers: From -1 to `most`. Shape (numbers,).
        most: The largest that there may be.
    """
    if most <= _MOST_SHORT:
        return np.argsort(numbers.astype(np.int16), kind="stable")
    if most >> _DIGIT_BITS > _MOST_SHORT or len(numbers) < _MANY or (numbers[1:] >= numbers[:-1]).all():
        return np.argsort(numbers, kind="stable")
    low = np.argsort((numbers & _MOST_SHORT).astype(np.int16), kind="stable")
    high = (numbers >> _DIGIT_BITS).astype(np.int16)
    return low[np.argsort(high[low], kind="stable")]


def frozen(array: _A) -> _A:
    """Make an array read-only and return it; a later write raises `ValueError`."""
    array.setflags(write=False)
    return array
