"""`python -m planner history`: generates histories, and turns raw recordings into them."""

import argparse
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from planner.model.errors import SettingError
from planner.model.snapshot import LoadManager
from planner.replay.history.generate import HistorySpec, write_history
from planner.simulate.generate import ClusterSpec

__all__ = ["add_parser", "run"]

_HELP = {
    "first_day": "the first day, yyyy-mm-dd in UTC",
    "days": "how many days",
    "interval_s": "seconds between snapshots",
    "daily_swing": "how far load goes above and below its mean over a day, 0 to 0.95",
    "peak_hour": "hour of the day (UTC) with the most load",
    "weekend_share": "load on Saturdays and Sundays as a share of that on other days",
    "growth_percent_per_day": "how much load grows from day to day",
    "noise": "standard deviation of each topic's load from moment to moment, as a share",
    "spikes_per_day": "mean number of namespaces per day whose load jumps",
    "spike_factor": "by how much it jumps at most",
    "spike_minutes": "how long until a spike has fallen off to a third",
    "restarts_per_day": "mean number of brokers per day that restart",
    "restart_minutes": "how long a broker is away",
    "splits_per_day": "mean number of bundles per day that are split",
    "topics": "list the topics in every snapshot, too",
}
_CLUSTER_HELP = {
    "brokers": "how many brokers",
    "namespaces": "how many namespaces; 0 for one for every 100 bundles",
    "bundles": "how many bundles at the start",
    "topics": "how many topics, partitions counted",
    "load_manager": "modular or extensible",
    "msg_rate_per_s": "mean of the messages published per second in the whole cluster",
    "ownership_skew": "how unevenly bundles lie on brokers, 0 to 1",
    "cluster": "name of the cluster",
}
_CLUSTER_NAMES = {"topics": "topic_count"}


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("history", help="generate a history, or make one of raw recordings")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_generate(actions)


def _add_generate(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "generate",
        help="write a generated history",
        description="Write a generated history; the same arguments and seed give the same one.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the history; days in it are replaced")
    parser.add_argument("--seed", type=int, default=1, help="decides everything that is drawn")
    parser.add_argument("--workers", type=int, default=0, help="how many processes; 0 for one for each core")
    for spec, helps, names in ((HistorySpec, _HELP, {}), (ClusterSpec, _CLUSTER_HELP, _CLUSTER_NAMES)):
        for item in fields(spec):
            if item.name in helps:
                _add_option(parser, names.get(item.name, item.name), item.default, helps[item.name])


def _add_option(parser: argparse.ArgumentParser, name: str, default: Any, text: str) -> None:
    option = f"--{name.replace('_', '-')}"
    if default is MISSING or isinstance(default, bool):
        parser.add_argument(option, action="store_true", help=text)
        return
    kind = LoadManager if isinstance(default, LoadManager) else type(default)
    parser.add_argument(option, type=kind, default=default, metavar=kind.__name__, help=text)


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say.

    Raises:
        SettingError: An argument is out of bounds.
        FormatError: An input cannot be read.
        ReplayError: The history cannot be written, or Spark does not run.
    """
    return _generate(args)


def _generate(args: argparse.Namespace) -> int:
    cluster = ClusterSpec(**{name: getattr(args, _CLUSTER_NAMES.get(name, name)) for name in _CLUSTER_HELP})
    spec = HistorySpec(cluster=cluster, **{name: getattr(args, name) for name in _HELP})
    if args.workers < 0:
        raise SettingError(f"{args.workers} processes cannot work.", where="workers", remedy="Give 0 or more.")
    for made in write_history(args.out, spec, args.seed, args.workers or None):
        rows = made.parts["bundles.parquet"].rows
        sys.stdout.write(f"{made.cluster} {made.day}: {made.moments:,} snapshots, {rows:,} rows of bundles\n")
        sys.stdout.flush()
    return 0
