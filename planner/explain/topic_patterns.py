"""Failure patterns of single topics: too much for a broker, most of a partitioned topic, or above a bundle's limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, log2
from typing import Final

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray
from planner.cluster.hashing import partitioned_topic
from planner.cluster.internal_bundles import internal_bundles, internal_topics
from planner.cluster.names import (
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
)
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MIB
from planner.explain.finding import Finding, Severity, listed
from planner.explain.halving import halved
from planner.explain.held import APART
from planner.explain.outcome import Outcome
from planner.explain.topic_advice import (
    LOOK_FOR_KEY,
    PART,
    PartitionAdvice,
    larger_machine,
    partition_advice,
    raised,
    topic_usage,
)
from planner.simulate.measuring import measured_by
from planner.simulate.usage_model import UsageModel, at_the_end

_HOT: Final = 1 / 3
"""Share of a broker's capacity from which on one topic is hot, whatever the limits of bundles."""
_HOT_SHARE: Final = 0.5
_ABOVE_AVERAGE: Final = 0.1
_AS_HOT: Final = 0.05
"""Usage by which a broker may be below the most used one and still count as one of the hottest."""
_NEARLY_ALL: Final = 0.995
_LOOKED_AT: Final = 50
"""Topics that may be skewed partitions, the most used first."""
_DIVIDED: Final = 5
"""Hot topics that one remedy divides."""


def hot_topic(case: Outcome) -> Iterator[Finding]:
    """One topic takes a third of a broker, or most of what a full broker carries: no split can divide it."""
    end = at_the_end(case.trace)
    model = _model(case, end)
    if not len(end.topics):
        yield from _hot_single_bundle(model)
        return
    rows = np.flatnonzero((end.topics.bundle >= 0) & ~internal_topics(end))
    usage = topic_usage(model, rows)
    share = _share_of_broker(end, rows)
    hot = _is_hot(case, end, end.bundles.owner[end.topics.bundle[rows]], usage, share)
    order = np.lexsort((rows, -usage))
    looked_at = [int(at) for at in order[:_LOOKED_AT] if hot[at] or usage[at] >= PART]
    advice = {at: partition_advice(end, int(rows[at]), float(usage[at])) for at in looked_at}
    skewed = [at for at in looked_at if advice[at].is_largest]
    topics = {advice[at].topic for at in skewed}
    skewed = [
        at for at in looked_at if at in skewed or (advice[at].skewed and advice[at].topic not in topics and hot[at])
    ]
    divisible = [
        int(at)
        for at in order[hot[order]]
        if partitioned_topic(_name(end, int(rows[at]))) not in topics and at not in skewed
    ]
    for places in (skewed, divisible):
        if places:
            first, *others = [
                advice.get(at) or partition_advice(end, int(rows[at]), float(usage[at])) for at in places[:_DIVIDED]
            ]
            found = _topics(case, model, first, rows[places], usage[places], share[places], hot[places])
            if first.skewed:
                yield _carried(replace(found, code="key_skew"), model, rows[places], usage[places])
            else:
                yield _spread(case, _divided(found, first, others), [first, *others])


def hottest_topics(case: Outcome) -> Mapping[str, float]:
    """Return the usage (1.0 = 100 %) that the most used topic of each broker takes by itself at the end.

    No move and no split brings the usage of its broker below that. Where topics are not listed, that of bundles which
    hold one topic.
    """
    return case.once("hottest topics", lambda: _hottest(case))


def topic_dominates(case: Outcome, broker: str) -> bool:
    """Say whether one topic is most of what a broker uses at the end."""
    usage = dict(zip(case.series.brokers, case.series.usage[-1].tolist(), strict=True))
    topic = hottest_topics(case).get(broker, 0.0)
    return topic > 0 and topic >= _HOT_SHARE * usage.get(broker, 0.0)


