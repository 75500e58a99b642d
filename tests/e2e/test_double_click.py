"""A double click where one is enough: the second half reaches a page that is left, or another edit."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from planner.share.link import decode_link
from tests.e2e.conftest import Server, Visitor

GAPS_MS = (40, 100)


def click_twice(visitor: Visitor, button: Locator, gap_ms: int) -> None:
    """Click twice where a button is now, whatever stands there the second time."""
    box = button.bounding_box()
    assert box is not None
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visitor.page.mouse.click(*at)
    visitor.page.wait_for_timeout(gap_ms)
    visitor.page.mouse.click(*at)


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
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


@pytest.mark.parametrize("gap_ms", GAPS_MS)
def test_one_edit_is_deleted(server: Server, visitor: Callable[..., Visitor], gap_ms: int) -> None:
    window = visitor()
    page = window.open(server.url, "Highest usage")
    for question in ("Grow 30 %", "Grow 50 %"):
        page.get_by_role("button", name=question).click()
        window.drawn("What-if")
        page.get_by_role("link", name="Overview", exact=True).click()
        window.drawn("Overview")
    page.goto(page.url.replace("/?", "/what-if?"))
    window.drawn("What-if")
    click_twice(window, page.locator('[class*="st-key-delete-0"] button').first, gap_ms)
    window.settled("bundles shed")
    assert edits(window) == ["1.5x traffic of the cluster"]
