"""`python -m planner shadow`: how well a watched history was predicted."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from planner.cluster.errors import CaptureError
from planner.history.days import read_day
from planner.history.manifest import complete_days
from planner.shadow.record import ShadowRecord, clusters_of
from planner.shadow.watched import ShadowWatch


def replay(root: Path, cluster: str, shadow: ShadowWatch) -> int:
    """Let shadow mode go through the snapshots of a history.

    Returns:
        How many there are.

    Raises:
        CaptureError: There are fewer than two.
        FormatError: One cannot be read.
        SnapshotError: One is no cluster.
    """
    count = 0
    for day in complete_days(root, cluster):
        for snapshot in read_day(day.path):
            shadow.add(snapshot)
            count += 1
    if count < 2:  # noqa: PLR2004 - one predicts, the next one shows
        raise CaptureError(
            f"There are {count} snapshots of {cluster}, too few.",
            where=str(root),
            remedy="Watch the cluster for a while: python -m planner watch.",
        )
    return count


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "shadow",
        help="compare what was predicted with what a watched cluster did",
        description="Go through a watched history, predict each load-balancer cycle from the capture before it, compare"
        " with what happened, and print the score. `watch --shadow` does the same while it watches.",
    )
    parser.add_argument("--history", type=Path, required=True, help="folder of the histories")
    parser.add_argument("--cluster", default="", help="name of the cluster, where there are several")
    parser.add_argument("--record", action="store_true", help="write the record that the page Shadow shows, too")
    parser.add_argument("--json", action="store_true", help="print each cycle as a line of JSON, then the score")


def run(args: argparse.Namespace) -> int:
    """Print the cycles of a history, and the score.

    Raises:
        PlannerError: The history cannot be read, or its record cannot be written.
    """
    found = clusters_of(args.history)
    cluster = args.cluster or next(iter(found), "")
    if cluster not in found or (not args.cluster and len(found) > 1):
        raise CaptureError(
            f"There is no cluster {cluster!r}." if args.cluster else f"There are {len(found)} clusters.",
            where=str(args.history),
            remedy=f"Name one with --cluster: {', '.join(found)[:300]}." if found else "Watch a cluster first.",
        )
    if args.record and ShadowRecord(found[cluster]).path.exists():
        raise CaptureError(
            "There is a record of this cluster already.",
            where=str(ShadowRecord(found[cluster]).path),
            remedy="Delete or move it first, when no watch writes it.",
        )
    shadow = ShadowWatch(args.history if args.record else None, lambda line: None if args.json else print_line(line))
    replay(args.history, cluster, shadow)
    if args.json:
        for cycle in shadow.cycles:
            print_line(json.dumps(asdict(cycle), separators=(",", ":")))
        print_line(json.dumps(asdict(shadow.score), separators=(",", ":")))
    else:
        print_line(shadow.score.text)
    return 0


def print_line(line: str) -> None:
    """Write a line on standard output at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
