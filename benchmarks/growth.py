"""How the cost of a simulation and of a failure review grows with the cluster.

    python -m benchmarks.growth

Prints seconds of processor time from 100 brokers x 10,000 bundles to 3,000 x 300,000 with 20 topics a bundle, and the
exponent p of cost ~ size^p from the first size on. Of a what-if it also prints moments at which reports are written,
and splits: each of both is work on all bundles. The whole takes two minutes and 5 GB.
"""

import gc
import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.failure_review import review_losses
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step

_BROKERS = (100, 300, 1_000, 3_000)
_DAILY = (Step(ScaleTraffic(factor=2, shape="daily", duration_min=600)),)


def _cluster(brokers: int) -> Snapshot:
    spec = ClusterSpec(
        brokers=brokers, bundles=brokers * 100, topics=brokers * 2_000, namespaces=brokers, ownership_skew=0.6,
        msg_rate_per_s=3_000.0 * brokers,
    )  # fmt: skip
    return generate(spec, 1)


def _simulated(snapshot: Snapshot, scenario: Scenario) -> str:
    trace = simulate(snapshot, scenario)
    reports = {int(at) for cycle in trace.cycles for at in np.unique(cycle.view.brokers.updated_at_ms)}
    reports -= set(snapshot.brokers.updated_at_ms.tolist())
    splits = sum(event.kind == "split" for event in trace.events)
    return f"{len(reports)} moments with reports, {splits} splits"


def _reviewed(snapshot: Snapshot) -> str:
    return f"{len(review_losses(snapshot).lost):,} losses"


_WORKS: tuple[tuple[str, Callable[[Snapshot], str]], ...] = (
    ("what-if of 30 cycles", partial(_simulated, scenario=Scenario(cycles=30))),
    ("the same, traffic changes all the time", partial(_simulated, scenario=Scenario(cycles=30, steps=_DAILY))),
    ("failure review", _reviewed),
)


def _seconds(work: Callable[[], str]) -> tuple[str, float, float]:
    """Return what a piece of work found, what it takes the first time, and the shorter of two more runs."""
    taken = []
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return found, taken[0], min(taken[1:])


def main() -> None:
    """Print the numbers."""
    known: dict[str, tuple[float, float]] = {}
    for brokers in _BROKERS:
        for name, work in _WORKS:
            found, first, again = _seconds(partial(work, _cluster(brokers)))
            known.setdefault(name, (first, again))
            line = f"{brokers:>5,} x {brokers * 100:>7,} {name:39} {first:7.3f} s first, {again:7.3f} s again"
            if brokers > _BROKERS[0]:
                size = math.log(brokers / _BROKERS[0])
                powers = (math.log(now / then) / size for now, then in zip((first, again), known[name], strict=True))
                line += f", p {' and '.join(f'{power:.2f}' for power in powers)}"
            print(f"{line} ({found})", flush=True)


if __name__ == "__main__":
    main()
