"""A stand-in for `pulsar-admin`: a cluster that knows who owns what, does what it is told, and writes that down.

Its cluster has a `broker.conf`, a dynamic configuration above it, and what brokers run with: releases below 3.0.7 and
3.2.3 keep a value whose override is deleted until they restart. It fails at a call, or lets bundles arrive late.

The program that a script finds hands its words to this process through a pipe, so that a call takes milliseconds.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

from planner.cluster.names import LOAD_MANAGER_CLASS_NAME
from planner.cluster.ranges import bundle_name, parse_range
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.class_names import MANAGER_CLASSES

READS = (["brokers", "namespaces"], ["brokers", "version"], ["namespaces", "bundles"])
"""Calls that change nothing, besides those that begin with `get-` and metrics."""

_PROGRAM = """#!/bin/sh
printf '%s\\0' {name} "$@" >'{folder}/asked'
read -r status <'{folder}/answered'
[ ! -s '{folder}/out' ] || cat '{folder}/out'
exit "$status"
"""


class StandIn:
    """A cluster that scripts are run against, in a folder of its own."""

    def __init__(self, folder: Path, snapshot: Snapshot) -> None:
        self.folder = folder
        self._calls: list[list[str]] = []
        self._state: dict[str, Any] = {}
        self._fails: dict[str, Any] = {}
        self._error: Exception | None = None
        self.left: dict[str, dict[str, Any]] = {}
        """States that other scripts led to, for tests that begin there again and again."""
        self.leader_scheme = "http"
        """How the leader says that it is asked."""
        self._pid = 0
        self.reset(snapshot)
        (folder / "bin").mkdir(exist_ok=True)
        for name in ("asked", "answered"):
            (folder / name).unlink(missing_ok=True)
            os.mkfifo(folder / name)
        for name in ("pulsar-admin", "sleep"):
            program = folder / "bin" / name
            program.write_text(_PROGRAM.format(name=name, folder=folder))
            program.chmod(0o755)

    def reset(
        self,
        snapshot: Snapshot,
        dynamic: Mapping[str, str] | None = None,
        *,
        as_json: bool = False,
        old: bool = False,
        looks: int = 0,
    ) -> None:
        """Let the cluster be as it was captured, and forget what was done.

        Args:
            snapshot: The cluster.
            dynamic: Values of its dynamic configuration.
            as_json: `pulsar-admin` prints JSON.
            old: Brokers keep a value whose override is deleted.
            looks: How many times brokers are asked what they own until a bundle that was unloaded has arrived.
        """
        owners = {
            name: snapshot.brokers.name[owner]
            for name, owner in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
            if owner >= 0
        }
        settings = dict(dynamic or {})
        conf = {name: conf_value(snapshot.settings[name]) for name in snapshot.settings.release.settings}
        manager = MANAGER_CLASSES[snapshot.info.load_manager]
        conf |= {"clusterName": snapshot.info.cluster, LOAD_MANAGER_CLASS_NAME: manager}
        made = {"owners": owners, "settings": settings, "running": {**settings}, "conf": conf}
        how = {
            "unloads": 0,
            "json": as_json,
            "old": old,
            "looks": looks,
            "on_the_way": {},
            "used_percent": {},
            "created": [],
            "unowned": [name for name in snapshot.bundle_names if name not in owners],
            "deaf": False,
        }
        self._state = {**made, **how, "release": snapshot.info.pulsar_version}
        self._calls.clear()
        self.forget_runs()

    def forget_runs(self) -> None:
        """Delete what scripts left beside themselves."""
        for left in self.folder.glob("plan.sh*"):
            left.unlink()

    def state(self) -> dict[str, Any]:
        return deepcopy(self._state)

    def write(self, state: dict[str, Any]) -> None:
        self._state = state

    def calls(self) -> list[list[str]]:
        """What was called, in order."""
        return [[*call] for call in self._calls]

    def changes(self) -> list[list[str]]:
        """What was called that changes the cluster, in order, without what holds and puts back settings."""
        return [
            call
            for call in self.calls()
            if call[0] == "pulsar-admin"
            and call[1:3] not in READS
            and "monitoring-metrics" not in call
            and not call[2].startswith("get-")
        ]

    def runs_with(self, name: str) -> str:
        """Return the value of a setting that brokers run with."""
        found: str = {**self._state["conf"], **self._state["running"]}[name]
        return found

    def run(
        self,
        script: str,
        *arguments: str,
        answers: str = "",
        fail_at: int = 0,
        fail_on: str = "",
        fail_unload: int = 0,
        in_effect: bool = False,
        signal_at: int = 0,
        shell: str = "/bin/sh",
        yes: bool = True,
        terminal: bool = False,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a script as a file.

        Args:
            script: Its text.
            arguments: Its arguments.
            answers: What a person types.
            fail_at: The number of the call that fails; 0 for none.
            fail_on: Calls whose words begin so fail.
            fail_unload: The number of the unload that fails; 0 for none.
            in_effect: What fails is carried out all the same, as when its answer comes too late.
            signal_at: The number of the call during which the script gets SIGTERM; 0 for none.
            shell: What runs it.
            yes: Answer the first question, whether to continue.
            terminal: Answers come from a terminal.
        """
        path = self.folder / "plan.sh"
        path.write_text(script, encoding="utf-8")
        self._fails = {"at": fail_at, "on": fail_on, "unload": fail_unload, "in_effect": in_effect, "signal": signal_at}
        command = [shell, str(path), *(["--yes"] if yes else []), *arguments]
        given = os.openpty() if terminal else os.pipe()
        ours, theirs = given if terminal else given[::-1]
        os.write(ours, answers.encode())
        if not terminal:
            os.close(ours)
        server = threading.Thread(target=self._serve, daemon=True)
        server.start()
        place: dict[str, Any] = {"cwd": self.folder, "env": {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin"}}
        piped: dict[str, Any] = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        try:
            with subprocess.Popen(command, **place, **piped) as script_run:
                self._pid = script_run.pid
                try:
                    out, err = script_run.communicate(timeout=120)
                except subprocess.TimeoutExpired:
                    script_run.kill()
                    raise
            return subprocess.CompletedProcess(command, script_run.returncode, out, err)
        finally:
            os.close(theirs)
            if terminal:
                os.close(ours)
            (self.folder / "asked").write_text("")  # ends the server
            server.join(timeout=10)
            if self._error is not None:
                raise self._error

    def _serve(self) -> None:
        """Answer calls until one has no words."""
        while words := (self.folder / "asked").read_bytes().decode().split("\0")[:-1]:
            try:
                status, out = self._answer(words)
            except Exception as error:  # noqa: BLE001 - the script must get an answer, and the test its reason
                self._error, status, out = error, 70, ""
            (self.folder / "out").write_text(out)
            (self.folder / "answered").write_text(f"{status}\n")

    def _answer(self, call: list[str]) -> tuple[int, str]:
        """Return the status and the output of a call."""
        self._calls.append(call)
        if len(self._calls) == self._fails["signal"]:
            os.kill(self._pid, signal.SIGTERM)
        words = call[1:]
        fails = len(self._calls) == self._fails["at"]
        fails = fails or bool(self._fails["on"] and " ".join(words).startswith(self._fails["on"]))
        if words[:2] == ["namespaces", "unload"]:
            self._state["unloads"] += 1
            fails = fails or self._state["unloads"] == self._fails["unload"]
        if fails and not self._fails["in_effect"]:
            return 7, ""
        status, out = self._carried_out(call[0], words)
        return (7, "") if fails else (status, out)

    def _carried_out(self, program: str, words: list[str]) -> tuple[int, str]:
        url = ""
        if words[:1] == ["--admin-url"]:
            url, words = words[1], words[2:]
        if program == "sleep":
            return 0, ""
        if words[:2] == ["namespaces", "bundles"]:
            return self._bundles(words[2])
        if words[0] == "namespaces":
            return self._namespaces(words), ""
        if words[:2] == ["broker-stats", "monitoring-metrics"]:
            return 0, self._metrics(url)
        return (0, self._brokers(words)) if words[0] == "brokers" else (0, "")

    def _brokers(self, words: Sequence[str]) -> str:
        state, given = self._state, dict(zip(words[2::2], words[3::2], strict=False))
        settings, running = state["settings"], state["running"]
        if words[1] in {"version", "leader-broker"}:
            leader = next(iter(state["owners"].values()), "")
            told = {"brokerId": leader, "serviceUrl": f"{self.leader_scheme}://{leader}"}
            return f"{state['release'] if words[1] == 'version' else json.dumps(told, indent=2)}\n"
        if words[1] == "namespaces":
            self._arrive()
            mine = [bundle for bundle, owner in state["owners"].items() if owner == words[4]]
            if state["json"]:
                return json.dumps({one: {"broker_assignment": "shared", "is_active": True} for one in mine})
            return "".join(f"{one}    [broker_assignment=shared is_controlled=false is_active=true]\n" for one in mine)
        if words[1] == "get-all-dynamic-config":
            return self._shown(settings)
        if words[1] == "get-runtime-config":
            return self._shown({**state["conf"], **running})
        if words[1] == "update-dynamic-config":
            settings[given["--config"]] = running[given["--config"]] = given["--value"]
        elif words[1] == "delete-dynamic-config":
            settings.pop(given["--config"], None)
            if not state["old"]:
                running.pop(given["--config"], None)
        return ""

    def _shown(self, values: Mapping[str, str]) -> str:
        if self._state["json"]:
            return json.dumps(values, indent=2)
        return "".join(f"{name}    {value}\n" for name, value in values.items())

    def _arrive(self) -> None:
        """Let bundles that are on the way come one look nearer."""
        for bundle, (destination, looks) in list(self._state["on_the_way"].items()):
            self._state["on_the_way"][bundle][1] = looks - 1
            if looks <= 1:
                self._state["owners"][bundle] = destination
                del self._state["on_the_way"][bundle]

    def _metrics(self, url: str) -> str:
        """Return what a real broker of either load manager says, shortened; `-i` is not asked for."""
        used = self._state["used_percent"].get(url.removeprefix("http://"), 40)
        load = {"brk_lb_bandwidth_in_usage": 0.18, "brk_lb_cpu_usage": used - 0.3, "brk_lb_memory_usage": 99.5}
        parts = [{"metrics": {"brk_ml_count": 81}, "dimensions": {}}, {"metrics": load, "dimensions": {"broker": url}}]
        return "".join(json.dumps(part, indent=2 if self._state["json"] else None) for part in parts)

    def _bundles(self, namespace: str) -> tuple[int, str]:
        """Return the boundaries of a namespace as `pulsar-admin` prints them."""
        names = [*self._state["owners"], *self._state["on_the_way"], *self._state["unowned"]]
        ranges = [parse_range(name.rpartition("/")[2]) for name in names if name.rpartition("/")[0] == namespace]
        found = sorted({edge for pair in ranges for edge in pair})
        made = {"boundaries": [f"0x{edge:08x}" for edge in found], "numBundles": len(found) - 1}
        return (0, json.dumps(made, indent=None if self._state["json"] else 2)) if found else (1, "")

    def _namespaces(self, words: Sequence[str]) -> int:
        """Carry out a creation, an unload or a split, or refuse a deletion as of one with topics; return the status."""
        if words[1] == "create":
            exists = words[2] in self._state["created"]
            self._state["created"].append(words[2])
            return int(exists)
        if words[1] == "delete":
            return int(any(one.startswith(f"{words[2]}/") for one in self._state["owners"]))
        if words[1] not in {"unload", "split-bundle"}:
            return 0
        state, given = self._state, dict(zip(words[3::2], words[4::2], strict=False))
        bundle, owners = f"{words[2]}/{given['--bundle']}", self._state["owners"]
        if bundle in state["unowned"]:  # a broker takes it first
            state["unowned"].remove(bundle)
            owners[bundle] = next(iter(owners.values()))
        if bundle not in owners:
            return 1
        if words[1] == "unload" and state["looks"]:
            owners.pop(bundle)
            state["on_the_way"][bundle] = [given["--destinationBroker"], state["looks"]]
        elif words[1] == "unload":
            owners[bundle] = given["--destinationBroker"]
        elif not state["deaf"]:
            owner = owners.pop(bundle)
            low, high = parse_range(given["--bundle"])
            cuts = [int(cut) for flag, cut in pairwise(words) if flag == "--split-boundaries"]
            cuts = cuts or [low + (high - low) // 2]
            for start, stop in zip((low, *cuts), (*cuts, high), strict=True):
                owners[bundle_name(words[2], start, stop)] = owner
        return 0
