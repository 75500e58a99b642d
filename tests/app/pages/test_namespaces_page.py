"""The page Namespaces: every namespace, one of them, advice, what happens to it, and splits to come."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.cluster.snapshot import Snapshot
from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.namespaces.advice import BundleAdvice
from planner.namespaces.impact import impact
from planner.namespaces.successor import SuccessorTrial, successor_move, successor_trial
from planner.share.bundle_advice import advice_scenario, advice_text, recreated_sentence, successor_commands
from planner.share.link import decode_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from planner.web import namespaces as advised
from planner.web import state
from planner.web.registry import module
from planner.web.tasks import ANSWERS
from planner.web.widgets import chart
from planner.weeks.run import run_weeks
from planner.weeks.spec import Weeks
from planner.workspace.samples import load_sample, samples
from tests.app.namespaces.asked import advice_on
from tests.app.namespaces.public_reports import REPORTS
from tests.app.namespaces.test_successor import crowded_cluster, stuck_cluster

Page = Callable[..., AppTest]
STORY = samples()[0]
SMALL = next(one for one in samples() if one.file == "real-extensible.json")


def shown(test: AppTest) -> str:
    return "\n".join(str(part.value) for part in (*test.markdown, *test.caption, *test.info, *test.error)).replace(
        "\\", ""
    )


def frame(test: AppTest, column: str) -> list[Any]:
    found = next(one.value for one in test.dataframe if column in one.value.columns)
    return list(found[column])


def unfold(test: AppTest, name: str) -> AppTest:
    """Open what is closed at first, and draw the page."""
    test.session_state[f"open-{name}"] = True
    return test.run()


def over_weeks(test: AppTest) -> AppTest:
    """Open the tab *Over weeks*."""
    test.session_state["ahead"] = "Over weeks"
    return test.run()


@pytest.fixture
def unanswered_at_first(page: Page, unanswered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is there, and the page does not wait for its last one; no browser asks again and again."""
    del page, unanswered
    monkeypatch.setattr(ANSWERS, "limits", replace(ANSWERS.limits, last_s=0.0, unwatched_s=None))


def wait_for_answers() -> None:
    for task in ANSWERS.unfinished():
        assert task.finished.wait(60)


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
    advice = advice_on(cluster, "acme/orders")
    said = shown(page("namespaces", snapshot=STORY.digest[:12], namespace="acme/orders"))
    assert impact(trace, "acme/orders").text in said
    assert advice.sentence[:60] in said
    assert recreated_sentence(advice) in said


def test_weeks_of_a_history_are_advised_by_a_job(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ClusterSpec(cluster="east", brokers=2, bundles=4, topics=12, namespaces=2)
    spec = HistorySpec(cluster=cluster, days=1, interval_s=6 * 3_600, splits_per_day=0, topics=True)
    write_day(tmp_path / "mine", spec, 1, 0)
    monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path))
    test = over_weeks(page("namespaces", snapshot=STORY.digest[:12]))
    next(one for one in test.selectbox if one.label == "Where").set_value("Processes of this machine")
    next(one for one in test.number_input if one.label == "Moments per day").set_value(2)
    next(one for one in test.button if one.label == "Advise on all namespaces").click().run()
    until = time.monotonic() + 60
    while not any("if recreated" in one.value.columns for one in test.dataframe):
        assert time.monotonic() < until, shown(test)
        time.sleep(0.2)
        test.run()
    assert not test.error
    assert "2 namespaces of 1 cluster" in shown(test)
    weeks = next(one.value for one in test.dataframe if "if recreated" in one.value.columns)
    alone = run_weeks(Weeks(history=tmp_path / "mine", moments_per_day=2, runner="local")).rows
    assert weeks["namespace"].tolist() == [row.namespace for row in alone]
    assert weeks["if recreated"].tolist() == [row.recommended_bundles for row in alone]
    assert weeks["outlook"].tolist() == [row.outlook for row in alone]
    assert weeks["growth per week (%)"].isna().all()  # one day is too short


