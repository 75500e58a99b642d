"""The Replay page: what can be chosen, what is submitted, and what a job looks like in every state."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.replay import job_rows
from planner.cluster.load_manager import LoadManager
from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.pulsar.shedding.registry import shedder_by_name
from planner.replay import jobs
from planner.replay.jobs import Status, StoredJob, list_jobs, write_status
from planner.replay.results import ResultWriter
from planner.replay.runners import run_local
from planner.replay.spec import tasks_of
from planner.share.link import encode_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import WITH_A_STRATEGY
from planner.workspace.samples import samples
from tests.app.pages.conftest import script
from tests.data.replay.replays import SHEDDING, make_history, make_job

Page = Callable[..., AppTest]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_history(tmp_path_factory.mktemp("page-histories") / "small")


@pytest.fixture
def with_history(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_HISTORIES", str(history.parent))
    monkeypatch.setattr("planner.web.replay_form._RUNNERS", {"processes": "Processes", "local": "One process"})


@pytest.fixture
def stored(history: Path, workspace_file: Path, monkeypatch: pytest.MonkeyPatch) -> StoredJob:
    """A job without a process, with results as they were after half of its tasks."""
    assert workspace_file.parent == jobs.jobs_root().parent
    with monkeypatch.context() as context:
        context.setattr(jobs, "_start", lambda *_: None)
        return jobs.submit(make_job(history, name="half *of* it"))


def fill(stored: StoredJob, tasks: int) -> None:
    assert stored.job is not None
    every = tasks_of(stored.job)
    writer = ResultWriter(jobs.results_folder(stored.folder), every)
    for result in run_local(every[:tasks], lambda: False):
        writer.add(result)
    writer.finish(1.0)


def shown(test: AppTest) -> str:
    parts = [
        *test.markdown,
        *test.caption,
        *test.error,
        *test.success,
        *test.info,
        *test.header,
        *test.subheader,
        *test.title,
    ]
    return "\n".join(str(part.value) for part in parts)


def box(test: AppTest, label: str) -> object:
    return next(w for w in (*test.selectbox, *test.multiselect, *test.text_input) if w.label == label)


def control(test: AppTest) -> Any:
    return test.get("button_group")[0]


def press(test: AppTest, label: str) -> AppTest:
    next(b for b in test.button if b.label == label).click()
    return test.run()


def test_without_a_history_a_sample_is_made(page: Page) -> None:
    test = page("replay")
    assert not test.exception
    assert "No history in this server's folder of histories" in shown(test)
    assert all(str(jobs.histories_root().absolute()) in code.value for code in test.code)
    assert len(test.code) == 2
    press(test, "Generate a small sample history")
    assert not test.error, shown(test)
    assert box(test, "History").value == "sample"  # type: ignore[attr-defined]
    assert "4 scenarios, 8 tasks" in shown(test)
    assert "11,520 cycles" in shown(test)


@pytest.mark.usefixtures("with_history")
class TestForm:
    def test_clusters_of_different_load_managers_are_told(
        self, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for manager in LoadManager:
            cluster = ClusterSpec(brokers=2, bundles=8, topics=20, cluster=f"c-{manager}", load_manager=manager)
            write_day(tmp_path / "mixed", HistorySpec(cluster=cluster, days=1, interval_s=7_200), 1, 0)
        monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path))
        test = page("replay")
        (warning,) = test.warning
        assert "c-modular: modular" in warning.value
        box(test, "Clusters").set_value(["c-modular"]).run()  # type: ignore[attr-defined]
        assert not test.warning

    def test_clusters_beside_histories_are_a_history(
        self, page: Page, history: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is watched into the folder of histories itself lies there, as *Shadow* expects it."""
        monkeypatch.setenv("PLANNER_HISTORIES", str(history))
        test = page("replay")
        assert not test.exception
        assert box(test, "History").options == [history.name]  # type: ignore[attr-defined]
        assert box(test, "Clusters").value  # type: ignore[attr-defined]

    def test_counts_what_is_chosen(self, page: Page) -> None:
        test = page("replay")
        assert not test.exception
        assert "2 clusters, 96 snapshots" in shown(test)
        rivals = ["OverloadShedder", "UniformLoadShedder", "AvgShedder"]
        assert box(test, "Shedding strategies").value == rivals  # type: ignore[attr-defined]
        assert "4 scenarios, 16 tasks" in shown(test)
        offered = box(test, "Settings to vary").options  # type: ignore[attr-defined]
        assert offered[0] in shedder_by_name("OverloadShedder").settings
        assert not {"loadBalancerEnabled", *WITH_A_STRATEGY} & set(offered)
        box(test, "Shedding strategies").set_value(["AvgShedder", "UniformLoadShedder"]).run()  # type: ignore[attr-defined]
        assert "3 scenarios, 12 tasks" in shown(test)
        box(test, "Settings to vary").set_value([SHEDDING]).run()  # type: ignore[attr-defined]
        values = next(w for w in test.text_input if w.label.startswith(SHEDDING))
        assert values.value == "5, 10, 20"
        assert "3 scenarios, 12 tasks" in shown(test)  # neither reads this setting
        strategies = ["AvgShedder", "ThresholdShedder"]
        box(test, "Shedding strategies").set_value(strategies).run()  # type: ignore[attr-defined]
        assert "5 scenarios, 20 tasks" in shown(test)
        box(test, "Clusters").set_value(["east"]).run()  # type: ignore[attr-defined]
        assert "5 scenarios, 10 tasks" in shown(test)
        box(test, "Days per task").set_value("all").run()  # type: ignore[attr-defined]
        assert "5 scenarios, 5 tasks" in shown(test)
        assert test.query_params["strategies"] == "AvgShedder,ThresholdShedder"
        assert test.query_params["grid"] == f"{SHEDDING}:5,10,20"

    def test_no_choice_is_lost(self, page: Page) -> None:
        test = page("replay")
        choices: tuple[tuple[str, tuple[object, ...]], ...] = (
            ("Shedding strategies", (["AvgShedder"], ["AvgShedder", "UniformLoadShedder"], ["UniformLoadShedder"], [])),
            ("Settings to vary", ([SHEDDING], [], [SHEDDING])),
            ("Days per task", ("all", "day", "all")),
            ("Clusters", (["east"], ["west"], ["east", "west"], ["east"])),
        )
        for label, values in choices:
            for value in values:
                box(test, label).set_value(value).run()  # type: ignore[attr-defined]
                assert box(test, label).value == value, label  # type: ignore[attr-defined]
        for runner in ("local", "processes", "local"):
            control(test).set_value(runner).run()
            assert control(test).value == runner

    def test_a_link_gives_the_same_form(self, page: Page) -> None:
        test = page(
            "replay",
            clusters="west",
            first="2027-01-12",
            strategies="ThresholdShedder",
            grid=f"{SHEDDING}:7,9",
            task="all",
        )
        assert "3 scenarios, 3 tasks" in shown(test)
        assert box(test, "Clusters").value == ["west"]  # type: ignore[attr-defined]

    def test_a_link_that_makes_no_sense_changes_nothing(self, page: Page) -> None:
        odd = {"history": "../..", "clusters": "x", "first": "y", "strategies": "z", "grid": "a:b;;c", "runner": "q"}
        test = page("replay", **odd)
        assert not test.exception
        assert "4 scenarios, 16 tasks" in shown(test)
        assert box(test, "History").value == "small"  # type: ignore[attr-defined]

    def test_a_strategy_is_not_varied_beside_strategies(self, page: Page) -> None:
        test = page("replay", strategies="UniformLoadShedder", grid="loadBalancerLoadSheddingStrategy:ThresholdShedder")
        assert not test.exception
        assert "A strategy sets this setting" in shown(test)
        assert not [b for b in test.button if b.label == "Replay"]

    def test_a_wrong_value_is_told(self, page: Page) -> None:
        test = page("replay", grid=f"{SHEDDING}:5,x")
        assert not test.exception
        assert "is not a valid value of this setting" in shown(test)
        assert not [b for b in test.button if b.label == "Replay"]

    def test_the_open_scenario_is_the_base(self, page: Page) -> None:
        sample = next(s.digest for s in samples() if s.file == "pip-364.json")
        test = page("what_if", scenario=encode_link(Scenario(settings={SHEDDING: 33}), sample, "s"))
        assert not test.exception
        other = script("replay")
        for key in ("scenario_histories", "selected_digest"):
            other.session_state[key] = test.session_state[key]
        other.run()
        switch = next(t for t in other.toggle if "open What-if scenario" in t.label)
        assert "1 setting" in switch.label
        switch.set_value(True).run()
        assert not other.exception
        assert "4 scenarios, 16 tasks" in shown(other)

    def test_submits_and_shows_the_job(self, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jobs, "_start", lambda *_: None)
        test = page("replay", clusters="east", grid=f"{SHEDDING}:7,9")
        press(test, "Replay")
        (found,) = list_jobs()
        assert dict(test.query_params) == {"job": found.name}
        assert found.job is not None
        assert [s.name for s in found.job.scenarios] == [
            "as it is",
            "BrokerThresholdShedderPercentage=7",
            "BrokerThresholdShedderPercentage=9",
        ]
        assert "ended without a message" in shown(test)  # its process was never started


