"""Splits that a person asks for with `pulsar-admin namespaces split-bundle`.

Mirrors, of Pulsar 4.2.4, `NamespacesBase.internalSplitNamespaceBundleAsync`, `NamespaceService.splitAndOwnBundle`
(modular load manager), `ExtensibleLoadManagerImpl.splitNamespaceBundleAsync` with the `Split` it publishes, and the
choices of `NamespaceBundleFactory` for `LARGEST` and `HOT`. It differs in that a cluster whose topics are not listed
leaves some answers unknown, that checks of access rights are left out, and that a bundle which nobody owns counts as
split by the broker that Pulsar would assign it to first.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import quote_plus

import numpy as np

from planner.cluster.decisions import Reason, ReasonCode
from planner.cluster.errors import PlannerError, PulsarError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS,
)
from planner.cluster.ranges import bundle_name, format_range
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB
from planner.pulsar.splitting.factory import apply_split
from planner.pulsar.splitting.protocol import SplitAlgorithm, SplitAnswer
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS, default_split_algorithm
from planner.pulsar.splitting.request import namespace_boundaries, split_request, topics_listed

LARGEST = "LARGEST"
"""Means the bundle with the most persistent topics."""

HOT = "HOT"
"""Means the bundle with the highest long-term throughput (modular); the extensible load manager takes LARGEST."""

SETTINGS = (
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE,
)
"""Real names of the settings that decide."""

_SPECIFIED = "specified_positions_divide"
_FLOW = "flow_or_qps_equally_divide"
_RANGE = re.compile(r"0[xX]([0-9a-fA-F]{1,8})_0[xX]([0-9a-fA-F]{1,8})")

_NO_CONTENT, _NOT_FOUND, _PRECONDITION, _SERVER_ERROR = 204, 404, 412, 500

_LARGEST_IS = ReasonCode(
    "split_manual.largest", "{bundle} has {topics:.0f} persistent topics, the most in its namespace", acts=True
)
_HOT_IS = ReasonCode(
    "split_manual.hot",
    "{bundle} has a long-term average of {mib_per_s:,.1f} MiB/s, the highest in its namespace",
    acts=True,
)
_UNSUPPORTED = ReasonCode(
    "split_manual.unsupported_algorithm", "the algorithm is not in supportedNamespaceBundleSplitAlgorithms"
)
_NO_POSITIONS = ReasonCode("split_manual.no_positions", "specified_positions_divide was requested without a position")
_NONE_TO_CHOOSE = ReasonCode(
    "split_manual.none_to_choose", "no bundle of the namespace has topics, so none can be chosen"
)
_MALFORMED = ReasonCode("split_manual.malformed_range", "the request does not contain a valid bundle range")
_NOT_A_BUNDLE = ReasonCode("split_manual.not_a_bundle", "{bundle} is not a bundle of the namespace")
_CLASS_CAST = ReasonCode(
    "split_manual.class_cast",
    (
        "flow_or_qps_equally_divide works by name only while it is also "
        "defaultNamespaceBundleSplitAlgorithm: Pulsar builds its options from the default"
    ),
)
_FAILED = ReasonCode("split_manual.algorithm_failed", "the split algorithm fails")
_NO_CHANGE = ReasonCode("split_manual.no_boundary", "no boundary was found: Pulsar reports success and changes nothing")
_NO_CHANGE_ERROR = ReasonCode(
    "split_manual.no_boundary_error",
    "no boundary was found: Pulsar reports that the bundle is not found, and changes nothing",
)
_REFUSED = ReasonCode("split_manual.refused_boundary", "the bundle factory refuses a boundary")
_NEVER = ReasonCode(
    "split_manual.never_answered",
    (
        "a boundary is repeated, so the child between would be empty: the bundle factory fails, and Pulsar "
        "never answers the request"
    ),
)
_TOO_MANY = ReasonCode(
    "split_manual.too_many_boundaries",
    "{boundaries:.0f} boundaries: the extensible load manager splits into only two children",
)
_UNKNOWN = ReasonCode("split_manual.topics_unknown", "this snapshot does not list topics, which decide the answer")


@dataclass(frozen=True, slots=True)
class SplitCommand:
    """What is asked for.

    Attributes:
        namespace: `tenant/namespace`.
        bundle: Range such as `0x00000000_0x40000000`, or `LARGEST` or `HOT`.
        algorithm: Name of the split algorithm; blank for `defaultNamespaceBundleSplitAlgorithm`.
        positions: Boundaries wanted, for `specified_positions_divide` only.
        unload: Unload the children afterwards.
    """

    namespace: str
    bundle: str
    algorithm: str = ""
    positions: tuple[int, ...] | None = None
    unload: bool = False


class Verdict(StrEnum):
    """What becomes of a request."""

    SPLIT = "split"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNANSWERED = "unanswered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class SplitOutcome:
    """What Pulsar answers, and why.

    Attributes:
        verdict: What becomes of the request; `unanswered` when Pulsar never replies, `unknown` when that depends on
            topics which the snapshot does not list.
        status: HTTP status; None without an answer.
        bundle: Full name of the bundle meant; empty when none was found.
        owner: Broker that owns it, where the children stay; None when nobody does.
        algorithm: Name of the algorithm that runs; empty when it does not come to that.
        boundaries: New boundaries, ascending; empty when nothing changes.
        children: Full names of the children; empty when nothing changes.
        namespace_boundaries: Boundaries of the namespace afterwards.
        children_unloaded: True when the children are unloaded at once, so that the next lookup places them.
        reasons: Why.
        error: What Pulsar raises; None when it raises nothing.
        notes: What else the user should know.
    """

    verdict: Verdict
    status: int | None
    namespace_boundaries: tuple[int, ...]
    reasons: tuple[Reason, ...]
    bundle: str = ""
    owner: str | None = None
    algorithm: str = ""
    boundaries: tuple[int, ...] = ()
    children: tuple[str, ...] = ()
    children_unloaded: bool = False
    error: PulsarError | None = None
    notes: tuple[str, ...] = field(default=())


def answer(snapshot: Snapshot, command: SplitCommand, config: Settings) -> SplitOutcome:
    """Return what Pulsar answers to a request to split a bundle; nothing is changed.

    The load manager is that of the snapshot. Limits on topics, rates or the number of bundles play no part.

    Args:
        snapshot: The cluster.
        command: The request.
        config: Settings in force.

    Raises:
        PlannerError: The snapshot has no such namespace.
    """
    if command.namespace not in snapshot.namespaces:
        raise PlannerError(
            f"'{command.namespace}' is not a namespace of this snapshot.", remedy="Choose one of its namespaces."
        )
    return _Request(snapshot, command, config).answer()


class _Request:
    """One request on its way through the checks, in Pulsar's order."""

    def __init__(self, snapshot: Snapshot, command: SplitCommand, config: Settings) -> None:
        self.snapshot = snapshot
        self.command = command
        self.config = config
        self.namespace = snapshot.namespaces.index(command.namespace)
        self.before = namespace_boundaries(snapshot, self.namespace)
        self.extensible = snapshot.info.load_manager is LoadManager.EXTENSIBLE
        self.reasons: list[Reason] = []
        self.notes: list[str] = []
        self.found: dict[str, str | None] = {}

    def answer(self) -> SplitOutcome:
        """Go through the checks."""
        named = self.command.algorithm if self.command.algorithm.strip() else ""
        if named and named not in self.config.names(SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS):
            return self.refuse(_PRECONDITION, _UNSUPPORTED, "RestException", f"'{named}' is not a supported algorithm.")
        if named == _SPECIFIED and not self.command.positions:
            return self.refuse(_PRECONDITION, _NO_POSITIONS, "RestException", "Positions are needed.")
        ends = self.choose()
        if isinstance(ends, SplitOutcome):
            return ends
        at = bisect_left(self.before, ends[0])
        name = bundle_name(self.command.namespace, *ends)
        if self.before[at : at + 2] != ends:
            return self.refuse(
                _PRECONDITION, _NOT_A_BUNDLE, "RestException", f"{format_range(*ends)} is not a bundle.", bundle=name
            )
        position = self.snapshot.bundle_position[name]
        owner = int(self.snapshot.bundles.owner[position])
        self.found = {"bundle": name, "owner": self.snapshot.brokers.name[owner] if owner >= 0 else None}
        return self.split(named, position, ends)

    def choose(self) -> tuple[int, int] | SplitOutcome:
        """Return the range that is meant."""
        text = self.command.bundle
        if text not in {LARGEST, HOT}:
            found = _RANGE.fullmatch(text)
            if not found or int(found[1], 16) >= int(found[2], 16):
                return self.refuse(_PRECONDITION, _MALFORMED, "RestException", f"'{text}' is not a bundle range.")
            return int(found[1], 16), int(found[2], 16)
        if text == HOT and self.extensible:
            self.notes.append("The extensible load manager treats HOT as LARGEST.")
        if text == LARGEST or self.extensible:
            if not topics_listed(self.snapshot):
                return self.unknown()
            picked = self.largest()
        else:
            picked = self.hot()
        if picked is None:
            return self.refuse(_NOT_FOUND, _NONE_TO_CHOOSE, "RestException", f"{text} matches no bundle.")
        return picked

    def largest(self) -> tuple[int, int] | None:
        """Return the bundle that is the first to reach the most persistent topics, counted as the store lists them."""
        snapshot = self.snapshot
        mine = np.flatnonzero(snapshot.bundles.namespace == self.namespace)
        rows = np.flatnonzero(np.isin(snapshot.topics.bundle, mine))
        names = snapshot.topics.name.take(rows).to_pylist()
        persistent = [(n, b) for n, b in zip(names, snapshot.topics.bundle[rows].tolist(), strict=True) if n[0] == "p"]
        counts: dict[int, int] = {}
        best, most = -1, 0
        for _, bundle in sorted(persistent, key=lambda row: _node_name(row[0])):
            counts[bundle] = counts.get(bundle, 0) + 1
            if counts[bundle] > most:
                best, most = bundle, counts[bundle]
        return None if best < 0 else self.pick(_LARGEST_IS, best, float(most))

    def hot(self) -> tuple[int, int] | None:
        """Return the first of the bundles with topics that have the highest long-term throughput."""
        table = self.snapshot.bundles
        mine = np.flatnonzero((table.namespace == self.namespace) & table.has_data & (table.data_topics > 0))
        if not len(mine):
            return None
        mine = mine[np.argsort(table.low[mine])]
        throughput = table.throughput_bytes_per_s(term="long_term_")[mine]
        best = int(throughput.argmax())
        return self.pick(_HOT_IS, int(mine[best]), float(throughput[best]) / MIB)

    def pick(self, code: ReasonCode, position: int, number: float) -> tuple[int, int]:
        """Log which bundle a keyword stands for."""
        low, high = int(self.snapshot.bundles.low[position]), int(self.snapshot.bundles.high[position])
        name = bundle_name(self.command.namespace, low, high)
        self.reasons.append(code.of(number, bundle=name))
        return low, high

    def split(self, named: str, position: int, ends: tuple[int, int]) -> SplitOutcome:
        """Ask the algorithm, then apply what it answers."""
        default = self.config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM)
        known = any(algorithm.name == named for algorithm in SPLIT_ALGORITHMS)
        algorithm = default_split_algorithm(named if known else default)
        self.found["algorithm"] = algorithm.name
        if algorithm.name != (named or default):
            self.notes.append(f"Pulsar does not know the algorithm '{named or default}' and uses {algorithm.name}.")
        if self.command.positions and algorithm.name != _SPECIFIED:
            self.notes.append(f"{algorithm.name} ignores the positions.")
        if algorithm.name == _FLOW != default:
            return self.refuse(_SERVER_ERROR, _CLASS_CAST, "ClassCastException", f"{_FLOW} is not the default.")
        try:
            cuts = self.ask(algorithm, position)
        except PulsarError as error:
            return self.refuse(_PRECONDITION, _FAILED, error.exception, error.what)
        if cuts.boundaries is None and any(reason.code.code.endswith(".unknown_topics") for reason in cuts.reasons):
            return self.unknown()
        if not cuts.boundaries:
            if self.extensible:
                return self.refuse(_SERVER_ERROR, _NO_CHANGE_ERROR, "IllegalStateException", "No boundary was found.")
            return self.outcome(Verdict.UNCHANGED, _NO_CONTENT, _NO_CHANGE)
        return self.apply(ends, cuts.boundaries)

    def ask(self, algorithm: SplitAlgorithm, position: int) -> SplitAnswer:
        """Return what the algorithm answers; log its reasons."""
        request = split_request(self.snapshot, position, positions=self.command.positions)
        cuts = algorithm.boundaries(request, self.config)
        self.reasons.extend(replace(reason, bundle=self.found["bundle"]) for reason in cuts.reasons)
        return cuts

    def apply(self, ends: tuple[int, int], cuts: tuple[int, ...]) -> SplitOutcome:
        """Let the bundle factory, and then the load manager, accept or refuse the boundaries."""
        try:
            result = apply_split(self.before, ends, cuts)
        except PulsarError as error:
            if not self.extensible and len(set(cuts)) < len(cuts) and all(ends[0] < cut < ends[1] for cut in cuts):
                return replace(self.outcome(Verdict.UNANSWERED, None, _NEVER), error=error)
            return self.refuse(_PRECONDITION, _REFUSED, error.exception, error.what)
        if self.extensible and len(cuts) > 1:
            return self.refuse(
                _PRECONDITION,
                _TOO_MANY,
                "IllegalArgumentException",
                "The extensible load manager splits into only two children.",
                boundaries=float(len(cuts)),
            )
        unload = self.command.unload and not self.extensible
        if self.command.unload and self.extensible:
            self.notes.append(
                "The extensible load manager ignores the request to unload: the children stay where they are."
            )
        return replace(
            self.outcome(Verdict.SPLIT, _NO_CONTENT),
            boundaries=tuple(sorted(cuts)),
            children=tuple(bundle_name(self.command.namespace, *child) for child in result.children),
            namespace_boundaries=result.boundaries,
            children_unloaded=unload,
        )

    def refuse(
        self, status: int, code: ReasonCode, exception: str, what: str, *, bundle: str = "", **numbers: float
    ) -> SplitOutcome:
        """Return that Pulsar refuses."""
        refused = self.outcome(Verdict.REFUSED, status, code, bundle=bundle, numbers=numbers)
        return replace(refused, error=PulsarError(exception, what, where=self.command.namespace))

    def unknown(self) -> SplitOutcome:
        """Return that the answer depends on topics that are not listed."""
        return self.outcome(Verdict.UNKNOWN, None, _UNKNOWN)

    def outcome(
        self,
        verdict: Verdict,
        status: int | None,
        code: ReasonCode | None = None,
        *,
        bundle: str = "",
        numbers: Mapping[str, float] | None = None,
    ) -> SplitOutcome:
        """Return an outcome that changes nothing."""
        name = bundle or self.found.get("bundle") or ""
        if code is not None:
            self.reasons.append(Reason(code, None, name or self.command.bundle, numbers or {}))
        return SplitOutcome(
            verdict,
            status,
            self.before,
            tuple(self.reasons),
            bundle=name,
            owner=self.found.get("owner"),
            algorithm=self.found.get("algorithm") or "",
            notes=tuple(self.notes),
        )


def _node_name(topic: str) -> str:
    """Return a topic's name as the metadata store holds it, by which it lists topics: URL-encoded as Java does."""
    return quote_plus(topic.rpartition("/")[2], safe="*").replace("~", "%7E")
