"""Loss of every broker and of every pair of brokers, and the growth of traffic until a resource saturates.

An estimate, vectorised over all losses; `FailureReview.method` states the placement rule and its omissions. A
simulation in which a broker dies is the exact answer for one loss.
"""

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.averages import with_known_rates
from planner.pulsar.load.broker_load import averages
from planner.pulsar.load.namespace_policies import isolation_failure
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.manager.pairing import running_placement
from planner.pulsar.placement.filters import isolate
from planner.pulsar.placement.protocol import Placement
from planner.simulate.assumptions import Assumptions
from planner.simulate.usage_model import Standing, UsageModel, standing_of

MOST_BROKERS_PAIRED: Final = 100
"""With more brokers, pairs are formed of the most used ones only."""

_CELLS = 1_000_000
"""Losses x brokers in one batch."""

_TOGETHER = 250
"""Losses that are reviewed together even where they free unlike numbers of bundles."""

_PER_BUNDLE = 1e13
"""Weight of a bundle of the same namespace where their number is compared first: above every other part of a key."""

_AVOIDED = 1e12
"""Penalty of a broker that a strategy avoids: above every message rate."""


@dataclass(frozen=True, eq=False)
class FailureReview:
    """The cluster after each loss. Shape of every column but `lost`: (losses,).

    Attributes:
        brokers: Broker ids.
        lost: Positions in `brokers` of those that are lost. Shape (losses, 1 or 2).
        peak_usage: Weighted usage of the most used remaining broker (1.0 = 100 %; above it demand exceeds capacity).
        peak_broker: Its position.
        over_threshold: Remaining brokers above `loadBalancerBrokerOverloadedThresholdPercentage`.
        headroom_factor: Multiple of the traffic at which the first broker then saturates; below 1 it already has.
        unserved: Bundles that no remaining broker may serve.
        clients: Producers and consumers that have to reconnect.
        before: The cluster without any loss.
        method: Placement rule assumed for the lost bundles, and its omissions.
    """

    brokers: tuple[str, ...]
    lost: Int64Array
    peak_usage: FloatArray
    peak_broker: Int64Array
    over_threshold: Int64Array
    headroom_factor: FloatArray
    unserved: Int64Array
    clients: Int64Array
    before: Standing
    method: str

    def worst_first(self) -> Int64Array:
        """Return the losses by severity: unserved bundles first, then peak usage. Shape (losses,)."""
        return np.lexsort((-self.peak_usage, -self.unserved))

    def names(self, loss: int) -> tuple[str, ...]:
        """Return the broker ids of a loss."""
        return tuple(self.brokers[i] for i in self.lost[loss].tolist())


def review_losses(
    snapshot: Snapshot,
    config: Settings | None = None,
    *,
    lost: Literal[1, 2] = 1,
    assumptions: Assumptions | None = None,
) -> FailureReview:
    """Remove every broker, or every pair of brokers, and place their bundles on the others.

    The settings decide where bundles go; those of the snapshot where none are given. The snapshot's measure usage.

    Returns:
        One row for each loss; none where no broker would remain.

    Raises:
        SettingError: The placement strategy is unknown.
    """
    cluster = UsageModel.of(snapshot, snapshot.settings, assumptions or Assumptions())
    alive = np.flatnonzero(cluster.alive)
    before = cluster.usage(cluster.served())
    paired = alive
    if lost > 1 and len(alive) > MOST_BROKERS_PAIRED:
        paired = np.sort(alive[np.argsort(-before[alive], kind="stable")[:MOST_BROKERS_PAIRED]])
    choices = [] if len(alive) <= lost else list(combinations(paired.tolist(), lost))
    losses = np.array(choices, dtype=np.int64).reshape(-1, lost)
    rule = _Rule.of(snapshot, config or snapshot.settings)
    columns = _review(cluster, rule, losses)
    skipped = (
        ""
        if len(paired) == len(alive)
        else f" Only pairs of the {len(paired)} brokers with the highest usage are reviewed."
    )
    return FailureReview(
        brokers=snapshot.brokers.name,
        lost=frozen(losses),
        peak_usage=frozen(columns[0]),
        peak_broker=frozen(columns[1].astype(np.int64)),
        over_threshold=frozen(columns[2].astype(np.int64)),
        headroom_factor=frozen(columns[3]),
        unserved=frozen(columns[4].astype(np.int64)),
        clients=frozen(columns[5].astype(np.int64)),
        before=standing_of(cluster, before),
        method=rule.method + skipped,
    )


