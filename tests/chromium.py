"""The browser of the tests: one that is installed, or one that is brought and said so.

Candidates are the program that `PLANNER_CHROMIUM` names, Chromium, Chrome and Edge where systems put them, and
Playwright's own Chromium. Without any, Playwright's is downloaded; if that fails and the user is root on a system with
`apt-get`, the distribution's package is installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

MISSING = (
    "No Chromium, Chrome or Edge was found, and none could be installed: install one, or name its program in"
    " PLANNER_CHROMIUM."
)
"""Why tests that need a browser fail."""

_PROGRAMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
)
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_ANSWERS_S = 60


@cache
def _playwrights_own() -> str:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - needed by few runs

    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def _candidates() -> Iterator[str]:
    yield os.environ.get("PLANNER_CHROMIUM", "")
    yield from (shutil.which(program) or "" for program in _PROGRAMS)
    yield from _PLACES
    yield _playwrights_own()


def _starts(program: str) -> bool:
    """Say whether a program is there and finds the libraries it needs."""
    if not program or not Path(program).is_file():
        return False
    if sys.platform == "win32":
        return True  # there it opens a window instead of answering
    try:
        asked = subprocess.run([program, "--version"], capture_output=True, timeout=_ANSWERS_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def find_chromium() -> str:
    """Return the program of a browser that starts; empty where there is none."""
    return next((program for program in _candidates() if _starts(program)), "")


def bring_chromium(say: Callable[[str], None]) -> str:
    """Return the program of a browser, which is installed where there is none; empty where that fails.

    Args:
        say: Is told what is installed.
    """
    if found := find_chromium():
        return found
    say("No Chromium, Chrome or Edge found: downloading Playwright's Chromium (playwright install chromium).")
    if _runs([sys.executable, "-m", "playwright", "install", "chromium"]) and (found := find_chromium()):
        return found
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        say("That did not work: installing the distribution's package (apt-get install chromium).")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        _runs(["apt-get", "update", "-q"], quiet)
        _runs(["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"], quiet)
    return find_chromium()


def _runs(command: list[str], environment: dict[str, str] | None = None) -> bool:
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0
