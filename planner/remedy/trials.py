"""Actions tried on a cluster: each simulated, judged against leaving things as they are, and held to other seeds."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.held import APART
from planner.explain.outcome import Outcome
from planner.remedy.action import Action, restart_of
from planner.simulate.edits.registry import BrokersRestart, BundleSplit
from planner.simulate.judge import Result, Verdict, gained, judge, unbeaten
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.steadiness import KEPT, LOST, holds, variants

_RESTARTED: Final = 50_000
"""Brokers times bundles up to which rolling restarts are simulated."""

# What a trade-off has to bring, and may cost, to be offered.
_LOWER_PEAK_POINTS: Final = 5.0
_LOWER_DEVIATION_POINTS: Final = 2.0
_FEWER_TOPICS: Final = 0.3
_HIGHER_PEAK_POINTS: Final = 3.0


@dataclass(frozen=True, eq=False, slots=True)
class Trial:
    """An action and what came of it.

    Attributes:
        action: What was done.
        before: The result without it, over the same time.
        after: The result with it.
        verdict: What the judge says.
        settles: Whether nothing is shed any more at the end.
        calms: Whether nothing is shed any more in the second half of the time, while without it something is.
        further: Bundles that there are at the end beyond those without it: automatic splits count as well.
        steady: Whether the gain holds under other seeds and traffic; None while that was not tried.
        restart: The rolling restart that was simulated with it, if any.
        counted: Whether the restart that it needs was too much work, so that only its disconnections count.
        bare: The result with that restart alone, where it was simulated: the action gets no credit for it.
    """

    action: Action
    before: Result
    after: Result
    verdict: Verdict
    settles: bool
    calms: bool = False
    further: int = 0
    steady: bool | None = None
    restart: BrokersRestart | None = None
    counted: bool = False
    bare: Result | None = None

    def on(self, scenario: Scenario) -> Scenario:
        """Return a scenario with the action as it was tried: with its restart, unless the scenario makes one."""
        return self.action.with_restart(scenario, self.restart)

    @property
    def splits(self) -> bool:
        """Whether it splits bundles."""
        return any(isinstance(one, BundleSplit) for one in self.action.edits)

    @property
    def is_worth_it(self) -> bool:
        """Whether it may be offered: better, or a trade-off that brings far more than it costs.

        That holds against the restart alone as well, where it needs one. No split is offered that leaves brokers
        further apart, or that only spares clients: bundles never merge, so its price is paid for good.
        """
        return not self.spares_once and self._beats(self.before, self.verdict) and not self.only_restarts

    @property
    def only_restarts(self) -> bool:
        """Whether the restart that it needs brings as much alone."""
        return self.bare is not None and not self._beats(self.bare, judge(self.bare, self.after))

    def _beats(self, one: Result, verdict: Verdict) -> bool:
        """Say whether it is better than an outcome, or a trade-off that brings far more than it costs."""
        if verdict.word != "trade-off":
            return verdict.word == "better"
        if verdict.overload is None or verdict.overload < 0:
            return False
        two = self.after
        if verdict.balance == 1:
            lower = one.end_peak_percent - two.end_peak_percent >= _LOWER_PEAK_POINTS
            even = one.deviation_points - two.deviation_points >= _LOWER_DEVIATION_POINTS
            return (lower or even) and two.topics - one.topics <= one.all_topics
        if self.splits:
            return False
        calmer = two.topics <= (1 - _FEWER_TOPICS) * one.topics
        higher = two.end_peak_percent - one.end_peak_percent
        apart = two.deviation_points - one.deviation_points
        return calmer and higher <= _HIGHER_PEAK_POINTS and apart <= _LOWER_DEVIATION_POINTS

    @property
    def spares_once(self) -> bool:
        """Whether further bundles are better only in that fewer topics are disconnected until a cluster settles anyway.

        Those clients would reconnect once, but the bundles stay divided.
        """
        lasting = lasts(self.verdict) or self.calms or self.further <= 0
        return self.splits and self.verdict.word == "better" and not lasting

    @property
    def offered(self) -> bool:
        """Whether it is recommended: worth it, and not by luck."""
        return self.is_worth_it and self.steady is not False

    @property
    def text(self) -> str:
        """Why it is not recommended although it is better here, and what it achieved, in a few sentences."""
        parts = [f"Not recommended: {self.but}."] if self.but else []
        parts.append(f"Tried: {self.verdict.text[:1].lower()}{self.verdict.text[1:]}")
        if self.counted:
            parts.append("Of the rolling restart that it needs, only the disconnections are included.")
        elif self.action.restart:
            parts.append(f"The rolling restart that it needs is included{self._of_restart}.")
        if self.offered:
            parts += [f"{self.stays_apart}."] if self.stays_apart else []
            parts += [] if self.settles else ["Bundles still move at the end."]
        return " ".join(parts)

    @property
    def but(self) -> str:
        """Why it is not offered although it is better here; empty where it is not better, or is offered."""
        if self.is_worth_it:
            return "" if self.offered else LOST
        if self.spares_once:
            return "clients are spared once, but bundles never merge again"
        by_restart = self.only_restarts and self._beats(self.before, self.verdict)
        return "the rolling restart that it needs brings as much alone" if by_restart else ""

    @property
    def _of_restart(self) -> str:
        """What the restart brings alone, as the end of a sentence; empty where that is nothing."""
        if self.bare is None or judge(self.before, self.bare).word in {"same", "worse"}:
            return ""
        return f"; alone, it ends with a peak of {self.bare.end_peak_percent:.1f} %"

    @property
    def stays_apart(self) -> str:
        """How far apart the brokers stay, without a full stop; empty where they are even, or were before."""
        if min(self.before.apart_points, self.after.apart_points) < APART * 100:
            return ""
        return f"Brokers stay {self.after.apart_points:.0f} points apart"


def lasts(verdict: Verdict) -> bool:
    """Say whether something is better in what lasts: overload or balance, and not only in disconnections."""
    return 1 in {verdict.overload, verdict.balance}


class Trials:
    """Tries actions on a cluster, each once.

    Args:
        snapshot: The cluster.
        scenario: What it is tried on: what is left as it is.
        outcome: That scenario's outcome, where it is known.
        cancelled: Asked between simulations whether to stop.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        scenario: Scenario,
        outcome: Outcome | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.snapshot, self.scenario, self.cancelled = snapshot, scenario, cancelled
        self._results: dict[tuple[object, ...], Result] = {}
        self._plain = outcome
        self._trials: dict[tuple[object, ...], Trial | None] = {}
        self._latest: tuple[tuple[object, ...], Outcome] | None = None
        """The outcome of the action tried last, by its key."""

    def try_out(self, action: Action) -> Trial | None:
        """Return what comes of an action; None where it does not fit the cluster, or trying was stopped."""
        if action.key not in self._trials:
            self._trials[action.key] = self._tried(action)
        found = self._trials[action.key]
        return None if found is None else replace(found, action=action)

    def _tried(self, action: Action) -> Trial | None:
        if self.cancelled():
            return None
        before = self.unchanged().result
        try:
            outcome = self._outcome(action, self.scenario)
        except PlannerError:
            return None
        self._latest = action.key, outcome
        settles = outcome.summary.settled_after_cycles is not None
        calms = _sheds_late(self.unchanged()) and not _sheds_late(outcome)
        further = len(outcome.trace.end.bundles) - len(self.unchanged().trace.end.bundles)
        after = self._result(action, self.scenario, outcome)
        restarts = action.restarts(self.scenario)
        return Trial(
            action,
            before,
            after,
            judge(before, after),
            settles,
            calms,
            further,
            restart=self._restart if restarts else None,
            counted=restarts and not self.simulates_restarts,
            bare=self._bare(self.scenario) if restarts and self.simulates_restarts else None,
        )

    def unchanged(self) -> Outcome:
        """Return what comes of the scenario without any action."""
        if self._plain is None:
            self._plain = Outcome(simulate(self.snapshot, self.scenario))
        return self._plain

    def gone(self, trial: Trial) -> frozenset[str]:
        """Return the codes of the findings that an action makes go away; a diagnosis takes as long as a simulation."""
        key = trial.action.key
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._outcome(trial.action, self.scenario)
        known, left = (frozenset(one.code for one in diagnose(of)) for of in (self.unchanged(), self._latest[1]))
        return known - left

    def _outcome(self, action: Action, scenario: Scenario) -> Outcome:
        """Simulate an action, with the restart that it needs where that is not too much work."""
        return Outcome(simulate(self.snapshot, action.with_restart(scenario, self._restart)))

    def _result(self, action: Action, scenario: Scenario, outcome: Outcome) -> Result:
        """Return the result of an action; a restart that was not simulated disconnects everybody once."""
        result = outcome.result
        if not action.restarts(scenario) or self.simulates_restarts:
            return result
        bundles = self.snapshot.bundles
        everybody = int((bundles.producers + bundles.consumers).sum())
        return replace(result, topics=result.topics + result.all_topics, clients=result.clients + everybody)

    @property
    def _restart(self) -> BrokersRestart | None:
        return restart_of(len(self.snapshot.brokers)) if self.simulates_restarts else None

    @property
    def simulates_restarts(self) -> bool:
        """Whether a rolling restart, which places every bundle twice, is cheap enough to be simulated."""
        return len(self.snapshot.brokers) * len(self.snapshot.bundles) <= _RESTARTED

    def confirmed(self, trial: Trial) -> Trial:
        """Return a trial that is worth it with `steady` filled in; others as they are."""
        known = self._trials.get(trial.action.key) or trial
        if not trial.is_worth_it or known.steady is not None:
            return replace(trial, steady=known.steady)
        steady = False
        with suppress(PlannerError):  # bundles that were split in another way by then cannot be moved
            steady = self._holds(trial) and not self.cancelled()
        found = replace(trial, steady=steady)
        self._trials[trial.action.key] = found
        return found

    def _holds(self, trial: Trial) -> bool:
        """Say whether a gain is left in each variant of the scenario, that beyond a restart alone as well."""
        after: dict[tuple[object, ...], Result] = {}

        def with_it(variant: Scenario) -> Result:
            key = _of_variant(variant)
            if key not in after:
                after[key] = self._result(trial.action, variant, self._outcome(trial.action, variant))
            return after[key]

        def others(without: Callable[[Scenario], Result]) -> Iterator[tuple[Result, Result]]:
            for variant in variants(self.scenario):
                if self.cancelled():
                    return
                yield without(variant), with_it(variant)

        gain = gained(trial.before, trial.after)
        if gain is None or not holds(gain, others(self._without)):
            return False
        beyond_restart = None if trial.bare is None else gained(trial.bare, trial.after)
        return trial.bare is None or (beyond_restart is not None and holds(beyond_restart, others(self._bare)))

    def _without(self, variant: Scenario) -> Result:
        """Return what comes of a variant without an action."""
        key = _of_variant(variant)
        if key not in self._results:
            self._results[key] = Result.of(simulate(self.snapshot, variant))
        return self._results[key]

    def _bare(self, variant: Scenario) -> Result:
        """Return what comes of a variant with a rolling restart alone."""
        return self._without(variant.with_steps(*variant.steps, Step(restart_of(len(self.snapshot.brokers)))))


