"""Values of settings that make no sense in the unit of the setting, and a lot in another one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.cluster.files import packaged_rows
from planner.cluster.setting import Setting
from planner.cluster.settings import Settings
from planner.cluster.units import KBIT_PER_GBIT, MIB, MS_PER_MIN, MS_PER_S, S_PER_MIN

_DAY_MIN: Final = 1440
_ROUND_MIN: Final = 360
"""Whole quarters of a day, and whole days, are meant as they stand."""
_K: Final = 1024
_OTHER_UNITS: Final[Mapping[str, Mapping[str, float]]] = {
    "min": {"seconds": 1 / S_PER_MIN, "milliseconds": 1 / MS_PER_MIN},
    "s": {"milliseconds": 1 / MS_PER_S},
    "ms": {"seconds": float(MS_PER_S), "minutes": float(MS_PER_MIN)},
    "bytes": {"KiB": float(_K), "MiB": float(MIB)},
    "bytes/s": {"MiB/s": float(MIB)},
    "MiB/s": {"KiB/s": 1 / _K, "bytes/s": 1 / MIB},
    "Gbit/s": {"Mbit/s": 1 / 1000, "kbit/s": 1 / KBIT_PER_GBIT, "bit/s": 1 / (1000 * KBIT_PER_GBIT)},
    "percent": {"a share of 1": 100.0},
    "ratio": {"percent": 1 / 100},
}
"""By the unit of a setting: other units that people write, and how many of its own unit one of each is."""


@dataclass(frozen=True, slots=True)
class Sense:
    """Which values of a setting make sense.

    Attributes:
        least: The least one, in the unit of the setting; 0 and below switch something off and are never looked at.
        most: The greatest one.
        usual: What is usual; None for the default of the release.
        also: Further values that make sense.
        simulated: Whether a simulation takes the setting into account.
    """

    least: float
    most: float
    usual: float | None
    also: frozenset[float]
    simulated: bool


@dataclass(frozen=True, slots=True)
class Meant:
    """What a value was meant to be.

    Attributes:
        value: In the unit of the setting.
        unit: The unit in which it was written instead.
    """

    value: int | float
    unit: str


SENSIBLE: Final[Mapping[str, Sense]] = {
    row["name"]: Sense(
        float(row["least"]),
        float(row["most"]),
        float(row["usual"]) if row["usual"] else None,
        frozenset(map(float, row["also"].split())),
        row["simulated"] == "yes",
    )
    for row in packaged_rows("planner.explain", "sensible_values.csv")
}
"""Every setting with a unit that is easily taken for another one.

Shares and weights of 1 have rules of their own (see `planner.explain.setting_rules`), and brokers do not start with a
fraction where a whole percentage is read. Numbers of things have no other unit.
"""


def unit_meant(config: Settings, name: str) -> Meant | None:
    """Return what the value of a setting was meant to be; None where it makes sense, or no other unit makes it so.

    Args:
        config: The settings.
        name: The setting.
    """
    sense = SENSIBLE.get(name)
    if sense is None or name not in config:
        return None
    value = config[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    setting = config.of(name)
    if sense.least <= value <= sense.most or value in sense.also or _is_round(setting, value):
        return None
    usual = sense.usual or setting.default
    near = float(usual) if isinstance(usual, int | float) and usual > 0 else 1.0
    fitting = [
        Meant(exact, unit)
        for unit, times in _OTHER_UNITS[setting.unit.partition(" ")[0]].items()
        if (exact := _of_kind(setting, value * times)) is not None and sense.least <= exact <= sense.most
    ]
    return min(fitting, key=lambda one: abs(math.log(one.value / near)), default=None)


def _is_round(setting: Setting, minutes: float) -> bool:
    """Say whether a time in minutes is a whole part of a day, or some days, which is meant as it stands."""
    if setting.unit != "min" or minutes > 7 * _DAY_MIN:
        return False
    return minutes % (_ROUND_MIN if minutes < _DAY_MIN else _DAY_MIN) == 0


def _of_kind(setting: Setting, value: float) -> int | float | None:
    """Return a value as the setting has it; None where it takes whole numbers and this is none."""
    exact = round(value, 9)
    if setting.kind in {"int", "long"}:
        return int(exact) if exact.is_integer() else None
    return exact
