"""What the advisor weighs: objectives of balance and of disruption, added up over days and clusters of a replay.

A replay gives numbers for each cluster and day, named as in `planner.simulate.measures.Summary`; how those of several
days make one says `planner.replay.aggregate`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from planner.cluster.errors import SettingError

Side: TypeAlias = Literal["balance", "disruption"]
"""What an objective is about."""


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


def value_of(totals: Mapping[str, float | None], objective: Objective) -> float | None:
    """Return an objective from measures; None when one of them is not known."""
    parts = [totals.get(measure) for measure in objective.measures]
    known = [part for part in parts if part is not None and math.isfinite(part)]
    return math.fsum(known) if len(known) == len(parts) else None


def references(totals: Sequence[Mapping[str, float | None]], objectives: Sequence[Objective]) -> dict[str, float]:
    """Return what each objective is on average over candidates: the 100 of an index."""
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
