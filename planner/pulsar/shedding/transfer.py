"""TransferShedder: pairs the most with the least loaded broker and hands bundles over, or swaps them.

Mirrors `TransferShedder` of the extensible load manager of Pulsar 4.2.4. It differs in that a top bundle always belongs
to the broker that reports it: a snapshot has one owner for each bundle, so Pulsar's check of that has nothing to do.
"""

# Longer than other files: the check of the load data, the pairing, the walk and the swap are one algorithm, whose parts
# change each other's numbers. Its reasons are in `transfer_reasons`.

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray
from planner.cluster.decisions import Line, Move, ReasonCode, SheddingDecision
from planner.cluster.errors import PlannerError
from planner.cluster.hashing import hash_map_order, java_string_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.names import (
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
    BROKER_LOAD_DATA_TTL_IN_SECONDS,
    BROKER_MAX_TOPICS,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    CPU_RESOURCE_WEIGHT,
    DEBUG_MODE_ENABLED,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    FAILURE_DOMAINS_ENABLED,
    HISTORY_RESOURCE_PERCENTAGE,
    MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT,
    MEMORY_RESOURCE_WEIGHT,
    PREFER_LATER_VERSIONS,
    SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
    SHEDDING_GRACE_PERIOD_MINUTES,
)
from planner.cluster.ranges import bundle_name
from planner.cluster.releases import Switch
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB, MS_PER_MIN
from planner.pulsar.load.broker_load import averages
from planner.pulsar.load.namespace_policies import policy_gate
from planner.pulsar.load.top_bundles import IDLE_BUNDLES
from planner.pulsar.placement.extensible_filters import ExtensibleFilters
from planner.pulsar.shedding.needs import AVERAGED_USAGE, THROUGHPUT
from planner.pulsar.shedding.profile import Counters, Gate, NeverReached, Profile, Remedy, Tally, lower_threshold_remedy
from planner.pulsar.shedding.selection import GRACE
from planner.pulsar.shedding.transfer_reasons import (
    BEHIND,
    CONSUMED,
    COOLING,
    CYCLE_COOLING,
    CYCLE_NO_BROKERS,
    CYCLE_NO_DATA,
    CYCLE_OUTDATED,
    DONOR,
    DONOR_EMPTY,
    DONOR_NOTHING,
    DONOR_SINGLE,
    EXCLUDED,
    FILTER_FAILED,
    FILTERED,
    GATED,
    HIT_COUNT,
    HOLDS,
    IDLE,
    LAST,
    MET,
    MOVES,
    NO_DATA,
    NO_SWAP,
    NOT_REACHED,
    OUTDATED,
    RECEIVER,
    RECEIVER_NOTHING,
    RECENT,
    SETTLED,
    SWAP_SPARE,
    SWAP_UNFIT,
    SWAP_VAIN,
    TOO_BIG,
    UNKNOWN,
    UNLOAD_REASONS,
    TransferLog,
)

_SHEDDING_DELAY_IN_SECONDS = "loadBalanceSheddingDelayInSeconds"
_BROKER_LOAD_TARGET_STD = "loadBalancerBrokerLoadTargetStd"
_TRANSFER_ENABLED = "loadBalancerTransferEnabled"
_SHEDDING_CONDITION_HIT_COUNT_THRESHOLD = "loadBalancerSheddingConditionHitCountThreshold"
_MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE = "loadBalancerMaxNumberOfBrokerSheddingPerCycle"

PlacementFilters: TypeAlias = Callable[[Snapshot, Settings], Callable[[str], frozenset[str]]]
"""Prepares the placement filters of one moment.

What it returns answers which registered brokers may take a bundle of a namespace (`tenant/namespace`), and raises
`PlannerError` where a filter of Pulsar fails.
"""

_SWAP_TARGET = 0.75
"""Share of its throughput that a broker must fall below for a swap to be worth it."""

ALONE = Switch(
    "TransferShedder considers a broker underloaded if its average is below 1 byte/s, whatever the "
    "highest broker has, and not if it is below a share of that.",
    until="3.2.3",
    backported=("3.0.7",),
)


@dataclass(frozen=True, slots=True)
class TransferState:
    """What a TransferShedder remembers.

    Attributes:
        hit_count: `unloadConditionHitCount`: cycles in a row in which shedding was called for.
        load_avg: Average load that its counter recorded last (1.0 = 100 %); 0 before the first cycle.
        load_std: Standard deviation that its counter recorded last (1.0 = 100 %).
    """

    hit_count: int = 0
    load_avg: float = 0.0
    load_std: float = 0.0


