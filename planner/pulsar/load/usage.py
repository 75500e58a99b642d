"""Resource usage of brokers as Pulsar computes it, single precision included.

Mirrors `ResourceUsage.percentUsage`, `LocalBrokerData.getMaxResourceUsage` and `getMaxResourceUsageWithWeight`, and
`BrokerLoadData` of Pulsar 4.2.4.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cluster.arrays import FloatArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
    BANDWITH_IN_RESOURCE_WEIGHT,
    BANDWITH_OUT_RESOURCE_WEIGHT,
    CPU_RESOURCE_WEIGHT,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    MEMORY_RESOURCE_WEIGHT,
)
from planner.cluster.once import once
from planner.cluster.pulsar_json import RESOURCES as COLUMNS
from planner.cluster.releases import Switch
from planner.cluster.settings import Settings
from planner.cluster.tables import BrokerTable

RESOURCES = tuple(COLUMNS)
"""The resources of a load report, in Pulsar's order."""


UNWEIGHTED = Switch(
    "For shedding and placement, a broker counts as overloaded by its highest resource usage, regardless "
    "of the weights.",
    until="4.0.0",
)

RESOURCE_WEIGHTS = (
    CPU_RESOURCE_WEIGHT,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
)
"""The settings by which the modular load manager weighs resources."""

USAGE_WEIGHTS = (
    *RESOURCE_WEIGHTS,
    BANDWITH_IN_RESOURCE_WEIGHT,
    BANDWITH_OUT_RESOURCE_WEIGHT,
)
"""The same, and the misspelt ones."""


def percent_usage(usage: npt.ArrayLike, limit: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return usage as a percentage of its limit, in single precision as Java does; 0 where the limit is <= 0.

    Shape as given.

    15 of 100 is 15.000001, 30 of 100 is 30.000002. There is no clamp above 100; NaN usage gives NaN.
    """
    used, cap = np.asarray(usage, dtype=np.float64), np.asarray(limit, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = used.astype(np.float32) / cap.astype(np.float32) * np.float32(100)
    return np.where(cap > 0, ratio, np.float32(0)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class ResourceWeights:
    """Factor of each resource in the weighted usage, as in force.

    Of each bandwidth weight the correctly spelt setting is read first; when that is exactly 1.0 the misspelt legacy one
    applies. `memory` counts in the extensible load manager only.
    """

    cpu: float
    memory: float
    direct_memory: float
    bandwidth_in: float
    bandwidth_out: float

    @staticmethod
    def of(config: Settings, load_manager: LoadManager) -> "ResourceWeights":
        """Read the weights from the settings in force."""

        def bandwidth(right: str, misspelt: str) -> float:
            weight = config.number(right)
            return config.number(misspelt) if weight == 1.0 else weight

        heap = config.number(MEMORY_RESOURCE_WEIGHT) if load_manager is LoadManager.EXTENSIBLE else 0.0
        return ResourceWeights(
            cpu=config.number(CPU_RESOURCE_WEIGHT),
            memory=heap,
            direct_memory=config.number(DIRECT_MEMORY_RESOURCE_WEIGHT),
            bandwidth_in=bandwidth(BANDWIDTH_IN_RESOURCE_WEIGHT, BANDWITH_IN_RESOURCE_WEIGHT),
            bandwidth_out=bandwidth(BANDWIDTH_OUT_RESOURCE_WEIGHT, BANDWITH_OUT_RESOURCE_WEIGHT),
        )


def usage_percent_by_resource(brokers: BrokerTable) -> npt.NDArray[np.float32]:
    """Return the percentage of each resource. Shape (5, brokers), rows in the order of `RESOURCES`."""
    used, limits = (np.array([getattr(brokers, n) for n in names]) for names in zip(*COLUMNS.values(), strict=True))
    return percent_usage(used, limits)


def _terms(percents: npt.NDArray[np.float32], weights: ResourceWeights, load_manager: LoadManager) -> FloatArray:
    factors = np.array(
        [weights.cpu, weights.memory, weights.direct_memory, weights.bandwidth_in, weights.bandwidth_out]
    )
    terms = percents.astype(np.float64) * factors[:, np.newaxis]
    if load_manager is LoadManager.MODULAR:
        terms[1] = -np.inf  # heap memory is no term at all
    return np.where(np.isnan(terms), -np.inf, terms)


@once
def weighted_usage(brokers: BrokerTable, config: Settings, load_manager: LoadManager) -> FloatArray:
    """Return W of each broker: the largest weighted percentage over its resources, divided by 100 in double.

    Heap memory counts in the extensible load manager only. NaN terms are skipped; all NaN gives -inf. Shape (brokers,).
    """
    terms = _terms(usage_percent_by_resource(brokers), ResourceWeights.of(config, load_manager), load_manager)
    return frozen(terms.max(axis=0, initial=-np.inf) / 100)


def overload_usage(brokers: BrokerTable, config: Settings) -> FloatArray:
    """Return the usage by which the modular load manager calls a broker overloaded. Shape (brokers,)."""
    if config.release.has(UNWEIGHTED):
        return max_usage(brokers, LoadManager.MODULAR)
    return weighted_usage(brokers, config, LoadManager.MODULAR)


def deciding_resource(brokers: BrokerTable, config: Settings, load_manager: LoadManager) -> tuple[str, ...]:
    """Return which resource decides W of each broker, as in `RESOURCES`; the first in Java's order wins a tie."""
    if not len(brokers):
        return ()
    terms = _terms(usage_percent_by_resource(brokers), ResourceWeights.of(config, load_manager), load_manager)
    return tuple(RESOURCES[i] for i in terms.argmax(axis=0).tolist())


@once
def max_usage(brokers: BrokerTable, load_manager: LoadManager) -> FloatArray:
    """Return `maxResourceUsage` of each broker: unweighted, without heap memory. Shape (brokers,).

    `LocalBrokerData` (modular) divides by 100 in single precision, `BrokerLoadData` (extensible) in double.
    """
    direct = usage_percent_by_resource(brokers)[[0, 2, 3, 4]]
    top = np.where(np.isnan(direct), np.float32(-np.inf), direct).max(axis=0, initial=np.float32(-np.inf))
    single = load_manager is LoadManager.MODULAR
    return frozen((top / np.float32(100)).astype(np.float64) if single else top.astype(np.float64) / 100)


def uncounted_usage(brokers: BrokerTable, config: Settings, load_manager: LoadManager) -> FloatArray:
    """Return how much CPU or network each broker uses that counts for less than it is. Shape (brokers,).

    1.0 = 100 %; -inf where the weights of all three are 1 or more. Not a rule of Pulsar: a machine is as full as it is,
    whatever the weights say. Memory is left out, as brokers fill it by their own rules.
    """
    weights = ResourceWeights.of(config, load_manager)
    factors = ((0, weights.cpu), (3, weights.bandwidth_in), (4, weights.bandwidth_out))
    light = [row for row, factor in factors if factor < 1]
    if not light:
        return np.full(len(brokers), -np.inf)
    rows = usage_percent_by_resource(brokers)[light].astype(np.float64) / 100
    top: FloatArray = np.where(np.isnan(rows), -np.inf, rows).max(axis=0, initial=-np.inf)
    return top
