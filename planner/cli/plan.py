"""`python -m planner plan`: runs a scenario and prints its plan, with the numbers that the pages show."""

import sys
import time
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.cli.output import SHOWN, opened, show_price, warn, warn_switched_off, write_file

if TYPE_CHECKING:
    from planner.explain.gate import Gate
    from planner.share.asked import Asked
    from planner.share.commands import CommandOptions

_SHORT = 12


def plan(
    *,
    snapshot: Annotated[str, Parameter(metavar="PATH_OR_SAMPLE")],
    scenario: Annotated[str, Parameter(metavar="FILE_OR_LINK", allow_leading_hyphen=True)],
    as_json: Annotated[bool, Parameter(name="--json", group=SHOWN)] = False,
    commands: Annotated[bool, Parameter(group=SHOWN)] = False,
    everything: bool = False,
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
        everything: For --commands and --json: also commands for the moves and splits that Pulsar makes by itself.
        follow: Print how much of the plan has been carried out, according to a later snapshot of the same cluster.
        broker: For --follow: the real id of a broker that the plan adds; may be repeated.
        report: Write a report for a review: HTML, PDF or Markdown, by file extension.
        csv: Write a CSV with one row for each event.
        batch: Bundles unloaded between two pauses.
        pause: Seconds between two batches.
    """
    from planner.cluster.digest import snapshot_digest
    from planner.explain.outcome import Outcome
    from planner.remedy.tried import diagnosed
    from planner.share.asked import asked_of
    from planner.share.commands import CommandOptions
    from planner.share.export import events_csv, json_text, plan_document
    from planner.share.follow import follow as following
    from planner.share.follow import real_names
    from planner.share.plan_text import following_text, plan_text
    from planner.share.report import markdown_report
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
    asked = content_of(linked, cluster)
    show_price(cluster, asked)
    trace = simulate(cluster, asked)
    outcome = Outcome(trace)
    findings = cache(partial(diagnosed, outcome))  # it tries remedies
    divided = cache(partial(asked_of, trace))  # another simulation, where something needs it
    if report is not None:
        text = markdown_report(trace, snapshot_name=name, findings=findings(), options=options, asked=divided())
        write_file(report, _as_its_name_says(report, text, f"Plan {trace.scenario.name} · {name}"))
    if csv is not None:
        write_file(csv, events_csv(trace))
    if as_json or commands or report is not None:
        warn_switched_off(cluster)
    if as_json:
        document = plan_document(
            trace, snapshot_name=name, findings=findings(), options=options, asked=divided(), everything=everything
        )
        sys.stdout.write(json_text(document))
    elif commands:
        _print_script(divided(), options, outcome.gate, everything=everything)
    elif follow:
        later = open_snapshot(follow)[1]
        sys.stdout.write(following_text(following(divided().followed, later, real_names(broker or ()))))
    else:
        sys.stdout.write(plan_text(trace, name, findings()))


def _print_script(asked: "Asked", options: "CommandOptions", gate: "Gate", *, everything: bool) -> None:
    """Print the script, and on standard error what speaks against it and what it leaves to Pulsar."""
    from planner.cluster.units import NS_PER_MS
    from planner.explain.doubt import doubt_about
    from planner.share.hand_over import commands_of, objection, plan_script
    from planner.share.plan_text import printed

    made_at_ms, trace = time.time_ns() // NS_PER_MS, asked.whole
    if doubt := doubt_about(trace.start, trace.scenario).sentence:
        warn(doubt)
    if gate.objections and (against := objection(commands_of(asked, options, everything=everything), gate)):
        warn(against)
    sys.stderr.write(printed([asked.sentence]))
    sys.stdout.write(plan_script(asked, options, made_at_ms=made_at_ms, everything=everything, gate=gate))


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
