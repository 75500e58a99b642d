"""The pages about scenarios: edits, undo, links, comparison, reasons, failures, commands."""

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.snapshot import Snapshot
from planner.cluster.text import number
from planner.share.commands import final_moves
from planner.share.link import decode_link, encode_link, encode_reference
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.move_bundles import MoveBundles
from planner.simulate.edits.registry import KINDS
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.measures import MEASURES
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.trace import Trace
from planner.web import registry, state
from planner.web.simulations import SIMULATIONS
from planner.workspace.samples import load_sample, samples

pytestmark = pytest.mark.usefixtures("untried_remedies")
Page = Callable[..., AppTest]
NEEDED: dict[str, dict[str, Any]] = {
    "change_capacity": {"CPU cores": 8.0},
    "move_bundles": {"Moves": "example/orders/0x00000000_0x04444444, broker-2:8080"},
    "set_isolation": {"Namespaces": "example/.*", "Primary brokers": "broker-[12].*"},
    "set_anti_affinity": {"Group": "apart"},
    "set_partitions": {"Topic": "persistent://acme/clicks/web"},
}
"""What a form wants filled in before its edit does anything."""
PAGES = ("what_if", "moves", "compare", "why", "failure_review")


def sample(file: str = "pip-364.json") -> str:
    return next(s.digest for s in samples() if s.file == file)


def link(*steps: Step, file: str = "pip-364.json", **changes: Any) -> str:
    return encode_link(Scenario(steps=steps, cycles=12, **changes), sample(file), "a sample")


def shown(test: AppTest) -> str:
    return "\n".join(str(p.value) for p in [*test.markdown, *test.caption, *test.warning, *test.error, *test.success])


def press(test: AppTest, label: str) -> AppTest:
    return next(b for b in test.button if b.label == label).click().run()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("file", ["pip-364.json", "transfer-shedder.json"])
def test_opens(page: Page, name: str, file: str) -> None:
    test = page(name, snapshot=sample(file)[:12])
    assert not test.exception
    assert not test.error


