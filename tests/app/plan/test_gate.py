"""The gate: a scenario beside doing nothing, at its end and on the way."""

from collections.abc import Mapping

import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.gate import changes_nothing, doing_nothing
from planner.explain.outcome import Outcome
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.move_bundles import MoveBundles
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.workspace.samples import load_sample, samples

STILL = {"loadBalancerSheddingEnabled": False, "loadBalancerAutoBundleSplitEnabled": False}


@pytest.fixture(scope="module")
def pip() -> Snapshot:
    return load_sample(next(s for s in samples() if s.file == "pip-364.json"))


@pytest.fixture(scope="module")
def calm() -> Snapshot:
    """A cluster well below its limits, with traffic of every bundle alike."""
    spec = ClusterSpec(brokers=4, bundles=80, topics=400, topic_skew=0, ownership_skew=0, heterogeneity=0)
    return generate(spec, seed=3)


def outcome(
    snapshot: Snapshot, *edits: Edit, settings: Mapping[str, str | int | float | bool] | None = None, cycles: int = 12
) -> Outcome:
    steps = tuple(Step(edit) for edit in edits)
    version = snapshot.settings.release.name
    return Outcome(simulate(snapshot, unchanged(version, steps=steps, settings=settings or {}, cycles=cycles)))


@pytest.mark.parametrize("edit", [ScaleTraffic(factor=2.0), KillBroker(broker="broker-4:8080")])
def test_what_only_happens_is_no_objection(pip: Snapshot, edit: Edit) -> None:
    found = outcome(pip, edit)
    assert changes_nothing(found.trace)
    assert doing_nothing(found.trace).edits == (edit,)
    assert found.gate.compared_with == "shedding and splits switched off"
    decided = outcome(pip, edit, settings={"loadBalancerCPUResourceWeight": 1.0})
    assert not changes_nothing(decided.trace)
    assert decided.gate.verdict.word == "same"


def test_a_peak_on_the_way_is_said_though_it_ends_well(calm: Snapshot) -> None:
    """Everything on one broker and back again: the end is as good as the beginning."""
    names, bundles, owner = calm.brokers.name, calm.bundle_names, calm.bundles.owner.tolist()
    there = MoveBundles(moves=tuple((bundle, names[0]) for bundle in bundles))
    home = MoveBundles(moves=tuple(zip(bundles, (names[at] for at in owner), strict=True)), at_min=6)
    found = outcome(calm, there, home, settings=STILL)
    assert found.before_after.after.over_threshold == 0
    assert found.gate.verdict.word == "worse"
    assert "% in cycles 2 to 6; the limit is 85 %." in found.gate.objections[1]
    assert names[0] in found.gate.objections[1]


def test_topics_disconnected_for_nothing_are_said(calm: Snapshot) -> None:
    """Two brokers swap all they have."""
    owner, names = calm.bundles.owner.tolist(), calm.brokers.name
    swapped = [(name, names[1 - at]) for name, at in zip(calm.bundle_names, owner, strict=True) if at in {0, 1}]
    swap = MoveBundles(moves=tuple(swapped))
    found = outcome(calm, swap, settings=STILL)
    assert found.gate.verdict.word == "worse"
    assert "topics more disconnected" in found.gate.objections[0]


def test_a_drain_disconnects_on_purpose(calm: Snapshot) -> None:
    found = outcome(calm, DrainBroker(broker=calm.brokers.name[0]), settings=STILL)
    assert found.before_after.topics
    assert found.gate.objections == ()
    crowded = outcome(calm, ScaleTraffic(factor=1.3), DrainBroker(broker=calm.brokers.name[0]), settings=STILL)
    assert crowded.gate.verdict.word == "worse"


def test_seed_and_cycles_are_those_of_the_scenario(calm: Snapshot) -> None:
    trace = simulate(calm, Scenario(seed=5, cycles=7, settings=STILL))
    assert doing_nothing(trace) == Scenario(seed=5, cycles=7, pulsar_version=calm.settings.release.name)
