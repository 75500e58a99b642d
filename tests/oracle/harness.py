"""Builds and asks the oracle: Pulsar's own classes behind one program that answers vectors.

The classes of another release than the reference stand on the libraries of the reference: that release's own would have
to be resolved one and all, and what decides uses few of them.

Needs Java 17 and Maven: `pytest -m oracle tests/oracle`. Another seed: `PLANNER_ORACLE_SEED=7 pytest -m oracle ...`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from planner.cluster.pulsar_json import Json
from planner.cluster.releases import NOT_RUN, REFERENCE, RELEASES, release
from planner.conform.compare import differences
from planner.conform.kinds import KINDS
from planner.pulsar.shedding.avg import ABSENT

HERE = Path(__file__).parent
QUIET = "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory"


@cache
def available() -> bool:
    """Say whether Java and Maven are here."""
    return bool(shutil.which("mvn") and shutil.which("javac"))


LACKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("3.0.0", "3.0.2", "3.0.7", "3.1.0", "3.1.2", "3.2.0", "3.2.2", "3.2.3", "3.3.2"),
        ("DispatchLimits", "ModularManager", "Throttling"),
    ),
    "3.3.5": ("DispatchLimits", "ModularManager"),
    "4.0.0": ("DispatchLimits", "Throttling"),
    "4.0.1": ("DispatchLimits", "Throttling"),
    "4.0.4": ("DispatchLimits",),
    "4.0.5": ("DispatchLimits",),
    "4.0.6": ("DispatchLimits",),
    "4.0.7": ("DispatchLimits",),
    "4.0.8": ("DispatchLimits",),
    "5.0.0-M1": ("ManualSplits",),
}
"""Parts of the program that cannot be compiled with a release: its classes have other names or are not there."""


_ALL_BUT_THE_BROKER = (
    *("pulsar-common", "pulsar-broker-common", "pulsar-metadata", "managed-ledger", "pulsar-client-original"),
    *("pulsar-client-api", "pulsar-client-admin-api", "pulsar-config-validation"),
)

MIXED: dict[str, dict[str, str]] = {
    "4.0.0": dict.fromkeys(("pulsar-metadata", "pulsar-client-original", "pulsar-config-validation"), "4.0.1"),
    "4.0.4": dict.fromkeys(_ALL_BUT_THE_BROKER, "4.0.6"),
    "4.0.5": dict.fromkeys(_ALL_BUT_THE_BROKER, "4.0.6"),
}
"""Modules that were not published with a release, and the version that stands in for them."""


_FOR_MEASURING = ("Bench",)
"""Programs that are run with the reference alone."""

_HAS_AVG = "3.0.7"


def _jars(place: Path, pom: str, *options: str) -> list[str]:
    paths = place / f"{pom}.txt"
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={paths}"]
    subprocess.run(["mvn", "-q", "-B", "-f", HERE / pom, *goal, *options], check=True)
    return paths.read_text().strip().split(os.pathsep)


class Oracle:
    """The compiled program.

    Args:
        place: A folder for the classes.
        version: Release whose classes answer.
    """

    def __init__(self, place: Path, version: str = REFERENCE.name) -> None:
        jars = _jars(place, "pom.xml")
        if version != REFERENCE.name:
            mixed = [f"-D{module}={other}" for module, other in MIXED.get(version, {}).items()]
            modules = _jars(place, "release.xml", f"-Drelease={version}", *mixed)
            if release(version).has(ABSENT):  # to compile; nobody asks it
                modules.append(_jars(place, "release.xml", f"-Drelease={_HAS_AVG}")[0])
            instead = {Path(jar).parent.parent.name for jar in modules if "/apache/pulsar/" in jar}
            jars = [*modules, *(jar for jar in jars if Path(jar).parent.parent.name not in instead)]
        self.version = version
        self.classpath = os.pathsep.join([str(place), *jars])
        lacks = LACKS.get(version, ()) if version == REFERENCE.name else (*LACKS.get(version, ()), *_FOR_MEASURING)
        sources = [path for path in sorted((HERE / "src").rglob("*.java")) if path.stem not in lacks]
        done = subprocess.run(
            ["javac", "-nowarn", "-cp", self.classpath, "-d", place, *sources],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)

    def command(self, main: str, *options: str) -> list[str]:
        """Return the command line that runs one of the programs."""
        # Classes of other releases name types that are not here, in methods that nobody calls.
        mixed = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"]
        quiet = (
            [] if self.version == [one for one in RELEASES if one not in NOT_RUN][-1] else [QUIET]
        )  # the newest logs in a way of its own
        return ["java", "-Xshare:off", *mixed, *options, *quiet, "-cp", self.classpath, f"planner.oracle.{main}"]

    def lines(self, cases: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what the program says to each case: `expected`, or `failure` when a class of Pulsar raised."""
        done = subprocess.run(
            self.command("Oracle"),
            input="".join(json.dumps(case) + "\n" for case in cases),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return [json.loads(line) for line in done.stdout.splitlines()]

    def __call__(self, cases: Sequence[dict[str, Any]]) -> list[Any]:
        """Return what Pulsar answers to each case.

        Raises:
            RuntimeError: A class of Pulsar raised.
        """
        said = self.lines(cases)
        for line in said:
            if "failure" in line:
                raise RuntimeError(f"{line['id']}: {line['failure']}")
        return [line["expected"] for line in said]


def check(oracle: Oracle, cases: Sequence[dict[str, Any]], answer: Callable[[Json], Json] | None = None) -> list[Any]:
    """Ask Pulsar, and assert that the planner answers every case as it does; see `compare`.

    Returns:
        Pulsar's answers, so that a test can assert that its cases reach what they are for.
    """
    answers = oracle(cases)
    compare(cases, answers, answer)
    return answers


def compare(
    cases: Sequence[dict[str, Any]], answers: Sequence[Any], answer: Callable[[Json], Json] | None = None
) -> None:
    """Assert that the planner answers every case as Pulsar did.

    Args:
        cases: What is asked.
        answers: Pulsar's.
        answer: The planner; without it, what `python -m planner conform` asks for the kind.
    """
    wrong = {}
    for case, expected in zip(cases, answers, strict=True):
        kind = KINDS.get(case["kind"])
        decide = answer or KINDS[case["kind"]].answer
        found = list(differences(expected, decide(case), kind.sets if kind else ()))
        if found:
            wrong[case["id"]] = (case["config"], found[:3])
    assert not wrong, f"{len(wrong)} of {len(cases)} differ: {dict(list(wrong.items())[:5])}"
