"""Names of topics, as `TopicName` of each release of Pulsar takes and completes them."""

import re
from dataclasses import dataclass
from typing import Final

from planner.cluster.errors import FormatError
from planner.cluster.releases import REFERENCE, Release, Switch

FOUR_PARTS: Final = Switch(
    "A topic name of four parts, `persistent://tenant/cluster/namespace/topic`, belongs to the namespace "
    "`tenant/cluster/namespace`. Later releases reject it.",
    until="4.2.4",
)
LOWER_DOMAIN: Final = Switch(
    "A domain in capitals, as in `Persistent://`, is converted to lower case. Later releases keep it, so "
    "that the topic has a different hash.",
    until="4.2.4",
)
BLANK_LOCAL: Final = Switch(
    "The local name of a topic may be blank, though not empty.", until="4.0.4", backported=("3.3.5",)
)
SCALABLE: Final = Switch("The domains `topic` and `segment` exist.", since="5.0.0-M1")

_WORD: Final = r"[-=:.A-Za-z0-9_]+"
_PLAIN: Final = re.compile(rf"((?:non-)?persistent)://({_WORD}/{_WORD})/([^/]*[^/\s][^/]*)")
_BLANK: Final = re.compile("[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]*")
"""Blanks of `Character.isWhitespace`, which does not count no-break spaces."""
_SEGMENT: Final = re.compile(r".+/[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9]+", re.DOTALL)
_DOMAINS: Final = ("persistent", "non-persistent")
_SCALABLE_DOMAINS: Final = ("topic", "segment")
_THREE, _FOUR = 3, 4
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class TopicName:
    """A full topic name.

    Attributes:
        full: It, as Pulsar writes it.
        namespace: `tenant/namespace`; up to 4.1 also `tenant/cluster/namespace`.
    """

    full: str
    namespace: str


def topic_name(full_name: str, release: Release = REFERENCE) -> TopicName:
    """Read a full topic name, such as `persistent://public/default/my-topic`, as a release does (`TopicName.get`).

    Raises:
        FormatError: The release refuses it; the reason is that of the release.
    """
    found = _read(full_name, release)
    if isinstance(found, TopicName):
        return found
    shown = full_name if len(full_name) <= _SHOWN else f"{full_name[:_SHOWN]}…"
    raise FormatError(f"'{shown}' is not a topic name: {found}.", remedy="Write persistent://tenant/namespace/topic.")


def refusal(full_name: str, release: Release) -> str:
    """Return why a release refuses a full topic name, in a few words; empty when it takes it."""
    found = _read(full_name, release)
    return "" if isinstance(found, TopicName) else found


def _read(full_name: str, release: Release) -> TopicName | str:
    """Return a name, or why it is refused."""
    plain = _PLAIN.fullmatch(full_name)
    if plain is not None:
        return TopicName(full_name, plain[2])
    domain, sign, rest = full_name.partition("://")
    kind = domain.lower()
    if not sign:
        return "it has no domain"
    if kind not in (_DOMAINS + _SCALABLE_DOMAINS if release.has(SCALABLE) else _DOMAINS):
        newer = ", which only Pulsar 5 has" if kind in _SCALABLE_DOMAINS else ""
        return f"Pulsar {release.name} has no domain '{domain[:40]}'{newer}"
    parts = rest.split("/", _THREE - 1 if kind in _SCALABLE_DOMAINS else _FOUR - 1)
    if len(parts) == _FOUR and not release.has(FOUR_PARTS):
        return f"it has four parts, with a cluster, which Pulsar accepts up to 4.1 and {release.name} does not"
    *space, local = parts
    wrong = ""
    if len(parts) < _THREE:
        wrong = "it lacks a tenant, a namespace or a local name"
    elif not all(re.fullmatch(_WORD, word) for word in space):
        wrong = "its tenant or namespace contains characters other than letters, digits and -=:._"
    elif not local or (_BLANK.fullmatch(local) and not release.has(BLANK_LOCAL)):
        wrong = "its local name is blank"
    elif kind == "segment" and not _SEGMENT.fullmatch(local):
        wrong = "a segment is named parent/hashStart-hashEnd-id"
    return wrong or TopicName(f"{kind if release.has(LOWER_DOMAIN) else domain}://{rest}", "/".join(space))


def full_topic_name(name: str, namespace: str | None = None, release: Release = REFERENCE) -> str:
    """Complete a short topic name as `TopicName.get` does.

    `x` becomes `persistent://public/default/x` (or `persistent://<namespace>/x` when a namespace is given), and
    `tenant/namespace/x` becomes `persistent://tenant/namespace/x`. A full name is returned as Pulsar writes it.

    Raises:
        FormatError: The release refuses the name; the reason is that of the release.
    """
    if "://" in name:
        return topic_name(name, release).full
    parts = name.split("/")
    if len(parts) not in {1, _THREE}:
        raise FormatError(
            f"'{name}' is not a topic name.",
            remedy="Write topic, tenant/namespace/topic, or the full name with its domain.",
        )
    full = f"persistent://{namespace or 'public/default'}/{name}" if len(parts) == 1 else f"persistent://{name}"
    return topic_name(full, release).full


def namespace_of_topic(full_name: str, release: Release = REFERENCE) -> str:
    """Return the namespace of a full topic name, `tenant/namespace`.

    Raises:
        FormatError: The release refuses the name.
    """
    return topic_name(full_name, release).namespace


def is_namespace(name: str) -> bool:
    """Say whether a name is that of a namespace that every release can create: `tenant/namespace`."""
    return re.fullmatch(f"{_WORD}/{_WORD}", name) is not None


def is_namespace_with_cluster(namespace: str) -> bool:
    """Say whether a name is that of a namespace of four-part topic names: `tenant/cluster/namespace`."""
    words = namespace.split("/")
    return len(words) == _THREE and all(re.fullmatch(_WORD, word) for word in words)
