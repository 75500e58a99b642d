"""What a setting is: its real name, type, default, unit and bounds."""

import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from planner.cluster.errors import SettingError

SettingKind: TypeAlias = Literal["boolean", "int", "long", "double", "optional double", "string", "names"]
"""Type of a setting; `names` is a list of strings, of which Pulsar ignores the order or not as the setting says."""

SettingValue: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""Value of a setting; None only for an `optional double` that is not set."""

TakesEffect: TypeAlias = Literal["now", "election", "reload", "restart", "migration"]
"""When a running broker applies a new value, dynamic or not.

`now`: when it is needed next; `election`: a modular leader after its next run, an extensible broker when it becomes the
leader next; `reload`: what is made from then on, dispatchers, replicators or connections, so that bundles must be
unloaded; `restart`: when the broker starts; `migration`: the setting must not be changed on a running cluster.
"""

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|Infinity))[fFdD]?")
"""A number as Java's `Double.valueOf` reads it; one in hexadecimal digits, which it reads too, is left out."""
_PRINTABLE_BITS = 1024
_TRUE = {"true": True, "false": False}

_AS_ITS_TYPE: Final[Mapping[SettingKind, str]] = {
    "boolean": "Use true or false",
    "int": "Use a whole number",
    "long": "Use a whole number",
    "double": "Use a plain number",
    "optional double": "Use a plain number, or none",
    "string": "Use text",
    "names": "Use names with commas between them",
}
OF_TYPE: Final = tuple(_AS_ITS_TYPE.values())
"""How the remedy of a value of another type may begin."""


def _bound(value: float) -> str:
    """Return a bound as people read it."""
    return f"{int(value):,}" if math.isfinite(value) and value == int(value) else f"{value:g}"


def conf_value(value: SettingValue) -> str:
    """Return a value as `broker.conf` writes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, as a release of Pulsar knows it; the columns of `settings.csv`.

    Attributes:
        name: Its name in `broker.conf`, misspelt where Pulsar's is.
        kind: Type of its value.
        default: Value in force when it is not set.
        dynamic: True when `update-dynamic-config` accepts it.
        takes_effect: When a running broker applies a new value.
        unit: Unit of the value, empty for switches and names.
        group: `load balancer` or `dispatch throttling`.
        meaning: One line.
        note: What surprises; empty when nothing does.
        minimum: Least value accepted, None when the type has no order.
        maximum: Greatest value accepted.
        choices: Values accepted; empty when any is.
    """

    name: str
    kind: SettingKind
    default: SettingValue
    dynamic: bool
    takes_effect: TakesEffect
    unit: str
    group: str
    meaning: str
    note: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def parse(self, value: object) -> SettingValue:
        """Return a value of this setting's type.

        Text is read as `broker.conf` and the admin API write it: `true`, `10`, `0.25`, `a,b`, `[a, b]`,
        `Optional[1.0]`.

        Raises:
            SettingError: The value has another type, or lies outside the bounds.
        """
        parsed = self._typed(value.strip() if isinstance(value, str) else value)
        if isinstance(parsed, float | int) and not isinstance(parsed, bool):
            low = -math.inf if self.minimum is None else self.minimum
            high = math.inf if self.maximum is None else self.maximum
            if not low <= parsed <= high:
                allowed = f"from {_bound(low)} to {_bound(high)}" if high < math.inf else f"of {_bound(low)} or more"
                raise self._refuse(value, f"Use a number {allowed}{self._in_unit}.")
        named = parsed if isinstance(parsed, tuple) else (parsed,)
        if self.choices and any(isinstance(n, str) and n not in self.choices for n in named):
            raise self._refuse(value, f"Choose from {', '.join(self.choices)}.")
        return parsed

    def _typed(self, value: object) -> SettingValue:  # noqa: C901, PLR0911 - one case for each type
        match self.kind, value:
            case "boolean", bool():
                return value
            case "boolean", str() if value.lower() in _TRUE:
                return _TRUE[value.lower()]
            case (("int" | "long"), int()) if not isinstance(value, bool):
                return value
            case (("int" | "long"), float()) if value.is_integer():
                return int(value)
            case (("int" | "long"), str()) if _INTEGER.fullmatch(value):
                return int(value)
            case (("double" | "optional double"), int() | float()) if not isinstance(value, bool):
                return self._number(value, value)
            case "optional double", None | "" | "Optional.empty" | "null":
                return None
            case (("double" | "optional double"), str()):
                return self._number(value.removeprefix("Optional[").removesuffix("]"), value)
            case "string", str():
                return value
            case "names", str():
                inner = value.removeprefix("[").removesuffix("]")
                return tuple(part.strip() for part in inner.split(",") if part.strip())
            case "names", list() | tuple() | set() | frozenset() if all(isinstance(v, str) for v in value):
                return tuple(value)
        raise self._of_type(value)

    def _number(self, given: str | float, value: object) -> float:
        if isinstance(given, str):
            found = _NUMBER.fullmatch(given)
            if found is None:
                raise self._of_type(value)
            given = found[1]
        try:
            number = float(given)
        except OverflowError:
            number = math.nan
        if not math.isfinite(number):
            raise self._refuse(value, "Use a finite number.")
        return number

    @property
    def _in_unit(self) -> str:
        return f" ({self.unit})" if self.unit else ""

    def _of_type(self, value: object) -> SettingError:
        return self._refuse(value, f"{_AS_ITS_TYPE[self.kind]}{self._in_unit}.")

    def _refuse(self, value: object, remedy: str) -> SettingError:
        huge = isinstance(value, int) and value.bit_length() > _PRINTABLE_BITS
        shown = "This number" if huge else reprlib.repr(value)
        return SettingError(f"{shown} is not a valid value of this setting.", where=self.name, remedy=remedy)