class _Rules:
    """The settings in force, each read once."""

    def __init__(self, config: Settings) -> None:
        self.target_std = config.number(_BROKER_LOAD_TARGET_STD)
        self.overloaded = config.number(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
        self.transfer = config.flag(_TRANSFER_ENABLED)
        self.debug = config.flag(DEBUG_MODE_ENABLED)
        self.hit_threshold = config.integer(_SHEDDING_CONDITION_HIT_COUNT_THRESHOLD)
        self.pairs = config.integer(_MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE)
        self.delay_ms = config.integer(_SHEDDING_DELAY_IN_SECONDS) * 1000
        self.ttl_ms = config.integer(BROKER_LOAD_DATA_TTL_IN_SECONDS) * 1000
        self.grace_minutes = config.integer(SHEDDING_GRACE_PERIOD_MINUTES)
        self.with_policies = config.flag(SHEDDING_BUNDLES_WITH_POLICIES_ENABLED)
        self.excluded = frozenset(config.names(SHEDDING_EXCLUDED_NAMESPACES))
        self.moves_idle = config.release.has(IDLE_BUNDLES)
        self.alone = config.release.has(ALONE)

    @property
    def underloaded_share(self) -> float:
        """Share of the average (of the highest throughput) below which a broker counts as underloaded."""
        return min(0.5, max(0.0, self.target_std / 2))


@dataclass(frozen=True, eq=False, slots=True)
class _Loads:
    """Numbers of the brokers, by position; what only brokers with load data have is 0 elsewhere."""

    weighted: FloatArray
    """`load` as an array. Shape (brokers,)."""
    load: list[float]
    throughput: list[float]
    throughput_ema: list[float]
    updated_at_ms: list[int]
    stored: list[int]
    """Positions of the brokers with load data, in the order of the store."""
    notes: tuple[str, ...]

    @staticmethod
    def of(snapshot: Snapshot, config: Settings) -> "_Loads":
        brokers = snapshot.brokers
        known = brokers.has_load_data
        throughput = brokers.throughput_bytes_per_s()
        known_averages, updated = averages(brokers, config), brokers.updated_at_ms
        notes: list[str] = []
        if (size := config.integer(_REPORTED)) <= 0:
            notes.append(
                f"{_REPORTED} is {size}: most brokers fail to report bundles, and others report none. "
                "Only bundles of earlier reports can be shed."
            )
        assumed = known_averages.assumed & known
        if assumed.any():
            notes.append(
                f"{_count(assumed)} without weightedMaxEMA or msgThroughputEMA in this snapshot: current "
                "usage and throughput are used, as for a broker's first report."
            )
        undated = (updated == 0) & known
        if undated.any():
            updated = np.where(updated == 0, snapshot.info.captured_at_ms, updated)
            notes.append(f"{_count(undated)} without a report time: the moment of the snapshot is assumed.")
        return _Loads(
            known_averages.weighted_max_ema,
            known_averages.weighted_max_ema.tolist(),
            throughput.tolist(),
            known_averages.msg_throughput_ema_bytes_per_s.tolist(),
            updated.tolist(),
            _store_order(snapshot),
            tuple(notes),
        )


def _store_order(snapshot: Snapshot) -> list[int]:
    """Return the brokers with load data in the order of the store, a `ConcurrentHashMap` of these brokers only."""
    brokers = snapshot.brokers
    order = snapshot.broker_map_order
    if not brokers.has_load_data.all():
        stored = np.flatnonzero(brokers.has_load_data)
        hashes = java_string_hashes([brokers.name[i] for i in stored.tolist()])
        order = stored[hash_map_order(hashes, snapshot.broker_table_size(len(stored)), concurrent=True)]
    positions: list[int] = order.tolist()
    return positions


def _count(which: BoolArray) -> str:
    number = int(which.sum())
    return "1 broker" if number == 1 else f"{number} brokers"


@dataclass(slots=True)
class _Statistics:
    """Running average and deviation of the loads; squares and deviation follow the chosen moves."""

    brokers: int
    average: float
    squares: float
    std: float

    @staticmethod
    def of(loads: Sequence[float]) -> "_Statistics":
        values = np.array(loads)
        with np.errstate(over="ignore", invalid="ignore"):  # left to right, as Pulsar sums
            total, squares = (float(np.add.accumulate(terms)[-1]) for terms in (values, values * values))
        average = total / len(loads)
        return _Statistics(len(loads), average, squares, _root(squares / len(loads) - average * average))

    def shift(self, high: float, low: float, moved: float) -> None:
        """Take over that load goes from one broker to another."""
        self.squares -= high * high + low * low
        high, low = max(0.0, high - moved), low + moved
        self.squares += high * high + low * low
        self.std = _root(abs(self.squares / self.brokers - self.average * self.average))


def _root(value: float) -> float:
    """Return the square root; NaN below 0, as in Java."""
    return math.sqrt(value) if value >= 0 else math.nan


class _Bundle(NamedTuple):
    """A reported top bundle."""

    position: int
    namespace: str
    low: int
    high: int
    throughput: float
    rate: float

    @property
    def name(self) -> str:
        return bundle_name(self.namespace, self.low, self.high)


@dataclass(slots=True)
class _Pair:
    """A donor and a receiver while the donor's bundles are walked; throughputs in bytes/s."""

    donor: int
    receiver: int
    call: str
    wanted: float
    offers: tuple[_Bundle, ...]
    counter_offers: tuple[_Bundle, ...] | None = None
    """Bundles that the receiver reports; read for the first swap."""
    marked: float = 0.0
    gained: float = 0.0
    swap_from: int = 0
    """Next of the receiver's bundles to consider for a swap; it never goes back."""


@dataclass(slots=True)
class _Cycle:
    """One cycle, from the moment on at which shedding is called for."""

    snapshot: Snapshot
    rules: _Rules
    loads: _Loads
    statistics: _Statistics
    filters: Callable[[str], frozenset[str]]
    recent: Mapping[str, int]
    log: TransferLog
    moves: list[Move] = field(default_factory=list)
    empty: bool = False
    few: bool = False
    allowed: dict[str, frozenset[str] | ReasonCode] = field(default_factory=dict)

    def shed(self, ranked: list[int]) -> None:
        """Pair the brokers from both ends, lowest load first, and walk the bundles of each donor."""
        low, high, pairs = 0, len(ranked) - 1, 0
        in_vain: set[int] = set()
        rest = MET
        values: tuple[float, ...] = ()
        while low < high:
            if pairs >= self.rules.pairs:
                rest, values = NOT_REACHED, (float(pairs),)
                break
            call = _called_for(ranked[low], ranked[high], self.loads, self.statistics, self.rules)
            if call is None:
                rest, values = SETTLED, (self.statistics.std * 100,)
                break
            receiver, donor = ranked[low], ranked[high]
            high -= 1
            if self.pair(donor, receiver, call):
                pairs, low = pairs + 1, low + 1
            else:
                in_vain.add(receiver)
        percents = self.loads.weighted * 100
        self.log.say_rest(RECEIVER_NOTHING, [broker for broker in ranked if broker in in_vain], percents)
        self.log.say_rest(rest, ranked, percents, *values)

    def pair(self, donor: int, receiver: int, call: str) -> bool:
        """Walk the donor's bundles; say whether any was chosen."""
        load, throughput = self.loads.load, self.loads.throughput
        share = (load[donor] - load[receiver]) / 2
        wanted = _divide(throughput[donor] * share, load[donor])
        wanted = math.inf if math.isnan(wanted) else wanted  # Java's comparison with NaN never holds: no limit
        offers = self.top(donor)
        if len(offers) <= 1:
            self.empty |= not offers
            self.few |= bool(offers)
            self.log.say(DONOR_SINGLE if offers else DONOR_EMPTY, donor, -1, -1, load[donor] * 100)
            return False
        pair = _Pair(donor, receiver, call, wanted, offers)
        self.walk(pair)
        if pair.swap_from:
            for spare in (pair.counter_offers or ())[pair.swap_from :]:
                self.log.say(SWAP_SPARE, receiver, spare.position, donor)
        percents = load[donor] * 100, load[receiver] * 100
        if not pair.marked > 0:
            self.few = True
            self.log.say(DONOR_NOTHING, donor, -1, receiver, percents[0], wanted / MIB)
            return False
        moved = _divide((pair.marked - pair.gained) * load[donor], throughput[donor])
        self.statistics.shift(load[donor], load[receiver], moved)
        self.log.say(DONOR, donor, -1, receiver, percents[0], pair.marked / MIB, wanted / MIB)
        taken = RECEIVER if self.rules.transfer else CONSUMED
        self.log.say(taken, receiver, -1, donor, percents[1], pair.marked / MIB)
        return True

    def walk(self, pair: _Pair) -> None:
        """Choose bundles of the donor, lightest first."""
        remaining = len(pair.offers)
        for at, bundle in enumerate(pair.offers):
            if self.held(pair, bundle):
                continue
            if remaining <= 1:
                self.leave(pair, at, LAST)
                break
            if bundle.throughput == 0 and not self.rules.moves_idle:
                self.log.say(IDLE, pair.donor, bundle.position)
                continue
            back: Sequence[_Bundle] = ()
            if pair.marked - pair.gained + bundle.throughput > pair.wanted:
                found = self.swap(pair, bundle.throughput)
                if found is None:
                    code = TOO_BIG if pair.counter_offers else NO_SWAP
                    numbers = bundle.throughput / MIB, pair.marked / MIB, pair.wanted / MIB
                    self.log.say(code, pair.donor, bundle.position, pair.receiver, *numbers)
                    self.leave(pair, at + 1, BEHIND)
                    break
                back = found
            for other in back:
                self.choose(pair, other, back=True)
                if self.rules.debug:
                    pair.gained += other.throughput
            pair.marked += bundle.throughput
            remaining -= 1
            self.choose(pair, bundle, back=False)

    def leave(self, pair: _Pair, at: int, code: ReasonCode) -> None:
        for bundle in pair.offers[at:]:
            self.log.say(code, pair.donor, bundle.position)

    def swap(self, pair: _Pair, throughput: float) -> list[_Bundle] | None:
        """Find bundles of the receiver to take in exchange for one of the donor.

        Args:
            pair: The two brokers.
            throughput: What the donor's bundle brings to the receiver, in bytes/s.

        Returns:
            None when no exchange leaves the receiver below the donor and the donor well below where it started.
        """
        if pair.counter_offers is None:
            pair.counter_offers = self.top(pair.receiver) if self.rules.transfer else ()
        before_high = self.loads.throughput[pair.donor]
        before_low = self.loads.throughput[pair.receiver]
        high = before_high - pair.marked + pair.gained - throughput
        low = before_low + pair.marked - pair.gained + throughput
        chosen: list[_Bundle] = []
        while pair.swap_from < len(pair.counter_offers):
            bundle = pair.counter_offers[pair.swap_from]
            pair.swap_from += 1
            if self.barred(bundle, pair.receiver, pair.donor):
                continue
            traffic = bundle.throughput
            if traffic == 0 and not self.rules.moves_idle:
                self.log.say(IDLE, pair.receiver, bundle.position)
                continue
            if high + traffic < before_high and low - traffic < before_high:
                high, low = high + traffic, low - traffic
                chosen.append(bundle)
                if low <= high < before_high * _SWAP_TARGET:
                    return chosen
            else:
                self.log.say(SWAP_UNFIT, pair.receiver, bundle.position, pair.donor, traffic / MIB)
        for bundle in chosen:
            self.log.say(SWAP_VAIN, pair.receiver, bundle.position, pair.donor, bundle.throughput / MIB)
        return None

    def choose(self, pair: _Pair, bundle: _Bundle, *, back: bool) -> None:
        """Record a move: from donor to receiver, or back."""
        source, target = (pair.receiver, pair.donor) if back else (pair.donor, pair.receiver)
        code, name = MOVES[pair.call, back], bundle.name
        numbers = (
            (bundle.throughput / MIB,) if back else (bundle.throughput / MIB, pair.marked / MIB, pair.wanted / MIB)
        )
        self.log.say(code, source, bundle.position, target, *numbers)
        names = self.snapshot.brokers.name
        reason = code.of(*numbers, broker=names[source], bundle=name, other=names[target])
        destination = names[target] if self.rules.transfer else None
        self.moves.append(Move(name, names[source], destination, bundle.rate, bundle.throughput, reason))

    def held(self, pair: _Pair, bundle: _Bundle) -> bool:
        """Say whether the donor must keep a bundle, and log why."""
        if bundle.namespace in self.rules.excluded:
            self.log.say(EXCLUDED, pair.donor, bundle.position)
            return True
        if self.recent and bundle.name in self.recent:
            since = (self.snapshot.info.captured_at_ms - self.recent[bundle.name]) / MS_PER_MIN
            self.log.say(RECENT, pair.donor, bundle.position, -1, since, float(self.rules.grace_minutes))
            return True
        return self.barred(bundle, pair.donor, pair.receiver)

    def barred(self, bundle: _Bundle, source: int, target: int) -> bool:
        """Say whether policies or placement filters keep a bundle from moving, and log why."""
        code = self.obstacle(bundle, target)
        if code is not None:
            self.log.say(code, source, bundle.position, target)
        return code is not None

    def obstacle(self, bundle: _Bundle, target: int) -> ReasonCode | None:
        namespace = bundle.namespace
        if namespace not in self.allowed:
            self.allowed[namespace] = self.candidates(namespace)
        allowed = self.allowed[namespace]
        if isinstance(allowed, ReasonCode):
            return allowed
        # Pulsar asks for the paired broker even when loadBalancerTransferEnabled is off and it is no destination.
        return None if self.snapshot.brokers.name[target] in allowed else FILTERED

    def candidates(self, namespace: str) -> frozenset[str] | ReasonCode:
        """Return the brokers that may take bundles of a namespace, or why none of its bundles is moved."""
        if not self.rules.with_policies and policy_gate(self.snapshot.policies, namespace) is not None:
            return GATED
        try:
            return self.filters(namespace)
        except PlannerError:
            return FILTER_FAILED

    def top(self, broker: int) -> tuple[_Bundle, ...]:
        """Return the bundles that a broker reports, in report order: lightest first."""
        table = self.snapshot.bundles
        owned = self.snapshot.bundles_of(broker)
        rank = table.top_rank[owned]
        listed = owned[rank >= 0]
        listed = listed[np.argsort(table.top_rank[listed], kind="stable")]
        throughput = table.throughput_bytes_per_s(listed)
        rate = table.msg_rate_per_s(listed)
        namespaces = [self.snapshot.namespaces[i] for i in table.namespace[listed].tolist()]
        bounds = table.low[listed].tolist(), table.high[listed].tolist()
        return tuple(map(_Bundle, listed.tolist(), namespaces, *bounds, throughput.tolist(), rate.tolist()))


def _divide(dividend: float, divisor: float) -> float:
    """Divide as Java does: by zero gives an infinity or NaN."""
    if divisor == 0:
        return math.nan if dividend == 0 or math.isnan(dividend) else math.copysign(math.inf, dividend)
    return dividend / divisor


def _by_load(loads: _Loads) -> list[int]:
    """Return the brokers with load data by load, lowest first; equal ones as the store lists them."""
    stored = np.array(loads.stored)
    ranked: list[int] = stored[np.argsort(loads.weighted[stored], kind="stable")].tolist()
    return ranked


def _called_for(low: int, high: int, loads: _Loads, statistics: _Statistics, rules: _Rules) -> str | None:
    """Return Pulsar's reason to shed from the broker at the high end to the one at the low end; None when balanced."""
    if statistics.std > rules.target_std:
        return "Overloaded"
    share = rules.underloaded_share
    least = 1.0 if rules.alone else loads.throughput_ema[high] * share
    if loads.load[low] < statistics.average * share or loads.throughput_ema[low] < least:
        return "Underloaded"
    if loads.load[high] > rules.overloaded and loads.load[high] > statistics.average + rules.target_std:
        return "Overloaded"
    return None


def _pulsar_filters(snapshot: Snapshot, config: Settings) -> Callable[[str], frozenset[str]]:
    return ExtensibleFilters(snapshot, config).allowed


@dataclass(frozen=True, slots=True)
class _Check:
    """What the look at the load data found.

    Attributes:
        statistics: Average and deviation; None when the cycle is skipped.
        skip: Pulsar's reason to skip the cycle; None when it goes on.
        marks: Brokers that unloaded recently, those without the ones whose delay is over.
    """

    statistics: _Statistics | None
    skip: str | None
    marks: Mapping[str, int]


def _check(snapshot: Snapshot, loads: _Loads, rules: _Rules, unloaded: Mapping[str, int], log: TransferLog) -> _Check:
    """Look at the load data of every broker, in the order of the store."""
    names, now_ms = snapshot.brokers.name, snapshot.info.captured_at_ms
    marks = dict(unloaded)
    counted: list[float] = []
    outdated = False
    oldest_ms = now_ms - rules.ttl_ms
    if not marks and min(loads.updated_at_ms, default=0) >= oldest_ms:
        counted = [loads.load[broker] for broker in loads.stored]
    for broker in loads.stored if not counted else ():
        updated_ms = loads.updated_at_ms[broker]
        if now_ms - updated_ms > rules.ttl_ms:
            outdated = True
            log.say(OUTDATED, broker, -1, -1, (now_ms - updated_ms) / 1000, rules.ttl_ms / 1000)
            continue
        if names[broker] in marks:
            since_ms = updated_ms - marks[names[broker]]
            if since_ms < rules.delay_ms:
                log.say(COOLING, broker, -1, -1, since_ms / 1000, rules.delay_ms / 1000)
                _explain_rest(snapshot, log, CYCLE_COOLING, broker)
                return _Check(None, "CoolDown", marks)
            del marks[names[broker]]
        counted.append(loads.load[broker])
    if not counted:
        _explain_rest(snapshot, log, CYCLE_OUTDATED if outdated else CYCLE_NO_BROKERS)
        return _Check(None, "OutDatedData" if outdated else "NoBrokers", marks)
    missing = np.flatnonzero(snapshot.brokers.registered & ~snapshot.brokers.has_load_data).tolist()
    if missing:
        for broker in missing:
            log.say(NO_DATA, broker)
        _explain_rest(snapshot, log, CYCLE_NO_DATA, missing[0])
        return _Check(None, "NoLoadData", marks)
    return _Check(_Statistics.of(counted), None, marks)


def _explain_rest(snapshot: Snapshot, log: TransferLog, code: ReasonCode, other: int = -1) -> None:
    """Give every broker that has no reason yet the same one."""
    log.say_rest(code, range(len(snapshot.brokers)), other=other)


_HITS = _SHEDDING_CONDITION_HIT_COUNT_THRESHOLD
_REPORTED = MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT


def _after_unloads(state: TransferState, donors: Collection[str]) -> TransferState:
    return replace(state, hit_count=0) if donors else state


def _least(one: TransferState, other: TransferState) -> TransferState:
    return replace(other, hit_count=min(one.hit_count, other.hit_count))


def _full(state: TransferState, brokers: Sequence[str], config: Settings) -> Iterator[TransferState]:
    del brokers
    yield replace(state, hit_count=config.integer(_HITS))


_BEFORE_COMPARING = ("CoolDown", "NoBrokers", "OutDatedData", "NoLoadData")


def _reported(
    before: TransferState,
    after: TransferState,
    was: Mapping[str, float],
    now: Mapping[str, float],
    config: Settings,
) -> TransferState:
    """Return the state by the loads that were really compared; a leader that skipped the cycle compared none."""
    skipped = {name for name in _BEFORE_COMPARING if now.get(f"Skip/{name}", 0) > was.get(f"Skip/{name}", 0)}
    # Without load data it may also have found nothing after it compared: only above the threshold.
    if skipped and (skipped != {"NoLoadData"} or before.hit_count < config.integer(_HITS)):
        return before
    std = now.get("load_std")
    if std is None or math.isclose(std, after.load_std, rel_tol=1e-6):
        return after
    if math.isclose(std, before.load_std, rel_tol=1e-6):
        return before
    called = std > config.number(_BROKER_LOAD_TARGET_STD)
    return TransferState(before.hit_count + 1 if called else 0, now.get("load_avg", after.load_avg), std)


_MOST_DEVIATION = 0.5
"""Standard deviation of loads of which half are 0 and half are 100 %."""
_REPORTS_MORE = (SHEDDING_BUNDLES_WITH_POLICIES_ENABLED, SHEDDING_EXCLUDED_NAMESPACES, _REPORTED)
"""Settings by which a broker leaves bundles out of its report."""
_GATES: Mapping[ReasonCode, Gate] = {
    HIT_COUNT: Gate("the hit counter", (_SHEDDING_CONDITION_HIT_COUNT_THRESHOLD,), passes=True),
    DONOR_EMPTY: Gate("that it reports no top bundles", beside=_REPORTS_MORE),
    DONOR_SINGLE: Gate("that a broker keeps its only top bundle", beside=_REPORTS_MORE),
    NO_DATA: Gate("that it has no load data"),
    CYCLE_NO_DATA: Gate("that a broker has no load data"),
    CYCLE_OUTDATED: Gate("that all load data is outdated", (BROKER_LOAD_DATA_TTL_IN_SECONDS,)),
    OUTDATED: Gate("that its load data is outdated", (BROKER_LOAD_DATA_TTL_IN_SECONDS,)),
    CYCLE_COOLING: Gate("the delay after an unload", (_SHEDDING_DELAY_IN_SECONDS,), passes=True, skips=True),
    COOLING: Gate("the delay after an unload", (_SHEDDING_DELAY_IN_SECONDS,), passes=True, skips=True),
    NOT_REACHED: Gate("the maximum of brokers per cycle", (_MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE,), passes=True),
    EXCLUDED: Gate("the excluded namespaces", (SHEDDING_EXCLUDED_NAMESPACES,)),
    GATED: Gate("that bundles with policies are not shed", (SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,)),
    FILTERED: Gate("that the placement filters allow the other broker for none of its bundles", beside=_REPORTS_MORE),
    FILTER_FAILED: Gate("that a placement filter fails", beside=(PREFER_LATER_VERSIONS,)),
    RECENT: GRACE,
    NO_SWAP: Gate("that its bundles are larger than what may move", beside=_REPORTS_MORE),
    TOO_BIG: Gate("that its bundles are larger than what may move", beside=_REPORTS_MORE),
    IDLE: Gate("that its top bundles carry no traffic", beside=_REPORTS_MORE),
    DONOR_NOTHING: Gate("that none of its top bundles can move", of_bundles=True, beside=_REPORTS_MORE),
}
"""What holds a broker above its threshold, or its bundles, back; see `Profile.gates`."""


def _for_never_reached(seen: NeverReached) -> Remedy | None:
    deviation, now = float(seen.scores.std()), seen.config.number(_BROKER_LOAD_TARGET_STD)
    half = math.floor(deviation / 2 * 100) / 100
    if deviation > now or half <= 0:
        return None
    words = f"Lower {_BROKER_LOAD_TARGET_STD} from {now:g} to {half:g}: the loads deviate by only {deviation:.2f}."
    if seen.scores.max() * 100 > seen.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE):
        words += " A broker above the limit also has to be more than this above the average."
    return Remedy(words, {_BROKER_LOAD_TARGET_STD: half})


