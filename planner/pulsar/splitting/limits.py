"""The limits above which both load managers split a bundle by themselves, and what they compare with them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.names import (
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    NAMESPACE_BUNDLE_MAX_SESSIONS,
    NAMESPACE_BUNDLE_MAX_TOPICS,
)
from planner.cluster.settings import Settings
from planner.cluster.tables import BundleTable
from planner.cluster.units import MIB

LIMITS = (
    NAMESPACE_BUNDLE_MAX_TOPICS,
    NAMESPACE_BUNDLE_MAX_SESSIONS,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
)
"""Real names of the settings with the limits, in the order in which they are compared."""


DIVISIBLE_TOPICS = 2
"""Topics from which on the modular load manager splits a bundle, which it divides between them."""


def limits_of(config: Settings) -> tuple[int, int, int, int]:
    """Return the limits in force, in the order of `LIMITS`, the bandwidth in bytes/s."""
    topics, sessions, rate, mib = (config.integer(name) for name in LIMITS)
    return topics, sessions, rate, (mib * MIB + 2**31) % 2**32 - 2**31  # multiplied as int: 2048 becomes negative


@dataclass(frozen=True, eq=False, slots=True)
class SplitLoads:
    """What is compared, of each bundle. Shape of every column: (bundles,).

    Attributes:
        topics: Topics loaded.
        sessions: Producers and consumers.
        msg_rate_per_s: Message rate in + out.
        throughput_bytes_per_s: Throughput in + out.
        limits: Those of the four, in their order and units.
    """

    topics: Int64Array
    sessions: Int64Array
    msg_rate_per_s: FloatArray
    throughput_bytes_per_s: FloatArray
    limits: tuple[int, int, int, int]

    @staticmethod
    def of(table: BundleTable, msg_rate_per_s: FloatArray, bytes_per_s: FloatArray, config: Settings) -> "SplitLoads":
        """Return what is compared with the settings in force, of bundles with these rates. Shapes (bundles,)."""
        sessions = table.consumers + table.producers
        return SplitLoads(table.topics, sessions, msg_rate_per_s, bytes_per_s, limits_of(config))

    def exceeded(self) -> npt.NDArray[np.int8]:
        """Return which limit each bundle exceeds first, 1 to 4; 0 for none. Shape (bundles,)."""
        topics, sessions, rate, bandwidth = self.limits
        above = (
            self.topics > topics,
            (self.sessions > sessions) & (sessions > 0),
            self.msg_rate_per_s > rate,
            self.throughput_bytes_per_s > bandwidth,
        )
        found = np.zeros(len(self.topics), dtype=np.int8)
        for limit in (4, 3, 2, 1):
            found[above[limit - 1]] = limit
        return found

    def may_exceed(self, share: float) -> BoolArray:
        """Return which bundles could be split if their rates were more by some share. Shape (bundles,)."""
        rate, size = (
            np.where(np.isnan(values), np.inf, values + np.abs(values) * share)
            for values in (self.msg_rate_per_s, self.throughput_bytes_per_s)
        )
        more = SplitLoads(self.topics, self.sessions, rate, size, self.limits)
        return (self.topics >= DIVISIBLE_TOPICS) & (more.exceeded() > 0)

    def numbers(self, bundles: Int64Array) -> tuple[Int64Array, Int64Array, FloatArray, FloatArray]:
        """Return what is told of bundles by position: topics, sessions, msg/s and MiB/s. Shape of each: (bundles,)."""
        mib_per_s = self.throughput_bytes_per_s[bundles] / MIB
        return self.topics[bundles], self.sessions[bundles], self.msg_rate_per_s[bundles], mib_per_s

    def compared(self, bundle: int, exceeded: int) -> tuple[float, float]:
        """Return the number of a bundle, by position, and the limit that it exceeds, as `exceeded` has it; in MiB/s."""
        number = (self.topics, self.sessions, self.msg_rate_per_s, self.throughput_bytes_per_s)[exceeded - 1][bundle]
        unit = MIB if exceeded == len(self.limits) else 1
        return float(number) / unit, self.limits[exceeded - 1] / unit
