"""Snapshot folders that are not what they claim to be."""

import contextlib
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, SnapshotError
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_topics
from planner.formats import folder
from planner.formats.folder import parts_of_snapshot, snapshot_of_parts, write_folder
from planner.formats.reading import read_snapshot, read_upload


@pytest.fixture
def path(cluster: Snapshot, tmp_path: Path) -> Path:
    write_folder(cluster, tmp_path / "s")
    return tmp_path / "s"


def edit_manifest(path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    manifest.pop("digest", None)  # as one that another tool, or an earlier version, wrote
    edit(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def edit_part(path: Path, part: str, edit: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    """Change a table and tell the manifest, as somebody with other tools might."""
    file = path / f"{part}.parquet"
    table = edit(pq.ParquetFile(file).read())
    pq.write_table(table, file, **options)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    edit_manifest(path, lambda m: m["parts"][part].update(sha256=sha256, rows=table.num_rows))


def cast(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.set_column(t.column_names.index(name), name, t[name].cast(kind))


def put(name: str, values: pa.Array) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.set_column(t.column_names.index(name), name, values)


class TestManifest:
    def test_missing(self, path: Path) -> None:
        (path / "manifest.json").unlink()
        with pytest.raises(FormatError, match=r"manifest\.json is missing"):
            read_snapshot(path)

    def test_unknown_version(self, path: Path) -> None:
        edit_manifest(path, lambda m: m.update(version=2))
        with pytest.raises(FormatError, match=r"manifest\.json: .* format version 2; this planner reads 1"):
            read_snapshot(path)

    def test_of_something_else(self, path: Path) -> None:
        edit_manifest(path, lambda m: m.update(format="docker"))
        with pytest.raises(FormatError, match="not the manifest of a snapshot"):
            read_snapshot(path)

    @pytest.mark.parametrize(
        ("edit", "place"),
        [
            (lambda m: m["info"].pop("cluster"), "manifest.json: info: cluster"),
            (lambda m: m["info"].update(captured_at_ms="now"), "info: captured_at_ms"),
            (lambda m: m["info"].update(captured_at_ms=True), "info: captured_at_ms"),
            (lambda m: m["info"].update(load_manager="simple"), "info: load_manager"),
            (lambda m: m["info"].update(colour="red"), "info: colour"),
            (lambda m: m["info"].update(warnings=["x", 5]), r"info: warnings\[2\]"),
            (lambda m: m.update(extra=1), "manifest.json: extra"),
            (lambda m: m["parts"].pop("bundles"), "parts.bundles"),
            (lambda m: m["parts"]["brokers"].update(rows=-1), "parts.brokers.rows"),
            (lambda m: m["parts"]["brokers"].update(sha256="../x"), "parts.brokers.sha256"),
            (
                lambda m: m.update(settings={"loadBalancerEnabledd": True}),
                "settings.loadBalancerEnabledd: .* Did you mean",
            ),
            (lambda m: m.update(settings={"loadBalancerEnabled": {}}), "settings.loadBalancerEnabled"),
            (lambda m: m.update(policies={"isolation": [{"name": "x"}]}), r"policies: isolation\[1\].namespaces"),
            (lambda m: m.update(policies={"failure_domains": {"d": "b"}}), "policies: failure_domains.d"),
            (lambda m: m.update(policies={"dispatch_rates": [{"kind": "publish"}]}), "dispatch_rates"),
        ],
    )
    def test_odd_fields_are_named(self, path: Path, edit: Callable[[dict[str, Any]], Any], place: str) -> None:
        edit_manifest(path, edit)
        with pytest.raises(FormatError, match=place):
            read_snapshot(path)


class TestParts:
    def test_changed_content(self, path: Path) -> None:
        data = bytearray((path / "bundles.parquet").read_bytes())
        data[len(data) // 2] ^= 1
        (path / "bundles.parquet").write_bytes(bytes(data))
        with pytest.raises(FormatError, match=r"^bundles\.parquet: .*SHA-256"):
            read_snapshot(path)

    def test_missing(self, path: Path) -> None:
        (path / "topics.parquet").unlink()
        with pytest.raises(FormatError, match=r"^topics\.parquet: .*missing"):
            read_snapshot(path)

    def test_rows_of_the_manifest(self, path: Path) -> None:
        edit_manifest(path, lambda m: m["parts"]["topics"].update(rows=31))
        with pytest.raises(FormatError, match=r"The file has 30 rows; manifest\.json lists 31"):
            read_snapshot(path)

    @pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"<html>"])
    def test_no_parquet(self, path: Path, content: bytes) -> None:
        (path / "brokers.parquet").write_bytes(content)
        edit_manifest(path, lambda m: m["parts"]["brokers"].update(sha256=hashlib.sha256(content).hexdigest()))
        with pytest.raises(FormatError, match=r"^brokers\.parquet: Not a readable Parquet file"):
            read_snapshot(path)

    def test_truncated(self, path: Path) -> None:
        content = (path / "topics.parquet").read_bytes()[:-40]
        (path / "topics.parquet").write_bytes(content)
        edit_manifest(path, lambda m: m["parts"]["topics"].update(sha256=hashlib.sha256(content).hexdigest()))
        with pytest.raises(FormatError, match="Not a readable Parquet file"):
            read_snapshot(path)

    def test_pages_that_do_not_decode(self, path: Path) -> None:
        content = bytearray((path / "brokers.parquet").read_bytes())
        content[40:400] = b"\x00" * 360
        (path / "brokers.parquet").write_bytes(bytes(content))
        edit_manifest(path, lambda m: m["parts"]["brokers"].update(sha256=hashlib.sha256(content).hexdigest()))
        with pytest.raises((FormatError, SnapshotError)):
            read_snapshot(path)

    def test_too_many_rows(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folder, "MAX_ROWS", {"brokers": 2, "bundles": 9, "topics": 99})
        with pytest.raises(FormatError, match=r"brokers\.parquet: The file has 3 rows; the maximum is 2"):
            read_snapshot(path)

    def test_too_large_unpacked(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folder, "MAX_UNPACKED_BYTES", 1_000)
        with pytest.raises(FormatError, match="unpacks to more than"):
            read_snapshot(path)


class TestColumns:
    def test_unknown(self, path: Path) -> None:
        edit_part(path, "bundles", lambda t: t.append_column("colour", t["low"]))
        with pytest.raises(SnapshotError, match=r"bundles\.parquet: The column 'colour' is unknown"):
            read_snapshot(path)

    def test_missing(self, path: Path) -> None:
        edit_part(path, "bundles", lambda t: t.drop_columns(["high"]))
        with pytest.raises(SnapshotError, match=r"bundles\.parquet: The column 'high' is missing"):
            read_snapshot(path)

    def test_twice(self, path: Path) -> None:
        edit_part(path, "brokers", lambda t: t.append_column("topics", t["topics"]))
        with pytest.raises((SnapshotError, FormatError), match="brokers"):
            read_snapshot(path)

    def test_those_with_a_default_may_be_absent(self, path: Path, cluster: Snapshot) -> None:
        edit_part(path, "topics", lambda t: t.select(["name"]))
        read = read_snapshot(path)
        assert read.topics.bundle.tolist() == cluster.topics.bundle.tolist()
        assert read.topics.hash.tolist() == cluster.topics.hash.tolist()
        assert not read.topics.msg_rate_in_per_s.any()

    @pytest.mark.parametrize(
        ("part", "name", "kind"),
        [
            ("bundles", "low", pa.string()),
            ("bundles", "low", pa.float64()),
            ("bundles", "msg_rate_in_per_s", pa.string()),
            ("bundles", "has_stats", pa.int8()),
            ("topics", "producers", pa.float32()),
            ("brokers", "topics", pa.timestamp("ms")),
            ("topics", "name", pa.large_binary()),
        ],
    )
    def test_of_another_type(self, path: Path, part: str, name: str, kind: pa.DataType) -> None:
        edit_part(path, part, cast(name, kind))
        with pytest.raises(SnapshotError, match=rf"{part}\.parquet: The column '{name}' has type .* not "):
            read_snapshot(path)

    @pytest.mark.parametrize(
        ("part", "edit"),
        [
            ("bundles", cast("owner", pa.string())),
            ("bundles", cast("namespace", pa.large_string())),
            ("brokers", cast("name", pa.string())),
            ("topics", cast("producers", pa.int64())),
            ("topics", cast("msg_rate_in_per_s", pa.int64())),
            ("bundles", cast("low", pa.uint32())),
        ],
    )
    def test_as_other_tools_write_them(
        self, path: Path, cluster: Snapshot, part: str, edit: Callable[[pa.Table], pa.Table]
    ) -> None:
        whole = edit_rates(cluster)
        write_folder(whole, path)
        edit_part(path, part, edit, row_group_size=7)
        assert snapshot_digest(read_snapshot(path)) == snapshot_digest(whole)

    def test_number_that_does_not_fit(self, path: Path) -> None:
        edit_part(path, "topics", put("producers", pa.array([1 << 40] * 30)))
        with pytest.raises(SnapshotError, match="'producers' cannot be read"):
            read_snapshot(path)

    @pytest.mark.parametrize(("part", "name"), [("bundles", "topics"), ("brokers", "name"), ("bundles", "namespace")])
    def test_empty_cell(self, path: Path, part: str, name: str) -> None:
        def empty(table: pa.Table) -> pa.Table:
            values = table[name].to_pylist()
            values[1] = None
            return put(name, pa.array(values))(table)

        edit_part(path, part, empty)
        with pytest.raises(SnapshotError, match=rf"{part}\.parquet, row 2: '{name}' is empty"):
            read_snapshot(path)

    def test_empty_owner_is_none(self, path: Path, cluster: Snapshot) -> None:
        edit_part(path, "bundles", put("owner", pa.nulls(8, pa.string())))
        assert set(read_snapshot(path).bundles.owner.tolist()) == {-1}
        assert set(cluster.bundles.owner.tolist()) != {-1}

    def test_owner_that_is_no_broker(self, path: Path) -> None:
        def strange(table: pa.Table) -> pa.Table:
            owners = table["owner"].to_pylist()
            owners[6] = "gone:8080"
            return put("owner", pa.array(owners))(table)

        edit_part(path, "bundles", strange)
        with pytest.raises(SnapshotError, match=r"bundles\.parquet, row 7: The owner 'gone:8080' is not one"):
            read_snapshot(path)

    def test_nan(self, path: Path) -> None:
        rates = np.ones(8)
        rates[3] = np.nan
        edit_part(path, "bundles", put("msg_rate_in_per_s", pa.array(rates)))
        with pytest.raises(SnapshotError, match=r"bundles\.parquet, row 4: 'msg_rate_in_per_s' is nan"):
            read_snapshot(path)

    def test_hash_that_is_not_of_the_name(self, path: Path) -> None:
        edit_part(path, "topics", lambda t: put("hash", pc.bit_wise_xor(t["hash"], pa.scalar(1, pa.uint32())))(t))
        with pytest.raises(SnapshotError, match=r"topics\.parquet, row 1: The hash of '.*' is 0x") as caught:
            read_snapshot(path)
        assert caught.value.total == 30

    def test_text_that_is_not_utf8(self, path: Path) -> None:
        broken = pa.Array.from_buffers(
            pa.large_string(), 30, [None, pa.array(range(31), pa.int64()).buffers()[1], pa.py_buffer(b"\xff" * 30)]
        )
        edit_part(path, "topics", put("name", broken))
        with pytest.raises(SnapshotError, match="'name' cannot be read"):
            read_snapshot(path)

    def test_texts_that_unfold_without_end(self, path: Path) -> None:
        for length, rows, said in (
            (4_000, 200_000, "unpacks to 762 MiB"),
            (8 << 20, 300, "the maximum for a name is 4,096"),
        ):
            indices = pa.array(np.zeros(rows, np.int32))
            table = pa.table({"name": pa.DictionaryArray.from_arrays(indices, pa.array(["x" * length]))})
            pq.write_table(table, path / "topics.parquet", compression="zstd")
            content = (path / "topics.parquet").read_bytes()
            assert len(content) < 100_000
            told = {"sha256": hashlib.sha256(content).hexdigest(), "rows": rows}
            edit_manifest(path, partial(self.tell, told))
            self.refused(path, said)

    @pytest.mark.parametrize(
        "kind", [pa.list_(pa.string()), pa.struct([("a", pa.string())]), pa.map_(pa.int8(), pa.int8())]
    )
    @pytest.mark.parametrize(("part", "name"), [("topics", "name"), ("brokers", "version"), ("bundles", "namespace")])
    def test_nested(self, path: Path, part: str, name: str, kind: pa.DataType) -> None:
        def nest(table: pa.Table) -> pa.Table:
            at = table.column_names.index(name)
            return table.set_column(at, name, pa.nulls(table.num_rows, kind))

        edit_part(path, part, nest)
        self.refused(path, f"The column '{name}' has type")

    @staticmethod
    def tell(told: dict[str, Any], manifest: Any) -> None:
        manifest["parts"]["topics"].update(told)

    @staticmethod
    def refused(path: Path, said: str) -> None:
        with pytest.raises(SnapshotError, match=said):
            read_as_upload(path)

    def test_texts_whose_size_cannot_be_told(self, path: Path) -> None:
        edit_part(path, "topics", lambda t: t, use_dictionary=False, column_encoding={"name": "DELTA_BYTE_ARRAY"})
        with pytest.raises(FormatError, match=r"topics\.parquet: .*DeltaByteArray.* texts plain or dictionary-encoded"):
            read_as_upload(path)
        read_snapshot(path)  # one's own folder

    def test_uploads_without_optional_texts(self, path: Path) -> None:
        edit_part(path, "brokers", lambda t: t.select(["name", "topics"]))
        edit_part(path, "bundles", lambda t: t.select(["namespace", "low", "high"]))
        assert set(read_as_upload(path).bundles.owner.tolist()) == {-1}

    @pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "none"}, {"row_group_size": 3}])
    def test_uploads_of_other_tools(self, path: Path, cluster: Snapshot, options: dict[str, Any]) -> None:
        for part in ("brokers", "bundles", "topics"):
            edit_part(path, part, lambda t: t, **options)
        assert snapshot_digest(read_as_upload(path)) == snapshot_digest(cluster)


