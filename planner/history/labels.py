"""What the labels of a Prometheus series say: its broker, its topic, and what else tells it from other series.

Pulsar's own labels have a meaning. Those of Prometheus servers that write the same series twice are passed over. All
others (target labels such as `pod`, recording rules, what a proxy adds) tell series apart, whatever they mean: series
that differ in one of them are never merged (see `planner.history.samples`).
"""

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

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

POD_LABELS: Final = (
    "pod",
    "kubernetes_pod_name",
    "kubernetes_pod",
    "pod_name",
    "k8s_pod_name",
    "exported_pod",
    "exported_instance",
)
"""Labels under which collectors write the pod of a target; the last one is the host of a target behind another one."""

HOST_LABEL: Final = "broker"
"""Label in which a broker gives its own host."""

WEB_PORT = "8080"
"""Port of a broker's web service where only its host is known: the default of `webServicePort`."""

EXPORTED: Final = "exported_"
"""Begins the labels that a target wrote itself, where the server that scraped it has a label of the same name."""

OTEL_TOPIC_METRICS: Final[Mapping[str, str]] = {
    "pulsar_broker_topic_message_incoming_count": "pulsar_in_messages_total",
    "pulsar_broker_topic_message_outgoing_count": "pulsar_out_messages_total",
    "pulsar_broker_topic_message_incoming_size": "pulsar_in_bytes_total",
    "pulsar_broker_topic_message_outgoing_size": "pulsar_out_bytes_total",
    "pulsar_broker_topic_producer_count": "pulsar_producers_count",
    "pulsar_broker_topic_consumer_count": "pulsar_consumers_count",
}
"""OpenTelemetry's metrics of a topic as Prometheus names them, without unit, and Pulsar's own metric of the same."""

_OTEL_LABELS: Final = {
    "pulsar_topic": "topic",
    "pulsar_partition_index": "partition",
    "pulsar_namespace": "namespace",
    "pulsar_cluster": "cluster",
}
_OTEL_NOISE: Final = frozenset(["otel_scope_name", "otel_scope_version", "pulsar_domain", "pulsar_tenant"])
_OTEL_PORT: Final = "9464"
"""Port at which OpenTelemetry's exporter is scraped by default; the web service of the broker has another one."""
_OTEL_NAME: Final = re.compile(r"(pulsar_broker_topic_[a-z_]+?_(?:count|size))(?:_bytes)?(?:_total)?")
_RESTORED: Final = (
    "instance",
    "broker",
    "topic",
    "bundle",
    "namespace",
    "subscription",
    "partition",
    "area",
    "feature",
)

_NO_PARTITION = "-1"
_MARK = "\x00"
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:]+")
"""Name or address of a host."""
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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


def with_port(host: str, port: str) -> str:
    """Return a host with a port; one that has a port keeps it, and an IPv6 address gets its brackets."""
    if has_port(host):
        return host
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def normalised(labels: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the labels and name of a series as Pulsar's own `/metrics` would have them.

    What the broker wrote itself counts, where the server renamed it to `exported_...`; but not `exported_cluster`, as
    several clusters often have one name. Names of OpenTelemetry become those of Pulsar.
    """
    found: dict[str, Any] = dict(labels)
    for name in _RESTORED:
        own = found.get(EXPORTED + name)
        if isinstance(own, str) and own and (name != "instance" or has_port(own)):
            found[name] = found.pop(EXPORTED + name)
    metric = str(found.get("__name__", "")).replace(".", "_")
    otel = _OTEL_NAME.fullmatch(metric)
    plain = OTEL_TOPIC_METRICS.get(otel[1]) if otel else None
    return found if plain is None else _of_otel(found, plain)


def _of_otel(labels: Mapping[str, Any], metric: str) -> dict[str, Any]:
    plain = {name.replace(".", "_"): value for name, value in labels.items()}
    found = {_OTEL_LABELS.get(name, name): value for name, value in plain.items() if name not in _OTEL_NOISE}
    found |= {name: plain[name] for name in _OTEL_LABELS.values() if name == "cluster" and name in plain}
    host, _, port = str(found.get("instance", "")).rpartition(":")
    if host and port == _OTEL_PORT:
        found["instance"] = f"{host}:{WEB_PORT}"
    return found | {"__name__": metric}


@dataclass(frozen=True, slots=True)
class BrokerRule:
    """Makes the web address of a broker of the labels of its series.

    Attributes:
        template: An address with labels in braces, such as `{pod}.pulsar-broker.ns.svc:8080`; `{instance_host}` is
            `instance` without its port.
    """

    template: str

    def __post_init__(self) -> None:
        """Refuse a template that makes no address.

        Raises:
            FormatError: It does not.
        """
        try:
            parts = list(Formatter().parse(self.template))
            plain = all(not spec and not how and name != "" for _, name, spec, how in parts)
            sample = "".join(text + ("x" if name else "") for text, name, _, _ in parts)
        except ValueError:
            plain, sample = False, ""
        named = [name for _, name, _, _ in parts if name] if plain else []
        if not named or not all(_LABEL.fullmatch(name) for name in named) or not has_port(sample):
            raise FormatError(
                f"{self.template[:80]!r} is not an address with a label in braces.",
                where="broker-name",
                remedy="Write {pod}.pulsar-broker.ns.svc:8080 or {instance_host}:8080.",
            )

    def of(self, labels: Mapping[str, Any]) -> str:
        """Return the broker of a series; empty where a label is missing or makes no address."""
        values = {name: str(value) for name, value in labels.items() if value}
        instance = values.get("instance", "")
        values["instance_host"] = instance.rpartition(":")[0] if has_port(instance) else instance
        named = [name for _, name, _, _ in Formatter().parse(self.template) if name]
        if not all(values.get(name) for name in named):
            return ""
        found = self.template.format_map({name: values[name] for name in named})
        host = found.rpartition(":")[0]
        return found if has_port(found) and HOST.fullmatch(host) else ""


def broker_of(labels: Mapping[str, Any]) -> tuple[str, str]:
    """Return the broker of a series, and the label that says so; both are empty where none does.

    `instance` counts when it has a port. `broker` of `pulsar_lb_*` and `pulsar_bundle_*` is the advertised host alone.
    """
    for name in ("instance", "broker"):
        value = labels.get(name)
        if isinstance(value, str) and has_port(value):
            return value, name
    host = labels.get("broker")
    return (host, "broker") if isinstance(host, str) and HOST.fullmatch(host) else ("", "")


def own_host(labels: Mapping[str, str]) -> str:
    """Return the host that a broker gives as its own; empty where it gives none, or an address."""
    host = labels.get(HOST_LABEL, "")
    return "" if has_port(host) else host


def pod_of(labels: Mapping[str, Any]) -> tuple[str, str]:
    """Return the pod of a series, and the label that says so; both are empty where none does."""
    found = ((value, name) for name in POD_LABELS if isinstance(value := labels.get(name), str))
    return next((one for one in found if HOST.fullmatch(one[0])), ("", ""))


def broker_or_pod(labels: Mapping[str, Any]) -> tuple[str, str]:
    """Return the broker of a series, and the label that says so; where no label has a port, its pod or host.

    All series of a broker must be named by the same label, and only some have `broker`, so that the pod comes first.
    """
    broker, label = broker_of(labels)
    if has_port(broker):
        return broker, label
    instance = labels.get("instance")
    host = (instance, "instance") if isinstance(instance, str) and HOST.fullmatch(instance) else ("", "")
    return next((one for one in (pod_of(labels), (broker, label), host) if one[0]), ("", ""))


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