def _of_variant(variant: Scenario) -> tuple[object, ...]:
    """Return what tells a variant of one scenario from the others."""
    return variant.seed, variant.steps


def _sheds_late(outcome: Outcome) -> bool:
    """Say whether something is shed in the second half of the time."""
    settled = outcome.summary.settled_after_cycles
    return settled is None or settled > outcome.summary.cycles / 2


def by_gain(trials: list[Trial]) -> list[Trial]:
    """Return trials of one cluster, the best by the judge first.

    First come those that no other one is better than, then those that only these are better than, and so on: how many
    worse ones a trial beats says nothing about it. Among equals, those come first that leave the brokers no further
    apart than nothing at all does, then those that lower the peak by what a trade-off has to bring, then those that
    disconnect fewer topics, unless what further ones bring is worth them.
    """
    order: list[Trial] = []
    left = list(trials)
    while left:
        first = unbeaten([one.after for one in left])
        order += _among_equals([one for one, best in zip(left, first, strict=True) if best])
        left = [one for one, best in zip(left, first, strict=True) if not best]
    return order


def _among_equals(trials: list[Trial]) -> list[Trial]:
    """Return trials that the judge calls equal or trade-offs of each other, in order."""
    left = sorted(trials, key=lambda one: (*_kind(one), one.after.topics))
    order: list[Trial] = []
    while left:
        best = left[0]
        for other in left[1:]:
            if _kind(other) == _kind(best) and _pays_for_more(best, other):
                best = other
        left.remove(best)
        order.append(best)
    return order


