"""Which columns of a snapshot a strategy needs, and what is said where a snapshot does not have them.

A capture with few permissions, or a document written by hand, has zeros where nothing is known; a rule reads them as
numbers, so that its answer is one about an idle cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.once import once
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, BrokerTable, BundleTable


@dataclass(frozen=True, slots=True)
class Need:
    """Columns that tell a strategy one thing.

    Attributes:
        what: What they tell, as in `without message rates`.
        brokers: Columns of brokers.
        bundles: Columns of bundles.
    """

    what: str
    brokers: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ()


_LIMITS = ("cpu_limit_percent", "bandwidth_in_limit_kbit_per_s", "bandwidth_out_limit_kbit_per_s")
_SHORT = tuple(f"short_term_{name}" for name in TRAFFIC_COLUMNS)
USAGE: Final = Need("the CPU and network limits of brokers", brokers=_LIMITS)
AVERAGED_USAGE: Final = Need("the usage of brokers", brokers=(*_LIMITS, "weighted_max_ema"))
MESSAGE_RATES: Final = Need("message rates", TRAFFIC_COLUMNS[:2], (*TRAFFIC_COLUMNS[:2], *_SHORT[:2]))
THROUGHPUT: Final = Need("throughput", TRAFFIC_COLUMNS[2:], (*TRAFFIC_COLUMNS[2:], *_SHORT[2:]))

THROUGHPUT_OF_BUNDLES: Final = Need("throughput of bundles", bundles=THROUGHPUT.bundles)


@once
def lacking(snapshot: Snapshot, needs: tuple[Need, ...]) -> tuple[Need, ...]:
    """Return what a snapshot does not tell of what a strategy needs.

    A need is lacking where all its columns of a table are empty (zero, below it, or NaN) although the snapshot tells
    of traffic: a cluster without any traffic lacks nothing.
    """
    tables = snapshot.brokers, snapshot.bundles
    if not any(_is_known(table, TRAFFIC_COLUMNS) for table in tables):
        return ()
    return tuple(need for need in needs if _empty(tables[0], need.brokers) or _empty(tables[1], need.bundles))


def lacking_notes(strategy: str, snapshot: Snapshot, needs: tuple[Need, ...]) -> tuple[str, ...]:
    """Return the sentence that names what a strategy is decided without; none where it has all that it needs."""
    without = " and ".join(need.what for need in lacking(snapshot, needs))
    return (f"{strategy} is decided here without {without}. The snapshot does not contain this.",) if without else ()


def _is_known(table: BrokerTable | BundleTable, columns: Sequence[str]) -> bool:
    """Say whether some row has a number above zero in some of these columns."""
    return any(np.count_nonzero(getattr(table, name) > 0) for name in columns)


def _empty(table: BrokerTable | BundleTable, columns: Sequence[str]) -> bool:
    return bool(columns) and not _is_known(table, columns)
