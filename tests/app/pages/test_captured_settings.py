"""A snapshot whose settings could not be captured says so first, on pages, in commands and in reports."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from streamlit.testing.v1 import AppTest

from planner.__main__ import main
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import plain
from planner.explain.captured_settings import settings_warning
from planner.formats.document import write_document
from planner.shadow.watched import ShadowWatch
from planner.share.report import markdown_report
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.web import registry, state
from planner.web.page import Subject
from planner.workspace.samples import load_sample, samples

START = "Settings were not captured: Pulsar 4.2.4's defaults are shown, so decisions may differ from your cluster's."
MOMENT = 1_800_000_123_456
PAGES = [name for name in registry.NAMES if registry.page(name).subject is not Subject.NOTHING]


@pytest.fixture
def bare() -> Snapshot:
    """A cluster whose settings were not captured."""
    sample = load_sample(next(one for one in samples() if one.title.startswith("ThresholdShedder: 40")))
    return replace(sample, info=replace(sample.info, settings_from="defaults", captured_at_ms=MOMENT))


@pytest.mark.parametrize("name", PAGES)
def test_every_page_says_it_before_its_content(page: Callable[..., AppTest], bare: Snapshot, name: str) -> None:
    saved = state.workspace().add(bare, "bare")
    drawn = page(name, snapshot=saved.digest)
    assert not drawn.exception
    said = [warning.value for warning in drawn.warning]
    assert plain(START) in said[0]
    folded = [warning.value for fold in drawn.expander for warning in fold.warning]
    assert not any("Settings were not captured" in text for text in folded)


@pytest.mark.parametrize("source", ["", "brokers"])
def test_nothing_is_said_otherwise(
    page: Callable[..., AppTest], bare: Snapshot, source: Literal["", "brokers"]
) -> None:
    at = bare.info.captured_at_ms + 1 + bool(source)  # what a server keeps of a digest stays
    known = replace(bare, info=replace(bare.info, settings_from=source, captured_at_ms=at))
    saved = state.workspace().add(known, "known")
    assert not any("Settings were not captured" in w.value for w in page("overview", snapshot=saved.digest).warning)


def test_dynamic_overrides_that_are_shown_are_named(bare: Snapshot) -> None:
    info = replace(bare.info, dynamic_settings={"loadBalancerSheddingEnabled": "false"})
    assert "4.2.4's defaults and the dynamic overrides are shown" in settings_warning(info)


@pytest.mark.parametrize(
    "command", ["plan", "plan --json", "plan --commands", "optimize", "optimize --json", "upgrade"]
)
def test_commands_warn_on_standard_error(
    bare: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path, scenario = tmp_path / "bare.json", tmp_path / "scenario.json"
    path.write_text(write_document(bare))
    scenario.write_text('{"version": 1, "cycles": 2}')
    name, *words = command.split()
    given = ["--scenario", str(scenario)] if name == "plan" else []
    assert main([name, "--snapshot", str(path), *given, *words]) == 0
    said = capsys.readouterr()
    assert f"warning: {START}" in said.err
    assert "warning:" not in said.out


def test_report_says_it_before_the_question(bare: Snapshot) -> None:
    text = markdown_report(simulate(bare, Scenario(cycles=1)))
    assert START in text
    assert text.index("Settings were not captured") < text.index("What does the load balancer do")


def test_shadow_says_it_once(bare: Snapshot) -> None:
    told: list[str] = []
    watch = ShadowWatch(None, lambda _: None, complain=told.append)
    for n in range(3):
        watch.add(replace(bare, info=replace(bare.info, captured_at_ms=bare.info.captured_at_ms + n * 10_000)))
    assert [line for line in told if START in line] == [f"warning: {settings_warning(bare.info)}"]
