"""ThresholdShedder: sheds from brokers whose averaged usage is a threshold above the average of all.

Mirrors `ThresholdShedder` of Pulsar 4.2.4.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.cluster.decisions import Line, Move, ReasonBlock, ReasonCode, SheddingDecision, add_reasons, block
from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.names import HISTORY_RESOURCE_PERCENTAGE
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB
from planner.pulsar.load.usage import USAGE_WEIGHTS, weighted_usage
from planner.pulsar.shedding.needs import THROUGHPUT_OF_BUNDLES, USAGE
from planner.pulsar.shedding.profile import (
    Gate,
    NeverReached,
    Profile,
    Remedy,
    Tally,
    WouldShed,
    lower_threshold_remedy,
)
from planner.pulsar.shedding.selection import (
    ADDITIONAL_MARGIN,
    BUNDLE_GATES,
    NO_BUNDLE,
    ONLY_BUNDLE,
    active_brokers,
    take_until,
)

_BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD = "loadBalancerBundleUnloadMinThroughputThreshold"

_BELOW = ReasonCode(
    "threshold.below",
    "score {usage_percent:.1f} % < average score {average_percent:.1f} % + threshold {threshold_percent:.1f} points"
    " = {limit_percent:.1f} %",
)
_IDLE = ReasonCode("threshold.idle", "the average score of all brokers is 0: nothing to compare")
_TOO_LITTLE = ReasonCode(
    "threshold.below_minimum_throughput",
    "score {usage_percent:.1f} % >= {limit_percent:.1f} %, but only {required_mib_per_s:.2f} MiB/s would leave, less"
    " than the minimum {minimum_mib_per_s:.2f} MiB/s",
)
_SINGLE = ReasonCode(
    "threshold.single_bundle",
    "score {usage_percent:.1f} % >= {limit_percent:.1f} %, but it has {bundles:.0f} bundle",
)
_NO_CANDIDATE = ReasonCode(
    "threshold.no_candidate", "score {usage_percent:.1f} % >= {limit_percent:.1f} %, but none of its bundles may leave"
)
_DONOR = ReasonCode(
    "threshold.overloaded",
    "score {usage_percent:.1f} % >= average score {average_percent:.1f} % + threshold {threshold_percent:.1f} points"
    " = {limit_percent:.1f} %: at least {required_mib_per_s:.2f} MiB/s leave",
    acts=True,
)
_LOWER_DONOR = ReasonCode(
    "threshold.lower_boundary_donor",
    "another broker scores below {lower_percent:.1f} % and this one has the highest score, {usage_percent:.1f} %:"
    " at least {required_mib_per_s:.2f} MiB/s leave",
    acts=True,
)
_LOWER_TOO_LITTLE = ReasonCode(
    "threshold.lower_boundary_below_minimum",
    "another broker scores below {lower_percent:.1f} % and this one has the highest score, {usage_percent:.1f} %, but"
    " less than the minimum would leave: {required_mib_per_s:.2f} MiB/s < {minimum_mib_per_s:.2f} MiB/s",
)
_TAKEN = ReasonCode(
    "threshold.bundle_taken",
    (
        "{value_mib_per_s:.1f} MiB/s; {required_mib_per_s:.1f} MiB/s must leave, of which "
        "{before_mib_per_s:.1f} were chosen before"
    ),
    acts=True,
)
_ENOUGH = ReasonCode(
    "threshold.bundle_not_needed",
    "{value_mib_per_s:.1f} MiB/s; larger bundles already cover the required {required_mib_per_s:.1f} MiB/s",
)


@dataclass(frozen=True, slots=True)
class ThresholdState:
    """What the strategy remembers.

    Attributes:
        usage_ema: Averaged usage of each broker (1.0 = 100 %), Pulsar's `brokerAvgResourceUsage`.
    """

    usage_ema: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Limits:
    """The settings, and the average they are compared with."""

    threshold: float
    minimum_bytes_per_s: float
    average: float


_THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
_LOWER = "lowerBoundarySheddingEnabled"
_HALVINGS = 10
"""How often the minimum throughput is halved to find one with which something is shed."""


def _calmer(config: Settings) -> Remedy:
    return Remedy(
        f"Raise {_THRESHOLD}, or shed in pairs with AvgShedder, which moves only a share of the difference.",
        {_THRESHOLD: config.integer(_THRESHOLD) + 10},
    )


def _lower_boundary(config: Settings, would_shed: WouldShed) -> Remedy | None:
    """Return how the lower boundary sheds: what it moves is often less than the minimum throughput. None if it cannot.

    It moves half the threshold as a share of the traffic of the highest broker: with the defaults, a broker with less
    than 200 MiB/s sheds nothing.
    """
    asks = f"Set {_LOWER} to true (needs a restart)"
    if config.flag(_LOWER):
        return None
    if would_shed(config.changed(**{_LOWER: True})):
        return Remedy(asks, {_LOWER: True})
    minimum, now = _BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD, config.number(_BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD)
    for halvings in range(1, _HALVINGS + 1):
        both = {_LOWER: True, minimum: float(f"{now / 2**halvings:.2g}")}
        if would_shed(config.changed(**both)):
            return Remedy(f"{asks}, and {minimum} to {both[minimum]:g} (less than {now:g} MiB/s would leave)", both)
    return None


def _for_idle_brokers(config: Settings, would_shed: WouldShed) -> Remedy:
    if (found := _lower_boundary(config, would_shed)) is None:
        return lower_threshold_remedy(config, would_shed)
    return Remedy(
        f"{found.words}: ThresholdShedder only looks for brokers far above the average, and a few idle brokers hardly"
        " lower the average.",
        found.changes,
    )


def _for_never_reached(seen: NeverReached) -> Remedy:
    config, lowest = seen.config, float(seen.scores.min())
    below = lowest < seen.average - config.integer(_THRESHOLD) / 100
    if below and (found := _lower_boundary(config, seen.would_shed)) is not None:
        return Remedy(
            f"{found.words}: the lowest broker, {lowest * 100:.0f} %, is more than the threshold below the average,"
            f" {seen.average * 100:.0f} %. It then sheds in the last cycle.",
            found.changes,
        )
    points, usual = max(math.floor(seen.above * 100), 0), config.of(_THRESHOLD).default
    to = f"{points}"
    if isinstance(usual, int) and usual < points:
        points, to = usual, f"{usual}, its default"
    return Remedy(
        f"Lower {_THRESHOLD} to {to}: the highest broker is {seen.above * 100:.1f} points above.",
        {_THRESHOLD: points},
    )


_PROFILE = Profile(
    needs=(USAGE, THROUGHPUT_OF_BUNDLES),
    bounds={
        _THRESHOLD: (0, 200),
        HISTORY_RESOURCE_PERCENTAGE: (0, 1),
        _BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD: (0, 1e6),
        _LOWER: None,
    },
    eager={_BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD: 0.0, _THRESHOLD: 0},
    differences=(
        (
            "The Concepts page says that a broker is brought to 5 % below the cluster average. The code "
            "aims at the average plus the threshold minus 5 points, as a share of the broker's "
            "throughput."
        ),
        (
            "The Concepts page says that a broker sheds when its usage is greater than the average plus "
            "the threshold; the code also sheds when they are equal."
        ),
        (
            "Heap memory never counts, and direct memory has weight 0 by default; the documentation "
            "lists memory among the resources."
        ),
    ),
    judges_by="averaged resource usage",
    threshold=lambda config: config.integer(_THRESHOLD) / 100,
    above_average=True,
    exact={_THRESHOLD: lambda score, lines: (score - lines.get("average", math.nan)) * 100},
    averaged=True,
    gates={
        _TOO_LITTLE: Gate("the minimum throughput of an unload", (_BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD,)),
        _LOWER_TOO_LITTLE: Gate("the minimum throughput of an unload", (_BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD,)),
        _SINGLE: ONLY_BUNDLE,
        _NO_CANDIDATE: NO_BUNDLE,
        **BUNDLE_GATES,
    },
    tallies=(
        Tally(
            name="average",
            label=lambda _: "The usage that the strategy remembers after each cycle",
            of=lambda state, names: {name: state.usage_ema.get(name, math.nan) for name in names},
            unit="share",
        ),
    ),
    calmer=_calmer,
    for_idle_brokers=_for_idle_brokers,
    for_never_reached=_for_never_reached,
)


class ThresholdShedder:
    """The strategy; its contract is `Shedder`."""

    name = "ThresholdShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
    load_manager = LoadManager.MODULAR
    summary = (
        "Sheds from every broker whose averaged usage is at least a threshold above the average of all brokers; the"
        " default since Pulsar 2.10."
    )
    profile = _PROFILE
    settings = (
        _THRESHOLD,
        HISTORY_RESOURCE_PERCENTAGE,
        _BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD,
        _LOWER,
        *USAGE_WEIGHTS,
    )

    def initial(self) -> ThresholdState:
        """Return the state of a strategy that has seen nothing."""
        return ThresholdState()

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings
    ) -> tuple[SheddingMemory[Any], SheddingDecision]:
        """Decide one cycle; see `Shedder`."""
        usage = weighted_usage(snapshot.brokers, config, LoadManager.MODULAR)
        active, unknown = active_brokers(snapshot)
        order, known = active.tolist(), dict(memory.state.usage_ema)
        ema, average = _advance(snapshot, order, usage.tolist(), known, config)
        limits = _Limits(
            threshold=config.integer(_THRESHOLD) / 100.0,
            minimum_bytes_per_s=config.number(_BUNDLE_UNLOAD_MIN_THROUGHPUT_THRESHOLD) * MIB,
            average=average,
        )
        moves: list[Move] = []
        reasons: list[ReasonBlock] = list(unknown)
        if average == 0:
            reasons.append(block(_IDLE, active))
        else:
            moves = _shed_above(snapshot, memory, active, ema, limits, config, reasons)
            if not moves and config.flag(_LOWER):
                ema, average = _advance(snapshot, order, usage.tolist(), ema, config)
                limits = _Limits(limits.threshold, limits.minimum_bytes_per_s, average)
                moves = _shed_highest(snapshot, memory, order, ema, limits, config, reasons)
        scores = np.full(len(snapshot.brokers), np.nan)
        scores[active] = [ema[snapshot.brokers.name[i]] for i in order]
        lines: tuple[Line, ...] = (
            Line("average", average),
            Line("average + threshold", average + limits.threshold),
        )
        if config.flag(_LOWER):
            lines += (Line("average - threshold", average - limits.threshold),)
        return memory.with_state(ThresholdState(ema)), SheddingDecision(
            moves=tuple(moves), reasons=tuple(reasons), scores=scores, lines=lines, measures={"average": average}
        )


def _advance(
    snapshot: Snapshot, order: Sequence[int], usage: Sequence[float], known: Mapping[str, float], config: Settings
) -> tuple[dict[str, float], float]:
    """Advance the averaged usage of every broker by one sample; return it and its mean, summed in Pulsar's order."""
    history, names = config.number(HISTORY_RESOURCE_PERCENTAGE), snapshot.brokers.name
    ema: dict[str, float] = {}
    total, rest = 0.0, 1 - history
    for i in order:
        name, now = names[i], usage[i]
        before = known.get(name)
        ema[name] = value = now if before is None else before * history + rest * now
        total += value
    return ema, total / len(order) if order else 0.0


