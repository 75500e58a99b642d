"""Every page: with a sample, without any snapshot, from a link, from a bad link."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.snapshots import settings_frame
from planner.cluster.releases import REFERENCE, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.share.link import decode_link, encode_link
from planner.simulate.measures import broker_series, cycle_counts, imbalance_series
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.web import best_plan, state, tasks
from planner.web.registry import NAMES
from planner.web.simulations import SIMULATIONS
from planner.web.tasks import ANSWERS, Tasks
from planner.workspace.samples import load_sample, samples
from tests.app.pages.test_one_state import walk
from tests.app.simulate.traces import cluster

Page = Callable[..., AppTest]
VIEWS = ("overview", "namespaces", "bundle_map", "brokers")


def texts(test: AppTest) -> str:
    parts = [*test.markdown, *test.caption, *test.info, *test.error, *test.warning, *test.success]
    return "\n".join(str(p.value) for p in parts)


def by_title(title: str) -> str:
    return next(s.digest for s in samples() if s.title.startswith(title))


@pytest.mark.parametrize("name", [*VIEWS, "snapshots"])
def test_first_start_shows_the_first_sample(page: Page, name: str) -> None:
    test = page(name)
    assert not test.exception
    assert state.workspace().saved()[0].digest == samples()[0].digest
    assert test.query_params["snapshot"] == samples()[0].digest[:12]


@pytest.mark.parametrize("name", VIEWS)
def test_empty_workspace_says_what_to_do(page: Page, name: str) -> None:
    first = page(name)
    state.forget(state.workspace().saved()[0].digest)
    first.session_state["was_started"] = True
    first.query_params.clear()
    again = first.run()
    assert not again.exception
    assert "No snapshot yet" in texts(again)
    assert any("Open this sample" in b.label for b in again.button)


@pytest.mark.parametrize("name", VIEWS)
def test_link_to_a_sample_opens_it(page: Page, name: str) -> None:
    digest = by_title("OverloadShedder")
    test = page(name, snapshot=digest[:12])
    assert not test.exception
    assert [s.digest for s in state.workspace().saved()] == [digest]


@pytest.mark.parametrize("name", [*VIEWS, "snapshots"])
def test_link_to_an_unknown_snapshot_says_which(page: Page, name: str) -> None:
    test = page(name, snapshot="0123456789ab")
    assert not test.exception
    assert "0123456789ab" in test.error[0].value


def test_overview_tells_the_move_and_the_numbers(page: Page) -> None:
    test = page("overview", snapshot=by_title("ThresholdShedder: 40")[:12])
    assert "ThresholdShedder sheds 1 bundle from 1 broker" in texts(test)
    frames = [d.value for d in test.dataframe]
    scores = next(f for f in frames if "score (%)" in f.columns)
    assert scores["broker"].tolist()[0] == "broker-1:8080"
    assert scores["unloads"].tolist() == [1, 0, 0]
    assert "average score 20.0 % + threshold 10.0 points = 30.0 %" in scores["why"].iloc[0]
    moves = next(f for f in frames if "from" in f.columns)
    assert moves["from"].tolist() == ["broker-1:8080"]
    assert moves["MiB/s"].iloc[0] == pytest.approx(50)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (
            "story.zip",
            r"\*\*Unbalanced:\*\* usage from 3 % to 76 %, headroom 1.32x. Pulsar will not fix .*: broker-07 is above",
        ),
        ("threshold-shedder.json", r"\*\*Unbalanced:\*\* .* Pulsar fixes this on its own by cycle 2"),
        ("overload-shedder.json", r"\*\*Overloaded:\*\* 1 of 3 brokers above 85 %"),
        ("real-modular.json", r"\*\*Healthy:\*\*"),
    ],
)
def test_overview_opens_with_a_verdict(page: Page, file: str, words: str) -> None:
    test = page("overview", snapshot=next(s.digest for s in samples() if s.file == file)[:12])
    said = [box.value for box in (*test.error, *test.warning, *test.success)]
    assert any(re.match(words, text) for text in said), said
    assert any("**Best plan.**" in m.value for m in test.markdown)
    assert any(re.match(r"\*\*Loss of a broker\.\*\* Worst is the loss of ", m.value) for m in test.markdown)


def test_a_full_cluster_is_said_to_be_full(page: Page) -> None:
    full = state.workspace().add(cluster([0.93, 0.88, 0.86]), "full")
    test = page("overview", snapshot=full.digest[:12])
    verdict = "**Out of capacity:** 3 of 3 brokers above 85 %, headroom 1.08x; balancing cannot help."
    assert verdict in [error.value for error in test.error]
    assert any("every broker is full" in m.value for m in test.markdown)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("Lose a broker", "kill broker-09"),
        ("Grow 30 %", "1.3x traffic of the cluster"),
        ("Add a broker", "add 1 broker"),
        ("What if AvgShedder", ""),
        ("Drain a broker", "drain broker-14"),
    ],
)
def test_a_question_is_a_click_away(page: Page, monkeypatch: pytest.MonkeyPatch, label: str, words: str) -> None:
    went: list[str] = []
    monkeypatch.setattr("planner.web.registry.go", went.append)
    test = page("overview")
    next(b for b in test.button if b.label == label).click().run()
    assert not test.exception
    assert went == ["what_if"]
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    assert words in (scenario.edits[0].phrase() if words else "")
    assert ("loadBalancerLoadSheddingStrategy" in scenario.settings) == (not words)


def test_a_newcomer_is_welcomed_until_something_is_chosen(page: Page) -> None:
    test = page("overview")
    assert any("**Welcome.**" in m.value for m in test.markdown)
    next(b for b in test.button if b.key == "empty-real-modular.json").click().run()
    assert not any("**Welcome.**" in m.value for m in test.markdown)
    assert test.query_params["snapshot"] == by_title("Real cluster, modular")[:12]


def test_the_welcome_shrinks_to_a_line_after_another_page(page: Page) -> None:
    test = page("overview")
    assert any("**Welcome.**" in m.value for m in test.markdown)
    back = walk(walk(test, "brokers"), "overview")
    assert not any("**Welcome.**" in m.value for m in back.markdown)
    assert any("This is a sample cluster." in caption.value for caption in back.caption)


def test_the_verdict_has_the_processor_to_itself(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches and trials that begin beside the simulation make everybody wait three times as long for it."""
    fresh = Tasks(replace(ANSWERS.limits, patience_s=0.0))
    monkeypatch.setattr(tasks, "ANSWERS", fresh)
    monkeypatch.setattr(best_plan, "ANSWERS", fresh)
    SIMULATIONS.clear()
    usual = SIMULATIONS.limits
    monkeypatch.setattr(SIMULATIONS, "limits", replace(usual, patience_s=0.0, at_once=0))
    test = page("overview", snapshot=by_title("ThresholdShedder: 40")[:12])
    assert not test.exception
    assert any("**Best plan.**" in one.value for one in test.markdown)
    assert not len(fresh)
    monkeypatch.setattr(SIMULATIONS, "limits", usual)
    keys: list[str] = []
    ask = fresh.ask

    def asked(key: str, *more: Any, **others: Any) -> Any:
        keys.append(key.split(" ", maxsplit=1)[0])
        return ask(key, *more, **others)

    monkeypatch.setattr(fresh, "ask", asked)
    for _ in range(2000):
        test.run()
        if "simulated" in keys:
            break
    assert keys.index("remedies") < keys.index("simulated")


