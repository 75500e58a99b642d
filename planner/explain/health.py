"""How a cluster is, in a sentence: full, overloaded, unbalanced, at risk, or healthy, and whether Pulsar mends it."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from planner.cluster.names import (
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    LOAD_BALANCER_ENABLED,
    LOAD_MANAGER_CLASS_NAME,
    LOAD_SHEDDING_STRATEGY,
    SHEDDING_ENABLED,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, percent, times
from planner.explain.core_patterns import only_cores_apart
from planner.explain.finding import MEASUREMENT, Finding
from planner.explain.held import APART, held_brokers, waiting_brokers
from planner.explain.outcome import Outcome
from planner.explain.shedding_patterns import lag_decides
from planner.explain.topic_patterns import hottest_topics, topic_dominates
from planner.explain.unlike import unseen_usage
from planner.pulsar.load.usage import weighted_usage
from planner.simulate.usage_model import Standing

Level: TypeAlias = Literal["bad", "warning", "good"]
"""Urgency."""

Figure: TypeAlias = Literal["highest", "average", "deviation", "headroom"]
"""A key figure of a cluster that can be urgent."""

_LAG: Final = "ema_lag"
"""Scores that lagged long before the end explain less than what keeps brokers apart there."""

_CAUSES = (
    "class_not_loaded",
    "other_load_manager",
    "threshold_never_acts",
    "average_frozen",
    "average_runs_away",
    "share_above_one",
    "used_by_others",
    "fewer_cores",
    "memory_stays",
    "network_stays",
    "topics_refused",
    "policy_full",
    "policy_without_namespaces",
    "held_by_gate",
    "usage_not_compared",
    "threshold_never_reached",
    "avg_held_back",
    "key_skew",
    "hot_topic",
    "fighting_strategies",
    "drawn_at_random",
    "ping_pong",
    "idle_broker",
    "bundle_count_too_low",
    _LAG,
    "threshold_no_longer_reached",
)
"""Findings that explain why a cluster stays unbalanced, the likeliest first."""

_OF_A_BROKER = frozenset(
    {
        "used_by_others",
        "fewer_cores",
        "memory_stays",
        "network_stays",
        "policy_full",
        "held_by_gate",
        "key_skew",
        "hot_topic",
    }
)
"""Those that explain it only where the most used broker is one of theirs."""


_ALSO_NOTES = frozenset({"held_by_gate", "policy_full"})
"""Causes of a broker that keep brokers apart as notes as well, as where all have most of their capacity left."""
_OF_A_TOPIC = ("key_skew", "hot_topic")
"""Findings about a single topic, which no gate that opens divides."""
_UNLESS_A_NOTE = frozenset({"class_not_loaded", "policy_without_namespaces", "topics_refused"})
"""Causes that keep brokers apart only where they are more than a note."""
_DECIDES_SHEDDING = frozenset({LOAD_MANAGER_CLASS_NAME, LOAD_SHEDDING_STRATEGY})
"""Settings whose classes decide what is shed."""
_ROUNDING = 1e-9
_LATELY = 10
"""Cycles at the end without anything shed, after which no rule calls for more."""


@dataclass(frozen=True, slots=True)
class Health:
    """The verdict.

    Attributes:
        level: How urgent it is.
        word: It in one or two words.
        text: Why, in a sentence or two.
    """

    level: Level
    word: str
    text: str


def usage_of(snapshot: Snapshot, config: Settings) -> tuple[float, float, float]:
    """Return the least, the mean and the highest weighted usage of the brokers that answer (1.0 = 100 %)."""
    usage = weighted_usage(snapshot.brokers, config, snapshot.info.load_manager)
    there = usage[snapshot.brokers.registered & snapshot.brokers.has_load_data]
    return (float(there.min()), float(there.mean()), float(there.max())) if len(there) else (0.0, 0.0, 0.0)


def is_full(now: Standing, config: Settings) -> bool:
    """Say whether no balancing can help: even in perfect balance, brokers are at the limit."""
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    return now.balanced_usage >= limit - _ROUNDING


def figure_levels(snapshot: Snapshot, config: Settings, now: Standing) -> dict[Figure, Level]:
    """Return which key figures of a cluster are urgent, by the limits that the verdict uses.

    Args:
        snapshot: The cluster.
        config: Settings in force.
        now: How near it is to its limits.
    """
    least, mean, highest = usage_of(snapshot, config)
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    levels: dict[Figure, Level] = {}
    if now.over_threshold:
        levels["highest"] = "bad"
    if mean >= limit:
        levels["average"] = "bad"
    if highest - least >= APART:
        levels["deviation"] = "warning"
    if now.growth.factor < 1:
        levels["headroom"] = "bad"
    return levels


def health(
    snapshot: Snapshot,
    config: Settings,
    now: Standing,
    outcome: Outcome | None,
    known: Sequence[Finding] | None,
    vain: AbstractSet[str] = frozenset(),
) -> Health:
    """Return how a cluster is.

    Args:
        snapshot: The cluster.
        config: Settings in force.
        now: How near it is to its limits.
        outcome: What its load balancer makes of it; None while that is not known, or not to be told.
        known: What a diagnosis of that says; None while there is none. Once there is, it alone says whether the cluster
            is out of capacity, since balancing may have found room.
        vain: Codes of findings whose remedies were tried and made no difference: another cause goes before them.
    """
    findings = () if known is None else known
    if not snapshot.brokers.registered.any():
        return Health("bad", "Out of capacity", "No broker is left.")
    least, _, highest = usage_of(snapshot, config)
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    brokers = int((snapshot.brokers.registered & snapshot.brokers.has_load_data).sum())
    headroom = f"headroom {times(now.growth.factor)}" if np.isfinite(now.growth.factor) else "no traffic"
    over = f"{now.over_threshold:,} of {count(brokers, 'broker')} above {limit * 100:.0f} %"
    doubt = _by_weight(snapshot, config, findings, over=now.over_threshold > 0) or _doubt(outcome, findings)
    full = is_full(now, config)
    scarce = next((one for one in findings if one.code == "out_of_capacity"), None)
    if scarce is not None or (full and known is None):
        at_last = f" later, {within(scarce.title.partition(': ')[2])}, and" if scarce and not full else ""
        return Health("bad", "Out of capacity", f"{over}, {headroom};{at_last} balancing cannot help.{doubt}")
    if now.over_threshold:
        return Health("bad", "Overloaded", f"{over}, {headroom}.{doubt or _mended(outcome, findings, 'over', vain)}")
    between = f"usage from {percent(least, 0)} to {percent(highest, 0)}, {headroom}"
    hidden = next((f for f in findings if f.code == "resource_not_counted" and f.severity == "high"), None)
    if hidden is not None:
        return Health("bad", "Overloaded", f"{hidden.title}. Load balancing sees {between}.")
    if highest - least >= APART:
        doubt = doubt or _by_cores(snapshot, config, findings) or _unseen(snapshot, outcome, findings)
        return Health("warning", "Unbalanced", f"{between}.{doubt or _mended(outcome, findings, 'apart', vain)}")
    return _balanced(between, findings)


def _doubt(outcome: Outcome | None, findings: Sequence[Finding]) -> str:
    """Return that the usage may be untrue; empty where nothing is wrong about the most used broker."""
    wrong = [one for one in findings if one.code == MEASUREMENT and one.severity == "high"]
    if not wrong:
        return ""
    usage = outcome.reported_usage[0] if outcome is not None else np.empty(0)
    busiest = outcome.series.brokers[int(np.nanargmax(usage))] if outcome and np.isfinite(usage).any() else ""
    about = next((one for one in wrong if not busiest or busiest in one.brokers), None)
    return f" But this may be untrue: {within(about.title)}." if about is not None else ""


def usage_with_weights_of_1(snapshot: Snapshot, config: Settings, heavy: Finding) -> tuple[float, float, float]:
    """Return `usage_of` a cluster in which the weights that a finding calls too high are 1."""
    return usage_of(snapshot, config.changed(**dict.fromkeys(heavy.settings, 1.0)))


def _by_weight(snapshot: Snapshot, config: Settings, findings: Sequence[Finding], *, over: bool) -> str:
    """Return that only a weight above 1 makes brokers look full, or apart; empty where that is not so.

    Args:
        snapshot: The cluster.
        config: Settings in force.
        findings: What a diagnosis says.
        over: Whether a broker is above the limit.
    """
    heavy = next((one for one in findings if one.code == "weight_above_one"), None)
    if heavy is None:
        return ""
    least, _, highest = usage_with_weights_of_1(snapshot, config, heavy)
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    apart = highest - least >= APART
    if highest >= limit or (apart and not over):
        return ""
    used = f"usage is from {percent(least, 0)} to" if apart else "the highest usage is"
    return f" But this is untrue: {within(heavy.title)}. With a weight of 1, {used} {percent(highest, 0)}."


def _by_cores(snapshot: Snapshot, config: Settings, findings: Sequence[Finding]) -> str:
    """Return that brokers may be apart only by the cores that one reports; empty where that is not so."""
    many = next((one for one in findings if one.code == "more_cores"), None)
    if many is None or not only_cores_apart(snapshot, config):
        return ""
    return f" But this may be untrue: {within(many.title)}."


def _unseen(snapshot: Snapshot, outcome: Outcome | None, findings: Sequence[Finding]) -> str:
    """Return that the least used broker may only look so, as its usage is not seen; empty where that is not so."""
    usage = outcome.reported_usage[0] if outcome is not None else np.empty(0)
    if outcome is None or not np.isfinite(usage).any():
        return ""
    least = {outcome.series.brokers[int(np.nanargmin(usage))]} & unseen_usage(snapshot.brokers)
    odd = next((one for one in findings if one.code == MEASUREMENT and not least.isdisjoint(one.brokers)), None)
    return f" But this may be untrue: {within(odd.title)}." if odd is not None else ""


def _balanced(between: str, findings: Sequence[Finding]) -> Health:
    """Return how a cluster is whose brokers are alike enough, as far as they report."""
    if (silent := next((one for one in findings if one.code == "report_missing"), None)) is not None:
        return Health("warning", "At risk", f"Balanced as far as is known ({between}): {within(silent.title)}.")
    high = [finding for finding in findings if finding.severity == "high"]
    # A gate matters only once something has driven the brokers apart, which the other finding says.
    worst = next((finding for finding in high if finding.code != "held_by_gate"), high[0] if high else None)
    if worst is not None:
        return Health(
            "warning", "At risk", f"Balanced ({between}), but with a critical finding: {within(worst.title)}."
        )
    first = next((f for severity in ("medium", "low") for f in findings if f.severity == severity), None)
    if first is None:
        return Health("good", "Healthy", f"{between}; no critical findings.")
    what = "warning" if first.severity == "medium" else "note"
    alike = sum(finding.severity == first.severity for finding in findings)
    more = f", and {alike - 1} more" if alike > 1 else ""
    return Health("good", "Healthy", f"{between}. {what.capitalize()}: {within(first.title)}{more}.")


def _is_left_by_a_topic(outcome: Outcome, busiest: str, what: Literal["over", "apart"]) -> bool:
    """Say whether one topic of the busiest broker alone keeps it above the limit, or brokers apart."""
    least = outcome.limit
    if what == "apart":
        least = float(np.nanmin(outcome.series.usage[-1])) + APART
    return topic_dominates(outcome, busiest) and hottest_topics(outcome)[busiest] >= least


def within(title: str) -> str:
    """Return a title as it stands within a sentence; a name such as `AvgShedder` or Pulsar keeps its capital."""
    first = title.partition(" ")[0]
    return title if first == "Pulsar" or first[1:] != first[1:].lower() else title[:1].lower() + title[1:]


def _what_else(outcome: Outcome) -> str:
    """Return why brokers stay as they are where no finding says it."""
    if any(unload.carried_out for cycle in outcome.trace.cycles[-_LATELY:] for unload in cycle.unloads):
        return "it sheds too little"
    if held := held_brokers(outcome) or waiting_brokers(outcome):
        return f"{held[0].broker} is held back ({held[0].text.removeprefix('stays: ')})"
    return f"no rule of {outcome.shedder} calls for more"


def is_not_simulated(finding: Finding) -> bool:
    """Say whether a finding tells that what is shed is decided by rules that are not simulated."""
    own = finding.code == "own_class" and finding.severity != "low"
    simple = finding.code == "class_not_loaded" and LOAD_MANAGER_CLASS_NAME in finding.settings
    return (
        simple or finding.code == "other_load_manager" or (own and not _DECIDES_SHEDDING.isdisjoint(finding.settings))
    )


def _cause(
    outcome: Outcome, findings: Sequence[Finding], what: Literal["over", "apart"], vain: AbstractSet[str]
) -> Finding | None:
    """Return the finding that explains why brokers stay above the limit, or apart; None where none does."""
    busiest = outcome.series.brokers[int(np.nanargmax(outcome.series.usage[-1]))]
    gates = [one for one in findings if one.code == "held_by_gate"]
    by_code = {
        one.code: one
        for one in findings
        if (
            one.code not in _OF_A_BROKER
            or (busiest in one.brokers and (one.severity != "low" or one.code in _ALSO_NOTES))
        )
        and (one.code not in _UNLESS_A_NOTE or one.severity != "low")
    }
    # A gate that follows from another finding has its place.
    behind = [(one, gate) for one in findings for gate in one.explains if gate.code == "held_by_gate"]
    if not gates and (first := next((one for one, gate in behind if busiest in gate.brokers), None)):
        by_code["held_by_gate"] = first
    # What holds back another broker explains less, but a rule calls for more.
    others = [*gates, *(one for one, _ in behind)]
    doubtful = set(vain)
    if _LAG in by_code and not outcome.once("lag decides", lambda: lag_decides(outcome)):
        doubtful.add(_LAG)
        if _LAG in vain:
            del by_code[_LAG]
    likely = sorted((code for code in _CAUSES if code in by_code), key=doubtful.__contains__)
    cause = by_code[likely[0]] if likely else others[0] if others else None
    topic = next((by_code[code] for code in _OF_A_TOPIC if code in by_code), None)
    if topic is not None and cause in gates and _is_left_by_a_topic(outcome, busiest, what):
        return topic
    return cause


def _mended(
    outcome: Outcome | None, findings: Sequence[Finding], what: Literal["over", "apart"], vain: AbstractSet[str]
) -> str:
    """Say whether Pulsar fixes it on its own, or why not."""
    if outcome is None:
        return ""
    if (unknown := next(filter(is_not_simulated, findings), None)) is not None:
        return f" What Pulsar does about it is unknown: {within(unknown.title)}."
    after, cycles = outcome.before_after.after, len(outcome.trace.cycles)
    if not outcome.series.present[-1].any():
        return " No broker is left at the end."
    apart = float(outcome.spread.spread[-1])
    if after.over_threshold == 0 and (what == "over" or apart < APART):
        settled = outcome.summary.settled_after_cycles
        when = f"within {count(cycles, 'cycle')}" if settled is None else f"by cycle {settled}"
        silent = next((one.title for one in findings if one.code == "report_missing"), "")
        once = f"Once there is {silent.removeprefix('There is no ')}, " if silent else ""
        return f" {once}Pulsar fixes this on its own {when}; it sheds {count(outcome.summary.shed, 'bundle')}."
    cause = _cause(outcome, findings, what, vain)
    left = (
        f"{count(after.over_threshold, 'broker')} still above it after {count(cycles, 'cycle')}"
        if what == "over"
        else f"brokers still {apart * 100:.0f} points apart after {count(cycles, 'cycle')}"
    )
    if not outcome.trace.settings.flag(LOAD_BALANCER_ENABLED):
        reason = "loadBalancerEnabled is off"
    elif not outcome.trace.settings.flag(SHEDDING_ENABLED):
        reason = "loadBalancerSheddingEnabled is off"
    elif cause is not None:
        reason = within(cause.title)
    else:
        reason = _what_else(outcome)
    return f" Pulsar will not fix this on its own ({left}): {reason}."
