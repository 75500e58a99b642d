"""The report for a review: whole, self-contained, and safe with hostile names."""

import base64
import io
import re
import struct
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from pypdf import PdfReader

from planner.cluster.errors import FormatError
from planner.cluster.relocation import Relocation
from planner.cluster.snapshot import Snapshot
from planner.explain.before_after import before_after
from planner.explain.finding import Finding
from planner.figures.report import html_report, pdf_report
from planner.share.asked import Asked
from planner.share.commands import final_moves
from planner.share.link import encode_link, scenario_digest
from planner.share.report import Chart, markdown_report
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.set_anti_affinity import SetAntiAffinity
from planner.simulate.judge import Result
from planner.simulate.losses import losses_now
from planner.simulate.measures import MEASURES
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.summary import summary
from planner.simulate.trace import Trace

EVIL = "<img src=x onerror=alert(1)> | `a` ](javascript:alert(1)) ![x](http://e) **b** \n# head\n```\nrm"


def png() -> bytes:
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(b"\0\xff\0\0")) + part(b"IEND", b"")


def made(snapshot: Snapshot, **changes: object) -> Trace:
    steps = (
        Step(RemoveBroker(broker=snapshot.brokers.name[0], at_min=1)),
        Step(MoveBundle(bundle=snapshot.bundle_names[0]), on=False),
    )
    scenario = Scenario(name="Remove one", steps=steps, settings={"minUnloadMessage": 9}, cycles=4)
    return simulate(snapshot, replace(scenario, **changes))  # type: ignore[arg-type]


def test_everything_is_there(small: Snapshot) -> None:
    trace = made(small, assumptions=Assumptions(idle_cpu_percent=5.0))
    finding = Finding(
        code="x", title="Too much", evidence="5 > 3.", remedy="Less.", severity="high", changes={"minUnloadMessage": 10}
    )
    link = f"https://planner.example/what-if?scenario={encode_link(trace.scenario, 'ab' * 32)}"
    text = markdown_report(trace, snapshot_name="Production", findings=[finding], link=link)
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading != "Assumptions and notes"] == [
        "The question",
        "The verdict",
        "Loss of a broker",
        "Risks",
        "Moves",
        "Commands",
        "All measures of the simulation",
    ]
    assert f"[Open the scenario](<{link}>)" in text
    assert scenario_digest(trace.scenario) in text
    assert trace.digest() in text
    assert "| `minUnloadMessage` | 1000 | 9 |" in text
    assert "| `idle_cpu_percent` | 2.0 | 5.0 |" in text
    assert f"1. Shut down {small.brokers.name[0]} at minute 1" in text
    assert "2. (switched off) Unload acme/" in text
    found = before_after(trace, Result.of(trace))
    for row in found.rows:
        assert f"| {row.measure} | {row.now} | {row.after} |" in text
    assert f"| Worst loss | `{losses_now(trace).simulated[0].broker}` | " in text
    assert "**Too much** (high)" in text
    assert "`minUnloadMessage=10`" in text
    for measure in MEASURES:
        assert f"| {measure.label} | " in text
    assert f"| Bundles shed | {summary(trace).shed} bundles |" in text
    moves = final_moves(trace)
    assert moves
    for move in moves:
        assert f"| `{move.bundle}` | `{move.source}` | `{move.destination}` |" in text
    assert "pulsar-admin namespaces unload" in text.split("```sh")[1]


