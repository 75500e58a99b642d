"""What stands in a workspace may be hostile, old or damaged: every page opens, and Snapshots can delete it."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot
from planner.cluster.tables import make_topics
from planner.cluster.text import plain
from planner.share.link import encode_link
from planner.simulate import price
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.scenario import Scenario, Step
from planner.web import registry, simulations, state
from planner.web.page import Subject
from planner.web.widgets import csv_bytes
from tests.app.pages.conftest import forget

Page = Callable[..., AppTest]
_MICROSECONDS = 1_763_700_000_000_000


def errors(test: AppTest) -> str:
    return "\n".join(str(error.value) for error in test.error)


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_far_moment_that_an_older_release_saved(page: Page, small: Snapshot, name: str) -> None:
    far = state.workspace().add(replace(small, info=replace(small.info, captured_at_ms=_MICROSECONDS)), "far")
    test = page(name, snapshot=far.digest[:12])
    assert not test.exception
    if registry.page(name).subject is not Subject.NOTHING:
        assert "can no longer be read from the workspace" in errors(test)
        picker = next(box for box in test.selectbox if box.label == "Snapshot")
        assert "after the year 9999" in picker.options[0]


def test_snapshots_offers_to_delete_what_cannot_be_read(page: Page, small: Snapshot) -> None:
    far = state.workspace().add(replace(small, info=replace(small.info, captured_at_ms=_MICROSECONDS)), "far")
    test = page("snapshots", snapshot=far.digest[:12])
    assert not test.exception
    next(button for button in test.button if button.label == "Delete").click().run()
    assert not test.exception
    assert any("“far” (" in text.value and "This deletes" in text.value for text in test.markdown)


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_workspace_that_cannot_be_opened(page: Page, workspace_file: Path, name: str) -> None:
    workspace_file.write_bytes(b"damaged" * 1_000)
    test = page(name, snapshot="0123456789ab", scenario="1.ADX0ZI21SGEAOdtADZH3rWlq")
    assert not test.exception
    assert errors(test).count("The workspace is damaged") == (0 if name in {"replay", "advisor", "shadow"} else 1)
    assert str(workspace_file) not in errors(test)
    workspace_file.unlink()


@pytest.mark.parametrize("name", ["overview", "snapshots"])
def test_a_workspace_that_another_process_holds(page: Page, workspace_file: Path, name: str) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(workspace_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        test = page(name)
        assert not test.exception
        assert "Another process has the workspace open" in errors(test)
        other.communicate()
    assert not page(name).error


LINK = "1.ADX0ZI21SGEAOdtADZH3rWlq-qrgLwnnEzeZZGyHRcQDmR2ud2c5gzXDpQZmrSHYrzooegA"
"""A hundred thousand cycles of a large sample, in 73 signs."""


def test_a_link_starts_no_run_without_end(page: Page) -> None:
    test = page("what_if", scenario=LINK)
    assert not test.exception
    assert "A page can simulate at most 8,000 cycles" in errors(test)


def test_a_run_of_a_high_price_is_asked_for(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "TOLD_FROM_S", 0.0)
    simulations.runs.clear()  # another test may have paid for this one
    test = page("what_if")
    assert "30 cycles of" in test.info[0].value
    assert not simulations.runs()._runs
    next(button for button in test.button if button.label == "Run").click().run()
    assert not test.exception
    assert len(simulations.runs()._runs) == 1
    assert not any(button.label == "Run" for button in test.button)


def test_a_run_ends_with_its_last_tab(page: Page, small: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    page("overview")
    view = state.Current(state.workspace().add(small, "small"), small)
    monkeypatch.setattr(simulations, "_is_open", lambda tab: tab == "open")
    monkeypatch.setattr(simulations, "_TURN_S", 0.0)
    monkeypatch.setattr(simulations, "_RELOAD_S", 0.0)
    for tab in ("open", "closed"):
        monkeypatch.setattr(simulations, "_tab", lambda tab=tab: tab)
        job = simulations.Runs().of(view, Scenario(cycles=20), "me")
        assert job.finished.wait(60)
        assert (job.outcome is not None, job.stop.is_set()) == (tab == "open", tab == "closed")


def test_what_somebody_looks_at_is_not_dropped(page: Page, small: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else three visitors' comparisons run again and again, each for another's sake."""
    page("overview")
    view = state.Current(state.workspace().add(small, "small"), small)
    monkeypatch.setattr(simulations, "_KEPT_RUNS", 1)
    runs, asked = simulations.Runs(), [Scenario(cycles=cycles) for cycles in (1, 2, 3)]
    for one in asked:
        assert runs.of(view, one, "me").finished.wait(60)
    assert [runs.knows(view, one) for one in asked] == [True, True, True]
    runs.leave("me")
    runs.of(view, asked[2], "me")
    assert [runs.knows(view, one) for one in asked] == [False, False, True]


