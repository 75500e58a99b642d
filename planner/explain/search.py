"""Where a topic, bundle, namespace or broker is: by its name, whether or not the snapshot lists it."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import Snapshot

_TOPIC = re.compile(r"(?:(persistent|non-persistent)://)?([^/\s]+/[^/\s]+)/(\S+)")
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
    found = _TOPIC.fullmatch(text)
    if found is None or found[2] not in snapshot.namespaces:
        return None
    name = text if found[1] else f"persistent://{text}"
    place = topic_hash(name)
    bundles = snapshot.bundles
    inside = (bundles.low <= place) & ((bundles.high > place) | (bundles.high == FULL_HIGH))
    rows = np.flatnonzero(inside & (bundles.namespace == snapshot.namespaces.index(found[2])))
    if not len(rows):
        return Place("topic", name, found[2], topic_hash=place, listed=False)
    at = _bundle(snapshot, int(rows[0]))
    listed = bool(len(snapshot.topics)) and bool(pc.any(pc.equal(snapshot.topics.name, name)).as_py())
    return Place("topic", name, found[2], at.bundle, at.broker, place, listed)


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
