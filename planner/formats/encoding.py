"""What a snapshot says beside its tables - info, settings, policies - as JSON, checked on the way in."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from planner.cluster.complaints import first_complaint
from planner.cluster.errors import FormatError, SettingError
from planner.cluster.releases import REFERENCE, Release, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot, SnapshotInfo

_LONG = re.compile(r"[0-9]{309}")
"""A whole number that a double cannot hold."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PAGE = re.compile(r"<title[^>]*>(.{1,80}?)</title>", re.IGNORECASE | re.DOTALL)
_SHOWN = 80
_SEAL = "sha256"
_MOST_PARTS = 5_000_000

_INFO, _POLICIES = TypeAdapter(SnapshotInfo), TypeAdapter(Policies)
_T = TypeVar("_T")


def first_error(error: ValidationError, file: str) -> FormatError:
    """Turn the first complaint about a JSON shape into a message that names file and field; items count from 1."""
    first = first_complaint(error)
    place = "".join(f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in first.place).lstrip(".")
    others = f" ({first.others} more errors)" if first.others else ""
    return FormatError(
        f"{first.text.removesuffix('.')}{others}.",
        where=f"{file}: {place}" if place else file,
        remedy=first.remedy or "Correct the field. A snapshot written by the planner shows all fields.",
    )


def _unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(items)
    if len(made) != len(items):
        seen: set[str] = set()
        for key, _ in items:
            if key in seen:
                raise FormatError(f"The key '{key[:_SHOWN]}' occurs twice in one object.", remedy="Keep one of them.")
            seen.add(key)
    return made


def _constant(name: str) -> Any:
    raise FormatError(f"{name} is not a number in JSON.", remedy="Use a finite number, or leave it out.")


def _int(text: str) -> int:
    value = int(text)
    _float(text)
    return value


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise FormatError(f"The number {text[:_SHOWN]} is too large.", remedy="Use a number below 1e308.")
    return value


def _check_text(text: str, file: str) -> None:
    """Refuse what is no JSON by its beginning, and what would take gigabytes as objects."""
    if (parts := text.count("[") + text.count("{")) > _MOST_PARTS:
        what = f"The file has {parts:,} lists and objects; the maximum is {_MOST_PARTS:,}."
        raise FormatError(what, where=file, remedy="Use a smaller part of the cluster, such as fewer namespaces.")
    start = text[:2_000].lstrip()
    if not start:
        raise FormatError("The file is empty.", where=file, remedy="Write the file again.")
    if start.startswith("<"):
        title = _PAGE.search(start)
        raise FormatError(
            f"This is an HTML page, not JSON{f': {title[1].strip()}' if title else ''}.",
            where=file,
            remedy="A proxy or a login page answered. Send requests to the broker's admin address itself.",
        )


def parse_json(data: bytes | str, file: str, *, is_bounded: bool = False) -> Any:
    """Read untrusted JSON, UTF-8 with or without byte order mark; messages call it by the file name given.

    Refused with a message: other encodings than UTF-8, an HTML page, text cut off, NaN and Infinity, numbers beyond
    double precision, repeated keys, halves of surrogate pairs, endless nesting, millions of lists and objects.

    Args:
        data: The text.
        file: What messages call it.
        is_bounded: Whether each number is looked at later, so that one beyond double precision is named with its row.

    Raises:
        FormatError: Naming the file and, where it is not JSON, the line.
    """
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise FormatError(f"Byte {error.start} is not UTF-8.", where=file, remedy="Save the file as UTF-8.") from error
    _check_text(text, file)
    try:
        whole = _int if not is_bounded and _LONG.search(text) else None
        value = json.loads(
            text, parse_constant=_constant, parse_float=_float, parse_int=whole, object_pairs_hook=_unique
        )
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except FormatError as error:
        raise FormatError(error.what, where=file, remedy=error.remedy) from None
    except json.JSONDecodeError as error:
        if text[error.pos : error.pos + 1] == "\n" and "control character" in error.msg:
            raise FormatError(
                f"Line {error.lineno} ends inside a text, as where a terminal or a mail program breaks long lines.",
                where=file,
                remedy="Save the output to a file instead of copying it.",
            ) from error
        if text.startswith(("...", "…"), error.pos):
            raise FormatError(
                f"The text was shortened: dots stand for what is left out, line {error.lineno}, column {error.colno}.",
                where=file,
                remedy="Use the whole output.",
            ) from error
        raise FormatError(
            f"Not valid JSON: {error.msg}, line {error.lineno}, column {error.colno}.",
            where=file,
            remedy="Correct that place. If it is at the end, the file is incomplete.",
        ) from error
    except UnicodeEncodeError as error:
        raise FormatError(
            "A text contains half of a surrogate pair.", where=file, remedy="Write the character itself."
        ) from error
    except RecursionError as error:
        raise FormatError(
            "The file is nested too deeply.",
            where=file,
            remedy="Write the file again. No answer of Pulsar and no snapshot is nested that deeply.",
        ) from error
    except ValueError as error:
        raise FormatError("A number has too many digits.", where=file, remedy="Use fewer digits.") from error
    return value


