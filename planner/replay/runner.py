"""Where replays run."""

from typing import Literal, TypeAlias

Runner: TypeAlias = Literal["local", "processes", "spark"]
"""Where a job runs: in one process, in a pool of processes, or on Spark."""
