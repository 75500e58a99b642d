"""OverloadShedder: sheds from brokers whose usage reaches a fixed threshold.

Mirrors `OverloadShedder` of Pulsar 4.2.4. Its own description says that it sheds exactly one bundle by message rate;
the code takes as many as make up the excess, by throughput.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from planner.cluster.decisions import Line, ReasonBlock, ReasonCode, SheddingDecision, add_reasons
from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE, LOAD_SHEDDING_STRATEGY
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB
from planner.pulsar.load.usage import USAGE_WEIGHTS, overload_usage
from planner.pulsar.shedding.needs import THROUGHPUT_OF_BUNDLES, USAGE
from planner.pulsar.shedding.profile import NeverReached, Profile, Remedy
from planner.pulsar.shedding.selection import (
    ADDITIONAL_MARGIN,
    BUNDLE_GATES,
    NO_BUNDLE,
    ONLY_BUNDLE,
    active_brokers,
    take_until,
)

WAS_DEFAULT_UNTIL: Final = "2.10.0"
WAS_DEFAULT: Final = (
    f"Before {WAS_DEFAULT_UNTIL}, brokers shed with OverloadShedder where no file sets {LOAD_SHEDDING_STRATEGY}."
)
"""Read in the defaults of 2.8.4, 2.9.1, 2.10.4 and 2.11.0."""

_BELOW = ReasonCode("overload.below", "usage {usage_percent:.1f} % < threshold {threshold_percent:.1f} %")
_SINGLE = ReasonCode(
    "overload.single_bundle",
    "usage {usage_percent:.1f} % >= threshold {threshold_percent:.1f} %, but it has {bundles:.0f} bundle",
)
_NO_CANDIDATE = ReasonCode(
    "overload.no_candidate",
    "usage {usage_percent:.1f} % >= threshold {threshold_percent:.1f} %, but none of its bundles may leave",
)
_DONOR = ReasonCode(
    "overload.overloaded",
    "usage {usage_percent:.1f} % >= threshold {threshold_percent:.1f} %: at least {required_mib_per_s:.2f} MiB/s leave",
    acts=True,
)
_TAKEN = ReasonCode(
    "overload.bundle_taken",
    (
        "{value_mib_per_s:.1f} MiB/s; {required_mib_per_s:.1f} MiB/s must leave, of which "
        "{before_mib_per_s:.1f} were chosen before"
    ),
    acts=True,
)
_ENOUGH = ReasonCode(
    "overload.bundle_not_needed",
    "{value_mib_per_s:.1f} MiB/s; larger bundles already cover the required {required_mib_per_s:.1f} MiB/s",
)


@dataclass(frozen=True, slots=True)
class OverloadState:
    """The strategy remembers nothing."""


_OTHER = {LOAD_SHEDDING_STRATEGY: "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"}


def _calmer(config: Settings) -> Remedy:
    del config
    return Remedy(
        "Use ThresholdShedder, which compares with the average. OverloadShedder sheds from every broker "
        "above a fixed threshold, however full the other brokers are, without a limit per cycle.",
        _OTHER,
    )


def _for_never_reached(seen: NeverReached) -> Remedy:
    now = seen.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    usual = seen.config.of(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE).default
    lower = {BROKER_OVERLOADED_THRESHOLD_PERCENTAGE: usual}
    if isinstance(usual, int) and usual < now and seen.would_shed(seen.config.changed(**lower)):
        words = f"Lower {BROKER_OVERLOADED_THRESHOLD_PERCENTAGE} from {now} to {usual}, its default."
        return Remedy(f"{words} ThresholdShedder compares with the average instead of a fixed threshold.", lower)
    return Remedy("Use ThresholdShedder, which compares with the average instead of a fixed threshold.", _OTHER)


_PROFILE = Profile(
    needs=(USAGE, THROUGHPUT_OF_BUNDLES),
    bounds={BROKER_OVERLOADED_THRESHOLD_PERCENTAGE: (0, 200)},
    eager={BROKER_OVERLOADED_THRESHOLD_PERCENTAGE: 0},
    differences=(
        (
            "The class description says exactly one bundle, by message rate; the code takes as many as "
            "cover the excess, by throughput."
        ),
        "A broker at exactly the threshold is overloaded for shedding, but not for placement.",
    ),
    judges_by="resource usage",
    threshold=lambda config: config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100,
    exact={BROKER_OVERLOADED_THRESHOLD_PERCENTAGE: lambda score, _: score * 100},
    gates={_SINGLE: ONLY_BUNDLE, _NO_CANDIDATE: NO_BUNDLE, **BUNDLE_GATES},
    calmer=_calmer,
    for_idle_brokers=lambda config, _: _calmer(config),
    for_never_reached=_for_never_reached,
)


class OverloadShedder:
    """The strategy; its contract is `Shedder`."""

    name = "OverloadShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"
    load_manager = LoadManager.MODULAR
    summary = "Sheds from every broker whose usage is at or above a fixed threshold; the default before Pulsar 2.10."
    profile = _PROFILE
    settings = (
        BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
        *USAGE_WEIGHTS,
    )

    def initial(self) -> OverloadState:
        """Return the state of a strategy that has seen nothing."""
        return OverloadState()

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings
    ) -> tuple[SheddingMemory[Any], SheddingDecision]:
        """Decide one cycle; see `Shedder`."""
        threshold = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100.0
        active, unknown = active_brokers(snapshot)
        usage = overload_usage(snapshot.brokers, config)[active]
        reasons: list[ReasonBlock] = list(unknown)
        below = usage < threshold
        add_reasons(reasons, _BELOW, below, active, usage * 100, threshold * 100)
        over, used = active[~below], usage[~below]
        counts = snapshot.reported_counts()[over]
        single = counts <= 1
        add_reasons(reasons, _SINGLE, single, over, used * 100, threshold * 100, counts)
        over, used = over[~single], used[~single]
        required = snapshot.brokers.throughput_bytes_per_s(over) * (used - threshold + ADDITIONAL_MARGIN)
        moves, gives = take_until(snapshot, memory, config, over, required, (_TAKEN, _ENOUGH), reasons)
        add_reasons(reasons, _DONOR, gives, over, used * 100, threshold * 100, required / MIB)
        add_reasons(reasons, _NO_CANDIDATE, ~gives, over, used * 100, threshold * 100)
        scores = np.full(len(snapshot.brokers), np.nan)
        scores[active] = usage
        decision = SheddingDecision(tuple(moves), tuple(reasons), scores, (Line("threshold", threshold),))
        return memory, decision


SHEDDER = OverloadShedder()
