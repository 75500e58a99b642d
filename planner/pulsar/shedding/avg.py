"""AvgShedder: pairs the busiest with the least busy brokers and evens out each pair whose scores stay apart.

Mirrors `AvgShedder` of Pulsar 4.2.4 as a shedding strategy; as a placement strategy see `planner.pulsar.placement.avg`.
Both must be configured together. Its bindings are part of the state here.
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.decisions import Line, Move, ReasonBlock, ReasonCode, SheddingDecision, add_reasons, block
from planner.cluster.hashing import hash_map_order, hash_map_size
from planner.cluster.java import ContradictoryOrderError, tim_sort, to_int
from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.names import MAX_UNLOAD_PERCENTAGE, MIN_UNLOAD_MESSAGE, MIN_UNLOAD_MESSAGE_THROUGHPUT
from planner.cluster.releases import Release, Switch
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB
from planner.pulsar.load.usage import USAGE_WEIGHTS, weighted_usage
from planner.pulsar.placement.avg import PLANNED_DESTINATIONS, BundleKey, bundle_keys
from planner.pulsar.shedding.avg_held_back import held_back
from planner.pulsar.shedding.avg_reasons import (
    BY_SIZE,
    CLOSE,
    COUNTING,
    DONOR,
    DONOR_BY_SIZE,
    EMPTY,
    MIDDLE,
    NO_FIT,
    NO_FIT_BY_SIZE,
    RECEIVER,
    TAKEN,
    TAKEN_BY_SIZE,
    TOO_BIG,
    TOO_LITTLE,
    UNSORTED,
)
from planner.pulsar.shedding.needs import MESSAGE_RATES, THROUGHPUT, USAGE
from planner.pulsar.shedding.profile import Counters, Gate, NeverReached, Profile, Remedy, Tally
from planner.pulsar.shedding.selection import (
    BUNDLE_GATES,
    SHORT_TERM,
    Donors,
    active_brokers,
    moves_of,
    rank_donors,
)

_AVG_SHEDDER_HIGH_THRESHOLD = "loadBalancerAvgShedderHighThreshold"
_AVG_SHEDDER_HIT_COUNT_HIGH_THRESHOLD = "loadBalancerAvgShedderHitCountHighThreshold"
_AVG_SHEDDER_HIT_COUNT_LOW_THRESHOLD = "loadBalancerAvgShedderHitCountLowThreshold"
_AVG_SHEDDER_LOW_THRESHOLD = "loadBalancerAvgShedderLowThreshold"


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


WHOLE_POINTS = Switch(
    "AvgShedder compares scores in whole points and treats brokers less than one point apart as equal, "
    "which is inconsistent. With 32 or more brokers, the sort may detect this, and the cycle fails.",
    until="4.0.8",
)

ABSENT = Switch(
    "There is no AvgShedder. As shedding strategy, it is replaced by OverloadShedder; as placement "
    "strategy, it keeps the load manager from starting. If it is chosen anyway, the simulation runs as "
    "if it existed.",
    until="3.3.2",
    backported=("3.0.7",),
)


def _ranked(order: Int64Array, scores: FloatArray, release: Release) -> Int64Array:
    """Return brokers by score ascending.

    Raises:
        ContradictoryOrderError: See `WHOLE_POINTS`.
    """
    if release.has(WHOLE_POINTS):
        points = scores.tolist()
        found = tim_sort(order.tolist(), lambda one, other: to_int(points[one] - points[other]))
        return np.array(found, dtype=np.int64)
    return order[np.argsort(scores[order], kind="stable")]


def _paired(ranked: Int64Array) -> tuple[Int64Array, Int64Array]:
    half = (len(ranked) + 1) // 2
    return ranked[:half], ranked[::-1][:half]


@dataclass(frozen=True, eq=False, slots=True)
class _Pairs:
    """Pairs of brokers, as columns. Shape of each: (pairs,).

    Attributes:
        names: Broker ids of the snapshot.
        points: Score of each broker of the snapshot.
        low: Position of the one with the lower score.
        high: Position of the one with the higher score.
        difference: Score difference in points.
    """

    names: tuple[str, ...]
    points: FloatArray
    low: Int64Array
    high: Int64Array
    difference: FloatArray

    @staticmethod
    def of(snapshot: Snapshot, ranked: Int64Array, points: FloatArray) -> "_Pairs":
        low, high = _paired(ranked)
        return _Pairs(snapshot.brokers.name, points, low, high, points[high] - points[low])

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, which: BoolArray) -> "_Pairs":
        return _Pairs(self.names, self.points, self.low[which], self.high[which], self.difference[which])

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield the ids of both brokers of each pair."""
        names = self.names
        return ((names[low], names[high]) for low, high in zip(self.low.tolist(), self.high.tolist(), strict=True))

    def add_reasons(self, reasons: list[ReasonBlock], code: ReasonCode, *numbers: FloatArray | float) -> None:
        """Add a reason for both brokers of each pair, each with its own score; the middle one has no partner.

        Args:
            reasons: Gets the reasons.
            code: Their kind.
            numbers: The fields after the score: one number for all, one for each pair, or one for each broker.
        """
        if not len(self):
            return
        both, others = np.stack((self.low, self.high), axis=1), np.stack((self.high, self.low), axis=1)
        once = np.ones(both.shape, dtype=np.bool_)
        once[self.low == self.high, 1] = False
        columns = []
        for number in numbers:
            column = np.asarray(number, dtype=np.float64)
            each = column if column.ndim == both.ndim else column[..., np.newaxis]
            columns.append(np.broadcast_to(each, both.shape)[once])
        alone = not code.template.count("{other}")
        partners: Int64Array | int = -1 if alone else others[once]
        reasons.append(block(code, both[once], values=(self.points[both[once]], *columns), others=partners))


