"""What the modular shedding strategies share: which brokers and bundles they look at, and in which order.

Mirrors the stream over `LoadData.getBundleDataForLoadShedding` in `OverloadShedder`, `ThresholdShedder`,
`UniformLoadShedder` and `AvgShedder` of Pulsar 4.2.4: bundles of the broker with averages, not recently unloaded,
sorted by a value descending; equal values keep the order of the map.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.arrays import BoolArray, FloatArray, Int64Array
from planner.model.decisions import Move, Reason, ReasonBlock, ReasonCode, block
from planner.model.snapshot import Snapshot

__all__ = [
    "ADDITIONAL_MARGIN",
    "MIB",
    "NOT_CONSIDERED",
    "NO_LOAD_DATA",
    "RECENTLY_UNLOADED",
    "SHARED_REASONS",
    "Donors",
    "active_brokers",
    "broker_msg_rate",
    "broker_throughput",
    "bundle_msg_rate",
    "bundle_throughput",
    "held_bundles",
    "move",
    "rank_donors",
    "reported_bundles",
    "take_until",
]

MIB = 1024 * 1024
ADDITIONAL_MARGIN = 0.05
"""Share of the traffic that is offloaded beyond the excess."""

NO_LOAD_DATA = ReasonCode("shedding.no_load_data", "the leader has no load report of it: not considered")
NOT_CONSIDERED = ReasonCode(
    "shedding.bundle_not_considered", "the leader keeps no averages of it, or it belongs to Pulsar itself"
)
RECENTLY_UNLOADED = ReasonCode("shedding.recently_unloaded", "unloaded {ago_min:.1f} min ago, inside the grace period")
SHARED_REASONS = (NO_LOAD_DATA, NOT_CONSIDERED, RECENTLY_UNLOADED)


def active_brokers(snapshot: Snapshot) -> tuple[Int64Array, tuple[ReasonBlock, ...]]:
    """Return the brokers with a load report in Pulsar's order, and the reasons of the others."""
    order = snapshot.brokers.map_order
    if snapshot.brokers.has_load_data.all():
        return order, ()
    known = snapshot.brokers.has_load_data[order]
    return order[known], (block(NO_LOAD_DATA, order[~known].astype(np.int32)),)


def broker_throughput(snapshot: Snapshot) -> FloatArray:
    """Return throughput in + out of each broker, bytes/s."""
    table = snapshot.brokers
    return table.msg_throughput_in_bytes_per_s + table.msg_throughput_out_bytes_per_s


def broker_msg_rate(snapshot: Snapshot) -> FloatArray:
    """Return message rate in + out of each broker, msg/s."""
    return snapshot.brokers.msg_rate_in_per_s + snapshot.brokers.msg_rate_out_per_s


def bundle_throughput(snapshot: Snapshot) -> FloatArray:
    """Return short-term throughput in + out of each bundle, bytes/s."""
    table = snapshot.bundles
    return table.short_term_msg_throughput_in_bytes_per_s + table.short_term_msg_throughput_out_bytes_per_s


def bundle_msg_rate(snapshot: Snapshot) -> FloatArray:
    """Return short-term message rate in + out of each bundle, msg/s."""
    return snapshot.bundles.short_term_msg_rate_in_per_s + snapshot.bundles.short_term_msg_rate_out_per_s


def reported_bundles(snapshot: Snapshot) -> Int64Array:
    """Return how many bundles each broker reports: its own count where known, else how many it owns."""
    reported = snapshot.brokers.reported_bundles
    return np.where(reported >= 0, reported, snapshot.bundle_counts())


@dataclass(frozen=True, eq=False)
class Donors:
    """Bundles of some brokers, each broker's own sorted by value descending.

    Attributes:
        bundles: Candidate bundles, grouped by broker. Shape (candidates,).
        starts: Where the candidates of each broker begin, by broker position; one more at the end.
        values: Value of each candidate. Shape (candidates,).
        reasons: Why the other bundles of these brokers are no candidates.
    """

    bundles: Int64Array
    starts: Mapping[int, tuple[int, int]]
    values: FloatArray
    reasons: tuple[ReasonBlock, ...]

    def of(self, broker: int) -> tuple[list[int], list[float]]:
        """Return bundles and values of one broker, as plain lists for a walk in Java's order."""
        start, stop = self.starts[broker]
        return self.bundles[start:stop].tolist(), self.values[start:stop].tolist()


def _recent(snapshot: Snapshot, recently_unloaded: Mapping[str, int]) -> BoolArray:
    recent = np.zeros(len(snapshot.bundles), dtype=np.bool_)
    if recently_unloaded:
        position = snapshot.bundle_position
        recent[[position[name] for name in recently_unloaded if name in position]] = True
    return recent


