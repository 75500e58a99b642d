"""Recommended numbers of bundles on later days: the benchmark's rule finds what is worse, and no luck."""

import pytest

from benchmarks import held_out
from benchmarks.held_out import SPEC, busiest, judged, lines


@pytest.fixture(autouse=True)
def few_other_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "OTHER_SEEDS", range(8, 20))


def test_a_mean_that_is_worse_by_luck_is_not_worse() -> None:
    """On this day the mean of eight simulations is worse with 19 than with 32 bundles."""
    day = judged(busiest(SPEC, 16, 2), "globex/orders", {"recommended": 16, "32": 32})
    assert day.tried["recommended"].against(day.tried["32"]).word == "worse"
    assert (day.better, day.worse) == (frozenset(), frozenset())


def test_a_number_that_is_bad_is_found_worse() -> None:
    """All of a large namespace in one bundle."""
    snapshot, namespace = busiest(SPEC, 21, 6), "acme/orders"
    good = judged(snapshot, namespace, {"recommended": 29, "today's": 29, "4": 1, "32": 29})
    assert (good.better, good.worse) == (frozenset({"4"}), frozenset())
    bad = judged(snapshot, namespace, {"recommended": 1, "today's": 29, "4": 1, "32": 29})
    assert (bad.better, bad.worse) == (frozenset(), frozenset({"today's", "32"}))
    said = list(lines([good, bad]))
    assert said[0].startswith("recommended against today's on 2 held-out days: worse on 1, better on 0, the same")
    assert "against 4 on 2 held-out days: worse on 0, better on 1, the same number on 1" in said[1]
    assert said[4] == "recommended against today's: worse on 1, better on 0"


def test_luck_is_measured_under_the_same_loads() -> None:
    """A number is compared with itself under other seeds: only where its bundles are placed differs."""
    assert [at % 5 for at in held_out.ITSELF_SEEDS] == [at % 5 for at in held_out.SEEDS]
    day = judged(busiest(SPEC, 16, 2), "globex/orders", {"recommended": 19, "today's": 19, "4": 19, "32": 19})
    ours, others = day.tried["recommended"].results, day.itself.results
    assert len(ours) == len(others)
    assert ours != others
    words = [day.tried["recommended"].against(day.itself).word]
    said = f"worse on {words.count('worse')}, better on {words.count('better')}"
    assert list(lines([day]))[-1] == f"recommended against itself, 8 others: {said}"
