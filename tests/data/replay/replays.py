"""Small histories and replays whose cycles are an hour apart, so that a task takes a tenth of a second."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.replay.grid import Grid, first_snapshot, scenarios_of
from planner.replay.jobs import Status, StoredJob, log_tail, read_status
from planner.replay.spec import Job
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario

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
