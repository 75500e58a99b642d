"""Cycles of one leader over consecutive snapshots, so that its counters and averages can be watched.

Nothing is carried out between the cycles: a snapshot shows what the cluster really did, or the same load once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.decisions import SplitDecision
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.manager.cycle import CycleDecision, next_cycle
from planner.pulsar.manager.leader import LeaderMemory
from planner.pulsar.splitting import automatic_extensible
from planner.pulsar.splitting.automatic_extensible import AutoSplitState


@dataclass(frozen=True, eq=False)
class CycleStep:
    """What a leader saw, chose and remembered at one snapshot.

    Attributes:
        snapshot: The cluster at that moment.
        decision: What it chose.
        after: What it remembers if it carries that out.
    """

    snapshot: Snapshot
    decision: CycleDecision
    after: LeaderMemory


@dataclass(frozen=True, eq=False)
class SplitStep:
    """What the brokers of the extensible load manager counted and split at one snapshot.

    Attributes:
        snapshot: The cluster at that moment.
        decision: What they chose.
        after: What each broker counts afterwards, by broker id.
    """

    snapshot: Snapshot
    decision: SplitDecision
    after: Mapping[str, AutoSplitState]


def same_load(snapshot: Snapshot, cycles: int, config: Settings) -> tuple[Snapshot, ...]:
    """Return a snapshot as often as there are cycles, each one interval of shedding later than the one before.

    The interval is `loadBalancerSheddingIntervalMinutes`. The brokers report the same load each time, so that their
    reports do not grow old.
    """
    interval_ms = config.integer(SHEDDING_INTERVAL_MINUTES) * MS_PER_MIN
    brokers, info = snapshot.brokers, snapshot.info
    made = [snapshot]
    for cycle in range(1, cycles):
        by_ms = cycle * interval_ms
        reported = brokers.updated_at_ms + by_ms * (brokers.updated_at_ms > 0)
        made.append(
            replace(
                snapshot,
                info=replace(info, captured_at_ms=info.captured_at_ms + by_ms),
                brokers=replace(brokers, updated_at_ms=reported),
            )
        )
    return tuple(made)


def _nothing_carried_out(before: LeaderMemory | None, step: CycleStep) -> LeaderMemory:
    """Return what a leader remembers whose unloads all failed: it marks a bundle only after it was unloaded."""
    bundles = {move.bundle for move in step.decision.moves}
    sources = {move.source for move in step.decision.moves}
    shed = step.after.shedding
    shed = replace(
        shed,
        recently_unloaded_bundles={b: at for b, at in shed.recently_unloaded_bundles.items() if b not in bundles},
        recently_unloaded_brokers={b: at for b, at in shed.recently_unloaded_brokers.items() if b not in sources},
    )
    affinities = before.modular.affinities if before is not None else {}
    return replace(step.after, shedding=shed, modular=replace(step.after.modular, affinities=affinities))


def decide_cycles(
    snapshots: Sequence[Snapshot],
    config: Settings,
    seed: int,
    memory: LeaderMemory | None = None,
    *,
    explain: bool = True,
) -> tuple[CycleStep, ...]:
    """Run one cycle at each snapshot in turn, as a leader that stays in office does.

    Nothing is carried out, so what a cycle chose is not marked as unloaded in the next one. Averages, hit counts,
    bindings and turns go on.

    Args:
        snapshots: Oldest first.
        config: Settings in force throughout.
        seed: Decides where Pulsar draws at random.
        memory: What the leader remembers at the start; None for one that was just elected.
        explain: Whether placement gives a reason for every candidate, in the last cycle; in earlier ones it does not.

    Raises:
        SettingError: A strategy is unknown.
    """
    steps: list[CycleStep] = []
    before = memory
    for at, snapshot in enumerate(snapshots, start=1):
        snapshot.sharing(steps[-1].snapshot if steps else None)  # names and orders, which take longer than deciding
        after, decision = next_cycle(snapshot, before, config, seed, explain=explain and at == len(snapshots))
        steps.append(CycleStep(snapshot, decision, after))
        before = _nothing_carried_out(before, steps[-1])
    return tuple(steps)


def decide_split_checks(snapshots: Sequence[Snapshot], config: Settings) -> tuple[SplitStep, ...]:
    """Run the automatic splitting of the extensible load manager's brokers at each snapshot in turn, oldest first.

    Nothing is carried out. Every broker starts without hits.
    """
    steps: list[SplitStep] = []
    hits: Mapping[str, AutoSplitState] = {}
    for snapshot in snapshots:
        snapshot.sharing(steps[-1].snapshot if steps else None)
        hits, decision = automatic_extensible.decide_all(snapshot, hits, config)
        steps.append(SplitStep(snapshot, decision, hits))
    return tuple(steps)
