"""Automatic splitting in the extensible load manager: each broker splits those of its bundles that stay hot.

Mirrors `DefaultNamespaceBundleSplitStrategyImpl` of Pulsar 4.2.4. It differs in that a source which does not list the
topics of a cluster leaves the split algorithm without an answer, which a broker always has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, IntArray
from planner.cluster.decisions import ReasonBlock, ReasonCode, ReasonLog, SplitDecision, SplitOrder, add_reasons
from planner.cluster.errors import PulsarError
from planner.cluster.hashing import hash_map_order
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
    MAX_NUMBER_OF_BUNDLES_TO_SPLIT_PER_CYCLE,
    NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD,
    NAMESPACE_MAXIMUM_BUNDLES,
)
from planner.cluster.ranges import FULL_HIGH, bundle_name, format_range
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.limits import LIMITS, SplitLoads
from planner.pulsar.splitting.registry import default_split_algorithm
from planner.pulsar.splitting.request import split_request

SETTINGS = (
    AUTO_BUNDLE_SPLIT_ENABLED,
    *LIMITS,
    NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD,
    NAMESPACE_MAXIMUM_BUNDLES,
    MAX_NUMBER_OF_BUNDLES_TO_SPLIT_PER_CYCLE,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
)
"""Real names of the settings that decide; the caller checks the first."""

_BY_TOPICS = ReasonCode(
    "split_extensible.topics",
    "{topics:.0f} topics > {limit:.0f}, {hits:.0f} cycles in a row",
    acts=True,
    limited_by=LIMITS[0],
)
_BY_SESSIONS = ReasonCode(
    "split_extensible.sessions",
    "{sessions:.0f} producers and consumers > {limit:.0f}, {hits:.0f} cycles in a row",
    acts=True,
    limited_by=LIMITS[1],
)
_BY_RATE = ReasonCode(
    "split_extensible.msg_rate",
    "{msg_rate_per_s:,.1f} msg/s > {limit_per_s:,.0f}, {hits:.0f} cycles in a row",
    acts=True,
    limited_by=LIMITS[2],
)
_BY_BANDWIDTH = ReasonCode(
    "split_extensible.bandwidth",
    "{throughput_mib_per_s:.2f} MiB/s > {limit_mib_per_s:.0f}, {hits:.0f} cycles in a row",
    acts=True,
    limited_by=LIMITS[3],
)
_ACTS = (_BY_TOPICS, _BY_SESSIONS, _BY_RATE, _BY_BANDWIDTH)

SPLIT_REASONS: Mapping[ReasonCode, str] = dict(zip(_ACTS, ("Topics", "Sessions", "MsgRate", "Bandwidth"), strict=True))
"""Pulsar's `SplitDecision.Reason` for each reason that splits."""

_FEW_TOPICS = ReasonCode("split_extensible.few_topics", "{topics:.0f} topics: fewer than two, nothing to divide")
_NOT_OWNED = ReasonCode("split_extensible.not_owned", "the broker has statistics for it but does not own it")
_TOO_NARROW = ReasonCode("split_extensible.too_narrow", "its range holds a single hash; counted as a failure")
_BELOW = ReasonCode(
    "split_extensible.below",
    "within the limits: {topics:.0f} topics, {sessions:.0f} producers and consumers, {msg_rate_per_s:,.1f} msg/s, "
    "{throughput_mib_per_s:.2f} MiB/s",
)
_HIT_COUNT = ReasonCode(
    "split_extensible.hit_count", "above a limit for {hits:.0f} cycles in a row; more than {threshold:.0f} are needed"
)
_NAMESPACE_FULL = ReasonCode(
    "split_extensible.namespace_full",
    (
        "above a limit, but its namespace has {bundles:.0f} bundles including those chosen in this cycle; "
        "the maximum is {limit:.0f}"
    ),
)
_PARALLEL = ReasonCode(
    "split_extensible.splitting",
    (
        "above a limit, but a bundle that shares a boundary is being split, in this namespace or in one "
        "whose name begins with its name"
    ),
)
_NO_BOUNDARY = ReasonCode(
    "split_extensible.no_boundary",
    ("above a limit, but the split algorithm returns {boundaries:.0f} boundaries instead of one; counted as a failure"),
)
_ALGORITHM_FAILED = ReasonCode(
    "split_extensible.algorithm_failed", "above a limit, but the split algorithm fails; counted as a failure"
)
_TOPICS_UNKNOWN = ReasonCode(
    "split_extensible.topics_unknown",
    "above a limit, but this snapshot does not list its topics, so the split position is unknown",
)
_CYCLE_FULL = ReasonCode(
    "split_extensible.cycle_full", "not examined: {chosen:.0f} bundles are already chosen, the maximum per cycle"
)

