"""`python -m planner history`: generates histories, and turns raw recordings and a Prometheus into them."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, CycloptsError, Group, Parameter

from planner.capture.prometheus_options import PrometheusOptions, PrometheusSecrets
from planner.cli.output import say_where
from planner.cluster.errors import SettingError
from planner.history.spec import Form, HistorySpec, Options
from planner.simulate.cluster_spec import ClusterSpec

_CLUSTER = "brokers|namespaces|bundles|topics|load_manager|msg_rate_per_s|ownership_skew|cluster"
_LONGEST_S = 86_400
_NAMES = {"url": "prometheus", "request_s": "request-timeout"}
PROMETHEUS: Final = Group("Prometheus", sort_key=1, help="Also Thanos, Mimir and VictoriaMetrics.")
SECRETS: Final = Group("Secrets", sort_key=2, help="In files or in the environment, never on the command line.")
Source = Annotated[
    PrometheusOptions,
    Parameter(
        name="*",
        parse="^(?!(secrets|attempts|back_off_s|answer_bytes)$)",
        name_transform=lambda name: _NAMES.get(name, name.replace("_", "-")),
        group=PROMETHEUS,
        negative="",
        negative_iterable=(),
        consume_multiple=True,
    ),
]
"""Options of a Prometheus: one for each field of `PrometheusOptions` that a person may choose."""
Secrets = Annotated[PrometheusSecrets, Parameter(name="*", group=SECRETS)]
"""Where its secrets are."""
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
    inputs: Annotated[list[Path] | None, Parameter(name="INPUT")] = None,
    /,
    *,
    out: Path,
    cluster: str = _DEFAULT.cluster,
    interval_s: int = _DEFAULT.interval_ms // 1_000,
    report_valid_s: int = _DEFAULT.report_ms // 1_000,
    sample_valid_s: int = _DEFAULT.sample_ms // 1_000,
    prometheus: Source = PrometheusOptions(),
    start: Annotated[str, Parameter(name="--from", group=PROMETHEUS)] = "",
    end: Annotated[str, Parameter(name="--to", group=PROMETHEUS)] = "now",
    step_s: Annotated[int, Parameter(group=PROMETHEUS)] = 60,
    dry_run: Annotated[bool, Parameter(group=PROMETHEUS, negative="")] = False,
    secrets: Secrets = PrometheusSecrets(),
) -> int:
    """Turn recordings, or the series of a Prometheus, into a history.

    Uses Spark to read snapshots, raw captures, JSON Lines of load reports and broker-stats topics, and Prometheus range
    exports. Unchanged files and days are kept. Rows that cannot be read are set aside with file, line and reason.

    Args:
        inputs: Files, and folders to search; one or more, unless there is a Prometheus.
        out: Folder of the history.
        prometheus: A Prometheus. Fetched series are kept in the folder fetched/ of the history, so that a run that was
            interrupted continues.
        start: First moment to fetch, such as 2026-11-25T03:00:00Z or now-2h.
        end: Last moment to fetch.
        step_s: Seconds between two samples.
        dry_run: Only report what series there are, and how precise the history will be.
        secrets: Where the secrets of the Prometheus are.
        cluster: Name of the cluster for rows without one.
        interval_s: Seconds between snapshots made from reports.
        report_valid_s: Seconds for which a report is valid.
        sample_valid_s: Seconds for which a sample is valid.
    """
    for name, value in (("interval", interval_s), ("report-valid", report_valid_s), ("sample-valid", sample_valid_s)):
        if not 1 <= value <= _LONGEST_S:
            raise SettingError(f"{value} is out of range.", where=f"--{name}-s", remedy=f"Use 1 to {_LONGEST_S}.")

    given = list(inputs or ())
    if prometheus.url:
        fetched = _fetch(replace(prometheus, secrets=secrets), (start, end, step_s), out, dry_run=dry_run)
        if fetched is None:
            return 0
        given.append(fetched)
    elif not given or dry_run or start:
        raise CycloptsError(msg="There is nothing to ingest. Name files, or use --prometheus.")

    from planner.history.ingest import SET_ASIDE
    from planner.history.ingest import ingest as make

    options = Options(interval_s * 1_000, report_valid_s * 1_000, sample_valid_s * 1_000, cluster)
    done = make(given, out, options, progress=_report)
    sys.stdout.writelines(f"{line}\n" for line in done.lines)
    if done.rows_set_aside:
        sys.stdout.write(f"Rows set aside are in {out / SET_ASIDE}.\n")
    say_where(out)
    return 1 if done.damaged else 0


def _fetch(options: PrometheusOptions, times: tuple[str, str, int], out: Path, *, dry_run: bool) -> Path | None:
    """Fetch what a history is to be made of; return where it is, None for a dry run."""
    from planner.capture.prometheus import Wanted, fetch
    from planner.capture.prometheus_survey import survey

    start, end, step_s = times
    if not start:
        raise SettingError(
            "The time to fetch is not given.", where="--from", remedy="Write --from now-2h, for example."
        )
    wanted = Wanted.of(start, end, step_s, int(time.time() * 1_000))
    if dry_run:
        found = survey(options, wanted.end_ms - wanted.step_ms)
        sys.stdout.writelines(f"{line}\n" for line in found.lines(wanted))
        return None
    done = fetch(options, wanted, out, _report)
    _report(f"fetched {done.fetched:,} new of {done.files:,} files, {done.received_bytes / 1e6:,.1f} MB: {done.folder}")
    for note in done.notes:
        _report(f"note: {note}")
    return done.folder


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
