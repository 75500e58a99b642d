"""`python -m planner snapshot`: makes a snapshot of outputs of tools."""

import sys
from pathlib import Path

from planner.cli.output import write_snapshot


def snapshot(*files: Path, out: Path | None = None, cluster: str = "", release: str = "") -> int:
    """Make a snapshot of outputs of tools.

    Recognises load reports, topics, lists of bundles, settings, metrics and other outputs by their content. Lists what
    it found, what is missing, and the command that supplies it.

    Args:
        files: Outputs, zips of them, or folders; without one, standard input.
        out: A folder, or a file that ends in .zip or .json; without it nothing is written.
        cluster: Name of the cluster, where the files do not say it.
        release: Release of the brokers, such as 4.0.8, where the files do not say it.

    Returns:
        0, or 2 where the files are not enough for a snapshot.
    """
    from planner.cluster.errors import FormatError
    from planner.doors.lines import lines_of
    from planner.doors.read import STANDARD_INPUT, read_outputs

    reading = read_outputs(*(files or (STANDARD_INPUT,)), cluster=cluster, release=release)
    for line in lines_of(reading):
        sys.stderr.write(f"{line}\n")
    if reading.snapshot is None:
        raise FormatError(reading.not_enough, remedy="Add the output of the commands above.")
    if out is not None:
        write_snapshot(reading.snapshot, out)
        sys.stdout.write(f"{out}: {reading.text}\n")
    return 0
