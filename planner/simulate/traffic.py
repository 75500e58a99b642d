"""The traffic of a simulated cluster: the bundles as ranges, and what each of them brings at a moment.

Whoever serves a bundle makes no difference here (`planner.simulate.cluster`). Positions of bundles change when one is
split or a namespace is made anew.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, UInt32Array, frozen
from planner.cluster.errors import ScenarioError
from planner.cluster.hashing import PARTITION, partitioned_topic, topic_hashes
from planner.cluster.ranges import FULL_HIGH, bundles_of_hashes
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, TopicTable
from planner.simulate.assumptions import Assumptions
from planner.simulate.cut_topics import CutTopics
from planner.simulate.load_model import (
    COUNT_COLUMNS,
    LIMIT_COLUMNS,
    MACHINE,
    TRAFFIC,
    USAGE_COLUMNS,
    Shape,
    load_of,
)
from planner.simulate.renumbering import Renumbering, Room

_CPU, _BANDWIDTH_OUT = 4, 6
_SCALED = 7
"""Rows that follow the traffic; the others are counts."""

_ROUNDING = 1e-9
"""Share by which sums may be off."""

_MOST_TIMES = 1e12
"""Most that all changes of traffic together may multiply it by; much more cannot be counted any longer."""

_TOPICS = 7
"""Row with the number of topics."""
_ROWS = 10

Scope: TypeAlias = Literal["cluster", "namespace", "bundle", "topic"]
"""Scopes of a change of traffic."""

FOLLOWED: Mapping[str, tuple[str, ...]] = {
    "brokers": ("name", "registered", *USAGE_COLUMNS, *LIMIT_COLUMNS),
    "bundles": ("namespace", "low", "high", "owner", *TRAFFIC_COLUMNS, *COUNT_COLUMNS),
}
"""Columns, by table, of a later snapshot that a simulation follows; the others have no part in it."""


@dataclass(eq=False)
class _TrafficChange:
    """One change of traffic and what it is about."""

    shape: Shape
    bundles: BoolArray
    """Bundles that it scales as a whole. Shape (bundles,)."""
    everything: bool = False
    """Whether these are all bundles."""
    topics: BoolArray | None = None
    """Topics that it scales instead. Shape (topics,)."""
    part: FloatArray = field(default_factory=lambda: np.zeros((_SCALED, 0)))
    """Load of these topics on each bundle. Shape (rows that scale, bundles)."""


@dataclass(eq=False)
class _TopicCaps:
    """Topics whose dispatch is limited. Shape of every column: (limited topics,)."""

    topics: Int64Array
    msg_per_s: FloatArray
    bytes_per_s: FloatArray


class Traffic:
    """What bundles there are and what each of them brings.

    Args:
        snapshot: How it starts.
        base: What each bundle brings at the start. Shape (10, bundles).
        assumptions: Assumptions about the machines.

    Attributes:
        namespaces: Names of the namespaces.
        namespace: Namespace of each bundle, by its position. Shape (bundles,).
        low: First hash of each bundle. Shape (bundles,).
        high: Last hash of each, or the one behind it (see `planner.cluster.ranges`). Shape (bundles,).
        topics: The topics as they were at the start, each in the bundle that it is in now.
        base: What each bundle brings without changes and limits; overwritten by the next cut. Shape (10, bundles).
        changes: Changes of traffic.
        limits: Limits of dispatch; None without any.
    """

    def __init__(self, snapshot: Snapshot, base: FloatArray, assumptions: Assumptions) -> None:
        self._assumptions = assumptions
        self.namespaces = snapshot.namespaces
        self.namespace: Int64Array = snapshot.bundles.namespace.astype(np.int64)
        self.low: Int64Array = snapshot.bundles.low
        self.high: Int64Array = snapshot.bundles.high
        self.topics: TopicTable = snapshot.topics
        self.base = base
        self._room = Room()
        self.changes: list[_TrafficChange] = []
        self.limits: _TopicCaps | None = None
        self._topic_names: list[str] | None = None
        self._loads: tuple[int, FloatArray] | None = None
        self._floor: tuple[FloatArray, FloatArray] | None = None

    def namespace_at(self, name: str) -> int:
        """Return the position of a namespace.

        Raises:
            ScenarioError: There is no such namespace.
        """
        if name not in self.namespaces:
            raise ScenarioError(f"The cluster has no namespace {name}.", remedy="Choose one of its namespaces.")
        return self.namespaces.index(name)

    # At a moment

    def load(self, at_ms: int) -> FloatArray:
        """Return what every bundle brings at a moment; counts, which no change scales, may be left out.

        Shape (7 or 10, bundles).
        """
        if not self.changes and self.limits is None:
            return self.base
        if self._loads is None or self._loads[0] != at_ms:
            whole: FloatArray | float = 1.0  # one number as long as it is the same of all bundles
            parts = []
            for change in self.changes:
                factor = change.shape.factor(at_ms)
                if change.topics is not None:
                    parts.append(change.part * (factor - 1.0))
                elif change.everything:
                    whole *= factor
                elif factor != 1.0:
                    whole = np.full(len(self.low), whole) if isinstance(whole, float) else whole
                    whole[change.bundles] *= factor
            load: FloatArray = self._least(parts) * whole
            if self.limits is not None:
                self._hold_back(load, self.limits, self._topic_factor(at_ms))
            self._loads = (at_ms, load)
        return self._loads[1]

    def of_bundle(self, bundle: int, at_ms: int) -> FloatArray:
        """Return what one bundle brings at a moment, with its counts. Shape (10,)."""
        return np.append(self.load(at_ms)[:_SCALED, bundle], self.base[_SCALED:, bundle])

    def _least(self, parts: list[FloatArray]) -> FloatArray:
        """Return what bundles bring, with what parts of them bring more, at least nothing. Shape (7, bundles)."""
        if not parts:
            if self._floor is None or self._floor[0] is not self.base:
                self._floor = self.base, np.maximum(self.base[:_SCALED], 0.0)
            return self._floor[1]
        load = self.base[:_SCALED].copy()
        for part in parts:
            load += part
        return np.maximum(load, 0.0, out=load)

    def moment(self, at_ms: int) -> int:
        """Return what the load depends on: the moment, if anything changes with it."""
        return at_ms if self.changes else 0

    def changes_within(self, from_ms: int, to_ms: int) -> bool:
        """Say whether the traffic of some bundle may differ between two moments."""
        return any(change.shape.changes_within(from_ms, to_ms) for change in self.changes)

    def topics_at(self, at_ms: int) -> TopicTable:
        """Return the topics with the traffic of a moment."""
        if not self.changes or not len(self.topics):
            return self.topics
        factor = self._topic_factor(at_ms)
        columns: dict[str, Any] = {name: frozen(getattr(self.topics, name) * factor) for name in TRAFFIC_COLUMNS}
        return replace(self.topics, **columns)

    def _topic_factor(self, at_ms: int) -> FloatArray:
        """Return the traffic of each topic relative to the start. Shape (topics,)."""
        factor = np.ones(len(self.topics))
        inside = self.topics.bundle >= 0
        for change in self.changes:
            hit = change.topics if change.topics is not None else inside & change.bundles[self.topics.bundle]
            factor[hit] *= change.shape.factor(at_ms)
        return factor

    def _hold_back(self, load: FloatArray, limits: _TopicCaps, factor: FloatArray) -> None:
        """Take off what limited topics may not dispatch, with what it would have cost their brokers."""
        rows = limits.topics
        rate = self.topics.msg_rate_out_per_s[rows] * factor[rows]
        size = self.topics.msg_throughput_out_bytes_per_s[rows] * factor[rows]
        allowed = np.ones(len(rows))
        for wanted, most in ((rate, limits.msg_per_s), (size, limits.bytes_per_s)):
            allowed = np.minimum(allowed, np.divide(most, wanted, out=np.ones(len(rows)), where=wanted > most))
        bundle, count = self.topics.bundle[rows], load.shape[1]
        less_rate = np.bincount(bundle, rate * (1 - allowed), minlength=count)
        less_size = np.bincount(bundle, size * (1 - allowed), minlength=count)
        less_rate, less_size = np.minimum(less_rate, load[1]), np.minimum(less_size, load[3])
        everything = (load[0] + load[1], load[2] + load[3])
        part = [
            np.divide(less, whole, out=np.zeros(count), where=whole > 0)
            for less, whole in zip((less_rate, less_size), everything, strict=True)
        ]
        load[_CPU] *= 1 - (part[0] + part[1]) / 2
        load[_BANDWIDTH_OUT] *= 1 - np.divide(less_size, load[3], out=np.zeros(count), where=load[3] > 0)
        load[1] -= less_rate
        load[3] -= less_size

    # Changes

    def scale(self, scope: Scope, target: str, shape: Shape, bundle: int = -1) -> None:
        """Let traffic change over time.

        Args:
            scope: What changes.
            target: Its name; empty for the cluster.
            bundle: Its position, where it is a bundle.
            shape: By how much, and when.

        Raises:
            ScenarioError: Its target does not exist, or traffic grows beyond all measure.
        """
        if math.prod(max(one.times, 1.0) for one in (shape, *(change.shape for change in self.changes))) > _MOST_TIMES:
            raise ScenarioError(
                f"All changes of traffic together multiply it by more than {_MOST_TIMES:g}.",
                where="factor",
                remedy="Choose smaller factors.",
            )
        made = _TrafficChange(shape, np.full(len(self.low), scope == "cluster"), everything=scope == "cluster")
        if scope == "namespace":
            made.bundles = self.namespace == self.namespace_at(target)
        elif scope == "bundle":
            made.bundles[bundle] = True
        elif scope == "topic":
            made.topics = self._topics_named(target)
            made.part = self._part(made.topics)
        self.changes.append(made)
        self._loads = None

    def partition(self, topic: str, target: str, partitions: int) -> None:
        """Spread the traffic of a topic evenly over the partitions of a target: of the topic itself, or of a new one.

        Raises:
            ScenarioError: There is no such topic in a bundle, or Pulsar would refuse it.
        """
        named = self._topics_named(topic)
        rows = np.flatnonzero(named & (self.topics.bundle >= 0))
        names = set(self.topics.name.to_pylist())
        if not len(rows):
            raise ScenarioError(f"No bundle of {topic} is known.", remedy="Choose another topic.")
        if target != topic and (target in names or f"{target}{PARTITION}0" in names):
            raise ScenarioError(f"The cluster already has a topic {target}.", remedy="Choose another name.")
        if target == topic and topic in names:
            raise ScenarioError(
                f"{topic} has no partitions, and an existing topic cannot get any.", remedy="Name a new topic."
            )
        if target == topic and partitions <= len(rows):
            raise ScenarioError(
                f"{topic} already has {len(rows):,} partitions.", remedy="Choose more: Pulsar takes none away."
            )
        space = int(self.namespace[self.topics.bundle[rows[0]]])
        mine = np.flatnonzero(self.namespace == space)
        mine = mine[np.argsort(self.low[mine], kind="stable")]
        made = [f"{target}{PARTITION}{at}" for at in range(partitions)]
        hashes = topic_hashes([name.encode() for name in made], partitions)
        homes = mine[bundles_of_hashes(self.low[mine], hashes.astype(np.int64))]
        self._spread(rows, homes, new=target != topic)
        self._list(rows, made, hashes, homes)
        fresh = len(self.topics) - len(named)
        for change in self.changes:
            if change.topics is not None:
                change.topics = np.append(change.topics, np.full(fresh, change.topics[rows].all()))
                change.part = self._part(change.topics)
        self._topic_names = None
        self._loads = None

    def _spread(self, rows: Int64Array, homes: Int64Array, *, new: bool) -> None:
        """Take the load of some topics from their bundles, and give each new home an equal part of it."""
        self.base, whole = self.base.copy(), np.zeros(_ROWS)
        parts = []
        for bundle in np.unique(self.topics.bundle[rows]).tolist():
            members = self.topics.of_bundle(bundle)
            parts.append((bundle, self._by_topic(bundle, members)[:, np.isin(members, rows)].sum(axis=1)))
        for bundle, part in parts:
            whole += part
            self.base[:, bundle] = np.maximum(self.base[:, bundle] - part, 0.0)
            if new:
                self.base[_TOPICS, bundle] += part[_TOPICS]  # the old topic is still there, without traffic
        whole[_TOPICS] = len(homes)
        for home in homes.tolist():
            self.base[:, home] += whole / len(homes)

    def _list(self, rows: Int64Array, made: Sequence[str], hashes: UInt32Array, homes: Int64Array) -> None:
        """List partitions, old and new, each with an equal part of the traffic that some topics have."""
        table, listed = self.topics, self.topics.name.to_pylist()
        there = {listed[row]: row for row in rows.tolist()}
        new = [at for at, name in enumerate(made) if name not in there]
        columns: dict[str, Any] = {
            "name": pa.concat_arrays([table.name, pa.array([made[at] for at in new], pa.large_string())])
        }
        for column in (*TRAFFIC_COLUMNS, "producers", "consumers"):
            values = getattr(table, column)
            whole = values[rows].sum()
            part = whole / len(made) if column in TRAFFIC_COLUMNS else -(-whole // len(made))
            kept = values.copy()
            kept[rows] = part if len(new) < len(made) else 0
            columns[column] = frozen(np.append(kept, np.full(len(new), part, dtype=values.dtype)))
        columns["bundle"] = frozen(np.append(table.bundle, homes[new]).astype(table.bundle.dtype))
        columns["hash"] = frozen(np.append(table.hash, hashes[new]).astype(table.hash.dtype))
        columns["has_stats"] = frozen(np.append(table.has_stats, np.ones(len(new), dtype=np.bool_)))
        self.topics = replace(table, **columns)

    def limit(self, limited: BoolArray, msg_per_s: FloatArray, bytes_per_s: FloatArray) -> None:
        """Hold back what some topics may not dispatch. Shape of every column: (topics,)."""
        rows = np.flatnonzero(limited & (self.topics.bundle >= 0))
        self.limits = _TopicCaps(rows, msg_per_s[rows], bytes_per_s[rows]) if len(rows) else None
        self._loads = None

    def follow(self, frame: Snapshot) -> None:
        """Take over the traffic that a later snapshot tells, whoever serves it here."""
        _, source = load_of(frame, self._assumptions)
        table = frame.bundles
        same = frame.namespaces == self.namespaces and len(table) == len(self.low)
        if same and all(
            np.array_equal(mine, theirs)
            for mine, theirs in ((self.namespace, table.namespace), (self.low, table.low), (self.high, table.high))
        ):
            self.base = source
        else:
            self.base = self._mapped(frame, source)
        for change in self.changes:
            if change.topics is not None:
                change.part = self._part(change.topics)
        self._loads = None

    def _mapped(self, frame: Snapshot, source: FloatArray) -> FloatArray:
        """Spread the load of other bundles over these: what lies in a range goes with the range."""
        base = np.zeros_like(self.base)
        theirs = {name: place for place, name in enumerate(frame.namespaces)}
        for place, name in enumerate(self.namespaces):
            rows = np.flatnonzero(self.namespace == place)
            if name not in theirs or not len(rows):
                continue
            given = np.flatnonzero(frame.bundles.namespace == theirs[name])
            given = given[np.argsort(frame.bundles.low[given], kind="stable")]
            edges = np.append(frame.bundles.low[given], FULL_HIGH)
            for row in range(_ROWS):
                total = np.append(0.0, np.cumsum(source[row, given]))
                base[row, rows] = np.interp(self.high[rows], edges, total) - np.interp(self.low[rows], edges, total)
        return base

    def _topics_named(self, target: str) -> BoolArray:
        """Return which topics a name means: the topic itself, or all partitions of it."""
        if self._topic_names is None:
            self._topic_names = self.topics.name.to_pylist()
        found = np.zeros(len(self.topics), dtype=np.bool_)
        for place, name in enumerate(self._topic_names):
            if name.startswith(target):
                rest = name[len(target) :]
                found[place] = not rest or (rest.startswith("-partition-") and rest[11:].isdecimal())
        if not found.any():
            raise ScenarioError(
                f"The snapshot lists no topic {target}.", remedy="Use the full name, such as persistent://a/b/topic."
            )
        return found

    def _part(self, topics: BoolArray) -> FloatArray:
        """Return what some topics bring to each bundle. Shape (rows that scale, bundles)."""
        part = np.zeros((_SCALED, len(self.low)))
        rows = np.flatnonzero(topics & (self.topics.bundle >= 0))
        for bundle in np.unique(self.topics.bundle[rows]).tolist():
            members = self.topics.of_bundle(bundle)
            share = self._by_topic(bundle, members)
            part[:, bundle] = share[:_SCALED, np.isin(members, rows)].sum(axis=1)
        return part

    # Bundles

    def cut(self, rows: Int64Array, edges: Sequence[int]) -> Renumbering:
        """Put new bundles in place of some that cover the same range; return how all are renumbered."""
        shares = np.zeros((_ROWS, len(edges) - 1))
        for row in rows.tolist():
            low, high = int(self.low[row]), int(self.high[row])
            inside = [edge for edge in edges if low < edge < high]
            first = int(np.searchsorted(edges, low, side="right")) - 1
            shares[:, first : first + len(inside) + 1] += self._shared_out(row, [low, *inside, high])
        first, stays = int(rows[0]), np.ones(len(self.low), dtype=np.bool_)
        stays[rows] = False
        made = first + np.arange(len(edges) - 1)
        behind = first + np.flatnonzero(stays[first:])
        parent = np.concatenate([np.arange(first), np.full(len(made), first), behind])
        new = np.zeros(len(parent), dtype=np.bool_)
        new[made] = True
        change = Renumbering(parent, new, rows)
        self.low, self.high = change.follow(self.low), change.follow(self.high)
        self.base = self._room.follow(self.base, change)
        self.low[made], self.high[made], self.base[:, made] = edges[:-1], edges[1:], shares
        self.namespace = change.follow(self.namespace)
        self.topics = CutTopics.of(self.topics, change, self.low)
        for scaled in self.changes:
            scaled.bundles = change.follow(scaled.bundles)
            if scaled.topics is not None:
                scaled.part = self._part(scaled.topics)
        self._loads = None
        return change

    def add_namespace(self, name: str, edges: Sequence[int], like: int) -> Renumbering:
        """Add a namespace without topics behind all others, whose traffic will change as that of another one does."""
        before, made = len(self.low), len(edges) - 1
        at = np.arange(before + made)
        change = Renumbering(np.minimum(at, before - 1), at >= before, np.zeros(0, dtype=np.int64))
        own = self.namespace == like
        for scaled in self.changes:
            scaled.bundles = np.append(scaled.bundles, np.full(made, scaled.bundles[own].all()))
            if scaled.topics is not None:
                scaled.part = np.pad(scaled.part, ((0, 0), (0, made)))
        self.namespace = np.append(self.namespace, np.full(made, len(self.namespaces)))
        self.namespaces = (*self.namespaces, name)
        self.low, self.high = np.append(self.low, edges[:-1]), np.append(self.high, edges[1:])
        self.base = np.pad(self.base, ((0, 0), (0, made)))
        self.topics = CutTopics.of(self.topics, change, self.low)
        self._loads = None
        return change

    def next_topics(self, space: int, left: int) -> Int64Array:
        """Return the topics of a namespace that go first, where all are to go in so many parts with as many clients.

        They go in the order of their names, and the partitions of a topic together. Shape (topics that go,).
        """
        held = np.flatnonzero(self.topics.bundle >= 0)
        rows: Int64Array = held[self.namespace[self.topics.bundle[held]] == space]
        if left <= 1 or not len(rows):
            return rows
        names = [partitioned_topic(name) for name in self.topics.name.take(pa.array(rows)).to_pylist()]
        _, group = np.unique(np.array(names, dtype=object), return_inverse=True)
        clients = (self.topics.producers + self.topics.consumers)[rows].astype(np.float64)
        by_group = np.bincount(group, weights=clients if clients.any() else np.ones(len(rows)))
        until = np.cumsum(by_group)
        goes = until <= max(until[-1] / left * (1 + _ROUNDING), until[0])
        first: Int64Array = rows[goes[group]]
        return first

    def hand_over(self, rows: Int64Array, source: int, target: int, *, rest: bool) -> FloatArray:
        """Let topics of a namespace go to another one with all that they bring, under its name.

        Args:
            rows: Positions of the topics. Shape (topics that go,).
            source: Position of their namespace.
            target: Position of the other one.
            rest: Whether what the bundles bring besides their topics goes as well; it spreads by the width of bundles.

        Returns:
            What each bundle loses. Shape (10, bundles).
        """
        mine = np.flatnonzero(self.namespace == target)
        mine = mine[np.argsort(self.low[mine], kind="stable")]
        old, new = (f"://{self.namespaces[at]}/" for at in (source, target))
        names = [name.replace(old, new, 1) for name in self.topics.name.take(pa.array(rows)).to_pylist()]
        hashes = topic_hashes((name.encode() for name in names), len(names))
        place = np.full(len(self.topics), -1, dtype=np.int64)
        place[rows] = bundles_of_hashes(self.low[mine], hashes.astype(np.int64))
        lost, gained = np.zeros_like(self.base), np.zeros((_ROWS, len(mine)))
        for bundle in np.unique(self.topics.bundle[rows]).tolist():
            members = self.topics.of_bundle(bundle)
            goes = place[members] >= 0
            share = self._by_topic(bundle, members)[:, goes]
            lost[:, bundle] = share.sum(axis=1)
            for row in range(_ROWS):
                gained[row] += np.bincount(place[members[goes]], share[row], minlength=len(mine))
        if rest:
            own = self.namespace == source
            others = np.maximum(self.base - lost, 0.0)[:, own].sum(axis=1)
            lost[:, own] = self.base[:, own]
            gained += others[:, np.newaxis] * (self.high[mine] - self.low[mine]) / float(FULL_HIGH)
        self.base = np.maximum(self.base - lost, 0.0)
        self.base[:, mine] += gained
        renamed = pc.replace_with_mask(self.topics.name, pa.array(place >= 0), pa.array(names, self.topics.name.type))
        places, bundles = self.topics.hash.copy(), self.topics.bundle.copy()
        places[rows], bundles[rows] = hashes, mine[place[rows]]
        self.topics = replace(self.topics, name=renamed, hash=frozen(places), bundle=frozen(bundles))
        for change in self.changes:
            if change.topics is not None:
                change.part = self._part(change.topics)
        self._topic_names = self._loads = None
        return lost

    def _shared_out(self, bundle: int, edges: Sequence[int]) -> FloatArray:
        """Return what a bundle's parts would bring: topics by their hash, the rest by width. Shape (10, parts).

        A single topic that is not listed stays whole, in the widest part: no cut divides it.
        """
        parts = np.zeros((_ROWS, len(edges) - 1))
        left = self.base[:, bundle].copy()
        members = self.topics.of_bundle(bundle)
        if len(members):
            share = self._by_topic(bundle, members)
            hashes = self.topics.hash[members].astype(np.int64)
            place = np.clip(np.searchsorted(edges, hashes, side="right") - 1, 0, len(edges) - 2)
            for row in range(_ROWS):
                parts[row] += np.bincount(place, share[row], minlength=len(edges) - 1)
            left = np.maximum(left - share.sum(axis=1), 0.0)
        width = np.diff(np.array(edges, dtype=np.float64))
        if round(float(self.base[_TOPICS, bundle])) - len(members) == 1:
            width = np.where(np.arange(len(width)) == width.argmax(), width, 0.0)
        shared: FloatArray = parts + left[:, np.newaxis] * (width / width.sum())
        return shared

    def _by_topic(self, bundle: int, members: Int64Array) -> FloatArray:
        """Return what each topic of a bundle brings. Shape (10, topics); no more than the bundle does."""
        given = np.array([getattr(self.topics, name)[members] for name in TRAFFIC_COLUMNS])
        total = self.base[:, bundle]
        sums = given.sum(axis=1)
        scale = np.where(sums > total[TRAFFIC], np.divide(total[TRAFFIC], sums, where=sums > 0, out=np.ones(4)), 1.0)
        share = np.zeros((_ROWS, len(members)))
        share[TRAFFIC] = given * scale[:, np.newaxis]
        everything = total[TRAFFIC].sum()
        weight = share[TRAFFIC].sum(axis=0) / everything if everything > 0 else np.full(len(members), 1 / len(members))
        share[MACHINE] = total[MACHINE, np.newaxis] * weight
        share[7] = total[7] / len(members)
        for row, column in ((8, self.topics.producers), (9, self.topics.consumers)):
            known = column[members].astype(np.float64)
            share[row] = known * min(1.0, total[row] / known.sum()) if known.sum() > 0 else total[row] / len(members)
        return share
