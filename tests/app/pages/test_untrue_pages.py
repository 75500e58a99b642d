"""Every broker reports usage above its limit: each page says so, and recommends nothing that rests on it."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.snapshot import Snapshot
from planner.pulsar.shedding.registry import SHEDDERS
from planner.share.link import encode_link
from planner.simulate.edits.registry import MachineChange
from planner.simulate.scenario import Step, unchanged
from planner.web import registry, state
from planner.workspace.samples import load_sample, samples
from tests.app.plan.test_diagnosis_measurements import brokers

Page = Callable[..., AppTest]
SAID: Final = "The reported usage is untrue: all {} brokers report more CPU usage than their limits. Correct that"
STORY: Final = samples()[0]
SPLIT: Final = "split-flow-or-qps.json"
SAYS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "namespaces": (STORY.file, {"namespace": "stark/orders"}),
    "split_lab": (SPLIT, {"bundle": "0x00000000_0x80000000"}),
    "best_plan": (SPLIT, {}),
    "what_if": (STORY.file, {}),
    "compare": (STORY.file, {}),
    "failure_review": (STORY.file, {}),
    "upgrade": ("uniform-shedder-rate.json", {"to": "4.0.8"}),
    "moves": (STORY.file, {}),
}
"""Pages that judge by usage: a sample on which they do, and an address. *Advisor* is in `test_advisor_page`."""
ELSEWHERE: Final = {"overview": "test_best_plan_page", "advisor": "test_advisor_page"}
"""Pages that judge by usage, and where that is tested."""
JUDGES_NOT: Final = {
    "why": "explains what Pulsar decides",
    "shedding": "explains what Pulsar decides",
    "hit_counters": "explains what Pulsar decides",
    "throttling": "compares rates with limits of dispatch",
    "bundle_map": "shows bundles",
    "brokers": "shows what brokers report, and the finding",
    "replay": "runs replays; the Advisor judges them",
    "shadow": "compares predictions with what happened",
    "load": "loads",
    "snapshots": "loads",
}


def wrong(file: str) -> Snapshot:
    """A sample whose brokers all use half as much CPU again as they have."""
    sample = load_sample(next(one for one in samples() if one.file == file))
    return brokers(sample, cpu_usage_percent=sample.brokers.cpu_limit_percent * 1.5)


def said(test: AppTest) -> str:
    parts: list[Any] = [*test.markdown, *test.caption, *test.success, *test.warning, *test.info, *test.error]
    return "\n".join(str(part.value) for part in parts).replace("\\", "")


@pytest.fixture
def opened(page: Page) -> Callable[[str], AppTest]:
    def run(name: str) -> AppTest:
        file, address = SAYS[name]
        digest = state.workspace().add(wrong(file), "wrong").digest
        test = page(name, snapshot=digest[:12], **address)
        assert not test.exception
        return test

    return run


def sentence(name: str) -> str:
    return SAID.format(len(wrong(SAYS[name][0]).brokers))


def test_each_page_is_known() -> None:
    """A new page that judges by usage has to say so too."""
    assert sorted([*SAYS, *ELSEWHERE, *JUDGES_NOT]) == sorted(registry.NAMES)


@pytest.mark.parametrize("name", SAYS)
def test_the_page_says_it(opened: Callable[[str], AppTest], name: str) -> None:
    assert sentence(name) in said(opened(name))


def test_failure_review_offers_no_moves(opened: Callable[[str], AppTest]) -> None:
    test = opened("failure_review")
    assert f"No moves are offered. {sentence('failure_review')}" in said(test)
    assert not [one for one in test.toggle if "Find a few moves" in one.label]


def test_compare_ranks_nothing(opened: Callable[[str], AppTest]) -> None:
    test = opened("compare")
    assert f"No rankings are offered. {sentence('compare')}" in said(test)
    assert "best balanced" not in said(test)
    assert "least overload" not in said(test)
    rows = next(one.value for one in test.dataframe if "scenario" in one.value.columns)["scenario"].tolist()
    assert [row.partition(" ")[0] for row in rows] == [one.name for one in SHEDDERS], "not in the order of the judge"
    next(one for one in test.toggle if one.label == "All measures").set_value(True).run()
    assert not [cell for one in test.dataframe for cell in one.value.astype(str).to_numpy().ravel() if "★" in cell]


def test_namespaces_cuts_nothing(opened: Callable[[str], AppTest]) -> None:
    test = opened("namespaces")
    assert f"No cuts or splits are offered. {sentence('namespaces')}" in said(test)
    assert "If it is recreated" not in said(test)
    assert not [one for one in test.button if "as a scenario" in one.label]


def test_a_split_is_neither_worth_it_nor_not(opened: Callable[[str], AppTest]) -> None:
    text = said(opened("split_lab"))
    assert "**Not known.**" in text
    assert "Worth it" not in text


def test_upgrade_calls_no_release_better(opened: Callable[[str], AppTest]) -> None:
    assert "### Whether 4.0.8 is better or worse for this cluster is not known. The reported usage is untrue" in said(
        opened("upgrade")
    )


def test_a_scenario_that_corrects_the_machines_is_believed(page: Page) -> None:
    snapshot = wrong(STORY.file)
    digest = state.workspace().add(snapshot, "wrong").digest
    cores = float(snapshot.brokers.cpu_limit_percent.max()) / 100 * 2
    mended = unchanged(snapshot.info.pulsar_version, steps=(Step(MachineChange(cores=cores)),))
    link = {"snapshot": digest[:12], "scenario": encode_link(mended, digest, "wrong")}
    for name in ("what_if", "moves", "compare"):
        assert "untrue" not in said(page(name, **link))
