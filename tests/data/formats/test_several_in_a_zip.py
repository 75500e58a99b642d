"""A zip of several snapshots or captures of one cluster: the last one is opened, and a note says how to use all."""

import io
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from planner.__main__ import main
from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError
from planner.cluster.snapshot import Snapshot
from planner.doors.read import Given, read_given
from planner.formats import archive
from planner.formats.apart import read_apart
from planner.formats.folder import parts_of_snapshot
from planner.formats.reading import (
    note_on,
    raw_capture_in,
    read_snapshot,
    read_snapshots,
    read_upload,
    snapshot_of_moment,
)
from planner.formats.several import held_in
from planner.workspace.opening import open_snapshot

CASE: Final = Path(__file__).parents[4] / "shared" / "cases" / "transfer_shedder_wrong_cycles.raw.zip"
START: Final = 1_800_000_000_000
FILE: Final = "up.zip"


def at(snapshot: Snapshot, minute: int, cluster: str = "") -> Snapshot:
    """The same cluster at another moment."""
    info = replace(snapshot.info, captured_at_ms=START + minute * 60_000, cluster=cluster or snapshot.info.cluster)
    return replace(snapshot, info=info)


def zipped(folders: dict[str, Snapshot], *more: tuple[str, bytes]) -> io.BytesIO:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for folder, snapshot in folders.items():
            for name, data in parts_of_snapshot(snapshot).items():
                made.writestr(f"{folder}/{name}", data)
        for path, data in more:
            made.writestr(path, data)
    return target


def refused(source: io.BytesIO) -> FormatError:
    with pytest.raises(FormatError) as caught:
        read_upload(FILE, source)
    assert str(caught.value).startswith(f"{FILE}: ")
    return caught.value


@pytest.mark.parametrize("read", [read_upload, lambda name, data: read_apart(name, data)[0]])
def test_the_last_by_its_time_is_opened(cluster: Snapshot, read: Callable[[str, io.BytesIO], Snapshot]) -> None:
    """It was refused: zip one of them."""
    source = zipped({"c": at(cluster, 5), "a": at(cluster, 9), "b": at(cluster, 7)})
    found = read(FILE, source)
    assert snapshot_digest(found) == snapshot_digest(at(cluster, 9))
    assert note_on(source, FILE) == found.info.warnings[0]
    assert found.info.warnings[0] == (
        "The last of the 3 captures in the zip was opened: they are of 2027-01-15 08:05:00 UTC to 2027-01-15 08:09:00"
        " UTC; `python -m planner history ingest` makes a history of the zip, whose moments the button History opens."
    )


def test_of_two_at_one_moment_the_name_decides(cluster: Snapshot) -> None:
    source = zipped({"b": at(cluster, 9), "c": at(cluster, 9), "a": at(cluster, 9)})
    assert [one.folder for one in held_in(source, FILE)] == ["a", "b", "c"]
    assert note_on(source, FILE)


def test_a_single_one_has_no_note(cluster: Snapshot) -> None:
    assert held_in(zipped({"a": cluster}), FILE) == ()
    assert read_upload(FILE, zipped({"a": cluster})).info.warnings == cluster.info.warnings
    assert note_on(zipped({"a": cluster}), FILE) == note_on(io.BytesIO(b"{}"), FILE) == ""


def test_what_is_inside_another_one_does_not_count(cluster: Snapshot) -> None:
    source = zipped({"a": at(cluster, 1), "a/later": at(cluster, 9)})
    assert read_upload(FILE, source).info.captured_at_ms == START + 60_000


def test_depths_may_differ(cluster: Snapshot) -> None:
    source = zipped({"a": at(cluster, 1), "b/deeper": at(cluster, 9)})
    assert read_upload(FILE, source).info.captured_at_ms == START + 9 * 60_000


def test_of_different_clusters_it_is_refused_with_names(cluster: Snapshot) -> None:
    error = refused(
        zipped({"a": at(cluster, 1, "east"), "b": at(cluster, 2, "west\n\x1b[1m"), "c": at(cluster, 3, "east")})
    )
    assert error.what == "The zip contains 3 snapshots or captures of 2 clusters: 'a' of east, 'b' of west??[1m."
    assert error.remedy == "Zip those of one cluster."


