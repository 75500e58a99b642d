"""Where a topic, bundle, namespace or broker is: by its name, whether or not the snapshot lists it."""

from dataclasses import dataclass
from typing import Literal

import pyarrow.compute as pc

from planner.cluster.errors import FormatError, PulsarError
from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import bundle_name, bundle_of_hash
from planner.cluster.snapshot import Snapshot
from planner.cluster.topic_names import full_topic_name, namespace_of_topic
from planner.pulsar.splitting.request import namespace_boundaries

_FROM_TENANT = 2
"""Slashes of a topic that is written with its tenant and namespace."""
_MOST = 8


@dataclass(frozen=True, slots=True)
class Place:
    """What was found.

    Attributes:
        kind: What it is.
        name: Its full name.
        namespace: Its namespace; empty for a broker.
        bundle: Its bundle, for a topic or a bundle; empty for others.
        broker: Who serves it; empty when nobody does, or many.
        topic_hash: Hash of a topic; None for others.
        listed: Whether the snapshot lists it.
    """

    kind: Literal["topic", "bundle", "namespace", "broker"]
    name: str
    namespace: str = ""
    bundle: str = ""
    broker: str = ""
    topic_hash: int | None = None
    listed: bool = True


def search(snapshot: Snapshot, text: str) -> tuple[Place, ...]:
    """Return what a text names: the one thing of that name, else what has the text in its name; the first few.

    A topic need not be listed: its hash tells its bundle.
    """
    text = text.strip()
    if not text:
        return ()
    exact = _exact(snapshot, text)
    return (exact,) if exact is not None else _alike(snapshot, text.lower())


def _exact(snapshot: Snapshot, text: str) -> Place | None:
    if text in snapshot.bundle_position:
        return _bundle(snapshot, snapshot.bundle_position[text])
    if text in snapshot.namespaces:
        return Place("namespace", text, text)
    if text in snapshot.brokers.position:
        return Place("broker", text, broker=text)
    if text.count("/") < _FROM_TENANT:
        return None
    try:
        release = snapshot.settings.release
        name = full_topic_name(text, release=release)
        namespace = namespace_of_topic(name, release)
    except FormatError:
        return None
    return _topic(snapshot, name, namespace) if namespace in snapshot.namespaces else None


def _topic(snapshot: Snapshot, name: str, namespace: str) -> Place:
    """Return where a topic is; Pulsar itself finds no bundle for a hash of 0xffffffff."""
    place = topic_hash(name)
    boundaries = namespace_boundaries(snapshot, snapshot.namespaces.index(namespace))
    try:
        at = bundle_of_hash(boundaries, place)
        row = snapshot.bundle_position[bundle_name(namespace, boundaries[at], boundaries[at + 1])]
    except (PulsarError, KeyError):
        return Place("topic", name, namespace, topic_hash=place, listed=False)
    there = _bundle(snapshot, row)
    listed = bool(len(snapshot.topics)) and bool(pc.any(pc.equal(snapshot.topics.name, name)).as_py())
    return Place("topic", name, namespace, there.bundle, there.broker, place, listed)


def _bundle(snapshot: Snapshot, row: int) -> Place:
    owner, name = int(snapshot.bundles.owner[row]), snapshot.bundle_names[row]
    broker = snapshot.brokers.name[owner] if owner >= 0 else ""
    return Place("bundle", name, name.rpartition("/")[0], name, broker)


def _alike(snapshot: Snapshot, text: str) -> tuple[Place, ...]:
    found = [Place("broker", name, broker=name) for name in snapshot.brokers.name if text in name.lower()]
    found += [Place("namespace", name, name) for name in snapshot.namespaces if text in name.lower()]
    if len(found) < _MOST and len(snapshot.topics):
        names = snapshot.topics.name.filter(pc.match_substring(snapshot.topics.name, text, ignore_case=True))
        topics = (_exact(snapshot, str(name)) for name in names[:_MOST].to_pylist())
        found += [place for place in topics if place is not None]
    return tuple(found[:_MOST])
