"""`python -m planner plan`: runs a scenario and prints its plan, with the numbers that the pages show."""

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError
from planner.cluster.files import write_whole, writing
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.formats.reading import read_snapshot
from planner.share.commands import CommandOptions, command_script, final_moves, plan_commands
from planner.share.export import events_csv, plan_json
from planner.share.link import LinkedScenario, decode_link
from planner.share.report import markdown_report
from planner.share.scenario_file import MOST_BYTES, read_scenario_file
from planner.simulate.measures import MEASURES, summary
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Trace
from planner.workspace.database import open_workspace
from planner.workspace.samples import Sample, load_sample, sample_by_digest, samples

_LINK = re.compile(r"[0-9]{1,4}\.[A-Za-z0-9_-]{10,}")
_SHORT = 12
_LEAST_DIGITS = 6
_MOVES_SHOWN = 20


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "plan",
        help="run a scenario and print its plan",
        description=(
            "Run a scenario over a snapshot and print its plan: measures, moves, diagnosis. Nothing is carried out."
            " Exit status: 0 done, 2 something cannot be read or does not fit."
        ),
    )
    parser.add_argument(
        "--snapshot",
        required=True,
        metavar="PATH_OR_SAMPLE",
        help="a snapshot (folder, .zip, .json), a raw capture, or a sample by its file name, title or digest",
    )
    parser.add_argument(
        "--scenario",
        required=True,
        metavar="FILE_OR_LINK",
        help="a scenario file, a link as the pages give it, or - for standard input",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print everything as JSON")
    shown.add_argument("--commands", action="store_true", help="print what to do as a script of pulsar-admin commands")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a Markdown report for a review")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a CSV with one row for each event")
    parser.add_argument("--batch", type=int, default=10, metavar="N", help="bundles unloaded between two pauses (10)")
    parser.add_argument("--pause", type=int, default=60, metavar="S", help="seconds between two batches (60)")


def run(args: argparse.Namespace) -> int:
    """Run the scenario and print what was asked for.

    Raises:
        PlannerError: Something cannot be read or written, or does not fit together.
    """
    options = CommandOptions(batch_bundles=args.batch, pause_s=args.pause)
    linked = _scenario(args.scenario)
    name, snapshot = _snapshot(args.snapshot)
    digest = snapshot_digest(snapshot)
    if linked.snapshot_digest not in {"", digest}:
        sys.stderr.write(
            f"warning: the scenario was made over the snapshot {linked.snapshot_name or 'without a name'}"
            f" ({linked.snapshot_digest[:_SHORT]}); this is another one ({digest[:_SHORT]}).\n"
        )
    trace = simulate(snapshot, _content(linked))
    findings = diagnose(trace)
    if args.report is not None:
        _write(args.report, markdown_report(trace, snapshot_name=name, findings=findings, options=options))
    if args.csv is not None:
        _write(args.csv, events_csv(trace))
    if args.json:
        sys.stdout.write(plan_json(trace, snapshot_name=name, findings=findings, options=options))
    elif args.commands:
        title = f"Plan {trace.scenario.name or 'without a name'} for {name} ({digest[:_SHORT]})"
        sys.stdout.write(command_script(plan_commands(trace, options), title))
    else:
        sys.stdout.write("\n".join(_lines(trace, name, digest, findings)) + "\n")
    return 0


def _snapshot(text: str) -> tuple[str, Snapshot]:
    """Return name and content of a snapshot: what a path leads to, else a sample."""
    path = Path(text)
    if path.exists():
        return path.name, read_snapshot(path)
    found: Sample | None = None
    for sample in samples():
        if text.lower() in {sample.file.lower(), Path(sample.file).stem.lower(), sample.title.lower()}:
            found = sample
    if found is None and len(text) >= _LEAST_DIGITS:
        found = sample_by_digest(text)
    if found is None:
        known = ", ".join(Path(sample.file).stem for sample in samples())
        raise FormatError(
            "There is no such file, and no such sample.", where=text[:200], remedy=f"Give a path, or one of: {known}."
        )
    return found.title, load_sample(found)


def _scenario(text: str) -> LinkedScenario:
    """Read a scenario from standard input, a link, an address with a link in it, or a file."""
    if text == "-":
        return read_scenario_file(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input")
    if text.startswith(("http://", "https://")):
        links = [value for _, value in parse_qsl(urlsplit(text).query) if _LINK.fullmatch(value)]
        if not links:
            raise FormatError("This address holds no scenario.", where=text[:100], remedy="Copy the whole link.")
        return decode_link(links[0])
    if _LINK.fullmatch(text):
        return decode_link(text)
    try:
        with Path(text).open("rb") as source:
            return read_scenario_file(source.read(MOST_BYTES + 1), Path(text).name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name cannot be used"
        raise FormatError(
            f"Cannot read: {reason}.", where=text[:200], remedy="Give a scenario file or a link."
        ) from error


def _content(linked: LinkedScenario) -> Scenario:
    if linked.scenario is not None:
        return linked.scenario
    workspace = open_workspace()
    try:
        return workspace.scenarios.load(linked.scenario_digest)
    finally:
        workspace.close()


def _write(path: Path, text: str) -> None:
    with writing(path, FormatError, "Choose another place."):
        write_whole(path, text)


def _lines(trace: Trace, name: str, digest: str, findings: tuple[Finding, ...]) -> list[str]:
    scenario = trace.scenario
    size = f"{len(scenario.edits)} edits, {len(trace.cycles)} cycles, seed {scenario.seed}"
    lines = [
        f"Snapshot   {name} ({digest[:_SHORT]})",
        f"Scenario   {scenario.name or 'without a name'}: {size}",
        f"Plan       {trace.digest()[:_SHORT]}",
        "",
    ]
    if trace.cycles:
        numbers = summary(trace)
        width = max(len(measure.label) for measure in MEASURES)
        for measure in MEASURES:
            value = getattr(numbers, measure.name)
            shown = "-" if value is None else f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
            lines.append(f"{measure.label:<{width}}  {shown} {measure.unit}".rstrip())
        lines.append("")
    moves = final_moves(trace)
    lines.append(f"Moves: {len(moves):,} bundles are served by another broker at the end")
    lines += [f"  {move.bundle}: {move.source or 'nobody'} -> {move.destination}" for move in moves[:_MOVES_SHOWN]]
    if len(moves) > _MOVES_SHOWN:
        lines.append(f"  and {len(moves) - _MOVES_SHOWN:,} more; --json has all")
    lines += ["", f"Diagnosis: {'no known failure pattern' if not findings else ''}".rstrip()]
    lines += [f"  {finding.severity}: {finding.title}. {finding.evidence} {finding.remedy}" for finding in findings]
    if trace.notes:
        lines += ["", "Notes:", *(f"  {note}" for note in trace.notes)]
    return ["".join(sign if sign.isprintable() else "?" for sign in line) for line in lines]
