"""Where the workspace lies, for those who do not open it."""

import os
from pathlib import Path
from typing import Final

WORKSPACE_VARIABLE: Final = "PLANNER_WORKSPACE"
"""The variable with its folder."""


def default_path() -> Path:
    """Return where the workspace lives: `PLANNER_WORKSPACE`, else `.workspace/planner.duckdb` in the current folder."""
    return Path(os.environ.get(WORKSPACE_VARIABLE) or Path(".workspace") / "planner.duckdb")
