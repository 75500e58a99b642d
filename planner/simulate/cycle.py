"""One shedding cycle as the load manager runs it: its switches, the strategy it really uses, and the strategy's answer.

Mirrors the frames of `ModularLoadManagerImpl.doLoadShedding` and `UnloadScheduler` of Pulsar 4.2.4.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.model.decisions import ReasonCode, SheddingDecision, block
from planner.model.memory import SheddingMemory
from planner.model.settings import Settings
from planner.model.snapshot import LoadManager, Snapshot
from planner.model.usage import weighted_usage
from planner.shedding import transfer
from planner.shedding.protocol import Shedder
from planner.shedding.registry import shedder_by_name

__all__ = ["CycleDecision", "effective_shedder", "next_cycle"]

_DISABLED = ReasonCode("cycle.disabled", "automatic unloading is switched off")
_ALONE = ReasonCode("cycle.single_broker", "fewer than two brokers are active: nowhere to unload to")


@dataclass(frozen=True, eq=False)
class CycleDecision:
    """What one cycle does.

    Attributes:
        shedder: The strategy that decides.
        shedding: Its answer; when the cycle does not run at all, no moves and one reason for every broker.
        notes: What the user should know about how it came to this.
    """

    shedder: Shedder
    shedding: SheddingDecision
    notes: tuple[str, ...] = ()


def effective_shedder(load_manager: LoadManager, config: Settings) -> tuple[Shedder, tuple[str, ...]]:
    """Return the strategy that a load manager really runs, and a note where that is not the configured one.

    The extensible load manager replaces a strategy that is not its own by TransferShedder, with a line in its log.

    Raises:
        SettingError: `loadBalancerLoadSheddingStrategy` is unknown.
    """
    configured = shedder_by_name(config.text("loadBalancerLoadSheddingStrategy"))
    if load_manager is configured.load_manager:
        return configured, ()
    if load_manager is LoadManager.EXTENSIBLE:
        note = (
            f"loadBalancerLoadSheddingStrategy is {configured.name}, which the extensible load manager cannot run:"
            " Pulsar logs an error and uses TransferShedder."
        )
        return transfer.SHEDDER, (note,)
    note = (
        f"loadBalancerLoadSheddingStrategy is {configured.name}, which belongs to the extensible load manager; this"
        " cluster runs the modular one, whose start would fail. ThresholdShedder, the default, is shown."
    )
    return shedder_by_name("ThresholdShedder"), (note,)


def next_cycle(
    snapshot: Snapshot, memory: SheddingMemory[Any] | None, config: Settings, seed: int
) -> tuple[SheddingMemory[Any], CycleDecision]:
    """Decide what the next shedding cycle of a cluster does.

    Args:
        snapshot: The cluster; its moment is the clock.
        memory: What the leader remembers; None for a leader that was just elected.
        config: Settings in force.
        seed: Decides where Pulsar draws at random.

    Returns:
        The memory afterwards, and the decision.

    Raises:
        SettingError: The strategy is unknown.
    """
    del seed
    shedder, notes = effective_shedder(snapshot.info.load_manager, config)
    before = memory if memory is not None else SheddingMemory(shedder.initial())
    enabled = config.flag("loadBalancerEnabled") and config.flag("loadBalancerSheddingEnabled")
    if not enabled or int(snapshot.brokers.registered.sum()) < 2:  # noqa: PLR2004 - from one broker to another
        code = _ALONE if enabled else _DISABLED
        every = np.arange(len(snapshot.brokers), dtype=np.int32)
        scores = weighted_usage(snapshot.brokers, config, snapshot.info.load_manager)
        return before, CycleDecision(shedder, SheddingDecision((), (block(code, every),), scores), notes)
    oldest = snapshot.info.captured_at_ms - config.integer("loadBalancerSheddingGracePeriodMinutes") * 60_000
    recent = {b: at for b, at in before.recently_unloaded_bundles.items() if at >= oldest}
    after, decision = shedder.decide(
        snapshot, before.with_state(before.state, recently_unloaded_bundles=recent), config
    )
    return after, CycleDecision(shedder, decision, (*notes, *decision.notes))
