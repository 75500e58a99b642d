"""What a history costs: generating, ingesting on Spark, reading; and how cost grows with size.

Usage: python -m benchmarks.history [--brokers N] [--bundles N] [--interval-s N] [--days 1 2 4 8] [--form reports]
       python -m benchmarks.history --against REVISION   how much faster than an earlier version, both in this run
       python -m benchmarks.history --runs   what more cores bring to one day: made by one worker, and run by run

Sizes are days of one cluster, all ingested by one warm Spark session. Beside the time on the clock it gives the
processor time of this process, the JVM and its Python workers, which other programs on the machine disturb less, and
the ratio of both to linear growth from the first size on. Peak memory is the largest of any Python worker: it must not
grow with the number of days (Linux).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.measuring import MB, ROOT, Cost, earlier_version, measured
from planner.cluster.units import DAY_MS
from planner.history.day_writer import commit_day
from planner.history.days import read_day
from planner.history.generate import snapshots_of_day
from planner.history.ingest import ingest
from planner.history.make import ToMake, ToMakeRun, make_day, make_run
from planner.history.manifest import complete_days, day_of
from planner.history.plan import DayPlan
from planner.history.raw import write_raw
from planner.history.records import Stream, Tally, batches
from planner.history.sources import blocks_of, find_sources, read_block
from planner.history.spec import FORMS, HistorySpec, Options
from planner.history.staged import RunPart, staged
from planner.simulate.cluster_spec import ClusterSpec
from planner.spark.session import local_session

_T = TypeVar("_T")

_CHILD = """
import json, sys
from dataclasses import fields, replace
from pathlib import Path
from benchmarks.measuring import measured
from planner.history.days import read_day
from planner.history.ingest import ingest
from planner.history.manifest import complete_days
from planner.history.spec import Options
from planner.spark.session import local_session
from planner.cluster.digest import snapshot_digest
from hashlib import sha256

out, interval_ms, *files = sys.argv[1:]
files, options, session = list(map(Path, files)), Options(interval_ms=int(interval_ms)), local_session("benchmark")
warm = Path(out) / "warm.jsonl"
with files[0].open("rb") as file:
    warm.write_bytes(b"".join(file.readline() for _ in range(200)))
ingest([warm], Path(out) / "warm", options, session)
with measured() as cost:
    made = ingest(files, Path(out) / "history", options, session)
session.stop()
whole, unsummed = sha256(), sha256()
for day in complete_days(Path(out) / "history"):
    for snapshot in read_day(day.path):
        whole.update(snapshot_digest(snapshot).encode())
        brokers = snapshot.brokers
        sums = {field.name: getattr(brokers, field.name) * 0 for field in fields(brokers) if "_term_" in field.name}
        unsummed.update(snapshot_digest(replace(snapshot, brokers=replace(brokers, **sums))).encode())
