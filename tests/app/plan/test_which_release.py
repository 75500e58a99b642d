"""Which release decides: one that the scenario names, else the cluster's own, whoever asks."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.__main__ import main
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import Snapshot
from planner.formats.document import write_document
from planner.replay.grid import Grid, grid_from_json, scenarios_of
from planner.share.link import canonical_text, decode_link, encode_link
from planner.share.scenario_file import read_scenario_file, scenario_file
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, scenario_from_json, scenario_to_json, unchanged

OWN = "3.2.3"
BARE = b'{"version": 1}'
DIGEST = "ab" * 32


@pytest.fixture
def old(several: Snapshot) -> Snapshot:
    """A cluster of another release than the reference."""
    return replace(several, info=replace(several.info, pulsar_version=OWN))


@pytest.fixture
def asks(old: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command on the cluster and return what it prints as JSON."""
    path = tmp_path / "old.json"
    path.write_text(write_document(old), encoding="utf-8")

    def ask(*words: str, given: bytes = b"") -> Any:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        main([words[0], "--snapshot", str(path), *words[1:], "--json"])
        return json.loads(capsys.readouterr().out)

    return ask


def test_every_command_decides_as_the_cluster_does(asks: Any) -> None:
    piped = {"given": BARE}
    assert asks("plan", "--scenario", "-", **piped)["scenario"]["pulsar_version"] == OWN
    assert asks("fix", "--scenario", "-", **piped) == asks("fix")
    assert asks("upgrade", "--to", "4.0.8", "--scenario", "-", **piped) == asks("upgrade", "--to", "4.0.8")
    assert asks("optimize", "--scenario", "-", **piped)["peak_percent"] == pytest.approx(
        asks("optimize")["peak_percent"]
    )


def test_a_release_that_is_named_decides(asks: Any) -> None:
    named = json.dumps({"version": 1, "pulsar_version": REFERENCE.name}).encode()
    written = asks("plan", "--scenario", "-", given=named)["scenario"]
    assert written["pulsar_version"] == REFERENCE.name
    assert scenario_from_json(written).pulsar_version == REFERENCE.name, "an answer can be used as a scenario"


def test_a_notebook_decides_as_the_cluster_does(old: Snapshot) -> None:
    scenario = planner.make_scenario(cycles=1)
    assert planner.run_scenario(old, scenario).trace.scenario.pulsar_version == OWN
    assert simulate(old, Scenario(cycles=1)).settings.release.name == OWN


def test_a_grid_decides_as_the_cluster_does(old: Snapshot) -> None:
    grid = grid_from_json(json.dumps([{"version": 1, "name": "one", "cycles": 3}]).encode(), "x.json")
    assert {one.pulsar_version for one in scenarios_of(grid, old)} == {OWN}
    assert {one.pulsar_version for one in scenarios_of(Grid(base=Scenario(cycles=3)), old)} == {OWN}


def test_links_and_files_of_earlier_versions_keep_the_reference() -> None:
    """They left it out, whatever the cluster ran."""
    scenario = unchanged(REFERENCE.name, cycles=7)
    assert "pulsar_version" not in canonical_text(scenario)
    assert decode_link(encode_link(scenario, DIGEST)).scenario == scenario
    file = {
        "kind": "pulsar-bundle-planner scenario",
        "snapshot": {"digest": DIGEST},
        "scenario": {"version": 1, "cycles": 7},
    }
    assert read_scenario_file(json.dumps(file).encode()).scenario == scenario


@pytest.mark.parametrize("release", [REFERENCE.name, OWN, ""])
def test_written_forms_keep_the_release(release: Any) -> None:
    scenario = Scenario(cycles=7, pulsar_version=release)
    assert scenario_from_json(scenario_to_json(scenario)) == scenario
    assert decode_link(encode_link(scenario, DIGEST)).scenario == scenario
    text = scenario_file(scenario, DIGEST)
    assert read_scenario_file(text.encode()).scenario == scenario
    assert read_scenario_file(json.dumps(json.loads(text)["scenario"]).encode()).scenario == scenario
