"""Failure patterns of shedding and placement."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
    HISTORY_RESOURCE_PERCENTAGE,
    LOAD_BALANCER_ENABLED,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    SHEDDING_ENABLED,
)
from planner.cluster.text import count, percent
from planner.cluster.units import MS_PER_MIN
from planner.explain.also_needed import with_what_else
from planner.explain.finding import Finding, Severity, listed
from planner.explain.gate_patterns import isolated_behind
from planner.explain.held import APART, held_brokers
from planner.explain.outcome import Outcome
from planner.explain.setting_rules import strategy_not_run
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.manager.pairing import PAIRED, offered_placements, placement_beside
from planner.pulsar.placement.modular import configured_placement
from planner.pulsar.placement.registry import placement_by_name
from planner.pulsar.shedding.profile import NeverReached, Quiet, Remedy, WouldShed
from planner.pulsar.shedding.registry import SHEDDERS, default_shedder, has_shedder, offered_shedders
from planner.simulate.moves import THRASHING_WINDOW_MIN, thrashing_percent
from planner.simulate.trace import cycle_seed

_STORM_SHARE = 0.2
_STORM_BUNDLES = 5
_THRASHING_PERCENT = 25.0
_IDLE_SHARE = 0.5
_IDLE_CYCLES = 5
_BUSY = 0.1
"""Average usage from which on a broker without load is a loss."""
_JOINED_WITHIN_MIN = 120
_LAG = 0.1
_LAG_CYCLES = 3
_QUIET = 10
"""Cycles without anything shed from which on nothing more is to be expected."""
_SPREAD = 0.15
_WRONG_SHARE = 0.2
_PLACED_BY: Mapping[str, str] = {"usage": "averaged_usage", "msg_rate": "msg_rate"}
"""The measure of placement that is nearest to each measure of shedding."""
_ASKED_AGAIN = 24
"""Cycles without moves that are decided again to see why."""


def unload_storm(case: Outcome) -> Iterator[Finding]:
    """So much is shed at once that a good part of the clients reconnects together."""
    total = np.nansum(case.series.throughput_bytes_per_s, axis=1)
    shed = [
        [e for e in cycle.events if e.kind == "shed" and not case.is_internal(e.bundle)] for cycle in case.trace.cycles
    ]
    size = np.array([sum(e.throughput_bytes_per_s for e in events) for events in shed])
    share = np.divide(size, total, out=np.zeros(len(total)), where=total > 0)
    storms = np.flatnonzero((share >= _STORM_SHARE) & (np.array([len(events) for events in shed]) >= _STORM_BUNDLES))
    if not len(storms):
        return
    worst = int(storms[share[storms].argmax()])
    events = shed[worst]
    clients = sum(event.producers + event.consumers for event in events)
    needed = bool(all(share[at] <= _uneven_share(case, int(at)) for at in storms))
    evidence = (
        f"Cycle {worst + 1} sheds {len(events)} bundles with {share[worst] * 100:.0f} % of the cluster's throughput"
        f" and disconnects {count(clients, 'client')}. Storms occur in {len(storms)} of {count(len(share), 'cycle')}."
    )
    if needed:
        uneven = _uneven_share(case, worst)
        evidence += f" To even out the brokers takes {uneven * 100:.0f} % of the throughput, so that much had to move."
    profile, mean = case.profile, float(np.nanmean(case.series.usage[worst]))
    if profile.threshold and not profile.above_average and mean >= profile.threshold(case.trace.settings):
        evidence += f" The average usage, {mean * 100:.0f} %, is itself above the threshold, so no broker has room."
    calmer = profile.calmer(case.trace.settings)
    heaviest = sorted(events, key=lambda e: -e.throughput_bytes_per_s)
    yield Finding(
        code="unload_storm",
        title="Unload storm",
        evidence=evidence,
        remedy=calmer.words,
        severity="medium" if needed else "high",
        brokers=tuple(dict.fromkeys(e.source for e in heaviest)),
        bundles=tuple(e.bundle for e in heaviest),
        settings=tuple(calmer.changes),
        changes=calmer.changes,
    )


def _uneven_share(case: Outcome, cycle: int) -> float:
    """Return the share of the cluster's throughput that brokers carry beyond the average usage of a cycle."""
    usage, carried = case.series.usage[cycle], np.nan_to_num(case.series.throughput_bytes_per_s[cycle])
    beyond = np.nan_to_num(np.maximum(usage - float(np.nanmean(usage)), 0.0))
    part = np.divide(beyond, usage, out=np.zeros(len(usage)), where=np.nan_to_num(usage) > 0)
    return float((part * carried).sum() / carried.sum()) if carried.sum() > 0 else 0.0


