"""Failure patterns of bundles, topics and splits."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from planner.cluster.arrays import FloatArray, Int64Array, IntArray
from planner.cluster.decisions import Reason, ReasonCode
from planner.cluster.internal_bundles import internal_bundles
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
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MIB, MS_PER_MIN
from planner.explain.finding import Finding
from planner.explain.halving import divided, halved, parted
from planner.explain.outcome import Outcome
from planner.explain.split_advice import SplitAdvice, split_advice
from planner.explain.topic_advice import raised
from planner.pulsar.manager.splits import next_splits
from planner.pulsar.splitting import automatic_extensible, automatic_modular
from planner.pulsar.splitting.limits import DIVISIBLE_TOPICS
from planner.pulsar.splitting.protocol import SplitAlgorithm
from planner.pulsar.splitting.registry import HALVES, SPLIT_ALGORITHMS
from planner.pulsar.splitting.request import split_request, topics_listed
from planner.simulate.edits.registry import BundleSplit
from planner.simulate.event import Event
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
_BY_TRAFFIC = next(one.name for one in SPLIT_ALGORITHMS if one.reads_traffic)
_BY_TOPICS = next(one.name for one in SPLIT_ALGORITHMS[1:] if not (one.reads_traffic or one.needs_positions))

_MOST_CHECKS = 10

_MOST_COUNT_EXPONENT = 12
_MANY_BUNDLES = 16
_ENOUGH = 4
"""Bundles for each broker from which on their number is not the fault of a single large one."""
_EMPTY_SHARE = 0.5
_CASCADE_DEPTH = 3
_SHARE_OF_FAIR = 0.5
_HARDLY_MORE = 1.05


def _throughput(table: Any, rows: Int64Array | slice = slice(None)) -> FloatArray:
    size: FloatArray = table.throughput_bytes_per_s(rows)
    return size


def _rate(table: Any) -> FloatArray:
    rate: FloatArray = table.msg_rate_per_s()
    return rate


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


def _rows_in(snapshot: Snapshot, namespace: str) -> Int64Array:
    """Return positions of the bundles of a namespace; none where it is not there."""
    known = namespace in snapshot.namespaces
    return snapshot.bundles_in(snapshot.namespaces.index(namespace)) if known else np.zeros(0, dtype=np.int64)


def bundle_count_too_low(case: Outcome) -> Iterator[Finding]:
    """A namespace has so few bundles that one is more than a broker's fair share, though it could be divided."""
    end, cap = case.trace.end, case.trace.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
    fair = _fair(case, end)
    for space in _namespaces(end):
        busiest = int(space.traffic.argmax())
        bundle = int(space.bundles[busiest])
        load = float(space.traffic[busiest])
        if load <= fair or fair <= 0 or end.bundles.topics[bundle] < DIVISIBLE_TOPICS:
            continue
        fit = _recommended(end, space, fair, cap)
        if fit is not None and (fit[0] <= len(space.bundles) or fit[1] > load * 0.9):
            continue
        used = int((space.traffic > 0).sum())
        wanted = fit[0] if fit is not None else min(2 ** int(np.ceil(np.log2(load / fair * 2 * used))), max(cap, 1))
        carries = f"carries {load / MIB:.1f} MiB/s; an equal share per broker would be {fair / MIB:.1f} MiB/s."
        several = f"{count(len(space.bundles), 'bundle')}, {used} of them with traffic. The busiest {carries}"
        evidence = f"{space.name} has {several if len(space.bundles) > 1 else f'1 bundle. It {carries}'}"
        owner = int(end.bundles.owner[bundle])
        sparse = bool((end.bundles.topics[space.bundles] == 0).mean() > _EMPTY_SHARE)
        many = len(space.bundles) >= _ENOUGH * int(case.series.present[-1].sum())
        alone = many and int((space.traffic > fair).sum()) == 1
        if alone:
            wanted = 2 ** int(np.ceil(np.log2(load / fair / _SHARE_OF_FAIR)))
        what = end.bundle_names[bundle] if alone else "its bundles"
        edits = _dividing(case.trace.start, space.name, wanted, what if alone else "")
        wanted = len(edits) + (1 if alone else len(_rows_in(case.trace.start, space.name)))
        if len(space.bundles) >= cap:
            evidence += f" {NAMESPACE_MAXIMUM_BUNDLES} is {cap}, so it is not split automatically."
        example = f", for example into {wanted}" if edits else ""
        yield Finding(
            code="bundle_count_too_low",
            title=f"A bundle of {space.name} is too large" if sparse or alone else f"Too few bundles in {space.name}",
            evidence=evidence,
            remedy=f"Split {what}{example}. The page Namespaces tries numbers of bundles and cuts.",
            severity="medium",
            brokers=(end.brokers.name[owner],) if owner >= 0 else (),
            bundles=(end.bundle_names[bundle],),
            settings=(DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES, DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM),
            edits=edits,
        )