def test_key_figures_have_a_course_and_urgent_ones_an_icon(page: Page) -> None:
    test = page("overview")
    assert not test.exception
    sample = next(sample for sample in samples() if sample.file == "story.zip")
    trace = simulate(load_sample(sample), Scenario(pulsar_version="4.2.4", cycles=30))
    spread = imbalance_series(broker_series(trace))
    protos = {found.label: found.proto for found in test.metric}
    assert list(protos["Highest usage"].chart_data) == pytest.approx(spread.highest * 100, abs=0.005)
    assert list(protos["Deviation"].chart_data) == pytest.approx(spread.std * 100, abs=0.005)
    assert list(protos["Shed next cycle"].chart_data) == cycle_counts(trace).shed.tolist()
    assert not list(protos["Headroom"].chart_data)
    assert {label for label, proto in protos.items() if proto.icon} == {"Deviation"}


def test_overview_of_every_sample(page: Page) -> None:
    for sample in samples():
        if sample.file.endswith(".zip"):
            continue
        test = page("overview", snapshot=sample.digest[:12])
        assert not test.exception, sample.file
        assert all(re.match(r"\*\*(Out of capacity|Overloaded):\*\*", e.value) for e in test.error), sample.file


def test_bundle_map_shows_the_split_of_the_public_example(page: Page) -> None:
    test = page("bundle_map", snapshot=by_title("flow_or_qps")[:12])
    assert not test.exception
    shown = texts(test)
    assert "0x00000000_0x1c800001, 0x1c800001_0x2e800001" in shown
    topics = next(d.value for d in test.dataframe if "topic" in d.value.columns)
    assert topics["hash"].tolist()[:2] == ["0x10000000", "0x15000000"]


