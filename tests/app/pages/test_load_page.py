"""The page on which whatever an operator has becomes a snapshot."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.errors import FormatError
from planner.doors.commands import script
from planner.web import load_files, registry, state
from tests.data.capture.recorded_prometheus import Fault, Recorded, serving
from tests.data.capture.test_thanos import averages_alone, partial

INPUTS = Path(__file__).parents[2] / "data" / "doors" / "inputs"


Page = Callable[..., AppTest]


def text(test: AppTest) -> str:
    parts = (test.markdown, test.caption, test.success, test.warning, test.info, test.error, test.code, test.text)
    shown = "\n".join(str(one.value) for group in parts for one in group)
    return "".join(sign for sign in shown if sign.isprintable() or sign == "\n").replace("\\", "")


def press(test: AppTest, label: str) -> AppTest:
    found = next(one for one in test.button if one.label == label)
    return found.click().run()


def paste(test: AppTest, *names: str) -> AppTest:
    area = next(one for one in test.text_area if one.label == "Text")
    area.set_value("\n".join((INPUTS / name).read_text() for name in names))
    return press(test, "Read")


def open_part(test: AppTest, name: str) -> None:
    next(one for one in test.radio if one.label == "What do you have?").set_value(name).run()


def test_pasted_reports_become_a_cluster_piece_by_piece(page: Page) -> None:
    test = paste(page("load"), "load_report/two_in_a_row_3_3.txt")
    assert not test.exception
    assert "load reports of 2 brokers" in text(test)
    assert "A cluster: 2 brokers, 6 bundles, 0 topics." in text(test)
    assert "pulsar-admin --admin-url http://10.2.0.11:8080 broker-stats topics" in text(test)
    assert "The topics of 10.2.0.11:8080, 10.2.0.12:8080" in text(test)
    test = paste(test, "broker_topics/terminal_3_0.txt", "isolation/java_2_10.txt")
    assert not test.exception
    assert "A cluster: 2 brokers, 6 bundles, 4 topics." in text(test)
    assert "The topics of 10.2.0.11:8080" in text(test)
    assert "Isolation policies" not in text(test)
    test = press(test, "Open this cluster")
    assert not test.exception
    (saved,) = state.workspace().saved()
    assert saved.brokers == 2
    assert "Outputs: load reports of 2 brokers" in saved.source
    assert any("10.2.0.11:8080" in one for one in saved.warnings)


def test_too_little_says_what_is_needed(page: Page) -> None:
    test = paste(page("load"), "brokers/quoted_2_9.txt")
    assert "a list of 2 brokers" in text(test)
    assert "needs bundles and their owners" in text(test)
    assert "curl -s http://10.2.0.11:8080/admin/v2/broker-stats/load-report" in text(test)
    assert state.workspace().saved() == ()


def test_what_cannot_be_read_is_named_and_nothing_is_lost(page: Page) -> None:
    test = paste(page("load"), "load_report/one_line_4_2.jsonl")
    area = next(one for one in test.text_area if one.label == "Text")
    area.set_value('{"cpu": {"usage": ')
    test = press(test, "Read")
    assert not test.exception
    assert "A cluster: 2 brokers" in text(test)
    assert "pasted text 2: Not valid JSON" in text(test)
    assert "Nothing" not in text(press(test, "Start over"))


def test_nothing_is_read_from_empty_fields(page: Page) -> None:
    assert "There is nothing to read" in text(press(page("load"), "Read"))


def test_settings_become_a_scenario_on_the_snapshot_in_view(page: Page) -> None:
    test = paste(page("load"), "settings_file/broker_4_0.conf")
    assert not test.exception
    assert "settings would change on" in text(test)
    assert "loadBalancerBrokerThresholdSheddderPercentage" in text(test)
    assert "SECRET" not in text(test)
    assert any(one.label == "Open as a scenario" for one in test.button)
    assert "What is missing" not in [one.value for one in test.subheader]


@pytest.mark.parametrize("have", ["Files or text", "Admin URL", "Prometheus", "Nothing yet"])
def test_every_part_is_drawn(page: Page, have: str) -> None:
    test = page("load")
    (choice,) = (one for one in test.radio if one.label == "What do you have?")
    test = choice.set_value(have).run()
    assert not test.exception
    assert not test.error


def test_nothing_yet_makes_a_planned_cluster(page: Page) -> None:
    test = page("load")
    (choice,) = (one for one in test.radio if one.label == "What do you have?")
    choice.set_value("Nothing yet").run()
    test = press(test, "Plan this cluster")
    assert not test.exception
    (saved,) = state.workspace().saved()
    assert (saved.brokers, saved.topics, saved.source) == (6, 26_000, "Planned")
    assert "planned" in saved.name
    assert any("No broker was measured" in one for one in saved.warnings)


def test_what_cannot_be_planned_names_the_field_of_the_form(page: Page) -> None:
    """It named the field of the program."""
    test = page("load")
    next(one for one in test.radio if one.label == "What do you have?").set_value("Nothing yet").run()
    next(one for one in test.text_input if one.label == "Name of the cluster").set_value("a/b")
    test = press(test, "Plan this cluster")
    [error] = test.error
    assert str(error.value).startswith("**Name of the cluster** — 'a/b' is not a valid cluster name.")
    assert state.workspace().saved() == ()


def test_a_prometheus_of_several_clusters_is_read_for_the_one_that_is_named(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was left aside, although the note says to give it."""
    answer = json.loads((INPUTS / "prometheus" / "range_partition_label.json").read_bytes())
    east = [{**one, "metric": {**one["metric"], "cluster": "east"}} for one in answer["data"]["result"]]
    west = [{**one, "metric": {**one["metric"], "cluster": "west"}} for one in answer["data"]["result"]]
    with serving(Recorded([*east, *west])) as recorded:
        monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", recorded.url)
        test = prometheus_page(page)
        next(one for one in test.text_input if one.label == "Name of the cluster (optional)").set_value("west")
        test = press(test, "Read this moment")
        assert not test.exception
        assert "several clusters: east, west. Those of west count" in text(test)


