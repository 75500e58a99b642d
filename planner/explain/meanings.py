"""What each finding means, whatever the cluster: when it is reported."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from planner.cluster.files import packaged_rows

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {row["code"]: row["meaning"] for row in packaged_rows("planner.explain", "findings.csv")}
)
"""When a finding is reported, in a few sentences, by its code. `docs/findings.md` has the same."""
