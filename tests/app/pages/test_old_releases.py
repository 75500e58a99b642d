"""Every page, on releases that lack strategies and settings of the reference."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.releases import RELEASES, ReleaseName, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.shedding.registry import SHEDDERS
from planner.share.link import encode_link
from planner.simulate.scenario import unchanged
from planner.web import state
from planner.web.registry import NAMES
from planner.workspace.samples import load_sample, samples
from tests.app.pages.test_pages import texts

OLD: tuple[ReleaseName, ...] = (RELEASES[0], "3.2.3")
AVG = "AvgShedder (not in Pulsar {}: simulated as if it were)"

Page = Callable[..., AppTest]


def of_release(file: str, version: ReleaseName) -> Snapshot:
    """A sample as a cluster of a release."""
    sample = load_sample(next(one for one in samples() if one.file == file))
    settings = Settings(sample.settings.overrides, release(version))
    return replace(sample, info=replace(sample.info, pulsar_version=version), settings=settings)


def opened(file: str, version: ReleaseName) -> str:
    return state.workspace().add(of_release(file, version), version).digest[:12]


@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("file", ["threshold-shedder.json", "real-extensible.json"])
def test_every_page_opens(page: Page, file: str, version: ReleaseName) -> None:
    first = page("overview")
    assert not first.exception
    digest = opened(file, version)
    for name in NAMES:
        test = page(name, snapshot=digest)
        assert not test.exception, name
        assert not test.error, (name, texts(test))


@pytest.mark.parametrize("version", OLD)
def test_any_strategy_may_be_asked_about_and_is_marked(page: Page, version: ReleaseName) -> None:
    page("overview")
    digest = opened("threshold-shedder.json", version)
    for shedder in SHEDDERS:
        test = page("why", snapshot=digest, ask=shedder.name)
        assert not test.exception, shedder.name
    (ask,) = (box for box in test.selectbox if box.label == "Ask")
    assert AVG.format(version) in ask.options
    assert "TransferShedder (needs the extensible load manager: a migration)" in ask.options


@pytest.mark.parametrize("version", OLD)
def test_compare_names_no_strategy_that_the_release_lacks_as_the_best(page: Page, version: ReleaseName) -> None:
    page("overview")
    digest = opened("threshold-shedder.json", version)
    test = page("compare", snapshot=digest)
    assert not test.exception
    sentence = next(m.value for m in test.markdown if "Not possible by settings alone" in m.value)
    best, _, barred = sentence.partition("Not possible by settings alone")
    assert "AvgShedder" not in best
    assert "TransferShedder" not in best
    assert f"**AvgShedder** (not in Pulsar {version}" in barred
    assert "**TransferShedder** (needs the extensible load manager: a migration)" in barred
    pairs = page("compare", snapshot=digest, compare="pairs")
    assert not pairs.exception
    assert "AvgShedder" not in texts(pairs)


@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("file", ["threshold-shedder.json", "real-extensible.json"])
def test_the_overview_offers_no_strategy_that_the_cluster_cannot_have(
    page: Page, file: str, version: ReleaseName
) -> None:
    page("overview")
    test = page("overview", snapshot=opened(file, version))
    tried = [button.label for button in test.button if "What if" in button.label]
    assert not any("AvgShedder" in label for label in tried)
    if file.startswith("real-extensible"):
        assert not any(shedder.name in label for label in tried for shedder in SHEDDERS)


@pytest.mark.parametrize("version", OLD)
def test_hit_counters_count_for_no_strategy_that_the_release_lacks(page: Page, version: ReleaseName) -> None:
    page("overview")
    test = page("hit_counters", snapshot=opened("threshold-shedder.json", version))
    (box,) = (one for one in test.selectbox if one.label == "Show counters of")
    assert list(box.options) == ["ThresholdShedder"]


def test_an_extensible_cluster_is_offered_no_strategy_of_the_modular_load_manager(page: Page) -> None:
    """A change of the load manager is a migration: no button, no winner, no answer offers it."""
    page("overview")
    digest = opened("real-extensible.json", "4.2.4")
    modular = [one.name for one in SHEDDERS if one.name != "TransferShedder"]
    test = page("overview", snapshot=digest)
    assert not [b.label for b in test.button if any(name in b.label for name in modular)]
    sentence = next(
        m.value for m in page("compare", snapshot=digest).markdown if "Not possible by settings alone" in m.value
    )
    assert not any(name in sentence.partition("Not possible")[0] for name in modular)
    ask = next(box for box in page("why", snapshot=digest).selectbox if box.label == "Ask")
    for name in modular:
        assert f"{name} (needs the modular load manager: a migration)" in ask.options
    shedding = next(b for b in page("shedding", snapshot=digest).selectbox if b.label == "Shedding strategy")
    assert shedding.options[0] == "TransferShedder"
    assert all("needs the modular load manager: a migration" in option for option in shedding.options[1:])


def test_a_setting_of_a_scenario_that_the_release_lacks_is_said_to_have_no_effect(page: Page) -> None:
    """Only notes that had to be unfolded said so."""
    page("overview")
    digest = state.workspace().add(of_release("threshold-shedder.json", "4.0.8"), "4.0.8").digest
    asked = unchanged("4.0.8", settings={"loadBalancerSheddingExcludedNamespaces": "example/orders"})
    for name in ("what_if", "brokers"):
        test = page(name, snapshot=digest[:12], scenario=encode_link(asked, digest))
        said = "These settings have no effect in Pulsar 4.0.8: loadBalancerSheddingExcludedNamespaces."
        assert any(said in one.value.replace("\\", "") for one in test.caption)
