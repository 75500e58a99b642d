"""The number that the text of a setting means, where brokers cannot read it."""

import re
from typing import Final

from planner.cluster.errors import SettingError
from planner.cluster.setting import Setting, conf_value

_NUMBERS: Final = frozenset({"int", "long", "double", "optional double"})
_HUNDRED: Final = 100
_WRITTEN: Final = re.compile(
    r"[\s\"'`]*(?P<number>[+-]?[0-9][0-9_]*(?:,[0-9]{3})*(?:[.,][0-9]+)?)\s*(?P<unit>%|[A-Za-z/]{1,12})?"
    r"[\s\"'`;,]*(?:(?:#|//|;).*)?"
)
"""A number with a unit, quotes, or a remark behind it."""
_TIMES: Final = {
    ("", ""): 1.0,
    ("%", "percent"): 1.0,
    ("%", "percentage points"): 1.0,
    ("%", "score points"): 1.0,
    ("%", "fraction"): 1 / _HUNDRED,
    ("%", "factor"): 1 / _HUNDRED,
    ("k", ""): 1e3,
    ("m", "min"): 1.0,
    ("min", "min"): 1.0,
    ("mins", "min"): 1.0,
    ("minute", "min"): 1.0,
    ("minutes", "min"): 1.0,
    ("h", "min"): 60.0,
    ("s", "s"): 1.0,
    ("sec", "s"): 1.0,
    ("seconds", "s"): 1.0,
    ("min", "s"): 60.0,
    ("ms", "ms"): 1.0,
    ("s", "ms"): 1e3,
    ("m", "MiB/s"): 1.0,
    ("mb", "MiB/s"): 1.0,
    ("mib", "MiB/s"): 1.0,
    ("mb/s", "MiB/s"): 1.0,
    ("mbytes", "MiB/s"): 1.0,
    ("g", "MiB/s"): 1024.0,
    ("gb", "MiB/s"): 1024.0,
    ("k", "bytes/s"): 1024.0,
    ("kb", "bytes/s"): 1024.0,
    ("m", "bytes/s"): 1048576.0,
    ("mb", "bytes/s"): 1048576.0,
    ("mib", "bytes/s"): 1048576.0,
    ("gbps", "Gbit/s"): 1.0,
    ("mbps", "Gbit/s"): 1e-3,
    ("g", "Gbit/s"): 1.0,
}
"""How many of the unit of a setting a written unit is; a setting without one takes numbers alone."""


def number_meant(setting: Setting, text: str) -> str:
    """Return the number that a text means, as `broker.conf` has it; empty where that is not clear.

    Args:
        setting: The setting, which cannot have the text as its value.
        text: The text, such as `70%`, `30_000`, `100MB` or `5 # minutes`.
    """
    found = _WRITTEN.fullmatch(text) if setting.kind in _NUMBERS else None
    if found is None:
        return ""
    number = _plain(found["number"])
    times = _times((found["unit"] or "").lower(), setting.unit)
    if times is None:
        return ""
    if setting.unit == "percent" and setting.kind == "int" and 0 < number < 1 and not found["unit"]:
        times = float(_HUNDRED)
    exact = round(number * times, 9)
    try:
        return conf_value(setting.parse(int(exact) if exact.is_integer() else exact))
    except SettingError:
        return ""


def _plain(number: str) -> float:
    """Return a number whose thousands may be parted, and whose fraction may follow a comma."""
    number = number.replace("_", "")
    if re.fullmatch(r"[+-]?0,[0-9]+|[+-]?[0-9]+,[0-9]{1,2}", number):
        return float(number.replace(",", "."))
    return float(number.replace(",", ""))


def _times(written: str, unit: str) -> float | None:
    for of in (unit.partition(" ")[0], unit, ""):
        if (times := _TIMES.get((written, of))) is not None and (of or written in {"", "k"}):
            return times
    return None
