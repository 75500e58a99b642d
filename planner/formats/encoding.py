"""What a snapshot says beside its tables - info, settings, policies - as JSON, checked on the way in."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from planner.model.errors import FormatError
from planner.model.settings import Settings
from planner.model.snapshot import Policies, SnapshotInfo

__all__ = [
    "first_error",
    "info_to_json",
    "parse_json",
    "policies_to_json",
    "read_info",
    "read_policies",
    "read_settings",
]

_STRICT = ConfigDict(extra="forbid")

Text = Annotated[str, Field(max_length=10_000)]


class _Info(BaseModel):
    model_config = _STRICT
    cluster: Annotated[str, Field(min_length=1, max_length=200)]
    load_manager: Annotated[str, Field(pattern="^(modular|extensible)$")]
    captured_at_ms: Annotated[int, Field(ge=0, lt=2**53)]
    pulsar_version: Annotated[str, Field(max_length=50)] = "4.2.4"
    leader: Annotated[str, Field(max_length=300)] = ""
    source: Text = ""
    description: Text = ""
    warnings: Annotated[tuple[Text, ...], Field(max_length=10_000)] = ()


_INFO = TypeAdapter(SnapshotInfo)
_POLICIES = TypeAdapter(Policies)


def first_error(error: ValidationError, file: str) -> FormatError:
    """Turn the first complaint about a JSON shape into a message that names file and field."""
    details = error.errors(include_url=False, include_input=False)
    place = "".join(f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in details[0]["loc"]).lstrip(".")
    others = f" ({len(details) - 1} more like it)" if len(details) > 1 else ""
    return FormatError(
        f"{details[0]['msg']}{others}.",
        where=f"{file}: {place}" if place else file,
        remedy="Correct the field; the format page lists them.",
    )


def parse_json(data: bytes | str, file: str) -> Any:
    """Read JSON from bytes nobody vouches for.

    Refused with a message: other encodings than UTF-8, an HTML page, NaN and Infinity, repeated keys, endless nesting.

    Raises:
        FormatError: Naming the file and the line.
    """
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise FormatError(f"Byte {error.start} is not UTF-8.", where=file, remedy="Save the file as UTF-8.") from error
    if text.lstrip()[:1] == "<":
        raise FormatError(
            "This is an HTML page, not JSON; a proxy or a login page answered instead of Pulsar.",
            where=file,
            remedy="Ask the broker's admin address directly.",
        )

    def constant(name: str) -> Any:
        raise FormatError(
            f"{name} is not a number in JSON.", where=file, remedy="Give a finite number or leave it out."
        )

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            keys = [k for k, _ in items]
            twice = next(k for k in keys if keys.count(k) > 1)
            raise FormatError(f"The key '{twice[:80]}' occurs twice in one object.", where=file, remedy="Keep one.")
        return made

    try:
        value = json.loads(text, parse_constant=constant, object_pairs_hook=pairs)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise FormatError(
            f"Not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",
            where=file,
            remedy="The file may be cut off; write it again.",
        ) from error
    except UnicodeEncodeError as error:
        raise FormatError("A text has half a character (a lone surrogate).", where=file, remedy="Remove it.") from error
    except (RecursionError, ValueError) as error:
        raise FormatError("Not JSON that can be read: nested too deeply or a number too long.", where=file) from error
    return value


def read_info(value: Any, file: str) -> SnapshotInfo:
    """Read the info of a snapshot.

    Raises:
        FormatError: A field is missing, unknown or of another type.
    """
    try:
        return _INFO.validate_python(_Info.model_validate(value).model_dump())
    except ValidationError as error:
        raise first_error(error, f"{file}: info") from error


def read_policies(value: Any, file: str) -> Policies:
    """Read the policies of a snapshot.

    Raises:
        FormatError: A field is of another type.
    """
    try:
        return _POLICIES.validate_python(value or {})
    except ValidationError as error:
        raise first_error(error, f"{file}: policies") from error


def read_settings(value: Any, file: str) -> Settings:
    """Read settings by their `broker.conf` names.

    Raises:
        FormatError: It is no object of names and values.
        SettingError: A name is unknown or a value out of bounds.
    """
    if not isinstance(value, Mapping):
        raise FormatError("Settings are an object of names and values.", where=f"{file}: settings")
    return Settings(value)


def info_to_json(info: SnapshotInfo) -> dict[str, Any]:
    """Return the info as JSON, defaults left out."""
    made: dict[str, Any] = _INFO.dump_python(info, mode="json")
    return {k: v for k, v in made.items() if v not in ("", [], ())}


def policies_to_json(policies: Policies) -> dict[str, Any]:
    """Return the policies as JSON, empty ones left out."""
    made: dict[str, Any] = _POLICIES.dump_python(policies, mode="json")
    return {k: v for k, v in made.items() if v}
