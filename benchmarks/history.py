"""What a history costs: generating, ingesting on Spark, reading; and how cost grows with size.

Usage: python -m benchmarks.history [--brokers N] [--bundles N] [--interval-s N] [--days 1 2 4 8] [--form reports]

Sizes are days of one cluster, all ingested by one warm Spark session. Beside the time on the clock it gives the
processor time of this process, the JVM and its Python workers, which other programs on the machine disturb less, and
the ratio of both to linear growth from the first size on. Peak memory is the largest of any Python worker: it must not
grow with the number of days (Linux).
"""

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.measuring import MB, Cost, measured
from planner.history.days import read_day
from planner.history.generate import snapshots_of_day
from planner.history.ingest import ingest
from planner.history.manifest import complete_days
from planner.history.raw import write_raw
from planner.history.spec import FORMS, HistorySpec, Options
from planner.simulate.cluster_spec import ClusterSpec
from planner.spark.session import local_session


def main() -> None:
    """Generate days, then ingest the first ones of them in growing numbers, and read them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=20)
    parser.add_argument("--bundles", type=int, default=2_000)
    parser.add_argument("--interval-s", type=int, default=60)
    parser.add_argument("--days", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--form", choices=FORMS, default="reports")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    given = parser.parse_args()
    cluster = ClusterSpec(brokers=given.brokers, bundles=given.bundles, topics=4 * given.bundles)
    spec = HistorySpec(
        cluster=cluster, days=max(given.days), interval_s=given.interval_s, topics=given.form != "reports"
    )
    options = Options(interval_ms=given.interval_s * 1_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with measured() as cost:
            files = [
                write_raw(folder / "raw", snapshots_of_day(spec, 1, day), given.form) for day in range(max(given.days))
            ]
        size = sum(f.stat().st_size for f in files) / MB
        print(f"{len(files)} days of {given.form}: {size:,.0f} MB, generated in {cost.seconds:.1f} s")
        session = local_session("benchmark", given.cores)
        ingest(files[:1], folder / "warm", options, session)
        print("  days    raw rows  bundle rows     s   to linear   cpu s   to linear   bundle rows/s   worker MB")
        first: tuple[int, Cost] | None = None
        for days in given.days:
            with measured(memory=True) as cost:
                result = ingest(files[:days], folder / f"x{days}", options, session)
            first = first or (days, cost)
            share = days / first[0]
            rows = sum(m.parts["bundles.parquet"].rows for m in result.days)
            print(
                f"{days:6d}{result.rows_read:12,d}{rows:13,d}{cost.seconds:6.1f}"
                f"{cost.seconds / share / first[1].seconds:12.2f}{cost.processor_seconds:8.1f}"
                f"{cost.processor_seconds / share / first[1].processor_seconds:12.2f}"
                f"{rows / cost.seconds:16,.0f}{cost.worker_mb:12,.0f}"
            )
        with measured() as cost:
            again = ingest(files, folder / f"x{max(given.days)}", options, session)
        print(f"the same once more: {cost.seconds:.2f} s, {len(again.days)} days made")
        session.stop()
        folders = list(complete_days(folder / f"x{max(given.days)}"))
        with measured() as cost:
            moments = sum(1 for day in folders for _ in read_day(day.path))
        print(f"read back: {moments:,} snapshots in {cost.seconds:.1f} s, {moments / cost.seconds:,.0f} a second")


if __name__ == "__main__":
    main()
