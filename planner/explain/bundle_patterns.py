"""Failure patterns of bundles, topics and splits."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from planner.cluster.arrays import FloatArray, Int64Array, IntArray
from planner.cluster.decisions import Reason
from planner.cluster.internal_bundles import internal_bundles, internal_topics
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    NAMESPACE_BUNDLE_MAX_SESSIONS,
    NAMESPACE_BUNDLE_MAX_TOPICS,
    NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD,
    NAMESPACE_MAXIMUM_BUNDLES,
)
from planner.cluster.ranges import equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MIB, MS_PER_MIN
from planner.explain.finding import Finding, listed
from planner.explain.outcome import Outcome
from planner.pulsar.splitting.automatic_extensible import REFUSED
from planner.pulsar.splitting.protocol import SplitAlgorithm
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.pulsar.splitting.request import split_request
from planner.simulate.sequence import decide_split_checks, same_load

_BEHIND: Mapping[str, str] = MappingProxyType(
    {
        NAMESPACE_BUNDLE_MAX_TOPICS: "its bundles may hold many topics",
        NAMESPACE_BUNDLE_MAX_SESSIONS: "its clients may open many sessions",
        NAMESPACE_BUNDLE_MAX_MSG_RATE: "a single topic may need partitions",
        NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES: "a single topic may need partitions",
    }
)
"""Possible causes, by exceeded limit."""
_FIRST = SPLIT_ALGORITHMS[0].name
_BY_TRAFFIC = next(one.name for one in SPLIT_ALGORITHMS if one.reads_traffic)
_BY_TOPICS = next(one.name for one in SPLIT_ALGORITHMS[1:] if not (one.reads_traffic or one.needs_positions))

_MOST_CHECKS = 10

_HOT_SHARE = 0.5
_ABOVE_AVERAGE = 0.1
_MOST_COUNT_EXPONENT = 12
_MANY_BUNDLES = 16
_EMPTY_SHARE = 0.5
_CASCADE_DEPTH = 3
_SHARE_OF_FAIR = 0.5
_HARDLY_MORE = 1.05
_FEWEST = 4


def _throughput(table: Any, rows: Int64Array | slice = slice(None)) -> FloatArray:
    size: FloatArray = table.throughput_bytes_per_s(rows)
    return size


def _rate(table: Any) -> FloatArray:
    rate: FloatArray = table.msg_rate_per_s()
    return rate


def _topic_names(snapshot: Snapshot, rows: Int64Array) -> list[str]:
    names: list[str] = snapshot.topics.name.take(pa.array(rows)).to_pylist()
    return names


def _so_many(count: int, what: str) -> str:
    return f"It is the only such {what}" if count == 1 else f"{count} such {what}s in total"


def hot_topic(case: Outcome) -> Iterator[Finding]:
    """One topic is too much for a bundle, or most of what a full broker carries: no split can divide it."""
    end, config = case.trace.end, case.trace.settings
    topics = end.topics
    if not len(topics):
        yield from _hot_single_bundle(case)
        return
    rate, size = _rate(topics), _throughput(topics)
    limit_rate, limit_size = (
        config.integer(NAMESPACE_BUNDLE_MAX_MSG_RATE),
        config.integer(NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES) * MIB,
    )
    known = topics.bundle >= 0
    owner = np.where(known, end.bundles.owner[topics.bundle], -1)
    of_broker = np.bincount(owner[owner >= 0], size[owner >= 0], minlength=len(end.brokers))
    share = np.divide(size, of_broker[owner], out=np.zeros(len(size)), where=(owner >= 0) & (of_broker[owner] > 0))
    full = _far_above(case, end)
    over_limit = (rate > limit_rate) | (size > limit_size)
    of_users = ~internal_topics(end)
    hot = np.flatnonzero(of_users & (over_limit | ((share > _HOT_SHARE) & (owner >= 0) & full[owner])))
    if not len(hot):
        return
    hot = hot[np.lexsort((-rate[hot], -size[hot]))]
    names = _topic_names(end, hot)
    first = int(hot[0])
    where = f" and {share[first] * 100:.0f} % of its broker's throughput" if share[first] > _HOT_SHARE else ""
    evidence = (
        f"{names[0]} carries {size[first] / MIB:.1f} MiB/s and {rate[first]:,.0f} msg/s{where}; bundles are split"
        f" above {limit_size / MIB:.0f} MiB/s or {limit_rate:,} msg/s. {_so_many(len(hot), 'topic')}."
    )
    bundles = [end.bundle_names[i] for i in topics.bundle[hot].tolist() if i >= 0]
    brokers = [end.brokers.name[i] for i in owner[hot].tolist() if i >= 0]
    yield _hot(evidence, f"Topics: {listed(names)}.", brokers, bundles)


def _hot(evidence: str, which: str, brokers: list[str], bundles: list[str]) -> Finding:
    return Finding(
        code="hot_topic",
        title="A single hot topic, which no split can divide",
        evidence=evidence,
        remedy=f"Add partitions to the topic, or dedicate a broker to it with an isolation policy. {which}",
        severity="high",
        brokers=tuple(dict.fromkeys(brokers)),
        bundles=tuple(dict.fromkeys(bundles)),
        settings=(NAMESPACE_BUNDLE_MAX_MSG_RATE, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES),
    )


def _far_above(case: Outcome, end: Snapshot) -> Any:
    """Return which brokers are used far above the average in the last cycle. Shape (brokers of the end,)."""
    usage = case.series.usage[-1]
    average = float(np.nanmean(usage))
    place = {name: i for i, name in enumerate(case.series.brokers)}
    mine = np.array([usage[place[n]] if n in place else np.nan for n in end.brokers.name])
    with np.errstate(invalid="ignore"):
        return mine > average + _ABOVE_AVERAGE


def _hot_single_bundle(case: Outcome) -> Iterator[Finding]:
    """Return the same where topics are not listed: a bundle with one topic above the limits."""
    end, config = case.trace.end, case.trace.settings
    bundles = end.bundles
    rate, size = _rate(bundles), _throughput(bundles)
    over = (rate > config.integer(NAMESPACE_BUNDLE_MAX_MSG_RATE)) | (
        size > config.integer(NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES) * MIB
    )
    hot = np.flatnonzero(over & (bundles.topics == 1) & ~internal_bundles(end))
    if not len(hot):
        return
    hot = hot[np.argsort(-size[hot], kind="stable")]
    names = [end.bundle_names[i] for i in hot.tolist()]
    evidence = (
        f"{names[0]} holds one topic, which carries {size[hot[0]] / MIB:.1f} MiB/s and {rate[hot[0]]:,.0f} msg/s;"
        f" {_so_many(len(hot), 'bundle')}."
    )
    brokers = [end.brokers.name[i] for i in bundles.owner[hot].tolist() if i >= 0]
    yield _hot(evidence, f"Bundles: {listed(names)}.", brokers, names)


def fitting_bundle_count(hashes: Int64Array, weight: FloatArray, fair: float, most: int) -> tuple[int, float]:
    """Return how many equal bundles a namespace needs for its real topic names.

    Args:
        hashes: Hash of each topic. Shape (topics,).
        weight: Traffic of each topic. Shape (topics,).
        fair: Traffic that each broker would have if all had the same.
        most: Most bundles to think of (`loadBalancerNamespaceMaximumBundles`).

    Returns:
        The least power of two whose busiest bundle carries at most half of `fair`; where a single topic makes that
        impossible, the least one whose busiest bundle is hardly more than that topic. And what the busiest carries.
    """
    goal = max(_SHARE_OF_FAIR * fair, float(weight.max(initial=0.0)) * _HARDLY_MORE)
    return _least_count(hashes, weight, goal, most)


def _least_count(hashes: Int64Array, weight: FloatArray, goal: float, most: int) -> tuple[int, float]:
    """Return the least power of two up to `most` whose busiest bundle carries at most `goal`, and what that carries."""
    count, busiest = 1, float(weight.sum())
    for exponent in range(_MOST_COUNT_EXPONENT + 1):
        if 2**exponent > max(most, 1):
            break
        count = 2**exponent
        starts = np.array(equal_boundaries(count)[:-1], dtype=np.int64)
        inside = np.searchsorted(starts, hashes.astype(np.int64), side="right") - 1
        busiest = float(np.bincount(inside, weight, minlength=count).max(initial=0.0))
        if busiest <= goal:
            break
    return count, busiest


@dataclass(frozen=True, eq=False, slots=True)
class _Namespace:
    """One namespace at the end."""

    name: str
    bundles: Int64Array
    topics: Int64Array
    traffic: FloatArray
    """Throughput of each of its bundles."""


def _rows_of(spaces: IntArray) -> dict[int, Int64Array]:
    found: Any = pd.Series(spaces).groupby(spaces).indices
    return dict(found)


def _namespaces(end: Snapshot) -> list[_Namespace]:
    """Return the namespaces of users that have bundles, the busiest first."""
    size, of_bundle = _throughput(end.bundles), end.bundles.namespace
    known = np.flatnonzero(end.topics.bundle >= 0)
    topics = _rows_of(of_bundle[end.topics.bundle[known]])
    none, internal = np.zeros(0, dtype=np.int64), internal_bundles(end)
    found = [
        _Namespace(end.namespaces[at], mine, known[topics.get(at, none)], size[mine])
        for at, mine in sorted(_rows_of(of_bundle).items())
        if not internal[mine[0]]
    ]
    return sorted(found, key=lambda n: -float(n.traffic.sum()))


def _fair(case: Outcome, end: Snapshot) -> float:
    brokers = max(int(case.series.present[-1].sum()), 1)
    return float(_throughput(end.bundles).sum()) / brokers


def _recommended(end: Snapshot, space: _Namespace, fair: float, cap: int) -> tuple[int, float] | None:
    if not len(space.topics):
        return None
    hashes = end.topics.hash[space.topics].astype(np.int64)
    return fitting_bundle_count(hashes, _throughput(end.topics, space.topics), fair, cap)


def bundle_count_too_low(case: Outcome) -> Iterator[Finding]:
    """A namespace has so few bundles that one is more than a broker's fair share, though it could be divided."""
    end, cap = case.trace.end, case.trace.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
    fair = _fair(case, end)
    for space in _namespaces(end):
        busiest = int(space.traffic.argmax())
        bundle = int(space.bundles[busiest])
        load = float(space.traffic[busiest])
        if load <= fair or fair <= 0 or end.bundles.topics[bundle] < 2:  # noqa: PLR2004 - one topic cannot be divided
            continue
        fit = _recommended(end, space, fair, cap)
        if fit is not None and (fit[0] <= len(space.bundles) or fit[1] > load * 0.9):
            continue
        used = int((space.traffic > 0).sum())
        wanted = fit[0] if fit is not None else min(2 ** int(np.ceil(np.log2(load / fair * 2 * used))), max(cap, 1))
        names = "based on its topic names" if fit is not None else "an estimate, because its topics are not listed"
        evidence = (
            f"{space.name} has {count(len(space.bundles), 'bundle')}, {used} of them with traffic. The busiest"
            f" carries {load / MIB:.1f} MiB/s; an equal share per broker would be {fair / MIB:.1f} MiB/s."
        )
        owner = int(end.bundles.owner[bundle])
        yield Finding(
            code="bundle_count_too_low",
            title=f"Too few bundles in {space.name}",
            evidence=evidence,
            remedy=(
                f"Split it into {wanted} bundles ({names}). If its topics are unevenly distributed, split with"
                f" {_BY_TOPICS} or {_BY_TRAFFIC}."
            ),
            severity="medium",
            brokers=(end.brokers.name[owner],) if owner >= 0 else (),
            bundles=(end.bundle_names[bundle],),
            settings=(DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES, DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM),
        )


