"""One shedding cycle as the load manager runs it: its switches, the strategy it really uses, what comes of its answer.

Mirrors the frames of `ModularLoadManagerImpl.doLoadShedding` and `UnloadScheduler` of Pulsar 4.2.4. It differs in that
every unload succeeds at the moment of the snapshot.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from planner.cluster.arrays import frozen
from planner.cluster.decisions import Move, Reason, ReasonCode, SheddingDecision, block
from planner.cluster.errors import PulsarError
from planner.cluster.hashing import hash_map_order, java_string_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
    LOAD_BALANCER_ENABLED,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    PREFER_LATER_VERSIONS,
    SHEDDING_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
    SHEDDING_GRACE_PERIOD_MINUTES,
)
from planner.cluster.release_notes import release_notes
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import column_info, make_topics
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.load.averages import with_known_rates
from planner.pulsar.load.namespace_policies import expression_notes
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.manager.class_names import REPLACED, class_name
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.manager.pairing import PAIRED
from planner.pulsar.placement import extensible, modular
from planner.pulsar.placement.avg import PLANNED_DESTINATIONS, Bindings, Plans
from planner.pulsar.placement.extensible_filters import ExtensibleFilters
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.pulsar.placement.selection import Selection
from planner.pulsar.release_rules import RELEASE_RULES
from planner.pulsar.shedding import avg
from planner.pulsar.shedding.needs import lacking_notes
from planner.pulsar.shedding.profile import Gate
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import default_shedder, fallback_shedder, shedder_by_name

_LISTED: Final = (
    "This plan contains ties, decided by the order in which the leader learned of brokers or bundles. No "
    "capture records that order"
)
_GROWN: Final = (
    "This plan contains ties between brokers, decided by the order of the leader's map of brokers. That "
    "order stays different once the map has held more brokers"
)

_DISABLED = ReasonCode("cycle.disabled", "automatic unloading is turned off")
_ALONE = ReasonCode("cycle.single_broker", "fewer than two brokers are active, so no other broker can take bundles")

_UNLOADED = ReasonCode("cycle.unloaded", "unloaded from {broker}; the leader assigns it to {other}", acts=True)
_DRAWN = ReasonCode(
    "cycle.drawn", "unloaded from {broker}; Pulsar draws one of {brokers:.0f} brokers, here {other}", acts=True
)
_HANDED_OVER = ReasonCode("cycle.handed_over", "handed over from {broker} to {other}", acts=True)
_LOOKED_UP = ReasonCode(
    "cycle.looked_up",
    "unloaded from {broker}; the next lookup may choose any of {brokers:.0f} brokers, here {other}",
    acts=True,
)
_NOBODY_TAKES_IT = ReasonCode("cycle.nobody_takes_it", "unloaded from {broker}, but no broker may own it", acts=True)
_EXCLUDED = ReasonCode("cycle.excluded_namespace", "stays: its namespace is in loadBalancerSheddingExcludedNamespaces")
ISOLATED = ReasonCode("cycle.isolated", "stays: the isolation policies allow no other broker for its namespace")
ANTI_AFFINITY = ReasonCode(
    "cycle.anti_affinity",
    "stays: {broker} has as few namespaces of its anti-affinity group ({members:.0f}) as any other broker",
)
_NO_DESTINATION = ReasonCode("cycle.no_destination", "stays: the leader finds no broker for it")
SAME_BROKER = ReasonCode("cycle.same_broker", "stays: the leader would assign it to {broker} again")
DRAWN_AGAIN = ReasonCode(
    "cycle.drawn_again", "stays: Pulsar draws one of {brokers:.0f} brokers for it, here {broker} again"
)
_PLACEMENT_FAILED = ReasonCode("cycle.placement_failed", "stays: placement fails because a broker has no load report")

FRAME_GATES: Final[Mapping[ReasonCode, Gate]] = {
    _EXCLUDED: Gate("the excluded namespaces", (SHEDDING_EXCLUDED_NAMESPACES,)),
    ISOLATED: Gate("the isolation policy"),
    ANTI_AFFINITY: Gate("the anti-affinity group"),
    _NO_DESTINATION: Gate("that no broker may own its bundles"),
    SAME_BROKER: Gate(
        "that placement would assign its bundles to it again",
        beside=(DISTRIBUTE_BUNDLES_EVENLY_ENABLED, PREFER_LATER_VERSIONS),
    ),
    DRAWN_AGAIN: Gate("that placement drew it for its bundles again", passes=True),
    _PLACEMENT_FAILED: Gate("that placement fails for want of a load report"),
}
"""The rules around every strategy that keep what it selected in place; see `Profile.gates`."""


@dataclass(frozen=True, eq=False, slots=True)
class Unload:
    """What becomes of one bundle that the strategy chose.

    Attributes:
        move: As the strategy chose it; `destination` is where it goes, None when it stays or nobody takes it.
        reason: Why it goes there, or which rule keeps it.
        acceptable: Brokers that Pulsar may choose; one when the choice is determined.
        selection: How the destination was found; None when it was not asked for.
    """

    move: Move
    reason: Reason
    acceptable: tuple[str, ...] = ()
    selection: Selection | None = None

    @property
    def carried_out(self) -> bool:
        """Whether the bundle is unloaded at all."""
        return self.reason.code.acts


@dataclass(frozen=True, eq=False)
class CycleDecision:
    """What one cycle does.

    Attributes:
        shedder: The strategy that decides.
        shedding: Its answer; when the cycle does not run at all, no moves and one reason for every broker.
        found: What the user should know about how it came to this, without what other orders of maps would change.
        unloads: What becomes of each bundle of the answer, in the order in which they are unloaded.
        ordered: Finds what other orders would change, which takes as long as deciding twice.
    """

    shedder: Shedder
    shedding: SheddingDecision
    found: tuple[str, ...] = ()
    unloads: tuple[Unload, ...] = ()
    ordered: Callable[[], tuple[str, ...]] = tuple

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about how it came to this; orders of maps are tried when this is first asked."""
        return (*self.found, *self.ordered(), *self.shedding.notes)

    @property
    def moves(self) -> tuple[Move, ...]:
        """The bundles that are unloaded, with their destinations."""
        return tuple(unload.move for unload in self.unloads if unload.carried_out)


