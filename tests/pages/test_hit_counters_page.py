"""The Hit counters page: what a leader counts, and when it acts."""

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from planner.store.samples import samples

Page = Callable[..., AppTest]


def digest(file: str) -> str:
    return next(s.digest for s in samples() if s.file == file)[:12]


def shown(test: AppTest) -> str:
    return "\n".join(str(p.value) for p in [*test.markdown, *test.caption, *test.warning, *test.error])


def test_avg_shedder_fires_when_its_hits_are_enough(page: Page) -> None:
    test = page("hit_counters", snapshot=digest("avg-shedder.json"), loadBalancerAvgShedderHitCountHighThreshold="3")
    assert not test.exception
    assert "It acts in cycle 3, 6, 9." in shown(test)
    pairs = next(d.value for d in test.dataframe if "difference" in d.value.columns)
    # 70 and 30 % are 39.999998 points apart in single precision: that pair is no high hit.
    assert pairs["difference"].round(6).tolist() == [60.0, 39.999998, 0.0]
    assert pairs["high hits"].tolist()[1] == 0
    assert pairs["unloads"].tolist() == [True, False, False]
    counted = next(d.value for d in test.dataframe if "bundles unloaded" in d.value.columns)
    assert counted["bundles unloaded"].tolist()[:3] == [0, 0, 1]


def test_threshold_shedder_shows_its_averages(page: Page) -> None:
    test = page("hit_counters", snapshot=digest("threshold-shedder.json"), strategy="ThresholdShedder")
    assert not test.exception
    counted = next(d.value for d in test.dataframe if "bundles unloaded" in d.value.columns)
    assert counted["broker-1:8080"].round(6).tolist() == [40.0] * 10


def test_transfer_shedder_counts_cycles_in_a_row(page: Page) -> None:
    test = page(
        "hit_counters", snapshot=digest("transfer-shedder.json"), loadBalancerSheddingConditionHitCountThreshold="3"
    )
    assert not test.exception
    assert "It acts in cycle 4, 8." in shown(test)


def test_every_sample_opens(page: Page) -> None:
    for sample in samples():
        if sample.file.endswith(".json"):
            test = page("hit_counters", snapshot=sample.digest[:12])
            assert not test.exception, sample.file
            assert not test.error, sample.file
