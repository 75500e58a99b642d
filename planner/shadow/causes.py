"""How a cycle differs from its prediction, and the likely causes: found by deciding again with other inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.cluster.names import SHEDDING_GRACE_PERIOD_MINUTES
from planner.cluster.relocation import Relocation
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.manager.leader import elected
from planner.shadow.case import Case
from planner.shadow.observe import TWICE_INTERVALS, report_times
from planner.shadow.prediction import Prediction, predict
from planner.shadow.record import Cause, Deviation
from planner.shadow.state import UNLOADED

ELSEWHERE = "went elsewhere"
"""Text of a deviation about a bundle that went to another broker than predicted."""

_STAYED = "stayed"
_MOST_UNSEEN = 30


@dataclass(frozen=True, eq=False, slots=True)
class Explanation:
    """Why the bundles of a cycle are not those that were predicted.

    Attributes:
        rest: The likely cause.
        decision: The decision that explains it, if there is one.
        of_bundle: Another cause, for some bundles.
    """

    rest: Cause
    decision: Prediction | None = None
    of_bundle: Mapping[str, Cause] = field(default_factory=dict)

    def cause(self, bundle: str) -> Cause:
        """Return the likely cause for a bundle."""
        return self.of_bundle.get(bundle, self.rest)


def differences(
    case: Case, predicted: Sequence[Relocation], actual: Sequence[Relocation]
) -> tuple[tuple[Deviation, ...], Prediction | None]:
    """Return what was not as predicted, and the decision that explains it if that is not the prediction.

    Args:
        case: The cycle.
        predicted: Bundles that were to be unloaded, of those that still exist.
        actual: Bundles that were unloaded.
    """
    wanted, left = {unload.bundle for unload in predicted}, {unload.bundle for unload in actual}
    elsewhere = _elsewhere(predicted, actual)
    causes = case.state.between.causes
    outside = {(unload.bundle, unload.source) for unload in case.state.between.outside}
    gone = {u.bundle for u in predicted if u.bundle not in left and (u.bundle, u.source) in outside}
    left_before = [Deviation(bundle, _STAYED, causes[bundle]) for bundle in sorted(gone)]
    sure = {unload.bundle for unload in predicted if not unload.may_stay} - gone
    as_predicted = sure <= left <= wanted
    if as_predicted and not elsewhere:
        return tuple(left_before), _fitting_metrics(case, left)
    why = Explanation(Cause.UNKNOWN) if as_predicted else _explanation(case, left)
    found = [Deviation(bundle, _STAYED, why.cause(bundle)) for bundle in sorted(sure - left)]
    found += [Deviation(bundle, UNLOADED, why.cause(bundle)) for bundle in sorted(left - wanted)]
    found += _causes_elsewhere(case, elsewhere)
    return (*found, *left_before), why.decision


def _elsewhere(predicted: Sequence[Relocation], actual: Sequence[Relocation]) -> list[Relocation]:
    """Return unloads that were predicted, to other brokers."""
    acceptable = {unload.bundle: unload.acceptable for unload in predicted}
    return [u for u in actual if u.destination and u.destination not in acceptable.get(u.bundle, (u.destination,))]


def _fitting_metrics(case: Case, left: set[str]) -> Prediction | None:
    """Return a decision with the same unloads as predicted that the leader's metrics fit better, if any."""
    agrees = case.seen.counted.agrees
    if agrees(case.made) or case.cycle.disturbed is not None:
        return None
    others = (decide() for _, decide in case.alternatives())
    return next((other for other in others if other.explains(left) and agrees(other)), None)


def _causes_elsewhere(case: Case, unloads: Sequence[Relocation]) -> list[Deviation]:
    """Say why bundles went to other brokers than predicted; each other decision is made once for all."""
    disturbed, bundles = case.cycle.disturbed, {unload.bundle for unload in unloads}
    causes = dict.fromkeys(bundles & case.cycle.returned, Cause.RETURNED)
    for cause, decide in case.alternatives() if disturbed is None else ():
        if bundles <= causes.keys():
            break
        acceptable = decide().acceptable
        causes = {u.bundle: cause for u in unloads if u.destination in acceptable.get(u.bundle, ())} | causes
    rest = Cause.UNKNOWN if disturbed is None else disturbed
    return [Deviation(unload.bundle, ELSEWHERE, causes.get(unload.bundle, rest)) for unload in unloads]


