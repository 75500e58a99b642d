"""How far a cluster is from balance."""

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import FloatArray

__all__ = ["Imbalance", "imbalance"]


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Spread of the broker scores.

    Attributes:
        average: Mean.
        std: Population standard deviation.
        highest: Largest.
        lowest: Smallest.
    """

    average: float
    std: float
    highest: float
    lowest: float

    @property
    def spread(self) -> float:
        """Largest minus smallest."""
        return self.highest - self.lowest

    @property
    def max_over_average(self) -> float:
        """Largest by mean; NaN when the mean is 0."""
        return self.highest / self.average if self.average else float("nan")


def imbalance(scores: FloatArray) -> Imbalance:
    """Measure the spread of scores; unknown (NaN) ones are left out. All NaN when none is known."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        nan = float("nan")
        return Imbalance(nan, nan, nan, nan)
    return Imbalance(float(known.mean()), float(known.std()), float(known.max()), float(known.min()))
