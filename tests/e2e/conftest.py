"""A real server on a free port, and a real Chromium."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from planner.web import registry
from planner.web.registry import GROUPS
from tests.chromium import MISSING, find_chromium

ROOT = Path(__file__).parent.parent.parent
SHOTS = Path(os.environ.get("PLANNER_SCREENSHOTS", ROOT / "artifacts" / "screenshots"))
AS_A_PERSON = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# A window runs code for a second or two: to optimize it meanwhile takes longer than that saves.
ARGUMENTS = [*AS_A_PERSON, "--js-flags=--no-opt --no-maglev"]
_SHOT_MS = 20_000


# A busy machine draws a page in many seconds.
expect.set_options(timeout=30_000)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """The product, started as the README says."""

    def __init__(self, workspace: Path) -> None:
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        environment = {**os.environ, "PLANNER_WORKSPACE": str(workspace)}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2):  # noqa: S310 - our own server
                    return
            except OSError:
                time.sleep(0.2)
        self.stop()
        pytest.fail("the server did not start within a minute")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests that do not need a fresh one."""
    running = Server(tmp_path_factory.mktemp("e2e") / "planner.duckdb")
    yield running
    running.stop()


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    """A server that was just started, with an empty workspace."""
    running = Server(tmp_path / "planner.duckdb")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser that `tests.chromium` finds; its absence is a failure."""
    program = find_chromium()
    if not program:
        pytest.fail(MISSING, pytrace=False)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(args=ARGUMENTS, executable_path=program)
        yield opened
        opened.close()


def by_menu(page: Page, title: str) -> None:
    """Go to another page by the menu of a wide window: open the entry that has it, then click it."""
    group = next(group for group, names in GROUPS.items() for name in names if registry.page(name).title == title)
    if group:
        page.get_by_test_id("stTopNavSection").filter(has_text=group).click()
    page.get_by_role("menuitem" if group else "link", name=title, exact=True).click()


class Visitor:
    """A browser window that notes what should not happen."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.foreign: list[str] = []
        self.errors: list[str] = []
        self._heard: dict[Any, Callable[[Any], None]] = {
            "request": self._request,
            "console": lambda m: self.errors.append(m.text) if m.type == "error" else None,
            "pageerror": lambda e: self.errors.append(str(e)),
        }
        for event, hear in self._heard.items():
            page.on(event, hear)

    def _request(self, request: Request) -> None:
        if not request.url.startswith(("http://localhost:", "ws://localhost:", "data:", "blob:")):
            self.foreign.append(request.url)

    def leave(self) -> None:
        """Leave the window as a stranger would find it, but for the code it has loaded."""
        for event, hear in self._heard.items():
            self.page.remove_listener(event, hear)
        context = self.page.context
        for other in context.pages:
            if other != self.page:
                other.close()
        # An address of the same site keeps the process that has compiled the code; about:blank gets another one.
        self.page.goto("/".join([*self.page.url.split("/")[:3], "_stcore", "health"]))
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.mouse.move(0, 0)
        context.clear_cookies()

    def open(self, url: str, text: str) -> Page:
        """Open an address and wait until a text is shown and nothing runs any more."""
        self.page.goto(url)
        self.settled(text)
        return self.page

    def settled(self, text: str, *, timeout_s: float = 90.0) -> None:
        """Wait until a text is shown, the script has run to its end, and nothing is still being drawn.

        A table also has its cells as hidden elements; those are not what a person sees.
        """
        try:
            self.page.get_by_text(text, exact=False).filter(visible=True).first.wait_for(timeout=timeout_s * 1000)
        except PlaywrightError as error:
            shown = self.page.locator("body").inner_text()
            pytest.fail(f"{error}\nat {self.page.url} there is, after {self.errors}:\n{shown}")
        self._idle()

    def _idle(self) -> None:
        """Wait until the script has run to its end and nothing is still being drawn."""
        self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=60_000)
        expect(self.page.locator('[data-testid="stSkeleton"]')).to_have_count(0, timeout=60_000)

    def drawn(self, title: str, *, timeout_s: float = 90.0) -> None:
        """Wait until a page with this heading is drawn to its end."""
        expect(self.page.get_by_role("heading", name=title, level=1)).to_be_visible(timeout=timeout_s * 1000)
        self._idle()

    def shot(self, name: str, *, width: int = 0) -> None:
        """Keep a screenshot for people: of what is in the window, or of the whole page at a width."""
        if width:
            self.page.set_viewport_size({"width": width, "height": 900})
            tall = self.page.get_by_test_id("stMain").evaluate("e => e.scrollHeight")
            self.page.set_viewport_size({"width": width, "height": max(900, min(tall, 9_000))})
        SHOTS.mkdir(parents=True, exist_ok=True)
        skeletons = self.page.locator(
            '[data-testid="stSkeleton"], [data-testid="stElementContainer"][data-stale="true"]'
        )
        expect(skeletons).to_have_count(0, timeout=60_000)
        try:
            self.page.screenshot(path=SHOTS / f"{name}.png", timeout=_SHOT_MS)
        except PlaywrightTimeout:  # on a busy machine one in some hundred never comes; the second one does
            self.page.screenshot(path=SHOTS / f"{name}.png", timeout=_SHOT_MS)


@pytest.fixture(scope="session")
def windows() -> list[Page]:
    """The windows of all tests: what Streamlit's code costs a new one (3 s of processor time) is paid once for each."""
    return []


@pytest.fixture
def visitor(browser: Browser, windows: list[Page]) -> Iterator[Callable[..., Visitor]]:
    """Returns a function that opens a window, each with cookies of its own."""
    opened: list[Visitor] = []

    def window(*, width: int = 1400, height: int = 1000) -> Visitor:
        if len(opened) == len(windows):
            # What spins and fades is drawn sixty times a second, by the processor.
            context = browser.new_context(accept_downloads=True, reduced_motion="reduce")
            context.set_default_timeout(60_000)
            windows.append(context.new_page())
        page = windows[len(opened)]
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="light")
        opened.append(Visitor(page))
        return opened[-1]

    yield window
    for one in opened:
        try:
            one.leave()
        except PlaywrightError:  # crashed: the next test gets another
            windows.remove(one.page)
            one.page.context.close()