def test_compare_tells_each_strategy_as_it_arrives(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    others_are_told = threading.Event()

    def simulate_slowly(snapshot: Snapshot, scenario: Scenario, **more: Any) -> Trace:
        if scenario.settings["loadBalancerLoadSheddingStrategy"] == "AvgShedder":
            others_are_told.wait(60)
        return simulate(snapshot, scenario, **more)

    monkeypatch.setattr("planner.web.simulations.simulate", simulate_slowly)
    monkeypatch.setattr(SIMULATIONS, "limits", replace(SIMULATIONS.limits, patience_s=0.1))
    test = page("compare", scenario=link(Step(ScaleTraffic(factor=1.7))))
    others = ("ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "TransferShedder")
    until = time.monotonic() + 50
    while not all(f"**{name}**: " in shown(test) for name in others) and time.monotonic() < until:
        test.run()
    told = shown(test)
    others_are_told.set()
    assert not test.exception
    for name in others:
        assert re.search(rf"\*\*{name}\*\*: \d+ bundles? shed, \d+ topics? disconnected", told)
    assert "**AvgShedder**" not in told
    monkeypatch.setattr(SIMULATIONS, "limits", replace(SIMULATIONS.limits, patience_s=60.0))
    assert "best balanced: highest usage" in shown(test.run())


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_cycles_that_a_page_looked_at_take_no_memory(page: Page, workspace_file: Path) -> None:
    """Those of a large cluster are 100 MB of each run, and a server keeps dozens of runs."""
    assert not page("what_if", snapshot=sample()[:12], scenario=link(Step(ScaleTraffic(factor=3.25)))).exception
    in_memory = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
    of_runs = rf"{re.escape(str(workspace_file.parent))}.*\(deleted\)\n(?:\w+:.*\n)*?Rss: +(\d+) kB"
    assert set(re.findall(of_runs, in_memory)) == {"0"}


@pytest.mark.parametrize("name", PAGES)
def test_opens_a_link(page: Page, name: str) -> None:
    test = page(name, scenario=link(Step(AddBrokers(count=2)), Step(ScaleTraffic(factor=1.5, at_min=3))))
    assert not test.exception
    assert not [error for error in test.error if "This plan is worse than" not in error.value]
    assert test.query_params["snapshot"] == sample()[:12]


def test_a_scenario_too_large_for_a_file_is_told_where_it_would_be_exported(page: Page) -> None:
    digest = state.add_sample(samples()[0]).digest
    test = page("what_if", snapshot=digest[:12])
    test.session_state["save-open"] = True
    assert [part for part in test.run().get("download_button") if "Export" in part.proto.label]
    pairs = tuple((f"a/{'b' * 200}/0x{at:08x}_0x{at + 1:08x}", "c:1") for at in range(9_000))
    large = unchanged("4.2.4").with_steps(Step(MoveBundles(moves=pairs), on=False))
    kept = state.workspace().scenarios.save(large, digest, "")
    test.query_params["scenario"] = encode_reference(kept.digest, digest)
    test.run()
    assert not test.exception
    assert not [part for part in test.get("download_button") if "Export" in part.proto.label]
    (error,) = test.error
    assert re.search(
        r"The file has [0-9,]+ bytes; a scenario has at most 2,000,000\.\s+Choose fewer moves", error.value
    )


class TestWhatIf:
    def test_tells_what_happens(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        assert "3 bundles shed" in shown(test)
        assert "Plan digest" in shown(test)

    def test_scenarios_that_move_alike_have_digests_of_their_own(self, page: Page) -> None:
        calm, file = {"loadBalancerEnabled": False}, "pip-364.json"
        found = []
        for factor in (1.0, 1.01):
            text = shown(page("what_if", scenario=link(Step(ScaleTraffic(factor=factor)), file=file, settings=calm)))
            digests = re.search(r"Plan digest `(\w{16})`.* Scenario digest `(\w{16})`", text)
            assert digests is not None
            found.append(digests.groups())
        (plan, asked), (same, other) = found
        assert plan == same
        assert asked != other

    def test_another_strategy_changes_plan_and_link(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        before = shown(test)
        next(s for s in test.selectbox if s.label == "Shedding strategy").select("AvgShedder").run()
        assert not test.exception
        scenario = decode_link(test.query_params["scenario"]).scenario
        assert scenario is not None
        assert scenario.settings["loadBalancerLoadSheddingStrategy"] == "AvgShedder"
        assert scenario.settings["loadBalancerLoadPlacementStrategy"] == "AvgShedder"
        assert shown(test) != before

    def test_the_placement_of_the_snapshot_comes_back_after_avg_shedder(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        for shedder, placement in (
            ("AvgShedder", "AvgShedder"),
            ("ThresholdShedder", "LeastResourceUsageWithWeight"),
            ("AvgShedder", "AvgShedder"),
            ("UniformLoadShedder", "LeastResourceUsageWithWeight"),
        ):
            next(s for s in test.selectbox if s.label == "Shedding strategy").select(shedder).run()
            assert next(s for s in test.selectbox if s.label == "Shedding strategy").value == shedder
            assert next(s for s in test.selectbox if s.label == "Placement strategy").value == placement

    def test_undo_and_redo(self, page: Page) -> None:
        test = page("what_if", scenario=link(Step(ScaleTraffic(factor=3))))
        next(n for n in test.number_input if n.label == "Cycles").set_value(20).run()
        changed = test.query_params["scenario"]
        press(test, "Undo")
        assert next(n for n in test.number_input if n.label == "Cycles").value == 12
        press(test, "Redo")
        assert test.query_params["scenario"] == changed

    @pytest.mark.parametrize(
        "text", [encode_link(Scenario(), "f" * 64, "our production"), "not a link"], ids=["waits", "none"]
    )
    def test_why_a_link_is_not_taken_stays_though_the_page_draws_itself_again(self, page: Page, text: str) -> None:
        test = page("what_if", scenario=text)
        (said,) = [error.value for error in test.error]
        test.run()
        assert [error.value for error in test.error] == [said]
        test.session_state["link_not_opened"] = (
            "Overview",
            *test.session_state["link_not_opened"][1:],
        )  # it was opened there
        assert not test.run().error

    def test_an_opened_link_can_be_undone(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        opened = link(Step(AddBrokers(count=2)))
        test.query_params["scenario"] = opened
        test.run()
        assert [t.label for t in test.toggle if "brokers" in t.label] == ["Add 2 brokers"]
        press(test, "Undo")
        assert not [t.label for t in test.toggle if "brokers" in t.label]
        assert "scenario" not in test.query_params
        press(test, "Redo")
        again, before = (decode_link(one).scenario for one in (test.query_params["scenario"], opened))
        assert before is not None
        assert again == before.on_brokers_of("4.2.4")

    def test_steps_through_the_cycles(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        assert "Cycle 1, minute 0: 1 bundle (42.5 MiB/s) shed" in shown(test)
        press(test, "Next")
        assert "Cycle 2, minute 1: 1 bundle" in shown(test)
        next(s for s in test.slider if s.label == "Cycle").set_value(30).run()
        assert "Cycle 30, minute 29: nothing shed" in shown(test)
        press(test, "Back")
        assert "Cycle 29, minute 28: nothing shed" in shown(test)

    @pytest.mark.parametrize("quantity", ["msg_rate_per_s", "throughput_bytes_per_s", "bundles"])
    def test_another_quantity_as_heat_map(self, page: Page, quantity: str) -> None:
        test = page("what_if", snapshot=sample()[:12], quantity=quantity, show="map")
        assert not test.exception
        assert "of 5 brokers in 30 cycles. The highest is" in shown(test)

    def test_measures_stand_beside_those_of_the_cluster_as_captured(self, page: Page) -> None:
        captured = {m.label: m.value for m in page("what_if", scenario=link()).metric}
        test = page("what_if", scenario=link(Step(ScaleTraffic(factor=1.5))))
        deltas = {m.label: m.delta for m in test.metric}
        peak = captured["Peak"].removesuffix(" %")
        assert re.fullmatch(rf"\+[0-9.]+ · {re.escape(peak)} as captured", deltas["Peak"])
        assert re.fullmatch(r"-[0-9.]+ · [0-9.]+ as captured", deltas["Final headroom"])
        assert deltas["Splits"] == "as captured"

    @pytest.mark.parametrize(
        ("value", "before", "words"),
        [
            (5, 9, "-4 · 9 as captured"),
            (0.5, 0.5, "as captured"),
            (None, 3, "3 as captured"),
            (4, None, "not yet as captured"),
            (None, None, "as captured"),
            (math.inf, math.inf, "as captured"),
            (2.0, math.inf, "unlimited as captured"),
            (1_200, 0, "+1,200 · 0 as captured"),
        ],
    )
    def test_a_change_in_words(self, value: float | None, before: float | None, words: str) -> None:
        assert registry.module("what_if").change_words(value, before)[1] == words

    def test_more_cpu_than_there_is(self, page: Page) -> None:
        test = page("what_if", scenario=link(Step(ScaleTraffic(factor=3))))
        assert "needs more CPU than the machine has" in shown(test)
        (headroom,) = [float(m.value.removesuffix("x")) for m in test.metric if m.label == "Final headroom"]
        assert headroom < 1

    def test_an_edit_is_added_switched_off_and_deleted(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        press(test, "Add")
        switch = next(t for t in test.toggle if "traffic" in t.label)
        assert switch.label == "2x traffic of the cluster"
        switch.set_value(False).run()
        scenario = decode_link(test.query_params["scenario"]).scenario
        assert scenario is not None
        assert [step.on for step in scenario.steps] == [False]
        next(b for b in test.button if b.key and b.key.startswith("delete-")).click().run()
        assert "scenario" not in test.query_params

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_of_edit_has_a_form(self, page: Page, kind: str) -> None:
        listed = "real-modular.json" if kind == "set_partitions" else "pip-364.json"  # the other lists no topics
        test = page("what_if", snapshot=sample(listed)[:12])
        next(s for s in test.selectbox if s.label == "Kind of edit").select(kind).run()
        assert not test.exception
        for label, value in NEEDED.get(kind, {}).items():
            assert next(b for b in test.button if b.label == "Add").disabled
            next(
                w for w in [*test.text_input, *test.text_area, *test.number_input] if w.label.startswith(label)
            ).set_value(value).run()
        press(test, "Add")
        assert not test.exception
        scenario = decode_link(test.query_params["scenario"]).scenario
        assert scenario is not None
        assert scenario.edits[0].kind == kind
        assert "Plan digest" in shown(test)

    def test_no_number_field_takes_more_than_a_browser_can_count(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        for kind in KINDS:
            next(s for s in test.selectbox if s.label == "Kind of edit").select(kind).run()
            assert all(abs(n.proto.max) < 2**53 for n in test.number_input)

    def test_brokers_are_added_twice_and_drained(self, page: Page) -> None:
        test = page("what_if", scenario=link(Step(AddBrokers(count=2))))
        next(s for s in test.selectbox if s.label == "Kind of edit").select("add_brokers").run()
        press(test, "Add")
        assert "already" not in shown(test)
        next(s for s in test.selectbox if s.label == "Kind of edit").select("drain_broker").run()
        box = next(s for s in test.selectbox if s.label == "Broker")
        assert box.options[-3:] == ["added-1:8080", "added-2:8080", "added2-1:8080"]
        box.select("added2-1:8080").run()
        press(test, "Add")
        assert "Plan digest" in shown(test)

    def test_an_edit_that_does_not_fit_is_said(self, page: Page) -> None:
        test = page("what_if", scenario=link(Step(ScaleTraffic(scope="namespace", target="no/where"))))
        assert not test.exception
        assert "no namespace no/where" in shown(test)

    def test_a_setting_is_added_and_dropped(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        picker = next(s for s in test.selectbox if s.label == "Change a setting")
        picker.select("loadBalancerBrokerThresholdShedderPercentage").run()
        field = next(n for n in test.number_input if n.label.startswith("loadBalancerBrokerThresholdShedder"))
        field.set_value(40).run()
        assert "0 bundles shed" in shown(test)
        next(b for b in test.button if b.key and b.key.startswith("drop-")).click().run()
        assert "3 bundles shed" in shown(test)

    def test_every_assumption_is_editable_and_justified(self, page: Page) -> None:
        test = page("what_if", snapshot=sample()[:12])
        test.session_state["assumptions"] = True
        test.run()
        fields = [w for w in [*test.number_input, *test.toggle] if "assum" in str(w.key) or "moments" in w.label]
        assert len(fields) == len(dataclass_fields(Assumptions)) - 1, "and the model of the CPU, a list"
        assert all(widget.help for widget in fields)
        back = next(n for n in test.number_input if n.label.startswith("Reconnection of a client"))
        back.set_value(30.0).run()
        scenario = decode_link(test.query_params["scenario"]).scenario
        assert scenario is not None
        assert scenario.assumptions.reconnection_s == 30
        back = next(n for n in test.number_input if n.label.startswith("Reconnection of a client"))
        back.set_value(2.0).run()
        assert next(n for n in test.number_input if n.label.startswith("Reconnection of a client")).value == 2


class TestLinks:
    @pytest.mark.parametrize("text", ["rubbish", "1.", "1.AAAA", "9.AAAA", "1." + "A" * 500])
    def test_bad_links_are_said(self, page: Page, text: str) -> None:
        test = page("what_if", scenario=text, snapshot=sample()[:12])
        assert not test.exception
        assert test.error
        assert "bundles shed" in shown(test)

    def test_a_link_to_a_snapshot_that_is_not_here_names_it(self, page: Page) -> None:
        text = encode_link(Scenario(cycles=7), "ab" * 32, "our production")
        test = page("what_if", scenario=text)
        assert not test.exception
        assert "our production" in shown(test)
        assert "abababababab" in shown(test)

    def test_the_upload_that_a_link_waits_for_is_named(self, page: Page) -> None:
        test = page("what_if", scenario=encode_link(Scenario(cycles=7), "ab" * 32, "our [production]"))
        waiting = test.session_state["pending_scenarios"]
        there = page("snapshots")
        assert not any("waits for" in str(info.value) for info in there.info)
        there.session_state["pending_scenarios"] = waiting
        there.run()
        assert any("ab" * 32 in str(info.value) for info in there.info)


class TestMoves:
    def test_commands_and_diagnosis(self, page: Page) -> None:
        preview = page("moves", snapshot=sample()[:12])
        assert any("You asked for nothing here" in info.value for info in preview.info)
        assert not [block for block in preview.code if "pulsar-admin" in block.value]
        assert [block for block in preview.code if "broker-4:8080 -> broker-5:8080" in block.value]
        test = page("moves", snapshot=sample()[:12], everything="1")
        code = "\n".join(block.value for block in test.code)
        assert "pulsar-admin" in code
        assert "unload" in code
        assert [m.value for m in test.metric if m.label == "Moves of bundles"] == ["3"]

    def test_the_report_is_written(self, page: Page) -> None:
        test = page("moves", snapshot=sample()[:12])
        assert not test.exception
        assert [getattr(button, "label", "") for button in test.get("download_button")][-4:-1] == [
            "HTML",
            "PDF",
            "Markdown",
        ]

    def test_a_plan_is_followed_in_a_later_capture(self, page: Page) -> None:
        assert "No later capture" in "".join(info.value for info in page("moves", snapshot=sample()[:12]).info)
        start = state.snapshot_of(state.workspace().find(sample()).digest)  # type: ignore[union-attr]
        trace = simulate(start, Scenario())
        (first, *_) = final_moves(trace)
        row, later = start.bundle_position[first.bundle], start.info.captured_at_ms + 600_000
        owner = start.bundles.owner.copy()
        owner[row] = start.brokers.name.index(first.destination)
        info = replace(start.info, captured_at_ms=later)
        state.workspace().add(replace(start.with_owner(owner), info=info), "halfway")
        test = page("moves", snapshot=sample()[:12])
        assert not test.exception
        assert any("3 steps: 1 done, 2 still to do" in info.value for info in test.info)
        (frame,) = [d.value for d in test.dataframe if "status" in d.value.columns]
        assert frame["status"].tolist().count("done") == 1
        assert frame.loc[frame["status"] == "done", "of"].tolist() == [first.bundle]

    def test_a_filter_that_nothing_passes(self, page: Page) -> None:
        test = page("moves", snapshot=sample()[:12])
        next(t for t in test.text_input if t.label == "Bundle").set_value("nothing like this").run()
        assert not test.exception
        assert any("No matching events" in str(info.value) for info in test.info)


def test_compare_shows_all_five_strategies(page: Page) -> None:
    test = page("compare", snapshot=sample()[:12])
    key = next(d.value for d in test.dataframe if "scenario" in d.value.columns)
    assert len(key.columns) == 7
    assert len(key) == 5
    next(t for t in test.toggle if t.label == "All measures").set_value(True).run()
    frame = next(d.value for d in test.dataframe if "measure" in d.value.columns)
    assert {"ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder", "TransferShedder"} <= set(frame)
    assert frame.map(str).apply(lambda column: column.str.contains("★")).any().any()


def test_compare_names_what_is_alike_and_who_does_nothing(page: Page) -> None:
    test = page("compare", snapshot=sample()[:12])
    assert "**OverloadShedder** sheds nothing" in shown(test)
    assert "**TransferShedder** (needs the extensible load manager: a migration)" in shown(test)
    next(t for t in test.toggle if t.label == "All measures").set_value(True).run()
    few = next(d.value for d in test.dataframe if "measure" in d.value.columns)
    next(t for t in test.toggle if "with equal values" in t.label).set_value(True).run()
    every = next(d.value for d in test.dataframe if "measure" in d.value.columns)
    assert len(few) < len(every) == len(MEASURES)
    starred = every.set_index("measure").loc["↓ Settled after (cycles)"]
    assert "★" not in starred["OverloadShedder"]
    settings = next(d.value for d in test.dataframe if "load manager" in d.value.columns)
    assert dict(zip(settings["scenario"], settings["load manager"], strict=True))["TransferShedder"] == "extensible"
    assert not settings.map(lambda value: str(value).startswith("org.")).any().any()


def test_compare_takes_every_pair_of_strategies(page: Page) -> None:
    test = page("compare", snapshot=sample()[:12], compare="pairs")
    assert not test.exception
    frame = next(d.value for d in test.dataframe if "scenario" in d.value.columns)
    assert len(frame) == 11
    assert "UniformLoadShedder + RoundRobinBrokerSelector" in set(frame["scenario"])
    assert "Showing the first 8 of the table" in shown(test)


def test_compare_of_what_does_nothing_says_so(page: Page) -> None:
    calm = link(settings={"loadBalancerSheddingEnabled": False})
    text = shown(page("compare", scenario=calm))
    assert "All 5 have the same result here. None of them sheds a bundle" in text


def test_compare_takes_eight_of_my_scenarios_at_most(page: Page) -> None:
    page("what_if", snapshot=sample()[:12])
    for seed in range(8):
        state.workspace().scenarios.save(Scenario(seed=seed, name=f"Seed {seed}"), sample(), "a sample")
    test = page("compare", snapshot=sample()[:12], compare="mine")
    assert not test.exception
    assert "8 scenarios of the same cluster over 30 cycles" in shown(test)
    frame = next(d.value for d in test.dataframe if "scenario" in d.value.columns)
    assert len(frame) == 8
    chosen = next(m for m in test.multiselect if m.label == "Scenarios")
    chosen.set_value(chosen.value[:1]).run()
    assert any("at least two" in str(info.value) for info in test.info)


def test_names_of_scenarios_are_no_markdown(page: Page) -> None:
    page("what_if", snapshot=sample()[:12])
    for seed, name in enumerate(("[x](http://elsewhere.example)", "**loud**")):
        state.workspace().scenarios.save(Scenario(seed=seed, name=name), sample(), "a sample")
    test = page("compare", snapshot=sample()[:12], compare="mine")
    assert not test.exception
    assert "elsewhere" in shown(test)
    assert "[x](" not in shown(test)
    assert "**loud" not in shown(test)


def test_compare_writes_whole_numbers_in_full() -> None:
    assert [number(v) for v in (13_748, 1_310.0, 0.44881, 18_281.4, float("inf"))] == [
        "13,748",
        "1,310",
        "0.4488",
        "18,281",
        "unlimited",
    ]


def test_why_says_what_holds_a_bundle_whatever_the_settings(page: Page) -> None:
    test = page("why", snapshot=sample("real-modular.json")[:12], broker="127.0.0.1:18081", cycle="1")
    assert "No setting of ThresholdShedder changes that" in shown(test)
    assert any("anti-affinity group" in str(text.value) for text in test.text)


def test_why_says_what_would_have_to_change(page: Page) -> None:
    test = page("why", snapshot=sample()[:12], broker="broker-4:8080", cycle="1")
    assert "1 bundle of broker-4:8080 shed" in shown(test)
    changes = next(d.value for d in test.dataframe if "required value" in d.value.columns)
    row = changes[changes["setting"] == "loadBalancerBrokerThresholdShedderPercentage"].iloc[0]
    assert (row["required value"][:2], row["now"]) == (">=", "10 percentage points")
    assert row["what happens"].startswith("none of its bundles is shed")


def test_why_about_a_bundle_that_nobody_looked_at_tells_about_its_broker(page: Page) -> None:
    bundle = "example/orders/0x00000000_0x04444444"
    test = page("why", snapshot=sample()[:12], broker="broker-1:8080", bundle=bundle, cycle="2")
    assert "did not examine this bundle" in shown(test)
    rules = next(d.value for d in test.dataframe if "rule" in d.value.columns)
    assert set(rules["about"]) == {"broker-1:8080"}


def test_why_goes_where_a_bundle_is(page: Page) -> None:
    bundle = load_sample(next(s for s in samples() if s.file == "pip-364.json")).bundle_names[0]
    owner = page("why", snapshot=sample()[:12], bundle=bundle).query_params["broker"]
    other = next(name for name in ("broker-1:8080", "broker-2:8080") if name != owner)
    test = page("why", snapshot=sample()[:12], bundle=bundle, broker=other)
    assert test.query_params["broker"] == owner
    assert f"is on {owner}, not on {other}" in test.info[0].value.replace("\\", "")


def test_why_about_a_broker_that_keeps_its_bundles(page: Page) -> None:
    test = page("why", snapshot=sample()[:12], broker="broker-1:8080", cycle="2")
    assert "selected no bundle of broker-1:8080" in shown(test)
    changes = next(d.value for d in test.dataframe if "required value" in d.value.columns)
    assert changes["required value"].str.startswith("<=").any()


def test_every_choice_on_why_is_taken(page: Page) -> None:
    test = page("why", snapshot=sample()[:12], broker="broker-1:8080", cycle="2")
    for broker in ("broker-2:8080", "broker-3:8080", "broker-1:8080"):
        next(box for box in test.selectbox if box.label == "Broker").set_value(broker).run()
        assert test.query_params["broker"] == broker
        assert f"selected no bundle of {broker}" in shown(test)
    for cycle in (3, 4, 2):
        next(box for box in test.number_input if box.label == "Cycle").set_value(cycle).run()
        assert test.query_params["cycle"] == str(cycle)


def test_every_choice_of_what_the_address_keeps_is_taken(page: Page) -> None:
    test = page("why", snapshot=sample()[:12], broker="broker-1:8080", cycle="2")
    for strategy in ("AvgShedder", "OverloadShedder", "UniformLoadShedder"):
        next(box for box in test.selectbox if box.label == "Ask").set_value(strategy).run()
        assert test.query_params["ask"] == strategy
    for name, label, param, values in (
        ("compare", "Compare", "compare", ("mine", "shedders", "mine")),
        ("failure_review", "Lose", "lose", ("2", "1", "2")),
    ):
        test = page(name, snapshot=sample()[:12])
        for value in values:
            next(group for group in test.button_group if group.label == label).set_value(value).run()
            assert test.query_params.get(param, values[1]) == value


def test_failures_are_reviewed(page: Page) -> None:
    test = page("failure_review", snapshot=sample()[:12])
    frame = next(d.value for d in test.dataframe if "lost" in d.value.columns)
    assert len(frame) == 5
    two = page("failure_review", snapshot=sample()[:12], lose="2")
    assert len(next(d.value for d in two.dataframe if "lost" in d.value.columns)) == 10


def test_losses_of_the_cluster_as_it_is_owe_nothing_to_the_scenario(page: Page) -> None:
    avg = {"loadBalancerLoadSheddingStrategy": "AvgShedder", "loadBalancerLoadPlacementStrategy": "AvgShedder"}
    with_scenario = link(Step(ScaleTraffic(factor=1.5)), settings=avg)

    def frame(**params: str) -> pd.DataFrame:
        return next(d.value for d in page("failure_review", **params).dataframe if "lost" in d.value.columns)

    pd.testing.assert_frame_equal(frame(scenario=with_scenario), frame(snapshot=sample()[:12]))
    assert not frame(scenario=with_scenario, when="end").equals(frame(scenario=with_scenario))


def test_a_plan_that_ends_worse_than_now_wants_a_tick(page: Page) -> None:
    test = page("moves", snapshot=sample("split-range.json")[:12], everything="1")
    assert not test.exception
    assert any("What Pulsar does by itself is worse than" in error.value for error in test.error)
    assert not [code for code in test.code if "namespaces unload" in code.value]
    (tick,) = [box for box in test.checkbox if "Show the commands anyway" in box.label]
    tick.check().run()
    assert [code for code in test.code if "namespaces unload" in code.value]


def test_what_pulsar_does_by_itself_wants_no_tick(page: Page) -> None:
    """Nobody asked for anything, and the page wanted consent to commands that there are none of."""
    test = page("moves", snapshot=sample("split-range.json")[:12])
    assert not [error for error in test.error if "worse than" in error.value]
    assert not [box for box in test.checkbox if "Show the commands anyway" in box.label]
    assert [box for box in test.toggle if box.label == "Include Pulsar's own moves and splits"]
    assert any("This scenario requires no commands." in info.value for info in test.info)


def test_a_tab_that_is_not_there_is_told(page: Page) -> None:
    test = page("moves", snapshot=sample()[:12], tab="nonsense")
    assert [note.value for note in test.warning] == ["“nonsense” is not a valid value for “Tab”; using Moves."]
    assert "tab" not in test.query_params
    assert not page("moves", snapshot=sample()[:12], tab="commands").warning


def test_before_and_after_stand_above_the_commands(page: Page) -> None:
    test = page("moves", snapshot=sample()[:12], everything="1")
    (frame,) = [d.value for d in test.dataframe if "after the plan" in d.value.columns]
    rows = {row["measure"]: (row["now"], row["after the plan"]) for row in frame.to_dict("records")}
    assert rows["Highest usage"] == ("68.5 %", "62.0 %")
    assert rows["Disconnected topics"] == ("", "6 of 120")
    assert not test.error
    assert [code for code in test.code if "namespaces unload" in code.value]
