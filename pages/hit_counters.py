"""Hit counters: what a leader counts over consecutive snapshots, and what fires when."""

from planner.web import hit_counters
from planner.web.widgets import open_page

view = open_page(
    "Hit counters", "How the counters of a strategy fill over consecutive snapshots, and in which cycle it acts."
)
if view is not None:
    hit_counters.draw(view)
