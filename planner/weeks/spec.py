"""What advice over weeks is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.replay.runner import Runner

HORIZON_WEEKS: Final = 12
"""Weeks after a history to look at, unless others are asked for."""


@dataclass(frozen=True, slots=True)
class Weeks:
    """Which days of which clusters to look at, and where.

    Attributes:
        history: Folder of a history with topics: advise over its days instead of on a snapshot.
        cluster: Only these clusters of it; all by default.
        first_day: First day, yyyy-mm-dd in UTC; the first of the history by default.
        last_day: Last day, included; the last of the history by default.
        moments_per_day: Moments of each day to look at.
        horizon_weeks: Weeks after the history to look at, in which traffic grows as it did.
        runner: One process, a pool, or Spark: here, at SPARK_REMOTE, or at PLANNER_SPARK_MASTER.
        workers: Processes, cores of a local Spark, or tasks at once on a cluster; 0 for all.
    """

    history: Path | None = None
    cluster: tuple[str, ...] = ()
    first_day: str = ""
    last_day: str = ""
    moments_per_day: int = 4
    horizon_weeks: int = HORIZON_WEEKS
    runner: Runner = "processes"
    workers: int = 0
