"""A capture that was cut short goes on; its folder never lies."""

import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.capture.catalogue import CATALOGUE
from planner.capture.options import CaptureOptions, Progress
from planner.capture.parts import JOURNAL, stem_of
from planner.capture.run import capture_cluster
from planner.cluster.errors import CaptureError
from planner.formats.raw_capture.answers import read_answers
from tests.data.recorded_cluster import Cluster

Options = Callable[..., CaptureOptions]


class Cut(Exception):  # noqa: N818 - not an error of the product
    pass


def cut_after(parts: int) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if progress.done >= parts:
            raise Cut

    return tell


@pytest.mark.parametrize("parts", [1, 20, 50])
def test_what_is_there_is_not_asked_again(cluster: Cluster, options: Options, parts: int) -> None:
    with pytest.raises(Cut):
        capture_cluster(options(cluster), cut_after(parts))
    asked = len(cluster.asked)
    assert asked >= parts
    result = capture_cluster(options(cluster))
    assert result.kept >= parts
    assert len(cluster.asked) - asked == result.requests
    assert result.requests <= len(result.parts) - result.kept + 1, "the list of brokers alone is asked for again"
    whole = capture_cluster(options(cluster, out=result.folder.with_name("whole")))
    assert sorted(part.file for part in result.parts) == sorted(part.file for part in whole.parts)
    assert result.snapshot.bundles.owner.tolist() == whole.snapshot.bundles.owner.tolist()
    assert result.snapshot.namespaces == whole.snapshot.namespaces


def test_a_finished_capture_is_kept(cluster: Cluster, options: Options) -> None:
    first = capture_cluster(options(cluster))
    second = capture_cluster(options(cluster))
    assert second.requests == 1
    assert second.snapshot.info.captured_at_ms >= first.snapshot.info.captured_at_ms


def test_refused_parts_are_asked_again(cluster: Cluster, options: Options) -> None:
    path = "/admin/v2/namespaces/acme/orders"
    good = cluster.answers["", path]
    cluster.answers["", path] = (403, b"{}", "application/json")
    assert len(capture_cluster(options(cluster)).missing) == 1
    cluster.answers["", path] = good
    result = capture_cluster(options(cluster))
    assert not result.missing
    assert not (result.folder / "raw" / "policies.acme~orders.txt").exists()


def test_a_damaged_journal_and_damaged_parts(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster))
    raw = result.folder / "raw"
    journal = raw / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-30] + b'{"file": "../../x.json"}\n[]\n{"file"')
    (raw / "version.json").unlink()
    (raw / "leader.json").write_bytes(b"")
    (raw / "something.part").write_bytes(b"half")
    again = capture_cluster(options(cluster))
    assert not again.missing
    assert (raw / "leader.json").stat().st_size
    assert not (raw / "something.part").exists()
    assert again.snapshot.bundles.owner.tolist() == result.snapshot.bundles.owner.tolist()


def test_other_options_want_another_folder(cluster: Cluster, options: Options) -> None:
    capture_cluster(options(cluster))
    with pytest.raises(CaptureError, match="a capture with other options"):
        capture_cluster(options(cluster, namespaces=("acme/*",)))


def test_a_folder_with_something_else_is_left_alone(cluster: Cluster, options: Options, tmp_path: Path) -> None:
    (tmp_path / "mine" / "raw").mkdir(parents=True)
    (tmp_path / "mine" / "raw" / "letter.txt").write_text("dear")
    with pytest.raises(CaptureError, match="contains files that are not a capture"):
        capture_cluster(options(cluster, out=tmp_path / "mine"))
    assert [p.name for p in (tmp_path / "mine").rglob("*") if p.is_file()] == ["letter.txt"]


def test_a_place_that_cannot_be_written(cluster: Cluster, options: Options, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CaptureError, match="Cannot write"):
        capture_cluster(options(cluster, out=tmp_path / "file"))


def test_a_disk_that_fills_up(cluster: Cluster, options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("planner.capture.collect.only_settings", full)
    with pytest.raises(CaptureError, match="Cannot write: No space left on device"):
        capture_cluster(options(cluster))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_killed_at_any_moment(cluster: Cluster, options: Options, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    command = [
        sys.executable,
        "-m",
        "planner",
        "capture",
        "--admin-url",
        cluster.url,
        "--out",
        str(out),
        "--rate",
        "20",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        while len(cluster.asked) < 25 and child.poll() is None:
            time.sleep(0.01)
        child.kill()
    assert not (out / "snapshot").exists()
    result = capture_cluster(options(cluster, out=out))
    assert result.kept >= 15
    assert not result.missing


names = st.text(st.characters(codec="ascii", categories=("Lu", "Ll", "Nd")) | st.sampled_from("-=:._"), min_size=1)


@given(st.lists(st.tuples(names, names), unique=True, max_size=8))
def test_file_names_are_unique_and_name_no_broker(pairs: list[tuple[str, str]]) -> None:
    stems = [stem_of("policies", *pair) for pair in pairs]
    assert len(set(stems)) == len(stems)
    files = {f"{stem}.json": b"{}" for stem in stems}
    assert read_answers({"index.json": b"[]", **files}).tags == ()
    for stem in stems:
        assert len(stem) < 120
        assert not set(stem) & set(r'/\:*?"<>|')


def test_long_names_of_one_tenant_stay_apart() -> None:
    assert stem_of("policies", "t" * 90, "a") != stem_of("policies", "t" * 90, "b")


def test_the_journal_holds_the_purpose_and_each_part(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster))
    lines = [json.loads(line) for line in (result.folder / "raw" / JOURNAL).read_text().splitlines()]
    assert lines[0]["purpose"]["admin_url"] == cluster.url
    assert {line["file"] for line in lines[1:]} == {part.file for part in result.parts}
    index = json.loads((result.folder / "raw" / "index.json").read_bytes())
    assert [line["file"] for line in index if line["file"].startswith("owned")] == [
        f"owned.b{i}.json" for i in (1, 2, 3)
    ]
    for line in index:
        assert line["time_ms"] > 0, "each part says when it was asked for"
        assert line["bytes"] == (result.folder / "raw" / line["file"]).stat().st_size
    assert {line["file"].partition(".")[0] for line in index} <= {r.name for r in CATALOGUE} | {"brokers-after"}
