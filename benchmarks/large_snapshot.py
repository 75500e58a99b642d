"""How long a snapshot of 1,000 brokers x 100,000 bundles x 2,000,000 topics takes to load and to draw.

    python benchmarks/large_snapshot.py [--brokers 1000 --bundles 100000 --topics 2000000]

Prints seconds, the share of each step of the whole, and the peak memory of the process that loads (a fresh one).
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from planner.explain.cluster_tables import measure, namespace_rows
from planner.figures.hash_space import make_raster, raster_map
from planner.formats.folder import write_folder
from planner.formats.reading import read_snapshot
from planner.pulsar.manager.cycle import next_cycle
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.workspace.database import open_workspace

T = TypeVar("T")
ROWS = 60


def timed(label: str, times: dict[str, float], work: Callable[[], T]) -> T:
    """Run work and note its seconds."""
    start = time.perf_counter()
    result = work()
    times[label] = time.perf_counter() - start
    return result


def load(folder: Path) -> tuple[dict[str, float], float]:
    """Load a snapshot folder into a fresh workspace, load it back, decide and draw; return seconds and peak MiB."""
    times: dict[str, float] = {}
    workspace = timed("open workspace", times, lambda: open_workspace(folder / "planner.duckdb"))
    snapshot = timed("read Parquet, hash, validate", times, lambda: read_snapshot(folder))
    saved = timed("digest, store", times, lambda: workspace.add(snapshot, "large"))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    again = timed("load from the store", times, lambda: workspace.snapshot(saved.digest))
    timed("first decision (names and orders made)", times, lambda: next_cycle(again, None, again.settings, 0))
    timed("second decision", times, lambda: next_cycle(again, None, again.settings, 0))

    def draw() -> str:
        value = measure(again, "throughput")
        rows = namespace_rows(again, value, "")[:ROWS]
        raster = make_raster(again.bundles, rows, value)
        return raster_map(raster, [again.namespaces[i] for i in np.asarray(rows).tolist()], "MB/s").to_json()  # type: ignore[no-any-return]

    text = timed("bundle map, figure as JSON", times, draw)
    times[f"(the figure has {len(text) / 1e6:.2f} MB)"] = 0.0
    return times, peak_mib


def main() -> None:
    """Generate, load in a fresh process, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--bundles", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=2_000_000)
    args = parser.parse_args()
    spec = ClusterSpec(
        brokers=args.brokers, bundles=args.bundles, topics=args.topics, msg_rate_per_s=2e4 * args.brokers
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        write_folder(generate(spec, 1), Path(folder))
        size = sum(p.stat().st_size for p in Path(folder).iterdir()) / 1e6
        print(f"generated and written in {time.perf_counter() - start:.1f} s, {size:.1f} MB")
        with multiprocessing.get_context("spawn").Pool(1) as fresh:
            times, peak_mib = fresh.apply(load, (Path(folder),))
    loading = times["read Parquet, hash, validate"] + times["digest, store"]
    for label, seconds in times.items():
        print(f"{seconds:8.3f} s  {seconds / loading:6.1%} of loading  {label}")
    print(f"{loading:8.3f} s  loading in all; peak {peak_mib:.0f} MiB")


if __name__ == "__main__":
    main()
