"""`python -m planner history`: generates histories, and turns raw recordings into them."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, CycloptsError, Parameter

from planner.cli.output import say_where
from planner.cluster.errors import SettingError
from planner.history.spec import Form, HistorySpec, Options
from planner.simulate.cluster_spec import ClusterSpec

_CLUSTER = "brokers|namespaces|bundles|topics|load_manager|msg_rate_per_s|ownership_skew|cluster"
_LONGEST_S = 86_400
_DEFAULT: Final = Options()

history = App(name="history", help="Generate a history, or ingest recordings.")


@history.default
def _nothing() -> None:
    raise CycloptsError(msg="Use one of the commands generate and ingest.")


@history.command
def generate(
    *,
    out: Path,
    seed: int = 1,
    form: Form = "history",
    workers: int = 0,
    spec: Annotated[HistorySpec, Parameter(name="*", parse="^(?!cluster$)")] = HistorySpec(),
    cluster: Annotated[
        ClusterSpec,
        Parameter(
            name="*",
            parse=f"^({_CLUSTER})$",
            name_transform=lambda name: "topic-count" if name == "topics" else name.lower().replace("_", "-"),
        ),
    ] = ClusterSpec(),
) -> None:
    """Write a generated history.

    The same arguments and seed give the same history.

    Args:
        out: Folder of the history; days in it are replaced.
        seed: Seed of the random numbers.
        form: Write a history, or one recorded file per day.
        workers: Number of processes; 0 for one per core.
        spec: Properties of the history.
        cluster: Properties of the cluster.
    """
    from planner.history.generate import snapshots_of_day, write_history
    from planner.history.raw import write_raw

    wanted = replace(spec, cluster=cluster)
    if workers < 0:
        raise SettingError(f"{workers} is not a valid number of processes.", where="workers", remedy="Use 0 or more.")
    if form != "history":
        for day in range(wanted.days):
            path = write_raw(out, snapshots_of_day(wanted, seed, day), form)
            sys.stdout.write(f"{path}: {path.stat().st_size / 1e6:,.1f} MB\n")
        return
    for made in write_history(out, wanted, seed, workers or None):
        rows = made.rows_of("bundles")
        sys.stdout.write(f"{made.cluster} {made.day}: {made.moments:,} snapshots, {rows:,} rows of bundles\n")
        sys.stdout.flush()
    say_where(out)


@history.command
def ingest(
    inputs: Annotated[list[Path], Parameter(name="INPUT")],
    /,
    *,
    out: Path,
    cluster: str = _DEFAULT.cluster,
    interval_s: int = _DEFAULT.interval_ms // 1_000,
    report_valid_s: int = _DEFAULT.report_ms // 1_000,
    sample_valid_s: int = _DEFAULT.sample_ms // 1_000,
) -> int:
    """Turn recordings into a history.

    Uses Spark to read snapshots, raw captures, JSON Lines of load reports and broker-stats topics, and Prometheus range
    exports. Unchanged files and days are kept. Rows that cannot be read are set aside with file, line and reason.

    Args:
        inputs: Files, and folders to search; one or more.
        out: Folder of the history.
        cluster: Name of the cluster for rows without one.
        interval_s: Seconds between snapshots made from reports.
        report_valid_s: Seconds for which a report is valid.
        sample_valid_s: Seconds for which a sample is valid.
    """
    for name, value in (("interval", interval_s), ("report-valid", report_valid_s), ("sample-valid", sample_valid_s)):
        if not 1 <= value <= _LONGEST_S:
            raise SettingError(f"{value} is out of range.", where=f"--{name}-s", remedy=f"Use 1 to {_LONGEST_S}.")

    from planner.history.ingest import SET_ASIDE
    from planner.history.ingest import ingest as make

    options = Options(interval_s * 1_000, report_valid_s * 1_000, sample_valid_s * 1_000, cluster)
    done = make(inputs, out, options, progress=_report)
    sys.stdout.writelines(f"{line}\n" for line in done.lines)
    if done.rows_set_aside:
        sys.stdout.write(f"Rows set aside are in {out / SET_ASIDE}.\n")
    say_where(out)
    return 1 if done.damaged else 0


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