def digest_of(value: Mapping[str, Any], key: str = "digest") -> str:
    """Return SHA-256 of a JSON object but for the key that holds it, whatever the order of its keys."""
    content = {name: item for name, item in value.items() if name != key}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sealed_json(value: Mapping[str, Any]) -> str:
    """Return a JSON object as text with its own SHA-256 in it, so that rot in it shows."""
    return json.dumps({**value, _SEAL: digest_of(value, _SEAL)}, indent=1, sort_keys=True)


def read_sealed(data: bytes | str, file: str) -> dict[str, Any]:
    """Read what `sealed_json` made, or an object without a seal, as earlier versions wrote it.

    Raises:
        FormatError: It is none, or not what was written.
    """
    value = parse_json(data, file)
    if isinstance(value, dict) and value.pop(_SEAL, None) in (None, digest_of(value, _SEAL)):
        return value
    raise FormatError(
        "The content has changed since it was written.", where=file, remedy=f"Restore it, or remove {_SEAL}."
    )


def _read(adapter: TypeAdapter[_T], value: Any, place: str) -> _T:
    try:
        return adapter.validate_json(compact_json(value))  # as JSON, whose lists are tuples
    except ValidationError as error:
        raise first_error(error, place) from error


def read_info(value: Any, file: str) -> SnapshotInfo:
    """Read the info of a snapshot.

    Raises:
        FormatError: A field is missing, unknown or of another type.
    """
    return _read(_INFO, value, f"{file}: info")


def read_policies(value: Any, file: str) -> Policies:
    """Read the policies of a snapshot; None stands for none.

    Raises:
        FormatError: A field is missing, unknown or of another type.
    """
    return _read(_POLICIES, {} if value is None else value, f"{file}: policies")


def read_settings(value: Any, file: str, version: Release = REFERENCE) -> Settings:
    """Read settings of a release by their `broker.conf` names; None stands for none.

    Raises:
        FormatError: It is no object of names and values, a name is unknown, or a value is out of bounds.
    """
    given = {} if value is None else value
    if not isinstance(given, Mapping):
        raise FormatError(
            "Settings are not an object of names and values.",
            where=f"{file}: settings",
            remedy="Write {LOAD_BALANCER_ENABLED: true}.",
        )
    try:
        return Settings(given, version)
    except SettingError as error:
        raise FormatError(error.what, where=f"{file}: settings.{error.where[:_SHOWN]}", remedy=error.remedy) from error


def info_to_json(info: SnapshotInfo) -> dict[str, Any]:
    """Return the info as JSON, defaults left out but for the version."""
    made: dict[str, Any] = _INFO.dump_python(info, mode="json", exclude_defaults=True)
    return made | {"pulsar_version": info.pulsar_version}


def policies_to_json(policies: Policies) -> dict[str, Any]:
    """Return the policies as JSON, empty ones left out."""
    plain: dict[str, Any] = {name: dict(getattr(policies, name)) for name in ("anti_affinity_group", "failure_domains")}
    made = _POLICIES.dump_python(replace(policies, **plain), mode="json", exclude_defaults=True)
    return {name: value for name, value in made.items() if value}


def head_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return what a snapshot says beside its tables as JSON.

    `info`, `settings` that differ from their default of 4.2.4, and `policies`.
    """
    settings = snapshot.settings.overrides.items()
    return {
        "info": info_to_json(snapshot.info),
        "settings": {name: list(value) if isinstance(value, tuple) else value for name, value in settings},
        "policies": policies_to_json(snapshot.policies),
    }


def read_head(value: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Read what `head_to_json` made, as fields of a snapshot.

    Raises:
        FormatError: A field is missing, unknown or of another type.
    """
    info = read_info(value.get("info"), file)
    return {
        "info": info,
        "settings": read_settings(value.get("settings"), file, release(info.pulsar_version)),
        "policies": read_policies(value.get("policies"), file),
    }


def compact_json(value: Any) -> str:
    """Return a value as JSON without spaces; NaN and Infinity are refused."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
