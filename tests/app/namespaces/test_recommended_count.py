"""Which number of bundles is recommended: today's, unless another one is better beyond luck."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from planner.namespaces.advice import MOST_SEEDS, MOSTLY, TriedCount, bundle_advice
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.judge import judge
from tests.app.simulate.test_judge import CALM


def tried(bundles: int, peaks: Sequence[float]) -> TriedCount:
    return TriedCount(bundles, tuple(replace(CALM, end_peak_percent=one) for one in peaks), 0)


@pytest.mark.parametrize(
    ("peaks", "answer"),
    [
        ((60,) * 8, "holds"),
        ((60,) * 6 + (75,) * 2, "holds"),
        ((40,) * 5 + (75,) * 3, "fails"),  # better on average, but under too few seeds
        ((69,) * 6 + (84,) * 2, "fails"),
        ((70,) * 8, "fails"),
        ((60, 60, 75), "fails"),
    ],
)
def test_one_has_to_be_better_on_average_and_under_most_seeds(peaks: Sequence[float], answer: str) -> None:
    assert tried(32, peaks).holds_against(tried(8, (70,) * 8)) is (answer == "holds")


def test_every_number_but_todays_is_left_once_it_cannot_be_recommended() -> None:
    spec = ClusterSpec(brokers=4, bundles=24, topics=300, namespaces=2, msg_rate_per_s=60_000)
    snapshot = generate(spec, 3)
    advice = bundle_advice(snapshot, snapshot.namespaces[0])
    today = next(one for one in advice.tried if one.bundles == advice.now.bundles)
    assert len(today.results) == MOST_SEEDS
    assert len({one.highest_percent for one in today.results}) > 1, "seeds are without effect"
    for one in advice.tried:
        words = [judge(*pair).word for pair in zip(today.results, one.results, strict=False)]
        lost = sum(word != "better" for word in words)
        assert len(words) == MOST_SEEDS or lost > (1 - MOSTLY) * MOST_SEEDS
        if one.bundles == advice.recommended != today.bundles:
            assert one.holds_against(today)
    if advice.recommended == today.bundles:
        assert not any(one.holds_against(today) for one in advice.tried)


def test_the_mean_of_results_counts_topics_whole() -> None:
    mean = tried(4, (60, 71)).result
    assert mean.end_peak_percent == pytest.approx(65.5)
    assert mean.all_topics == CALM.all_topics
    assert isinstance(mean.topics, int)
