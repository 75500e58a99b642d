"""Where the files lie that come with the product and are no modules, and what its processes are not told."""

import os
import re
from pathlib import Path
from typing import Final

TOKEN_VARIABLE: Final = re.compile(r"PLANNER_[A-Z0-9_]*TOKEN")
"""Variables that hold a token of a cluster: captures alone need it."""

_PACKAGE = Path(__file__).resolve().parents[1]


def resources() -> Path:
    """Return the folder with `app.py`, `pages`, `sample_snapshots` and `.streamlit`.

    A wheel has it inside the package; in a checkout it is the folder that the package lies in.
    """
    inside = _PACKAGE / "resources"
    return inside if inside.is_dir() else _PACKAGE.parent


def import_root() -> Path:
    """Return the folder from which Python imports this package, for processes that are started with it."""
    return _PACKAGE.parent


def process_environment() -> dict[str, str]:
    """Return the environment of a process that runs a module of this package: without tokens, and telling at once."""
    known = {name: value for name, value in os.environ.items() if not TOKEN_VARIABLE.fullmatch(name)}
    paths = [str(import_root()), *known.get("PYTHONPATH", "").split(os.pathsep)]
    return {**known, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}