def test_turns_are_taken_in_order() -> None:
    turns, done = simulations._Turns(), []

    def work(name: int) -> None:
        turns.begin(lambda: False, {str(name)})
        for _ in range(20):
            done.append(name)
            turns.pass_on(lambda: False, {str(name)})
        turns.end()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == sorted([*range(6)] * 20)
    assert turns._working == 0
    assert not turns._waiting


def in_order(turns: simulations._Turns, started: threading.Event, threads: Sequence[threading.Thread]) -> None:
    """Let each wait for its turn before the next one comes, then let them work to their end."""
    for at, thread in enumerate(threads):
        thread.start()
        while turns._working + len(turns._waiting) <= at:
            time.sleep(0.001)
    started.set()
    for thread in threads:
        thread.join(60)


@pytest.mark.parametrize(
    ("tabs", "order"),
    [("aa", [0] * 5 + [1] * 5), ("ab", [0, 1] * 5), ("aaabb", [0, 3] * 5 + [1, 4] * 5 + [2] * 5)],
)
def test_runs_of_one_tab_work_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tabs: str, order: list[int]) -> None:
    """However many tabs there are: else all runs of all of them were in memory at once."""
    monkeypatch.setattr(simulations, "_AT_ONCE", 1)
    turns, done, started = simulations._Turns(), [], threading.Event()

    def work(name: int, tab: str) -> None:
        turns.begin(lambda: False, {tab})
        started.wait(60)
        for _ in range(5):
            done.append(name)
            turns.pass_on(lambda: False, {tab})
        turns.end()

    in_order(turns, started, [threading.Thread(target=work, args=one) for one in enumerate(tabs)])
    assert done == order


