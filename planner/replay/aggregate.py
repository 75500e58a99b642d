"""Numbers of several days and clusters of a replay, put together as their meaning asks.

Counts are added, an average over cycles counts by the cycles of its day, a share of traffic by that traffic, a peak is
the highest one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Aggregation: TypeAlias = Literal["sum", "by_cycles", "by_shed_traffic", "mean", "max", "min", "worst"]
"""How the numbers of several days make one: added; averaged by the cycles of each day, or by the traffic it shed, or
each day alike; the highest; the lowest; the highest, and none at all when a day has none."""

_MEASURES: Final[Mapping[Aggregation, str]] = {
    "sum": "cycles duration_min shed moved splits splits_refused topics_disconnected producers_disconnected"
    " consumers_disconnected client_time_lost_min returned_bundles overloaded_broker_min unserved",
    "by_cycles": "mean_std_percent",
    "by_shed_traffic": "thrashing_percent",
    "mean": "final_std_percent final_spread_percent final_max_over_average final_msg_rate_std_over_average"
    " final_throughput_std_over_average",
    "max": "peak_usage_percent final_peak_usage_percent most_shed_in_one_cycle most_clients_in_one_cycle"
    " most_brokers_over_threshold final_brokers_over_threshold",
    "min": "final_headroom_factor",
    "worst": "settled_after_cycles settled_after_min",
}

AGGREGATION: Final[Mapping[str, Aggregation]] = MappingProxyType(
    {name: how for how, names in _MEASURES.items() for name in names.split()}
)
"""Aggregation of each measure of a `Summary` over days and clusters."""

_SHED_TRAFFIC = "shed_bytes_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """What a scenario came to on one day of one cluster.

    Attributes:
        cluster: Name.
        scenario: Name of the scenario.
        day: `yyyy-mm-dd`, UTC.
        cycles: Shedding cycles of the day.
        measures: Numbers of the day, named as in `Summary`; None where there is none. `shed_bytes_per_s`, the traffic
            of what was shed, weighs thrashing; without it the number of bundles shed does.
    """

    cluster: str
    scenario: str
    day: str
    cycles: int
    measures: Mapping[str, float | None] = field(default_factory=dict)


def aggregate(rows: Sequence[DayRow], measure: str) -> float | None:  # noqa: PLR0911 - one for each way
    """Return one measure over several days and clusters of one scenario, put together as `AGGREGATION` says.

    Returns:
        None when no day has it, or when it is one that counts only if every day has it.
    """
    how = AGGREGATION[measure]
    pairs = [(value, row) for row in rows if (value := row.measures.get(measure)) is not None and not math.isnan(value)]
    values = [value for value, _ in pairs]
    if not values or (how == "worst" and len(values) < len(rows)):
        return None
    match how:
        case "sum":
            return math.fsum(values)
        case "max" | "worst":
            return max(values)
        case "min":
            return min(values)
        case "mean":
            return math.fsum(values) / len(values)
        case "by_cycles":
            return _weighted(values, [float(row.cycles) for _, row in pairs])
        case "by_shed_traffic":
            return _weighted(values, [_shed_traffic(row) for _, row in pairs])


def _shed_traffic(row: DayRow) -> float:
    given = row.measures.get(_SHED_TRAFFIC)
    return float((row.measures.get("shed") if given is None else given) or 0)


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    total = math.fsum(weights)
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / total if total else 0.0


def totals_of(rows: Sequence[DayRow]) -> dict[str, float | None]:
    """Return every measure over the days of one scenario."""
    return {measure: aggregate(rows, measure) for measure in AGGREGATION}
