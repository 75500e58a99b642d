"""Builds and asks the oracle: Pulsar's own classes behind one program that answers vectors.

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
from planner.conform.compare import differences
from planner.conform.kinds import KINDS

HERE = Path(__file__).parent
QUIET = "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory"


@cache
def available() -> bool:
    """Say whether Java and Maven are here."""
    return bool(shutil.which("mvn") and shutil.which("javac"))


class Oracle:
    """The compiled program.

    Args:
        place: A folder for the classes.
    """

    def __init__(self, place: Path) -> None:
        paths = place / "classpath.txt"
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={paths}"]
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", *goal], check=True)
        self.classpath = f"{place}{os.pathsep}{paths.read_text().strip()}"
        sources = sorted((HERE / "src").rglob("*.java"))
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
        return ["java", "-Xshare:off", *options, QUIET, "-cp", self.classpath, f"planner.oracle.{main}"]

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