def _hottest(case: Outcome) -> dict[str, float]:
    end = at_the_end(case.trace)
    model = _model(case, end)
    if len(end.topics):
        rows = np.flatnonzero((end.topics.bundle >= 0) & ~internal_topics(end))
        owner, usage = end.bundles.owner[end.topics.bundle[rows]], topic_usage(model, rows)
    else:
        single = np.flatnonzero((end.bundles.topics == 1) & ~internal_bundles(end))
        owner, usage = end.bundles.owner[single], _bundle_usage(model)[single]
    found = np.zeros(len(end.brokers))
    np.maximum.at(found, owner[owner >= 0], usage[owner >= 0])
    return dict(zip(end.brokers.name, found.tolist(), strict=True))


def _model(case: Outcome, end: Snapshot) -> UsageModel:
    """Return the cluster at the end by the weights by which the usage of its brokers is measured."""
    settings = measured_by(case.trace.start.settings, case.trace.settings)
    return UsageModel.of(end, settings, case.trace.scenario.assumptions)


def _bundle_usage(model: UsageModel) -> FloatArray:
    """Return the share of its broker's capacity that each bundle takes by itself; 0 without an owner."""
    owner = model.snapshot.bundles.owner.astype(np.int64)
    usage = (model.bundle / model.limit[:, owner] * model.weight).max(axis=0, initial=0.0)
    found: FloatArray = np.where(owner >= 0, usage, 0.0)
    return found


def _name(end: Snapshot, row: int) -> str:
    return str(end.topics.name[row].as_py())


def _carried(finding: Finding, model: UsageModel, rows: Int64Array, usage: FloatArray) -> Finding:
    """Return a finding whose remedy makes machines large enough for partitions that fill theirs by themselves."""
    limit = model.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    owners = model.snapshot.bundles.owner[model.snapshot.topics.bundle[rows[usage >= limit]]]
    wanted = [larger_machine(model, int(owner)) for owner in dict.fromkeys(owners[:_DIVIDED].tolist()) if owner >= 0]
    larger = [one for one in wanted if one is not None]
    if not larger:
        return finding
    machines = "; ".join(words for _, words in larger)
    return replace(
        finding,
        remedy=f"{LOOK_FOR_KEY} Until then, only a larger machine carries it: {machines}.",
        edits=tuple(edit for edit, _ in larger),
    )


def _divided(finding: Finding, first: PartitionAdvice, others: Sequence[PartitionAdvice]) -> Finding:
    """Return a finding whose remedy divides other hot topics as well."""
    more = {one.topic: one for one in others if one.topic != first.topic and one.edits}
    if not more or not first.edits:
        return finding
    names = listed([f"{one.topic} ({one.wanted} partitions)" for one in more.values()])
    return replace(
        finding,
        remedy=f"{finding.remedy} Likewise for {names}.",
        edits=(*first.edits, *(edit for one in more.values() for edit in one.edits)),
    )


def _spread(case: Outcome, finding: Finding, advice: Sequence[PartitionAdvice]) -> Finding:
    """Return a finding whose remedy first splits namespaces with too few bundles for all the partitions."""
    brokers = int(case.series.present[-1].sum())
    few = [one for one in advice if one.edits and one.fullest >= _HOT and len(one.bundles) < min(one.wanted, brokers)]
    spaces = dict.fromkeys(one.bundles[0].rpartition("/")[0] for one in few)
    wanted = 2 ** ceil(log2(max(brokers, 1)))
    splits = {space: halved(case.trace.start, space, wanted) for space in spaces}
    named = [space for space, edits in splits.items() if edits]
    if not named:
        return finding
    return replace(
        finding,
        remedy=f"{finding.remedy} Before that, split {listed(named)} into {wanted} bundles: there are too few for"
        f" {count(brokers, 'broker')}.",
        edits=(*(edit for space in named for edit in splits[space]), *finding.edits),
    )


