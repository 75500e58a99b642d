"""What-if: change anything about the cluster and watch its load balancer."""

from planner.web import what_if
from planner.web.scenarios import open_scenario_page

view = open_scenario_page(
    "What-if", "Change the cluster, its traffic or its settings, and watch what Pulsar's load balancer does with it."
)
if view is not None:
    what_if.draw(view)
