"""The record of shadow mode, and the commands that write and read it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.__main__ import main
from planner.capture.options import CaptureOptions
from planner.cluster.errors import CaptureError
from planner.cluster.releases import release
from planner.cluster.relocation import Relocation
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.history import watched
from planner.history.manifest import complete_days
from planner.history.sources import find_sources
from planner.history.watched import HistoryFolder
from planner.shadow.record import (
    NEXT,
    RECORD,
    Cause,
    Deviation,
    NextCycle,
    ShadowCycle,
    ShadowRecord,
    Split,
    read_next,
    score_of,
    scores_by_strategy,
    write_next,
)
from planner.shadow.watched import ShadowWatch, describe
from tests.app.simulate.traces import START_MS, cluster
from tests.data.recorded_cluster import Cluster
from tests.data.shadow.captures import moved, still

Options = Callable[..., CaptureOptions]


def cycle(number: int = 1, **changes: object) -> ShadowCycle:
    made = ShadowCycle(
        cluster="planner",
        number=number,
        from_ms=START_MS,
        to_ms=START_MS + 5_000,
        leader="b1:8080",
        shedder="ThresholdShedder",
        predicted=(Relocation("acme/orders/0x00000000_0x80000000", "b1:8080", "b2:8080", ("b2:8080", "b3:8080")),),
        actual=(Relocation("acme/orders/0x00000000_0x80000000", "b1:8080", "b3:8080"),),
        predicted_splits=(Split("acme/orders/0x80000000_0xffffffff", (0xC0000000,)),),
        actual_splits=(Split("acme/orders/0x80000000_0xffffffff", (0xC0000000,)),),
        differences=(Deviation("acme/orders/0x80000000_0xffffffff", "went elsewhere", Cause.LATE_REPORT),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_cycles_come_back_as_they_were(tmp_path: Path) -> None:
    record = ShadowRecord(tmp_path / "cluster=planner")
    assert record.read() == ()
    wanted = tuple(cycle(number) for number in range(1, 4))
    for each in wanted:
        record.add(each)
    assert record.read() == wanted
    assert record.read(last=1) == wanted[-1:]


def test_lines_that_a_writer_left_unfinished_are_passed_over(tmp_path: Path) -> None:
    record = ShadowRecord(tmp_path)
    record.add(cycle(1))
    with record.path.open("ab") as file:
        file.write(b'{"cluster":"planner","num')
    record.add(cycle(2))
    with record.path.open("ab") as file:
        file.write(b'[1]\n{"cluster": 3}\n' + b"[" * 100_000 + b"\n\xff\n")
    assert [c.number for c in record.read()] == [1, 2]


def test_a_record_stays_within_its_bounds(tmp_path: Path) -> None:
    record = ShadowRecord(tmp_path, max_bytes=5_000)
    for number in range(1, 60):
        record.add(cycle(number))
        assert record.path.stat().st_size <= 5_000
    numbers = [c.number for c in record.read()]
    assert numbers == list(range(numbers[0], 60))
    assert len(numbers) >= 2
    assert [p.name for p in tmp_path.iterdir()] == [RECORD]


def test_what_cannot_be_written_or_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CaptureError, match="cannot be written"):
        ShadowRecord(tmp_path / "file" / "cluster=x").add(cycle())
    (tmp_path / RECORD).mkdir()
    with pytest.raises(CaptureError, match="cannot be read"):
        ShadowRecord(tmp_path).read()


def test_what_comes_next_is_kept(tmp_path: Path) -> None:
    assert read_next(tmp_path) is None
    following = NextCycle(START_MS, START_MS + 60_000, True, "AvgShedder", cycle().predicted, cycle().actual_splits)
    write_next(tmp_path, following)
    assert read_next(tmp_path) == following
    (tmp_path / ".shadow-next.json").write_text("{")
    assert read_next(tmp_path) is None


def test_the_score_counts_what_is_claimed() -> None:
    wrong = cycle(actual=(), in_time=False)
    idle = cycle(predicted=(), actual=(), predicted_splits=())
    drawn = cycle(predicted=(replace(cycle().predicted[0], may_stay=True),), actual=())
    elsewhere = cycle(actual=(replace(cycle().actual[0], destination="b9:8080"),))
    score = score_of([cycle(), wrong, idle, drawn, elsewhere])
    assert (score.cycles, score.right) == (5, 4)
    assert (score.acting, score.acting_right) == (3, 2)
    assert (score.in_time, score.in_time_right) == (2, 2)
    assert (score.destinations, score.destinations_right) == (2, 1)
    assert (score.splits, score.splits_right) == (5, 4)
    assert score.text.startswith("correct cycles 4 of 5 (80.0%)")
    assert score_of([]).text == (
        "correct cycles 0 of 0; with unloads 0 of 0; of these, seen in time 0 of 0; destinations 0 of 0; splits 0 of 0"
    )


def test_a_line_about_a_cycle() -> None:
    assert describe(cycle()) == ("cycle 1: right: 1 predicted, 1 unloaded, 1 split; 1 went elsewhere (late report)")
    assert "input not seen in time" in describe(cycle(actual=(), in_time=False))


def at(snapshot: Snapshot, second: int) -> Snapshot:
    updated = np.full(len(snapshot.brokers), START_MS + second * 1000)
    info = replace(snapshot.info, captured_at_ms=START_MS + second * 1000)
    return replace(snapshot, info=info, brokers=replace(snapshot.brokers, updated_at_ms=updated))


@pytest.fixture
def captures() -> list[Snapshot]:
    """A busy broker whose bundles leave as the planner says."""
    settings = {"loadBalancerBundleUnloadMinThroughputThreshold": 0.1}
    busy = cluster((0.8, 0.2, 0.2), {0: (20.0, 10.0, 10.0, 5.0), 1: (5.0, 5.0), 2: (5.0, 5.0)}, settings=settings)
    shadow = ShadowWatch(None, print)
    for second in (0, 10):
        shadow.add(at(busy, second))
    assert shadow.state.prediction is not None
    owner = busy.bundles.owner.copy()
    for move in shadow.state.prediction.decision.moves:
        owner[busy.bundle_position[move.bundle]] = busy.brokers.position[move.destination or ""]
    after = busy.with_owner(owner)
    return [at(busy if second < 60 else after, second) for second in range(0, 100, 10)]


def test_shadow_goes_through_a_history(
    tmp_path: Path, captures: list[Snapshot], capsys: pytest.CaptureFixture[str]
) -> None:
    history = HistoryFolder(tmp_path, 1 << 30)
    for capture in captures:
        history.add(capture)
    assert main(["shadow", "--history", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cycle 1: right: ")
    assert lines[-1].startswith("correct cycles 1 of 1 (100.0%); with unloads 1 of 1")
    assert main(["shadow", "--history", str(tmp_path), "--cluster", "by-hand", "--json"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said[0]["actual"]
    assert said[-1]["right"] == 1
    assert main(["shadow", "--history", str(tmp_path), "--cluster", "other"]) == 2
    assert "by-hand" in capsys.readouterr().err
    assert main(["shadow", "--history", str(tmp_path / "none")]) == 2
    assert "error: " in capsys.readouterr().err


def reporting(captures: list[Snapshot], every_s: int) -> list[Snapshot]:
    """Return captures of brokers that report so often, each at its own moment."""
    made = []
    for capture in captures:
        now_ms = capture.info.captured_at_ms
        lag_ms = [(now_ms - broker * 1_700) % (every_s * 1_000) for broker in range(len(capture.brokers))]
        brokers = replace(capture.brokers, updated_at_ms=np.array([now_ms - lag for lag in lag_ms], dtype=np.int64))
        made.append(replace(capture, brokers=brokers))
    return made


@pytest.mark.parametrize(("every_s", "status"), [(5, 3), (10, 0)])
def test_an_alert_that_cannot_judge_has_a_status_of_its_own(
    tmp_path: Path, captures: list[Snapshot], capsys: pytest.CaptureFixture[str], every_s: int, status: int
) -> None:
    """Captures 10 s apart see every report that comes every 10 s, and miss those that come every 5 s."""
    lines = []
    for number, capture in enumerate(reporting(captures, every_s)):
        rates = capture.bundles.msg_rate_in_per_s + number * 1e-6  # no two reports are alike
        seen = replace(capture, bundles=replace(capture.bundles, msg_rate_in_per_s=rates))
        interval = {"loadBalancerReportUpdateMinIntervalMillis": every_s * 1_000}
        HistoryFolder(tmp_path, 1 << 30).add(replace(seen, settings=seen.settings.changed(**interval)))
    asked = ["shadow", "--history", str(tmp_path)]
    assert main(asked) == 0
    capsys.readouterr()
    found = 0
    try:
        found = main([*asked, "--at-least", "90", "--record"])
    except SystemExit as ended:
        found = int(str(ended.code))
    err = capsys.readouterr().err
    following = read_next(HistoryFolder(tmp_path, 1).folder_of("by-hand"))
    assert following is not None
    lines = [line for line in err.splitlines() if "--interval 5 or less" in line]
    if status:
        assert found == 3
        assert "No cycle could be judged: none of 1 cycles with unloads was seen in time." in err
        assert lines
        assert "10 s apart, but brokers report every 5 s" in following.too_seldom
    else:
        assert not lines
        assert following.too_seldom == ""


@pytest.mark.parametrize(("version", "sheds"), [("3.0.7", True), ("4.2.4", False)])
def test_a_history_is_followed_by_the_rules_of_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, sheds: bool
) -> None:
    """Until 4.0.0 OverloadShedder sheds by a resource whose weight is 0."""
    monkeypatch.setattr(watched, "SEGMENTS_OF_A_RUN", 3)
    calm = cluster((0.2, 0.2, 0.2))
    full = replace(
        calm.brokers, direct_memory_usage_mib=np.array([95.0, 10.0, 10.0]), direct_memory_limit_mib=np.full(3, 100.0)
    )
    asked = {"loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"}
    info, settings = replace(calm.info, pulsar_version=version), Settings(asked, release(version))
    for second in range(0, 130, 10):
        seen = at(replace(calm, info=info, settings=settings, brokers=full), second)
        HistoryFolder(tmp_path, 1 << 30).add(seen)
    shadow = ShadowWatch(None, print)
    shadow.follow(tmp_path, "by-hand")
    assert shadow.cycles
    assert all(bool(cycle.predicted) == sheds for cycle in shadow.cycles[:1])


def test_a_history_gets_a_record_once(
    tmp_path: Path, captures: list[Snapshot], capsys: pytest.CaptureFixture[str]
) -> None:
    for capture in captures:
        HistoryFolder(tmp_path, 1 << 30).add(capture)
    assert main(["shadow", "--history", str(tmp_path), "--record"]) == 0
    folder = HistoryFolder(tmp_path, 1).folder_of("by-hand")
    recorded = ShadowRecord(folder).read()
    assert len(recorded) == 1
    assert read_next(folder) is not None
    assert main(["shadow", "--history", str(tmp_path), "--record"]) == 2
    assert "This cluster already has a record" in capsys.readouterr().err
    assert ShadowRecord(folder).read() == recorded


def test_a_history_of_one_capture_is_too_short(tmp_path: Path, captures: list[Snapshot]) -> None:
    HistoryFolder(tmp_path, 1 << 30).add(captures[0])
    assert main(["shadow", "--history", str(tmp_path)]) == 2


def test_a_watch_keeps_record_and_prediction(tmp_path: Path, captures: list[Snapshot]) -> None:
    said: list[str] = []
    shadow = ShadowWatch(tmp_path, said.append)
    for capture in [captures[0], *captures]:
        shadow.add(capture)
    folder = tmp_path / "cluster=by-hand"
    assert [c.number for c in ShadowRecord(folder).read()] == [1]
    following = read_next(folder)
    assert following is not None
    assert following.captured_at_ms == captures[-1].info.captured_at_ms
    assert following.rhythm_known
    assert said == [describe(shadow.cycles[0])]
    assert shadow.score.right == 1


def test_what_cannot_be_predicted_is_said_once(captures: list[Snapshot]) -> None:
    said: list[str] = []
    shadow = ShadowWatch(None, said.append)
    odd = [
        replace(c, settings=c.settings.changed(loadBalancerLoadSheddingStrategy="com.acme.OwnShedder"))
        for c in captures[:4]
    ]
    for capture in odd:
        shadow.add(capture)
    assert len(said) == 1
    assert "OwnShedder" in said[0]


def test_watch_with_shadow(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = tmp_path / "history"
    arguments = ["--admin-url", cluster.url, "--history", str(history), "--interval", "0.05", "--captures", "3"]
    assert main(["watch", *arguments, "--shadow"]) == 0
    assert "shadow: correct cycles 0 of 0" in capsys.readouterr().out
    assert read_next(history / "cluster=planner") is not None
    assert all(".shadow" not in source.path for source in find_sources([history], tmp_path / "out"))


def test_scores_by_strategy() -> None:
    cycles = [cycle(1), cycle(2, shedder="AvgShedder", actual=()), cycle(3)]
    scores = scores_by_strategy(cycles)
    assert {name: (score.right, score.cycles) for name, score in scores.items()} == {
        "ThresholdShedder": (2, 2),
        "AvgShedder": (0, 1),
    }


def test_no_error_ends_a_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a strategy stumbles over is told once; the next captures are followed again."""
    told: list[str] = []
    watch = ShadowWatch(None, told.append)
    calm = cluster((0.3, 0.3, 0.3))
    moments = [replace(calm, info=replace(calm.info, captured_at_ms=START_MS + 10_000 * i)) for i in range(12)]

    def stumble(*_: object, **__: object) -> None:
        raise AttributeError("'UniformState' object has no attribute 'most_brokers'")

    with monkeypatch.context() as patch:
        patch.setattr("planner.shadow.watched.shadow_step", stumble)
        for moment in moments[:3]:
            watch.add(moment)
    for moment in moments[3:]:
        watch.add(moment)
    assert [line for line in told if "AttributeError" in line] == [told[0]]
    assert any(line.startswith("cycle 1: right") for line in told)