_FAILS_CYCLE = ReasonCode(
    "split_extensible.fails_cycle",
    (
        "above a limit, but the split algorithm cuts at an end of its range, so a child would be empty and "
        "Pulsar's cycle fails"
    ),
)
REFUSED = frozenset({_NO_BOUNDARY, _ALGORITHM_FAILED, _FAILS_CYCLE})
"""Reasons of bundles whose hits suffice and that are not split all the same."""
FULL = frozenset({_NAMESPACE_FULL})
"""The reason of bundles whose hits suffice and whose namespace may not have more bundles."""
_LOST = ReasonCode(
    "split_extensible.lost", "above a limit and chosen, but Pulsar's cycle failed at a later bundle: nothing is split"
)
_CYCLE_FAILED = ReasonCode("split_extensible.cycle_failed", "not examined: Pulsar's cycle failed at an earlier bundle")


@dataclass(frozen=True, slots=True)
class AutoSplitState:
    """What a broker remembers between cycles.

    Attributes:
        hit_counts: `splitConditionHitCounts`: for how many cycles a bundle was above a limit, by its full name.
    """

    hit_counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Visit:
    """What a broker goes through in one cycle.

    Attributes:
        broker: Position of the broker in the snapshot.
        bundles: Positions of the bundles it has statistics of, in the order of its map. Shape (n,).
        owned: Whether it owns them. Shape (n,).
        bundle_counts: Bundles of each namespace of the snapshot. Shape (namespaces,).
        splitting: Full names of the bundles in state Splitting, anywhere in the cluster.
        topics_listed: Whether `Snapshot.topics` lists the topics of these bundles; otherwise an algorithm that divides
            topics leaves open what happens.
    """

    broker: int
    bundles: Int64Array
    owned: BoolArray
    bundle_counts: Int64Array
    splitting: tuple[str, ...] = ()
    topics_listed: bool = True


def visit_of(snapshot: Snapshot, broker: int, splitting: Sequence[str] = ()) -> Visit:
    """Return what a broker of the snapshot goes through: the bundles it owns and reports, in hash map order."""
    mine = np.flatnonzero(snapshot.bundles.owner == broker)  # without sorting the bundles of all brokers
    return _visit(snapshot, broker, mine, tuple(splitting), _bundle_counts(snapshot))


def _bundle_counts(snapshot: Snapshot) -> Int64Array:
    return np.bincount(snapshot.bundles.namespace, minlength=len(snapshot.namespaces))


def _visit(
    snapshot: Snapshot, broker: int, mine: Int64Array, splitting: tuple[str, ...], bundle_counts: Int64Array
) -> Visit:
    mine = mine[snapshot.bundles.has_stats[mine]]
    order = mine[hash_map_order(snapshot.bundle_name_hashes[mine], concurrent=True)]
    owned = np.ones(len(order), dtype=np.bool_)
    return Visit(broker, order, owned, bundle_counts, splitting, topics_listed=len(snapshot.topics) > 0)


def decide(
    snapshot: Snapshot, visit: Visit, state: AutoSplitState, config: Settings, *, explain: bool = True
) -> tuple[AutoSplitState, SplitDecision]:
    """Decide one cycle of one broker.

    Rates, topics and sessions are the current ones (`bundles.msg_rate_in_per_s` and so on). The topics that the split
    algorithm divides are those of `snapshot.topics`.

    Args:
        snapshot: The cluster.
        visit: What the broker goes through; `visit_of` for a broker of the snapshot.
        state: What the broker remembers.
        config: Settings in force; whether automatic splitting is on at all is for the caller to heed.
        explain: Whether bundles that are not above a limit get a reason.

    Returns:
        The memory afterwards, and the decision. Chosen bundles are forgotten at once; those left out because the cycle
        is full keep their count as it was.
    """
    run = _Run(snapshot, config, explain=explain)
    return run.cycle(visit, state), run.decision()


def decide_all(
    snapshot: Snapshot, states: Mapping[str, AutoSplitState], config: Settings, *, explain: bool = True
) -> tuple[dict[str, AutoSplitState], SplitDecision]:
    """Decide one cycle of every broker of a snapshot; each does so by itself.

    Args:
        snapshot: The cluster.
        states: What each broker remembers, by its id; nothing where absent.
        config: Settings in force.
        explain: As in `decide`.

    Returns:
        What each broker remembers afterwards, those without counts left out, and all decisions together.
    """
    run = _Run(snapshot, config, explain=explain)
    hot = np.flatnonzero(run.exceeded > 0)
    busy = set(snapshot.bundles.owner[hot].tolist()) - {-1}
    busy |= {snapshot.brokers.position[name] for name in states if name in snapshot.brokers.position}
    after: dict[str, AutoSplitState] = {}
    counts = _bundle_counts(snapshot)
    for broker in sorted(busy):
        name = snapshot.brokers.name[broker]
        visit = _visit(snapshot, broker, snapshot.bundles_of(broker), (), counts)
        state = run.cycle(visit, states.get(name, AutoSplitState()))
        if state.hit_counts:
            after[name] = state
    if run.explains:
        quiet = snapshot.bundles.has_stats & (snapshot.bundles.owner >= 0)
        if busy:
            quiet &= ~np.isin(snapshot.bundles.owner, sorted(busy))
        examined = np.flatnonzero(quiet)
        run.examined.append((examined, snapshot.bundles.owner[examined], np.ones(len(examined), dtype=np.bool_)))
    return after, run.decision()


