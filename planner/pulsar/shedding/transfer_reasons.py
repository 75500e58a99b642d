"""Why TransferShedder sheds a bundle or keeps it: the reasons of `planner.pulsar.shedding.transfer`."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.decisions import ReasonBlock, ReasonCode, ReasonLog, block

CYCLE_COOLING = ReasonCode(
    "transfer.cycle_cooling_down", "the whole cycle is skipped: {other} unloaded bundles too recently"
)
COOLING = ReasonCode(
    "transfer.cooling_down",
    "its load data is from {since_s:.1f} s after it unloaded bundles, less than {delay_s:.0f} s: the whole cycle is "
    "skipped",
)
OUTDATED = ReasonCode(
    "transfer.outdated", "its load data is {age_s:.0f} s old, more than {ttl_s:.0f} s: left out of the average"
)
CYCLE_OUTDATED = ReasonCode("transfer.cycle_outdated", "the cycle is skipped: no broker has recent load data")
CYCLE_NO_BROKERS = ReasonCode("transfer.no_brokers", "the cycle is skipped: no broker has load data")
NO_DATA = ReasonCode("transfer.no_load_data", "registered, but it has no load data: the whole cycle is skipped")
CYCLE_NO_DATA = ReasonCode("transfer.cycle_no_load_data", "the whole cycle is skipped: {other} has no load data")
UNKNOWN = ReasonCode("transfer.unknown", "not registered and without load data: not considered")
HOLDS = ReasonCode(
    "transfer.balanced",
    (
        "load {load_percent:.1f} %: the deviation {std_percent:.1f} % is not above {target_percent:.1f} %, "
        "the lowest broker is not underloaded, and the highest is not overloaded"
    ),
)
HIT_COUNT = ReasonCode(
    "transfer.hit_count",
    ("load {load_percent:.1f} %: shedding was due in {hits:.0f} cycles in a row; more than {threshold:.0f} are needed"),
)
NOT_REACHED = ReasonCode(
    "transfer.pair_limit", "load {load_percent:.1f} %: not reached; {pairs:.0f} pairs were shed, the maximum per cycle"
)
MET = ReasonCode(
    "transfer.between", "load {load_percent:.1f} %: the other brokers are paired, so no partner is left for it"
)
SETTLED = ReasonCode(
    "transfer.settled",
    (
        "load {load_percent:.1f} %: not reached; the chosen moves lower the deviation to {std_percent:.1f} "
        "%, and no broker is over- or underloaded"
    ),
)
DONOR = ReasonCode(
    "transfer.donor",
    ("load {load_percent:.1f} %, paired with {other}: {moved_mib_per_s:.1f} of {wanted_mib_per_s:.1f} MiB/s leave"),
    acts=True,
)
RECEIVER = ReasonCode(
    "transfer.receiver", "load {load_percent:.1f} %, paired with {other}: takes {moved_mib_per_s:.1f} MiB/s", acts=True
)
CONSUMED = ReasonCode(
    "transfer.counterpart",
    (
        "load {load_percent:.1f} %, paired with {other}: without loadBalancerTransferEnabled, the next "
        "lookup places {moved_mib_per_s:.1f} MiB/s, not necessarily here"
    ),
)
DONOR_EMPTY = ReasonCode("transfer.no_top_bundles", "load {load_percent:.1f} %: it reports no top bundles")
DONOR_SINGLE = ReasonCode("transfer.single_bundle", "load {load_percent:.1f} %: it reports a single top bundle")
DONOR_NOTHING = ReasonCode(
    "transfer.nothing_movable",
    (
        "load {load_percent:.1f} %, paired with {other}: {wanted_mib_per_s:.1f} MiB/s should leave, but no "
        "top bundle can move"
    ),
)
RECEIVER_NOTHING = ReasonCode(
    "transfer.receives_nothing", "load {load_percent:.1f} %: lowest broker, but nothing could move to it"
)

OVERLOADED = ReasonCode(
    "transfer.overloaded",
    (
        "{throughput_mib_per_s:.1f} MiB/s leave {broker} because of overload; {marked_mib_per_s:.1f} of "
        "{wanted_mib_per_s:.1f} MiB/s are now chosen"
    ),
    acts=True,
)
UNDERLOADED = ReasonCode(
    "transfer.underloaded",
    (
        "{throughput_mib_per_s:.1f} MiB/s leave {broker} because {other} is underloaded; "
        "{marked_mib_per_s:.1f} of {wanted_mib_per_s:.1f} MiB/s are now chosen"
    ),
    acts=True,
)
SWAP_OVERLOADED = ReasonCode(
    "transfer.swap_overloaded",
    "{throughput_mib_per_s:.1f} MiB/s go back to {other} in exchange, because of overload",
    acts=True,
)
SWAP_UNDERLOADED = ReasonCode(
    "transfer.swap_underloaded",
    "{throughput_mib_per_s:.1f} MiB/s go back to {other} in exchange, because {broker} is underloaded",
    acts=True,
)
MOVES = {
    ("Overloaded", False): OVERLOADED,
    ("Overloaded", True): SWAP_OVERLOADED,
    ("Underloaded", False): UNDERLOADED,
    ("Underloaded", True): SWAP_UNDERLOADED,
}
UNLOAD_REASONS: Mapping[ReasonCode, str] = MappingProxyType({code: call for (call, _), code in MOVES.items()})
"""Pulsar's `UnloadDecision.Reason` for each reason of a move."""

