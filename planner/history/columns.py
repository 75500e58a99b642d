"""Columns that grow with what is heard of: brokers, bundles and topics of a cluster, each row found by its name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.history.records import BROKER_VALUES, BUNDLE_VALUES, TOPIC_VALUES

NEVER = -1
"""A time that no moment is after."""

RATES = BUNDLE_VALUES[:4]
"""Rates and throughputs of a bundle."""

TOPIC_GAUGES = TOPIC_VALUES[:6]
"""Fields of a topic that are no counters."""

AVERAGES = tuple(f"{term}_term_{name}" for term in ("short", "long") for name in ("samples", *RATES))
"""Columns of the averages of a bundle."""


@dataclass
class Columns:
    """Rows of equally long columns that grow; a row is found by its name.

    Attributes:
        fill: What each column holds where nothing was said.
        number: Row of each name.
        names: Name of each row.
        arrays: The columns.
        room: Rows they have.
    """

    fill: dict[str, Any]
    number: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    room: int = 0

    def __post_init__(self) -> None:
        """Make room for the first row."""
        self.fit(1)

    def __len__(self) -> int:
        return len(self.names)

    def row(self, name: str) -> int:
        """Return the row of a name; a new one comes last."""
        found = self.number.setdefault(name, len(self.names))
        if found == len(self.names):
            self.names.append(name)
        return found

    def fit(self, count: int | None = None) -> None:
        """Make room for so many rows, for all there are by default."""
        wanted = len(self.names) if count is None else count
        if wanted <= self.room:
            return
        for name, value in self.fill.items():
            array = self.arrays.get(name)
            have = 0 if array is None else len(array)
            if have < wanted:
                shape = (max(wanted, 2 * have) - have, *np.shape(value))
                more = np.full(shape, value, dtype=np.asarray(value).dtype)
                self.arrays[name] = more if array is None else np.concatenate((array, more))
        self.room = min(map(len, self.arrays.values()), default=wanted)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.arrays[name]


def broker_columns() -> Columns:
    """Return the columns of brokers, without a row."""
    return Columns(
        {
            "values": np.full(len(BROKER_VALUES), np.nan),
            "until_ms": NEVER,
            "spoke_ms": NEVER,
            "reports": False,
            "complete": False,
            "by_samples": False,
        }
    )


def bundle_columns() -> Columns:
    """Return the columns of bundles, without a row."""
    return Columns(
        {
            "owner": NEVER,
            "owner_ms": NEVER,
            "owner_until_ms": NEVER,
            "stats": np.zeros(len(BUNDLE_VALUES)),
            "stats_ms": NEVER,
            "stats_until_ms": NEVER,
            "rank": NEVER,
            "rank_by": NEVER,
            "has_data": False,
            "data_topics": 0,
            **{name: 0 if name.endswith("samples") else 0.0 for name in AVERAGES},
        }
    )


def topic_columns() -> Columns:
    """Return the columns of topics, without a row."""
    return Columns(
        {
            "space": 0,
            "hash": 0,
            "owner": NEVER,
            "owner_ms": NEVER,
            "until_ms": NEVER,
            "by_samples": False,
            "listed_ms": NEVER,
            "gauges": np.full(len(TOPIC_GAUGES), np.nan),
        }
    )