def _explanation(case: Case, left: set[str]) -> Explanation:
    """Return why these bundles were unloaded, and not those that were predicted."""
    if case.cycle.disturbed is not None:
        return Explanation(case.cycle.disturbed)
    others = [(cause, decide()) for cause, decide in case.alternatives()]
    explaining = [one for one in others if one[1].explains(left)]
    if explaining:
        return Explanation(*min(explaining, key=lambda one: not case.seen.counted.agrees(one[1])))
    for other in case.in_other_orders(frozenset(left ^ case.made.bundles)):
        if other.explains(left):
            return Explanation(Cause.ORDER, other)
    unseen = _unloads_before_watch(case, left)
    if unseen is not None:
        return Explanation(Cause.MEMORY, unseen)
    return _with_one_more(case, left, others)


def _with_one_more(case: Case, left: set[str], others: Sequence[tuple[Cause, Prediction]]) -> Explanation:
    """Return the decision beside which one bundle was unloaded by somebody else; several are likely the leader's own.

    What the leader counted is its own.
    """
    manual = case.seen.counted.unloaded is None and _are_apart(case, left - case.made.bundles)
    extra_cause = Cause.MANUAL if manual else Cause.UNKNOWN
    for cause, other in ((Cause.UNKNOWN, case.made), *others):
        extra = left - other.bundles
        if other.sure <= left and len(extra) == 1:
            of_extra = dict.fromkeys(extra, _or_late_report(case, extra_cause))
            return Explanation(_or_late_report(case, cause), other, of_extra)
    return Explanation(_or_late_report(case, Cause.UNKNOWN))


def _or_late_report(case: Case, cause: Cause) -> Cause:
    """Return a late report in place of an unknown cause, where the leader must have known one that no capture holds."""
    if cause is not Cause.UNKNOWN or not case.rhythm.known:
        return cause
    every_ms, due_ms = case.seen.report_interval_ms, case.rhythm.due_ms
    unseen = any(
        since + every_ms <= due_ms < at and at - since >= TWICE_INTERVALS * every_ms
        for since, at in report_times(case.made.view, case.next_view)
    )
    return Cause.LATE_REPORT if unseen else cause


def _are_apart(case: Case, extra: set[str]) -> bool:
    """Say whether bundles left in a cycle but not with it: the leader's inputs were seen, at another time."""
    if case.loads_change_decision() or not case.cycle.stable:
        return False
    at_ms = max((case.seen.after.info.taken_ms.get(bundle, 0) for bundle in extra), default=0)
    return not case.rhythm.known or not case.rhythm.is_at_cycle(at_ms)


def _unloads_before_watch(case: Case, left: set[str]) -> Prediction | None:
    """Return the decision of a leader that remembers unloads from before the first capture, if it explains all."""
    made, state = case.made, case.state
    config = made.view.settings
    grace_ms = config.integer(SHEDDING_GRACE_PERIOD_MINUTES) * MS_PER_MIN
    if case.seen.to_ms - state.began_ms > grace_ms or state.counted_at_begin.get("unloaded") == 0:
        return None
    memory = made.before or elected(made.decision.shedder, made.view.info.load_manager, config)
    for view in (made.view, case.loads_of(case.cycle.later)):
        recent = memory.shedding.recently_unloaded_bundles
        for _ in range(_MOST_UNSEEN):
            recent = {**dict.fromkeys(made.sure - left, state.began_ms), **recent}
            shedding = replace(memory.shedding, recently_unloaded_bundles=recent)
            made = predict(view, replace(memory, shedding=shedding))
            if made.sure <= left:
                break
        if made.explains(left):
            return made
    return None
