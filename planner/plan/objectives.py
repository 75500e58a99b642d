"""What the advisor weighs: objectives of balance and of disruption, added up over days and clusters of a replay.

A replay gives numbers for each cluster and day, named as in `planner.simulate.measures.Summary`. Numbers of several
days make one as their meaning asks: counts are added, an average over cycles counts by the cycles of its day, a share
of traffic by that traffic, a peak is the highest one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from planner.model.errors import SettingError

__all__ = [
    "AGGREGATION",
    "OBJECTIVES",
    "Aggregation",
    "DayRow",
    "Objective",
    "Side",
    "aggregate",
    "index_of",
    "objective_by_name",
    "references",
    "totals_of",
    "value_of",
]

Side: TypeAlias = Literal["balance", "disruption"]
"""What an objective is about."""

Aggregation: TypeAlias = Literal["sum", "by_cycles", "by_shed_traffic", "mean", "max", "min", "worst"]
"""How the numbers of several days make one: added; averaged by the cycles of each day, or by the traffic it shed, or
each day alike; the highest; the lowest; the highest, and none at all when a day has none."""

AGGREGATION: Final[Mapping[str, Aggregation]] = MappingProxyType(
    {
        "cycles": "sum",
        "duration_min": "sum",
        "settled_after_cycles": "worst",
        "settled_after_min": "worst",
        "final_std_percent": "mean",
        "mean_std_percent": "by_cycles",
        "final_spread_percent": "mean",
        "final_max_over_average": "mean",
        "final_msg_rate_std_over_average": "mean",
        "final_throughput_std_over_average": "mean",
        "peak_usage_percent": "max",
        "final_peak_usage_percent": "max",
        "shed": "sum",
        "moved": "sum",
        "splits": "sum",
        "splits_refused": "sum",
        "most_shed_in_one_cycle": "max",
        "topics_disconnected": "sum",
        "producers_disconnected": "sum",
        "consumers_disconnected": "sum",
        "most_clients_in_one_cycle": "max",
        "client_time_lost_min": "sum",
        "returned_bundles": "sum",
        "thrashing_percent": "by_shed_traffic",
        "most_brokers_over_threshold": "max",
        "final_brokers_over_threshold": "max",
        "overloaded_broker_min": "sum",
        "final_headroom_factor": "min",
        "unserved": "sum",
    }
)
"""How each measure of a `Summary` is put together over days and clusters."""

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


@dataclass(frozen=True, slots=True)
class Objective:
    """Something to keep small.

    Attributes:
        name: Names it in a link.
        label: What to call it.
        unit: Its unit.
        side: Whether it measures balance or disruption.
        measures: Measures of a `Summary` that are added up.
        meaning: One sentence.
        yardstick: Settings that it is measured with: scenarios that differ in one cannot be compared by it.
    """

    name: str
    label: str
    unit: str
    side: Side
    measures: tuple[str, ...]
    meaning: str
    yardstick: tuple[str, ...] = ()


_WEIGHTS = (
    "loadBalancerCPUResourceWeight",
    "loadBalancerMemoryResourceWeight",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwithOutResourceWeight",
)

OBJECTIVES: Final = (
    Objective(
        "deviation",
        "Mean deviation of usage",
        "points",
        "balance",
        ("mean_std_percent",),
        "Standard deviation of usage over the brokers, averaged over all cycles.",
        _WEIGHTS,
    ),
    Objective(
        "overload",
        "Time overloaded",
        "broker minutes",
        "balance",
        ("overloaded_broker_min",),
        "Minutes above loadBalancerBrokerOverloadedThresholdPercentage, summed over brokers and days.",
        (*_WEIGHTS, "loadBalancerBrokerOverloadedThresholdPercentage"),
    ),
    Objective(
        "peak",
        "Highest usage",
        "%",
        "balance",
        ("peak_usage_percent",),
        "Of the most used broker in the worst cycle of all days.",
        _WEIGHTS,
    ),
    Objective(
        "throughput",
        "Deviation of throughput",
        "of the average",
        "balance",
        ("final_throughput_std_over_average",),
        "Standard deviation by mean of the brokers' throughput at the end of a day, averaged over the days.",
    ),
    Objective(
        "messages",
        "Deviation of message rates",
        "of the average",
        "balance",
        ("final_msg_rate_std_over_average",),
        "Standard deviation by mean of the brokers' message rates at the end of a day, averaged over the days.",
    ),
    Objective(
        "unloads",
        "Bundles unloaded",
        "bundles",
        "disruption",
        ("shed", "moved"),
        "Unloads by the load balancer and by operators, each as often as it happened.",
    ),
    Objective(
        "topics",
        "Topics disconnected",
        "topics",
        "disruption",
        ("topics_disconnected",),
        "Blast radius: topics closed, each as often as it was.",
    ),
    Objective(
        "clients",
        "Clients disconnected",
        "clients",
        "disruption",
        ("producers_disconnected", "consumers_disconnected"),
        "Blast radius: producers and consumers that had to reconnect, each as often as it did.",
    ),
    Objective(
        "thrashing",
        "Thrashing",
        "% of the traffic shed",
        "disruption",
        ("thrashing_percent",),
        "Share of the shed traffic that left a broker to which shedding had just given as much.",
    ),
    Objective(
        "wave",
        "Largest wave of clients",
        "clients",
        "disruption",
        ("most_clients_in_one_cycle",),
        "Producers and consumers disconnected in the worst cycle of all days.",
    ),
)
"""Every objective; all are to be small and none is ever negative."""


def objective_by_name(name: str) -> Objective:
    """Return an objective.

    Raises:
        SettingError: There is none of this name.
    """
    for objective in OBJECTIVES:
        if objective.name == name:
            return objective
    raise SettingError(
        "The advisor knows no such objective.",
        where=name[:40],
        remedy=f"Choose from {', '.join(objective.name for objective in OBJECTIVES)}.",
    )


def _known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def aggregate(rows: Sequence[DayRow], measure: str) -> float | None:  # noqa: PLR0911 - one for each way
    """Return one measure over several days and clusters of one scenario, put together as `AGGREGATION` says.

    Args:
        rows: The days.
        measure: Name of the measure.

    Returns:
        None when no day has it, or when it is one that counts only if every day has it.
    """
    how = AGGREGATION[measure]
    pairs = [(value, row) for row in rows if (value := row.measures.get(measure)) is not None and _known(value)]
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


def value_of(totals: Mapping[str, float | None], objective: Objective) -> float | None:
    """Return an objective from measures; None when one of them is not known."""
    parts = [totals.get(measure) for measure in objective.measures]
    known = [part for part in parts if part is not None and math.isfinite(part)]
    return math.fsum(known) if len(known) == len(parts) else None


def references(totals: Sequence[Mapping[str, float | None]], objectives: Sequence[Objective]) -> dict[str, float]:
    """Return what each objective is on average over candidates: the 100 of an index.

    Args:
        totals: Measures of each candidate.
        objectives: Those that count.
    """
    found = {}
    for objective in objectives:
        values = [value for one in totals if (value := value_of(one, objective)) is not None]
        found[objective.name] = math.fsum(values) / len(values) if values else 0.0
    return found


def index_of(
    totals: Mapping[str, float | None], objectives: Sequence[Objective], reference: Mapping[str, float]
) -> float | None:
    """Return one number for several objectives: the mean of what each is in percent of its reference.

    Objectives that are 0 in all candidates say nothing and are left out. As no objective is negative and each has a
    positive share, whoever is better in one objective and no worse in the others has the smaller index.

    Args:
        totals: Measures of the candidate.
        objectives: Those of one side.
        reference: By the name of the objective, as `references` returns it.

    Returns:
        100 for the average of the candidates, small is good; None when an objective is not known.
    """
    shares = []
    for objective in objectives:
        value, usual = value_of(totals, objective), reference[objective.name]
        if value is None:
            return None
        if usual > 0:
            shares.append(value / usual)
    return 100 * math.fsum(shares) / len(shares) if shares else 0.0
