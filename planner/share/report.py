"""A plan as one Markdown file for a review: the question, the verdict, before and after, losses, risks, what to do.

The file stands alone: charts are in it as `data:` addresses. Names from clusters and links are hostile; they are
escaped, and HTML in them stays text. `planner.figures.report` makes HTML and PDF of it.
"""

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError
from planner.cluster.releases import release
from planner.cluster.setting import conf_value
from planner.cluster.text import count, moment, quantity, times
from planner.cluster.units import MIB
from planner.explain.captured_settings import settings_warning
from planner.explain.doubt import doubt_about
from planner.explain.finding import Finding
from planner.explain.losses import losses_text
from planner.explain.outcome import Outcome
from planner.share.asked import Asked, asked_of
from planner.share.commands import (
    CommandOptions,
    changed_settings,
    final_moves,
)
from planner.share.hand_over import commands_of, preview_lines
from planner.share.link import scenario_digest
from planner.share.script import SECTIONS, command_list
from planner.share.upgrade import ask_upgrade, setting_rows
from planner.simulate.assumptions import Assumptions
from planner.simulate.losses import Loss, Losses, losses_after, losses_now
from planner.simulate.measures import MEASURES, Measure
from planner.simulate.scenario import Step, scenario_to_json
from planner.simulate.summary import summary
from planner.simulate.trace import Trace

