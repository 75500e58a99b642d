"""Every resource of every broker in one figure, drawn."""

from planner.cluster.snapshot import Snapshot
from planner.explain.cluster_tables import resource_shares, resource_text
from planner.figures.scores import resource_map
from planner.web.widgets import chart


def show_resources(snapshot: Snapshot, name: str) -> None:
    """Draw each broker's resources in percent of their limits.

    Args:
        snapshot: The cluster.
        name: Key of the widget.
    """
    shares = resource_shares(snapshot)
    chart(resource_map(shares), resource_text(shares), name)