def idle_bundles_shed(case: Outcome) -> Iterator[Finding]:
    """Most of the bundles that are shed carry nothing: their clients reconnect for no gain."""
    shed = [
        [e for e in cycle.events if e.kind == "shed" and not case.is_internal(e.bundle)] for cycle in case.trace.cycles
    ]
    idle = [[e for e in events if not e.throughput_bytes_per_s] for events in shed]
    worst = max(range(len(idle)), key=lambda at: len(idle[at]))
    alike, whole = len(idle[worst]), len(shed[worst])
    if alike < _STORM_BUNDLES or alike * 2 < whole:
        return
    clients = sum(event.producers + event.consumers for event in idle[worst])
    of_use = max(1, *(len(events) - len(none) for events, none in zip(shed, idle, strict=True)))
    limit = {case.profile.most_bundles: of_use} if case.profile.most_bundles else {}
    yield Finding(
        code="idle_bundles_shed",
        title=f"{case.shedder} sheds bundles without traffic",
        evidence=(
            f"{alike} of the {whole} bundles shed in cycle {worst + 1} carry no traffic. They move no load, and"
            f" disconnect {count(clients, 'client')}."
        ),
        remedy=(
            f"Set {case.profile.most_bundles} to {of_use}: bundles with traffic are chosen first."
            if limit
            else "Use fewer bundles where most have no traffic. Pulsar cannot merge them: recreate the namespace."
        ),
        severity="medium" if clients else "low",
        brokers=tuple(dict.fromkeys(event.source for event in idle[worst])),
        bundles=tuple(event.bundle for event in idle[worst]),
        settings=tuple(limit),
        changes=limit,
    )


def ping_pong(case: Outcome) -> Iterator[Finding]:
    """Traffic is shed from a broker that shedding had just given it to."""
    back = [entry for entry in case.ledger if entry.by_shedding and not case.is_internal(entry.bundle)]
    moves = [move for move in case.moves if not case.is_internal(move.bundle)]
    thrashing = thrashing_percent(moves)
    if not back and thrashing < _THRASHING_PERCENT:
        return
    evidence = (
        f"{thrashing:.0f} % of the shed traffic left a broker that had received as much from shedding within the"
        f" previous {THRASHING_WINDOW_MIN:.0f} min."
    )
    if back:
        first = back[0]
        evidence += (
            f" Bundles returned {count(len(back), 'time')} to a broker that had shed them. The first returned to"
            f" {first.broker} after {first.away_min:.0f} min."
        )
    calmer = case.profile.calmer(case.trace.settings)
    sources: dict[str, float] = {}
    for move in moves:
        if move.kind == "shed":
            sources[move.source] = sources.get(move.source, 0.0) + move.throughput_bytes_per_s
    yield Finding(
        code="ping_pong",
        title="Ping-pong: traffic moves back and forth",
        evidence=evidence,
        remedy=f"{calmer.words} Use a placement strategy that compares the same measure as the shedding strategy.",
        severity="high" if thrashing >= _THRASHING_PERCENT else "medium",
        brokers=tuple(sorted(sources, key=lambda b: -sources[b])),
        bundles=tuple(dict.fromkeys(entry.bundle for entry in back)),
        settings=tuple(dict.fromkeys((*calmer.changes, LOAD_PLACEMENT_STRATEGY))),
        changes=calmer.changes,
    )


