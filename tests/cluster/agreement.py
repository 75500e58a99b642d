"""Measures how well a Prometheus and captures of the same minutes of one real cluster agree, once both are replayed.

    python -m tests.cluster.agreement --out FOLDER --minutes 120 --moves 7 --shift-minutes 11

leaves both histories in FOLDER and prints what docs/history.md says.
"""

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from planner.__main__ import main
from planner.capture.options import CaptureOptions
from planner.capture.run import SNAPSHOT, capture_cluster
from planner.capture.watch import Watched, WatchOptions, watch_cluster
from planner.cluster.arrays import FloatArray
from planner.cluster.moments import iso_moment
from planner.cluster.snapshot import Snapshot
from planner.history.days import read_day
from planner.history.manifest import complete_days
from planner.replay.kernel import ReplayTask, TaskResult, replay_one
from planner.simulate.scenario import Scenario
from tests.cluster.conftest import QUICK_MS
from tests.cluster.launch import classpath
from tests.cluster.prometheus import prometheus
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SHED, Scene, modular_scene

EVERY_S = 15
"""Time between two captures, and between two snapshots made of the Prometheus."""
_SHEDDING = Scenario(
    name="shedding",
    settings={
        **cast("dict[str, float]", dict(ONLY_DIRECT_MEMORY)),
        "loadBalancerSheddingEnabled": True,
        "loadBalancerSheddingIntervalMinutes": 1,
        "loadBalancerBrokerThresholdShedderPercentage": 5,
        "loadBalancerBundleUnloadMinThroughputThreshold": 0.001,
    },
)
"""The first broker, with least direct memory, sheds in each cycle, by the rates of its bundles."""


@dataclass(frozen=True)
class Agreement:
    """How far replays of two histories of the same minutes are apart.

    Attributes:
        minutes: What both cover.
        snapshots: Of the captures, and of the Prometheus.
        owners_percent: Share of loaded bundles at the same broker in both, of all at all moments.
        rate_percent: Mean relative difference of the messages of a broker, in percent.
        throughput_percent: The same of its throughput.
        usage_points: Mean difference of its usage, in points.
        peak_points: Difference of the highest usage in the replays, in points.
        std_points: Mean difference of the deviation of usage from cycle to cycle, in points.
        shed: Bundles shed in the replays of each.
        same_moves_percent: Share of the moves of both that both make, in percent.
        cycles: Cycles of each.
    """

    minutes: float
    snapshots: tuple[int, int]
    owners_percent: float
    rate_percent: float
    throughput_percent: float
    usage_points: float
    peak_points: float
    std_points: float
    shed: tuple[int, int]
    same_moves_percent: float
    cycles: tuple[int, int]


