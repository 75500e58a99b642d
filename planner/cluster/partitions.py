"""The partitions of a topic among the topics of a snapshot."""

from typing import Final

import numpy as np
import pyarrow.compute as pc

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.hashing import PARTITION
from planner.cluster.tables import TopicTable

NEW_TOPIC: Final = "-parts"
"""What is put behind the name of a topic without partitions, which cannot get any, for that of a new one that has."""


def partitions_of(topics: TopicTable, base: str) -> Int64Array:
    """Return the positions of a topic's partitions; none for a topic without. Shape (partitions,)."""
    like = np.flatnonzero(pc.starts_with(topics.name, f"{base}{PARTITION}").to_numpy(zero_copy_only=False))
    length = len(base) + len(PARTITION)
    mine = [int(at) for at in like if str(topics.name[int(at)].as_py())[length:].isdecimal()]
    return np.array(mine, dtype=np.int64)


def is_listed(topics: TopicTable, name: str) -> bool:
    """Say whether there is a topic of a full name, whole or in partitions."""
    return bool(pc.any(pc.equal(topics.name, name)).as_py()) or len(partitions_of(topics, name)) > 0


def skew_share(partitions: int) -> float:
    """Return the share of a topic's traffic from which on one of its partitions has far more than its own."""
    fair = 1 / max(partitions, 1)
    return min(2 * fair, (1 + fair) / 2)


def skewed(rates: FloatArray) -> bool:
    """Say whether one of several partitions has far more than its share of what all of them carry."""
    whole = float(rates.sum())
    return len(rates) > 1 and whole > 0 and float(rates.max()) / whole >= skew_share(len(rates))
