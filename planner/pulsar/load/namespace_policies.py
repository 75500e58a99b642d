"""Which policies bind a namespace to some of the brokers.

Mirrors `SimpleResourceAllocationPolicies.areIsolationPoliciesPresent` and
`AntiAffinityGroupPolicyHelper.hasAntiAffinityGroupPolicy` of Pulsar 4.2.4.
"""

from dataclasses import replace

from planner.cluster.snapshot import IsolationPolicy, Policies
from planner.pulsar.load.java_pattern import java_pattern

_SHOWN = 80


def expression_notes(policies: Policies) -> tuple[str, ...]:
    """Return one sentence about each expression of an isolation policy that cannot be evaluated, and what happens."""
    notes = []
    for policy in policies.isolation:
        parts = (("namespaces", policy.namespaces), ("primary", policy.primary), ("secondary", policy.secondary))
        for part, expressions in parts:
            for expression in expressions:
                pattern = java_pattern(expression)
                problem = pattern.problem
                shown = expression if len(expression) <= _SHOWN else f"{expression[:_SHOWN]} …"
                if pattern.invalid and part == "namespaces":
                    notes.append(
                        f"Isolation policy {policy.name}: the namespace expression '{shown}' is not a "
                        f"valid regular expression ({problem}). For a namespace that no earlier "
                        "expression matches, the modular load manager finds no policy, and the filter of "
                        "the extensible load manager fails and keeps every candidate. Correct it with "
                        "pulsar-admin ns-isolation-policy set."
                    )
                elif problem:
                    notes.append(
                        f"Isolation policy {policy.name}: the expression '{shown}' of {part} matches nothing here,"
                        f" because {problem}."
                    )
    return tuple(notes)


def isolation_policy(policies: Policies, namespace: str) -> IsolationPolicy | None:
    """Return the isolation policy of a namespace: the first with an expression that matches its whole name.

    None as well where Java cannot read an expression before that (see `isolation_failure`): Pulsar stores such a
    policy, and `SimpleResourceAllocationPolicies.areIsolationPoliciesPresent` takes the error for no policy.
    """
    return _search(policies, namespace)[0]


def policies_like(policies: Policies, namespace: str, successor: str) -> Policies:
    """Return policies that bind a further namespace as they bind another one.

    Its name is added to the isolation policy of the other one, unless that matches it already.
    """
    isolation, group = isolation_policy(policies, namespace), policies.anti_affinity_group.get(namespace)
    bound = policies.isolation
    if isolation is not None and isolation_policy(policies, successor) is not isolation:
        named = replace(isolation, namespaces=(*isolation.namespaces, successor.replace(".", "\\.")))
        bound = tuple(named if one is isolation else one for one in bound)
    renamed = {namespace: successor}
    rates = [
        replace(one, target=renamed.get(one.target, one.target.replace(f"://{namespace}/", f"://{successor}/", 1)))
        for one in policies.dispatch_rates
        if one.target == namespace or f"://{namespace}/" in one.target
    ]
    groups = {**policies.anti_affinity_group, **({successor: group} if group else {})}
    return replace(
        policies, isolation=bound, anti_affinity_group=groups, dispatch_rates=(*policies.dispatch_rates, *rates)
    )


def isolation_failure(policies: Policies, namespace: str) -> str:
    """Return why Pulsar cannot look for the isolation policy of a namespace; empty where it can.

    `NamespaceIsolationPolicies.getPolicyByNamespace` raises at the first expression that Java cannot read. The
    asynchronous filter of the extensible load manager fails with it.
    """
    return _search(policies, namespace)[1]


def _search(policies: Policies, namespace: str) -> tuple[IsolationPolicy | None, str]:
    for policy in policies.isolation:
        for expression in policy.namespaces:
            pattern = java_pattern(expression)
            if pattern.invalid:
                shown = expression if len(expression) <= _SHOWN else f"{expression[:_SHOWN]} …"
                return (
                    None,
                    f"'{shown}' in the isolation policy {policy.name} is not a valid expression: {pattern.problem}.",
                )
            if pattern.matches(namespace):
                return policy, ""
    return None, ""


def anti_affinity_group(policies: Policies, namespace: str) -> str | None:
    """Return the anti-affinity group of a namespace; a blank one is none."""
    group = policies.anti_affinity_group.get(namespace, "")
    return group if group.strip() else None


def policy_gate(policies: Policies, namespace: str) -> str | None:
    """Return which kind of policy binds a namespace.

    The extensible load manager sheds bundles of such a namespace, and reports them as top bundles, only with
    `loadBalancerSheddingBundlesWithPoliciesEnabled`.

    Returns:
        `isolation`, `anti-affinity`, or None when the namespace is bound by neither.
    """
    if isolation_policy(policies, namespace) is not None:
        return "isolation"
    return None if anti_affinity_group(policies, namespace) is None else "anti-affinity"
