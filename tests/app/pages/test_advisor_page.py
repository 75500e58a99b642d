"""The Advisor page over finished jobs: choice by a link, evidence, commands, What-if, further search."""

import fcntl
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from pages import advisor as page_module
from planner.advise import material
from planner.advise.material import snapshot_of
from planner.cluster.snapshot import Snapshot
from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.replay.aggregate import AGGREGATION
from planner.replay.jobs import Status, jobs_root, list_jobs
from planner.replay.results import ResultSummary
from planner.replay.spec import Job, job_to_json
from planner.share.link import decode_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario
from planner.web import registry, state
from tests.app.plan.test_diagnosis_measurements import brokers

Page = Callable[..., AppTest]
THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
FIRST, SECOND = "20270112-000000-00000001", "20270112-000000-00000002"
DAYS = tuple(f"2027-01-{day:02}" for day in range(7, 13))
NUMBERS = {"now": (10.0, 10.0), "<b>calm</b>": (20.0, 1.0), "keen": (5.0, 40.0), "good_one*": (6.0, 3.0)}
THRESHOLDS = {"now": 10, "<b>calm</b>": 90, "keen": 1, "good_one*": 5}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history")
    cluster = ClusterSpec(brokers=3, bundles=12, topics=60, cluster="tiny")
    spec = HistorySpec(cluster=cluster, days=2, interval_s=28_800, restarts_per_day=0, splits_per_day=0)
    for day in range(2):
        write_day(root, spec, 3, day)
    return root


def finished(
    name: str,
    history: Path,
    numbers: Mapping[str, tuple[float, float]],
    days: Sequence[str] = DAYS,
    turn: float = 1.0,
    overloaded: Mapping[str, float] | None = None,
) -> None:
    """Write a finished job: deviation, unloads and overload of each scenario; the first is what is set now."""
    scenarios = tuple(
        Scenario(name=one, settings={} if one == "now" else {THRESHOLD: THRESHOLDS.get(one, 33)}) for one in numbers
    )
    job = Job(
        name="tiny",
        history=str(history),
        clusters=("tiny",),
        first_day=days[0],
        last_day=days[-1],
        scenarios=scenarios,
        runner="local",
    )
    folder = jobs_root() / name
    (folder / "results").mkdir(parents=True)
    (folder / "spec.json").write_text(job_to_json(job))
    status = Status(state="done", tasks=8, done=8, submitted_ms=1_799_000_000_000 + int(name[-1]), ended_ms=1)
    (folder / "status.json").write_text(json.dumps(asdict(status)))
    rows = []
    for one, (std, shed) in numbers.items():
        for place, day in enumerate(days):
            factor = turn if 3 * place >= 2 * len(days) and one == "good_one*" else 1.0
            values = dict.fromkeys(AGGREGATION, 1.0) | {
                "mean_std_percent": std * factor,
                "overloaded_broker_min": (overloaded or {}).get(one, 0.0),
                "shed": shed * factor,
                "moved": 0.0,
                "topics_disconnected": shed * factor,
                "thrashing_percent": 0.0,
            }
            rows.append({"cluster": "tiny", "scenario": one, "day": day, **values, "cycles": 24, "shed_bytes_per_s": 1})
    pq.write_table(pa.Table.from_pylist(rows), folder / "results" / "days.parquet")
    summary = ResultSummary(
        digest="", complete=True, tasks=8, done=8, failed=0, cycles=1, moves=1, work_seconds=1, seconds=1, errors={}
    )
    (folder / "results" / "summary.json").write_text(json.dumps(asdict(summary)))


def said(test: AppTest) -> str:
    parts = [*test.markdown, *test.caption, *test.info, *test.success, *test.warning, *test.error]
    return "\n".join(str(part.value) for part in parts).replace("\\", "")


def test_without_a_replay_it_says_what_to_do(page: Page) -> None:
    test = page("advisor")
    assert not test.exception
    assert "No finished replay yet" in said(test)


