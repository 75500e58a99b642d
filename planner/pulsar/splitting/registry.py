"""The split algorithms there are."""

import difflib

from planner.cluster.errors import SettingError
from planner.cluster.names import DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM
from planner.pulsar.splitting import (
    flow_or_qps_equally_divide,
    range_equally_divide,
    specified_positions_divide,
    topic_count_equally_divide,
)
from planner.pulsar.splitting.protocol import SplitAlgorithm

SPLIT_ALGORITHMS: tuple[SplitAlgorithm, ...] = (
    range_equally_divide.ALGORITHM,
    topic_count_equally_divide.ALGORITHM,
    specified_positions_divide.ALGORITHM,
    flow_or_qps_equally_divide.ALGORITHM,
)
"""Every algorithm; the default of Pulsar 4.2.4 first."""


def split_algorithm(name: str) -> SplitAlgorithm:
    """Return an algorithm by its name in `supportedNamespaceBundleSplitAlgorithms`.

    Raises:
        SettingError: There is no such algorithm; the nearest is named.
    """
    for algorithm in SPLIT_ALGORITHMS:
        if algorithm.name == name:
            return algorithm
    near = difflib.get_close_matches(name, [a.name for a in SPLIT_ALGORITHMS], n=1, cutoff=0.0)
    raise SettingError(
        f"'{name}' is not a split algorithm of Pulsar 4.2.4.",
        where=DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
        remedy=f"Did you mean {near[0]}?",
    )


HALVES = range_equally_divide.ALGORITHM.name
"""The algorithm that cuts a range in the middle, whatever its topics."""


def default_split_algorithm(name: str) -> SplitAlgorithm:
    """Return what Pulsar uses for `defaultNamespaceBundleSplitAlgorithm`: range_equally_divide when it is unknown."""
    return next((a for a in SPLIT_ALGORITHMS if a.name == name), range_equally_divide.ALGORITHM)
