"""Names as outputs write them: brokers, namespaces, bundles, and what a command says of its answer."""

import re
from typing import Final
from urllib.parse import unquote

from planner.cluster.pulsar_json import host_and_port

_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
BROKER: Final = re.compile(rf"(?:{_LABEL}|\[[0-9A-Fa-f:.]+\]):[0-9]{{1,5}}")
"""A broker id, `host:port`."""

_WORD: Final = r"[-=:.A-Za-z0-9_]+"
NAMESPACE: Final = re.compile(rf"{_WORD}/{_WORD}(?:/{_WORD})?")
"""A namespace; of older releases with its cluster."""

RANGE: Final = re.compile(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}")
"""The range of a bundle."""

BUNDLE: Final = re.compile(rf"{NAMESPACE.pattern}/{RANGE.pattern}")
"""The full name of a bundle."""

TOPIC: Final = re.compile(r"(?i:(?:non-)?persistent|topic|segment)://[^/\s]+/[^/\s]+/\S.*")
"""A full topic name."""

_POD: Final = re.compile(r"(?:^|[^a-z0-9])((?:[a-z0-9]+-)*broker[-_]?[0-9]+|b[0-9]+)(?![a-z0-9])", re.IGNORECASE)
_OWN: Final = re.compile(r"(?:pulsar|sla-monitor)/(?:[^/]+/)?([^/]+:[0-9]+)")
_URL: Final = re.compile(r"https?://[^\s/'\"]+")
_ADMIN_URL: Final = re.compile(r"(?:--admin-url|--url|-u)[ =]['\"]?(\S+?)['\"]?(?:\s|$)")
_REST_NAMESPACE: Final = re.compile(r"/admin/(?:v2/namespaces|policies|local-policies)/([^/\s]+/[^/\s'\"?]+)")
_STORE_PATH: Final = re.compile(r"/loadbalance/brokers/([^\s/'\"]+:[0-9]+)")


def broker_of_own_namespace(namespace: str) -> str:
    """Return the broker whose heartbeat or monitor namespace this is; empty for any other."""
    found = _OWN.fullmatch(namespace)
    return found[1] if found else ""


def pods_in(text: str) -> list[str]:
    """Return what a text calls brokers by a short name, such as `pulsar-broker-0`."""
    return _POD.findall(text)


def broker_in(text: str) -> str:
    """Return the broker that a command, or the path of a node, is about; empty where it names none."""
    if found := _STORE_PATH.search(text):
        return found[1]
    for pattern in (_ADMIN_URL, _URL):
        for match in pattern.finditer(text):
            given = match[1] if pattern.groups else match[0]
            broker = host_and_port(given) or given
            if BROKER.fullmatch(broker):
                return broker
    return ""


def namespace_in(text: str) -> str:
    """Return the namespace that a command is about; empty where it names none."""
    if found := _REST_NAMESPACE.search(text):
        return unquote(found[1])
    _, tool, arguments = text.rpartition("pulsar-admin ")
    for word in (arguments if tool else text).split():
        plain = word.strip("'\"")
        if not plain.startswith(("-", "/", ".", "http")) and NAMESPACE.fullmatch(plain):
            return plain
    return ""


def topic_in(text: str) -> str:
    """Return the topic that a command is about; empty where it names none."""
    for word in text.split()[1:]:
        if TOPIC.fullmatch(plain := word.strip("'\"")):
            return plain
    return ""
