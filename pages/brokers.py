"""Brokers: resources, what decides the score, and the bundles of each."""

from planner.web import brokers
from planner.web.widgets import open_page

view = open_page("Brokers", "Resources with their limits, which one decides the score, and the bundles of each broker.")
if view is not None:
    brokers.draw(view)
