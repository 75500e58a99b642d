"""Which findings follow from which others: one cause is reported, and not what comes of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.load_manager import LoadManager
from planner.explain.cluster_patterns import left_out, of_other_managers
from planner.explain.core_patterns import balanced_with_usual_cores, usage_with_usual_cores
from planner.explain.finding import Finding
from planner.explain.health import is_not_simulated, usage_with_weights_of_1
from planner.explain.held import APART, held_brokers
from planner.explain.isolation import allowed_brokers
from planner.explain.outcome import Outcome
from planner.explain.topic_patterns import topic_dominates
from planner.pulsar.placement.filters import isolate
from planner.simulate.scene import Scene
from planner.simulate.what_if import Target

Scope: TypeAlias = Callable[[Finding, Finding, Outcome], bool]
"""Says of a cause and what may follow from it whether they concern the same thing."""

_SUSPECT_SHARE: Final = 0.1
"""Share of brokers from which on what concerns some of them concerns the cluster."""

_OF_SHEDDING: Final = frozenset(
    {
        "avg_held_back",
        "clients_cut_off",
        "drawn_at_random",
        "ema_lag",
        "fighting_strategies",
        "held_by_gate",
        "idle_broker",
        "idle_bundles_shed",
        "memory_stays",
        "network_stays",
        "ping_pong",
        "strategy_replaced",
        "threshold_never_reached",
        "threshold_no_longer_reached",
        "unload_storm",
        "usage_not_compared",
    }
)
"""Findings about what is shed and where it goes."""

_OF_THRESHOLD: Final = frozenset({"threshold_never_reached", "threshold_no_longer_reached"})
"""Findings about the threshold of the strategy that decides."""


def _anywhere(cause: Finding, other: Finding, case: Outcome) -> bool:
    del cause, other, case
    return True


def _brokers(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a broker; many brokers, or a finding without any, concern the cluster."""
    many = len(cause.brokers) >= _SUSPECT_SHARE * len(case.series.brokers)
    return many or not other.brokers or not set(cause.brokers).isdisjoint(other.brokers)


