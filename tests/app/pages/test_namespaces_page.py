"""The page Namespaces: every namespace, one of them, advice, what happens to it, and splits to come."""

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.namespaces.advice import bundle_advice
from planner.namespaces.impact import impact
from planner.share.bundle_advice import advice_scenario
from planner.share.link import decode_link
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from planner.web import state
from planner.workspace.samples import load_sample, samples

Page = Callable[..., AppTest]
STORY = samples()[0]


def shown(test: AppTest) -> str:
    return "\n".join(str(part.value) for part in (*test.markdown, *test.caption, *test.info, *test.error)).replace(
        "\\", ""
    )


def frame(test: AppTest, column: str) -> list[Any]:
    found = next(one.value for one in test.dataframe if column in one.value.columns)
    return list(found[column])


def test_the_worst_namespace_is_first_and_opens(page: Page) -> None:
    cluster = load_sample(STORY)
    test = page("namespaces", snapshot=STORY.digest[:12])
    assert not test.exception
    assert not test.error
    assert set(frame(test, "namespace")) == set(cluster.namespaces)
    assert frame(test, "namespace")[0] == "umbrella/orders"
    assert test.query_params["namespace"] == "umbrella/orders"
    assert "No cut helps: persistent://umbrella/orders/stream-7-partition-7" in shown(test)


def test_a_namespace_of_the_address_says_what_happens_to_it_and_what_is_advised(page: Page) -> None:
    cluster = load_sample(STORY)
    trace = simulate(cluster, unchanged(cluster.info.pulsar_version))
    advice = bundle_advice(cluster, "stark/orders")
    said = shown(page("namespaces", snapshot=STORY.digest[:12], namespace="stark/orders"))
    assert impact(trace, "stark/orders").text in said
    assert advice.sentence[:60] in said
    assert f"create it with **{advice.recommended} bundle" in said


def test_one_tenant_is_shown(page: Page) -> None:
    test = page("namespaces", snapshot=STORY.digest[:12], tenant="acme")
    assert frame(test, "namespace") == ["acme/orders"]
    assert test.query_params["namespace"] == "acme/orders"


def test_growth_brings_more_splits(page: Page) -> None:
    few = page("namespaces", snapshot=STORY.digest[:12], hours="1")
    many = page("namespaces", snapshot=STORY.digest[:12], hours="1", growth="200")
    assert sum(frame(many, "at the end")) > sum(frame(few, "at the end")) > 0


def test_cuts_open_as_a_scenario_that_makes_them(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    group = PlannedTopics(pattern="persistent://iot/home/dev-%04d", msg_rate_per_s=10, bundles=2)
    cluster = plan_cluster(PlannedCluster(brokers=4, topics=(group,)), 0)
    saved = state.workspace().add(cluster, "few bundles")
    test = page("namespaces", snapshot=saved.digest[:12], namespace="iot/home")
    assert "Cut it: with its 2 bundles" in shown(test)
    went: list[str] = []
    monkeypatch.setattr("planner.web.registry.go", went.append)
    next(one for one in test.button if one.label == "Open the cuts as a scenario").click().run()
    assert not test.exception
    assert went == ["what_if"]
    expected = simulate(cluster, advice_scenario(bundle_advice(cluster, "iot/home")))
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    assert simulate(cluster, scenario).digest() == expected.digest()
    assert len(expected.end.bundles) == 8


@pytest.mark.parametrize("parts", [{"namespace": "no/such"}, {"hours": "-4"}, {"tenant": "nobody"}])
def test_a_wrong_address_falls_back(page: Page, parts: dict[str, str]) -> None:
    test = page("namespaces", snapshot=STORY.digest[:12], **parts)
    assert not test.exception
    assert any("is not a valid value" in one.value for one in test.warning)
