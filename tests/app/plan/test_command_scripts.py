"""The script of a plan: what it checks, asks and runs."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from planner.cluster.names import SHEDDING_ENABLED
from planner.cluster.ranges import bundle_name, parse_bundle
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import hold_of
from planner.share.commands import final_moves
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.run import simulate
from planner.simulate.trace import Trace
from tests.app.plan.scripts import other_broker, script_of, trace_of
from tests.app.plan.stand_in import StandIn


class TestScript:
    """What is taken away is run as it is, against a stand-in that fails where it is told to."""

    @pytest.fixture
    def trace(self, several: Snapshot) -> Trace:
        return self.moved(several, 1, 9, 20, 33)

    def moved(self, several: Snapshot, *bundles: int) -> Trace:
        moves = [MoveBundle(bundle=several.bundle_names[at], destination=other_broker(several, at)) for at in bundles]
        split = SplitBundle(bundle=several.bundle_names[40])
        return trace_of(several, split, *moves, cycles=1, minUnloadMessage=77)

    @pytest.fixture
    def script(self, trace: Trace) -> str:
        return script_of(trace, batch_bundles=2, pause_s=9)

    def owners(self, trace: Trace) -> dict[str, str]:
        end = trace.end
        return {
            name: end.brokers.name[owner]
            for name, owner in zip(end.bundle_names, end.bundles.owner.tolist(), strict=True)
        }

    def test_it_leads_to_the_end_and_waits_between_batches(
        self, trace: Trace, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script)
        assert done.returncode == 0, done.stderr
        assert stand_in.state()["owners"] == self.owners(trace)
        assert stand_in.state()["settings"] == {"minUnloadMessage": "77"}
        pauses = [["sleep", "9"], ["sleep", "9"], ["sleep", "5"]]  # after batches, and before overrides are deleted
        assert [call for call in stand_in.calls() if call[0] == "sleep"] == pauses
        assert not list(tmp_path.glob("plan.sh.*"))

    def test_a_dry_run_shows_all_and_does_nothing(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script, "--dry-run")
        assert done.returncode == 0, done.stderr
        assert stand_in.calls() == []
        assert done.stdout.count("namespaces unload") == 4
        assert not list(tmp_path.glob("plan.sh.*"))

    @pytest.mark.parametrize(
        ("shell", "dynamic"),
        [("/bin/dash", {}), ("/bin/bash", {SHEDDING_ENABLED: "true", "minUnloadMessage": "5"})],
        ids=["unset-dash", "set-bash"],
    )
    def test_wherever_it_fails_all_is_as_before_and_a_second_run_ends_it(
        self, several: Snapshot, tmp_path: Path, shell: str, dynamic: dict[str, str]
    ) -> None:
        """Of two moves and one: every call of longer batches, and of more of them, is one of these."""
        trace = self.moved(several, 1, 9, 20)
        script, stand_in = script_of(trace, batch_bundles=2, pause_s=9), StandIn(tmp_path, several)
        stand_in.reset(several, dynamic)
        assert stand_in.run(script, shell=shell).returncode == 0
        calls, seen = stand_in.calls(), set()
        changes = calls.index(next(call for call in calls if "minUnloadMessage" in call)) + 1
        first = calls.index(next(call for call in calls if call[2:3] == ["get-all-dynamic-config"])) + 1
        for at in range(1, len(calls) + 1):
            stand_in.reset(several, dynamic)
            done = stand_in.run(script, fail_at=at, shell=shell)
            asked = calls[at - 1][1:3] == ["brokers", "namespaces"]
            # What puts settings back, or only looks, is tried again, or does without.
            looks = "monitoring-metrics" in calls[at - 1] or calls[at - 1][1:3] == ["namespaces", "bundles"]
            helps = at > changes or looks or (asked and at < first)
            expected = {0} if helps else {0, 4} if asked else {1}
            assert done.returncode in expected, (at, done.stdout)
            seen.add(done.returncode)
            wanted = dynamic | {"minUnloadMessage": "77"} if done.returncode == 0 else dynamic
            assert stand_in.state()["settings"] == wanted, (at, done.stdout)
            assert stand_in.runs_with(SHEDDING_ENABLED) == "true"
            assert not list(tmp_path.glob("plan.sh.*.before"))
            if done.returncode == 1 and at > first:
                assert "All settings are as before. To continue, run this script again" in done.stdout
            if done.returncode == 1 and at <= first:
                assert "Nothing was changed." in done.stdout
                assert stand_in.changes() == []
            if done.returncode:
                again = stand_in.run(script, shell=shell)
                assert again.returncode == 0, (at, again.stdout)
            assert stand_in.state()["owners"] == self.owners(trace)
            assert stand_in.state()["settings"] == dynamic | {"minUnloadMessage": "77"}
        assert seen == {0, 1, 4}

    def test_settings_that_cannot_be_put_back_are_left_to_a_person(
        self, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.reset(several, {"loadBalancerAutoBundleSplitEnabled": "false"})
        done = stand_in.run(script, fail_on="brokers delete-dynamic-config")
        assert done.returncode == 6
        assert "RESTORING SETTINGS FAILED. Run these commands yourself" in done.stdout
        lines = done.stdout.splitlines()
        for name, value in ((SHEDDING_ENABLED, "true"), ("loadBalancerAutoBundleSplitEnabled", "false")):
            assert f"pulsar-admin brokers update-dynamic-config --config {name} --value {value}" in lines
        assert f"pulsar-admin brokers delete-dynamic-config --config {SHEDDING_ENABLED}" in lines
        assert stand_in.run(script).returncode == 0, "they are still noted"
        assert stand_in.state()["settings"] == {
            "loadBalancerAutoBundleSplitEnabled": "false",
            "minUnloadMessage": "77",
        }

    def test_brokers_that_keep_a_deleted_value(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.reset(several, old=True)
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["settings"] == {"minUnloadMessage": "77"}
        assert stand_in.runs_with(SHEDDING_ENABLED) == "true"

    def test_answers_in_json(self, trace: Trace, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        dynamic = {SHEDDING_ENABLED: "false", "minUnloadMessage": "5"}
        stand_in.reset(several, dynamic, as_json=True)
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["owners"] == self.owners(trace)
        assert stand_in.state()["settings"] == dynamic | {"minUnloadMessage": "77"}

    def test_killed_it_leaves_a_mark_that_others_see(
        self, trace: Trace, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        killing = script.replace("batch 'Batch 2", "kill -KILL $$\nbatch 'Batch 2")
        assert stand_in.run(killing).returncode == -9
        left = stand_in.state()["settings"]
        mark = hold_of(left[SHEDDING_ENABLED])
        assert mark is not None
        assert (mark.overridden, mark.was_on) == (False, True)
        # Another script changes nothing, unless it is told that the first one is gone.
        stand_in.forget_runs()
        other = script_of(trace, batch_bundles=1, pause_s=0)
        refused = stand_in.run(other)
        assert refused.returncode == 5
        assert f"Another script holds {SHEDDING_ENABLED}: {left[SHEDDING_ENABLED]}" in refused.stdout
        assert stand_in.state()["settings"] == left
        taken = stand_in.run(other, "--take-over")
        assert taken.returncode == 0, taken.stdout
        assert "Already split: " in taken.stdout
        assert stand_in.state()["settings"] == {"minUnloadMessage": "77"}
        assert stand_in.state()["owners"] == self.owners(trace)

    def test_killed_it_can_be_run_again_though_its_notes_are_gone(
        self, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        for dynamic in ({}, {SHEDDING_ENABLED: "true"}):
            for forgets in (False, True):
                stand_in.reset(several, dynamic)
                body = "kill -KILL $$\nbatch 'Batch 1"
                stand_in.run(script.replace("batch 'Batch 1", body))
                assert "held-by" in stand_in.state()["settings"][SHEDDING_ENABLED]
                if forgets:
                    stand_in.forget_runs()
                done = stand_in.run(script)
                assert done.returncode == 0, done.stdout
                assert "An earlier run of this script was interrupted" in done.stdout
                assert stand_in.state()["settings"] == dynamic | {"minUnloadMessage": "77"}
                assert stand_in.runs_with(SHEDDING_ENABLED) == "true"

    def test_what_a_person_changed_since_is_left_alone(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.run(script.replace("batch 'Batch 1", "kill -KILL $$\nbatch 'Batch 1"))
        state = stand_in.state()
        state["settings"] = {SHEDDING_ENABLED: "false"}  # put right by hand, and then off on purpose
        stand_in.write(state)
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "false", "minUnloadMessage": "77"}

    def test_shedding_that_was_off_is_asked_about(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        for answers, after in (("on\n", "true"), ("no\n", "false"), ("", "false")):
            stand_in.reset(several, {SHEDDING_ENABLED: "false"})
            done = stand_in.run(script, answers=answers)
            assert done.returncode == 0
            assert f"Shedding was off before this script ({SHEDDING_ENABLED}=false)." in done.stdout
            assert stand_in.state()["settings"] == {SHEDDING_ENABLED: after, "minUnloadMessage": "77"}
            assert (done.stdout.splitlines()[-1].startswith("SHEDDING IS OFF.")) is (after == "false")

    def test_it_leaves_shedding_off_only_when_told_and_all_is_done(
        self, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script, "--leave-shedding-off")
        assert done.returncode == 0
        assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "false", "minUnloadMessage": "77"}
        how = f"pulsar-admin brokers update-dynamic-config --config {SHEDDING_ENABLED} --value true"
        assert done.stdout.splitlines()[-1] == f"SHEDDING IS OFF. To turn it on: {how}"
        stand_in.reset(several)
        state = stand_in.state()
        state["owners"][several.bundle_names[9]] = "elsewhere:8080"
        stand_in.write(state)
        skipped = stand_in.run(script, "--leave-shedding-off")
        assert skipped.returncode == 4
        assert stand_in.state()["settings"] == {}
        assert "Shedding is not left off, as bundles were skipped." in skipped.stdout

    def test_a_scenario_may_ask_for_shedding_to_be_off(self, several: Snapshot, tmp_path: Path) -> None:
        move = MoveBundle(bundle=several.bundle_names[1], destination=other_broker(several, 1))
        script = script_of(trace_of(several, move, cycles=1, loadBalancerSheddingEnabled=False))
        stand_in = StandIn(tmp_path, several)
        assert "changes these settings" in script
        done = stand_in.run(script)
        assert done.returncode == 0
        assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "false"}
        assert done.stdout.splitlines()[-1].startswith("SHEDDING IS OFF.")
        stand_in.reset(several)
        assert stand_in.run(script, fail_unload=1).returncode == 1
        assert stand_in.state()["settings"] == {}

    def test_what_lies_elsewhere_is_passed_over(
        self, trace: Trace, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        state = stand_in.state()
        away, there = several.bundle_names[9], several.bundle_names[20]
        destinations = {move.bundle: move.destination for move in final_moves(trace)}
        third = next(b for b in several.brokers.name if b not in {destinations[away], state["owners"][away]})
        state["owners"] |= {away: third, there: destinations[there]}
        stand_in.write(state)
        done = stand_in.run(script)
        assert done.returncode == 4, done.stderr
        assert f"Skipped: {away} is not on" in done.stdout
        assert f"Already there: {there} is on {destinations[there]}." in done.stdout
        assert "capture the cluster again" in done.stdout
        assert stand_in.state()["owners"] == self.owners(trace) | {away: third}
        assert stand_in.state()["settings"] == {}, "settings follow the moves"

    def test_a_part_of_a_split_bundle_is_split_again(self, several: Snapshot, tmp_path: Path) -> None:
        name = several.bundle_names[0]
        namespace, low, high = parse_bundle(name)
        middle = low + (high - low) // 2
        trace = trace_of(
            several, SplitBundle(bundle=name), SplitBundle(bundle=bundle_name(namespace, low, middle)), cycles=1
        )
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script_of(trace, pause_s=0))
        assert done.returncode == 0, done.stdout
        assert stand_in.state()["owners"] == self.owners(trace)

    def test_it_stops_at_steps_by_hand_and_asks_for_real_names(self, several: Snapshot, tmp_path: Path) -> None:
        trace = trace_of(several, AddBrokers(count=2), DrainBroker(broker=several.brokers.name[0]), cycles=8)
        script = script_of(trace, pause_s=0)
        moves = {move.bundle: move.destination for move in final_moves(trace)}
        assert "added-1:8080" in moves.values()
        stand_in = StandIn(tmp_path, several)
        refused = stand_in.run(script, answers="no\n")
        assert refused.returncode == 3
        assert stand_in.changes() == []
        assert stand_in.run(script).returncode == 3, "nobody answers"
        named = ["--broker", "added-2:8080=real-2:8080"]
        half = stand_in.run(script, *named, answers="yes\nyes\nreal-1:8080\nwhat\nno\n")
        assert half.returncode == 3
        assert "An id ends with a port; yes does not." in half.stdout
        assert stand_in.state()["settings"] == {}, "shedding is back"
        drained = several.brokers.name[0]
        assert f"{drained} owns no bundles any more." in half.stdout
        assert f"Stop {drained} before you answer: once this script ends, the load balancer moves" in half.stdout
        assert half.stdout.count("Type yes when this is done, or stop to end the script: ") == 3, (
            "any other word asks again"
        )
        names = {"added-1:8080": "real-1:8080", "added-2:8080": "real-2:8080"}
        owners = stand_in.state()["owners"]
        assert {bundle: owners[bundle] for bundle in moves} == {
            bundle: names.get(name, name) for bundle, name in moves.items()
        }
        calls = len(stand_in.calls())
        rest = stand_in.run(script, *named, "--broker", "added-1:8080=real-1:8080", answers="y\n")
        assert rest.returncode == 0, rest.stdout
        assert not [call for call in stand_in.calls()[calls:] if "unload" in call]

    def test_a_signal_ends_it_with_shedding_on(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        killing = script.replace("batch 'Batch 2", "kill -TERM $$\nbatch 'Batch 2")
        assert killing != script
        assert stand_in.run(killing).returncode == 143
        assert stand_in.state()["settings"] == {}
        assert stand_in.runs_with(SHEDDING_ENABLED) == "true"

    def test_from_standard_input_it_does_nothing(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
        done = subprocess.run(
            ["/bin/sh"], input=script, env=environment, text=True, cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode == 2
        assert "Save this script" in done.stdout
        assert stand_in.calls() == []

    def test_shellcheck_has_nothing_to_say(self, script: str, tmp_path: Path) -> None:
        checker = Path(sys.executable).with_name("shellcheck")
        path = tmp_path / "plan.sh"
        path.write_text(script)
        done = subprocess.run([str(checker), str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


SHELLS = ("/bin/sh", "/bin/bash", "/bin/dash")


class TestPreflight:
    """Before anything is changed, a script sees whether this is the cluster of the plan, and asks."""

    @pytest.fixture
    def script(self, several: Snapshot) -> str:
        at = (1, 9, 20, 33)
        moves = [MoveBundle(bundle=several.bundle_names[one], destination=other_broker(several, one)) for one in at]
        return script_of(trace_of(several, *moves, cycles=1, minUnloadMessage=77), batch_bundles=2, pause_s=9)

    @pytest.mark.parametrize("shell", SHELLS)
    def test_nothing_is_changed_on_another_cluster(
        self, script: str, several: Snapshot, tmp_path: Path, shell: str
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        owners, conf = stand_in.state()["owners"], stand_in.state()["conf"]
        away = dict.fromkeys(owners, "elsewhere:8080")
        for other, said in (
            ({"conf": conf | {"clusterName": "other"}}, "This is the cluster other."),
            ({"owners": {}}, "None of these bundles is where the plan expects it"),
            ({"owners": away}, "None of these bundles is where the plan expects it"),
            ({"release": "3.0.0"}, "Release: 3.0.0, but the plan expects 4.2.4"),
            (
                {"conf": conf | {"loadBalancerLoadSheddingStrategy": "a.b.Own"}},
                "strategy: Own, but",
            ),
            ({"conf": conf | {"loadManagerClassName": "a.b.Own"}}, "Load manager: Own, but"),
        ):
            stand_in.reset(several, {SHEDDING_ENABLED: "true"})
            stand_in.write(stand_in.state() | other)
            done = stand_in.run(script, shell=shell)
            assert done.returncode == 7, done.stdout
            assert said in done.stdout
            assert "Nothing was changed." in done.stdout
            assert stand_in.changes() == []
            assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "true"}

    @pytest.mark.parametrize("shell", SHELLS)
    def test_it_asks_in_a_terminal_and_stops_without_one(
        self, script: str, several: Snapshot, tmp_path: Path, shell: str
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        for answers, status in (("y\n", 0), ("n\n", 3), ("\n", 3)):
            stand_in.reset(several)
            done = stand_in.run(script, answers=answers, terminal=True, yes=False, shell=shell)
            assert done.returncode == status, done.stdout
            asked = "Cluster generated, captured 2027-01-15 08:00:00 UTC, "
            assert asked in done.stdout
            assert ": continue? [y/N] " in done.stdout
            assert bool(stand_in.changes()) is (status == 0)
        stand_in.reset(several)
        refused = stand_in.run(script, answers="y\n", yes=False, shell=shell)
        assert refused.returncode == 3
        assert "Run the script in a terminal, or with --yes." in refused.stdout
        assert stand_in.changes() == []

    def test_a_person_may_continue_with_another_release(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.write(stand_in.state() | {"release": "4.2.5"})
        assert stand_in.run(script, answers="y\n", terminal=True, yes=False).returncode == 0

    def test_some_bundles_may_have_moved(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        state = stand_in.state()
        state["owners"][several.bundle_names[1]] = "elsewhere:8080"
        stand_in.write(state)
        assert stand_in.run(script).returncode == 4

    def test_an_interrupted_run_is_told_of(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.run(script.replace("batch 'Batch 2", "kill -KILL $$\nbatch 'Batch 2"))
        done = stand_in.run(script, fail_on="brokers version")
        assert done.returncode == 1
        assert "An earlier run of this script was interrupted, and its settings are not restored yet." in done.stdout
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["settings"] == {"minUnloadMessage": "77"}


LONGEST_BACK_OFF_S = 60
"""How long a Pulsar client waits at most until it asks for its topic again."""


class TestBatches:
    """After each batch a script sees whether the bundles have arrived, and how much their brokers are used."""

    AT = (1, 9, 20)

    def script(self, snapshot: Snapshot) -> str:
        moves = [MoveBundle(bundle=snapshot.bundle_names[at], destination=other_broker(snapshot, at)) for at in self.AT]
        return script_of(trace_of(snapshot, *moves, cycles=1), batch_bundles=2, pause_s=9)

    def waited(self, snapshot: Snapshot, folder: Path, shell: str, looks: int) -> tuple[str, list[list[str]]]:
        """Run the script while bundles arrive after so many looks; return what it said and called."""
        stand_in = StandIn(folder, snapshot)
        stand_in.reset(snapshot, looks=looks)
        done = stand_in.run(self.script(snapshot), shell=shell)
        assert done.returncode == 0, done.stdout
        return done.stdout, stand_in.calls()

    @pytest.mark.parametrize("shell", SHELLS)
    def test_bundles_may_arrive_late(self, several: Snapshot, tmp_path: Path, shell: str) -> None:
        said, calls = self.waited(several, tmp_path, shell, looks=6)
        assert said.count("Every bundle of this batch has arrived.") == 2
        assert ["sleep", "5"] in calls

    @pytest.mark.parametrize("shell", SHELLS)
    def test_they_may_arrive_when_the_slowest_client_asks(self, several: Snapshot, tmp_path: Path, shell: str) -> None:
        said, calls = self.waited(several, tmp_path, shell, looks=40)
        assert calls.count(["sleep", "5"]) * 5 > LONGEST_BACK_OFF_S
        assert "  waited 60 s, still to arrive: " in said

    @pytest.mark.parametrize("shell", SHELLS)
    def test_it_says_at_its_end_what_it_did(self, several: Snapshot, tmp_path: Path, shell: str) -> None:
        stand_in = StandIn(tmp_path, several)
        script = self.script(several)
        done = stand_in.run(script, shell=shell)
        assert done.returncode == 0, done.stdout
        assert done.stdout.splitlines()[-2:] == ["Done: 3 of 3 bundles are moved.", "All settings are as before."]
        stand_in.forget_runs()
        assert stand_in.run(script, "--dry-run", shell=shell).stdout.count("Done: ") == 0
        stand_in.reset(several)
        broken = stand_in.run(script, fail_unload=2, shell=shell)
        assert "Done: " not in broken.stdout
        rest = stand_in.run(script, shell=shell)
        assert rest.stdout.splitlines()[-2] == "Done: 3 of 3 bundles are moved.", "those of the first run count"
        limit = {"loadBalancerBrokerThresholdShedderPercentage": 7, "loadBalancerSheddingEnabled": False}
        stand_in.reset(several)
        settings = script_of(trace_of(several, cycles=1, **limit))
        refused = stand_in.run(settings, fail_on="brokers update-dynamic-config", shell=shell).stdout
        assert "State: the last step was " in refused, "there is nothing to move"
        stand_in.reset(several)
        changed = stand_in.run(settings, shell=shell).stdout.splitlines()[-4:-1]
        assert changed == [
            "Done.",
            f"These settings are changed: {' '.join(limit)}.",
            "All other settings are as before.",
        ]

    @pytest.mark.parametrize("shell", SHELLS)
    def test_it_stops_where_they_do_not(self, several: Snapshot, tmp_path: Path, shell: str) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.reset(several, {SHEDDING_ENABLED: "true"}, looks=10_000)
        script = self.script(several)
        done = stand_in.run(script, shell=shell)
        assert done.returncode == 8, done.stdout
        first = several.bundle_names[1]
        assert f"  {first} is not on {other_broker(several, 1)}." in done.stdout
        assert "Not every bundle of this batch has arrived." in done.stdout
        assert "State: 2 of 3 bundles are moved, 0 skipped; the last step was 4 of 7." in done.stdout
        assert "All settings are as before. To continue, run this script again" in done.stdout
        assert stand_in.state()["unloads"] == 2
        assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "true"}
        state = stand_in.state()
        state["owners"] |= {bundle: there for bundle, (there, _) in state["on_the_way"].items()}
        stand_in.write(state | {"looks": 0, "on_the_way": {}})
        again = stand_in.run(script, shell=shell)
        assert again.returncode == 0, again.stdout
        assert stand_in.state()["unloads"] == 3

    def test_a_bundle_without_clients_has_no_owner_for_a_while(self, several: Snapshot, tmp_path: Path) -> None:
        none = np.zeros_like(several.bundles.producers)
        idle = several.with_columns(bundles=replace(several.bundles, producers=none, consumers=none))
        stand_in = StandIn(tmp_path, idle)
        stand_in.reset(idle, looks=10_000)
        script = self.script(idle)
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["unloads"] == 3
        # Cut short and run again, it does not take them for bundles that have moved.
        stand_in.reset(idle, looks=10_000)
        assert stand_in.run(script, fail_unload=3).returncode == 1
        again = stand_in.run(script)
        assert again.returncode == 0, again.stdout
        assert again.stdout.count("Unloaded before:") == 2

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_it_stops_above_the_limit(self, several: Snapshot, tmp_path: Path, form: str) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.reset(several, as_json=form == "json")
        busy = other_broker(several, 1)
        stand_in.write(stand_in.state() | {"used_percent": {busy: 91}})
        script = self.script(several)
        done = stand_in.run(script)
        assert done.returncode == 8, done.stdout
        assert f"  {busy}: 91 % used" in done.stdout
        assert "A broker is above the limit of 85 %." in done.stdout
        assert stand_in.state()["unloads"] == 2
        assert stand_in.state()["settings"] == {}
        assert stand_in.run(script, "--ignore-usage").returncode == 0
        assert stand_in.state()["unloads"] == 3

    def test_brokers_with_tls_alone_are_asked_for_their_usage_there(self, several: Snapshot, tmp_path: Path) -> None:
        """They were asked by plain HTTP, so that nobody noticed a broker above the limit."""
        names = tuple(name.replace(":8080", ":8443") for name in several.brokers.name)
        secure = replace(several, brokers=replace(several.brokers, name=names))
        stand_in = StandIn(tmp_path, secure)
        stand_in.reset(secure)
        done = stand_in.run(self.script(secure))
        assert done.returncode == 0, done.stdout
        asked = {call[2].partition("://")[0] for call in stand_in.calls() if "monitoring-metrics" in call}
        assert asked == {"https"}

    @pytest.mark.parametrize(
        ("port", "leader", "configured", "scheme"),
        [
            ("8080", "http", "", "http"),
            ("8080", "http", "webServiceUrl=http://localhost:8080/", "http"),
            ("8080", "http", "webServiceUrl=https://pulsar.example:8443/", "https"),
            ("8080", "http", "webServiceUrl: https://pulsar.example/", "https"),
            ("9443", "https", "", "https"),
            ("9080", "http", "", "http"),
            ("9080", "http", "webServiceUrl=https://pulsar.example/", "https"),
            ("8443", "http", "webServiceUrl=http://localhost:8080/", "https"),
        ],
    )
    def test_no_token_goes_to_a_port_without_tls_where_pulsar_admin_uses_it(
        self, several: Snapshot, tmp_path: Path, port: str, leader: str, configured: str, scheme: str
    ) -> None:
        """Brokers with TLS on another port than 443 and 8443 were asked by plain HTTP, with the token."""
        names = tuple(name.replace(":8080", f":{port}") for name in several.brokers.name)
        other = replace(several, brokers=replace(several.brokers, name=names))
        stand_in = StandIn(tmp_path, other)
        stand_in.reset(other)
        stand_in.leader_scheme = leader
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "client.conf").write_text(f"# webServiceUrl=https://a/\n{configured}\nauthParams=x\n")
        done = stand_in.run(self.script(other))
        assert done.returncode == 0, done.stdout
        asked = [call[2].partition("://")[0] for call in stand_in.calls() if "monitoring-metrics" in call]
        assert set(asked) == {scheme}
        leaders = [call for call in stand_in.calls() if "leader-broker" in call]
        assert len(leaders) == (port.startswith("9") and not configured)

    def test_usage_that_cannot_be_read_is_told(self, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(self.script(several), fail_on="--admin-url")
        assert done.returncode == 0, done.stdout
        assert "its usage cannot be read, so only arrival was checked." in done.stdout


@pytest.mark.parametrize("manager", ["", "extensible"])
def test_what_a_person_has_to_write_is_shown_where_it_waits(
    several: Snapshot, tmp_path: Path, manager: Literal["", "extensible"]
) -> None:
    """Settings of `broker.conf` are shown in full where the script waits for a person, not in comments alone."""
    found = trace_of(several, cycles=1, loadBalancerNamespaceMaximumBundles=77, loadBalancerEnabled=False)
    scenario = replace(found.scenario, load_manager=manager)
    trace = simulate(several, scenario)
    stand_in = StandIn(tmp_path, several)
    for answer, status in (("stop\n", 3), ("yes\n", 0)):
        done = stand_in.run(script_of(trace), answers=answer)
        assert done.returncode == status, done.stdout
        asked = done.stdout.partition("Type yes when this is done")[0].splitlines()[-1]
        assert asked.startswith(">> By hand: ")
        assert "loadBalancerEnabled=false" in asked
        assert ("loadManagerClassName=org.apache.pulsar" in asked) is bool(manager)
        assert "loadManagerClassName" not in stand_in.state()["settings"]
