"""Failure patterns of policies: names and expressions that match nobody, and bundles that their policy excludes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from planner.cluster.broker_meant import broker_meant
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.names import (
    FAILURE_DOMAINS_ENABLED,
    SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,
)
from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.cluster.text import count
from planner.cluster.topic_names import FOUR_PARTS
from planner.explain.finding import Finding, Severity, admin, listed
from planner.explain.gate_patterns import none_with_policies
from planner.explain.group_spread import spreading
from planner.explain.held import APART, held_brokers
from planner.explain.isolation import (
    allowed_brokers,
    allowed_hosts,
    hosts,
    lone_groups,
    narrowed,
    policies_of,
    widened,
)
from planner.explain.misses import Miss, matches, miss
from planner.explain.outcome import Outcome
from planner.explain.upgrade_blockers import namespaces_with_cluster
from planner.pulsar.load.namespace_policies import anti_affinity_group, isolation_policy
from planner.pulsar.placement.filters import broker_host
from planner.simulate.breaches import breaches
from planner.simulate.edits.registry import BundleMoves, IsolationChange
from planner.simulate.steadiness import OTHER_TRAFFIC
from planner.simulate.usage_model import UsageModel, at_the_end

_SEVERAL: Final = 2
"""Brokers that are full together; one alone is held by its policy, which `held_by_gate` reports."""


def policy_matches_no_broker(case: Outcome) -> Iterator[Finding]:
    """Expressions of an isolation policy match no host: its namespaces are left fewer brokers, or none."""
    end = case.trace.end
    known = hosts(end)
    for policy in end.policies.isolation:
        every = (*policy.primary, *policy.secondary)
        matched = [host for host in known if matches((host,), *every)]
        misses = [miss(one, known, matched) for one in every if not matches(known, one)]
        if misses and known:
            yield _no_broker(end, policy, misses)


def _no_broker(end: Snapshot, policy: IsolationPolicy, misses: Sequence[Miss]) -> Finding:
    primary, secondary = (allowed_hosts(end, part) for part in (policy.primary, policy.secondary))
    unused = secondary if not policy.min_limit else ()
    secondary = secondary if policy.min_limit else ()
    spaces = [name for name in end.namespaces if isolation_policy(end.policies, name) is policy]
    mine = np.flatnonzero(np.isin(end.bundles.namespace, [end.namespaces.index(name) for name in spaces]))
    unowned = int((end.bundles.owner[mine] < 0).sum())
    severity: Severity = "low" if primary else "medium"
    title = f"An expression of the isolation policy '{policy.name}' matches no broker"
    left = f"It still matches {listed(primary or secondary)}."
    if not primary and secondary:
        left = f"Its namespaces use the secondary brokers only: {listed(secondary)}."
    if not primary and not secondary:
        severity = "high" if len(mine) else "medium"
        title = f"The isolation policy '{policy.name}' leaves its namespaces no broker"
        served = len(mine) - unowned
        left = (
            f"No broker may own its {count(len(mine), 'bundle')} of {listed(spaces)}: {unowned} unowned,"
            f" {served} served only until the next unload."
            if len(mine)
            else "No bundle of this snapshot belongs to its namespaces."
        )
        left += f" With a min_limit of 0, secondary brokers ({listed(unused)}) are never used." if unused else ""
    causes = "; ".join(f"{one.expression}{f' ({one.why})' if one.why else ''}" for one in misses[:3])
    better = {one.expression: one.better for one in misses if one.better}
    fixed = [_replaced(part, better) for part in (policy.primary, policy.secondary)]
    edit = IsolationChange(
        name=policy.name,
        namespaces=policy.namespaces,
        primary=fixed[0],
        secondary=fixed[1],
        min_limit=policy.min_limit,
    )
    written = ", ".join(dict.fromkeys(one for found in better.values() for one in found))
    absent = not better and not any(one.why for one in misses)
    start = "If such a broker is down, start it. Otherwise name" if absent else "Name"
    spare = widened(end, policy) if severity == "high" and absent else None
    until = f" Until then, {listed(spare.primary[len(policy.primary) :])} could serve them." if spare else ""
    return Finding(
        code="policy_matches_no_broker",
        title=title,
        evidence=f"No host of the cluster matches {causes}. {left}",
        remedy=(
            f"Write {written}: an expression has to match a whole host name, without the port."
            if better
            else f"{start} one that is there, such as {known_host(end)}: an expression has to match a whole host name,"
            " without the port."
        )
        + f" Then set the policy again: {admin('ns-isolation-policy', 'set', end.info.cluster, policy.name)} …{until}",
        severity=severity,
        bundles=tuple(end.bundle_names[i] for i in mine.tolist()),
        edits=(edit,) if better else (spare,) if spare else (),
    )


def _replaced(expressions: Sequence[str], better: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(new for one in expressions for new in better.get(one, (one,))))


def known_host(snapshot: Snapshot) -> str:
    """Return the host of a registered broker, as an example."""
    return next(iter(hosts(snapshot)), "broker-1.example.net")


def policy_without_namespaces(case: Outcome) -> Iterator[Finding]:
    """An isolation policy binds no namespace: its expressions match none, or another policy matches them first."""
    end = case.trace.end
    for policy in end.policies.isolation:
        mine = [name for name in end.namespaces if matches((name,), *policy.namespaces)]
        by_name = {name: isolation_policy(end.policies, name) for name in mine}
        if any(one is policy for one in by_name.values()):
            continue
        shown = listed([f"'{one}'" for one in policy.namespaces])
        first = next((one for one in by_name.values() if one is not None), None)
        if first is not None:
            why = f"{listed(mine)} follow the policy '{first.name}', whose expressions match first."
            remedy = f"Take them out of '{first.name}', or delete '{policy.name}'."
        else:
            why = f"No namespace here matches {shown}: an expression has to match a whole name, tenant/namespace."
            remedy = _namespace_meant(policy.namespaces[0], end.namespaces)
        primary = allowed_hosts(end, policy.primary)
        reserved = f" Its primary brokers stay reserved all the same: {listed(primary)}." if primary else ""
        idle = _kept_idle(case, policy)
        yield Finding(
            code="policy_without_namespaces",
            title=f"The isolation policy '{policy.name}' "
            + (f"reserves {listed(idle)}, and applies to no namespace" if idle else "applies to no namespace"),
            evidence=f"{why}{reserved}",
            remedy=remedy,
            severity="medium" if idle else "low",
            brokers=idle,
            edits=(IsolationChange(name=policy.name),) if idle else (),
        )


def _kept_idle(case: Outcome, policy: IsolationPolicy) -> tuple[str, ...]:
    """Return the brokers that only this policy reserves, and that are used less than the average, brokers being apart.

    The least used one of all has to be among them.
    """
    usage, end = case.reported_usage[-1], case.trace.end
    if not np.isfinite(usage).any() or float(np.nanmax(usage) - np.nanmin(usage)) < APART:
        return ()
    others = [one for other in end.policies.isolation if other is not policy for one in other.primary]
    mine = set(allowed_hosts(end, policy.primary)) - set(allowed_hosts(end, others))
    average, least = float(np.nanmean(usage)), int(np.nanargmin(usage))
    used = zip(case.series.brokers, usage.tolist(), strict=True)
    idle = tuple(name for name, one in used if broker_host(name) in mine and one < average)
    return idle if case.series.brokers[least] in idle else ()


def _namespace_meant(expression: str, namespaces: Sequence[str]) -> str:
    """Return what to write instead of an expression that matches no namespace."""
    found = miss(expression, namespaces)
    if found.better == (f"{expression.rstrip('/')}/.*",):
        return f"Write {found.better[0]} for all namespaces of the tenant, or delete the policy."
    if found.better and not found.guessed:
        return f"Write {' and '.join(found.better)} ({found.why}), or delete the policy."
    near = f" The nearest is {found.better[0]}." if found.better else ""
    return f"Correct the expression, or delete the policy.{near}"


def no_broker_allowed(case: Outcome) -> Iterator[Finding]:
    """Namespaces without a policy are left no broker, as all of them are reserved for the namespaces of policies."""
    end = case.trace.end
    internal = internal_bundles(end)
    used = [end.namespaces[i] for i in np.unique(end.bundles.namespace[~internal]).tolist()]
    free = [name for name in used if isolation_policy(end.policies, name) is None]
    if not free or not end.policies.isolation or not hosts(end) or allowed_brokers(end, free[0]):
        return
    mine = np.flatnonzero(np.isin(end.bundles.namespace, [end.namespaces.index(name) for name in free]))
    unowned = int((end.bundles.owner[mine] < 0).sum())
    edit = next((one for policy in end.policies.isolation if (one := narrowed(end, policy)) is not None), None)
    instead = "" if edit is None else f" For example, '{edit.name}' with primary brokers {listed(edit.primary)} only."
    yield Finding(
        code="no_broker_allowed",
        title="Every broker is reserved: namespaces without an isolation policy are left none",
        evidence=(
            f"All {count(len(hosts(end)), 'host')} are primary brokers of isolation policies"
            f" ({listed([policy.name for policy in end.policies.isolation])}). {count(len(mine), 'bundle')} of"
            f" {listed(free)} may be owned by no broker; {unowned} unowned now."
        ),
        remedy=(
            f"Leave at least two brokers out of the primary expressions, or give these namespaces a policy.{instead}"
        ),
        severity="high",
        bundles=tuple(end.bundle_names[i] for i in mine.tolist()),
        edits=(edit,) if edit is not None else (),
    )


def against_policy(case: Outcome) -> Iterator[Finding]:
    """Brokers serve bundles that isolation policies exclude them from; Pulsar moves none of them by itself."""
    yield from _excluded(case.trace.end)
    yield from _on_reserved(case.trace.end)


def _on_reserved(end: Snapshot) -> Iterator[Finding]:
    """Brokers that a policy reserves for its namespaces serve bundles of namespaces without one."""
    bundles, kept = end.bundles, internal_bundles(end)
    found: list[int] = []
    left: tuple[str, ...] = ()
    used = [end.namespaces[at] for at in np.unique(bundles.namespace[~kept]).tolist()]
    if not policies_of(end, used):  # no namespace follows one
        return
    for space in (name for name in used if isolation_policy(end.policies, name) is None):
        mine = np.flatnonzero((bundles.namespace == end.namespaces.index(space)) & (bundles.owner >= 0) & ~kept)
        left = allowed_brokers(end, space)
        found += [at for at in mine.tolist() if left and end.brokers.name[int(bundles.owner[at])] not in left]
    if not found:
        return
    names = [end.bundle_names[at] for at in found]
    owners = tuple(dict.fromkeys(end.brokers.name[int(bundles.owner[at])] for at in found))
    spaces = tuple(dict.fromkeys(name.rpartition("/")[0] for name in names))
    space, _, bundle = names[0].rpartition("/")
    more = " …" if len(names) > 1 else ""
    yield Finding(
        code="against_policy",
        title=f"Reserved brokers serve {count(len(names), 'bundle')} without an isolation policy",
        evidence=(
            f"Isolation policies reserve {listed(owners)}. They still serve {count(len(names), 'bundle')} of"
            f" {listed(spaces)}, without a policy: a policy moves nothing that is already assigned. After an unload or"
            f" a restart, only {listed(left)} may own them."
        ),
        remedy=(
            f"Unload them to free these brokers: {admin('namespaces', 'unload', space, '--bundle', bundle)}{more}. The"
            " others need room for them."
        ),
        severity="low",
        brokers=owners,
        bundles=tuple(names),
        edits=(BundleMoves(moves=_homes(end, found)),),
    )


def _excluded(end: Snapshot) -> Iterator[Finding]:
    """Brokers serve bundles that the isolation policy of their namespace excludes."""
    found = breaches(end)
    if not len(found):
        return
    names = [end.bundle_names[i] for i in found.tolist()]
    spaces = tuple(dict.fromkeys(name.rpartition("/")[0] for name in names))
    owners = tuple(dict.fromkeys(end.brokers.name[i] for i in end.bundles.owner[found].tolist()))
    policies = dict.fromkeys(policy.name for s in spaces if (policy := isolation_policy(end.policies, s)) is not None)
    moves = _homes(end, found.tolist())
    space, _, bundle = names[0].rpartition("/")
    quoted = listed([f"'{name}'" for name in policies])
    serve = "serves" if len(owners) == 1 else "serve"
    yield Finding(
        code="against_policy",
        title=f"{count(len(found), 'bundle')} on brokers that the isolation policy excludes",
        evidence=(
            f"{listed(owners)} {serve} {count(len(found), 'bundle')} of {listed(spaces)}, which the isolation policy"
            f" {quoted} does not allow there. A policy moves nothing that is already assigned, so they stay until they"
            " are unloaded."
        ),
        remedy=(
            f"Unload {'each of them' if len(names) > 1 else 'it'}; placement then follows the policy:"
            f" {admin('namespaces', 'unload', space, '--bundle', bundle)}."
        ),
        severity="medium",
        brokers=owners,
        bundles=tuple(names),
        edits=(BundleMoves(moves=moves),) if moves else (),
    )


def _homes(end: Snapshot, bundles: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return where bundles may go: of the brokers that their policy allows, always the one with the least traffic."""
    load = dict(zip(end.brokers.name, end.brokers.throughput_bytes_per_s().tolist(), strict=True))
    found = []
    of_namespace = {
        space: allowed_brokers(end, end.namespaces[space])
        for space in np.unique(end.bundles.namespace[list(bundles)]).tolist()
    }
    for at in bundles:
        candidates = of_namespace[int(end.bundles.namespace[at])]
        if candidates:
            to = min(candidates, key=lambda broker: load[broker])
            load[to] += float(end.bundles.throughput_bytes_per_s(at))
            found.append((end.bundle_names[at], to))
    return tuple(found)


