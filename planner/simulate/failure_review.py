"""Loss of every broker and of every pair of brokers, and the growth of traffic until a resource saturates.

An estimate, vectorised over all losses; `FailureReview.method` states the placement rule and its omissions. A
simulation in which a broker dies is the exact answer for one loss.
"""

from dataclasses import dataclass, replace
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

    The settings are those of the snapshot where none are given.

    Returns:
        One row for each loss; none where no broker would remain.

    Raises:
        SettingError: The placement strategy is unknown.
    """
    cluster = UsageModel.of(snapshot, config or snapshot.settings, assumptions or Assumptions())
    alive = np.flatnonzero(cluster.alive)
    before = cluster.usage(cluster.served())
    paired = alive
    if lost > 1 and len(alive) > MOST_BROKERS_PAIRED:
        paired = np.sort(alive[np.argsort(-before[alive], kind="stable")[:MOST_BROKERS_PAIRED]])
    choices = [] if len(alive) <= lost else list(combinations(paired.tolist(), lost))
    losses = np.array(choices, dtype=np.int64).reshape(-1, lost)
    rule = _Rule.of(cluster)
    step = max(_CELLS // max(len(snapshot.brokers), 1), 1)
    parts = [_after(cluster, rule, losses[at : at + step]) for at in range(0, len(losses), step)]
    columns = [np.concatenate(rows) for rows in zip(*parts, strict=True)] if parts else [np.zeros(0)] * 6
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
    def of(cluster: UsageModel) -> "_Rule":
        snapshot, config = cluster.snapshot, cluster.config
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


def _queues(cluster: UsageModel, losses: Int64Array) -> Int64Array:
    """Return the bundles freed by each loss, ordered by namespace, padded with -1. Shape (losses, most)."""
    snapshot = cluster.snapshot
    of_broker = [snapshot.bundles_of(b) for b in range(len(snapshot.brokers))]
    decides = snapshot.settings.release
    gone = np.array([is_heartbeat_or_sla_namespace(name, decides) for name in snapshot.namespaces], dtype=np.bool_)
    if gone.any():  # such bundles go with their broker
        of_broker = [mine[~gone[snapshot.bundles.namespace[mine]]] for mine in of_broker]
    freed = [np.concatenate([of_broker[b] for b in row]) for row in losses.tolist()]
    queues = np.full((len(losses), max((len(f) for f in freed), default=0)), -1, dtype=np.int64)
    for at, mine in enumerate(freed):
        queues[at, : len(mine)] = mine[np.argsort(snapshot.bundles.namespace[mine], kind="stable")]
    return queues


def _after(cluster: UsageModel, rule: _Rule, losses: Int64Array) -> tuple[npt.NDArray[np.generic], ...]:
    """Place the bundles freed by some losses; return the columns of the review, each of shape (losses,)."""
    snapshot = cluster.snapshot
    rows, count = np.arange(len(losses)), len(snapshot.brokers)
    alive = np.repeat(cluster.alive[np.newaxis], len(losses), axis=0)
    alive[rows[:, np.newaxis], losses] = False
    served = np.repeat(cluster.served()[:, np.newaxis], len(losses), axis=1)
    served[:, ~alive] = 0.0
    chooser = _Chooser(cluster, rule, alive)
    unserved = np.zeros(len(losses), dtype=np.int64)
    queues = _queues(cluster, losses)
    for bundles in queues.T:
        busy = rows[bundles >= 0]
        mine = bundles[bundles >= 0]
        to = chooser.choose(busy, mine)
        took = to >= 0
        unserved[busy[~took]] += 1
        served[:, busy[took], to[took]] += cluster.bundle[:, mine[took]]
    usage = np.where(alive, cluster.usage(served), -np.inf)
    limit = cluster.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    factors = np.where(alive, cluster.growth(served), np.inf).min(axis=(0, 2), initial=np.inf)
    clients = np.where(queues >= 0, cluster.clients[queues], 0).sum(axis=1) if len(cluster.clients) else unserved
    peak = usage.argmax(axis=1) if count else rows
    return usage.max(axis=1), peak, (usage > limit).sum(axis=1), factors, unserved, clients


class _Chooser:
    """Chooses a broker for one bundle of each loss at a time: the one with the smallest key.

    Attributes:
        key: Bundles of the namespace (where those decide), then the penalty, then the load received; infinite for
            brokers that may not serve a bundle. Shape (losses, brokers).
        base: The part of `key` that does not depend on the namespace.
        now: Namespace being placed in each loss. Shape (losses,).
    """

    def __init__(self, cluster: UsageModel, rule: _Rule, alive: BoolArray) -> None:
        self.rule, self.alive = rule, alive
        bundles = cluster.snapshot.bundles
        self.namespace = bundles.namespace.astype(np.int64)
        self.counts = np.zeros((len(cluster.snapshot.namespaces), len(cluster.alive)))
        if rule.evenly:
            owned = bundles.owner >= 0
            np.add.at(self.counts, (self.namespace[owned], bundles.owner[owned]), _PER_BUNDLE)
        everyone = np.array([bool((mask | ~cluster.alive).all()) for mask in rule.primary], dtype=np.bool_)
        self.open_to_all = everyone if rule.usage is None else np.zeros_like(everyone)
        """Groups that allow every broker without preference. Shape (groups,)."""
        self.base = np.where(alive, rule.rate if rule.by_rate else 0.0, np.inf)
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
        rule = self.rule
        primary, secondary = rule.primary[group] & self.alive[rows], rule.secondary[group] & self.alive[rows]
        few = primary.sum(axis=1) < rule.least_primary[group]
        allowed = np.where(few[:, np.newaxis], primary | secondary, primary)
        added = np.where(allowed, 0.0, np.inf)
        if rule.usage is not None:
            number = np.maximum(allowed.sum(axis=1), 1)
            average = np.where(allowed, rule.usage, 0.0).sum(axis=1) / number
            added += np.where(rule.usage + rule.difference <= average[:, np.newaxis], 0.0, _AVOIDED)
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