def effective_shedder(load_manager: LoadManager, config: Settings) -> tuple[Shedder, tuple[str, ...]]:
    """Return the strategy that a load manager really runs, and a note where that is not the configured one.

    A strategy of the other load manager is replaced, with a line in the log, as is a class that cannot be loaded (see
    `planner.pulsar.manager.class_names`). A modular load manager that does not start with it is shown with its default.
    """
    given = class_name(LOAD_SHEDDING_STRATEGY, config.text(LOAD_SHEDDING_STRATEGY))
    if given.kind != "official" and not (given.kind == "own" and given.ends_like):
        fallback = fallback_shedder(load_manager)
        why = "a class of your own" if given.kind == "own" else "a class that Pulsar cannot load"
        return fallback, (f"{LOAD_SHEDDING_STRATEGY} is {given.given}, {why}: {fallback.name} decides here.",)
    configured = shedder_by_name(given.like)
    if load_manager is configured.load_manager:
        own = (
            f"{LOAD_SHEDDING_STRATEGY} is {given.given}, a class of your own: assumed to decide like {configured.name}."
        )
        return configured, (own,) if given.kind == "own" else ()
    cannot = f"{LOAD_SHEDDING_STRATEGY} is {configured.name}, which the {load_manager} load manager cannot run"
    if load_manager is LoadManager.EXTENSIBLE or config.release.has(REPLACED):
        fallback = fallback_shedder(load_manager)
        return fallback, (f"{cannot}: Pulsar logs an error and uses {fallback.name}.",)
    default = default_shedder(load_manager)
    starts = f"a broker of Pulsar {config.release.name} does not start with it"
    return default, (f"{cannot}: {starts}. The default, {default.name}, is shown.",)


