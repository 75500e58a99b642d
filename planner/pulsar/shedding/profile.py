"""What is known about a shedding strategy beside its rule, stated by the strategy itself and read by every room."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from planner.cluster.arrays import FloatArray
from planner.cluster.decisions import ReasonCode, SheddingDecision
from planner.cluster.names import SHEDDING_ENABLED, SHEDDING_GRACE_PERIOD_MINUTES
from planner.cluster.releases import Switch
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.pulsar.shedding.needs import Need

Measure: TypeAlias = Literal["usage", "msg_rate"]
"""Criteria by which a strategy compares brokers."""

WouldShed: TypeAlias = Callable[[Settings], bool]
"""Says whether the last cycle that was seen sheds under other settings."""

Bounds: TypeAlias = tuple[float, float] | None
"""Between which values of a setting a decision is searched; None for a switch."""


ROOM: Final = 0.2
"""Share by which a value that opens a gate lies beyond its edge, so that a little less traffic does not shut it."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something to change.

    Attributes:
        words: What to do, in sentences.
        changes: The settings that do it; empty when none does.
    """

    words: str
    changes: Mapping[str, SettingValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverReached:
    """What was seen of a strategy that shed nothing while brokers were apart.

    Attributes:
        config: Settings in force.
        above: How far the highest score ever was above the average of its cycle; 1.0 is 100 %.
        average: Average score of the last cycle.
        scores: Scores of the last cycle that are known. Shape (brokers,).
        would_shed: Whether the last cycle sheds under other settings.
    """

    config: Settings
    above: float
    average: float
    scores: FloatArray
    would_shed: WouldShed


@dataclass(frozen=True, slots=True)
class Quiet:
    """A cycle in which a strategy shed nothing.

    Attributes:
        cycle: Its number, from 1.
        brokers: Ids of the brokers, as the decision has their positions.
        decision: What the strategy decided, with its reasons.
    """

    cycle: int
    brokers: Sequence[str]
    decision: SheddingDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """How the minimums of a strategy kept it from shedding.

    Attributes:
        evidence: What was seen, in sentences.
        remedy: What to change.
        brokers: Those held back, the one with the most to move first.
        settings: The minimums, and what goes with them.
        title: What holds them back, in a line, where it is not the minimums.
    """

    evidence: str
    remedy: Remedy
    brokers: tuple[str, ...]
    settings: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A rule that keeps a broker from being shed although its threshold calls for it.

    Attributes:
        what: The rule, as a subject: `the minimum throughput of an unload`.
        settings: Settings that can open it, the likeliest first; none where no setting does.
        of_bundles: Whether it only sums up that each bundle of the broker is held back by a rule of its own.
        passes: Whether it opens by itself as cycles go by, so that it matters only where nothing is shed for long.
        beside: Settings that may open it although they are no part of it, as brokers then report other bundles, or
            placement has other candidates; it says nothing where none does.
        skips: Whether it skips whole cycles meanwhile, so that what else holds a broker back shows before or after it.
    """

    what: str
    settings: tuple[str, ...] = ()
    of_bundles: bool = False
    passes: bool = False
    beside: tuple[str, ...] = ()
    skips: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """How the counters of a strategy behave whose state a watcher has to guess.

    Attributes:
        cycles_to_know: Cycles to watch until the counters of a leader in office are known.
        after_unloads: The state after bundles left some brokers: what counted up to that starts anew.
        least: The state with counters no higher than in either of two.
        full: States in which the counters of every broker are about to act.
        reported: The state after a cycle, from what a leader's metrics report (`SnapshotInfo.leader_metrics`): given
            the state before, the computed one, and the metrics before and now. None where they report nothing.
    """

    cycles_to_know: Callable[[Settings], int]
    after_unloads: Callable[[Any, Collection[str]], Any]
    least: Callable[[Any, Any], Any]
    full: Callable[[Any, Sequence[str], Settings], Iterator[Any]]
    reported: Callable[[Any, Any, Mapping[str, float], Mapping[str, float], Settings], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Something that the strategy counts or averages from cycle to cycle, to be shown.

    Attributes:
        name: Short; tells it from the others.
        label: What it is, under settings.
        of: Its values in a state: by broker, or by one name for the whole cluster.
        unit: Hits of each broker, a share of 1 of each broker, or cycles in a row of the cluster.
        needed: The count at which it acts, or that must be exceeded; None where a threshold decides.
        apart: How many points a pair of brokers must be apart to be counted; None where no pairs are compared.
    """

    name: str
    label: Callable[[Settings], str]
    of: Callable[[Any, Sequence[str]], Mapping[str, float]]
    unit: Literal["hits", "share", "cycles"]
    needed: Callable[[Settings], int] | None = None
    apart: Callable[[Settings], int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known about a strategy.

    Attributes:
        needs: The columns of a snapshot without which its answer says little.
        bounds: The settings that may flip a decision, and between which values that is searched.
        eager: The values with which it sheds as much as it can, in the order in which they are taken back when they
            are not needed.
        differences: Where the public documentation differs from the release.
        judges_by: What it compares brokers by, in words.
        measure: The same as data.
        threshold: The score from which it sheds, or how far above the average of all scores that is; None without one.
        above_average: Whether the threshold counts from the average of all scores.
        exact: Where the score of a broker and the lines of a decision put a threshold of whole numbers, in its unit.
        averaged: Whether its score is an average over cycles, which trails the load.
        remembers_donors: Whether it keeps its hands off brokers that it shed from lately.
        held_back: What it says about cycles in which it was to act and its own minimums let nothing move; None where it
            has no such minimums.
        gates: By the reason that it gives, the rules that hold a broker above its threshold, or its bundles, back.
        counters: Its counters; None when it has none.
        tallies: What it counts or averages from cycle to cycle.
        pairs: The pairs of brokers that a decision compared, lower score first; None when it compares no pairs.
        spent: The brokers, by position, whose counts were enough in a decision and start again: whether their pair
            acts, and how many points it is apart; None when it counts by no broker.
        most_bundles: The setting that limits the bundles of a cycle, the busiest first; empty for none.
        paired_placement: Name of the placement strategy that must run with it, and with no other; empty without one.
        moves_nothing: By setting, the least and the greatest value with which it moves no bundle, whatever it compares.
        out_of_reach: By setting, the value from which on no cluster exceeds it, and why, as a sentence.
        absent: Rule of the releases that have neither the strategy nor its pair; None when all have it.
        calmer: What makes it shed less at once.
        for_idle_brokers: What makes it fill brokers that are nearly empty, given what would shed.
        for_never_reached: What makes it act although its threshold was never reached; None if it was reached.
        for_switched_off: What makes it compare brokers where its settings switch every comparison off; None where not.
    """

    needs: tuple[Need, ...]
    bounds: Mapping[str, Bounds]
    eager: Mapping[str, SettingValue]
    differences: tuple[str, ...]
    judges_by: str
    calmer: Callable[[Settings], Remedy]
    for_idle_brokers: Callable[[Settings, WouldShed], Remedy]
    for_never_reached: Callable[[NeverReached], Remedy | None] | None = None
    for_switched_off: Callable[[Settings], Remedy | None] = lambda _: None
    moves_nothing: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    out_of_reach: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    measure: Measure = "usage"
    threshold: Callable[[Settings], float] | None = None
    above_average: bool = False
    exact: Mapping[str, Callable[[float, Mapping[str, float]], float]] = field(default_factory=dict)
    averaged: bool = False
    remembers_donors: bool = False
    held_back: Callable[[Iterable[Quiet], Settings], HeldBack | None] | None = None
    gates: Mapping[ReasonCode, Gate] = field(default_factory=dict)
    counters: Counters | None = None
    tallies: tuple[Tally, ...] = ()
    pairs: Callable[[SheddingDecision], list[tuple[int, int]]] | None = None
    spent: Callable[[SheddingDecision], Mapping[int, tuple[bool, float]]] | None = None
    paired_placement: str = ""
    most_bundles: str = ""
    absent: Switch | None = None


EVERY_BOUNDS: Mapping[str, Bounds] = {
    SHEDDING_GRACE_PERIOD_MINUTES: (0, 100_000),
    SHEDDING_ENABLED: None,
}
"""The bounds of what the cycle around every strategy reads; see `Profile.bounds`."""

EVERY_EAGER: Mapping[str, SettingValue] = {
    SHEDDING_ENABLED: True,
    SHEDDING_GRACE_PERIOD_MINUTES: 0,
}
"""Its values with which most is shed; see `Profile.eager`."""


def lower_threshold_remedy(config: Settings, would_shed: WouldShed) -> Remedy:
    """Return what fills idle brokers where nothing better is known."""
    del config, would_shed
    return Remedy("Lower the threshold of the strategy, or unload bundles to the idle brokers by hand.")
