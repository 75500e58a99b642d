"""`planner bundles`: advice as text and JSON, of snapshots and of patterns, and one sentence for bad input."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.cli.output import check_writable
from planner.cluster.ranges import FULL_HIGH
from planner.explain.outcome import Outcome
from planner.formats.document import write_document
from planner.namespaces import advice
from planner.simulate.judge import judge
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.simulate.scenario import scenario_from_json, unchanged
from planner.workspace.opening import open_snapshot
from tests.app.namespaces.asked import advice_on


@pytest.fixture(scope="module", autouse=True)
def _advice_is_worked_out_once() -> Iterator[None]:
    """Several tests ask about the same namespaces of a sample, which takes seconds each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advice, "bundle_advice", advice_on)
        yield


PATTERN = ("bundles", "--pattern", "persistent://iot/home/dev-%06d")


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) in (0, 1)
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_pattern_is_advised_before_it_exists(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, *PATTERN, "--topics", "2600", "--brokers", "4", "--rates", "equal", "--count", "2")
    rows = {row["bundles"]: row for row in found["counts"]}  # type: ignore[attr-defined]
    assert set(range(1, 65)) <= set(rows)
    assert rows[1]["largest_share_percent"] == pytest.approx(100)
    assert rows[32]["largest_share_percent"] == pytest.approx(100 / 32, rel=0.07)
    assert rows[found["recommended"]]["placed_percent"] < 27
    cuts = found["cuts"]
    assert cuts["boundaries"][0] == "0x00000000"  # type: ignore[index]
    assert cuts["boundaries"][-1] == f"0x{FULL_HIGH:08x}"  # type: ignore[index]
    assert cuts["placed_percent"] <= 1.05 * cuts["bound_percent"]  # type: ignore[index]
    assert found["topics_no_cut_helps"] == []


def test_a_pattern_gets_a_number_that_no_automatic_split_changes(capsys: pytest.CaptureFixture[str]) -> None:
    """The number that stands in for the one to be found is not spoken of."""
    words = (*PATTERN, "--topics", "26000", "--brokers", "12")
    found = asked(capsys, *words)
    rows = {row["bundles"]: row for row in found["counts"]}  # type: ignore[attr-defined]
    mine = rows[found["recommended"]]
    assert not mine["above_limits"]
    assert mine["placed_percent"] <= 1.11 * min(row["placed_percent"] for row in rows.values())
    assert any(row["above_limits"] for bundles, row in rows.items() if 12 <= bundles < found["recommended"])
    main(words)
    said = capsys.readouterr().out
    assert f"Create it with {found['recommended']} bundles" in said
    assert "Keep its" not in said
    assert "recreated" not in said


def test_what_is_recommended_is_no_worse_when_it_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    """And its steps are commands that the release accepts."""
    _, cluster = open_snapshot("story.zip")
    wanted = ("umbrella/orders", "stark/orders")
    found = asked(capsys, "bundles", "--snapshot", "story.zip", *(f"--namespace={one}" for one in wanted))
    documents = found["namespaces"]
    assert [one["namespace"] for one in documents] == list(wanted)  # type: ignore[attr-defined]
    plain = Outcome(simulate(cluster, unchanged(cluster.info.pulsar_version)))
    for one in documents:  # type: ignore[attr-defined]
        scenario = scenario_from_json(one["scenario"])
        assert bool(scenario.steps) == one["cuts"]["recommended"]
        if scenario.steps:
            assert judge(plain.result, Outcome(simulate(cluster, scenario)).result).word != "worse"
            assert any("split-bundle" in step["command"] for step in one["steps"])
    stuck = {topic["topic"]: topic for one in documents for topic in one["topics_no_cut_helps"]}  # type: ignore[attr-defined]
    assert stuck["persistent://umbrella/orders/stream-7-partition-7"]["skewed"]


def test_all_namespaces_are_told_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundles", "--snapshot", "real-modular.json"]) == 0
    lines = capsys.readouterr().out.strip().split("\n")
    assert lines[0].startswith("globex/telemetry (8 bundles): Keep its 8 bundles: ")
    assert len(lines) == 5


