"""The main story without a mouse: every key that is pressed counts, and each letter that is typed."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server, Visitor

_MOST_KEYS = 55
"""It takes 43, and some more on each of three pages where the focus of a button that is gone is lost."""
_PAST_MENUS = "Skip to main content"
_FOCUSED = """() => {const e = document.activeElement;
  return e.getAttribute('aria-label') || (e.matches('a, button, summary') ? e.innerText : '')}"""


class Keyboard:
    """A person who has nothing else.

    A button that opens another page goes away with its own page, and where its focus goes is left to the browser: to
    what stands there now, or behind the end, from where one comes to the link past the menus again, and takes it.
    """

    def __init__(self, page: Page) -> None:
        self.page, self.pressed = page, 0

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.pressed += 1
        assert self.pressed <= _MOST_KEYS

    def go(self, name: str) -> None:
        """Press Tab until what bears a name has the focus; the link past the menus is taken wherever it is met."""
        while not re.search(rf"(^|\n){re.escape(name)}$", focused := self.page.evaluate(_FOCUSED).strip()):
            self.press("Enter" if focused == _PAST_MENUS else "Tab")


def test_from_the_overview_to_commands(server: Server, visitor: Callable[..., Visitor]) -> None:
    window = visitor(width=1440, height=900)
    page = window.open(server.url, "Hottest bundles")
    # What arrives later is drawn again, and what had the focus then has it no more.
    expect(page.get_by_role("button", name=re.compile("^Stop"))).to_have_count(0)
    expect(page.get_by_text("hourglass_top")).to_have_count(0, timeout=120_000)
    window.settled("Hottest bundles")
    person = Keyboard(page)
    person.go("Drain a broker")
    person.press("Enter")
    expect(page.locator(".st-key-scenario-bar")).to_contain_text("drain broker-14")
    window.settled("bundles shed")
    person.go("Commands")
    person.press("Enter")
    window.settled("This plan is worse than doing nothing.")
    person.go("Show the commands anyway")
    person.press("Space")
    expect(page.get_by_test_id("stCode").filter(has_text="namespaces unload").first).to_be_visible()
