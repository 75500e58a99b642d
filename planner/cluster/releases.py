"""Releases of Pulsar: which settings each knows, and which rules.

`settings.csv` has a row for each setting and span of releases: names, types, defaults and the dynamic flag are those of
`ServiceConfiguration`; when a new value takes effect (`TakesEffect`) was read out of where the broker's classes ask for
it. A row without a type is an older default of the setting above it; where its dynamic flag is `absent` those releases
have no such setting and do what the default says. Pulsar itself bounds only
`statsUpdateFrequencyInSecs`; the other bounds keep out what would stop a broker's schedulers (an interval of 0),
overflow a clock in milliseconds, or mean nothing, and leave in every value that switches something off.

A rule that differs between releases asks `Release.has` about a `Switch` that stands beside it.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from planner.cluster.files import packaged_rows
from planner.cluster.setting import Setting, SettingKind, TakesEffect

_NUMBER: Final = re.compile(r"[0-9]+")
_PARTS: Final = 3
_EFFECTS: Final[Mapping[str, TakesEffect]] = MappingProxyType({effect: effect for effect in get_args(TakesEffect)})

ReleaseName: TypeAlias = Literal[
    "3.0.0", "3.0.2", "3.0.7", "3.1.0", "3.1.2", "3.2.0", "3.2.3", "3.3.2", "3.3.5", "4.0.0", "4.0.1", "4.0.4", "4.0.5",
    "4.0.6", "4.0.7", "4.0.8", "4.2.4", "5.0.0-M1", "5.0.1", "next",
]  # fmt: skip
"""A release that is decided. A new one is another name here, and its rows in `settings.csv`."""

RELEASES: Final[tuple[ReleaseName, ...]] = get_args(ReleaseName)
"""The releases that are decided, oldest first."""

UPGRADED_TO: Final[tuple[ReleaseName, ...]] = ("3.0.7", "4.0.8", "4.2.4", "5.0.0-M1", "5.0.1", "next")
"""Releases to upgrade to: the last one of each supported line, and the coming ones."""

NOT_RUN: Final[Mapping[ReleaseName, str]] = MappingProxyType(
    {
        "5.0.1": (
            "The rules of this release were read in its classes, not run, because parts of it are not "
            "published. Its settings are not published either, so those of 5.0.0-M1 are used."
        ),
        "next": (
            "This stands for the release after 5.0.1. Its new defaults were read in the merged changes, not "
            "run, and may still change."
        ),
    }
)
"""Releases without recorded decisions, and what operators should know about each."""

ALIKE: Final = frozenset({"3.2.2", "3.3.6", "4.0.2"})
"""Releases whose classes were run too. They decide like the nearest older known release, else like the oldest."""


def _order(version: str) -> tuple[float, ...]:
    """Return what releases are compared by: the first three numbers, whatever stands behind them.

    A line such as `4.0` stands for the last of its releases; the release to come is newer than any number.
    """
    if version == RELEASES[-1]:
        return (math.inf,)
    numbers = [int(number) for number in _NUMBER.findall(version)[:_PARTS]]
    return (*numbers, math.inf) if len(numbers) == _PARTS - 1 else tuple(numbers)


@dataclass(frozen=True, slots=True)
class Switch:
    """A rule that not every release has.

    Attributes:
        meaning: What the releases that have it do.
        since: First release that has it; empty when the first one known has.
        until: First release that no longer has it; empty when the last one known has.
        backported: First release of each older line, such as `3.3.6`, that changed already as `since` or `until` did.
    """

    meaning: str
    since: str = ""
    until: str = ""
    backported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Pulsar.

    Attributes:
        name: Such as `4.2.4`.
        settings: The settings it knows, by name, load balancer first, in the order of the documentation.
        others: Settings of other releases by name. The default is what this release does without them.
    """

    name: ReleaseName
    settings: Mapping[str, Setting] = field(repr=False, compare=False, default_factory=dict)
    others: Mapping[str, Setting] = field(repr=False, compare=False, default_factory=dict)

    def __reduce__(self) -> tuple[Callable[[ReleaseName], "Release"], tuple[ReleaseName]]:
        return _known, (self.name,)

    @property
    def major(self) -> int:
        """The first number of the name; of the release to come that of the newest one with a number."""
        named = self.name if self.name[0].isdigit() else RELEASES[-2]
        return int(named.partition(".")[0])

    def has(self, switch: Switch) -> bool:
        """Return whether this release has a rule."""
        return _has(self.name, switch)