def test_without_a_history_the_page_says_how_to_record_one(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path))
    test = over_weeks(page("namespaces", snapshot=STORY.digest[:12]))
    assert "This server has none yet" in shown(test)
    assert any("python -m planner watch" in one.value for one in test.code)


def test_a_job_that_fails_says_why(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_day(tmp_path / "mine", HistorySpec(cluster=ClusterSpec(cluster="east"), interval_s=12 * 3_600), 1, 0)
    monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path))
    test = over_weeks(page("namespaces", snapshot=STORY.digest[:12]))
    next(one for one in test.button if one.label == "Advise on all namespaces").click().run()
    until = time.monotonic() + 60
    while not test.error:
        assert time.monotonic() < until, shown(test)
        time.sleep(0.2)
        test.run()
    assert "lists no topics" in shown(test)
    assert "Record the cluster with topics" in shown(test)


def test_cuts_that_are_not_steady_do_not_bring_nothing() -> None:
    advice = advice_on(load_sample(next(one for one in samples() if one.file == "split-range.json")), "example/split")
    assert advice.cut is not None
    assert advice.cut.is_worth_it
    assert not advice.edits
    assert "the gain may not last" in advice.sentence
    assert "brings nothing" not in advice.sentence


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
    expected = simulate(cluster, advice_scenario(advice_on(cluster, "iot/home")))
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    assert simulate(cluster, scenario).digest() == expected.digest()
    assert len(expected.end.bundles) == 8


def test_a_number_that_is_kept_is_not_said_to_be_better(page: Page) -> None:
    """It said to create it with 1 bundle: the busiest broker then has 100.0 %, now 100.0 % with 1."""
    one = PlannedTopics(pattern="persistent://iot/home/dev-%06d", count=300, bundles=1, msg_rate_per_s=120_000.0)
    cluster = plan_cluster(PlannedCluster(brokers=3, topics=(one,)))
    saved = state.workspace().add(cluster, "one bundle")
    advice = advice_on(cluster, "iot/home")
    said = shown(page("namespaces", snapshot=saved.digest[:12], namespace="iot/home"))
    kept = "If it is recreated, create it with 1 bundle again: no other number is better once it has settled."
    assert f"{kept} Its busiest broker has 100.0 % of its load at best. An even" in said
    assert kept in advice_text(advice)


def with_a_successor(page: Page, cluster: Snapshot) -> tuple[AppTest, BundleAdvice, SuccessorTrial]:
    """Return the page of a cluster with too many bundles in `a/b`, and the successor that is advised and tried."""
    saved = state.workspace().add(cluster, "too many bundles")
    test = page("namespaces", snapshot=saved.digest[:12], namespace="a/b")
    assert not test.exception
    advice = advice_on(cluster, "a/b")
    return test, advice, successor_trial(cluster, successor_move(cluster, "a/b", advice.successor))


