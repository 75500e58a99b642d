"""The findings of a diagnosis with their remedies tried, and the best that can be done: Fix it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.cluster.setting import SettingValue, conf_value
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.explain.diagnosis import diagnose
from planner.explain.doubt import doubt_of, untrue
from planner.explain.finding import MEASUREMENT, Finding
from planner.explain.health import within
from planner.explain.held import APART
from planner.explain.outcome import Outcome
from planner.pulsar.shedding.profile import ROOM
from planner.remedy.action import Action, both
from planner.remedy.candidates import candidates, more_brokers, moves_after, of_finding, splits_in_parts
from planner.remedy.fewest import MOST, brings_most, fewest, first_splits, in_place
from planner.remedy.trials import Trial, Trials, beyond, by_gain, lasts
from planner.remedy.values import best_value, single_setting
from planner.simulate.edits.registry import BundleMoves, NewBrokers
from planner.simulate.judge import judge
from planner.simulate.price import price_of
from planner.simulate.scenario import Scenario
from planner.simulate.steadiness import KEPT

_OF_A_TOPIC: Final = frozenset({"hot_topic", "key_skew"})
"""Findings about a topic that no split divides."""
_BEHIND_ALL: Final = frozenset({"more_cores"})
"""Findings about what others rest on: these come first, whatever the remedies of others gain."""
_GATE: Final = "held_by_gate"
"""The finding whose remedy says how far a setting has to go, *or more* and *or less*."""
_PAIRED: Final = 4
"""Best single actions of which pairs are tried."""
_FOLLOWED: Final = 2
"""Actions that change the cluster itself of which is tried what to move after them."""
_CHANGING: Final = frozenset({"brokers", "partitions", "split", "machines", "policy"})
_BOUGHT: Final = frozenset({"brokers", "machines"})
"""Kinds of actions that cost machines: they count where nothing else is enough."""
_CONFIRMED: Final = 6
"""Actions at most that are tried under other seeds and traffic."""
_OFFERED: Final = 3
"""Actions that are offered at most."""
_BETWEEN: Final = 4
"""Halvings by which the number of brokers is found."""
_MOST_TIMES: Final = 4
"""How many times as many brokers are added at most as there are."""
NOT_TRIED: Final = "Not tried: the measurements have to be corrected first."
"""Said of a remedy where no usage is true."""
AT_ONCE_S: Final = 1.0
"""Price of one simulation up to which remedies are tried without being asked for."""


def tried_at_once(snapshot: Snapshot, scenario: Scenario) -> bool:
    """Say whether simulations of a cluster are cheap enough to try remedies without being asked for."""
    return price_of(snapshot, scenario).seconds <= AT_ONCE_S


@dataclass(frozen=True, eq=False, slots=True)
class Tried:
    """A finding with its remedy tried.

    Attributes:
        finding: The finding; `tried` says what its remedy achieved, and `changes` holds it only where it is offered.
        trial: What came of the remedy; None where it cannot be simulated, or was not.
    """

    finding: Finding
    trial: Trial | None


def untried(findings: Iterable[Finding]) -> tuple[Tried, ...]:
    """Return findings whose remedies were not tried, so that none is offered."""
    return tuple(Tried(replace(finding, changes={}, edits=()), None) for finding in findings)


def in_vain(tried: Iterable[Tried]) -> frozenset[str]:
    """Return the codes of findings whose remedies were tried and made no difference, each of them."""
    same, other = set[str](), set[str]()
    for one in tried:
        no_difference = one.trial is not None and one.trial.verdict.word == "same"
        (same if no_difference else other).add(one.finding.code)
    return frozenset(same - other)


def diagnosed(outcome: Outcome) -> tuple[Finding, ...]:
    """Return the findings of an outcome, their remedies tried where that is cheap; otherwise none is offered.

    An outcome keeps the answer.
    """

    def look() -> tuple[Finding, ...]:
        trace, found = outcome.trace, diagnose(outcome)
        cheap = tried_at_once(trace.start, trace.scenario)
        tried = tried_findings(found, Trials(trace.start, trace.scenario, outcome)) if cheap else untried(found)
        return tuple(one.finding for one in tried)

    return outcome.once("findings tried", look) if outcome.trace.cycles else ()


def tried_findings(findings: Iterable[Finding], trials: Trials) -> tuple[Tried, ...]:
    """Return findings with their remedies tried, those of one severity by what their remedies gain.

    One about what the others rest on comes before them. Where no usage is true, only what corrects the measurements is
    tried.
    """
    mend_first = bool(untrue(trials.unchanged()))
    config = trials.scenario.settings_over(trials.snapshot)
    found: list[Tried] = []
    for finding in findings:
        action = of_finding(finding, config)
        if mend_first and finding.code != MEASUREMENT:
            said = NOT_TRIED if action is not None else ""
            found.append(Tried(replace(finding, changes={}, edits=(), tried=said), None))
            continue
        trial = None if action is None else trials.try_out(action)
        if trial is not None:
            finding, trial = _at_its_best(finding, trial, trials)  # noqa: PLW2901 - its remedy, tried
        found.append(_tried(finding, trial, trials))
    best = by_gain([one.trial for one in found if one.trial is not None and one.trial.offered])
    place = {id(trial): at for at, trial in enumerate(best)}
    severities = list(dict.fromkeys(one.finding.severity for one in found))

    def rank(one: Tried) -> tuple[int, bool, int]:
        severity, gain = severities.index(one.finding.severity), place.get(id(one.trial), len(best))
        return severity, one.finding.code not in _BEHIND_ALL, gain

    return _topics_first(sorted(found, key=rank))


def _topics_first(found: Sequence[Tried]) -> tuple[Tried, ...]:
    """Return findings with a topic that no split divides before the splits of its bundles, which follow from it."""
    order = list(found)
    for one in [one for one in found if one.finding.code in _OF_A_TOPIC]:
        spaces = {bundle.rpartition("/")[0] for bundle in one.finding.bundles}
        follow = [
            at
            for at, other in enumerate(order)
            if other.finding.code == "split_cascade"
            and other.finding.severity == one.finding.severity
            and not spaces.isdisjoint(bundle.rpartition("/")[0] for bundle in other.finding.bundles)
        ]
        if follow and follow[0] < (at := order.index(one)):
            order.insert(follow[0], order.pop(at))
    return tuple(order)


def _at_its_best(finding: Finding, trial: Trial, trials: Trials) -> tuple[Finding, Trial]:
    """Return a finding with its remedy in the form that helps most, as Fix it has it, and what came of that, confirmed.

    New brokers come with moves onto them where only so they help, splits are as few as bring most of their gain, and a
    setting has the best of the values that are tried.
    """
    name = "" if finding.edits else single_setting(trial)
    trial = trial if name else trials.confirmed(trial)
    if trial.action.kind == "brokers" and not trial.offered:
        filled = _filled(trials, trial)
        if filled is None:
            return finding, trial
        best, moves = filled
        words = f"{moves.words[:1].lower()}{moves.words[1:]}"
        said = f"Pulsar moves too little onto them by itself, so {words} as well (Best plan)."
    elif name:
        best = best_value(trials, trial, trials.unchanged())
        stays = best.offered and finding.code not in trials.gone(best)
        end = ", although the finding stays" if stays else ""
        value, named = best.action.settings[name], trial.action.settings[name]
        said = f"Of the values that were tried, {conf_value(value)} does best{end}."
        if finding.code == _GATE and not _is_beyond(value, named, trials.scenario.settings_over(trials.snapshot)[name]):
            said = f"But {conf_value(value)} does better than that: both were tried{end}."
    else:
        best = fewest(trials, trial)
        few = len(best.action.edits)
        said = f"Only {few} of these splits {'is' if few == 1 else 'are'} worth it: the heaviest bundles first."
    if best.action.key == trial.action.key:
        return finding, best
    changes = {} if best.action.edits else dict(best.action.settings)
    return replace(finding, remedy=f"{finding.remedy} {said}", changes=changes, edits=best.action.edits), best


def _is_beyond(value: SettingValue, named: SettingValue, now: SettingValue) -> bool:
    """Say whether a value opens a gate that another one opens, which has room to spare."""
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in (value, named, now)):
        return True
    value, named, now = (float(str(one)) for one in (value, named, now))
    return value >= named / (1 + ROOM) if named > now else value <= named / (1 - ROOM)


def _tried(finding: Finding, trial: Trial | None, trials: Trials) -> Tried:
    if trial is None:
        return Tried(replace(finding, changes={}, edits=()), None)
    gone = " The finding is gone." if trial.offered and finding.code in trials.gone(trial) else ""
    plainly = "" if trial.offered or trial.but else "Not recommended. "
    said = replace(finding, tried=f"{plainly}{trial.text}{gone}")
    return Tried(said if trial.offered else replace(said, changes={}, edits=()), trial)


@dataclass(frozen=True, eq=False, slots=True)
class Fix:
    """The best that can be done.

    Attributes:
        best: The best single action; None where none is offered.
        pair: The best pair, where it is better than the best single action.
        others: Other actions that are offered, the best first.
        capacity: The fewest brokers to add where only capacity helps, with moves onto them where Pulsar makes none;
            None otherwise.
        tried: How many actions were tried.
        needed: Whether something is above the limit without any action.
        doubt: What cannot be right about the most used broker, or about all of them, where nothing is tried then;
            empty where nothing is known to be wrong.
        lucky: Where nothing is offered, the best action that helps here, but not under other seeds or traffic.
        optional: Whether the cluster is well without any action: even, below the limit, and without a warning.
    """

    best: Trial | None
    pair: Trial | None
    others: tuple[Trial, ...]
    capacity: Trial | None
    tried: int
    needed: bool
    doubt: str = ""
    lucky: Trial | None = None
    optional: bool = False

    @property
    def brokers(self) -> int:
        """Brokers to add where only capacity helps; 0 otherwise."""
        edits = () if self.capacity is None else self.capacity.action.edits
        return sum(edit.count for edit in edits if isinstance(edit, NewBrokers))

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        tried = f"{count(self.tried, 'action')} tried"
        if self.capacity is not None:
            words = self.capacity.action.words
            return f"Only capacity helps: {words[:1].lower()}{words[1:]} ({tried})."
        chosen = self.pair or self.best
        doubt = f" But this may be untrue: {within(self.doubt)}." if self.doubt else ""
        if chosen is None and self.doubt:
            after = f" ({tried})." if self.tried else ". Then capture again."
            return f"No advice until this is corrected: {within(self.doubt)}{after}"
        if chosen is None and self.lucky is not None:
            words = within(self.lucky.action.words)
            return f"Nothing to recommend: one action helps here, but not reliably: {words} ({tried})."
        if chosen is None:
            well = "No action is needed: nothing" if self.optional else "Nothing"
            return f"{well} that was tried makes it better ({tried})."
        if self.optional:
            return f"No action is needed. Optional: {within(chosen.action.words)} ({tried}).{doubt}"
        return f"{chosen.action.words} ({tried}).{self._left(chosen)}{doubt}"

    def _left(self, chosen: Trial) -> str:
        """Return what is still wrong after an action; empty for nothing."""
        if self.needed and not _ends_below(chosen):
            return f" Even then {chosen.after.limit_percent:g} % is exceeded."
        return f" {chosen.stays_apart}." if chosen.stays_apart else ""


def fix(trials: Trials, outcome: Outcome, progress: Callable[[int], None] = lambda _: None) -> Fix:
    """Search the best single action and the best pair; nothing where no usage is true.

    Args:
        trials: Where they are tried.
        outcome: What comes of the scenario without any.
        progress: Told how many actions were tried.
    """
    needed = outcome.result.end_peak_percent > outcome.result.limit_percent
    if wrong := untrue(outcome):
        return Fix(None, None, (), None, 0, needed, wrong)
    single = _single(trials, outcome, progress)
    useful = [one for one in single if one.action.kind not in _BOUGHT or one.verdict.overload == 1]
    added = [one for one in useful if one.action.kind == "brokers"]
    free = [one for one in single if one.action.kind not in _BOUGHT]
    offered = _offered(trials, free)
    doubt = doubt_of(outcome)
    buys = needed and not doubt
    if buys and not (offered and _ends_below(offered[0])):
        free = useful
        offered = _offered(trials, [one for one in useful if one.action.kind != "brokers"])
    pairs = [*_pairs(trials, offered[:_PAIRED]), *_followed(trials, free)]
    number = len(single) + len(pairs)
    progress(number)
    best = offered[0] if offered else None
    better = [pair for pair in pairs if best is None or _is_better(best, pair) or _evens_out(best, pair)]
    pair = next(iter(_offered(trials, better)), None)
    chosen = pair or best
    capacity = None
    if buys and (chosen is None or not _ends_below(chosen) or _adds_brokers(chosen)):
        capacity, more = _more_brokers(trials)
        number += more
        pair = None if capacity and pair and _adds_brokers(pair) else pair
    if buys and best is None and capacity is None:
        best = next(iter(_offered(trials, added)), None)
    helps = [] if best or pair or capacity else _worth_it(free)[:1]
    lucky = trials.try_out(helps[0].action) if helps else None
    return Fix(best, pair, tuple(offered[1:]), capacity, number, needed, doubt, lucky, _is_well(outcome))


def _single(trials: Trials, outcome: Outcome, progress: Callable[[int], None]) -> list[Trial]:
    """Return what comes of each single action.

    Of a setting that a finding changes, only the value that the finding offers: two values are two answers to one
    question.
    """
    found: dict[tuple[object, ...], Trial] = {}
    config = trials.scenario.settings_over(trials.snapshot)
    answered = [of_finding(finding, config) for finding in diagnose(outcome)]
    keys = {one.key for one in answered if one is not None}
    chosen: dict[str, Trial] = {}
    for action in candidates(trials.snapshot, trials.scenario, outcome):
        if trials.cancelled():
            break
        trial = trials.try_out(action)
        if trial is None:
            continue
        name = single_setting(trial)
        if name and action.key in keys:
            trial = chosen[name] = best_value(trials, trial, outcome)
        else:
            trial = fewest(trials, trial)
        found[trial.action.key] = trial
        progress(len(found))
    offered = {name: one for name, one in chosen.items() if one.offered}
    return [one for one in found.values() if offered.get(single_setting(one), one).action.key == one.action.key]


def _is_well(outcome: Outcome) -> bool:
    """Say whether a cluster needs nothing: brokers are even and below the limit, and there is no warning."""
    result = outcome.result
    return (
        result.end_peak_percent <= result.limit_percent
        and result.apart_points < APART * 100
        and all(finding.severity == "low" for finding in diagnose(outcome))
    )


def _is_better(one: Trial, pair: Trial) -> bool:
    """Say whether a pair is better than a trial; with splits, in what lasts as long as they do."""
    verdict = judge(one.after, pair.after)
    return verdict.word == "better" and (not pair.splits or lasts(verdict))


def _evens_out(one: Trial, pair: Trial) -> bool:
    """Say whether a trial leaves brokers apart, and a pair brings as much balance beyond it as is offered."""
    more = beyond(one, pair)
    return bool(one.stays_apart) and more.verdict.balance == 1 and more.is_worth_it


def _ends_below(trial: Trial) -> bool:
    return trial.after.end_peak_percent <= trial.after.limit_percent


def _adds_brokers(trial: Trial) -> bool:
    return any(isinstance(edit, NewBrokers) for edit in trial.action.edits)


def _offered(trials: Trials, found: Sequence[Trial]) -> list[Trial]:
    """Return those that are offered, the best first; only the first few are held to other seeds and traffic.

    Where all are plans of unlike size, the last one gives way to something else that is offered.
    """
    kept: list[Trial] = []
    for trial in _worth_it(found)[:_CONFIRMED]:
        full, plan = len(kept) == _OFFERED, trial.action.kind == "moves"
        if full and (plan or any(one.action.kind != "moves" for one in kept)):
            continue
        confirmed = trials.confirmed(trial)
        name = single_setting(trial)
        again = any(one.action.words == trial.action.words or (name and single_setting(one) == name) for one in kept)
        if confirmed.offered and not again:
            kept[_OFFERED - 1 :] = [confirmed]
    return kept


def _worth_it(found: Sequence[Trial]) -> list[Trial]:
    """Return those that are worth it on this cluster, by luck or not, the best first."""
    return by_gain([one for one in found if one.is_worth_it and _sound(one)])


def _sound(trial: Trial) -> bool:
    """Say whether a trial leaves the balance no worse, or is better by what counts first."""
    return trial.verdict.balance != -1 or trial.verdict.overload == 1


def _pairs(trials: Trials, singles: Sequence[Trial]) -> Iterator[Trial]:
    for at, one in enumerate(singles):
        for two in singles[at + 1 :]:
            if one.action.kind == two.action.kind or set(one.action.settings) & set(two.action.settings):
                continue
            trial = trials.try_out(both(one.action, two.action))
            if trial is not None and trial.is_worth_it:
                yield trial


def _followed(trials: Trials, singles: Sequence[Trial]) -> Iterator[Trial]:
    """Yield the best of what changes the cluster itself, each followed by the moves that are best after it.

    Splits only where these moves alone do not bring as much; several of them only where they help by themselves, or
    are the parts of one heavy bundle. Children are moved from where they are placed, or from where their parent was,
    so that only those that move disconnect clients.
    """
    changing = [one for one in singles if one.action.kind in _CHANGING and one.verdict.word != "worse"]
    changing = [one for one in changing if not one.splits or len(one.action.edits) == 1 or one.is_worth_it]
    parts = [one for one in map(trials.try_out, splits_in_parts(trials.snapshot)) if one is not None]
    changed = [*by_gain(changing)[:_FOLLOWED], *parts]
    kept = [trial for one in changed if (trial := in_place(trials, one)) is not None]
    for one in (*changed, *kept):
        for trial, moves in _with_few_splits(trials, one, list(_with_moves(trials, one))):
            alone = trials.try_out(moves) if one.splits else None
            if alone is None or _is_better(alone, trial):
                yield trial


def _with_few_splits(trials: Trials, one: Trial, followed: list[tuple[Trial, Action]]) -> list[tuple[Trial, Action]]:
    """Return a trial's followers, or those of its first splits only.

    That is where these bring most of what all of them do, or where what the others bring beyond them is not worth it.
    As `by_gain` has it, at most half of the topics are spent on that: they reconnect, but bundles never merge.
    """
    number = len(one.action.edits)
    if not one.splits or number < 2 or not followed:  # noqa: PLR2004 - nothing to leave out
        return followed
    best = by_gain([trial for trial, _ in followed])[0]
    pays = _is_better(one, best)
    for power in range((number - 1).bit_length()):
        fewer = first_splits(trials, one, 2**power)
        instead = [] if fewer is None else list(_with_moves(trials, fewer))
        enough = [
            (trial, moves)
            for trial, moves in instead
            if (brings_most(best, trial, MOST) or not beyond(trial, best).is_worth_it)
            and (_is_better(one, trial) or _evens_out(one, trial) or not pays)
            and trial.after.topics - best.after.topics <= KEPT * best.after.all_topics
        ]
        if enough:
            return enough
    return followed


def _filled(
    trials: Trials, more: Trial, wanted: Callable[[Trial], bool] = lambda _: True
) -> tuple[Trial, Action] | None:
    """Return new brokers with the moves onto them that are best, and these moves; None where no wanted one is offered.

    A finding and Fix it ask here, so that the same brokers come with the same moves.
    """
    followed = {trial: moves for trial, moves in _with_moves(trials, more) if wanted(trial)}
    best = next(iter(_offered(trials, list(followed))), None)
    if best is None:
        return None
    return best, next(moves for trial, moves in followed.items() if trial.action is best.action)


def _with_moves(trials: Trials, one: Trial) -> Iterator[tuple[Trial, Action]]:
    """Yield a trial followed by the moves that are best after it, and these moves, as far as that is worth it."""
    for moves in moves_after(trials.snapshot, one.action.on(trials.scenario), one.after):
        trial = trials.try_out(both(one.action, moves))
        if trial is not None and trial.is_worth_it:
            yield trial, moves


def _more_brokers(trials: Trials) -> tuple[Trial | None, int]:
    """Return the fewest brokers with which nothing ends above the limit, None where none do; and how many were tried.

    Where Pulsar moves too little onto them, moves are a part of it: those that a finding offers with new brokers, too.
    """
    tried = 0
    enough: dict[int, Trial] = {}

    def suffice(number: int) -> bool:
        nonlocal tried
        more = more_brokers(trials.scenario, number)
        alone = trials.try_out(more)
        tried += 1
        if alone is not None and not _ends_below(alone):
            for moves in moves_after(trials.snapshot, more.on(trials.scenario), alone.after, few=False):
                tried += 1
                alone = trials.try_out(both(more, moves))
        if alone is None or not _ends_below(alone) or trials.confirmed(alone).steady is False:
            return False
        enough[number] = trials.confirmed(alone)
        return True

    most = _MOST_TIMES * max(len(trials.snapshot.brokers), 1)
    high = 1
    while not suffice(high):
        if high == most or trials.cancelled():
            return None, tried
        high = min(2 * high, most)
    low = high // 2
    for _ in range(_BETWEEN):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (low, middle) if suffice(middle) else (middle, high)
    found = enough[high]
    alone = trials.try_out(more_brokers(trials.scenario, high))
    if alone is not None and any(isinstance(one, BundleMoves) for one in found.action.edits):
        filled = _filled(trials, alone, _ends_below)
        found = found if filled is None else filled[0]
        tried += filled is not None
    return found, tried
