"""Where the files lie that come with the product and are no modules, and what its processes are not told."""

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
