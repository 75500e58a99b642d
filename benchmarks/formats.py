"""How long snapshots take to write, read, check and name, and how much memory that needs.

Usage: python benchmarks/formats.py [--brokers N] [--bundles N] [--topics N]

The floor is what pyarrow needs to read the same Parquet files without any check; times are also given as multiples of
it. Each road is measured in a process of its own: the best of three runs, and the peak memory of the process (Linux).
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from planner.cluster.digest import snapshot_digest
from planner.formats.apart import read_apart
from planner.formats.archive import write_zip
from planner.formats.document import write_document
from planner.formats.folder import FILES, write_folder
from planner.formats.reading import read_snapshot
from planner.formats.validate import validate
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

_REPEATS = 3
_DOCUMENT_BUNDLES = 2_000
_MB = 1e6


def peak_mb() -> float:
    """Return the greatest memory this process has used, in MB; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 / _MB for line in lines if line.startswith("VmHWM")), 0.0)


def best(work: Callable[[], Any]) -> float:
    """Return the shortest of a few runs, in seconds."""
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def roads(folder: Path) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Return what is measured: a preparation that returns the work."""

    def whole() -> Any:
        return read_snapshot(folder / "snapshot")

    def checking() -> Callable[[], Any]:
        snapshot = whole()
        return lambda: validate(snapshot)

    def naming() -> Callable[[], Any]:
        snapshot = whole()
        return lambda: snapshot_digest(snapshot)

    def writing() -> Callable[[], Any]:
        snapshot = whole()
        return lambda: write_folder(snapshot, folder / "again")

    def uploading() -> Callable[[], Any]:
        data = io.BytesIO((folder / "snapshot.zip").read_bytes())
        return lambda: read_apart("snapshot.zip", data)

    def zipping() -> Callable[[], Any]:
        snapshot = whole()
        return lambda: write_zip(snapshot, io.BytesIO())

    return {
        "floor: Parquet alone": lambda: (
            lambda: [pq.ParquetFile(folder / "snapshot" / f).read() for f in FILES.values()]
        ),
        "read folder": lambda: whole,
        "read zip": lambda: lambda: read_snapshot(folder / "snapshot.zip"),
        "upload zip": uploading,
        "validate": checking,
        "digest": naming,
        "write folder": writing,
        "write zip": zipping,
        f"read document ({_DOCUMENT_BUNDLES:,} bundles)": lambda: lambda: read_snapshot(folder / "small.json"),
    }


def child(folder: Path, road: str) -> None:
    """Measure one road and print it as JSON."""
    work = roads(folder)[road]()
    seconds = best(work)
    print(json.dumps({"seconds": seconds, "mb": peak_mb()}))


def main() -> None:
    """Generate a cluster, write it, and measure every road in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--bundles", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=2_000_000)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(Path(given.child[0]), given.child[1])
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        snapshot = generate(ClusterSpec(brokers=given.brokers, bundles=given.bundles, topics=given.topics), 1)
        write_folder(snapshot, folder / "snapshot")
        with (folder / "snapshot.zip").open("wb") as target:
            write_zip(snapshot, target)
        small = generate(ClusterSpec(brokers=50, bundles=_DOCUMENT_BUNDLES, topics=0), 1)
        (folder / "small.json").write_text(write_document(small))
        size = sum(f.stat().st_size for f in (folder / "snapshot").iterdir())
        print(f"{given.brokers:,} brokers, {given.bundles:,} bundles, {given.topics:,} topics: {size / _MB:.1f} MB")
        floor = None
        for road in roads(folder):
            command = [sys.executable, __file__, "--child", name, road]
            done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            floor = floor or done["seconds"]
            print(f"{road:34s} {done['seconds']:7.3f} s  {done['seconds'] / floor:6.1f} x  {done['mb']:8.0f} MB")


if __name__ == "__main__":
    main()
