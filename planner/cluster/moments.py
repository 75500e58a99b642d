"""Moments, in ms since 1970."""

import re
from datetime import UTC, datetime
from typing import Final

from planner.cluster.units import HOUR_MS, MS_PER_MIN

LAST_MS = 253_402_300_799_999
"""The last moment that anything here may have: the end of the year 9999, after which no calendar goes on."""

SECONDS_BELOW = 100_000_000_000
"""A time of 1973 in ms, and of the year 5138 in seconds: what is below is in seconds, what is not is in ms."""

TIMES_RESCALED: Final = (
    "times are in seconds instead of ms, or the other way round; they are read as times of these years"
)
"""What is said where that decides."""

_RELATIVE: Final = re.compile(r"now(?:-(\d{1,6})([smhd]))?")
_UNITS_MS: Final = {"s": 1_000, "m": MS_PER_MIN, "h": HOUR_MS, "d": 24 * HOUR_MS}


def parse_moment(text: str, now_ms: int) -> int:
    """Return a moment in ms since 1970: `2026-11-25`, `2026-11-25T03:00:00Z`, `now` or `now-2h`; UTC without a zone.

    Raises:
        ValueError: It is none of these.
    """
    relative = _RELATIVE.fullmatch(text)
    if relative is not None:
        back_ms = int(relative[1]) * _UNITS_MS[relative[2]] if relative[1] else 0
        at_ms = now_ms - back_ms
    else:
        try:
            at = datetime.fromisoformat(text)
            at_ms = round((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1_000)
        except OverflowError as error:
            raise ValueError(text) from error
    if not 0 < at_ms <= LAST_MS:
        raise ValueError(text)
    return at_ms


def iso_moment(at_ms: int) -> str:
    """Return a moment such as `2026-11-25T03:00:00Z`, with milliseconds where it has some."""
    at = datetime.fromtimestamp(at_ms / 1_000, tz=UTC)
    return at.isoformat(timespec="milliseconds" if at_ms % 1_000 else "seconds").replace("+00:00", "Z")
