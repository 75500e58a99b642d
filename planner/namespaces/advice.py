"""How many bundles a namespace should have, and where to cut it: every answer simulated on its cluster and judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.names import NAMESPACE_MAXIMUM_BUNDLES
from planner.cluster.ranges import bundle_name
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, percent
from planner.explain.doubt import Doubt, doubt_about
from planner.explain.isolation import allowed_brokers
from planner.explain.topic_advice import PART, PartitionAdvice, partition_advice, topic_usage
from planner.namespaces.costs import CostRow, after_splits, cost_rows, splitting
from planner.namespaces.counts import CountRow, count_row, count_rows
from planner.namespaces.cuts import NEAR, Cuts, cuts_hold, recommended_cuts
from planner.namespaces.population import Population, population_of
from planner.namespaces.tried_counts import (
    LATER_SEEDS,
    USUAL,
    TriedCount,
    best_count,
    evener,
    tried_counts,
    wanted_counts,
)
from planner.pulsar.load.namespace_policies import isolation_policy
from planner.pulsar.manager.splits import splits_by_itself
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.remedy.action import Action
from planner.remedy.candidates import namespace_splits
from planner.remedy.fewest import fewest
from planner.remedy.trials import Trial, Trials, by_gain, lasts
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.registry import BundleSplit
from planner.simulate.judge import Verdict
from planner.simulate.scenario import MOST_STEPS, Scenario, unchanged
from planner.simulate.usage_model import UsageModel

_STUCK: Final = 10
"""Most topics that are named although no cut helps them."""
_POSITIONS: Final = 1000
"""Most positions of one request to split."""


@dataclass(frozen=True, slots=True)
class StuckTopic:
    """A topic that no cut helps: alone it is more than an even part.

    Attributes:
        topic: Its name.
        share_percent: Share of the namespace's load.
        advice: What helps it.
    """

    topic: str
    share_percent: float
    advice: PartitionAdvice


@dataclass(frozen=True, eq=False, slots=True)
class BundleAdvice:
    """What to do about the bundles of a namespace.

    Attributes:
        snapshot: The cluster.
        namespace: Its name.
        topics: Topics that it has, partitions one by one.
        brokers: Brokers that its policies allow.
        now: Its bundles as they are.
        counts: What each number of equal bundles gives.
        costs: What each of these numbers costs.
        cuts: The boundaries that even out its load, with those that there are.
        recommended: Number of equal bundles for a namespace made anew.
        tried: The numbers that were simulated.
        cut: The trial of the cuts; None where there are none, or where they cannot be asked for.
        will_split: How many of its bundles Pulsar splits by itself.
        split: The trial of other splits, which findings and Split lab propose, where these help and the cuts do not.
        sentence: What to do, and why.
        stuck: Topics that no cut helps, the heaviest first.
        notes: What limits the advice.
        is_planned: Whether the namespace does not exist yet; its bundles as they are only stand for some number.
        withheld: Why nothing was tried, and nothing is recommended: no usage is true. Empty where it may be.
    """

    snapshot: Snapshot
    namespace: str
    topics: int
    brokers: tuple[str, ...]
    now: CountRow
    counts: tuple[CountRow, ...]
    costs: tuple[CostRow, ...]
    cuts: Cuts
    recommended: int
    tried: tuple[TriedCount, ...]
    cut: Trial | None
    sentence: str
    stuck: tuple[StuckTopic, ...]
    notes: tuple[str, ...]
    is_planned: bool = False
    split: Trial | None = None
    will_split: int = 0
    withheld: str = ""

    @property
    def further_stuck(self) -> tuple[StuckTopic, ...]:
        """The topics that no cut helps, without the one that the sentence is about."""
        about = self.split is None and _is_about_topic(self.cuts, self.stuck, len(self.brokers))
        named = (bool(self.stuck) and self.is_planned) or about
        return self.stuck[1:] if named else self.stuck

    @property
    def successor(self) -> int:
        """How many bundles a successor namespace is to have; 0 where this one does not have too many.

        Bundles never merge. There are too many where automatic splits would not make as many, or where the judge calls
        fewer of them better.
        """
        maximum = self.snapshot.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
        return _fewer_wanted(self.now.bundles, self.recommended, self.tried, maximum)

    @property
    def recreated(self) -> Verdict | None:
        """What the judge says of the recommended number against today's, both settled; None where one was not tried."""
        return _recreated(self.now.bundles, self.recommended, self.tried)

    @property
    def cuts_help(self) -> bool:
        """Whether the cuts are recommended."""
        return self.cut is not None and self.cut.offered

    @property
    def edits(self) -> tuple[BundleSplit, ...]:
        """The splits that are recommended; none where the namespace is well as it is."""
        trial = self.cut if self.cuts_help else self.split
        return () if trial is None else tuple(edit for edit in trial.action.edits if isinstance(edit, BundleSplit))


