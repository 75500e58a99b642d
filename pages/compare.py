"""Compare: several scenarios side by side, the best of each measure marked."""

from planner.web import compare
from planner.web.scenarios import open_scenario_page

view = open_scenario_page("Compare", "Two to eight scenarios on the same cluster, side by side.")
if view is not None:
    compare.draw(view)