def _calmer(config: Settings) -> Remedy:
    raised = config.number(_BROKER_LOAD_TARGET_STD) < _MOST_DEVIATION
    return Remedy(
        f"Lower {_MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE}{f', or raise {_BROKER_LOAD_TARGET_STD}' if raised else ''}.",
        {_MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE: 1},
    )


_PROFILE = Profile(
    needs=(AVERAGED_USAGE, THROUGHPUT),
    bounds={
        _BROKER_LOAD_TARGET_STD: (0, 10),
        BROKER_OVERLOADED_THRESHOLD_PERCENTAGE: (0, 200),
        _HITS: (0, 1000),
        _TRANSFER_ENABLED: None,
        _MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE: (0, 10_000),
        _SHEDDING_DELAY_IN_SECONDS: (0, 1_000_000),
        BROKER_LOAD_DATA_TTL_IN_SECONDS: (0, 1_000_000),
        HISTORY_RESOURCE_PERCENTAGE: (0, 1),
        SHEDDING_BUNDLES_WITH_POLICIES_ENABLED: None,
        _REPORTED: (0, 10_000),
    },
    moves_nothing={_MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE: (-math.inf, 0), _REPORTED: (-math.inf, 1)},
    eager={
        _REPORTED: 10_000,
        SHEDDING_BUNDLES_WITH_POLICIES_ENABLED: True,
        _SHEDDING_DELAY_IN_SECONDS: 0,
        BROKER_LOAD_DATA_TTL_IN_SECONDS: 1_000_000,
        _HITS: 0,
        _MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE: 10_000,
        _BROKER_LOAD_TARGET_STD: 0.0,
        BROKER_OVERLOADED_THRESHOLD_PERCENTAGE: 0,
    },
    differences=(
        (
            "The documentation says that no broker has 0 traffic; the code compares the throughput "
            "average with 12.5 % of that of the highest-loaded broker."
        ),
        "Shedding starts in the fourth cycle in a row by default, with at most three pairs of brokers in a cycle.",
        "Top bundles are tried from the smallest to the largest of the report, not from the largest.",
    ),
    judges_by="averaged resource usage of pairs of brokers",
    exact={BROKER_OVERLOADED_THRESHOLD_PERCENTAGE: lambda score, _: score * 100},
    averaged=True,
    remembers_donors=True,
    tallies=(
        Tally(
            name="hit count",
            label=lambda config: f"It sheds when more than {config.integer(_HITS)} cycles in a row call for shedding",
            of=lambda state, _: {"hit count": float(state.hit_count)},
            unit="cycles",
            needed=lambda config: config.integer(_HITS),
        ),
    ),
    gates=_GATES,
    counters=Counters(
        cycles_to_know=lambda config: config.integer(_HITS) + 1,
        after_unloads=_after_unloads,
        least=_least,
        full=_full,
        reported=_reported,
    ),
    calmer=_calmer,
    for_idle_brokers=lower_threshold_remedy,
    for_never_reached=_for_never_reached,
    out_of_reach={
        _BROKER_LOAD_TARGET_STD: (
            _MOST_DEVIATION,
            "Loads from 0 to 1, which is 100 %, deviate by 0.5 at most, so that only nearly idle brokers get bundles.",
        )
    },
)


