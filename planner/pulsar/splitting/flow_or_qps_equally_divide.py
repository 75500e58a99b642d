"""flow_or_qps_equally_divide: cuts a bundle so that no piece exceeds the rate or bandwidth limit, if topics allow.

Mirrors `FlowOrQpsEquallyDivideBundleSplitAlgorithm` of Pulsar 4.2.4. The worked examples of the public Concepts page
add hexadecimal digits as if they were decimal, omit the tolerance, and leave out the + 1 of each boundary.
"""

from itertools import pairwise

from planner.cluster.decisions import Reason, ReasonCode
from planner.cluster.names import (
    FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
)
from planner.cluster.settings import Settings
from planner.cluster.units import MIB
from planner.pulsar.splitting.protocol import SplitAnswer, SplitExample, SplitRequest

_CUT = ReasonCode(
    "flow_or_qps_equally_divide.cut",
    (
        "cut at 0x{boundary:08x}: with the topic at 0x{hash:08x}, the part before it would have "
        "{msg_rate_per_s:,.1f} of {msg_rate_limit_per_s:,.0f} msg/s and {mib_per_s:,.1f} of "
        "{mib_limit_per_s:,.0f} MiB/s"
    ),
    acts=True,
)
_FEW = ReasonCode(
    "flow_or_qps_equally_divide.too_few_topics",
    "{topics:.0f} topics, {busy:.0f} hashes with traffic; at least two of each are needed",
)
_UNKNOWN = ReasonCode("flow_or_qps_equally_divide.unknown_topics", "its topics are not listed")
_WITHIN = ReasonCode(
    "flow_or_qps_equally_divide.within_limits",
    (
        "{msg_rate_per_s:,.1f} msg/s < {msg_rate_gate_per_s:,.1f} and {mib_per_s:.2f} MiB/s < "
        "{mib_gate_per_s:.2f} (the limits plus {tolerance_percent:.0f} %)"
    ),
)
_NO_CUT = ReasonCode("flow_or_qps_equally_divide.no_cut", "no part exceeds a limit, so nothing is cut")


_DECIMAL = "The page adds hexadecimal digits as if they were decimal, and leaves out the + 1 of each boundary."


def _example(rate: int, mib: int, documented: tuple[int, ...], why: str = _DECIMAL) -> SplitExample:
    return SplitExample(
        0,
        0x80000000,
        (0x10, 0x15, 0x24, 0x39, 0x58, 0x76),
        documented,
        msg_rates_per_s=(100.0, 200.0, 300.0, 400.0, 500.0, 600.0),
        throughputs_mib_per_s=(10.0, 20.0, 30.0, 40.0, 50.0, 60.0),
        settings={NAMESPACE_BUNDLE_MAX_MSG_RATE: rate, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES: mib},
        why=why,
    )


class FlowOrQpsEquallyDivide:
    """The algorithm; its contract is `SplitAlgorithm`."""

    name = "flow_or_qps_equally_divide"
    java_class = "FlowOrQpsEquallyDivideBundleSplitAlgorithm"
    summary = "Cuts so that each part stays within the message rate and bandwidth limits of a bundle."
    settings = (
        NAMESPACE_BUNDLE_MAX_MSG_RATE,
        NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
        FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
    )
    needs_positions = False
    reads_topics = True
    reads_traffic = True
    finds_none = "it finds no position while the traffic is within its limits, or comes from one topic"
    differences: tuple[str, ...] = (
        (
            "The Concepts page shows 0x19500000, 0x31500000, 0x48500000 and 0x67000000 for its first example, as four"
            " splits one after the other; the code cuts at 0x1c800001, 0x2e800001, 0x48800001 and 0x67000001 at once."
            " The page adds hexadecimal digits as if they were decimal and leaves out the + 1."
        ),
        (
            "The page leaves out the tolerance of 10 % (flowOrQpsDifferenceThresholdPercentage): within it, "
            "nothing is split."
        ),
    )
    examples: tuple[SplitExample, ...] = (
        _example(
            450,
            200,
            (0x19500000, 0x31500000, 0x48500000, 0x67000000),
            f"{_DECIMAL} It shows four splits, one after the other; the code cuts once, into five.",
        ),
        _example(1900, 90, (0x31500000, 0x67000000)),
        _example(1100, 110, (0x48500000,)),
    )

    def boundaries(self, request: SplitRequest, config: Settings) -> SplitAnswer:
        """Answer every cut of one pass over the topics in the order of their hashes; see `SplitAlgorithm`.

        Topics are known by their hash: of two with the same one the traffic of the last counts, for both.
        """
        rate_limit = float(config.integer(NAMESPACE_BUNDLE_MAX_MSG_RATE))
        throughput_limit = float(config.integer(NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES) * MIB)
        tolerance = config.integer(FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE) / 100.0
        traffic: dict[int, tuple[float, float]] = {}
        busy: list[int] = []
        total_rate = total_throughput = 0.0
        if request.topic_hashes is None:
            return SplitAnswer(None, (_UNKNOWN.of(),))
        hashes = request.topic_hashes.tolist()
        rows = zip(
            hashes,
            request.has_stats.tolist(),
            request.msg_rate_per_s.tolist(),
            request.throughput_bytes_per_s.tolist(),
            strict=True,
        )
        for topic_hash, known, rate, throughput in rows:
            if not known or (rate <= 0 and throughput <= 0):
                continue
            busy.append(topic_hash)
            traffic[topic_hash] = (rate, throughput)
            total_rate += rate
            total_throughput += throughput
        if len(hashes) <= 1 or len(traffic) <= 1:
            return SplitAnswer(None, (_FEW.of(len(hashes), len(traffic)),))
        rate_gate, throughput_gate = rate_limit * (1 + tolerance), throughput_limit * (1 + tolerance)
        if total_rate < rate_gate and total_throughput < throughput_gate:
            numbers = (total_rate, rate_gate, total_throughput / MIB, throughput_gate / MIB, tolerance * 100)
            return SplitAnswer(None, (_WITHIN.of(*numbers),))
        return _cuts(sorted(busy), traffic, (rate_limit, throughput_limit))


def _cuts(hashes: list[int], traffic: dict[int, tuple[float, float]], limits: tuple[float, float]) -> SplitAnswer:
    rate_limit, throughput_limit = limits
    rate, throughput = traffic[hashes[0]]
    found: list[int] = []
    reasons: list[Reason] = []
    for left, right in pairwise(hashes):
        next_rate, next_throughput = traffic[right]
        rate, throughput = rate + next_rate, throughput + next_throughput
        if rate > rate_limit or throughput > throughput_limit:
            boundary = left + (right - left) // 2 + 1
            sizes = (throughput / MIB, throughput_limit / MIB)
            reasons.append(_CUT.of(boundary, right, rate, rate_limit, *sizes))
            found.append(boundary)
            rate, throughput = next_rate, next_throughput
    return SplitAnswer(tuple(found), tuple(reasons) or (_NO_CUT.of(),))


ALGORITHM = FlowOrQpsEquallyDivide()
"""The algorithm, as the registry lists it."""
