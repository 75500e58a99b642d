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


def frozen(array: _A) -> _A:
    """Make an array read-only and return it; a later write raises `ValueError`."""
    array.setflags(write=False)
    return array
