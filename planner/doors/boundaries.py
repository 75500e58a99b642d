"""The boundaries of the bundles of a namespace, as an answer gives them."""

import re
from itertools import pairwise
from typing import Any, Final

from planner.cluster.ranges import FULL_HIGH

_BOUNDARY: Final = re.compile("0x([0-9a-f]{8})")


def boundaries_in(value: Any) -> tuple[int, ...]:
    """Return the boundaries that an answer gives; nothing where they do not ascend over the whole hash space."""
    texts = value.get("boundaries") if isinstance(value, dict) else None
    matches = [_BOUNDARY.fullmatch(t) if isinstance(t, str) else None for t in texts] if isinstance(texts, list) else []
    edges = tuple(int(match[1], 16) for match in matches if match)
    if len(edges) < 2 or len(edges) != len(matches) or edges[0] or edges[-1] != FULL_HIGH:  # noqa: PLR2004 - two ends
        return ()
    return edges if all(low < high for low, high in pairwise(edges)) else ()