class _Counters:
    """The hit counters while a cycle runs."""

    def __init__(self, state: AvgState) -> None:
        self.high = dict(state.hits_high)
        self.low = dict(state.hits_low)

    def clear(self, *brokers: str) -> None:
        for broker in brokers:
            self.high.pop(broker, None)
            self.low.pop(broker, None)

    def count(self, pairs: _Pairs, low: float, high: float) -> BoolArray:
        """Count the hits of one cycle; return which pairs are apart. Nobody keeps a counter when none is.

        Shape (pairs,).
        """
        apart = pairs.difference >= low
        far = pairs.difference >= high
        for both, hit, more in zip(pairs.named(), apart.tolist(), far.tolist(), strict=True):
            if not hit:
                self.clear(*both)
                continue
            for broker in both:
                self.low[broker] = self.low.get(broker, 0) + 1
                if more:
                    self.high[broker] = self.high.get(broker, 0) + 1
                else:
                    self.high.pop(broker, None)
        if not apart.any():
            self.high, self.low = {}, {}
        return apart

    def fire(self, pairs: _Pairs, low: float, needed: tuple[float, float], reasons: list[ReasonBlock]) -> BoolArray:
        """Return which pairs have a broker that was hit often enough, whose counters are cleared. Shape (pairs,).

        Args:
            pairs: Those that are apart.
            low: The low threshold.
            needed: Low and high hits that are enough.
            reasons: Gets those of the other pairs.
        """
        fired = np.zeros(len(pairs), dtype=np.bool_)
        hits: list[tuple[list[int], list[int]]] = []
        for at, both in enumerate(pairs.named()):
            hits_low, hits_high = [self.low.get(b, 0) for b in both], [self.high.get(b, 0) for b in both]
            if max(hits_low) >= needed[0] or max(hits_high) >= needed[1]:
                fired[at] = True
                self.clear(*both)
            else:
                hits.append((hits_low, hits_high))
        if hits:
            counts = np.array(hits, dtype=np.float64)
            waiting = pairs[~fired]
            numbers = (waiting.difference, low, counts[:, 0], needed[0], counts[:, 1], needed[1])
            waiting.add_reasons(reasons, COUNTING, *numbers)
        return fired


def _calmer(config: Settings) -> Remedy:
    return Remedy(
        "Lower maxUnloadPercentage, or require more hits.",
        {MAX_UNLOAD_PERCENTAGE: config.number(MAX_UNLOAD_PERCENTAGE) / 2},
    )


