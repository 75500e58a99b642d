"""AvgShedder: pairs the busiest with the least busy brokers and evens out each pair whose scores stay apart.

Mirrors `AvgShedder` of Pulsar 4.2.4 as a shedding strategy; as a placement strategy see `planner.placement.avg`. Both
must be configured together. Its bindings are part of the state here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.model.arrays import FloatArray, Int64Array
from planner.model.decisions import Line, Move, Reason, ReasonBlock, ReasonCode, SheddingDecision, block
from planner.model.hashing import hash_map_order, hash_map_size
from planner.model.memory import SheddingMemory
from planner.model.settings import Settings
from planner.model.snapshot import LoadManager, Snapshot
from planner.model.usage import weighted_usage
from planner.placement.avg import BundleKey, bundle_key
from planner.shedding.selection import (
    MIB,
    SHARED_REASONS,
    Donors,
    active_brokers,
    broker_msg_rate,
    broker_throughput,
    bundle_msg_rate,
    bundle_throughput,
    move,
    rank_donors,
)

__all__ = ["SHEDDER", "AvgShedder", "AvgState", "Pair", "pair_brokers"]

_MIDDLE = ReasonCode("avg.middle", "score {score:.1f}: the middle broker of an odd number, paired with itself")
_CLOSE = ReasonCode(
    "avg.close", "score {score:.1f}, paired with {other}: difference {difference:.1f} < {low:.0f}; counters cleared"
)
_COUNTING = ReasonCode(
    "avg.counting",
    "score {score:.1f}, paired with {other}: difference {difference:.1f} >= {low:.0f}; low hits {hits_low:.0f} of"
    " {needed_low:.0f}, high hits {hits_high:.0f} of {needed_high:.0f}: neither broker has enough",
)
_TOO_LITTLE = ReasonCode(
    "avg.below_minimum",
    "score {score:.1f}, paired with {other}, hit often enough, but the share of the difference that would move is too"
    " little: {msg_per_s:.0f} msg/s <= {min_msg_per_s:.0f} and {mib_per_s:.3f} <= {min_mib_per_s:.3f} MiB/s",
)
_NO_FIT = ReasonCode(
    "avg.no_candidate",
    "score {score:.1f}, paired with {other}, hit often enough, but no bundle fits into the {quota:.0f} that may move",
)
_DONOR = ReasonCode(
    "avg.donor",
    "score {score:.1f}, {difference:.1f} above {other}, hit often enough: up to {quota:.0f} per second move there",
    acts=True,
)
_RECEIVER = ReasonCode(
    "avg.receiver", "score {score:.1f}, {difference:.1f} below {other}: gets bundles from there", acts=True
)
_TAKEN = ReasonCode(
    "avg.bundle_taken", "{value:.1f} per second fits into the {left:.1f} that are left to move to {other}", acts=True
)
_TOO_BIG = ReasonCode("avg.bundle_too_big", "{value:.1f} per second is more than the {left:.1f} that are left to move")
_EMPTY = ReasonCode("avg.bundle_without_traffic", "{value:.1f} per second: nothing to move")


@dataclass(frozen=True, slots=True)
class AvgState:
    """What the strategy remembers.

    Attributes:
        hits_high: Cycles in a row, by broker, in which its pair was at least the high threshold apart.
        hits_low: The same for the low threshold; high hits count here too. Brokers that left keep their counters, as in
            Pulsar, until a cycle finds no pair apart.
        broker: Broker that a shed bundle is bound to, by the value of its averages.
        most_brokers: Most brokers of any cycle so far. Pulsar's map of scores, whose order decides between equal ones,
            keeps the size it grew to.
    """

    hits_high: Mapping[str, int] = field(default_factory=dict)
    hits_low: Mapping[str, int] = field(default_factory=dict)
    broker: Mapping[BundleKey, str] = field(default_factory=dict)
    most_brokers: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two brokers that are compared.

    Attributes:
        low: Position of the one with the lower score.
        high: Position of the one with the higher score; the same for the middle one of an odd number.
        difference: Score difference in points (0..100 and more).
    """

    low: int
    high: int
    difference: float


