"""The topics of one namespace in the order of their hashes, with what each counts for."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from planner.cluster.arrays import FloatArray, Int64Array, frozen
from planner.cluster.errors import ScenarioError
from planner.cluster.hashing import topic_hashes
from planner.cluster.releases import REFERENCE, Release
from planner.cluster.snapshot import Snapshot
from planner.cluster.topic_names import namespace_of_topic
from planner.simulate.planned import rates_of
from planner.simulate.planned_spec import PlannedTopics, names_of


@dataclass(frozen=True, eq=False)
class Population:
    """Topics of a namespace, partitions one by one, sorted by hash.

    Attributes:
        namespace: Its name.
        name: Full names (a pyarrow string array).
        hash: Place of each in the hash space, ascending. Shape (topics,).
        msg_per_s: Messages in and out of each. Shape (topics,).
        bytes_per_s: Throughput in and out of each. Shape (topics,).
        clients: Producers and consumers of each. Shape (topics,).
        boundaries: The boundaries of its bundles now; none for a namespace that does not exist yet.
    """

    namespace: str
    name: Any
    hash: Int64Array
    msg_per_s: FloatArray
    bytes_per_s: FloatArray
    clients: Int64Array
    boundaries: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.hash)

    @cached_property
    def weight(self) -> FloatArray:
        """Share of the namespace's load that each topic is: the mean of its shares of messages and of bytes.

        Without any traffic every topic counts the same. Sums to 1. Shape (topics,).
        """
        shares = [values / values.sum() for values in (self.msg_per_s, self.bytes_per_s) if values.sum() > 0]
        if not shares:
            shares = [np.full(len(self), 1.0 / max(len(self), 1))]
        mean: FloatArray = sum(shares[1:], shares[0]) / len(shares)
        return frozen(mean)

    @cached_property
    def running(self) -> FloatArray:
        """Sum of the weights of the first topics: none, one, two … Shape (topics + 1,)."""
        return frozen(np.concatenate(([0.0], np.cumsum(self.weight))))

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Messages and bytes per second of the first topics, as `running`. Each of shape (topics + 1,)."""
        messages, size = (np.concatenate(([0.0], np.cumsum(each))) for each in (self.msg_per_s, self.bytes_per_s))
        return frozen(messages), frozen(size)

    @cached_property
    def sessions(self) -> Int64Array:
        """Producers and consumers of the first topics, as `running`. Shape (topics + 1,)."""
        return frozen(np.concatenate(([0], np.cumsum(self.clients))))

    def first_at(self, boundaries: Int64Array) -> Int64Array:
        """Return how many topics lie below each boundary. Same shape."""
        return np.searchsorted(self.hash, boundaries, side="left")

    def heaviest(self) -> int:
        """Return the position of the topic that counts most."""
        return int(self.weight.argmax())


def _sorted(namespace: str, name: Any, hashes: Int64Array, boundaries: tuple[int, ...], **columns: Any) -> Population:
    order = np.argsort(hashes, kind="stable")
    taken = {key: frozen(np.ascontiguousarray(values[order])) for key, values in columns.items()}
    return Population(namespace, name.take(pa.array(order)), frozen(hashes[order]), boundaries=boundaries, **taken)


def population_of(snapshot: Snapshot, namespace: str) -> Population:
    """Return the topics of a namespace of a snapshot.

    Raises:
        ScenarioError: There is no such namespace, or none of its topics is listed.
    """
    if namespace not in snapshot.namespaces:
        raise ScenarioError(
            f"There is no namespace {str(namespace)[:200]!r} in this snapshot.",
            remedy="Use the name as tenant/namespace; `planner bundles --snapshot S` lists all.",
        )
    bundles, topics = snapshot.bundles, snapshot.topics
    rows = np.flatnonzero(bundles.namespace == snapshot.namespaces.index(namespace))
    held = topics.bundle >= 0
    mine = np.zeros(len(topics), dtype=np.bool_)
    wanted = np.zeros(len(bundles), dtype=np.bool_)
    wanted[rows] = True
    mine[held] = wanted[topics.bundle[held]]
    found = np.flatnonzero(mine)
    if not len(found):
        if len(topics) and not bundles.topics[rows].any():
            raise ScenarioError(
                f"{namespace[:200]} has no topics yet, so its bundles make no difference.",
                remedy="Describe the topics that it is to have by a pattern.",
            )
        raise ScenarioError(
            f"The snapshot lists no topics of {namespace[:200]}.",
            remedy="Capture the cluster with topics, or describe them by a pattern.",
        )
    return _sorted(
        namespace,
        topics.name.take(pa.array(found)),
        topics.hash[found].astype(np.int64),
        (*sorted(bundles.low[rows].tolist()), int(bundles.high[rows].max())),
        msg_per_s=topics.msg_rate_per_s(found),
        bytes_per_s=topics.throughput_bytes_per_s(found),
        clients=(topics.producers[found] + topics.consumers[found]).astype(np.int64),
    )


def populations(snapshots: Iterable[Snapshot], namespace: str) -> tuple[Population, ...]:
    """Return the topics of a namespace at several moments; moments at which none is listed are left out."""
    found = []
    for snapshot in snapshots:
        with suppress(ScenarioError):
            found.append(population_of(snapshot, namespace))
    return tuple(found)


def population_of_pattern(group: PlannedTopics, seed: int = 0, decides: Release = REFERENCE) -> Population:
    """Return the topics that a pattern describes, of a namespace that need not exist.

    Raises:
        SettingError: The description is out of bounds.
        FormatError: The pattern is not a topic name.
    """
    group.check()
    names = names_of(group)
    rate = rates_of(group, np.random.default_rng(seed))
    messages = rate * (1 + group.subscriptions)
    return _sorted(
        namespace_of_topic(names[0], decides),
        pa.array(names, type=pa.large_string()),
        topic_hashes((name.encode() for name in names), len(names)).astype(np.int64),
        (),
        msg_per_s=messages,
        bytes_per_s=messages * group.message_bytes,
        clients=np.full(len(names), 1 + group.subscriptions, dtype=np.int64),
    )
