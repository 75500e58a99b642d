"""Failure review: lose any one or two brokers, and grow until the first one saturates."""

from planner.web import failure_review
from planner.web.scenarios import open_scenario_page

view = open_scenario_page(
    "Failure review", "What happens when any one or two brokers are lost, and how far traffic can grow."
)
if view is not None:
    failure_review.draw(view)
