"""The Shedding page: strategies, settings from a form or a link, and reasons."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from planner.pulsar.shedding.registry import SHEDDERS
from planner.share.link import decode_link
from planner.workspace.samples import samples

Page = Callable[..., AppTest]


def digest(file: str) -> str:
    return next(s.digest for s in samples() if s.file == file)[:12]


def shown(test: AppTest) -> str:
    return "\n".join(str(p.value) for p in [*test.markdown, *test.caption, *test.warning, *test.error])


def settings_of(test: AppTest) -> Mapping[str, Any]:
    """The settings of the scenario in the address."""
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    return scenario.settings


@pytest.mark.parametrize("shedder", [s.name for s in SHEDDERS])
def test_every_strategy_has_a_form_and_a_decision(page: Page, shedder: str) -> None:
    file = "transfer-shedder.json" if shedder == "TransferShedder" else "threshold-shedder.json"
    test = page("shedding", snapshot=digest(file), strategy=shedder)
    assert not test.exception
    assert not test.error
    labels = [w.label.split(" ")[0] for w in [*test.number_input, *test.toggle, *test.text_input]]
    wanted = next(s.settings for s in SHEDDERS if s.name == shedder)
    assert set(wanted) <= set(labels)


def test_a_setting_of_the_form_decides(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"))
    assert "1 bundle" in shown(test)
    field = next(n for n in test.number_input if n.label.startswith("loadBalancerBrokerThresholdShedderPercentage"))
    field.set_value(25).run()
    assert "ThresholdShedder sheds nothing in the first cycle" in shown(test)
    assert settings_of(test) == {"loadBalancerBrokerThresholdShedderPercentage": 25}
    field = next(n for n in test.number_input if n.label.startswith("loadBalancerBrokerThresholdShedderPercentage"))
    field.set_value(10).run()
    assert "scenario" not in test.query_params  # as in the snapshot


def test_a_link_carries_strategy_and_settings(page: Page) -> None:
    test = page(
        "shedding",
        snapshot=digest("threshold-shedder.json"),
        strategy="OverloadShedder",
        loadBalancerBrokerOverloadedThresholdPercentage="40",
    )
    assert "1 bundle" in shown(test)
    frame = next(d.value for d in test.dataframe if "MiB/s after" in d.value.columns)
    assert frame["bundles after"].tolist()[0] == frame["bundles before"].tolist()[0] - 1


def test_a_bad_value_in_a_link_is_said(page: Page) -> None:
    test = page(
        "shedding", snapshot=digest("threshold-shedder.json"), loadBalancerBrokerThresholdShedderPercentage="plenty"
    )
    assert not test.exception
    assert "loadBalancerBrokerThresholdShedderPercentage" in test.error[0].value
    assert "1 bundle" in shown(test)


def test_a_strategy_of_the_other_load_manager_brings_it_along(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"), strategy="TransferShedder")
    assert not test.warning
    assert "**TransferShedder sheds" in shown(test)
    assert "extensible load manager" in shown(test)


def test_a_strategy_that_does_not_exist_is_said(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"), strategy="Wishful", placement="Thinking")
    assert ["Wishful” is not a valid" in test.warning[0].value, "Thinking” is not" in test.warning[1].value] == [
        True
    ] * 2
    assert "**ThresholdShedder sheds" in shown(test)


def test_later_cycles_count_hits(page: Page) -> None:
    test = page("shedding", snapshot=digest("avg-shedder.json"), loadBalancerAvgShedderHitCountHighThreshold="2")
    assert "AvgShedder sheds nothing in the first cycle" in shown(test)
    next(n for n in test.number_input if n.label == "Cycle").set_value(2).run()
    assert "1 bundle" in shown(test)
    assert test.query_params["cycle"] == "2"
    assert "Unloads of earlier cycles are not carried out: in all 2 cycles" in shown(test)


def frame_with(test: AppTest, column: str) -> pd.DataFrame:
    return next(d.value for d in test.dataframe if column in d.value.columns)


def test_a_determined_destination_is_named_with_every_step(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder-80.json"))
    assert frame_with(test, "to")["to"].tolist() == ["broker-3:8080"]
    assert "1. **Isolation policies, and whether the broker serves such topics**: 3 brokers left." in shown(test)
    assert (
        "3. **Even distribution of the namespace's bundles**: 2 brokers left"
        " (broker-1:8080: it has 3 bundles of the namespace, another broker has 2)." in shown(test)
    )
    candidates = frame_with(test, "verdict")
    assert dict(zip(candidates["broker"], candidates["verdict"], strict=True)) == {
        "broker-3:8080": "taken",
        "broker-2:8080": "not chosen",
        "broker-1:8080": "excluded by: Even distribution of the namespace's bundles",
    }


def test_a_drawn_destination_names_all_that_may_come_out(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"))
    assert frame_with(test, "to")["to"].tolist() == ["one of 2 brokers: broker-2:8080, broker-3:8080"]
    assert frame_with(test, "verdict")["verdict"].tolist().count("may be drawn") == 1
    assert "Pulsar draws 1 destination at random" in shown(test)
    after = frame_with(test, "MiB/s after")
    assert after["MiB/s after"].sum() == pytest.approx(after["MiB/s before"].sum())
    assert after["bundles after"].sum() == after["bundles before"].sum()


def test_an_excluded_namespace_keeps_its_bundle(page: Page) -> None:
    test = page(
        "shedding",
        snapshot=digest("threshold-shedder.json"),
        loadBalancerSheddingExcludedNamespaces="example/orders",
    )
    moves = frame_with(test, "to")
    assert moves["to"].tolist() == ["stays"]
    assert "loadBalancerSheddingExcludedNamespaces" in moves["what happens"].tolist()[0]
    assert "but other rules keep them in place" in shown(test)
    assert not any("MiB/s after" in d.value.columns for d in test.dataframe)


def test_another_placement_strategy_finds_another_destination(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder-80.json"))
    next(s for s in test.selectbox if s.label == "Placement strategy").set_value("RoundRobinBrokerSelector").run()
    assert not test.exception
    assert settings_of(test) == {"loadBalancerLoadPlacementStrategy": "RoundRobinBrokerSelector"}
    assert "its turn" in " ".join(frame_with(test, "verdict")["why"])


@pytest.mark.parametrize(("file", "placement"), [("threshold-shedder.json", "AvgShedder"), ("avg-shedder.json", "")])
def test_avg_shedder_on_one_side_only_is_said(page: Page, file: str, placement: str) -> None:
    test = page("shedding", snapshot=digest(file), placement=placement or "LeastLongTermMessageRate")
    assert not test.exception
    said = test.warning[0].value
    assert "AvgShedder" in said
    assert ("a broker with these settings does not start" in said) == bool(placement)


def test_choosing_avg_shedder_brings_its_placement(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"), strategy="AvgShedder")
    assert next(s for s in test.selectbox if s.label == "Placement strategy").value == "AvgShedder"
    assert not test.warning


def test_unloading_that_is_off_is_said_and_shown_all_the_same(page: Page) -> None:
    test = page("shedding", snapshot=digest("real-extensible.json"))
    assert "loadBalancerSheddingEnabled is off in this cluster" in test.info[0].value
    assert len(frame_with(test, "code")) >= 3


def test_memory_is_shown(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"))
    memory = frame_with(test, "kept by")
    averages = memory[memory["what"] == "averaged usage (%)"]
    assert dict(zip(averages["of"], averages["value"], strict=True))["broker-1:8080"] == "40.0000"
    assert memory["what"].tolist().count("unloaded at") == 1


def test_choices_one_after_the_other_all_count(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"))
    for name in ("OverloadShedder", "AvgShedder", "ThresholdShedder"):
        next(s for s in test.selectbox if s.label == "Shedding strategy").set_value(name).run()
        assert f"**{name} sheds" in shown(test)
        assert not test.warning  # AvgShedder brings its placement, and takes it away again
    for name in ("RoundRobinBrokerSelector", "LeastResourceUsageWithWeight", "LeastLongTermMessageRate"):
        next(s for s in test.selectbox if s.label == "Placement strategy").set_value(name).run()
        assert f"Then **{name}** compares" in shown(test)
    for value in (25, 12, 30):
        label = "loadBalancerBrokerThresholdShedderPercentage"
        next(n for n in test.number_input if n.label.startswith(label)).set_value(value).run()
        assert settings_of(test)[label] == value
