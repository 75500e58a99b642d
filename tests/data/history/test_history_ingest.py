"""Raw recordings in, history out: the same clusters, nothing lost, only what changed is made again."""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, ReplayError
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.formats.folder import parts_of_snapshot, write_folder
from planner.formats.validate import validate
from planner.history import ingest as module
from planner.history import sources
from planner.history.days import read_day
from planner.history.generate import snapshots_of_day
from planner.history.ingest import SET_ASIDE, IngestResult, ingest
from planner.history.ledger import only_ingest, read_ledger
from planner.history.manifest import DayManifest, complete_days, day_folder
from planner.history.raw import write_raw
from planner.history.spec import FORMS, HistorySpec, Options
from planner.simulate.cluster_spec import ClusterSpec
from tests.data.history.whole import check_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HALF_HOUR = 1_800_000
SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=4, bundles=24, topics=80, msg_rate_per_s=20_000),
    days=2,
    interval_s=1_800,
    restarts_per_day=2,
    restart_minutes=60,
    splits_per_day=3,
    topics=True,
)
OPTIONS = Options(interval_ms=HALF_HOUR, report_ms=1_900_000, sample_ms=1_900_000)
SEED = 3


def spec_of(cluster: str) -> HistorySpec:
    return replace(SPEC, cluster=replace(SPEC.cluster, cluster=cluster))


@dataclass(frozen=True)
class Made:
    raw: Path
    root: Path
    result: IngestResult

    def manifest(self, cluster: str, day: int) -> DayManifest:
        return [d.manifest for d in complete_days(self.root, cluster)][day]

    def snapshots(self, cluster: str, day: int) -> Iterator[Snapshot]:
        return read_day([d.path for d in complete_days(self.root, cluster)][day])


