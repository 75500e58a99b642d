"""What stands in a workspace may be hostile, old or damaged: every page opens, and Snapshots can delete it."""

import subprocess
import sys
from collections.abc import Callable
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
from planner.web import registry, state
from planner.web.page import Subject
from planner.web.simulations import SIMULATIONS
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
    SIMULATIONS.clear()  # another test may have confirmed this one
    test = page("what_if")
    assert "30 cycles of" in test.info[0].value
    assert len(SIMULATIONS) == 0
    next(button for button in test.button if button.label == "Run").click().run()
    assert not test.exception
    assert len(SIMULATIONS) == 1
    assert not any(button.label == "Run" for button in test.button)


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
