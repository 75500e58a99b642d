"""Scenario links: a whole scenario, and which snapshot it changes, as text for an address.

A link is `<version>.<payload>`; the payload is base64url without padding of

    length (2 bytes) | checksum (6 bytes) | kind (1 byte) | snapshot digest (32 bytes) | content

The length is that of the whole payload and tells a link that was cut off from one that was changed; the checksum is the
start of a SHA-256 over the version and all that follows it. The content of kind 0 is a raw deflate stream of the
canonical JSON of the scenario and the snapshot's name. A scenario too large for an address is kept in the workspace
under its digest; the content of kind 1 is that digest and the name.

A link is a description: it holds no secret and runs nothing. It is read as hostile text: what is unpacked is bounded,
and all values pass the same checks as a file's.
"""

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from planner.cluster.errors import PlannerError, placed
from planner.cluster.releases import REFERENCE
from planner.simulate.scenario import Scenario, scenario_from_json, scenario_to_json

MOST_ADDRESS_CHARACTERS: Final = 2_000
"""Longest whole address, in characters; browsers, chats and mail truncate longer ones."""

_VERSION = 1
_WHOLE, _KEPT = 0, 1
_LENGTH_BYTES, _CHECK_BYTES, _DIGEST_BYTES = 2, 6, 32
_HEAD_BYTES = _LENGTH_BYTES + _CHECK_BYTES
_MAX_UNPACKED_BYTES = 1_000_000
_MAX_NAME = 60
_DEEPEST = 20

