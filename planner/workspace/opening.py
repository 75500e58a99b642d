"""What a person names, opened: snapshots by path or sample, scenarios by file, link or address."""

import contextlib
import re
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from planner.cluster.errors import FormatError
from planner.cluster.files import opened, reading
from planner.cluster.snapshot import Snapshot
from planner.formats.reading import read_snapshot
from planner.share.link import LinkedScenario, decode_link
from planner.share.scenario_file import MOST_BYTES, read_scenario_file
from planner.simulate.scenario import Scenario
from planner.workspace.database import open_workspace
from planner.workspace.samples import load_sample, sample_by_digest, samples

_LINK = re.compile(r"[0-9]{1,4}\.[A-Za-z0-9_-]{10,}")
_LEAST_DIGITS = 6


def open_snapshot(text: str) -> tuple[str, Snapshot]:
    """Open a snapshot: what a path leads to, else a sample by its file name, title or the first digits of its digest.

    Returns:
        What to call it, and its content.

    Raises:
        FormatError: There is none, or it cannot be read.
        SnapshotError: It is no cluster.
    """
    path = Path(text)
    with reading(text[:200], FormatError, "Use a path, or the name of a sample."):
        is_there = path.exists()
    if is_there:
        return path.name, read_snapshot(path)
    wanted = text.lower()
    named = [s for s in samples() if wanted in {s.file.lower(), Path(s.file).stem.lower(), s.title.lower()}]
    found = named[-1] if named else sample_by_digest(text) if len(text) >= _LEAST_DIGITS else None
    if found is None:
        known = ", ".join(Path(sample.file).stem for sample in samples())
        raise FormatError(
            "There is no file and no sample with this name.",
            where=text[:200],
            remedy=f"Use a path, or one of these samples: {known}.",
        )
    return found.title, load_sample(found)


def open_scenario(text: str) -> LinkedScenario:
    """Read a scenario from standard input (`-`), a link, an address with a link in it, or a file.

    Raises:
        PlannerError: There is none, or it cannot be read.
    """
    if text == "-":
        return read_scenario_file(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input")
    if text.startswith(("http://", "https://")):
        links: list[str] = []
        with contextlib.suppress(ValueError):
            links = [value for _, value in parse_qsl(urlsplit(text).query) if _LINK.fullmatch(value)]
        if not links:
            raise FormatError(
                "This address does not contain a scenario.", where=text[:100], remedy="Copy the whole link."
            )
        return decode_link(links[0])
    if _LINK.fullmatch(text):
        return decode_link(text)
    return read_scenario_file(bytes_of(text, "Use a scenario file or a link."), Path(text).name)


def bytes_of(name: str, remedy: str = "Use a file.") -> bytes:
    """Return what a file holds, up to a little more than a scenario may have.

    Raises:
        FormatError: It cannot be read.
    """
    try:
        with opened(Path(name), stream=True) as source:
            return source.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not valid"
        raise FormatError(f"Cannot read: {reason}.", where=name[:200], remedy=remedy) from error


def content_of(linked: LinkedScenario, snapshot: Snapshot | None = None) -> Scenario:
    """Return a scenario, from the workspace when its link names one that is kept there.

    Args:
        linked: What was opened.
        snapshot: The cluster that it is about, whose release decides where the scenario names none.

    Raises:
        StoreError: It is not there.
    """
    scenario = linked.scenario or _kept(linked)
    return scenario if snapshot is None else scenario.over(snapshot)


def _kept(linked: LinkedScenario) -> Scenario:
    workspace = open_workspace()
    try:
        return workspace.scenarios.load(linked.scenario_digest)
    finally:
        workspace.close()
