"""The Shedding page: strategies, settings from a form or a link, and reasons."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from planner.shedding.registry import SHEDDERS
from planner.store.samples import samples

Page = Callable[..., AppTest]


def digest(file: str) -> str:
    return next(s.digest for s in samples() if s.file == file)[:12]


def shown(test: AppTest) -> str:
    return "\n".join(str(p.value) for p in [*test.markdown, *test.caption, *test.warning, *test.error])


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
    assert "Nothing is unloaded in the first cycle" in shown(test)
    assert test.query_params["loadBalancerBrokerThresholdShedderPercentage"] == "25"


def test_a_link_carries_strategy_and_settings(page: Page) -> None:
    test = page(
        "shedding",
        snapshot=digest("threshold-shedder.json"),
        strategy="OverloadShedder",
        loadBalancerBrokerOverloadedThresholdPercentage="40",
    )
    assert "1 bundle" in shown(test)
    frame = next(d.value for d in test.dataframe if "MB/s after" in d.value.columns)
    assert frame["bundles after"].tolist()[0] == frame["bundles before"].tolist()[0] - 1


def test_a_bad_value_in_a_link_is_said(page: Page) -> None:
    test = page(
        "shedding", snapshot=digest("threshold-shedder.json"), loadBalancerBrokerThresholdShedderPercentage="plenty"
    )
    assert not test.exception
    assert "loadBalancerBrokerThresholdShedderPercentage" in test.error[0].value
    assert "1 bundle" in shown(test)


def test_a_strategy_of_the_other_load_manager_is_said(page: Page) -> None:
    test = page("shedding", snapshot=digest("threshold-shedder.json"), strategy="TransferShedder")
    assert "cannot run" in test.warning[0].value


def test_later_cycles_count_hits(page: Page) -> None:
    test = page("shedding", snapshot=digest("avg-shedder.json"), loadBalancerAvgShedderHitCountHighThreshold="2")
    assert "Nothing is unloaded in the first cycle" in shown(test)
    next(n for n in test.number_input if n.label == "Cycle").set_value(2).run()
    assert "1 bundle" in shown(test)