def test_front_evidence_sensitivity_holdout_and_commands(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS)
    test = page("advisor", job=FIRST)
    assert not test.exception
    assert not test.error
    text = said(test)
    assert "3 of 4 settings are Pareto-optimal" in text
    assert test.success[0].value.startswith("**Recommended\\: good\\_one\\*")
    assert (
        "**Balance**: better on 6 cluster days, worse on 0, equal on 0 (the probability of such an uneven count" in text
    )
    assert "The choice also holds up on days that were not used for it." in text
    assert f"{THRESHOLD} = 5 percentage points" in text
    assert f"--config {THRESHOLD} --value 5" in test.code[0].value
    changes = next(frame.value for frame in test.dataframe if "now" in frame.value.columns)
    assert changes.to_dict("records") == [{"setting": THRESHOLD, "now": "10", "recommended": "5"}]
    measures = next(frame.value for frame in test.dataframe if "measure" in frame.value.columns).set_index("measure")
    row = measures.loc["Bundles shed (bundles)"]
    assert (row["current"], row["recommended"], row["verdict"]) == ("60", "18", "better")
    # Names are no markup.
    assert "good\\_one\\*" in "\n".join(str(part.value) for part in test.markdown)


def test_a_weight_in_a_link_and_its_slider_choose(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS)
    test = page("advisor", job=FIRST, weight="100")
    assert "Recommended: keen" in said(test)
    (slider,) = [one for one in test.slider if one.label.startswith("Weight")]
    slider.set_value(0).run()
    assert "Recommended: <b>calm</b>" in said(test).replace("&lt;", "<")
    assert test.query_params["weight"] == "0"


@pytest.mark.parametrize("address", [{"weight": "much"}, {"loss": "-3"}, {"balance": "beauty"}, {"first": "nan"}])
def test_nonsense_in_a_link_is_passed_over(page: Page, history: Path, address: dict[str, str]) -> None:
    finished(FIRST, history, NUMBERS)
    test = page("advisor", job=FIRST, **address)
    assert not test.exception
    assert not test.error


def test_a_job_that_is_not_here_is_said(page: Page) -> None:
    test = page("advisor", job="20270112-000000-0000000f")
    assert not test.exception
    assert "no such replay job" in said(test)


def test_damaged_results_are_said(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS)
    (jobs_root() / FIRST / "results" / "days.parquet").write_bytes(b"PAR1")
    test = page("advisor", job=FIRST)
    assert not test.exception
    assert "cannot be read" in test.error[0].value


def test_a_choice_that_does_not_hold_is_said(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS, turn=2.5)
    test = page("advisor", job=FIRST)
    text = said(test)
    assert "The choice does not hold up on later days." in text
    assert "Balance is " in text
    assert "Not enough evidence for a change" in text
    assert not test.code


@pytest.mark.parametrize(
    ("numbers", "told"),
    [({"now": (1.0, 1.0)}, "only one setting"), ({"now": (1.0, 1.0), "keen": (1.0, 1.0)}, "have the same result")],
)
def test_nothing_to_compare_is_said(
    page: Page, history: Path, numbers: Mapping[str, tuple[float, float]], told: str
) -> None:
    finished(FIRST, history, numbers)
    test = page("advisor", job=FIRST)
    (verdict,) = test.warning
    assert verdict.value.startswith("**Nothing to compare")
    assert told in verdict.value
    assert not test.success
    assert not test.code
    assert not test.get("plotly_chart")


def test_few_days_are_not_enough_evidence_for_commands(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS, days=DAYS[-2:])
    test = page("advisor", job=FIRST)
    assert "Not enough evidence for a change. The best candidate is good_one*" in said(test)
    assert "better in balance on 2 of 2, disruption on 2 of 2 cluster days, which could be chance" in said(test)
    assert "Replay at least 6" in said(test)
    assert "Recommended" not in said(test)
    assert not test.code


