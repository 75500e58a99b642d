"""The real `pulsar-admin`, as a program that a plan's script finds, and that fails where a test says so."""

import subprocess
from pathlib import Path

from planner.spark.java import find_java
from tests.cluster.launch import HERE, classpath

_PROGRAM = """#!/bin/sh
echo "$*" >>'{calls}'
case "$*" in "${{FAIL_ON:-none}}"*) echo 'told to fail' >&2 ; exit 7 ;; esac
exec '{java}' -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '{paths}' {main} '{conf}' "$@"
"""
_MAIN = "org.apache.pulsar.admin.cli.PulsarAdminTool"


class PulsarAdmin:
    """`pulsar-admin` in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self._calls = folder, folder / "calls.txt"
        folder.mkdir(exist_ok=True)
        conf = folder / "client.conf"
        conf.write_text(f"webServiceUrl={url}/\n")
        java = find_java().home / "bin" / "java"
        (folder / "bin").mkdir()
        program = folder / "bin" / "pulsar-admin"
        paths = classpath(folder, HERE / "tools")
        program.write_text(_PROGRAM.format(calls=self._calls, java=java, paths=paths, main=_MAIN, conf=conf))
        program.chmod(0o755)

    def run(self, script: str, *arguments: str, fail_on: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a script as a file; calls of `pulsar-admin` whose words begin so fail.

        The first question is answered, and usage above the limit does not matter: the machine of a test is busy.
        """
        path = self.folder / "plan.sh"
        path.write_text(script, encoding="utf-8")
        self._calls.write_text("")
        try:
            return subprocess.run(
                ["/bin/bash", str(path), "--yes", "--ignore-usage", *arguments],
                cwd=self.folder,
                env={"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "FAIL_ON": fail_on},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            said = b"".join(part for part in (late.stdout, late.stderr) if part).decode()
            raise AssertionError(f"The script did not end in time.\n{said}\n{self._calls.read_text()}") from None

    def calls(self) -> list[str]:
        """What was called last time, in order."""
        return self._calls.read_text().splitlines()
