"""What is chosen anywhere is one scenario, which every page tells; each browser has a snapshot of its own."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.snapshot import Snapshot
from planner.explain.cluster_tables import broker_frame
from planner.share.link import decode_link, encode_link
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.losses import LOSS_AT_MIN
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.web import registry, session, state
from planner.web.page import Subject
from planner.workspace.samples import load_sample, samples
from tests.app.pages.conftest import script

Page = Callable[..., AppTest]
ABOUT_A_CLUSTER = [name for name in registry.NAMES if registry.page(name).subject is not Subject.NOTHING]
AVG = {"loadBalancerLoadSheddingStrategy": "AvgShedder", "loadBalancerLoadPlacementStrategy": "AvgShedder"}
SCENARIO = Scenario(steps=(Step(ScaleTraffic(factor=1.3)), Step(AddBrokers(count=1))), settings=AVG, cycles=12)


def digest(file: str = "pip-364.json") -> str:
    return next(s.digest for s in samples() if s.file == file)


def shown(test: AppTest) -> str:
    return "\n".join(str(p.value) for p in [*test.markdown, *test.caption, *test.warning, *test.error, *test.success])


def link_of(test: AppTest) -> str:
    """The link that a press of the button shows."""
    test.session_state["copy-link"] = True
    return next(str(code.value) for code in test.run().code if "://localhost" in code.value)


def walk(test: AppTest, name: str) -> AppTest:
    """Go to another page by the menu: the address begins anew, the session stays."""
    there = script(name)
    for kept in ("selected_digest", "is_new", "was_started", "scenario_histories", "scenario_param"):
        if kept in test.session_state:
            there.session_state[kept] = test.session_state[kept]
    return there.run()


@pytest.mark.parametrize("name", ABOUT_A_CLUSTER)
def test_every_page_tells_the_scenario(page: Page, name: str) -> None:
    test = page(name, scenario=encode_link(SCENARIO, digest(), "PIP"))
    assert not test.exception
    words = "AvgShedder instead of ThresholdShedder · 1.3x traffic of the cluster · add 1 broker"
    assert f"**Scenario:** {words}" in shown(test)
    about = registry.page(name).subject.value
    assert about in shown(test)
    assert "scenario=1." in link_of(test)
    next(b for b in test.button if b.key == "clear-scenario").click().run()
    assert "**As captured:** no scenario is open." in shown(test)
    assert "scenario" not in test.query_params
    link = link_of(test)
    assert link.startswith("http://localhost")
    assert "scenario" not in link


@pytest.mark.parametrize("name", sorted({*registry.NAMES} - {*ABOUT_A_CLUSTER}))
def test_every_other_page_has_its_link(page: Page, name: str) -> None:
    assert link_of(page(name)).startswith("http://localhost")


def test_a_strategy_is_the_same_on_all_pages(page: Page) -> None:
    test = page("shedding", snapshot=digest()[:12])
    next(s for s in test.selectbox if s.label == "Shedding strategy").set_value("AvgShedder").run()
    for name in ("what_if", "shedding"):
        test = walk(test, name)
        assert next(s for s in test.selectbox if s.label == "Shedding strategy").value == "AvgShedder"
        assert next(s for s in test.selectbox if s.label == "Placement strategy").value == "AvgShedder"
    test = walk(test, "hit_counters")
    what = next(s for s in test.selectbox if s.label == "Show counters of")
    assert what.value == "AvgShedder"
    needed = next(n for n in test.number_input if n.label.startswith("loadBalancerAvgShedderHitCountHighThreshold"))
    needed.set_value(1).run()
    next(s for s in test.selectbox if s.label == "Show counters of").set_value("ThresholdShedder").run()
    test = walk(test, "what_if")
    assert next(s for s in test.selectbox if s.label == "Shedding strategy").value == "ThresholdShedder"
    assert any(n.label.startswith("loadBalancerAvgShedderHitCountHighThreshold") for n in test.number_input)


def test_a_strategy_that_counts_nothing_is_said(page: Page) -> None:
    test = page("hit_counters", snapshot=digest("overload-shedder.json")[:12])
    assert "The current strategy, OverloadShedder, has no counters" in shown(test)


def test_a_page_shows_the_cluster_after_the_scenario(page: Page) -> None:
    test = page("brokers", scenario=encode_link(SCENARIO, digest(), "PIP"))
    start = load_sample(next(s for s in samples() if s.file == "pip-364.json"))
    assert next(d.value for d in test.dataframe if "usage (%)" in d.value)["broker"].tolist() == (
        broker_frame(start)["broker"].tolist()
    )
    next(t for t in test.toggle if t.label == "Show with the scenario").set_value(True).run()
    assert "This page shows the cluster after 12 cycles of the scenario." in shown(test)
    end = broker_frame(simulate(start, SCENARIO).end)
    frame = next(d.value for d in test.dataframe if "usage (%)" in d.value)
    assert frame.sort_values("broker")["usage (%)"].tolist() == end.sort_values("broker")["usage (%)"].tolist()
    assert "with=1" in link_of(test)


def test_every_page_draws_the_cluster_after_the_scenario(page: Page) -> None:
    """With a broker and bundles that the snapshot does not have."""
    opened = encode_link(SCENARIO, digest("real-modular.json"), "real")
    for name in ABOUT_A_CLUSTER:
        test = page(name, scenario=opened, **{"with": "1"})
        assert not test.exception, name
        assert not [error for error in test.error if "ends worse" not in error.value], name


def test_what_somebody_else_loads_changes_nothing(page: Page, small: Snapshot) -> None:
    page("overview")
    state.workspace().add(small, "a colleague's")
    assert page("overview").query_params["snapshot"] == samples()[0].digest[:12]


def test_a_browser_opens_what_it_looked_at_last(page: Page, small: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.web.address.browser", lambda: "a" * 32)
    page("why", snapshot=digest()[:12])
    state.workspace().add(small, "a colleague's")
    assert page("overview").query_params["snapshot"] == digest()[:12]
    monkeypatch.setattr("planner.web.address.browser", lambda: "b" * 32)
    assert page("overview").query_params["snapshot"] == samples()[0].digest[:12]


def test_a_topic_that_nobody_lists_is_found_from_any_page(page: Page) -> None:
    test = page("brokers", snapshot=digest()[:12], q="example/orders/order-12")
    assert not test.exception
    assert "not in this snapshot" in shown(test)
    assert "bundle `0x" in shown(test)
    next(t for t in test.text_input if t.label == "Find").set_value("nothing at all").run()
    assert "No topic, bundle, namespace or broker matches" in shown(test)


def test_a_widget_is_told_its_value_in_each_run_and_a_field_while_nobody_types(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that missed one of two runs would take the lowest value for a choice of the person."""
    monkeypatch.setattr(session, "SEEN_S", 1e9)
    test = page("brokers", snapshot=samples()[0].digest[:12], q="broker")

    def told() -> tuple[bool, bool]:
        box = next(one for one in test.selectbox if one.label == "Broker")
        field = next(one for one in test.text_input if one.label == "Find")
        return box.proto.set_value, field.proto.set_value

    assert told() == (True, True)
    test.run()
    assert told() == (True, True)  # the browser may have missed the first one
    next(one for one in test.text_input if one.label == "Find").set_value("bundle").run()
    assert told() == (True, False)  # whoever has typed it knows it
    monkeypatch.setattr(session, "SEEN_S", 0.0)
    test = page("brokers", snapshot=samples()[0].digest[:12], q="broker")
    test.run()
    assert told() == (True, False)  # and somebody may be at it again


