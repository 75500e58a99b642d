"""What a replay costs: the three runners side by side, growth with size, memory, and an estimate for a large one.

Usage: python -m benchmarks.replay [--quick] [--minutes M] [--brokers N] [--bundles N] [--days N] [--scenarios N]
    [--interval-s N] [--cores N] [--parts runners days bundles tiny paper]

- `runners`: the same job in one process, by the pool and by local Spark, with the same digest. *Work* is what its tasks
  take one after the other in one process; the ideal is work / cores; the overhead is what a runner takes beyond it.
  By the clock it needs a machine that does nothing else. Processor time is that of all processes, with the JVM.
- `days`: cost, and memory of a worker, of one task over ever more days.
- `bundles`: cost of a day with ever more bundles.
- `tiny`: how many tasks of milliseconds the pool and local Spark end in a minute; and what a whole day's result costs
  the driver beside what its task takes.
- `paper`: what 30 days x 100 brokers x 10,000 bundles x 25 scenarios take on 16 and on 160 cores, from the pace of such
  a cluster and the overhead measured.

Everything is generated. Sizes are compared with linear growth from the first one: 1.00 is linear, less is better.
"""

import argparse
import heapq
import math
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from benchmarks.measuring import Cost, measured
from planner.cluster.units import DAY_MS
from planner.history.day_writer import DayWriter
from planner.history.generate import snapshots_of_day, write_history
from planner.history.ingest import ingest
from planner.history.manifest import DayManifest, complete_days
from planner.history.raw import write_raw
from planner.history.spec import HistorySpec, Options
from planner.replay.estimate import Estimate, Pace, estimate, measure_pace
from planner.replay.grid import Grid, first_snapshot, scenarios_of
from planner.replay.kernel import TaskResult, combined_digest, replay_one
from planner.replay.results import ResultWriter
from planner.replay.runners import pack_result, run_local, run_processes, run_spark, unpack_result
from planner.replay.spec import Job, tasks_of
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario
from planner.spark.runners import cores
from planner.spark.session import open_session

