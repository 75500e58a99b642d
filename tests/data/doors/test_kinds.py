"""Each kind of output is recognised by its content, and read into pieces, in every form that tools print."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.doors import pieces as kinds
from planner.doors import recognise
from planner.doors.chunks import Chunk, chunks_of
from planner.doors.kind import Kind
from planner.doors.pieces import NotUsed, Piece
from planner.doors.read import Given, read_given
from planner.doors.recognise import pieces_of
from planner.doors.registry import KINDS
from planner.doors.unpack import unpacked
from tests.data.doors.test_falsified import CASES

INPUTS = Path(__file__).parent / "inputs"
TYPES: dict[str, type[Piece] | tuple[type[Piece], ...]] = {
    "load_report": kinds.LoadReport,
    "broker_topics": kinds.BrokerTopics,
    "averages": kinds.Averages,
    "metrics": kinds.Metrics,
    "metrics_in_json": kinds.Metrics,
    "prometheus": kinds.Metrics,
    "victoria_metrics": kinds.Metrics,
    "promtool": kinds.Metrics,
    "grafana": kinds.Metrics,
    "series_csv": kinds.Metrics,
    "load_balancer_topic": (kinds.LoadReport, kinds.TopBundles, kinds.OwnershipChange),
    "monitor_brokers": kinds.LoadReport,
    "nothing": (kinds.IsolationPolicies, kinds.FailureDomains, kinds.Configuration, kinds.BrokerTopics),
    "topic_stats": kinds.TopicStatsOf,
    "bundles_of_namespace": kinds.NamespaceBundles,
    "policies_of_namespace": kinds.NamespacePolicies,
    "anti_affinity": kinds.AntiAffinityGroup,
    "brokers": kinds.Brokers,
    "owned": kinds.OwnedBundles,
    "topic_names": kinds.TopicNames,
    "namespaces": kinds.Namespaces,
    "leader": kinds.Leader,
    "version": kinds.Version,
    "isolation": kinds.IsolationPolicies,
    "domains": kinds.FailureDomains,
    "settings_of_broker": kinds.Configuration,
    "settings_as_json": kinds.Configuration,
    "settings_file": kinds.Configuration,
    "settings_in_yaml": kinds.Configuration,
    "settings_as_java": kinds.Configuration,
    "commands_that_change": kinds.Configuration,
    "options_of_commands": kinds.Configuration,
    "terraform": (kinds.Configuration, kinds.DispatchLimit, kinds.AntiAffinityGroup),
    "terraform_plan": kinds.Configuration,
    "shell_variables": kinds.Configuration,
    "differences": kinds.Configuration,
    "dispatch_limit": kinds.DispatchLimit,
    "resource_quotas": kinds.NotUsed,
    "lookups": kinds.NotUsed,
    "brokers_of_policies": kinds.NotUsed,
    "errors": kinds.NotUsed,
    "other_tools": kinds.NotUsed,
    "log_of_broker": (kinds.Configuration, kinds.Version),
    "allocator_stats": kinds.NotUsed,
}
"""What the inputs of each folder are read into."""
FILES = sorted(path for path in INPUTS.glob("*/*") if path.parent.name in TYPES)


def pieces(data: bytes, name: str) -> list[Piece]:
    return [piece for chunk in chunks_of(unpacked(data, name), name) for piece in pieces_of(chunk)]


def shown(found: list[Piece]) -> list[str]:
    """Return pieces as text, without where they are from."""
    return [repr(piece).replace(repr(piece.source), "") for piece in found]


def test_each_kind_has_three_inputs_and_more() -> None:
    assert {path.name for path in INPUTS.iterdir()} == set(TYPES)
    assert [name for name in TYPES if len(list((INPUTS / name).iterdir())) < 3] == []


def test_each_kind_of_the_registry_has_three_inputs_one_of_which_is_falsified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that is added without inputs, or whose inputs are never damaged, fails here."""
    read_by: dict[str, set[str]] = {kind.name: set() for kind in KINDS}
    name = ""

    def spy(kind: Kind, chunk: Chunk) -> Iterator[Piece]:
        read_by[kind.name].add(name)
        return kind.read(chunk)

    monkeypatch.setattr(recognise, "_read", spy)
    for path in FILES:
        name = f"{path.parent.name}/{path.name}"
        pieces(path.read_bytes(), path.name)
    assert [kind for kind, inputs in read_by.items() if len(inputs) < 3] == []
    assert [kind for kind, inputs in read_by.items() if not inputs & CASES.keys()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_input_is_of_its_kind_and_of_no_other(path: Path) -> None:
    found = pieces(path.read_bytes(), path.name)
    warned = [piece for piece in found if isinstance(piece, NotUsed) and piece.why.startswith("the server warns")]
    assert len(warned) == (b'"warnings"' in path.read_bytes())
    used = [piece for piece in found if not (isinstance(piece, NotUsed) and piece.is_expected) and piece not in warned]
    used = used or found
    assert used
    assert [piece for piece in used if not isinstance(piece, TYPES[path.parent.name])] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_content_decides_and_not_its_wrapping(path: Path) -> None:
    """A byte order mark, the ends of lines, another encoding and gzip change nothing; nor does a log line before it."""
    data = path.read_bytes()
    plain = shown(pieces(data, path.name))
    text = data.decode("utf-8-sig")
    for other in (
        text.replace("\r\n", "\n").replace("\n", "\r\n").encode("utf-8-sig"),
        text.encode("utf-16"),
        gzip.compress(data),
        b"2026-11-25T03:12:11,004+0000 [main] INFO  org.apache.pulsar.Tool - started\n\n" + text.encode() + b"\n$ \n",
    ):
        assert shown(pieces(other, path.name)) == plain


@pytest.mark.parametrize("path", [p for p in FILES if p.suffix == ".json"], ids=lambda p: f"{p.parent.name}-{p.name}")
def test_json_may_be_pretty_or_on_one_line(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8-sig"))
    for text in (json.dumps(value), json.dumps(value, indent=4), json.dumps(value, indent="\t").replace('":', '" :')):
        assert shown(pieces(text.encode(), path.name)) == shown(pieces(path.read_bytes(), path.name))


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.parent.name != "nothing"], ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_a_truncated_output_is_named_or_has_fewer_lines(path: Path) -> None:
    data = path.read_bytes().rstrip()
    found = pieces(data[: len(data) * 2 // 3], path.name)
    whole = {type(piece) for piece in pieces(data, path.name)}
    lines_alone = b"{" not in data and b"[" not in data
    assert lines_alone or any(isinstance(piece, NotUsed) for piece in found) or whole <= {type(p) for p in found}


def test_several_outputs_in_one_text() -> None:
    """A copied terminal: each command and its answer, one after the other."""
    names = (
        "brokers/lines_4_2.txt",
        "load_report/pretty_4_0.json",
        "leader/terminal_3_0.txt",
        "owned/terminal_2_10.txt",
    )
    text = b"".join((INPUTS / name).read_bytes() for name in names)
    found = [type(piece) for piece in pieces(text, "pasted text")]
    assert found == [kinds.Brokers, kinds.LoadReport, kinds.Leader, kinds.OwnedBundles]


def test_one_text_pasted_twice_counts_once() -> None:
    text = (INPUTS / "load_report" / "pretty_4_0.json").read_bytes()
    once, twice, joined = (
        read_given([Given("pasted text", io.BytesIO(data))]) for data in (text, text + text, text.strip() + text)
    )
    assert once.snapshot is not None
    for other in (twice, joined):
        assert other.snapshot is not None
        assert snapshot_digest(other.snapshot) == snapshot_digest(once.snapshot)
        assert other.found == once.found
        assert not other.contradictions
