"""Which policies bind a namespace to some of the brokers.

Mirrors `SimpleResourceAllocationPolicies.areIsolationPoliciesPresent` and
`AntiAffinityGroupPolicyHelper.hasAntiAffinityGroupPolicy` of Pulsar 4.2.4.
"""

from planner.cluster.snapshot import IsolationPolicy, Policies
from planner.pulsar.load.java_pattern import java_pattern

_SHOWN = 80


def expression_notes(policies: Policies) -> tuple[str, ...]:
    """Return one sentence about each expression of an isolation policy that cannot be evaluated; it matches nothing."""
    notes = []
    for policy in policies.isolation:
        parts = (("namespaces", policy.namespaces), ("primary", policy.primary), ("secondary", policy.secondary))
        for part, expressions in parts:
            for expression in expressions:
                problem = java_pattern(expression).problem
                if problem:
                    shown = expression if len(expression) <= _SHOWN else f"{expression[:_SHOWN]} …"
                    notes.append(
                        f"Isolation policy {policy.name}: the expression '{shown}' of {part} matches nothing here,"
                        f" because {problem}."
                    )
    return tuple(notes)


def isolation_policy(policies: Policies, namespace: str) -> IsolationPolicy | None:
    """Return the isolation policy of a namespace: the first with an expression that matches its whole name."""
    for policy in policies.isolation:
        if any(java_pattern(expression).matches(namespace) for expression in policy.namespaces):
            return policy
    return None


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
