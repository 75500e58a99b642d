"""The version of the planner. It imports nothing, as the face of the package reads it at once."""

VERSION = "1.0.0"
"""As in `pyproject.toml`."""