def _pairing_notes(shedder: Shedder, config: Settings) -> tuple[str, ...]:
    """Return a note when one of a pair of strategies is configured without the other."""
    placement, pair = modular.configured_placement(config).name, shedder.profile.paired_placement
    configured = config.text(LOAD_PLACEMENT_STRATEGY).rpartition(".")[2]
    if configured in PAIRED - {pair, placement}:
        note = (
            f"loadBalancerLoadPlacementStrategy is {configured} but loadBalancerLoadSheddingStrategy is not: Pulsar"
            f" {config.release.name} places bundles by {placement} instead."
        )
        return (note,)
    if placement in PAIRED - {pair}:
        note = (
            f"loadBalancerLoadPlacementStrategy is {placement} but loadBalancerLoadSheddingStrategy is not: a broker"
            " with these settings does not start."
        )
        return (note,)
    if pair and placement != pair:
        note = (
            f"loadBalancerLoadSheddingStrategy is {shedder.name}, but bundles are placed by {placement}, "
            "so they do not go to the other broker of the pair. Also set "
            f"loadBalancerLoadPlacementStrategy to {pair}."
        )
        return (note,)
    return ()


def next_cycle(
    snapshot: Snapshot,
    memory: LeaderMemory | None,
    config: Settings,
    seed: int,
    *,
    explain: bool = True,
) -> tuple[LeaderMemory, CycleDecision]:
    """Decide what the next shedding cycle of a cluster does.

    Args:
        snapshot: The cluster; its moment is the clock.
        memory: What the leader remembers; None for a leader that was just elected.
        config: Settings in force.
        seed: Decides where Pulsar draws at random.
        explain: Whether placement gives a reason for every candidate.

    Returns:
        The memory afterwards, and the decision.

    Raises:
        SettingError: A strategy is unknown.
    """
    load_manager = snapshot.info.load_manager
    shedder, notes = effective_shedder(load_manager, config)
    if load_manager is LoadManager.MODULAR:
        notes += _pairing_notes(shedder, config)
    notes += lacking_notes(shedder.name, snapshot, shedder.profile.needs)
    before = memory if memory is not None else elected(shedder, load_manager, config)
    enabled = config.flag(LOAD_BALANCER_ENABLED) and config.flag(SHEDDING_ENABLED)
    if not enabled or int(snapshot.brokers.registered.sum()) < 2:  # noqa: PLR2004 - from one broker to another
        code = _ALONE if enabled else _DISABLED
        every = np.arange(len(snapshot.brokers), dtype=np.int32)
        scores = weighted_usage(snapshot.brokers, config, load_manager)
        notes += (
            *release_notes(snapshot.info.pulsar_version, config, RELEASE_RULES),
            *expression_notes(snapshot.policies),
        )
        return before, CycleDecision(shedder, SheddingDecision((), (block(code, every),), scores), notes)
    oldest = snapshot.info.captured_at_ms - config.integer(SHEDDING_GRACE_PERIOD_MINUTES) * MS_PER_MIN
    shed = before.shedding
    recent = {b: at for b, at in shed.recently_unloaded_bundles.items() if at >= oldest}
    known = shed.with_state(shed.state, recently_unloaded_bundles=recent)
    after, decision = shedder.decide(snapshot, known, config)
    frame = _Frame(snapshot, config, seed, explain=explain)
    chosen = replace(before, shedding=after)
    carry = frame.modular if load_manager is LoadManager.MODULAR else frame.extensible
    remembered, unloads = carry(chosen, decision)
    notes += release_notes(snapshot.info.pulsar_version, config, RELEASE_RULES)
    notes += expression_notes(snapshot.policies)  # afterwards, when it is known which of them take too long

    def ordered() -> tuple[str, ...]:
        other = shedder.decide(the_other_way_round(snapshot), known, config)[1]
        listed = _order_notes(decision, other, _LISTED)
        larger = (
            _order_notes(decision, shedder.decide(one, known, config)[1], _GROWN) for one in once_larger(snapshot)
        )
        return listed + next(filter(None, larger), ())

    return remembered, CycleDecision(shedder, decision, notes, unloads, ordered if explain else tuple)