def domains_without_effect(case: Outcome) -> Iterator[Finding]:
    """Failure domains name no broker, or are switched off: anti-affinity takes no account of them."""
    end, config = case.trace.end, case.trace.settings
    domains = end.policies.failure_domains
    if not domains:
        return
    brokers = set(end.brokers.name)
    unknown = [name for names in domains.values() for name in names if name not in brokers]
    total = sum(len(names) for names in domains.values())
    if unknown:
        meant = {name: broker for name in unknown if (broker := broker_meant(name, end.brokers.name))}
        none = len(unknown) == total
        effect = "the domains are without effect" if none else "these brokers count as one domain of their own"
        domain = next(d for d, names in domains.items() if next(iter(meant), unknown[0]) in names)
        ids = [meant.get(name, name) for name in domains[domain] if name in meant or name in brokers]
        down = "" if meant else "Where such a broker is down, the domain is right. Otherwise list "
        yield Finding(
            code="domains_without_effect",
            title="Failure domains list names that no broker has",
            evidence=(
                f"No broker is called {listed(unknown)} ({listed(list(domains))}). Pulsar looks brokers up by their id,"
                f" host:port, so {effect}."
            ),
            remedy=(
                f"{down or 'List '}broker ids, such as: "
                + admin("clusters", "update-failure-domain", end.info.cluster, "--domain-name", domain)
                + f" --broker-list {','.join(dict.fromkeys(ids)) or 'HOST:PORT'}."
            ),
            severity="low",
            brokers=tuple(meant.values()),
            settings=(FAILURE_DOMAINS_ENABLED,),
        )
    if not config.flag(FAILURE_DOMAINS_ENABLED) and end.policies.anti_affinity_group:
        yield Finding(
            code="domains_without_effect",
            title="Failure domains are set, but failureDomainsEnabled is off",
            evidence=(
                f"{count(len(domains), 'failure domain')} ({listed(list(domains))}) and"
                f" {count(len(set(end.policies.anti_affinity_group.values())), 'anti-affinity group')} exist. With"
                f" {FAILURE_DOMAINS_ENABLED} off, the domains are without effect: a group is spread over brokers only."
            ),
            remedy=f"Set {FAILURE_DOMAINS_ENABLED} to true, or delete the domains.",
            severity="low",
            settings=(FAILURE_DOMAINS_ENABLED,),
            changes={FAILURE_DOMAINS_ENABLED: True},
        )


