"""Where the public documentation says something else than Pulsar 4.2.4 does."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.pulsar.splitting.protocol import SplitRequest
from planner.pulsar.splitting.registry import split_algorithm

_STEP = 0x01000000
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SplitExample:
    """A worked example of the Concepts page about broker load balancing, and what the page says comes out.

    Attributes:
        algorithm: Name of the algorithm.
        low: Lower boundary of the bundle.
        high: Its upper boundary.
        topics: Hash of each topic, in units of 0x01000000.
        msg_rates_per_s: Message rate in + out of each topic; empty when it plays no part.
        throughputs_mib_per_s: Throughput in + out of each topic; empty when it plays no part.
        settings: Limits of the example, by `broker.conf` name.
        positions: Boundaries asked for; empty when none are.
        documented: The boundaries that the page shows.
        why: Why the page is wrong; empty when it is right.
    """

    algorithm: str
    low: int
    high: int
    topics: tuple[int, ...]
    documented: tuple[int, ...]
    msg_rates_per_s: tuple[float, ...] = ()
    throughputs_mib_per_s: tuple[float, ...] = ()
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    positions: tuple[int, ...] = ()
    why: str = ""

    @property
    def limits(self) -> str:
        """The settings, as a line of Markdown."""
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())

    def computed(self) -> tuple[int, ...]:
        """Return the boundaries that Pulsar 4.2.4 finds."""
        none = (0.0,) * len(self.topics)
        request = SplitRequest(
            self.low,
            self.high,
            np.array(self.topics, dtype=np.int64) * _STEP,
            np.ones(len(self.topics), dtype=np.bool_),
            np.array(self.msg_rates_per_s or none, dtype=np.float64),
            np.array(self.throughputs_mib_per_s or none, dtype=np.float64) * _MIB,
            self.positions or None,
        )
        return split_algorithm(self.algorithm).boundaries(request, Settings(self.settings)).boundaries or ()


_FLOW = "flow_or_qps_equally_divide"
_FLOW_TOPICS = (0x10, 0x15, 0x24, 0x39, 0x58, 0x76)
_FLOW_RATES = (100.0, 200.0, 300.0, 400.0, 500.0, 600.0)
_FLOW_THROUGHPUTS = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_DECIMAL = "The page adds hexadecimal digits as if they were decimal, and leaves out the + 1 of each boundary."


def _flow(rate: int, mib: int, documented: tuple[int, ...], why: str = _DECIMAL) -> SplitExample:
    limits = {"loadBalancerNamespaceBundleMaxMsgRate": rate, "loadBalancerNamespaceBundleMaxBandwidthMbytes": mib}
    return SplitExample(_FLOW, 0, 0x80000000, _FLOW_TOPICS, documented, _FLOW_RATES, _FLOW_THROUGHPUTS, limits, why=why)


SPLIT_EXAMPLES: tuple[SplitExample, ...] = (
    SplitExample("range_equally_divide", 0, 0x80000000, (), (0x40000000,)),
    SplitExample(
        "topic_count_equally_divide",
        0,
        0x80000000,
        (0x10, 0x20, 0x35, 0x65, 0x70, 0x75),
        (0x50000000,),
        why="The middle of 0x35000000 and 0x65000000 is taken as if the digits were decimal.",
    ),
    SplitExample(
        "specified_positions_divide",
        0,
        0x40000000,
        (0x30, 0x35),
        (0x33000000,),
        positions=(0x33000000,),
    ),
    _flow(
        450,
        200,
        (0x19500000, 0x31500000, 0x48500000, 0x67000000),
        f"{_DECIMAL} It shows four splits, one after the other; the code cuts once, into five.",
    ),
    _flow(1900, 90, (0x31500000, 0x67000000)),
    _flow(1100, 110, (0x48500000,)),
)
"""The worked examples of the split algorithms; what comes out is computed when it is asked for."""

SPLIT_DIFFERENCES: Mapping[str, tuple[str, ...]] = {
    "flow_or_qps_equally_divide": (
        (
            "The Concepts page shows 0x19500000, 0x31500000, 0x48500000 and 0x67000000 for its first example, as four"
            " splits one after the other; the code cuts at 0x1c800001, 0x2e800001, 0x48800001 and 0x67000001 at once."
            " The page adds hexadecimal digits as if they were decimal and leaves out the + 1."
        ),
        "The page leaves out the tolerance of 10 % (flowOrQpsDifferenceThresholdPercentage): less splits nothing.",
    ),
    "topic_count_equally_divide": (
        "The Concepts page cuts its example at 0x50000000; the middle of 0x35000000 and 0x65000000 is 0x4d000000.",
    ),
    "range_equally_divide": (
        "The Concepts page writes both ends of a range as open; the lower end belongs to the bundle.",
    ),
}
"""By split algorithm."""