def bundle_count_too_high(case: Outcome) -> Iterator[Finding]:
    """A namespace has many bundles and most of them hold no topic."""
    end = case.trace.end
    fair = _fair(case, end)
    for space in _namespaces(end):
        empty = int((end.bundles.topics[space.bundles] == 0).sum())
        count = len(space.bundles)
        if count < _MANY_BUNDLES or empty <= _EMPTY_SHARE * count or empty == count:
            continue
        enough = "fewer bundles"
        if len(space.topics):
            hashes = end.topics.hash[space.topics].astype(np.int64)
            goal = max(fair, float(space.traffic.max()) * _HARDLY_MORE)
            fit, _ = _least_count(hashes, _throughput(end.topics)[space.topics], goal, count)
            if fit >= count:
                continue
            enough = f"{max(fit, _FEWEST)} bundles"
        yield Finding(
            code="bundle_count_too_high",
            title=f"Too many bundles in {space.name}",
            evidence=(
                f"{empty} of {count} bundles hold no topic: all {int(end.bundles.topics[space.bundles].sum())} topics"
                f" are in the other {count - empty}."
            ),
            remedy=(f"Pulsar cannot merge bundles. If you recreate the namespace, use {enough}."),
            severity="low",
            settings=(DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES,),
        )


def split_cascade(case: Outcome) -> Iterator[Finding]:
    """Splits follow one another without getting below the limits, up to the most bundles a namespace may have."""
    splits = [event for event in case.trace.events if event.kind == "split" and not case.is_internal(event.bundle)]
    cap = case.trace.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
    depth: dict[str, int] = {}
    by_space: dict[str, list[int]] = {}
    for at, event in enumerate(splits):
        depth.update(dict.fromkeys(event.children, depth.get(event.bundle, 0) + 1))
        by_space.setdefault(event.bundle.rpartition("/")[0], []).append(at)
    end = case.trace.end
    counts = np.bincount(end.bundles.namespace, minlength=len(end.namespaces)).tolist()
    have = dict(zip(end.namespaces, counts, strict=True))
    for space, places in by_space.items():
        mine = [splits[at] for at in places]
        deepest = max(depth[child] for event in mine for child in event.children)
        now = have.get(space, 0)
        if deepest < _CASCADE_DEPTH and now < cap:
            continue
        minutes = (mine[-1].at_ms - mine[0].at_ms) / MS_PER_MIN
        before = now - sum(len(event.children) - 1 for event in mine)
        full = f" It has reached the maximum of {cap}." if now >= cap else f" The maximum is {cap}."
        hit = dict.fromkeys(event.exceeded.setting for event in mine if event.exceeded is not None)
        names = tuple(hit) or (NAMESPACE_BUNDLE_MAX_MSG_RATE, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES)
        behind = "; ".join(dict.fromkeys(_BEHIND[name] for name in names))
        by_traffic = not {NAMESPACE_BUNDLE_MAX_MSG_RATE, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES}.isdisjoint(names)
        way = (
            f"{_BY_TRAFFIC}, which divides the traffic"
            if by_traffic
            else f"{_BY_TOPICS}, which halves the number of topics"
        )
        depth_text = f", with children split again up to {deepest} times" if deepest > 1 else ""
        yield Finding(
            code="split_cascade",
            title=f"Split cascade in {space}",
            evidence=(
                f"{count(len(mine), 'split')} within {minutes:.0f} min{depth_text}: from {before} to"
                f" {count(now, 'bundle')}.{full} Reason of the last split:"
                f" {mine[-1].why or 'requested by a command'}."
            ),
            remedy=(
                f"Find out why its bundles exceed {' and '.join(names)}: {behind}. Raise"
                f" {names[0] if len(names) == 1 else 'these limits'} to what one broker can serve, and split with"
                f" {way}."
            ),
            severity="high" if now >= cap else "medium",
            brokers=tuple(dict.fromkeys(event.source for event in mine if event.source)),
            bundles=tuple(event.bundle for event in mine),
            settings=(*names, NAMESPACE_MAXIMUM_BUNDLES, DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM),
            changes={DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM: _BY_TRAFFIC if by_traffic else _BY_TOPICS},
        )


