"""A watched cluster leaves a history of whole snapshots, whatever happens to the watcher."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.__main__ import main
from planner.capture.estimate import with_estimated_averages
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.raw_answers import RawAnswers
from planner.capture.run import capture_cluster
from planner.capture.watch import Watched, WatchOptions, watch_cluster
from planner.cluster.errors import CaptureError
from planner.cluster.snapshot import Snapshot
from planner.formats.reading import read_snapshot
from planner.history.days import read_day
from planner.history.manifest import LOCK, complete_days
from planner.history.sources import find_sources
from planner.history.watched import HistoryFolder
from tests.data.recorded_cluster import RECORDED, Cluster, ZooKeeper

Options = Callable[..., CaptureOptions]
REPORT = "/admin/v2/broker-stats/load-report"
SLOW = "/admin/v2/namespaces/acme/orders"


def watch(capture: CaptureOptions, **how: Any) -> list[Watched]:
    seen: list[Watched] = []
    given = {"interval_s": 0.05, "captures": 3} | how
    watch_cluster(WatchOptions(capture, capture.out.parent / "history", **given), seen.append)
    return seen


def moments(history: Path, cluster: str = "planner") -> list[Snapshot]:
    return [snapshot for day in complete_days(history, cluster) for snapshot in read_day(day.path)]


def test_each_capture_is_a_moment_of_the_history(cluster: Cluster, options: Options, tmp_path: Path) -> None:
    seen = watch(options(cluster))
    assert [w.number for w in seen] == [1, 2, 3]
    stored = moments(tmp_path / "history")
    assert [s.info for s in stored] == [w.snapshot.info for w in seen if w.snapshot is not None]
    for watched in seen:
        assert watched.folder is not None
        assert read_snapshot(watched.folder).info.captured_at_ms in [s.info.captured_at_ms for s in stored]
        assert watched.folder.parent.parent.name == "cluster=planner"
        assert watched.folder.parent.name.startswith("day=20")
    assert [p.name for p in (tmp_path / "history").iterdir()] == ["cluster=planner"]
    days = [day.path for day in complete_days(tmp_path / "history")]
    assert [Path(s.path) for s in find_sources([tmp_path / "history"], tmp_path / "out")] == days


def test_what_people_change_is_not_asked_for_each_time(cluster: Cluster, options: Options) -> None:
    seen = watch(options(cluster))
    assert cluster.paths().count(SLOW) == 1
    assert cluster.paths().count(REPORT) == 3 * len(RECORDED)
    assert all(w.snapshot is not None for w in seen)
    cluster.asked.clear()
    watch(options(cluster), refresh_s=0)
    assert cluster.paths().count(SLOW) == 3


def test_a_broker_that_joins_while_being_watched(cluster: Cluster, options: Options) -> None:
    names = list(cluster.ids.values())
    said = iter([names[1:]] * 2 + [names] * 4)
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, json.dumps(next(said)).encode())
    first, second, third = watch(options(cluster))
    for watched, brokers in ((first, names[1:]), (second, names), (third, names)):
        assert watched.snapshot is not None
        assert list(watched.snapshot.brokers.name) == brokers
        assert watched.snapshot.brokers.has_load_data.all()


def test_a_capture_that_fails_is_told_and_tried_again(cluster: Cluster, options: Options) -> None:
    good = cluster.answers["", "/admin/v2/brokers"]
    said = iter([(503, b"", "text/plain")] + [good] * 9)
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(*next(said))
    first, second, _ = watch(options(cluster, limits={"attempts": 1}))
    assert first.snapshot is None
    assert "HTTP 503" in str(first.error)
    assert second.snapshot is not None


def test_too_many_failures_in_a_row(cluster: Cluster, options: Options) -> None:
    cluster.answers["", "/admin/v2/brokers"] = (503, b"", "text/plain")
    with pytest.raises(CaptureError, match="2 captures in a row failed"):
        watch(options(cluster, limits={"attempts": 1}), failures=2, captures=0)


@pytest.mark.parametrize(
    "trouble", [OverflowError("int too large"), RecursionError(), AssertionError("a\nb"), MemoryError()]
)
def test_a_watch_goes_on_whatever_one_capture_stumbles_over(
    cluster: Cluster, options: Options, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    real, asked = capture_cluster, []

    def stumbles(*given: Any, **how: Any) -> Any:
        asked.append(given)
        if len(asked) == 2:
            raise trouble
        return real(*given, **how)

    monkeypatch.setattr("planner.capture.watch.capture_cluster", stumbles)
    first, second, third = watch(options(cluster))
    assert [w.snapshot is not None for w in (first, second, third)] == [True, False, True]
    assert str(second.error).startswith(f"{cluster.url}: The capture failed: {type(trouble).__name__}")
    assert "capture --out" in str(second.error)
    assert str(second.error).isprintable(), "one line"


def test_a_history_that_may_not_be_written_ends_it(cluster: Cluster, options: Options, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "cluster=planner").write_text("a file in the place of the folder")
    with pytest.raises(CaptureError, match="File exists"):
        watch(options(cluster), captures=0)


def test_why_the_last_capture_failed_is_what_is_told_in_the_end(
    cluster: Cluster, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x")

    monkeypatch.setattr("planner.history.watched.put_in_place", full)
    with pytest.raises(CaptureError, match=r"No space left on device.* Free some disk space") as raised:
        watch(options(cluster), failures=2, captures=0)
    assert "the cluster answers" not in str(raised.value)


def test_what_is_made_of_a_capture_does_not_end_a_watch(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stumbles(*_: Any) -> Any:
        raise OverflowError("int too large")

    monkeypatch.setattr("planner.shadow.watched.ShadowWatch.add", stumbles)
    told = ["--admin-url", cluster.url, "--history", str(tmp_path / "h"), "--captures", "2", "--interval", "0.05"]
    assert main(["watch", "--shadow", *told]) == 0
    assert capsys.readouterr().err.count("shadow: OverflowError: int too large Captures continue.") == 2
    assert len(moments(tmp_path / "h")) == 2


def test_the_interval_is_the_clusters_own(cluster: Cluster, options: Options) -> None:
    body = json.dumps({"clusterName": "planner", "loadBalancerReportUpdateMinIntervalMillis": "1500"}).encode()
    cluster.special["", "/admin/v2/brokers/configuration/runtime"] = lambda h: h.give(200, body)
    (only,) = watch(options(cluster), interval_s=0.0, captures=1)
    assert only.interval_s == 1.5
    stop, seen = threading.Event(), []

    def tell(watched: Watched) -> None:
        seen.append(watched)
        stop.set()

    watch_cluster(WatchOptions(options(cluster), options(cluster).out.parent / "h2"), tell, stop)
    assert len(seen) == 1, "ends at once when told to"


def test_disk_is_bounded(cluster: Cluster, options: Options, tmp_path: Path) -> None:
    (first,) = watch(options(cluster), captures=1)
    assert first.folder is not None
    size = sum(p.stat().st_size for p in first.folder.iterdir())
    seen = watch(options(cluster), captures=5, max_bytes=int(2.5 * size))
    history = HistoryFolder(tmp_path / "history", 1)
    assert [s.info for s in moments(history.root)] == [w.snapshot.info for w in seen[-2:] if w.snapshot is not None]
    assert history.bytes_of("planner") <= 2.5 * size


def test_the_newest_stays_and_nothing_foreign_goes(small: Snapshot, tmp_path: Path) -> None:
    history = HistoryFolder(tmp_path, 1)
    stranger = tmp_path / "cluster=small" / "day=2027-01-15" / "notes"
    stranger.mkdir(parents=True)
    (stranger / "letter.txt").write_text("dear")
    for i in range(3):
        later = replace(small, info=replace(small.info, captured_at_ms=small.info.captured_at_ms + i))
        newest = history.add(later)
        assert history.add(later) == newest, "the same moment twice"
    assert [s.info.captured_at_ms for s in moments(tmp_path, "small")] == [small.info.captured_at_ms + 2]
    assert newest.is_dir()
    assert (stranger / "letter.txt").exists()


def test_a_cluster_with_a_strange_name_stays_inside(small: Snapshot, tmp_path: Path) -> None:
    odd = replace(small, info=replace(small.info, cluster="../../up"))
    folder = HistoryFolder(tmp_path / "history", 1 << 30).add(odd)
    assert folder.resolve().is_relative_to((tmp_path / "history").resolve())


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_killed_at_any_moment(cluster: Cluster, tmp_path: Path) -> None:
    history = tmp_path / "history"
    command = [sys.executable, "-m", "planner", "watch", "--admin-url", cluster.url, "--history", str(history)]
    command += ["--interval", "0.01", "--rate", "5000"]
    for moment in range(2):
        asked = len(cluster.asked)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            while len(cluster.asked) < asked + 90 + 17 * moment and child.poll() is None:
                time.sleep(0.002)
            child.kill()
        if history.is_dir():
            assert all(len(s.brokers) for s in moments(history))
    sources = find_sources([history], tmp_path / "out")
    assert sources
    assert main(["watch", "--admin-url", cluster.url, "--history", str(history), "--captures", "1"]) == 0
    assert not [p for p in history.rglob(".*") if p.name != LOCK], "leftovers are cleared"


@pytest.mark.skipif(os.name == "nt", reason="sends SIGTERM")
def test_ends_when_asked_to(cluster: Cluster, tmp_path: Path) -> None:
    history = tmp_path / "history"
    command = [sys.executable, "-m", "planner", "watch", "--admin-url", cluster.url, "--history", str(history)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("1: ")
        child.terminate()
        assert child.wait(20) == 0
        assert child.stderr is not None
        assert "Traceback" not in child.stderr.read()
    assert not list(history.glob(".*"))


# Averages from repeated captures.


def moved_on(snapshot: Snapshot, reports: int, factor: float) -> Snapshot:
    """Return a later capture: so many brokers reported again, and traffic has changed."""
    updated = np.array(snapshot.brokers.updated_at_ms)
    updated[:reports] += 60_000
    b = snapshot.bundles
    columns = {}
    for name in ("msg_rate_in_per_s", "msg_rate_out_per_s", "msg_throughput_in_bytes_per_s",
                 "msg_throughput_out_bytes_per_s"):  # fmt: skip
        columns[name] = getattr(b, name) * factor
        for term in ("short_term_", "long_term_"):
            columns[term + name] = columns[name]
    return replace(
        snapshot,
        info=replace(snapshot.info, captured_at_ms=snapshot.info.captured_at_ms + 60_000),
        brokers=replace(snapshot.brokers, updated_at_ms=updated),
        bundles=replace(b, **columns),
    )


def test_each_new_report_is_one_sample(cluster: Cluster, options: Options) -> None:
    (first,) = watch(options(cluster), captures=1)
    before = first.snapshot
    assert before is not None
    after = with_estimated_averages(moved_on(before, 2, 4.0), before)
    known = before.bundles.averages_estimated
    assert known.sum() > 20
    rate = before.bundles.msg_rate_in_per_s[known]
    assert after.bundles.short_term_samples[known].tolist() == [3] * int(known.sum())
    # Of the broker that reports first both samples are new, of the second one of them, of the others none.
    mean = np.array([(1 + 4 + 4) / 3, (1 + 1 + 4) / 3, 1.0])[np.minimum(before.bundles.owner[known], 2)] * rate
    assert set(before.bundles.owner[known].tolist()) >= {0, 1, 2}
    np.testing.assert_allclose(after.bundles.short_term_msg_rate_in_per_s[known], mean)
    np.testing.assert_allclose(after.bundles.long_term_msg_rate_in_per_s[known], mean)
    assert after.bundles.averages_estimated[known].all(), "they stay marked as estimated"
    assert after.info.warnings[0].startswith(f"Averages of {known.sum()} bundles are estimated from repeated captures")
    assert with_estimated_averages(before, None) is before


def test_no_new_report_is_no_sample(cluster: Cluster, options: Options) -> None:
    (first,) = watch(options(cluster), captures=1)
    before = first.snapshot
    assert before is not None
    after = with_estimated_averages(moved_on(before, 0, 4.0), before)
    np.testing.assert_array_equal(after.bundles.long_term_msg_rate_in_per_s, before.bundles.long_term_msg_rate_in_per_s)


def test_averages_that_were_read_are_left_alone(cluster: Cluster, zookeeper: ZooKeeper, options: Options) -> None:
    seen = watch(options(cluster, metadata_store=zookeeper.address), captures=2)
    first, second = (w.snapshot for w in seen)
    assert first is not None
    assert second is not None
    read = first.bundles.has_data & ~first.bundles.averages_estimated
    assert read.any()
    for name in ("short_term_samples", "long_term_msg_rate_in_per_s"):
        np.testing.assert_array_equal(getattr(first.bundles, name)[read], getattr(second.bundles, name)[read])


@pytest.mark.parametrize("changed", [{"interval_s": -1.0}, {"refresh_s": 1e9}, {"max_bytes": 0}, {"failures": -1}])
def test_options_out_of_bounds(cluster: Cluster, options: Options, changed: dict[str, Any]) -> None:
    with pytest.raises(CaptureError, match=next(iter(changed))):
        watch(options(cluster), **changed)


# A watch that never ends.


def test_another_address_is_asked_when_one_does_not_answer(cluster: Cluster, options: Options) -> None:
    dead = replace(options(cluster), admin_url="http://127.0.0.1:9")
    spare = cluster.url_of(RECORDED[1])
    first, second, third = watch(dead, spare_urls=(spare,))
    assert first.snapshot is None
    assert [w.snapshot is not None for w in (second, third)] == [True, True]
    assert second.snapshot is not None
    assert second.snapshot.info.source.endswith(spare)


def test_the_brokers_of_the_last_capture_are_asked_when_the_first_is_gone(cluster: Cluster, options: Options) -> None:
    seen: list[Watched] = []
    stop = threading.Event()

    def tell(watched: Watched) -> None:
        seen.append(watched)
        if len(seen) == 1:
            cluster.special[RECORDED[0], "/admin/v2/brokers"] = lambda h: h.give(503, b"")
        if sum(w.snapshot is not None for w in seen) == 3 or len(seen) > 9:
            stop.set()

    capture = options(cluster, limits={"attempts": 1})
    watch_cluster(WatchOptions(capture, capture.out.parent / "history", interval_s=0.05), tell, stop)
    assert [w.snapshot is not None for w in seen] == [True, False, True, True]


def test_who_fails_long_is_asked_less_often_and_never_given_up(cluster: Cluster, options: Options) -> None:
    cluster.answers["", "/admin/v2/brokers"] = (503, b"", "text/plain")
    stop, times = threading.Event(), []

    def tell(_: Watched) -> None:
        times.append(time.monotonic())
        if len(times) == 6:
            good = cluster.files["brokers.json"]
            cluster.answers["", "/admin/v2/brokers"] = (200, good, "application/json")
        if len(times) == 7:
            stop.set()

    capture = options(cluster, limits={"attempts": 1})
    given = WatchOptions(capture, capture.out.parent / "history", interval_s=0.02)
    assert watch_cluster(given, tell, stop) == 1
    assert times[5] - times[4] > 0.02 * 2**4, "pauses are doubled"


def test_addresses_of_two_clusters_are_not_mixed(
    cluster: Cluster, start: Callable[..., Cluster], options: Options
) -> None:
    other = start()
    config = json.dumps({"clusterName": "other"}).encode()
    other.special["", "/admin/v2/brokers/configuration/runtime"] = lambda h: h.give(200, config)
    good = cluster.answers["", "/admin/v2/brokers"]
    said = iter([good] + [(503, b"", "text/plain")] * 9)
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(*next(said))
    seen = watch(options(cluster, limits={"attempts": 1}), spare_urls=(other.url,))
    assert [w.snapshot is not None for w in seen] == [True, False, False]
    assert "the cluster other, not planner" in str(seen[2].error)


def test_policies_are_those_of_the_store_as_soon_as_they_change(
    cluster: Cluster, zookeeper: ZooKeeper, options: Options
) -> None:
    """The admin API is asked about policies once, the store at every capture."""
    path = "/admin/clusters/planner/namespaceIsolationPolicies"
    seen: list[Watched] = []

    def tell(watched: Watched) -> None:
        seen.append(watched)
        zookeeper.write(path, "{}")

    capture = options(cluster, metadata_store=zookeeper.address)
    watch_cluster(WatchOptions(capture, capture.out.parent / "history", interval_s=0.05, captures=2), tell)
    before, after = (w.snapshot for w in seen)
    assert before is not None
    assert after is not None
    assert before.policies.isolation
    assert after.policies.isolation == ()
    assert cluster.paths().count(path.replace("/admin/", "/admin/v2/")) == 1
    assert after.info.leader_since_ms > 0


def test_raw_answers_around_a_wrong_cycle_are_kept(cluster: Cluster, options: Options, tmp_path: Path) -> None:
    history = tmp_path / "history"
    answers = RawAnswers(history, 1 << 30)
    infos = []

    def tell(watched: Watched) -> None:
        assert watched.snapshot is not None
        assert watched.raw is not None
        infos.append(watched.snapshot.info)
        answers.add(watched.snapshot.info, watched.raw)

    capture = options(cluster)
    watch_cluster(WatchOptions(capture, history, interval_s=0.05, captures=6), tell)
    times = [info.captured_at_ms for info in infos]
    kept = answers.keep("planner", times[2], times[3])
    assert sorted(p.name for p in kept.iterdir()) == [str(at) for at in times[1:5]]
    for at in times[1:5]:
        assert read_snapshot(kept / str(at)).info.captured_at_ms == at
    answers.max_bytes = 1
    assert answers.keep("planner", times[4], times[4]).is_dir()
    assert not kept.exists(), "the oldest go"
    answers.close()
    assert not list(history.glob(".*"))
    assert len(moments(history)) == 6, "readers pass over what is kept"


def test_a_broker_that_left_leaves_no_answers_behind(cluster: Cluster, options: Options) -> None:
    names = list(cluster.ids.values())
    said = iter([names] * 2 + [names[:1] + names[2:]] * 4)
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, json.dumps(next(said)).encode())
    _, second, third = watch(options(cluster))
    for watched in (second, third):
        assert watched.snapshot is not None
        assert list(watched.snapshot.brokers.name) == [names[0], names[2]]
        assert not [w for w in watched.snapshot.info.warnings if "are both" in w or "not one of the brokers" in w]


def test_a_refusal_says_why_and_whether_a_token_was_sent(
    start: Callable[..., Cluster], options: Options, tmp_path: Path
) -> None:
    closed = start(token="right-token")  # noqa: S106 - of a stand-in
    wrong = tmp_path / "token"
    wrong.write_text("a-wrong-token")
    for credentials, remedy in (
        (Credentials(), "The request had no token. Use a token with the permission"),
        (Credentials(token_file=wrong), "The token is not sufficient. Use a token with the permission"),
    ):
        (seen,) = watch(options(closed, credentials=credentials), captures=1)
        assert "HTTP 401 (Authentication required)" in str(seen.error)
        assert remedy in str(seen.error)


def test_a_capture_is_done_just_before_the_load_balancer_decides(cluster: Cluster, options: Options) -> None:
    stop, seen = threading.Event(), []
    cycle_ms = time.time_ns() // 1_000_000 + 1_600

    def tell(watched: Watched) -> None:
        seen.append(watched.snapshot)
        if time.time() > cycle_ms / 1000:
            stop.set()

    given = WatchOptions(options(cluster), options(cluster).out.parent / "history", interval_s=1.0)
    watch_cluster(given, tell, stop, lambda: cycle_ms)
    times = [snapshot.info.captured_at_ms - cycle_ms for snapshot in seen if snapshot is not None]
    assert any(-500 < at < 300 for at in times), "not at the pace of the captures, which has one 0.6 s before"
    assert cluster.paths().count(SLOW) == 1, "what is asked seldom is not asked then"
    assert len(times) <= 5, "and the pace goes on from there"
