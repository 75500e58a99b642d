"""The reasons of AvgShedder, with the unit in which a pair of brokers is compared."""

from planner.cluster.decisions import ReasonCode

MIDDLE = ReasonCode("avg.middle", "score {score:.1f}: the middle broker of an odd number, paired with itself")
CLOSE = ReasonCode(
    "avg.close", "score {score:.1f}, paired with {other}: difference {difference:.1f} < {low:.0f}; counters cleared"
)
COUNTING = ReasonCode(
    "avg.counting",
    "score {score:.1f}, paired with {other}: difference {difference:.1f} >= {low:.0f}; low hits {hits_low:.0f} of"
    " {needed_low:.0f}, high hits {hits_high:.0f} of {needed_high:.0f}: neither broker has enough",
)
TOO_LITTLE = ReasonCode(
    "avg.below_minimum",
    (
        "score {score:.1f}, paired with {other}, hit often enough, but the share of the difference to move "
        "is too small: {msg_per_s:.0f} msg/s <= {min_msg_per_s:.0f} and {mib_per_s:.2f} <= "
        "{min_mib_per_s:.2f} MiB/s"
    ),
)
NO_FIT = ReasonCode(
    "avg.no_candidate",
    "score {score:.1f}, paired with {other}, hit often enough, but no bundle fits: at most {quota:.0f} msg/s may move",
)
NO_FIT_BY_SIZE = ReasonCode(
    "avg.throughput_no_candidate",
    "score {score:.1f}, paired with {other}, hit often enough, but no bundle fits: at most {quota:.2f} MiB/s may move",
)
DONOR = ReasonCode(
    "avg.donor",
    "score {score:.1f}, {difference:.1f} above {other}, hit often enough: up to {quota:.0f} msg/s move there",
    acts=True,
)
DONOR_BY_SIZE = ReasonCode(
    "avg.throughput_donor",
    "score {score:.1f}, {difference:.1f} above {other}, hit often enough: up to {quota:.2f} MiB/s move there",
    acts=True,
)
RECEIVER = ReasonCode(
    "avg.receiver", "score {score:.1f}, {difference:.1f} below {other}: receives bundles from it", acts=True
)
TAKEN = ReasonCode(
    "avg.bundle_taken", "{value:.1f} msg/s fits into the {left:.1f} msg/s left to move to {other}", acts=True
)
TOO_BIG = ReasonCode("avg.bundle_too_big", "{value:.1f} msg/s is more than the {left:.1f} msg/s left to move")
EMPTY = ReasonCode("avg.bundle_without_traffic", "{value:.1f} msg/s: nothing to move")
TAKEN_BY_SIZE = ReasonCode(
    "avg.throughput_bundle_taken", "{value:.2f} MiB/s fits into the {left:.2f} MiB/s left to move to {other}", acts=True
)
TOO_BIG_BY_SIZE = ReasonCode(
    "avg.throughput_bundle_too_big", "{value:.2f} MiB/s is more than the {left:.2f} MiB/s left to move"
)
EMPTY_BY_SIZE = ReasonCode("avg.throughput_bundle_without_traffic", "{value:.2f} MiB/s: nothing to move")
BY_SIZE = {
    NO_FIT: NO_FIT_BY_SIZE,
    DONOR: DONOR_BY_SIZE,
    TAKEN: TAKEN_BY_SIZE,
    TOO_BIG: TOO_BIG_BY_SIZE,
    EMPTY: EMPTY_BY_SIZE,
}
"""Reasons where a pair is compared by message rate, and the same in MiB/s where it is by throughput."""


UNSORTED = ReasonCode(
    "avg.unsorted", "score {score:.1f}: Pulsar fails to sort the brokers, because it compares only whole points"
)
