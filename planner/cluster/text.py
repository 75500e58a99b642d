"""Numbers, times and names as people read them."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from planner.cluster.errors import HIDDEN
from planner.cluster.moments import LAST_MS
from planner.cluster.units import GIB, MIB

_JOINER = "\u2060"
_PARTED = (
    (re.compile(r"(?i)\b(www)\."), rf"\1{_JOINER}."),
    (re.compile(r"(?<=\S)@(?=\S)"), f"{_JOINER}@"),
    (re.compile(r"(?i)\b(https?|ftp|mailto|xmpp):"), rf"\1{_JOINER}:"),
    (re.compile(r":(?=[A-Za-z_]+[:/\[])"), f":{_JOINER}"),
)
_BEGINNING = re.compile(r"^(\d*)([-+.)=])")
_ALL_DIGITS = 1e4
_LEFT_OVER = 1e-9
_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY_STEPS = ((GIB, "Gi"), (MIB, "Mi"), (2**10, "Ki"))


def _scaled(value: float, unit: str, steps: Sequence[tuple[float, str]] = _STEPS) -> str:
    if not math.isfinite(value):
        return "unknown"
    for size, prefix in steps:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def msg_per_s(value: float) -> str:
    """Return a message rate such as `12.3 kmsg/s`."""
    return _scaled(value, "msg/s").replace("kmsg", "k msg").replace("Mmsg", "M msg").replace("Gmsg", "G msg")


def bytes_per_s(value: float) -> str:
    """Return a throughput such as `4.5 MiB/s`."""
    return _scaled(value, "B/s", _BINARY_STEPS)


def percent(fraction: float, digits: int = 1) -> str:
    """Return a fraction such as 0.714 as `71.4 %`."""
    return f"{fraction * 100:.{digits}f} %" if math.isfinite(fraction) else "unknown"


def times(factor: float) -> str:
    """Return a factor such as headroom as `1.33x`; `unlimited` if infinite."""
    return f"{factor:,.2f}x" if math.isfinite(factor) else number(factor)


def count(value: int, noun: str) -> str:
    """Return `1 broker`, `12,345 brokers`."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def quantity(value: float | None, unit: str = "", form: str = ",.4g") -> str:
    """Return a number with its unit, which loses its plural of 1; `none` where it is unknown, `no limit` of infinity.

    Args:
        value: The number.
        unit: Its unit; empty for counts.
        form: How fractions are written.
    """
    if value is None or math.isnan(value):
        return "none"
    if math.isinf(value):
        return "no limit"
    shown = f"{value:,}" if isinstance(value, int) else format(value, form)
    return f"{shown} {unit.removesuffix('s') if value == 1 and isinstance(value, int) else unit}".strip()


def number(value: float) -> str:
    """Return a number with four digits, a whole one with all of them: `0.4488`, `13,748`; `unlimited` if infinite."""
    if not math.isfinite(value):
        return "unlimited" if value > 0 else "unknown"
    whole = round(value)
    return f"{whole:,}" if value == whole else f"{value:,.4g}" if abs(value) < _ALL_DIGITS else f"{whole:,}"


def rounded(value: float) -> str:
    """Return a number with three digits: `51.9`, `54,400`; what is left of equal values by sums of fractions is 0."""
    return number(0.0 if abs(value) < _LEFT_OVER else float(f"{value:.3g}"))


def moment(at_ms: int) -> str:
    """Return a time in UTC such as `2026-11-21 04:30:12 UTC`."""
    if at_ms <= 0:
        return "unknown time"
    if at_ms > LAST_MS:
        return "after the year 9999"
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def period(first_day: str, last_day: str) -> str:
    """Return days from one to another, such as `2027-01-11 to 2027-01-13`; a single one by itself."""
    return first_day if first_day == last_day else f"{first_day} to {last_day}"


def short_digest(digest: str) -> str:
    """Return the first twelve digits of a digest, as links use it."""
    return digest[:12]


def plain(text: str) -> str:
    """Return text on one line in which nothing is Markdown, an address or an icon; names may come from anywhere.

    Signs that turn text around are spelled, as a topic may have them in its name.
    Addresses and icons are looked for in the finished text, so that a sign without width parts them.
    """
    text = HIDDEN.sub(lambda sign: sign[0].encode("unicode_escape").decode(), " ".join(text.split()))
    for found, parted in _PARTED:
        text = found.sub(parted, text)
    for mark in "\\`*_[]<>#|$~:":
        text = text.replace(mark, f"\\{mark}")
    return _BEGINNING.sub(r"\1\\\2", text)


def without_package(value: str) -> str:
    """Return the simple name of a Java class, any other text as it is."""
    return value.rpartition(".")[2] if value.startswith("org.") else value
