"""Replay: a history under other strategies and settings."""

from planner.web import replay

replay.draw()
