"""What people upload that is no snapshot at all."""

import io
import os
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError
from planner.cluster.snapshot import Snapshot
from planner.formats.document import write_document
from planner.formats.reading import MAX_UPLOAD_BYTES, read_snapshot, read_upload


class Large(io.BytesIO):
    """A stream that says it holds 300 MB; reading it fails the test."""

    def seek(self, offset: int, whence: int = 0) -> int:
        return 300_000_000 if whence == io.SEEK_END else offset

    def tell(self) -> int:
        return 300_000_000

    def read(self, size: int | None = -1) -> Any:
        pytest.fail(f"{size} bytes were read")


def test_300_mb() -> None:
    with pytest.raises(FormatError, match=r"^big\.zip: The file has 300 MB; the maximum is 250 MB") as caught:
        read_upload("big.zip", Large())
    assert "leave out the topics" in caught.value.remedy


def test_the_limit_can_be_changed(cluster: Snapshot) -> None:
    data = write_document(cluster).encode()
    assert len(data) < MAX_UPLOAD_BYTES
    read_upload("x.json", io.BytesIO(data), max_bytes=len(data))
    with pytest.raises(FormatError, match="the maximum is"):
        read_upload("x.json", io.BytesIO(data), max_bytes=len(data) - 1)


@pytest.mark.parametrize(
    "name", ["x.json", "x.zip", "../../etc/passwd", "C:\\Users\\me\\x.json", "", "a" * 5_000, "<b>.json"]
)
def test_the_name_says_nothing(cluster: Snapshot, name: str) -> None:
    data = write_document(cluster).encode()
    assert snapshot_digest(read_upload(name, io.BytesIO(data))) == snapshot_digest(cluster)
    with pytest.raises(FormatError) as caught:
        read_upload(name, io.BytesIO(b"{"))
    assert len(caught.value.where) <= 120
    assert "/" not in caught.value.where


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18, b"\x1f\x8b\x08\x00", b"%PDF-1.7", b"\0" * 99]
)
def test_other_files(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        read_upload("x", io.BytesIO(data))
    assert caught.value.remedy


def test_the_stream_may_stand_anywhere(cluster: Snapshot) -> None:
    stream = io.BytesIO(write_document(cluster).encode())
    stream.read()
    assert snapshot_digest(read_upload("x.json", stream)) == snapshot_digest(cluster)


class TestPaths:
    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match="There is no such file or folder"):
            read_snapshot(tmp_path / "nowhere")

    def test_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match=r"neither a manifest\.json .* nor an index\.json"):
            read_snapshot(tmp_path)

    def test_part_of_a_snapshot(self, tmp_path: Path) -> None:
        (tmp_path / "bundles.parquet").write_bytes(b"PAR1")
        with pytest.raises(FormatError, match=r"manifest\.json is missing"):
            read_snapshot(tmp_path)

    def test_part_of_a_capture(self, tmp_path: Path) -> None:
        (tmp_path / "load-report.b1.json").write_text("{}")
        with pytest.raises(FormatError, match=r"part of a raw capture, but index\.json is missing"):
            read_snapshot(tmp_path)

    def test_a_pipe_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FormatError, match="There is no such file"):
            read_snapshot(tmp_path / "pipe")

    def test_folder_with_one_document(self, tmp_path: Path, cluster: Snapshot) -> None:
        (tmp_path / "mine.json").write_text(write_document(cluster))
        assert snapshot_digest(read_snapshot(tmp_path)) == snapshot_digest(cluster)

    def test_unreadable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise PermissionError(13, "Permission denied")

        (tmp_path / "x.json").write_text("{}")
        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(FormatError, match="It cannot be read: Permission denied"):
            read_snapshot(tmp_path / "x.json")
