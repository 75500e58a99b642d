"""Clicks that come twice, or before the browser shows what the first one did: they reach nothing else."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from planner.share.link import decode_link
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.scenario import Step
from planner.web import state, widgets
from tests.app.pages.test_scenario_pages import link, press, sample

pytestmark = pytest.mark.usefixtures("untried_remedies")
Page = Callable[..., AppTest]
DOUBLE, THREE = Step(ScaleTraffic(factor=2)), Step(ScaleTraffic(factor=3))
BROKERS = Step(AddBrokers(count=2))


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clicks of the test are one double click, however long a page takes to be drawn."""
    monkeypatch.setattr(widgets, "DOUBLE_CLICK_S", 3600.0)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two clicks of the test are a double click, however fast a page is drawn."""
    monkeypatch.setattr(widgets, "DOUBLE_CLICK_S", 0.0)


def steps(test: AppTest) -> list[Step]:
    text = test.query_params.get("scenario")
    scenario = decode_link(text[0] if isinstance(text, list) else text).scenario if text else None
    return list(scenario.steps) if scenario is not None else []


def delete_first(test: AppTest) -> None:
    next(b for b in test.button if b.key and b.key.startswith("delete-0")).click().run()


@pytest.mark.usefixtures("hurried")
def test_a_double_click_deletes_one_edit(page: Page) -> None:
    test = page("what_if", scenario=link(DOUBLE, BROKERS, THREE))
    delete_first(test)
    delete_first(test)
    assert steps(test) == [BROKERS, THREE]


@pytest.mark.parametrize(("again_s", "left"), [(0.3, [BROKERS, THREE]), (0.7, [THREE])])
def test_the_time_counts_from_when_the_other_button_is_drawn(
    page: Page, monkeypatch: pytest.MonkeyPatch, again_s: float, left: list[Step]
) -> None:
    """On a busy machine that was more than half a second after the first click, and the second one deleted, too."""
    test = page("what_if", scenario=link(DOUBLE, BROKERS, THREE))
    times = iter([0.0, 10.0, 10.0 + again_s, 20.0])  # pressed, drawn, pressed, drawn
    monkeypatch.setattr(widgets, "time", SimpleNamespace(monotonic=lambda: next(times)))
    delete_first(test)
    delete_first(test)
    assert steps(test) == left


@pytest.mark.usefixtures("unhurried")
def test_two_clicks_delete_two_edits(page: Page) -> None:
    test = page("what_if", scenario=link(DOUBLE, BROKERS, THREE))
    delete_first(test)
    delete_first(test)
    assert steps(test) == [THREE]


def test_what_stood_there_before_is_no_widget_any_more(page: Page) -> None:
    test = page("what_if", scenario=link(DOUBLE, BROKERS))

    def keys() -> set[str]:
        found = {str(w.key) for w in [*test.toggle, *test.button] if w.key}
        return {key for key in found if key.startswith(("edit-", "delete-", "add-edit-"))}

    before = keys()
    assert len(before) == 5
    delete_first(test)
    assert not before & keys()


def test_of_two_equal_edits_the_one_that_was_meant_is_switched_off(page: Page) -> None:
    test = page("what_if", scenario=link(DOUBLE, BROKERS, DOUBLE))
    switches = [t for t in test.toggle if t.label == "2x traffic of the cluster"]
    switches[1].set_value(False).run()
    assert [step.on for step in steps(test)] == [True, True, False]


@pytest.mark.usefixtures("hurried")
def test_a_double_click_deletes_one_saved_scenario(page: Page) -> None:
    test = page("what_if", snapshot=sample()[:12])
    view_digest = sample()
    kept = state.workspace().scenarios
    for name, edit in (("one", DOUBLE), ("two", THREE)):
        scenario = decode_link(link(edit)).scenario
        assert scenario is not None
        kept.save(scenario, view_digest, name)
    assert len(kept.list(view_digest)) == 2
    test.session_state["save-open"] = True
    test.run()
    press(test, "Delete")
    (left,) = kept.list(view_digest)
    test.session_state["saved"] = left.digest  # as a browser does, where the box has lost its choice
    press(test, "Delete")
    assert kept.list(view_digest) == (left,)
