"""Generated histories: seeded, valid at every moment, each day by itself, and with what was asked for in them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.__main__ import main
from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.formats.validate import validate
from planner.history.days import read_day
from planner.history.generate import events_of_day, snapshots_of_day, write_history
from planner.history.manifest import complete_days
from planner.history.spec import HistorySpec
from planner.simulate.cluster_spec import ClusterSpec
from tests.data.history.whole import check_day

CLUSTER = ClusterSpec(brokers=5, bundles=40, topics=300, msg_rate_per_s=20_000, cluster="made")
QUIET = HistorySpec(
    cluster=CLUSTER, days=2, interval_s=1_800, spikes_per_day=0, restarts_per_day=0, splits_per_day=0, noise=0
)
BUSY = replace(QUIET, interval_s=600, spikes_per_day=4, restarts_per_day=3, splits_per_day=3, noise=0.05, topics=True)


def totals(snapshots: list[Snapshot]) -> list[float]:
    return [float(s.bundles.msg_rate_in_per_s.sum()) for s in snapshots]


@pytest.mark.parametrize("manager", list(LoadManager))
def test_every_moment_is_a_valid_cluster(manager: LoadManager) -> None:
    spec = replace(BUSY, cluster=replace(CLUSTER, load_manager=manager))
    for day in range(2):
        for snapshot in snapshots_of_day(spec, 4, day):
            validate(snapshot)
            assert snapshot.bundles.owner[snapshot.bundles.has_stats].min() >= 0
            gone = np.flatnonzero(~snapshot.brokers.registered)
            assert not np.isin(snapshot.bundles.owner, gone).any()
            sums = np.bincount(snapshot.topics.bundle, snapshot.topics.msg_rate_in_per_s, len(snapshot.bundles))
            assert np.allclose(sums, snapshot.bundles.msg_rate_in_per_s, atol=1e-3)


def test_same_seed_same_history_other_seed_another() -> None:
    one, again, other = ([snapshot_digest(s) for s in snapshots_of_day(BUSY, seed, 1)] for seed in (4, 4, 5))
    assert one == again
    assert not set(one) & set(other)


def test_load_follows_the_day_the_weekend_and_growth() -> None:
    friday = replace(QUIET, first_day="2027-01-15", growth_percent_per_day=10.0)
    first, second = (list(snapshots_of_day(friday, 1, day)) for day in range(2))
    loads = totals(first)
    assert 10 * 2 <= int(np.argmax(loads)) <= 18 * 2
    assert max(loads) > 2 * min(loads)
    assert totals(second)[28] == pytest.approx(loads[28] * 0.6 * 1.1, rel=1e-3)


def test_spike_jumps_and_falls_off() -> None:
    spec = replace(QUIET, interval_s=60, spikes_per_day=1, spike_factor=8, daily_swing=0)
    day = next(d for d in range(50) if len(events_of_day(spec, 1, d, 1)) == 1)
    event = events_of_day(spec, 1, day, 1)[0]
    moments = list(snapshots_of_day(spec, 1, day))
    at = next(i for i, s in enumerate(moments) if s.info.captured_at_ms >= event.at_ms)
    loads = totals(moments)
    assert loads[at] > 0.8 * event.factor * loads[at - 1]
    assert loads[at - 1] < loads[at + 10] < 0.6 * loads[at]


def test_restarted_broker_is_away_and_gets_its_bundles_back() -> None:
    spec = replace(QUIET, interval_s=60, restarts_per_day=1, restart_minutes=5)
    seed = next(i for i in range(50) if len(events_of_day(spec, i, 0, 1)) == 1)
    event = events_of_day(spec, seed, 0, 1)[0]
    moments = list(snapshots_of_day(spec, seed, 0))
    at = next(i for i, s in enumerate(moments) if s.info.captured_at_ms >= event.at_ms)
    away = [bool(~s.brokers.registered[event.subject]) for s in moments]
    assert sum(away) == 5
    assert away[at]
    owned = [int(s.bundle_counts()[event.subject]) for s in moments]
    assert owned[at] == 0 < owned[at + 20] < owned[at - 1] == owned[at + 40]
    assert moments[at + 6].brokers.started_at_ms[event.subject] == event.at_ms + 300_000


def test_splits_stay_and_reach_the_next_day() -> None:
    spec = replace(QUIET, splits_per_day=4)
    first, second = (list(snapshots_of_day(spec, 2, day)) for day in range(2))
    made = sum(e.kind == "split" for e in events_of_day(spec, 2, 0, 1))
    assert len(first[-1].bundles) == len(first[0].bundles) + made > len(first[0].bundles)
    assert second[0].bundle_names == first[-1].bundle_names


def test_day_written_by_several_processes_is_the_day_itself(tmp_path: Path) -> None:
    made = list(write_history(tmp_path, BUSY, 3, workers=2))
    assert [m.day for m in made] == ["2027-01-11", "2027-01-12"]
    for day, folder in enumerate(complete_days(tmp_path)):
        check_day(folder.path)
        stored = [snapshot_digest(s) for s in read_day(folder.path)]
        assert stored == [snapshot_digest(s) for s in snapshots_of_day(BUSY, 3, day)]
        assert folder.manifest.interval_ms == 600_000


def test_command_writes_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--bundles", "8", "--brokers", "2", "--topic-count", "20", "--interval-s", "3600", "--workers", "1"]
    assert main(["history", "generate", "--out", str(tmp_path / "h"), "--days", "1", *small]) == 0
    assert "generated 2027-01-11: 24 snapshots" in capsys.readouterr().out
    assert main(["history", "generate", "--out", str(tmp_path / "h"), "--days", "0"]) == 2
    assert "Use a number from 1 to 3660" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    assert main(["history", "generate", "--out", str(tmp_path / "file"), "--days", "1", *small]) == 2
    assert "Choose another folder" in capsys.readouterr().err


def test_out_of_bounds_is_refused() -> None:
    for wrong in ({"interval_s": 0}, {"noise": 2.0}, {"cluster": replace(CLUSTER, brokers=0)}):
        with pytest.raises(SettingError):
            next(snapshots_of_day(replace(QUIET, **wrong), 1, 0))
    with pytest.raises(FormatError, match="not a valid day"):
        next(snapshots_of_day(replace(QUIET, first_day="tomorrow"), 1, 0))
