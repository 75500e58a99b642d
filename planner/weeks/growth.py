"""How fast the traffic of namespaces grows, measured over a history by a fit that a few odd days do not bend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS, MS_PER_MIN
from planner.cluster.weekdays import WEEK_DAYS, in_weekend

LEAST_DAYS: Final = 5
"""Days that a history has to have; with fewer, a single odd one decides."""
TOO_SHORT: Final = f"it takes traffic on {LEAST_DAYS} days"
"""What a history lacks that is too short."""
_NEAR_MS: Final = 30 * MS_PER_MIN
"""By how much times of day may differ to be the same."""


@dataclass(frozen=True, eq=False, slots=True)
class Rates:
    """Traffic in and out at a moment.

    Attributes:
        at_ms: When, ms since 1970.
        of: Messages and bytes per second, in and out, of each namespace.
        whole: Those of the cluster.
    """

    at_ms: int
    of: Mapping[str, tuple[float, float]]
    whole: tuple[float, float]


def rates_at(snapshot: Snapshot, namespaces: Sequence[str]) -> Rates:
    """Return the traffic of some namespaces of a snapshot; of those that it does not have, none."""
    bundles, names = snapshot.bundles, snapshot.namespaces
    sums = [
        np.bincount(bundles.namespace, values, minlength=len(names))
        for values in (bundles.msg_rate_per_s(), bundles.throughput_bytes_per_s())
    ]
    places = {name: at for at, name in enumerate(names)}
    of = {name: (float(sums[0][places[name]]), float(sums[1][places[name]])) for name in namespaces if name in places}
    return Rates(snapshot.info.captured_at_ms, of, (float(sums[0].sum()), float(sums[1].sum())))


def growth_per_week(moments: Sequence[Rates], namespace: str | None = None) -> float | None:
    """Return by how many times traffic grows in a week: messages or bytes, whichever grow faster.

    The median over all pairs of moments at the same time of day (Theil and Sen), which no spike and no outage bends as
    long as most moments are as usual. Where two weeks are recorded, the pairs are whole weeks apart, so that no shape
    of day or week matters; else they are whole days apart, both in a weekend or neither.

    Args:
        moments: The moments, in the order of time.
        namespace: A namespace; the cluster by default.

    Returns:
        The factor, None where the history is too short: fewer than `LEAST_DAYS` days have traffic.
    """
    found = [(one.at_ms, one.whole if namespace is None else one.of.get(namespace, (0.0, 0.0))) for one in moments]
    growths = []
    for which in range(2):
        used = [(at_ms, rates[which]) for at_ms, rates in found if rates[which] > 0]
        at = np.array([at_ms for at_ms, _ in used], dtype=np.int64)
        growths.append(_median_growth(at, np.log([rate for _, rate in used])))
    return max((one for one in growths if one is not None), default=None)


def _median_growth(at_ms: Int64Array, logs: FloatArray) -> float | None:
    """Return the median growth per week of positive rates, given as logarithms. Shapes (moments,)."""
    if len(np.unique(at_ms // DAY_MS)) < LEAST_DAYS:
        return None
    first, second = np.triu_indices(len(at_ms), 1)
    apart_ms = at_ms[second] - at_ms[first]
    days = (apart_ms + DAY_MS // 2) // DAY_MS
    alike = (days >= 1) & (np.abs(apart_ms - days * DAY_MS) <= _NEAR_MS)
    if at_ms[-1] - at_ms[0] >= (2 * WEEK_DAYS - 1) * DAY_MS:
        alike &= days % WEEK_DAYS == 0
    else:
        free = in_weekend(at_ms)
        alike &= free[first] == free[second]
    if not alike.any():
        return None
    slopes = (logs[second] - logs[first])[alike] / days[alike] * WEEK_DAYS
    return float(np.exp(np.median(slopes)))
