"""`python -m planner snapshot`: makes a snapshot of outputs of tools."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from planner.capture.prometheus_options import PrometheusOptions, PrometheusSecrets
from planner.cli.history import PROMETHEUS, Secrets, Source
from planner.cli.output import write_file, write_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.doors.reading import Reading


_EVERY_S = 1.0

_MORE: Final = "Add the output of the commands above."
_SETTINGS_ALONE: Final = (
    f"{_MORE[:-1]}, make a scenario with --scenario-out FILE --base SNAPSHOT, or check them with the command lint."
)


def snapshot(
    *files: Path,
    out: Path | None = None,
    scenario_out: Path | None = None,
    base: str = "",
    cluster: str = "",
    release: str = "",
    prometheus: Source = PrometheusOptions(),
    at: Annotated[str, Parameter(group=PROMETHEUS)] = "now",
    dry_run: Annotated[bool, Parameter(group=PROMETHEUS, negative="")] = False,
    secrets: Secrets = PrometheusSecrets(),
) -> int:
    """Make a snapshot of outputs of tools, or of a moment of a Prometheus.

    Recognises load reports, topics, lists of bundles, settings, metrics and other outputs by their content. Lists what
    it found, what is missing, and the command that supplies it.

    Args:
        files: Outputs, zips of them, or folders; without one, standard input.
        out: A folder, or a file that ends in .zip or .json; without it nothing is written.
        scenario_out: File for a scenario with the settings files: one as it is, of two what differs between them.
        base: Snapshot or sample that the scenario changes; by default the one that the files make.
        cluster: Name of the cluster, where the files do not say it.
        release: Release of the brokers, such as 4.0.8, where the files do not say it.
        prometheus: A Prometheus. Files are read with its answers.
        at: The moment to ask for, such as 2026-11-25T03:00:00Z or now-2h.
        dry_run: Only report what series there are, and how precise the snapshot will be.
        secrets: Where the secrets of the Prometheus are.

    Returns:
        0, or 2 where the files are not enough for a snapshot or scenario.
    """
    from planner.cluster.errors import FormatError
    from planner.doors.lines import lines_of
    from planner.doors.read import STANDARD_INPUT, read_outputs

    if prometheus.url:
        options = replace(prometheus, secrets=secrets)
        if dry_run:
            return _survey(options, at)
        reading = _of_prometheus(options, at, files, cluster, release)
    else:
        given = files or (STANDARD_INPUT,)
        names = prometheus.broker_names
        reading = read_outputs(*given, cluster=cluster, release=release, broker_names=names, progress=_printer())
    for line in lines_of(reading):
        sys.stderr.write(f"{line}\n")
    if scenario_out is not None:
        _write_scenario(reading, base, scenario_out)
    if reading.snapshot is None and (scenario_out is None or out is not None):
        raise FormatError(reading.not_enough, remedy=_SETTINGS_ALONE if reading.settings_files else _MORE)
    if out is not None and reading.snapshot is not None:
        write_snapshot(reading.snapshot, out)
        sys.stdout.write(f"{out}: {reading.text}\n")
    return 0


def _survey(options: PrometheusOptions, at: str) -> int:
    from planner.capture.prometheus import moment_of
    from planner.capture.prometheus_survey import survey

    found = survey(options, moment_of(at, "--at", int(time.time() * 1_000)))
    sys.stdout.writelines(f"{line}\n" for line in found.lines())
    return 0


def _of_prometheus(
    options: PrometheusOptions, at: str, files: tuple[Path, ...], cluster: str, release: str
) -> "Reading":
    """Read what a Prometheus answers about a moment, with files."""
    from planner.capture.prometheus import moment_of, snapshot_outputs

    at_ms = moment_of(at, "--at", int(time.time() * 1_000))
    return snapshot_outputs(options, at_ms, files, cluster=cluster, release=release, progress=_printer())


def _printer() -> "Callable[[str], None]":
    """Return a function that writes which file is read to standard error, once a second at most."""
    reported_s = time.monotonic()

    def report(name: str) -> None:
        nonlocal reported_s
        if time.monotonic() - reported_s >= _EVERY_S:
            reported_s = time.monotonic()
            sys.stderr.write(f"reading {name}\n")

    return report


def _write_scenario(reading: "Reading", base: str, path: Path) -> None:
    """Write the settings files as a scenario over a snapshot.

    Raises:
        FormatError: There is no settings file, or no snapshot.
    """
    from planner.cluster.digest import snapshot_digest
    from planner.cluster.errors import FormatError
    from planner.doors.settings import scenario_of
    from planner.share.scenario_file import scenario_file
    from planner.workspace.opening import open_snapshot

    if not reading.settings_files:
        raise FormatError("The files hold no settings file.", remedy="Add broker.conf, or leave out --scenario-out.")
    name, over = open_snapshot(base) if base else ("", reading.snapshot)
    if over is None:
        raise FormatError("A scenario needs a snapshot.", remedy="Name one with --base, or add outputs of the cluster.")
    scenario, wrong = scenario_of(reading.settings_files, over)
    for text in wrong:
        sys.stderr.write(f"not used: {text}\n")
    write_file(path, scenario_file(scenario, snapshot_digest(over), name or over.info.cluster))
    sys.stdout.write(f"{path}: {len(scenario.settings):,} settings\n")