_PARTS = ("runners", "days", "bundles", "tiny", "paper")
_AXES: dict[str, tuple[str, range]] = {
    "ThresholdShedder": ("loadBalancerBrokerThresholdShedderPercentage", range(2, 42)),
    "UniformLoadShedder": ("loadBalancerMsgRateDifferenceShedderThreshold", range(10, 50)),
    "OverloadShedder": ("loadBalancerBrokerOverloadedThresholdPercentage", range(50, 90)),
    "AvgShedder": ("loadBalancerAvgShedderLowThreshold", range(5, 45)),
}
_SEED = 1
_MS_PER_MIN = 60_000
_TINY_MIN = 60
_RESULTS = 50
_PAPER_DAYS = 30
_PAPER_SCENARIOS = 25


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large everything is."""

    brokers: int
    bundles: int
    interval_s: int
    days: int
    minutes: float
    scenarios: int
    cores: int
    factors: tuple[int, ...]
    paper_brokers: int
    paper_bundles: int
    paper_moments: int
    tiny: int


def never() -> bool:
    """Never stop."""
    return False


def spec_of(sizes: Sizes, **changes: Any) -> HistorySpec:
    """Return what is generated."""
    cluster = ClusterSpec(brokers=sizes.brokers, bundles=sizes.bundles, topics=4 * sizes.bundles)
    return replace(HistorySpec(cluster=cluster, days=sizes.days, interval_s=sizes.interval_s), **changes)


def write(root: Path, spec: HistorySpec) -> Path:
    """Generate a history."""
    begin = time.perf_counter()
    days = list(write_history(root, spec, _SEED))
    rows = sum(day.rows_of("bundles") for day in days)
    print(
        f"generated {len(days)} days of {spec.cluster.brokers} brokers x {spec.cluster.bundles:,} bundles,"
        f" {rows:,} rows of bundles, in {time.perf_counter() - begin:.0f} s"
    )
    return root


def job_of(root: Path, days: int, scenarios: Iterable[Scenario], **changes: Any) -> Job:
    """Return a job over the first days of a history."""
    covered = [day.manifest for day in complete_days(root)][:days]
    job = Job(
        name="benchmark",
        history=str(root),
        clusters=(covered[0].cluster,),
        first_day=covered[0].day,
        last_day=covered[-1].day,
        scenarios=tuple(scenarios),
    )
    return replace(job, **changes)


def scenarios_for(root: Path, number: int) -> list[Scenario]:
    """Return so many different scenarios: four strategies by turns, each with values of one of its settings."""
    snapshot = first_snapshot(root, next(iter(complete_days(root))).manifest.cluster)
    lines = []
    for strategy, (setting, values) in _AXES.items():
        grid = Grid(strategies=(strategy,), settings={setting: tuple(values)}, with_base=False)
        lines.append(scenarios_of(grid, snapshot))
    found = [one for one in chain.from_iterable(zip_longest(*lines)) if one is not None]
    return list(islice(found, number))


# The runners


def _uneven(seconds: Sequence[float], workers: int) -> float:
    """Return what no runner can avoid: the end of a list that is worked through in order, over the ideal."""
    free = [0.0] * workers
    for one in seconds:
        heapq.heapreplace(free, free[0] + one)
    return max(free) / (sum(seconds) / workers) - 1


@dataclass(frozen=True)
class Ran:
    """What a runner made of a job."""

    digest: str
    cycles: int
    seconds: dict[str, float]


def ran(results: Iterator[TaskResult]) -> Ran:
    """Take the results of a runner; a task that failed ends the benchmark."""
    found = list(results)
    failed = next((one for one in found if one.error), None)
    if failed is not None:
        raise SystemExit(f"{failed.task} failed: {failed.error}")
    cycles = sum(day.cycles for one in found for day in one.days)
    return Ran(combined_digest([one.digest for one in found]), cycles, {one.task: one.seconds for one in found})


def paced(job: Job) -> Pace:
    """Return the pace of a job's first task of each scenario, in the middle."""
    tasks = tasks_of(replace(job, last_day=job.first_day))
    paces = [measure_pace(task) for task in tasks]
    start, cycle = (statistics.fmean(getattr(pace, name) for pace in paces) for name in ("start_s", "cycle_s"))
    return Pace(start, cycle, sum(pace.cycles for pace in paces))


def runners(root: Path, sizes: Sizes) -> float:
    """Run the same job by all runners; return the overhead of Spark over the ideal, without its start."""
    pace = paced(job_of(root, sizes.days, scenarios_for(root, len(_AXES))))
    number = sizes.scenarios
    if not number:
        one = job_of(root, sizes.days, scenarios_for(root, 1))
        wanted_s = sizes.minutes * 60 * sizes.cores
        number = math.ceil(wanted_s / estimate(one, {one.clusters[0]: pace}).work_s)
    job = job_of(root, sizes.days, scenarios_for(root, number))
    tasks, expected = tasks_of(job), estimate(job, {job.clusters[0]: pace})
    print(
        f"\n{len(job.scenarios)} scenarios x {sizes.days} days: {len(tasks)} tasks, {expected.cycles:,} cycles;"
        f" work estimated {expected.work_s:.0f} s"
    )
    print(f"{'':32}{'s':>8}{'cycles/s':>10}{'faster':>8}{'overhead':>10}{'tasks':>8}{'cpu s':>8}{'overhead':>10}")
    with measured() as alone:
        first = ran(run_local(tasks, never))
    work = sum(first.seconds.values())

    def line(name: str, workers: int, cost: Cost, found: Ran) -> None:
        if found.digest != first.digest:
            raise SystemExit(f"{name}: another digest: {found.digest} instead of {first.digest}")
        print(
            f"{name:32}{cost.seconds:8.1f}{found.cycles / cost.seconds:10,.0f}{work / cost.seconds:8.2f}"
            f"{cost.seconds * workers / work - 1:10.1%}{sum(found.seconds.values()) / work - 1:8.1%}"
            f"{cost.processor_seconds:8.1f}{cost.processor_seconds / alone.processor_seconds - 1:10.1%}"
        )

    line("one process", 1, alone, first)
    with measured() as cost:
        found = ran(run_processes(tasks, sizes.cores, never))
    line(f"pool of {sizes.cores}, start included", sizes.cores, cost, found)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        with measured() as start:
            session = stack.enter_context(open_session("benchmark", Path(name), sizes.cores))
        with measured() as cost:
            found = ran(run_spark(tasks, session, never))
    line(f"Spark local[{sizes.cores}]", sizes.cores, cost, found)
    both = Cost(start.seconds + cost.seconds, start.processor_seconds + cost.processor_seconds)
    line("  start included", sizes.cores, both, found)
    uneven = _uneven([first.seconds[task.task] for task in tasks], sizes.cores)
    print(
        f"all digests {first.digest[:16]}; work {work:.1f} s in one process; overhead is over work / {sizes.cores}"
        f" cores,\nof it {uneven:.1%} because tasks are unequal; tasks: how much longer they took than in one process"
    )
    return cost.seconds * sizes.cores / work - 1