def _cycles_to_know(config: Settings) -> int:
    return max(config.integer(f"loadBalancerAvgShedderHitCount{kind}Threshold") for kind in ("High", "Low"))


def _after_unloads(state: AvgState, donors: Collection[str]) -> AvgState:
    high, low = (
        {name: 0 if name in donors else hits for name, hits in counted.items()}
        for counted in (state.hits_high, state.hits_low)
    )
    return replace(state, hits_high=high, hits_low=low)


def _least(one: AvgState, other: AvgState) -> AvgState:
    high, low = (
        {name: min(a.get(name, 0), b.get(name, 0)) for name in {**a, **b}}
        for a, b in ((one.hits_high, other.hits_high), (one.hits_low, other.hits_low))
    )
    return replace(other, hits_high=high, hits_low=low)


def _full(state: AvgState, brokers: Sequence[str], config: Settings) -> Iterator[AvgState]:
    high, low = (config.integer(f"loadBalancerAvgShedderHitCount{kind}Threshold") for kind in ("High", "Low"))
    for hits_low in (0, low):
        yield replace(state, hits_high=dict.fromkeys(brokers, high), hits_low=dict.fromkeys(brokers, hits_low))


def _spent(decision: SheddingDecision) -> dict[int, tuple[bool, float]]:
    acts = {DONOR: True, DONOR_BY_SIZE: True, RECEIVER: True}
    acts |= {TOO_LITTLE: False, NO_FIT: False, NO_FIT_BY_SIZE: False}
    found = {}
    for group in decision.reasons:
        if group.code in acts:
            for broker, other in zip(group.brokers.tolist(), group.others.tolist(), strict=True):
                apart = abs(decision.scores[broker] - decision.scores[other]) * 100 if other >= 0 else 0.0
                found[broker] = (acts[group.code], float(apart))
    return found


def _pairs_of(decision: SheddingDecision) -> list[tuple[int, int]]:
    scores, pairs = decision.scores, set()
    for group in decision.reasons:
        if group.code.code.startswith("avg.") and (group.bundles < 0).all():
            for broker, other in zip(group.brokers.tolist(), group.others.tolist(), strict=True):
                low, high = sorted((broker, other if other >= 0 else broker), key=lambda i: (scores[i], i))
                pairs.add((low, high))
    return sorted(pairs, key=lambda pair: scores[pair[0]])


def _tally(kind: Literal["Low", "High"]) -> Tally:
    apart = f"loadBalancerAvgShedder{kind}Threshold"
    return Tally(
        name=kind.lower(),
        label=lambda config: f"{kind} hits (a pair at least {config.integer(apart)} points apart)",
        of=lambda state, names: {
            name: float((state.hits_low if kind == "Low" else state.hits_high).get(name, 0)) for name in names
        },
        unit="hits",
        needed=lambda config: config.integer(f"loadBalancerAvgShedderHitCount{kind}Threshold"),
        apart=lambda config: config.integer(apart),
    )


def _for_never_reached(seen: NeverReached) -> Remedy | None:
    low = seen.config.of(_AVG_SHEDDER_LOW_THRESHOLD)
    difference, now = float(np.ptp(seen.scores)) * 100, seen.config.integer(_AVG_SHEDDER_LOW_THRESHOLD)
    if difference >= now:
        return None
    half = max(math.floor(difference / 2), 1)
    usual = isinstance(low.default, int) and low.default <= difference
    points, to = (low.default, f"{low.default}, its default") if usual else (half, f"{half}")
    return Remedy(
        f"Lower {_AVG_SHEDDER_LOW_THRESHOLD} from {now} to {to}: the highest and the lowest score are only"
        f" {difference:.1f} points apart.",
        {_AVG_SHEDDER_LOW_THRESHOLD: points},
    )