def _shed_above(
    snapshot: Snapshot,
    memory: SheddingMemory[Any],
    active: Int64Array,
    ema: Mapping[str, float],
    limits: _Limits,
    config: Settings,
    reasons: list[ReasonBlock],
) -> list[Move]:
    """Shed from every broker at or above the average + threshold."""
    names = snapshot.brokers.name
    usage = np.array([ema[names[i]] for i in active.tolist()])
    limit = limits.average + limits.threshold
    below = usage < limit
    add_reasons(reasons, _BELOW, below, active, usage * 100, limits.average * 100, limits.threshold * 100, limit * 100)
    over, over_usage = active[~below], usage[~below]
    with np.errstate(invalid="ignore"):  # usages can be infinite, where a limit is tiny
        share = over_usage - limits.average - limits.threshold + ADDITIONAL_MARGIN
        required = snapshot.brokers.throughput_bytes_per_s(over) * share
    little, minimum = required < limits.minimum_bytes_per_s, limits.minimum_bytes_per_s / MIB
    add_reasons(reasons, _TOO_LITTLE, little, over, over_usage * 100, limit * 100, required / MIB, minimum)
    counts = snapshot.reported_counts()[over]
    single = ~little & (counts <= 1)
    add_reasons(reasons, _SINGLE, single, over, over_usage * 100, limit * 100, counts)
    shedding = ~little & ~single
    over, over_usage, required = over[shedding], over_usage[shedding] * 100, required[shedding]
    moves, gives = take_until(snapshot, memory, config, over, required, (_TAKEN, _ENOUGH), reasons)
    numbers = (limits.average * 100, limits.threshold * 100, limit * 100, required / MIB)
    add_reasons(reasons, _DONOR, gives, over, over_usage, *numbers)
    add_reasons(reasons, _NO_CANDIDATE, ~gives, over, over_usage, limit * 100)
    return moves


