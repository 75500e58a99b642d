"""What the modular shedding strategies share: which brokers and bundles they look at, and in which order.

Mirrors the stream over `LoadData.getBundleDataForLoadShedding` in `OverloadShedder`, `ThresholdShedder`,
`UniformLoadShedder` and `AvgShedder` of Pulsar 4.2.4: bundles of the broker with averages, not recently unloaded,
sorted by a value descending; equal values keep the order of the map.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.decisions import Move, ReasonBlock, ReasonCode, add_reasons, block
from planner.cluster.memory import SheddingMemory
from planner.cluster.names import SHEDDING_GRACE_PERIOD_MINUTES
from planner.cluster.positions import positions_of
from planner.cluster.releases import Release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import Term
from planner.cluster.units import MIB, MS_PER_MIN
from planner.pulsar.shedding.profile import Gate

ADDITIONAL_MARGIN = 0.05
"""Share of the traffic that is offloaded beyond the excess."""

SHORT_TERM: Term = "short_term_"
"""The traffic of bundles that the strategies see."""

NO_LOAD_DATA = ReasonCode("shedding.no_load_data", "the leader has no load report for it: not considered")
NOT_CONSIDERED = ReasonCode(
    "shedding.bundle_not_considered", "the leader keeps no averages for it, or it belongs to Pulsar itself"
)
RECENTLY_UNLOADED = ReasonCode("shedding.recently_unloaded", "unloaded {ago_min:.1f} min ago, within the grace period")


ONLY_BUNDLE = Gate("that a broker keeps its only bundle")
"""No strategy sheds the only bundle of a broker; see `Profile.gates`."""

NO_BUNDLE = Gate("that none of its bundles may leave", of_bundles=True)
"""Every bundle of a broker is held back; see `Profile.gates`."""

GRACE = Gate("the grace period of bundles unloaded shortly before", (SHEDDING_GRACE_PERIOD_MINUTES,), passes=True)
"""What was unloaded shortly before stays for a while; see `Profile.gates`."""

BUNDLE_GATES: Mapping[ReasonCode, Gate] = {
    RECENTLY_UNLOADED: GRACE,
    NOT_CONSIDERED: Gate("that the leader keeps no averages for its bundles"),
}
"""What keeps the bundles of a broker from being candidates at all; see `Profile.gates`."""


def active_brokers(snapshot: Snapshot) -> tuple[Int64Array, tuple[ReasonBlock, ...]]:
    """Return the brokers with a load report in Pulsar's order, and the reasons of the others.

    Shape (active brokers,).
    """
    order = snapshot.broker_map_order
    if snapshot.brokers.has_load_data.all():
        return order, ()
    known = snapshot.brokers.has_load_data[order]
    return order[known], (block(NO_LOAD_DATA, order[~known]),)


@dataclass(frozen=True, eq=False)
class Donors:
    """Bundles of some brokers, each broker's own sorted by value descending.

    Attributes:
        brokers: Positions of the brokers, as given.
        bundles: Candidate bundles, grouped by broker. Shape (candidates,).
        bounds: Where the candidates of each of `brokers` begin; one more at the end. Shape (brokers + 1,).
        values: Value of each candidate. Shape (candidates,).
    """

    brokers: Int64Array
    bundles: Int64Array
    bounds: Int64Array
    values: FloatArray

    @property
    def owners(self) -> Int64Array:
        """Broker of each candidate. Shape (candidates,)."""
        return np.repeat(self.brokers, np.diff(self.bounds))


def _recent(snapshot: Snapshot, recently_unloaded: Mapping[str, int]) -> BoolArray:
    recent = np.zeros(len(snapshot.bundles), dtype=np.bool_)
    if recently_unloaded:
        places = positions_of(recently_unloaded, snapshot.bundle_position)
        recent[places[places >= 0]] = True
    return recent


def _sorted(
    snapshot: Snapshot, bundles: Int64Array, group: Int64Array, values: FloatArray, release: Release
) -> Int64Array:
    """Return the order by group, then value descending, then place in the map that the strategies walk.

    Sorting by all three keys would take three times as long; few values are equal, and only those need their place,
    which the buckets of the map tell unless two of them share one. NaN is more than any number, as `Double.compare` has
    it.
    """
    values = np.where(np.isnan(values), np.inf, values)
    by_value = np.argsort(-values)
    small = np.uint16 if len(group) == 0 or group[-1] < 2**16 else np.uint32
    order = by_value[np.argsort(group[by_value].astype(small), kind="stable")]
    sorted_values, sorted_group = values[order], group[order]
    tied = np.zeros(len(order) + 1, dtype=np.bool_)
    tied[1:-1] = (sorted_values[1:] == sorted_values[:-1]) & (sorted_group[1:] == sorted_group[:-1])
    places = np.flatnonzero(tied[1:] | tied[:-1])
    equal = order[places]
    if not len(equal):
        return order
    keys = [snapshot.shedding_buckets(bundles[equal], release), -values[equal], group[equal]]
    by_keys = np.lexsort(keys)
    if np.logical_and.reduce([key[by_keys][1:] == key[by_keys][:-1] for key in keys]).any():
        keys[0] = snapshot.shedding_rank(release)[bundles[equal]]
        by_keys = np.lexsort(keys)
    order[places] = equal[by_keys]
    return order


def rank_donors(
    snapshot: Snapshot,
    brokers: Int64Array,
    value: FloatArray,
    memory: SheddingMemory[Any],
    config: Settings,
    reasons: list[ReasonBlock],
) -> Donors:
    """Sort the candidate bundles of brokers.

    Args:
        snapshot: The cluster.
        brokers: Positions of the brokers that shed. Shape (brokers,).
        value: Value of each bundle of the snapshot, larger first.
        memory: Bundles that were unloaded inside the grace period are no candidates.
        config: Settings in force.
        reasons: Gets those of the other bundles of these brokers.
    """
    if not len(brokers):
        return Donors(brokers, np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0))
    owned = [snapshot.bundles_of(b) for b in brokers.tolist()]
    bundles = np.concatenate(owned)
    group = np.repeat(np.arange(len(brokers)), [len(o) for o in owned])
    unloaded_ms = memory.recently_unloaded_bundles
    recent = _recent(snapshot, unloaded_ms)[bundles]
    unseen = ~snapshot.is_walked(config.release)[bundles]
    owner = snapshot.bundles.owner
    add_reasons(reasons, NOT_CONSIDERED, unseen, owner[bundles], bundles=bundles)
    if (recent & ~unseen).any():
        held = bundles[recent & ~unseen]
        now = snapshot.info.captured_at_ms
        ago = [(now - unloaded_ms[snapshot.bundle_names[i]]) / MS_PER_MIN for i in held.tolist()]
        reasons.append(block(RECENTLY_UNLOADED, owner[held], held, [ago]))
    if unseen.any() or recent.any():
        kept = ~unseen & ~recent
        bundles, group = bundles[kept], group[kept]
    values = value[bundles]
    order = _sorted(snapshot, bundles, group, values, config.release)
    bounds = np.searchsorted(group, np.arange(len(brokers) + 1))
    return Donors(brokers, bundles[order], bounds, values[order])


def moves_of(
    snapshot: Snapshot,
    code: ReasonCode,
    bundles: Int64Array,
    values: Sequence[FloatArray],
    destinations: Sequence[str] | None = None,
) -> list[Move]:
    """Return the moves of bundles with the traffic that the strategies see.

    Args:
        snapshot: The cluster.
        code: Why they move.
        bundles: Positions of the bundles, in the order of the moves.
        values: Numbers of the reason: for each of `code.fields`, one for each bundle.
        destinations: Where each goes to, when the strategy says so.
    """
    names = snapshot.bundle_names
    rates = snapshot.bundles.msg_rate_per_s(bundles, SHORT_TERM).tolist()
    throughputs = snapshot.bundles.throughput_bytes_per_s(bundles, SHORT_TERM).tolist()
    brokers = snapshot.brokers.name
    rows = zip(
        [names[i] for i in bundles.tolist()],
        [brokers[i] for i in snapshot.bundles.owner[bundles].tolist()],
        destinations if destinations is not None else [None] * len(bundles),
        rates,
        throughputs,
        zip(*(column.tolist() for column in values), strict=True),
        strict=True,
    )
    return [
        Move(name, source, to, rate, size, code.of(*compared, broker=source, bundle=name, other=to))
        for name, source, to, rate, size, compared in rows
    ]


def take_until(
    snapshot: Snapshot,
    memory: SheddingMemory[Any],
    config: Settings,
    brokers: Int64Array,
    required_bytes_per_s: FloatArray,
    codes: tuple[ReasonCode, ReasonCode],
    reasons: list[ReasonBlock],
) -> tuple[list[Move], BoolArray]:
    """Take of each broker the bundles with the largest throughput until the required one is reached, at least one.

    Args:
        snapshot: The cluster.
        memory: What was unloaded lately.
        config: Settings in force.
        brokers: Positions of the brokers that shed. Shape (brokers,).
        required_bytes_per_s: What shall leave each of the brokers. Shape (brokers,).
        codes: Reason of a bundle that is taken (fields: value, required, taken before it) and of one that is not needed
            any more (fields: value, required), in MiB/s.
        reasons: Gets the reasons of the bundles.

    Returns:
        The moves, and which of the brokers they are from. Shape (brokers,).
    """
    throughput = snapshot.bundles.throughput_bytes_per_s(term=SHORT_TERM)
    donors = rank_donors(snapshot, brokers, throughput, memory, config, reasons)
    values, bounds = donors.values, donors.bounds.tolist()
    before = np.zeros(len(values))
    count = np.zeros(len(brokers), dtype=np.int64)
    for at, (start, stop, needed) in enumerate(zip(bounds, bounds[1:], required_bytes_per_s.tolist(), strict=False)):
        # Java adds one by one, as `cumsum` does; subtracting sums of all would change the last bits.
        sums = np.cumsum(values[start:stop])
        before[start + 1 : stop] = sums[:-1]
        # Sums rise, but for traffic that nobody has; and nothing is less than NaN.
        short = sums < needed
        beyond = len(sums) if short.all() else int(short.argmin())
        count[at] = min(stop - start, beyond + 1)
    sizes = np.diff(donors.bounds)
    first = np.repeat(donors.bounds[:-1], sizes)
    taken = np.arange(len(values)) - first < np.repeat(count, sizes)
    required = np.repeat(required_bytes_per_s, sizes) / MIB
    owners, mib = donors.owners, values / MIB
    columns = (mib[taken], required[taken], before[taken] / MIB)
    add_reasons(reasons, codes[0], taken, owners, mib, required, before / MIB, bundles=donors.bundles)
    add_reasons(reasons, codes[1], ~taken, owners, mib, required, bundles=donors.bundles)
    return moves_of(snapshot, codes[0], donors.bundles[taken], columns), count > 0
