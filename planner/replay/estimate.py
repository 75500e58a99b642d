"""What a replay will take, from its first minutes measured on this machine."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.units import MS_PER_MIN
from planner.history.manifest import complete_days
from planner.replay.kernel import ReplayTask, frames_of
from planner.replay.runner import Runner
from planner.replay.spec import Job, tasks_of
from planner.simulate.run import Simulation

_START_S: Final[Mapping[Runner, tuple[float, float]]] = {
    "local": (0.3, 3.0),
    "processes": (1.5, 8.0),
    "spark": (8.0, 40.0),
}
"""Least and most seconds until the first task begins."""
_FASTER, _SLOWER = 0.6, 1.5
"""Cycles cost less or more than the first ones, on which the pace was measured."""
_BUDGET_S: Final = 1.0
_MOST_CYCLES: Final = 120


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a cluster is replayed here, in processor time.

    Attributes:
        start_s: Reading the first snapshot and setting up.
        cycle_s: One shedding cycle, with everything up to the next.
        cycles: How many were measured.
    """

    start_s: float
    cycle_s: float
    cycles: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a replay will take.

    Attributes:
        tasks: Tasks.
        cycles: Shedding cycles of all tasks.
        rows: Rows of bundles that the tasks read.
        work_s: Processor time of all tasks together, on a core like those of this machine.
        longest_s: Processor time of the longest task.
    """

    tasks: int
    cycles: int
    rows: int
    work_s: float
    longest_s: float

    def span_s(self, runner: Runner, parallel: int, cores: int, load: float) -> tuple[float, float]:
        """Return how long that takes on this machine, at least and at most, with the start of what runs it.

        Args:
            runner: What runs it.
            parallel: Tasks at once.
            cores: Cores of this machine.
            load: How many processes want its cores at present. They may end soon, or stay.
        """
        at_once = max(min(parallel, self.tasks), 1)
        quick = self.work_s / min(at_once, cores)
        slower = max((at_once + load) / cores, 1.0)
        least, most = _START_S[runner]
        alone = self.work_s / at_once + (self.longest_s if at_once > 1 else 0.0)
        return quick * _FASTER + least, (alone * _SLOWER + most) * slower


def measure_pace(task: ReplayTask) -> Pace:
    """Replay the first minutes of a task and measure them; takes about a second.

    Raises:
        PlannerError: The history has nothing there, or the scenario does not fit it.
    """
    begin = time.thread_time()
    running = Simulation(frames_of(task), task.scenario)
    cycles = running.cycles(_MOST_CYCLES)
    next(cycles)  # fills caches
    first = time.thread_time()
    number = 0
    for _ in cycles:
        number += 1
        if time.thread_time() - first > _BUDGET_S:
            break
    cycle_s = (time.thread_time() - first) / max(number, 1)
    return Pace(max(first - begin - cycle_s, 0.0), cycle_s, number)


def estimate(job: Job, paces: dict[str, Pace], interval_min: int = 1) -> Estimate:
    """Return what a job will take.

    Args:
        job: The job.
        paces: How fast its clusters are replayed; one that is missing is taken to be like the slowest.
        interval_min: `loadBalancerSheddingIntervalMinutes` where a scenario does not say.

    Raises:
        PlannerError: The job cannot be run.
    """
    slowest = max(paces.values(), key=lambda pace: pace.cycle_s)
    tasks = tasks_of(job)
    cycles, works = 0, []
    for task in tasks:
        minutes = int(task.scenario.settings.get(SHEDDING_INTERVAL_MINUTES, interval_min))
        mine = (task.end_ms - task.start_ms) // (max(minutes, 1) * MS_PER_MIN)
        pace = paces.get(task.cluster, slowest)
        cycles += mine
        works.append(pace.start_s + mine * pace.cycle_s)
    rows = sum(
        day.rows("bundles")
        for cluster in job.clusters
        for day in complete_days(Path(job.history), cluster)
        if job.first_day <= day.manifest.day <= job.last_day
    )
    return Estimate(len(tasks), cycles, rows * len(job.scenarios), sum(works), max(works, default=0.0))
