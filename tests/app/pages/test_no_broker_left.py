"""A scenario that leaves no broker: every page says something of use, with it and without it."""

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.scenario import Step
from planner.web.registry import AFTER, NAMES
from tests.app.pages.test_scenario_pages import link, sample, shown

pytestmark = pytest.mark.usefixtures("untried_remedies")
GONE = link(*(Step(RemoveBroker(broker=f"broker-{number}:8080")) for number in range(1, 6)))


@pytest.mark.parametrize("after", ["", "1"], ids=["as captured", "after it"])
@pytest.mark.parametrize("name", NAMES)
def test_every_page_of_an_outage(page: Callable[..., AppTest], name: str, after: str) -> None:
    test = page(name, snapshot=sample()[:12], scenario=GONE, **({AFTER: after} if after else {}))
    assert not test.exception, test.exception
    said = [shown(test), *(f"{metric.label} {metric.value} {metric.delta}" for metric in test.metric)]
    assert not re.search(r"\b(nan|inf|unknown to)\b", "\n".join(said))


def test_what_could_not_be_placed_comes_first(page: Callable[..., AppTest]) -> None:
    """The page began with *0 bundles shed*, and its figures were green."""
    assert "**60 bundles could not be placed. 0 bundles shed" in shown(page("what_if", scenario=GONE))


def test_overview_calls_it_out_of_capacity(page: Callable[..., AppTest]) -> None:
    assert "No broker is left" in shown(page("overview", snapshot=sample()[:12], scenario=GONE, **{AFTER: "1"}))
