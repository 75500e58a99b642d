"""Split lab: where a bundle would be cut, by which algorithm, and what becomes of the request."""

from planner.web import split_lab
from planner.web.widgets import open_page

view = open_page("Split lab", "Where a bundle would be cut, what its children hold, and which splits Pulsar refuses.")
if view is not None:
    split_lab.draw(view)