def split_refused(case: Outcome) -> Iterator[Finding]:
    """Pulsar would split a bundle, and does not."""
    refused = [e for e in case.trace.events if e.kind == "split_refused" and not case.is_internal(e.bundle)]
    if refused:
        times, bundles = len(refused), tuple(dict.fromkeys(event.bundle for event in refused))
        brokers = tuple(dict.fromkeys(event.source for event in refused if event.source))
        why = refused[0].why or "no reason given"
    elif case.load_manager is LoadManager.EXTENSIBLE:
        reasons = _refused_by_brokers(case)
        times, bundles = len(reasons), tuple(reason.bundle or "" for reason in reasons)
        brokers = tuple(dict.fromkeys(reason.broker or "" for reason in reasons))
        why = reasons[0].text if reasons else ""
    else:
        return
    if not bundles:
        return
    config = case.trace.settings
    algorithm = config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM)
    known = next((one for one in SPLIT_ALGORITHMS if one.name == algorithm), None)
    finds_none = known.finds_none if known else "Pulsar has no such algorithm"
    remedy = f"{DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM} is {algorithm}: {finds_none}."
    changes: dict[str, Any] = {} if algorithm == _FIRST else {DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM: _FIRST}
    if known is not None and known.reads_traffic and case.load_manager is LoadManager.EXTENSIBLE:
        remedy += " The extensible load manager can only split a bundle in two, and drops a split with more boundaries."
        for bundle in [name for name in bundles if name in case.last.bundle_position][:1]:
            rates = _rates_of_one_boundary(case.last, bundle, known, config)
            if rates:
                remedy += (
                    f" With {NAMESPACE_BUNDLE_MAX_MSG_RATE} from {rates[0]} to {rates[-1]}, {bundle} currently gets"
                    " exactly one boundary."
                )
                changes = {NAMESPACE_BUNDLE_MAX_MSG_RATE: rates[len(rates) // 2]}
            else:
                remedy += f" No value of {NAMESPACE_BUNDLE_MAX_MSG_RATE} gives {bundle} exactly one boundary."
    if changes:
        remedy += f" {_FIRST} always finds a boundary."
    else:
        remedy += f" Split with {_BY_TOPICS}, or add partitions to the topic."
    yield Finding(
        code="split_refused",
        title="Pulsar refuses to split",
        evidence=(f"{count(times, 'split')} of {count(len(bundles), 'bundle')} refused. {bundles[0]}: {why}."),
        remedy=remedy,
        severity="medium",
        brokers=brokers,
        bundles=bundles,
        settings=(
            DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
            *(name for name in changes if name != DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM),
        ),
        changes=changes,
    )


def _rates_of_one_boundary(cluster: Snapshot, bundle: str, algorithm: SplitAlgorithm, config: Settings) -> range:
    """Return the limits of the message rate that leave one boundary: the higher it is, the fewer there are."""
    request, every = split_request(cluster, cluster.bundle_position[bundle]), range(2**31)

    def found(rate: int) -> int:
        return -len(
            algorithm.boundaries(request, config.changed(**{NAMESPACE_BUNDLE_MAX_MSG_RATE: rate})).boundaries or ()
        )

    return range(bisect_left(every, -1, key=found), bisect_left(every, 0, key=found))


def _refused_by_brokers(case: Outcome) -> list[Reason]:
    """Return for which bundles the brokers of the extensible load manager find no boundary once their hits suffice."""
    config = case.trace.settings
    if not config.flag(AUTO_BUNDLE_SPLIT_ENABLED):
        return []
    checks = min(config.integer(NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD), _MOST_CHECKS) + 1
    last = decide_split_checks(same_load(case.last, checks, config), config)[-1]
    names = last.snapshot.brokers.name, last.snapshot.bundle_names
    reasons = (r for group in last.decision.reasons if group.code in REFUSED for r in group.rows(*names))
    return [reason for reason in reasons if not case.is_internal(reason.bundle or "")]