def _is_hot(case: Outcome, end: Snapshot, owner: IntArray, usage: FloatArray, share: FloatArray) -> BoolArray:
    full = _far_above(case, end)
    found: BoolArray = (owner >= 0) & ((usage >= _HOT) | ((share > _HOT_SHARE) & full[owner] & (usage >= _HOT / 2)))
    return found


def _share_of_broker(end: Snapshot, rows: Int64Array) -> FloatArray:
    """Return the share of its broker's throughput that each topic has. Shape (rows,)."""
    size = end.topics.throughput_bytes_per_s(rows)
    owner = end.bundles.owner[end.topics.bundle[rows]].astype(np.int64)
    whole = np.bincount(owner[owner >= 0], size[owner >= 0], minlength=max(len(end.brokers), 1))
    return np.divide(size, whole[owner], out=np.zeros(len(rows)), where=(owner >= 0) & (whole[owner] > 0))


def _topics(
    case: Outcome,
    model: UsageModel,
    advice: PartitionAdvice,
    rows: Int64Array,
    usage: FloatArray,
    share: FloatArray,
    hot: BoolArray,
) -> Finding:
    """Return what is to be said of hot topics, or of skewed partitions, the most used first."""
    end, topics = model.snapshot, model.snapshot.topics
    names = [_name(end, int(row)) for row in rows]
    first = int(rows[0])
    bundles = [int(at) for at in topics.bundle[rows]]
    brokers = [end.brokers.name[int(end.bundles.owner[at])] for at in bundles if end.bundles.owner[at] >= 0]
    size, rate = float(topics.throughput_bytes_per_s(first)), float(topics.msg_rate_per_s(first))
    also = f" and {share[0] * 100:.0f} % of its broker's throughput" if share[0] > _HOT_SHARE else ""
    what = "such partition" if advice.skewed else "such topic"
    more = f" {count(len(rows), what)} in total: {listed(names)}." if len(rows) > 1 else ""
    where = brokers[0] if brokers else "its broker"
    skewed = advice.skewed
    title = (
        f"Key skew: one of {advice.partitions} partitions has {_share(advice.share)} of the traffic"
        if skewed
        else "A single hot topic, which no split can divide"
    )
    advised = f" {advice.evidence}" if advice.evidence else ""
    limit = case.limit
    full = {name for name, used in zip(case.series.brokers, case.series.usage[-1], strict=True) if used > limit}
    owners = end.bundles.owner[topics.bundle[rows[hot]]].tolist()
    hot_on = {end.brokers.name[at] for at in owners if at >= 0}
    severity: Severity = "medium" if hot.any() else "low"  # a skewed partition need not be hot
    if not full.isdisjoint(hot_on) or usage[0] >= limit:
        severity = "high"
    return Finding(
        code="hot_topic",
        title=title,
        evidence=(
            f"{names[0]} carries {size / MIB:.1f} MiB/s and {rate:,.0f} msg/s{also}: by itself it uses"
            f" {usage[0] * 100:.0f} % of {where}.{advised}{more}"
        ),
        remedy=advice.remedy,
        severity=severity,
        brokers=tuple(dict.fromkeys(brokers)),
        bundles=tuple(dict.fromkeys(end.bundle_names[at] for at in bundles)),
        edits=advice.edits,
    )


def _share(part: float) -> str:
    """Return a share in whole percent; one that is not whole is never 100 %."""
    return f"{part * 100:.0f} %" if part == 1 or part < _NEARLY_ALL else "over 99 %"


