"""What the validator passes comes back from every writer and reader, and what would not is refused."""

import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, SnapshotError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, IsolationPolicy, Policies, Snapshot
from planner.cluster.units import DAY_MS
from planner.formats.archive import write_zip
from planner.formats.document import write_document
from planner.formats.encoding import head_to_json, read_head
from planner.formats.folder import write_folder
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.formats.reading import read_snapshot, read_upload
from planner.formats.validate import fitting_notes, validate
from planner.history.day_writer import DayWriter
from planner.history.days import read_day
from planner.history.ingest import ingest
from planner.history.manifest import DayManifest, complete_days, day_of
from planner.history.watched import HistoryFolder
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.workspace.database import open_workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_800_000_000_000 - 1_800_000_000_000 % DAY_MS
POLICIES = 2_000
NAMES = ("b-1:8080", "x", "ü", "a b", "😀", "x" * 4_096, "[v6]:1", "\x1b[2J", "\u202eb", "%", "null")
ODD_NAMES = ("", "x" * 4_097, "\ud800", "x" * 20_000)
EXPRESSIONS = ("acme/.*", ".*", "broker-[0-9]+", "*", "(", "[a-", "", "a|b", "\\Qx\\E", "ü.*", "x" * 10_000)
ODD_EXPRESSIONS = ("x" * 10_001, "\udfff")
NAMESPACES = ("acme/orders", "a/b", "pulsar/system", "x-1/y=2", "pulsar/c/b:8080")
ODD_NAMESPACES = ("acme", "", "a/b/c/d", "ü/b", "a/" + "x" * 5_000)
INTS = (0, 1, -1, 2**31 - 1, -(2**31), 7)
ODD_INTS = (2**31, -(2**31) - 1, 2**70)