def test_nothing_is_recommended_where_no_usage_is_true(
    page: Page, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every broker reports more CPU than it has at the first and at the last moment."""

    def wrong(job: Job, cluster: str, **how: bool) -> Snapshot:
        found = snapshot_of(job, cluster, **how)
        return brokers(found, cpu_usage_percent=found.brokers.cpu_limit_percent * 1.5)

    monkeypatch.setattr(material, "snapshot_of", wrong)
    finished(FIRST, history, NUMBERS)
    test = page("advisor", job=FIRST)
    assert not test.exception
    said_first = str(test.warning[0].value).replace("\\", "")
    assert said_first.startswith(
        "**No settings are offered. The reported usage is untrue: all 3 brokers report more CPU"
    )
    assert "ecommended" not in said(test)
    assert not test.code
    assert not [one for one in test.button if one.label in {"Open in What-if", "Replay proposals"}]
    (frame,) = [one.value for one in test.dataframe if "mark" in one.value.columns]
    assert set(frame["mark"]) == {"", "current"}


def test_one_day_has_no_holdout(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS, days=DAYS[:1])
    assert "Not possible with only one day" in said(page("advisor", job=FIRST))


def test_the_current_settings_may_be_the_best(page: Page, history: Path) -> None:
    finished(FIRST, history, {"now": (1.0, 1.0), "keen": (2.0, 2.0)})
    test = page("advisor", job=FIRST)
    assert "Keep the current settings" in said(test)
    assert not test.code


def test_overload_decides_and_is_said(page: Page, history: Path) -> None:
    finished(
        FIRST, history, NUMBERS, overloaded={"now": 900.0, "<b>calm</b>": 900.0, "keen": 370.0, "good_one*": 700.0}
    )
    test = page("advisor", job=FIRST)
    assert not test.exception
    text = said(test)
    assert test.success[0].value.startswith("**Recommended\\: keen")
    assert "broker-minutes above the limit 5,400 to 2,220" in text
    assert "3 have more overload than others" in text
    assert "**Overload**: better on 6 cluster days, worse on 0" in text


def test_what_is_not_recommended_is_not_called_so(page: Page, history: Path) -> None:
    """Tables said that numbers were recommended under a verdict that there is not enough evidence."""
    finished(FIRST, history, NUMBERS, days=DAYS[:3])
    test = page("advisor", job=FIRST)
    assert not test.exception
    assert "Not enough evidence" in test.warning[0].value
    assert test.warning[0].value.endswith("Keep the current settings until more days agree.**")
    columns = {name for frame in test.dataframe for name in frame.value.columns}
    assert "best candidate" in columns
    assert not [name for name in columns if "recommended" in name]


def test_a_keep_that_leaves_brokers_overloaded_is_amber_and_says_what_to_do(page: Page, history: Path) -> None:
    """A green tick stood over settings under which brokers were at 100 % for hours."""
    finished(FIRST, history, {"now": (1.0, 1.0), "keen": (2.0, 2.0)}, overloaded={"now": 900.0, "keen": 900.0})
    test = page("advisor", job=FIRST)
    assert not test.exception
    assert not [one for one in test.success if "Keep" in one.value]
    assert "above the overload threshold for 5,400 broker minutes" in test.warning[0].value
    assert "Open a busy moment and choose *Fix it*" in said(test)


def test_a_keep_that_other_days_refute_is_amber(page: Page, history: Path) -> None:
    finished(FIRST, history, {"now": (5.0, 5.0), "good_one*": (9.0, 9.0)}, turn=0.3)
    test = page("advisor", job=FIRST)
    assert "Keep the current settings" in said(test)
    assert not test.success
    assert "does not hold up on the remaining days" in test.warning[0].value


def test_without_its_history_there_are_no_commands_but_the_rest(page: Page, tmp_path: Path) -> None:
    finished(FIRST, tmp_path / "gone", NUMBERS)
    test = page("advisor", job=FIRST)
    assert not test.exception
    assert "The history no longer exists" in said(test)
    assert not test.code
    next(b for b in test.button if b.label == "Open in What-if").click().run()
    assert not test.exception
    assert test.error


def test_replays_of_the_same_days_go_together(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS)
    finished(SECOND, history, {"now": (10.0, 10.0), "new": (1.0, 1.0)})
    test = page("advisor", job=FIRST, **{"with": SECOND})
    text = said(test)
    assert "1 of 5 settings is Pareto-optimal" in text
    assert "Recommended: new" in text


def test_a_replay_that_runs_joins_when_it_is_done(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS)
    finished(SECOND, history, {"now": (10.0, 10.0), "new": (1.0, 1.0)})
    folder = jobs_root() / SECOND
    done = (folder / "status.json").read_text()
    (folder / "status.json").write_text(json.dumps(asdict(Status(state="running", tasks=4))))
    with (folder / "alive").open("wb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        test = page("advisor", job=FIRST, **{"with": SECOND})
        assert "Not finished yet: 1 replay over the same days." in said(test)
        assert "of 4 settings" in said(test)
        assert test.query_params["with"] == SECOND
    (folder / "status.json").write_text(done)
    assert "1 of 5 settings" in said(test.run())


def test_open_in_what_if_takes_the_last_snapshot_and_the_settings(
    page: Page, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(FIRST, history, NUMBERS)
    gone: list[str] = []
    monkeypatch.setattr(registry, "go", gone.append)
    test = page("advisor", job=FIRST)
    next(b for b in test.button if b.label == "Open in What-if").click().run()
    assert not test.exception
    assert not test.error
    assert gone == ["what_if"]
    linked = decode_link(test.session_state["scenario_param"])
    assert linked.scenario is not None
    assert dict(linked.scenario.settings) == {THRESHOLD: 5}
    assert linked.scenario.name == "Advisor: good_one*"
    (saved,) = [one for one in state.workspace().saved() if one.cluster == "tiny"]
    assert linked.snapshot_digest == saved.digest
    assert saved.captured_at_ms == 1_799_712_000_000 + 57_600_000


def test_a_search_goes_on_from_what_is_known(page: Page, history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(FIRST, history, NUMBERS)
    submitted: list[Job] = []

    def keep(job: Job) -> object:
        submitted.append(job)
        job.check()
        return list_jobs()[0]

    # The job itself is tested with the jobs; here, what is asked of it.
    monkeypatch.setattr(page_module, "submit", keep)
    test = page("advisor", job=FIRST)
    next(b for b in test.button if b.label == "Replay proposals").click().run()
    assert not test.exception
    assert not test.error
    next(b for b in test.button if b.label == "Replay values near the recommendation").click().run()
    first, second = submitted
    assert len(first.scenarios) == 8
    assert not {one.name for one in first.scenarios} & set(NUMBERS)
    assert all(THRESHOLD in one.settings for one in first.scenarios)
    assert all(one.name.endswith(" near good_one*") for one in second.scenarios)
    assert (first.clusters, first.first_day, first.history) == (("tiny",), DAYS[0], str(history))


def test_a_replay_without_a_name_is_called_so(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS)
    spec = jobs_root() / FIRST / "spec.json"
    (job,) = [stored.job for stored in list_jobs()]
    assert job is not None
    spec.write_text(job_to_json(replace(job, name="")))
    (box,) = [one for one in page("advisor").selectbox if one.label == "Replay"]
    assert box.options[0].startswith("unnamed · 4 scenarios · ")


def test_no_choice_is_lost(page: Page, history: Path) -> None:
    finished(FIRST, history, NUMBERS)
    finished(SECOND, history, {"now": (10.0, 10.0), "other": (9.0, 2.0)})
    test = page("advisor", job=FIRST)
    balance, disruption = "Objectives of balance", "Objectives of disruption"
    choices: tuple[tuple[str, tuple[object, ...]], ...] = (
        ("Replay", (SECOND, FIRST, SECOND)),
        ("Combine with", ([FIRST], [], [FIRST])),
        (balance, (["deviation"], ["deviation", "peak"], ["peak"])),
        (disruption, (["unloads"], ["unloads", "topics"], ["topics"])),
        ("Accepted loss (%)", (6.0, 7.0, 8.0)),
        ("Share of days for the choice (%)", (60, 70, 50)),
        ("Weight of balance, as opposed to disruption (%)", (60, 70, 50)),
    )
    test.get("button_group")[0].set_value("weight").run()  # type: ignore[union-attr]
    for label, values in choices:
        for value in values:
            widget = find(test, label)
            widget.set_value(value).run()
            assert not test.exception
            assert find(test, label).value == value, label
    for rule in ("knee", "weight", "knee"):
        test.get("button_group")[0].set_value(rule).run()  # type: ignore[union-attr]
        assert ("Weight of balance, as opposed to disruption (%)" in [s.label for s in test.slider]) == (
            rule == "weight"
        )


def find(test: AppTest, label: str) -> Any:
    return next(w for w in (*test.selectbox, *test.multiselect, *test.number_input, *test.slider) if w.label == label)
