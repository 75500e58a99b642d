"""Every moment of a history opens on every page, with an address of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.digest import snapshot_digest
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import short_digest
from planner.history.generate import snapshots_of_day, write_history
from planner.history.spec import HistorySpec
from planner.share.link import encode_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.scenario import Scenario, Step
from planner.web import history_moments, registry, state
from planner.web.page import Subject
from tests.app.pages.conftest import script

pytestmark = pytest.mark.usefixtures("untried_remedies")
SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=3, namespaces=2, bundles=8, topics=10, cluster="east"), days=1, interval_s=21_600
)
AT = "mine/east/2027-01-11T06:00:00Z"
CHOOSE = """
from planner.web import history_moments, state

if text := history_moments.choose():
    state.select_moment(text)
"""
ABOUT_A_CLUSTER = [name for name in registry.NAMES if registry.page(name).subject is not Subject.NOTHING]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("histories")
    list(write_history(found / "mine", SPEC, 3, 1))
    return found


@pytest.fixture(autouse=True)
def moment(page: Callable[..., AppTest], root: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """The second moment of the day, which no test before has opened."""
    del page  # only its empty workspace is needed
    monkeypatch.setenv("PLANNER_HISTORIES", str(root))
    history_moments._OPENED.clear()
    return list(snapshots_of_day(SPEC, 3, 0))[1]


def opened(name: str, **parts: str) -> AppTest:
    test = script(name)
    for part, value in parts.items():
        test.query_params[part] = value
    return test.run()


@pytest.mark.parametrize("name", ABOUT_A_CLUSTER)
def test_every_page_opens_a_moment(name: str) -> None:
    test = opened(name, moment=AT)
    assert not test.exception
    (found,) = history_moments._OPENED.values()
    assert found.text == AT
    assert test.query_params["moment"] == AT
    assert test.query_params["snapshot"] == short_digest(found.saved.digest)
    assert any("captured 2027" in one.value for one in test.caption)
    assert found.saved.digest not in {one.digest for one in state.workspace().saved()}


def test_the_digest_is_that_of_the_content(moment: Snapshot) -> None:
    saved = history_moments.open_moment("mine/east/2027-01-11T08:30:00Z")
    assert saved.captured_at_ms == moment.info.captured_at_ms
    assert saved.digest == snapshot_digest(state.snapshot_of(saved.digest))
    assert state.moment_part(saved.digest) == {"moment": AT}


def test_a_link_with_a_scenario_opens_where_nobody_has_opened_the_moment() -> None:
    digest = history_moments.open_moment(AT).digest
    history_moments._OPENED.clear()
    scenario = Scenario(steps=(Step(ScaleTraffic(factor=1.3)),))
    test = opened("what_if", moment=AT, scenario=encode_link(scenario, digest))
    assert not test.exception
    assert [one.value for one in test.error] == []
    assert test.query_params["moment"] == AT
    assert "scenario" in test.query_params


@pytest.mark.parametrize(
    "text",
    [
        "mine/east/2027-01-20T06:00:00Z",
        "mine/west/2027-01-11T06:00:00Z",
        "../mine/east/2027-01-11T06:00:00Z",
        "mine/east/tomorrow",
        "mine/east/9999-99-99T00:00:00Z",
        "//",
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    test = opened("overview", moment=text)
    assert not test.exception
    assert test.error
    assert not history_moments._OPENED


def test_the_button_offers_every_moment() -> None:
    test = opened("overview")
    next(one for one in test.button if one.label == "History").click().run()
    assert not test.exception
    assert "Open this moment" in {one.label for one in test.button}


def test_a_moment_is_chosen_by_day_and_time() -> None:
    test = AppTest.from_string(CHOOSE, default_timeout=30).run()
    boxes = {one.label: one for one in test.selectbox}
    assert boxes["History"].options == ["mine/east"]
    assert boxes["Time (UTC)"].options == ["18:00:00Z", "12:00:00Z", "06:00:00Z", "00:00:00Z"]
    boxes["Time (UTC)"].set_value("2027-01-11T06:00:00Z").run()
    next(one for one in test.button if one.label == "Open this moment").click().run()
    assert not test.exception
    assert test.query_params["moment"] == AT