def the_other_way_round(snapshot: Snapshot) -> Snapshot:
    """Return a cluster whose brokers and bundles are listed in the opposite order, without its topics."""
    tables: dict[str, Any] = {"brokers": snapshot.brokers, "bundles": snapshot.bundles}
    for part, table in tables.items():
        columns = {column.name: getattr(table, column.name)[::-1] for column in column_info(type(table))}
        tables[part] = replace(table, **columns)
    owner = tables["bundles"].owner
    turned = frozen(np.where(owner >= 0, len(snapshot.brokers) - 1 - owner, owner))
    bundles = replace(tables["bundles"], owner=turned)
    other = replace(snapshot, brokers=tables["brokers"], bundles=bundles, topics=make_topics())
    return other.naming(snapshot.bundle_names[::-1], snapshot.bundle_name_hashes[::-1])


def once_larger(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Yield a cluster as a leader visits it that once knew more brokers, so many that its map doubled, once and twice.

    Only where it then visits the brokers in another order.
    """
    size = snapshot.broker_table_size(len(snapshot.brokers))
    for doublings in (1, 2):
        most = (size << (doublings - 1)) * 3 // 4
        grown = replace(snapshot, most_brokers=most).sharing(snapshot)
        if not np.array_equal(grown.broker_map_order, snapshot.broker_map_order):
            yield grown


def _order_notes(decision: SheddingDecision, other: SheddingDecision, what: str) -> tuple[str, ...]:
    """Return a note when a leader whose maps have another order moves others; `what` says which order decides.

    Java's maps visit the keys of one bucket as they were put in, turned round in part where the map grew, and a map
    that has grown never shrinks. That decides between equal ones, and no capture tells it.
    """
    here, there = ([(m.bundle, m.source, m.destination) for m in one.moves] for one in (decision, other))
    of_here, of_there = set(here), set(there)
    mine, yours = [move for move in here if move not in of_there], [move for move in there if move not in of_here]
    if not mine and not yours:
        return ()
    choices = [
        f"{moves[0][0]} from {moves[0][1]}{f' to {moves[0][2]}' if moves[0][2] else ''}" if moves else "nothing"
        for moves in (yours, mine)
    ]
    return (f"{what}. Pulsar may choose differently ({choices[0]} instead of {choices[1]}).",)


def _visited(moves: tuple[Move, ...]) -> list[Move]:
    """Return the moves in the order of the answer's multimap: brokers as a hash map visits them."""
    sources = list(dict.fromkeys(move.source for move in moves))
    by_source: dict[str, list[Move]] = {source: [] for source in sources}
    for move in moves:
        by_source[move.source].append(move)
    order = hash_map_order(java_string_hashes(sources)).tolist() if sources else []
    return [move for place in order for move in by_source[sources[place]]]


@dataclass(frozen=True, eq=False, slots=True)
class _Frame:
    """What the load manager does with a strategy's answer."""

    snapshot: Snapshot
    config: Settings
    seed: int
    explain: bool

    def _reason(self, code: ReasonCode, move: Move, other: str | None = None, **values: float) -> Reason:
        return Reason(code, move.source, move.bundle, values, other)

    def modular(self, memory: LeaderMemory, decision: SheddingDecision) -> tuple[LeaderMemory, tuple[Unload, ...]]:
        """Find a destination for each bundle, one after the other, and unload it there."""
        if not decision.moves:
            return memory, ()
        snapshot = with_known_rates(self.snapshot)
        place = memory.modular
        shared = isinstance(memory.shedding.state, avg.AvgState) and isinstance(place.placement, Bindings)
        if shared:
            place = replace(place, placement=Bindings(memory.shedding.state.broker))
        planned = shared and self.config.release.has(PLANNED_DESTINATIONS)
        if planned:
            plans = {move.bundle: (move.source, move.destination or "") for move in decision.moves}
            place = replace(place, placement=Plans(plans))
        filters = place.filters(snapshot, self.config)
        recent = dict(memory.shedding.recently_unloaded_bundles)
        affinities = dict(place.affinities)
        unloads: list[Unload] = []
        for move in _visited(decision.moves):
            veto = self._veto(move, filters)
            if veto is not None:
                unloads.append(Unload(replace(move, destination=None), veto))
                continue
            try:
                place, found = modular.select_broker(
                    snapshot, move.bundle, place, self.config, self.seed, filters=filters, explain=self.explain
                )
            except PulsarError:
                unloads.append(Unload(replace(move, destination=None), self._reason(_PLACEMENT_FAILED, move)))
                continue
            to, acceptable = found.decision.selected, found.decision.acceptable
            if to is None or to == move.source:
                stays = self._stays(move, len(acceptable))
                unloads.append(Unload(replace(move, destination=None), stays, acceptable, found))
                continue
            drawn = len(acceptable) > 1
            why = self._reason(_DRAWN, move, to, brokers=float(len(acceptable))) if drawn else None
            went = replace(move, destination=to)
            unloads.append(Unload(went, why or self._reason(_UNLOADED, move, to), acceptable, found))
            recent[move.bundle] = snapshot.info.captured_at_ms
            affinities[move.bundle] = to
        shed = replace(memory.shedding, recently_unloaded_bundles=recent)
        if planned:
            place = replace(place, placement=Bindings())
        elif shared:
            shed = shed.with_state(replace(shed.state, broker=place.placement.broker))
        return replace(memory, shedding=shed, modular=replace(place, affinities=affinities)), tuple(unloads)

    def _stays(self, move: Move, acceptable: int) -> Reason:
        """Return why placement leaves a bundle where it is, given how many brokers it chooses among."""
        if acceptable > 1:
            return self._reason(DRAWN_AGAIN, move, brokers=float(acceptable))
        return self._reason(SAME_BROKER if acceptable else _NO_DESTINATION, move)

    def _veto(self, move: Move, filters: ModularFilters) -> Reason | None:
        """Return the rule that keeps a bundle before a destination is looked for."""
        namespace = move.bundle.rpartition("/")[0]
        source = self.snapshot.brokers.position[move.source]
        if namespace in self.config.names(SHEDDING_EXCLUDED_NAMESPACES):
            return self._reason(_EXCLUDED, move)
        if not filters.may_leave_isolation(namespace, source):
            return self._reason(ISOLATED, move)
        verdict = filters.may_leave_group(namespace, source)
        return None if verdict.allowed else self._reason(ANTI_AFFINITY, move, members=float(verdict.members))

    def extensible(self, memory: LeaderMemory, decision: SheddingDecision) -> tuple[LeaderMemory, tuple[Unload, ...]]:
        """Publish every decision; without a destination the next lookup finds one."""
        if not decision.moves:
            return memory, ()
        now = self.snapshot.info.captured_at_ms
        lookups, unloads = memory.extensible, []
        filters: ExtensibleFilters | None = None
        for move in decision.moves:
            if move.destination is not None:
                why = self._reason(_HANDED_OVER, move, move.destination)
                unloads.append(Unload(move, why, (move.destination,)))
                continue
            filters = filters or ExtensibleFilters(self.snapshot, self.config)
            lookups, found = extensible.assign(
                self.snapshot, move.bundle, lookups, self.config, self.seed, filters=filters, explain=self.explain
            )
            to, acceptable = found.decision.selected, found.decision.acceptable
            why = self._reason(_LOOKED_UP, move, to, brokers=float(len(acceptable)))
            if to is None:
                why = self._reason(_NOBODY_TAKES_IT, move)
            unloads.append(Unload(replace(move, destination=to), why, acceptable, found))
        shed = memory.shedding
        bundles = {**shed.recently_unloaded_bundles, **{u.move.bundle: now for u in unloads}}
        brokers = {**shed.recently_unloaded_brokers, **{u.move.source: now for u in unloads}}
        shed = replace(shed, recently_unloaded_bundles=bundles, recently_unloaded_brokers=brokers)
        return replace(memory, shedding=shed, extensible=lookups), tuple(unloads)
