"""Which names of a configuration are settings of the planner; nothing else is kept, so that no secret is."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from planner.cluster.errors import SettingError
from planner.cluster.files import packaged_rows
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import Setting
from planner.cluster.snapshot import MAX_TEXT
from planner.cluster.switches import hold_of
from planner.doors.meant import number_meant
from planner.doors.pieces import Configuration, Source
from planner.doors.words import pods_in
from planner.pulsar.manager.class_names import OFFICIAL_CLASSES

KNOWN: Final = frozenset(REFERENCE.settings) | frozenset(REFERENCE.others)
"""Settings that the planner knows, of any release."""

PREFIX: Final = "PULSAR_PREFIX_"
"""How the name of an environment variable begins that the images of Pulsar write into `broker.conf`."""

NAMED: Final = rf"(?:{PREFIX})?(?:{'|'.join(sorted(KNOWN))})"
"""Pattern of the name of a setting, with or without the prefix."""

ONLY_PREFIXED: Final = frozenset(row["name"] for row in packaged_rows("planner.doors", "only_prefixed.csv"))
"""Settings without a line in the `broker.conf` of Pulsar's images.

Without the prefix, images write a variable only into a line that is there. Read in the files that 3.3.5 and 4.0.8 ship,
and, for the settings of 4.2, in the load balancer's part of a later one, which lacks the older ones too.
"""

_BALANCER: Final = re.compile(r"load(Balancer?|Manager)[A-Z]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,200}")
_LIKE: Final = 0.88
_MOST: Final = 10_000
_MEANS_TRUE: Final = re.compile(r"[\W_]*(?:true|yes|on|1|enabled?)\b", re.IGNORECASE)
_LOWER: Final = {name.lower(): name for name in KNOWN}
_VARIABLE: Final = re.compile(
    r"\{\{|\{%|<%|\$\{|\$\(|#\{|^\$[A-Za-z_]\w*$|%[A-Za-z_][\w.-]*%|@[A-Za-z_][\w.-]*@|^__[A-Za-z]\w*__$"
)
"""What a template or a shell fills in: Jinja and Helm, ERB, variables, and names between the marks of other tools.

No value of a setting of the load balancer has such marks. A namespace may begin with two underlines, but never stands
alone in a line.
"""
_DEFAULT: Final = re.compile(r"\$\{\w+:?-([^${}]*)\}")
"""A variable with a default, as Compose and shells have it."""


def is_known(name: str) -> bool:
    """Say whether a name is a setting of the planner, with or without the prefix of environment variables."""
    return name.removeprefix(PREFIX) in KNOWN


def is_of_balancer(name: str) -> bool:
    """Say whether a name begins as only those of the load balancer do, whether there is such a setting or not."""
    return _BALANCER.match(name) is not None


def configuration(
    pairs: Iterable[tuple[str, object]],
    source: Source,
    form: Literal["runtime", "dynamic", "file"],
    broker: str = "",
    *,
    unprefixed: Iterable[str] = (),
) -> Configuration:
    """Return the settings among names and values, as brokers read them.

    The last value of a name counts, as in Java's properties, and an empty one in a file leaves the default. One that a
    template fills in is not known, unless it has a default. Left out is what images ignore without the prefix.
    """
    found, ignored = _Sorted(form), tuple(dict.fromkeys(unprefixed))
    for given, value in pairs:
        name = given.strip().removeprefix(PREFIX)
        if name in ignored:
            continue
        if name in KNOWN:
            found.take(name, _text(value))
        elif _NAME.fullmatch(name) and len(found.foreign) + len(found.misspelt) < _MOST:
            found.set_aside(name)
    return Configuration(
        source=source,
        values=found.values,
        form=form,
        broker=broker,
        misspelt=found.misspelt,
        foreign=tuple(found.foreign),
        invalid=found.invalid,
        meant=found.meant,
        read_false=found.read_false,
        variables=found.variables,
        repeated=tuple(found.repeated),
        unprefixed=ignored,
    )


def unprefixed_in(names: Iterable[str]) -> list[str]:
    """Return those of some variables that images ignore without the prefix, and that are not there with it as well."""
    given = list(names)
    return [name for name in given if name in ONLY_PREFIXED and f"{PREFIX}{name}" not in given]


@dataclass
class _Sorted:
    """Names and values by what they are; see `Configuration`."""

    form: str
    values: dict[str, str] = field(default_factory=dict)
    read_false: dict[str, bool] = field(default_factory=dict)
    misspelt: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, None] = field(default_factory=dict)
    invalid: dict[str, str] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)
    variables: dict[str, bool] = field(default_factory=dict)
    repeated: dict[str, None] = field(default_factory=dict)

    def take(self, name: str, written: str) -> None:
        """Take the value of a setting."""
        default = _DEFAULT.fullmatch(written)
        self.variables.pop(name, None)
        if default or _VARIABLE.search(written):
            self.variables[name] = default is not None
        if default is None and name in self.variables:
            self.values.pop(name, None)
            return
        text, means_true = _read(name, default[1] if default else written)
        self.read_false.pop(name, None)
        if self.values.get(name, text) != text or name in self.invalid:
            self.repeated[name] = None
        self.invalid.pop(name, None)
        if not text and self.form == "file":
            self.values.pop(name, None)
        elif wrong := _refusal(name, text):
            self.values.pop(name, None)
            self.invalid[name] = wrong
            self.meant[name] = number_meant(_setting(name), text)
        else:
            self.values[name] = text
        if means_true is not None:
            self.read_false[name] = means_true

    def set_aside(self, name: str) -> None:
        """Take a name that is no setting of the load balancer."""
        near = _nearest(name) if self.form == "file" else ""
        if near:
            self.misspelt[name] = near
        else:
            self.foreign[name] = None


def _setting(name: str) -> Setting:
    return REFERENCE.settings.get(name) or REFERENCE.others[name]


def _read(name: str, text: str) -> tuple[str, bool | None]:
    """Return the text of a setting, `false` where a broker takes it for that, and then whether it seems to mean true.

    The mark of a script that holds a switch off stays as it is.
    """
    setting = _setting(name)
    if setting.kind != "boolean" or not text or text.lower() in {"true", "false"} or hold_of(text) is not None:
        return text, None
    return "false", _MEANS_TRUE.match(text) is not None


def _refusal(name: str, text: str) -> str:
    """Return what a setting can have instead of a text; nothing where the text is a value of it."""
    setting = _setting(name)
    if hold_of(text) is not None:
        return ""
    if name in OFFICIAL_CLASSES and "=" in text:  # what else stands on its line may be a secret
        return "Use the full name of a class."
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
    pods = [pods_in(one.source.command) for one in files]
    if all(pods) and pods[0] != pods[1]:  # two brokers at one time
        return False
    before, after = (one.values for one in files)
    return any(before[name] != after[name] for name in before.keys() & after.keys())
