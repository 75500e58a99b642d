"""Throttling: which dispatch limit is in force, what it does over time, and what all topics may dispatch."""

from planner.web import throttling
from planner.web.widgets import open_page

view = open_page(
    "Throttling", "Which dispatch limit is in force for a topic and why, and what it does to backlog and delivery."
)
if view is not None:
    throttling.draw(view)
