"""Whether a split of a bundle is worth it, and by which algorithm."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.names import (
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    NAMESPACE_BUNDLE_MAX_SESSIONS,
    NAMESPACE_BUNDLE_MAX_TOPICS,
)
from planner.cluster.ranges import FULL_HIGH, bundles_of_hashes, dividing_boundary, format_range
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MIB
from planner.explain.topic_advice import cure_of
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.splitting.manual import SplitCommand, Verdict, answer
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.pulsar.splitting.request import topics_listed

_USELESS: Final = 0.9
"""Share of the traffic in one child from which on a split changes nothing that matters."""
_LARGE: Final = 0.5
"""Share of its broker's traffic from which on a bundle is too large to be moved usefully."""
_CAN: Final = {Verdict.SPLIT, Verdict.UNKNOWN}


@dataclass(frozen=True, slots=True)
class SplitOption:
    """One way to split a bundle.

    Attributes:
        algorithm: Its name.
        positions: Boundaries that are asked for; None for algorithms that find their own.
        verdict: What becomes of the request.
        cuts: New boundaries.
        largest: Share of the bundle's traffic that the child with the most of it keeps; NaN where that is not known.
        why: The last reason that Pulsar has.
    """

    algorithm: str
    positions: tuple[int, ...] | None
    verdict: Verdict
    cuts: tuple[int, ...]
    largest: float
    why: str


@dataclass(frozen=True, slots=True)
class SplitAdvice:
    """Whether a bundle is to be split.

    Attributes:
        verdict: `Worth it`, `Not worth it`, `No need` or `Not known`.
        sentence: Why.
        options: Every way, the best first.
    """

    verdict: str
    sentence: str
    options: tuple[SplitOption, ...]

    @property
    def best(self) -> SplitOption | None:
        """The best way that Pulsar would follow; None when there is none."""
        first = self.options[0] if self.options else None
        return first if first is not None and first.verdict in _CAN else None


def split_advice(snapshot: Snapshot, bundle: int, config: Settings) -> SplitAdvice:
    """Say whether a split of a bundle, by its position, is worth it under the limits of some settings."""
    if internal_bundles(snapshot)[bundle]:
        return SplitAdvice("No need", "Pulsar keeps this namespace for itself. Leave its bundles to the brokers.", ())
    return _advice(snapshot, bundle, config)


def _advice(snapshot: Snapshot, bundle: int, config: Settings) -> SplitAdvice:
    topics, rows = snapshot.topics, snapshot.topics.of_bundle(bundle)
    hashes = topics.hash[rows].astype(np.int64)
    traffic = topics.throughput_bytes_per_s(rows)
    if not traffic.any():
        traffic = topics.msg_rate_per_s(rows)
    options = _options(snapshot, bundle, config, hashes, traffic)
    best = next((option for option in options if option.verdict in _CAN), None)
    need = _need(snapshot, bundle, config)
    if not topics_listed(snapshot):
        return _unlisted(snapshot, bundle, need, options)
    if len(rows) < 2:  # noqa: PLR2004 - one topic cannot be divided
        cure = f" {cure_of(snapshot, int(rows[0]))}" if need and len(rows) else ""
        why = (
            f"The bundle holds only the topic {topics.name[int(rows[0])].as_py()}, which no split can divide.{cure}"
            if len(rows)
            else "The bundle holds no topics, so there is nothing to divide."
        )
        return SplitAdvice("Not worth it", why, options)
    if best is None:
        why = "with every algorithm, Pulsar refuses the split or changes nothing."
        return SplitAdvice(
            "Not worth it", f"{f'{need}, but {why}' if need else f'{why[:1].upper()}{why[1:]}'}", options
        )
    if best.largest >= _USELESS:
        first = int(np.argmax(traffic))
        share = float(traffic[first] / traffic.sum())
        name = topics.name[int(rows[first])].as_py()
        text = f"After any split, one child keeps at least {best.largest * 100:.0f} % of the traffic: {name} alone has"
        return SplitAdvice(
            "Not worth it", f"{text} {share * 100:.0f} %. {cure_of(snapshot, int(rows[first]))}", options
        )
    keeps = f"with {best.algorithm}, the largest child keeps {best.largest * 100:.0f} % of the traffic"
    if np.isnan(best.largest):
        keeps = f"{best.algorithm} divides its {count(len(rows), 'topic')}, none of which currently has traffic"
    if need:
        return SplitAdvice("Worth it", f"{need}; {keeps}.", options)
    size = "all that its broker serves" if _alone(snapshot, bundle) else "small compared with its broker"
    text = f"The bundle is below every limit and {size}; it can be moved as a whole"
    return SplitAdvice("No need", f"{text}. If split, {keeps}.", options)