EXCLUDED = ReasonCode("transfer.bundle_excluded", "its namespace is in loadBalancerSheddingExcludedNamespaces")
RECENT = ReasonCode(
    "transfer.bundle_recent",
    "it was unloaded {since_minutes:.1f} min ago, within the grace period of {grace_minutes:.0f} min",
)
GATED = ReasonCode(
    "transfer.bundle_policy",
    "its namespace has an isolation policy or an anti-affinity group, and "
    "loadBalancerSheddingBundlesWithPoliciesEnabled is off",
)
FILTERED = ReasonCode("transfer.bundle_filtered", "the placement filters do not allow {other} for it")
FILTER_FAILED = ReasonCode("transfer.bundle_filter_failed", "a placement filter failed")
LAST = ReasonCode("transfer.bundle_last", "last of the reported bundles: a broker keeps one")
IDLE = ReasonCode("transfer.bundle_idle", "no traffic")
TOO_BIG = ReasonCode(
    "transfer.bundle_too_big",
    (
        "its {throughput_mib_per_s:.1f} MiB/s on top of {marked_mib_per_s:.1f} exceed {wanted_mib_per_s:.1f} "
        "MiB/s, and no swap with {other} compensates for it"
    ),
)
NO_SWAP = ReasonCode(
    "transfer.bundle_no_swap",
    (
        "its {throughput_mib_per_s:.1f} MiB/s on top of {marked_mib_per_s:.1f} exceed {wanted_mib_per_s:.1f} "
        "MiB/s, and there is nothing to swap with"
    ),
)
BEHIND = ReasonCode(
    "transfer.bundle_behind", "the search stops at the first bundle that neither fits nor can be swapped"
)
SWAP_UNFIT = ReasonCode(
    "transfer.swap_unfit",
    ("its {throughput_mib_per_s:.1f} MiB/s in exchange would lift {other} or lower {broker} beyond where they started"),
)
SWAP_VAIN = ReasonCode(
    "transfer.swap_in_vain", "considered in exchange ({throughput_mib_per_s:.1f} MiB/s), but no swap balanced out"
)
SWAP_SPARE = ReasonCode("transfer.swap_not_needed", "not considered in exchange")


class TransferLog(ReasonLog):
    """Collects reasons, and knows which brokers have one."""

    def __init__(self) -> None:
        super().__init__()
        self.named: set[int] = set()
        self.whole: list[ReasonBlock] = []

    def say(self, code: ReasonCode, broker: int, bundle: int = -1, other: int = -1, *values: float) -> None:
        """Give a broker, or a bundle of it, a reason; see `ReasonLog.say`."""
        super().say(code, broker, bundle, other, *values)
        if bundle < 0:
            self.named.add(broker)

    def say_rest(self, code: ReasonCode, brokers: Sequence[int], *values: FloatArray | float, other: int = -1) -> None:
        """Give the brokers that have no reason yet the same one.

        Args:
            code: Its kind.
            brokers: Positions of the brokers.
            values: Each one number for all, or one for each broker of the snapshot.
            other: A second broker that took part.
        """
        rest = np.array([broker for broker in brokers if broker not in self.named], dtype=np.int32)
        if len(rest):
            columns = [value[rest] if isinstance(value, np.ndarray) else value for value in values]
            self.whole.append(block(code, rest, values=columns, others=other))
            self.named.update(rest.tolist())

    def blocks(self) -> list[ReasonBlock]:
        """Return all reasons: those of many brokers at once first."""
        return [*self.whole, *super().blocks()]
