"""Failure pattern of brokers that refuse a kind of topic, so that placement leaves them out."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow.compute as pc

from planner.cluster.arrays import BoolArray, FloatArray
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.explain.finding import Finding, Severity, listed
from planner.explain.held import APART
from planner.explain.outcome import Outcome
from planner.pulsar.load.namespace_policies import isolation_policy

ENABLE_PERSISTENT_TOPICS: Final = "enablePersistentTopics"
_ENABLE_NON_PERSISTENT_TOPICS: Final = "enableNonPersistentTopics"


def topics_refused(case: Outcome) -> Iterator[Finding]:
    """A broker refuses persistent topics, or non-persistent ones that exist: nothing of the kind is placed there."""
    table = case.trace.cycles[0].view.brokers
    there = table.registered & table.has_load_data
    if (there & ~table.persistent_topics_enabled).any():
        yield _persistent(case, there)
    listed_there = _non_persistent(case.trace.start)
    if (there & ~table.non_persistent_topics_enabled).any() and listed_there:
        yield _of_non_persistent(case, there, listed_there)


def refused_kinds(snapshot: Snapshot, broker: int) -> str:
    """Return which topics a broker refuses, in a sentence; empty for none."""
    table = snapshot.brokers
    off = {
        "persistent": (table.persistent_topics_enabled, ENABLE_PERSISTENT_TOPICS),
        "non-persistent": (table.non_persistent_topics_enabled, _ENABLE_NON_PERSISTENT_TOPICS),
    }
    said = [f"{kind} topics ({setting} is false)" for kind, (serves, setting) in off.items() if not serves[broker]]
    return f"It refuses {' and '.join(said)}." if said else ""


def _persistent(case: Outcome, there: BoolArray) -> Finding:
    view = case.trace.cycles[0].view
    able = there & view.brokers.persistent_topics_enabled
    usage, limit = _usage(case), case.limit
    off = _idlest_first(view, there & ~able, usage)
    others = usage[able]
    by_policy = _by_policy(view, there & ~able)
    mean, most = (float(others.mean()), float(others.max())) if len(others) else (0.0, 0.0)
    idle = float(usage[view.brokers.position[off[0]]])
    severity: Severity = "low"
    if not len(others) or by_policy:
        severity = "high"
    elif not case.calm and (mean - idle >= APART or most > limit):
        severity = "medium"
    evidence = "Once unloaded, bundles of namespaces without an isolation policy stay without a broker."
    if len(others):
        one = "it" if len(off) == 1 else "them"
        evidence = f"Bundles of namespaces without an isolation policy are never placed on {one}."
        if mean - idle >= APART:
            evidence += f" {off[0]} uses {idle * 100:.0f} %, the brokers that take them {mean * 100:.0f} % on average."
        if case.load_manager is LoadManager.EXTENSIBLE and idle < float(others.min()):
            evidence += (
                f" {case.shedder} pairs each busy broker with the least used one, which takes nothing of theirs."
            )
    if by_policy:
        evidence += (
            f" Isolation policies do not ask for this setting: by its policy, {by_policy[0]} is on such a broker, which"
            f" refuses its persistent topics{f', and {len(by_policy) - 1} more' if len(by_policy) > 1 else ''}."
        )
    return Finding(
        code="topics_refused",
        title=_title(off, "persistent", ENABLE_PERSISTENT_TOPICS, everyone=not len(others)),
        evidence=evidence,
        remedy=_remedy(
            off, "non-persistent", ENABLE_PERSISTENT_TOPICS, alone=not len(others), by_policy=bool(by_policy)
        ),
        severity=severity,
        brokers=tuple(off),
        bundles=by_policy,
        settings=(ENABLE_PERSISTENT_TOPICS,),
    )


def _of_non_persistent(case: Outcome, there: BoolArray, bundles: Sequence[str]) -> Finding:
    view = case.trace.cycles[0].view
    able = there & view.brokers.non_persistent_topics_enabled
    off = _idlest_first(view, there & ~able, _usage(case))
    return Finding(
        code="topics_refused",
        title=_title(off, "non-persistent", _ENABLE_NON_PERSISTENT_TOPICS, everyone=not able.any()),
        evidence=(
            f"{count(len(bundles), 'bundle')} {'has' if len(bundles) == 1 else 'have'} non-persistent topics, such as"
            f" {bundles[0]}. Without an isolation policy, a lookup of such a topic never places its bundle there."
            " Shedding and lookups of persistent topics may, and the broker then refuses the non-persistent ones."
        ),
        remedy=_remedy(off, "persistent", _ENABLE_NON_PERSISTENT_TOPICS, alone=not able.any()),
        severity="low" if able.any() else "high",
        brokers=tuple(off),
        bundles=tuple(bundles),
        settings=(_ENABLE_NON_PERSISTENT_TOPICS,),
    )


def _title(off: Sequence[str], kind: str, setting: str, *, everyone: bool) -> str:
    who = "Every broker" if everyone else listed(off)
    return f"{who} refuse{'s' if everyone or len(off) == 1 else ''} {kind} topics: {setting} is false"


def _remedy(off: Sequence[str], only: str, setting: str, *, alone: bool, by_policy: bool = False) -> str:
    one, they, are = ("it", "it", "is") if len(off) == 1 else ("them", "they", "are")
    meant = "" if alone else f" Where {they} {are} meant for {only} topics only, the others have to carry the rest."
    policy = f" Until then, leave {one} out of isolation policies." if by_policy else ""
    return f"Set {setting} to true in broker.conf of {listed(off)}, and restart {one}.{meant}{policy}"


def _usage(case: Outcome) -> FloatArray:
    """Return the first reported usage, by the brokers of the first view; 0 where unknown. Shape (brokers,)."""
    place = {name: at for at, name in enumerate(case.series.brokers)}
    rows = [place[name] for name in case.trace.cycles[0].view.brokers.name]
    usage: FloatArray = np.nan_to_num(case.reported_usage[0][rows])
    return usage


def _idlest_first(view: Snapshot, which: BoolArray, usage: FloatArray) -> list[str]:
    return [view.brokers.name[at] for at in sorted(np.flatnonzero(which).tolist(), key=lambda at: float(usage[at]))]


def _by_policy(view: Snapshot, off: BoolArray) -> tuple[str, ...]:
    """Return the bundles with topics that brokers serve by an isolation policy, the busiest first."""
    table = view.bundles
    used = ~internal_bundles(view) & (table.topics > 0) & (table.owner >= 0)
    rows = np.flatnonzero(used & off[table.owner])
    under = [at for at in rows.tolist() if isolation_policy(view.policies, view.namespaces[table.namespace[at]])]
    size = table.throughput_bytes_per_s()
    return tuple(view.bundle_names[at] for at in sorted(under, key=lambda at: -float(size[at])))


def _non_persistent(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the bundles that hold listed non-persistent topics."""
    topics = snapshot.topics
    if not len(topics):
        return ()
    found = np.asarray(pc.starts_with(topics.name, "non-persistent://"))
    rows = np.unique(topics.bundle[found & (topics.bundle >= 0)]).tolist()
    return tuple(snapshot.bundle_names[at] for at in rows)