def test_a_damaged_day_is_told_and_passed_over(tmp_path: Path) -> None:
    calm = cluster((0.3, 0.3, 0.3))
    history = HistoryFolder(tmp_path, 1 << 30)
    day_ms = 86_400_000
    for day in range(3):
        for i in range(12):
            at_ms = START_MS + day * day_ms + 10_000 * i
            history.add(replace(calm, info=replace(calm.info, captured_at_ms=at_ms)))
    name = calm.info.cluster
    damaged = [day.path for day in complete_days(tmp_path, name)][1]
    for file in damaged.rglob("brokers*.parquet"):
        file.write_bytes(b"rot")
    told: list[str] = []
    wrong: list[str] = []
    watch = ShadowWatch(None, told.append, complain=wrong.append)
    watch.follow(tmp_path, name)
    assert len(wrong) == 1
    assert damaged.name in wrong[0]
    assert "continues with the next day" in wrong[0]
    assert {cycle.to_ms // day_ms - START_MS // day_ms for cycle in watch.cycles} == {0, 2}


RECORDED = (
    b'{"cluster":"by-hand","number":1,"from_ms":1800000050000,"to_ms":1800000060000,"leader":"b1:8080",'
    b'"shedder":"ThresholdShedder","predicted":[{"bundle":"acme/orders/0x00000000_0x20000000","source":"b1:8080",'
    b'"destination":"b3:8080","acceptable":["b2:8080","b3:8080"]}],'
    b'"actual":[{"bundle":"acme/orders/0x00000000_0x20000000","source":"b1:8080","destination":"b3:8080"},'
    b'{"bundle":"acme/orders/0x80000000_0xa0000000","source":"b2:8080","destination":"b3:8080"}],'
    b'"differences":[{"bundle":"acme/orders/0x80000000_0xa0000000","what":"unloaded","cause":"manual unload"}]}\n'
)
RECORDED_NEXT = (
    b'{"captured_at_ms":1800000110000,"due_ms":1800000115000,"rhythm_known":true,"shedder":"ThresholdShedder",'
    b'"unloads":[{"bundle":"acme/orders/0x20000000_0x40000000","source":"b1:8080","destination":"b2:8080",'
    b'"acceptable":["b2:8080"]},{"bundle":"acme/orders/0x40000000_0x60000000","source":"b1:8080",'
    b'"destination":"b2:8080","acceptable":["b2:8080"]}]}'
)


def test_a_record_of_release_1_0_0_is_continued(tmp_path: Path, busy: Snapshot, chosen: dict[str, int]) -> None:
    """Both files as that release wrote them for these captures: the same cycle adds the same bytes."""
    extra = next(n for n, owner in zip(busy.bundle_names, busy.bundles.owner, strict=True) if owner == 1)
    folder = HistoryFolder(tmp_path, 1).folder_of(busy.info.cluster)
    folder.mkdir(parents=True)
    (folder / RECORD).write_bytes(RECORDED)
    watch = ShadowWatch(tmp_path, lambda _: None)
    for capture in still(busy, (0, 60)) + still(moved(busy, {**chosen, extra: 2}), (60, 120)):
        watch.add(capture)
    assert (folder / RECORD).read_bytes() == 2 * RECORDED
    assert (folder / NEXT).read_bytes() == RECORDED_NEXT
    assert ShadowRecord(folder).read() == 2 * tuple(watch.cycles)
