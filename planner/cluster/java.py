"""What Java's own library does and Python's does not do alike: casts, switches and sorting.

Older releases sort with comparators that contradict themselves, such as `(int) (a - b)`. What comes of that depends on
every comparison that is made, so the sort is the one of `java.util.TimSort`: short runs are completed by binary
insertion, then merged, and a merge gallops while one side keeps winning.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from planner.cluster.errors import PulsarError

_T = TypeVar("_T")
_INT_MAX: Final = 2**31 - 1
_SHORT: Final = 32
_GALLOP: Final = 7


class ContradictoryOrderError(PulsarError):
    """Java gives up sorting: the comparator contradicts itself."""

    def __init__(self) -> None:
        super().__init__("IllegalArgumentException", "Comparison method violates its general contract!")


def to_int(value: float) -> int:
    """Return what Java's cast to `int` makes of a double: truncated, saturated, NaN is 0."""
    if value != value:  # noqa: PLR0124 - NaN
        return 0
    return int(max(-_INT_MAX - 1, min(_INT_MAX, value)))


def java_boolean(text: str) -> bool:
    """Return what `Boolean.valueOf` makes of a text, as Pulsar's `FieldParser` reads a switch.

    It is false for all but `true` in any case; with a blank before or behind it is false as well.
    """
    return text.lower() == "true"


def tim_sort(items: Sequence[_T], compare: Callable[[_T, _T], float]) -> list[_T]:
    """Return items sorted as `java.util.TimSort` sorts them, by a comparator that need not be an order.

    Raises:
        ContradictoryOrderError: Java notices that the comparator is none.
    """
    sorting = _Sorting(list(items), compare)
    sorting.all()
    return sorting.of