def test_one_that_cannot_be_read_is_counted_apart(cluster: Snapshot) -> None:
    source = zipped({"a": at(cluster, 1), "b": at(cluster, 2)}, ("c/index.json", b"[{]"), ("d/manifest.json", b"[]"))
    found = read_upload(FILE, source)
    assert found.info.captured_at_ms == START + 2 * 60_000
    assert "The last of the 2 captures in the zip was opened (2 others cannot be read): they" in found.info.warnings[0]


@pytest.mark.parametrize("marks", [("manifest.json",) * 2, ("index.json",) * 2, ("manifest.json", "index.json")])
@pytest.mark.parametrize("content", [b"{}", b"[]", b"", b"\xff", b"1" * 5_000, b'{"info": {"captured_at_ms": 1e99}}'])
def test_where_none_has_a_time_it_is_refused(marks: Iterable[str], content: bytes) -> None:
    source = io.BytesIO()
    with zipfile.ZipFile(source, "w") as made:
        for folder, mark in zip("ab", marks, strict=True):
            made.writestr(f"{folder}/{mark}", content)
    assert "none says when it was captured: 'a', 'b'" in refused(source).what


def test_bytes_of_all_marks_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 3 << 20)
    source = io.BytesIO()
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as made:
        for folder in "abcd":
            made.writestr(f"{folder}/index.json", b"[" + b" " * (1 << 20))
    assert "unpacks to more than 3 MiB" in refused(source).what


def test_a_mark_that_unfolds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_RATIO_FREE_BYTES", 1 << 20)
    source = io.BytesIO()
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as made:
        for folder in "ab":
            made.writestr(f"{folder}/manifest.json", b"\0" * (8 << 20))
    assert "200 times its size" in refused(source).what


@pytest.mark.parametrize("name", ["../b/manifest.json", "/b/manifest.json", "b\\manifest.json"])
def test_names_that_lead_out_are_refused(cluster: Snapshot, name: str) -> None:
    assert "leads out of the zip" in refused(zipped({"a": cluster}, (name, b"{}"))).what


def test_each_is_read_for_a_history(cluster: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(zipped({"b": at(cluster, 1), "a": at(cluster, 2, "west")}, ("c/manifest.json", b"{")).getvalue())
    found = list(read_snapshots(path))
    assert isinstance(found[0], FormatError)
    assert [one.info.cluster for one in found if isinstance(one, Snapshot)] == [cluster.info.cluster, "west"]
    assert not any(one.info.warnings for one in found if isinstance(one, Snapshot))
    assert snapshot_of_moment(path, "west", START + 120_000).info.cluster == "west"
    with pytest.raises(FormatError, match="no longer holds this capture"):
        snapshot_of_moment(path, "west", START)


@pytest.mark.skipif(not CASE.is_file(), reason="the handed-out case is not here")
class TestCase:
    def test_the_last_of_thirteen_captures_is_opened(self) -> None:
        name, found = open_snapshot(str(CASE))
        assert name == CASE.name
        every = [one for one in read_snapshots(CASE) if isinstance(one, Snapshot)]
        assert len(every) == 13
        times = [one.info.captured_at_ms for one in every]
        assert times == sorted(times)
        assert snapshot_digest(found) == snapshot_digest(every[-1])
        assert (
            "The last of the 13 captures in the zip was opened: they are of 2026-11-25 02:41:45 UTC to"
            in (found.info.warnings[0])
        )

    def test_the_command_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["upgrade", "--snapshot", str(CASE), "--to", "4.2.4", "--json"]) == 0
        told = capsys.readouterr()
        assert "note: The last of the 13 captures in the zip was opened" in told.err
        json.loads(told.out)

    def test_outputs_read_the_same_one(self) -> None:
        with CASE.open("rb") as given:
            reading = read_given([Given(CASE.name, io.BytesIO(given.read()))])
        assert reading.snapshot is not None
        assert snapshot_digest(reading.snapshot) == snapshot_digest(read_snapshot(CASE))
        assert any("the last of the 13 captures in the zip was opened" in one for one in reading.not_used)
        with CASE.open("rb") as given:
            files = raw_capture_in(given, CASE.name)
        assert files is not None
        assert "index.json" in files