def test_many_moves_are_cut(small: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.share.report._MOST_MOVES", 2)
    trace = made(small)
    assert f"And {len(final_moves(trace)) - 2} more" in markdown_report(trace)


def test_nothing_changed(small: Snapshot) -> None:
    trace = simulate(small, Scenario(cycles=1, settings={"loadBalancerSheddingEnabled": False}))
    text = markdown_report(replace(trace, end=trace.start, cycles=()))
    for part in (
        "What does the load balancer do with other settings?",
        "No cycle was simulated.",
        "No findings",
        "Every bundle ends with the owner",
    ):
        assert part in text
    assert "stopped before its last cycle" in markdown_report(replace(trace, complete=False))


def test_charts_are_inside(small: Snapshot) -> None:
    charts = [Chart("Scores", png(), "flat"), Chart("Lines", b'<?xml version="1.0"?>\n<svg xmlns="x"></svg>')]
    text = markdown_report(made(small), charts=charts)
    found = re.findall(r"^!\[(.*)\]\(data:(image/[a-z+]+);base64,([A-Za-z0-9+/=]+)\)$", text, re.MULTILINE)
    assert [(alt, kind) for alt, kind, _ in found] == [("flat", "image/png"), ("Lines", "image/svg+xml")]
    assert [base64.b64decode(data) for *_, data in found] == [chart.image for chart in charts]


@pytest.mark.parametrize("image", [b"", b"<html><svg>", b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"x" * 5_000_001])
def test_what_is_no_chart_is_refused(small: Snapshot, image: bytes) -> None:
    with pytest.raises(FormatError, match="Bad one"):
        markdown_report(made(small), charts=[Chart("Bad one", image)])


def test_hostile_names_stay_text(small: Snapshot) -> None:
    trace = made(small)
    event = replace(trace.events[0], why=EVIL)
    steps = (Step(KillBroker(broker=EVIL)), Step(SetAntiAffinity(namespace=EVIL, group=EVIL)))
    hostile = replace(
        trace,
        scenario=replace(trace.scenario, name=EVIL[:120], steps=steps),
        cycles=(replace(trace.cycles[0], events=(event, *trace.cycles[0].events)), *trace.cycles[1:]),
        notes=(EVIL,),
    )
    finding = Finding(code="x", title=EVIL, evidence=EVIL, remedy=EVIL, severity="low")
    charts = [Chart(EVIL, png(), EVIL)]
    asked = Asked(hostile, hostile, (Relocation(bundle=EVIL, destination=EVIL),), (event,))
    text = markdown_report(
        hostile, snapshot_name=EVIL, charts=charts, findings=[finding], link="javascript:alert(1)", asked=asked
    )
    prose, fence, script = text.partition("````sh\n")
    assert fence, "the fence is longer than any run of backticks inside"
    _, fence, measures = script.partition("\n````\n")
    assert fence
    assert "````" not in measures
    prose += measures
    assert not re.search(r"(?<!\\)<(?!https?://)", prose)
    assert "Open the scenario" not in prose
    assert not re.search(r"^# head", prose, re.MULTILINE)
    assert not re.search(r"^```$", prose, re.MULTILINE)
    for line in prose.splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert cells in {2, 3, 8}, line


class TestRendered:
    def test_html_stands_alone_and_shows_names_as_they_are(self, small: Snapshot) -> None:
        trace = made(small)
        markdown = markdown_report(
            replace(trace, scenario=replace(trace.scenario, name=EVIL[:60])),
            charts=[Chart("Scores", png())],
            snapshot_name=EVIL,
        )
        page = html_report(markdown, EVIL)
        seen = Seen()
        seen.feed(page)
        assert seen.tags <= {
            *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "table", "thead", "tbody", "tr"),
            *("th", "td", "code", "pre", "ol", "ul", "li", "em", "strong", "img", "br"),
        }
        assert all(source.startswith("data:image/png;base64,") for source in seen.sources)
        assert len(seen.sources) == 1
        assert EVIL.partition("\n")[0].strip() in " ".join(seen.text.split("\n"))

    def test_pdf_has_the_words_of_the_report(self, small: Snapshot) -> None:
        trace = made(small)
        finding = Finding(code="x", title="Zu viel \N{SNOWMAN}", evidence="5 > 3.", remedy="Less.", severity="high")
        markdown = markdown_report(
            trace, charts=[Chart("Scores", png())], findings=[finding], link="https://planner.example/what-if?x=1"
        )
        reader = PdfReader(io.BytesIO(pdf_report(markdown, EVIL)))
        text = " ".join("".join(page.extract_text() for page in reader.pages).split())
        assert reader.metadata is not None
        assert reader.metadata.title == EVIL
        for words in (
            "Plan: Remove one",
            "The verdict",
            "Zu viel \N{SNOWMAN} (high)",
            "minUnloadMessage",
            "Highest usage",
        ):
            assert words in text
        assert final_moves(trace)[0].destination in text.replace(" ", "")
        assert sum(len(page.images) for page in reader.pages) == 1

    def test_hostile_reports_become_files_too(self, small: Snapshot) -> None:
        trace = made(small)
        hostile = replace(
            trace, scenario=replace(trace.scenario, name=EVIL), notes=(EVIL, "\N{HIRAGANA LETTER A}" * 300)
        )
        markdown = markdown_report(hostile, snapshot_name=EVIL)
        assert PdfReader(io.BytesIO(pdf_report(markdown, ""))).pages


class Seen(HTMLParser):
    """Elements, pictures and words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.sources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.sources += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        self.text += data