@cache
def _has(name: ReleaseName, switch: Switch) -> bool:
    changed = any(_order(one)[:2] == _order(name)[:2] and not is_newer(one, name) for one in switch.backported)
    return bool(switch.since) if changed else _covers(switch.since, switch.until, name)


def _covers(since: str, until: str, version: str) -> bool:
    return (not since or _order(version) >= _order(since)) and (not until or _order(version) < _order(until))


def settings_of(version: str) -> tuple[Mapping[str, Setting], Mapping[str, Setting]]:
    """Return the settings that a release such as `4.2.4` knows, and those of other releases; see `Release`.

    Any version is taken, whether or not its rules are known.
    """
    known: dict[str, Setting] = {}
    others: dict[str, Setting] = {}
    newest: dict[str, Setting] = {}
    for row in packaged_rows("planner.cluster", "settings.csv"):
        setting = newest.get(row["name"])
        if setting is None:
            setting = newest[row["name"]] = _read(row)
            others[setting.name] = replace(setting, default=setting.parse(row["default"]))
        if _covers(row["since"], row["until"], version):
            found = replace(
                setting,
                default=setting.parse(row["default"]),
                dynamic=row["dynamic"] == "yes",
                takes_effect=_EFFECTS.get(row["takes_effect"], setting.takes_effect),
            )
            (others if row["dynamic"] == "absent" else known)[setting.name] = found
    for name in known:
        del others[name]
    return MappingProxyType(known), MappingProxyType(others)


def _read(row: Mapping[str, str]) -> Setting:
    kinds: dict[str, SettingKind] = {kind: kind for kind in get_args(SettingKind)}
    number = int if row["kind"] in {"int", "long"} else float
    return Setting(
        name=row["name"],
        kind=kinds[row["kind"]],
        default=None,
        dynamic=False,
        takes_effect=_EFFECTS[row["takes_effect"]],
        unit=row["unit"],
        group=row["group"],
        meaning=row["meaning"],
        note=row["note"],
        minimum=number(row["minimum"]) if row["minimum"] else None,
        maximum=number(row["maximum"]) if row["maximum"] else None,
        choices=tuple(filter(None, row["choices"].split("|"))),
    )


@cache
def release(version: str) -> Release:
    """Return the release that decides for a cluster: the nearest known one that is not newer, else the oldest known.

    Args:
        version: What a snapshot or a scenario says, such as `4.2.4` or `3.0.7-SNAPSHOT`; anything is taken. A line such
            as `4.0` is its last release that is known, and what is no version at all is the reference.
    """
    if not _order(version):
        return REFERENCE
    return _known(max((r for r in RELEASES if _order(r) <= _order(version)), key=_order, default=RELEASES[0]))


def releases_with(setting: str) -> tuple[tuple[ReleaseName, ReleaseName], ...]:
    """Return the first and the last release of each run of known releases that have a setting, oldest first."""
    runs: list[tuple[ReleaseName, ReleaseName]] = []
    before = False
    for name in RELEASES:
        has = setting in _known(name).settings
        if has:
            runs = [*runs[:-1], (runs[-1][0], name)] if before else [*runs, (name, name)]
        before = has
    return tuple(runs)


def is_exact(version: str) -> bool:
    """Return whether a version is one that is known; a build of it, such as `4.2.4-SNAPSHOT`, is too."""
    name = release(version).name
    return version == name or version in ALIKE or (_order(version) == _order(name) and "-" not in name)


def is_newer(version: str, than: str) -> bool:
    """Return whether a version comes after another one."""
    return _order(version) > _order(than)


@cache
def _known(name: ReleaseName) -> Release:
    return Release(name, *settings_of(name))


REFERENCE: Final = _known("4.2.4")
"""The default release: its settings are offered without a cluster, and its rules decide where no release is named."""
