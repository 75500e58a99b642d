"""Why: every rule examined about a broker or bundle, and what would have to change."""

from planner.web import why
from planner.web.scenarios import open_scenario_page

view = open_scenario_page(
    "Why", "Pick a broker or a bundle and a cycle: every rule that was examined, and what would change the answer."
)
if view is not None:
    why.draw(view)