@dataclass(frozen=True, eq=False)
class _Rule:
    """Placement rule for lost bundles.

    Attributes:
        group: Group of brokers that each namespace may use. Shape (namespaces,).
        primary: Brokers of each group. Shape (groups, brokers).
        secondary: Brokers that join while too few primary ones remain. Shape (groups, brokers).
        least_primary: Primary brokers required. Shape (groups,).
        evenly: Whether the broker with the fewest bundles of the namespace comes first.
        by_rate: Whether the least message rate decides then; else the fewest bundles got.
        rate: Message rate of each broker as placement sees it, with a penalty for overloaded ones. Shape (brokers,).
        bundle_rate: Message rate of each bundle as placement sees it. Shape (bundles,).
        usage: Usage that LeastResourceUsageWithWeight compares with the average; None for other strategies.
        difference: Required distance of a broker below the average.
        method: Description for people.
    """

    group: Int64Array
    primary: BoolArray
    secondary: BoolArray
    least_primary: Int64Array
    evenly: bool
    by_rate: bool
    rate: FloatArray
    bundle_rate: FloatArray
    usage: FloatArray | None
    difference: float
    method: str

    @staticmethod
    def of(snapshot: Snapshot, config: Settings) -> "_Rule":
        modular = snapshot.info.load_manager is LoadManager.MODULAR
        placement = running_placement(snapshot.info.load_manager, config)
        evenly = modular and config.flag(DISTRIBUTE_BUNDLES_EVENLY_ENABLED)
        usage = weighted_usage(snapshot.brokers, config, snapshot.info.load_manager)
        limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
        known = with_known_rates(snapshot).brokers
        rate = known.msg_rate_per_s(term="long_term_")
        bundles = snapshot.bundles
        own_rate = bundles.msg_rate_per_s(term="long_term_")
        now_rate = bundles.msg_rate_per_s()
        seen = usage if modular else averages(snapshot.brokers, config).weighted_max_ema
        return _Rule(
            *_groups(snapshot),
            evenly=evenly,
            by_rate=placement.measure == "msg_rate",
            rate=rate + np.where(usage > limit, _AVOIDED, 0.0),
            bundle_rate=np.where(bundles.has_data, own_rate, now_rate),
            usage=seen if placement.measure == "averaged_usage" else None,
            difference=config.integer(AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE) / 100,
            method=_method(placement, evenly=evenly),
        )


def _method(placement: Placement, *, evenly: bool) -> str:
    first = "the broker with the fewest bundles of the namespace, then " if evenly else ""
    by_rate = placement.measure == "msg_rate"
    draw = (
        ""
        if by_rate
        else " Where Pulsar draws at random, the estimate uses the broker that has received the fewest bundles."
    )
    return (
        f"Each lost bundle is placed once, namespace by namespace, as {placement.name} would place it: on {first}the"
        f" broker that this strategy prefers, given the load before the loss.{draw} Not considered: anti-affinity"
        " groups, the topic limit, broker versions, the second attempt after an overloaded choice, and later"
        " shedding."
    )


