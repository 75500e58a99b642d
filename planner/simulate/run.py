"""Lets a cluster run: its load balancer cycle by cycle, with Pulsar's own timing and lag.

Mirrors the timers of Pulsar 4.2.4: shedding every `loadBalancerSheddingIntervalMinutes`, load reports, automatic splits
after each refresh (modular) or every minute on each broker (extensible), lookups that place what nobody serves. What it
supposes besides is in `Assumptions`, and: an unload, a split and a lookup take no time; a bundle with topics is looked
up at once; the first cycle is decided at the moment of the snapshot.

Three parts: the clock (what is planned, who reports when), the cluster (the truth, and inside it the leader's stale
view), and what stands here: the leader's memory, its decisions, and the events that come of them. `Simulation.cycles`
states the order of ticks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import TypeAlias

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array, frozen
from planner.cluster.decisions import Exceeded, SplitOrder
from planner.cluster.errors import PulsarError, ScenarioError, placed
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_UNLOAD_SPLIT_BUNDLES_ENABLED,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    SHEDDING_INTERVAL_MINUTES,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.load.averages import BROKER_AVERAGES
from planner.pulsar.manager.cycle import Unload, effective_shedder, next_cycle
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.manager.splits import splits_are_on
from planner.pulsar.placement import extensible, modular
from planner.pulsar.placement.extensible_filters import ExtensibleFilters
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.pulsar.placement.selection import Selection
from planner.pulsar.splitting import automatic_extensible, automatic_modular
from planner.pulsar.splitting.registry import default_split_algorithm
from planner.pulsar.throttling.precedence import RATE_SETTINGS
from planner.simulate.clock import WATCHED_MIN, Action, Clock, watched
from planner.simulate.cluster import Cluster, still_unowned
from planner.simulate.event import Event, EventKind
from planner.simulate.frames import Frames, change_of_brokers
from planner.simulate.measuring import counted_for_itself
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Cycle, Trace, cycle_seed

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of cycles that are done, and of all."""

_LONG = "Only the first day and the last three days of the long interval between shedding cycles are simulated."
_DISPATCH = frozenset(name for names in RATE_SETTINGS.values() for name in names)


@np.errstate(over="ignore", invalid="ignore")  # averages can run away, as Java's doubles do
def simulate(
    source: Snapshot | Sequence[Snapshot],
    scenario: Scenario,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    keep: Callable[[Cycle], Cycle] = lambda cycle: cycle,
) -> Trace:
    """Run a scenario.

    Args:
        source: How the cluster starts; or snapshots of it over time, oldest first, whose traffic and brokers are
            followed while the scenario decides who serves what.
        scenario: What is changed, and for how many cycles.
        progress: Is told after every cycle.
        cancelled: Is asked before every cycle, the first too, and now and then meanwhile, whether to stop there.
        keep: Returns each cycle as it is kept (see `CycleStore`).

    Returns:
        Everything that happened; no cycle at all when it was stopped before the first. The same source and scenario
        give the same trace. Edits that are due after the last cycle of a cluster are switched off in its scenario.

    Raises:
        ScenarioError: An edit does not fit the cluster.
        SettingError: A setting is unknown or out of bounds.
    """
    late: list[str] = []
    if isinstance(source, Snapshot):
        scenario, late = scenario.within(source), scenario.too_late(source)
    running = Simulation([source] if isinstance(source, Snapshot) else source, scenario)
    running.cancelled = cancelled or running.cancelled
    found: list[Cycle] = []
    following = running.cycles(scenario.cycles)
    try:
        with suppress(_Cancelled):
            while len(found) < scenario.cycles:
                running.check()
                found.append(keep(next(following)))
                if progress is not None:
                    progress(len(found), scenario.cycles)
        complete = len(found) == scenario.cycles
        notes = tuple(dict.fromkeys((*late, *running.notes, *(running.unfinished() if complete else ()))))
        parts = running.config, running.start, tuple(found), running.end(), notes, complete, running.demand()
        return Trace(running.scenario, *parts)
    finally:
        running.close()


class _Cancelled(Exception):  # noqa: N818 - no error: somebody asked for it
    """Ends a run inside a cycle."""