class _Run:
    """The cycles of one moment: what holds for all bundles, and what was found."""

    def __init__(self, snapshot: Snapshot, config: Settings, *, explain: bool) -> None:
        self.snapshot = snapshot
        self.config = config
        self.needed_hits = config.integer(NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD)
        self.most_bundles = config.integer(NAMESPACE_MAXIMUM_BUNDLES)
        self.per_cycle = config.integer(MAX_NUMBER_OF_BUNDLES_TO_SPLIT_PER_CYCLE)
        table = snapshot.bundles
        self.loads = SplitLoads.of(table, table.msg_rate_per_s(), table.throughput_bytes_per_s(), config)
        self.few = self.loads.topics < 2  # noqa: PLR2004 - a bundle is divided between topics
        self.narrow = table.high - table.low <= 1
        self.exceeded = np.where(self.few | self.narrow, np.int8(0), self.loads.exceeded())
        """Which limit is exceeded first, 1 to 4; 0 for none, or when the bundle is not considered."""
        self.explains = explain or bool(self.narrow.any())
        """Whether all bundles are examined; those that are too narrow count as failures."""
        self.splits: list[SplitOrder] = []
        self.examined: list[tuple[Int64Array, IntArray, BoolArray]] = []
        """Reports that the brokers walked through: bundles, the broker, and whether it owns them."""
        self.log = ReasonLog()
        self.failures = 0

    def cycle(self, visit: Visit, state: AutoSplitState) -> AutoSplitState:
        """Let one broker go through its bundles; log every reason and return what it remembers."""
        places = self.places(visit, state)
        hits = {name: state.hit_counts[name] for name in places}
        skipped = self.few[visit.bundles] | self.narrow[visit.bundles] | ~visit.owned
        hot = (self.exceeded[visit.bundles] > 0) & ~skipped
        chosen: dict[int, SplitOrder] = {}
        failed_at, end = -1, len(visit.bundles)
        for place in np.flatnonzero(hot).tolist():
            position = int(visit.bundles[place])
            name = self.snapshot.bundle_names[position]
            hits[name] = hits.get(name, 0) + 1
            cut = self.cut(visit, position, hits[name], chosen)
            if cut is None:
                continue
            if _leaves_empty_child(self.snapshot, position, cut):
                failed_at, end = position, place + 1
                break
            chosen[position] = self.order(visit, position, name, hits.pop(name), cut)
            if len(chosen) == self.per_cycle:
                end = place + 1
                break
        for name, at in places.items():
            if at < end and not hot[at] and not skipped[at]:
                del hits[name]
        self.finish(visit, chosen, failed_at, visit.bundles[end:])
        brokers = np.full(end, visit.broker, dtype=np.int32)
        self.examined.append((visit.bundles[:end], brokers, visit.owned[:end]))
        return AutoSplitState(hits)

    def places(self, visit: Visit, state: AutoSplitState) -> dict[str, int]:
        """Return where in the visit the bundles come that the broker remembers; those that left are forgotten."""
        if not state.hit_counts:
            return {}
        position, place_of = self.snapshot.bundle_position, {p: at for at, p in enumerate(visit.bundles.tolist())}
        return {name: place_of[position[name]] for name in state.hit_counts if position.get(name, -1) in place_of}

    def finish(self, visit: Visit, chosen: Mapping[int, SplitOrder], failed_at: int, left: Int64Array) -> None:
        """Take over what was chosen, unless the cycle failed, and log what was not come to."""
        if failed_at < 0:
            self.splits.extend(chosen.values())
            for position, order in chosen.items():
                self.hold(visit, position, order.reason.code, *order.reason.values.values())
            for position in left.tolist():
                self.hold(visit, position, _CYCLE_FULL, float(len(chosen)))
            return
        self.hold(visit, failed_at, _FAILS_CYCLE)
        for position in chosen:
            self.hold(visit, position, _LOST)
        for position in left.tolist():
            self.hold(visit, position, _CYCLE_FAILED)

    def cut(self, visit: Visit, position: int, hits: int, chosen: Mapping[int, SplitOrder]) -> int | None:
        """Decide about one bundle above a limit; log why it stays, or return where it is cut."""
        table = self.snapshot.bundles
        if hits <= self.needed_hits:
            self.hold(visit, position, _HIT_COUNT, float(hits), float(self.needed_hits))
            return None
        namespace = int(table.namespace[position])
        count = int(visit.bundle_counts[namespace]) + sum(int(table.namespace[i]) == namespace for i in chosen)
        if count >= self.most_bundles:
            self.hold(visit, position, _NAMESPACE_FULL, float(count), float(self.most_bundles))
            return None
        low, high = int(table.low[position]), int(table.high[position])
        if _is_parallel(self.snapshot.namespaces[namespace], low, high, visit.splitting):
            self.hold(visit, position, _PARALLEL)
            return None
        return self.boundary(visit, position)

    def order(self, visit: Visit, position: int, name: str, hits: int, cut: int) -> SplitOrder:
        """Return how a bundle is split, with the first limit it exceeds."""
        table, exceeded = self.snapshot.bundles, int(self.exceeded[position])
        code, broker = _ACTS[exceeded - 1], self.snapshot.brokers.name[visit.broker]
        reason = code.of(*self.loads.compared(position, exceeded), hits, broker=broker, bundle=name)
        namespace = self.snapshot.namespaces[table.namespace[position]]
        children = (
            bundle_name(namespace, int(table.low[position]), cut),
            bundle_name(namespace, cut, int(table.high[position])),
        )
        return SplitOrder(name, broker, (cut,), children, reason)

    def hold(self, visit: Visit, position: int, code: ReasonCode, *values: float) -> None:
        """Log the reason about one bundle."""
        self.log.say(code, visit.broker, position, -1, *values)

    def boundary(self, visit: Visit, position: int) -> int | None:
        """Ask the configured algorithm; log a failure unless it answers exactly one boundary."""
        request = split_request(self.snapshot, position, listed=visit.topics_listed)
        algorithm = default_split_algorithm(self.config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM))
        try:
            answer = algorithm.boundaries(request, self.config).boundaries or ()
        except PulsarError:
            answer = None
        if answer is not None and len(answer) == 1:
            return answer[0]
        if request.topic_hashes is None:
            self.hold(visit, position, _TOPICS_UNKNOWN)
            return None
        self.failures += 1
        if answer is None:
            self.hold(visit, position, _ALGORITHM_FAILED)
        else:
            self.hold(visit, position, _NO_BOUNDARY, float(len(answer)))
        return None

    def explain(self) -> list[ReasonBlock]:
        """Return why bundles that are not above a limit stay; those above one were logged one by one."""
        if not self.examined or not self.explains:
            return []
        bundles = np.concatenate([bundles for bundles, _, _ in self.examined])
        brokers = np.concatenate([brokers for _, brokers, _ in self.examined])
        owned = np.concatenate([owned for _, _, owned in self.examined])
        narrow = owned & ~self.few[bundles] & self.narrow[bundles]
        self.failures += int(narrow.sum())
        below = owned & ~self.few[bundles] & ~narrow & (self.exceeded[bundles] == 0)
        reasons: list[ReasonBlock] = []
        few = self.few[bundles]
        add_reasons(reasons, _FEW_TOPICS, few, brokers, self.loads.topics[bundles], bundles=bundles)
        add_reasons(reasons, _NOT_OWNED, ~owned & ~few, brokers, bundles=bundles)
        add_reasons(reasons, _TOO_NARROW, narrow, brokers, bundles=bundles)
        add_reasons(reasons, _BELOW, below, brokers, *self.loads.numbers(bundles), bundles=bundles)
        return reasons

    def decision(self) -> SplitDecision:
        """Return everything that was found."""
        blocks = [*self.explain(), *self.log.blocks()]
        counters: dict[str, int] = {}
        for order in self.splits:
            name = f"Success/{SPLIT_REASONS[order.reason.code]}"
            counters[name] = counters.get(name, 0) + 1
        if self.failures:
            counters["Failure/Unknown"] = self.failures
        return SplitDecision(tuple(self.splits), tuple(blocks), counters)


def _leaves_empty_child(snapshot: Snapshot, position: int, cut: int) -> bool:
    """Say whether a cut is none, so that Pulsar fails to make the children; the last range of all is closed."""
    low, high = int(snapshot.bundles.low[position]), int(snapshot.bundles.high[position])
    return cut <= low or cut > high or (cut == high and high != FULL_HIGH)


def _is_parallel(namespace: str, low: int, high: int, splitting: Sequence[str]) -> bool:
    """Say whether a bundle being split has an end in common; namespaces are compared by their beginning."""
    low_text, high_text = format_range(low, high).split("_")
    for name in splitting:
        if name.startswith(namespace):
            other_low, _, other_high = name.rpartition("/")[2].partition("_")
            if other_low == low_text or other_high == high_text:
                return True
    return False
