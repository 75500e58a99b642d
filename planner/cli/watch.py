"""`python -m planner watch`: captures a running cluster at every report interval."""

import argparse
import re
import signal
import sys
from pathlib import Path

from planner.capture.watch import Watched, WatchOptions, watch_cluster
from planner.cli.capture import add_arguments, options_of
from planner.cli.shadow import print_line
from planner.shadow.watched import ShadowWatch

_GIB = 1 << 30
_DIGITS = re.compile(r"[0-9.,]+")


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "watch",
        help="capture a running cluster at every report interval",
        description="Capture a running cluster at every report interval into a history, which replays and"
        " `shadow` read as it grows. End it with Ctrl+C.",
    )
    parser.add_argument("--history", type=Path, required=True, help="folder of the history")
    parser.add_argument(
        "--interval", type=float, default=0.0, help="seconds from one to the next; 0 for the report interval"
    )
    parser.add_argument(
        "--refresh",
        type=float,
        default=300.0,
        help="seconds for which namespaces, policies, topic lists and settings are taken from before (%(default)s)",
    )
    parser.add_argument("--max-gib", type=float, default=10.0, help="disk for the history (%(default)s); oldest go")
    parser.add_argument("--captures", type=int, default=0, help="how many; 0 for no end")
    parser.add_argument(
        "--shadow",
        action="store_true",
        help="predict each load-balancer cycle, compare, and print the score in the end",
    )
    add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Watch until Ctrl+C, or a termination signal.

    Raises:
        CaptureError: The cluster cannot be watched.
    """
    options = WatchOptions(
        capture=options_of(args, args.history),
        history=args.history,
        interval_s=args.interval,
        refresh_s=args.refresh,
        max_bytes=int(args.max_gib * _GIB),
        captures=args.captures,
    )
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    said: set[str] = set()
    shadow = ShadowWatch(args.history, print_line) if args.shadow else None

    def tell(watched: Watched) -> None:
        if watched.snapshot is None:
            sys.stderr.write(f"{watched.number}: {watched.error}\n")
            return
        for warning in watched.snapshot.info.warnings:
            if (kind := _DIGITS.sub("", warning)) not in said:  # numbers change from one capture to the next
                said.add(kind)
                sys.stderr.write(f"note: {warning}\n")
        print_line(f"{watched.number}: {watched.folder} in {watched.took_s:.1f} s")
        if shadow is not None:
            shadow.add(watched.snapshot)

    try:
        watch_cluster(options, tell)
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)
        if shadow is not None:
            print_line(f"shadow: {shadow.score.text}")
    return 0
