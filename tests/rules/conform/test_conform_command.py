"""`python -m planner conform` as its users meet it."""

import gzip
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.__main__ import main
from planner.conform.compare import MISSING, differences
from planner.conform.kinds import KINDS

GOLDENS = Path(__file__).parent.parent.parent / "goldens"
RECORDED = GOLDENS / "dispatch_throttle" / "vectors.jsonl.gz"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def written(path: Path, vectors: list[dict[str, Any]]) -> str:
    text = "".join(json.dumps(vector) + "\n" for vector in vectors).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return str(path)


def test_equal_decisions_pass(capsys: pytest.CaptureFixture[str]) -> None:
    others = GOLDENS / "averages" / "bundles.jsonl.gz"
    assert main(["conform", str(RECORDED), str(others)]) == 0
    total = len(lines_of(RECORDED)) + len(lines_of(others))
    assert capsys.readouterr().out == f"{total} passed, 0 failed\n"


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_another_decision_fails_with_its_place(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors = lines_of(RECORDED)
    vectors[4]["expected"]["ops"][2]["availableMsgs"] += 1
    vectors[4]["expected"]["enabled"] = None
    vectors[9]["expected"] = {}
    assert main(["conform", written(tmp_path / f"v{suffix}", vectors)]) == 1
    *found, last = capsys.readouterr().out.splitlines()
    assert last == f"{len(vectors) - 2} passed, 2 failed"
    name, expected = vectors[4]["id"], vectors[4]["expected"]["ops"][2]["availableMsgs"]
    assert found[0] == f"dispatch_throttle {name} step 2 availableMsgs: expected {expected}, got {expected - 1}"
    assert found[1] == f"dispatch_throttle {name} step - enabled: expected null, got true"
    assert vectors[9]["id"] in found[2]
    assert f"expected {MISSING}" in found[2]


def test_a_failing_decision_is_a_mismatch_not_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors = lines_of(RECORDED)[:3]
    del vectors[0]["input"]["dispatchRate"]
    assert main(["conform", written(tmp_path / "v.jsonl", vectors)]) == 1
    found, last = capsys.readouterr().out.splitlines()
    assert "got error KeyError: 'dispatchRate'" in found
    assert last == "2 passed, 1 failed"


TOP = {"kind": "top_k_bundles", "id": "t", "config": {}, "expected": {"topBundles": []}}
BUNDLE = "t/n/0x00000000_0xffffffff"


@pytest.mark.parametrize(
    ("vector", "what"),
    [
        ({**TOP, "input": {"bundleStats": {BUNDLE: {"topics": 2**31}}}}, "2147483648 is not a valid count"),
        (
            {**TOP, "input": {"bundleStats": {BUNDLE: {"topics": 2**31 - 1, "consumerCount": 1}}}},
            "is not a valid count",
        ),
        ({**TOP, "input": {"bundleStats": {}, "namespaceBundleCounts": {"t/n": 2**63}}}, "is not a valid count"),
        (
            {
                **TOP,
                "kind": "shedder_transfer",
                "input": {
                    "nowMs": 1,
                    "steps": [{"availableBrokers": ["b:1"], "brokerLoad": {"b:1": {"msgThroughputIn": math.nan}}}],
                },
            },
            "of a broker has no average",
        ),
        (
            {**TOP, "kind": "dispatch_throttle", "input": {"limiter": "classic", "ops": [{"consumeBytes": 2**60}]}},
            "consumeBytes is 1152921504606846976",
        ),
        (
            {**TOP, "kind": "dispatch_throttle", "input": {"limiter": "", "ratePeriodNanos": 0, "ops": []}},
            "ratePeriodNanos is 0",
        ),
        (
            {
                **TOP,
                "kind": "dispatch_throttle",
                "input": {
                    "limiter": "AsyncTokenBucket",
                    "rate": 7,
                    "ratePeriodNanos": 10**9,
                    "addTokensResolutionNanos": 1,
                    "ops": [{"atNanos": 1, "consume": -1}],
                },
            },
            "consumeTokens must be >= 0",
        ),
        (
            {
                **TOP,
                "kind": "placement",
                "input": {
                    "strategy": "LeastLongTermMessageRate",
                    "steps": [
                        {
                            "candidates": ["b:1"],
                            "bundle": BUNDLE,
                            "loadData": {"brokers": {"b:1": {"timeAverageData": {"longTermMsgRateIn": math.nan}}}},
                        }
                    ],
                },
            },
            "longTermMsgRateIn of b:1 is nan",
        ),
    ],
)
def test_what_pulsar_cannot_hold_is_refused_in_words(
    vector: dict[str, Any], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never decided differently in silence."""
    assert main(["conform", written(tmp_path / "v.jsonl", [vector])]) == 1
    assert re.search(f"got error (Vector|Pulsar)Error: .*{what}", capsys.readouterr().out)


GOOD = {"kind": "top_k_bundles", "id": "v", "config": {}, "input": {"bundleStats": {}}, "expected": {"topBundles": []}}


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("missing.jsonl", None, "No such file"),
        ("blank.jsonl.gz", gzip.compress(b"\n" * (9 << 20), 1, mtime=0), "There is more than 1 MiB of blank lines"),
        ("empty.jsonl", b"\n", "line 1: The file contains no vector"),
        ("text.jsonl", b"hello\n", "line 1: Not valid JSON: Expecting value at column 1"),
        ("cut.jsonl", json.dumps(GOOD).encode() + b"\n\n{\n", "line 3: Not valid JSON"),
        ("latin.jsonl", b'{"kind": "\xe9"}\n', "line 1: Not UTF-8: byte 0xe9 at column 11"),
        ("deep.jsonl", b"[" * 200_000, "line 1: Not readable JSON"),
        ("plain.jsonl.gz", b"hello\n", "line 1: Not gzip, or damaged"),
        ("cut.jsonl.gz", gzip.compress(json.dumps(GOOD).encode(), mtime=0)[:-9], "line 1: Not gzip, or damaged"),
        ("broken.jsonl.gz", gzip.compress(b"x" * 999, mtime=0)[:12] + b"\xff" * 40, "Not gzip, or damaged"),
        ("renamed.jsonl", gzip.compress(b"hello\n", mtime=0), "line 1: The file is compressed with gzip, but its name"),
        ("array.jsonl", b"[]\n", "line 1: Not a vector: the line holds an array"),
        ("none.jsonl", json.dumps({**GOOD, "expected": None}).encode(), "line 1: Not a vector: 'expected' is null"),
        ("config.jsonl", json.dumps({**GOOD, "config": [1]}).encode(), "line 1: Not a vector: 'config' is an array"),
        ("no-id.jsonl", b'{"kind": "top_k_bundles"}', "line 1: Not a vector: 'id' is missing"),
        ("kind.jsonl", json.dumps({**GOOD, "kind": "shedder"}).encode(), "line 1: Unknown kind 'shedder'"),
        ("input.jsonl", json.dumps({**GOOD, "input": {}}).encode(), "line 1: 'input.bundleStats' of 'top_k_bundles'"),
    ],
)
def test_unreadable_files_are_refused_by_place(
    name: str, content: bytes | None, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert main(["conform", str(path), str(RECORDED)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {path}")
    assert what in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out.endswith(f"{len(lines_of(RECORDED)) + (name == 'cut.jsonl')} passed, 0 failed\n")


def planner(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_the_command_line_as_a_process() -> None:
    done = planner("-m", "planner", "conform", str(RECORDED))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].endswith(" passed, 0 failed")
    help_text = planner("-m", "planner")
    assert help_text.returncode == 0
    assert "conform" in help_text.stdout
    assert planner("-m", "planner", "conform").returncode == 2
    assert planner("-m", "planner", "no-such-command").returncode == 2


def test_a_reader_that_stops_early_sees_no_traceback(tmp_path: Path) -> None:
    vectors = [{**vector, "expected": {}} for vector in lines_of(RECORDED)] * 50
    path = written(tmp_path / "v.jsonl", vectors)
    read_end, write_end = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "planner", "conform", path], stdout=write_end, stderr=subprocess.PIPE, text=True
    )
    os.close(write_end)
    os.close(read_end)
    _, errors = child.communicate(timeout=60)
    assert not errors


def test_conform_does_not_load_the_pages_or_spark() -> None:
    program = "import sys, planner.__main__ as m; m.main(sys.argv[1:]); print(*sys.modules)"
    done = planner("-c", program, "conform", str(RECORDED))
    assert done.returncode == 0, done.stderr
    assert not {"streamlit", "pyspark", "plotly", "duckdb", "pandas"} & set(done.stdout.split())


def test_numbers_may_differ_by_a_billionth_but_hashes_may_not() -> None:
    assert not list(differences({"a": 1.0}, {"a": 1.0 + 1e-10}))
    assert [found.where for found in differences({"a": [1.0]}, {"a": [1.0 + 1e-8]})] == ["a[0]"]
    assert list(differences({"hash": 4_294_967_295}, {"hash": 4_294_967_294}))
    assert not list(differences([None, "NaN", float("nan"), 2], [float("nan"), float("nan"), float("nan"), 2.0]))
    assert list(differences([1, True, None], [True, 1, 0.0]))


def test_only_sets_may_come_in_another_order() -> None:
    expected, got = {"decisions": [{"a": 1}, {"b": 2}], "order": [1, 2]}, {"decisions": [{"b": 2}, {"a": 1}]}
    assert [found.where for found in differences(expected, {**got, "order": [2, 1]}, ("decisions",))] == [
        "order[0]",
        "order[1]",
    ]
    doubled = {**got, "decisions": [*got["decisions"], {"a": 1}], "order": [1, 2]}
    assert [(found.expected, found.got) for found in differences(expected, doubled, ("decisions",))] == [
        (MISSING, {"a": 1})
    ]


def test_every_kind_of_the_documentation_is_known() -> None:
    assert set(KINDS) == {
        "topic_to_bundle",
        "bundle_split",
        "time_average",
        "broker_time_average",
        "resource_usage",
        "broker_load_data",
        "top_k_bundles",
        "shedder_overload",
        "shedder_threshold",
        "shedder_uniform",
        "shedder_avg",
        "shedder_transfer",
        "placement",
        "auto_split_modular",
        "auto_split_extensible",
        "dispatch_throttle",
    }
