"""Bundle map: the hash space of every namespace, down to one bundle and its topics."""

from planner.web import bundle_map
from planner.web.widgets import open_page

view = open_page(
    "Bundle map", "Where load lies in the hash space of every namespace, down to one bundle and its topics."
)
if view is not None:
    bundle_map.draw(view)