_PROFILE = Profile(
    needs=(USAGE, MESSAGE_RATES, THROUGHPUT),
    bounds={
        _AVG_SHEDDER_LOW_THRESHOLD: (0, 200),
        _AVG_SHEDDER_HIGH_THRESHOLD: (0, 200),
        _AVG_SHEDDER_HIT_COUNT_LOW_THRESHOLD: (0, 1000),
        _AVG_SHEDDER_HIT_COUNT_HIGH_THRESHOLD: (0, 1000),
        MAX_UNLOAD_PERCENTAGE: (0, 1),
        MIN_UNLOAD_MESSAGE: (0, 2**31 - 1),
        MIN_UNLOAD_MESSAGE_THROUGHPUT: (0, 2**31 - 1),
    },
    moves_nothing={MAX_UNLOAD_PERCENTAGE: (-math.inf, 0)},
    eager={
        MAX_UNLOAD_PERCENTAGE: 1.0,
        MIN_UNLOAD_MESSAGE: 0,
        MIN_UNLOAD_MESSAGE_THROUGHPUT: 0,
        _AVG_SHEDDER_HIT_COUNT_LOW_THRESHOLD: 0,
        _AVG_SHEDDER_HIT_COUNT_HIGH_THRESHOLD: 0,
        _AVG_SHEDDER_HIGH_THRESHOLD: 0,
        _AVG_SHEDDER_LOW_THRESHOLD: 0,
    },
    differences=(
        "The Concepts page says that the difference must exceed the threshold. In the code, equality is enough.",
        "The worked example of the Concepts page, 250 msg/s, moves nothing with the default minUnloadMessage of 1000.",
        "Hits are counted per broker, not per pair, and high hits also count as low hits.",
    ),
    judges_by="resource usage of pairs of brokers",
    held_back=held_back,
    gates={
        TOO_LITTLE: Gate("the minimum to move", (MIN_UNLOAD_MESSAGE, MIN_UNLOAD_MESSAGE_THROUGHPUT)),
        COUNTING: Gate(
            "the hit counters",
            (_AVG_SHEDDER_HIT_COUNT_LOW_THRESHOLD, _AVG_SHEDDER_HIT_COUNT_HIGH_THRESHOLD),
            passes=True,
        ),
        **dict.fromkeys(
            (NO_FIT, NO_FIT_BY_SIZE), Gate("that no bundle fits into the share to move", (MAX_UNLOAD_PERCENTAGE,))
        ),
        UNSORTED: Gate("that Pulsar fails to sort the brokers"),
        **BUNDLE_GATES,
    },
    counters=Counters(cycles_to_know=_cycles_to_know, after_unloads=_after_unloads, least=_least, full=_full),
    tallies=(_tally("Low"), _tally("High")),
    pairs=_pairs_of,
    spent=_spent,
    paired_placement="AvgShedder",
    absent=ABSENT,
    calmer=_calmer,
    for_never_reached=_for_never_reached,
    for_idle_brokers=lambda *_: Remedy(
        "Lower loadBalancerAvgShedderLowThreshold or minUnloadMessage, or unload bundles to the idle brokers by hand.",
        {_AVG_SHEDDER_LOW_THRESHOLD: 5},
    ),
)