def idle_broker(case: Outcome) -> Iterator[Finding]:
    """A broker that joined or was restarted stays nearly empty."""
    series = case.series
    if len(series.at_ms) < _IDLE_CYCLES:
        return
    tail = series.usage[-_IDLE_CYCLES:]
    average = mean_known(tail)[:, np.newaxis]
    with np.errstate(invalid="ignore"):
        idle = (tail < average * _IDLE_SHARE).all(axis=0)
    idle &= series.present[-1] & bool(average[-1, 0] >= _BUSY)
    names = [series.brokers[i] for i in np.flatnonzero(idle).tolist() if series.brokers[i] in _joined(case)]
    if not names:
        return
    place = {name: i for i, name in enumerate(series.brokers)}
    names.sort(key=lambda name: float(tail[-1, place[name]]))
    worst, mean = float(tail[-1, place[names[0]]]), float(average[-1, 0])
    moved = sum(1 for move in case.moves if move.destination in names)
    known = any(name in _joined(case, guessed=False) for name in names)
    serve = f"serve{'s' if len(names) == 1 else ''} nothing; the capture does not say when it started"
    evidence = (
        f"{listed(names)} {'joined or came back' if known else serve}. At the end, the usage of {names[0]} is"
        f" {worst * 100:.0f} %, compared with an average of {mean * 100:.0f} %. Such brokers received"
        f" {count(moved, 'bundle')} in {count(len(series.at_ms), 'cycle')}."
    )
    remedy = case.profile.for_idle_brokers(case.trace.settings, would_shed_now(case))
    yield Finding(
        code="idle_broker",
        title="A broker stays idle after its start" if known else "A broker stays idle",
        evidence=evidence,
        remedy=remedy.words,
        severity="medium",
        brokers=tuple(names),
        settings=tuple(remedy.changes),
        changes=remedy.changes,
    )


def _joined(case: Outcome, *, guessed: bool = True) -> frozenset[str]:
    """Return the brokers that joined, or started shortly before the beginning.

    Args:
        case: The simulation.
        guessed: Also those without bundles whose start nobody knows.
    """
    start = case.trace.start
    joined = {event.source for event in case.trace.events if event.kind == "broker_added"}
    recent = start.info.captured_at_ms - _JOINED_WITHIN_MIN * MS_PER_MIN
    started, bundles = start.brokers.started_at_ms, start.bundle_counts()
    lately = (started >= recent) & (started.min(initial=recent) < recent)  # not where the whole cluster was started
    fresh = lately & (started > 0) | ((started <= 0) & (bundles == 0) & guessed)
    return frozenset(joined | {start.brokers.name[i] for i in np.flatnonzero(fresh).tolist()})


