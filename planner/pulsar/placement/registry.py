"""The placement strategies there are."""

import difflib
from functools import cache

from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_PLACEMENT_STRATEGY
from planner.pulsar.placement import (
    avg,
    least_long_term_message_rate,
    least_resource_usage,
    least_resource_usage_extensible,
    round_robin,
    round_robin_extensible,
)
from planner.pulsar.placement.protocol import Placement

PLACEMENTS: tuple[Placement, ...] = (
    least_long_term_message_rate.PLACEMENT,
    least_resource_usage.PLACEMENT,
    round_robin.PLACEMENT,
    avg.PLACEMENT,
    least_resource_usage_extensible.PLACEMENT,
    round_robin_extensible.PLACEMENT,
)
"""Every strategy; the default of Pulsar 4.2.4 first."""


@cache  # asked about every bundle that is placed
def placement_by_name(name: str, load_manager: LoadManager) -> Placement:
    """Return a strategy of a load manager by its simple or full Java class name.

    A class of another name that ends with that of a strategy, such as a recording subclass `RecAvgShedder`, is taken
    for that strategy.

    Raises:
        SettingError: The load manager has no such strategy; the nearest is named.
    """
    simple = name.rsplit(".", 1)[-1]
    own = {placement.name: placement for placement in PLACEMENTS if placement.load_manager is load_manager}
    ends = [known for known in own if simple.endswith(known)]
    if ends:
        return own[max(ends, key=len)]
    near = difflib.get_close_matches(simple, own, n=1, cutoff=0.0)
    raise SettingError(
        f"'{name}' is not a placement strategy of the {load_manager} load manager of Pulsar 4.2.4.",
        where=LOAD_PLACEMENT_STRATEGY,
        remedy=f"Did you mean {near[0]}?",
    )