def test_a_choice_survives_what_the_browser_asked_for_before_it(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page asks by itself has the address of that moment, in which the choice may not be yet."""
    monkeypatch.setattr("planner.web.address.SEEN_S", 60.0)
    test = page("overview", snapshot=digest()[:12])
    before = dict(test.query_params)
    next(field for field in test.text_input if field.label == "Find").set_value("nobody").run()
    for _ in range(2):
        assert test.query_params["q"] == "nobody"
        assert "matches “nobody”" in shown(test)
        test.query_params.clear()
        test.query_params.update(before)
        test.run()
    monkeypatch.setattr("planner.web.address.is_history_navigation", lambda: True)
    test.query_params.clear()
    test.query_params.update(before)
    assert "q" not in test.run().query_params


def test_the_menu_begins_with_an_address_of_its_own(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for the page without any parts, however recently one was written."""
    monkeypatch.setattr("planner.web.address.SEEN_S", 60.0)
    test = page("overview", snapshot=digest()[:12])
    next(field for field in test.text_input if field.label == "Find").set_value("nobody").run()
    test.query_params.clear()
    assert "q" not in test.run().query_params


def test_links_lead_to_the_cluster_that_the_page_shows(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Overview says of the cluster after a scenario stands on the pages that its links open, too."""
    parts: dict[str, dict[str, str] | None] = {}

    def drawn(_: object, *, label: str, query_params: dict[str, str] | None, **__: object) -> None:
        parts[label] = query_params

    monkeypatch.setattr("streamlit.page_link", drawn)
    opened = encode_link(SCENARIO, digest(), "PIP")
    own = page("overview", scenario=opened, q="broker-1").query_params["scenario"]
    about = {"snapshot": digest()[:12], "scenario": own if isinstance(own, str) else own[0]}
    assert (parts["The plan"], parts["All losses"]) == (about, about)
    assert "with" not in (parts["Broker"] or {})
    parts.clear()
    shown_after = page("overview", scenario=opened, q="broker-1", **{"with": "1"})
    assert (parts["The plan"], parts["All losses"]) == ({**about, "with": "1"}, {**about, "when": "end"})
    assert (parts["Broker"] or {})["with"] == "1"
    assert parts["Edit"] == about
    review = page("failure_review", scenario=opened, when="end")
    figures, losses = ({one.label: one.value for one in test.metric} for test in (shown_after, review))
    assert figures["Highest usage"] == losses["Highest usage"]
    assert figures["Headroom"] == losses["Headroom"]


def test_no_button_asks_for_the_strategy_that_runs(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A press of *What if AvgShedder* changed nothing in a scenario that runs it already."""
    went: list[str] = []
    monkeypatch.setattr("planner.web.registry.go", went.append)
    plain = page("overview", snapshot=digest()[:12])
    assert [b.help for b in plain.button if b.label == "What if AvgShedder"] == [
        "Instead of ThresholdShedder; opens What-if."
    ]
    test = page("overview", scenario=encode_link(SCENARIO, digest(), "PIP"))
    (other,) = (b for b in test.button if b.label.startswith("What if "))
    assert other.label != "What if AvgShedder"
    assert other.help == "Instead of AvgShedder; opens What-if."
    before = test.query_params["scenario"]
    other.click().run()
    assert went == ["what_if"]
    assert test.query_params["scenario"] != before


def test_the_worst_loss_is_simulated_on_the_cluster_that_is_reviewed(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As captured it owes nothing to an open scenario; after the scenario it happens after its cycles."""
    monkeypatch.setattr("planner.web.registry.go", lambda _: None)
    with_scenario = encode_link(Scenario(steps=(Step(ScaleTraffic(factor=1.5)),), cycles=12), digest(), "PIP")
    for when, label in (("now", "Simulate the worst loss: "), ("end", "Simulate the worst loss after the scenario: ")):
        test = page("failure_review", scenario=with_scenario, when=when)
        next(b for b in test.button if b.label.startswith(label)).click().run()
        made = decode_link(test.query_params["scenario"]).scenario
        assert made is not None
        *before, lost = made.edits
        assert isinstance(lost, KillBroker)
        if when == "now":
            assert (before, made.cycles, lost.at_min) == ([], Scenario().cycles, LOSS_AT_MIN)
        else:
            cycles = 12
            assert before == [ScaleTraffic(factor=1.5)]
            assert (made.cycles, lost.at_min) == (cycles + Scenario().cycles, cycles + LOSS_AT_MIN)
        assert not page("what_if", scenario=test.query_params["scenario"]).exception


def test_a_remedy_says_that_it_was_tried_without_the_open_scenario(page: Page) -> None:
    with_scenario = encode_link(Scenario(steps=(Step(ScaleTraffic(factor=1.5)),), cycles=12), digest(), "PIP")
    words = "The open scenario is not part of it."
    assert words in shown(page("overview", scenario=with_scenario))
    assert words not in shown(page("overview", scenario=with_scenario, **{"with": "1"}))
    assert words not in shown(page("overview", snapshot=digest()[:12]))
