"""Entries to read are what Pulsar's own estimator answered."""

import gzip
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from planner.pulsar.throttling.entries import LedgerSize, estimate_entries, messages_per_entry

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "dispatch_limits"


def test_estimates_as_recorded() -> None:
    with gzip.open(GOLDENS / "entries.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    for case in cases:
        ledgers = [LedgerSize(*ledger) for ledger in case["ledgers"]]
        position = (case["ledger"], case["entry"])
        assert estimate_entries(case["maxEntries"], case["maxBytes"], ledgers, position) == case["expected"], case
    assert len(cases) == 300


def test_one_entry_however_large() -> None:
    ledger = LedgerSize(1, 10, 10_000_000)
    assert estimate_entries(100, 1, [ledger], (1, 0)) == 1
    assert estimate_entries(100, 5_000, [], (1, 0)) == 1


def test_64_bytes_are_added_to_the_average() -> None:
    ledger = LedgerSize(1, 1000, 936_000)
    assert estimate_entries(100, 10_000, [ledger], (1, 5)) == 10
    assert estimate_entries(100, 9_999, [ledger], (1, 5)) == 9


ledger_sizes = st.builds(LedgerSize, st.integers(1, 9), st.integers(0, 50), st.integers(0, 10_000))


@given(st.integers(1, 100), st.integers(-5, 100_000), st.lists(ledger_sizes, max_size=4), st.integers(-1, 60))
def test_at_least_one_at_most_what_is_asked(most: int, most_bytes: int, ledgers: list[LedgerSize], entry: int) -> None:
    by_id = sorted({ledger.ledger_id: ledger for ledger in ledgers}.values(), key=lambda ledger: ledger.ledger_id)
    assert 1 <= estimate_entries(most, most_bytes, by_id, (3, entry)) <= most


@given(st.integers(1, 100), st.integers(-5, 100_000), ledger_sizes, st.integers(-1, 60))
def test_more_bytes_read_no_fewer_entries_of_one_ledger(
    most: int, most_bytes: int, ledger: LedgerSize, entry: int
) -> None:
    """Of several ledgers they may: what is left over counts with the average of the last one."""
    few, many = (estimate_entries(most, n, [ledger], (3, entry)) for n in (most_bytes, most_bytes + 1_000))
    assert few <= many


def test_the_average_moves_by_a_tenth() -> None:
    assert messages_per_entry(-1, 30, 10) == 3.0
    assert messages_per_entry(6.0, 1, 1) == 5.5
