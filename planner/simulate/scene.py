"""What a strategy is asked with in a cycle of a simulation, so that a decision can be taken again otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.cluster.decisions import Move, SheddingDecision
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    LOAD_BALANCER_ENABLED,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    SHEDDING_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
    SHEDDING_GRACE_PERIOD_MINUTES,
)
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.load.top_bundles import reported_under, with_top_ranks
from planner.pulsar.manager.cycle import CycleDecision, effective_shedder, next_cycle
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.manager.pairing import placement_beside
from planner.pulsar.shedding.profile import EVERY_BOUNDS, EVERY_EAGER, Bounds
from planner.pulsar.shedding.protocol import Shedder
from planner.simulate.sequence import decide_cycles
from planner.simulate.trace import Trace, cycle_seed

_WATCHED = 10
"""Cycles that a strategy which did not run has watched before it is asked."""


@dataclass(frozen=True, eq=False, slots=True)
class Scene:
    """What a strategy is asked with.

    Attributes:
        shedder: The strategy.
        ran: Whether it is the one that decided in the simulation.
        view: What the leader knew.
        memory: What it remembered; None for nothing.
        config: Settings in force.
        seed: Of the draws of the cycle.
    """

    shedder: Shedder
    ran: bool
    view: Snapshot
    memory: LeaderMemory | None
    config: Settings
    seed: int

    @property
    def bounds(self) -> Mapping[str, Bounds]:
        """What may flip a decision of the strategy, in the order of its settings; see `Profile.bounds`.

        A setting that the release does not have flips none.
        """
        every = {**EVERY_BOUNDS, **self.shedder.profile.bounds}
        order = (*self.shedder.settings, *EVERY_BOUNDS)
        return {name: every[name] for name in order if name in every and name in self.config}

    @property
    def eager(self) -> dict[str, SettingValue]:
        """The values with which most is shed; see `Profile.eager`."""
        return {**EVERY_EAGER, **self.shedder.profile.eager}

    @staticmethod
    def of(trace: Trace, cycle: int, shedder: Shedder, *, ran: bool) -> "Scene":
        """Return what the leader knew; for another strategy, what it would know after the same cycles."""
        at = trace.cycles[cycle]
        seed = cycle_seed(trace.scenario.seed, cycle)
        if ran:
            return Scene(shedder, True, at.view, at.memory, trace.settings_at(cycle), seed)
        config = configured(trace.settings_at(cycle), trace.start.settings, shedder)
        watched = [_seen_by(one.view, shedder, config) for one in trace.cycles[max(0, cycle - _WATCHED) : cycle]]
        steps = decide_cycles(watched, config, seed, explain=False) if watched else ()
        memory = steps[-1].after if steps else None
        return Scene(shedder, False, _seen_by(at.view, shedder, config), memory, config, seed)

    @staticmethod
    def of_running(trace: Trace, cycle: int) -> "Scene":
        """Return what the strategy was asked with that decided in the simulation."""
        running, _ = effective_shedder(trace.cycles[cycle].view.info.load_manager, trace.settings)
        return Scene.of(trace, cycle, running, ran=True)

    def decide(self, config: Settings, view: Snapshot | None = None) -> CycleDecision:
        """Return what the cycle decides under some settings, in its own view by default."""
        return next_cycle(self._reported(config, view), self.memory, config, self.seed, explain=False)[1]

    def _reported(self, config: Settings, view: Snapshot | None) -> Snapshot:
        """Return what the leader knows once brokers report by the settings that are asked about."""
        seen = view or self.view
        return reported_under(seen, self.config, config) if seen.info.load_manager is LoadManager.EXTENSIBLE else seen

    def chosen(self, config: Settings, view: Snapshot | None = None) -> tuple[Move, ...]:
        """Return what the strategy chooses, before a destination is looked for, which takes most of the time."""
        shedding = self.shedding(config, view)
        excluded = config.names(SHEDDING_EXCLUDED_NAMESPACES)
        moves = shedding.moves if shedding is not None else ()
        return tuple(move for move in moves if move.bundle.rpartition("/")[0] not in excluded)

    def shedding(self, config: Settings, view: Snapshot | None = None) -> SheddingDecision | None:
        """Return what the strategy alone decides, None where it is not asked."""
        seen = self._reported(config, view)
        enabled = config.flag(LOAD_BALANCER_ENABLED) and config.flag(SHEDDING_ENABLED)
        if not enabled or int(seen.brokers.registered.sum()) < 2:  # noqa: PLR2004 - from one broker to another
            return None
        memory = self.memory if self.memory is not None else elected(self.shedder, seen.info.load_manager, config)
        oldest = seen.info.captured_at_ms - config.integer(SHEDDING_GRACE_PERIOD_MINUTES) * MS_PER_MIN
        shed = memory.shedding
        recent = {b: at for b, at in shed.recently_unloaded_bundles.items() if at >= oldest}
        known = shed.with_state(shed.state, recently_unloaded_bundles=recent)
        return self.shedder.decide(seen, known, config)[1]


def configured(config: Settings, own: Settings, shedder: Shedder) -> Settings:
    """Return the settings with another strategy, and the placement that goes with it."""
    return config.changed(
        **{LOAD_SHEDDING_STRATEGY: shedder.java_class, LOAD_PLACEMENT_STRATEGY: placement_beside(shedder, config, own)}
    )


def _seen_by(view: Snapshot, shedder: Shedder, config: Settings) -> Snapshot:
    """Return a view as the load manager of a strategy would have it."""
    if view.info.load_manager is shedder.load_manager:
        return view
    other = replace(view, info=replace(view.info, load_manager=shedder.load_manager))
    return with_top_ranks(other, config) if shedder.load_manager is LoadManager.EXTENSIBLE else other
