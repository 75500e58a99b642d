"""What a leader remembers after a cycle that was only watched, and what else it might have remembered."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.names import SHEDDING_GRACE_PERIOD_MINUTES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.manager.cycle import CycleDecision, effective_shedder
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.placement.modular import unreported
from planner.pulsar.shedding.registry import shedder_by_name, shedder_of_state


def fitting(memory: LeaderMemory | None, view: Snapshot) -> LeaderMemory | None:
    """Return what a leader remembers if it is of the strategies that decide in a capture; else None: it knows nothing.

    Brokers have to be started again for another strategy, which may happen between two captures.
    """
    if memory is None:
        return None
    shedder, _ = effective_shedder(view.info.load_manager, view.settings)
    fresh = elected(shedder, view.info.load_manager, view.settings)
    same = type(memory.shedding.state) is type(fresh.shedding.state)
    return memory if same and type(memory.modular.placement) is type(fresh.modular.placement) else None


def remembering(
    memory: LeaderMemory | None, view: Snapshot, preallocated: Mapping[str, str], due_ms: int
) -> LeaderMemory | None:
    """Return what a leader remembers when it decides the next cycle, from what it remembered after the last one.

    Args:
        memory: That; None for a leader that knows nothing.
        view: What it knows of the cluster.
        preallocated: Bundles that it still counts for a broker, by that broker.
        due_ms: When it decides; unloads that are forgotten by then are left out.
    """
    if view.info.load_manager is not LoadManager.MODULAR:
        return memory
    known = fitting(memory, view)
    if known is None and preallocated:
        known = elected(effective_shedder(view.info.load_manager, view.settings)[0], LoadManager.MODULAR, view.settings)
    if known is None:
        return memory
    oldest_ms = due_ms - view.settings.integer(SHEDDING_GRACE_PERIOD_MINUTES) * MS_PER_MIN
    recent = {name: at for name, at in known.shedding.recently_unloaded_bundles.items() if at >= oldest_ms}
    return replace(
        known,
        shedding=replace(known.shedding, recently_unloaded_bundles=recent),
        modular=replace(known.modular, preallocated=preallocated),
    )


def settle_memory(
    before: LeaderMemory | None,
    after: LeaderMemory,
    predicted: Collection[str],
    unloaded: Mapping[str, str],
    at_ms: int,
    taken_ms: Mapping[str, int] | None = None,
) -> LeaderMemory:
    """Return what a leader remembers after a cycle: the strategy's own memory, and what was really unloaded.

    Args:
        before: What it remembered; None for a leader that was just elected.
        after: What it remembers if it carried the prediction out.
        predicted: Bundles that were to be unloaded.
        unloaded: Bundles that it did unload, with the broker that had them.
        at_ms: When it decided, ms since 1970.
        taken_ms: When it unloaded each, where it remembers that.
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
    bundles |= {bundle: (taken_ms or {}).get(bundle, at_ms) for bundle in unloaded}
    profile = shedder_of_state(shed.state).profile
    if shed.recently_unloaded_brokers or profile.remembers_donors:
        brokers |= dict.fromkeys(unloaded.values(), at_ms)
    affinities = before.modular.affinities if before is not None else {}
    if profile.counters is not None and unloaded:
        shed = shed.with_state(profile.counters.after_unloads(shed.state, frozenset(unloaded.values())))
    return replace(
        after,
        shedding=replace(shed, recently_unloaded_bundles=bundles, recently_unloaded_brokers=brokers),
        modular=replace(after.modular, affinities=affinities),
    )


def cycles_to_know(shedder: str, config: Settings) -> int:
    """Return how many cycles have to be watched until the counters of a leader in office are known."""
    counters = shedder_by_name(shedder).profile.counters
    return counters.cycles_to_know(config) if counters is not None else 0


def carried_out(predicted: LeaderMemory, explained: LeaderMemory) -> LeaderMemory:
    """Return the memory of the decision that explains what happened, with counters no higher than were predicted.

    Counters of the other brokers are those that were counted: who supposes that one of them was full must not suppose
    it of all.
    """
    was, now = predicted.shedding.state, explained.shedding.state
    counters = shedder_of_state(now).profile.counters
    if counters is None or type(was) is not type(now):
        return explained
    return replace(explained, shedding=replace(explained.shedding, state=counters.least(was, now)))


def other_memories(made: CycleDecision, before: LeaderMemory | None, view: Snapshot) -> Iterator[LeaderMemory | None]:
    """Yield what else a leader might remember after deciding `made`.

    That is nothing, counters about to be full, no unloads, or bundles of its own that it gave to itself.
    """
    config, brokers = view.settings, view.brokers.name
    if before is not None:
        yield None
    known = before or elected(made.shedder, view.info.load_manager, config)
    state = known.shedding.state
    counters = made.shedder.profile.counters
    if counters is not None:
        for full in counters.full(state, brokers, config):
            yield replace(known, shedding=known.shedding.with_state(full))
    if known.shedding.recently_unloaded_bundles or known.shedding.recently_unloaded_brokers:
        yield replace(known, shedding=SheddingMemory(state))
    if (silent := unreported(view)) != known.modular.preallocated:
        yield replace(known, modular=replace(known.modular, preallocated=silent))
