"""The workspace keeps scenarios whole, and says so when it cannot."""

from pathlib import Path

import pytest

from planner.cluster.errors import ScenarioError, StoreError
from planner.cluster.snapshot import Snapshot
from planner.share.link import canonical_text, scenario_digest
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.scenario import Scenario, Step
from planner.workspace.database import open_workspace
from tests.app.plan.random_scenarios import random_scenario

ONE = Scenario(name="one'; DROP TABLE scenarios; --", steps=(Step(RemoveBroker(broker="a:1"), on=False),))
A, B = "a" * 64, "b" * 64


def test_scenarios_survive_a_restart(small: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    first = open_workspace(path)
    made = [random_scenario(small, seed, most_edits=300) for seed in range(20)]
    for scenario in made:
        first.scenarios.save(scenario, A)
    first.close()
    second = open_workspace(path)
    for scenario in made:
        back = second.scenarios.load(scenario_digest(scenario))
        assert back == scenario
        assert canonical_text(back) == canonical_text(scenario)
    assert len(second.scenarios.list()) == 20
    second.close()


def test_list_and_delete(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    kept = workspace.scenarios
    saved = kept.save(ONE, A, " Production ")
    assert (saved.name, saved.snapshot_name, saved.edits, saved.digest) == (
        ONE.name,
        "Production",
        1,
        scenario_digest(ONE),
    )
    assert kept.list() == (saved,)
    again = kept.save(ONE, A, "Production")
    assert [s.digest for s in kept.list()] == [again.digest]
    other = kept.save(ONE, B)
    assert {s.snapshot for s in kept.list()} == {A, B}
    assert kept.list(B) == (other,)
    kept.delete(saved.digest, A)
    assert kept.list() == (other,)
    kept.delete(saved.digest)
    kept.delete(saved.digest)
    assert kept.list() == ()
    with pytest.raises(StoreError, match="not stored on this server"):
        kept.load(saved.digest)
    workspace.close()


def test_a_workspace_from_before_scenarios_gets_them(small: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    older = open_workspace(path)
    snapshot = older.add(small, "mine")
    with older._cursor() as cursor:
        cursor.execute("DROP TABLE scenarios")
    older.close()
    newer = open_workspace(path)
    newer.scenarios.save(ONE, snapshot.digest)
    assert newer.saved() == (snapshot,)
    assert len(newer.scenarios.list()) == 1
    newer.close()


@pytest.mark.parametrize("content", ["{", '{"version":1}', "NaN", '{"version":1,"cycles":0}'])
def test_what_was_changed_in_the_file_is_recognised(tmp_path: Path, content: str) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    saved = workspace.scenarios.save(ONE)
    with workspace._cursor() as cursor:
        cursor.execute("UPDATE scenarios SET content = ?", [content])
    with pytest.raises(StoreError, match="damaged"):
        workspace.scenarios.load(saved.digest)
    workspace.close()


def test_what_cannot_be_read_is_not_saved(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w.duckdb")
    with pytest.raises(ScenarioError, match="cycles"):
        workspace.scenarios.save(Scenario(cycles=0))
    assert workspace.scenarios.list() == ()
    workspace.close()