def usual_counts(population: Population, maximum: int) -> tuple[int, ...]:
    """Return the numbers of bundles to look at: all small ones, then ever farther apart, a step beyond the maximum."""
    last = max(2 * maximum, len(population.boundaries))
    counts = {*range(1, 65), *(2**power for power in range(17)), maximum, len(population.boundaries) - 1, *USUAL}
    return tuple(sorted(one for one in counts if 1 <= one <= last))


def advisable(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the namespaces whose topics are listed, without those that Pulsar keeps for itself, in their order."""
    own = internal_bundles(snapshot)
    held = snapshot.topics.bundle[snapshot.topics.bundle >= 0]
    used = np.unique(snapshot.bundles.namespace[held[~own[held]]])
    return tuple(snapshot.namespaces[at] for at in used.tolist())


def bundle_advice(
    snapshot: Snapshot,
    namespace: str,
    scenario: Scenario | None = None,
    *,
    history: Sequence[Population] = (),
    is_planned: bool = False,
    doubt: Doubt | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> BundleAdvice:
    """Return what to do about the bundles of a namespace of a cluster; nothing where no usage is true.

    Args:
        snapshot: The cluster.
        namespace: Its name.
        scenario: What happens meanwhile, as growth; nothing by default.
        history: The same namespace at other moments, in which cuts have to hold as well.
        is_planned: Whether it does not exist yet, so that the number of its bundles is free.
        doubt: What is known to be wrong about the measurements, where the caller has it.
        cancelled: Asked between simulations whether to stop.

    Raises:
        ScenarioError: There is no such namespace, or its topics are not listed.
    """
    population = population_of(snapshot, namespace)
    allowed = allowed_brokers(snapshot, namespace)
    brokers, maximum = max(len(allowed), 1), snapshot.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
    numbers, manager = usual_counts(population, maximum), snapshot.info.load_manager
    rows = count_rows(population, numbers, brokers)
    now = count_row(population, population.boundaries, brokers)
    cuts = recommended_cuts(population, brokers, population.boundaries)
    trials = Trials(snapshot, scenario or unchanged(snapshot.settings.release.name), cancelled=cancelled)
    doubt = doubt or doubt_about(snapshot, scenario)
    withheld = doubt.instead_of("cuts or splits")
    alone = is_planned or len(allowed) < 2  # noqa: PLR2004
    cut, split = (None, None) if withheld else _tried_splits(trials, population, cuts, alone=alone)
    even = fewest_even(rows, maximum)
    splits = splits_by_itself(snapshot, snapshot.settings)
    costs = cost_rows(population, numbers, snapshot.settings, manager, brokers, splits=splits)
    # Where today's number is not to be kept, others have to beat the fewest that is about even and stays as it is.
    kept, divided = now, ""
    if (is_planned or now.bundles > maximum) and not withheld:
        kept, divided = _fewest_lasting(population, rows, costs, even, snapshot.settings)
    wanted = set() if withheld else {*wanted_counts(rows, even, now.bundles, maximum), kept.bundles}
    tried, again = tried_counts(trials, namespace, wanted, kept.bundles)
    recommended = best_count(tried, again, rows, kept, even, 0 if is_planned else now.bundles)
    will_split = splitting(population, snapshot.settings) if splits and not is_planned else 0
    notes = [*_notes(population, cuts, () if withheld else history, brokers, maximum)]
    notes += [_beyond(split, now.bundles, maximum), divided if recommended == kept.bundles else ""]
    notes += ["" if withheld else doubt.sentence]
    stuck = () if withheld else _stuck(snapshot, population, brokers)
    keep = _keep(now.bundles, _fewer_wanted(now.bundles, recommended, tried, maximum), will_split)
    told = _told_by_brokers(snapshot, namespace, len(allowed)) or withheld
    if is_planned and not told:
        told = _of_planned(next(row for row in rows if row.bundles == recommended), cuts, cut, brokers, stuck)
    return BundleAdvice(
        snapshot,
        namespace,
        len(population),
        allowed,
        now,
        rows,
        costs,
        cuts,
        recommended,
        tried,
        cut,
        told or _of_split(now, split, brokers) or _sentence(now, cuts, cut, brokers, stuck, keep),
        stuck,
        tuple(filter(None, notes)),
        is_planned,
        split,
        will_split,
        withheld,
    )


def _recreated(now_bundles: int, recommended: int, tried: Sequence[TriedCount]) -> Verdict | None:
    """Return what the judge says of a recommended number against today's; None where one was not tried."""
    results = {one.bundles: one for one in tried}
    now, then = results.get(now_bundles), results.get(recommended)
    return then.against(now) if now is not None and then is not None else None


def _fewer_wanted(now_bundles: int, recommended: int, tried: Sequence[TriedCount], maximum: int) -> int:
    """Return how many bundles a successor is to have; 0 where there are not too many, see `BundleAdvice.successor`."""
    if recommended >= now_bundles or recommended not in {one.bundles for one in tried}:
        return 0
    verdict = _recreated(now_bundles, recommended, tried)
    return recommended if now_bundles > maximum or (verdict is not None and verdict.word == "better") else 0


def fewest_even(rows: Sequence[CountRow], maximum: int) -> int:
    """Return the fewest equal bundles that brokers can share about as evenly as the best number up to a maximum."""
    possible = [row for row in rows if row.bundles <= maximum] or list(rows[:1])
    best = min(row.placed_percent for row in possible)
    return next(row.bundles for row in possible if row.placed_percent <= best * NEAR)


def _fewest_lasting(
    population: Population, rows: Sequence[CountRow], costs: Sequence[CostRow], even: int, config: Settings
) -> tuple[CountRow, str]:
    """Return the fewest bundles that are about as even as the best number and that no automatic split divides.

    Where automatic splits divide every number, the one with fewest bundles after them, and then with fewest splits; and
    a sentence that says so.
    """
    maximum = config.integer(NAMESPACE_MAXIMUM_BUNDLES)
    best = next(row for row in rows if row.bundles == even)
    possible = {
        row.bundles: row
        for row in rows
        if even <= row.bundles <= max(maximum, even) and row.placed_percent <= best.placed_percent * NEAR
    }
    calm = {row.bundles for row, cost in zip(rows, costs, strict=True) if not cost.above_limits}
    lasting = next((row for bundles, row in possible.items() if bundles in calm), None)
    if lasting is not None:
        return lasting, ""
    ends = {bundles: after_splits(population, bundles, config) for bundles in possible}
    chosen = min(possible, key=lambda bundles: (ends[bundles], -bundles))
    end = ends[chosen]
    said = f"Every number of bundles up to {maximum:,} has some above a limit of automatic splits."
    if end > chosen:
        said = f"{said} Of {count(chosen, 'bundle')} they make {end:,}, the fewest in the end."
    elif chosen == maximum:
        said = f"{said} They stop at {NAMESPACE_MAXIMUM_BUNDLES} = {maximum}, so begin with that many: none is split."
    return possible[chosen], said


def _cut(trials: Trials, population: Population, cuts: Cuts) -> Trial | None:
    """Try the new cuts: each bundle is split where they fall in it, and its children stay or are placed anew."""
    if not cuts.new:
        return None
    algorithm = next(one.name for one in SPLIT_ALGORITHMS if one.needs_positions)
    edges, new = np.asarray(population.boundaries), np.asarray(cuts.new)
    inside = np.searchsorted(edges, new, side="right") - 1
    edits = [
        BundleSplit(
            bundle=bundle_name(population.namespace, int(edges[at]), int(edges[at + 1])),
            algorithm=algorithm,
            positions=tuple(new[inside == at].tolist()),
        )
        for at in np.unique(inside).tolist()
        if np.count_nonzero(inside == at) <= _POSITIONS
    ]
    if not edits or len(edits) > MOST_STEPS:
        return None
    words = f"Split {count(len(edits), 'bundle')} of {population.namespace} at {count(len(new), 'position')}"
    stay = Action(kind="split", words=words, edits=tuple(edits))
    placed = replace(
        stay, words=f"{words}, and unload the children", edits=tuple(replace(one, unload=True) for one in edits)
    )
    found = by_gain([trials.confirmed(one) for one in map(trials.try_out, (stay, placed)) if one is not None])
    shown = [one for one in found if one.offered] or [one for one in found if lasts(one.verdict)] or found
    return next(iter(shown), None)


def _tried_splits(
    trials: Trials, population: Population, cuts: Cuts, *, alone: bool
) -> tuple[Trial | None, Trial | None]:
    """Return what comes of the cuts, and of the best other split unless the cuts are asked about alone."""
    cut = _cut(trials, population, cuts)
    return cut, None if alone else _best_split(trials, population.namespace, cut)


def _best_split(trials: Trials, namespace: str, cut: Trial | None) -> Trial | None:
    """Return the best of the splits of a namespace that findings and Split lab propose.

    None where none is offered, or where cuts are.
    """
    if cut is not None and cut.offered:
        return None
    actions = namespace_splits(trials.snapshot, trials.scenario, trials.unchanged(), namespace)
    found = [trials.confirmed(fewest(trials, one)) for one in map(trials.try_out, actions) if one is not None]
    return next(iter(by_gain([one for one in found if one.offered])), None)


def advice_then(advice: BundleAdvice, later: Snapshot) -> tuple[int, bool]:
    """Return what becomes of advice on the same topics when traffic has changed.

    Args:
        advice: The advice.
        later: The cluster then.

    Returns:
        The number of bundles that is recommended then: the same one unless another is better beyond luck. And whether
        cuts are recommended then.
    """
    maximum = later.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
    rows, trials = advice.counts, Trials(later, unchanged(later.settings.release.name))
    population = population_of(later, advice.namespace)
    cut = _cut(trials, population, advice.cuts)
    kept = next(row for row in rows if row.bundles == advice.recommended)
    even = fewest_even(rows, maximum)
    better = evener(rows, kept) & wanted_counts(rows, even, advice.now.bundles, maximum)
    if not better:
        return kept.bundles, cut is not None and cut.offered
    tried, again = tried_counts(trials, advice.namespace, {*better, kept.bundles}, kept.bundles, LATER_SEEDS)
    return best_count(tried, again, rows, kept, even), cut is not None and cut.offered


def _stuck(snapshot: Snapshot, population: Population, brokers: int) -> tuple[StuckTopic, ...]:
    """Return the topics that alone are more than an even part of the load."""
    if brokers < 2:  # noqa: PLR2004 - one broker takes all of it, however it is cut
        return ()
    heavy = np.flatnonzero(population.weight * brokers > NEAR)
    heavy = heavy[np.argsort(-population.weight[heavy], kind="stable")][:_STUCK]
    if not len(heavy):
        return ()
    names = snapshot.topics.name.to_pylist()
    wanted = {population.name[int(at)].as_py(): int(at) for at in heavy}
    places = {name: row for row, name in enumerate(names) if name in wanted}
    model = UsageModel.of(snapshot, snapshot.settings, Assumptions())
    found = []
    for name, at in wanted.items():
        row = places[name]
        usage = float(topic_usage(model, np.array([row]))[0])
        if usage < PART:  # small for its broker: it can go anywhere
            continue
        advice = partition_advice(snapshot, row, usage)
        found.append(StuckTopic(name, float(population.weight[at]) * 100, advice))
    return tuple(found)


def _notes(
    population: Population, cuts: Cuts, history: Sequence[Population], brokers: int, maximum: int
) -> Sequence[str]:
    notes = []
    if not population.msg_per_s.any() and not population.bytes_per_s.any():
        notes.append("It has no traffic, so each topic counts the same.")
    bundles = len(cuts.boundaries) - 1
    if bundles > maximum and cuts.new:
        notes.append(
            f"{count(bundles, 'bundle')} are more than {NAMESPACE_MAXIMUM_BUNDLES} = {maximum}. Splits by command are"
            " not held to it; automatic ones stop there."
        )
    if len(population.boundaries) - 1 > maximum:
        notes.append(
            "It has more bundles than automatic splits would make. Bundles never merge: only a successor namespace has"
            " fewer."
        )
    if history and cuts.new:
        held = sum(cuts_hold(cuts.boundaries, population.boundaries, other, brokers) for other in history)
        notes.append(f"The cuts bring at least half of what any cuts could in {held:,} of {len(history):,} moments.")
    return notes


def _beyond(split: Trial | None, bundles: int, maximum: int) -> str:
    """Return a note where a split is advised although there are as many bundles as automatic splits make; else ''."""
    if split is None or bundles < maximum:
        return ""
    return f"Splits by command are not held to {NAMESPACE_MAXIMUM_BUNDLES} = {maximum}; automatic ones stop there."


def _is_about_topic(cuts: Cuts, stuck: Sequence[StuckTopic], brokers: int) -> bool:
    """Say whether a single topic is all that there is to say."""
    return brokers > 1 and bool(stuck) and cuts.limited_by_topic and not cuts.new


def _told_by_brokers(snapshot: Snapshot, namespace: str, allowed: int) -> str:
    """Return the verdict where fewer than two brokers may serve a namespace; empty where more may."""
    policy = isolation_policy(snapshot.policies, namespace)
    if not allowed:
        why = (
            f"its isolation policy {policy.name} allows none that runs"
            if policy is not None
            else "isolation policies keep all for other namespaces"
        )
        return f"No broker may serve this namespace: {why}. Correct that first; its bundles make no difference."
    by = f" (isolation policy {policy.name})" if policy is not None else ""
    return f"Only one broker may serve this namespace{by}, so its bundles make no difference." if allowed == 1 else ""


def _keep(bundles: int, fewer: int, will_split: int) -> str:
    """Return what to do with so many bundles where no split is advised.

    Args:
        bundles: The number there is.
        fewer: The number that would do as well; 0 where that is no smaller one.
        will_split: How many of them Pulsar splits by itself.
    """
    if fewer:
        return f"Do not cut it, as {count(fewer, 'bundle')} would do: with its {count(bundles, 'bundle')},"
    if will_split:
        return f"Do not cut it, as Pulsar will split {will_split:,} of its {count(bundles, 'bundle')} by itself:"
    return f"Keep its {count(bundles, 'bundle')}:"


def _of_planned(row: CountRow, cuts: Cuts, cut: Trial | None, brokers: int, stuck: Sequence[StuckTopic]) -> str:
    """Return the verdict on a namespace that does not exist yet: how many bundles, and what limits it."""
    share = f"the broker with most of it gets {row.placed_percent:.0f} % of its load at best"
    parts = [f"Create it with {count(row.bundles, 'bundle')}: {share}; an even part is {percent(1 / brokers)}."]
    if stuck:
        parts.append(f"{stuck[0].topic} alone has {stuck[0].share_percent:.0f} %. {stuck[0].advice.remedy}")
    elif cuts.limited_by_topic:
        parts.append("More is not possible: a single topic is that large.")
    if cut is not None and cut.offered:
        parts.append(f"Cuts help. {cut.text}")
    return " ".join(parts)


def _of_split(now: CountRow, split: Trial | None, brokers: int) -> str:
    """Return the verdict where a split that is no recommended cut helps; empty where none does."""
    if split is None:
        return ""
    share = f"the broker with most of it gets {now.placed_percent:.0f} % of its load at best"
    even = f"an even part is {percent(1 / brokers)}"
    words = split.action.words
    if not lasts(split.verdict):
        why = (
            "until then its bundles do not come to rest"
            if split.calms
            else "Pulsar makes as many bundles by itself, later"
        )
        return f"{words}: {why}. {split.text}"
    return f"{words}: with its {count(now.bundles, 'bundle')}, {share}; {even}. {split.text}"


def _sentence(
    now: CountRow, cuts: Cuts, cut: Trial | None, brokers: int, stuck: Sequence[StuckTopic], keep: str
) -> str:
    """Return the verdict: whether to cut, and what limits it; `keep` begins it where nothing is cut."""
    share = f"the broker with most of it gets {now.placed_percent:.0f} % of its load at best"
    even = f"an even part is {percent(1 / brokers)}"
    if _is_about_topic(cuts, stuck, brokers):
        first = stuck[0]
        return f"No cut helps: {first.topic} alone has {first.share_percent:.0f} % of the load. {first.advice.remedy}"
    bundles = count(now.bundles, "bundle")
    if not cuts.new:
        return f"{keep} {share}; {even}."
    total = len(cuts.boundaries) - 1
    after = f"With {count(len(cuts.new), 'cut')} ({count(total, 'bundle')}) it is {cuts.placed_percent:.0f} %"
    if cut is None:
        return f"With its {bundles}, {share}; {even}. {after}; that was not simulated."
    if cut.offered:
        return f"Cut it: with its {bundles}, {share}. {after}. {cut.text}"
    return f"{keep} {share}. {after}, but {_why_not(cut)}. {cut.text}"


def _why_not(cut: Trial) -> str:
    """Return why cuts that even out the load are not recommended."""
    if cut.is_worth_it:
        return "the gain may not last"
    if cut.verdict.word == "trade-off" and lasts(cut.verdict):
        return "that gains too little for splits, which last forever"
    return "that evens out nothing here" if cut.spares_once else "that brings nothing here"
