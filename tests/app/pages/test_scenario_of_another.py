"""A scenario that belongs to another snapshot says so, once."""

from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

from planner.share.link import encode_link
from planner.share.scenario_file import scenario_file
from planner.simulate.edits.registry import KINDS
from planner.simulate.scenario import Scenario, Step
from planner.web import state
from planner.workspace.samples import samples

Page = Callable[..., AppTest]
KIND: Any = KINDS["add_brokers"]
SCENARIO = Scenario(steps=(Step(KIND(count=2)),), cycles=2, pulsar_version="4.2.4")


def small() -> str:
    sample = next(one for one in samples() if one.file == "threshold-shedder.json")
    return state.add_sample(sample).digest


def with_import(page: Page, digest: str) -> AppTest:
    test = page("what_if", snapshot=small()[:12])
    test.session_state["save-open"] = True
    test.run()
    (field,) = [one for one in test.file_uploader if one.label == "Import a file"]
    content = scenario_file(SCENARIO, digest, "our *production*").encode()
    return field.upload("scenario.json", content, "application/json").run()


def about_another(test: AppTest) -> list[str]:
    return [one.value for one in test.warning if "was made for the snapshot" in one.value]


def test_an_imported_file_of_another_snapshot_says_so_until_the_scenario_changes(page: Page) -> None:
    test = with_import(page, "ab" * 32)
    assert not test.exception
    (text,) = about_another(test)
    assert "“our \\*production\\*” (`abababababab`)" in text
    next(one for one in test.button if one.label == "Undo").click().run()
    assert not about_another(test)


def test_an_imported_file_of_this_snapshot_says_nothing(page: Page) -> None:
    test = with_import(page, small())
    assert not test.exception
    assert not about_another(test)


def test_a_link_to_a_missing_snapshot_is_explained_once(page: Page) -> None:
    """A second error said to open the link again, while the first said that its scenario opens by itself."""
    missing = "ab" * 32
    test = page("what_if", snapshot=missing[:12], scenario=encode_link(SCENARIO, missing, "east"))
    assert not test.exception
    (only,) = [one.value for one in test.error]
    assert "needs the snapshot 'east'" in only.replace("\\", "")