def _shed_highest(
    snapshot: Snapshot,
    memory: SheddingMemory[Any],
    order: Sequence[int],
    ema: Mapping[str, float],
    limits: _Limits,
    config: Settings,
    reasons: list[ReasonBlock],
) -> list[Move]:
    """Lower boundary: when some broker is far below the average, shed from the highest one."""
    names = snapshot.brokers.name
    lower = limits.average - limits.threshold
    if not any(ema[names[i]] < lower for i in order):
        return []
    counts = snapshot.reported_counts()
    donor = -1
    highest = lower
    for i in order:
        if ema[names[i]] > highest and counts[i] > 1:
            donor, highest = i, ema[names[i]]
    if donor < 0:
        return []
    required = float(snapshot.brokers.throughput_bytes_per_s(donor)) * limits.threshold * 0.5
    compared = (lower * 100, highest * 100, required / MIB)
    if limits.minimum_bytes_per_s > required:
        minimum = limits.minimum_bytes_per_s / MIB
        reasons.append(block(_LOWER_TOO_LITTLE, donor, values=(*compared, minimum)))
        return []
    only = np.array([donor])
    moves, _ = take_until(snapshot, memory, config, only, np.array([required]), (_TAKEN, _ENOUGH), reasons)
    if moves:
        reasons.append(block(_LOWER_DONOR, donor, values=compared))
    return moves


SHEDDER = ThresholdShedder()
