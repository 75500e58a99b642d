"""What recorded splits, averages, usages and hashes tell beyond the schema of vectors: order, and the last bit."""

import gzip
import json
from pathlib import Path

from planner.cluster.pulsar_json import Json
from planner.conform.kinds import KINDS

GOLDENS = Path(__file__).parent.parent.parent / "goldens"


def recorded(*names: str) -> list[Json]:
    return [
        vector
        for name in names
        for vector in map(json.loads, gzip.decompress((GOLDENS / f"{name}.jsonl.gz").read_bytes()).splitlines())
    ]


def answer(vector: Json) -> Json:
    asked = {key: value for key, value in vector.items() if key not in {"expected", "order"}}
    return KINDS[vector["kind"]].answer(asked)


def test_splits_in_pulsars_order() -> None:
    for vector in recorded("auto_split_modular/edges", "auto_split_modular/captured"):
        assert list(answer(vector)["bundlesToSplit"]) == vector["order"], vector["id"]


def test_numbers_are_equal_to_the_last_bit() -> None:
    """All but sums over a broker's bundles, whose order the vectors do not tell."""
    for vector in recorded("averages/bundles", "resource_usage/vectors"):
        expected, got = vector["expected"], answer(vector)
        for key in expected.keys() - {"totals"}:
            assert got[key] == expected[key], (vector["id"], key)


def test_goldens_cover_every_outcome() -> None:
    """A golden set that never fails, refuses or splits would prove little."""
    expected = [vector["expected"] for vector in recorded("bundle_split/vectors", "bundle_split/edges")]
    assert any("error" in e for e in expected)
    assert any("splitError" in e for e in expected)
    assert {min(len(e.get("splitBoundaries") or ()), 3) for e in expected} == {0, 1, 2, 3}
    automatic = recorded("auto_split_modular/vectors", "auto_split_modular/edges")
    assert any(v["expected"]["bundlesToSplit"] for v in automatic)
    assert any(v["config"]["loadBalancerNamespaceBundleMaxBandwidthMbytes"] >= 2048 for v in automatic)
    topics = [a for v in recorded("topic_to_bundle/vectors") for a in v["expected"]["assignments"]]
    assert {a.get("error") for a in topics} == {None, "IndexOutOfBoundsException", "IllegalArgumentException"}