class AvgShedder:
    """The strategy; its contract is `Shedder`."""

    name = "AvgShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
    load_manager = LoadManager.MODULAR
    summary = (
        "Pairs the brokers by score. When a pair stays apart for several cycles, it moves a share of the "
        "difference directly to the less loaded broker. Must also be the placement strategy."
    )
    profile = _PROFILE
    settings = (
        _AVG_SHEDDER_LOW_THRESHOLD,
        _AVG_SHEDDER_HIGH_THRESHOLD,
        _AVG_SHEDDER_HIT_COUNT_LOW_THRESHOLD,
        _AVG_SHEDDER_HIT_COUNT_HIGH_THRESHOLD,
        MAX_UNLOAD_PERCENTAGE,
        MIN_UNLOAD_MESSAGE,
        MIN_UNLOAD_MESSAGE_THROUGHPUT,
        *USAGE_WEIGHTS,
    )

    def initial(self) -> AvgState:
        """Return the state of a strategy that has seen nothing."""
        return AvgState()

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings
    ) -> tuple[SheddingMemory[Any], SheddingDecision]:
        """Decide one cycle; see `Shedder`."""
        active, unknown = active_brokers(snapshot)
        points = weighted_usage(snapshot.brokers, config, LoadManager.MODULAR) * 100
        low = config.integer(_AVG_SHEDDER_LOW_THRESHOLD)
        high = config.integer(_AVG_SHEDDER_HIGH_THRESHOLD)
        most_brokers = max(memory.state.most_brokers, len(active))
        scores = np.full(len(snapshot.brokers), np.nan)
        scores[active] = points[active] / 100
        reasons: list[ReasonBlock] = list(unknown)
        try:
            ranked = _ranked(_score_order(snapshot, active, most_brokers), points, config.release)
        except ContradictoryOrderError:
            reasons.append(block(UNSORTED, active, values=(points[active],)))
            state = replace(memory.state, most_brokers=most_brokers)
            return memory.with_state(state), SheddingDecision((), tuple(reasons), scores, ())
        pairs = _Pairs.of(snapshot, ranked, points)
        counters = _Counters(memory.state)
        apart = counters.count(pairs, low, high)
        middle = ~apart & (pairs.low == pairs.high)
        pairs[middle].add_reasons(reasons, MIDDLE)
        pairs[~apart & ~middle].add_reasons(reasons, CLOSE, pairs.difference[~apart & ~middle], low)
        needed = (
            config.integer(_AVG_SHEDDER_HIT_COUNT_LOW_THRESHOLD),
            config.integer(_AVG_SHEDDER_HIT_COUNT_HIGH_THRESHOLD),
        )
        hit = counters.fire(pairs[apart], low, needed, reasons)
        moves, bindings = _even_out(snapshot, memory, config, pairs[apart][hit], reasons)
        average = float(np.mean(scores[active])) if len(active) else float("nan")
        state = AvgState(counters.high, counters.low, {**memory.state.broker, **bindings}, most_brokers)
        lines = (Line("average (not compared)", average),) if len(active) else ()
        return memory.with_state(state), SheddingDecision(tuple(moves), tuple(reasons), scores, lines)


def _score_order(snapshot: Snapshot, active: Int64Array, most_brokers: int) -> Int64Array:
    """Return the brokers as the `HashMap` of their scores visits them, which gets them in the order of `active`."""
    hashes = snapshot.brokers.name_hashes[active]
    return active[hash_map_order(hashes, hash_map_size(most_brokers))]