def test_damaged_metadata_does_not_end_the_process(cluster: Snapshot) -> None:
    """Reading metadata of a column aborts in pyarrow 26 when its statistics are damaged; reading its data does not."""
    parts = parts_of_snapshot(cluster)
    pick = random.Random(1)  # noqa: S311 - a reproducible choice
    for _ in range(400):
        part = pick.choice(["brokers", "bundles", "topics"])
        data = bytearray(parts[f"{part}.parquet"])
        data[pick.randrange(len(data) - 3_000, len(data))] ^= 1 << pick.randrange(8)
        manifest = json.loads(parts["manifest.json"])
        manifest.pop("digest", None)
        manifest["parts"][part]["sha256"] = hashlib.sha256(data).hexdigest()
        with contextlib.suppress(FormatError, SnapshotError):  # any other error fails the test
            changed = {f"{part}.parquet": bytes(data), "manifest.json": json.dumps(manifest).encode()}
            snapshot_of_parts({**parts, **changed}, trusted=pick.random() < 0.5)


def read_as_upload(path: Path) -> Snapshot:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for file in path.iterdir():
            archive.write(file, file.name)
    return read_upload("up.zip", target)


def edit_rates(cluster: Snapshot) -> Snapshot:
    """Return the cluster with whole rates of topics, so that integers hold them."""
    rates = np.floor(cluster.topics.msg_rate_in_per_s)
    columns = {c: getattr(cluster.topics, c) for c in ("hash", "name", "bundle")}
    return Snapshot(
        cluster.info,
        cluster.settings,
        cluster.brokers,
        cluster.namespaces,
        cluster.bundles,
        make_topics(**columns, msg_rate_in_per_s=rates),
    )