def _first_broker(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether the other finding is about a broker of the cause before all others."""
    del case
    return bool(other.brokers) and other.brokers[0] in cause.brokers


def _doubtful(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether wrong measurements make the other finding doubtful: that all are full is not, if the others are.

    A measurement by which nothing is decided, such as a heap without weight or a clock, makes nothing doubtful.
    """
    if cause.severity == "low":
        return False
    if other.code == "used_by_others":
        return _first_broker(cause, other, case)
    if other.code != "out_of_capacity":
        return _brokers(cause, other, case)
    sure = [at for at, name in enumerate(case.series.brokers) if name not in cause.brokers]
    usage = case.reported_usage[-1][sure]
    limit = case.limit
    return not np.isfinite(usage).any() or float(np.nanmean(usage)) < limit


def _no_room(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether clients are disconnected because of it; where some broker has room, a calmer strategy helps too."""
    if other.code not in {"clients_cut_off", "ping_pong", "unload_storm"}:
        return True
    return len(cause.brokers) == int(case.series.present[-1].sum())


def _by_the_weight(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether brokers are neither full nor apart without the weights that are too high."""
    config = case.trace.settings
    least, mean, highest = usage_with_weights_of_1(case.trace.start, config, cause)
    limit = case.limit
    if other.code in {"out_of_capacity", "policy_full"}:
        return mean < limit
    return highest < limit and highest - least < APART


def _by_the_cores(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether brokers are neither full nor apart with the usual cores, or the other finding is about one of few."""
    limit = case.limit
    if other.code == "out_of_capacity":
        return balanced_with_usual_cores(case) < limit
    usage = usage_with_usual_cores(case)
    highest, least = float(np.nanmax(usage)), float(np.nanmin(usage))
    return (highest <= limit and highest - least < APART) or _first_broker(cause, other, case)


def _by_the_average(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether the strategy that runs decides by the average."""
    del other
    return not set(cause.settings).isdisjoint(case.profile.bounds)


def _by_memory(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a broker; more brokers help where those are full that memory does not fill."""
    if other.code != "out_of_capacity":
        return _brokers(cause, other, case)
    return set(other.brokers) <= set(cause.brokers)


def _another_decides(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether a fallback decides by other thresholds; TransferShedder, if extensible, decides in any case.

    A load manager that is not simulated decides everything.
    """
    if is_not_simulated(cause):
        return True
    if cause.severity == "low" or other.code not in {*_OF_THRESHOLD, "fighting_strategies", "strategy_replaced"}:
        return False
    return other.code not in _OF_THRESHOLD or case.load_manager is LoadManager.MODULAR


def _own_decides(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether an own class decides what is shed, so that what another one would decide is no finding.

    Under the extensible load manager it may be a name that cannot be loaded as well, and TransferShedder decides then.
    """
    del other
    return is_not_simulated(cause) and case.load_manager is LoadManager.MODULAR


def _hidden(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether a resource that does not count is why no score reaches the threshold: a broker is full by it."""
    del case
    return other.code not in _OF_THRESHOLD or cause.severity == "high"


def _same_setting(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether a value of the cause is what the gate waits for, of which no single one opens it at once."""
    del case
    return (
        bool(cause.changes) and not (other.changes or other.edits) and not set(cause.changes).isdisjoint(other.settings)
    )


def _bundles(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a bundle, or one that came of it by a split."""
    del case
    held = [_range(name) for name in cause.bundles]
    return any(
        (space == inner and low <= start and end <= high) or (space == inner and start <= low and high <= end)
        for inner, start, end in map(_range, other.bundles)
        for space, low, high in held
    )


def _namespace(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a namespace."""
    del case
    mine = {bundle.rpartition("/")[0] for bundle in cause.bundles}
    return any(bundle.rpartition("/")[0] in mine for bundle in other.bundles)


def _namespace_or_gate(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a namespace; of a broker that no value lets go of its bundles, whether all are of it."""
    if other.code != "held_by_gate":
        return _namespace(cause, other, case)
    if other.changes or other.edits:
        return False
    mine = {bundle.rpartition("/")[0] for bundle in cause.bundles}
    held = case.last.bundles_of(case.last.brokers.position[other.brokers[0]]).tolist()
    return all(case.last.bundle_names[at].rpartition("/")[0] in mine for at in held)


def _bundles_or_gate(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a bundle; of a gate, whether a policy leaves no broker to all that it holds back."""
    if other.code != "held_by_gate":
        return _bundles(cause, other, case)
    held = {bundle.rpartition("/")[0] for bundle in other.bundles}
    mine = {bundle.rpartition("/")[0] for bundle in cause.bundles}
    return cause.severity == "high" and (held <= mine if held else _namespace_or_gate(cause, other, case))


def _no_value_opens(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a broker whose gate no single value opens, though a remedy of the cause may."""
    if not cause.changes or other.edits or not _brokers(cause, other, case):
        return False
    return not other.changes or (len(other.changes) > 1 and _opens(cause, other, case))


def _opens(cause: Finding, gate: Finding, case: Outcome) -> bool:
    """Say whether the remedy of a cause opens a gate."""
    held = next((one for one in held_brokers(case) if one.broker == gate.brokers[0]), None)
    if held is None:
        return False
    scene = Scene.of_running(case.trace, held.cycle)
    return Target(broker=held.broker).may_be_shed_under(scene, scene.config.changed(**cause.changes))


def _alone_there(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether a topic that no split divides is why no value opens the gate of its broker, or nothing is shed.

    It is also why traffic moves back and forth where only its bundle came back.
    """
    if other.code == "idle_broker":
        return not case.summary.shed and any(map(partial(topic_dominates, case), cause.brokers[:1]))
    if other.code == "ping_pong":
        return bool(other.bundles) and set(other.bundles) <= set(cause.bundles)
    if other.changes or other.edits or not other.brokers or other.brokers[0] not in cause.brokers:
        return False
    return topic_dominates(case, other.brokers[0])


def _nowhere_else(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether brokers that refuse topics leave no other one, or are the least used one of each pair."""
    if other.code == "idle_broker":
        return _first_broker(cause, other, case)
    if other.changes or other.edits or not other.brokers:
        return False
    view = case.trace.cycles[-1].view
    table = view.brokers
    if case.load_manager is LoadManager.EXTENSIBLE:
        usage = case.reported_usage[-1]
        return bool(np.isfinite(usage).any()) and case.series.brokers[int(np.nanargmin(usage))] in cause.brokers
    here = [name for name, there in zip(table.name, table.registered.tolist(), strict=True) if there]
    mine = [view.bundle_names[at] for at in view.bundles_of(table.position[other.brokers[0]]).tolist()]
    spaces = {bundle.rpartition("/")[0] for bundle in other.bundles or mine}
    left = [isolate(view.policies, space, here, lambda name: name not in cause.brokers) for space in spaces]
    return bool(left) and all(one.unable and set(one.candidates) <= {other.brokers[0]} for one in left)


def _left_without(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether brokers on which nothing is placed, for their release or load manager, leave no other one."""
    empty = tuple(dict.fromkeys((*left_out(case), *of_other_managers(case))))
    return bool(empty) and _nowhere_else(replace(cause, brokers=empty), other, case)


def _brokers_or_idle(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a broker; others stay idle while a gate that can be opened lets nothing be shed."""
    if other.code != "idle_broker":
        return _brokers(cause, other, case)
    return bool(cause.changes or cause.edits or _by_policy(cause, case)) and not case.summary.shed


def _by_policy(gate: Finding, case: Outcome) -> bool:
    """Say whether isolation policies leave the bundles that a gate holds no other broker."""
    spaces = {bundle.rpartition("/")[0] for bundle in gate.bundles}
    return bool(spaces) and all(set(allowed_brokers(case.last, space)) <= set(gate.brokers) for space in spaces)


def _namespace_gate_or_idle(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a namespace; a broker stays idle for want of bundles where there are fewer of them."""
    if other.code != "idle_broker":
        return _namespace_or_gate(cause, other, case)
    kept = internal_bundles(case.last)
    return int((~kept & (case.last.bundles.topics > 0)).sum()) < len(case.last.brokers)


def _split_or_full(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether both concern a bundle, or one that came of it by a split; a full namespace is full for all."""
    return (_namespace if other.code == "namespace_full" else _bundles)(cause, other, case)


def _of_limit(cause: Finding, other: Finding, case: Outcome) -> bool:
    """Say whether a limit of bundles that overflows is the one that they exceed; every bundle exceeds one below 0."""
    del case
    return cause.severity == "high" or not set(cause.settings).isdisjoint(other.settings)


def _range(bundle: str) -> tuple[str, int, int]:
    space, _, ends = bundle.rpartition("/")
    low, _, high = ends.partition("_")
    try:
        return space, int(low, 16), int(high, 16)
    except ValueError:  # a bundle that a test or a log calls otherwise
        return bundle, 0, 0


_OF_WHAT_STAYS: Final = frozenset(
    {
        "clients_cut_off",
        "fighting_strategies",
        "held_by_gate",
        "idle_bundles_shed",
        "out_of_capacity",
        "ping_pong",
        "unload_storm",
    }
)
"""What follows where a broker is above its threshold by something that no bundle takes along."""

EXPLAINS: Final[Mapping[str, tuple[frozenset[str], Scope]]] = {
    "other_load_manager": (_OF_SHEDDING | {"split_cascade", "split_refused", "own_class"}, _anywhere),
    "own_class": (_OF_SHEDDING, _own_decides),
    "class_not_loaded": (_OF_SHEDDING, _another_decides),
    "strategy_replaced": (_OF_THRESHOLD, _another_decides),
    "impossible_measurement": (
        (_OF_SHEDDING | {"out_of_capacity", "policy_full", "used_by_others"})
        - {"strategy_replaced", "fighting_strategies"},
        _doubtful,
    ),
    "weight_above_one": (
        _OF_SHEDDING | {"fewer_cores", "hot_topic", "key_skew", "out_of_capacity", "policy_full"},
        _by_the_weight,
    ),
    "fewer_cores": (
        (_OF_SHEDDING | {"out_of_capacity"})
        - {"fighting_strategies", "idle_broker", "memory_stays", "network_stays", "strategy_replaced"},
        _by_the_cores,
    ),
    "report_missing": (frozenset({"idle_broker"}), _first_broker),
    "more_cores": (frozenset({"idle_broker"}), _first_broker),
    "used_by_others": (
        _OF_THRESHOLD | {"ema_lag", "fewer_cores", "held_by_gate"},
        _first_broker,
    ),
    "memory_stays": (_OF_WHAT_STAYS, _by_memory),
    "network_stays": (_OF_WHAT_STAYS | {"drawn_at_random"}, _by_memory),
    "out_of_capacity": (
        frozenset(
            {
                "avg_held_back",
                "clients_cut_off",
                "drawn_at_random",
                "ema_lag",
                "held_by_gate",
                "idle_broker",
                "ping_pong",
                "threshold_never_reached",
                "threshold_no_longer_reached",
                "unload_storm",
                "usage_not_compared",
            }
        ),
        _no_room,
    ),
    "unlike_machines": (frozenset({"held_by_gate", "idle_broker"}), _left_without),
    "topics_refused": (frozenset({"held_by_gate", "idle_broker"}), _nowhere_else),
    "topics_full": (frozenset({"held_by_gate", "idle_broker"}), _nowhere_else),
    "policy_full": (
        frozenset(
            {
                "clients_cut_off",
                "drawn_at_random",
                "ema_lag",
                "fighting_strategies",
                "held_by_gate",
                "ping_pong",
                "unload_storm",
            }
        ),
        _brokers,
    ),
    "threshold_never_acts": (_OF_THRESHOLD, _anywhere),
    "limit_overflows": (
        frozenset({"namespace_full", "split_cascade", "split_refused", "topic_above_limit"}),
        _of_limit,
    ),
    "load_data_expires": (frozenset({"held_by_gate"}), _same_setting),
    "average_frozen": (frozenset({"ema_lag"}), _anywhere),
    "average_runs_away": (
        _OF_SHEDDING - {"fighting_strategies", "memory_stays", "network_stays", "strategy_replaced"},
        _by_the_average,
    ),
    "share_above_one": (frozenset({"clients_cut_off", "ping_pong", "unload_storm"}), _anywhere),
    "resource_not_counted": (_OF_THRESHOLD | {"no_resource_counts"}, _hidden),
    "avg_held_back": (frozenset({"held_by_gate"}), _no_value_opens),
    "key_skew": (frozenset({"held_by_gate", "idle_broker", "ping_pong"}), _alone_there),
    "hot_topic": (frozenset({"held_by_gate", "idle_broker", "ping_pong"}), _alone_there),
    "held_by_gate": (
        _OF_THRESHOLD | {"avg_held_back", "idle_broker"},
        _brokers_or_idle,
    ),
    "idle_bundles_shed": (frozenset({"unload_storm"}), _bundles),
    "bundle_count_too_low": (
        frozenset({"bundle_count_too_high", "held_by_gate", "idle_broker", "namespace_full"}),
        _namespace_gate_or_idle,
    ),
    "split_cascade": (frozenset({"namespace_full", "topic_above_limit"}), _split_or_full),
    "topic_above_limit": (frozenset({"namespace_full"}), _bundles),
    "policy_matches_no_broker": (frozenset({"against_policy", "held_by_gate"}), _bundles_or_gate),
}
"""Causes, in the order in which they are asked: the codes that follow from each, and when."""


def without_consequences(found: Sequence[Finding], case: Outcome) -> list[Finding]:
    """Return findings without those that follow from another one; a consequence explains nothing itself.

    The first cause of each keeps it in `Finding.explains`.
    """
    left = list(found)
    for code, (follow, same) in EXPLAINS.items():
        causes = [finding for finding in left if finding.code == code]
        why = [next((c for c in causes if one.code in follow and same(c, one, case)), None) for one in left]
        gone = [(of, (one, *one.explains)) for one, of in zip(left, why, strict=True) if of is not None]
        told = [tuple(each for of, those in gone if of is cause for each in those) for cause in left]
        left = [
            replace(one, explains=(*one.explains, *more)) if more else one
            for one, of, more in zip(left, why, told, strict=True)
            if of is None
        ]
    return left
