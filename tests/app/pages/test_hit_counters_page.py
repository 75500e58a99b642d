"""The Hit counters page: what a leader counts, and when it acts."""

import json
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from planner.web import registry, state
from planner.workspace.samples import load_sample, samples
from tests.app.pages.conftest import unlike_samples

Page = Callable[..., AppTest]


def digest(file: str) -> str:
    return next(s.digest for s in samples() if s.file == file)[:12]


def shown(test: AppTest) -> str:
    return "\n".join(str(p.value) for p in [*test.markdown, *test.caption, *test.warning, *test.error])


def test_avg_shedder_fires_when_its_hits_are_enough(page: Page) -> None:
    test = page("hit_counters", snapshot=digest("avg-shedder.json"), loadBalancerAvgShedderHitCountHighThreshold="3")
    assert not test.exception
    assert "**AvgShedder** acts in cycle 3, 6, 9." in shown(test)
    pairs = next(d.value for d in test.dataframe if "difference" in d.value.columns)
    # 70 and 30 % are 39.999998 points apart in single precision: that pair is no high hit.
    assert pairs["difference"].round(6).tolist() == [60.0, 39.999998, 0.0]
    assert pairs["high hits before"].tolist() == [2, 0, 0]
    assert pairs["high hits"].tolist() == [0, 0, 0]
    assert pairs["unloads"].tolist() == [True, False, False]
    counted = next(d.value for d in test.dataframe if "bundles selected" in d.value.columns)
    assert counted["bundles selected"].tolist()[:3] == [0, 0, 1]


def test_threshold_shedder_shows_its_averages(page: Page) -> None:
    test = page("hit_counters", snapshot=digest("threshold-shedder.json"), strategy="ThresholdShedder")
    assert not test.exception
    counted = next(d.value for d in test.dataframe if "bundles selected" in d.value.columns)
    assert counted["broker-1:8080"].round(6).tolist() == [40.0] * 10


def test_transfer_shedder_counts_cycles_in_a_row(page: Page) -> None:
    test = page(
        "hit_counters", snapshot=digest("transfer-shedder.json"), loadBalancerSheddingConditionHitCountThreshold="3"
    )
    assert not test.exception
    assert "**TransferShedder** acts in cycle 4, 8." in shown(test)


def test_a_link_keeps_the_cycles(page: Page) -> None:
    test = page("hit_counters", snapshot=digest("avg-shedder.json"), cycles="4")
    assert len(next(d.value for d in test.dataframe if "bundles selected" in d.value.columns)) == 4
    assert test.query_params["cycles"] == "4"


def test_consecutive_snapshots_are_gone_through_in_the_order_of_time(page: Page) -> None:
    quiet = load_sample(next(s for s in samples() if s.file == "avg-shedder.json"))
    alike = np.full(len(quiet.brokers), 50.0)
    before = replace(
        quiet,
        info=replace(quiet.info, captured_at_ms=quiet.info.captured_at_ms - 300_000),
        brokers=replace(quiet.brokers, cpu_usage_percent=alike),
    )
    shown(page("overview"))
    first = state.workspace().add(before, "earlier, balanced")
    later = state.workspace().add(quiet, "later, apart")
    test = page(
        "hit_counters",
        snapshot=later.digest[:12],
        sequence=f"{later.digest[:12]},{first.digest[:12]}",
        loadBalancerAvgShedderHitCountHighThreshold="2",
        cycles="3",
    )
    assert not test.exception
    assert "2 snapshots, the last one used for 3 cycles" in shown(test)
    assert "acts in cycle 3." in shown(test)  # one quiet cycle, then two hits
    missing = page("hit_counters", snapshot=later.digest[:12], sequence="0123456789ab")
    assert "0123456789ab” is not a valid value" in missing.warning[0].value