_LINK = re.compile(r"([0-9]{1,4})\.([A-Za-z0-9_-]*)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class LinkError(PlannerError):
    """A link that cannot be read, or cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedScenario:
    """What a link or a file says.

    Attributes:
        scenario: The scenario; None when the link only names it and the workspace that made the link keeps it.
        scenario_digest: Digest of the scenario (`scenario_digest`).
        snapshot_digest: Digest of the snapshot that it changes; empty when a file does not say.
        snapshot_name: What the person who made it called the snapshot.
    """

    scenario: Scenario | None
    scenario_digest: str
    snapshot_digest: str
    snapshot_name: str = ""


def canonical_text(scenario: Scenario) -> str:
    """Return the one written form of a scenario: checked, without defaults, sorted, without spaces.

    Its default release is the reference, which decided before there was a choice; read it with `from_canonical`.

    Raises:
        PlannerError: A value is out of bounds.
    """
    checked = scenario_from_json(scenario_to_json(scenario))
    written = scenario_to_json(checked)
    release = written.pop("pulsar_version", "")
    return _canonical(written if release == REFERENCE.name else {**written, "pulsar_version": release})


def from_canonical(document: Any) -> Scenario:
    """Read a canonical written form, also one of an earlier version of the planner.

    Raises:
        PlannerError: As `scenario_from_json` does.
    """
    before = {"pulsar_version": REFERENCE.name}
    return scenario_from_json({**before, **document} if isinstance(document, dict) else document)


def scenario_digest(scenario: Scenario) -> str:
    """Return the SHA-256 of a scenario's canonical text, 64 hex digits.

    Raises:
        PlannerError: A value is out of bounds.
    """
    return hashlib.sha256(canonical_text(scenario).encode()).hexdigest()


def encode_link(scenario: Scenario, digest: str, snapshot_name: str = "") -> str:
    """Return the text that holds a whole scenario, of letters, digits, `-`, `_` and `.`, however long it gets.

    Equal scenarios give equal text on machines with the same zlib; another zlib may pack it differently, and each reads
    what the other writes.

    Args:
        scenario: The scenario.
        digest: Digest of the snapshot that it changes, 64 hex digits.
        snapshot_name: What that is called; the start of it goes along.

    Raises:
        PlannerError: A value of the scenario is out of bounds, or the digest is none.
    """
    return _seal(_WHOLE, digest, _pack(_content(snapshot_name, json.loads(canonical_text(scenario)))))


def scenario_part(scenario: Scenario, digest: str) -> str:
    """Return the part of an address that opens a scenario; empty where it is too long for one.

    It has no name of the snapshot, so that it is the same wherever the scenario is handed over.
    """
    text = f"scenario={encode_link(scenario, digest)}"
    return text if len(text) <= MOST_ADDRESS_CHARACTERS else ""


def encode_reference(digest_of_scenario: str, digest: str, snapshot_name: str = "") -> str:
    """Return the text that names a scenario which a workspace keeps, by its digest, and the snapshot that it changes.

    Raises:
        LinkError: A digest is none.
    """
    return _seal(_KEPT, digest, _digest_bytes(digest_of_scenario) + _pack(_content(snapshot_name, None)))


def scenario_link(
    scenario: Scenario, digest: str, snapshot_name: str, *, address: str, keep: Callable[[Scenario], str]
) -> str:
    """Return a whole address of at most 2,000 characters that opens the scenario.

    Args:
        scenario: The scenario.
        digest: Digest of the snapshot that it changes.
        snapshot_name: What that is called.
        address: The address up to where the text goes, such as `https://planner.example/what-if?scenario=`.
        keep: Keeps a scenario that is too large for an address, and returns its digest; called only then.

    Raises:
        PlannerError: The scenario or digest cannot be written, or the address alone is too long.
    """
    whole = address + encode_link(scenario, digest, snapshot_name)
    if len(whole) <= MOST_ADDRESS_CHARACTERS:
        return whole
    named = address + encode_reference(keep(scenario), digest, snapshot_name)
    if len(named) > MOST_ADDRESS_CHARACTERS:
        raise LinkError(
            "The page address is too long for a link.",
            where=address[:100],
            remedy="Export the scenario as a file.",
        )
    return named


def decode_link(text: str) -> LinkedScenario:
    """Read the text of a link, which may come from anywhere.

    Raises:
        LinkError: It is no link, was cut off or changed, or is of an older or newer version.
        PlannerError: The scenario in it has a value out of bounds.
    """
    with placed("link"):
        return _decoded(text)


def _decoded(text: str) -> LinkedScenario:
    kind, body = _open(text)
    digest, content = body[:_DIGEST_BYTES].hex(), body[_DIGEST_BYTES:]
    if len(digest) != 2 * _DIGEST_BYTES:
        raise _damaged("it is too short")
    if kind == _KEPT:
        named, content = content[:_DIGEST_BYTES].hex(), content[_DIGEST_BYTES:]
        if len(named) != 2 * _DIGEST_BYTES:
            raise _damaged("it is too short")
        name, _ = _read_content(content)
        return LinkedScenario(scenario=None, scenario_digest=named, snapshot_digest=digest, snapshot_name=name)
    if kind != _WHOLE:
        raise _damaged("its type is unknown")
    name, document = _read_content(content)
    scenario = from_canonical(document)
    return LinkedScenario(
        scenario=scenario,
        scenario_digest=scenario_digest(scenario),
        snapshot_digest=digest,
        snapshot_name=name,
    )


def read_json(text: str) -> Any:
    """Read JSON that may come from anywhere: no NaN, no repeated names, not deeper than 20 levels.

    Raises:
        ValueError: It is not such JSON.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name is repeated")
        return found

    def no_constant(name: str) -> Any:
        raise ValueError(f"{name} is not a number")

    try:
        document = json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    level = [document]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return document
    raise ValueError("it is nested too deeply")


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _content(snapshot_name: str, document: Any) -> bytes:
    name = snapshot_name.encode("utf-8", "replace").decode("utf-8").strip()[:_MAX_NAME]
    return _canonical({"name": name, **({} if document is None else {"scenario": document})}).encode()


def _read_content(packed: bytes) -> tuple[str, Any]:
    try:
        document = read_json(_unpack(packed).decode("utf-8"))
    except ValueError as error:
        raise _damaged("its content is not JSON") from error
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise _damaged("it does not name a snapshot")
    return name[:_MAX_NAME], document.get("scenario")


@cache
def dictionary() -> bytes:
    """Return text that scenarios often have, the commonest last, for the compression.

    It is part of version 1 and never changes.
    """
    return resources.files("planner.share").joinpath("link_dictionary.txt").read_bytes().replace(b"\n", b"")


def _pack(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zdict=dictionary())
    return packer.compress(content) + packer.flush()


def _unpack(packed: bytes) -> bytes:
    opener = zlib.decompressobj(-zlib.MAX_WBITS, zdict=dictionary())
    try:
        content = opener.decompress(packed, _MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise _damaged("its content cannot be unpacked") from error
    if not opener.eof or opener.unused_data:
        raise _damaged("its content is incomplete or too large")
    return content


def _digest_bytes(digest: str) -> bytes:
    if not _DIGEST.fullmatch(digest):
        raise LinkError(
            f"'{digest[:20]}' is not a valid digest.", where="digest", remedy="Use the 64 hex digits of a SHA-256."
        )
    return bytes.fromhex(digest)


def _check(body: bytes) -> bytes:
    return hashlib.sha256(b"%d." % _VERSION + body).digest()[:_CHECK_BYTES]


def _seal(kind: int, digest: str, content: bytes) -> str:
    body = bytes([kind]) + _digest_bytes(digest) + content
    # A payload above 64 KiB is no link any more; its length is only there to be refused, not to be told apart.
    length = min(_HEAD_BYTES + len(body), 0xFFFF).to_bytes(_LENGTH_BYTES, "big")
    return f"{_VERSION}.{base64.urlsafe_b64encode(length + _check(body) + body).decode().rstrip('=')}"


def _open(text: str) -> tuple[int, bytes]:
    """Return kind and what follows it."""
    text = text.strip()
    found = _LINK.fullmatch(text)
    if found is None:
        start = _LINK.match(text)
        raise (
            _damaged("it contains characters that no link has")
            if start and start[2]
            else LinkError(
                "This is not a link to a scenario.", remedy="Copy the whole link again from the page that made it."
            )
        )
    version = int(found[1])
    if version != _VERSION:
        newer = version > _VERSION
        raise LinkError(
            f"This link was made by {'a newer' if newer else 'an older'} planner (link version {version}; "
            f"this planner reads {_VERSION}).",
            remedy="Update this planner, or open the link on the server that made it."
            if newer
            else "Create the scenario again.",
        )
    if len(text) > MOST_ADDRESS_CHARACTERS:
        raise LinkError("This link is too long to come from the planner.", remedy="Open the scenario as a file.")
    return _payload(found[2])


def _payload(encoded: str) -> tuple[int, bytes]:
    try:
        payload = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        # Four characters hold three bytes; a single one left over holds none.
        payload = base64.urlsafe_b64decode(encoded[:-1])
    length, body = int.from_bytes(payload[:_LENGTH_BYTES], "big"), payload[_HEAD_BYTES:]
    whole = (4 * length + 2) // 3
    if len(encoded) < whole or not body:
        raise LinkError(
            f"This link is incomplete: it has {len(encoded)} of {whole} characters."
            if length > _HEAD_BYTES and whole <= MOST_ADDRESS_CHARACTERS
            else "This link is incomplete.",
            remedy="Copy the whole link again from the page that made it.",
        )
    if len(encoded) > whole:
        raise _damaged("it has extra characters at the end")
    again = base64.urlsafe_b64encode(payload).decode().rstrip("=")
    if again != encoded or _check(body) != payload[_LENGTH_BYTES:_HEAD_BYTES]:
        raise _damaged("its checksum does not match")
    return body[0], body[1:]


def _damaged(how: str) -> LinkError:
    return LinkError(f"This link was altered: {how}.", remedy="Copy the whole link again from the page that made it.")
