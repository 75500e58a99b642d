"""Days of the week of moments in arrays; apart from `moments`, which help for commands reads without numpy."""

from typing import Final

from planner.cluster.arrays import BoolArray, Int64Array
from planner.cluster.units import DAY_MS

WEEK_DAYS: Final = 7
"""Days of a week."""
_SATURDAY: Final = 5
_THURSDAY: Final = 3  # 1970-01-01


def in_weekend(at_ms: Int64Array) -> BoolArray:
    """Say which moments, in ms since 1970, are on a Saturday or Sunday, UTC. Same shape."""
    found: BoolArray = (at_ms // DAY_MS + _THURSDAY) % WEEK_DAYS >= _SATURDAY
    return found