def test_bundle_map_link_to_a_bundle(page: Page) -> None:
    digest = by_title("OverloadShedder")
    range_ = "0x24924924_0x49249248"
    test = page("bundle_map", snapshot=digest[:12], namespace="example/orders", bundle=range_)
    assert any(s.value == range_ for s in test.selectbox)
    wrong = page("bundle_map", snapshot=digest[:12], namespace="example/orders", bundle="0x0_0x1")
    assert not wrong.exception
    assert "is not a valid value for “Bundle”" in wrong.warning[0].value


def test_bundle_map_finds_namespaces(page: Page) -> None:
    test = page("bundle_map", snapshot=by_title("Real cluster, modular")[:12])
    next(t for t in test.text_input if t.label == "Find a namespace").set_value("nothing like this").run()
    assert "No namespace matches this text." in texts(test)
    next(t for t in test.text_input if t.label == "Find a namespace").set_value("CLICKS").run()
    assert not test.exception
    assert test.selectbox[1].options[-1] == "acme/clicks"


def test_brokers_explains_what_counts(page: Page) -> None:
    test = page("brokers")
    resources = next(d.value for d in test.dataframe if "meaning" in d.value.columns)
    meaning = dict(zip(resources["resource"], resources["meaning"], strict=True))
    assert meaning["CPU"] == "decides the usage"
    assert meaning["Heap memory"] == "never counts with the modular load manager"
    assert meaning["Direct memory"] == "weight 0, does not count"


def test_snapshots_renames_and_lists(page: Page) -> None:
    test = page("snapshots")
    name = next(t for t in test.text_input if t.label == "Name")
    name.set_value("My cluster")
    next(b for b in test.button if b.label == "Rename").click().run()
    assert state.workspace().saved()[0].name == "My cluster"
    assert not test.exception
    name = next(t for t in test.text_input if t.label == "Name")
    name.set_value("*mine* $x$")
    next(b for b in test.button if b.label == "Rename").click().run()
    assert any(text.value.startswith(r"**\*mine\* \$x\$**") for text in test.markdown)


def test_settings_are_told_as_broker_conf_writes_them(small: Snapshot) -> None:
    frame = settings_frame(replace(small, settings=Settings({"loadBalancerAutoBundleSplitEnabled": False})))
    assert frame[["in force", "default"]].to_numpy().tolist() == [["false", "true"]]


@pytest.mark.parametrize(
    ("name", "label"), [("brokers", "Broker"), ("bundle_map", "Namespace"), ("bundle_map", "Bundle")]
)
def test_no_choice_is_lost(page: Page, name: str, label: str) -> None:
    test = page(name)
    for _ in range(3):
        box = next(s for s in test.selectbox if s.label == label)
        wanted = next(option for option in box.options if option != box.value)
        box.select(wanted).run()
        assert next(s for s in test.selectbox if s.label == label).value == wanted


def test_an_owner_is_named_short_and_namespaces_come_in_pages(page: Page) -> None:
    test = page("bundle_map", snapshot=by_title("100 brokers")[:12])
    assert not test.exception
    owner = next(text.value for text in test.markdown if text.value.startswith("Owner: "))
    assert re.fullmatch(r"Owner: \*\*broker-[0-9]{3}\*\*", owner)
    pages = next(number for number in test.number_input if number.label == "Page, of 5")
    pages.set_value(5).run()
    assert not test.exception
    assert "4 namespaces of 100" in texts(test)
    next(text for text in test.text_input if text.label == "Find a namespace").set_value("orders").run()
    assert not test.exception


