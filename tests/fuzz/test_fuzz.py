"""Two thousand hostile inputs; `python -m tests.fuzz.fuzz` tries fifty thousand, or others by `--seed`."""

import warnings

import pytest

from tests.fuzz.fuzz import kind_of, run

_SHARE = 250


@pytest.mark.parametrize("first", range(0, 2_000, _SHARE))
def test_refused_in_words_or_usable(first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers at the edge of double precision
        outcomes, faults = run(14, first, _SHARE)
    assert faults == []
    assert sum(outcomes.values()) == _SHARE
    tried = {kind_of(number).__name__ for number in range(first, first + _SHARE)}
    assert {name.partition(":")[0] for name in outcomes} == tried
