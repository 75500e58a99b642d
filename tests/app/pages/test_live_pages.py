"""Pages on running clusters: captures from the Snapshots page, and counters of a cluster that is being watched."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.capture.options import CaptureOptions
from planner.cluster.errors import CaptureError
from planner.history.watched import HistoryFolder
from planner.shadow.record import NextCycle, write_next
from planner.web import capture_form, state
from planner.workspace.samples import load_sample, samples
from tests.data.recorded_cluster import Cluster, Handler

Page = Callable[..., AppTest]


def shown(test: AppTest) -> str:
    parts = [*test.markdown, *test.caption, *test.info, *test.warning, *test.error, *test.success]
    return "\n".join(str(p.value) for p in parts)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster("modular")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PLANNER_ALLOW_CAPTURE", "PLANNER_CAPTURE_SECRETS", "PLANNER_PULSAR_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path / "histories"))


def until_it_has_ended(test: AppTest) -> AppTest:
    """Run a page until its capture is no longer under way."""
    deadline = time.monotonic() + 60
    while any(button.label == "Cancel" for button in test.button):
        assert time.monotonic() < deadline
        time.sleep(0.2)
        test.run()
    assert not test.exception
    return test


def send(test: AppTest) -> AppTest:
    return next(b for b in test.button if b.label == "Capture").click().run()


def test_captures_are_off_until_the_operator_allows_them(page: Page) -> None:
    test = page("snapshots")
    assert not test.exception
    assert "PLANNER_ALLOW_CAPTURE" in shown(test)
    assert not [b for b in test.button if b.label == "Capture"]


def test_a_listed_cluster_is_captured(page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", f"{cluster.url},http://192.0.2.1:8080")
    test = page("snapshots")
    url = next(s for s in test.selectbox if s.label == "Admin URL")
    assert url.options == [cluster.url, "http://192.0.2.1:8080"]
    until_it_has_ended(send(test))
    assert "“planner” captured: 3 brokers" in shown(test)
    saved = state.workspace().saved()[0]
    assert saved.cluster == "planner"
    assert test.query_params["snapshot"] == saved.digest[:12]
    assert {method for _, method, _, _ in cluster.asked} == {"GET"}


def test_a_token_of_the_server_is_named_and_not_shown(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    secured = Cluster("modular", token="pa55word")  # noqa: S106 - of a stand-in
    try:
        monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", secured.url)
        monkeypatch.setenv("PLANNER_PULSAR_TOKEN", "pa55word")
        test = until_it_has_ended(send(page("snapshots")))
        assert "401" in shown(test)
        choice = next(s for s in test.selectbox if s.label == "Token variable")
        choice.select("PLANNER_PULSAR_TOKEN")
        until_it_has_ended(send(test))
        assert "captured: " in shown(test)
        assert "pa55word" not in shown(test)
    finally:
        secured.close()


def test_any_address_without_authentication(page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", "1")
    monkeypatch.setenv("PLANNER_PULSAR_TOKEN", "pa55word")
    test = page("snapshots")
    assert not [s for s in test.selectbox if s.label == "Token variable"]
    next(t for t in test.text_input if t.label == "Admin URL of any broker").set_value("file:///etc/passwd")
    send(test)
    assert "not an http or https address" in shown(test)
    next(t for t in test.text_input if t.label == "Admin URL of any broker").set_value(cluster.url)
    next(t for t in test.text_input if t.label == "Namespaces (optional)").set_value("acme/*")
    until_it_has_ended(send(test))
    assert "captured: " in shown(test)
    assert not [headers for _, _, _, headers in cluster.asked if "Authorization" in headers]


def test_a_capture_that_fails_is_told_in_a_sentence(
    page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", cluster.url)
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, b"<html>", "text/html")
    test = until_it_has_ended(send(page("snapshots")))
    [error] = test.error
    assert "/admin/v2/brokers** — This is an HTML page, not JSON." in str(error.value)
    assert "brokers-all" not in shown(test)
    assert "captured: " not in shown(test)


def test_the_form_keeps_what_was_entered_when_a_capture_fails(
    page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fields were empty again, and another attempt started with typing the address."""
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", "1")
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, b"<html>", "text/html")
    entered = {"Admin URL of any broker": cluster.url, "Namespaces (optional)": "acme/orders pay/*"}
    test = page("snapshots")
    for label, value in entered.items():
        next(t for t in test.text_input if t.label == label).set_value(value)
    next(s for s in test.selectbox if s.label == "Metrics").select("off")
    next(c for c in test.checkbox if c.label == "Topics").uncheck()
    until_it_has_ended(send(test))
    assert test.error
    assert {t.label: t.value for t in test.text_input if t.label in entered} == entered
    assert next(s for s in test.selectbox if s.label == "Metrics").value == "off"
    assert not next(c for c in test.checkbox if c.label == "Topics").value


def test_the_form_keeps_which_cluster_was_chosen_when_a_capture_fails(
    page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", f"http://192.0.2.1:8080,{cluster.url}")
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, b"<html>", "text/html")
    test = page("snapshots")
    next(s for s in test.selectbox if s.label == "Admin URL").select(cluster.url)
    until_it_has_ended(send(test))
    assert test.error
    assert next(s for s in test.selectbox if s.label == "Admin URL").value == cluster.url