def _kind(trial: Trial) -> tuple[bool, bool]:
    return trial.verdict.balance == -1, not _lowers(trial)


def beyond(one: Trial, other: Trial) -> Trial:
    """Return what another trial brings once the first one is carried out."""
    return replace(other, before=one.after, verdict=judge(one.after, other.after))


def _pays_for_more(one: Trial, other: Trial) -> bool:
    """Say whether the further topics that another trial disconnects are worth what it brings beyond the first one.

    That is so where they even brokers out about as well as the first ones did, or where only so brokers end up even and
    at most half of the topics are spent on it, a quarter where the first one spares clients. What brings half a balance
    for the fewest topics is no answer then. Beyond that disruption counts before balance: large plans whose last moves
    bring little stay behind.
    """
    more = beyond(one, other)
    first, further = one.after.topics - one.before.topics, other.after.topics - one.after.topics
    if more.verdict.overload or more.verdict.balance != 1 or not more.is_worth_it or further <= 0:
        return False
    most = KEPT if first > 0 else KEPT / 2
    if one.stays_apart and not other.stays_apart and further <= most * one.after.all_topics:
        return True
    if first <= 0:
        return False
    brings = one.after.deviation_points - other.after.deviation_points
    return brings * first >= KEPT * (one.before.deviation_points - one.after.deviation_points) * further


def _lowers(trial: Trial) -> bool:
    """Say whether a trial lowers the peak, at the end or on the way, by what a trade-off has to bring."""
    one, two = trial.before, trial.after
    lower = max(one.end_peak_percent - two.end_peak_percent, one.highest_percent - two.highest_percent)
    return lower >= _LOWER_PEAK_POINTS
