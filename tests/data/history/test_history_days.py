"""A day of history gives back exactly the snapshots that went in, and is there as a whole or not at all."""

import contextlib
import errno
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, PlannerError, ReplayError
from planner.cluster.files import file_digest
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import column_info, make_topics
from planner.cluster.units import DAY_MS
from planner.formats.encoding import info_to_json
from planner.formats.reading import read_snapshot
from planner.formats.rows import SCHEMAS
from planner.formats.validate import validate
from planner.history import day_writer
from planner.history.day_writer import STAGING, DayWriter, clear_staging, delete_day, writing_history
from planner.history.days import read_day
from planner.history.manifest import (
    MANIFEST,
    DayManifest,
    complete_days,
    day_folder,
    day_of,
    day_start_ms,
    read_manifest,
)
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.data.history.whole import check_day

ROOT = Path(__file__).parent.parent.parent.parent
SAMPLES = ROOT / "sample_snapshots"
DAY = "2027-01-15"
START = day_start_ms(DAY)


def empty_manifest(cluster: str, day: str = DAY) -> DayManifest:
    return DayManifest(
        cluster=cluster, day=day, made_by="generate", interval_ms=60_000, moments=0, first_ms=0, last_ms=0, parts={}
    )


def at(snapshot: Snapshot, time_ms: int, cluster: str = "small") -> Snapshot:
    return replace(snapshot, info=replace(snapshot.info, captured_at_ms=time_ms, cluster=cluster))


def write(root: Path, snapshots: Iterable[Snapshot], cluster: str = "small", day: str = DAY) -> Path:
    with DayWriter(root, cluster, day) as writer:
        for snapshot in snapshots:
            writer.add(snapshot)
        writer.commit(empty_manifest(cluster, day))
    return day_folder(root, cluster, day)


def assert_same(found: Snapshot, expected: Snapshot) -> None:
    assert snapshot_digest(found) == snapshot_digest(expected)
    assert info_to_json(found.info) == info_to_json(expected.info)
    assert found.namespaces == expected.namespaces


def test_real_and_generated_clusters_come_back_exactly(tmp_path: Path, small: Snapshot) -> None:
    extensible = generate(ClusterSpec(brokers=4, bundles=40, topics=90, load_manager=LoadManager.EXTENSIBLE), 3)
    samples = [read_snapshot(path) for path in sorted(SAMPLES.glob("*.json")) if path.name != "index.json"]
    given = [at(s, START + 60_000 * i) for i, s in enumerate([small, *samples, extensible, small])]
    folder = write(tmp_path, given)
    found = list(read_day(folder))
    assert len(found) == len(given) > 15
    for one, other in zip(found, given, strict=True):
        assert_same(one, other)


def test_namespace_without_bundles_and_order_of_brokers_survive(tmp_path: Path, small: Snapshot) -> None:
    names = tuple(reversed(small.brokers.name))
    odd = replace(
        at(small, START), namespaces=(*small.namespaces, "acme/empty"), brokers=replace(small.brokers, name=names)
    )
    assert_same(next(read_day(write(tmp_path, [odd]))), odd)


def test_row_groups_hold_the_same_moments(tmp_path: Path, small: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        day_writer, "_GROUP_ROWS", {"brokers": 50_000, "bundles": 3 * len(small.bundles), "topics": 10**6}
    )
    without = replace(small, topics=make_topics())
    given = [at(without if i < 5 else small, START + i * 1_000) for i in range(11)]
    folder = write(tmp_path, given)
    for first, last in ((0, 11), (2, 3), (3, 9), (10, 11), (4, 7)):
        found = list(read_day(folder, start_ms=START + first * 1_000, end_ms=START + last * 1_000))
        assert [snapshot_digest(s) for s in found] == [snapshot_digest(s) for s in given[first:last]]
    assert [len(s.topics) for s in read_day(folder, topics=False)] == [0] * 11
    assert not list(read_day(folder, start_ms=START + 11_000))


def test_a_reader_names_the_columns_that_it_needs(tmp_path: Path, small: Snapshot) -> None:
    folder = write(tmp_path, [at(small, START)])
    whole, some = next(read_day(folder)), ("namespace", "low", "high", "owner")
    (found,) = read_day(folder, columns={"brokers": ("name",), "bundles": some})
    assert found.brokers.name == whole.brokers.name
    assert all((getattr(found.bundles, name) == getattr(whole.bundles, name)).all() for name in some)
    assert whole.bundles.msg_rate_in_per_s.any()
    assert not found.bundles.msg_rate_in_per_s.any()
    assert len(whole.topics)
    assert not len(found.topics)


def test_every_column_of_the_model_is_stored() -> None:
    for part, kind in days_tables().items():
        stored = set(SCHEMAS[part].names) - {"time_ms", "position"}
        assert stored == {info.name for info in column_info(kind) if info.kind != "hash"}


def days_tables() -> dict[str, type]:
    from planner.formats.validate import TABLES  # noqa: PLC0415 - used here alone

    return dict(TABLES)


def test_day_left_without_commit_does_not_exist(tmp_path: Path, small: Snapshot) -> None:
    with DayWriter(tmp_path, "small", DAY) as writer:
        writer.add(at(small, START))
    assert not list(complete_days(tmp_path))
    assert not list((tmp_path / STAGING).iterdir())


def test_another_day_and_wrong_order_are_refused(tmp_path: Path, small: Snapshot) -> None:
    with DayWriter(tmp_path, "small", DAY) as writer:
        writer.add(at(small, START + 5))
        for snapshot, words in (
            (at(small, START + 5), "not later"),
            (at(small, START + DAY_MS), "does not belong"),
            (at(small, START + 9, "other"), "does not belong"),
        ):
            with pytest.raises(FormatError, match=words):
                writer.add(snapshot)


