"""Automatic splitting of the modular load manager: the leader splits every bundle above a limit, at once.

Mirrors `BundleSplitterTask` and `ModularLoadManagerImpl.checkNamespaceBundleSplit` of Pulsar 4.2.4. It differs in that
it already asks the split algorithm, which in Pulsar the owner does when the leader's admin request arrives, and in
that a source which does not list the topics of a cluster leaves some algorithms without an answer.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from planner.cluster.arrays import BoolArray, Int64Array
from planner.cluster.decisions import ReasonBlock, ReasonCode, ReasonLog, SplitDecision, SplitOrder, block
from planner.cluster.errors import PulsarError
from planner.cluster.hashing import grouped_map_order, hash_map_order
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
    NAMESPACE_MAXIMUM_BUNDLES,
)
from planner.cluster.ranges import bundle_name
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.factory import apply_split
from planner.pulsar.splitting.limits import DIVISIBLE_TOPICS, LIMITS, SplitLoads
from planner.pulsar.splitting.protocol import SplitAlgorithm
from planner.pulsar.splitting.registry import default_split_algorithm
from planner.pulsar.splitting.request import split_request

SETTINGS = (
    AUTO_BUNDLE_SPLIT_ENABLED,
    *LIMITS,
    NAMESPACE_MAXIMUM_BUNDLES,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
)
"""Real names of the settings that decide."""

_BY_TOPICS = ReasonCode("split_modular.topics", "{topics:.0f} topics > {limit:.0f}", acts=True, limited_by=LIMITS[0])
_BY_SESSIONS = ReasonCode(
    "split_modular.sessions", "{sessions:.0f} producers and consumers > {limit:.0f}", acts=True, limited_by=LIMITS[1]
)
_BY_RATE = ReasonCode(
    "split_modular.msg_rate",
    "long-term average of {msg_rate_per_s:,.1f} msg/s > {limit_per_s:,.0f}",
    acts=True,
    limited_by=LIMITS[2],
)
_BY_BANDWIDTH = ReasonCode(
    "split_modular.bandwidth",
    "long-term average of {throughput_mib_per_s:.2f} MiB/s > {limit_mib_per_s:.0f}",
    acts=True,
    limited_by=LIMITS[3],
)
_ACTS = (_BY_TOPICS, _BY_SESSIONS, _BY_RATE, _BY_BANDWIDTH)

_FEW_TOPICS = ReasonCode("split_modular.few_topics", "{topics:.0f} topics: fewer than two, nothing to divide")
_BELOW = ReasonCode(
    "split_modular.below",
    "within the limits: {topics:.0f} topics, {sessions:.0f} producers and consumers, long-term averages of "
    "{msg_rate_per_s:,.1f} msg/s and {throughput_mib_per_s:.2f} MiB/s",
)
_NAMESPACE_FULL = ReasonCode(
    "split_modular.namespace_full",
    (
        "above a limit, but its namespace has {bundles:.0f} bundles including the {chosen:.0f} chosen in "
        "this cycle; the maximum is {limit:.0f}"
    ),
)
FULL = frozenset({_NAMESPACE_FULL})
"""The reason of bundles above a limit whose namespace may not have more bundles."""
_TOO_NARROW = ReasonCode(
    "split_modular.too_narrow", "above a limit, but its range holds a single hash and cannot be split"
)
_NO_BOUNDARY = ReasonCode(
    "split_modular.no_boundary", "above a limit, but the default split algorithm finds no boundary: nothing changes"
)
_REFUSED = ReasonCode(
    "split_modular.refused", "above a limit, but the bundle factory refuses the boundary of the default split algorithm"
)
_ALGORITHM_FAILED = ReasonCode(
    "split_modular.algorithm_failed", "above a limit, but the default split algorithm fails: nothing changes"
)
_TOPICS_UNKNOWN = ReasonCode(
    "split_modular.topics_unknown",
    ("above a limit and due to be split, but this snapshot does not list its topics, so the split position is unknown"),
)
_DISABLED = ReasonCode("split_modular.disabled", "automatic splitting is turned off")
_ALONE = ReasonCode(
    "split_modular.single_broker", "fewer than two brokers have load data, so the leader does not split"
)


def decide_cycle(snapshot: Snapshot, config: Settings, *, explain: bool = True) -> SplitDecision:
    """Decide what the leader splits now, its switches included.

    Nothing is examined when `loadBalancerAutoBundleSplitEnabled` is off, or when fewer than two brokers have load data;
    the one reason given then is about the whole cluster. `explain` is as in `decide`.
    """
    if not config.flag(AUTO_BUNDLE_SPLIT_ENABLED):
        return SplitDecision((), (block(_DISABLED),))
    if int(snapshot.brokers.has_load_data.sum()) < 2:  # noqa: PLR2004 - the leader and another one
        return SplitDecision((), (block(_ALONE),))
    return decide(snapshot, config, explain=explain)


def decide(
    snapshot: Snapshot,
    config: Settings,
    *,
    visit: Int64Array | None = None,
    bundle_counts: Mapping[str, int] | None = None,
    explain: bool = True,
) -> SplitDecision:
    """Decide which bundles the leader splits.

    Topics, producers and consumers are the current ones of each load report, rates the long-term averages (0 where
    there are none). Which bundles of a namespace near `loadBalancerNamespaceMaximumBundles` are still taken depends on
    the order of visit.

    Args:
        snapshot: The cluster.
        config: Settings in force; whether splitting is switched on is for `decide_cycle` to heed.
        visit: Positions of the reported bundles in the order of visit; that of Pulsar's hash maps when None.
        bundle_counts: Bundles of each namespace by its name, 0 where absent; those of the snapshot when None.
        explain: Whether bundles that are below every limit get a reason.

    Returns:
        The bundles in the order in which the leader requests the splits. One that Pulsar chooses, and then cannot cut,
        has no children; the reason in `reasons` says why.
    """
    bundles = snapshot.bundles
    rate = np.where(bundles.has_data, bundles.msg_rate_per_s(term="long_term_"), 0.0)
    throughput = np.where(bundles.has_data, bundles.throughput_bytes_per_s(term="long_term_"), 0.0)
    loads = SplitLoads.of(bundles, rate, throughput, config)
    examined = bundles.has_stats & (bundles.owner >= 0)
    if not snapshot.brokers.has_load_data.all():
        examined[examined] &= snapshot.brokers.has_load_data[bundles.owner[examined]]
    few = loads.topics < DIVISIBLE_TOPICS
    exceeded = loads.exceeded()
    hot = examined & ~few & (exceeded > 0)
    if not explain and not hot.any():
        return SplitDecision((), ())
    order = _map_visit(snapshot, examined, hot) if visit is None else visit[hot[visit]]
    reasons: list[ReasonBlock] = []
    for code, which in ((_FEW_TOPICS, examined & few), (_BELOW, examined & ~few & (exceeded == 0))) if explain else ():
        quiet = np.flatnonzero(which)
        if len(quiet):
            numbers = loads.numbers(quiet)[: len(code.fields)]
            reasons.append(block(code, bundles.owner[quiet], quiet, numbers))
    taken, held = _under_cap(snapshot, order, config.integer(NAMESPACE_MAXIMUM_BUNDLES), bundle_counts)
    splits, cannot = _orders(snapshot, config, taken, exceeded, loads)
    return SplitDecision(splits, (*reasons, *held, *cannot))


def _map_visit(snapshot: Snapshot, examined: BoolArray, hot: BoolArray) -> Int64Array:
    """Return hot bundles as Pulsar comes to them: brokers in the order of their map, then bundles in that of theirs."""
    positions = np.flatnonzero(hot)
    if not len(positions):
        return positions
    place = np.empty(len(snapshot.brokers), dtype=np.int32)
    place[snapshot.broker_map_order] = np.arange(len(place), dtype=np.int32)
    owner = snapshot.bundles.owner
    sizes = np.bincount(owner[examined], minlength=len(place))[snapshot.broker_map_order]
    _, hashes = snapshot.names_of(positions)
    return positions[grouped_map_order(hashes, place[owner[positions]], sizes, concurrent=True)]


def _under_cap(
    snapshot: Snapshot, order: Int64Array, cap: int, bundle_counts: Mapping[str, int] | None
) -> tuple[Int64Array, list[ReasonBlock]]:
    """Take bundles while their namespace has room; return them and why the others stay."""
    namespaces = snapshot.bundles.namespace
    if bundle_counts is None:
        counts = np.bincount(namespaces, minlength=len(snapshot.namespaces)).tolist()
    else:
        counts = [bundle_counts.get(name, 0) for name in snapshot.namespaces]
    chosen = [0] * len(counts)
    taken: list[int] = []
    held: list[tuple[int, int, int]] = []
    for position, namespace in zip(order.tolist(), namespaces[order].tolist(), strict=True):
        if counts[namespace] + chosen[namespace] < cap:
            chosen[namespace] += 1
            taken.append(position)
        else:
            held.append((position, counts[namespace] + chosen[namespace], chosen[namespace]))
    if not held:
        return np.array(taken, dtype=np.int64), []
    columns = np.array(held, dtype=np.int64).T
    values = (columns[1].astype(np.float64), columns[2].astype(np.float64), float(cap))
    full = block(_NAMESPACE_FULL, snapshot.bundles.owner[columns[0]], columns[0], values)
    return np.array(taken, dtype=np.int64), [full]


def _orders(
    snapshot: Snapshot, config: Settings, taken: Int64Array, exceeded: npt.NDArray[np.int8], loads: SplitLoads
) -> tuple[tuple[SplitOrder, ...], list[ReasonBlock]]:
    """Return the splits in the order of the map of all chosen bundles, and the reasons about them."""
    names, hashes = snapshot.names_of(taken)
    algorithm = default_split_algorithm(config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM))
    orders: list[SplitOrder] = []
    log = ReasonLog()
    for at in hash_map_order(hashes).tolist():
        position = int(taken[at])
        owner = int(snapshot.bundles.owner[position])
        code, compared = _ACTS[exceeded[position] - 1], loads.compared(position, int(exceeded[position]))
        reason = code.of(*compared, broker=snapshot.brokers.name[owner], bundle=names[at])
        boundaries, children, why = _cut(snapshot, position, algorithm, config)
        orders.append(SplitOrder(names[at], snapshot.brokers.name[owner], boundaries, children, reason))
        log.say(why or code, owner, position, -1, *(() if why else compared))
    return tuple(orders), log.blocks()


def _cut(
    snapshot: Snapshot, position: int, algorithm: SplitAlgorithm, config: Settings
) -> tuple[tuple[int, ...] | None, tuple[str, ...], ReasonCode | None]:
    """Return boundaries, children, and why there are none; boundaries are None when they cannot be known here."""
    request = split_request(snapshot, position)
    ends = (request.low, request.high)
    if request.high - request.low <= 1:
        return (), (), _TOO_NARROW
    try:
        cuts = algorithm.boundaries(request, config).boundaries
    except PulsarError:
        return (), (), _ALGORITHM_FAILED
    if cuts is None and request.topic_hashes is None:
        return None, (), _TOPICS_UNKNOWN
    if not cuts:
        return (), (), _NO_BOUNDARY
    try:
        result = apply_split(ends, ends, cuts)
    except PulsarError:
        return (), (), _REFUSED
    namespace = snapshot.namespaces[snapshot.bundles.namespace[position]]
    return result.boundaries[1:-1], tuple(bundle_name(namespace, *child) for child in result.children), None