def record(scene: Scene, folder: Path, minutes: float, moves: int = 1) -> tuple[Path, Path]:
    """Watch a cluster while a Prometheus scrapes it; return the history of captures, and that of the Prometheus.

    The latter begins with one capture, which names bundles and settings: brokers do not export those by default.
    At so many moments, evenly spread, a bundle goes to another broker by hand.
    """
    captured, scraped = folder / "captured", folder / "scraped"
    cluster = scene.cluster
    targets = [broker.url.rpartition("/")[2] for broker in cluster.brokers]
    with prometheus(folder / "prometheus", targets=targets) as url:
        stop, until_s = threading.Event(), time.monotonic() + minutes * 60
        moved = 0

        def follow(watched: Watched) -> None:
            nonlocal moved
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                stop.set()
                return
            due = int((1 - left_s / minutes / 60) * (moves + 1))
            if watched.snapshot is not None and moved < due:
                moved += 1
                chosen = sorted(name for name in cluster.owners() if name.startswith(f"{SHED}/"))[-moved]
                scene.put({chosen: cluster.brokers[1].id})

        start_ms = time.time_ns() // 1_000_000
        capture = CaptureOptions(cluster.brokers[0].url, captured, metadata_store=cluster.store_url)
        first = capture_cluster(replace(capture, out=folder / "first")).folder / SNAPSHOT
        watch_cluster(WatchOptions(capture, captured, interval_s=float(EVERY_S), refresh_s=60.0), follow, stop)
        span = ["--from", iso_moment(start_ms), "--to", iso_moment(time.time_ns() // 1_000_000)]
        step = ["--step-s", str(EVERY_S), "--interval-s", str(EVERY_S), "--cluster", cluster.name]
        assert main(["history", "ingest", str(first), "--prometheus", url, *span, *step, "--out", str(scraped)]) == 0
    return captured, scraped


def moments(history: Path) -> list[Snapshot]:
    """Return the snapshots of a history in the order of time."""
    return [one for day in complete_days(history) for one in read_day(day.path)]


def compare(captured: Path, scraped: Path) -> Agreement:
    """Compare the histories moment by moment, and their replays."""
    ours, theirs = moments(captured), moments(scraped)
    start_ms = max(ours[0].info.captured_at_ms, theirs[0].info.captured_at_ms) + 60_000  # the first samples build up
    end_ms = min(ours[-1].info.captured_at_ms, theirs[-1].info.captured_at_ms)
    pairs = list(_pairs(ours, theirs, start_ms, end_ms))
    assert pairs, "the histories do not overlap"
    same, known = (sum(column) for column in zip(*(_owners(*pair) for pair in pairs), strict=True))
    rates = [_apart(one.brokers.msg_rate_per_s(), other, "msg_rate_per_s", one) for one, other in pairs]
    sizes = [_apart(one.brokers.throughput_bytes_per_s(), other, "throughput_bytes_per_s", one) for one, other in pairs]
    usage = [np.abs(_usage(one, one) - _usage(other, one)).mean() for one, other in pairs]
    mine, yours = (_replay(history, start_ms, end_ms) for history in (captured, scraped))
    std = [np.array(result.days[0].intervals["usage_std_percent"]) for result in (mine, yours)]
    both = min(map(len, std))
    peaks = [float(result.days[0].measures["peak_usage_percent"] or 0) for result in (mine, yours)]
    return Agreement(
        minutes=(end_ms - start_ms) / 60_000,
        snapshots=(len(ours), len(theirs)),
        owners_percent=100 * same / max(known, 1),
        rate_percent=float(np.mean(rates)) * 100,
        throughput_percent=float(np.mean(sizes)) * 100,
        usage_points=float(np.mean(usage)),
        peak_points=abs(peaks[0] - peaks[1]),
        std_points=float(np.abs(std[0][:both] - std[1][:both]).mean()),
        shed=(len(_moves(mine)), len(_moves(yours))),
        same_moves_percent=100 * len(_moves(mine) & _moves(yours)) / max(len(_moves(mine) | _moves(yours)), 1),
        cycles=(mine.days[0].cycles, yours.days[0].cycles),
    )


def _pairs(
    ours: list[Snapshot], theirs: list[Snapshot], start_ms: int, end_ms: int
) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Yield each capture with the moment of the Prometheus nearest to it."""
    times = np.array([one.info.captured_at_ms for one in theirs])
    for one in ours:
        at = one.info.captured_at_ms
        nearest = int(np.abs(times - at).argmin())
        if start_ms <= at <= end_ms and abs(int(times[nearest]) - at) <= EVERY_S * 1_000:
            yield one, theirs[nearest]


def _owners(one: Snapshot, other: Snapshot) -> tuple[int, int]:
    """Return how many loaded bundles are at the same broker in both, and how many there are."""
    loaded = [
        (name, one.brokers.name[owner])
        for name, owner, rate in zip(
            one.bundle_names, one.bundles.owner.tolist(), one.bundles.msg_rate_in_per_s.tolist(), strict=True
        )
        if owner >= 0 and rate > 0
    ]
    there = {
        (name, other.brokers.name[owner])
        for name, owner in zip(other.bundle_names, other.bundles.owner.tolist(), strict=True)
        if owner >= 0
    }
    return sum(pair in there for pair in loaded), len(loaded)


def _places(one: Snapshot, like: Snapshot) -> list[int]:
    return [one.brokers.name.index(name) for name in like.brokers.name]


def _apart(mine: FloatArray, other: Snapshot, what: str, one: Snapshot) -> float:
    """Return the mean relative difference of a column of the brokers."""
    theirs = getattr(other.brokers, what)()[_places(other, one)]
    return float((np.abs(mine - theirs) / np.maximum(np.maximum(mine, theirs), 1.0)).mean())


def _usage(one: Snapshot, like: Snapshot) -> FloatArray:
    """Return the usage of direct memory of each broker, in percent: the one resource in which they differ."""
    brokers = one.brokers
    share: FloatArray = 100 * brokers.direct_memory_usage_mib / np.maximum(brokers.direct_memory_limit_mib, 1e-9)
    return share[_places(one, like)]


def _replay(history: Path, start_ms: int, end_ms: int) -> TaskResult:
    cluster = moments(history)[0].info.cluster
    task = ReplayTask(
        task="t",
        history=str(history),
        cluster=cluster,
        start_ms=start_ms,
        end_ms=end_ms,
        scenario=_SHEDDING,
    )
    result = replay_one(task)
    assert not result.error, result.error
    return result


def _moves(result: TaskResult) -> set[tuple[str, str]]:
    """Return which bundles were shed, and from where."""
    rows = [row for day in result.days for row in day.moves.to_pylist()]
    return {(row["bundle"], row["source"]) for row in rows if row["kind"] == "shed"}


def _run(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--moves", type=int, default=1, help="bundles moved by hand meanwhile, at most 16")
    parser.add_argument("--shift-minutes", type=float, default=0.0, help="every topic gets another rate so often")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as running:
        paths, shift_s = classpath(asked.out), asked.shift_minutes * 60
        scene = modular_scene(running, paths, asked.out / "cluster", interval_ms=QUICK_MS, shift_s=shift_s)
        histories = record(scene, asked.out, asked.minutes, asked.moves)
    sys.stdout.write(f"{compare(*histories)}\n")


if __name__ == "__main__":
    _run()