def threshold_never_reached(case: Outcome) -> Iterator[Finding]:
    """Brokers stay apart, or one is above the limit, and no score reaches the threshold; or none does so any more."""
    act, cycles = case.profile.for_never_reached, case.trace.cycles
    quiet = next((at + 1 for at in reversed(range(len(cycles))) if cycles[at].unloads), 0)
    if act is None or (quiet and len(cycles) - quiet < _QUIET):
        return
    usage = case.series.usage[-1]
    scores = case.scores[quiet:]
    scores = scores[np.isfinite(scores).any(axis=1)]
    if np.isnan(usage).all() or not len(scores):  # nobody is there, or nobody is known
        return
    limit = case.limit
    hot = bool(np.nanmax(usage) > limit > np.nanmean(usage))
    far = float(np.nanmax(usage) - np.nanmin(usage)) >= 2 * _SPREAD
    if float(np.nanmax(usage) - np.nanmin(usage)) < _SPREAD and not hot:
        return
    limits, average = limits_of(case, scores), mean_known(scores)
    with np.errstate(invalid="ignore"):
        if (scores >= limits[:, np.newaxis]).any():
            return
    least = average if np.isnan(limits).all() else limits
    nearest = int(np.nanargmin(least - np.nanmax(scores, axis=1)))
    highest = float(np.nanmax(scores[nearest]))
    order = np.argsort(-np.nan_to_num(usage, nan=-1.0), kind="stable").tolist()
    idle = f"after cycle {quiet}" if quiet else f"in {count(len(cycles), 'cycle')}"
    evidence = (
        f"Usage ranges from {np.nanmin(usage) * 100:.0f} % to {np.nanmax(usage) * 100:.0f} %, but nothing is shed"
        f" {idle}: the highest score was {highest * 100:.1f} %, the"
        f" {'average' if np.isnan(limits[nearest]) else 'threshold'} {least[nearest] * 100:.1f} %."
    )
    remedy = act(
        NeverReached(
            config=case.trace.settings,
            above=highest - float(average[nearest]),
            average=float(average[-1]),
            scores=scores[-1][np.isfinite(scores[-1])],
            would_shed=would_shed_now(case),
        )
    )
    if remedy is None:
        return
    severity: Severity = "high" if hot else "low" if quiet and not far else "medium"
    if (policy := isolated_behind(case, remedy.changes, severity)) is not None:
        yield policy
        return
    remedy = with_what_else(remedy, case, would_shed_now(case))
    yield Finding(
        code="threshold_no_longer_reached" if quiet else "threshold_never_reached",
        title=f"The threshold is {'no longer' if quiet else 'never'} reached",
        evidence=evidence,
        remedy=remedy.words,
        severity=severity,
        brokers=tuple(case.series.brokers[i] for i in order if case.series.present[-1, i]),
        settings=tuple(remedy.changes),
        changes=remedy.changes,
    )


def would_shed_now(case: Outcome) -> WouldShed:
    """Return what says whether the last cycle sheds under other settings."""
    last = case.trace.cycles[-1]
    seed = cycle_seed(case.trace.scenario.seed, last.index)
    return lambda config: bool(next_cycle(last.view, last.memory, config, seed, explain=False)[1].moves)


def limits_of(case: Outcome, scores: FloatArray) -> FloatArray:
    """Return the score from which the strategy sheds in each cycle; NaN without a threshold. Shape (cycles,)."""
    profile = case.profile
    if profile.threshold is None:
        return np.full(len(scores), np.nan)
    threshold = profile.threshold(case.trace.settings)
    limits: FloatArray = mean_known(scores) * profile.above_average + threshold
    return limits


def mean_known(rows: FloatArray) -> FloatArray:
    """Return the mean of what is known in each row; NaN where nothing is. Shape (rows,)."""
    known = np.isfinite(rows).sum(axis=1)
    means: FloatArray = np.divide(np.nansum(rows, axis=1), known, out=np.full(len(rows), np.nan), where=known > 0)
    return means


def ema_lag(case: Outcome) -> Iterator[Finding]:
    """The score that decides trails what the brokers use by far."""
    if not case.profile.averaged:
        return
    gap = case.scores - case.reported_usage
    with np.errstate(invalid="ignore"):
        late = np.abs(gap) >= _LAG
    runs = _longest_runs(late)
    which = np.flatnonzero(runs >= _LAG_CYCLES)
    if not len(which):
        return
    which = which[np.argsort(-runs[which], kind="stable")]
    broker = int(which[0])
    cycle = int(np.nanargmax(np.where(late[:, broker], np.abs(gap[:, broker]), -1.0)))
    score, usage = float(case.scores[cycle, broker]), float(case.reported_usage[cycle, broker])
    history = case.trace.settings.number(HISTORY_RESOURCE_PERCENTAGE)
    evidence = (
        f"In cycle {cycle + 1}, {case.series.brokers[broker]} has a usage of {usage * 100:.0f} % but a score of"
        f" {score * 100:.0f} %. The two differ by {_LAG * 100:.0f} points or more for"
        f" {count(int(runs[broker]), 'consecutive cycle')}."
    )
    wrong = _wrong_verdicts(case)
    if wrong:
        evidence += f" In {count(wrong, 'case')}, the score of a broker was on the wrong side of the threshold."
    better = max(round(history - 0.4, 2), 0.0)
    yield Finding(
        code="ema_lag",
        title="Scores lag behind usage",
        evidence=evidence,
        remedy=(
            f"Lower {HISTORY_RESOURCE_PERCENTAGE} from {history:g}. Each cycle adds only {(1 - history) * 100:.0f} % of"
            f" the new usage, so half of a change takes {_half_life(history)} cycles to show."
        ),
        severity="medium" if wrong else "low",
        brokers=tuple(case.series.brokers[i] for i in which.tolist()),
        settings=(HISTORY_RESOURCE_PERCENTAGE,),
        changes={HISTORY_RESOURCE_PERCENTAGE: better},
    )