print(json.dumps([made.rows_read, cost.seconds, cost.processor_seconds, whole.hexdigest(), unsummed.hexdigest()]))
"""


def _measure(code: Path, folder: Path, files: list[Path], interval_s: int) -> Any:
    """Ingest with the version of the planner that lies in a folder.

    Returns:
        Rows, seconds, processor time, the digest of the snapshots, and that without the sums of each broker's averages.
    """
    folder.mkdir()
    arguments = [sys.executable, "-c", _CHILD, str(folder), str(interval_s * 1_000), *map(str, files)]
    paths = {"PYTHONPATH": f"{code}{os.pathsep}{ROOT}"}
    done = subprocess.run(arguments, env=os.environ | paths, check=True, stdout=subprocess.PIPE, cwd=folder)
    return json.loads(done.stdout.splitlines()[-1])


def _against(revision: str, folder: Path, files: list[Path], interval_s: int) -> None:
    """Compare with an earlier version, which reads the same files right before and right after."""
    before = earlier_version(revision, folder / "before")
    size = sum(file.stat().st_size for file in files) / MB
    found = {
        name: _measure(ROOT if name == "now" else before, folder / f"run-{name}", files, interval_s)
        for name in (revision, "now", f"{revision} again")
    }
    for name, (rows, seconds, processor_s, *_) in found.items():
        print(
            f"{name:20} {rows / seconds:8,.0f} rows/s {size / seconds:7.1f} MB/s {processor_s:8.1f} s of processor time"
        )
    others = [found[name] for name in found if name != "now"]
    for what, at in (("clock", 1), ("processor time", 2)):
        print(f"faster by the {what}: {sum(one[at] for one in others) / 2 / found['now'][at]:.1f} times")
    for what, at in (("", 3), (" but for the last bits of sums, whose order is a rule of Pulsar", 4)):
        print(f"the same snapshots{what}: {len({one[at] for one in found.values()}) == 1}")


def _pieces(folder: Path, files: list[Path], options: Options) -> tuple[RunPart, ...]:
    """Do what the first stage does, in this process."""
    folder.mkdir()
    found: list[RunPart] = []
    for n, source in enumerate(find_sources(files, folder)):
        for block in blocks_of(source):
            tally = Tally()
            rows = batches(read_block(block, options.cluster, tally), n, options.carry_ms, tally, block.first)
            pieces = staged(folder, f"{n}-{block.first}", partial(iter, rows))
            found += [replace(piece, source=n, block=block.first) for piece in pieces]
    return tuple(found)


def _chain(ahead_s: float, runs_s: list[float], cores: int) -> float:
    """Return after how many seconds a day is there: one goes ahead, then each takes the next run."""
    busy = [ahead_s] * cores
    for seconds in sorted(runs_s, reverse=True):
        busy[busy.index(min(busy))] += seconds
    return max(busy)


def _runs(folder: Path, files: list[Path], options: Options) -> None:
    """Make a day by one worker, then run by run, each three times in turn; the least processor time counts."""
    with measured() as cost:
        pieces = _pieces(folder / "read", files, options)
    print(f"read: {cost.processor_seconds:.1f} s of processor time, which all cores share")
    cluster, day = next((piece.cluster, piece.day) for piece in pieces if piece.rows and piece.lane == Stream.ROW)
    mine = tuple(p for p in pieces if (p.cluster, p.day) == (cluster, day) and p.lane in (Stream.ROW, Stream.HINT))
    given = ToMake(DayPlan(cluster, day_of(day * DAY_MS), {}), mine)
    least: dict[str, float] = {}

    def timed(name: str, make: Callable[[], _T]) -> _T:
        with measured() as cost:
            made = make()
        least[name] = min(cost.processor_seconds, least.get(name, cost.processor_seconds))
        return made

    same = True
    for n in range(3):
        one, several = folder / f"one-{n}", folder / f"several-{n}"
        whole = timed("one worker", partial(make_day, one, options, given)).manifest
        ahead = timed("ahead", partial(make_day, several, options, replace(given, ahead=True)))
        runs = [
            timed(f"run {at.run}", partial(make_run, several, options, ToMakeRun(cluster, given.plan.day, mine, at)))
            for at in ahead.starts
        ]
        same = same and commit_day(several, ahead.manifest, runs) == whole
    alone_s, ahead_s, *runs_s = least.values()
    print(f"one worker {alone_s:.1f} s; ahead {ahead_s:.1f} s, {len(runs_s)} runs of {max(runs_s):.1f} s at most")
    for cores in (2, 4, 8, 16):
        chain_s = _chain(ahead_s, runs_s, cores)
        print(f"{cores:3d} cores: {chain_s:6.1f} s, {alone_s / chain_s:.2f} times sooner")
    print(f"the same files: {same}")


def main() -> None:
    """Generate days, then ingest the first ones of them in growing numbers, and read them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=20)
    parser.add_argument("--bundles", type=int, default=2_000)
    parser.add_argument("--interval-s", type=int, default=60)
    parser.add_argument("--days", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--form", choices=FORMS, default="reports")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--against", metavar="REVISION", help="compare with this revision instead")
    parser.add_argument("--runs", action="store_true", help="make one day by one worker, and run by run, instead")
    given = parser.parse_args()
    cluster = ClusterSpec(brokers=given.brokers, bundles=given.bundles, topics=4 * given.bundles)
    spec = HistorySpec(
        cluster=cluster, days=max(given.days), interval_s=given.interval_s, topics=given.form != "reports"
    )
    options = Options(interval_ms=given.interval_s * 1_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with measured() as cost:
            files = [
                write_raw(folder / "raw", snapshots_of_day(spec, 1, day), given.form) for day in range(max(given.days))
            ]
        if given.against:
            _against(given.against, folder, files, given.interval_s)
            return
        if given.runs:
            _runs(folder, files[:1], options)
            return
        size = sum(f.stat().st_size for f in files) / MB
        print(f"{len(files)} days of {given.form}: {size:,.0f} MB, generated in {cost.seconds:.1f} s")
        session = local_session("benchmark", given.cores)
        ingest(files[:1], folder / "warm", options, session)
        print("  days    raw rows  bundle rows     s   to linear   cpu s   to linear   bundle rows/s   worker MB")
        first: tuple[int, Cost] | None = None
        for days in given.days:
            with measured(memory=True) as cost:
                result = ingest(files[:days], folder / f"x{days}", options, session)
            first = first or (days, cost)
            share = days / first[0]
            rows = sum(m.rows_of("bundles") for m in result.days)
            print(
                f"{days:6d}{result.rows_read:12,d}{rows:13,d}{cost.seconds:6.1f}"
                f"{cost.seconds / share / first[1].seconds:12.2f}{cost.processor_seconds:8.1f}"
                f"{cost.processor_seconds / share / first[1].processor_seconds:12.2f}"
                f"{rows / cost.seconds:16,.0f}{cost.worker_mb:12,.0f}"
            )
        with measured() as cost:
            again = ingest(files, folder / f"x{max(given.days)}", options, session)
        print(f"the same once more: {cost.seconds:.2f} s, {len(again.days)} days made")
        session.stop()
        folders = list(complete_days(folder / f"x{max(given.days)}"))
        with measured() as cost:
            moments = sum(1 for day in folders for _ in read_day(day.path))
        print(f"read back: {moments:,} snapshots in {cost.seconds:.1f} s, {moments / cost.seconds:,.0f} a second")


if __name__ == "__main__":
    main()
