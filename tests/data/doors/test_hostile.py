"""Whatever is in a file: a reading, or one error of the family; nothing else, and not for ever."""

import gzip
import io
import random
import tarfile
import time
import zipfile
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Literal

import pytest

from planner.cluster.errors import FormatError, PlannerError
from planner.doors.apart import read_outputs_apart
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

INPUTS = sorted((Path(__file__).parent / "inputs").glob("*/*"))
SPLICED = (b"{", b"}", b"[", b'"', b"\n", b"\x00", b"NaN", b"-1", b"1e400", b"\xff\xfe", b"null", b"\\u0000")


def damaged(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(draw.randint(1, 6)):
        if not made:
            break
        at, kind = draw.randrange(len(made)), draw.randrange(7)
        other = draw.choice(INPUTS).read_bytes()
        if kind == 0:
            made[at] = draw.randrange(256)
        elif kind == 1:
            del made[at : at + draw.randint(1, 40)]
        elif kind == 2:
            made[at:at] = made[at : at + draw.randint(1, 60)]
        elif kind == 3:
            del made[at:]
        elif kind == 4:
            made[at:at] = draw.choice(SPLICED)
        elif kind == 5:
            made[at:at] = other[: draw.randint(1, 300)]
        else:
            made += other
    return bytes(made)


@pytest.mark.parametrize("seed", range(8))
def test_damaged_outputs(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - the same files again
    for _ in range(60):
        files = [draw.choice(INPUTS) for _ in range(draw.randint(1, 4))]
        given = [Given(one.name, io.BytesIO(damaged(one.read_bytes(), draw))) for one in files]
        with suppress(PlannerError):
            assert "SECRET" not in repr(read_given(given, now_ms=1795225800000))


def one(data: bytes, name: str = "x") -> list[str]:
    reading = read_given([Given(name, io.BytesIO(data))])
    assert reading.snapshot is None
    return list(reading.not_used)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a picture, not text"),
        (b"[" * 200_000, "x: "),
        (b'{"a":' * 100_000, "x: "),
        (b"{}", "empty object"),
        (b"[]", "empty list"),
        (b'{"cpu": {"usage": 1e999, "limit": 1}, "lastStats": {}}', "too large"),
        (b"\xff\xfe\x00", "UTF-16"),
        (gzip.compress(b"x" * 40_000_000), "unpacks to too much"),
        (gzip.compress(b"persistent://a/b/c\n" * 100)[:-20], "truncated"),
        (b"PK\x03\x04broken", "zip"),
        (b"<html><head><title>Sign in</title></head></html>", "unknown kind"),
        (b'{"status": "error", "error": "query timed out"}', "query timed out"),
    ],
    ids=range(13),
)
def test_what_is_no_output_is_named(data: bytes, said: str) -> None:
    assert said in "\n".join(one(data))


def test_a_zip_bomb_and_a_zip_in_a_zip() -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\x00" * 60_000_000)
    assert "unpacks to over" in one(inner.getvalue())[0]
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("reports.txt", (INPUTS[0].parent.parent / "load_report/two_in_a_row_3_3.txt").read_bytes())
        archive.writestr("inner.zip", inner.getvalue())
    reading = read_given([Given("outer.zip", outer)])
    assert reading.snapshot is not None
    assert any("outer.zip: inner.zip" in text for text in reading.not_used)


def test_zips_inside_each_other_end() -> None:
    data = b"persistent://a/b/c\n"
    for _ in range(40):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr("x", data)
        data = sink.getvalue()
    assert any("archives" in text for text in one(data))