def test_the_form_keeps_which_secrets_were_chosen_when_a_capture_fails(
    page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They were "none" again, and the next attempt was made without them."""
    for name in ("ca.pem", "token"):
        (tmp_path / name).write_text("x")
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", cluster.url)
    monkeypatch.setenv("PLANNER_CAPTURE_SECRETS", str(tmp_path))
    monkeypatch.setenv("PLANNER_PULSAR_TOKEN", "pa55word")
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, b"<html>", "text/html")
    test = page("snapshots")
    chosen = {"Token variable": "PLANNER_PULSAR_TOKEN", "Token file": "", "Client key (PEM)": "token"}
    assert {s.label: s.value for s in test.selectbox if s.label in chosen} == dict.fromkeys(chosen, "")
    for label, value in chosen.items():
        next(s for s in test.selectbox if s.label == label).select(value)
    until_it_has_ended(send(test))
    assert test.error
    assert {s.label: s.value for s in test.selectbox if s.label in chosen} == chosen


def test_what_is_refused_names_its_field_and_replaces_the_last_outcome(
    page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", "1")
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, b"<html>", "text/html")
    test = page("snapshots")
    next(t for t in test.text_input if t.label == "Admin URL of any broker").set_value(cluster.url)
    until_it_has_ended(send(test))
    assert len(test.error) == 1
    next(t for t in test.text_input if t.label == "Admin URL of any broker").set_value("file:///etc/passwd")
    send(test)
    assert [error.value.partition("**")[2].partition("**")[0] for error in test.error] == ["Admin URL"]


def test_a_wrong_list_is_told(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", "broker-1:8080")
    test = page("snapshots")
    assert not test.exception
    assert "PLANNER\\_ALLOW\\_CAPTURE" in shown(test)


def test_a_capture_is_cancelled(page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_ALLOW_CAPTURE", cluster.url)
    go, asked = threading.Event(), threading.Event()

    def wait(handler: Handler) -> None:
        asked.set()
        go.wait(30)
        handler.give(200, cluster.files["brokers.json"])

    cluster.special["", "/admin/v2/brokers"] = wait
    test = send(page("snapshots"))
    assert asked.wait(30)
    next(b for b in test.button if b.label == "Cancel").click().run()
    go.set()
    until_it_has_ended(test)
    assert "was cancelled" in shown(test)


def test_two_captures_at_once_are_enough(cluster: Cluster, tmp_path: Path) -> None:
    go = threading.Event()

    def wait(handler: Handler) -> None:
        go.wait(30)
        handler.give(503, b"")

    cluster.special["", "/admin/v2/brokers"] = wait
    tasks = capture_form.new_tasks()
    begin = partial(
        capture_form.start, options=CaptureOptions(cluster.url, tmp_path), add=state.workspace().add, tasks=tasks
    )
    started = [begin(name) for name in ("a", "b")]
    with pytest.raises(CaptureError, match="2 captures already running"):
        begin("c")
    assert tasks.latest("c") is None, "it is not queued"
    started.append(begin("a"))
    assert started[0].stop.is_set()
    assert tasks.latest("a") is started[2]
    go.set()
    assert all(one.finished.wait(60) for one in started)
    assert all(one.error is not None for one in started)
    assert "was cancelled" in str(started[0].error)
    assert tasks.latest("b") is started[1], "why it failed is kept until the session forgets it"
    tasks.forget("b")
    assert tasks.latest("b") is None


def test_counters_follow_a_cluster_that_is_watched(page: Page, tmp_path: Path) -> None:
    sample = load_sample(next(s for s in samples() if s.file == "avg-shedder.json"))
    digest = next(s.digest for s in samples() if s.file == "avg-shedder.json")[:12]
    test = page("hit_counters", snapshot=digest)
    assert not test.toggle
    history = HistoryFolder(tmp_path / "histories", 1 << 30)
    start = (time.time_ns() // 60_000_000_000 - 60) * 60_000
    for second in range(0, 180, 20):
        history.add(replace(sample, info=replace(sample.info, captured_at_ms=start + second * 1000)))
    test = page("hit_counters", snapshot=digest)
    test.toggle[0].set_value(True).run()
    assert not test.exception
    assert test.query_params["live"] == "1"
    counted = next(d.value for d in test.dataframe if "bundles selected" in d.value.columns)
    assert len(counted) == 3
    assert "at regular intervals, because the leader's schedule is unknown" in shown(test)
    write_next(history.folder_of(sample.info.cluster), NextCycle(start, start + 30_000, True, "AvgShedder"))
    history.add(replace(sample, info=replace(sample.info, captured_at_ms=start + 180_000)))
    test.run()
    counted = next(d.value for d in test.dataframe if "bundles selected" in d.value.columns)
    assert len(counted) == 4
    assert "at the times learned by shadow mode" in shown(test)
    assert "the watch seems to have stopped" in shown(test)
    number = next(n for n in test.number_input if n.label == "Last cycles")
    number.set_value(2).run()
    assert len(next(d.value for d in test.dataframe if "bundles selected" in d.value.columns)) == 2
    assert test.query_params["cycles"] == "2"
