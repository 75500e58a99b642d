"""A stand-in for `pulsar-admin`: a program that knows who owns what, does what it is told, and writes that down.

Its cluster has a `broker.conf`, a dynamic configuration above it, and what brokers run with: releases below 3.0.7 and
3.2.3 keep a value whose override is deleted until they restart.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.cluster.names import LOAD_MANAGER_CLASS_NAME
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.pairing import MANAGER_CLASSES

READS = (["brokers", "namespaces"], ["brokers", "version"])
"""Calls that change nothing, besides those that begin with `get-` and load reports."""

_PROGRAM = """#!{python} -SE
import json, os, sys
words, state = sys.argv[1:], json.load(open({state!r}))
url = ""
if words[:1] == ["--admin-url"]:
    url, words = words[1], words[2:]
before = json.dumps(state)
with open({calls!r}, "a+") as calls:
    calls.write(json.dumps(["{name}", *words]) + "\\n")
    calls.seek(0)
    number = sum(1 for _ in calls)
fails = os.environ.get("FAIL_AT") == str(number) or (
    os.environ.get("FAIL_ON") and " ".join(words).startswith(os.environ["FAIL_ON"])
)
nth = os.environ.get("FAIL_UNLOAD")
if words[:2] == ["namespaces", "unload"]:
    state["unloads"] += 1
    fails = fails or nth == str(state["unloads"])
given = dict(zip(words[2 + (words[0] == "namespaces"):][::2], words[3 + (words[0] == "namespaces"):][::2]))
owners, settings, running = state["owners"], state["settings"], state["running"]
status = 0
if fails:
    status = 7
elif words[:2] == ["brokers", "version"]:
    print(state["release"])
elif words[:2] == ["broker-stats", "load-report"]:
    if "Modular" not in state["conf"]["loadManagerClassName"]:
        sys.stderr.write("java.lang.UnsupportedOperationException")
        status = 1
    else:
        used = state["used_percent"].get(url.removeprefix("http://"), 40)
        names = ("memory", "directMemory", "bandwidthIn", "bandwidthOut")
        parts = {{name: {{"usage": 0.0, "limit": -1.0}} for name in names}}
        report = {{"webServiceUrl": url, "cpu": {{"usage": used * 4.0, "limit": 400.0}}, **parts, "lastStats": {{}}}}
        print(json.dumps(report, indent=2 if state["json"] else None))
elif words[:2] == ["brokers", "namespaces"]:
    for bundle, (destination, looks) in list(state["on_the_way"].items()):
        state["on_the_way"][bundle][1] = looks - 1
        if looks <= 1:
            owners[bundle] = destination
            del state["on_the_way"][bundle]
    mine = [b for b, o in owners.items() if o == words[4]]
    if state["json"]:
        print(json.dumps({{b: {{"broker_assignment": "shared", "is_active": True}} for b in mine}}))
    else:
        for bundle in mine:
            print(bundle + "    [broker_assignment=shared is_controlled=false is_active=true]")
elif words[:2] == ["brokers", "get-all-dynamic-config"]:
    shown = settings
    print(json.dumps(shown) if state["json"] else "\\n".join(f"{{n}}    {{v}}" for n, v in shown.items()))
elif words[:2] == ["brokers", "get-runtime-config"]:
    shown = {{**state["conf"], **running}}
    print(json.dumps(shown, indent=2) if state["json"] else "\\n".join(f"{{n}}    {{v}}" for n, v in shown.items()))
elif words[:2] == ["brokers", "update-dynamic-config"]:
    settings[given["--config"]] = running[given["--config"]] = given["--value"]
elif words[:2] == ["brokers", "delete-dynamic-config"]:
    settings.pop(given["--config"], None)
    if not state["old"]:
        running.pop(given["--config"], None)
elif words[:2] == ["namespaces", "unload"]:
    bundle = words[2] + "/" + given["--bundle"]
    if bundle in owners and state["looks"]:
        owners.pop(bundle)
        state["on_the_way"][bundle] = [given["--destinationBroker"], state["looks"]]
    elif bundle in owners:
        owners[bundle] = given["--destinationBroker"]
    else:
        status = 1
elif words[:2] == ["namespaces", "split-bundle"]:
    bundle = words[2] + "/" + given["--bundle"]
    owner = owners.pop(bundle, None)
    if owner is None:
        status = 1
    else:
        low, high = (int(end, 16) for end in given["--bundle"].split("_"))
        cuts = [int(v) for f, v in zip(words[3:], words[4:]) if f == "--split-boundaries"]
        cuts = cuts or [low + (high - low) // 2]
        for start, stop in zip((low, *cuts), (*cuts, high)):
            owners[f"{{words[2]}}/0x{{start:08x}}_0x{{stop:08x}}"] = owner
if (after := json.dumps(state)) != before:
    open({state!r}, "w").write(after)
sys.exit(status)
"""


class StandIn:
    """A cluster that scripts are run against, in a folder of its own."""

    def __init__(self, folder: Path, snapshot: Snapshot) -> None:
        self.folder, self._state, self._calls = folder, folder / "state.json", folder / "calls.jsonl"
        self.reset(snapshot)
        (folder / "bin").mkdir(exist_ok=True)
        for name in ("pulsar-admin", "sleep"):
            program = folder / "bin" / name
            program.write_text(
                _PROGRAM.format(python=sys.executable, name=name, state=str(self._state), calls=str(self._calls))
            )
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
        how = {"unloads": 0, "json": as_json, "old": old, "looks": looks, "on_the_way": {}, "used_percent": {}}
        self.write({**made, **how, "release": snapshot.info.pulsar_version})
        self._calls.write_text("")
        self.forget_runs()

    def forget_runs(self) -> None:
        """Delete what scripts left beside themselves."""
        for left in self.folder.glob("plan.sh*"):
            left.unlink()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._state.read_text())
        return found

    def write(self, state: dict[str, Any]) -> None:
        self._state.write_text(json.dumps(state))

    def calls(self) -> list[list[str]]:
        """What was called, in order."""
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    def changes(self) -> list[list[str]]:
        """What was called that changes the cluster, in order, without what holds and puts back settings."""
        return [
            call
            for call in self.calls()
            if call[0] == "pulsar-admin"
            and call[1:3] not in READS
            and "load-report" not in call
            and not call[2].startswith("get-")
        ]

    def runs_with(self, name: str) -> str:
        """Return the value of a setting that brokers run with."""
        state = self.state()
        found: str = {**state["conf"], **state["running"]}[name]
        return found

    def run(
        self,
        script: str,
        *arguments: str,
        answers: str = "",
        fail_at: int = 0,
        fail_on: str = "",
        fail_unload: int = 0,
        shell: str = "/bin/sh",
        yes: bool = True,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a script as a file.

        Args:
            script: Its text.
            arguments: Its arguments.
            answers: What a person types.
            fail_at: The number of the call that fails; 0 for none.
            fail_on: Calls whose words begin so fail.
            fail_unload: The number of the unload that fails; 0 for none.
            shell: What runs it.
            yes: Answer the first question, whether to continue.
        """
        path = self.folder / "plan.sh"
        path.write_text(script, encoding="utf-8")
        environment = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "FAIL_AT": str(fail_at)}
        return subprocess.run(
            [shell, str(path), *(["--yes"] if yes else []), *arguments],
            cwd=self.folder,
            env={**environment, "FAIL_ON": fail_on, "FAIL_UNLOAD": str(fail_unload)},
            input=answers,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