def _even_out(
    snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings, pairs: _Pairs, reasons: list[ReasonBlock]
) -> tuple[list[Move], dict[BundleKey, str]]:
    """Move bundles inside each pair that fit into a share of its difference: by message rate, else by throughput.

    Returns:
        The moves, and what they bind.
    """
    share = config.number(MAX_UNLOAD_PERCENTAGE)
    min_rate, min_throughput = config.integer(MIN_UNLOAD_MESSAGE), config.integer(MIN_UNLOAD_MESSAGE_THROUGHPUT)
    rate, throughput = snapshot.brokers.msg_rate_per_s(), snapshot.brokers.throughput_bytes_per_s()
    rate_quota = (rate[pairs.high] - rate[pairs.low]) * share
    throughput_quota = (throughput[pairs.high] - throughput[pairs.low]) * share
    by_rate = rate_quota > min_rate
    enough = by_rate | (throughput_quota > min_throughput)
    too_little = (rate_quota[~enough], min_rate, throughput_quota[~enough] / MIB, min_throughput / MIB)
    pairs[~enough].add_reasons(reasons, TOO_LITTLE, *too_little)
    pairs, by_rate = pairs[enough], by_rate[enough]
    quota = np.where(by_rate, rate_quota[enough], throughput_quota[enough])
    if not len(pairs):
        return [], {}
    rated = np.zeros(len(snapshot.brokers), dtype=np.bool_)
    rated[pairs.high[by_rate]] = True
    value = np.where(
        rated[snapshot.bundles.owner],
        snapshot.bundles.msg_rate_per_s(term=SHORT_TERM),
        snapshot.bundles.throughput_bytes_per_s(term=SHORT_TERM),
    )
    donors = rank_donors(snapshot, pairs.high, value, memory, config, reasons)
    fit = _fitting(donors, quota)
    destinations = np.repeat(pairs.low, np.diff(donors.bounds))
    gives = fit.count > 0
    of_rate = rated[donors.owners]
    for mine, of_pairs, said, unit in ((of_rate, by_rate, {}, 1.0), (~of_rate, ~by_rate, BY_SIZE, MIB)):
        for code, which in ((TAKEN, fit.taken), (TOO_BIG, fit.too_big), (EMPTY, ~fit.taken & ~fit.too_big)):
            numbers = (donors.values / unit, fit.left / unit)[: len(code.fields)]
            where = {"bundles": donors.bundles, "others": destinations}
            add_reasons(reasons, said.get(code, code), which & mine, donors.owners, *numbers, **where)
        giving, without = pairs[of_pairs & gives], of_pairs & ~gives
        if len(giving):
            points, wanted = giving.points[giving.high], quota[of_pairs & gives] / unit
            numbers = (points, giving.difference, wanted)
            reasons.append(block(said.get(DONOR, DONOR), giving.high, values=numbers, others=giving.low))
        pairs[without].add_reasons(reasons, said.get(NO_FIT, NO_FIT), quota[without] / unit)
    giving = pairs[gives]
    if len(giving):
        numbers = (giving.points[giving.low], giving.difference)
        reasons.append(block(RECEIVER, giving.low, values=numbers, others=giving.high))
    chosen = donors.bundles[fit.taken]
    to = [snapshot.brokers.name[i] for i in destinations[fit.taken].tolist()]
    values, left = donors.values[fit.taken], fit.left[fit.taken]
    by_rate_moves = moves_of(snapshot, TAKEN, chosen, (values, left), to)
    by_size_moves = moves_of(snapshot, TAKEN_BY_SIZE, chosen, (values / MIB, left / MIB), to)
    rows = zip(by_rate_moves, by_size_moves, of_rate[fit.taken].tolist(), strict=True)
    moves = [one if by_rate_too else other for one, other, by_rate_too in rows]
    if config.release.has(PLANNED_DESTINATIONS):
        return moves, {}  # the moves are the plans, and last as long as the cycle that carries them out
    return moves, dict(zip(bundle_keys(snapshot, chosen, config.release), to, strict=True))


@dataclass(frozen=True, eq=False, slots=True)
class _Fitting:
    """Which candidates fit into what is left of their pair's quota.

    Attributes:
        taken: It fits. Shape (candidates,).
        too_big: It has traffic, but more than is left. Shape (candidates,).
        left: What was left when it was looked at. Shape (candidates,).
        count: Candidates taken of each broker. Shape (brokers,).
    """

    taken: BoolArray
    too_big: BoolArray
    left: FloatArray
    count: Int64Array


def _fitting(donors: Donors, quota: FloatArray) -> _Fitting:
    """Take of each broker, largest first, every bundle that fits into what is left of its quota.

    Args:
        donors: Candidates by value descending.
        quota: What may move of each of the brokers. Shape (brokers,).
    """
    ascending = (-donors.values).tolist()
    bounds = donors.bounds.tolist()
    chosen: list[int] = []
    count: list[int] = []
    lefts: list[float] = []
    ends: list[int] = [0]  # of the runs of candidates that were looked at with as much left
    for at, whole in enumerate(quota.tolist()):
        left, place, stop, before = whole, bounds[at], bounds[at + 1], len(chosen)
        while place < stop:
            fits = bisect_left(ascending, -left, place, stop)
            lefts.append(left)
            if fits == stop or ascending[fits] >= 0:
                ends.append(stop)
                break
            chosen.append(fits)
            left += ascending[fits]
            place = fits + 1
            ends.append(place)
        count.append(len(chosen) - before)
    taken = np.zeros(len(donors.values), dtype=np.bool_)
    taken[chosen] = True
    too_big = (donors.values > 0) & ~taken
    return _Fitting(taken, too_big, np.repeat(lefts, np.diff(ends)), np.array(count, dtype=np.int64))


SHEDDER = AvgShedder()
