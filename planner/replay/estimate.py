"""What a replay will take, from its first minutes measured on this machine."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.history.manifest import complete_days
from planner.replay.kernel import ReplayTask, frames_of
from planner.replay.spec import Job, tasks_of
from planner.simulate.run import Simulation
from planner.simulate.scenario import Scenario

_BUDGET_S: Final = 1.0
_MOST_CYCLES: Final = 120
_MS_PER_MIN: Final = 60_000


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
    """

    tasks: int
    cycles: int
    rows: int
    work_s: float

    def seconds(self, parallel: int) -> float:
        """Return how long that takes with so many tasks at once, on cores that have nothing else to do."""
        return self.work_s / max(min(parallel, self.tasks), 1)


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


def _interval_ms(scenario: Scenario, task_interval_min: int) -> int:
    minutes = scenario.settings.get("loadBalancerSheddingIntervalMinutes", task_interval_min)
    return max(int(minutes), 1) * _MS_PER_MIN


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
    cycles, work_s = 0, 0.0
    for task in tasks:
        mine = (task.end_ms - task.start_ms) // _interval_ms(task.scenario, interval_min)
        pace = paces.get(task.cluster, slowest)
        cycles += mine
        work_s += pace.start_s + mine * pace.cycle_s
    rows = sum(
        day.rows("bundles")
        for cluster in job.clusters
        for day in complete_days(Path(job.history), cluster)
        if job.first_day <= day.manifest.day <= job.last_day
    )
    return Estimate(len(tasks), cycles, rows * len(job.scenarios), work_s)
