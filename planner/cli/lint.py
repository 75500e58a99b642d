"""`python -m planner lint`: settings that fight each other or the machines, and names that brokers ignore."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from planner.cli.output import SHOWN, opened

if TYPE_CHECKING:
    from planner.share.lint import LintFinding


def lint(
    *targets: Annotated[str, Parameter(metavar="SNAPSHOT_OR_CONF")],
    snapshot: Annotated[str, Parameter(metavar="PATH_OR_SAMPLE")] = "",
    release: str = "",
    severity: Literal["high", "medium", "low"] = "low",
    as_json: Annotated[bool, Parameter(name="--json", group=SHOWN)] = False,
    sarif: Annotated[bool, Parameter(group=SHOWN)] = False,
) -> int:
    """Check the settings of a cluster or a broker.conf.

    Finds settings that fight each other or the machines, values that a setting cannot have, and names that brokers
    ignore: misspelt ones and those of another release. Of a snapshot, each remedy is simulated on it. Exit status: 0 no
    findings, 1 findings, 2 an input cannot be read.

    Args:
        targets: Snapshots (a folder, .zip, .json, or a sample by its file name, title or digest), broker.conf files, or
            outputs of brokers get-runtime-config.
        snapshot: Cluster on which remedies for a broker.conf are tried.
        release: Release whose brokers read a broker.conf, such as 4.0.8; by default that of the snapshot, that
            of the images in the file, or 4.2.4.
        severity: The least severity that counts.
        as_json: Print the findings as JSON.
        sarif: Print the findings as SARIF 2.1.0.
    """
    from planner.cluster.errors import FormatError
    from planner.cluster.releases import release as named
    from planner.doors.lint import has_settings_alone, lint_file, lint_snapshot, release_in_file
    from planner.share.export import json_text
    from planner.share.lint import lint_document, lint_sarif, lint_text, worst_first

    if not targets:
        raise FormatError("Nothing to check.", remedy="Name a snapshot or a broker.conf.")
    if release and not release[0].isdigit():
        raise FormatError(f"There is no release {release[:50]!r}.", remedy="Use a release such as 4.0.8.")
    cluster = opened(snapshot)[1] if snapshot else None
    told = release or (cluster.info.pulsar_version if cluster else "")
    if release:
        _note_rules(release)
    found: list[LintFinding] = []
    for target in targets:
        path = Path(target)
        if path.is_file() and (path.suffix not in (".zip", ".json") or has_settings_alone(path)):
            of_images, note = ("", "") if told else release_in_file(path)
            if note:
                sys.stderr.write(f"note: {note}\n")
            if of_images:
                _note_rules(of_images)
            found += lint_file(path, named(told) if told else None, cluster, snapshot)
        else:
            found += lint_snapshot(opened(target)[1], target)
    shown = worst_first(found, severity)
    if as_json or sarif:
        sys.stdout.write(json_text(lint_sarif(shown) if sarif else lint_document(shown)))
    else:
        sys.stdout.write(lint_text(shown))
    return int(bool(shown))


def _note_rules(release: str) -> None:
    from planner.cluster.release_notes import stands_in

    if other := stands_in(release):
        sys.stderr.write(f"note: For Pulsar {release[:50]}, the rules and defaults are those of {other}.\n")
