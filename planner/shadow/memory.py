"""What a leader remembers after a cycle that was only watched, and what else it might have remembered."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import CycleDecision
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.shedding import avg, transfer
from planner.pulsar.shedding.avg import AvgState
from planner.pulsar.shedding.transfer import TransferState


def settle_memory(
    before: LeaderMemory | None,
    after: LeaderMemory,
    predicted: Collection[str],
    unloaded: Mapping[str, str],
    at_ms: int,
) -> LeaderMemory:
    """Return what a leader remembers after a cycle: the strategy's own memory, and what was really unloaded.

    Args:
        before: What it remembered; None for a leader that was just elected.
        after: What it remembers if it carried the prediction out.
        predicted: Bundles that were to be unloaded.
        unloaded: Bundles that it did unload, with the broker that had them.
        at_ms: When, ms since 1970.
    """
    shed = after.shedding
    known_bundles = before.shedding.recently_unloaded_bundles if before is not None else {}
    known_brokers = before.shedding.recently_unloaded_brokers if before is not None else {}
    bundles = {
        bundle: known_bundles.get(bundle, at)
        for bundle, at in shed.recently_unloaded_bundles.items()
        if bundle not in predicted or bundle in known_bundles
    }
    brokers = {name: known_brokers[name] for name in shed.recently_unloaded_brokers if name in known_brokers}
    bundles |= dict.fromkeys(unloaded, at_ms)
    if shed.recently_unloaded_brokers or isinstance(shed.state, TransferState):
        brokers |= dict.fromkeys(unloaded.values(), at_ms)
    affinities = before.modular.affinities if before is not None else {}
    shed = shed.with_state(_acted(shed.state, frozenset(unloaded.values())))
    return replace(
        after,
        shedding=replace(shed, recently_unloaded_bundles=bundles, recently_unloaded_brokers=brokers),
        modular=replace(after.modular, affinities=affinities),
    )


def cycles_to_know(shedder: str, config: Settings) -> int:
    """Return how many cycles have to be watched until the counters of a leader in office are known.

    Args:
        shedder: Name of the strategy.
        config: Settings in force.
    """
    if shedder == avg.SHEDDER.name:
        high = config.integer("loadBalancerAvgShedderHitCountHighThreshold")
        return max(high, config.integer("loadBalancerAvgShedderHitCountLowThreshold"))
    if shedder == transfer.SHEDDER.name:
        return config.integer("loadBalancerSheddingConditionHitCountThreshold") + 1
    return 0


def _acted(state: Any, sources: Collection[str]) -> Any:
    """Return a strategy's memory after it unloaded something from some brokers: what counted up to that starts anew."""
    if isinstance(state, TransferState) and sources:
        return replace(state, hit_count=0)
    if isinstance(state, AvgState) and sources:
        high, low = (
            {name: 0 if name in sources else hits for name, hits in counted.items()}
            for counted in (state.hits_high, state.hits_low)
        )
        return replace(state, hits_high=high, hits_low=low)
    return state


def carried_out(predicted: LeaderMemory, explained: LeaderMemory) -> LeaderMemory:
    """Return the memory of the decision that explains what happened, with counters no higher than were predicted.

    Counters of the other brokers are those that were counted: who supposes that one of them was full must not suppose
    it of all.
    """
    was, now = predicted.shedding.state, explained.shedding.state
    state: Any = now
    if isinstance(was, AvgState) and isinstance(now, AvgState):
        state = replace(
            now, hits_high=_least(was.hits_high, now.hits_high), hits_low=_least(was.hits_low, now.hits_low)
        )
    elif isinstance(was, TransferState) and isinstance(now, TransferState):
        state = replace(now, hit_count=min(was.hit_count, now.hit_count))
    return replace(explained, shedding=replace(explained.shedding, state=state))


def _least(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: min(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def other_memories(made: CycleDecision, before: LeaderMemory | None, view: Snapshot) -> Iterator[LeaderMemory | None]:
    """Yield what else a leader might remember: nothing, counters that are about to be full, no recent unloads.

    Args:
        made: What it was predicted to decide.
        before: What it was supposed to remember; None for nothing.
        view: The capture; gives the settings and the brokers.
    """
    config, brokers = view.settings, view.brokers.name
    if before is not None:
        yield None
    known = before or elected(made.shedder, view.info.load_manager, config)
    state = known.shedding.state
    if isinstance(state, AvgState):
        high = config.integer("loadBalancerAvgShedderHitCountHighThreshold")
        low = config.integer("loadBalancerAvgShedderHitCountLowThreshold")
        for hits_high, hits_low in ((high, 0), (high, low)):
            full = replace(
                state, hits_high=dict.fromkeys(brokers, hits_high), hits_low=dict.fromkeys(brokers, hits_low)
            )
            yield replace(known, shedding=known.shedding.with_state(full))
    elif isinstance(state, TransferState):
        hits = config.integer("loadBalancerSheddingConditionHitCountThreshold")
        yield replace(known, shedding=known.shedding.with_state(replace(state, hit_count=hits)))
    if known.shedding.recently_unloaded_bundles or known.shedding.recently_unloaded_brokers:
        yield replace(known, shedding=SheddingMemory(state))
