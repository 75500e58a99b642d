"""Lets a cluster run: its load balancer cycle by cycle, with Pulsar's own timing and lag.

Mirrors the timers of Pulsar 4.2.4: shedding every `loadBalancerSheddingIntervalMinutes`, load reports, automatic splits
after each refresh (modular) or every minute on each broker (extensible), lookups that place what nobody serves. What it
supposes besides is in `Assumptions`, and: an unload, a split and a lookup take no time; a bundle with topics is looked
up at once; the first cycle is decided at the moment of the snapshot.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeAlias

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.decisions import SplitOrder
from planner.cluster.errors import PulsarError
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.snapshot import DispatchRate, IsolationPolicy, LoadManager, Snapshot
from planner.pulsar.manager.cycle import Unload, effective_shedder, next_cycle
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.placement import extensible, modular
from planner.pulsar.placement.extensible_filters import ExtensibleFilters
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.pulsar.placement.selection import Selection
from planner.pulsar.splitting import automatic_extensible, automatic_modular
from planner.pulsar.splitting.manual import SplitCommand, Verdict, answer
from planner.pulsar.throttling.precedence import RATE_SETTINGS
from planner.simulate.cluster import Cluster, Rebuilt
from planner.simulate.dispatch.edits import with_policy
from planner.simulate.knowledge import Knowledge
from planner.simulate.scenario import (
    AddBrokers,
    ChangeCapacity,
    DrainBroker,
    Edit,
    KillBroker,
    MoveBundle,
    PinBundle,
    RemoveBroker,
    RollingRestart,
    ScaleTraffic,
    Scenario,
    ScenarioError,
    SetAntiAffinity,
    SetBundleCount,
    SetDispatchRate,
    SetIsolation,
    SplitBundle,
    added_brokers,
)
from planner.simulate.trace import Cycle, Event, EventKind, Trace, cycle_seed

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many cycles are done, and of how many."""

_MS_PER_MIN = 60_000
_TICK_MS = 5_000
_KBIT_PER_GBIT = 1e6
_DISPATCH = frozenset(name for names in RATE_SETTINGS.values() for name in names)
_FLOW = "flow_or_qps_equally_divide"