class TestJob:
    def test_its_name_is_no_markdown(self, page: Page, stored: StoredJob) -> None:
        assert r"half \*of\* it" in shown(page("replay", job=stored.name))

    def test_done(self, page: Page, stored: StoredJob) -> None:
        fill(stored, 12)
        write_status(stored.folder, Status(state="done", tasks=12, done=12, digest="abc", started_ms=1, ended_ms=9_001))
        test = page("replay", job=stored.name)
        assert not test.exception
        assert not test.error, shown(test)
        assert "12 tasks in 9 s" in shown(test)
        frame = test.dataframe[0].value
        assert stored.job is not None
        assert list(frame["scenario"]) == [s.name for s in stored.job.scenarios]
        assert "Deviation of usage (points) over time (UTC). On average, " in shown(test)
        assert next(b for b in test.button if b.label == "Retry").disabled
        kind = box(test, "What")
        assert any("shed (" in option for option in kind.options)  # type: ignore[attr-defined]
        kind.set_value("shed").run()  # type: ignore[attr-defined]
        moves = test.dataframe[1].value
        assert set(moves["what"]) == {"shed"}
        box(test, "Bundle or broker").set_value("no such").run()  # type: ignore[attr-defined]
        assert "No event matches this text." in shown(test)

    @pytest.mark.parametrize("state", ["failed", "cancelled"])
    def test_ended_early(self, page: Page, stored: StoredJob, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
        fill(stored, 5)
        status = Status(state=state, tasks=12, done=5, what="It broke: <b>*x*", remedy="Mend it.")  # type: ignore[arg-type]
        write_status(stored.folder, status)
        test = page("replay", job=stored.name)
        assert not test.exception
        assert "Mend it." in shown(test)
        assert "<b>" not in shown(test)
        assert "Scenarios so far" in shown(test)
        started: list[Path] = []
        monkeypatch.setattr(jobs, "_start", lambda folder, _: started.append(folder))
        press(test, "Retry")
        assert started == [stored.folder]

    def test_running(self, page: Page, stored: StoredJob, monkeypatch: pytest.MonkeyPatch) -> None:
        running = Status(
            state="running", stage="Replays", tasks=12, done=3, rate_per_min=6, remaining_s=90, where="2 processes"
        )
        write_status(stored.folder, running)
        (stored.folder / "log.txt").write_text("a line of the log")
        monkeypatch.setattr(jobs, "has_process", lambda _: True)
        test = page("replay", job=stored.name)
        assert not test.exception
        (bar,) = test.get("progress")
        assert bar.proto.text == "Replays: 3 of 12 tasks · 6.0 per minute · about 2 min left"
        assert "Runs on 2 processes." in shown(test)
        assert "a line of the log" in test.code[0].value
        press(test, "Cancel")
        assert (stored.folder / "cancel").exists()

    def test_gone_or_damaged(self, page: Page, stored: StoredJob) -> None:
        for name in ("20270101-000000-00000000", "../x"):
            test = page("replay", job=name)
            assert not test.exception
            assert "no such replay job" in shown(test)
        (stored.folder / "spec.json").write_text("{")
        (stored.folder / "status.json").write_text("{")
        fill(replace(stored), 1)
        for file in (stored.folder / "results").glob("*.parquet"):
            file.write_bytes(b"damaged")
        test = page("replay", job=stored.name)
        assert not test.exception
        assert "status of this job cannot be read" in shown(test)

    def test_damaged_results(self, page: Page, stored: StoredJob) -> None:
        fill(stored, 1)
        for file in (stored.folder / "results").glob("*.parquet"):
            file.write_bytes(b"damaged")
        write_status(stored.folder, Status(state="done", tasks=12, done=12))
        test = page("replay", job=stored.name)
        assert not test.exception
        assert "results cannot be read" in shown(test)

    def test_asks_before_it_deletes(self, page: Page, stored: StoredJob) -> None:
        test = press(page("replay", job=stored.name), "Delete")
        assert [b for b in test.button if b.key == "confirm-delete-job"]
        assert "This also deletes its results." in shown(test)
        assert [one.name for one in list_jobs()] == [stored.name]


def test_folders_that_look_like_days_are_named(
    page: Page, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "spoilt" / "small"
    shutil.copytree(history, place)
    (place / "cluster=east" / "day=2027-01-11" / "manifest.json").unlink()
    monkeypatch.setenv("PLANNER_HISTORIES", str(place.parent))
    test = page("replay")
    assert not test.exception
    assert any("cluster=east/day=2027-01-11: This folder has the name of a day" in text.value for text in test.text)


def test_a_job_that_never_began_took_no_time(stored: StoredJob) -> None:
    write_status(stored.folder, Status(state="cancelled", tasks=4, submitted_ms=5, ended_ms=1_800_000_000_000))
    rows = job_rows(list_jobs())
    assert rows["took"].tolist() == [""]
    write_status(stored.folder, Status(state="done", tasks=4, done=4, started_ms=1_000, ended_ms=66_000))
    assert job_rows(list_jobs())["took"].tolist() == ["1 min"]