def tiny(folder: Path, sizes: Sizes) -> None:
    """Run tasks of one cycle, then see what the driver does with the result of a day of 1,440."""
    root = write(folder / "tiny", replace(spec_of(replace(sizes, brokers=3, bundles=24)), days=1, interval_s=3_600))
    scenario = replace(scenarios_for(root, 1)[0], settings={"loadBalancerSheddingIntervalMinutes": _TINY_MIN})
    (day,) = tasks_of(job_of(root, 1, [scenario]))
    last = replace(day, start_ms=day.end_ms - _TINY_MIN * _MS_PER_MIN)
    tasks = [replace(last, task=f"tiny {number}") for number in range(sizes.tiny)]
    with tempfile.TemporaryDirectory() as name, open_session("benchmark", Path(name), sizes.cores) as session:
        ran(run_spark(tasks[: sizes.cores], session, never))  # until its workers stand
        pool, spark = partial(run_processes, tasks, sizes.cores), partial(run_spark, tasks, session)
        for way, results in (("pool", pool), ("Spark", spark)):
            with measured() as cost:
                found = ran(results(never))
            pace, each_ms = len(tasks) / cost.seconds * 60, cost.processor_seconds / len(tasks) * 1_000
            print(f"{way}: {len(tasks):,} tiny tasks, {pace:,.0f} a minute, {each_ms:.1f} ms of processor time each")
            print(f"  digest {found.digest[:16]}")
    (task,) = tasks_of(
        job_of(write(folder / "driver", replace(spec_of(sizes), days=1)), 1, [Scenario(name="as it is")])
    )
    with measured() as work:
        packed = pack_result(replay_one(task))
    writer = ResultWriter(folder / "results", [replace(task, task=f"{n}") for n in range(_RESULTS)], every_s=math.inf)
    with measured() as cost:
        for number in range(_RESULTS):
            writer.add(replace(unpack_result(packed), task=f"{number}"))
        writer.finish(0.0)
    each_ms = cost.processor_seconds / _RESULTS * 1_000
    print(f"a day's result: {len(packed) / 1e3:.0f} kB, {each_ms:.1f} ms of the driver")
    print(f"  after {work.processor_seconds:.1f} s of work")


# Growth


def _growth(first: Cost, cost: Cost, factor: float) -> str:
    clock, processor = cost.seconds / first.seconds / factor, cost.processor_seconds / first.processor_seconds / factor
    return f"{cost.seconds:8.1f}{clock:11.2f}{cost.processor_seconds:8.1f}{processor:11.2f}"