@pytest.fixture(scope="module")
def made(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two days of three clusters, each recorded in another form, one with bad lines, ingested at once."""
    folder = tmp_path_factory.mktemp("ingest")
    raw = folder / "raw"
    for form in FORMS:
        for day in range(2):
            write_raw(raw, snapshots_of_day(spec_of(form), SEED, day), form)
    lines = (raw / "reports-reports-2027-01-11.jsonl").read_bytes().splitlines(keepends=True)
    lines[5:5] = [b"not json\n", b"\n", b'{"cpu": 1}\n']
    lines.append(lines[0])  # said again, late
    lines.append(lines[-2][:50])  # cut off
    (raw / "reports-reports-2027-01-11.jsonl").write_bytes(b"".join(lines))
    (raw / "notes.txt").write_text("no recording", encoding="utf-8")
    kept, sources.BLOCK_BYTES = sources.BLOCK_BYTES, 200_000
    try:
        return Made(raw, folder / "history", ingest([raw], folder / "history", OPTIONS, spark))
    finally:
        sources.BLOCK_BYTES = kept


def bundle_rows(snapshot: Snapshot) -> dict[str, tuple[Any, ...]]:
    table, names = snapshot.bundles, (None, *snapshot.brokers.name)
    columns = (table.msg_rate_in_per_s, table.msg_throughput_out_bytes_per_s, table.topics, table.consumers)
    return {
        name: (names[int(table.owner[i]) + 1], *(float(c[i]) for c in columns))
        for i, name in enumerate(snapshot.bundle_names)
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("day", [0, 1])
def test_what_was_recorded_is_what_comes_out(made: Made, form: str, day: int) -> None:
    """Owners, ranges through splits, rates: those of the cluster that was recorded, whatever the form."""
    expected = list(snapshots_of_day(spec_of(form), SEED, day))
    found = list(made.snapshots(form, day))
    assert [s.info.captured_at_ms for s in found] == [s.info.captured_at_ms for s in expected]
    for one, other in zip(found, expected, strict=True):
        validate(one)
        rows, wanted = bundle_rows(one), bundle_rows(other)
        loaded = {name for name, row in wanted.items() if row[0] is not None}
        assert {name for name, row in rows.items() if row[0] is not None} == loaded
        for name in loaded:  # nobody speaks of the others, so that a split of one cannot be known
            assert rows[name][0] == wanted[name][0], (name, one.info.captured_at_ms)
            assert rows[name][1:] == pytest.approx(wanted[name][1:], rel=1e-3, abs=0.05)  # counters are whole


def test_brokers_of_reports_are_exactly_those_reported(made: Made) -> None:
    for found, expected in zip(
        made.snapshots("reports", 1), snapshots_of_day(spec_of("reports"), SEED, 1), strict=True
    ):
        there = expected.brokers.registered
        for name in (
            "cpu_usage_percent",
            "bandwidth_in_limit_kbit_per_s",
            "msg_rate_in_per_s",
            "updated_at_ms",
            "topics",
        ):
            assert np.array_equal(getattr(found.brokers, name)[there], getattr(expected.brokers, name)[there]), name
        assert found.brokers.name == expected.brokers.name


def test_topics_lie_where_pulsar_hashes_them(made: Made) -> None:
    found, expected = next(made.snapshots("topics", 1)), next(snapshots_of_day(spec_of("topics"), SEED, 1))
    assert sorted(found.topics.name.to_pylist()) == sorted(expected.topics.name.to_pylist())


def test_rows_reconcile(made: Made) -> None:
    result = made.result
    assert result.rows_read == result.rows_kept + result.rows_set_aside
    assert result.rows_set_aside == 4
    ledger = read_ledger(made.root)
    assert sum(e.read for e in ledger.sources.values()) == result.rows_read
    contributed: dict[tuple[str, str], int] = {}
    for entry in ledger.sources.values():
        for cluster, days in entry.days.items():
            for day, rows in days.items():
                contributed[cluster, day] = contributed.get((cluster, day), 0) + rows.rows
    for manifest in result.days:
        counts = manifest.rows
        assert counts.kept == counts.used + counts.duplicate + counts.outdated + counts.not_placed
        assert counts.kept == contributed[manifest.cluster, manifest.day]
        assert counts.kept == sum(s.rows for s in manifest.sources.values())
    recorded = made.manifest("reports", 0).rows
    assert (recorded.duplicate, recorded.late) == (1, 1)
    assert made.manifest("topics", 1).rows.counter_resets > 0


def test_bad_rows_are_kept_aside_with_file_line_and_reason(made: Made) -> None:
    rows = [row for path in (made.root / SET_ASIDE).glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    found = {(Path(r["file"]).name, r["line"]): r for r in rows}
    name = "reports-reports-2027-01-11.jsonl"
    lines = (made.raw / name).read_bytes().splitlines(keepends=True)
    assert len(lines) > 10
    assert set(found) == {(name, 6), (name, 8), (name, len(lines)), ("notes.txt", 0)}
    for (file, line), row in found.items():
        if file == name:
            assert row["raw"] == lines[line - 1]
    assert "Not valid JSON" in found[name, 6]["reason"]
    assert "kind of the file is unknown" in found["notes.txt", 0]["reason"]


def test_day_holds_what_its_manifest_says(made: Made) -> None:
    for day in complete_days(made.root):
        check_day(day.path)
        assert day.manifest.made_by == "ingest"
        assert len(list(read_day(day.path))) == day.manifest.moments
    assert made.manifest("reports", 0).splits + made.manifest("reports", 1).splits > 0


def stamps(root: Path) -> dict[str, int]:
    return {
        f"{p.parent.parent.name}/{p.parent.name}": p.stat().st_ino for p in root.glob("cluster=*/day=*/manifest.json")
    }


def test_only_what_changed_is_made_again(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, root = tmp_path / "raw", tmp_path / "history"
    spec = replace(spec_of("c"), days=4)
    for day in range(2):
        write_raw(raw, snapshots_of_day(spec, SEED, day), "reports")
    ingest([raw], root, OPTIONS, spark)
    before = stamps(root)
    with monkeypatch.context() as patch:
        patch.setattr(module, "open_session", None)  # nothing to do: Spark is not even started
        again = ingest([raw], root, OPTIONS)
    assert (again.files_read, len(again.days), again.days_unchanged) == (0, 0, 2)

    third = write_raw(raw, snapshots_of_day(spec, SEED, 2), "reports")
    added = ingest([raw], root, OPTIONS, spark)
    assert (added.files_read, [m.day for m in added.days]) == (1, ["2027-01-13"])
    assert added.days[0].rows.carried > 0  # of the day before, whose file was read again for it
    assert {k: v for k, v in stamps(root).items() if k in before} == before

    third.touch()
    touched = ingest([raw], root, OPTIONS, spark)
    assert (touched.files_read, len(touched.days)) == (1, 0)

    fourth = write_raw(tmp_path / "other", snapshots_of_day(spec, SEED, 3), "reports").read_bytes()
    third.write_bytes(third.read_bytes() + fourth)  # a recorder that goes on in the same file
    grown = ingest([raw], root, OPTIONS, spark)
    assert [m.day for m in grown.days] == ["2027-01-14"]

    noon = third.read_bytes().splitlines()[80]
    (raw / "late.jsonl").write_bytes(noon.replace(b'"limit":', b'"limit":1'))
    late = ingest([raw], root, OPTIONS, spark)
    assert [m.day for m in late.days] == ["2027-01-13"]
    assert late.days[0].rows.outdated == 1

    (raw / "late.jsonl").write_bytes(b"")
    third.write_bytes(fourth)
    gone = ingest([raw], root, OPTIONS, spark)
    assert gone.days_removed == 1  # no file has a row of the third day any more
    assert sorted(stamps(root)) == [f"cluster=c/day=2027-01-1{d}" for d in (1, 2, 4)]


def test_days_do_not_depend_on_the_order_in_which_they_came(spark: "SparkSession", tmp_path: Path) -> None:
    files = [write_raw(tmp_path / "raw", snapshots_of_day(spec_of("c"), SEED, day), "reports") for day in range(2)]
    for name, order in (("one", [files]), ("two", [files[1:], files[:1]])):
        for inputs in order:
            ingest(inputs, tmp_path / name, OPTIONS, spark)
    digests = [
        {d.path.name: sorted(p.sha256 for p in d.manifest.parts.values()) for d in complete_days(tmp_path / name)}
        for name in ("one", "two")
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2


def test_snapshots_come_out_as_they_went_in(spark: "SparkSession", tmp_path: Path, small: Snapshot) -> None:
    raw, root = tmp_path / "raw", tmp_path / "history"
    at = [1_800_000_000_000 + i * 7_200_000 for i in range(4)]
    given = [replace(small, info=replace(small.info, captured_at_ms=time_ms)) for time_ms in at]
    older = replace(given[-1].info, pulsar_version="3.0.7")
    given[-1] = replace(given[-1], info=older, settings=Settings({}, release("3.0.7")))
    for i, snapshot in enumerate(given):
        write_folder(snapshot, raw / f"s{i}")
    write_folder(given[0], raw / "copy")
    result = ingest([raw], root, OPTIONS, spark)
    found = [s for d in complete_days(root) for s in read_day(d.path)]
    assert [snapshot_digest(s) for s in found] == [snapshot_digest(s) for s in given]
    assert [s.settings.release.name for s in found] == ["4.2.4", "4.2.4", "4.2.4", "3.0.7"]
    assert sum(m.rows.duplicate for m in result.days) == 1
    assert {m.interval_ms for m in result.days} == {0}


def test_a_zip_of_several_gives_all_of_them(spark: "SparkSession", tmp_path: Path, small: Snapshot) -> None:
    """It was set aside: the zip contains 3 snapshots."""
    at = [1_800_000_000_000 + i * 7_200_000 for i in range(3)]
    given = [replace(small, info=replace(small.info, captured_at_ms=time_ms)) for time_ms in at]
    given.append(replace(given[0], info=replace(given[0].info, cluster="other")))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for i, snapshot in enumerate(given):
            for name, data in parts_of_snapshot(snapshot).items():
                archive.writestr(f"s{i}/{name}", data)
        archive.writestr("s9/index.json", "[{}]")
    root = tmp_path / "history"
    result = ingest([tmp_path / "all.zip"], root, OPTIONS, spark)
    found = [s for name in (small.info.cluster, "other") for d in complete_days(root, name) for s in read_day(d.path)]
    assert [snapshot_digest(s) for s in found] == [snapshot_digest(s) for s in given]
    assert result.rows_set_aside == 1


def test_a_zip_gives_the_last_snapshot_before_a_day(spark: "SparkSession", tmp_path: Path) -> None:
    spec = replace(spec_of("c"), splits_per_day=0)
    days = [list(snapshots_of_day(spec, SEED, day)) for day in range(2)]
    with zipfile.ZipFile(tmp_path / "before.zip", "w") as archive:
        for i, snapshot in enumerate(days[0][-2:]):
            for name, data in parts_of_snapshot(snapshot).items():
                archive.writestr(f"s{i}/{name}", data)
    write_raw(tmp_path / "raw", iter(days[1]), "reports")
    root = tmp_path / "history"
    ingest([tmp_path / "before.zip", tmp_path / "raw"], root, OPTIONS, spark)
    last = [d.manifest for d in complete_days(root)][-1]
    assert last.day == "2027-01-12"
    assert last.base == f"{days[0][-1].info.captured_at_ms} {snapshot_digest(days[0][-1])}"


def test_snapshot_from_before_gives_bundles_settings_and_policies(spark: "SparkSession", tmp_path: Path) -> None:
    raw, root = tmp_path / "raw", tmp_path / "history"
    spec = replace(spec_of("c"), splits_per_day=0)
    first = next(snapshots_of_day(spec, SEED, 0))
    known = replace(first, settings=Settings({"loadBalancerBrokerThresholdShedderPercentage": 17}))
    write_folder(known, raw / "before")
    prometheus = write_raw(raw, snapshots_of_day(spec, SEED, 1), "prometheus")
    text = json.loads(prometheus.read_text())
    text["data"]["result"] = [s for s in text["data"]["result"] if "bundle" not in s["metric"]]
    prometheus.write_text(json.dumps(text))
    ingest([raw], root, OPTIONS, spark)
    found = list(read_day(day_folder(root, "c", "2027-01-12")))
    assert found[-1].bundle_names == tuple(sorted(first.bundle_names)) == tuple(sorted(found[0].bundle_names))
    assert found[-1].settings["loadBalancerBrokerThresholdShedderPercentage"] == 17
    expected = list(snapshots_of_day(spec, SEED, 1))[-1]
    assert float(found[-1].bundles.msg_rate_in_per_s.sum()) == pytest.approx(
        float(expected.bundles.msg_rate_in_per_s.sum()), rel=1e-3
    )
    manifest = [d.manifest for d in complete_days(root)][-1]
    assert manifest.base.startswith(str(first.info.captured_at_ms))


def test_missing_file_of_a_day_that_changes_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    path = write_raw(tmp_path / "raw", snapshots_of_day(spec_of("c"), SEED, 0), "reports")
    ingest([path], tmp_path / "history", OPTIONS, spark)
    line = path.read_bytes().splitlines()[9]
    path.unlink()
    (tmp_path / "late.jsonl").write_bytes(line.replace(b'"limit":', b'"limit":1'))
    before = stamps(tmp_path / "history")
    with pytest.raises(ReplayError, match="a file that it was built from is missing"):
        ingest([tmp_path / "late.jsonl"], tmp_path / "history", OPTIONS, spark)
    assert stamps(tmp_path / "history") == before


def test_day_that_cannot_be_written_is_said_in_one_sentence(spark: "SparkSession", tmp_path: Path) -> None:
    raw, root = tmp_path / "raw", tmp_path / "history"
    for cluster in ("bad", "good"):
        write_raw(raw, snapshots_of_day(spec_of(cluster), SEED, 0), "reports")
    root.mkdir()
    (root / "cluster=bad").write_text("in the way")
    with pytest.raises(ReplayError, match="of bad cannot be made: Cannot write") as caught:
        ingest([raw], root, OPTIONS, spark)
    assert caught.value.remedy
    (root / "cluster=bad").unlink()
    result = ingest([raw], root, OPTIONS, spark)
    assert [m.cluster for m in result.days] == ["bad"]  # the other one was complete


def test_troubles_of_spark_have_a_remedy(tmp_path: Path) -> None:
    for text, words in (
        ("java.io.IOException: No space left on device\n\tat x", "disk is full"),
        ("java.lang.OutOfMemoryError: Java heap space", "memory"),
        ("java.net.ConnectException: Connection refused", "cannot be reached"),
        ("Error while sending or receiving", "Java process has ended"),
        ("something else.\n\tat org.apache", "something else. Run the same"),
    ):
        with pytest.raises(ReplayError, match=words) as caught, module._plain_errors(tmp_path):
            raise RuntimeError(text)
        assert "\n" not in str(caught.value)
        assert caught.value.remedy


def test_two_ingests_do_not_write_to_one_history(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}")
    with only_ingest(tmp_path / "history"), pytest.raises(ReplayError, match="Another process"):
        ingest([tmp_path / "x.jsonl"], tmp_path / "history", OPTIONS, spark)
    with pytest.raises(FormatError, match="cannot be read"):
        ingest([tmp_path / "absent"], tmp_path / "history", OPTIONS, spark)


def test_other_interval_makes_every_day_anew(spark: "SparkSession", tmp_path: Path) -> None:
    path = write_raw(tmp_path / "raw", snapshots_of_day(spec_of("c"), SEED, 0), "reports")
    ingest([path], tmp_path / "history", OPTIONS, spark)
    other = ingest([path], tmp_path / "history", replace(OPTIONS, interval_ms=HALF_HOUR // 2), spark)
    assert [m.moments for m in other.days] == [95]
    assert [p.name for p in (tmp_path / "history" / ".staging").iterdir()] == ["lock"]
