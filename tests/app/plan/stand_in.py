"""A stand-in for `pulsar-admin`: a program that knows who owns what, does what it is told, and writes that down."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from planner.cluster.snapshot import Snapshot

_PROGRAM = """#!{python} -SE
import json, os, sys
words, state = sys.argv[1:], json.load(open({state!r}))
state["calls"].append(["{name}", *words])
fails = os.environ.get("FAIL_AT") == str(len(state["calls"]))
given = dict(zip(words[2 + (words[0] == "namespaces"):][::2], words[3 + (words[0] == "namespaces"):][::2]))
owners = state["owners"]
status = 0
if fails:
    status = 7
elif words[:2] == ["brokers", "namespaces"]:
    for bundle in [b for b, o in owners.items() if o == words[4]]:
        print(bundle + "    [broker_assignment=shared is_controlled=false is_active=true]")
elif words[:2] == ["brokers", "update-dynamic-config"]:
    state["settings"][given["--config"]] = given["--value"]
elif words[:2] == ["namespaces", "unload"]:
    bundle = words[2] + "/" + given["--bundle"]
    if bundle in owners:
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
        middle = int(given.get("--split-boundaries", low + (high - low) // 2))
        for start, stop in ((low, middle), (middle, high)):
            owners[f"{{words[2]}}/0x{{start:08x}}_0x{{stop:08x}}"] = owner
json.dump(state, open({state!r}, "w"))
sys.exit(status)
"""


class StandIn:
    """A cluster that scripts are run against, in a folder of its own."""

    def __init__(self, folder: Path, snapshot: Snapshot) -> None:
        self.folder, self._state = folder, folder / "state.json"
        self.reset(snapshot)
        (folder / "bin").mkdir(exist_ok=True)
        for name in ("pulsar-admin", "sleep"):
            program = folder / "bin" / name
            program.write_text(_PROGRAM.format(python=sys.executable, name=name, state=str(self._state)))
            program.chmod(0o755)

    def reset(self, snapshot: Snapshot) -> None:
        """Let the cluster be as it was captured, and forget what was done."""
        owners = {
            name: snapshot.brokers.name[owner]
            for name, owner in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
            if owner >= 0
        }
        self.write({"owners": owners, "settings": {}, "calls": []})
        for left in self.folder.glob("plan.sh*"):
            left.unlink()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._state.read_text())
        return found

    def write(self, state: dict[str, Any]) -> None:
        self._state.write_text(json.dumps(state))

    def calls(self) -> list[list[str]]:
        """What was called, in order."""
        found: list[list[str]] = self.state()["calls"]
        return found

    def run(
        self, script: str, *arguments: str, answers: str = "", fail_at: int = 0
    ) -> "subprocess.CompletedProcess[str]":
        """Run a script as a file; the call `fail_at` fails."""
        path = self.folder / "plan.sh"
        path.write_text(script, encoding="utf-8")
        environment = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "FAIL_AT": str(fail_at)}
        return subprocess.run(
            ["/bin/sh", str(path), *arguments],
            cwd=self.folder,
            env=environment,
            input=answers,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