class TestWriting:
    def test_in_place_of_another_snapshot(self, path: Path, cluster: Snapshot) -> None:
        (path / "notes.txt").write_text("mine")
        bare = Snapshot(
            cluster.info, cluster.settings, cluster.brokers, cluster.namespaces, cluster.bundles, make_topics()
        )
        write_folder(bare, path)
        assert snapshot_digest(read_snapshot(path)) == snapshot_digest(bare)
        assert {p.name for p in path.iterdir()} == {"manifest.json", "brokers.parquet", "bundles.parquet", "notes.txt"}

    def test_not_over_something_else(self, cluster: Snapshot, tmp_path: Path) -> None:
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(FormatError, match="not a snapshot"):
            write_folder(cluster, tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]

    def test_where_there_is_a_file(self, cluster: Snapshot, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(FormatError, match="Cannot write"):
            write_folder(cluster, tmp_path / "file")

    def test_cut_short_is_not_taken_for_whole(
        self, path: Path, cluster: Snapshot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = Path.replace

        def fail(self: Path, target: Path) -> Path:
            if target.name == "topics.parquet":
                raise OSError(28, "No space left on device")
            return whole(self, target)

        monkeypatch.setattr(Path, "replace", fail)
        with pytest.raises(FormatError, match="No space left"):
            write_folder(cluster, path)
        with pytest.raises(FormatError, match=r"manifest\.json is missing"):
            read_snapshot(path)
