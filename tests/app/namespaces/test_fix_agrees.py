"""Whether a split is worth it: the advice on a namespace, findings with their remedies tried, and Split lab."""

from collections.abc import Sequence

import numpy as np
import pytest

from planner.explain.diagnosis import diagnose
from planner.explain.split_advice import split_advice
from planner.pulsar.manager.splits import next_splits
from planner.remedy.split import split_action, tried_split
from planner.remedy.trials import Trials
from planner.remedy.tried import tried_findings
from planner.simulate.edits.registry import BundleSplit
from planner.simulate.scenario import unchanged
from tests.app.namespaces.asked import ONE_WORKER, about, advice_on, advised, fixed
from tests.app.namespaces.random_clusters import random_cluster

pytestmark = pytest.mark.xdist_group(ONE_WORKER)


def split_namespaces(edits: tuple[object, ...]) -> set[str]:
    """Return the namespaces of edits that only split; none where they do anything else as well."""
    if not all(isinstance(one, BundleSplit) for one in edits):
        return set()
    return {one.bundle.rpartition("/")[0] for one in edits if isinstance(one, BundleSplit)}


SOME = (9, 37, 49, 141)
"""Clusters in which splits are offered, that end above a limit, or that have topics no cut helps; and a calm one."""


@pytest.mark.parametrize(
    "seeds",
    [*((seed,) for seed in SOME), pytest.param(range(60), marks=pytest.mark.slow)],
    ids=[*map(str, SOME), "all"],
)
def test_a_split_that_is_offered_is_advised(seeds: Sequence[int]) -> None:
    """Fix it, and findings, offer no split of a namespace of which the page Namespaces says to keep its bundles."""
    for seed in seeds:
        snapshot, outcome = about(seed).snapshot, about(seed).outcome
        best, advice = fixed(seed), advised(seed)
        offered = [one.action.edits for one in (best.best, *best.others) if one is not None]
        offered += [one.finding.edits for one in tried_findings(diagnose(outcome), about(seed).trials)]
        for name in set().union(*map(split_namespaces, offered)):
            said = advice[name]
            assert said.edits, (seed, name, said.sentence)
            assert not said.sentence.startswith(("Keep", "Do not", "No cut helps")), (seed, said.sentence)
        for one in advice.values():
            for topic in one.stuck:
                alone = snapshot.topics.name.to_pylist().index(topic.topic)
                lab = split_advice(snapshot, int(snapshot.topics.bundle[alone]), snapshot.settings)
                if lab.verdict == "Not worth it":
                    skewed = "more partitions do not divide it" in lab.sentence
                    assert skewed is topic.advice.skewed, (seed, topic.topic, lab.sentence)
        at_once = {order.bundle.rpartition("/")[0] for order in next_splits(snapshot, snapshot.settings).splits}
        played = {one.bundle.rpartition("/")[0] for one in outcome.trace.events if one.kind == "split"}
        assert at_once <= played, seed


@pytest.mark.parametrize("seed", [5, 9, 15, 34])
def test_split_lab_calls_no_split_worth_it_that_the_judge_does_not(seed: int) -> None:
    """It followed limits alone: of 36 splits that it called worth it, 29 were worse or no better when simulated."""
    snapshot = random_cluster(seed)
    trials = Trials(snapshot, unchanged(snapshot.info.pulsar_version))
    largest = np.argsort(-snapshot.bundles.throughput_bytes_per_s(), kind="stable")[:6].tolist()
    looked = [at for at in largest if split_advice(snapshot, at, snapshot.settings).verdict == "Worth it"]
    assert looked
    for at in looked:
        found, name = tried_split(trials, at), snapshot.bundle_names[at]
        assert found.best is not None
        trial = trials.try_out(split_action(name, found.best))
        assert trial is not None
        trial = trials.confirmed(trial)
        assert found.verdict in {"Worth it", "No need"} if trial.offered else found.verdict != "Worth it"
        assert found.sentence.endswith(trial.text)
        if found.verdict == "Worth it":
            assert not advice_on(snapshot, name.rpartition("/")[0]).sentence.startswith(("Keep", "Do not"))


@pytest.mark.parametrize("seed", [23])
def test_a_split_that_pulsar_makes_by_itself_is_not_asked_for(seed: int) -> None:
    """Split lab called three splits worth it of which Namespaces said that Pulsar will make them."""
    snapshot = random_cluster(seed)
    trials = Trials(snapshot, unchanged(snapshot.info.pulsar_version))
    said = [tried_split(trials, at) for at in range(len(snapshot.bundles))]
    automatic = {one.bundle for one in trials.unchanged().trace.events if one.kind == "split"}
    for at, found in enumerate(said):
        space, verdict = snapshot.bundle_names[at].rpartition("/")[0], found.verdict
        if advice_on(snapshot, space).sentence.startswith(("Keep", "Do not")):
            assert verdict != "Worth it", (seed, snapshot.bundle_names[at], found.sentence)
        if verdict == "No need" and "Tried" in found.sentence:
            assert snapshot.bundle_names[at] in automatic
            assert "Pulsar splits it by itself" in found.sentence
    assert any("Pulsar splits it by itself" in found.sentence for found in said)


@pytest.mark.parametrize("seed", [43, 141])
def test_a_split_that_is_no_cut_is_advised_in_words(seed: int) -> None:
    ((namespace, said),) = ((name, one) for name, one in advised(seed).items() if one.split is not None)
    assert said.split is not None
    assert not said.cuts_help
    assert said.sentence.startswith(f"Split {namespace}/0x")
    assert f"Tried: {said.split.verdict.word}" in said.sentence
    assert said.edits == said.split.action.edits