@pytest.mark.parametrize("version", ["3.0.7", "4.0.8", "5.0.0", "5.0.1"])
def test_a_cluster_of_another_release_opens_on_every_page(page: Page, version: str) -> None:
    cluster = load_sample(next(sample for sample in samples() if sample.title.startswith("AvgShedder")))
    decides = release(version)
    settings = Settings(cluster.settings.overrides, decides)
    found = replace(cluster, info=replace(cluster.info, pulsar_version=version), settings=settings)
    digest = state.workspace().add(found, "another release").digest
    for name in NAMES:
        test = page(name, snapshot=digest[:12])
        assert not test.exception, name
        assert not test.error, (name, texts(test))
        said = texts(test).replace("\\", "")
        assert (f"differ from the defaults of Pulsar {decides.name}" in said) == (name == "snapshots"), name
        if f"Pulsar {version} ·" in said:
            assert (f"rules and defaults of {decides.name}, the nearest" in said) == (version == "5.0.0"), name
            assert ("were read in its classes, not run" in said) == (version == "5.0.1"), name


def test_a_link_without_a_release_is_decided_by_the_reference_and_says_so(page: Page) -> None:
    cluster = load_sample(next(sample for sample in samples() if sample.title.startswith("AvgShedder")))
    found = replace(cluster, info=replace(cluster.info, pulsar_version="4.0.8"))
    saved = state.workspace().add(found, "another release")
    link = encode_link(Scenario(cycles=2, pulsar_version=REFERENCE.name), saved.digest, saved.name)
    test = page("what_if", scenario=link)
    said = texts(test).replace("\\", "")
    assert "The cluster runs Pulsar 4.0.8. Decisions follow the rules and defaults of 4.2.4." in said
    assert "decided as Pulsar 4.2.4" in said
    assert any("by at most 1000" in note.value for note in test.text)


def test_the_first_page_waits_for_no_library_that_it_does_not_need() -> None:
    code = "import sys; from planner.web import registry; print(*map(registry.page, registry.NAMES), *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    needless = {"matplotlib", "fpdf", "jinja2", "httpx", "cryptography", "pyspark"}  # reports, captures, clusters
    assert not needless & {name.partition(".")[0] for name in done.stdout.split()}


def test_settings_are_those_of_the_release_that_decides(page: Page) -> None:
    """No page offers a setting that the cluster's release lacks; defaults are its own."""
    cluster = load_sample(next(sample for sample in samples() if sample.file == "uniform-shedder-rate.json"))
    found = replace(
        cluster, info=replace(cluster.info, pulsar_version="3.0.7"), settings=Settings({}, release("3.0.7"))
    )
    digest = state.workspace().add(found, "old").digest[:12]
    test = page("what_if", snapshot=digest)
    more = next(box for box in test.selectbox if box.label == "Change a setting")
    assert set(more.options) <= set(release("3.0.7").settings)
    assert "loadBalancerSheddingExcludedNamespaces" not in more.options
    for name in ("shedding", "hit_counters", "split_lab", "throttling", "replay"):
        test = page(name, snapshot=digest)
        assert not test.exception
        labels = {w.label.split(" (")[0] for w in [*test.number_input, *test.text_input, *test.selectbox, *test.toggle]}
        assert not labels & (set(REFERENCE.settings) - set(release("3.0.7").settings)), name
        helps = [w.help for w in test.number_input if w.label.startswith("loadBalancerDirectMemoryResourceWeight")]
        assert all("Default 1.0." in text for text in helps), name


def test_defaults_of_the_clusters_own_release_are_not_listed_as_changed(small: Snapshot) -> None:
    config = Settings(
        {"loadBalancerDirectMemoryResourceWeight": 1.0, "loadBalancerSheddingExcludedNamespaces": "a/b"},
        release("3.0.7"),
    )
    frame = settings_frame(replace(small, settings=config))
    assert frame[["setting", "default"]].to_numpy().tolist() == [
        ["loadBalancerSheddingExcludedNamespaces", "unknown setting"]
    ]
