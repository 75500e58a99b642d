"""A double click where one is enough: the second half reaches a page that is left, or another edit."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from planner.share.link import decode_link, encode_link
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.scenario import Scenario, Step
from planner.web.widgets import DOUBLE_CLICK_S
from planner.workspace.samples import samples
from tests.e2e.conftest import Server, Visitor

GAPS_MS = (40, 100)


def click_twice(visitor: Visitor, button: Locator, gap_ms: int) -> None:
    """Click twice where a button is now, whatever stands there the second time; the browser itself keeps the time."""
    box = button.bounding_box()
    assert box is not None
    visitor.page.evaluate(
        """async ([x, y, gapMs]) => {
            document.elementFromPoint(x, y).click();
            await new Promise(done => setTimeout(done, gapMs));
            document.elementFromPoint(x, y).click();
        }""",
        [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, gap_ms],
    )


def edits(visitor: Visitor) -> list[str]:
    text = visitor.page.evaluate("new URLSearchParams(location.search).get('scenario')")
    scenario = decode_link(text).scenario if text else None
    return [edit.phrase() for edit in scenario.edits] if scenario is not None else []


@pytest.mark.parametrize("gap_ms", GAPS_MS)
def test_a_question_is_asked_once(server: Server, visitor: Callable[..., Visitor], gap_ms: int) -> None:
    window = visitor()
    page = window.open(server.url, "Highest usage")
    click_twice(window, page.get_by_role("button", name="Grow 30 %"), gap_ms)
    window.drawn("What-if")
    assert edits(window) == ["1.3x traffic of the cluster"]
    page.go_back()
    window.drawn("Overview")


@pytest.mark.parametrize("gap_ms", GAPS_MS)
def test_one_edit_is_deleted(server: Server, visitor: Callable[..., Visitor], gap_ms: int) -> None:
    three = [Step(TrafficGrowth(factor=factor)) for factor in (1.3, 1.5, 1.7)]
    link = encode_link(Scenario(steps=tuple(three)), samples()[0].digest)
    window = visitor()
    page = window.open(f"{server.url}/what-if?scenario={link}", "bundles shed")
    deletes = page.locator('[class*="st-key-delete-"]')
    expect(deletes).to_have_count(3)
    click_twice(window, deletes.first, gap_ms)
    expect(deletes).to_have_count(2)
    page.wait_for_timeout(1_000 * DOUBLE_CLICK_S)
    window.drawn("What-if")
    assert edits(window) == ["1.5x traffic of the cluster", "1.7x traffic of the cluster"]