_GROWTH = f"{'s':>8}{'to linear':>11}{'cpu s':>8}{'to linear':>11}"


def by_days(root: Path, sizes: Sizes) -> None:
    """Replay one scenario over ever more days, as one task."""
    print(f"\n{'days':>8}{_GROWTH}{'worker MB':>11}")
    first: Cost | None = None
    for days in sizes.factors:
        tasks = tasks_of(job_of(root, days, scenarios_for(root, 1), days_per_task=0))
        with measured() as cost:
            here = ran(run_local(tasks, never))
        with measured(memory=True) as there:
            same = ran(run_processes(tasks, 1, never))
        if same.digest != here.digest:
            raise SystemExit(f"{days} days: the pool gives another digest")
        first = first or cost
        print(f"{days:8}{_growth(first, cost, days / sizes.factors[0])}{there.worker_mb:11,.0f}")


def by_bundles(folder: Path, sizes: Sizes) -> None:
    """Replay one scenario over a day with ever more bundles on as many brokers."""
    rows: list[tuple[int, Cost]] = []
    for factor in sizes.factors:
        bundles = sizes.bundles * factor // 2
        cluster = ClusterSpec(brokers=sizes.brokers, bundles=bundles, topics=4 * bundles)
        root = write(folder / f"bundles-{bundles}", spec_of(sizes, cluster=cluster, days=1))
        tasks = tasks_of(job_of(root, 1, scenarios_for(root, 1)))
        with measured() as cost:
            ran(run_local(tasks, never))
        rows.append((bundles, cost))
    print(f"\n{'bundles':>8}{_GROWTH}")
    for bundles, cost in rows:
        print(f"{bundles:8,}{_growth(rows[0][1], cost, bundles / rows[0][0])}")


# On paper


def _first_moments(root: Path, spec: HistorySpec, moments: int) -> None:
    """Generate the first moments of a day."""
    with DayWriter(root, spec.cluster.cluster, spec.first_day) as writer:
        for snapshot in islice(snapshots_of_day(spec, _SEED, 0), moments):
            writer.add(snapshot)
        writer.commit(
            DayManifest(
                cluster=spec.cluster.cluster,
                day=spec.first_day,
                made_by="generate",
                interval_ms=spec.interval_s * 1_000,
                moments=0,
                first_ms=0,
                last_ms=0,
                parts={},
            )
        )


def _ingest_row_s(folder: Path, sizes: Sizes) -> float:
    """Return the processor time per row of bundles that ingesting load reports takes, on a warm session."""
    spec = spec_of(sizes, days=1)
    moments = list(islice(snapshots_of_day(spec, _SEED, 0), sizes.paper_moments))
    raw = write_raw(folder / "raw", iter(moments), "reports")
    options = Options(interval_ms=spec.interval_s * 1_000)
    with open_session("benchmark", folder, sizes.cores) as session:
        ingest([raw], folder / "warm", options, session.spark)
        with measured() as cost:
            result = ingest([raw], folder / "ingested", options, session.spark)
    return cost.processor_seconds / sum(day.rows_of("bundles") for day in result.days)