def lag_decides(case: Outcome) -> bool:
    """Say whether the last cycle would shed other bundles if scores were usage as it is measured."""
    last, config = case.trace.cycles[-1], case.trace.settings
    seed = cycle_seed(case.trace.scenario.seed, last.index)
    as_is, at_once = (
        next_cycle(last.view, last.memory, one, seed, explain=False)[1].moves
        for one in (config, config.changed(**{HISTORY_RESOURCE_PERCENTAGE: 0.0}))
    )
    return {move.bundle for move in as_is} != {move.bundle for move in at_once}


def _half_life(history: float) -> str:
    if history >= 1:
        return "infinitely many"
    return f"{max(math.ceil(math.log(0.5) / math.log(history)), 1) if history > 0 else 1}"


def _longest_runs(flags: BoolArray) -> Int64Array:
    """Return the longest run of true values in each column."""
    longest = np.zeros(flags.shape[1], dtype=np.int64)
    run = np.zeros(flags.shape[1], dtype=np.int64)
    for row in flags:
        run = np.where(row, run + 1, 0)
        longest = np.maximum(longest, run)
    return longest


def _wrong_verdicts(case: Outcome) -> int:
    """Return how often a broker stands on the other side of the threshold than its usage does."""
    with np.errstate(invalid="ignore"):
        above = [values >= limits_of(case, values)[:, np.newaxis] for values in (case.scores, case.reported_usage)]
    return int((above[0] != above[1]).sum())


def held_back(case: Outcome) -> Iterator[Finding]:
    """The strategy was to act often enough, and nothing moves because the share is below its minimums."""
    if case.profile.held_back is None:
        return
    quiet = [cycle.index for cycle in case.trace.cycles if not cycle.unloads][:_ASKED_AGAIN]
    names = {index: case.trace.cycles[index].view.brokers.name for index in quiet}
    quiet_cycles = (Quiet(index + 1, names[index], case.decision(index).shedding) for index in quiet)
    held = case.profile.held_back(quiet_cycles, case.trace.settings)
    if held is None:
        return
    yield Finding(
        code="avg_held_back",
        title=held.title or f"{case.shedder} sheds nothing because of its minimums",
        evidence=held.evidence,
        remedy=held.remedy.words,
        severity="medium",
        brokers=held.brokers,
        settings=held.settings,
        changes=held.remedy.changes,
    )


def strategy_replaced(case: Outcome) -> Iterator[Finding]:
    """The strategy configured is not the one that runs."""
    yield from strategy_not_run(case.trace.settings, case.load_manager)


def fighting_strategies(case: Outcome) -> Iterator[Finding]:
    """Shedding and placement judge by different measures: what one moves, the other puts in the wrong place."""
    if case.load_manager is LoadManager.MODULAR:
        yield from tuple(_half_a_pair(case)) or _misplaced(case)


