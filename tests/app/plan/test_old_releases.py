"""Notebook, findings, commands, grids and searches on releases that lack strategies and settings of the reference."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

import planner
from planner.__main__ import main
from planner.advise.advice import Configured
from planner.advise.search import space_of
from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import RELEASES, ReleaseName, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.split_advice import split_advice
from planner.figures.simulation import brokers_over_cycles
from planner.formats.archive import write_zip
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.shedding.registry import SHEDDERS, offered_shedders
from planner.replay.grid import Grid, scenarios_of
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.failure_review import review_losses
from planner.simulate.generate import generate
from planner.simulate.scenario import Scenario, unchanged
from planner.simulate.strategies import strategy_pairs, under_strategy
from planner.simulate.usage_model import standing
from planner.workspace.samples import load_sample, samples

OLD: tuple[ReleaseName, ...] = (RELEASES[0], "3.2.3")
SHEDDING, PLACEMENT = "loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"


def old(
    version: ReleaseName, manager: LoadManager = LoadManager.MODULAR, changes: Mapping[str, str] = MappingProxyType({})
) -> Snapshot:
    """A generated cluster of a release."""
    spec = ClusterSpec(brokers=5, bundles=60, topics=400, msg_rate_per_s=50_000, load_manager=manager)
    made = generate(spec, 7)
    known = Settings({**made.settings.overrides, **in_full(changes)}, release(version))
    return replace(made, info=replace(made.info, pulsar_version=version), settings=known)


@pytest.fixture(params=[(version, manager) for version in OLD for manager in LoadManager], ids=str)
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    return old(*request.param)


def test_the_notebook_answers(snapshot: Snapshot) -> None:
    outcome = planner.run_scenario(snapshot, planner.make_scenario(snapshot=snapshot, cycles=4))
    own = {one.name for one in offered_shedders(snapshot.info.load_manager, snapshot.settings.release)}
    for broker in snapshot.brokers.name:
        found = planner.explain_decision(outcome, broker=broker)
        assert {one.shedder for one in found} == own
        assert found[0].ran
    for bundle in snapshot.bundle_names[:3]:
        assert planner.explain_decision(outcome, bundle=bundle, cycle=3)
    both = planner.compare({"one": outcome, "other": outcome})
    for kind in ("usage", "heat", "moves"):
        assert planner.figure(outcome, kind)
    assert len(planner.to_pandas(both))
    assert planner.figure(both, "mean_std_percent")
    assert brokers_over_cycles(outcome.series, outcome.counts, [c.events for c in outcome.trace.cycles])


def test_every_strategy_decides_and_is_explained(snapshot: Snapshot) -> None:
    """Also those that the release lacks, which a scenario may choose all the same."""
    base = unchanged(snapshot.info.pulsar_version, cycles=12)
    for shedder in SHEDDERS:
        chosen = under_strategy(base, snapshot.settings, snapshot.info.load_manager, shedder.name)
        outcome = planner.run_scenario(snapshot, chosen)
        found = planner.explain_decision(outcome, broker=snapshot.brokers.name[0])
        assert found[0].shedder == shedder.name
        assert diagnose(outcome) == diagnose(outcome.trace)
    pairs = strategy_pairs(base, snapshot.settings, snapshot.info.load_manager)
    assert len(pairs) == 3 * 3 + 1
    assert not any("AvgShedder" in str(one.settings) for one in pairs.values())


def test_reviews_and_advice(snapshot: Snapshot) -> None:
    assumed = unchanged(snapshot.info.pulsar_version).assumptions
    assert standing(snapshot, snapshot.settings, assumed)
    assert len(review_losses(snapshot, assumptions=assumed).lost) == len(snapshot.brokers)
    assert split_advice(snapshot, 0, snapshot.settings)


def test_a_grid_of_every_strategy_and_a_search(snapshot: Snapshot) -> None:
    rows = scenarios_of(Grid(strategies=tuple(one.name for one in SHEDDERS)), snapshot)
    assert len(rows) == 1 + len(SHEDDERS)
    assert {row.pulsar_version for row in rows} == {snapshot.info.pulsar_version}
    manager, config = snapshot.info.load_manager, snapshot.settings
    names = [one.name for one in offered_shedders(manager, config.release)]
    space = space_of(Scenario(), Configured(config, manager), names)
    assert space.parameters
    assert all(one.name in config for one in space.parameters)
    if manager is LoadManager.MODULAR:
        with pytest.raises(SettingError, match=f"Pulsar {config.release.name} has no AvgShedder"):
            space_of(Scenario(), Configured(config, manager), ["AvgShedder"])


def test_commands(snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "old.zip").open("wb") as file:
        write_zip(snapshot, file)
    (tmp_path / "scenario.json").write_text(json.dumps({"version": 1, "cycles": 3}))
    given = ["--snapshot", str(tmp_path / "old.zip")]
    for command in (
        ["plan", "--scenario", str(tmp_path / "scenario.json"), "--json"],
        ["plan", "--scenario", str(tmp_path / "scenario.json"), "--commands"],
        ["optimize", "--moves", "3"],
        ["optimize", "--moves", "3", "--json"],
        ["upgrade", "--to", "4.2.4"],
        ["upgrade", "--to", "4.2.4", "--json"],
    ):
        assert main([*command, *given]) in {0, 1}, command
        assert capsys.readouterr().out


@pytest.mark.parametrize("version", OLD)
def test_fighting_strategies_are_mended_with_what_the_release_has(version: ReleaseName) -> None:
    story = load_sample(next(one for one in samples() if one.file == "story.zip"))

    def remedy(decides: ReleaseName) -> Finding:
        known = Settings(story.settings.overrides, release(decides))
        there = replace(story, info=replace(story.info, pulsar_version=decides), settings=known)
        found = diagnose(planner.run_scenario(there, replace(unchanged(decides), seed=1)))
        return next(one for one in found if one.code == "fighting_strategies")

    assert "AvgShedder" in remedy("4.2.4").remedy
    found = remedy(version)
    assert "AvgShedder" not in f"{found.remedy} {found.changes}"
    assert str(found.changes[PLACEMENT]).endswith("LeastResourceUsageWithWeight")


@pytest.mark.parametrize("version", OLD)
def test_half_a_pair_that_the_release_lacks_is_taken_away(version: ReleaseName) -> None:
    placed = "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate"
    half = old(version, changes={SHEDDING: "AvgShedder", PLACEMENT: placed})
    outcome = planner.run_scenario(half, unchanged(version, cycles=2))
    (found,) = (one for one in diagnose(outcome) if one.code in {"class_not_loaded", "fighting_strategies"})
    assert found.title == f"Pulsar {version} does not have AvgShedder"
    assert "OverloadShedder decides" in found.evidence
    assert found.changes == {SHEDDING: "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"}