@dataclass(frozen=True, slots=True)
class TransferShedder:
    """The strategy; see the module. Attributes as in `planner.pulsar.shedding.protocol.Shedder`.

    Attributes:
        filters: The placement filters that a destination must pass.
    """

    filters: PlacementFilters = _pulsar_filters
    name = "TransferShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"
    load_manager = LoadManager.EXTENSIBLE
    summary = (
        "Pairs the most loaded broker with the least loaded one, and transfers or swaps top bundles "
        "until the deviation of the loads is small."
    )
    profile = _PROFILE
    settings = (
        _BROKER_LOAD_TARGET_STD,
        BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
        _SHEDDING_CONDITION_HIT_COUNT_THRESHOLD,
        _TRANSFER_ENABLED,
        _MAX_NUMBER_OF_BROKER_SHEDDING_PER_CYCLE,
        _REPORTED,
        _SHEDDING_DELAY_IN_SECONDS,
        BROKER_LOAD_DATA_TTL_IN_SECONDS,
        SHEDDING_GRACE_PERIOD_MINUTES,
        SHEDDING_EXCLUDED_NAMESPACES,
        SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,
        BROKER_MAX_TOPICS,
        PREFER_LATER_VERSIONS,
        FAILURE_DOMAINS_ENABLED,
        HISTORY_RESOURCE_PERCENTAGE,
        CPU_RESOURCE_WEIGHT,
        MEMORY_RESOURCE_WEIGHT,
        DIRECT_MEMORY_RESOURCE_WEIGHT,
        BANDWIDTH_IN_RESOURCE_WEIGHT,
        BANDWIDTH_OUT_RESOURCE_WEIGHT,
        DEBUG_MODE_ENABLED,
    )

    def initial(self) -> TransferState:
        """Return the state of a strategy object that was just created."""
        return TransferState()

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[TransferState], config: Settings
    ) -> tuple[SheddingMemory[TransferState], SheddingDecision]:
        """Decide one cycle; see `planner.pulsar.shedding.protocol.Shedder.decide`.

        The brokers' loads are `brokers.weighted_max_ema`, their bundles those with a `bundles.top_rank`. Of
        `memory.recently_unloaded_brokers` those are dropped whose delay is over.
        """
        rules, loads, log = _Rules(config), _Loads.of(snapshot, config), TransferLog()
        check = _check(snapshot, loads, rules, memory.recently_unloaded_brokers, log)
        memory = replace(memory, recently_unloaded_brokers=check.marks)
        if check.statistics is None:
            return memory, _decision(snapshot, loads, rules, log, None, memory.state, {f"Skip/{check.skip}": 1})
        statistics = check.statistics
        for broker in np.flatnonzero(~snapshot.brokers.has_load_data).tolist():
            log.say(UNKNOWN, broker)
        before = replace(statistics)
        ranked = _by_load(loads)
        called = _called_for(ranked[0], ranked[-1], loads, statistics, rules) is not None
        hits = memory.state.hit_count + 1 if called else 0
        state = TransferState(hits, statistics.average, statistics.std)
        if hits <= rules.hit_threshold:
            _hold(loads, rules, statistics, hits, log)
            return memory.with_state(state), _decision(snapshot, loads, rules, log, before, state, {"Skip/HitCount": 1})
        recent = memory.recently_unloaded_bundles
        cycle = _Cycle(snapshot, rules, loads, statistics, self.filters(snapshot, config), recent, log)
        cycle.shed(ranked)
        if cycle.moves:
            state = replace(state, hit_count=0)
        decision = _decision(
            snapshot, loads, rules, log, before, state, _counters(cycle), tuple(cycle.moves), cycle.statistics.std
        )
        return memory.with_state(state), decision


