"""The browser of the tests is found, or brought and said so."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import chromium

WORKS, BROKEN = "#!/bin/sh\necho Chromium 1\n", "#!/bin/sh\nexit 127\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A machine without a browser, on which programs can be put; no download works there."""
    monkeypatch.setattr(chromium, "_PLACES", ())
    monkeypatch.setattr(chromium, "_playwrights_own", lambda: str(tmp_path / "own" / "chrome"))
    monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "own"))
    monkeypatch.delenv("PLANNER_CHROMIUM", raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cp", "chmod", "cat"):
        (programs / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(programs))

    def put(name: str, text: str) -> Path:
        path = programs / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    return put


def test_one_that_starts_is_found(machine: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert chromium.find_chromium() == ""
    machine("chromium", BROKEN)
    assert chromium.find_chromium() == ""
    edge = machine("microsoft-edge", WORKS)
    assert chromium.find_chromium() == str(edge)
    named = machine("mine", WORKS)
    monkeypatch.setenv("PLANNER_CHROMIUM", str(named))
    assert chromium.find_chromium() == str(named)


def test_nothing_is_installed_where_one_is_found(machine: Callable[[str, str], Path]) -> None:
    found = machine("google-chrome", WORKS)
    said: list[str] = []
    assert chromium.bring_chromium(said.append) == str(found)
    assert said == []


@pytest.mark.parametrize("root", [True, False])
def test_the_distribution_has_one_where_no_download_works(
    machine: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, *, root: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    target = machine("template", WORKS).with_name("chromium")
    apt = machine(
        "apt-get", f'#!/bin/sh\necho "$@" >>"$0.calls"\n[ "$1" = update ] || cp "{target.parent}/template" "{target}"\n'
    )
    said: list[str] = []
    found = chromium.bring_chromium(said.append)
    assert said[0].startswith("No Chromium, Chrome or Edge found: downloading")
    if root:
        assert found == str(target)
        assert said[1:] == ["That did not work: installing the distribution's package (apt-get install chromium)."]
        assert apt.with_name("apt-get.calls").read_text().splitlines()[-1].endswith("chromium")
    else:
        assert found == ""
        assert said[1:] == []