def _half_a_pair(case: Outcome) -> Iterator[Finding]:
    placement, pair = configured_placement(case.trace.settings).name, case.profile.paired_placement
    if placement == pair or not (pair or placement in PAIRED):
        return
    elsewhere = [
        u
        for c in case.trace.cycles
        for u in c.unloads
        if u.reason.other is not None and u.move.reason.other is not None and not case.is_internal(u.move.bundle)
    ]
    missed = sum(1 for u in elsewhere if u.move.reason.other != u.move.destination)
    both = next(one for one in SHEDDERS if one.profile.paired_placement == (pair or placement))
    config = case.trace.settings
    if not pair:
        runs = next(one for one in SHEDDERS if one.name == case.shedder)
        beside = placement_by_name(placement_beside(runs, config, config), case.load_manager).java_class
        remedy = Remedy(f"Set {LOAD_PLACEMENT_STRATEGY} to {beside}.")  # nothing to compare it with
    elif has_shedder(config.release, both):
        remedy = Remedy(
            f"Set both {LOAD_SHEDDING_STRATEGY} and {LOAD_PLACEMENT_STRATEGY} to {both.java_class}.",
            {LOAD_SHEDDING_STRATEGY: both.java_class, LOAD_PLACEMENT_STRATEGY: both.java_class},
        )
    else:
        usual = _default_pair(case)
        words = f"Pulsar {config.release.name} has no {both.name}: {usual.words[:1].lower()}{usual.words[1:]}"
        remedy = Remedy(words, usual.changes)
    evidence = (
        f"{placement} places, but {case.shedder} sheds: brokers with these settings do not start. Those that run were"
        " started with others, and a restart fails."
    )
    if pair:
        went = f"{missed} of {count(len(elsewhere), 'bundle')} did not go to the other broker of their pair"
        if not missed:
            here = ", though none went elsewhere here" if elsewhere else ""
            went = f"nothing makes bundles go to the other broker of their pair{here}"
        evidence = f"{case.shedder} sheds, but {placement} places: {went}."
    yield Finding(
        code="fighting_strategies",
        title=f"{both.name} is configured for only one of shedding and placement",
        evidence=evidence,
        remedy=remedy.words,
        severity="medium" if pair and elsewhere and not missed else "high",
        settings=(LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY),
        changes=remedy.changes,
    )


def _default_pair(case: Outcome) -> Remedy:
    """Return the settings of the strategy that Pulsar has by default, and of a placement that goes with it."""
    other, config = default_shedder(case.load_manager), case.trace.settings
    placed = placement_by_name(placement_beside(other, config, config), case.load_manager)
    return Remedy(
        f"Set {LOAD_SHEDDING_STRATEGY} to {other.java_class} and {LOAD_PLACEMENT_STRATEGY} to {placed.java_class}.",
        {LOAD_SHEDDING_STRATEGY: other.java_class, LOAD_PLACEMENT_STRATEGY: placed.java_class},
    )


def _misplaced(case: Outcome) -> Iterator[Finding]:
    """Return whether bundles that were shed went to brokers above the average."""
    profile, placement = case.profile, placement_by_name(case.placement, case.load_manager)
    if profile.paired_placement or profile.measure == placement.measure:
        return
    wrong: list[tuple[str, str]] = []
    total = 0
    for cycle in case.trace.cycles:
        if not cycle.state.present.any() or not any(event.kind == "shed" for event in cycle.events):
            continue
        view = cycle.view.brokers
        measured = cycle.state.msg_rate_per_s if profile.measure == "msg_rate" else cycle.state.usage
        usage = np.where(cycle.state.present, measured, np.nan)
        average = float(np.nanmean(usage))
        for event in cycle.events:
            at = view.position.get(event.destination, -1)
            if event.kind == "shed" and at >= 0 and not case.is_internal(event.bundle):
                total += 1
                if usage[at] > average:
                    wrong.append((event.bundle, event.destination))
    if not wrong or len(wrong) < _WRONG_SHARE * total:
        return
    act = _judged_alike(case)
    remedy = act.words
    if case.trace.settings.flag(DISTRIBUTE_BUNDLES_EVENLY_ENABLED):
        remedy += (
            f" {DISTRIBUTE_BUNDLES_EVENLY_ENABLED} is on, so the number of bundles of the namespace decides before any"
            " load."
        )
    yield Finding(
        code="fighting_strategies",
        title=f"{case.shedder} and {case.placement} work against each other",
        evidence=(
            f"{len(wrong)} of {count(total, 'shed bundle')} went to a broker above the average. Shedding compares"
            f" {profile.judges_by}, but placement compares {placement.judges_by}."
        ),
        remedy=remedy,
        severity="high" if len(wrong) * 2 >= total else "medium",
        brokers=tuple(dict.fromkeys(broker for _, broker in wrong)),
        bundles=tuple(bundle for bundle, _ in wrong),
        settings=(LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY, DISTRIBUTE_BUNDLES_EVENLY_ENABLED),
        changes=act.changes,
    )


