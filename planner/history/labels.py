"""What the labels of a Prometheus series say: its broker, its topic, and what else tells it from other series.

Pulsar's own labels have a meaning. Those of Prometheus servers that write the same series twice are passed over. All
others (target labels such as `pod`, recording rules, what a proxy adds) tell series apart, whatever they mean: series
that differ in one of them are never merged (see `planner.history.samples`).
"""

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any

from planner.cluster.errors import FormatError

REPLICA_LABELS = frozenset(
    [
        "__replica__",
        "prometheus",
        "prometheus_replica",
        "receive",
        "receive_replica",
        "replica",
        "rule_replica",
        "ruler_replica",
        "thanos_replica",
        "vmagent_replica",
    ]
)
"""Labels that say which of several Prometheus servers, or rulers, wrote a series; the series is the same."""

WEB_PORT = "8080"
"""Port of a broker's web service where only its host is known: the default of `webServicePort`."""

_NO_PARTITION = "-1"
_MARK = "\x00"
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:]+")
_MOST_TEXT = 4_096


def has_port(broker: str) -> bool:
    """Return whether the name of a broker is `host:port`; an IPv6 address without brackets is a host alone."""
    host, _, port = broker.rpartition(":")
    if not host or not port.isdecimal():
        return False
    try:
        return ipaddress.ip_address(broker).version != 6  # noqa: PLR2004 - IPv6
    except ValueError:
        return True


def broker_of(labels: Mapping[str, Any]) -> tuple[str, str]:
    """Return the broker of a series, and the label that says so; both are empty where none does.

    `instance` counts when it has a port. `broker` of `pulsar_lb_*` and `pulsar_bundle_*` is the advertised host alone.
    """
    for name in ("instance", "broker"):
        value = labels.get(name)
        if isinstance(value, str) and has_port(value):
            return value, name
    host = labels.get("broker")
    return (host, "broker") if isinstance(host, str) and _HOST.fullmatch(host) else ("", "")


def topic_of(labels: Mapping[str, Any]) -> str:
    """Return the topic of a series; empty where it is of none.

    With `splitTopicAndPartitionLabelInPrometheus` Pulsar cuts a name at its first `-partition-` and writes what follows
    as the label `partition`, -1 where nothing is cut. It escapes no backslash, so that a server has read the two
    signs backslash and n of a name as the end of a line.
    """
    topic = str(labels.get("topic", "")).replace("\n", "\\n")
    partition = str(labels.get("partition", "")).replace("\n", "\\n")
    if not topic or partition in ("", _NO_PARTITION):
        return topic
    return f"{topic}-partition-{partition}"


def others_of(labels: Mapping[str, Any], known: frozenset[str]) -> str:
    """Return the labels that tell a series apart but for those that are known, as JSON; empty when there are none.

    Raises:
        FormatError: They are too long.
    """
    left = {name: str(labels[name]) for name in sorted(labels) if name not in known and name not in REPLICA_LABELS}
    text = json.dumps(left, ensure_ascii=False) if left else ""
    if len(text) > _MOST_TEXT:
        raise FormatError(
            f"The labels have more than {_MOST_TEXT:,} characters.",
            remedy="Leave out labels, as with max by (...).",
        )
    return text


def packed(subscription: str, others: str) -> str:
    """Return a subscription and other labels as one text; the subscription alone where there are none."""
    if not others and not subscription.startswith(_MARK):
        return subscription
    return _MARK + json.dumps([subscription, others], ensure_ascii=False)


def unpacked(text: str) -> tuple[str, str]:
    """Return subscription and other labels (see `packed`)."""
    if not text.startswith(_MARK):
        return text, ""
    subscription, others = json.loads(text[1:])
    return subscription, others


def difference(others: "list[str]") -> dict[str, str]:
    """Return the labels in which series differ, with what the first of them says."""
    values = [json.loads(text) if text else {} for text in others]
    names = sorted({name for labels in values for name in labels})
    return {name: values[0].get(name, "") for name in names if len({labels.get(name) for labels in values}) > 1}
