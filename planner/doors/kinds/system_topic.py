"""Messages of the extensible load manager's system topics, as `pulsar-client consume` prints them."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from planner.cluster.errors import FormatError
from planner.cluster.pulsar_json import bundle_numbers, text_of, top_bundles
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.kinds.load_report import report_of
from planner.doors.pieces import NotUsed, OwnershipChange, Piece, TopBundles
from planner.doors.words import BROKER, BUNDLE
from planner.formats.encoding import parse_json

_MESSAGE: Final = re.compile(r"(?:publishTime:\[(\d+)\], )?.*?\bkey:\[(.*?)\], .*?\bcontent:(.*)")
_BOUNDARY: Final = "----- got message -----"
_JAVA: Final = re.compile(r"\{\w+=")


def _recognise(chunk: Chunk) -> int:
    if chunk.is_json:
        return SURE if "topBundlesLoadData" in chunk.keys or _is_ownership(chunk) else NO
    return SURE if _BOUNDARY in chunk.head or any(_MESSAGE.fullmatch(line) for line in chunk.first_lines[:20]) else NO


def _is_ownership(chunk: Chunk) -> bool:
    return bool(BUNDLE.fullmatch(chunk.about)) and "state" in chunk.keys


def _read(chunk: Chunk) -> Iterator[Piece]:
    if chunk.is_json:
        yield from _of_message(chunk, chunk.about, chunk.value, chunk.at_ms)
        return
    useless = 0
    for line in _whole(chunk.lines):
        found = _MESSAGE.fullmatch(line)
        if found is None:
            continue
        content = found[3].strip()
        if not content.startswith("{") or _JAVA.match(content):
            useless += content not in ("", "null")
            continue
        try:
            value = parse_json(content, f"{chunk.source}: {found[2]}")
            yield from _of_message(chunk, found[2], value, int(found[1] or 0))
        except FormatError as error:
            what = f"{error.where.removeprefix(str(chunk.source)).strip(': ')}: {error.what.rstrip('.')}"
            yield NotUsed(
                source=chunk.source, why=f"message of {found[2][:100]}: {what.removeprefix(found[2]).strip(': ')}"
            )
    if useless:
        why = f"{useless:,} messages are not JSON; consume without --schema-type, and without --hex"
        yield NotUsed(source=chunk.source, why=why)


def _whole(lines: Sequence[str]) -> Iterator[str]:
    """Yield messages, each with the lines that a terminal made of the rest of it."""
    begun = ""
    for line in lines:
        begins = line.startswith(_BOUNDARY) or _MESSAGE.fullmatch(line) is not None
        if begun and (begins or not _MESSAGE.fullmatch(begun)):
            yield begun
            begun = ""
        begun += line
    yield begun


def _of_message(chunk: Chunk, key: str, value: Any, at_ms: int) -> Iterator[Piece]:
    if not isinstance(value, dict):
        return
    if isinstance(value.get("cpu"), dict) and BROKER.fullmatch(key):
        yield report_of(value, chunk, key)
    elif isinstance(value.get("topBundlesLoadData"), list):
        for name, stats in top_bundles(value):
            bundle_numbers(stats, f"{chunk.source}: {key[:100]}: {name[:200]}: ")
        yield TopBundles(source=chunk.source, report=value, broker=key if BROKER.fullmatch(key) else "")
    elif BUNDLE.fullmatch(key) and text_of(value, "state"):
        yield OwnershipChange(source=chunk.source, bundle=key, message=value, at_ms=at_ms)
    else:
        yield NotUsed(source=chunk.source, why=f"a message of {key[:100]!r} that is not of a load balancer topic")


KIND = Kind(
    "messages of a load balancer topic",
    "pulsar-client consume -s planner -p Earliest -n 0 non-persistent://pulsar/system/loadbalancer-broker-load-data",
    _recognise,
    _read,
)
