"""Small histories and replays whose cycles are an hour apart, so that a task takes a tenth of a second."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.replay.grid import Grid, first_snapshot, scenarios_of
from planner.replay.jobs import Status, StoredJob, log_tail, read_status, write_status
from planner.replay.kernel import ReplayTask, TaskResult, replay_one
from planner.replay.results import ResultWriter
from planner.replay.spec import Job, job_to_json, tasks_of
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario, scenario_to_json

CLUSTERS = ("east", "west")
DAYS = 2
_SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=3, bundles=24, topics=100, namespaces=3, msg_rate_per_s=40_000, ownership_skew=0.6),
    days=DAYS,
    interval_s=3_600,
    splits_per_day=0,
)
HOURLY = Scenario(
    name="hourly",
    settings={"loadBalancerSheddingIntervalMinutes": 60},
    assumptions=Assumptions(stats_interval_s=3_600, spread_reports=False),
)
"""Decides once an hour."""
OFTEN = replace(
    HOURLY,
    name="often",
    settings={"loadBalancerSheddingIntervalMinutes": 10},
    assumptions=Assumptions(stats_interval_s=600, spread_reports=False),
)
"""Takes half a second for each day."""
EVERY_MINUTE = Scenario(name="every minute")
"""Takes seconds for each day, so that a test can act in the middle of one."""
SHEDDING = "loadBalancerBrokerThresholdShedderPercentage"


def make_history(root: Path) -> Path:
    """Write two days of two clusters."""
    for seed, name in enumerate(CLUSTERS, start=1):
        for day in range(DAYS):
            write_day(root, replace(_SPEC, cluster=replace(_SPEC.cluster, cluster=name)), seed, day)
    return root


def grid_to_json(wanted: Grid) -> str:
    """Return a grid as the text of a file."""
    content = {
        "format": "pulsar-bundle-planner scenarios",
        "version": 1,
        "base": scenario_to_json(wanted.base),
        "strategies": list(wanted.strategies),
        "settings": {name: list(values) for name, values in wanted.settings.items()},
        "with_base": wanted.with_base,
        "scenarios": [scenario_to_json(scenario) for scenario in wanted.more],
        **({"releases": list(wanted.releases)} if wanted.releases else {}),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def make_job(history: Path, *, base: Scenario = HOURLY, values: tuple[int, ...] = (5, 10), **changes: Any) -> Job:
    """Return a job over the whole history: the base and a value of the threshold each."""
    wanted = Grid(base=base, settings={SHEDDING: values}) if values else Grid(base=base)
    job = Job(
        name="a test",
        history=str(history),
        clusters=CLUSTERS,
        first_day="2027-01-11",
        last_day="2027-01-12",
        scenarios=scenarios_of(wanted, first_snapshot(history, CLUSTERS[0])),
        runner="local",
    )
    return replace(job, **changes)


def wait_for(
    stored: StoredJob, condition: Callable[[Status], bool] = lambda status: status.ended, seconds: float = 500
) -> Status:
    """Wait until the status of a job is as wanted."""
    until = time.monotonic() + seconds
    while not condition(status := read_status(stored.folder)):
        assert time.monotonic() < until, f"{status}\n{log_tail(stored.folder)}"
        assert not status.ended, f"{status}\n{log_tail(stored.folder)}"
        time.sleep(0.05)
    return status


JOB = "20270112-000000-00000001"


@cache
def replayed() -> tuple[Job, list[ReplayTask], list[TaskResult]]:
    """Two tasks of a day, and what they came to."""
    with tempfile.TemporaryDirectory() as folder:
        history = make_history(Path(folder))
        job = make_job(history, clusters=CLUSTERS[:1], last_day="2027-01-11", values=(2,))
        tasks = tasks_of(job)
        return job, tasks, [replay_one(task) for task in tasks]


def work(root: Path, tasks: int = 2) -> None:
    """Do to the disk what the process of a job does; it is killed before the end where there are tasks left."""
    _, all_tasks, results = replayed()
    writer = ResultWriter(root / "results", all_tasks, every_s=0)
    for result in results[:tasks]:
        if result.task not in writer.finished:
            writer.add(result)
    if tasks == len(results):
        writer.finish(1)


def make_job_folder(root: Path) -> None:
    (root / JOB).mkdir()
    (root / JOB / "spec.json").write_text(job_to_json(replayed()[0]))
    work(root / JOB)
    write_status(root / JOB, Status(state="done", tasks=2, done=2, submitted_ms=1_800_000_000_000, digest="0" * 64))
