"""LeastLongTermMessageRate: the broker with the lowest long-term message rate that is not overloaded.

Mirrors `LeastLongTermMessageRate` of Pulsar 4.2.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from weakref import ref

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, frozen
from planner.cluster.decisions import PlacementDecision, ReasonBlock, ReasonCode, add_reasons
from planner.cluster.hashing import hash_map_order, java_string_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.once import once
from planner.cluster.positions import positions_of
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.averages import DEFAULT_TRAFFIC, with_known_rates
from planner.pulsar.load.usage import RESOURCE_WEIGHTS, overload_usage
from planner.pulsar.placement.candidates import Candidates
from planner.pulsar.placement.draw import draw
from planner.pulsar.placement.protocol import Measure

_LOWEST = ReasonCode(
    "least_rate.lowest", "long-term rate of {msg_rate_per_s:,.1f} msg/s, the lowest: may be drawn", acts=True
)
_HIGHER = ReasonCode("least_rate.higher", "long-term rate of {msg_rate_per_s:,.1f} msg/s > {lowest_per_s:,.1f}")
_OVERLOADED = ReasonCode("least_rate.overloaded", "overloaded: usage {usage_percent:.1f} % > {limit_percent:.0f} %")
_ALL_OVERLOADED = ReasonCode(
    "least_rate.all_overloaded",
    (
        "overloaded: usage {usage_percent:.1f} % > {limit_percent:.0f} %; all candidates are overloaded, so "
        "any may be drawn"
    ),
    acts=True,
)
_UNKNOWN_RATE = ReasonCode("least_rate.not_a_number", "its long-term rate is not a number, so it cannot be the lowest")
_ALL_UNKNOWN = ReasonCode(
    "least_rate.all_not_numbers", "no candidate's long-term rate is a number, so any may be drawn", acts=True
)


class _Known:
    """What `Preallocated` has worked out; no field, as it belongs to no state that is compared, written or sent."""

    _sums: dict["ref[Snapshot]", dict[str, float]]


@dataclass(frozen=True)
class Preallocated(_Known):
    """What the load manager tells the strategy besides the load reports (`BrokerData.getPreallocatedBundleData`).

    Attributes:
        bundles: Full names of the bundles that were promised to a broker and are not reported yet, by broker.
    """

    bundles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Know nothing."""
        object.__setattr__(self, "_sums", {})

    def with_one(self, bundle: str, broker: str) -> "Preallocated":
        """Return the same with one more bundle; the sums that it leaves as they are stay known."""
        more = Preallocated({**self.bundles, broker: (*self.bundles.get(broker, ()), bundle)})
        more._sums.update({where: {n: s for n, s in sums.items() if n != broker} for where, sums in self._sums.items()})
        return more

    def sums(self, snapshot: Snapshot) -> Mapping[str, float]:
        """Return the long-term message rate in + out of the bundles of each broker, as a leader knows it."""
        where = ref(snapshot)
        if where not in self._sums:
            self._sums.clear()
        known = self._sums.setdefault(where, {})
        coming = {name: tuple(bundles) for name, bundles in self.bundles.items() if name not in known}
        rates = iter(_known_rates(snapshot, [bundle for bundles in coming.values() for bundle in bundles]))
        for name, bundles in coming.items():
            mine, total = list(islice(rates, len(bundles))), 0.0
            for place in _in_map_order(bundles):  # the order of Pulsar's map decides how the sum is rounded
                total += mine[place]
            known[name] = total
        return known

    def __reduce__(self) -> tuple[type["Preallocated"], tuple[Mapping[str, tuple[str, ...]]]]:
        """Leave out what is known of a snapshot: references to it cannot be sent to another process."""
        return Preallocated, (self.bundles,)

    def __hash__(self) -> int:
        """Return a hash by the brokers."""
        return hash(frozenset(self.bundles))


@once
def long_term_rates(snapshot: Snapshot) -> FloatArray:
    """Return the long-term message rate in + out of each broker (`TimeAverageBrokerData`). Shape (brokers,).

    Where the snapshot does not tell them they are summed up from the bundles, as the leader does.
    """
    return frozen(with_known_rates(snapshot).brokers.msg_rate_per_s(term="long_term_"))