def _groups(snapshot: Snapshot) -> tuple[Int64Array, BoolArray, BoolArray, Int64Array]:
    """Return `group`, `primary`, `secondary` and `least_primary` of a `_Rule`."""
    brokers = snapshot.brokers
    names = [brokers.name[i] for i in np.flatnonzero(brokers.registered).tolist()]
    serving = dict(zip(brokers.name, (brokers.persistent_topics_enabled & brokers.has_load_data).tolist(), strict=True))
    found: dict[tuple[tuple[str, ...], tuple[str, ...], int], int] = {}
    group = np.zeros(len(snapshot.namespaces), dtype=np.int64)
    shared: int | None = None
    for at, namespace in enumerate(snapshot.namespaces):
        if shared is not None and not snapshot.policies.isolation:
            group[at] = shared
            continue
        rule = isolate(snapshot.policies, namespace, names, serving.__getitem__)
        if snapshot.info.load_manager is LoadManager.EXTENSIBLE and isolation_failure(snapshot.policies, namespace):
            rule = replace(rule, primary=tuple(names))  # its filter fails, and keeps everybody
        least = rule.policy.min_limit if rule.policy is not None else 0
        group[at] = shared = found.setdefault((rule.primary, rule.secondary, least), len(found))
    masks = np.zeros((2, max(len(found), 1), len(brokers)), dtype=np.bool_)
    for (primary, secondary, _), at in found.items():
        masks[0, at, [brokers.position[n] for n in primary]] = True
        masks[1, at, [brokers.position[n] for n in secondary]] = True
    return group, masks[0], masks[1], np.array([key[2] for key in found] or [0], dtype=np.int64)


def _freed(cluster: UsageModel, losses: Int64Array) -> list[Int64Array]:
    """Return the bundles that each loss frees, ordered by namespace."""
    snapshot = cluster.snapshot
    of_broker = [snapshot.bundles_of(b) for b in range(len(snapshot.brokers))]
    decides = snapshot.settings.release
    gone = np.array([is_heartbeat_or_sla_namespace(name, decides) for name in snapshot.namespaces], dtype=np.bool_)
    if gone.any():  # such bundles go with their broker
        of_broker = [mine[~gone[snapshot.bundles.namespace[mine]]] for mine in of_broker]
    freed = [np.concatenate([of_broker[b] for b in row]) for row in losses.tolist()]
    return [mine[np.argsort(snapshot.bundles.namespace[mine], kind="stable")] for mine in freed]


