"""Uploads are read in a process of its own: the same answers, and no file takes the server's memory or time."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, PlannerError, SnapshotError
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.formats import apart
from planner.formats.archive import write_zip
from planner.formats.document import snapshot_of_document, write_document
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.formats.reading import read_upload
from planner.formats.validate import validate

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "captures"


def refused(data: bytes, name: str = "x.json") -> PlannerError:
    with pytest.raises(PlannerError) as caught:
        apart.read_apart(name, io.BytesIO(data))
    return caught.value


def test_every_form_is_read_as_in_this_process(cluster: Snapshot) -> None:
    policies = Policies(isolation=(IsolationPolicy("p", ("a.*",), ("b",)),), anti_affinity_group={"acme/a": "g"})
    info = replace(cluster.info, warnings=("one", "two"), description="what\nthere is")
    cluster = replace(cluster, policies=policies, info=info)
    zipped = io.BytesIO()
    write_zip(cluster, zipped)
    for data in (zipped, io.BytesIO(write_document(cluster).encode()), (GOLDENS / "extensible.zip").open("rb")):
        with data:
            here = read_upload("x", data)
            there, _ = apart.read_apart("x", data)
        assert snapshot_digest(here) == snapshot_digest(there)
        assert (here.info, here.settings, here.policies) == (there.info, there.settings, there.policies)
        validate(there)


def test_errors_are_told_as_in_this_process() -> None:
    broken = json.dumps({"format": "pulsar-bundle-planner document", "version": 1, "brokers": [{}, {"name": 1}]})
    for data in (b"", b"{", broken.encode(), b"PK\x03\x04"):
        with pytest.raises(PlannerError) as caught:
            read_upload("x.json", io.BytesIO(data))
        error = refused(data)
        assert (type(error), str(error)) == (type(caught.value), str(caught.value))
        if isinstance(error, SnapshotError) and isinstance(caught.value, SnapshotError):
            assert (error.violations, error.total) == (caught.value.violations, caught.value.total)


def test_memory(cluster: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_document(cluster).encode()
    monkeypatch.setattr(apart, "MOST_BYTES", 400 << 20)
    wide = b'{"format": [' + b'"abcdefgh",' * 5_500_000 + b"1]}"
    assert refused(wide).what in {
        "Not enough memory to read it.",
        "The file needs more than 400 MiB of memory to read.",
    }
    assert snapshot_digest(apart.read_apart("x.json", io.BytesIO(data))[0]) == snapshot_digest(cluster)


def test_time(monkeypatch: pytest.MonkeyPatch) -> None:
    many = ",".join(f'{{"name": "persistent://t/n/{i}"}}' for i in range(1_500_000))
    head = '{"format": "pulsar-bundle-planner document", "version": 1, "topics": ['
    monkeypatch.setattr(apart, "MOST_CPU_S", 1)
    error = refused(f"{head}{many}]}}".encode())
    assert error.what == "The file takes more than 1 s to read."
    assert error.remedy == "Capture fewer namespaces, or leave out the topics."
    monkeypatch.setattr(apart, "_PATIENCE_S", 0.01)
    assert refused(b"{}").what == "The file takes more than 1 s to read."


def test_the_process_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_TOKEN", "secret")
    assert "secret" not in str(apart._environment())


def test_memory_that_arrow_lacks_is_no_damage(cluster: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    zipped = io.BytesIO()
    write_zip(cluster, zipped)
    monkeypatch.setattr("planner.formats.rows._one", fail)
    with pytest.raises(FormatError, match="Not enough memory"):
        read_upload("x.zip", zipped)


class TestBounds:
    """What is counted before it is unfolded or worded."""

    def test_lists(self) -> None:
        with pytest.raises(FormatError, match="6,000,001 lists and objects; the maximum is 5,000,000"):
            snapshot_of_document(b"[" + b"[]," * 6_000_000 + b"0]", "x.json")

    def test_size_of_a_document(self) -> None:
        with pytest.raises(FormatError, match=r"65 MB; the maximum is 64 MB.*Use a snapshot"):
            snapshot_of_document(b" " * 65_000_000, "x.json")

    def test_rows_of_a_document(self) -> None:
        data = b'{"format": "pulsar-bundle-planner document", "version": 1, "brokers": [' + b"{}," * 20_000 + b"{}]}"
        with pytest.raises(FormatError, match="20,001 brokers; the maximum is 20,000"):
            snapshot_of_document(data, "x.json")

    def test_policies(self, cluster: Snapshot) -> None:
        one = IsolationPolicy("p", ("a.*",), ("b",))
        many = replace(one, primary=tuple(f"b{i}" for i in range(10_000)))
        for isolation, said in (((one,) * 1_001, "there are 1,001"), ((many,), "have 10,001 expressions")):
            with pytest.raises(SnapshotError, match=said):
                validate(replace(cluster, policies=Policies(isolation=isolation)))

    def test_brokers_of_a_capture(self) -> None:
        index = [{"file": f"owned.b{i}.json"} for i in range(20_001)]
        with pytest.raises(FormatError, match="covers 20,001 brokers"):
            snapshot_of_capture({"index.json": json.dumps(index).encode()})