class LeastLongTermMessageRate:
    """The strategy; see the module. Attributes as in `planner.pulsar.placement.protocol.Placement`."""

    name = "LeastLongTermMessageRate"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate"
    load_manager = LoadManager.MODULAR
    summary = (
        "Takes the candidate with the lowest long-term message rate, and an overloaded one only if all are overloaded."
    )
    judges_by = "long-term message rate"
    measure: Measure = "msg_rate"
    settings: tuple[str, ...] = (
        BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
        *RESOURCE_WEIGHTS,
    )

    def initial(self) -> Preallocated:
        """Return the state of a strategy object that was just created."""
        return Preallocated()

    def select(
        self,
        bundle: str,
        candidates: Sequence[str],
        snapshot: Snapshot,
        state: Preallocated,
        config: Settings,
        seed: int,
    ) -> tuple[Preallocated, PlacementDecision]:
        """Pick a broker; see `planner.pulsar.placement.protocol.Placement.select`.

        Raises:
            PulsarError: A candidate has no load report; Pulsar ends in a NullPointerException.
        """
        among = Candidates.named(snapshot.brokers, candidates)
        acceptable, reasons = _compared(among, snapshot, state, config)
        subject = snapshot.bundle_position.get(bundle, -1)
        drawn = draw(acceptable, bundle, seed)
        return state, PlacementDecision(bundle, acceptable, drawn, tuple([r.about(subject) for r in reasons]))


@once
def _compared(
    among: Candidates, snapshot: Snapshot, state: Preallocated, config: Settings
) -> tuple[tuple[str, ...], tuple[ReasonBlock, ...]]:
    """Return the candidates that any bundle may be given to, and why each may or may not."""
    among.check_reports()
    here = among.positions
    every = _scores(state, snapshot, config)
    rate, score = every.rate[here], every.score[here]
    reasons: list[ReasonBlock] = []
    if len(here) and not np.count_nonzero(every.special[here]):  # nearly always
        least = score.min()
        best = score == least
        add_reasons(reasons, _LOWEST, best, here, rate)
        add_reasons(reasons, _HIGHER, ~best, here, rate, float(least))
        return among.those(best), tuple(reasons)
    usage, limit = every.usage[here], every.limit
    overloaded, unknown = usage > limit, np.isnan(score)
    lowest = float(score.min(initial=np.inf, where=~unknown))
    best = score == lowest
    chosen = best if best.any() else np.ones_like(best)
    higher = ~best & ~overloaded & ~unknown
    too_busy = _ALL_OVERLOADED if (chosen & overloaded).any() else _OVERLOADED
    add_reasons(reasons, _LOWEST, best & ~overloaded, here, rate)
    add_reasons(reasons, _HIGHER, higher, here, rate, lowest)
    add_reasons(reasons, too_busy, overloaded, here, usage * 100, limit * 100)
    add_reasons(reasons, _ALL_UNKNOWN if (chosen & unknown).any() else _UNKNOWN_RATE, unknown, here)
    return among.those(chosen), tuple(reasons)


@dataclass(frozen=True, eq=False, slots=True)
class _Scores:
    """What brokers are compared by. Shape of every column: (brokers,).

    Attributes:
        rate: Long-term rate with what is on its way there.
        score: The same, infinite where the broker is overloaded.
        special: Which are overloaded, or of an unknown rate.
        usage: By which they are overloaded.
        limit: Above this.
    """

    rate: FloatArray
    score: FloatArray
    special: BoolArray
    usage: FloatArray
    limit: float


@once
def _scores(state: Preallocated, snapshot: Snapshot, config: Settings) -> _Scores:
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    usage, rate = overload_usage(snapshot.brokers, config), _rates(state, snapshot)
    overloaded = usage > limit
    score = np.where(overloaded, np.inf, rate)
    return _Scores(rate, frozen(score), frozen(overloaded | np.isnan(score)), usage, limit)


@once
def _rates(state: Preallocated, snapshot: Snapshot) -> FloatArray:
    """Return the long-term rate of each broker with what is on its way there. Shape (brokers,)."""
    rates, position = long_term_rates(snapshot).copy(), snapshot.brokers.position
    for name, total in state.sums(snapshot).items():
        at = position.get(name, -1)
        if at >= 0:
            rates[at] = total + rates[at]
    return frozen(rates)


def _known_rates(snapshot: Snapshot, bundles: Sequence[str]) -> list[float]:
    """Return the long-term rate of each of some bundles; the one that Pulsar supposes where none is known."""
    at = positions_of(bundles, snapshot.bundle_position)
    rates = np.full(len(at), float(DEFAULT_TRAFFIC.msg_rate_in_per_s) + float(DEFAULT_TRAFFIC.msg_rate_out_per_s))
    has_data = at >= 0
    has_data[has_data] = snapshot.bundles.has_data[at[has_data]]
    rates[has_data] = snapshot.bundles.msg_rate_per_s(at[has_data], term="long_term_")
    found: list[float] = rates.tolist()
    return found


@lru_cache(maxsize=4096)
def _in_map_order(bundles: tuple[str, ...]) -> tuple[int, ...]:
    """Return the positions of bundles in the order of Pulsar's map."""
    hashes = np.array([_hash(bundle) for bundle in bundles], dtype=np.int32)
    return tuple(hash_map_order(hashes, concurrent=True).tolist())


_hash = lru_cache(maxsize=1 << 18)(java_string_hash)


PLACEMENT = LeastLongTermMessageRate()
"""The strategy."""
