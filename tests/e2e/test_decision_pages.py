"""Shedding, Split lab and Hit counters in a real browser: links, choices and what changes with them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from planner.workspace.samples import samples
from tests.e2e.conftest import Server, Visitor

Window = Callable[..., Visitor]


def opened(server: Server, window: Visitor, path: str, file: str, more: str, text: str) -> Page:
    """Open a link to a sample; the page has the names of both."""
    sample = next(s for s in samples() if s.file == file)
    page = window.open(f"{server.url}/{path}?snapshot={sample.digest[:12]}{more}", text)
    expect(page.get_by_role("combobox", name="Snapshot", exact=True)).to_have_value(re.compile(re.escape(sample.title)))
    expect(page).to_have_title(f"{page.get_by_role('heading', level=1).first.inner_text()} · {sample.title[:60]}")
    assert window.foreign == []
    return page


def choose(page: Page, label: str, option: str) -> None:
    """Pick an option as a person does: open the list, click."""
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=True).click()


def number(page: Page, setting: str) -> Locator:
    """The field of a setting that is a number; its label has the unit behind the name."""
    return page.get_by_role("spinbutton", name=re.compile(f"^{setting}\\b"))


def unfold(page: Page, title: str) -> None:
    """Open what is folded away under a title."""
    page.locator("summary").filter(has_text=title).click()


def no_traceback(page: Page) -> None:
    assert page.locator('[data-testid="stException"]').count() == 0


def test_another_strategy_moves_other_bundles(server: Server, visitor: Window) -> None:
    window = visitor()
    text = "ThresholdShedder sheds 1 bundle from 1 broker"
    page = opened(server, window, "shedding", "threshold-shedder-80.json", "", text)
    expect(page.get_by_text("from broker-1:8080 to broker-3:8080")).to_be_visible()
    choose(page, "Shedding strategy", "OverloadShedder")
    window.settled("OverloadShedder sheds nothing in the first cycle")
    page.wait_for_url("**scenario=1.**")
    field = number(page, "loadBalancerBrokerOverloadedThresholdPercentage")
    field.fill("70")
    field.press("Enter")
    window.settled("OverloadShedder sheds 1 bundle from 1 broker")
    expect(page.get_by_text("1 setting")).to_be_visible()
    choose(page, "Placement strategy", "RoundRobinBrokerSelector")
    window.settled("OverloadShedder sheds 1 bundle from 1 broker")
    unfold(page, "Why this broker")
    expect(page.get_by_text("Even distribution of the namespace's bundles").first).to_be_visible()
    expect(page.get_by_text("RoundRobinBrokerSelector compares the remaining candidates")).to_be_visible()
    no_traceback(page)
    again = visitor().open(page.url, "OverloadShedder sheds 1 bundle from 1 broker")
    expect(again.get_by_role("combobox", name="Placement strategy")).to_have_value("RoundRobinBrokerSelector")


def test_avg_shedder_on_one_side_only_is_a_warning(server: Server, visitor: Window) -> None:
    window = visitor()
    page = opened(server, window, "shedding", "avg-shedder.json", "", "AvgShedder sheds 1 bundle")
    expect(page.get_by_role("alert")).to_have_count(0)
    choose(page, "Placement strategy", "LeastLongTermMessageRate")
    window.settled("Also set loadBalancerLoadPlacementStrategy to AvgShedder")


def test_memory_is_taken_away_as_json(server: Server, visitor: Window, tmp_path: Path) -> None:
    window = visitor(height=2_400)
    page = opened(server, window, "shedding", "threshold-shedder.json", "", "What the leader remembers")
    unfold(page, "What the leader remembers")
    with page.expect_download() as waiting:
        # By key: while the table still unfolds, a press and its release may meet different elements.
        page.get_by_role("button", name="Download as JSON").press("Enter")
    kept = tmp_path / "memory.json"
    waiting.value.save_as(kept)
    memory = json.loads(kept.read_text(encoding="utf-8"))
    assert memory["shedding"]["state"]["usage_ema"]["broker-1:8080"] == pytest.approx(0.4)


def test_split_lab_another_algorithm_cuts_elsewhere(server: Server, visitor: Window) -> None:
    window = visitor()
    bundle = "&bundle=0x00000000_0x80000000"
    page = opened(server, window, "split-lab", "split-topic-count.json", bundle, "cut at 0x4d000000")
    expect(page.get_by_text("the documentation says 0x50000000; Pulsar 4.2.4 splits at 0x4d000000")).to_be_visible()
    choose(page, "Algorithm", "range_equally_divide")
    window.settled("cut at 0x40000000")
    page.wait_for_url("**algorithm=range_equally_divide**")
    choose(page, "Algorithm", "specified_positions_divide")
    window.settled("specified_positions_divide was requested without a position")
    field = page.get_by_role("textbox", name="Positions")
    field.fill("0x30000000, 0x60000000")
    field.press("Enter")
    window.settled("split at 0x30000000, 0x60000000")
    expect(page.get_by_text("Pulsar splits it by itself after")).to_be_visible(timeout=30_000)  # once it is tried
    expect(page.get_by_test_id("stCode").filter(has_text="805306368")).to_be_visible()


def test_split_lab_explains_a_refused_split(server: Server, visitor: Window) -> None:
    window = visitor()
    bundle = "&bundle=0x00000000_0x80000000"
    page = opened(server, window, "split-lab", "split-range.json", bundle, "would be split (HTTP 204)")
    choose(page, "Algorithm", "flow_or_qps_equally_divide")
    window.settled("would not be split: Pulsar refuses the request (HTTP 500)")
    expect(page.get_by_text("works by name only while it is also defaultNamespaceBundleSplitAlgorithm")).to_be_visible()
    window.shot("split-lab-refused")
    no_traceback(page)


def test_hit_counters_fill_sooner_with_a_lower_threshold(server: Server, visitor: Window) -> None:
    window = visitor()
    setting = "&loadBalancerAvgShedderHitCountHighThreshold=3"
    page = opened(server, window, "hit-counters", "avg-shedder.json", setting, "acts in cycle 3, 6, 9.")
    field = number(page, "loadBalancerAvgShedderHitCountHighThreshold")
    field.fill("5")
    field.press("Enter")
    window.settled("acts in cycle 5, 10.")
    choose(page, "Show counters of", "ThresholdShedder")
    window.settled("The usage that the strategy remembers")
    no_traceback(page)


def test_figures_of_a_namespace_have_room_for_their_labels(server: Server, visitor: Window) -> None:
    """A browser that has to make room for labels draws a figure twice: a choice was shown later by that."""
    page = visitor(width=1440, height=900).open(
        f"{server.url}/namespaces?snapshot={samples()[0].digest[:12]}", "All numbers of bundles"
    )
    for place in ("hash-line", "counts"):
        figure = page.locator(f".st-key-beside-chart-{place} .js-plotly-plot")
        figure.locator(".ytick").first.wait_for()
        asked, has = figure.evaluate("one => [one.layout.margin, one._fullLayout._size]")
        assert {side: has[side] for side in "lrtb"} == {side: asked[side] for side in "lrtb"}
