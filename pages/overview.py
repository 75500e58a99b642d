"""Overview: is this cluster balanced, and what happens at the next cycle?"""

from planner.web import overview
from planner.web.widgets import open_page

view = open_page("Overview", "Is the cluster balanced, what does Pulsar do at the next cycle, and why?")
if view is not None:
    overview.draw(view)