def test_the_page_stands_before_snapshots() -> None:
    assert registry.GROUPS["Data"] == ("load", "snapshots")


def test_the_ten_commands_are_in_the_documentation() -> None:
    document = (Path(__file__).parents[3] / "docs" / "getting-in.md").read_text()
    written = [" ".join(line.split("(for")[0].split()) for line in document.splitlines()]
    for line in script().splitlines():
        assert line.partition("    #")[0] in written


def prometheus_page(page: Page) -> AppTest:
    test = page("load")
    have = next(one for one in test.radio if one.label == "What do you have?")
    return have.set_value("Prometheus").run()


def test_a_prometheus_is_asked_only_where_the_administrator_allows_it(page: Page) -> None:
    test = prometheus_page(page)
    assert not test.exception
    assert "This server sends no requests." in text(test)
    assert "planner snapshot --prometheus" in text(test)
    assert all(one.label != "Read this moment" for one in test.button)


def test_a_prometheus_becomes_a_cluster(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.loads((INPUTS / "prometheus" / "range_partition_label.json").read_bytes())
    with serving(Recorded(answer["data"]["result"])) as recorded:
        monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", recorded.url)
        test = press(prometheus_page(page), "Read this moment")
        assert not test.exception
        assert "A cluster:" in text(test)
        test = press(test, "Report what is there")
        assert not test.exception
        assert "Missing: pulsar_bundle_*" in text(test)
        matchers = next(one for one in test.text_input if one.label == "Matchers (optional)")
        matchers.set_value('x"} or vector(1)')
        test = press(test, "Read this moment")
        assert "is not a list of label matchers" in text(test)


@pytest.mark.parametrize(
    ("answers", "field", "value", "before", "after"),
    [
        (averages_alone, "Coarsest samples", "5m", 'Use "Coarsest samples" 5m.', "only averages over up to 5m"),
        (partial, "Accept partial answers", True, 'use "Accept partial answers"', "the answer is partial"),
    ],
)
def test_averages_and_partial_answers_are_taken_on_request(
    page: Page, monkeypatch: pytest.MonkeyPatch, answers: Fault, field: str, value: Any, before: str, after: str
) -> None:
    answer = json.loads((INPUTS / "prometheus" / "range_partition_label.json").read_bytes())
    with serving(Recorded(answer["data"]["result"], answers)) as recorded:
        monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", recorded.url)
        test = press(prometheus_page(page), "Read this moment")
        assert before in text(test)
        assert "A cluster:" not in text(test)
        next(one for one in (*test.selectbox, *test.checkbox) if one.label == field).set_value(value)
        test = press(test, "Read this moment")
        assert not test.exception
        assert "A cluster:" in text(test)
        assert after in text(test)


def test_what_cannot_be_read_while_another_part_is_open_is_in_the_fields_again(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person clicks elsewhere while it is read; the page cannot choose files again, so that it names them."""
    ended = threading.Event()

    def refuse(*_: object, **__: object) -> NoReturn:
        ended.wait(30)
        raise FormatError("It takes too much memory to read.", remedy="Use fewer files.")

    monkeypatch.setattr(load_files, "read_outputs_apart", refuse)
    monkeypatch.setattr(load_files._READINGS, "limits", replace(load_files._READINGS.limits, patience_s=0.05))
    test = page("load")
    next(one for one in test.file_uploader if one.label == "Files").upload("east.zip", b"x", "application/zip").run()
    test = paste(test, "brokers/quoted_2_9.txt")
    assert not test.error
    open_part(test, "Nothing yet")
    ended.set()
    open_part(test, "Files or text")
    until = time.monotonic() + 30
    while not test.error and time.monotonic() < until:
        test.run()
    [error] = test.error
    assert "It takes too much memory to read." in str(error.value)
    assert "Choose again: east.zip." in str(error.value).replace("\\", "")
    field = next(one for one in test.text_area if one.label == "Text")
    assert (field.value or "").startswith('"10.2.0.11:8080"')
    assert not test.run().error