def tarred(mode: Literal["w", "w:gz"], *members: tuple[str, bytes, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), "x" if kind == tarfile.SYMTYPE else ""
            archive.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def test_a_tar_is_read_like_a_zip() -> None:
    report = (INPUTS[0].parent.parent / "load_report/two_in_a_row_3_3.txt").read_bytes()
    plain = read_given([Given("reports.txt", io.BytesIO(report))])
    coloured = report.replace(b'"cpu"', b'\x1b[34;1m"cpu"\x1b[0m')
    members = [
        ("out", tarfile.DIRTYPE, b""),
        ("out/._reports.txt", tarfile.REGTYPE, b"\x00\x05\x16\x07"),
        ("out/reports.txt", tarfile.REGTYPE, coloured),
    ]
    modes: tuple[Literal["w", "w:gz"], ...] = ("w", "w:gz")
    for mode in modes:
        reading = read_given([Given("out.tar", io.BytesIO(tarred(mode, *members)))])
        assert reading.found == plain.found
        assert not reading.not_used
        assert reading.snapshot is not None
        assert plain.snapshot is not None
        assert reading.snapshot.brokers.name == plain.snapshot.brokers.name


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (("../out", tarfile.REGTYPE, b"x"), "does not have a valid name"),
        (("/etc/passwd", tarfile.REGTYPE, b"x"), "does not have a valid name"),
        (("out", tarfile.SYMTYPE, b""), "is a link or a device"),
        (("out", tarfile.FIFOTYPE, b""), "is a link or a device"),
    ],
)
def test_a_tar_that_leads_elsewhere_is_refused(member: tuple[str, bytes, bytes], said: str) -> None:
    assert said in one(tarred("w", member))[0]


def test_a_damaged_tar() -> None:
    whole = tarred("w", ("a", tarfile.REGTYPE, b"x" * 5_000))
    assert "tar is damaged" in one(whole[:2_000])[0]


def test_one_damaged_report_leaves_the_others() -> None:
    good = (INPUTS[0].parent.parent / "load_report/pretty_4_0.json").read_bytes()
    bad = good.replace(b"mq-0", b"mq-9").replace(b'"usage": 420.0', b'"usage": "much"')
    reading = read_given([Given("good.json", io.BytesIO(good)), Given("bad.json", io.BytesIO(bad))])
    assert reading.snapshot is not None
    assert list(reading.snapshot.brokers.name) == ["mq-0.mq.east.svc:8080"]
    assert any("bad.json: load report" in text and "cpu.usage" in text for text in reading.not_used)


def test_a_process_of_its_own_reads_the_same_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("load_report/two_in_a_row_3_3.txt", "settings_file/broker_4_0.conf")
    files = [(name, (INPUTS[0].parent.parent / name).read_bytes()) for name in names]
    here = read_given([Given(name, io.BytesIO(data)) for name, data in files])
    there = read_outputs_apart([Given(name, io.BytesIO(data)) for name, data in files])
    assert here.snapshot is not None
    assert there.snapshot is not None
    assert (here.snapshot.info, here.snapshot.settings) == (there.snapshot.info, there.snapshot.settings)
    parts = {one.name for one in fields(Reading)} - {"snapshot"}
    assert {part: getattr(here, part) for part in parts} == {part: getattr(there, part) for part in parts}
    monkeypatch.setattr("planner.doors.apart.MOST_CPU_S", 1)
    long = b"\n".join(b"persistent://a/b/c%d" % at for at in range(2_000_000))
    with pytest.raises(FormatError, match="takes more than 1 s to read"):
        read_outputs_apart([Given("long.txt", io.BytesIO(long))])


@pytest.mark.parametrize(
    "line", ["== a{}b", "|a{}b|", "a{}b)", "-e {}a=b", "* {}x", "> {}x", "a@{}b", "p{}NamespaceIsolation"]
)
@pytest.mark.parametrize("filled", [" ", "=", "a.", "{a=", "- "])
def test_long_lines_take_no_time(line: str, filled: str) -> None:
    """Each pattern reads a line once: 200,000 blanks took hours."""
    started = time.process_time()
    one(line.format(filled * 100_000).encode())
    assert time.process_time() - started < 5
