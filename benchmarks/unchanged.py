"""Whether simulations still answer what an earlier revision answered, to the last bit.

    python -m benchmarks.unchanged main [--clusters 100] [--first 0]

Random clusters and scenarios are simulated by this tree and by the revision, each in its own process. Compared are all
views, averages, memories, decisions with their reasons, events, states, results and findings. Prints the clusters whose
answers differ, and the processor time of both. Exit status 1 when there is one.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.advice import random_cluster
from benchmarks.measuring import ROOT, earlier_version
from planner.cluster.decisions import ReasonBlock
from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TopicTable
from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.pulsar.manager.cycle import CycleDecision
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Trace
from tests.app.plan.random_scenarios import random_scenario

_EXPLAINED = 3
"""Cycles of each simulation that are decided again with all reasons."""


def digest(*things: Any) -> str:
    """Return a SHA-256 over the content of anything that answers are made of."""
    made = hashlib.sha256()
    for thing in things:
        _read(thing, made)
    return made.hexdigest()


def _read(thing: Any, made: Any) -> None:
    kind = TopicTable if isinstance(thing, TopicTable) else type(thing)  # however it finds its columns
    made.update(kind.__name__.encode())
    if isinstance(thing, np.ndarray):
        made.update(f"{thing.dtype}{thing.shape}".encode())
        made.update(repr(thing.tolist()).encode() if thing.dtype == object else np.ascontiguousarray(thing).tobytes())
        return
    if isinstance(thing, ReasonBlock):
        thing = thing.code, thing.brokers, thing.bundles, thing.values, thing.others
    if isinstance(thing, CycleDecision):
        thing = thing.shedder, thing.shedding, thing.notes, thing.unloads
    parts = iter(thing.to_pylist()) if isinstance(thing, pa.Array | pa.ChunkedArray) else _inside(thing)
    if parts is None:
        made.update(repr(thing).encode())
        return
    for part in parts:
        _read(part, made)


def _inside(thing: Any) -> Iterator[Any] | None:
    """Return what a thing is made of; None for a value whose text says it all."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return (part for field in fields(thing) for part in (field.name, getattr(thing, field.name)))
    if isinstance(thing, Mapping):
        return (part for pair in thing.items() for part in pair)
    if isinstance(thing, set | frozenset):
        return iter(sorted(thing, key=repr))
    if isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        return iter(thing)
    if isinstance(thing, str | bytes | int | float | np.generic) or thing is None:
        return None
    return iter((str(getattr(thing, "name", "")),))  # a strategy or another object without content


def _scenarios(number: int) -> Iterator[tuple[Snapshot, Scenario]]:
    """Yield what is simulated of one random cluster: as it is, and with edits of every kind."""
    cluster, scenario = random_cluster(number)
    yield cluster, scenario
    for at in range(2):
        draw = Random(f"{number}/{at}")  # noqa: S311 - scenarios that come out the same again
        yield cluster, replace(random_scenario(cluster, draw.randrange(10**9)), cycles=draw.randint(8, 20))


def _parts(trace: Trace) -> dict[str, str]:
    cycles = trace.cycles
    found = {
        "views": digest(*(cycle.view for cycle in cycles)),
        "cycles": digest(*(replace(cycle, view=trace.start) for cycle in cycles)),
        "end": digest(trace.end, trace.notes, trace.complete, trace.end_demand),
    }
    for index in range(min(_EXPLAINED, len(cycles))):
        found[f"decision {index + 1}"] = digest(trace.decision(index))
    outcome = Outcome(trace)
    found["result"] = digest(outcome.result, outcome.summary)
    found["findings"] = digest(diagnose(outcome))
    return found


def answers(number: int) -> list[dict[str, str]]:
    """Return digests of the parts of each simulation of one random cluster."""
    found = []
    for cluster, scenario in _scenarios(number):
        try:
            found.append(_parts(simulate(cluster, scenario)))
        except PlannerError as error:
            found.append({"error": str(error)})
    return found


def _asked(of: Path, asked: argparse.Namespace) -> tuple[list[Any], float]:
    """Return the answers of the planner in a folder, and the processor time that they took."""
    command = [sys.executable, "-m", "benchmarks.unchanged", "--print"]
    command += ["--clusters", str(asked.clusters), "--first", str(asked.first)]
    # The planner of that folder, with the benchmarks and tests of this tree.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(of), str(ROOT))), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, cwd=ROOT)
    found = json.loads(done.stdout)
    return found["answers"], found["seconds"]


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="main")
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--print", action="store_true")
    asked = parser.parse_args()
    numbers = range(asked.first, asked.first + asked.clusters)
    if asked.print:
        begun = time.process_time()
        found = [answers(number) for number in numbers]
        print(json.dumps({"answers": found, "seconds": time.process_time() - begun}))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before, before_s = _asked(earlier_version(asked.revision, Path(folder)), asked)
    after, after_s = _asked(ROOT, asked)
    differ = 0
    for number, old, new in zip(numbers, before, after, strict=True):
        for at, (one, two) in enumerate(zip(old, new, strict=True)):
            parts = [part for part in {**one, **two} if one.get(part) != two.get(part)]
            differ += bool(parts)
            if parts:
                print(f"cluster {number}, scenario {at + 1}: {', '.join(parts)}")
    count = sum(map(len, after))
    print(f"{differ} of {count} simulations differ; {before_s:.1f} s by {asked.revision}, {after_s:.1f} s by this tree")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
