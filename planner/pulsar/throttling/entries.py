"""How many entries a dispatcher reads when it may read so many bytes.

Mirrors `EntryCountEstimator` of Pulsar 4.2.4 (module managed-ledger). The broker does not know the size of an entry
before it reads it, so it divides by the average of the ledger, 64 bytes added, and reads at least one entry however
large.
"""

from collections.abc import Sequence
from dataclasses import dataclass

ENTRY_OVERHEAD_BYTES = 64
"""Bytes that Pulsar adds to the average size of an entry."""

_KEPT = 0.9


@dataclass(frozen=True, slots=True)
class LedgerSize:
    """A ledger of a topic.

    Attributes:
        ledger_id: Its id.
        entries: Entries in it; of the open ledger, those there are now.
        size_bytes: Their size in all.
    """

    ledger_id: int
    entries: int
    size_bytes: int

    @property
    def average_bytes(self) -> int:
        """What one entry is expected to take of the bytes that may be read."""
        return max(1, self.size_bytes // self.entries) + ENTRY_OVERHEAD_BYTES


def estimate_entries(max_entries: int, max_bytes: int, ledgers: Sequence[LedgerSize], position: tuple[int, int]) -> int:
    """Return how many entries are read.

    Args:
        max_entries: Most entries to read, at least 1.
        max_bytes: Bytes that may be read.
        ledgers: The topic's ledgers by ascending id, the open one with what it holds now.
        position: Ledger id and entry id to read next; an entry id of -1 is that of the first.

    Returns:
        A number from 1 to `max_entries`.
    """
    ledger_id, entry = position
    left, count, last_average = max_bytes, 0, 0
    if max_bytes <= 0 or not ledgers:
        return 1
    for ledger in ledgers:
        if ledger.entries <= 0 or ledger.size_bytes <= 0:
            continue
        if ledger.ledger_id < ledger_id:
            last_average = ledger.average_bytes
            continue
        skipped = max(entry, 0) if ledger.ledger_id == ledger_id else 0
        there = ledger.entries - skipped
        last_average = ledger.average_bytes
        whole = ledger.size_bytes + ENTRY_OVERHEAD_BYTES * ledger.entries
        if left < whole or skipped > 0:
            read = min(max(1, left // last_average), max(there, 1))
            taken = read * last_average
        else:
            read, taken = ledger.entries, whole
        count += read
        left -= taken
        if left <= 0 or count >= max_entries:
            return min(max(count, 1), max_entries)
    if last_average:
        count += left // last_average
    return min(max(count, 1), max_entries)


def messages_per_entry(average: float, messages: int, entries: int) -> float:
    """Return the average of a consumer after another batch of entries was sent to it.

    It divides the permits of the consumer with `preciseDispatcherFlowControl`, rounded half up; it never divides what a
    dispatch limit leaves.

    Args:
        average: The average so far; 0 or less when nothing was sent yet.
        messages: Messages in the batch.
        entries: Entries in the batch, at least 1.
    """
    now = messages / entries
    return now if average <= 0 else average * _KEPT + now * (1 - _KEPT)
