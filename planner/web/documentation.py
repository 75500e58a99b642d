"""Where the public documentation says something else than Pulsar 4.2.4 does."""

from collections.abc import Mapping

__all__ = ["SHEDDING_DIFFERENCES", "SPLIT_DIFFERENCES"]

SHEDDING_DIFFERENCES: Mapping[str, tuple[str, ...]] = {
    "ThresholdShedder": (
        (
            "The Concepts page says that a broker is brought 5 % below the average of the cluster. The code aims at the"
            " average plus the threshold less 5 points, as a share of the broker's throughput."
        ),
        (
            "The Concepts page says a broker sheds when its usage is greater than the average plus the threshold; the"
            " code sheds when it is equal as well."
        ),
        (
            "Heap memory never counts, and direct memory has weight 0 by default; the documents list memory among the"
            " resources."
        ),
    ),
    "OverloadShedder": (
        (
            "The description of the class says exactly one bundle by message rate; the code takes as many as make up"
            " the excess, by throughput."
        ),
        "A broker at exactly the threshold is overloaded for shedding, though not for placement.",
    ),
    "UniformLoadShedder": (
        "Message rate has priority: when it triggers but too little would move, throughput is not tried in that cycle.",
    ),
    "AvgShedder": (
        "The Concepts page says that the difference must exceed the threshold; in the code equality is enough.",
        "The worked example of the Concepts page, 250 msg/s, moves nothing with the default minUnloadMessage of 1000.",
        "Hits are counted for each broker, not for the pair, and high hits count as low hits too.",
    ),
    "TransferShedder": (
        (
            "The documents say that no broker has 0 traffic; the code compares the throughput average with 12.5 % of"
            " the highest-loaded broker's."
        ),
        "Shedding starts in the fourth cycle in a row by default, with at most three pairs of brokers in a cycle.",
        "Top bundles are tried from the smallest of the report on, not from the largest.",
    ),
}
"""By strategy."""

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
