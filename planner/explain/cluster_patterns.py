"""Failure patterns of machines and capacity: what no balancing can help."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.cluster.errors import PulsarError
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE,
    BROKER_MAX_TOPICS,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
    OVERRIDE_BROKER_NIC_SPEED_GBPS,
    PREFER_LATER_VERSIONS,
    SHEDDING_ENABLED,
)
from planner.cluster.text import count, percent, times, without_package
from planner.cluster.units import KBIT_PER_GBIT
from planner.explain.finding import Finding, Severity, listed
from planner.explain.health import is_full
from planner.explain.outcome import Outcome
from planner.explain.topic_advice import raised
from planner.explain.unlike import beyond_network, odd_limits
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.filters import latest
from planner.pulsar.placement.registry import placement_by_name
from planner.pulsar.throttling.precedence import RATE_SETTINGS
from planner.simulate.dispatch.caps import AT_THE_LIMIT, at_the_limit, dispatch_caps, dispatched, throttles_consumers
from planner.simulate.dispatch.edits import doubled_limit
from planner.simulate.edits.registry import MachineChange, NewBrokers
from planner.simulate.usage_model import Growth

if TYPE_CHECKING:
    from planner.cluster.setting import SettingValue
    from planner.cluster.tables import BrokerTable

_MANY_CLIENTS = 0.5
"""Share of all clients from which on it is many."""
_FEW_CLIENTS = 50
_ALIKE_USAGE = 0.01
"""Difference of two usages that decides nothing (1.0 = 100 %)."""


def out_of_capacity(case: Outcome) -> Iterator[Finding]:
    """Brokers would be at the overload threshold even in perfect balance: balancing cannot help. Or none is left."""
    found, present = case.before_after.after, case.series.present[-1]
    brokers, usage = int(present.sum()), case.series.usage[-1]
    limit = case.limit
    if not case.trace.end.brokers.registered.any():
        yield _no_broker(case)
    if not brokers or not is_full(found, case.trace.start.settings):
        return
    at_best = found.balanced_usage
    more = max(math.ceil(brokers * at_best / limit) - brokers, 1) if limit > 0 else brokers
    order = np.argsort(-np.nan_to_num(usage, nan=-1.0), kind="stable").tolist()
    verb = "is" if brokers == 1 else "are"
    evidence = (
        f"{found.over_threshold} of {count(brokers, 'broker')} {verb} above {limit * 100:.0f} %. Even in perfect"
        f" balance, each would use {percent(at_best, 0)}. {_headroom(found.growth)}"
    )
    in_vain = case.summary.shed and found.over_threshold == brokers
    off = f": set {SHEDDING_ENABLED} to false until they have joined" if in_vain else ""
    yield Finding(
        code="out_of_capacity",
        title=(
            "Out of capacity: every broker is full"
            if found.over_threshold == brokers
            else f"Out of capacity: even in perfect balance, brokers use {percent(at_best, 0)}"
        ),
        evidence=evidence,
        remedy=(
            f"No strategy or threshold can fix this. Add at least {count(more, 'broker')} of the same size, so that"
            f" each can use {percent(at_best * brokers / (brokers + more), 0)}. Until then, shedding only"
            f" disconnects clients{off}."
        ),
        severity="high",
        brokers=tuple(case.series.brokers[i] for i in order if present[i])[: found.over_threshold],
        settings=(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,),
        edits=(NewBrokers.beside(case.trace.scenario.edits, more),),
    )


def _no_broker(case: Outcome) -> Finding:
    bundles = len(case.trace.end.bundles)
    verb = "has" if bundles == 1 else "have"
    return Finding(
        code="out_of_capacity",
        title="Out of capacity: no broker is left",
        evidence=f"{count(bundles, 'bundle')} {verb} no owner at the end, and their clients cannot come back.",
        remedy="Keep brokers that can carry the traffic.",
        severity="high",
    )


def _headroom(growth: Growth) -> str:
    first = f"; {growth.broker} fills up first" if growth.broker else ""
    return f"Headroom: {times(growth.factor)}{first}."


def unlike_machines(case: Outcome) -> Iterator[Finding]:
    """A few brokers differ from others of the same cores in network speed, memory, release or load manager."""
    table = case.trace.end.brokers
    wrong = beyond_network(case.trace.start.brokers)  # an impossible measurement
    limits = tuple(one for one in odd_limits(table, wrong) if not one.is_wrong)
    parts = [one.sentence for one in limits]
    odd = [name for one in limits for name in one.brokers]
    alike: dict[float, list[str]] = {}
    for one in limits:
        if one.nic_gbps:
            alike.setdefault(one.nic_gbps, []).extend(one.brokers)
    nic, texts = bool(alike), list(_unlike_texts(table))
    managers = any(what == "load manager" for what, _, _ in texts)
    odd += [name for _, names, _ in texts for name in names]
    parts += [sentence for _, _, sentence in texts]
    if not parts:
        return
    speed = (
        f" Network usage is a percentage of the NIC speed that the machine reports. Check that speed, or set"
        f" {OVERRIDE_BROKER_NIC_SPEED_GBPS} if it is wrong."
        if nic
        else ""
    )
    vain = nic and not _network_decides(case, alike)
    severity: Severity = "high" if managers or (nic and not vain and not case.calm) else "medium"
    if case.calm and len(parts) == len(limits):
        severity = "low"  # sizes only, and all have room
    older, others = left_out(case), of_other_managers(case)
    nothing = f" {PREFER_LATER_VERSIONS} is on, so that nothing is placed on {listed(older)}." if older else ""
    if others:
        nothing += f" Bundles go only to brokers with the load manager of the leader: none to {listed(others)}."
    even = case.load_manager is LoadManager.MODULAR and case.trace.settings.flag(DISTRIBUTE_BUNDLES_EVENLY_ENABLED)
    if nothing and even:
        nothing += f" Where {DISTRIBUTE_BUNDLES_EVENLY_ENABLED} leaves only these, Pulsar takes all brokers again."
    or_off = f" Until then, set {PREFER_LATER_VERSIONS} to false." if older else ""
    changes: dict[str, SettingValue] = {PREFER_LATER_VERSIONS: False} if older and not nic else {}
    alone = not limits and not managers  # machines are alike, and an upgrade is under way
    mixed = not limits and managers
    yield Finding(
        code="unlike_machines",
        title="Brokers run different releases"
        if alone
        else f"{'Brokers run different load managers' if mixed else 'Unexpected differences between machines'}",
        evidence=f"{'Brokers differ' if not limits else 'Among brokers with the same number of cores'}:"
        f" {'; '.join(parts)}.{nothing}"
        + (" With either speed, other resources are busier, so that nothing is decided by it now." if vain else ""),
        remedy=(
            f"Bring all brokers to one {'release' if alone else 'load manager (loadManagerClassName)'}.{or_off}"
            if not limits
            else "Make these machines equal unless the difference is intended: shedding compares brokers by percentages"
            f" of their own limits.{or_off}{speed}"
        ),
        severity=severity,
        brokers=tuple(dict.fromkeys(odd)),
        settings=((PREFER_LATER_VERSIONS,) if older else ()) + ((OVERRIDE_BROKER_NIC_SPEED_GBPS,) if nic else ()),
        changes=changes,
        edits=tuple(
            MachineChange(brokers=tuple(dict.fromkeys(brokers)), nic_gbps=speed) for speed, brokers in alike.items()
        ),
    )


def _network_decides(case: Outcome, speeds: Mapping[float, Sequence[str]]) -> bool:
    """Say whether scores of some brokers are others with the speed of network (Gbit/s) that the others have."""
    config = case.trace.settings
    for table in (case.trace.start.brokers, case.last.brokers):
        into = np.array(table.bandwidth_in_limit_kbit_per_s)
        out = np.array(table.bandwidth_out_limit_kbit_per_s)
        for gbps, names in speeds.items():
            rows = [table.position[name] for name in names if name in table.position]
            into[rows] = out[rows] = gbps * KBIT_PER_GBIT
        alike = replace(table, bandwidth_in_limit_kbit_per_s=into, bandwidth_out_limit_kbit_per_s=out)
        found = [weighted_usage(one, config, case.load_manager) for one in (table, alike)]
        if np.abs(found[0] - found[1]).max(initial=0.0) >= _ALIKE_USAGE:
            return True
    return False


def _unlike_texts(table: "BrokerTable") -> Iterator[tuple[str, list[str], str]]:
    """Yield in what else brokers differ: what it is, the brokers of which fewer have the same, and that in words."""
    for what, texts in (("release", table.version), ("load manager", table.load_manager_class)):
        counted = Counter(text for text in texts if text)
        if len(counted) > 1:
            usual = counted.most_common(1)[0][0]
            few = [name for name, text in zip(table.name, texts, strict=True) if text and text != usual]
            other = next(text for text in texts if text and text != usual)
            yield what, few, f"{what} {without_package(other)} on {listed(few)}, {without_package(usual)} on others"


def left_out(case: Outcome) -> list[str]:
    """Return the brokers of an earlier release, on which preferLaterVersions lets nothing be placed."""
    brokers = case.last.brokers
    versions = {name: brokers.version[at] for at, name in enumerate(brokers.name) if brokers.has_load_data[at]}
    if not case.trace.settings.flag(PREFER_LATER_VERSIONS) or not versions:
        return []
    try:
        newest = latest(versions)
    except PulsarError:  # then Pulsar compares none, either
        return []
    return [name for name in versions if name not in newest]


def of_other_managers(case: Outcome) -> list[str]:
    """Return the brokers with another load manager than the leader, on which nothing is placed; none if it is unknown.

    Simple names are compared: where no broker runs the class of the leader, no one is left out.
    """
    brokers, leader = case.last.brokers, case.last.info.leader
    classes = dict(zip(brokers.name, brokers.load_manager_class, strict=True))
    leads = classes.get(leader, "")
    return [name for name, other in classes.items() if leads and other and other != leads]


def topics_full(case: Outcome) -> Iterator[Finding]:
    """Brokers hold as many topics as placement allows, so that they get nothing; or nobody does."""
    brokers, extensible = case.last.brokers, case.load_manager is LoadManager.EXTENSIBLE
    limit = case.trace.settings.integer(BROKER_MAX_TOPICS)
    there = brokers.registered & brokers.has_load_data
    full = there & ((brokers.topics >= limit) if extensible else (brokers.topics > limit))
    if not full.any():
        return
    order = np.flatnonzero(full)[np.argsort(-brokers.topics[full], kind="stable")]
    names, most = [brokers.name[at] for at in order.tolist()], int(brokers.topics[order[0]])
    every = len(names) == int(there.sum())
    none = "Every bundle that is unloaded, or whose broker stops, then stays without a broker"
    if not extensible:
        none = "Then Pulsar ignores the limit"
    yield Finding(
        code="topics_full",
        title=f"{'Every broker has' if every else listed(names) + (' has' if len(names) == 1 else ' have')} as many"
        f" topics as {BROKER_MAX_TOPICS} allows",
        evidence=(
            f"It is {limit:,}; {names[0]} has {most:,} topics. Nothing is placed on such a broker."
            f"{f' Every broker is one. {none}.' if every else ''}"
        ),
        remedy=f"Raise {BROKER_MAX_TOPICS}, such as to {raised(most):,}, if brokers have the memory. Otherwise add"
        " brokers, and move bundles there.",
        severity="high" if every and extensible else "low" if every else "medium",
        brokers=tuple(names),
        settings=(BROKER_MAX_TOPICS,),
        changes={} if every and not (extensible or case.summary.unserved) else {BROKER_MAX_TOPICS: raised(most)},
    )


def throttled(case: Outcome) -> Iterator[Finding]:
    """Topics are dispatched as fast as a dispatch limit lets them: what is slow there is the limit, not a broker."""
    end, config = case.trace.end, case.trace.settings
    topics = end.topics
    limits = (config.integer(name) for names in RATE_SETTINGS.values() for name in names)
    limited = end.policies.dispatch_rates or any(limit > 0 for limit in limits)
    if not len(topics) or not limited or not throttles_consumers(config):
        return
    caps = dispatch_caps(end, config)
    order = at_the_limit(end, caps)
    if not len(order):
        return
    names = [topics.name[int(i)].as_py() for i in order[:3]]
    bundles = [end.bundle_names[i] for i in topics.bundle[order].tolist() if i >= 0]
    doubled = doubled_limit(names[0], end.policies, config)
    raise_it = (
        f"The limit is a {doubled.place} ({doubled.target}). If its consumers and its broker can take more, double it:"
        f" {'; '.join(doubled.commands())}. "
        if doubled is not None
        else ""
    )
    yield Finding(
        code="throttled",
        title="Topics throttled by a dispatch limit",
        evidence=(
            f"{count(len(order), 'topic')} at {percent(AT_THE_LIMIT, 0)} of the limit or more, which applies to each"
            f" partition separately. {names[0]}: {dispatched(end, caps, int(order[0]))}."
        ),
        remedy=f"{raise_it}See the page Throttling for what applies to a topic, and why. Topics: {listed(names)}.",
        severity="medium",
        bundles=tuple(dict.fromkeys(bundles)),
        topics=tuple(names),
    )


def drawn_at_random(case: Outcome) -> Iterator[Finding]:
    """Placement draws among brokers, hot ones too, as none is far enough below the average."""
    shares: list[float] = []
    hot: Counter[str] = Counter()
    for cycle in case.trace.cycles:
        view, usage = cycle.view.brokers, np.where(cycle.state.present, cycle.state.usage, np.nan)
        for unload in cycle.unloads:
            if not unload.carried_out or len(unload.acceptable) < 2:  # noqa: PLR2004 - nothing is drawn
                continue
            if case.is_internal(unload.move.bundle):
                continue
            average = float(np.nanmean(usage))
            above = [name for name in unload.acceptable if usage[view.position[name]] > average]
            hot.update(above)
            shares.append(len(above) / len(unload.acceptable))
    if not shares or not hot:
        return
    name = AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE
    averaged = placement_by_name(case.placement, case.load_manager).measure == "averaged_usage"
    lower = case.trace.settings.integer(name) // 2
    yield Finding(
        code="drawn_at_random",
        title="Destinations are drawn at random, even from busy brokers",
        evidence=(
            f"{count(len(shares), 'destination')} drawn; on average, a broker above the average usage had a"
            f" {sum(shares) / len(shares) * 100:.0f} % chance of being drawn. {hot.most_common(1)[0][0]} was a"
            f" candidate in {hot.most_common(1)[0][1]} of these draws."
        ),
        remedy=(
            f"{case.placement} draws among all brokers when none is"
            " loadBalancerAverageResourceUsageDifferenceThresholdPercentage below the average. Lower this setting so"
            " that only the least used brokers are candidates."
            if averaged
            else "Use a placement strategy that compares the same measure as the shedding strategy, so that fewer"
            " brokers count as equal."
        ),
        severity="medium" if sum(shares) * 5 >= len(shares) else "low",
        brokers=tuple(name for name, _ in hot.most_common()),
        settings=(name,),
        changes={name: lower} if averaged and lower > 0 else {},
    )


def clients_cut_off(case: Outcome) -> Iterator[Finding]:
    """Shedding disconnects a good part of all clients, some of them again and again."""
    events = [event for event in case.trace.events if event.kind == "shed" and not case.is_internal(event.bundle)]
    clients: Counter[str] = Counter()
    for event in events:
        clients[event.bundle.rpartition("/")[0]] += int(event.producers + event.consumers)
    bundles, of_users = case.trace.start.bundles, ~internal_bundles(case.trace.start)
    known = int(bundles.producers[of_users].sum() + bundles.consumers[of_users].sum())
    cut = sum(clients.values())
    if not known or cut < max(known * _MANY_CLIENTS, _FEW_CLIENTS):
        return
    again = len(events) - len({event.bundle for event in events})
    worst = [f"{space} {number:,}" for space, number in clients.most_common(3) if number]
    calmer = case.profile.calmer(case.trace.settings)
    yield Finding(
        code="clients_cut_off",
        title="Shedding disconnects many clients",
        evidence=(
            f"{count(cut, 'client')} disconnected in {count(len(case.trace.cycles), 'cycle')}; the cluster has"
            f" {known:,}. {again} of {count(len(events), 'unload')} hit a bundle that had been shed before. By"
            f" namespace: {'; '.join(worst)}."
        ),
        remedy=calmer.words,
        severity="high" if cut >= known else "medium",
        bundles=tuple(dict.fromkeys(event.bundle for event in events)),
        settings=tuple(calmer.changes),
        changes=calmer.changes,
    )
