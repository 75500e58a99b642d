"""`python -m planner watch`: captures a running cluster at every report interval."""

import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.capture.options import Credentials, Limits
from planner.cli.capture import Bounds, Cluster, Secrets
from planner.cli.output import say_where
from planner.cli.shadow import print_line, print_scores
from planner.cluster.units import GIB

if TYPE_CHECKING:
    from planner.capture.raw_answers import RawAnswers
    from planner.capture.watch import Watched
    from planner.cluster.snapshot import Snapshot
    from planner.shadow.watched import ShadowWatch

_MOST_GIB = 1_048_576
_DIGITS = re.compile(r"[0-9.,]+")


def watch(
    *,
    history: Path,
    interval: float = 0.0,
    refresh: float = 300.0,
    max_gib: float = 10.0,
    captures: int = 0,
    failures: int = 0,
    spare_admin_url: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())] = (),
    shadow: bool = False,
    raw_gib: float = 1.0,
    cluster: Cluster,
    secrets: Secrets = Credentials(),
    bounds: Bounds = Limits(),
) -> None:
    """Capture a running cluster at every report interval.

    Adds each capture to a history, which replays and `shadow` can read while it grows. Stop it with Ctrl+C.

    Args:
        history: Folder of the history.
        interval: Seconds between two captures; 0 for the report interval.
        refresh: Seconds for which namespaces, policies, topic lists and settings are reused.
        max_gib: Disk space for the history; the oldest snapshots are deleted.
        captures: Number of captures; 0 for no limit.
        failures: Captures that may fail in a row; 0 for no limit.
        spare_admin_url: Further addresses, tried in turn if one does not answer; then the brokers seen last.
        shadow: Predict each load-balancer cycle, compare, and print the score at the end.
        raw_gib: Disk space for raw answers around wrongly predicted cycles, kept with --shadow; 0 for none.
        cluster: The cluster, and what to capture of it.
        secrets: Where secrets are.
        bounds: Limits of each capture.
    """
    from planner.capture.raw_answers import RawAnswers
    from planner.capture.watch import WatchOptions, watch_cluster
    from planner.cluster.errors import CaptureError, PlannerError, shown
    from planner.shadow.watched import ShadowWatch

    for name, gib in (("--max-gib", max_gib), ("--raw-gib", raw_gib)):
        if not 0 <= gib <= _MOST_GIB:
            raise CaptureError(f"{gib} GiB is out of range.", where=name, remedy=f"Use 0 to {_MOST_GIB:,}.")
    options = WatchOptions(
        capture=replace(cluster, out=history, credentials=secrets, limits=bounds),
        history=history,
        interval_s=interval,
        refresh_s=refresh,
        max_bytes=int(max_gib * GIB),
        captures=captures,
        failures=failures,
        spare_urls=spare_admin_url,
    )
    say_where(history)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    printed: set[str] = set()
    predictions = ShadowWatch(history, print_line) if shadow else None
    answers = RawAnswers(history, int(raw_gib * GIB)) if raw_gib else None

    def report(watched: "Watched") -> None:
        _print(watched, printed)
        if predictions is None or watched.snapshot is None:
            return
        try:
            _follow(watched, watched.snapshot, predictions, answers)
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 - captures go on without what is made of them
            text = str(error) if isinstance(error, PlannerError) else f"{type(error).__name__}: {error}"
            print_line(f"shadow: {shown(text)} Captures continue.", sys.stderr)

    try:
        watch_cluster(options, report, cycle_ms=lambda: predictions.cycle_ms if predictions is not None else 0)
    except KeyboardInterrupt:  # how it is meant to end
        return
    finally:
        signal.signal(signal.SIGTERM, before)
        if answers is not None:
            answers.close()
        if predictions is not None:
            print_scores(predictions, "shadow: ")


def _print(watched: "Watched", printed: set[str]) -> None:
    if watched.snapshot is None:
        sys.stderr.write(f"{watched.number}: {watched.error}\n")
        return
    for warning in watched.snapshot.info.warnings:
        if (kind := _DIGITS.sub("", warning)) not in printed:  # numbers change from one capture to the next
            printed.add(kind)
            sys.stderr.write(f"note: {warning}\n")
    print_line(f"{watched.number}: {watched.folder} in {watched.took_s:.1f} s")


def _follow(watched: "Watched", snapshot: "Snapshot", predictions: "ShadowWatch", answers: "RawAnswers | None") -> None:
    """Compare a capture with what was predicted; keep the raw answers around what was predicted wrong."""
    cycles = predictions.add(snapshot)
    if answers is None or watched.raw is None:
        return
    answers.add(snapshot.info, watched.raw)
    for cycle in cycles:
        if not cycle.right and not cycle.by_hand:
            print_line(f"raw answers: {answers.keep(cycle.cluster, cycle.from_ms, cycle.to_ms)}")
