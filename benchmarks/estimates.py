"""Whether the times promised for replays hold: random jobs, the range told before, and what each really took.

Usage: python -m benchmarks.estimates [--jobs 20] [--seed 1] [--spark]
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from planner.replay import jobs
from planner.replay.estimate import estimate, measure_pace
from planner.replay.spec import Job, tasks_of
from planner.spark.runners import cores
from tests.data.replay.replays import make_history, make_job

if TYPE_CHECKING:
    from planner.replay.runner import Runner

_POOLED = 0.6


def random_job(history: Path, random: Random, *, spark: bool) -> Job:
    """Return a job of a few to a few dozen tasks."""
    job = make_job(history)
    names = random.sample(("ThresholdShedder", "AvgShedder", "UniformLoadShedder", "OverloadShedder"), 3)
    base, often = job.scenarios[0], random.choice((1, 2, 5, 10))
    settings = {"loadBalancerSheddingIntervalMinutes": often}
    scenarios = [
        replace(base, name=f"{name} {at}", seed=at, settings={**settings, "loadBalancerLoadSheddingStrategy": name})
        for name in names
        for at in range(random.randint(1, 4))
    ]
    runner: Runner = "spark" if spark else "processes" if random.random() < _POOLED else "local"
    return replace(
        job, name="", scenarios=tuple(scenarios), runner=runner, workers=cores(), days_per_task=random.choice((0, 1))
    )


def main() -> None:
    """Run the jobs and print a row for each, and how many ranges held."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    random, held = Random(given.seed), 0  # noqa: S311 - nothing is secret
    with tempfile.TemporaryDirectory() as place:
        os.environ["PLANNER_WORKSPACE"] = str(Path(place) / "workspace.duckdb")
        history = make_history(Path(place) / "history")
        print(f"{'runner':>10} {'tasks':>5} {'load':>5} {'least':>7} {'most':>7} {'took':>7}")
        for _ in range(given.jobs):
            job = random_job(history, random, spark=given.spark)
            paces = {"east": measure_pace(tasks_of(job)[0]), "west": measure_pace(tasks_of(job)[-1])}
            found, load = estimate(job, paces), os.getloadavg()[0]
            least, most = found.span_s(job.runner, job.workers if job.runner != "local" else 1, cores(), load)
            stored = jobs.submit(job)
            begun = time.monotonic()
            while not jobs.read_status(stored.folder).ended:
                time.sleep(0.2)
            took = time.monotonic() - begun
            good = least <= took <= most
            held += good
            mark = "" if good else "  out of range"
            print(
                f"{job.runner:>10} {found.tasks:>5} {load:>5.1f} {least:>7.1f} {most:>7.1f} {took:>7.1f}{mark}",
                flush=True,
            )
    print(f"{held} of {given.jobs} ranges held")


if __name__ == "__main__":
    main()
