"""`python -m planner plan`: runs a scenario and prints its plan, with the numbers that the pages show."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from planner.cli.output import SHOWN, opened, show_price, warn_switched_off, write_file

_SHORT = 12


def plan(
    *,
    snapshot: Annotated[str, Parameter(metavar="PATH_OR_SAMPLE")],
    scenario: Annotated[str, Parameter(metavar="FILE_OR_LINK", allow_leading_hyphen=True)],
    as_json: Annotated[bool, Parameter(name="--json", group=SHOWN)] = False,
    commands: Annotated[bool, Parameter(group=SHOWN)] = False,
    follow: Annotated[str, Parameter(group=SHOWN, metavar="LATER")] = "",
    broker: Annotated[list[str] | None, Parameter(metavar="NAME=ID", negative="")] = None,
    report: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    csv: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    batch: Annotated[int, Parameter(metavar="N")] = 10,
    pause: Annotated[int, Parameter(metavar="S")] = 60,
) -> None:
    """Run a scenario and print its plan.

    Runs a scenario over a snapshot and prints its plan: measures, moves, diagnosis. Nothing is carried out. Exit
    status: 0 done, 2 an input cannot be read or does not match.

    Args:
        snapshot: A snapshot (folder, .zip, .json), a raw capture, or a sample by its file name, title or digest.
        scenario: A scenario file, a link from a page, or - for standard input.
        as_json: Print everything as JSON.
        commands: Print the plan as a script of pulsar-admin commands.
        follow: Print how much of the plan has been carried out, according to a later snapshot of the same cluster.
        broker: For --follow: the real id of a broker that the plan adds; may be repeated.
        report: Write a report for a review: HTML, PDF or Markdown, by file extension.
        csv: Write a CSV with one row for each event.
        batch: Bundles unloaded between two pauses.
        pause: Seconds between two batches.
    """
    from planner.cluster.digest import snapshot_digest
    from planner.explain.diagnosis import diagnose
    from planner.explain.outcome import Outcome
    from planner.share.commands import CommandOptions, plan_commands
    from planner.share.export import events_csv, json_text, plan_document
    from planner.share.follow import follow as following
    from planner.share.follow import real_names
    from planner.share.plan_text import following_text, plan_text
    from planner.share.report import markdown_report
    from planner.share.script import command_script
    from planner.simulate.run import simulate
    from planner.workspace.opening import content_of, open_scenario, open_snapshot

    options = CommandOptions(batch_bundles=batch, pause_s=pause)
    linked = open_scenario(scenario)
    name, cluster = opened(snapshot)
    digest = snapshot_digest(cluster)
    if linked.snapshot_digest not in {"", digest}:
        sys.stderr.write(
            f"warning: the scenario was made for the snapshot {linked.snapshot_name or 'without a name'} "
            f"({linked.snapshot_digest[:_SHORT]}); this is a different one ({digest[:_SHORT]}).\n"
        )
    asked = content_of(linked)
    show_price(cluster, asked)
    trace = simulate(cluster, asked)
    findings = diagnose(trace)
    if report is not None:
        text = markdown_report(trace, snapshot_name=name, findings=findings, options=options)
        write_file(report, _as_its_name_says(report, text, f"Plan {trace.scenario.name} · {name}"))
    if csv is not None:
        write_file(csv, events_csv(trace))
    if as_json or commands or report is not None:
        warn_switched_off(cluster)
    if as_json:
        document = plan_document(trace, snapshot_name=name, findings=findings, options=options)
        sys.stdout.write(json_text(document))
    elif commands:
        title = f"Plan {trace.scenario.name or 'without a name'} for {name} ({digest[:_SHORT]})"
        for sentence in Outcome(trace).gate.objections:
            sys.stderr.write(f"warning: this plan is worse. {sentence}\n")
        commands_ = plan_commands(trace, options)
        sys.stdout.write(command_script(commands_, title, options.program, cluster.info.cluster))
    elif follow:
        sys.stdout.write(following_text(following(trace, open_snapshot(follow)[1], real_names(broker or ()))))
    else:
        sys.stdout.write(plan_text(trace, name, findings))


def _as_its_name_says(path: Path, markdown: str, title: str) -> str | bytes:
    from planner.figures.report import html_report, pdf_report

    ending = path.suffix.lower()
    return (
        pdf_report(markdown, title)
        if ending == ".pdf"
        else html_report(markdown, title)
        if ending in {".html", ".htm"}
        else markdown
    )
