"""UniformLoadShedder: sheds from the busiest broker when it is too far above the least busy one.

Mirrors `UniformLoadShedder` of Pulsar, with its truncation of quotas to 32-bit integers.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.decisions import Line, Move, ReasonBlock, ReasonCode, SheddingDecision, block
from planner.cluster.java import to_int
from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.names import MAX_UNLOAD_PERCENTAGE, MIN_UNLOAD_MESSAGE, MIN_UNLOAD_MESSAGE_THROUGHPUT
from planner.cluster.releases import Switch
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB
from planner.pulsar.shedding.needs import MESSAGE_RATES, THROUGHPUT
from planner.pulsar.shedding.profile import Gate, Profile, Remedy, lower_threshold_remedy
from planner.pulsar.shedding.selection import (
    BUNDLE_GATES,
    ONLY_BUNDLE,
    SHORT_TERM,
    active_brokers,
    moves_of,
    rank_donors,
)

_MSG_RATE_DIFFERENCE_SHEDDER_THRESHOLD = "loadBalancerMsgRateDifferenceShedderThreshold"
_MSG_THROUGHPUT_MULTIPLIER_DIFFERENCE_SHEDDER_THRESHOLD = (
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold"
)
_MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING = "maxUnloadBundleNumPerShedding"

LARGER_FITS = Switch(
    "A bundle fits if it exceeds what is left to move by at most 1000, not only if it is smaller.", until="4.2.4"
)
ONE_PAIR = Switch(
    "One pair of brokers is compared by message rate and throughput together: in map order, a broker "
    "beyond the previous extremes in either measure counts for both. Enough to move in one measure is "
    "enough. By throughput, only bundles that fit are taken.",
    until="3.1.2",
    backported=("3.0.2",),
)
_INT_MAX = 2**31 - 1
_EPSILON = 1e-6

_WITHIN = ReasonCode(
    "uniform.within",
    "{rate_msg_per_s:.0f} msg/s and {throughput_mib_per_s:.2f} MiB/s; over all brokers the largest message rate is"
    " {difference_percent:.1f} % above the smallest (limit {difference_limit_percent:.1f} %) and the largest throughput"
    " is {ratio:.2f} times the smallest (limit {ratio_limit:.2f})",
)


@dataclass(frozen=True, slots=True)
class _Reasons:
    """What is said of a comparison by one measure, and how much of it is one unit there."""

    per_unit: float
    donor: ReasonCode
    not_highest: ReasonCode
    single: ReasonCode
    too_little: ReasonCode
    no_fit: ReasonCode
    taken: ReasonCode
    too_big: ReasonCode
    enough: ReasonCode


_RATE = _Reasons(
    per_unit=1.0,
    donor=ReasonCode(
        "uniform.msg_rate_donor",
        "its message rate is {difference_percent:.1f} % above that of {other}, more than {limit_percent:.1f} %:"
        " up to {quota:.0f} msg/s leave",
        acts=True,
    ),
    not_highest=ReasonCode(
        "uniform.not_highest",
        "{value:.0f} msg/s in + out; {other} has the most, and only that broker sheds in a cycle",
    ),
    single=ReasonCode(
        "uniform.single_bundle",
        "it has the most traffic ({value:.0f} msg/s), but only {bundles:.0f} bundle",
    ),
    too_little=ReasonCode(
        "uniform.below_minimum",
        "it has the most traffic, but the share of the difference to move, {quota:.0f} msg/s, is below the"
        " minimum {minimum:.0f} msg/s",
    ),
    no_fit=ReasonCode(
        "uniform.no_candidate",
        "it has the most traffic, but none of its bundles fits into the {quota:.0f} msg/s that may leave",
    ),
    taken=ReasonCode(
        "uniform.bundle_taken",
        "{value:.1f} msg/s fits into the {left:.0f} msg/s left to move",
        acts=True,
    ),
    too_big=ReasonCode(
        "uniform.bundle_too_big",
        "{value:.1f} msg/s is more than the {left:.0f} msg/s left to move",
    ),
    enough=ReasonCode(
        "uniform.bundle_limit",
        "{value:.1f} msg/s; {limit:.0f} bundles are already chosen, the maximum per cycle",
    ),
)
_NONE_ALLOWED = ReasonCode(
    "uniform.none_allowed", "it has the most traffic, but at most {limit:.0f} bundles may leave in a cycle"
)
_THROUGHPUT = _Reasons(
    per_unit=MIB,
    donor=ReasonCode(
        "uniform.throughput_donor",
        "its throughput is {ratio:.2f} times that of {other}, more than {limit_ratio:.2f}: up to {quota:.2f} MiB/s"
        " leave",
        acts=True,
    ),
    not_highest=ReasonCode(
        "uniform.throughput_not_highest",
        "{value:.2f} MiB/s in + out; {other} has the most, and only that broker sheds in a cycle",
    ),
    single=ReasonCode(
        "uniform.throughput_single_bundle",
        "it has the most traffic ({value:.2f} MiB/s), but only {bundles:.0f} bundle",
    ),
    too_little=ReasonCode(
        "uniform.throughput_below_minimum",
        "it has the most traffic, but the share of the difference to move, {quota:.2f} MiB/s, is below the"
        " minimum {minimum:.2f} MiB/s",
    ),
    no_fit=ReasonCode(
        "uniform.throughput_no_candidate",
        "it has the most traffic, but none of its bundles fits into the {quota:.2f} MiB/s that may leave",
    ),
    taken=ReasonCode(
        "uniform.throughput_bundle_taken",
        "{value:.2f} MiB/s fits into the {left:.2f} MiB/s left to move",
        acts=True,
    ),
    too_big=ReasonCode(
        "uniform.throughput_bundle_too_big",
        "{value:.2f} MiB/s is more than the {left:.2f} MiB/s left to move",
    ),
    enough=ReasonCode(
        "uniform.throughput_bundle_limit",
        "{value:.2f} MiB/s; {limit:.0f} bundles are already chosen, the maximum per cycle",
    ),
)
_MEASURES = (_RATE, _THROUGHPUT)


@dataclass(frozen=True, slots=True)
class UniformState:
    """The strategy remembers nothing."""


@dataclass(frozen=True, slots=True)
class _Spread:
    """The brokers with the most and the least of something, -1 when none qualifies."""

    highest: int
    lowest: int
    most: float
    least: float


def _spread(order: Sequence[int], values: FloatArray, also: FloatArray) -> _Spread:
    """Find the brokers with the most and the least.

    Args:
        order: Positions of the brokers in the order of Pulsar's map.
        values: What is compared.
        also: What makes a broker count as beyond the one before, too; where that is `values`, the extremes are found.
    """
    highest = lowest = -1
    most = also_most = -1.0
    least = also_least = float(_INT_MAX)
    numbers, others = values.tolist(), also.tolist()
    for i in order:
        number, other = numbers[i], others[i]
        if number > most or other > also_most:
            highest, most, also_most = i, number, other
        if number < least or other < also_least:
            lowest, least, also_least = i, number, other
    if -_EPSILON <= least <= _EPSILON:
        least = 1.0
    return _Spread(highest, lowest, most, least)


def _calmer(config: Settings) -> Remedy:
    most = config.integer(_MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING)
    return Remedy(
        "Limit the bundles per cycle with maxUnloadBundleNumPerShedding, or the share with maxUnloadPercentage.",
        {_MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING: max(most // 2, 1) if most > 0 else 10},
    )


def _for_switched_off(config: Settings) -> Remedy | None:
    names = (_MSG_RATE_DIFFERENCE_SHEDDER_THRESHOLD, _MSG_THROUGHPUT_MULTIPLIER_DIFFERENCE_SHEDDER_THRESHOLD)
    if any(config.number(name) > 0 for name in names):
        return None
    changes = {name: config.of(name).default for name in names}
    said = " and ".join(f"{name} to {value}" for name, value in changes.items())
    return Remedy(f"Set {said}, the defaults: 0 switches a comparison off.", changes)


_SHARE = Gate("that no bundle fits into the share to move", (MAX_UNLOAD_PERCENTAGE,))
_PROFILE = Profile(
    needs=(MESSAGE_RATES, THROUGHPUT),
    bounds={
        _MSG_RATE_DIFFERENCE_SHEDDER_THRESHOLD: (0, 1e9),
        _MSG_THROUGHPUT_MULTIPLIER_DIFFERENCE_SHEDDER_THRESHOLD: (0, 1e9),
        MAX_UNLOAD_PERCENTAGE: (0, 1),
        MIN_UNLOAD_MESSAGE: (0, 2**31 - 1),
        MIN_UNLOAD_MESSAGE_THROUGHPUT: (0, 2**31 - 1),
        _MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING: (-1, 100_000),
    },
    moves_nothing={MAX_UNLOAD_PERCENTAGE: (-math.inf, 0), _MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING: (0, 0)},
    eager={
        _MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING: -1,
        MAX_UNLOAD_PERCENTAGE: 1.0,
        MIN_UNLOAD_MESSAGE: 0,
        MIN_UNLOAD_MESSAGE_THROUGHPUT: 0,
        _MSG_THROUGHPUT_MULTIPLIER_DIFFERENCE_SHEDDER_THRESHOLD: 1e-6,
        _MSG_RATE_DIFFERENCE_SHEDDER_THRESHOLD: 1e-6,
    },
    differences=(
        (
            "Message rate takes priority: when it triggers but too little would move, throughput is not "
            "tried in that cycle."
        ),
    ),
    judges_by="message rate or throughput",
    measure="msg_rate",
    most_bundles=_MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING,
    gates={
        _RATE.too_little: Gate("the minimum to move", (MIN_UNLOAD_MESSAGE,)),
        _THROUGHPUT.too_little: Gate("the minimum to move", (MIN_UNLOAD_MESSAGE_THROUGHPUT,)),
        **dict.fromkeys([one.single for one in _MEASURES], ONLY_BUNDLE),
        **dict.fromkeys([one.no_fit for one in _MEASURES], _SHARE),
        _NONE_ALLOWED: Gate("the most bundles of a cycle", (_MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING,)),
        **BUNDLE_GATES,
    },
    calmer=_calmer,
    for_idle_brokers=lower_threshold_remedy,
    for_switched_off=_for_switched_off,
)


class UniformLoadShedder:
    """The strategy; its contract is `Shedder`."""

    name = "UniformLoadShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
    load_manager = LoadManager.MODULAR
    summary = (
        "Compares the busiest broker with the least busy one, by message rate and by throughput, and "
        "moves a share of the difference away from the busiest."
    )
    profile = _PROFILE
    settings = (
        _MSG_RATE_DIFFERENCE_SHEDDER_THRESHOLD,
        _MSG_THROUGHPUT_MULTIPLIER_DIFFERENCE_SHEDDER_THRESHOLD,
        MAX_UNLOAD_PERCENTAGE,
        MIN_UNLOAD_MESSAGE,
        MIN_UNLOAD_MESSAGE_THROUGHPUT,
        _MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING,
    )

    def initial(self) -> UniformState:
        """Return the state of a strategy that has seen nothing."""
        return UniformState()

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings
    ) -> tuple[SheddingMemory[Any], SheddingDecision]:
        """Decide one cycle; see `Shedder`."""
        active, unknown = active_brokers(snapshot)
        order = active.tolist()
        rate, throughput = snapshot.brokers.msg_rate_per_s(), snapshot.brokers.throughput_bytes_per_s()
        together = config.release.has(ONE_PAIR)
        rates = _spread(order, rate, throughput if together else rate)
        throughputs = _spread(order, throughput, rate if together else throughput)
        difference_percent = (rates.most - rates.least) * 100 / rates.least
        ratio = throughputs.most / throughputs.least
        rate_limit = config.number(_MSG_RATE_DIFFERENCE_SHEDDER_THRESHOLD)
        ratio_limit = config.number(_MSG_THROUGHPUT_MULTIPLIER_DIFFERENCE_SHEDDER_THRESHOLD)
        reasons: list[ReasonBlock] = list(unknown)
        moves: list[Move] = []
        share = config.number(MAX_UNLOAD_PERCENTAGE)
        quotas = [to_int((found.most - found.least) * share) for found in (rates, throughputs)]
        minima: list[float] = [config.number(MIN_UNLOAD_MESSAGE), config.number(MIN_UNLOAD_MESSAGE_THROUGHPUT)]
        if together and any(quota >= minimum for quota, minimum in zip(quotas, minima, strict=True)):
            minima = [*quotas]
        beyond_left = 1000 if config.release.has(LARGER_FITS) else 0
        if rate_limit > 0 and difference_percent > rate_limit:
            donor = (_RATE, (difference_percent, rate_limit), quotas[0], minima[0], beyond_left)
            traffic = (rates, rate, snapshot.bundles.msg_rate_per_s(term=SHORT_TERM))
            moves = _shed(snapshot, memory, config, order, traffic, donor, reasons)
        elif ratio_limit > 0 and ratio > ratio_limit:
            beyond_left = 0 if together else beyond_left
            donor = (_THROUGHPUT, (ratio, ratio_limit), quotas[1], minima[1], beyond_left)
            traffic = (throughputs, throughput, snapshot.bundles.throughput_bytes_per_s(term=SHORT_TERM))
            moves = _shed(snapshot, memory, config, order, traffic, donor, reasons)
        elif order:
            compared_all = (rate[active], throughput[active] / MIB, difference_percent, rate_limit, ratio, ratio_limit)
            reasons.append(block(_WITHIN, active, values=compared_all))
        scores = np.full(len(snapshot.brokers), np.nan)
        scores[active] = rate[active]
        measures = {"msg_rate_difference_percent": difference_percent, "throughput_ratio": ratio} if order else {}
        lines = (Line("largest", rates.most), Line("smallest", rates.least)) if order else ()
        return memory, SheddingDecision(tuple(moves), tuple(reasons), scores, lines, measures, score_unit="msg/s")


def _shed(
    snapshot: Snapshot,
    memory: SheddingMemory[Any],
    config: Settings,
    order: Sequence[int],
    traffic: tuple[_Spread, FloatArray, FloatArray],
    donor_reason: tuple[_Reasons, tuple[float, float], int, float, int],
    reasons: list[ReasonBlock],
) -> list[Move]:
    """Shed from the broker with the most; what is left to move is an `int`, and values are truncated as it shrinks."""
    spread, of_broker, of_bundle = traffic
    said, compared, quota, minimum, beyond_left = donor_reason
    unit = said.per_unit
    donor = spread.highest
    others = [i for i in order if i != donor]
    if others:
        reasons.append(block(said.not_highest, others, values=(of_broker[others] / unit,), others=donor))
    bundles = int(snapshot.reported_counts()[donor])
    if bundles <= 1:
        reasons.append(block(said.single, donor, values=(spread.most / unit, bundles)))
        return []
    if quota < minimum:
        reasons.append(block(said.too_little, donor, values=(quota / unit, minimum / unit)))
        return []
    donors = rank_donors(snapshot, np.array([donor]), of_bundle, memory, config, reasons)
    most_bundles = config.integer(_MAX_UNLOAD_BUNDLE_NUM_PER_SHEDDING)
    falling = (-donors.values).tolist()
    limits = np.full(len(falling), float(most_bundles))
    passed = np.zeros(len(falling), dtype=np.bool_)
    taken: list[int] = []
    left, at = quota, 0
    while at < len(falling) and len(taken) != most_bundles:
        # Values only get smaller, so that those too big for what is left are passed over at once; a NaN is last.
        most = _wrapped(left + beyond_left)
        fits = bisect_left(falling, -most, at)
        limits[at : fits + 1] = most
        passed[at : fits + 1] = True
        at = fits + 1
        if fits < len(falling) and -falling[fits] <= most:
            passed[fits] = False
            taken.append(fits)
            left = _wrapped(left - to_int(-falling[fits]))
    too_big = np.flatnonzero(passed)
    beyond = range(at, len(falling))
    values = donors.values / unit
    for kind, rows, than in (
        (said.taken, taken, limits / unit),
        (said.too_big, too_big, limits / unit),
        (said.enough, beyond, limits),
    ):
        if len(rows):
            reasons.append(block(kind, donor, donors.bundles[rows], (values[rows], than[rows])))
    if not taken:
        none = block(_NONE_ALLOWED, donor, values=(most_bundles,))
        reasons.append(none if most_bundles == 0 else block(said.no_fit, donor, values=(quota / unit,)))
        return []
    reasons.append(block(said.donor, donor, values=(*compared, quota / unit), others=spread.lowest))
    return moves_of(snapshot, said.taken, donors.bundles[taken], (values[taken], limits[taken] / unit))


def _wrapped(value: int) -> int:
    """Return a 32-bit `int` after overflow."""
    return (value + 2**31) % 2**32 - 2**31


SHEDDER = UniformLoadShedder()