class Simulation:
    """A run, cycle by cycle, that keeps nothing of what is past; `simulate` keeps it.

    Args:
        frames: The cluster at the start, and later snapshots of it, oldest first; they are read as time goes on.
        scenario: What is changed.

    Attributes:
        start: The cluster at the start.
        start_ms: Its moment.
        assumptions: What is supposed where no snapshot tells.
        config: Settings in force.
        cluster: The cluster as it is, with the leader's view.
        dispatch_limited: Whether the scenario changes dispatch limits.
        notes: What the user should know.
        cancelled: Says whether somebody asked to stop.
        now: The moment, ms since 1970.

    Raises:
        ScenarioError: There is no snapshot, or an edit does not fit it.
        SettingError: A setting is unknown or out of bounds.
    """

    def __init__(self, frames: Iterable[Snapshot], scenario: Scenario) -> None:
        self._frames = Frames(frames)
        self.start = start = self._frames.last
        self.scenario = scenario = scenario.over(start)
        self.start_ms = self.now = self._from_ms = start.info.captured_at_ms
        self.config = scenario.settings_over(start)
        self._manager = scenario.load_manager_over(start)
        self._extensible = self._manager is LoadManager.EXTENSIBLE
        self.assumptions = assumed = scenario.assumptions
        self.cluster = Cluster(start, assumed, self._manager, self.config)
        self._clock = Clock(
            self.start_ms,
            assumed.stats_interval_s * 1000,
            scenario.seed if assumed.spread_reports else None,
            start.brokers.name,
        )
        self._shedder, _ = effective_shedder(self._manager, self.config)
        algorithm = default_split_algorithm(self.config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM))
        self._splits_by_traffic = algorithm.reads_traffic
        self._memory: LeaderMemory = elected(self._shedder, self._manager, self.config)
        self.notes = [*scenario.measured_as_captured(start), *counted_for_itself(start, self._manager, self.config)]
        if self._interval_ms() > WATCHED_MIN * MS_PER_MIN:
            self.notes.append(_LONG)
        self.cancelled: Callable[[], bool] = lambda: False
        self._events: list[Event] = []
        self.dispatch_limited = any(name in _DISPATCH for name in scenario.settings)
        self._edit, self._to_do = "", Counter[str]()  # what plans something; how much of each is planned and not done
        self._holds = any(edit.held_min() for edit in scenario.edits)
        for number, step in enumerate(scenario.steps, start=1):
            if step.on:
                self._edit = f"edit {number}"
                with placed(self._edit):
                    step.edit.plan(self)
        self._edit = ""
        if self.dispatch_limited:
            self.at(self.start_ms, lambda _: self.cluster.limit_dispatch())
        if not self._extensible:
            self.at(self.start_ms + self._write_back_ms(), self._write_back)

    def close(self) -> None:
        """Forget what is planned: it holds the simulation, whose memory would stay until Python looks for circles."""
        self._clock.clear()

    # Time

    def cycles(self, count: int) -> Iterator[Cycle]:
        """Yield so many shedding cycles, each with what happened up to the next one.

        The order of ticks:

        1. What is due: snapshots of a history, then edits and what follows from them, by their moments.
        2. Shedding; extensible: before it, brokers split what stays hot.
        3. Up to the next cycle, at each moment at which brokers report: what is due, then their reports; modular: then
           the leader judges its promises and splits what is above a limit.

        Raises:
            ScenarioError: An edit does not fit the cluster at its moment.
        """
        interval = self._interval_ms()
        for index in range(count):
            self._events = []
            self._do_due(self.now)
            cycle = self._shed(index, self.now)
            if index == 0:
                self.look_up(still_unowned(self.cluster, self.start), self.now)
            following = self.now + interval
            for from_ms, to_ms in watched(self.now, following):
                self._from_ms = from_ms
                for tick in self._clock.ticks(from_ms, to_ms):
                    self._do_due(tick)
                    self.check()
                    self.report(tick, self._clock.reporting(tick))
            self._do_due(following - 1)
            self.now = following
            yield replace(cycle, events=tuple(self._events))

    def check(self) -> None:
        """Stop where somebody asked for it; called wherever a cycle can take long."""
        if self.cancelled():
            raise _Cancelled

    def at(self, at_ms: float, action: Action) -> None:
        """Plan an action; see `Clock.at`. What it refuses, and what it plans itself, is of the same edit."""
        edit = self._edit
        self._to_do[edit] += 1

        def act(now: int) -> None:
            self._edit = edit
            self._to_do[edit] -= 1
            with placed(edit):
                action(now)

        self._clock.at(at_ms, act)

    def unfinished(self) -> list[str]:
        """Return which edits have begun and are not done, as a sentence each."""
        begun = (step.edit for number, step in enumerate(self.scenario.steps, 1) if self._to_do[f"edit {number}"] > 0)
        within = f"Not finished within {count(self.scenario.cycles, 'cycle')}"
        return [f"{within}: {edit.phrase()}. Simulate more cycles." for edit in begun]

    def minute(self, minutes: float) -> float:
        """Return a moment of the scenario, ms since 1970."""
        return self.start_ms + minutes * MS_PER_MIN

    def _do_due(self, now: int) -> None:
        """Do what is planned up to a moment, and follow the snapshots up to it."""
        for before, frame in self._frames.due(now):
            self._follow(before, frame, max(frame.info.captured_at_ms, self.start_ms))
        for at_ms, action in self._clock.due(now):
            self.check()
            action(at_ms)

    def _follow(self, before: Snapshot, frame: Snapshot, now: int) -> None:
        """Follow the traffic of a later snapshot, and the brokers that came and went since the one before."""
        fresh = self._frames.new_namespaces(frame, self.cluster.traffic.namespaces, self.config.release)
        self.notes += [f"{name} is new in the recorded history: its traffic is ignored." for name in fresh]
        self.cluster.follow(frame)
        change = change_of_brokers(before.brokers, frame.brokers, set(self.cluster.brokers.name))
        for name in change.left:
            self.remove(name, now, why="left in the recorded history")
        for name, size in change.came.items():
            if size is None:
                self.back(name, now)
            else:
                self.join([name], *size, now, "joined in the recorded history")

    def _interval_ms(self) -> int:
        """Return the time from one shedding cycle to the next, ms."""
        return max(self.config.integer(SHEDDING_INTERVAL_MINUTES), 1) * MS_PER_MIN

    def _write_back_ms(self) -> int:
        """Return how often the leader writes averages to the metadata store, ms."""
        return max(self.config.integer("loadBalancerResourceQuotaUpdateIntervalMinutes"), 1) * MS_PER_MIN

    def _write_back(self, now: int) -> None:
        """Let the leader write its averages to the metadata store, and do so again later."""
        self.cluster.leader_view.write_back()
        self.at(max(now, self._from_ms) + self._write_back_ms(), self._write_back)

    def _in_force(self, now: int) -> Settings:
        """Return the settings in force at a moment."""
        minutes = (now - self.start_ms) / MS_PER_MIN
        return self.scenario.settings_at(self.config, minutes) if self._holds else self.config

    # Reports and automatic splits

    def report(self, now: int, who: Int64Array) -> None:
        """Let brokers measure and report, and a modular leader draw its conclusions from new reports."""
        if self.cluster.report(who, now) and not self._extensible:
            if self._memory.modular.heeds_reports:
                known = self.cluster.leader_view.evaluated(now, self._memory.modular.preallocated)
                self._memory = replace(self._memory, modular=modular.after_refresh(self._memory.modular, known))
            self._split_modular(now)

    def _view(self, now: int, *, brief: bool = False) -> Snapshot:
        """Return what the leader knows, to keep or for a brief look; with topics as they are where splits need it."""
        view = self.cluster.leader_view.glance(now) if brief else self.cluster.leader_view.view(now)
        if self._splits_by_traffic and (topics := self.cluster.traffic.topics_at(now)) is not view.topics:
            view = replace(view, topics=topics)
        return view

    def _split_modular(self, now: int) -> None:
        """Let the leader split what is above a limit."""
        config = self._in_force(now)
        if not splits_are_on(config) or not self.cluster.leader_view.may_split():
            return
        view = self._view(now, brief=True)
        decision = automatic_modular.decide_cycle(view, config, explain=False)
        unload = config.flag(AUTO_UNLOAD_SPLIT_BUNDLES_ENABLED) and bool(decision.splits)
        filters = self._memory.modular.filters(view, config) if unload else None
        leave = [filters is not None and filters.may_leave(order.bundle, order.broker) for order in decision.splits]
        for order, leaves in zip(decision.splits, leave, strict=True):
            self._carry_out(order, now, unload=leaves)

    def _split_extensible(self, now: int) -> None:
        """Let the brokers split those of their bundles that stay hot, one broker after the other."""
        config = self._in_force(now)
        if not splits_are_on(config):
            return
        view, before = self._view(now), self._memory.split_hits
        hits, decision = automatic_extensible.decide_all(view, before, config, explain=False)
        names = view.brokers.name, view.bundle_names
        for reason in (r for b in decision.reasons if b.code in automatic_extensible.REFUSED for r in b.rows(*names)):
            self._refuse(str(reason.bundle), str(reason.broker), now, reason.text)
        acting = {order.broker for order in decision.splits}
        if len(acting) <= 1:
            self._memory = replace(self._memory, split_hits=hits)
            for order in decision.splits:
                self._carry_out(order, now, unload=False)
            return
        after = {broker: state for broker, state in hits.items() if broker not in acting}
        for broker in sorted(acting, key=lambda name: (self._clock.order(view.brokers.position[name]), name)):
            view = self._view(now)
            visit = automatic_extensible.visit_of(view, view.brokers.position[broker])
            known = before.get(broker, automatic_extensible.AutoSplitState())
            after[broker], own = automatic_extensible.decide(view, visit, known, config, explain=False)
            for order in own.splits:
                self._carry_out(order, now, unload=False)
        self._memory = replace(self._memory, split_hits=after)

    def _carry_out(self, order: SplitOrder, now: int, *, unload: bool) -> None:
        """Split a bundle as the load manager asked for."""
        at = self.cluster.position.get(order.bundle, -1)
        if at < 0:
            return
        if order.boundaries:
            self.split(at, order.boundaries, now, order.reason.text, unload=unload, exceeded=order.reason.exceeded)
        else:
            self._refuse(order.bundle, order.broker, now, f"{order.reason.text}, but there is no position to split at")

    def _refuse(self, bundle: str, broker: str, now: int, why: str) -> None:
        """Note once a cycle that a bundle is not split."""
        at = self.cluster.position.get(bundle, -1)
        if at >= 0 and not any(e.kind == "split_refused" and e.bundle == bundle for e in self._events):
            self.note(now, "split_refused", at, broker, why=why)

    def split(
        self,
        bundle: int,
        boundaries: Sequence[int],
        now: int,
        why: str,
        *,
        unload: bool,
        exceeded: Exceeded | None = None,
    ) -> None:
        """Split a bundle, by its position, at boundaries in order inside it; look up children that are unloaded."""
        cluster, name, disconnected = self.cluster, self.cluster.names[bundle], self._disconnected(bundle, now)
        if report := cluster.leader_view.report_of(bundle):
            self._memory = replace(self._memory, modular=self._memory.modular.after_split(name, report))
        broker, children = cluster.server_of(bundle), cluster.split(bundle, boundaries)
        names = tuple(cluster.names[i] for i in children.tolist())
        self._events.append(
            Event(
                name, broker, broker, (), why, *disconnected, at_ms=now, kind="split", children=names, exceeded=exceeded
            )
        )
        if unload:
            self.look_up(cluster.release(children), now)

    # Shedding

    def _shed(self, index: int, now: int) -> Cycle:
        """Decide one cycle and carry it out."""
        if self._extensible:
            self._split_extensible(now)
        view = self._view(now)
        before, state = self._memory, self.cluster.condition.state(now)
        seed = cycle_seed(self.scenario.seed, index)
        self._memory, decision = next_cycle(view, before, self._in_force(now), seed, explain=False)
        if index == 0:
            self.notes.extend(decision.notes)
        for unload in decision.unloads:
            self._unload(unload, now)
        kept = tuple(replace(unload, selection=None) for unload in decision.unloads)
        return Cycle(index, now, view, before, kept, decision.shedding.scores, self.cluster.owners(), state, ())

    def _unload(self, unload: Unload, now: int) -> None:
        """Unload a bundle that was chosen; one that is pinned stays."""
        move = unload.move
        at = self.cluster.position.get(move.bundle, -1)
        if not unload.carried_out or at < 0:
            return
        pinned = move.bundle in self.cluster.pins
        if move.destination is None and not pinned:
            self.look_up(self.cluster.release(at), now)
            return
        self._memory = replace(self._memory, modular=self._memory.modular.without_affinity(move.bundle))
        if not pinned and move.destination is not None:
            why = f"{move.reason.text}; {unload.reason.text}"
            self.give(at, move.destination, now, "shed", unload.acceptable, why)

    def give(self, bundle: int, to: str, now: int, kind: EventKind, acceptable: tuple[str, ...], why: str) -> None:
        """Let a broker serve a bundle, by its position; write down what happened, and who else might have got it."""
        donor = self.cluster.server_of(bundle)
        self.cluster.serve(bundle, self.cluster.broker(to))
        self.note(now, kind, bundle, donor, to, acceptable, why)

    def move(self, bundle: str, destination: str, now: int) -> None:
        """Unload a bundle to a destination, as an operator does.

        Raises:
            ScenarioError: There is no such bundle or broker at that moment.
        """
        at, target = self.cluster.bundle(bundle), self.cluster.broker(destination)
        if not self.cluster.present[target]:
            raise ScenarioError(f"{destination} is not in the cluster at that moment.", remedy="Choose another broker.")
        if target != self.cluster.owner[at]:
            self.give(at, destination, now, "moved", (destination,), "moved by the scenario")

    def _disconnected(self, bundle: int, now: int) -> tuple[int, int, int, float, float]:
        """Return topics, producers and consumers of a bundle, its message rate and throughput in + out."""
        load = self.cluster.traffic.of_bundle(bundle, now).tolist()
        return round(load[7]), round(load[8]), round(load[9]), load[0] + load[1], load[2] + load[3]

    def note(
        self,
        now: int,
        kind: EventKind,
        bundle: int,
        source: str,
        destination: str = "",
        acceptable: tuple[str, ...] = (),
        why: str = "",
    ) -> None:
        """Record an event of a bundle."""
        name, disconnected = self.cluster.names[bundle], self._disconnected(bundle, now)
        self._events.append(Event(name, source, destination, acceptable, why, *disconnected, at_ms=now, kind=kind))

    def record(self, event: Event) -> None:
        """Record an event as it is."""
        self._events.append(event)

    def note_broker(self, now: int, kind: EventKind, broker: str, why: str) -> None:
        """Record an event of a broker."""
        self._events.append(Event(source=broker, why=why, at_ms=now, kind=kind))

    # Lookups

    def look_up(self, bundles: Int64Array, now: int) -> None:
        """Let clients ask for bundles that nobody serves, in an order drawn by the seed.

        Args:
            bundles: Their positions. Shape (bundles to look up,).
            now: The moment.
        """
        cluster = self.cluster
        order = bundles.tolist()
        Random(f"{self.scenario.seed}/{now}").shuffle(order)  # noqa: S311 - a simulation, no secret
        view: Snapshot | None = None
        filters: ExtensibleFilters | ModularFilters | None = None
        for at in order:
            self.check()
            name = cluster.names[at]
            if cluster.owner[at] >= 0 or not self._wanted(at, now):
                continue
            pinned = cluster.pins.get(name)
            if pinned is not None and cluster.present[cluster.broker(pinned)]:
                self.give(at, pinned, now, "placed", (pinned,), "pinned by the scenario")
                continue
            if not self._extensible:
                view = None if cluster.leader_view.recall(at) else view
            if view is None or filters is None or self._extensible or not view.bundles.has_data[at]:
                view = self._view(now, brief=True)
                filters = (
                    ExtensibleFilters(view, self.config)
                    if self._extensible
                    else self._memory.modular.filters(view, self.config)
                )
            found = self._place(name, view, filters)
            to = found.decision.selected if found is not None else None
            if found is None or to is None or not cluster.present[cluster.broker(to)]:
                self.note(now, "unserved", at, "", why="no broker may own it")
                continue
            self.give(at, to, now, "placed", found.decision.acceptable, _placed_why(found))

    def retry(self, now: int) -> None:
        """Look up the bundles in use that no broker owns."""
        self.look_up(np.flatnonzero(self.cluster.owner < 0), now)

    def _wanted(self, bundle: int, now: int) -> bool:
        """Say whether anybody asks for a bundle: one without topics is not looked up."""
        namespace = self.cluster.traffic.namespaces[self.cluster.traffic.namespace[bundle]]
        if is_heartbeat_or_sla_namespace(namespace, self.config.release):
            return False
        load = self.cluster.traffic.of_bundle(bundle, now)
        return bool(load[7] > 0 or load[:4].any())

    def _place(self, bundle: str, view: Snapshot, filters: ExtensibleFilters | ModularFilters) -> Selection | None:
        config, seed, memory = self.config, self.scenario.seed, self._memory
        if isinstance(filters, ExtensibleFilters):
            known, found = extensible.assign(
                view, bundle, memory.extensible, config, seed, filters=filters, explain=False
            )
            self._memory = replace(memory, extensible=known)
            return found
        try:
            after, found = modular.least_loaded(
                view, bundle, memory.modular, config, seed, filters=filters, explain=False
            )
        except PulsarError as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))
            return None
        self._memory = replace(self._memory, modular=after)
        return found

    # Brokers that come and go

    def join(self, names: Sequence[str], cores: float, nic_gbps: float, now: int, why: str) -> None:
        """Add brokers to the cluster; a size of 0 is the median.

        Raises:
            ScenarioError: There is a broker of that name.
        """
        self.cluster.join(names, cores, nic_gbps, now)
        self._clock.join(names)
        for name in names:
            self.note_broker(now, "broker_added", name, why)
        self.retry(now)

    def back(self, name: str, now: int) -> None:
        """Bring a broker back without bundles; nothing happens if it is present."""
        broker = self.cluster.broker(name)
        if not self.cluster.present[broker]:
            self.cluster.come_back(broker, now)
            self.note_broker(now, "broker_added", name, "is back, without bundles")
            self.retry(now)

    def remove(self, name: str, now: int, *, why: str) -> None:
        """Shut a broker down gracefully; nothing happens if it is absent."""
        broker = self.cluster.broker(name)
        if self.cluster.present[broker]:
            self.gone(broker, now, "broker_removed", why)

    def gone(self, broker: int, now: int, kind: EventKind, why: str) -> None:
        """Let the others notice that a broker left: its bundles are looked up, and a leader is elected if it led."""
        name = self.cluster.brokers.name[broker]
        given_up = self.cluster.leave(broker)
        self.note_broker(now, kind, name, why)
        if name == self.cluster.info.leader:
            here = self.cluster.present_names()
            leader = Random(f"{self.scenario.seed}/{now}").choice(here) if here else ""  # noqa: S311 - no secret
            self.cluster.elect(leader)
            self._memory = elected(self._shedder, self._manager, self.config)
            fresh = (
                f"{leader} is elected and starts with no averages of usage, no hit counts and no memory of recently"
                " unloaded bundles."
            )
            self.notes.append(f"{name} was the leader. {fresh if leader else 'No broker is left to take its place.'}")
        elif not self._extensible:
            known = self.cluster.leader_view.glance(now)
            self._memory = replace(self._memory, modular=modular.with_active_brokers(self._memory.modular, known))
        self.look_up(given_up, now)

    # What it came to

    def demand(self) -> FloatArray:
        """Return what the traffic asks of the machines now: CPU (percent of one core), bandwidth in and out (kbit/s).

        Shape (3, brokers).
        """
        return frozen(self.cluster.condition.machines(self.now)[1])

    def end(self) -> Snapshot:
        """Return the cluster as it is now: real owners and traffic, the leader's averages."""
        real, known = self.cluster.snapshot(self.now), self._view(self.now)
        terms = [name for name in known.bundles.__dataclass_fields__ if name.startswith(("short_term_", "long_term_"))]
        bundles = {name: getattr(known.bundles, name) for name in (*terms, "has_data", "data_topics", "top_rank")}
        brokers = {name: getattr(known.brokers, name) for name in BROKER_AVERAGES}
        return real.with_columns(
            brokers=replace(real.brokers, **brokers),
            bundles=replace(real.bundles, **bundles),
            info=replace(real.info, source=f"simulated from {self.start.info.source or 'a snapshot'}"),
        )


def _placed_why(found: Selection) -> str:
    draws = len(found.decision.acceptable)
    choice = f"drawn from {draws} brokers" if draws > 1 else "the only choice"
    return f"looked up: {choice} by {found.strategy}" if found.strategy else f"looked up: {found.how}"