def test_a_successor_opens_as_a_scenario_where_it_is_worth_it(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = stuck_cluster()
    test, advice, trial = with_a_successor(page, cluster)
    said = shown(test)
    assert advice.sentence in said
    assert recreated_sentence(advice) == f"If it is recreated, create it with {advice.recommended} bundles."
    assert f"{recreated_sentence(advice)} Its busiest broker has {advice.now.placed_percent:.1f} % of its load" in said
    assert trial.heading in said
    assert trial.text in said
    batches = next(one.value for one in test.dataframe if "overload" in one.value.columns)
    assert list(batches["clients"]) == [one.clients for one in trial.batches]
    (commands,) = [one.value for one in test.code if "namespaces create" in one.value]
    assert commands.split("\n") == list(successor_commands(advice, trial))
    went: list[str] = []
    monkeypatch.setattr("planner.web.registry.go", went.append)
    next(one for one in test.button if one.label == "Open the move as a scenario").click().run()
    assert not test.exception
    assert went == ["what_if"]
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    assert simulate(cluster, scenario).digest() == simulate(cluster, trial.scenario).digest()
    moves = page("moves", **dict(test.query_params))
    counted = {one.label: one.value for one in moves.metric}
    assert counted["Disconnected topics"] == f"{advice.topics:,}", "What-if has as many"


def test_a_successor_that_is_not_worth_it_has_neither_commands_nor_a_button(page: Page) -> None:
    test, _, trial = with_a_successor(page, crowded_cluster())
    assert not trial.is_worth_it
    assert trial.heading in shown(test)
    assert not [one for one in test.button if one.label == "Open the move as a scenario"]
    assert not [one for one in test.code if "namespaces create" in one.value]


WRONG = [
    {"namespace": "no/such"},
    {"namespace": "a/b<c>"},
    {"namespace": "\U0001f600/[x](javascript:y)"},
    {"hours": "-4"},
    {"hours": "1e9"},
    {"growth": "nan"},
    {"tenant": "nobody"},
    {"tenant": "<script>" + "x" * 50},
]


@pytest.mark.parametrize("parts", WRONG)
def test_a_wrong_address_falls_back(page: Page, parts: dict[str, str]) -> None:
    test = page("namespaces", snapshot=STORY.digest[:12], **parts)
    assert not test.exception
    assert any("is not a valid value" in one.value for one in test.warning)


def test_another_tenant_opens_its_worst_namespace(page: Page) -> None:
    """The table had one tenant, and below it was a namespace of another one."""
    test = page("namespaces", snapshot=STORY.digest[:12], namespace="umbrella/orders")
    next(one for one in test.selectbox if one.label == "Tenant").set_value("acme").run()
    first = frame(test, "namespace")[0]
    assert first.startswith("acme/")
    assert test.query_params["namespace"] == first
    assert first in [one.value for one in test.header]


def test_what_the_best_plan_does_is_what_is_offered_of_it(page: Page) -> None:
    """The page had a move of 37 topics that the page Best plan had tried, and does not offer."""
    namespace, made = REPORTS["outstanding partitions (PIP-143)"]
    saved = state.workspace().add(made(), "report")
    known = {"snapshot": saved.digest[:12]}
    assert "With the best plan" not in shown(page("namespaces", **known, namespace=namespace))
    assert "Nothing to move" in shown(page("best_plan", **known))
    assert "**With the best plan:** Nothing happens to it." in shown(page("namespaces", **known, namespace=namespace))


@pytest.mark.usefixtures("unanswered_at_first")
def test_a_namespace_is_shown_before_its_advice_is_there(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice was shown half a second later, for the page waited for the advice and shared its processor with it."""
    drawn, go_on = threading.Event(), threading.Event()
    begun_after: list[bool] = []
    found: list[BundleAdvice] = []

    def slow(*asked: Any, **more: Any) -> BundleAdvice:
        begun_after.append(drawn.is_set())
        assert go_on.wait(60)
        found.append(advice_on(*asked, **more))
        return found[-1]

    monkeypatch.setattr(advised, "bundle_advice", slow)
    figure = module("namespaces").chart

    def last(*asked: Any, **more: Any) -> None:
        figure(*asked, **more)
        drawn.set()  # the end of the page

    monkeypatch.setattr(module("namespaces"), "chart", last)
    test = page("namespaces", snapshot=SMALL.digest[:12], namespace="globex/alerts")
    assert "The hash space of globex/alerts" in shown(test)
    assert "Without any change" in shown(test)
    assert "Trying numbers of bundles and cuts" in shown(test)
    go_on.set()
    wait_for_answers()
    assert begun_after == [True]
    said = shown(test.run())
    assert found[0].sentence in said
    assert "Trying numbers" not in said


@pytest.mark.usefixtures("unanswered_at_first")
def test_advice_that_another_choice_replaces_stops(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice of the namespace that somebody looks at began only when that of the one before had ended."""
    found: list[BundleAdvice] = []

    def endless(snapshot: Snapshot, namespace: str, *, cancelled: Callable[[], bool], **_: Any) -> BundleAdvice | None:
        if namespace == "globex/alerts":
            found.append(advice_on(snapshot, namespace, cancelled=cancelled))
            return found[-1]
        while not cancelled():
            time.sleep(0.01)
        return None

    monkeypatch.setattr(advised, "bundle_advice", endless)
    test = page("namespaces", snapshot=SMALL.digest[:12], namespace="globex/telemetry")
    [first] = ANSWERS.unfinished()
    next(one for one in test.selectbox if one.label == "Namespace").set_value("globex/alerts").run()
    assert first.stop.is_set()
    wait_for_answers()
    assert found[0].sentence in shown(test.run())


def test_words_of_a_namespace_come_before_its_figures(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who chose another namespace read of it only when a browser had drawn its figures."""
    cluster = load_sample(SMALL)
    page("namespaces", snapshot=SMALL.digest[:12], namespace="globex/alerts")
    wait_for_answers()
    order: list[str] = []
    said, drawn = st.markdown, chart

    def say(words: str, *asked: Any, **more: Any) -> Any:
        order.append(words)
        return said(words, *asked, **more)

    def draw(*asked: Any, **more: Any) -> None:
        order.append("figure")
        drawn(*asked, **more)

    monkeypatch.setattr(module("namespaces").st, "markdown", say)
    monkeypatch.setattr(module("namespaces"), "chart", draw)
    page("namespaces", snapshot=SMALL.digest[:12], namespace="globex/alerts")
    words = order[: order.index("figure")]
    assert any("Without any change" in one for one in words)
    assert any(advice_on(cluster, "globex/alerts").sentence in one.replace("\\", "") for one in words)
    assert order.count("figure") == 2


FOLDED = {
    "tenants": "namespaces",
    "owners-of-namespace": "share (%)",
    "events-of-namespace": "why",
    "counts": "metadata entries",
}


def test_tables_are_drawn_when_they_are_opened(page: Page) -> None:
    """Each choice of a namespace sent all of them, and a browser laid them out where nobody saw them."""
    test = page("namespaces", snapshot=STORY.digest[:12])
    wait_for_answers()
    test.run()

    def has(column: str) -> bool:
        return any(column in one.value.columns for one in test.dataframe)

    assert not any(map(has, ("share (%)", "metadata entries", "minute")))
    for name, column in FOLDED.items():
        before = len(test.dataframe)
        unfold(test, name)
        assert not test.exception
        assert len(test.dataframe) == before + 1, name
        assert has(column)


def test_steps_of_cuts_are_simulated_when_they_are_opened(page: Page) -> None:
    group = PlannedTopics(pattern="persistent://iot/home/dev-%04d", msg_rate_per_s=10, bundles=2)
    saved = state.workspace().add(plan_cluster(PlannedCluster(brokers=4, topics=(group,)), 0), "few bundles to cut")
    test = page("namespaces", snapshot=saved.digest[:12], namespace="iot/home")
    wait_for_answers()
    test.run()
    assert not [one.key for one in ANSWERS.unfinished()]
    assert not [one.value for one in test.code if "iot/home" in one.value]
    unfold(test, "steps")
    wait_for_answers()
    unfold(test, "steps")
    assert [one.value for one in test.code if "iot/home" in one.value]


def test_figures_of_another_namespace_take_the_place_of_those_before(page: Page) -> None:
    """Each place was named by its namespace, so that a browser drew the figure before once more in the next place."""

    def places(namespace: str) -> list[str]:
        test = page("namespaces", snapshot=SMALL.digest[:12], namespace=namespace)
        blocks: list[Any] = [test.main]
        found = []
        while blocks:
            block = blocks.pop()
            children = list(getattr(block, "children", {}).values())
            found += [block.proto.id for one in children if one.type == "plotly_chart"]
            blocks += children
        return sorted(found)

    first, second = places("globex/telemetry"), places("globex/alerts")
    assert len(first) == 2
    assert first == second