def test_automatic_splits_count_checks_in_a_row(page: Page) -> None:
    test = page(
        "hit_counters",
        snapshot=digest("real-extensible.json"),
        strategy="Automatic splits",
        defaultNamespaceBundleSplitAlgorithm="range_equally_divide",
        loadBalancerNamespaceBundleMaxTopics="1",
    )
    assert not test.exception
    assert "**Automatic splits** acts in cycle 4" in shown(test)
    rows = next(d.value for d in test.dataframe if "splits" in d.value.columns)
    assert rows["splits"].any()
    assert "4 cycles in a row" in rows[rows["splits"]]["why"].tolist()[0]


def test_every_kind_of_sample_opens(page: Page) -> None:
    for sample in unlike_samples():
        test = page("hit_counters", snapshot=sample.digest[:12])
        assert not test.exception, sample.file
        assert not test.error, sample.file


def cells(test: AppTest, label: str) -> list[list[str]]:
    """The counts drawn in the grid that stands below a label."""
    at = next(i for i, m in enumerate(test.markdown) if m.value.startswith(f"**{label}**"))
    assert "no counters to show" not in test.markdown[at].value
    grids = [json.loads(chart.proto.spec)["data"] for chart in test.get("plotly_chart")]
    drawn = [data for data in grids if data[0]["type"] == "heatmap"]
    labels = [m.value for m in test.markdown if " hits** (" in m.value and "no counters to show" not in m.value]
    texts: list[list[str]] = drawn[labels.index(test.markdown[at].value)][0]["text"]
    return texts


@pytest.mark.parametrize("needed", [1, 3])
def test_a_count_that_is_reached_is_drawn(page: Page, needed: int) -> None:
    test = page(
        "hit_counters", snapshot=digest("avg-shedder.json"), loadBalancerAvgShedderHitCountHighThreshold=str(needed)
    )
    assert not test.exception
    assert [row[:needed] for row in cells(test, "High hits")] == [[str(n) for n in range(1, needed + 1)]] * 2
    assert "A frame marks a cell that sheds or receives" in shown(test)


def test_a_count_that_is_reached_in_vain_is_crossed(page: Page) -> None:
    huge = {"minUnloadMessage": "2000000000", "minUnloadMessageThroughput": "2000000000"}
    test = page("hit_counters", snapshot=digest("avg-shedder.json"), **huge)
    assert "does not act in any of these cycles" in shown(test)
    assert cells(test, "High hits")
    assert "A cross marks a count that was reached, although no bundle fits" in shown(test)
    assert "A frame" not in shown(test)


def test_choices_one_after_the_other_all_count(page: Page) -> None:
    test = page("hit_counters", snapshot=digest("avg-shedder.json"))
    for name in ("ThresholdShedder", "AvgShedder", "ThresholdShedder"):
        next(s for s in test.selectbox if s.label == "Show counters of").set_value(name).run()
        assert f"**{name}** " in shown(test)
    for cycles in (3, 7, 5):
        next(n for n in test.number_input if n.label == "Cycles with the last snapshot").set_value(cycles).run()
        assert f"the last one used for {cycles} cycles" in shown(test)


def test_another_cycle_is_looked_at_without_deciding_anew(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    test = page("hit_counters", snapshot=digest("avg-shedder.json"), loadBalancerAvgShedderHitCountHighThreshold="4")
    asked: list[object] = []
    whole = registry.module("hit_counters").decide_cycles

    def counting(*given: object, **named: object) -> object:
        asked.append(given)
        return whole(*given, **named)

    monkeypatch.setattr(registry.module("hit_counters"), "decide_cycles", counting)
    test.slider[0].set_value(8).run()
    assert "in cycle 8**" in shown(test)
    assert not asked
    next(n for n in test.number_input if n.key == "setting-loadBalancerAvgShedderHitCountHighThreshold").set_value(5)
    test.run()
    assert asked


def test_when_another_strategy_would_act_is_told_as_soon_as_it_is_known(page: Page) -> None:
    test = page("hit_counters", snapshot=samples()[0].digest[:12])
    until = time.monotonic() + 60
    while "Instead: " not in shown(test) and time.monotonic() < until:
        test.run()
    assert "Instead: **AvgShedder** acts in cycle 2, 4, 6, 8, 10." in shown(test)
