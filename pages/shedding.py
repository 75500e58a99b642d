"""Shedding: what each strategy would unload with which settings, and why."""

from planner.web import shedding
from planner.web.widgets import open_page

view = open_page(
    "Shedding", "What a strategy unloads from this cluster with your settings, and why each bundle goes or stays."
)
if view is not None:
    shedding.draw(view)
