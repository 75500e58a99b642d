"""Runs a page as Streamlit does, without a browser."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies
from planner.pulsar.manager.cycle import effective_shedder
from planner.remedy.tried import untried
from planner.simulate.dispatch.load import TopicLoad
from planner.simulate.dispatch.simulate import simulate
from planner.simulate.dispatch.trace import DispatchTrace
from planner.web import capture_form, namespaces, registry, remedies, state
from planner.web.simulations import SIMULATIONS
from planner.web.tasks import ANSWERS, Tasks
from planner.workspace.samples import Sample, load_sample, samples
from tests.app.namespaces.asked import advice_on


def _drawn(runner: LocalScriptRunner, timeout: float = 3) -> None:
    """Wait until a page is drawn."""
    assert runner._script_thread is not None
    runner._script_thread.join(timeout)
    assert runner.script_stopped(), f"the page was not drawn within {timeout} s"


# For whole processes, as the fuzzer is one without pytest. Streamlit looks into every installed package for components,
# which takes half a second for each new `AppTest`, and asks a thousand times a second whether a page is drawn.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
local_script_runner.require_widgets_deltas = _drawn


@pytest.fixture(scope="session", autouse=True)
def _dispatch_is_simulated_once() -> Iterator[None]:
    """The Throttling page simulates at each run; the same load under the same settings comes to the same trace."""
    kept: dict[str, DispatchTrace] = {}

    def remembered(topics: list[TopicLoad], config: Settings, duration_s: float) -> DispatchTrace:
        asked = repr((topics, config, duration_s))
        if asked not in kept:
            kept[asked] = simulate(topics, config, duration_s)
        return kept[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry.module("throttling"), "simulate", remembered)
        yield


@pytest.fixture(scope="session", autouse=True)
def _advice_is_worked_out_once() -> Iterator[None]:
    """A test asks for the advice that a page shows, and the page asks by itself; it is simulated for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(namespaces, "bundle_advice", advice_on)
        yield


def leave_nothing(tasks: Tasks) -> None:
    """Stop what nobody waits for any more: it takes turns and the processor from the next test."""
    tasks.forget(*(one.key for one in tasks.unfinished()))


@contextmanager
def put_aside(tasks: Tasks) -> Iterator[None]:
    """Let nothing be answered yet, and bring back what was: other tests would wait for it once more."""
    leave_nothing(tasks)
    kept, tasks._tasks = tasks._tasks, OrderedDict()
    try:
        yield
    finally:
        tasks.clear()
        tasks._tasks = kept


@pytest.fixture
def unanswered() -> Iterator[None]:
    """Nothing is answered yet."""
    with put_aside(ANSWERS):
        yield


@pytest.fixture
def untried_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings have remedies that were not tried: for tests about anything else of pages with findings.

    Each scenario has others to be tried, under each seed and load. `test_remedies_page` and `test_pages` try them.
    """
    key = remedies._key
    monkeypatch.setattr(remedies, "tried_findings", lambda findings, _: untried(findings))
    monkeypatch.setattr(remedies, "_key", lambda view, outcome: f"untried {key(view, outcome)}")  # answers are kept


def script(name: str) -> AppTest:
    """A page that has not run yet."""
    return AppTest.from_string(f"from planner.web.registry import page\npage({name!r}).show()\n", default_timeout=180)


_KEPT = 200
"""Answers that are kept: on one server they would be of as many tests."""


@cache
def unlike_samples() -> tuple[Sample, ...]:
    """One sample of each kind: load manager, shedder in force, whether it lists topics, whether it has policies.

    Every sample opens on Overview (`test_pages`); pages that tell no others apart open these.
    """
    kinds: dict[object, Sample] = {}
    for sample in samples():
        if sample.file.endswith(".json"):
            found = load_sample(sample)
            shedder, _ = effective_shedder(found.info.load_manager, found.settings)
            listed, governed = bool(len(found.topics)), found.policies != Policies()
            kinds.setdefault((found.info.load_manager, shedder.name, listed, governed), sample)
    return tuple(kinds.values())


def forget() -> None:
    """Forget what belongs to one test; what was decided or simulated of a digest stays, as on a server."""
    advisor = registry.module("advisor")
    for kept in (state.workspace, capture_form.captures, advisor._material, advisor._configured, advisor._advice):
        kept.clear()


@pytest.fixture
def page(workspace_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    """Returns a function that runs a page with parts of an address; the workspace is empty at first."""
    assert not workspace_file.exists()
    forget()
    # Links between pages need the router, which AppTest does not run.
    monkeypatch.setattr(st, "page_link", lambda *_, **__: None)
    # What is drawn meanwhile hangs on the machine. Another test that looks at the same finds it worked out.
    for kind in (ANSWERS, SIMULATIONS):
        monkeypatch.setattr(kind, "limits", replace(kind.limits, patience_s=120.0, last_s=120.0))
    monkeypatch.setattr(ANSWERS, "limits", replace(ANSWERS.limits, kept=_KEPT))

    def run(name: str, **address: str) -> AppTest:
        test = script(name)
        for key, value in address.items():
            test.query_params[key] = value
        return test.run()

    yield run
    for kind in (ANSWERS, SIMULATIONS):
        leave_nothing(kind)
    state.workspace().close()
    forget()
