"""The page *Upgrade*, and the toggle of *Compare*."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.releases import UPGRADED_TO
from planner.explain.upgrade import next_release
from planner.web import state
from planner.web.simulations import SIMULATIONS
from planner.workspace.samples import load_sample, samples

UNIFORM = next(sample for sample in samples() if sample.file == "uniform-shedder-rate.json")


def finished(test: AppTest) -> AppTest:
    """Return a page whose simulations have ended."""
    for task in SIMULATIONS.unfinished():
        assert task.finished.wait(120)
    return test.run()


def _said(test: AppTest) -> str:
    return "\n".join(str(part.value) for part in [*test.markdown, *test.caption, *test.info, *test.error, *test.code])


@pytest.mark.parametrize("version", UPGRADED_TO)
def test_it_answers_for_a_cluster_of_each_release(page: Callable[..., AppTest], version: str) -> None:
    snapshot = load_sample(UNIFORM)
    old = replace(snapshot, info=replace(snapshot.info, pulsar_version=version))
    digest = state.workspace().add(old, f"on {version}").digest
    to = next_release(version) if version != UPGRADED_TO[-1] else UPGRADED_TO[0]
    test = finished(page("upgrade", snapshot=digest[:12], to=to))
    assert not test.exception
    said = _said(test)
    assert f"Pulsar {version} makes 1 move and " in said
    assert f"Restart the brokers on {to}" in said


def test_the_way_names_brokers_short(page: Callable[..., AppTest]) -> None:
    """The leader of the sample is `broker-00.story.example:8080`."""
    story = samples()[0]
    state.add_sample(story)
    said = _said(finished(page("upgrade", snapshot=story.digest[:12])))
    assert "the leader (broker-00) last" in said.replace("\\", "")


def test_a_difference_is_opened_as_a_scenario(page: Callable[..., AppTest]) -> None:
    state.add_sample(UNIFORM)
    test = finished(page("upgrade", snapshot=UNIFORM.digest[:12], to="4.0.8"))
    assert [row["release"] for row in test.dataframe[0].value.to_dict("records")] == ["4.2.4, today", "4.0.8"]
    assert test.dataframe[0].value["highest usage (%)"].nunique() == 2
    assert "by at most 1000" in _said(test)
    assert "### 4.0.8 is better for this cluster: highest usage" in _said(test).replace("\\", "")
    opens = [button.label for button in test.button if button.label.startswith("Open")]
    assert opens == ["Open 4.0.8 as a scenario"]


def test_compare_shows_each_after_the_upgrade(page: Callable[..., AppTest]) -> None:
    state.add_sample(UNIFORM)
    test = finished(page("compare", snapshot=UNIFORM.digest[:12], upgraded="1", to="4.0.8"))
    assert not test.exception
    names = set(test.dataframe[0].value["scenario"])
    assert {"UniformLoadShedder", "UniformLoadShedder, on 4.0.8"} <= names
    assert len(names) == 10