def _far_above(case: Outcome, end: Snapshot) -> BoolArray:
    """Return which brokers are used far above the average in the last cycle. Shape (brokers of the end,).

    Where several are hot, the average is near them: of the most used ones, far above the least used one counts as well.
    """
    usage = case.series.usage[-1]
    place = {name: i for i, name in enumerate(case.series.brokers)}
    mine = np.array([usage[place[n]] if n in place else np.nan for n in end.brokers.name])
    if not np.isfinite(usage).any():  # nobody is there
        return np.zeros(len(mine), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        least, average, most = float(np.nanmin(usage)), float(np.nanmean(usage)), float(np.nanmax(usage))
        above: BoolArray = (mine > average + _ABOVE_AVERAGE) | ((mine >= most - _AS_HOT) & (mine - least >= APART))
    return above


def _hot_single_bundle(model: UsageModel) -> Iterator[Finding]:
    """Return the same where topics are not listed: a bundle that holds one topic."""
    end = model.snapshot
    bundles = end.bundles
    owner = bundles.owner.astype(np.int64)
    usage = _bundle_usage(model)
    size = bundles.throughput_bytes_per_s()
    hot = np.flatnonzero((usage >= _HOT) & (bundles.topics == 1) & ~internal_bundles(end))
    if not len(hot):
        return
    hot = hot[np.argsort(-usage[hot], kind="stable")]
    names = [end.bundle_names[i] for i in hot.tolist()]
    brokers = tuple(dict.fromkeys(end.brokers.name[i] for i in owner[hot].tolist()))
    more = f" {count(len(hot), 'such bundle')} in total: {listed(names)}." if len(hot) > 1 else ""
    yield Finding(
        code="hot_topic",
        title="A single hot topic, which no split can divide",
        evidence=(
            f"{names[0]} holds one topic, which carries {size[hot[0]] / MIB:.1f} MiB/s and by itself uses"
            f" {usage[hot[0]] * 100:.0f} % of {brokers[0]}.{more}"
        ),
        remedy=(
            f"Use {max(ceil(usage[hot[0]] / PART), 2)} partitions for that topic, so that each uses about"
            f" {PART * 100:.0f} % of a broker. A capture with topics shows its name."
        ),
        severity="high" if usage[hot[0]] >= 2 * _HOT else "medium",
        brokers=brokers,
        bundles=tuple(names),
    )


def topic_above_limit(case: Outcome) -> Iterator[Finding]:
    """Single topics exceed the limits of a bundle, though a broker serves them with ease: splits are in vain."""
    end, config = case.trace.end, case.trace.settings
    topics = end.topics
    if not len(topics):
        return
    of_users = (topics.bundle >= 0) & ~internal_topics(end)
    limits = (
        (NAMESPACE_BUNDLE_MAX_MSG_RATE, topics.msg_rate_per_s(), 1.0, "msg/s"),
        (NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES, topics.throughput_bytes_per_s(), float(MIB), "MiB/s"),
    )
    above: dict[str, Int64Array] = {}
    changes: dict[str, int] = {}
    parts = []
    for setting, values, unit, label in limits:
        limit = config.integer(setting)
        rows = np.flatnonzero(of_users & (values > limit * unit))
        if not len(rows):
            continue
        above[setting] = rows[np.argsort(-values[rows], kind="stable")]
        largest = float(values[above[setting][0]]) / unit
        changes[setting] = raised(largest)
        parts.append(
            f"{count(len(rows), 'topic')} alone exceed{'s' if len(rows) == 1 else ''} {setting} = {limit:,}"
            f" ({topics.name[int(above[setting][0])].as_py()} has {largest:,.0f} {label})"
        )
    if not above:
        return
    setting, rows = next(iter(above.items()))
    bundles = [end.bundle_names[int(at)] for at in topics.bundle[np.concatenate(list(above.values()))]]
    yield Finding(
        code="topic_above_limit",
        title=(
            f"{count(len(rows), 'topic')} alone exceed{'s' if len(rows) == 1 else ''} {setting} ="
            f" {config.integer(setting):,}"
        ),
        evidence=f"{'; '.join(parts)}. No split can divide a topic, so each split of their bundles is in vain.",
        remedy=(
            f"Raise {' and '.join(f'{name} to {value:,}' for name, value in changes.items())}: one broker can serve"
            " that."
        ),
        severity="low",
        bundles=tuple(dict.fromkeys(bundles)),
        settings=tuple(changes),
        changes=changes,
    )
