"""Advisor: settings chosen by evidence from replays."""

from planner.web.advisor import draw

draw()