def _dividing(start: Snapshot, space: str, wanted: int, bundle: str) -> tuple[BundleSplit, ...]:
    """Return the splits that divide a namespace, or one bundle of it, no further than its topics can be parted."""
    if topics_listed(start):
        return parted(start, space, wanted, bundle)
    rows = _rows_in(start, space)
    if bundle:
        rows = rows[[start.bundle_names[at] == bundle for at in rows.tolist()]]
    most = 2 ** int(np.log2(max(int(start.bundles.topics[rows].sum()), 1)))
    if most <= len(rows):
        return ()
    return divided(start, bundle, min(wanted, most)) if bundle else halved(start, space, min(wanted, most))


def bundle_count_too_high(case: Outcome) -> Iterator[Finding]:
    """A namespace has many bundles and most of them hold no topic."""
    end = case.trace.end
    fair = _fair(case, end)
    for space in _namespaces(end):
        empty = int((end.bundles.topics[space.bundles] == 0).sum())
        count = len(space.bundles)
        if count < _MANY_BUNDLES or empty <= _EMPTY_SHARE * count or empty == count:
            continue
        if len(space.topics):
            hashes = end.topics.hash[space.topics].astype(np.int64)
            goal = max(fair, float(space.traffic.max()) * _HARDLY_MORE)
            if _least_count(hashes, _throughput(end.topics)[space.topics], goal, count)[0] >= count:
                continue
        idle = space.bundles[end.bundles.topics[space.bundles] == 0]
        yield Finding(
            code="bundle_count_too_high",
            title=f"Too many bundles in {space.name}",
            evidence=(
                f"{empty} of {count} bundles hold no topic: all {int(end.bundles.topics[space.bundles].sum())} topics"
                f" are in the other {count - empty}."
            ),
            remedy="Pulsar cannot merge bundles. To recreate the namespace, see how many the page Namespaces advises.",
            severity="low",
            bundles=tuple(end.bundle_names[at] for at in idle.tolist()),
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
    have = _bundles_by_namespace(end)
    for space, places in by_space.items():
        mine = [splits[at] for at in places]
        deepest = max(depth[child] for event in mine for child in event.children)
        now = have.get(space, 0)
        if deepest < _CASCADE_DEPTH and now < cap:
            continue
        minutes = round((mine[-1].at_ms - mine[0].at_ms) / MS_PER_MIN)
        span = f"within {minutes:,} min" if minutes else "within a minute"
        before = now - sum(len(event.children) - 1 for event in mine)
        full = f" It has reached the maximum of {cap}." if now >= cap else f" The maximum is {cap}."
        hit = dict.fromkeys(event.exceeded.setting for event in mine if event.exceeded is not None)
        names = tuple(hit) or (NAMESPACE_BUNDLE_MAX_MSG_RATE, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES)
        remedy, changes = _after_cascade(case, mine, names)
        depth_text = f", with children split again up to {deepest} times" if deepest > 1 else ""
        yield Finding(
            code="split_cascade",
            title=f"Split cascade in {space}",
            evidence=(
                f"{count(len(mine), 'split')} {span}{depth_text}: from {before} to"
                f" {count(now, 'bundle')}.{full} Reason of the last split:"
                f" {mine[-1].why or 'requested by a command'}."
            ),
            remedy=remedy,
            severity="high" if now >= cap else "medium",
            brokers=tuple(dict.fromkeys(event.source for event in mine if event.source)),
            bundles=tuple(event.bundle for event in mine),
            settings=(*names, NAMESPACE_MAXIMUM_BUNDLES, DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM),
            changes=changes,
        )


def _after_cascade(
    case: Outcome, splits: Sequence[Event], names: tuple[str, ...]
) -> tuple[str, dict[str, SettingValue]]:
    """Return what to do about splits that follow one another, as the advice on splits has it, and the settings."""
    by_traffic = not {NAMESPACE_BUNDLE_MAX_MSG_RATE, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES}.isdisjoint(names)
    limits = " and ".join(names)
    config = case.trace.settings
    advice = _advice_on_largest(case, splits, names) if by_traffic else None
    if advice is not None and advice.verdict == "Not worth it":
        values = _values_above(case.trace.end, names, config)
        raise_to = " and ".join(f"{name} to {value:,}" for name, value in values.items()) or limits
        return f"Do not split further. {advice.sentence} Raise {raise_to}, so that splitting ends.", dict(values)
    by, what = (_BY_TRAFFIC, "divides the traffic") if by_traffic else (_BY_TOPICS, "halves the number of topics")
    behind = "; ".join(dict.fromkeys(_BEHIND[name] for name in names))
    remedy = (
        f"Find out why its bundles exceed {limits}: {behind}. Raise"
        f" {limits if len(names) == 1 else 'these limits'} to what one broker can serve, and split with {by}, which"
        f" {what}."
    )
    if topics_listed(case.trace.start):
        return remedy, {DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM: by}
    # Without topics, such an algorithm splits nothing in a simulation, so that it would always look better.
    values = _values_above(case.trace.start, names, config)
    shown = f" With {' and '.join(f'{name} = {value:,}' for name, value in values.items())}, nothing is split."
    return f"{remedy}{shown if values else ''}", dict(values)


def _advice_on_largest(case: Outcome, splits: Sequence[Event], names: tuple[str, ...]) -> SplitAdvice | None:
    """Return the advice on the busiest bundle that a cascade left, or else on the one that it began with."""
    end, config = case.trace.end, case.trace.settings
    children = dict.fromkeys(child for event in splits for child in event.children)
    left = np.array([end.bundle_position[child] for child in children if child in end.bundle_position], dtype=np.int64)
    if len(left):
        size = _rate(end.bundles) if NAMESPACE_BUNDLE_MAX_MSG_RATE in names else _throughput(end.bundles)
        return split_advice(end, int(left[size[left].argmax()]), config)
    at = case.trace.start.bundle_position.get(splits[0].bundle)
    return None if at is None else split_advice(case.trace.start, at, config)


def _values_above(end: Snapshot, names: tuple[str, ...], config: Settings) -> dict[str, int]:
    """Return the limits that leave some room above the largest bundle of any user: limits are those of the cluster."""
    of_users, bundles = ~internal_bundles(end), end.bundles
    sizes = {
        NAMESPACE_BUNDLE_MAX_TOPICS: bundles.topics,
        NAMESPACE_BUNDLE_MAX_SESSIONS: bundles.producers + bundles.consumers,
        NAMESPACE_BUNDLE_MAX_MSG_RATE: _rate(bundles),
        NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES: _throughput(bundles) / MIB,
    }
    most = {name: float(sizes[name][of_users].max(initial=0)) for name in names}
    return {name: raised(value) for name, value in most.items() if value > config.integer(name)}


def split_refused(case: Outcome) -> Iterator[Finding]:
    """Pulsar would split a bundle, and does not."""
    refused = [e for e in case.trace.events if e.kind == "split_refused" and not case.is_internal(e.bundle)]
    if refused:
        times, bundles = len(refused), tuple(dict.fromkeys(event.bundle for event in refused))
        brokers = tuple(dict.fromkeys(event.source for event in refused if event.source))
        why = refused[0].why or "no reason given"
    elif case.load_manager is LoadManager.EXTENSIBLE:
        reasons = _reasons_of_splits(case, automatic_extensible.REFUSED)
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
    changes: dict[str, Any] = {} if algorithm == HALVES else {DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM: HALVES}
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
        remedy += f" {HALVES} always finds a boundary."
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


def namespace_full(case: Outcome) -> Iterator[Finding]:
    """Bundles exceed a limit, and are not split because their namespace may not have more bundles."""
    config = case.trace.settings
    cap = config.integer(NAMESPACE_MAXIMUM_BUNDLES)
    have = _bundles_by_namespace(case.last)
    if all(bundles < cap for bundles in have.values()):
        return
    held: dict[str, list[str]] = {}
    for reason in _reasons_of_splits(case, automatic_extensible.FULL | automatic_modular.FULL):
        held.setdefault((reason.bundle or "").rpartition("/")[0], []).append(reason.bundle or "")
    for space, bundles in sorted(held.items(), key=lambda item: (-len(item[1]), item[0])):
        if have[space] < cap:  # only this check fills it
            continue
        above = f"{count(len(bundles), 'bundle')} of {space} {'are' if len(bundles) > 1 else 'is'} above a limit"
        values = _values_above(case.last, tuple(_BEHIND), config)
        limits = f"Raise {' and '.join(f'{name} to {value:,}' for name, value in values.items())}"
        more = f"{NAMESPACE_MAXIMUM_BUNDLES} to {2 * cap:,}"
        few = cap < Settings(release=config.release).integer(NAMESPACE_MAXIMUM_BUNDLES)  # more do not pay
        yield Finding(
            code="namespace_full",
            title=f"{space} has the most bundles that automatic splits make",
            evidence=(
                f"{above} and would be split, but {space} has {have[space]:,}; {NAMESPACE_MAXIMUM_BUNDLES} is {cap:,}."
                " Every check logs this again."
            ),
            remedy=(
                (f"Raise {more}." if few else f"{limits}, if one broker can serve that, or {more}.")
                + " The page Namespaces tries numbers of bundles."
            ),
            severity="low",
            bundles=tuple(bundles),
            settings=(NAMESPACE_MAXIMUM_BUNDLES, *values),
            changes={NAMESPACE_MAXIMUM_BUNDLES: 2 * cap} if few else dict(values),
        )


def _bundles_by_namespace(snapshot: Snapshot) -> dict[str, int]:
    """Return how many bundles each namespace has, by its name."""
    counts = np.bincount(snapshot.bundles.namespace, minlength=len(snapshot.namespaces)).tolist()
    return dict(zip(snapshot.namespaces, counts, strict=True))


def _reasons_of_splits(case: Outcome, codes: frozenset[ReasonCode]) -> list[Reason]:
    """Return the reasons with these codes that the next check for splits gives, once hits suffice."""
    config = case.trace.settings
    if not config.flag(AUTO_BUNDLE_SPLIT_ENABLED):
        return []
    if case.load_manager is LoadManager.MODULAR:
        shown, decision = case.last, next_splits(case.last, config)
    else:
        checks = min(config.integer(NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD), _MOST_CHECKS) + 1
        last = decide_split_checks(same_load(case.last, checks, config), config)[-1]
        shown, decision = last.snapshot, last.decision
    names = shown.brokers.name, shown.bundle_names
    reasons = (reason for group in decision.reasons if group.code in codes for reason in group.rows(*names))
    return [reason for reason in reasons if not case.is_internal(reason.bundle or "")]