def simulate(
    source: Snapshot | Sequence[Snapshot],
    scenario: Scenario,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Trace:
    """Run a scenario.

    Args:
        source: How the cluster starts; or snapshots of it over time, oldest first, whose traffic and brokers are
            followed while the scenario decides who serves what.
        scenario: What is changed, and for how many cycles.
        progress: Is told after every cycle.
        cancelled: Is asked before every cycle, the first too, whether to stop there.

    Returns:
        Everything that happened; no cycle at all when it was stopped before the first. The same source and scenario
        give the same trace.

    Raises:
        ScenarioError: An edit does not fit the cluster.
        SettingError: A setting is unknown or out of bounds.
    """
    running = Simulation([source] if isinstance(source, Snapshot) else source, scenario)
    found: list[Cycle] = []
    following = running.cycles(scenario.cycles)
    while len(found) < scenario.cycles and not (cancelled is not None and cancelled()):
        found.append(next(following))
        if progress is not None:
            progress(len(found), scenario.cycles)
    complete = len(found) == scenario.cycles
    notes = tuple(dict.fromkeys(running.notes))
    return Trace(scenario, running.config, running.start, tuple(found), running.end(), notes, complete, running.asked())


_Action: TypeAlias = Callable[[int], None]


class Simulation:
    """A run, cycle by cycle, that keeps nothing of what is past; `simulate` keeps it.

    Attributes:
        start: The cluster at the start.
        config: Settings in force.
        notes: What the user should know.
    """

    def __init__(self, frames: Iterable[Snapshot], scenario: Scenario) -> None:
        """Begin.

        Args:
            frames: The cluster at the start, and later snapshots of it, oldest first; they are read as time goes on.
            scenario: What is changed.

        Raises:
            ScenarioError: There is no snapshot.
            SettingError: A setting is unknown or out of bounds.
        """
        self.upcoming = iter(frames)
        start = next(self.upcoming, None)
        if start is None:
            raise ScenarioError("There is no snapshot to start from.", remedy="Choose one.")
        self.scenario = scenario
        self.start = start
        self.config = scenario.settings_over(start)
        self.manager = scenario.load_manager_over(start)
        self.extensible = self.manager is LoadManager.EXTENSIBLE
        self.start_ms = start.info.captured_at_ms
        self.cluster = Cluster(start, scenario.assumptions, self.manager)
        self.knowledge = Knowledge(self.cluster, replace(start, info=self.cluster.info), self.config)
        self.leader = start.info.leader
        shedder, _ = effective_shedder(self.manager, self.config)
        self.shedder = shedder
        self.memory: LeaderMemory = elected(shedder, self.manager, self.config)
        self.notes: list[str] = []
        self.strangers: set[str] = set()
        self.events: list[Event] = []
        self.due: list[tuple[int, int, _Action]] = []
        self.now = self.start_ms
        self.frame = start
        self.next_frame = next(self.upcoming, None)
        self.phase = self._phases(start.brokers.name)
        self.last_split_check = self.start_ms
        for edit in scenario.edits:
            self.plan(edit)
        limits = any(isinstance(edit, SetDispatchRate) for edit in scenario.edits)
        if limits or any(name in _DISPATCH for name in scenario.settings):
            self.at(self.start_ms, lambda _: self.limit())
        if not self.extensible:
            self.at(self.start_ms + self.write_back_ms(), self.write_back)

    def rebase(self, frame: Snapshot, now: int) -> None:
        """Follow the traffic of a later snapshot, and the brokers that came and went since the one before."""
        before, after = _registered(self.frame), _registered(frame)
        self.frame = frame
        self.tell_of_strangers(frame)
        self.cluster.rebase(frame)
        self.knowledge.dirty[:] = True
        for name in sorted(before - after):
            self.remove(name, now, why="left in the recorded history")
        known = set(self.cluster.brokers.name)
        for name in sorted(after - before):
            if name in known:
                self.back(name, now)
                continue
            at = frame.brokers.position[name]
            cores = float(frame.brokers.cpu_limit_percent[at]) / 100
            gbps = float(frame.brokers.bandwidth_in_limit_kbit_per_s[at]) / _KBIT_PER_GBIT
            self.join([name], max(cores, 0.0), max(gbps, 0.0), now, "joined in the recorded history")

    def tell_of_strangers(self, frame: Snapshot) -> None:
        """Note namespaces of a later snapshot that the start did not have: their traffic is left out."""
        if frame.namespaces == self.cluster.namespaces:
            return
        known = {*self.cluster.namespaces, *self.strangers}
        fresh = [n for n in frame.namespaces if n not in known and not is_heartbeat_or_sla_namespace(n)]
        self.strangers.update(fresh)
        self.notes += [f"{name} is new in the recorded history: its traffic is left out." for name in fresh]

    def limit(self) -> None:
        """Let the dispatch limits of policies and settings hold from the start."""
        self.cluster.limit(self.config)
        self.knowledge.dirty[:] = True

    def write_back_ms(self) -> int:
        """Return how often the leader writes averages to the metadata store, ms."""
        return max(self.config.integer("loadBalancerResourceQuotaUpdateIntervalMinutes"), 1) * _MS_PER_MIN

    def write_back(self, now: int) -> None:
        """Let the leader write its averages to the metadata store, and do so again later."""
        self.knowledge.write_back()
        self.at(now + self.write_back_ms(), self.write_back)

    # Time

    def at(self, at_ms: float, action: _Action) -> None:
        """Do something at a moment; what is planned for the same moment is done in the order of planning."""
        self.due.append((round(at_ms), len(self.due), action))
        self.due.sort(key=lambda item: item[:2])

    def minute(self, minutes: float) -> float:
        """Return a moment of the scenario, ms since 1970."""
        return self.start_ms + minutes * _MS_PER_MIN

    def _phases(self, names: Sequence[str]) -> Int64Array:
        """Draw when in each interval a broker measures and reports, ms."""
        interval = self.scenario.assumptions.stats_interval_s * 1000
        if not self.scenario.assumptions.spread_reports:
            return np.full(len(names), _TICK_MS, dtype=np.int64)
        ticks = max(interval // _TICK_MS, 1)
        draws = [Random(f"{self.scenario.seed}/{name}").randrange(ticks) for name in names]  # noqa: S311 - no secret
        return (np.array(draws, dtype=np.int64) + 1) * _TICK_MS

    def cycles(self, count: int) -> Iterator[Cycle]:
        """Yield so many shedding cycles, each with what happened up to the next one.

        Raises:
            ScenarioError: An edit does not fit the cluster at its moment.
        """
        interval = max(self.config.integer("loadBalancerSheddingIntervalMinutes"), 1) * _MS_PER_MIN
        for index in range(count):
            self.events = []
            self.do_due(self.now)
            cycle = self.shed(index, self.now)
            self.advance(self.now, self.now + interval)
            self.now += interval
            yield replace(cycle, events=tuple(self.events))

    def advance(self, from_ms: int, to_ms: int) -> None:
        """Let time pass between two shedding cycles."""
        interval = self.scenario.assumptions.stats_interval_s * 1000
        begin = from_ms
        while begin < to_ms:
            phases = np.unique((self.phase - (begin - self.start_ms)) % interval)
            phases[phases == 0] = interval
            for offset in np.unique(phases).tolist():
                now = begin + offset
                if now > min(begin + interval, to_ms):
                    break
                self.do_due(now)
                self.report(now, (self.phase - (now - self.start_ms)) % interval == 0)
            begin += interval
        self.do_due(to_ms - 1)

    def do_due(self, now: int) -> None:
        """Do what is planned up to a moment, and follow the snapshots up to it."""
        while self.next_frame is not None and self.next_frame.info.captured_at_ms <= now:
            frame, self.next_frame = self.next_frame, next(self.upcoming, None)
            self.rebase(frame, max(frame.info.captured_at_ms, self.start_ms))
        while self.due and self.due[0][0] <= now:
            at_ms, _, action = self.due.pop(0)
            action(max(at_ms, self.start_ms))

    # Reports and automatic splits

    def report(self, now: int, which: BoolArray) -> None:
        """Let brokers measure and report, and the leader draw its conclusions."""
        know = self.knowledge
        which = which & self.cluster.alive & self.cluster.present
        if not which.any():
            return
        since = int(know.measured_ms[which].min())
        if self.cluster.edits and self.cluster.traffic_changes(since, now):
            know.dirty[:] = True
        longest = self.config.integer("loadBalancerReportUpdateMaxIntervalMinutes") * _MS_PER_MIN
        late = now - know.updated_ms > longest
        if not (which & (know.dirty | late)).any():
            return
        if (which & know.dirty).any():
            know.measure(which & know.dirty, now)
        written = know.check(which, now)
        if written and not self.extensible:
            self.memory = replace(self.memory, modular=modular.after_refresh(self.memory.modular, self._evaluated(now)))
            self.split_modular(now)

    def _evaluated(self, now: int) -> Snapshot:
        """Return the view with the real owners, by which a leader judges its promises."""
        view = self.knowledge.view(now)
        owner = self.cluster.owner
        reported = view.bundles.has_stats & (view.bundles.owner == owner)
        bundles = replace(view.bundles, owner=frozen(owner.astype(np.int32)), has_stats=frozen(reported))
        return replace(view, bundles=bundles)

    def view(self, now: int) -> Snapshot:
        """Return what the leader knows."""
        view = self.knowledge.view(now)
        if self.cluster.edits and self.config.text("defaultNamespaceBundleSplitAlgorithm") == _FLOW:
            view = replace(view, topics=self.cluster.topics_at(now))
        return view

    def split_modular(self, now: int) -> None:
        """Let the leader split what is above a limit."""
        if not self.config.flag("loadBalancerAutoBundleSplitEnabled"):
            return
        view = self.view(now)
        decision = automatic_modular.decide_cycle(view, self.config)
        unload = self.config.flag("loadBalancerAutoUnloadSplitBundlesEnabled")
        filters = ModularFilters(view, self.config, self.memory.modular.preallocated) if decision.splits else None
        for order in decision.splits:
            leaves = False
            if unload and filters is not None:
                namespace, owner = order.bundle.rpartition("/")[0], view.brokers.position[order.broker]
                leaves = filters.may_leave_isolation(namespace, owner)
                leaves = leaves and filters.may_leave_group(namespace, owner).allowed
            self.carry_out(order, now, unload=leaves)

    def split_extensible(self, now: int) -> None:
        """Let the brokers split those of their bundles that stay hot, one broker after the other."""
        enabled = self.config.flag("loadBalancerEnabled") and self.config.flag("loadBalancerAutoBundleSplitEnabled")
        if not enabled:
            return
        view = self.view(now)
        before = self.memory.split_hits
        hits, decision = automatic_extensible.decide_all(view, before, self.config)
        acting = {order.broker for order in decision.splits}
        if len(acting) <= 1:
            self.memory = replace(self.memory, split_hits=hits)
            for order in decision.splits:
                self.carry_out(order, now, unload=False)
            return
        after = {broker: state for broker, state in hits.items() if broker not in acting}
        for broker in sorted(acting, key=lambda name: (int(self.phase[view.brokers.position[name]]), name)):
            view = self.view(now)
            visit = automatic_extensible.visit_of(view, view.brokers.position[broker])
            known = before.get(broker, automatic_extensible.AutoSplitState())
            after[broker], own = automatic_extensible.decide(view, visit, known, self.config)
            for order in own.splits:
                self.carry_out(order, now, unload=False)
        self.memory = replace(self.memory, split_hits=after)

    def carry_out(self, order: SplitOrder, now: int, *, unload: bool) -> None:
        """Split a bundle as the load manager asked for."""
        at = self.cluster.position.get(order.bundle, -1)
        if at < 0:
            return
        if not order.boundaries:
            refused = any(e.kind == "split_refused" and e.bundle == order.bundle for e in self.events)
            if not refused:
                self.note(now, "split_refused", at, order.broker, why=f"{order.reason.text}, but nothing can be cut")
            return
        self.split(at, order.boundaries, now, order.reason.text, unload=unload)

    def split(self, bundle: int, boundaries: Sequence[int], now: int, why: str, *, unload: bool) -> None:
        """Split a bundle, and look its children up again where they are unloaded."""
        name, owner = self.cluster.names[bundle], int(self.cluster.owner[bundle])
        broker = self.cluster.brokers.name[owner] if owner >= 0 else ""
        lost = self._lost(bundle, now)
        rebuilt = self.cluster.split(bundle, boundaries)
        self.rebuilt(rebuilt)
        children = np.flatnonzero(rebuilt.new)
        names = tuple(self.cluster.names[i] for i in children.tolist())
        topics, producers, consumers, rate, size = lost
        self.events.append(
            Event(now, "split", name, broker, broker, (), names, why, topics, producers, consumers, rate, size)
        )
        if owner >= 0:
            self.knowledge.ownership_changed(np.array([owner]), children)
        if unload:
            self.cluster.assign(children, -1)
            self.look_up(children, now)

    def rebuilt(self, change: Rebuilt) -> None:
        """Follow a renumbering of the bundles."""
        self.knowledge.rebuilt(change)

    # Shedding

    def shed(self, index: int, now: int) -> Cycle:
        """Decide one cycle and carry it out."""
        if self.extensible:
            self.split_extensible(now)
        view = self.view(now)
        before = self.memory
        state = self.cluster.state(now, self.config)
        seed = cycle_seed(self.scenario.seed, index)
        self.memory, decision = next_cycle(view, before, self.config, seed, explain=False)
        if index == 0:
            self.notes.extend(decision.notes)
        for unload in decision.unloads:
            self.unload(unload, now)
        kept = tuple(replace(unload, selection=None) for unload in decision.unloads)
        owner = self.cluster.owners()
        return Cycle(index, now, view, before, kept, decision.shedding.scores, owner, state, ())

    def unload(self, unload: Unload, now: int) -> None:
        """Unload a bundle that was chosen."""
        move = unload.move
        at = self.cluster.position.get(move.bundle, -1)
        if not unload.carried_out or at < 0:
            return
        pinned = self.cluster.pins.get(move.bundle)
        if pinned is not None:
            self.memory = _without_affinity(self.memory, move.bundle)
            return
        source = int(self.cluster.owner[at])
        self.cluster.assign(at, -1)
        if move.destination is None:
            self.look_up(np.array([at]), now)
            return
        self.memory = _without_affinity(self.memory, move.bundle)
        why = f"{move.reason.text}; {unload.reason.text}"
        self.give(at, move.destination, source, now, "shed", unload.acceptable, why)

    def give(
        self,
        bundle: int,
        to: str,
        source: int,
        now: int,
        kind: EventKind,
        acceptable: tuple[str, ...],
        why: str,
    ) -> None:
        """Let a broker serve a bundle."""
        target = self.cluster.broker(to)
        self.cluster.assign(bundle, target)
        self.knowledge.ownership_changed(np.array([source, target]), np.array([bundle]))
        left = self.cluster.brokers.name[source] if source >= 0 else ""
        self.note(now, kind, bundle, left, to, acceptable, why)

    def _lost(self, bundle: int, now: int) -> tuple[int, int, int, float, float]:
        load = self.cluster.load(now)[:, bundle].tolist()
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
        """Write down what happened to a bundle."""
        name = self.cluster.names[bundle]
        numbers = self._lost(bundle, now)
        self.events.append(Event(now, kind, name, source, destination, acceptable, (), why, *numbers))

    # Lookups

    def look_up(self, bundles: Int64Array, now: int) -> None:
        """Let clients ask for bundles that nobody serves, in an order drawn by the seed."""
        order = bundles.tolist()
        Random(f"{self.scenario.seed}/{now}").shuffle(order)  # noqa: S311 - a simulation, no secret
        view: Snapshot | None = None
        filters: ExtensibleFilters | None = None
        for at in order:
            name = self.cluster.names[at]
            if self.cluster.owner[at] >= 0 or not self._wanted(at, now):
                continue
            pinned = self.cluster.pins.get(name)
            if pinned is not None and self.cluster.present[self.cluster.broker(pinned)]:
                self.give(at, pinned, -1, now, "placed", (pinned,), "pinned by the scenario")
                continue
            if not self.extensible:
                self.knowledge.recall(at)
            if view is None or self.extensible or not view.bundles.has_data[at]:
                view = self.view(now)
                filters = ExtensibleFilters(view, self.config) if self.extensible else None
            found = self._place(name, view, filters)
            to = found.decision.selected if found is not None else None
            if to is None or not self.cluster.present[self.cluster.broker(to)]:
                self.note(now, "unserved", at, "", why="no broker may take it")
                continue
            self.give(at, to, -1, now, "placed", found.decision.acceptable if found else (), _placed_why(found))

    def _wanted(self, bundle: int, now: int) -> bool:
        """Say whether anybody asks for a bundle: one without topics is not looked up."""
        namespace = self.cluster.namespaces[self.cluster.namespace[bundle]]
        if is_heartbeat_or_sla_namespace(namespace):
            return False
        load = self.cluster.load(now)[:, bundle]
        return bool(load[7] > 0 or load[:4].any())

    def _place(self, bundle: str, view: Snapshot, filters: ExtensibleFilters | None) -> Selection | None:
        seed = self.scenario.seed
        if self.extensible:
            memory, found = extensible.assign(
                view, bundle, self.memory.extensible, self.config, seed, filters=filters, explain=False
            )
            self.memory = replace(self.memory, extensible=memory)
            return found
        try:
            after, found = modular.least_loaded(view, bundle, self.memory.modular, self.config, seed, explain=False)
        except PulsarError as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))
            return None
        self.memory = replace(self.memory, modular=after)
        return found

    # Edits

    def plan(self, edit: Edit) -> None:  # noqa: C901 - one case for each kind of edit
        """Plan one edit of the scenario."""
        match edit:
            case AddBrokers():
                self.at(self.minute(edit.at_min), lambda now: self.add(edit, now))
            case RemoveBroker():
                self.at(self.minute(edit.at_min), lambda now: self.remove(edit.broker, now, why="shut down"))
            case KillBroker():
                self.at(self.minute(edit.at_min), lambda now: self.kill(edit.broker, now))
            case DrainBroker():
                self.at(self.minute(edit.at_min), lambda now: self.drain(edit, now))
            case RollingRestart():
                self.plan_restart(edit)
            case ChangeCapacity():
                self.at(self.minute(edit.at_min), lambda now: self.resize(edit, now))
            case ScaleTraffic():
                self.at(self.start_ms, lambda _: self.scale(edit))
            case SplitBundle():
                self.at(self.minute(edit.at_min), lambda now: self.split_by_hand(edit, now))
            case MoveBundle():
                self.at(self.minute(edit.at_min), lambda now: self.move(edit, now))
            case SetDispatchRate():
                self.at(self.start_ms, lambda _: self.limit_dispatch(edit))
            case SetBundleCount() | PinBundle() | SetIsolation() | SetAntiAffinity():
                self.at(self.start_ms, lambda now: self.rearrange(edit, now))

    def scale(self, edit: ScaleTraffic) -> None:
        """Let traffic change; what begins at once shows in what the brokers measure next."""
        self.cluster.scale(edit, self.start_ms)
        if edit.at_min == 0:
            self.knowledge.dirty[:] = True

    def limit_dispatch(self, edit: SetDispatchRate) -> None:
        """Set a dispatch limit."""
        rate = DispatchRate(edit.msg_per_period, edit.bytes_per_period, edit.period_s, edit.relative_to_publish_rate)
        self.cluster.policies = with_policy(self.cluster.policies, edit.level, edit.target, rate)

    def add(self, edit: AddBrokers, now: int) -> None:
        """Let brokers join."""
        self.join(added_brokers(edit), edit.cores, edit.nic_gbps, now, "joins the cluster, empty")

    def join(self, names: Sequence[str], cores: float, nic_gbps: float, now: int, why: str) -> None:
        """Take brokers into the cluster; sizes of 0 are the median."""
        self.cluster.add_brokers(names, cores, nic_gbps, now)
        self.phase = np.append(self.phase, self._phases(names))
        self.knowledge.joined(now)
        for name in names:
            self.events.append(Event(now, "broker_added", source=name, why=why))
        self.retry(now)

    def retry(self, now: int) -> None:
        """Look up again what nobody could take."""
        self.look_up(np.flatnonzero(self.cluster.owner < 0), now)

    def gone(self, broker: int, now: int, kind: EventKind, why: str) -> None:
        """Let the others notice that a broker left; its bundles are looked up."""
        name = self.cluster.brokers.name[broker]
        given_up = self.cluster.leave(broker)
        self.knowledge.left(broker)
        self.events.append(Event(now, kind, source=name, why=why))
        if name == self.leader:
            here = [n for n, up in zip(self.cluster.brokers.name, self.cluster.present.tolist(), strict=True) if up]
            self.leader = Random(f"{self.scenario.seed}/{now}").choice(here) if here else ""  # noqa: S311 - no secret
            self.cluster.info = replace(self.cluster.info, leader=self.leader)
            self.knowledge.touch()
            self.memory = elected(self.shedder, self.manager, self.config)
            self.notes.append(
                f"{name} was the leader: {self.leader or 'nobody'} is elected, with no averages of usage, no hit"
                " counts and no memory of recently unloaded bundles."
            )
        elif not self.extensible:
            memory = modular.with_active_brokers(self.memory.modular, self.knowledge.view(now))
            self.memory = replace(self.memory, modular=memory)
        self.look_up(given_up, now)

    def remove(self, name: str, now: int, *, why: str) -> None:
        """Shut a broker down in order."""
        broker = self.cluster.broker(name)
        if self.cluster.present[broker]:
            self.gone(broker, now, "broker_removed", why)

    def kill(self, name: str, now: int) -> None:
        """Let a broker die."""
        broker = self.cluster.broker(name)
        if not self.cluster.alive[broker]:
            return
        self.cluster.alive[broker] = False
        self.cluster.touch()
        timeout = self.scenario.assumptions.session_timeout_s
        self.at(
            now + timeout * 1000,
            lambda then: self.gone(broker, then, "broker_lost", f"died {timeout:g} s ago; its session has ended"),
        )

    def drain(self, edit: DrainBroker, now: int) -> None:
        """Take a broker out of service bundle by bundle."""
        broker = self.cluster.broker(edit.broker)
        if not self.cluster.present[broker]:
            return
        self.cluster.present[broker] = False
        self.cluster.touch()
        self.knowledge.left(broker)
        self.events.append(Event(now, "broker_removed", source=edit.broker, why="takes no more bundles and is drained"))
        mine = [self.cluster.names[i] for i in np.flatnonzero(self.cluster.owner == broker).tolist()]
        for number, name in enumerate(mine):
            later = now + number * _MS_PER_MIN / edit.bundles_per_min
            self.at(later, partial(self.let_go, name, broker))
        self.at(now + len(mine) * _MS_PER_MIN / edit.bundles_per_min, lambda _: self.stop(broker))

    def stop(self, broker: int) -> None:
        """Let a drained broker end."""
        self.cluster.leave(broker)

    def let_go(self, name: str, broker: int, now: int) -> None:
        """Unload one bundle of a broker that is drained."""
        at = self.cluster.position.get(name, -1)
        if at >= 0 and self.cluster.owner[at] == broker:
            self.cluster.assign(at, -1)
            self.look_up(np.array([at]), now)

    def plan_restart(self, edit: RollingRestart) -> None:
        """Plan a rolling restart."""
        names = edit.brokers or tuple(
            name for name, here in zip(self.cluster.brokers.name, self.cluster.present.tolist(), strict=True) if here
        )
        for number, name in enumerate(names):
            down = self.minute(edit.at_min + number * (edit.down_min + edit.pause_min))
            self.at(down, partial(self.remove, name, why="shut down for its restart"))
            self.at(down + edit.down_min * _MS_PER_MIN, partial(self.back, name))

    def back(self, name: str, now: int) -> None:
        """Let a broker come back, empty."""
        broker = self.cluster.broker(name)
        if self.cluster.present[broker]:
            return
        self.cluster.come_back(broker)
        self.knowledge.started(broker, now)
        self.events.append(Event(now, "broker_added", source=name, why="is back, with nothing on it"))
        self.retry(now)

    def resize(self, edit: ChangeCapacity, now: int) -> None:
        """Change machines."""
        which = np.array([self.cluster.broker(name) for name in edit.brokers], dtype=np.int64)
        if not edit.brokers:
            which = np.arange(len(self.cluster.brokers))
        self.cluster.resize(which, edit.cores, edit.nic_gbps)
        self.knowledge.dirty[which] = True
        if now == self.start_ms:
            every = self.cluster.present & self.cluster.alive
            self.knowledge.measure(every, now)
            self.knowledge.check(every, now)

    def split_by_hand(self, edit: SplitBundle, now: int) -> None:
        """Split a bundle as an operator asks for it."""
        self.cluster.bundle(edit.bundle)
        namespace, _, ends = edit.bundle.rpartition("/")
        command = SplitCommand(namespace, ends, edit.algorithm, edit.positions or None, edit.unload)
        outcome = answer(self.cluster.snapshot(now, self.config), command, self.config)
        at = self.cluster.bundle(edit.bundle)
        why = "; ".join(reason.text for reason in outcome.reasons) or "asked for"
        if outcome.verdict is Verdict.SPLIT:
            self.split(at, outcome.boundaries, now, why, unload=outcome.children_unloaded)
            return
        owner = int(self.cluster.owner[at])
        broker = self.cluster.brokers.name[owner] if owner >= 0 else ""
        self.note(now, "split_refused", at, broker, why=str(outcome.error) if outcome.error else why)

    def move(self, edit: MoveBundle, now: int) -> None:
        """Unload a bundle as an operator asks for it."""
        at = self.cluster.bundle(edit.bundle)
        source = int(self.cluster.owner[at])
        if edit.destination:
            target = self.cluster.broker(edit.destination)
            if not self.cluster.present[target]:
                raise ScenarioError(
                    f"{edit.destination} is not in the cluster at that moment.", remedy="Choose another broker."
                )
            if target != source:
                self.give(at, edit.destination, source, now, "moved", (edit.destination,), "moved by the scenario")
            return
        self.cluster.assign(at, -1)
        if source >= 0:
            self.knowledge.ownership_changed(np.array([source]), np.array([at]))
        self.note(now, "moved", at, self.cluster.brokers.name[source] if source >= 0 else "", why="unloaded by hand")
        self.look_up(np.array([at]), now)

    def rearrange(self, edit: SetBundleCount | PinBundle | SetIsolation | SetAntiAffinity, now: int) -> None:
        """Make an edit that holds from the start."""
        match edit:
            case SetBundleCount():
                self.rebuilt(self.cluster.recut(self.cluster.namespace_at(edit.namespace), edit.bundles))
                self.retry(now)
            case PinBundle():
                at = self.cluster.bundle(edit.bundle)
                target = self.cluster.broker(edit.broker)
                self.cluster.pins[edit.bundle] = edit.broker
                if self.cluster.owner[at] != target and self.cluster.present[target]:
                    source = int(self.cluster.owner[at])
                    self.give(at, edit.broker, source, now, "moved", (edit.broker,), "pinned by the scenario")
            case SetIsolation():
                self.cluster.set_isolation(
                    IsolationPolicy(edit.name, edit.namespaces, edit.primary, edit.secondary, edit.min_limit)
                )
                self.knowledge.touch()
                wrong = self.cluster.misplaced()
                self.knowledge.ownership_changed(self.cluster.owner[wrong], wrong)
                self.cluster.assign(wrong, -1)
                self.look_up(wrong, now)
            case SetAntiAffinity():
                self.cluster.set_anti_affinity(edit.namespace, edit.group)
                self.knowledge.touch()

    def asked(self) -> FloatArray:
        """Return what is asked of the machines now."""
        return frozen(self.cluster.usage(self.now)[1])

    def end(self) -> Snapshot:
        """Return the cluster as it is now: real owners and traffic, the leader's averages."""
        real, known = self.cluster.snapshot(self.now, self.config), self.view(self.now).bundles
        kept = {
            name: getattr(known, name)
            for name in known.__dataclass_fields__
            if name.startswith(("short_term_", "long_term_")) or name in {"has_data", "data_topics", "top_rank"}
        }
        return replace(
            real,
            bundles=replace(real.bundles, **kept),
            info=replace(real.info, source=f"simulated from {self.start.info.source or 'a snapshot'}"),
        )


def _registered(snapshot: Snapshot) -> set[str]:
    """Return the brokers that are part of a cluster."""
    return {
        name for name, here in zip(snapshot.brokers.name, snapshot.brokers.registered.tolist(), strict=True) if here
    }


def _without_affinity(memory: LeaderMemory, bundle: str) -> LeaderMemory:
    """Return the memory after the lookup that uses an affinity up."""
    if bundle not in memory.modular.affinities:
        return memory
    left = {name: broker for name, broker in memory.modular.affinities.items() if name != bundle}
    return replace(memory, modular=replace(memory.modular, affinities=left))


def _placed_why(found: Selection | None) -> str:
    if found is None:
        return ""
    draws = len(found.decision.acceptable)
    choice = f"drawn from {draws} brokers" if draws > 1 else "the only choice"
    return f"looked up: {choice} by {found.strategy}" if found.strategy else f"looked up: {found.how}"
