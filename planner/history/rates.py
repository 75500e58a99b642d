"""Rates out of counters: what was counted between two looks, whatever happened to the counter in between.

A counter that fell began anew at 0 (its broker restarted, or its topic moved), so that what it shows was counted since;
that is Prometheus' rule, too. Over a gap nothing is known: the counter may have begun anew several times.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.units import MS_PER_S


@dataclass(frozen=True, eq=False)
class Increases:
    """What counters counted between neighbouring samples. Shape of every column: (samples,).

    Attributes:
        amount: How much was counted since the sample before; 0 where that is not known.
        seconds: Over how long; 0 where the amount is not known.
        reset: Whether the counter began anew.
        repeated: Whether the sample is not later than the one before it, and was left out.
    """

    amount: FloatArray
    seconds: FloatArray
    reset: BoolArray
    repeated: BoolArray


def increases(
    counter: npt.NDArray[np.integer],
    times_ms: Int64Array,
    values: FloatArray,
    *,
    max_gap_ms: int,
    moved: BoolArray | None = None,
) -> Increases:
    """Return what was counted from sample to sample.

    Args:
        counter: Which counter each sample is of.
        times_ms: When; ascending for each counter. Of samples with the same time the last one counts.
        values: What the counter showed.
        max_gap_ms: Over longer than this nothing is known.
        moved: Whether the counter is known to have begun anew before the sample, whatever it shows.
    """
    order = np.lexsort((np.arange(len(counter)), times_ms, counter))
    ids, times, shown = counter[order], times_ms[order], values[order]
    same = np.append(ids[1:] == ids[:-1], False)
    repeated = same & np.append(times[1:] == times[:-1], False)
    kept = np.flatnonzero(~repeated)
    ids, times, shown = ids[kept], times[kept], shown[kept]
    known = np.zeros(len(kept), dtype=bool)
    known[1:] = ids[1:] == ids[:-1]
    gone = np.diff(times, prepend=times[:1])
    known &= gone <= max_gap_ms
    before = np.concatenate((shown[:1], shown[:-1]))
    reset = known & (shown < before)
    if moved is not None:
        reset |= known & moved[order][kept]
    amount = np.where(known, np.where(reset, shown, shown - before), 0.0)
    made = Increases(
        np.zeros(len(order)), np.zeros(len(order)), np.zeros(len(order), dtype=bool), np.zeros(len(order), dtype=bool)
    )
    at = order[kept]
    made.amount[at] = amount
    made.seconds[at] = np.where(known, gone / MS_PER_S, 0.0)
    made.reset[at] = reset
    made.repeated[order[repeated]] = True
    return made


class CounterRates:
    """Rates of many counters, which may grow in number; over longer than `max_gap_ms` nothing is known."""

    def __init__(self, max_gap_ms: int) -> None:
        self.max_gap_ms = max_gap_ms
        self.last_ms: Int64Array = np.zeros(0, dtype=np.int64)
        self.last: FloatArray = np.zeros(0)
        self.amount: FloatArray = np.zeros(0)
        self.seconds: FloatArray = np.zeros(0)
        self.rate: FloatArray = np.zeros(0)
        self.resets = 0

    def grow(self, count: int) -> None:
        """Make room for counters up to `count`."""
        more = count - len(self.last)
        if more > 0:
            more = max(more, len(self.last))
            self.last_ms = np.concatenate((self.last_ms, np.full(more, -1)))
            for name, value in (("last", np.nan), ("amount", 0.0), ("seconds", 0.0), ("rate", np.nan)):
                setattr(self, name, np.concatenate((getattr(self, name), np.full(more, value))))

    def feed(
        self,
        counter: npt.NDArray[np.integer],
        times_ms: Int64Array,
        values: FloatArray,
        moved: BoolArray | None = None,
    ) -> None:
        """Take samples as `increases` does, NaN where nothing was shown; none may be older than one taken before."""
        shown = ~np.isnan(values)
        if moved is None:
            moved = np.zeros(len(counter), dtype=bool)
        counter, times_ms, values, moved = counter[shown], times_ms[shown], values[shown], moved[shown]
        if not len(counter):
            return
        self.grow(int(counter.max()) + 1)
        known = np.unique(counter)
        known = known[self.last_ms[known] >= 0]
        found = increases(
            np.concatenate((known, counter)),
            np.concatenate((self.last_ms[known], times_ms)),
            np.concatenate((self.last[known], values)),
            max_gap_ms=self.max_gap_ms,
            moved=np.concatenate((np.zeros(len(known), dtype=bool), moved)),
        )
        mine = slice(len(known), None)
        self.rate[counter] = np.nan
        np.add.at(self.amount, counter, found.amount[mine])
        np.add.at(self.seconds, counter, found.seconds[mine])
        self.resets += int(found.reset.sum())
        order = np.argsort(times_ms, kind="stable")
        self.last_ms[counter[order]] = times_ms[order]
        self.last[counter[order]] = values[order]

    def take(self) -> FloatArray:
        """Return the rate per second of each counter since the last call, and start the next interval.

        Shape (counters,).

        A counter without a new sample keeps its rate; NaN where the new sample cannot be compared with one before.
        """
        fresh = self.seconds > 0
        self.rate[fresh] = self.amount[fresh] / self.seconds[fresh]
        self.amount[fresh] = 0.0
        self.seconds[fresh] = 0.0
        return self.rate

    def forget(self, counter: npt.NDArray[np.integer]) -> None:
        """Forget counters that are gone; when they come back, they start anew."""
        self.last_ms[counter] = -1
        self.rate[counter] = np.nan
        self.amount[counter] = 0.0
        self.seconds[counter] = 0.0