def test_costs_and_a_successor_that_was_tried_where_there_are_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, *PATTERN, "--topics", "500", "--brokers", "3", "--count", "256", "--subscriptions", "3")
    rows = {row["bundles"]: row for row in found["counts"]}  # type: ignore[attr-defined]
    assert rows[1]["lookups_most"] == 500 * 4
    assert rows[256]["metadata_entries"] == 512
    assert rows[1]["above_limits"] == 1  # 2,000 sessions
    assert rows[64]["above_limits"] == 0
    assert found["successor_tried"].startswith(f"Simulated with {found['recommended']} bundles")  # type: ignore[attr-defined]
    assert sum(one["clients"] for one in found["successor_batches"]) == 2_000  # type: ignore[attr-defined]
    assert found["successor_recommended"] is False
    assert (found["successor"], found["successor_scenario"]) == ([], None)
    few = asked(capsys, *PATTERN, "--topics", "500", "--brokers", "3", "--count", "8")
    assert few["successor"] == []


def test_splits_to_come(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("bundles", "--snapshot", "story.zip", "--namespace", "umbrella/orders", "--hours", "1")
    plain = asked(capsys, *words)["splits"]
    grown = asked(capsys, *words, "--growth-percent", "400")["splits"]
    assert grown[0]["splits"] > plain[0]["splits"] > 0  # type: ignore[index]
    main([*words])
    assert "Splits to come:\numbrella/orders: " in capsys.readouterr().out


def test_splits_to_come_need_no_topics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundles", "--snapshot", "pip-364.json", "--hours", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("The snapshot lists no topics, so no bundles can be advised.\n\n")
    assert "plits to come" in said


def test_cuts_are_held_to_other_moments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    group = PlannedTopics(pattern="persistent://iot/home/dev-%04d", msg_rate_per_s=10, bundles=2)
    kept = tmp_path / "few.json"
    kept.write_text(write_document(plan_cluster(PlannedCluster(brokers=4, topics=(group,)), 0)), encoding="utf-8")
    words = ("bundles", "--snapshot", str(kept), "--namespace", "iot/home", "--moment", str(kept))
    assert any("in 1 of 1 moments" in note for note in asked(capsys, *words)["notes"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bundles"], "Use one of --snapshot, --pattern and --history."),
        ([*PATTERN, "--topics", "3000000"], "--topics: 3,000,000 is out of range. Use a number from 1 to 2,000,000."),
        ([*PATTERN, "--count", "0"], "--count: 0 is out of range."),
        ([*PATTERN, "--msg-rate-per-s", "nan"], "--msg-rate-per-s: nan is out of range."),
        (["bundles", "--pattern", "persistent://iot/home/dev"], "Write %d or %06d once"),
        (["bundles", "--pattern", "persistent://io t/home/dev-%d"], "is not a topic name"),
        (["bundles", "--snapshot", "story.zip", "--hours", "1000"], "1000 hours is out of range"),
        (
            ["bundles", "--snapshot", "story.zip", "--hours", "1", "--growth-percent", "-200"],
            "A growth by -200 % is out of range. Use -100 to 99,900 %.",
        ),
        (["bundles", "--snapshot", "story.zip", "--namespace", "a/b"], "There is no namespace 'a/b'"),
        (["bundles", "--snapshot", "pip-364.json"], "lists no topics, so no bundles can be advised. Capture"),
    ],
)
def test_bad_input_is_one_clear_sentence(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(words) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--snapshot story.zip --growth-percent 20", "Without --hours, nothing uses --growth-percent."),
        ("--snapshot story.zip --horizon-weeks 3", "Without --history, nothing uses --horizon-weeks."),
        ("--snapshot story.zip --csv x.csv", "Without --history, nothing uses --csv."),
        ("--snapshot story.zip --seed 3", "Without --pattern, nothing uses --seed."),
        ("--snapshot story.zip --topics 20", "Choose one thing to look at."),
        ("--history . --hours 2", "--history looks at all namespaces, as they were recorded."),
        ("--history . --csv .", ".: Cannot write: Is a directory."),
        ("--history . --csv there/is/none.csv", "Cannot write: No such file or directory."),
    ],
)
def test_what_has_no_effect_is_refused_before_any_work(
    words: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options were left unused without a word, and a bad path for a CSV was found after the whole job."""
    monkeypatch.setattr("planner.weeks.run.run_weeks", lambda *_: pytest.fail("the job ran"))
    assert main(["bundles", *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_looked_at_stays_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "kept.csv"
    place.write_text("old")
    check_writable(place)
    assert [one.name for one in tmp_path.iterdir()] == ["kept.csv"]
    assert place.read_text() == "old"