def group_without_effect(case: Outcome) -> Iterator[Finding]:
    """An anti-affinity group has fewer than two namespaces with bundles, so that it keeps nothing apart."""
    end = case.trace.end
    held = {bundle.rpartition("/")[0] for one in held_brokers(case) for bundle in one.bundles}
    alone = {group: names for group, names in lone_groups(end).items() if held.isdisjoint(names)}
    if not alone:
        return
    group, names = next(iter(alone.items()))
    served = names[0] in {end.namespaces[i] for i in np.unique(end.bundles.namespace).tolist()}
    only = f"Of its namespaces ({listed(names)}), {f'only {names[0]}' if served else 'none'} has bundles here"
    if len(names) == 1:
        only = f"Its only namespace is {names[0]}"
    more = f" {count(len(alone), 'group')} like this." if len(alone) > 1 else ""
    yield Finding(
        code="group_without_effect",
        title=f"The anti-affinity group '{group}' keeps nothing apart",
        evidence=f"{only}. A group separates at least two.{more}",
        remedy=(
            "Set the same group for a second namespace with pulsar-admin namespaces set-anti-affinity-group, or delete"
            f" it: {admin('namespaces', 'delete-anti-affinity-group', names[0])}."
        ),
        severity="low",
    )


def group_not_spread(case: Outcome) -> Iterator[Finding]:
    """Brokers or failure domains serve several namespaces of an anti-affinity group, and others none."""
    end = case.trace.end
    spread = spreading(end, domains=case.trace.settings.flag(FAILURE_DOMAINS_ENABLED))
    if not spread:
        return
    first = spread[0]
    crowded, many = max(first.namespaces.items(), key=lambda one: one[1])
    empty = [place for place, number in first.namespaces.items() if not number]
    moved = tuple(name for name, _ in first.moves)
    space, _, part = moved[0].rpartition("/")
    more = f" {count(len(spread), 'group')} like this." if len(spread) > 1 else ""
    of = "failure domain " if first.by_domain else ""
    yield Finding(
        code="group_not_spread",
        title=f"The anti-affinity group '{first.group}' is not spread: {many} of its namespaces share {of}{crowded}",
        evidence=(
            f"{'Failure domains' if first.by_domain else 'Brokers'} without any of its namespaces: {listed(empty)}. A"
            f" group moves nothing that is already assigned, so they stay together until they are unloaded.{more}"
        ),
        remedy=(
            f"Unload {count(len(first.moves), 'bundle')}; placement then spreads them:"
            f" {admin('namespaces', 'unload', space, '--bundle', part)}{' …' if len(first.moves) > 1 else ''}"
        ),
        severity="low",
        brokers=tuple(
            dict.fromkeys(end.brokers.name[end.bundles.owner[end.bundle_position[m[0]]]] for m in first.moves)
        ),
        bundles=tuple(name for name, _ in first.moves),
        edits=(BundleMoves(moves=first.moves),),
    )