def rank_donors(
    snapshot: Snapshot, brokers: Sequence[int], value: FloatArray, recently_unloaded: Mapping[str, int]
) -> Donors:
    """Sort the candidate bundles of brokers.

    Args:
        snapshot: The cluster.
        brokers: Positions of the brokers that shed.
        value: Value of each bundle of the snapshot, larger first.
        recently_unloaded: Bundles inside the grace period, to the moment they were unloaded.
    """
    if not len(brokers):
        return Donors(np.zeros(0, np.int64), {}, np.zeros(0), ())
    owned = [snapshot.bundles_of(b) for b in brokers]
    bundles = np.concatenate(owned)
    group = np.repeat(np.arange(len(brokers)), [len(o) for o in owned])
    recent = _recent(snapshot, recently_unloaded)[bundles]
    unseen = snapshot.shedding_rank[bundles] < 0
    reasons: list[ReasonBlock] = []
    owner = snapshot.bundles.owner
    if unseen.any():
        reasons.append(block(NOT_CONSIDERED, owner[bundles[unseen]], bundles[unseen].astype(np.int32)))
    if (recent & ~unseen).any():
        held = bundles[recent & ~unseen]
        now = snapshot.info.captured_at_ms
        ago = [(now - recently_unloaded[snapshot.bundle_names[i]]) / 60_000 for i in held.tolist()]
        reasons.append(block(RECENTLY_UNLOADED, owner[held], held.astype(np.int32), [ago]))
    kept = ~unseen & ~recent
    bundles, group = bundles[kept], group[kept]
    values = value[bundles]
    order = np.lexsort((snapshot.shedding_rank[bundles], -values, group))
    bounds = np.searchsorted(group[order], np.arange(len(brokers) + 1))
    starts = {b: (int(bounds[i]), int(bounds[i + 1])) for i, b in enumerate(brokers)}
    return Donors(bundles[order], starts, values[order], tuple(reasons))


def held_bundles(
    code: ReasonCode, broker: int, bundles: Sequence[int], *values: Sequence[float] | FloatArray | float
) -> ReasonBlock:
    """Return why bundles of one broker stay."""
    return block(code, broker, np.asarray(bundles, dtype=np.int32), values)


def move(snapshot: Snapshot, bundle: int, reason: Reason, destination: str | None = None) -> Move:
    """Return the move of a bundle with the traffic that the strategies see."""
    table = snapshot.bundles
    rate = table.short_term_msg_rate_in_per_s[bundle] + table.short_term_msg_rate_out_per_s[bundle]
    throughput = (
        table.short_term_msg_throughput_in_bytes_per_s[bundle] + table.short_term_msg_throughput_out_bytes_per_s[bundle]
    )
    source = snapshot.brokers.name[table.owner[bundle]]
    return Move(snapshot.bundle_names[bundle], source, destination, float(rate), float(throughput), reason)


def take_until(
    snapshot: Snapshot,
    donors: Donors,
    broker: int,
    required_bytes_per_s: float,
    codes: tuple[ReasonCode, ReasonCode],
    reasons: list[ReasonBlock],
) -> list[Move]:
    """Take the bundles with the largest throughput until the required one is reached, at least one.

    Args:
        snapshot: The cluster.
        donors: Candidates, ranked by throughput.
        broker: Position of the broker that sheds.
        required_bytes_per_s: What shall leave.
        codes: Reason of a bundle that is taken (fields: value, taken before it, required) and of one that is not needed
            any more (fields: value, required), in MiB/s.
        reasons: Gets the reasons of the bundles.
    """
    taken_code, enough_code = codes
    bundles, values = donors.of(broker)
    moves: list[Move] = []
    before: list[float] = []
    name = snapshot.brokers.name[broker]
    taken = 0.0
    for bundle, value in zip(bundles, values, strict=True):
        if taken >= required_bytes_per_s and moves:
            break
        numbers = (value / MIB, taken / MIB, required_bytes_per_s / MIB)
        compared = dict(zip(taken_code.fields, numbers, strict=True))
        moves.append(move(snapshot, bundle, Reason(taken_code, name, snapshot.bundle_names[bundle], compared)))
        before.append(taken / MIB)
        taken += value
    size = len(moves)
    if moves:
        chosen = np.array(values[:size]) / MIB
        reasons.append(held_bundles(taken_code, broker, bundles[:size], chosen, before, required_bytes_per_s / MIB))
    if size < len(bundles):
        rest = np.array(values[size:]) / MIB
        reasons.append(held_bundles(enough_code, broker, bundles[size:], rest, required_bytes_per_s / MIB))
    return moves