def test_a_large_run_that_passes_its_turn_on_keeps_its_place_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else as many large runs as there are visitors were in memory at once, each waiting in the middle."""
    monkeypatch.setattr(simulations, "_AT_ONCE", 1)
    turns, done, started = simulations._Turns(), [], threading.Event()

    def work(name: int, large: bool) -> None:  # noqa: FBT001 - of a table
        turns.begin(lambda: False, {str(name)}, large=large)
        started.wait(60)
        for _ in range(3):
            done.append(name)
            turns.pass_on(lambda: False, {str(name)})
        turns.end(large=large)

    threads = [threading.Thread(target=work, args=one) for one in enumerate((True, True, False))]
    in_order(turns, started, threads)
    assert done == [0, 2, 0, 2, 0, 2, 1, 1, 1], "the small one takes turns with the first large one, the other waits"
    assert turns._large == 0


@pytest.mark.parametrize(("alone_s", "together"), [(60.0, 1), (0.0, 2)])
def test_a_large_run_has_the_memory_for_itself_for_a_while(
    monkeypatch: pytest.MonkeyPatch, alone_s: float, together: int
) -> None:
    monkeypatch.setattr(simulations, "_ALONE_S", alone_s)
    turns, most, may_end = simulations._Turns(), [0], threading.Event()

    def work(name: int) -> None:
        turns.begin(lambda: False, {str(name)}, large=True)
        most.append(turns._large)
        may_end.wait(60)
        turns.end(large=True)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while max(most) < together and time.monotonic() < deadline:
        time.sleep(0.01)
    may_end.set()
    for thread in threads:
        thread.join(60)
    assert len(most) == 4
    assert max(most) == together
    assert turns._large == 0


class TestWords:
    """What comes from files and links stays text."""

    def test_no_formula_in_a_table(self) -> None:
        frame = pd.DataFrame({"=a": ["=cmd|'/c calc'!A0", " -x", "b"], "n": [-1, 2, 3]})
        assert csv_bytes(frame).decode().splitlines() == ["'=a,n", "'=cmd|'/c calc'!A0,-1", "' -x,2", "b,3"]

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("http://e.example", "http\u2060\\://e.example"),
            ("www.e.example", "www\u2060.e.example"),
            ("a@e.example", "a\u2060@e.example"),
            (":material/home:", "\\:\u2060material/home\\:"),
            ("x\n\n---", "x ---"),
            ("1. a", "1\\. a"),
            ("- a", "\\- a"),
            ("broker-1:8080", "broker-1\\:8080"),
            ("persistent://t/n/x", "persistent\\://t/n/x"),
        ],
    )
    def test_no_markdown(self, text: str, shown: str) -> None:
        assert plain(text) == shown

    def test_no_markdown_in_a_hidden_label(self, page: Page, small: Snapshot) -> None:
        odd = replace(small.brokers, name=("*a*:1", *small.brokers.name[1:]))
        view = state.workspace().add(small.with_columns(brokers=odd), "small")
        edit = Step(RemoveBroker(broker="*a*:1", at_min=5))
        test = page("what_if", scenario=encode_link(Scenario(steps=(edit,)), view.digest, "small"))
        words = edit.edit.phrase()
        assert "*a*" in words
        assert [toggle.label for toggle in test.toggle if "hut down" in toggle.label] == [
            plain(words[:1].upper() + words[1:])
        ]

    @pytest.mark.parametrize("name", ["brokers", "snapshots"])
    def test_ten_thousand_notes(self, page: Page, small: Snapshot, name: str) -> None:
        notes = tuple(f"note {i}" for i in range(10_000))
        saved = state.workspace().add(replace(small, info=replace(small.info, warnings=notes)), "noted")
        test = page(name, snapshot=saved.digest[:12])
        assert not test.exception
        assert len(list(test.markdown)) + len(list(test.text)) < 100
        assert any("Showing 100 of 10,000" in caption.value for caption in test.caption)


@pytest.mark.parametrize("name", ["throttling", "shedding", "what_if"])
def test_a_setting_that_no_browser_holds_exactly(page: Page, small: Snapshot, name: str) -> None:
    most = {"dispatchThrottlingRatePerSubscriptionInByte": 2**63 - 1}
    saved = state.workspace().add(replace(small, settings=Settings(most)), "unlimited")
    test = page(name, snapshot=saved.digest[:12])
    assert not test.exception


@pytest.mark.parametrize("name", ["bundle_map", "split_lab"])
def test_odd_namespaces_are_found_by_their_address(page: Page, small: Snapshot, name: str) -> None:
    """Every sign that Pulsar admits in the name of a namespace stands in an address, and finds it again."""
    odd = ("a=b:c/d.e_f-g", "-/--x", ".../....", "b1/b2", "pulsar/a:b", "x/=3D", "A/n:1", "acme/a=1")
    renamed = tuple((odd + small.namespaces)[: len(small.namespaces)])
    saved = state.workspace().add(replace(small, namespaces=renamed, topics=make_topics(), policies=Policies()), "odd")
    for namespace in renamed[: len(odd)]:
        test = page(name, snapshot=saved.digest[:12], namespace=namespace)
        assert not test.exception
        assert not [w for w in test.warning if "is not possible" in str(w.value)]
        assert next(box for box in test.selectbox if box.label == "Namespace").value == namespace


@pytest.mark.parametrize("name", ["overview", "compare", "upgrade", "failure_review"])
def test_a_cluster_without_any_active_broker(page: Page, small: Snapshot, name: str) -> None:
    nobody = replace(small.brokers, registered=small.brokers.registered & False)
    saved = state.workspace().add(replace(small, brokers=nobody), "x")
    assert not page(name, snapshot=saved.digest[:12]).exception


@pytest.mark.parametrize(
    ("variable", "name"),
    [("PLANNER_WORKSPACE", "snapshots"), ("PLANNER_HISTORIES", "replay"), ("PLANNER_HISTORIES", "shadow")],
)
@pytest.mark.parametrize("value", ["\udcff", "x" * 300, "/dev/null"])
def test_a_variable_that_names_no_place(
    page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, name: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    state.workspace().close()
    forget()
    with monkeypatch.context() as patch:
        patch.setenv(variable, value)
        assert not page(name).exception
        forget()