def test_day_is_replaced_as_a_whole(tmp_path: Path, small: Snapshot) -> None:
    folder = write(tmp_path, [at(small, START)])
    assert write(tmp_path, [at(small, START), at(small, START + 1)]) == folder
    assert len(list(read_day(folder))) == 2
    assert sorted(p.name for p in folder.iterdir()) == sorted([*read_manifest(folder).parts, MANIFEST])
    assert not list((tmp_path / STAGING).iterdir())


def test_of_two_attempts_at_one_day_the_first_stays(tmp_path: Path, small: Snapshot) -> None:
    folder = write(tmp_path, [at(small, START)])
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    write(tmp_path, [at(small, START)])
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before
    assert not list((tmp_path / STAGING).iterdir())


class Killed(BaseException):
    """What a process that is killed does not come to."""


def test_killed_while_it_replaces_a_day_there_is_one_or_the_other(
    tmp_path: Path, small: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each change of the disk that a commit makes; what is not ours stays."""
    steps = 0

    def dies(step: int, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            nonlocal steps
            steps += 1
            if steps > step:
                raise Killed
            return real(*args, **named)

        return call

    lengths = []
    for step in range(20):
        root, steps = tmp_path / str(step), 0
        folder = write(root, [at(small, START)])
        (folder / "notes.txt").write_text("mine")
        with monkeypatch.context() as patch:
            for name in ("rename", "replace", "unlink", "mkdir"):
                patch.setattr(Path, name, dies(step, getattr(Path, name)))
            with contextlib.suppress(Killed):
                write(root, [at(small, START), at(small, START + 1)])
        lengths.append(len(list(read_day(folder))))
        check_day(folder)
        write(root, [at(small, START + i) for i in range(3)])
        clear_staging(root)
        assert len(list(read_day(folder))) == 3
        assert sorted(p.name for p in folder.iterdir()) == sorted(
            [*read_manifest(folder).parts, MANIFEST, "notes.txt"]
        ), step
        assert not list((root / STAGING).iterdir())
    assert lengths == sorted(lengths)
    assert set(lengths) == {1, 2}


def test_a_reader_goes_on_while_its_day_is_replaced(tmp_path: Path, small: Snapshot) -> None:
    reading = read_day(write(tmp_path, [at(small, START + i * 1_000) for i in range(3)]))
    assert next(reading).info.captured_at_ms == START
    folder = write(tmp_path, [at(small, START + i * 500) for i in range(6)])
    assert [s.info.captured_at_ms for s in reading][-1] in (START + 2_000, START + 2_500)
    delete_day(folder)
    assert not folder.exists()


def test_damage_is_said_in_one_sentence(tmp_path: Path, small: Snapshot) -> None:
    folder = write(tmp_path, [at(small, START)])
    check_day(folder)
    path = folder / "bundles.parquet"
    data = path.read_bytes()
    path.write_bytes(data[:-20] + b"x" * 20)
    with pytest.raises(FormatError, match="SHA-256"):
        check_day(folder)
    with pytest.raises(FormatError, match="cannot be read"):
        list(read_day(folder))
    (folder / MANIFEST).write_text('{"format": "pulsar-bundle-planner history"}')
    with pytest.raises(FormatError, match=r"manifest\.json"):
        list(read_day(folder))


def test_days_are_listed_by_cluster(tmp_path: Path, small: Snapshot) -> None:
    write(tmp_path, [at(small, START, "b/ö")], "b/ö")
    write(tmp_path, [at(small, START, "a")], "a")
    write(tmp_path, [at(small, START + DAY_MS, "a")], "a", day_of(START + DAY_MS))
    (tmp_path / "cluster=a" / "day=2027-01-17").mkdir()
    assert [(d.manifest.cluster, d.manifest.day) for d in complete_days(tmp_path)] == [
        ("a", "2027-01-15"),
        ("a", "2027-01-16"),
        ("b/ö", "2027-01-15"),
    ]
    assert [d.manifest.day for d in complete_days(tmp_path, "b/ö")] == [DAY]
    with pytest.raises(FormatError, match="no such folder"):
        list(complete_days(tmp_path / "absent"))


def test_full_disk_has_a_remedy(tmp_path: Path) -> None:
    try:
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"x")
    except FileNotFoundError:  # no Linux
        error = OSError(errno.ENOSPC, "No space left on device")
    except OSError as caught:
        error = caught
    with pytest.raises(ReplayError, match=r"disk is full.*Free some disk space"), writing_history(tmp_path):
        raise error


def test_rows_that_are_not_those_of_their_moments_are_damage(tmp_path: Path, small: Snapshot) -> None:
    folder = write(tmp_path, [at(small, START), at(small, START + 60_000)])
    manifest = json.loads((folder / MANIFEST).read_bytes())
    del manifest["digest"]
    table = pq.read_table(folder / "bundles.parquet")
    for wrong in (table.slice(3), table.slice(0, 0), table.take(pa.array([0] * len(table)))):
        pq.write_table(wrong, folder / "bundles.parquet")
        manifest["parts"]["bundles.parquet"]["sha256"] = file_digest(folder / "bundles.parquet")
        (folder / MANIFEST).write_text(json.dumps(manifest))
        with pytest.raises(PlannerError) as told:
            list(map(validate, read_day(folder)))
        assert told.value.remedy
