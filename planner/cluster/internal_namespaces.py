"""Namespaces that Pulsar keeps for itself.

Mirrors `NamespaceService.isSystemServiceNamespace` and `isSLAOrHeartbeatNamespace` of Pulsar.
"""

import re

from planner.cluster.releases import REFERENCE, Release, Switch

SYSTEM_NAMESPACE = "pulsar/system"
"""Holds the topics of the extensible load manager and of transactions."""

SLA_OF_CLUSTER = Switch(
    "Only the namespaces `sla-monitor/<cluster>/<broker>` are monitors of a broker: bundles of "
    "`sla-monitor/<broker>` are shed, reported and placed like any other.",
    until="4.2.4",
)
SYSTEM_STAYS = Switch("The modular strategies shed no bundle of `pulsar/system`.", until="3.0.2")
MONITORS_REPORTED = Switch(
    "The report lists bundles of a broker's own namespaces, heartbeats and monitors, among the top bundles.",
    until="3.1.2",
    backported=("3.0.2",),
)
_MONITORS = re.compile(r"(?:pulsar|sla-monitor)/[^:/]+:[0-9]+")
_MONITORS_OF_CLUSTER = re.compile(r"(?:pulsar/(?:[^/]+/)?|sla-monitor/[^/]+/)[^:]+:[0-9]+")


def is_heartbeat_or_sla_namespace(namespace: str, release: Release = REFERENCE) -> bool:
    """Say whether a namespace belongs to one broker, such as `pulsar/broker-1:8080` or `sla-monitor/broker-1:8080`."""
    pattern = _MONITORS_OF_CLUSTER if release.has(SLA_OF_CLUSTER) else _MONITORS
    return pattern.fullmatch(namespace) is not None


def is_never_shed(namespace: str, release: Release) -> bool:
    """Say whether the modular strategies of a release leave the bundles of a namespace where they are."""
    system = namespace == SYSTEM_NAMESPACE and release.has(SYSTEM_STAYS)
    return system or is_heartbeat_or_sla_namespace(namespace, release)


def is_never_reported(namespace: str, release: Release) -> bool:
    """Say whether bundles of a namespace are left out of a broker's top bundles."""
    if release.has(MONITORS_REPORTED):
        return namespace.startswith(SYSTEM_NAMESPACE)
    return is_system_service_namespace(namespace, release)


def is_system_service_namespace(namespace: str, release: Release = REFERENCE) -> bool:
    """Say whether a namespace is `pulsar/system`, or belongs to one broker."""
    return namespace == SYSTEM_NAMESPACE or is_heartbeat_or_sla_namespace(namespace, release)
