"""The settings in force, by their real `broker.conf` names."""

import difflib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from planner.cluster.errors import SettingError
from planner.cluster.releases import REFERENCE, Release
from planner.cluster.setting import Setting, SettingValue

_T = TypeVar("_T")
_SEPARATORS = str.maketrans("", "", "_-. ")


class Settings(Mapping[str, SettingValue]):
    """The settings in force: overrides over the defaults of a release. Frozen; equal when the same values are in force.

    A setting that the release does not know is not in them, but asked for it has the value that this release acts by.
    Every rule is given the settings, and with them the release whose rules it follows.
    """

    __slots__ = ("_hash", "_overrides", "release")

    def __init__(self, overrides: Mapping[str, object] | None = None, release: Release = REFERENCE) -> None:
        """Check and take overrides.

        Args:
            overrides: Values by `broker.conf` name; text is read as `broker.conf` writes it.
            release: Which settings there are, their defaults, and whose rules are followed. Settings of other releases
                are kept without effect, so that the same cluster can be asked about on another release.

        Raises:
            SettingError: A name is unknown (the nearest one is named) or a value is out of bounds.
        """
        kept: dict[str, SettingValue] = {}
        for name in sorted(overrides or {}):
            setting = release.settings.get(name) or release.others.get(name)
            if setting is None:
                raise SettingError(
                    f"Pulsar {release.name} has no such load-balancer setting.",
                    where=name or "settings",
                    remedy=_nearest(name, release),
                )
            value = setting.parse((overrides or {})[name])
            # What differs from the reference is kept as well: digests of snapshots do not depend on who decides.
            if _differs(value, setting) or _differs(value, REFERENCE.settings.get(name, setting)):
                kept[name] = value
        self._overrides: Mapping[str, SettingValue] = MappingProxyType(kept)
        self.release = release
        self._hash = hash((release.name, *self._effective().items()))

    def __reduce__(self) -> tuple[type["Settings"], tuple[Mapping[str, SettingValue], Release]]:
        return Settings, (dict(self._overrides), self.release)

    @property
    def overrides(self) -> Mapping[str, SettingValue]:
        """The values that differ from their default, sorted by name.

        Among them are those that are the default of this release but not of the reference, and settings of other
        releases.
        """
        return self._overrides

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names of what is set, but which this release does not know."""
        return tuple(name for name in self._overrides if name not in self.release.settings)

    def _effective(self) -> dict[str, SettingValue]:
        known = self.release.settings
        return {
            name: value for name, value in self._overrides.items() if name in known and _differs(value, known[name])
        }

    def changed(self, **values: object) -> "Settings":
        """Return these settings with some values replaced.

        Raises:
            SettingError: As the constructor does.
        """
        return Settings({**self._overrides, **values}, self.release)

    def of(self, name: str) -> Setting:
        """Return what a setting is; one that only other releases have is as it is there.

        Raises:
            KeyError: No release has one of this name.
        """
        return self.release.settings.get(name) or self.release.others[name]

    def __getitem__(self, name: str) -> SettingValue:
        known = self.release.settings.get(name)
        if known is None:  # what this release does without it
            return self.release.others[name].default
        return self._overrides.get(name, known.default)

    def __contains__(self, name: object) -> bool:
        return name in self.release.settings

    def __iter__(self) -> Iterator[str]:
        return iter(self.release.settings)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Settings):
            return False
        return self.release == other.release and self._effective() == other._effective()

    def __repr__(self) -> str:
        return f"Settings({dict(self._overrides)})"

    def flag(self, name: str) -> bool:
        """Return a switch."""
        return bool(self._of(name, bool))

    def integer(self, name: str) -> int:
        """Return an int or long."""
        return self._of(name, int)

    def number(self, name: str) -> float:
        """Return a double, an int or a long as float."""
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} is not a number")
        return float(value)

    def text(self, name: str) -> str:
        """Return a name."""
        return self._of(name, str)

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of names."""
        return self._of(name, tuple)

    def _of(self, name: str, kind: type[_T]) -> _T:
        value: object = self[name]
        if not isinstance(value, kind):
            raise TypeError(f"{name} is no {kind.__name__}")
        return value


def _differs(value: SettingValue, setting: Setting) -> bool:
    return value != setting.default or type(value) is not type(setting.default)


def _nearest(name: str, release: Release) -> str:
    plain = {n.lower().translate(_SEPARATORS): n for n in release.settings}
    near = difflib.get_close_matches(name.lower().translate(_SEPARATORS), plain, n=1, cutoff=0.6)
    return f"Did you mean {plain[near[0]]}?" if near else "The What-if page lists every setting."
