"""Splits are for good: each has to bring something that lasts, and no more are offered than bring most of it."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.namespaces.advice import advisable
from planner.remedy.candidates import namespace_splits, of_finding
from planner.remedy.fewest import MOST, fewest
from planner.remedy.trials import Trial, Trials, lasts
from planner.remedy.tried import tried_findings
from planner.simulate.edits.registry import AnyEdit, BundleSplit
from planner.simulate.judge import gains, judge, share_gone
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from planner.simulate.steadiness import KEPT
from tests.app.namespaces.asked import ONE_WORKER, about, advised, fixed, of_report
from tests.app.namespaces.random_clusters import few_bundles, random_cluster


def trials_of(snapshot: Snapshot) -> tuple[Trials, Outcome]:
    outcome = Outcome(simulate(snapshot, unchanged(snapshot.info.pulsar_version)))
    return Trials(snapshot, outcome.trace.scenario, outcome), outcome


def of_many_splits(trials: Trials, outcome: Outcome) -> list[Trial]:
    """Return the remedies of findings that are several splits, as the findings ask for them."""
    found = (of_finding(one, trials.snapshot.settings) for one in diagnose(outcome))
    many = [one for one in found if one is not None and one.kind == "split" and len(one.edits) > 1]
    return [trial for trial in map(trials.try_out, many) if trial is not None]


FEW = (27, 42, 73, 75)
EVERY = pytest.param(range(80), marks=pytest.mark.slow)


def splits(edits: tuple[AnyEdit, ...]) -> list[BundleSplit]:
    return [one for one in edits if isinstance(one, BundleSplit)]


@pytest.mark.parametrize("seeds", [FEW, EVERY], ids=["some", "all"])
def test_the_fewest_splits_are_never_worse(seeds: Sequence[int]) -> None:
    """Sixty splits were advised where two were as good."""
    left_out = brought = 0
    for seed in seeds:
        for trial in of_many_splits(*(known := trials_of(few_bundles(seed)))):
            trials = known[0]
            less = fewest(trials, trial)
            if less is trial:
                continue
            edits = less.action.edits
            first = trial.action.edits[: len(edits)]
            assert [one.bundle for one in splits(edits)] == [one.bundle for one in splits(first)]
            assert less.offered, seed
            if not trials.confirmed(trial).offered:
                brought += 1
                continue
            assert judge(trial.after, less.after).word != "worse", seed
            gain = gains(trial.before, trial.after)
            kept = [share_gone(name, less.before, less.after) / share for name, share in gain.items()]
            assert min(kept) >= KEPT, seed
            assert max(kept) >= MOST, seed
            left_out += len(trial.action.edits) - len(edits)
    assert left_out > 20
    assert brought, "where all of them are too many, a few may help"


def test_a_finding_says_that_fewer_of_its_splits_are_worth_it() -> None:
    trials, outcome = trials_of(few_bundles(73))
    said = {one.finding.title: one.finding for one in tried_findings(diagnose(outcome), trials)}
    few = [one for one in said.values() if one.code == "bundle_count_too_low" and one.edits]
    assert few
    for one in few:
        assert len(one.edits) == 1
        assert "Only 1 of these splits is worth it: the heaviest bundles first." in one.remedy


@pytest.mark.parametrize(("made", "seed"), [(random_cluster, 37), (few_bundles, 17), (few_bundles, 28)])
def test_clients_that_are_spared_once_are_no_reason_to_split(made: Callable[[int], Snapshot], seed: int) -> None:
    """62 splits were advised for 44 fewer disconnected topics, in a cluster that settles within four cycles."""
    snapshot = made(seed)
    trials, outcome = trials_of(snapshot)
    tried = [
        trial
        for name in advisable(snapshot)
        for action in namespace_splits(snapshot, trials.scenario, outcome, name)
        if (trial := trials.try_out(action)) is not None and trial.spares_once
    ]
    assert tried
    for trial in tried:
        assert trial.verdict.word == "better"
        assert trial.further > 0
        assert not trials.confirmed(trial).offered
        assert trial.text.startswith("Not recommended: clients are spared once, but bundles never merge again. Tried: ")


@pytest.mark.xdist_group(ONE_WORKER)
def test_splits_that_pulsar_makes_anyway_may_spare_clients() -> None:
    """Four automatic splits disconnected 132 topics; two at the right places leave fewer bundles and cut no topic."""
    advice = of_report("outstanding partitions (PIP-143)")
    assert advice.cut is not None
    assert advice.cut.further < 0
    assert advice.cuts_help
    assert "Tried: better: 132 topics fewer disconnected, " in advice.sentence
    (said,) = (one for one in advised(43).values() if one.split is not None)
    assert "Pulsar makes as many bundles by itself, later. Tried: better: 12 topics fewer" in said.sentence


@pytest.mark.xdist_group("tests/app/namespaces/test_public_reports.py")
def test_cuts_that_gain_too_little_say_so() -> None:
    """They were said to bring nothing, because a trial without unloading stood for both."""
    said = of_report("partitions on one broker (issue 386)").sentence
    assert (
        "it is 50 %, but that gains too little for splits, which last forever. Tried: trade-off: highest usage" in said
    )


@pytest.mark.xdist_group(ONE_WORKER)
@pytest.mark.parametrize(
    "seeds", [(9, 37, 43), pytest.param(range(20, 30), marks=pytest.mark.slow)], ids=["some", "more"]
)
def test_what_is_offered_lasts_as_long_as_its_splits(seeds: Sequence[int]) -> None:
    for seed in seeds:
        best, outcome = fixed(seed), about(seed).outcome
        offered = [
            best.best,
            best.pair,
            *best.others,
            *(one.trial for one in tried_findings(diagnose(outcome), about(seed).trials)),
        ]
        offered += [trial for one in advised(seed).values() for trial in (one.cut, one.split)]
        for trial in offered:
            if trial is not None and trial.splits and trial.offered:
                assert lasts(trial.verdict) or trial.calms or trial.further <= 0, (seed, trial.text)
        splits = [one for one in (best.best, *best.others) if one is not None and one.action.kind == "split"]
        assert len({one.action.key for one in splits}) == len(splits), "each action is offered once"


def test_the_heaviest_bundles_are_split_first() -> None:
    """The first of these splits are tried alone, so each has to be of a bundle that is there by then."""
    snapshot = few_bundles(42)
    _, outcome = trials_of(snapshot)
    (edits,) = (one.edits for one in diagnose(outcome) if one.code == "bundle_count_too_low")
    topics, loads, known = snapshot.topics, [], set(snapshot.bundle_names)
    traffic = topics.throughput_bytes_per_s()
    names = [snapshot.namespaces[at] for at in snapshot.bundles.namespace[topics.bundle].tolist()]
    for edit in edits:
        assert isinstance(edit, BundleSplit)
        assert edit.bundle in known
        space, _, limits = edit.bundle.rpartition("/")
        low, high = (int(one, 16) for one in limits.split("_"))
        middle = (low + high) // 2
        known |= {f"{space}/0x{low:08x}_0x{middle:08x}", f"{space}/0x{middle:08x}_0x{high:08x}"}
        inside = (topics.hash >= low) & (topics.hash < high) & [name == space for name in names]
        loads.append(float(traffic[inside].sum()))
    assert len(edits) > 10
    assert all(one >= two - 1e-6 for one, two in pairwise(loads))