_GATE = {
    "better": "The plan is better than",
    "same": "The plan makes no difference that counts, compared with",
    "trade-off": "The plan is a trade-off, compared with",
}
_MOST_MOVES = 50
_MOST_LINES = 60
_MAX_IMAGE_BYTES = 5_000_000
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#!~&$])")
_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\-._~:/?#\[\]@!$&'*+,;=%]+")
_SVG = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]")


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture for the report.

    Attributes:
        title: What it shows; its heading.
        image: PNG, JPEG or SVG.
        text: What there is to see, for those who do not see it.
    """

    title: str
    image: bytes
    text: str = ""


def markdown_report(
    trace: Trace,
    *,
    snapshot_name: str = "",
    charts: Sequence[Chart] = (),
    findings: Sequence[Finding] = (),
    link: str = "",
    options: CommandOptions | None = None,
    asked: Asked | None = None,
) -> str:
    """Return a plan as Markdown (GitHub's, with tables).

    Args:
        trace: What a simulation found.
        snapshot_name: What the snapshot is called.
        charts: Pictures to show, in their order.
        findings: What the diagnosis says of it.
        link: Address that opens the scenario; left out when it is no `http` or `https` address.
        options: How the commands are written.
        asked: The simulation divided, where the caller has it.

    Raises:
        FormatError: A chart is no picture, or too large.
    """
    parts = [
        *_head(trace, snapshot_name, link),
        *_changes(trace),
        *_upgrade(trace),
        *_verdict(trace),
        *_charts(charts),
        *_losses(trace),
        *_diagnosis(findings),
        *_moves(trace),
        *_notes(trace),
        *_commands(asked or asked_of(trace), options),
        *_measures(trace),
    ]
    return "\n\n".join(parts) + "\n"


def _text(value: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    clean = "".join(sign if sign.isprintable() else " " for sign in value)
    return _SPECIAL.sub(r"\\\1", clean)


def _name(value: str) -> str:
    """Return a name in the type of code where that is possible."""
    plain = value and value.isprintable() and not set(value) & {"`", "|", "\\"} and value == value.strip()
    return f"`{value}`" if plain else _text(value)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _number(value: float | None, unit: str = "") -> str:
    return quantity(value, unit, ",.0f" if value is not None and abs(value) >= 1e6 else ",.4g")  # noqa: PLR2004


def _head(trace: Trace, snapshot_name: str, link: str) -> Iterator[str]:
    info, scenario = trace.start.info, trace.scenario
    yield f"# Plan: {_text(scenario.name)}" if scenario.name else "# Plan"
    rows = [
        ["Cluster", f"{_name(info.cluster)}, {trace.scenario.load_manager_over(trace.start).value} load manager"],
        ["Snapshot", f"{_text(snapshot_name)} {_name(snapshot_digest(trace.start))}".strip()],
        ["Captured", moment(info.captured_at_ms)],
        ["Scenario", _name(scenario_digest(scenario))],
        ["Plan", _name(trace.digest())],
        ["Pulsar", _text(scenario.pulsar_version)],
        ["Cycles", f"{len(trace.cycles):,} of {scenario.cycles:,}, seed {scenario.seed}"],
    ]
    yield _table(["", ""], rows)
    if warning := settings_warning(info):
        yield f"**{_text(warning)}**"
    if _ADDRESS.fullmatch(link):
        yield f"[Open the scenario](<{link}>)"
    if not trace.complete:
        yield "**The simulation was stopped before its last cycle, so this report covers only the beginning.**"
    yield "This plan was simulated. Nothing has been carried out."


def _changes(trace: Trace) -> Iterator[str]:
    yield "## The question"
    changed = changed_settings(trace)
    if not trace.scenario.steps:
        yield "What does the load balancer do with other settings?" if changed else "What does the load balancer do?"
    else:
        yield "\n".join(f"{at}. {_step(step)}" for at, step in enumerate(trace.scenario.steps, start=1))
    if changed:
        rows = [
            [_name(name), _text(conf_value(before)) or "not set", _text(conf_value(after)) or "not set"]
            for name, (before, after) in changed.items()
        ]
        yield _table(["setting", "before", "after"], rows)
    assumed = scenario_to_json(trace.scenario).get("assumptions", {})
    if assumed:
        rows = [
            [_name(name), _text(str(getattr(Assumptions(), name))), _text(str(value))]
            for name, value in sorted(assumed.items())
        ]
        yield "### Assumptions"
        yield _table(["assumption", "default", "here"], rows)


def _upgrade(trace: Trace) -> Iterator[str]:
    """Yield what another release does otherwise, where the scenario is decided by one."""
    info, target = trace.start.info, trace.settings.release.name
    if not trace.cycles or target == release(info.pulsar_version).name:
        return
    answer = ask_upgrade(trace.start, target, replace(trace.scenario, cycles=len(trace.cycles)), hours=0)
    yield f"## The upgrade from {answer.upgrade.source.name} to {target}"
    yield _text(" ".join(filter(None, (answer.found.answer, answer.found.sentence, answer.found.kept))))
    rows = setting_rows(answer.upgrade)
    if rows:
        yield _table([*rows[0]], [[_name(row.pop("setting")), *map(_text, row.values())] for row in map(dict, rows)])
    if answer.upgrade.rules:
        yield "\n".join(f"- {_text(rule)}" for rule in answer.upgrade.rules)
    yield "\n".join(
        f"{number}. {_text(f'{step.when.capitalize()}: {step.what}')} {', '.join(map(_name, step.lines))}".rstrip()
        for number, step in enumerate(answer.steps, start=1)
    )


def _step(step: Step) -> str:
    words = step.edit.phrase()
    return f"{'' if step.on else '(switched off) '}{_text(words[:1].upper() + words[1:])}"


def _verdict(trace: Trace) -> Iterator[str]:
    """Yield what the plan changes, and whether it is worth it."""
    yield "## The verdict"
    if not trace.cycles:
        yield "No cycle was simulated."
        return
    outcome = Outcome(trace)
    found, gate = outcome.before_after, outcome.gate
    doubt = doubt_about(trace.start, trace.scenario)
    if doubt.sentence:
        yield f"**{_text(doubt.sentence)}**"
    if gate.objections:
        yield f"**{gate.headline}** {_text(' '.join(gate.objections))}"
    elif not doubt.everywhere:
        one, two = found.before, found.after
        yield (
            f"**{_GATE[gate.verdict.word]} {gate.compared_with}**: the highest usage goes from"
            f" {one.peak_usage * 100:.1f} to {two.peak_usage * 100:.1f} %, and the deviation of usage from"
            f" {one.std * 100:.1f} to {two.std * 100:.1f} points. It disconnects"
            f" {found.topics:,} of {count(found.all_topics, 'topic')}."
        )
    yield _table(["", "now", "after the plan"], [[_text(row.measure), row.now, row.after] for row in found.rows])


def _losses(trace: Trace) -> Iterator[str]:
    """Yield what the loss of any one broker does, now and after the plan."""
    yield "## Loss of a broker"
    both = [losses_now(trace), losses_after(trace)]
    if not all(found.simulated for found in both):
        yield "Too few brokers: no broker would remain to take over."
        return

    def cells(name: str, cell: Callable[[Losses, Loss], str]) -> list[str]:
        return [name, *(cell(found, found.simulated[0]) for found in both)]

    rows = [
        cells("Worst loss", lambda _, worst: _name(worst.broker)),
        cells("Highest usage right after the loss", lambda _, worst: f"{worst.right_after_percent:.1f} %"),
        cells("Highest usage after the loss", lambda _, worst: f"{worst.highest_percent:.1f} %"),
        cells("Broker with that usage", lambda _, worst: _name(worst.highest_on)),
        cells("Most brokers above the limit", lambda _, worst: f"{worst.over_threshold:,}"),
        cells("Bundles that no broker could serve", lambda _, worst: f"{worst.unserved:,}"),
        cells("Losses simulated", lambda found, _: f"{len(found.simulated):,} of {found.number:,}"),
        cells("Headroom without a loss", lambda found, _: times(found.review.before.growth.factor)),
    ]
    yield _table(["", "now", "after the plan"], rows)
    yield _text(f"Now: {losses_text(both[0])} After the plan: {losses_text(both[1])}")


def _measures(trace: Trace) -> Iterator[str]:
    if not trace.cycles:
        return
    yield "## All measures of the simulation"
    numbers = summary(trace)

    def row(measure: Measure) -> list[str]:
        return [_text(measure.label), _number(getattr(numbers, measure.name), measure.unit), _text(measure.meaning)]

    yield _table(["measure", "value", "meaning"], [row(measure) for measure in MEASURES])
    kinds = Counter(event.kind for event in trace.events)
    if kinds:
        yield (
            "Events: "
            + ", ".join(f"{number:,} {_text(kind.replace('_', ' '))}" for kind, number in kinds.items())
            + "."
        )


def _charts(charts: Sequence[Chart]) -> Iterator[str]:
    if charts:
        yield "## Charts"
    for chart in charts:
        kind = next((kind for magic, kind in _MAGIC if chart.image.startswith(magic)), None)
        if kind is None and _SVG.match(chart.image):
            kind = "image/svg+xml"
        if kind is None or len(chart.image) > _MAX_IMAGE_BYTES:
            raise FormatError(
                "The chart cannot be included in the report.",
                where=chart.title,
                remedy=f"Use a PNG, JPEG or SVG of at most {_MAX_IMAGE_BYTES:,} bytes.",
            )
        yield f"### {_text(chart.title)}"
        if chart.text:
            yield _text(chart.text)
        yield f"![{_text(chart.text or chart.title)}](data:{kind};base64,{base64.b64encode(chart.image).decode()})"


def _diagnosis(findings: Sequence[Finding]) -> Iterator[str]:
    yield "## Risks"
    if not findings:
        yield "No findings."
    for finding in findings:
        lines = [f"**{_text(finding.title)}** ({finding.severity})", _text(finding.evidence)]
        lines.append(f"*{finding.remedy_label}:* {_text(finding.remedy)}")
        if finding.tried:
            lines.append(_text(finding.tried))
        if finding.changes:
            tried = ", ".join(_name(f"{name}={conf_value(value)}") for name, value in finding.changes.items())
            lines.append(f"*Settings to try:* {tried}")
        yield "\n".join(f"{'- ' if at == 0 else '  '}{line}  " for at, line in enumerate(lines))


def _moves(trace: Trace) -> Iterator[str]:
    moves = final_moves(trace)
    yield "## Moves"
    if not moves:
        yield "Every bundle ends with the owner that it started with."
        return
    clients = sum(move.producers + move.consumers for move in moves)
    topics = count(sum(move.topics for move in moves), "topic")
    what = f"{count(len(moves), 'bundle')} with {topics} and {count(clients, 'client')}"
    yield f"{what} {'has' if len(moves) == 1 else 'have'} a different owner at the end."
    rows = [
        [
            _name(move.bundle),
            _name(move.source) if move.source else "unowned",
            _name(move.destination),
            _number(move.msg_rate_per_s),
            _number(move.throughput_bytes_per_s / MIB),
            f"{move.topics:,}",
            f"{move.producers + move.consumers:,}",
            _text(move.why),
        ]
        for move in moves[:_MOST_MOVES]
    ]
    yield _table(["bundle", "from", "to", "msg/s", "MiB/s", "topics", "clients", "why"], rows)
    if len(moves) > _MOST_MOVES:
        yield f"And {len(moves) - _MOST_MOVES:,} more; the commands below and the JSON export list all of them."


def _notes(trace: Trace) -> Iterator[str]:
    if trace.notes:
        yield "## Assumptions and notes"
        yield "\n".join(f"- {_text(note)}" for note in trace.notes)


def _cut(lines: str) -> str:
    """Return the first of many lines."""
    all_lines = lines.split("\n")
    more = len(all_lines) - _MOST_LINES
    return lines if more <= 0 else "\n".join([*all_lines[:_MOST_LINES], f"# And {more:,} more lines."])


def _commands(asked: Asked, options: CommandOptions | None) -> Iterator[str]:
    commands = commands_of(asked, options)
    yield "## Commands"
    yield _text(asked.sentence)
    if preview := preview_lines(asked):
        yield "Preview of what Pulsar does by itself, without a command:"
        yield "\n".join(f"- {_text(line)}" for line in preview)
    if not any(command.words or command.note for command in commands):
        return
    yield (
        "For reading only: the script on the page Moves, which `plan --commands` also prints, asks, checks "
        "and restores settings."
    )
    listed = {title: _cut(command_list(commands, section)) for section, title in SECTIONS.items()}
    script = "\n\n".join(f"# === {title}\n{lines}" for title, lines in listed.items() if lines)
    longest = max((len(run) for run in re.findall(r"`+", script)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}sh\n{script}\n{fence}"
