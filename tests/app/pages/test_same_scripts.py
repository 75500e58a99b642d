"""Scripts and steps are the same whether they come from a page or from the command line."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.__main__ import main
from planner.cluster.snapshot import Snapshot
from planner.share.link import encode_link
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.scenario import Scenario, Step
from planner.web import state
from planner.workspace.opening import open_snapshot
from planner.workspace.samples import samples

PIP = next(sample for sample in samples() if sample.file == "pip-364.json")
Page = Callable[..., AppTest]
Files = dict[str, Callable[[], bytes]]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """What a page offers to download, by the name of the file."""
    found: Files = {}
    draw = st.download_button

    def noted(label: str, data: Any, file: str, *others: Any, **options: Any) -> bool:
        found[file] = data
        return draw(label, data, file, *others, **options)

    monkeypatch.setattr(st, "download_button", noted)
    return found


@pytest.fixture(scope="module")
def five() -> Snapshot:
    return open_snapshot(PIP.file)[1]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> bytes:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out.encode()


@pytest.mark.parametrize("option", ["", "everything"])
def test_a_plan(page: Page, files: Files, five: Snapshot, capsys: pytest.CaptureFixture[str], option: str) -> None:
    moved = MoveBundle(bundle=five.bundle_names[int((five.bundles.owner == 3).argmax())], destination="broker-5:8080")
    steps = (Step(SplitBundle(bundle=five.bundle_names[0])), Step(moved))
    link = encode_link(Scenario(steps=steps, cycles=4, name="Friday"), PIP.digest, "a name")
    more = {option: "1"} if option else {}
    test = page("moves", snapshot=PIP.digest[:12], scenario=link, batch="3", pause="5", **more)
    assert not test.exception
    for box in [each for each in test.checkbox if each.label == "Show the commands anyway"]:
        box.check().run()
    words = ["plan", "--snapshot", PIP.file, "--scenario", link, "--batch", "3", "--pause", "5"]
    words += [f"--{option}"] if option else []
    script = printed(capsys, *words, "--commands")
    assert b"\nmove " in script
    assert files["plan.sh"]() == script
    warning = b"Warning: this plan is worse than doing nothing."
    assert script.index(b"\n# Question: split ") < script.index(b"\n# " + warning)
    assert script.index(b"\nexpect_at ") < script.index(b"\nsay '" + warning) < script.index(b"\nconfirm ")
    review = files["plan-steps.md"]()
    assert review.index(b"\n\nQuestion: split ") < review.index(warning) < review.index(b"\n| 1 | pause |")
    assert json.loads(files["plan-steps.json"]()) == json.loads(printed(capsys, *words, "--json"))["steps"]


def test_a_best_plan(page: Page, files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    state.add_sample(PIP)
    assert not page("best_plan", snapshot=PIP.digest[:12], moves="3").exception
    words = ["optimize", "--snapshot", PIP.file, "--moves", "3"]
    script = printed(capsys, *words, "--commands")
    assert script.count(b"\nmove ") == 3
    assert files["best-plan.sh"]() == script
    assert files["best-plan-undo.sh"]() == printed(capsys, *words, "--back")
    review = files["best-plan-steps.md"]().decode()
    assert review.index("\n\nQuestion: bring the highest usage down.") < review.index("\n| 1 | pause |")
    assert review.count(" | move | example/orders/") == 3
    assert json.loads(files["best-plan.json"]())["steps"] == json.loads(printed(capsys, *words, "--json"))["steps"]


def test_nothing_is_worse_where_there_is_nothing_to_carry_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Moves says what is worse of commands only; the command line and the script warned without any."""
    link = encode_link(Scenario(cycles=30), PIP.digest, "a name")
    words = ("plan", "--snapshot", "split-range.json", "--scenario", link, "--commands")
    for option in ((), ("--everything",)):
        assert main([*words, *option]) == 0
        told = capsys.readouterr()
        for text in (told.out.lower(), told.err.lower()):
            assert ("what pulsar does by itself is worse than" in text) == bool(option)
