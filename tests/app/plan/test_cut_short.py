"""Scripts that are cut short: a signal at each call, and calls that fail although they were carried out."""

from pathlib import Path

import pytest

from planner.cluster.names import SHEDDING_ENABLED
from planner.cluster.snapshot import Snapshot
from planner.simulate.edits.move_bundle import MoveBundle
from tests.app.plan.scripts import other_broker, script_of, trace_of
from tests.app.plan.stand_in import StandIn

SHELLS = ("/bin/sh", "/bin/bash", "/bin/dash")
DYNAMIC: tuple[dict[str, str], ...] = ({}, {SHEDDING_ENABLED: "true", "minUnloadMessage": "5"})


@pytest.fixture
def moves(several: Snapshot) -> dict[str, str]:
    return {several.bundle_names[at]: other_broker(several, at) for at in (1, 9)}


@pytest.fixture
def script(several: Snapshot, moves: dict[str, str]) -> str:
    edits = [MoveBundle(bundle=bundle, destination=destination) for bundle, destination in moves.items()]
    return script_of(trace_of(several, *edits, cycles=1, minUnloadMessage=77), batch_bundles=1, pause_s=9)


def calls_of(stand_in: StandIn, script: str, snapshot: Snapshot, dynamic: dict[str, str]) -> list[list[str]]:
    stand_in.reset(snapshot, dynamic)
    assert stand_in.run(script).returncode == 0
    return stand_in.calls()


@pytest.mark.parametrize("dynamic", DYNAMIC, ids=["unset", "set"])
def test_a_signal_at_any_call_leaves_all_settings_as_before(
    script: str, several: Snapshot, moves: dict[str, str], tmp_path: Path, dynamic: dict[str, str]
) -> None:
    stand_in = StandIn(tmp_path, several)
    calls = calls_of(stand_in, script, several, dynamic)
    last = next(at for at, call in enumerate(calls, start=1) if "minUnloadMessage" in call)
    for at in range(1, len(calls) + 1):
        stand_in.reset(several, dynamic)
        shell = SHELLS[at % 3]
        done = stand_in.run(script, signal_at=at, shell=shell)
        # What puts settings back is not interrupted.
        assert done.returncode == (143 if at <= last else 0), (at, done.stdout + done.stderr)
        wanted = dynamic if done.returncode else {**dynamic, "minUnloadMessage": "77"}
        assert stand_in.state()["settings"] == wanted, (at, done.stdout)
        assert stand_in.runs_with(SHEDDING_ENABLED) == "true"
        if done.returncode:
            assert stand_in.run(script, shell=shell).returncode == 0, at
        assert moves.items() <= stand_in.state()["owners"].items()


@pytest.mark.parametrize("dynamic", DYNAMIC, ids=["unset", "set"])
def test_a_call_that_fails_may_have_been_carried_out(
    script: str, several: Snapshot, moves: dict[str, str], tmp_path: Path, dynamic: dict[str, str]
) -> None:
    """An answer that comes too late: settings are put back all the same, and a bundle that moved is not moved again."""
    stand_in = StandIn(tmp_path, several)
    calls = calls_of(stand_in, script, several, dynamic)
    for at, call in enumerate(calls, start=1):
        if call[1:3] not in (["namespaces", "unload"], ["brokers", "update-dynamic-config"]):
            continue
        stand_in.reset(several, dynamic)
        shell = SHELLS[at % 3]
        done = stand_in.run(script, fail_at=at, in_effect=True, shell=shell)
        wanted = dynamic if done.returncode else {**dynamic, "minUnloadMessage": "77"}
        assert stand_in.state()["settings"] == wanted, (at, done.stdout)
        if done.returncode:
            assert done.returncode == 1
            assert "That command failed with status 7." in done.stdout
            assert stand_in.run(script, shell=shell).returncode == 0, at
        unloads = [words for words in stand_in.changes() if words[1:3] == ["namespaces", "unload"]]
        assert len(unloads) == len(moves), at
        assert moves.items() <= stand_in.state()["owners"].items()