def _review(cluster: UsageModel, rule: _Rule, losses: Int64Array) -> list[FloatArray]:
    """Return the columns of the review, each of shape (losses,).

    The losses that free most bundles come first, and beside them those that free about as many: the fewer there are to
    place, the fewer brokers can get one.
    """
    columns: list[FloatArray] = [np.zeros(len(losses)) for _ in range(6)]
    freed, reach = _freed(cluster, losses), _Reach.of(cluster, rule)
    lengths = np.array([len(mine) for mine in freed], dtype=np.int64)
    order, at = np.argsort(-lengths, kind="stable"), 0
    while at < len(order):
        longest, count = int(lengths[order[at]]), len(cluster.alive)
        most = longest + losses.shape[1] + 1
        end = at + max(_CELLS // max(count, 1), 1)
        if most < count:
            similar = int((lengths >= longest // 2).sum())
            end = min(end, max(similar, at + _TOGETHER))
        batch = order[at:end]
        queues = np.full((len(batch), longest), -1, dtype=np.int64)
        for row, loss in enumerate(batch.tolist()):
            queues[row, : lengths[loss]] = freed[loss]
        brokers = reach.within(losses[batch], most)
        for column, values in zip(columns, _after(cluster, rule, reach, losses[batch], queues, brokers), strict=True):
            column[batch] = values
        at = end
    return columns


@dataclass(frozen=True, eq=False)
class _Reach:
    """Which brokers can get a bundle: those that come first, whatever else happens, where only few are placed.

    Attributes:
        rule: The placement rule.
        alive: Brokers that are there. Shape (brokers,).
        counts: Bundles of each namespace, in the first row, on each broker, in the second, that has any; empty where
            their number does not matter. Shape (3, pairs).
        ordered: Whether the keys of brokers can be told beforehand.
        found: What `_places` has found.
    """

    rule: _Rule
    alive: BoolArray
    counts: Int64Array
    ordered: bool
    found: dict[tuple[int, bytes], Int64Array] = field(default_factory=dict)

    @staticmethod
    def of(cluster: UsageModel, rule: _Rule) -> "_Reach":
        bundles, size = cluster.snapshot.bundles, len(cluster.alive)
        owned = (bundles.owner >= 0) & rule.evenly
        pairs = bundles.namespace[owned].astype(np.int64) * size + bundles.owner[owned]
        found, numbers = np.unique(pairs, return_counts=True)
        counts = np.array([*np.divmod(found, max(size, 1)), numbers], dtype=np.int64)
        known = (rule.rate, rule.bundle_rate, cluster.own, cluster.bundle, cluster.fixed)
        ordered = not any(np.isnan(values).any() for values in known)
        return _Reach(rule, cluster.alive, counts, ordered and rule.rate.max(initial=0.0) < _PER_BUNDLE / 4)

    def few(self, losses: Int64Array) -> BoolArray:
        """Return in which groups too few primary brokers remain after each loss. Shape (losses, groups)."""
        primary = self.rule.primary & self.alive
        remain = primary.sum(axis=1) - primary.T[losses].sum(axis=1)
        few: BoolArray = remain < self.rule.least_primary
        return few

    def averages(self, losses: Int64Array, few: BoolArray) -> FloatArray:
        """Return the average usage of the brokers that each group may use after each loss. Shape (losses, groups)."""
        usage = self.rule.usage
        found = np.zeros(few.shape)
        if usage is None:
            return found
        for group in range(few.shape[1]):
            for wide in (False, True):
                allowed = self.allowed(group, wide=wide)
                rows = np.flatnonzero(few[:, group] == wide)
                inside = allowed[losses[rows]].any(axis=1)
                found[rows, group] = _mean(usage, allowed[np.newaxis])
                own = np.repeat(allowed[np.newaxis], int(inside.sum()), axis=0)
                own[np.arange(len(own))[:, np.newaxis], losses[rows[inside]]] = False
                found[rows[inside], group] = _mean(usage, own)
        return found

    def allowed(self, group: int, *, wide: bool) -> BoolArray:
        """Return the brokers there that a group may use, with the secondary ones or without. Shape (brokers,)."""
        mask: BoolArray = self.rule.primary[group] & self.alive
        if wide:
            mask |= self.rule.secondary[group] & self.alive
        return mask

    def within(self, losses: Int64Array, first: int) -> Int64Array:
        """Return the brokers, in order, that can get a bundle after some losses. Shape (such brokers,).

        Args:
            losses: The losses.
            first: How many brokers, from the one with the smallest key, come into question in each group.
        """
        rule, count = self.rule, len(self.alive)
        if first >= count or not self.ordered:
            return np.arange(count)
        few = self.few(losses)
        averages = self.averages(losses, few)
        key = rule.rate if rule.by_rate else np.zeros(count)
        chosen = np.zeros(count, dtype=np.bool_)
        for group in range(len(rule.primary)):
            for wide in (False, True):
                if not (few[:, group] == wide).any():
                    continue
                allowed = np.flatnonzero(self.allowed(group, wide=wide))
                kinds = [allowed]
                if rule.usage is not None:
                    least, most = averages[:, group].min(), averages[:, group].max()
                    sure = rule.usage[allowed] + rule.difference <= least
                    never = ~(rule.usage[allowed] + rule.difference <= most)
                    chosen[allowed[~sure & ~never]] = True
                    kinds = [allowed[sure], allowed[never]]
                for some in kinds:
                    chosen[self._first(group, some[np.argsort(key[some], kind="stable")], key, first)] = True
        return np.flatnonzero(chosen)

    def _first(self, group: int, order: Int64Array, key: FloatArray, first: int) -> Int64Array:
        """Return so many brokers that come first for each namespace of a group, all together.

        Brokers without bundles of the namespace come before all others, so most namespaces share the beginning of the
        order.
        """
        if len(order) <= 2 * first or not self.counts.size:
            return order[:first] if not self.counts.size else order
        namespace, at, number, before = self._places(group, order)
        passed = np.bincount(namespace, before < first)
        end = int(first + passed[passed + first <= len(order)].max(initial=0))
        found = [order[:end]]
        for crowded in np.flatnonzero(passed + first > len(order)).tolist():
            keys = key[order].copy()
            own = namespace == crowded
            keys[at[own]] += number[own] * _PER_BUNDLE
            found.append(order[np.argsort(keys, kind="stable")[:first]])
        return np.concatenate(found)

    def _places(self, group: int, order: Int64Array) -> Int64Array:
        """Return the pairs of `counts` that concern a group and an order, by namespace, then by place in the order.

        The rows are the namespace, the place, the number, and how many brokers before that place have none.
        """
        known = (group, order.tobytes())
        if known not in self.found:
            place = np.full(len(self.alive), -1, dtype=np.int64)
            place[order] = np.arange(len(order))
            namespace, broker, number = self.counts
            mine = (self.rule.group[namespace] == group) & (place[broker] >= 0)
            namespace, at, number = namespace[mine], place[broker[mine]], number[mine]
            sort = np.argsort(namespace * len(order) + at)
            namespace, at, number = namespace[sort], at[sort], number[sort]
            ahead = np.arange(len(at)) - np.searchsorted(namespace, namespace)
            self.found[known] = np.array([namespace, at, number, at - ahead])
        return self.found[known]


def _mean(usage: FloatArray, allowed: BoolArray) -> FloatArray:
    """Return the mean usage of the brokers in each row; 0 for none. Shape (rows,)."""
    mean: FloatArray = np.where(allowed, usage, 0.0).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)
    return mean


def _after(
    cluster: UsageModel, rule: _Rule, reach: _Reach, losses: Int64Array, queues: Int64Array, brokers: Int64Array
) -> tuple[npt.NDArray[np.generic], ...]:
    """Place the bundles freed by some losses on brokers within reach.

    Returns:
        The columns of the review, each of shape (losses,).
    """
    rows, inside = np.arange(len(losses)), cluster.narrowed(brokers)
    alive = np.repeat(inside.alive[np.newaxis], len(losses), axis=0)
    alive &= (brokers != losses[:, :, np.newaxis]).all(axis=1)
    before = cluster.served()
    served = np.repeat(before[:, brokers][:, np.newaxis], len(losses), axis=1)
    served[:, ~alive] = 0.0
    chooser = _Chooser(cluster, rule, reach, losses, alive, brokers)
    unserved = np.zeros(len(losses), dtype=np.int64)
    for bundles in queues.T:
        busy = rows[bundles >= 0]
        mine = bundles[bundles >= 0]
        to = chooser.choose(busy, mine)
        took = to >= 0
        unserved[busy[~took]] += 1
        served[:, busy[took], to[took]] += cluster.bundle[:, mine[took]]
    usage = np.where(alive, inside.usage(served), -np.inf)
    limit = cluster.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    over = (usage > limit).sum(axis=1)
    factors = np.where(alive, inside.growth(served), np.inf).min(axis=(0, 2), initial=np.inf)
    clients = np.where(queues >= 0, cluster.clients[queues], 0).sum(axis=1) if len(cluster.clients) else unserved
    peak = usage.argmax(axis=1) if len(brokers) else rows
    highest = usage[rows, peak] if len(brokers) else np.full(len(rows), -np.inf)
    peak = brokers[peak] if len(brokers) else rows
    others = np.setdiff1d(np.flatnonzero(cluster.alive), brokers, assume_unique=True)
    if len(others):
        calm = cluster.narrowed(others)
        use, factor = calm.usage(before[:, others]), calm.growth(before[:, others]).min(axis=0)
        above = np.zeros(len(cluster.alive), dtype=np.int64)
        above[others] = use > limit
        over = over + above.sum() - above[losses].sum(axis=1)
        top = _first_left(others[np.argsort(-use, kind="stable")], losses)
        known = np.full((2, len(cluster.alive) + 1), np.array([[-np.inf], [np.inf]]))  # the last one is nobody
        known[:, others] = use, factor
        higher = (known[0, top] > highest) | ((known[0, top] == highest) & (top < peak) & (top >= 0))
        highest, peak = np.where(higher, known[0, top], highest), np.where(higher, top, peak)
        factors = np.minimum(factors, known[1, _first_left(others[np.argsort(factor, kind="stable")], losses)])
    return highest, peak, over, factors, unserved, clients


def _first_left(order: Int64Array, losses: Int64Array) -> Int64Array:
    """Return the first broker in an order that is there after each loss, -1 for none. Shape (losses,)."""
    found = np.full(len(losses), -1, dtype=np.int64)
    for broker in order[losses.shape[1] :: -1].tolist():
        found = np.where((losses == broker).any(axis=1), found, broker)
    return found


class _Chooser:
    """Chooses a broker for one bundle of each loss at a time: the one with the smallest key.

    Attributes:
        key: Bundles of the namespace (where those decide), then the penalty, then the load received; infinite for
            brokers that may not serve a bundle. Shape (losses, brokers within reach).
        base: The part of `key` that does not depend on the namespace.
        now: Namespace being placed in each loss. Shape (losses,).
    """

    def __init__(
        self,
        cluster: UsageModel,
        rule: _Rule,
        reach: _Reach,
        losses: Int64Array,
        alive: BoolArray,
        brokers: Int64Array,
    ) -> None:
        self.rule, self.alive, self.brokers = rule, alive, brokers
        bundles = cluster.snapshot.bundles
        self.namespace = bundles.namespace.astype(np.int64)
        self.counts = np.zeros((len(cluster.snapshot.namespaces), len(brokers)))
        if rule.evenly:
            place = np.full(len(cluster.alive) + 1, -1, dtype=np.int64)  # the last one is nobody
            place[brokers] = np.arange(len(brokers))
            owned = place[bundles.owner] >= 0
            np.add.at(self.counts, (self.namespace[owned], place[bundles.owner[owned]]), _PER_BUNDLE)
        everyone = np.array([bool((mask | ~cluster.alive).all()) for mask in rule.primary], dtype=np.bool_)
        self.open_to_all = everyone if rule.usage is None else np.zeros_like(everyone)
        """Groups that allow every broker without preference. Shape (groups,)."""
        self.few = reach.few(losses)
        self.averages = reach.averages(losses, self.few)
        self.base = np.where(alive, rule.rate[brokers] if rule.by_rate else 0.0, np.inf)
        self.key = self.base.copy()
        self.now = np.full(len(alive), -1, dtype=np.int64)

    def enter(self, rows: Int64Array, namespaces: Int64Array) -> None:
        """Advance some losses to their next namespace."""
        self.now[rows] = namespaces
        key = self.counts[namespaces] + self.base[rows]
        group = self.rule.group[namespaces]
        narrow = ~self.open_to_all[group]
        if narrow.any():
            key[narrow] += self._barred(rows[narrow], group[narrow])
        self.key[rows] = key

    def _barred(self, rows: Int64Array, group: Int64Array) -> FloatArray:
        """Return the part of the key from isolation and LeastResourceUsageWithWeight. Shape (rows, brokers)."""
        rule, here = self.rule, self.brokers
        primary, secondary = rule.primary[group][:, here], rule.secondary[group][:, here]
        few = self.few[rows, group]
        allowed = np.where(few[:, np.newaxis], primary | secondary, primary) & self.alive[rows]
        added = np.where(allowed, 0.0, np.inf)
        if rule.usage is not None:
            average = self.averages[rows, group][:, np.newaxis]
            added += np.where(rule.usage[here] + rule.difference <= average, 0.0, _AVOIDED)
        return added

    def choose(self, rows: Int64Array, bundles: Int64Array) -> Int64Array:
        """Return a broker for one bundle of each of some losses, -1 for none. Shape as `rows`."""
        spaces = self.namespace[bundles]
        new = spaces != self.now[rows]
        if new.any():
            self.enter(rows[new], spaces[new])
        keys = self.key if len(rows) == len(self.key) else self.key[rows]
        to: Int64Array = keys.argmin(axis=1).astype(np.int64)
        to[np.isinf(keys[np.arange(len(rows)), to])] = -1
        took = to >= 0
        got = self.rule.bundle_rate[bundles[took]] if self.rule.by_rate else 1.0
        self.base[rows[took], to[took]] += got
        self.key[rows[took], to[took]] += got + (_PER_BUNDLE if self.rule.evenly else 0.0)
        return to
