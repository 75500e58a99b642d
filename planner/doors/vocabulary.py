"""Which names of a configuration are settings of the planner; nothing else is kept, so that no secret is."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from planner.cluster.errors import SettingError
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import MAX_TEXT
from planner.cluster.switches import hold_of
from planner.doors.pieces import Configuration, Source

KNOWN: Final = frozenset(REFERENCE.settings) | frozenset(REFERENCE.others)
"""Settings that the planner knows, of any release."""

PREFIX: Final = "PULSAR_PREFIX_"
"""How the name of an environment variable begins that the images of Pulsar write into `broker.conf`."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,200}")
_LIKE: Final = 0.88
_MOST: Final = 10_000
_MEANS_TRUE: Final = re.compile(r"[\W_]*(?:true|yes|on|1|enabled?)\b", re.IGNORECASE)
_LOWER: Final = {name.lower(): name for name in KNOWN}


def is_known(name: str) -> bool:
    """Say whether a name is a setting of the planner, with or without the prefix of environment variables."""
    return name.removeprefix(PREFIX) in KNOWN


def configuration(
    pairs: Iterable[tuple[str, object]],
    source: Source,
    form: Literal["runtime", "dynamic", "file"],
    broker: str = "",
) -> Configuration:
    """Return the settings among names and values, as brokers read them.

    The last value of a name counts, as in Java's properties, and an empty one in a file leaves the default.
    """
    values: dict[str, str] = {}
    read_false: dict[str, bool] = {}
    misspelt: dict[str, str] = {}
    foreign: dict[str, None] = {}
    invalid: dict[str, str] = {}
    for given, value in pairs:
        name = given.strip().removeprefix(PREFIX)
        if name in KNOWN:
            text, means_true = _read(name, _text(value))
            read_false.pop(name, None)
            if not text and form == "file":
                values.pop(name, None)
            elif wrong := _refusal(name, text):
                invalid[name] = wrong
            else:
                values[name] = text
            if means_true is not None:
                read_false[name] = means_true
        elif _NAME.fullmatch(name) and len(foreign) + len(misspelt) < _MOST:
            near = _nearest(name) if form == "file" else ""
            if near:
                misspelt[name] = near
            else:
                foreign[name] = None
    return Configuration(
        source=source,
        values=values,
        form=form,
        broker=broker,
        misspelt=misspelt,
        foreign=tuple(foreign),
        invalid={name: wrong for name, wrong in invalid.items() if name not in values},
        read_false=read_false,
    )


def _read(name: str, text: str) -> tuple[str, bool | None]:
    """Return the text of a setting, `false` where a broker takes it for that, and then whether it seems to mean true.

    The mark of a script that holds a switch off stays as it is.
    """
    setting = REFERENCE.settings.get(name) or REFERENCE.others[name]
    if setting.kind != "boolean" or not text or text.lower() in {"true", "false"} or hold_of(text) is not None:
        return text, None
    return "false", _MEANS_TRUE.match(text) is not None


def _refusal(name: str, text: str) -> str:
    """Return what a setting can have instead of a text; nothing where the text is a value of it."""
    setting = REFERENCE.settings.get(name) or REFERENCE.others[name]
    if hold_of(text) is not None:
        return ""
    try:
        setting.parse(text)
    except SettingError as error:
        return error.remedy
    return "" if len(text) <= MAX_TEXT else f"Use at most {MAX_TEXT:,} characters."


def _nearest(name: str) -> str:
    if exact := _LOWER.get(name.lower()):
        return exact
    found = difflib.get_close_matches(name, KNOWN, n=1, cutoff=_LIKE)
    return found[0] if found else ""


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return "" if value is None else str(value).strip()


def merged(configurations: Iterable[Configuration]) -> Mapping[str, str]:
    """Return the values of several configurations; the last one that says something counts."""
    found: dict[str, str] = {}
    for one in configurations:
        found |= one.values
    return found


def is_before_and_after(files: Sequence[Configuration]) -> bool:
    """Say whether two settings files are one before and after a change: they differ in a setting that both have."""
    if len(files) != 2:  # noqa: PLR2004 - before and after
        return False
    before, after = (one.values for one in files)
    return any(before[name] != after[name] for name in before.keys() & after.keys())
