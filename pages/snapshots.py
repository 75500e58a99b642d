"""Snapshots: load, check, keep, and take away."""

from planner.web import snapshots

snapshots.draw()
