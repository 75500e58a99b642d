"""One shedding strategy over consecutive snapshots of a cluster, so that its counters and averages can be watched."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.model.decisions import SheddingDecision
from planner.model.memory import SheddingMemory
from planner.model.settings import Settings
from planner.model.snapshot import Snapshot
from planner.shedding.protocol import Shedder

__all__ = ["SequenceStep", "decide_sequence"]


@dataclass(frozen=True, eq=False)
class SequenceStep:
    """What a strategy saw, chose and remembered at one snapshot.

    Attributes:
        snapshot: The cluster at that moment.
        before: Memory it was asked with.
        decision: What it chose.
        after: Memory it was left with.
    """

    snapshot: Snapshot
    before: SheddingMemory[Any]
    decision: SheddingDecision
    after: SheddingMemory[Any]


def decide_sequence(
    snapshots: Sequence[Snapshot],
    shedder: Shedder,
    config: Settings,
    memory: SheddingMemory[Any] | None = None,
) -> tuple[SequenceStep, ...]:
    """Ask one strategy object about each snapshot in turn, as a leader that stays in office does.

    Nothing is carried out: a snapshot shows what the cluster really did, so chosen bundles are not marked as unloaded.
    `recently_unloaded_bundles` given in `memory` expire after `loadBalancerSheddingGracePeriodMinutes`.

    Args:
        snapshots: Oldest first.
        shedder: The strategy.
        config: Settings in force throughout.
        memory: What the leader remembers at the start; nothing by default.
    """
    grace_ms = config.integer("loadBalancerSheddingGracePeriodMinutes") * 60_000
    now = memory if memory is not None else SheddingMemory(shedder.initial())
    steps: list[SequenceStep] = []
    for snapshot in snapshots:
        expired = snapshot.info.captured_at_ms - grace_ms
        kept = {b: at for b, at in now.recently_unloaded_bundles.items() if at >= expired}
        before = now.with_state(now.state, recently_unloaded_bundles=kept)
        now, decision = shedder.decide(snapshot, before, config)
        steps.append(SequenceStep(snapshot, before, decision, now))
    return tuple(steps)
