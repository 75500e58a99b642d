"""The cluster of a simulation as it is: who serves which bundle, and the demand that makes on the machines.

Every change goes through a method here, which tells the leader's view what brokers notice of it; what the leader knows
lags behind (`planner.simulate.leader_view`). Positions of brokers never change: those that left stay in the table, not
present. Positions of bundles change when one is split or a namespace is made anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen
from planner.cluster.errors import ScenarioError
from planner.cluster.hashing import java_string_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH, bundle_name
from planner.cluster.settings import Settings
from planner.cluster.snapshot import TRAFFIC_COLUMNS, BrokerTable, Policies, Snapshot, TopicTable, make_bundles
from planner.cluster.units import KBIT_PER_GBIT
from planner.pulsar.load.namespace_policies import isolation_policy
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.filters import isolate
from planner.simulate.assumptions import Assumptions
from planner.simulate.dispatch.caps import dispatch_caps
from planner.simulate.leader_view import LeaderView, Measurable, Rebuilt
from planner.simulate.load_model import (
    COUNT_COLUMNS,
    COUNTS,
    LIMIT_COLUMNS,
    MACHINE,
    TRAFFIC,
    USAGE_COLUMNS,
    Shape,
    load_of,
    rows_of,
    with_usage,
    with_values,
)
from planner.simulate.trace import BrokerState

_DUST = 1e-9
"""Share of what a machine uses that is no traffic but rounding."""
_CPU, _BANDWIDTH_OUT = 4, 6
_SCALED = 7
"""Rows that follow the traffic; the others are counts."""

_ROWS = 10

Scope: TypeAlias = Literal["cluster", "namespace", "bundle", "topic"]
"""What a change of traffic is about."""

FOLLOWED: Mapping[str, tuple[str, ...]] = {
    "brokers": ("name", "registered", *USAGE_COLUMNS, *LIMIT_COLUMNS),
    "bundles": ("namespace", "low", "high", "owner", *TRAFFIC_COLUMNS, *COUNT_COLUMNS),
}
"""Columns, by table, of a later snapshot that a simulation follows; the others have no part in it."""

_NAME_COLUMNS = ("name", "version", "load_manager_class")


@dataclass(eq=False)
class _TrafficChange:
    """One change of traffic and what it is about."""

    shape: Shape
    bundles: BoolArray
    """Bundles that it scales as a whole. Shape (bundles,)."""
    topics: BoolArray | None = None
    """Topics that it scales instead. Shape (topics,)."""
    part: FloatArray = field(default_factory=lambda: np.zeros((_SCALED, 0)))
    """What these topics bring to each bundle. Shape (rows that scale, bundles)."""


@dataclass(eq=False)
class _TopicCaps:
    """Topics whose dispatch is limited. Shape of every column: (limited topics,)."""

    topics: Int64Array
    msg_per_s: FloatArray
    bytes_per_s: FloatArray


class Cluster:
    """The cluster as it really is, and how it changes.

    Args:
        snapshot: How it starts.
        assumptions: What is supposed of the machines.
        load_manager: The load manager that runs.
        config: Settings in force.

    Attributes:
        leader_view: What the leader knows.
        present: Brokers that are part of the cluster. Shape (brokers,).
        alive: Brokers that run; one that has died is present until its session ends. Shape (brokers,).
        owner: Broker that serves each bundle, -1 for nobody. Shape (bundles,).
        names: Full bundle names.
        hashes: `String.hashCode` of each. Shape (bundles,).
        position: Position of each bundle by its name.
        pins: Broker that a bundle is kept on, by name of the bundle.
    """

    def __init__(
        self, snapshot: Snapshot, assumptions: Assumptions, load_manager: LoadManager, config: Settings
    ) -> None:
        self.assumptions = assumptions
        self.config = config
        self.info = replace(snapshot.info, load_manager=load_manager)
        self.policies: Policies = snapshot.policies
        self.namespaces = snapshot.namespaces
        self.brokers: BrokerTable = snapshot.brokers
        self.present: BoolArray = snapshot.brokers.registered.copy()
        self.alive: BoolArray = self.present.copy()
        self.machine, self.base = load_of(snapshot, assumptions)
        table = snapshot.brokers
        self.beyond: BoolArray = rows_of(table, USAGE_COLUMNS) > rows_of(table, LIMIT_COLUMNS)
        """Which machines the snapshot shows beyond what they have; they are not capped. Shape (3, brokers)."""
        self.namespace: Int64Array = snapshot.bundles.namespace.astype(np.int64)
        self.low: Int64Array = snapshot.bundles.low.copy()
        self.high: Int64Array = snapshot.bundles.high.copy()
        self.owner: Int64Array = snapshot.bundles.owner.astype(np.int64)
        self.topics: TopicTable = snapshot.topics
        self._topic_names: list[str] | None = None
        self.changes: list[_TrafficChange] = []
        self.limits: _TopicCaps | None = None
        self._loads: tuple[int, FloatArray] | None = None
        self.names: tuple[str, ...] = snapshot.bundle_names
        self.hashes: IntArray = snapshot.bundle_name_hashes
        self.position: dict[str, int] = dict(snapshot.bundle_position)
        self.pins: dict[str, str] = {}
        self._owners: IntArray | None = None
        self._usage: tuple[int, FloatArray, FloatArray] | None = None
        self._table: tuple[int, BrokerTable] | None = None
        self._measurable: tuple[int, Measurable] | None = None
        self._state: tuple[int, BrokerState] | None = None
        self.leader_view = LeaderView(self, snapshot.with_columns(info=self.info), config)

    def _touch(self) -> None:
        """Forget what was worked out; something has changed."""
        self._owners = self._usage = self._table = self._measurable = self._state = None

    # Who serves what

    def _assign(self, bundles: Int64Array | int, broker: int) -> None:
        self.owner[bundles] = broker
        self._touch()

    def release(self, bundles: Int64Array | int) -> Int64Array:
        """Let nobody serve bundles. Their brokers measure it only when something else makes them.

        Returns:
            The positions of the bundles. Shape (bundles,).
        """
        self._assign(bundles, -1)
        return np.atleast_1d(np.asarray(bundles, dtype=np.int64))

    def unload(self, bundles: Int64Array | int) -> Int64Array:
        """Let nobody serve bundles, and their brokers notice.

        Returns:
            The positions of the bundles. Shape (bundles,).
        """
        which = np.atleast_1d(np.asarray(bundles, dtype=np.int64))
        if (self.owner[which] >= 0).any():
            self.leader_view.ownership_changed(self.owner[which], which)
        return self.release(which)

    def serve(self, bundle: int, broker: int) -> None:
        """Let a broker serve a bundle; both the donor, if any, and the receiver notice."""
        both = np.array([self.owner[bundle], broker])
        self._assign(bundle, broker)
        self.leader_view.ownership_changed(both, np.array([bundle]))

    def server_of(self, bundle: int) -> str:
        """Return the broker that serves a bundle; empty for nobody."""
        owner = int(self.owner[bundle])
        return self.brokers.name[owner] if owner >= 0 else ""

    def names_on(self, broker: int) -> list[str]:
        """Return the bundles that a broker serves."""
        return [self.names[at] for at in np.flatnonzero(self.owner == broker).tolist()]

    def owners(self) -> IntArray:
        """Return who serves each bundle now, for keeping. Shape (bundles,)."""
        if self._owners is None:
            self._owners = frozen(self.owner.astype(np.int32))
        return self._owners

    # Brokers

    def present_names(self) -> tuple[str, ...]:
        """Return the brokers that are part of the cluster."""
        return tuple(name for name, here in zip(self.brokers.name, self.present.tolist(), strict=True) if here)

    def elect(self, leader: str) -> None:
        """Let another broker lead."""
        self.info = replace(self.info, leader=leader)
        self.leader_view.touch()

    def broker(self, name: str) -> int:
        """Return the position of a broker.

        Raises:
            ScenarioError: There is no such broker.
        """
        at = self.brokers.position.get(name, -1)
        if at < 0:
            raise ScenarioError(f"The cluster has no broker {name}.", remedy="Choose one of its brokers.")
        return at

    def bundle(self, name: str) -> int:
        """Return the position of a bundle.

        Raises:
            ScenarioError: There is no such bundle, perhaps because it was split meanwhile.
        """
        at = self.position.get(name, -1)
        if at < 0:
            raise ScenarioError(
                f"The cluster has no bundle {name} at that moment.", remedy="It may have been split; choose a child."
            )
        return at

    def join(self, names: Sequence[str], cores: float, nic_gbps: float, at_ms: int) -> None:
        """Let brokers join, which report at once; sizes of 0 are the cluster's median.

        Raises:
            ScenarioError: There is a broker of that name.
        """
        table, count = self.brokers, len(names)
        known = sorted(set(names) & set(table.name))
        if known:
            raise ScenarioError(f"The cluster already has a broker {known[0]}.", remedy="Choose another name.")
        columns: dict[str, Any] = {"name": (*table.name, *names)}
        for column in ("version", "load_manager_class"):
            values = getattr(table, column)
            common = max(set(values), key=values.count) if values else ""
            columns[column] = (*values, *(common,) * count)
        for column in (part.name for part in fields(table) if part.name not in _NAME_COLUMNS):
            values = getattr(table, column)
            new = _typical(column, values, count)
            if column == "cpu_limit_percent" and cores > 0:
                new[:] = cores * 100
            if column.startswith("bandwidth") and column.endswith("limit_kbit_per_s") and nic_gbps > 0:
                new[:] = nic_gbps * KBIT_PER_GBIT
            if column == "started_at_ms":
                new[:] = at_ms
            columns[column] = frozen(np.concatenate([values, new]))
        self.brokers = replace(table, **columns)
        idle = self.brokers.cpu_limit_percent[-count:] * self.assumptions.idle_cpu_percent / 100
        self.machine = np.hstack([self.machine, np.array([idle, np.zeros(count), np.zeros(count)])])
        self.beyond = np.hstack([self.beyond, np.zeros((3, count), dtype=np.bool_)])
        self.present = np.append(self.present, np.ones(count, dtype=np.bool_))
        self.alive = np.append(self.alive, np.ones(count, dtype=np.bool_))
        self._touch()
        self.leader_view.joined(at_ms)

    def resize(self, names: Sequence[str], cores: float, nic_gbps: float) -> None:
        """Change the machines of brokers, of all where none is named; a size of 0 is kept.

        Raises:
            ScenarioError: There is no such broker.
        """
        which = np.array([self.broker(name) for name in names] or range(len(self.brokers)), dtype=np.int64)
        sizes = [cores * 100, *[nic_gbps * KBIT_PER_GBIT] * 2]
        given = {name: size for name, size in zip(LIMIT_COLUMNS, sizes, strict=True) if size > 0}
        for row, name in enumerate(LIMIT_COLUMNS):
            self.beyond[row, which] &= name not in given
        self.brokers = with_values(self.brokers, which, given)
        self._touch()
        self.leader_view.note_changes(which)

    def close(self, broker: int) -> None:
        """Let a broker take no more bundles; it serves those that it has, and is no longer registered."""
        self.present[broker] = False
        self._touch()
        self.leader_view.left(broker)

    def die(self, broker: int) -> None:
        """Let a broker stop. Nobody notices until it leaves; until then nobody serves its bundles."""
        self.alive[broker] = False
        self._touch()

    def leave(self, broker: int) -> Int64Array:
        """Take a broker out of the cluster; return the bundles that it gives up. Shape (bundles given up,)."""
        self.present[broker] = self.alive[broker] = False
        mine = np.flatnonzero(self.owner == broker)
        self._assign(mine, -1)
        self.leader_view.left(broker)
        return mine

    def come_back(self, broker: int, at_ms: int) -> None:
        """Let a broker join again, with nothing on it; it reports at once."""
        self.present[broker] = self.alive[broker] = True
        self._touch()
        self.leader_view.started(broker, at_ms)

    def report(self, who: Int64Array, at_ms: int) -> bool:
        """Let those of some brokers that run measure and report; say whether the leader read anything new.

        Args:
            who: Positions of the brokers whose moment it is. Shape (reporting,).
            at_ms: The moment, ms since 1970.
        """
        view = self.leader_view
        return view.stirs(at_ms) and view.report(who[(self.alive & self.present)[who]], at_ms)

    def report_at_once(self, at_ms: int) -> None:
        """Let every broker measure now, and report where enough has changed."""
        self.leader_view.report(np.flatnonzero(self.alive & self.present), at_ms, at_once=True)

    # Traffic

    def scale(self, scope: Scope, target: str, shape: Shape) -> None:
        """Let traffic change over time; what begins with the simulation shows in what brokers measure next.

        Args:
            scope: What changes.
            target: Its name; empty for the cluster.
            shape: By how much, and when.

        Raises:
            ScenarioError: What it is about is not there.
        """
        made = _TrafficChange(shape, np.full(len(self.low), scope == "cluster"))
        if scope == "namespace":
            made.bundles = self.namespace == self.namespace_at(target)
        elif scope == "bundle":
            made.bundles[self.bundle(target)] = True
        elif scope == "topic":
            made.topics = self._topics_named(target)
            made.part = self._part(made.topics)
        self.changes.append(made)
        self._loads = None
        self._touch()
        if shape.at_min == 0:
            self.leader_view.note_changes()

    def namespace_at(self, name: str) -> int:
        """Return the position of a namespace.

        Raises:
            ScenarioError: There is no such namespace.
        """
        if name not in self.namespaces:
            raise ScenarioError(f"The cluster has no namespace {name}.", remedy="Choose one of its namespaces.")
        return self.namespaces.index(name)

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

    def load(self, at_ms: int) -> FloatArray:
        """Return what every bundle brings at a moment. Shape (10, bundles)."""
        if not self.changes and self.limits is None:
            return self.base
        if self._loads is None or self._loads[0] != at_ms:
            whole = np.ones(len(self.low))
            load = self.base.copy()
            for change in self.changes:
                factor = change.shape.factor(at_ms)
                if change.topics is not None:
                    load[:_SCALED] += change.part * (factor - 1.0)
                elif factor != 1.0:
                    whole[change.bundles] *= factor
            scaled = load[:_SCALED]
            np.maximum(scaled, 0.0, out=scaled)
            scaled *= whole
            if self.limits is not None:
                self._hold_back(load, self.limits, self._topic_factor(at_ms))
            self._loads = (at_ms, load)
        return self._loads[1]

    def _moment(self, at_ms: int) -> int:
        """Return what the load depends on: the moment, if anything changes with it."""
        return at_ms if self.changes else 0

    def limit_dispatch(self) -> None:
        """Hold back what policies and settings do not let topics dispatch.

        The traffic of a snapshot already is under the limits of its time; new ones can only lower it. What a broker
        shares among all its topics is left out.
        """
        caps = dispatch_caps(self.snapshot(self.info.captured_at_ms), self.config, self.policies)
        rows = np.flatnonzero(caps.limited & (self.topics.bundle >= 0))
        self.limits = _TopicCaps(rows, caps.msg_per_s[rows], caps.bytes_per_s[rows]) if len(rows) else None
        self._loads = None
        self._touch()
        self.leader_view.note_changes()

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

    def traffic_changes(self, from_ms: int, to_ms: int) -> bool:
        """Say whether the traffic of some bundle may differ between two moments."""
        return any(change.shape.changes_within(from_ms, to_ms) for change in self.changes)

    def follow(self, frame: Snapshot) -> None:
        """Take over the traffic that a later snapshot tells, whoever serves it here."""
        _, source = load_of(frame, self.assumptions)
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
        self._touch()
        self.leader_view.note_changes()

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

    # Bundles

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

    def _shared_out(self, bundle: int, edges: Sequence[int]) -> FloatArray:
        """Return what a bundle's parts would bring: topics by their hash, the rest by width. Shape (10, parts)."""
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
        shared: FloatArray = parts + left[:, np.newaxis] * (width / width.sum())
        return shared

    def split(self, bundle: int, boundaries: Sequence[int]) -> Int64Array:
        """Split a bundle at boundaries inside its range, in order; the children stay where it is.

        Returns:
            Positions of the children; those of bundles behind them have changed. Shape (children,).
        """
        owner = self.owner[[bundle]]
        children = self._cut(np.array([bundle]), [int(self.low[bundle]), *boundaries, int(self.high[bundle])])
        if owner[0] >= 0:
            self.leader_view.ownership_changed(owner, children)
        return children

    def recut(self, namespace: str, count: int) -> None:
        """Make a namespace anew with equal bundles that nobody serves yet.

        Raises:
            ScenarioError: There is no such namespace.
        """
        rows = np.flatnonzero(self.namespace == self.namespace_at(namespace))
        step = 2**32 // count
        self.release(self._cut(rows, [*(step * i for i in range(count)), FULL_HIGH]))

    def _cut(self, rows: Int64Array, edges: Sequence[int]) -> Int64Array:
        """Put new bundles in place of some that cover the same range; return their positions. Shape (new bundles,)."""
        shares = np.zeros((_ROWS, len(edges) - 1))
        for row in rows.tolist():
            low, high = int(self.low[row]), int(self.high[row])
            inside = [edge for edge in edges if low < edge < high]
            first = int(np.searchsorted(edges, low, side="right")) - 1
            shares[:, first : first + len(inside) + 1] += self._shared_out(row, [low, *inside, high])
        others = np.delete(np.arange(len(self.low)), rows)
        place = int((others < rows[0]).sum())
        made = place + np.arange(len(edges) - 1)
        parent = np.insert(others, place, np.full(len(made), rows[0]))
        new = np.zeros(len(parent), dtype=np.bool_)
        new[made] = True
        self.low, self.high, self.base = self.low[parent], self.high[parent], self.base.take(parent, axis=1)
        self.low[made], self.high[made], self.base[:, made] = edges[:-1], edges[1:], shares
        self._rebuild(Rebuilt(parent, new))
        return made

    def _rebuild(self, change: Rebuilt) -> None:
        """Renumber the bundles, whose ranges and load are new already, and find the topics of the new ones."""
        parent, new = change.parent, change.new
        self.namespace, self.owner = self.namespace[parent], self.owner[parent]
        moved = np.full(len(self.names) + 1, -1, dtype=np.int32)  # the last one is for topics of no bundle
        moved[parent[~new]] = np.flatnonzero(~new)
        bundle = moved[self.topics.bundle]
        changed = np.flatnonzero(bundle < 0)
        changed = changed[self.topics.bundle[changed] >= 0]
        made = np.flatnonzero(new)
        made = made[np.argsort(self.low[made], kind="stable")]
        place = np.searchsorted(self.low[made], self.topics.hash[changed].astype(np.int64), side="right") - 1
        bundle[changed] = made[np.clip(place, 0, None)]
        self.topics = self.topics.with_bundles(frozen(bundle), changed)
        names = [self.names[old] for old in parent.tolist()]
        for at in made.tolist():
            name = bundle_name(self.namespaces[self.namespace[at]], int(self.low[at]), int(self.high[at]))
            pinned = self.pins.get(names[at])
            if pinned is not None:
                self.pins[name] = pinned
            names[at] = name
        self.names = tuple(names)
        self.position = dict(zip(names, range(len(names)), strict=True))
        self.hashes = self.hashes[parent]
        self.hashes[made] = java_string_hashes([names[at] for at in made.tolist()])
        for scaled in self.changes:
            scaled.bundles = scaled.bundles[parent]
            if scaled.topics is not None:
                scaled.part = self._part(scaled.topics)
        self._loads = None
        self._touch()
        self.leader_view.rebuilt(change)

    # Policies

    def change_policies(self, policies: Policies) -> None:
        """Let other policies hold; everybody knows at once."""
        self.policies = policies
        self.leader_view.touch()

    def pin(self, bundle: str, broker: str) -> None:
        """Keep a bundle on a broker, and its children after a split."""
        self.pins[bundle] = broker

    def misplaced(self) -> Int64Array:
        """Return bundles on a broker that the isolation policy of their namespace forbids. Shape (such bundles,)."""
        wrong: list[int] = []
        here = self.present_names()
        for place, namespace in enumerate(self.namespaces):
            if isolation_policy(self.policies, namespace) is None:
                continue
            allowed = {self.broker(b) for b in isolate(self.policies, namespace, here, lambda _: True).candidates}
            rows = np.flatnonzero((self.namespace == place) & (self.owner >= 0))
            wrong += [row for row in rows.tolist() if int(self.owner[row]) not in allowed]
        return np.array(wrong, dtype=np.int64)

    # What it looks like

    def evaluated_view(self, at_ms: int) -> Snapshot:
        """Return what the leader knows with the real owners, by which it judges its promises."""
        view = self.leader_view.view(at_ms)
        reported = view.bundles.has_stats & (view.bundles.owner == self.owner)
        owner = frozen(self.owner.astype(np.int32))
        return view.with_columns(bundles=replace(view.bundles, owner=owner, has_stats=frozen(reported)))

    def _on_brokers(self, rows: FloatArray) -> FloatArray:
        """Sum up rows of the load by the broker that serves the bundle. Shape (rows, brokers)."""
        served = self.owner >= 0
        served[served] = self.alive[self.owner[served]]
        owner, count = self.owner[served], len(self.brokers)
        sums: FloatArray = np.array([np.bincount(owner, row[served], minlength=count) for row in rows])
        return sums

    def machines(self, at_ms: int) -> tuple[FloatArray, FloatArray]:
        """Return what machines use, at most what they have, and the demand, which may be more.

        Returns:
            CPU (percent of one core), inbound and outbound bandwidth (kbit/s), each of shape (3, brokers).
        """
        moment = self._moment(at_ms)
        if self._usage is None or self._usage[0] != moment:
            self._usage = (moment, *self._used(at_ms))
        return self._usage[1:]

    def _used(self, at_ms: int) -> tuple[FloatArray, FloatArray]:
        load = self.load(at_ms)
        demand = self.machine * self.alive + self._on_brokers(load[MACHINE])
        limits = rows_of(self.brokers, LIMIT_COLUMNS)
        return np.where((limits > 0) & ~self.beyond, np.minimum(demand, limits), demand), demand

    def _growth(self, demand: FloatArray) -> FloatArray:
        """Return how many times the traffic of each broker fits. Shape (brokers,)."""
        limits, own = rows_of(self.brokers, LIMIT_COLUMNS), self.machine * self.alive
        served = demand - own
        factors = np.full(served.shape, np.inf)
        known = (limits > 0) & (served > np.maximum(own, 1.0) * _DUST)
        np.divide(np.maximum(limits - own, 0.0), served, out=factors, where=known)
        least: FloatArray = factors.min(axis=0)
        return least

    def state(self, at_ms: int) -> BrokerState:
        """Return how the brokers are at a moment."""
        moment = self._moment(at_ms)
        if self._state is None or self._state[0] != moment:
            self._state = (moment, self._worked_out(at_ms))
        return self._state[1]

    def _worked_out(self, at_ms: int) -> BrokerState:
        demand = self.machines(at_ms)[1]
        table = self.brokers_at(at_ms)
        there = self.present & self.alive
        usage = np.where(there, weighted_usage(table, self.config, self.info.load_manager), 0.0)
        sums = self._on_brokers(self.load(at_ms)[TRAFFIC])
        owned = self.owner[self.owner >= 0]
        return BrokerState(
            frozen(usage),
            frozen(demand[0]),
            frozen(self._growth(demand)),
            frozen(sums[0] + sums[1]),
            frozen(sums[2] + sums[3]),
            frozen(np.bincount(owned, minlength=len(self.brokers)).astype(np.int64)),
            frozen(there.copy()),
        )

    def _topic_factor(self, at_ms: int) -> FloatArray:
        """Return the traffic of each topic relative to the start. Shape (topics,)."""
        factor = np.ones(len(self.topics))
        inside = self.topics.bundle >= 0
        for change in self.changes:
            hit = change.topics if change.topics is not None else inside & change.bundles[self.topics.bundle]
            factor[hit] *= change.shape.factor(at_ms)
        return factor

    def topics_at(self, at_ms: int) -> TopicTable:
        """Return the topics with the traffic of a moment."""
        if not self.changes or not len(self.topics):
            return self.topics
        factor = self._topic_factor(at_ms)
        columns: dict[str, Any] = {name: frozen(getattr(self.topics, name) * factor) for name in TRAFFIC_COLUMNS}
        return replace(self.topics, **columns)

    def brokers_at(self, at_ms: int) -> BrokerTable:
        """Return the brokers with what their machines use at a moment."""
        moment = self._moment(at_ms)
        if self._table is None or self._table[0] != moment:
            self._table = (moment, with_usage(self.brokers, self.machines(at_ms)[0]))
        return self._table[1]

    def measurable(self, at_ms: int) -> Measurable:
        """Return what brokers measure of their bundles at a moment."""
        moment = self._moment(at_ms)
        if self._measurable is None or self._measurable[0] != moment:
            load, table, manager = self.load(at_ms), self.brokers_at(at_ms), self.info.load_manager
            seen = np.vstack([load[TRAFFIC], np.round(load[COUNTS])])
            self._measurable = (moment, Measurable.of(seen, self.owners(), table, self.config, manager))
        return self._measurable[1]

    def snapshot(self, at_ms: int) -> Snapshot:
        """Return the cluster with its real owners and current traffic, without averages."""
        load = self.load(at_ms)
        served = self.owner >= 0
        columns: dict[str, Any] = dict(zip(TRAFFIC_COLUMNS, load[TRAFFIC], strict=True))
        columns |= dict(zip(COUNT_COLUMNS, np.round(load[COUNTS]).astype(np.int64), strict=True))
        bundles = make_bundles(
            self.low,
            high=self.high,
            namespace=self.namespace,
            owner=self.owner,
            has_stats=served,
            has_data=False,
            **columns,
        )
        brokers = replace(self.brokers_at(at_ms), registered=frozen(self.present.copy()))
        info = replace(self.info, captured_at_ms=at_ms)
        found = Snapshot(info, self.config, brokers, self.namespaces, bundles, self.topics_at(at_ms), self.policies)
        return found.naming(self.names, self.hashes, self.position)


def _typical(column: str, values: Any, count: int) -> Any:
    """Return what new brokers have in a column: machine sizes and switches of the others, nothing in use."""
    if column.endswith(("_limit_percent", "_limit_mib", "_limit_kbit_per_s")):
        median = float(np.median(values)) if len(values) else 0.0
        return np.full(count, median, dtype=values.dtype)
    if column in {"memory_usage_mib", "direct_memory_usage_mib"}:
        return np.full(count, float(np.min(values)) if len(values) else 0.0)
    if values.dtype == np.bool_:
        return np.ones(count, dtype=np.bool_)
    if column.endswith(("_ema", "_ema_bytes_per_s")) or column.startswith(("short_term", "long_term")):
        return np.full(count, np.nan)
    return np.zeros(count, dtype=values.dtype)
