"""Remedies on pages: what was tried is said, and only what helps can be clicked."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from planner.share.link import decode_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.web import state
from planner.workspace.samples import samples

Page = Callable[..., AppTest]


def digest(file: str) -> str:
    return next(one.digest for one in samples() if one.file == file)


def test_a_remedy_that_helps_is_one_click_away(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.web.registry.go", lambda _: None)
    test = page("what_if", snapshot=digest("uniform-shedder-throughput.json")[:12])
    start = "Set maxUnloadPercentage = "
    button = next(b for b in test.button if b.label.startswith(start))
    tried = "Tried: trade-off: highest usage 58.1 to 50.0 %, deviation 8.1 to 0.0 points"
    assert any(tried in text.value for text in test.text)
    wanted = button.label.removeprefix(start)
    button.click().run()
    assert not test.exception
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    assert str(scenario.settings["maxUnloadPercentage"]) == wanted


def test_a_remedy_that_does_not_help_has_no_button(page: Page) -> None:
    test = page("what_if", snapshot=digest("story.zip")[:12])
    shown = [text.value for text in test.text]
    assert any("Tried: worse: " in text for text in shown), shown
    assert not [b for b in test.button if b.label.startswith("Set loadBalancerBundleUnloadMin")]


def test_fix_it_answers_where_the_person_clicked(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    went: list[str] = []
    monkeypatch.setattr("planner.web.registry.go", went.append)
    test = page("overview", snapshot=digest("threshold-shedder-80.json")[:12])
    next(b for b in test.button if b.label == "Find the best action").click().run()
    for _ in range(60):
        if any("actions tried)" in text.value for text in test.markdown):
            break
        test.run()
    said = next(text.value for text in test.markdown if "actions tried)" in text.value)
    assert said.startswith("**Fix it.** Move 3 bundles")
    assert any(text.value.startswith("Best single action: Move 3 bundles. Tried: ") for text in test.text)
    next(b for b in test.button if b.label == "Add to the scenario").click().run()
    assert went == ["what_if"]
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    assert not scenario.settings
    assert scenario.edits


def test_a_button_says_an_expression_as_it_is(page: Page) -> None:
    r"""Of `broker-0*0\..*`, Markdown showed `broker-00..`, in italics."""
    spec = ClusterSpec(brokers=5, bundles=70, topics=450, ownership_skew=0.4, joined_brokers=1, isolated_namespaces=1)
    saved = state.workspace().add(generate(spec, seed=1), "isolated")
    test = page("what_if", snapshot=saved.digest[:12])
    labels = [button.label for button in test.button if button.label.startswith("Isolate ")]
    assert labels
    assert all(r"broker-0\*0\\." in label for label in labels), labels