def old_namespace(case: Outcome) -> Iterator[Finding]:
    """Namespaces have the form that names a cluster, which newer releases of Pulsar refuse."""
    names = namespaces_with_cluster(case.trace.start)
    if not names:
        return
    decides = case.trace.settings.release
    refused = not decides.has(FOUR_PARTS)
    yield Finding(
        code="old_namespace",
        title=f"{count(len(names), 'namespace')} of the form tenant/cluster/namespace",
        evidence=(
            f"{listed(names)}: Pulsar serves such names before 4.2 only."
            + (
                f" This simulation follows the rules of {decides.name}, but takes the namespaces as they are."
                if refused
                else ""
            )
        ),
        remedy="Move their data to a namespace tenant/namespace before an upgrade to 4.2 or later.",
        severity="low",
    )


def _busier(usage: Mapping[str, float], inside: Sequence[str], outside: Sequence[str]) -> bool:
    """Say whether brokers inside a policy are alike, and one of them is the busiest of all, an outer one the idlest."""
    mine, others = [usage[one] for one in inside], [usage[one] for one in outside]
    alike = max(mine) - min(mine) < APART * 100
    return alike and max(mine) > max(others) and min(mine) - min(others) >= APART * 100


def policy_full(case: Outcome) -> Iterator[Finding]:
    """The brokers that an isolation policy leaves its namespaces are full together, or busier, and others have room."""
    limit = case.limit * 100
    usage = dict(zip(case.series.brokers, (case.reported_usage[-1] * 100).tolist(), strict=True))
    usage = {name: value for name, value in usage.items() if np.isfinite(value)}
    end = at_the_end(case.trace)
    model = UsageModel.of(end, case.trace.settings, case.trace.scenario.assumptions)
    used = [case.last.namespaces[at] for at in np.unique(case.last.bundles.namespace).tolist()]
    spaces = {}
    for space in sorted(used, key=lambda one: anti_affinity_group(case.last.policies, one) is not None):
        spaces[isolation_policy(case.last.policies, space)] = space
    for policy in policies_of(case.last, used):
        allowed = allowed_brokers(case.last, spaces[policy])
        inside = [one for one in usage if one in allowed]
        outside = [one for one in usage if one not in inside]
        edit = widened(case.last, policy)
        if len(inside) < _SEVERAL or edit is None or not outside:
            continue
        at_best, rest = (100 * model.balanced_usage(np.isin(end.brokers.name, names)) for names in (inside, outside))
        full = at_best >= limit
        if rest >= limit or not (full or (at_best - rest >= APART * 100 and _busier(usage, inside, outside))):
            continue
        near = at_best * max(OTHER_TRAFFIC) >= limit or max(usage[one] for one in inside) >= limit
        off = none_with_policies(case)
        also = (
            f" Set {SHEDDING_BUNDLES_WITH_POLICIES_ENABLED} to true as well: nothing with a policy is shed without it."
            if off
            else " Until then, shedding between them only disconnects clients."
            if full
            else " Pulsar may move nothing there by itself (page Best plan)."
        )
        yield Finding(
            code="policy_full",
            title=f"The isolation policy '{policy.name}' leaves its namespaces {len(inside)} brokers, which are "
            + ("full" if full else "busier than the others"),
            evidence=(
                f"Even in perfect balance, {listed(inside)} would use {at_best:.0f} %; the limit is {limit:g} %. The"
                f" other {count(len(outside), 'broker')} would use {rest:.0f} %."
            ),
            remedy=f"Add brokers to the policy '{policy.name}', such as {edit.primary[-1]}"
            f"{'' if full else ', unless these are meant to be apart'}.{also}",
            severity="high" if full else "medium" if near and not case.calm else "low",
            brokers=tuple(sorted(inside, key=lambda one: -usage[one])),
            settings=(SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,) if off else (),
            changes={SHEDDING_BUNDLES_WITH_POLICIES_ENABLED: True} if off else {},
            edits=(edit,),
        )
