"""Pages that show the same fact of a cluster after a scenario show the same number."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.share.link import encode_link
from planner.simulate.edits.registry import AnyEdit, BrokerLoss, IsolationChange, TrafficGrowth
from planner.simulate.scenario import Step, unchanged
from planner.web import registry, state
from tests.app.pages.test_pages_agree import figures, said
from tests.app.plan.test_one_answer import cluster

Page = Callable[..., AppTest]
LIMIT, WEIGHT = "loadBalancerBrokerOverloadedThresholdPercentage", "loadBalancerCPUResourceWeight"
ADDRESS: dict[str, dict[str, str]] = {
    "overview": {"with": "1"},
    "brokers": {"with": "1"},
    "failure_review": {"when": "end"},
    "what_if": {},
    "moves": {},
    "compare": {"compare": "mine"},
}
CASES: dict[str, tuple[int, tuple[AnyEdit, ...], dict[str, float]]] = {
    "beyond capacity": (1, (TrafficGrowth(factor=9.0), BrokerLoss(broker="broker-1.generated.example:8080")), {}),
    "another limit": (2, (TrafficGrowth(factor=2.0),), {LIMIT: 50}),
    "another weight": (4, (TrafficGrowth(factor=3.0),), {WEIGHT: 0.5}),
}


def table(test: AppTest, column: str) -> dict[str, dict[str, Any]]:
    frame = next(one.value for one in test.dataframe if column in one.value.columns)
    return {str(row[frame.columns[0]]): dict(row) for _, row in frame.iterrows()}


@pytest.mark.parametrize("name", CASES)
def test_each_fact_is_one_number(page: Page, name: str) -> None:
    number, edits, settings = CASES[name]
    snapshot = cluster(number)
    saved = state.workspace().add(snapshot, "after")
    made = unchanged(snapshot.info.pulsar_version, steps=tuple(map(Step, edits)), settings=settings, cycles=6)
    link = encode_link(replace(made, seed=3), saved.digest, "after")
    shown = {one: page(one, snapshot=saved.digest[:12], scenario=link, **parts) for one, parts in ADDRESS.items()}
    assert not any(test.exception for test in shown.values())
    told, review, played = (figures(shown[one]) for one in ("overview", "failure_review", "what_if"))
    after = {measure: row["after the plan"] for measure, row in table(shown["moves"], "after the plan").items()}
    compared = next(row for one, row in table(shown["compare"], "peak (%)").items() if "(open)" in one)

    assert told["Highest usage"] == review["Highest usage"] == after["Highest usage"]
    assert f"{compared['highest usage (%)']} %" == told["Highest usage"]
    usage = [row["usage (%)"] for row in table(shown["brokers"], "usage (%)").values()]
    assert f"{max(map(float, usage)):.1f} %" == told["Highest usage"]
    alive = len(usage) - any(isinstance(edit, BrokerLoss) for edit in edits)
    assert f"{alive} brokers with a usage from" in said(shown["brokers"], "with a usage from")
    assert told["Headroom"] == review["Headroom"] == after["Headroom"] == played["Final headroom"]
    assert float(compared["deviation (points)"]) == float(told["Deviation"].split()[0])

    kinds = ("error", "warning", "success")
    verdict = " ".join(str(one.value) for kind in kinds for one in getattr(shown["overview"], kind))
    found = re.search(r"(\d+) of \d+ brokers above (\d+) %", verdict)
    assert (found[1] if found else "0") == review["Brokers above the limit"] == after["Brokers above the limit"]
    if found:
        assert found[2] == "85"
    losses = said(shown["failure_review"], r"^\*\*(Worst is the loss of|No (simulated )?loss raises)").strip("*")
    assert losses in said(shown["overview"], "Loss of a broker")

    notes = " ".join(str(one.value) for one in shown["overview"].caption)
    assert ("only changes what Pulsar decides" in notes) == bool(settings)
    plans = page("best_plan", snapshot=saved.digest[:12], scenario=link, **{"with": "1"})
    notes = " ".join(str(one.value) for one in plans.caption)
    assert ("Best plans measure usage as the scenario's load balancer does" in notes) == bool(settings)


def test_clients_of_bundles_that_no_broker_serves_count_on_moves_as_well(page: Page) -> None:
    """The page filtered them out, and said that nobody is disconnected."""
    snapshot = cluster(3)
    nobody = IsolationChange(name="p", namespaces=snapshot.namespaces, primary=("broker-0.*",), min_limit=1)
    died = BrokerLoss(broker="broker-0.generated.example:8080", at_min=2.0)
    saved = state.workspace().add(snapshot, "unserved")
    made = unchanged(snapshot.info.pulsar_version, steps=(Step(nobody), Step(died)), cycles=6)
    link = encode_link(made, saved.digest, "unserved")
    moves, played = (
        figures(page(one, snapshot=saved.digest[:12], scenario=link))["Disconnected topics"]
        for one in ("moves", "what_if")
    )
    assert moves == played != "0"


@pytest.mark.parametrize("name", ["what_if", "moves"])
def test_findings_of_a_scenario_lead_to_the_cluster_after_it(
    page: Page, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The card named a headroom of the scenario, and the page behind its link that of the capture."""
    linked: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(registry, "link", lambda _, label, *__, **parts: linked.append((label, parts)))
    snapshot = cluster(1)
    saved = state.workspace().add(snapshot, "after")
    made = unchanged(snapshot.info.pulsar_version, steps=(Step(TrafficGrowth(factor=9.0)),), cycles=3)
    test = page(name, snapshot=saved.digest[:12], scenario=encode_link(made, saved.digest, "after"))
    assert any("Out of capacity" in str(one.value) for one in test.markdown)
    parts = {label: parts for label, parts in linked if label in {"Headroom", "Show the limit"}}
    assert parts["Headroom"]["when"] == "end"
    linked.clear()
    page(name, snapshot=saved.digest[:12])
    assert not any(registry.AFTER in parts or parts.get("when") == "end" for _, parts in linked)
