"""`python -m planner history`: generates histories, and turns raw recordings into them."""

import argparse
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from planner.cluster.errors import SettingError
from planner.cluster.snapshot import LoadManager
from planner.history.assemble import Options
from planner.history.generate import HistorySpec, snapshots_of_day, write_history
from planner.history.ingest import SET_ASIDE, ingest
from planner.history.raw import FORMS, write_raw
from planner.history.state import Validity
from planner.simulate.generate import ClusterSpec

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
    _add_ingest(actions)


def _add_generate(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "generate",
        help="write a generated history",
        description="Write a generated history; the same arguments and seed give the same one.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the history; days in it are replaced")
    parser.add_argument("--seed", type=int, default=1, help="decides everything that is drawn")
    parser.add_argument(
        "--form",
        choices=("history", *FORMS),
        default="history",
        help="write a history, or one file a day of what a recorder would have written",
    )
    parser.add_argument("--workers", type=int, default=0, help="how many processes; 0 for one for each core")
    for spec, helps, names in ((HistorySpec, _HELP, {}), (ClusterSpec, _CLUSTER_HELP, _CLUSTER_NAMES)):
        for item in fields(spec):
            if item.name in helps:
                _add_option(parser, names.get(item.name, item.name), item.default, helps[item.name])


def _add_ingest(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "ingest",
        help="make a history of raw recordings",
        description=(
            "Make a history of raw recordings, on Spark: snapshots, raw captures, JSON Lines of load reports and of"
            " broker-stats topics, Prometheus range exports. Files and days that did not change are left as they are;"
            " rows that cannot be read are put aside with file, line and reason."
        ),
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    default = Options()
    parser.add_argument("inputs", type=Path, nargs="+", help="files, and folders to look through")
    parser.add_argument("--out", type=Path, required=True, help="folder of the history")
    parser.add_argument("--cluster", default=default.cluster, help="name of the cluster where rows do not give it")
    parser.add_argument("--interval-s", type=int, default=60, help="seconds between snapshots made of reports")
    parser.add_argument(
        "--report-valid-s", type=int, default=default.validity.report_ms // 1_000, help="how long a report is valid"
    )
    parser.add_argument(
        "--sample-valid-s", type=int, default=default.validity.sample_ms // 1_000, help="how long a sample is valid"
    )


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
    return _generate(args) if args.action == "generate" else _ingest(args)


def _generate(args: argparse.Namespace) -> int:
    cluster = ClusterSpec(**{name: getattr(args, _CLUSTER_NAMES.get(name, name)) for name in _CLUSTER_HELP})
    spec = HistorySpec(cluster=cluster, **{name: getattr(args, name) for name in _HELP})
    if args.workers < 0:
        raise SettingError(f"{args.workers} processes cannot work.", where="workers", remedy="Give 0 or more.")
    if args.form != "history":
        for day in range(spec.days):
            path = write_raw(args.out, snapshots_of_day(spec, args.seed, day), args.form)
            sys.stdout.write(f"{path}: {path.stat().st_size / 1e6:,.1f} MB\n")
        return 0
    for made in write_history(args.out, spec, args.seed, args.workers or None):
        rows = made.parts["bundles.parquet"].rows
        sys.stdout.write(f"{made.cluster} {made.day}: {made.moments:,} snapshots, {rows:,} rows of bundles\n")
        sys.stdout.flush()
    return 0


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _ingest(args: argparse.Namespace) -> int:
    for name, least, most in (
        ("interval_s", 1, 86_400),
        ("report_valid_s", 1, 86_400),
        ("sample_valid_s", 1, 86_400),
    ):
        value = getattr(args, name)
        if not least <= value <= most:
            where = f"--{name.replace('_', '-')}"
            raise SettingError(f"{value} cannot be used.", where=where, remedy=f"Give {least} to {most}.")
    validity = Validity(args.report_valid_s * 1_000, args.sample_valid_s * 1_000)
    options = Options(args.interval_s * 1_000, validity, args.cluster)
    done = ingest(args.inputs, args.out, options, progress=_tell)
    for made in done.days:
        rows = made.rows
        sys.stdout.write(
            f"{made.cluster} {made.day}: {made.moments:,} snapshots of {rows.kept:,} rows ({rows.used:,} used,"
            f" {rows.duplicate:,} duplicate, {rows.outdated:,} outdated, {rows.not_placed:,} not placed;"
            f" {rows.late:,} were late), {len(made.gaps):,} gaps, {made.splits:,} splits\n"
        )
    sys.stdout.write(
        f"{done.files_read:,} files read, {done.files_unchanged:,} unchanged; {len(done.days):,} days made,"
        f" {done.days_unchanged:,} unchanged, {done.days_removed:,} removed\n"
        f"{done.rows_read:,} rows read = {done.rows_kept:,} kept + {done.rows_set_aside:,} set aside\n"
    )
    for reason, rows_aside in done.reasons[:10]:
        sys.stdout.write(f"  {rows_aside:,} set aside: {reason}\n")
    if done.rows_set_aside:
        sys.stdout.write(f"They lie in {args.out / SET_ASIDE}.\n")
    return 0
