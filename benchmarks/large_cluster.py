"""What a large cluster costs, beside an earlier version of the planner in the same run.

    python -m benchmarks.large_cluster --against REVISION

Prints seconds of processor time and how many times less they are now: a decision with thousands of moves and their
placement, what-ifs of 30 cycles with each strategy and with traffic that changes all the time, all at 1,000 brokers x
100,000 bundles, a day of cycles at 40 x 2,000 whose traffic changes every five minutes, and 10,000 bundles that are
placed on empty brokers one by one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.generate import generate
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import Simulation, simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.sequence import decide_cycles
from planner.simulate.strategies import under_strategy

_DAY_MIN = 1_440
_EVERY_MIN = 5


def _cluster(msg_rate_per_s: float) -> Snapshot:
    spec = ClusterSpec(
        brokers=1_000, bundles=100_000, topics=200_000, namespaces=1_000, ownership_skew=0.6,
        msg_rate_per_s=msg_rate_per_s,
    )  # fmt: skip
    return generate(spec, 7)


def _decided(snapshot: Snapshot) -> str:
    decision = decide_cycles((snapshot,), Settings(), 0)[-1].decision
    return f"{len(decision.moves):,} moves"


def _simulated(snapshot: Snapshot, scenario: Scenario) -> str:
    return f"{len(simulate(snapshot, scenario).events):,} events"


def _followed(frames: list[Snapshot]) -> str:
    """Run a day over snapshots, keeping nothing, as a replay does."""
    run = Simulation(frames, Scenario())
    return f"{sum(len(cycle.events) for cycle in run.cycles(_DAY_MIN)):,} events"


def _planned(spec: PlannedCluster) -> str:
    """Place the bundles of a cluster that does not exist, each on what the bundles before it leave."""
    return f"{int((plan_cluster(spec).bundles.owner >= 0).sum()):,} placed"


def _works() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "one decision, 40 million msg/s", partial(_decided, _cluster(4e7))
    usual = _cluster(3e6)
    config, manager = usual.settings, usual.info.load_manager
    for shedder in SHEDDERS:
        scenario = under_strategy(Scenario(cycles=30), config, manager, shedder.name)
        yield f"30 cycles, {shedder.name}", partial(_simulated, usual, scenario)
    daily = (Step(ScaleTraffic(factor=2, shape="daily", duration_min=600)),)
    yield "30 cycles, traffic changes all the time", partial(_simulated, usual, Scenario(cycles=30, steps=daily))
    small = ClusterSpec(
        brokers=40, bundles=2_000, topics=20_000, namespaces=20, ownership_skew=0.6, msg_rate_per_s=1.2e5
    )
    wave = Scenario(cycles=_DAY_MIN, steps=(Step(ScaleTraffic(factor=2, shape="daily", duration_min=_DAY_MIN)),))
    frames = [cycle.view for cycle in simulate(generate(small, 3), wave).cycles[::_EVERY_MIN]]
    yield "a day at 40 x 2,000", partial(_followed, frames)
    topics = (
        PlannedTopics(pattern=f"persistent://a/n{at}/t-%d", count=2_000, bundles=500, msg_rate_per_s=2e4)
        for at in range(20)
    )
    yield "10,000 bundles placed one by one", partial(_planned, PlannedCluster(brokers=100, topics=tuple(topics)))


def _measure() -> None:
    """Print, as JSON, what each piece of work found and took: the shorter of two runs."""
    found = {}
    for name, work in _works():
        taken = []
        for _ in range(2):
            start = time.process_time()
            result = work()
            taken.append(time.process_time() - start)
        found[name] = (result, min(taken))
    print(json.dumps(found))


def _run(code: Path | None) -> dict[str, Any]:
    environment = dict(os.environ) if code is None else os.environ | {"PYTHONPATH": str(code)}
    done = subprocess.run([sys.executable, __file__, "--measure"], env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure now, and before when a revision is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", help="an earlier version to compare with")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        _measure()
        return
    with tempfile.TemporaryDirectory() as name:
        before = _run(_earlier(given.against, Path(name))) if given.against else {}
        now = _run(None)
    for what, (result, seconds) in now.items():
        line = f"{what:42} {result:16} {seconds:8.2f} s"
        if what in before:
            was, was_s = before[what]
            line += f" {was_s:8.2f} s before, {was_s / seconds:5.1f} times{'' if was == result else f' ({was})'}"
        print(line)


def _earlier(revision: str, folder: Path) -> Path:
    from benchmarks.measuring import earlier_version  # noqa: PLC0415 - the measured process has no such path

    return earlier_version(revision, folder)


if __name__ == "__main__":
    main()
