"""Reads answers that are in another notation: YAML (`yq`), Python's own, JSON inside a text of JSON, Go's names."""

import ast
import json
import re
import warnings
from typing import Any, Final

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.names import DISPATCH_THROTTLING_RATE_IN_BYTE, DISPATCH_THROTTLING_RATE_IN_MSG
from planner.cluster.units import MIB
from planner.doors.chunks import Chunk
from planner.doors.kinds.manifests import documents_in

_MOST_BYTES: Final = 4 * MIB
_MOST_OF_PYTHON: Final = MIB
_LOOKED_AT: Final = 300
_PYTHON: Final = re.compile(r"\s*(?:\{|\[\s*\{?|\[)\s*'")
_TEXT: Final = re.compile(r'\s*"\s*(?:\\[nrt]|\s)*[{\[]')
_YAML: Final = re.compile(
    r"(?:---|- |[\[{]\s*(?:\{\s*)?(?:[A-Za-z_$][\w$]*|'[^'\n]*'):[ \t\n]|"
    r"[\"']?[A-Za-z][^\s:\"'=]*(?::\d+)?[^\s:\"'=]*[\"']?:(?:\s|$))"
)
"""Also objects of JavaScript, which are YAML as well where a blank follows each colon."""
_ALIAS: Final = re.compile(r"(?m)(?:^|[\s\[{,:-])\*\S")


_GO_NAMES: Final = {
    "AuthPolicies": "auth_policies",
    "ReplicationClusters": "replication_clusters",
    "BacklogQuotaMap": "backlog_quota_map",
    **{
        name[0].upper() + name[1:]: name
        for name in (
            "bundles",
            "boundaries",
            "numBundles",
            "antiAffinityGroup",
            "topicDispatchRate",
            "clusterDispatchRate",
            "subscriptionDispatchRate",
            "replicatorDispatchRate",
            DISPATCH_THROTTLING_RATE_IN_MSG,
            DISPATCH_THROTTLING_RATE_IN_BYTE,
            "relativeToPublishRate",
            "ratePeriodInSecond",
        )
    },
}
"""Fields of policies and limits as Go calls them, and early releases of `pulsarctl` print them."""
_OF_GO: Final = frozenset(["ReplicationClusters", "TopicDispatchRate", "RatePeriodInSecond"])


def _renamed(value: Any) -> Any:
    """Return a value with the fields of Go called as Pulsar calls them; other names, as of clusters, stay."""
    if isinstance(value, list):
        return [_renamed(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {_GO_NAMES.get(name, name): _renamed(one) for name, one in value.items()}


def in_json(chunk: Chunk) -> Chunk | None:
    """Return a chunk as JSON where it is written otherwise; None where it is not, or is JSON already."""
    if len(chunk.data) > _MOST_BYTES:
        return None
    if chunk.is_json and chunk.outline is not None:
        value = _renamed(chunk.value) if _OF_GO & chunk.keys.keys() else None
    else:
        value = _value_of(chunk)
    if not isinstance(value, dict | list) or not value:
        return None
    try:
        data = json.dumps(value, default=str).encode()
    except (TypeError, ValueError, RecursionError):
        return None
    made = Chunk(chunk.source, memoryview(data), is_json=True, before=chunk.before, about=chunk.about)
    made.at_ms = chunk.at_ms
    return made


def _value_of(chunk: Chunk) -> Any:
    """Return the value; None where the first lines show that there is none, before all lines are looked at."""
    start = chunk.head if chunk.is_json else "\n".join(chunk.first_lines or chunk.lines)
    head = start[:_LOOKED_AT]  # so that no pattern goes on for long
    if _PYTHON.match(head):
        text = _text_of(chunk)
        return _of_python(text) if len(text) <= _MOST_OF_PYTHON else None
    if chunk.is_json:
        return None
    if _TEXT.match(head):
        return _of_text(_text_of(chunk))
    return _of_yaml(_text_of(chunk), str(chunk.source)) if _YAML.match(head.lstrip()) else None


def _text_of(chunk: Chunk) -> str:
    return bytes(chunk.data).decode("utf-8", "replace") if chunk.is_json else "\n".join(chunk.lines)


def _of_python(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _of_text(text: str) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.decode(text, type=str))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _of_yaml(text: str, where: str) -> Any:
    if _ALIAS.search(text):  # in JSON it would be written out, again and again
        return None
    try:
        found = documents_in(text, where)
    except FormatError:
        return None
    return found[0] if len(found) == 1 else found
