"""The cluster of a simulation: the owner of each bundle, and the load on each machine.

Every change goes through a method here, which tells the leader's view what brokers notice of it; what the leader knows
lags behind (`planner.simulate.leader_view`). Positions of brokers never change: those that left stay in the table, not
present. Positions of bundles change when one is split or a namespace is made anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen
from planner.cluster.broker_meant import how_to_name
from planner.cluster.errors import ScenarioError
from planner.cluster.hashing import java_string_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.positions import Positions
from planner.cluster.ranges import FULL_HIGH, bundle_name, equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import KnownLoad, Policies, Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, BrokerTable, make_bundles
from planner.cluster.units import KBIT_PER_GBIT
from planner.pulsar.load.namespace_policies import isolation_policy, policies_like
from planner.pulsar.placement.filters import isolate
from planner.simulate.assumptions import Assumptions
from planner.simulate.condition import Condition
from planner.simulate.dispatch.caps import dispatch_caps
from planner.simulate.leader_view import LeaderView
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
    with_values,
)
from planner.simulate.missed_bundle import meant
from planner.simulate.renumbering import Names
from planner.simulate.traffic import Scope, Traffic

_NAME_COLUMNS = ("name", "version", "load_manager_class")


class Cluster:
    """The cluster as it really is, and how it changes.

    Args:
        snapshot: How it starts.
        assumptions: Assumptions about the machines.
        load_manager: The load manager that runs.
        config: Settings in force.

    Attributes:
        traffic: What bundles there are and what each of them brings.
        condition: How the brokers are at a moment.
        leader_view: What the leader knows.
        present: Brokers that are part of the cluster. Shape (brokers,).
        alive: Brokers that run; one that has died is present until its session ends. Shape (brokers,).
        owner: Owner of each bundle, -1 if unowned. Shape (bundles,).
        names: Full bundle names; changed in place once bundles are renumbered (see `Names.kept`).
        hashes: `String.hashCode` of each. Shape (bundles,).
        position: Position of each bundle by its name.
        pins: Broker that a bundle is kept on, by name of the bundle.
        restarting: Brokers that are down for a restart and come back, by position.
        machine: What each machine uses by itself: CPU (percent of one core), bandwidth in and out (kbit/s). Shape
            (3, brokers).
        beyond: Which machines the snapshot shows beyond what they have; they are not capped. Shape (3, brokers).
    """

    def __init__(
        self, snapshot: Snapshot, assumptions: Assumptions, load_manager: LoadManager, config: Settings
    ) -> None:
        self.assumptions = assumptions
        self.config = config
        self.info = replace(snapshot.info, load_manager=load_manager)
        self.policies: Policies = snapshot.policies
        self.brokers: BrokerTable = snapshot.brokers
        self.present: BoolArray = snapshot.brokers.registered.copy()
        self.alive: BoolArray = self.present.copy()
        self.machine, base = load_of(snapshot, assumptions)
        table = snapshot.brokers
        self.beyond: BoolArray = rows_of(table, USAGE_COLUMNS) > rows_of(table, LIMIT_COLUMNS)
        self.owner: Int64Array = snapshot.bundles.owner.astype(np.int64)
        self.names: Sequence[str] = snapshot.bundle_names
        self.hashes: IntArray = snapshot.bundle_name_hashes
        self.position: Mapping[str, int] = snapshot.bundle_position
        self.pins: dict[str, str] = {}
        self.restarting: set[int] = set()
        self._owners: IntArray | None = None
        self.traffic = Traffic(snapshot, base, assumptions)
        self.condition = Condition(self)
        seen = snapshot if self.info == snapshot.info else snapshot.with_columns(info=self.info)
        self.leader_view = LeaderView(self, seen, config)

    def _touch(self) -> None:
        """Forget what was worked out; something has changed."""
        self._owners = None
        self.condition.touch()

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
        """Return the owner of a bundle; empty if unowned."""
        owner = int(self.owner[bundle])
        return self.brokers.name[owner] if owner >= 0 else ""

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
            raise ScenarioError(f"The cluster has no broker {name}.", remedy=how_to_name(name, self.brokers.name))
        return at

    def bundle(self, name: str) -> int:
        """Return the position of a bundle.

        Raises:
            ScenarioError: There is no such bundle; the remedy says which one may be meant.
        """
        at = self.position.get(name, -1)
        if at < 0:
            raise ScenarioError(f"The cluster has no bundle {name} at that moment.", remedy=meant(name, self.position))
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
        """Change the machines of brokers, or of all if none is named; a size of 0 stays as it is.

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
        """Unregister a broker: it keeps its bundles and gets no more."""
        self.present[broker] = False
        self._touch()
        self.leader_view.left(broker)

    def die(self, broker: int) -> None:
        """Stop a broker. The others notice when it leaves; until then its bundles are not served."""
        self.alive[broker] = False
        self._touch()

    def leave(self, broker: int) -> Int64Array:
        """Remove a broker from the cluster; return the bundles that it owned. Shape (bundles given up,)."""
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
        """Let every broker measure now, and report if enough has changed."""
        self.leader_view.report(np.flatnonzero(self.alive & self.present), at_ms, at_once=True)

    # Traffic

    def scale(self, scope: Scope, target: str, shape: Shape) -> None:
        """Let traffic change over time; what begins with the simulation shows in what brokers measure next.

        Args:
            scope: What changes.
            target: Its name; empty for the cluster.
            shape: By how much, and when.

        Raises:
            ScenarioError: Its target does not exist.
        """
        self.traffic.scale(scope, target, shape, self.bundle(target) if scope == "bundle" else -1)
        self._touch()
        if shape.at_min == 0:
            self.leader_view.note_changes()

    def partition(self, topic: str, target: str, partitions: int) -> None:
        """Spread the traffic of a topic over the partitions of a target, which is the topic itself or a new one.

        Raises:
            ScenarioError: There is no such topic, or Pulsar would refuse it.
        """
        self.traffic.partition(topic, target, partitions)
        self._touch()
        self.leader_view.note_changes()
        if self.traffic.limits is not None:
            self.limit_dispatch()

    def limit_dispatch(self) -> None:
        """Hold back what policies and settings do not let topics dispatch.

        The traffic of a snapshot already is under the limits of its time; new ones can only lower it. What a broker
        shares among all its topics is left out.
        """
        caps = dispatch_caps(self.snapshot(self.info.captured_at_ms), self.config, self.policies)
        self.traffic.limit(caps.limited, caps.msg_per_s, caps.bytes_per_s)
        self._touch()
        self.leader_view.note_changes()

    def follow(self, frame: Snapshot) -> None:
        """Take over the traffic that a later snapshot tells, whoever serves it here."""
        self.traffic.follow(frame)
        self._touch()
        self.leader_view.note_changes()

    # Bundles

    def namespace_at(self, name: str) -> int:
        """Return the position of a namespace.

        Raises:
            ScenarioError: There is no such namespace.
        """
        return self.traffic.namespace_at(name)

    def split(self, bundle: int, boundaries: Sequence[int]) -> Int64Array:
        """Split a bundle at boundaries inside its range, in order; the children stay where it is.

        Returns:
            Positions of the children; those of bundles behind them have changed. Shape (children,).
        """
        owner, traffic = self.owner[[bundle]], self.traffic
        edges = [int(traffic.low[bundle]), *boundaries, int(traffic.high[bundle])]
        children = self._cut(np.array([bundle]), edges)
        if owner[0] >= 0:
            self.leader_view.ownership_changed(owner, children)
        return children

    def _bundles_of(self, namespace: str) -> Int64Array:
        return np.flatnonzero(self.traffic.namespace == self.namespace_at(namespace))

    def recut(self, namespace: str, count: int) -> None:
        """Recreate a namespace with equal, unowned bundles.

        Raises:
            ScenarioError: There is no such namespace.
        """
        rows = self._bundles_of(namespace)
        step = 2**32 // count
        self.release(self._cut(rows, [*(step * i for i in range(count)), FULL_HIGH]))

    def _cut(self, rows: Int64Array, edges: Sequence[int]) -> Int64Array:
        """Put new bundles in place of some that cover the same range; return their positions. Shape (new bundles,)."""
        self.leader_view.before_cut(rows)
        traffic, before = self.traffic, self.traffic.base
        change = traffic.cut(rows, edges)
        made, new = change.made.tolist(), []
        for at in made:
            space = traffic.namespaces[traffic.namespace[at]]
            new.append(bundle_name(space, int(traffic.low[at]), int(traffic.high[at])))
            pinned = self.pins.get(self.names[int(change.parent[at])])
            if pinned is not None:
                self.pins[new[-1]] = pinned
        self.names = names = self.names if isinstance(self.names, Names) else Names(self.names)
        names.follow(change, new)
        self.position = Positions.of(self.position).renumbered(new, change.parent, made)
        self.owner, self.hashes = change.follow(self.owner), change.follow(self.hashes)
        self.hashes[made] = java_string_hashes(new)
        self._touch()
        self.condition.cut(before, traffic.base, change)
        self.leader_view.rebuilt(change)
        return change.made

    def add_namespace(self, name: str, count: int, like: str) -> None:
        """Create a namespace without topics, with equal bundles and the policies of another one.

        Raises:
            ScenarioError: There is one of that name, or none that it is to be like.
        """
        traffic = self.traffic
        if name in traffic.namespaces:
            raise ScenarioError(f"The cluster already has a namespace {name}.", remedy="Choose another name.")
        self.leader_view.settle()
        change = traffic.add_namespace(name, equal_boundaries(count), self.namespace_at(like))
        made = [bundle_name(name, low, high) for low, high in pairwise(equal_boundaries(count))]
        self.names = Names([*self.names, *made])
        self.position = Positions.of(self.position).renumbered(made, change.parent, change.made.tolist())
        self.owner = np.append(self.owner, np.full(count, -1))
        self.hashes = np.append(self.hashes, java_string_hashes(made))
        self._touch()
        self.leader_view.rebuilt(change)
        self.change_policies(policies_like(self.policies, like, name))

    def hand_over(self, namespace: str, successor: str, left: int) -> tuple[dict[int, FloatArray], Int64Array]:
        """Let the next topics of a namespace go to its successor, where all are to go in so many parts.

        Returns:
            What each bundle loses, by its position, in the rows of `Traffic.base`; and the bundles of the successor
            that nobody serves. Shape (unserved,).

        Raises:
            ScenarioError: There is no such namespace.
        """
        traffic, (source, target) = self.traffic, map(self.namespace_at, (namespace, successor))
        lost = traffic.hand_over(traffic.next_topics(source, left), source, target, rest=left <= 1)
        self._touch()
        self.leader_view.note_changes()
        if traffic.limits is not None:
            self.limit_dispatch()
        left_by = {int(at): lost[:, at] for at in np.flatnonzero(lost.any(axis=0))}
        mine = self._bundles_of(successor)
        return left_by, mine[self.owner[mine] < 0]

    # Policies

    def change_policies(self, policies: Policies) -> None:
        """Replace the policies; every broker knows at once."""
        self.policies = policies
        self.leader_view.policies_changed()

    def pin(self, bundle: str, broker: str) -> None:
        """Keep a bundle on a broker, and its children after a split."""
        self.pins[bundle] = broker

    def misplaced(self) -> Int64Array:
        """Return bundles on a broker that the isolation policy of their namespace forbids. Shape (such bundles,)."""
        wrong: list[int] = []
        here = self.present_names()
        for place, namespace in enumerate(self.traffic.namespaces):
            if isolation_policy(self.policies, namespace) is None:
                continue
            allowed = {self.broker(b) for b in isolate(self.policies, namespace, here, lambda _: True).candidates}
            rows = np.flatnonzero((self.traffic.namespace == place) & (self.owner >= 0))
            wrong += [row for row in rows.tolist() if int(self.owner[row]) not in allowed]
        return np.array(wrong, dtype=np.int64)

    # What it looks like

    def snapshot(self, at_ms: int) -> Snapshot:
        """Return the cluster with its real owners, current traffic and known load, without averages."""
        load, traffic = self.traffic.load(at_ms), self.traffic
        served = self.owner >= 0
        columns: dict[str, Any] = dict(zip(TRAFFIC_COLUMNS, load[TRAFFIC].copy(), strict=True))
        columns |= dict(zip(COUNT_COLUMNS, np.round(traffic.base[COUNTS]).astype(np.int64), strict=True))
        bundles = make_bundles(
            traffic.low,
            high=traffic.high,
            namespace=traffic.namespace,
            owner=self.owner,
            has_stats=served,
            has_data=False,
            **columns,
        )
        brokers = replace(self.condition.brokers(at_ms), registered=frozen(self.present.copy()))
        info = replace(self.info, captured_at_ms=at_ms)
        topics = traffic.topics_at(at_ms)
        known = KnownLoad(frozen(self.machine * self.alive), frozen(load[MACHINE].copy()))
        found = Snapshot(
            info, self.config, brokers, traffic.namespaces, bundles, topics, self.policies, known_load=known
        )
        return found.naming(Names.kept(self.names), self.hashes, self.position)


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


def still_unowned(cluster: Cluster, snapshot: Snapshot) -> Int64Array:
    """Return the bundles that a snapshot shows without an owner, and that have none now. Shape (bundles,).

    Clients look them up where they are in use; what edits have left without an owner was looked up already.
    """
    names = (snapshot.bundle_names[at] for at in np.flatnonzero(snapshot.bundles.owner < 0).tolist())
    found = np.array([at for name in names if (at := cluster.position.get(name, -1)) >= 0], dtype=np.int64)
    return np.sort(found[cluster.owner[found] < 0])