def pair_brokers(order: Sequence[int], scores: FloatArray) -> tuple[Pair, ...]:
    """Pair the lowest with the highest score, the second lowest with the second highest, and so on.

    Args:
        order: Broker positions in Pulsar's order, which decides between equal scores.
        scores: Score of each broker of the snapshot, in points.
    """
    ranked = sorted(order, key=lambda i: scores[i])
    pairs = ((ranked[i], ranked[-1 - i]) for i in range((len(ranked) + 1) // 2))
    return tuple(Pair(low, high, float(scores[high] - scores[low])) for low, high in pairs)


class _Counters:
    """The hit counters while a cycle runs."""

    def __init__(self, state: AvgState) -> None:
        self.high = dict(state.hits_high)
        self.low = dict(state.hits_low)

    def clear(self, *brokers: str) -> None:
        for broker in brokers:
            self.high.pop(broker, None)
            self.low.pop(broker, None)

    def hit(self, brokers: tuple[str, str], *, high: bool) -> None:
        for broker in brokers:
            self.low[broker] = self.low.get(broker, 0) + 1
            if high:
                self.high[broker] = self.high.get(broker, 0) + 1
            else:
                self.high.pop(broker, None)


class AvgShedder:
    """See the module."""

    name = "AvgShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
    load_manager = LoadManager.MODULAR
    summary = (
        "Pairs the brokers by score and, when a pair stays apart for several cycles, moves a share of its difference"
        " straight to the less loaded one. Must be the placement strategy as well."
    )
    settings = (
        "loadBalancerAvgShedderLowThreshold",
        "loadBalancerAvgShedderHighThreshold",
        "loadBalancerAvgShedderHitCountLowThreshold",
        "loadBalancerAvgShedderHitCountHighThreshold",
        "maxUnloadPercentage",
        "minUnloadMessage",
        "minUnloadMessageThroughput",
        "loadBalancerCPUResourceWeight",
        "loadBalancerDirectMemoryResourceWeight",
        "loadBalancerBandwidthInResourceWeight",
        "loadBalancerBandwidthOutResourceWeight",
        "loadBalancerBandwithInResourceWeight",
        "loadBalancerBandwithOutResourceWeight",
    )
    reasons = (
        _MIDDLE,
        _CLOSE,
        _COUNTING,
        _TOO_LITTLE,
        _NO_FIT,
        _DONOR,
        _RECEIVER,
        _TAKEN,
        _TOO_BIG,
        _EMPTY,
        *SHARED_REASONS,
    )

    def initial(self) -> AvgState:
        """Return the state of a strategy that has seen nothing."""
        return AvgState()

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings
    ) -> tuple[SheddingMemory[Any], SheddingDecision]:
        """Decide one cycle; see `Shedder`."""
        active, unknown = active_brokers(snapshot)
        names = snapshot.brokers.name
        points = weighted_usage(snapshot.brokers, config, LoadManager.MODULAR) * 100
        low = config.integer("loadBalancerAvgShedderLowThreshold")
        high = config.integer("loadBalancerAvgShedderHighThreshold")
        counters = _Counters(memory.state)
        reasons: list[ReasonBlock] = list(unknown)
        apart: list[Pair] = []
        most_brokers = max(memory.state.most_brokers, len(active))
        for pair in pair_brokers(_score_order(snapshot, active, most_brokers), points):
            if pair.low == pair.high and low > 0:
                counters.clear(names[pair.low])
                reasons.append(block(_MIDDLE, pair.low, values=(points[pair.low],)))
            elif pair.difference < low:
                counters.clear(names[pair.low], names[pair.high])
                _explain(reasons, _CLOSE, pair, points, (pair.difference, low))
            else:
                both = (names[pair.low], names[pair.high])
                counters.hit(both, high=pair.difference >= high)
                apart.append(pair)
        if not apart:
            counters = _Counters(AvgState())
        bindings = dict(memory.state.broker)
        hit = [pair for pair in apart if _hit_often_enough(snapshot, config, pair, (points, counters), reasons)]
        moves = _even_out(snapshot, memory, config, hit, (points, bindings), reasons)
        scores = np.full(len(names), np.nan)
        scores[active] = points[active] / 100
        average = float(np.mean(scores[active])) if len(active) else float("nan")
        state = AvgState(counters.high, counters.low, bindings, most_brokers)
        lines = (Line("average (not compared)", average),) if len(active) else ()
        return memory.with_state(state), SheddingDecision(tuple(moves), tuple(reasons), scores, lines)


def _score_order(snapshot: Snapshot, active: Int64Array, most_brokers: int) -> list[int]:
    """Return the brokers as the `HashMap` of their scores visits them, which gets them in the order of `active`."""
    hashes = snapshot.brokers.name_hashes[active]
    order: list[int] = active[hash_map_order(hashes, hash_map_size(most_brokers))].tolist()
    return order


def _explain(
    reasons: list[ReasonBlock], code: ReasonCode, pair: Pair, points: FloatArray, numbers: tuple[float, ...]
) -> None:
    """Add a reason for both brokers of a pair, each with its own score."""
    both = [pair.low, pair.high]
    if pair.low == pair.high:
        both = both[:1]
    reasons.append(block(code, both, values=(points[both], *numbers), others=both[::-1]))


def _hit_often_enough(
    snapshot: Snapshot,
    config: Settings,
    pair: Pair,
    work: tuple[FloatArray, _Counters],
    reasons: list[ReasonBlock],
) -> bool:
    """Say whether one broker of a pair was hit often enough; the counters of both are cleared then."""
    points, counters = work
    both = (snapshot.brokers.name[pair.low], snapshot.brokers.name[pair.high])
    needed_low = config.integer("loadBalancerAvgShedderHitCountLowThreshold")
    needed_high = config.integer("loadBalancerAvgShedderHitCountHighThreshold")
    if any(counters.high.get(b, 0) >= needed_high or counters.low.get(b, 0) >= needed_low for b in both):
        counters.clear(*both)
        return True
    low = config.integer("loadBalancerAvgShedderLowThreshold")
    hits_low = [float(counters.low.get(b, 0)) for b in both]
    hits_high = [float(counters.high.get(b, 0)) for b in both]
    numbers = (points[[pair.low, pair.high]], pair.difference, low, hits_low, needed_low, hits_high, needed_high)
    reasons.append(block(_COUNTING, [pair.low, pair.high], values=numbers, others=[pair.high, pair.low]))
    return False


def _even_out(
    snapshot: Snapshot,
    memory: SheddingMemory[Any],
    config: Settings,
    pairs: Sequence[Pair],
    work: tuple[FloatArray, dict[BundleKey, str]],
    reasons: list[ReasonBlock],
) -> list[Move]:
    """Move bundles inside each pair that fit into a share of its difference: by message rate, else by throughput."""
    points = work[0]
    share = config.number("maxUnloadPercentage")
    rate, throughput = broker_msg_rate(snapshot), broker_throughput(snapshot)
    min_rate, min_throughput = config.integer("minUnloadMessage"), config.integer("minUnloadMessageThroughput")
    by_rate: dict[Pair, float] = {}
    by_throughput: dict[Pair, float] = {}
    for pair in pairs:
        rate_quota = float(rate[pair.high] - rate[pair.low]) * share
        throughput_quota = float(throughput[pair.high] - throughput[pair.low]) * share
        if rate_quota > min_rate:
            by_rate[pair] = rate_quota
        elif throughput_quota > min_throughput:
            by_throughput[pair] = throughput_quota
        else:
            numbers = (rate_quota, min_rate, throughput_quota / MIB, min_throughput / MIB)
            _explain(reasons, _TOO_LITTLE, pair, points, numbers)
    recent = memory.recently_unloaded_bundles
    rate_donors = rank_donors(snapshot, [p.high for p in by_rate], bundle_msg_rate(snapshot), recent)
    throughput_donors = rank_donors(snapshot, [p.high for p in by_throughput], bundle_throughput(snapshot), recent)
    reasons.extend((*rate_donors.reasons, *throughput_donors.reasons))
    moves: list[Move] = []
    for pair in pairs:
        if pair in by_rate:
            moves += _move_share(snapshot, pair, by_rate[pair], rate_donors, work, reasons)
        elif pair in by_throughput:
            moves += _move_share(snapshot, pair, by_throughput[pair], throughput_donors, work, reasons)
    return moves


def _move_share(
    snapshot: Snapshot,
    pair: Pair,
    quota: float,
    donors: Donors,
    work: tuple[FloatArray, dict[BundleKey, str]],
    reasons: list[ReasonBlock],
) -> list[Move]:
    """Move the bundles of a pair that fit into what is left of the quota, largest first."""
    points, bindings = work
    source, destination = snapshot.brokers.name[pair.high], snapshot.brokers.name[pair.low]
    moves: list[Move] = []
    held: dict[ReasonCode, list[tuple[int, float, float]]] = {_TAKEN: [], _TOO_BIG: [], _EMPTY: []}
    left = quota
    for bundle, size in zip(*donors.of(pair.high), strict=True):
        if size <= 0:
            held[_EMPTY].append((bundle, size, left))
        elif size > left:
            held[_TOO_BIG].append((bundle, size, left))
        else:
            held[_TAKEN].append((bundle, size, left))
            compared = dict(zip(_TAKEN.fields, (size, left), strict=True))
            reason = Reason(_TAKEN, source, snapshot.bundle_names[bundle], compared, destination)
            moves.append(move(snapshot, bundle, reason, destination))
            bindings[bundle_key(snapshot, bundle)] = destination
            left -= size
    for kind, rows in held.items():
        if rows:
            columns = list(zip(*rows, strict=True))
            values = columns[1 : 1 + len(kind.fields)]
            reasons.append(block(kind, pair.high, columns[0], values, pair.low))
    if moves:
        reasons.append(block(_DONOR, pair.high, values=(points[pair.high], pair.difference, quota), others=pair.low))
        reasons.append(block(_RECEIVER, pair.low, values=(points[pair.low], pair.difference), others=pair.high))
    else:
        _explain(reasons, _NO_FIT, pair, points, (quota,))
    return moves


SHEDDER = AvgShedder()