class Draw:
    """Draws values that are usual, at an edge, or, in half of the cases, beyond it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - test data
        self.odd = self.random.random() < 0.5

    def one(self, usual: tuple[Any, ...], odd: tuple[Any, ...] = ()) -> Any:
        beyond = self.odd and odd and self.random.random() < 0.15
        return self.random.choice(odd if beyond else usual)

    def some(self, draw: Callable[[], Any], most: int = 3, least: int = 0) -> tuple[Any, ...]:
        return tuple(draw() for _ in range(self.random.randint(least, most)))

    def name(self) -> str:
        return str(self.one(NAMES, ODD_NAMES))

    def expression(self) -> str:
        return str(self.one(EXPRESSIONS, ODD_EXPRESSIONS))

    def host(self) -> str:
        return str(self.one(("broker-[0-9]+", ".*", "h", "x" * 10_000), ("*", *ODD_EXPRESSIONS)))

    def policy(self) -> IsolationPolicy:
        return IsolationPolicy(
            name=self.one(("p", "iso one", "x" * 4_096), ODD_NAMES),
            namespaces=self.some(self.expression, least=1),
            primary=self.some(self.host),
            secondary=self.some(self.host),
            min_limit=self.one((0, 1, 2**31 - 1), ODD_INTS),
            usage_threshold_percent=self.one(INTS, ODD_INTS),
        )

    def rate(self) -> DispatchRatePolicy:
        return DispatchRatePolicy(
            kind=self.one(("dispatch", "subscription", "replicator")),
            target=self.one((*NAMESPACES, "persistent://a/b/ü\n\x00"), ("topic", "", "a/b/c/d")),
            rate=DispatchRate(
                self.one(INTS, ODD_INTS),
                self.one((*INTS, 2**63 - 1, -(2**63)), (2**63, 2**70)),
                self.one((1, 2**31 - 1), ODD_INTS),
                self.one((True, False)),
            ),
            subscription=self.one(("", "s", "x" * 10_000), ODD_EXPRESSIONS),
            is_global=self.one((True, False)),
        )

    def policies(self) -> Policies:
        return Policies(
            isolation=self.some(self.policy),
            anti_affinity_group={self.one(NAMESPACES, ODD_NAMESPACES): self.name() for _ in range(3)},
            failure_domains={
                str(self.one(("d", "", "d 2", "x" * 5_000), ("\ud800",))): self.some(self.name) for _ in range(3)
            },
            dispatch_rates=self.some(self.rate),
        )

    def info(self) -> dict[str, Any]:
        return {
            "load_manager": self.one(tuple(LoadManager)),
            "pulsar_version": self.one(("4.2.4", "3.0.7-x", "", "4.2.4" + "x" * 45), ("4.2.4" + "x" * 46,)),
            "leader": self.one(("", "b-1:8080", "x" * 4_096), ODD_NAMES[1:]),
            "source": self.one(("", "ü", "x" * 10_000), ODD_EXPRESSIONS),
            "warnings": self.some(lambda: self.one(("a", "", "x" * 10_000), ODD_EXPRESSIONS)),
            "leader_since_ms": self.one((0, 2**53 - 1), (2**53, -1)),
            "taken_ms": {self.name(): self.one((0, 2**53 - 1), (2**53, -1)) for _ in range(2)},
            "leader_metrics": {self.name(): self.one((0.0, 0.1, 1e15), (-1.0, 1e300, float("nan"))) for _ in range(2)},
            "settings_from": self.one(("", "brokers", "defaults"), ("else",)),
            "dynamic_settings": self.one((None, {}, {"a": "false.x"}, {"a": ""}), ({"": "a"}, {"a": "x" * 10_001})),
        }


@cache
def small() -> Snapshot:
    return generate(ClusterSpec(brokers=2, bundles=4, topics=6, cluster="small"), 3)


@cache
def drawn() -> tuple[Snapshot, ...]:
    """Return clusters with random policies, a millisecond apart."""
    made = []
    for seed in range(POLICIES):
        draw = Draw(seed)
        info = replace(small().info, captured_at_ms=START + seed, **draw.info())
        config = Settings(small().settings.overrides, release(info.pulsar_version))
        made.append(replace(small(), policies=draw.policies(), info=info, settings=config))
    return tuple(made)


def passes(snapshot: Snapshot) -> bool:
    try:
        validate(snapshot)
    except SnapshotError:
        return False
    return True


@cache
def valid() -> tuple[Snapshot, ...]:
    return tuple(filter(passes, drawn()))


def comes_back(snapshot: Snapshot) -> bool:
    """Write as all formats do, and read as all do."""
    try:
        text = json.dumps(head_to_json(snapshot), ensure_ascii=False, allow_nan=False).encode().decode()
        read = read_head(json.loads(text), "")
    except (FormatError, ValueError):
        return False
    return (read["info"], read["policies"]) == (snapshot.info, snapshot.policies)


def same(one: Snapshot, other: Snapshot) -> bool:
    return (
        one.info == other.info
        and one.policies == other.policies
        and one.settings == other.settings
        and snapshot_digest(one) == snapshot_digest(other)
    )


def test_about_half_of_them_pass() -> None:
    assert 0.3 < len(valid()) / POLICIES < 0.8


def test_what_would_not_come_back_is_refused() -> None:
    wrong = [snapshot for snapshot in drawn() if not comes_back(snapshot)]
    assert len(wrong) > 0.1 * POLICIES
    assert not any(map(passes, wrong))


def test_what_passes_comes_back() -> None:
    assert all(map(comes_back, valid()))


def folder(snapshot: Snapshot, at: Path) -> Snapshot:
    write_folder(snapshot, at / "folder")
    return read_snapshot(at / "folder")


def zipped(snapshot: Snapshot, _: Path) -> Snapshot:
    with io.BytesIO() as file:
        write_zip(snapshot, file)
        file.seek(0)
        return read_upload("s.zip", file)


def document(snapshot: Snapshot, _: Path) -> Snapshot:
    return read_upload("s.json", io.BytesIO(write_document(snapshot).encode()))


@pytest.mark.parametrize("way", [folder, zipped, document])
def test_from_a_file(way: Callable[[Snapshot, Path], Snapshot], tmp_path: Path) -> None:
    for number, snapshot in enumerate(valid()[::10]):
        (tmp_path / str(number)).mkdir()
        assert same(way(snapshot, tmp_path / str(number)), snapshot)


def test_from_a_workspace(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "workspace.duckdb")
    some = valid()[::10]
    digests = [workspace.add(snapshot, "s").digest for snapshot in some]
    assert all(same(workspace.snapshot(digest), one) for digest, one in zip(digests, some, strict=True))
    workspace.close()


def test_from_a_watched_history(tmp_path: Path) -> None:
    history = HistoryFolder(tmp_path, 1 << 40)
    some = valid()[:65]  # more than are compacted at once
    for snapshot in some:
        history.add(snapshot)
    assert all(map(same, moments(tmp_path), some))
    assert len(list(moments(tmp_path))) == len(some)


def moments(root: Path) -> Iterator[Snapshot]:
    for day in complete_days(root):
        yield from read_day(day.path)


def write_history(root: Path, snapshots: tuple[Snapshot, ...]) -> None:
    with DayWriter(root, "small", day_of(START)) as writer:
        for snapshot in snapshots:
            writer.add(snapshot)
        writer.commit(DayManifest(cluster="small", day=day_of(START), made_by="generate"))


def test_from_a_generated_history(tmp_path: Path) -> None:
    write_history(tmp_path, valid())
    found = list(moments(tmp_path))
    assert len(found) == len(valid())
    assert all(map(same, found, valid()))


@pytest.mark.usefixtures("spark")
def test_from_an_ingested_history(tmp_path: Path, spark: "SparkSession") -> None:
    write_history(tmp_path / "generated", valid()[:200])
    ingest([tmp_path / "generated"], tmp_path / "ingested", session=spark)
    found = list(moments(tmp_path / "ingested"))
    assert len(found) == 200
    for read, written in zip(found, valid()[:200], strict=True):
        kept = read.info.warnings[: len(written.info.warnings)]  # behind them stands what the day notes
        assert same(replace(read, info=replace(read.info, warnings=kept)), written)


# What a cluster may answer


def test_empty_names_of_a_failure_domain_are_left_out_with_a_note(
    capture: Callable[[str], dict[str, bytes]], tmp_path: Path
) -> None:
    files = capture("modular")
    files["failure-domains.json"] = b'{"d": {"brokers": ["b-1.example", "", "b-2.example", "%s"]}}' % (b"x" * 4_097)
    snapshot = snapshot_of_capture(files)
    assert snapshot.policies.failure_domains == {"d": ("b-1.example", "b-2.example")}
    assert any(
        "Failure domain d: broker names" in warning and "(2 of 4)" in warning for warning in snapshot.info.warnings
    )
    assert same(folder(snapshot, tmp_path), snapshot)


def test_group_that_is_too_long_is_left_out_with_a_note(capture: Callable[[str], dict[str, bytes]]) -> None:
    files = capture("modular")
    files["anti-affinity.globex-alerts.json"] = json.dumps("x" * 4_097).encode()
    snapshot = snapshot_of_capture(files)
    assert "globex/alerts" not in snapshot.policies.anti_affinity_group
    assert any("anti-affinity group of globex/alerts" in warning for warning in snapshot.info.warnings)


@pytest.mark.parametrize(
    "answer",
    [
        {"loadBalancerSheddingIntervalMinutes": "\x1b[2J"},
        {"loadBalancerSheddingIntervalMinutes": "x" * 20_000},
        {"loadBalancerLoadSheddingStrategy": "y" * 20_000},
    ],
)
def test_notes_quote_what_any_snapshot_can_hold(
    capture: Callable[[str], dict[str, bytes]], tmp_path: Path, answer: Mapping[str, str]
) -> None:
    files = capture("modular")
    for tag in ("b1", "b2", "b3"):
        told = json.loads(files[f"runtime-config.{tag}.json"])
        files[f"runtime-config.{tag}.json"] = json.dumps(told | answer).encode()
    snapshot = snapshot_of_capture(files)
    assert same(folder(snapshot, tmp_path), snapshot)


def test_version_that_is_too_long_is_cut(capture: Callable[[str], dict[str, bytes]], tmp_path: Path) -> None:
    files = capture("modular")
    files["version.json"] = json.dumps("4.2.4-" + "x" * 80).encode()
    snapshot = snapshot_of_capture(files)
    assert snapshot.info.pulsar_version == "4.2.4-" + "x" * 44
    assert same(folder(snapshot, tmp_path), snapshot)


def test_notes_are_cut_each_once_and_plain() -> None:
    assert fitting_notes(["a", "\x1b[2J", "a", "x" * 10_001]) == (
        "a",
        "\N{REPLACEMENT CHARACTER}[2J",
        "x" * 9_999 + "…",
    )
    assert len(fitting_notes(map(str, range(20_000)))) == 10_000
