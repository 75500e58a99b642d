"""Scenarios as files: JSON that a person can read and edit, with the snapshot they were made over."""

import json
import re
from typing import Any

from planner.cluster.errors import FormatError, placed
from planner.share.link import LinkedScenario, canonical_text, decode_link, from_canonical, read_json, scenario_digest
from planner.simulate.scenario import Scenario, scenario_from_json

MOST_BYTES = 2_000_000
"""Limits of a scenario file."""
_TOO_LARGE = "The file has {:,} bytes; a scenario has at most {:,}."

_KIND = "pulsar-bundle-planner scenario"
_DIGEST = re.compile(r"[0-9a-f]{64}|")
_LINK = re.compile(rb"\s*[0-9]{1,4}\.[A-Za-z0-9_-]+\s*")
_PAIR = re.compile(r'\[\n +("(?:[^"\\\n]|\\.)*"),\n +("(?:[^"\\\n]|\\.)*")\n +\]')
_MAX_NAME = 200


def scenario_file(scenario: Scenario, digest: str = "", snapshot_name: str = "") -> str:
    """Return a scenario as the text of a file; equal ones give equal text.

    Args:
        scenario: The scenario.
        digest: Digest of the snapshot that it changes; empty when it is meant for any.
        snapshot_name: What that is called.

    Raises:
        PlannerError: A value of the scenario is out of bounds, or the file would be too large to be read.
    """
    document = {
        "kind": _KIND,
        "snapshot": {"digest": digest, "name": snapshot_name},
        # The release that decides is named in full, so that the scenario can be used alone.
        "scenario": {**json.loads(canonical_text(scenario)), "pulsar_version": scenario.pulsar_version},
    }
    text = _PAIR.sub(r"[\1, \2]", json.dumps(document, indent=2, ensure_ascii=False)) + "\n"
    if (size := len(text.encode())) > MOST_BYTES:
        raise FormatError(_TOO_LARGE.format(size, MOST_BYTES), where=scenario.name, remedy="Choose fewer moves.")
    return text


def read_scenario_file(data: bytes, name: str = "") -> LinkedScenario:
    """Read a file that may come from anywhere: what `scenario_file` writes, a scenario alone, or the text of a link.

    Args:
        data: Its content.
        name: What the person calls it; used in messages alone.

    Returns:
        The scenario and, where the file says so, the snapshot it changes. The scenario is None only for the text of a
        link that names a kept one.

    Raises:
        FormatError: It is too large, or no scenario.
        PlannerError: A value in it is out of bounds.
    """
    if len(data) > MOST_BYTES:
        raise FormatError(
            _TOO_LARGE.format(len(data), MOST_BYTES), where=name, remedy="Use a scenario that the planner exported."
        )
    if _LINK.fullmatch(data):
        with placed(name):
            return decode_link(data.decode())
    try:
        document = read_json(data.decode("utf-8-sig"))
    except ValueError as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)[:200]
        raise FormatError(
            f"The file cannot be read: {reason}.", where=name, remedy="Use a scenario that the planner exported."
        ) from error
    digest, called, read = "", "", scenario_from_json
    if isinstance(document, dict) and document.get("kind") == _KIND:
        digest, called = _snapshot(document.get("snapshot", {}), name)
        document, read = document.get("scenario"), from_canonical
    with placed(name):
        scenario = read(document)
    return LinkedScenario(
        scenario=scenario, scenario_digest=scenario_digest(scenario), snapshot_digest=digest, snapshot_name=called
    )


def _snapshot(value: Any, name: str) -> tuple[str, str]:
    digest = value.get("digest", "") if isinstance(value, dict) else None
    called = value.get("name", "") if isinstance(value, dict) else None
    if not isinstance(digest, str) or not isinstance(called, str) or not _DIGEST.fullmatch(digest):
        raise FormatError(
            "The file does not name its snapshot correctly.",
            where=name,
            remedy="Set the digest (64 hex digits, or empty) and the name of the snapshot.",
        )
    return digest, called[:_MAX_NAME]
