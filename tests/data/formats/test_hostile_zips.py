"""Zips that lie, lead astray or never end."""

import contextlib
import io
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError
from planner.cluster.snapshot import Snapshot
from planner.formats import archive
from planner.formats.archive import read_zip, write_zip
from planner.formats.folder import parts_of_snapshot
from planner.formats.reading import read_snapshot, read_upload

MARKS = ("manifest.json",)


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as made:
        for name, data in members:
            made.writestr(name, data)
    return target


def refused(source: io.BytesIO) -> str:
    with pytest.raises(FormatError) as caught:
        read_zip(source, "up.zip", MARKS)
    assert str(caught.value).startswith("up.zip: ")
    assert caught.value.remedy
    return caught.value.what


@pytest.mark.parametrize(
    "name",
    [
        "../manifest.json",
        "a/../../manifest.json",
        "/etc/manifest.json",
        "C:/x/manifest.json",
        "..\\manifest.json",
        "a/..",
    ],
)
def test_names_that_lead_out(name: str) -> None:
    assert "leads out of the zip" in refused(zipped(("manifest.json", b"{}"), (name, b"x")))


def test_names_with_control_characters() -> None:
    assert "not have a valid name" in refused(zipped(("mani\nfest.json", b"{}")))
    data = zipped(("manifestX.json", b"{}")).getvalue().replace(b"manifestX.json", b"manifest\x00.text")
    assert "not have a valid name" in refused(io.BytesIO(data))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices(kind: int) -> None:
    info = zipfile.ZipInfo("manifest.json")
    info.external_attr = (kind | 0o777) << 16
    assert "link or a device" in refused(zipped((info, b"/etc/passwd")))


def test_encrypted() -> None:
    data = bytearray(zipped(("manifest.json", b"{}")).getvalue())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    assert "encrypted" in refused(io.BytesIO(bytes(data)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["manifest.json", "./manifest.json"])
def test_repeated_names(second: str) -> None:
    assert "occurs twice" in refused(zipped(("manifest.json", b"{}"), (second, b"[]")))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_rare_compression(method: int) -> None:
    assert "unsupported compression method" in refused(zipped(("manifest.json", b"{}"), method=method))


def test_bomb_by_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_RATIO_FREE_BYTES", 1 << 20)
    assert "200 times its size" in refused(zipped(("manifest.json", b"\0" * (8 << 20))))


def test_bomb_by_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 3 << 20)
    members = [(f"{i}.json", b"ab" * (1 << 19)) for i in range(4)]
    assert "unpacks to more than 3 MiB" in refused(zipped(("manifest.json", b"{}"), *members))


def test_bomb_that_understates_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1 << 20)
    size = 8 << 20
    data = zipped(("manifest.json", b"\0" * size)).getvalue().replace(struct.pack("<L", size), struct.pack("<L", 2))
    refused(io.BytesIO(data))  # by the check sum, or by the count: never 8 MiB


def test_members_are_never_larger_in_memory_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is kept while unpacking, not afterwards."""
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 2 << 20)
    read: list[int] = []
    whole = zipfile.ZipExtFile.read

    def counted(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        data = whole(self, n)
        read.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    refused(zipped(("manifest.json", b"\0" * (64 << 20))))
    assert sum(read) <= 4 << 20


def test_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 20)
    assert "21 members" in refused(zipped(*[(f"{i}", b"") for i in range(21)]))


def test_endless_table_of_contents() -> None:
    data = bytearray(zipped(("manifest.json", b"{}")).getvalue())
    at = data.rindex(b"PK\x05\x06")
    data[at + 12 : at + 16] = struct.pack("<L", 1 << 30)
    assert "members or long names" in refused(io.BytesIO(bytes(data)))


def test_zip64_is_not_needed() -> None:
    data = zipped(("manifest.json", b"{}")).getvalue()
    at = data.rindex(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    assert "4 GiB" in refused(io.BytesIO(data[:at] + locator + data[at:]))


@pytest.mark.parametrize("keep", [4, 30, 200, -1, -22, -30])
def test_truncated(cluster: Snapshot, keep: int) -> None:
    whole = io.BytesIO()
    write_zip(cluster, whole)
    assert "zip is not complete" in refused(io.BytesIO(whole.getvalue()[:keep]))


def test_flipped_bits(cluster: Snapshot) -> None:
    whole = zipped(*parts_of_snapshot(cluster).items()).getvalue()
    for at in range(10, len(whole), len(whole) // 60):
        data = bytearray(whole)
        data[at] ^= 0x10
        with contextlib.suppress(FormatError):  # any other error fails the test
            read_upload("up.zip", io.BytesIO(bytes(data)))


def test_empty() -> None:
    assert "empty" in refused(zipped())
    assert "empty" in refused(zipped(("folder/", b"")))


def test_zip_in_a_zip(cluster: Snapshot) -> None:
    inner = io.BytesIO()
    write_zip(cluster, inner)
    assert "contains another zip" in refused(zipped(("inner.zip", inner.getvalue())))


def test_several_snapshots() -> None:
    assert "2 snapshots or captures: 'a', 'b'" in refused(
        zipped(("a/manifest.json", b"{}"), ("b/manifest.json", b"{}"))
    )


@pytest.mark.parametrize("prefix", ["", "my snapshot/", "a/b/c/", "./"])
def test_a_folder_around_the_snapshot_is_fine(cluster: Snapshot, prefix: str) -> None:
    extra = [
        ("__MACOSX/._manifest.json", b"\0"),
        (f"{prefix}.DS_Store", b"\0"),
        (f"{prefix}deeper/manifest.json", b"{"),
    ]
    members = [(f"{prefix}{name}", data) for name, data in parts_of_snapshot(cluster).items()]
    assert snapshot_digest(read_upload("x.zip", zipped(*members, *extra))) == snapshot_digest(cluster)


def test_from_a_file(cluster: Snapshot, tmp_path: Path, capture: Callable[[str], dict[str, bytes]]) -> None:
    with (tmp_path / "s.zip").open("wb") as target:
        write_zip(cluster, target)
    assert snapshot_digest(read_snapshot(tmp_path / "s.zip")) == snapshot_digest(cluster)
    raw = zipped(*[(f"modular/{name}", data) for name, data in capture("modular").items()])
    (tmp_path / "raw.zip").write_bytes(raw.getvalue())
    assert len(read_snapshot(tmp_path / "raw.zip").brokers) == 3