@dataclass
class _Sorting(Generic[_T]):
    """One sort at work: the items, and the runs found so far as pairs of start and length."""

    of: list[_T]
    compare: Callable[[_T, _T], float]
    runs: list[tuple[int, int]] = field(default_factory=list)
    gallop: int = _GALLOP

    def all(self) -> None:
        size = len(self.of)
        least, odd = size, 0
        while least >= _SHORT:
            odd |= least & 1
            least >>= 1
        least += odd
        at = 0
        while at < size:
            end = self._run(at, size)
            whole = min(max(end, at + least), size)
            self._insert(at, whole, end)
            self.runs.append((at, whole - at))
            at = whole
            self._collapse()
        while len(self.runs) > 1:
            n = len(self.runs) - 2
            self._merge(n - 1 if n > 0 and self.runs[n - 1][1] < self.runs[n + 1][1] else n)

    def _run(self, low: int, high: int) -> int:
        """Return where the run that starts at `low` ends; one that falls is turned round."""
        of, end = self.of, low + 1
        if end == high:
            return end
        falls = self.compare(of[end], of[low]) < 0
        end += 1
        while end < high and (self.compare(of[end], of[end - 1]) < 0) == falls:
            end += 1
        if falls:
            of[low:end] = of[low:end][::-1]
        return end

    def _insert(self, low: int, high: int, start: int) -> None:
        of = self.of
        for at in range(start, high):
            pivot, left, right = of[at], low, at
            while left < right:
                middle = (left + right) >> 1
                if self.compare(pivot, of[middle]) < 0:
                    right = middle
                else:
                    left = middle + 1
            del of[at]
            of.insert(left, pivot)

    def _collapse(self) -> None:
        runs = self.runs
        while len(runs) > 1:
            n = len(runs) - 2
            lengths = [length for _, length in runs]
            if (n > 0 and lengths[n - 1] <= lengths[n] + lengths[n + 1]) or (
                n > 1 and lengths[n - 2] <= lengths[n] + lengths[n - 1]
            ):
                n -= lengths[n - 1] < lengths[n + 1]
            elif lengths[n] > lengths[n + 1]:
                return
            self._merge(n)

    def _merge(self, n: int) -> None:
        """Merge the run `n` with the one behind it."""
        (start, length), (middle, more) = self.runs[n], self.runs[n + 1]
        self.runs[n : n + 2] = [(start, length + more)]
        of, end = self.of, middle + more
        start += self._after(of[middle], of[start:middle], 0)
        if start == middle:
            return
        end = middle + self._before(of[middle - 1], of[middle:end], more - 1)
        if end == middle:
            return
        left, right = of[start:middle], of[middle:end]
        of[start:end] = self._up(left, right) if len(left) <= len(right) else self._down(left, right)

    def _before(self, key: _T, run: Sequence[_T], hint: int) -> int:
        """Return how many of a run are less than a key, galloping from a hint (`gallopLeft`)."""
        return self._gallop(hint, len(run), lambda at: self.compare(key, run[at]) > 0)

    def _after(self, key: _T, run: Sequence[_T], hint: int) -> int:
        """Return how many of a run are at most a key, galloping from a hint (`gallopRight`)."""
        return self._gallop(hint, len(run), lambda at: self.compare(key, run[at]) >= 0)

    @staticmethod
    def _gallop(hint: int, size: int, beyond: Callable[[int], bool]) -> int:
        """Return the first place that a key is not beyond, looking 1, 3, 7 … places away from a hint, then halving."""
        rises = beyond(hint)
        most = size - hint if rises else hint + 1
        step, last = 1, 0
        while step < most and beyond(hint + step if rises else hint - step) == rises:
            last, step = step, step * 2 + 1
        step = min(step, most)
        low, high = (hint + last + 1, hint + step) if rises else (hint - step + 1, hint - last)
        while low < high:
            middle = low + ((high - low) >> 1)
            if beyond(middle):
                low = middle + 1
            else:
                high = middle
        return high

    def _up(self, left: list[_T], right: list[_T]) -> list[_T]:  # noqa: C901, PLR0912 - one merge, in two gears
        """Merge from the front (`mergeLo`): the left run is the shorter one."""
        found: list[_T] = [right[0]]
        i, j = 0, 1
        if j == len(right):
            return [*found, *left]
        if len(left) == 1:
            return [*found, *right[1:], *left]
        gallop, done = self.gallop, False
        while not done:
            mine = theirs = 0
            while not done and (mine | theirs) < gallop:
                if self.compare(right[j], left[i]) < 0:
                    found.append(right[j])
                    j, theirs, mine = j + 1, theirs + 1, 0
                    done = j == len(right)
                else:
                    found.append(left[i])
                    i, mine, theirs = i + 1, mine + 1, 0
                    done = i == len(left) - 1
            while not done:
                mine = self._after(right[j], left[i:], 0)
                found += left[i : i + mine]
                i += mine
                if mine and i >= len(left) - 1:
                    break
                found.append(right[j])
                j += 1
                if j == len(right):
                    break
                theirs = self._before(left[i], right[j:], 0)
                found += right[j : j + theirs]
                j += theirs
                if theirs and j == len(right):
                    break
                found.append(left[i])
                i += 1
                if i == len(left) - 1:
                    break
                gallop -= 1
                if mine < _GALLOP and theirs < _GALLOP:
                    gallop = max(gallop, 0) + 2
                    break
            done = j == len(right) or i >= len(left) - 1
        self.gallop = max(gallop, 1)
        if i == len(left):
            raise ContradictoryOrderError
        return [*found, *right[j:], *left[i:]] if i == len(left) - 1 else [*found, *left[i:]]

    def _down(self, left: list[_T], right: list[_T]) -> list[_T]:  # noqa: C901, PLR0912 - one merge, in two gears
        """Merge from the back (`mergeHi`): the right run is the shorter one."""
        found: list[_T] = [left[-1]]  # the last one first
        i, j = len(left) - 2, len(right) - 1
        if i < 0:
            return [*right, *found]
        if j == 0:
            return [*right, *left]
        gallop, done = self.gallop, False
        while not done:
            mine = theirs = 0
            while not done and (mine | theirs) < gallop:
                if self.compare(right[j], left[i]) < 0:
                    found.append(left[i])
                    i, mine, theirs = i - 1, mine + 1, 0
                    done = i < 0
                else:
                    found.append(right[j])
                    j, theirs, mine = j - 1, theirs + 1, 0
                    done = j == 0
            while not done:
                mine = i + 1 - self._after(right[j], left[: i + 1], i)
                found += left[i + 1 - mine : i + 1][::-1]
                i -= mine
                if mine and i < 0:
                    break
                found.append(right[j])
                j -= 1
                if j == 0:
                    break
                theirs = j + 1 - self._before(left[i], right[: j + 1], j)
                found += right[j + 1 - theirs : j + 1][::-1]
                j -= theirs
                if theirs and j <= 0:
                    break
                found.append(left[i])
                i -= 1
                if i < 0:
                    break
                gallop -= 1
                if mine < _GALLOP and theirs < _GALLOP:
                    gallop = max(gallop, 0) + 2
                    break
            done = i < 0 or j <= 0
        self.gallop = max(gallop, 1)
        if j < 0:
            raise ContradictoryOrderError
        return [*right[:1], *left[: i + 1], *found[::-1]] if j == 0 else [*right[: j + 1], *found[::-1]]
