"""Shadow: what was predicted of a watched cluster, and what it did."""

from planner.web import shadow

shadow.draw()