def _hold(loads: _Loads, rules: _Rules, statistics: _Statistics, hits: int, log: TransferLog) -> None:
    """Give every broker the reason why nothing is shed yet."""
    percents = loads.weighted * 100
    if hits:
        log.say_rest(HIT_COUNT, loads.stored, percents, float(hits), float(rules.hit_threshold))
    else:
        log.say_rest(HOLDS, loads.stored, percents, statistics.std * 100, rules.target_std * 100)


def _counters(cycle: _Cycle) -> dict[str, int]:
    """Return the counters that move: each chosen bundle as the success it becomes, or why none was chosen."""
    if not cycle.moves:
        reason = "NoLoadData" if cycle.empty else "NoBundles" if cycle.few else "HitCount"
        return {f"Skip/{reason}": 1}
    counters: dict[str, int] = {}
    for code, rows in cycle.log.rows.values():
        if code in UNLOAD_REASONS:
            name = f"Success/{UNLOAD_REASONS[code]}"
            counters[name] = counters.get(name, 0) + len(rows)
    return counters


def _decision(
    snapshot: Snapshot,
    loads: _Loads,
    rules: _Rules,
    log: TransferLog,
    statistics: _Statistics | None,
    state: TransferState,
    counters: Mapping[str, int],
    moves: tuple[Move, ...] = (),
    std_after: float = math.nan,
) -> SheddingDecision:
    scores: FloatArray = np.where(snapshot.brokers.has_load_data, loads.weighted, np.nan)
    lines: tuple[Line, ...] = ()
    measures: dict[str, float] = {"hit_count": float(state.hit_count)}
    if statistics is not None:
        average = statistics.average
        lines = (
            Line("average", average),
            Line("average + target deviation", average + rules.target_std),
            Line("overloaded", rules.overloaded),
            Line("underloaded", average * rules.underloaded_share),
        )
        measures |= {"average": average, "std": statistics.std, "target_std": rules.target_std}
        if moves:
            measures["std_after"] = std_after
    notes = list(loads.notes)
    if not moves and len(snapshot.bundles) and not (snapshot.bundles.top_rank >= 0).any():
        notes.append("No broker of this snapshot reports top bundles, so nothing can be shed.")
    if rules.debug:
        notes.append("loadBalancerDebugModeEnabled is on: traffic taken back in a swap makes room for further bundles.")
    return SheddingDecision(moves, tuple(log.blocks()), scores, lines, measures, counters, tuple(notes))


SHEDDER = TransferShedder()
"""The strategy with Pulsar's own placement filters."""