def _unlisted(snapshot: Snapshot, bundle: int, need: str, options: tuple[SplitOption, ...]) -> SplitAdvice:
    """Return the advice on a bundle of a snapshot that lists no topics, and only counts them."""
    if snapshot.bundles.topics[bundle] == 1:
        text = "The bundle holds only one topic, which no split can divide; the snapshot does not list its name."
        return SplitAdvice("Not worth it", text, options)
    text = "the snapshot lists no topics, so the topics of each child are unknown"
    return SplitAdvice("Not known", f"{need or 'The bundle is below every limit'}; {text}.", options)


def _alone(snapshot: Snapshot, bundle: int) -> bool:
    """Return whether a bundle is the only one of its broker."""
    owner = int(snapshot.bundles.owner[bundle])
    return owner >= 0 and len(snapshot.bundles_of(owner)) == 1


def _need(snapshot: Snapshot, bundle: int, config: Settings) -> str:
    """Return what asks for a split; empty when nothing does."""
    table = snapshot.bundles
    throughput = table.throughput_bytes_per_s()
    have = (
        ("topics", float(table.topics[bundle]), NAMESPACE_BUNDLE_MAX_TOPICS),
        (
            "sessions",
            float(table.producers[bundle] + table.consumers[bundle]),
            NAMESPACE_BUNDLE_MAX_SESSIONS,
        ),
        (
            "msg/s",
            float(table.msg_rate_per_s(bundle)),
            NAMESPACE_BUNDLE_MAX_MSG_RATE,
        ),
        ("MiB/s", float(throughput[bundle]) / MIB, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES),
    )
    above = [
        f"{value:,.0f} {unit} ({setting} is {config.integer(setting):,})"
        for unit, value, setting in have
        if value > config.integer(setting)
    ]
    if above:
        return f"The bundle has {', '.join(above)}"
    owner = int(table.owner[bundle])
    mine = snapshot.bundles_of(owner) if owner >= 0 else np.zeros(0, dtype=np.int64)
    whole = float(throughput[mine].sum())
    if len(mine) > 1 and whole > 0 and throughput[bundle] > _LARGE * whole:
        return f"The bundle carries {throughput[bundle] / whole * 100:.0f} % of the traffic of its broker"
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    if _alone(snapshot, bundle):
        usage = weighted_usage(snapshot.brokers, config, snapshot.info.load_manager)[owner] * 100
        if usage > limit:
            have_it = f"{BROKER_OVERLOADED_THRESHOLD_PERCENTAGE} is {limit}"
            return f"The bundle is all that its broker serves, which is at {usage:.0f} % ({have_it})"
    return ""


def _options(
    snapshot: Snapshot, bundle: int, config: Settings, hashes: Int64Array, traffic: FloatArray
) -> tuple[SplitOption, ...]:
    """Return every way to split a bundle, those that Pulsar follows first, then by the largest child."""
    table = snapshot.bundles
    low, high = int(table.low[bundle]), int(table.high[bundle])
    namespace = snapshot.namespaces[int(table.namespace[bundle])]
    default = config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM)
    found = []
    for algorithm in SPLIT_ALGORITHMS:
        positions = None
        if algorithm.needs_positions:
            middle = dividing_boundary(hashes, traffic)
            if middle is None or not low < middle < min(high, FULL_HIGH):
                continue
            positions = (middle,)
        named = "" if algorithm.name == default else algorithm.name
        outcome = answer(snapshot, SplitCommand(namespace, format_range(low, high), named, positions), config)
        cuts = outcome.boundaries
        why = str(outcome.error.what) if outcome.error is not None else ""
        share = _largest(low, cuts, hashes, traffic)
        found.append(SplitOption(algorithm.name, positions, outcome.verdict, cuts, share, why))

    def place(option: SplitOption) -> tuple[bool, float, bool]:
        share = 2.0 if np.isnan(option.largest) else option.largest
        return option.verdict not in _CAN, round(share, 3), option.algorithm != default

    return tuple(sorted(found, key=place))


def _largest(low: int, cuts: tuple[int, ...], hashes: Int64Array, traffic: FloatArray) -> float:
    """Return the share of the traffic that the child with the most of it keeps."""
    whole = float(traffic.sum())
    if not whole:
        return float("nan")
    parts = bundles_of_hashes(np.array([low, *sorted(cuts)], dtype=np.int64), hashes)
    return float(np.bincount(parts, traffic).max() / whole)
