"""What a broker of a simulated cluster measures, and by what it decides whether to report.

Mirrors `ModularLoadManagerImpl.needBrokerDataUpdate` and `BrokerLoadDataReporter.needBrokerDataUpdate` of Pulsar 4.2.4.
"""

from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import FloatArray, IntArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.once import once
from planner.cluster.settings import Settings
from planner.cluster.tables import BrokerTable
from planner.pulsar.load.usage import max_usage, weighted_usage


@dataclass(frozen=True, eq=False, slots=True)
class ReportInputs:
    """What there is to measure, for as long as nothing changes.

    Attributes:
        traffic: Traffic of each bundle, rows as `TRAFFIC_COLUMNS`. Shape (4, bundles).
        counts: The same of `COUNT_COLUMNS`. Shape (3, bundles).
        owner: Owner of each bundle, -1 if unowned. Shape (bundles,).
        totals: What the bundles of each broker sum up to: traffic, counts, then bundles. Shape (8, brokers).
        usage: How much of its machine each broker uses, as it compares it with its last report. Shape (brokers,).
    """

    traffic: FloatArray
    counts: FloatArray
    owner: IntArray
    totals: FloatArray
    usage: FloatArray


def reported_usage(brokers: BrokerTable, config: Settings, manager: LoadManager) -> FloatArray:
    """Return how much of its machine each broker uses, as it compares it with its last report. Shape (brokers,)."""
    extensible = manager is LoadManager.EXTENSIBLE
    return max_usage(brokers, manager) if extensible else weighted_usage(brokers, config, manager)


@once
def compared(brokers: BrokerTable, config: Settings, manager: LoadManager) -> FloatArray:
    """Return what is compared with reports: usage, message rate, throughput and bundles of each. Shape (4, brokers)."""
    rate, throughput = brokers.msg_rate_per_s(), brokers.throughput_bytes_per_s()
    return frozen(np.array([reported_usage(brokers, config, manager), rate, throughput, brokers.reported_bundles]))


def percent_changed(was: FloatArray, now: FloatArray) -> FloatArray:
    """Return by how many percent numbers changed; infinitely from nothing, not at all from nothing to nothing.

    Shape as given.
    """
    change = np.abs(was - now) * 100
    changed: FloatArray = np.divide(change, was, out=np.where(change > 0, np.inf, 0.0), where=was != 0)
    return changed