def on_paper(folder: Path, sizes: Sizes, overhead: float) -> None:
    """Print what a large replay takes, from the pace of a cluster of its size."""
    brokers, bundles = sizes.paper_brokers, sizes.paper_bundles
    cluster = ClusterSpec(brokers=brokers, bundles=bundles, topics=4 * bundles)
    root = folder / "paper"
    _first_moments(root, spec_of(sizes, cluster=cluster, days=1), sizes.paper_moments)
    pace = paced(job_of(root, 1, scenarios_for(root, len(_AXES))))
    with measured(memory=True) as one:
        ran(run_processes(tasks_of(job_of(root, 1, scenarios_for(root, 1))), 1, never))
    tasks, cycles = _PAPER_DAYS * _PAPER_SCENARIOS, DAY_MS // _MS_PER_MIN
    rows = _PAPER_DAYS * DAY_MS // (sizes.interval_s * 1_000) * bundles
    work_s = tasks * (pace.start_s + cycles * pace.cycle_s)
    total = Estimate(tasks=tasks, cycles=tasks * cycles, rows=rows * _PAPER_SCENARIOS, work_s=work_s, longest_s=0)
    overhead = max(overhead, 0.0)
    print(f"\nOn paper, on cores like these: {_PAPER_DAYS} days x {brokers} brokers x {bundles:,} bundles", end="")
    print(f" x {_PAPER_SCENARIOS} scenarios, {total.cycles:,} cycles over {total.rows:,} rows")
    print("  work = tasks x (start + cycles of a day x time of a cycle)")
    print(f"       = {tasks:,} x ({pace.start_s:.2f} s + {cycles:,} x {pace.cycle_s * 1e3:.1f} ms)", end="")
    print(f" = {work_s / 3600:.1f} core hours")
    print(f"  time = rounds x time of a task x (1 + overhead of {overhead:.0%}), rounds = tasks / cores, rounded up")
    for number in (16, 160):
        rounds = math.ceil(tasks / number)
        taken = rounds * work_s / tasks * (1 + overhead)
        print(f"  {number:4} cores: {taken / 60:,.1f} min, in {rounds} rounds; work / cores is", end="")
        print(f" {work_s / number / 60:,.1f} min")
    print(f"  memory of a worker: {one.worker_mb:,.0f} MB")
    row_s = _ingest_row_s(folder, sizes)
    print(f"  making that history out of load reports: {rows:,} rows x {row_s * 1e6:.0f} us", end="")
    print(
        f" = {rows * row_s / 3600:.1f} core hours; one worker makes a day, {rows * row_s / _PAPER_DAYS / 60:,.0f} min,",
        end="",
    )
    print(f" so {_PAPER_DAYS} cores are as fast as more")


def _sizes(given: argparse.Namespace) -> Sizes:
    quick = given.quick
    return Sizes(
        brokers=given.brokers or (4 if quick else 20),
        bundles=given.bundles or (100 if quick else 2_000),
        interval_s=given.interval_s or (600 if quick else 60),
        days=given.days or (2 if quick else 4),
        minutes=given.minutes if given.minutes is not None else (0.05 if quick else 1.25),
        scenarios=given.scenarios,
        cores=given.cores,
        factors=(1, 2) if quick else (1, 2, 4, 8),
        paper_brokers=10 if quick else 100,
        paper_bundles=1_000 if quick else 10_000,
        paper_moments=24 if quick else 120,
        tiny=200 if quick else 2_000,
    )


def main() -> None:
    """Do the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--minutes", type=float, help="how long the job lasts at least on all cores (1.25)")
    for name, text in (
        ("brokers", "brokers (20)"),
        ("bundles", "bundles (2000)"),
        ("interval-s", "time between snapshots (60)"),
        ("days", "days of the job (4)"),
        ("scenarios", "scenarios of the job (as many as make it last)"),
    ):
        parser.add_argument(f"--{name}", type=int, default=0, help=text)
    parser.add_argument("--cores", type=int, default=cores())
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    given = parser.parse_args()
    sizes, overhead = _sizes(given), 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"runners", "days"} & set(given.parts):
            days = max(sizes.days, max(sizes.factors) if "days" in given.parts else 0)
            root = write(folder / "history", spec_of(sizes, days=days))
            if "runners" in given.parts:
                overhead = runners(root, sizes)
            if "days" in given.parts:
                by_days(root, sizes)
        if "bundles" in given.parts:
            by_bundles(folder, sizes)
        if "tiny" in given.parts:
            tiny(folder, sizes)
        if "paper" in given.parts:
            on_paper(folder, sizes, overhead)


if __name__ == "__main__":
    main()
