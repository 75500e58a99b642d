"""Namespaces that Pulsar keeps for itself.

Mirrors `NamespaceService.isSystemServiceNamespace` and `isSLAOrHeartbeatNamespace` of Pulsar 4.2.4.
"""

import re

SYSTEM_NAMESPACE = "pulsar/system"
"""Holds the topics of the extensible load manager and of transactions."""

_HEARTBEAT_OR_SLA = re.compile(r"(?:pulsar|sla-monitor)/(?:[^/]+/)?[^:]+:[0-9]+")


def is_heartbeat_or_sla_namespace(namespace: str) -> bool:
    """Say whether a namespace belongs to one broker, such as `pulsar/broker-1:8080` or `sla-monitor/broker-1:8080`."""
    return _HEARTBEAT_OR_SLA.fullmatch(namespace) is not None


def is_system_service_namespace(namespace: str) -> bool:
    """Say whether a namespace is `pulsar/system`, or belongs to one broker."""
    return namespace == SYSTEM_NAMESPACE or is_heartbeat_or_sla_namespace(namespace)
