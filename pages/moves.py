"""Moves: what the scenario moves, whom it disconnects, and the commands to take away."""

from planner.web import plan_moves
from planner.web.scenarios import open_scenario_page

view = open_scenario_page(
    "Moves", "What moves in your scenario and why, what is wrong with it, and the commands to carry it out yourself."
)
if view is not None:
    plan_moves.draw(view)