def _judged_alike(case: Outcome) -> Remedy:
    """Return what makes shedding and placement agree: a pair, a placement of a like measure, or else less shedding."""
    release = case.trace.settings.release
    for one in offered_shedders(case.load_manager, release):
        if one.profile.paired_placement:
            return Remedy(
                f"Use {one.name} for both {LOAD_SHEDDING_STRATEGY} and {LOAD_PLACEMENT_STRATEGY}: it moves bundles to"
                " the other broker of the pair.",
                {LOAD_SHEDDING_STRATEGY: one.java_class, LOAD_PLACEMENT_STRATEGY: one.java_class},
            )
    for place in offered_placements(case.load_manager, release):
        if place.name not in {*PAIRED, case.placement} and place.measure == _PLACED_BY[case.profile.measure]:
            return Remedy(
                f"Set {LOAD_PLACEMENT_STRATEGY} to {place.java_class}, which compares {place.judges_by}.",
                {LOAD_PLACEMENT_STRATEGY: place.java_class},
            )
    return case.profile.calmer(case.trace.settings)


def _that_sheds(case: Outcome, remedy: Remedy) -> Remedy:
    """Return a remedy of several settings, or the first of them alone with which the next cycle sheds.

    One comparison that triggers can keep another one from being asked, and then move too little.
    """
    last = case.trace.cycles[-1]
    seed = cycle_seed(case.trace.scenario.seed, last.index)
    alone = (
        Remedy(f"Set {name} to {value}, the default: 0 switches a comparison off.", {name: value})
        for name, value in remedy.changes.items()
    )
    for one in (remedy, *alone):
        config = case.trace.settings.changed(**one.changes)
        if next_cycle(last.view, last.memory, config, seed, explain=False)[1].moves:
            return one
    return remedy


def usage_not_compared(case: Outcome) -> Iterator[Finding]:
    """A broker is hot by its usage, and the strategy compares only traffic, which calls for nothing."""
    if case.profile.measure == "usage" or case.trace.cycles[-1].unloads:
        return
    usage, config = case.reported_usage[-1], case.trace.settings
    limit = case.limit
    if not np.isfinite(usage).any() or not (config.flag(LOAD_BALANCER_ENABLED) and config.flag(SHEDDING_ENABLED)):
        return
    highest, least = float(np.nanmax(usage)), float(np.nanmin(usage))
    if highest <= limit and highest - least < APART:
        return
    hottest = case.series.brokers[int(np.nanargmax(usage))]
    held = {one.broker for one in held_brokers(case)}
    if hottest in held:
        return
    off = case.profile.for_switched_off(config)
    remedy = with_what_else(_that_sheds(case, off), case, would_shed_now(case)) if off else _default_pair(case)
    compares = "nothing" if off else f"only {case.profile.judges_by}"
    why = (
        f"{' and '.join(off.changes)} are 0."
        if off
        else f"{case.profile.judges_by} differs too little between the brokers for its settings."
        if not held
        else f"by {case.profile.judges_by}, {listed(sorted(held))} is to shed, and not {hottest}."
    )
    yield Finding(
        code="usage_not_compared",
        title=f"{hottest} is hot, but {case.shedder} compares {compares}",
        evidence=f"Usage ranges from {percent(least, 0)} to {percent(highest, 0)}, and the last cycle sheds nothing:"
        f" {why}",
        remedy=remedy.words,
        severity="high" if highest > limit else "medium",
        brokers=(hottest,),
        settings=tuple(remedy.changes),
        changes=remedy.changes,
    )
