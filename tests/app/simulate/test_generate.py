"""Generated clusters hold together as real ones do."""

import math
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.__main__ import main
from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.formats.reading import read_snapshot
from planner.formats.validate import validate
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

SPECS = st.builds(
    ClusterSpec,
    brokers=st.integers(1, 12),
    bundles=st.integers(1, 80),
    topics=st.integers(0, 300),
    load_manager=st.sampled_from(LoadManager),
    topic_skew=st.floats(0, 3),
    ownership_skew=st.floats(0, 1),
    heterogeneity=st.floats(0, 1),
    partitioned=st.floats(0, 1),
    idle=st.floats(0, 1),
    msg_rate_per_s=st.sampled_from([0.0, 1.0, 1e5, 1e9]),
    message_bytes=st.sampled_from([1.0, 1e3, 1e6]),
    fan_out=st.sampled_from([0.0, 1.5, 1e2]),
    cpu_percent_per_mb_per_s=st.sampled_from([0.0, 1.0, 1e6]),
    cpu_percent_per_1000_msg_per_s=st.sampled_from([0.0, 1.5, 1e6]),
    captured_at_ms=st.sampled_from([0, 1, 1_800_000_000_000, 253_402_300_799_999]),
)


@given(spec=SPECS, seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_valid_consistent_and_repeatable(spec: ClusterSpec, seed: int) -> None:
    snapshot = generate(spec, seed)
    validate(snapshot)
    assert (len(snapshot.brokers), len(snapshot.bundles), len(snapshot.topics)) == (
        spec.brokers,
        spec.bundles,
        spec.topics,
    )
    assert snapshot_digest(generate(spec, seed)) == snapshot_digest(snapshot)
    of_topics = snapshot.topics.msg_rate_in_per_s.sum()
    of_bundles = snapshot.bundles.msg_rate_in_per_s.sum()
    of_brokers = snapshot.brokers.msg_rate_in_per_s.sum()
    assert of_bundles == pytest.approx(of_topics, abs=0.01 * spec.bundles + 1e-6)
    assert of_brokers == pytest.approx(of_bundles)
    assert int(snapshot.brokers.topics.sum()) == spec.topics


def test_topics_lie_where_the_crc_32_of_their_names_says() -> None:
    snapshot = generate(ClusterSpec(brokers=4, namespaces=3, bundles=50, topics=500), 7)
    names, table = snapshot.topics.name.to_pylist(), snapshot.topics
    for name, hashed, bundle in zip(names, table.hash.tolist(), table.bundle.tolist(), strict=True):
        assert hashed == zlib.crc32(name.encode())
        assert snapshot.namespaces[snapshot.bundles.namespace[bundle]] == "/".join(name.split("/")[2:4])
        low, high = snapshot.bundles.low[bundle], snapshot.bundles.high[bundle]
        assert low <= hashed < high or hashed == high == 2**32 - 1


def test_idle_namespaces_have_topics_and_no_traffic() -> None:
    snapshot = generate(ClusterSpec(namespaces=5, bundles=50, topics=500, idle_namespaces=2), 1)
    of = snapshot.bundles.namespace[snapshot.topics.bundle]
    assert (of >= 3).any()
    assert not snapshot.topics.msg_rate_in_per_s[of >= 3].any()
    assert snapshot.topics.msg_rate_in_per_s[of < 3].any()


def test_policies_name_existing_namespaces() -> None:
    spec = ClusterSpec(namespaces=8, bundles=40, topics=100, isolated_namespaces=2, anti_affinity_namespaces=6)
    snapshot = generate(spec, 1)
    validate(snapshot)
    groups = snapshot.policies.anti_affinity_group
    assert list(groups) == list(snapshot.namespaces[:6])
    assert sorted(groups.values()) == ["group-0"] * 4 + ["group-1"] * 2
    assert [p.namespaces for p in snapshot.policies.isolation] == [(n,) for n in snapshot.namespaces[:2]]


def test_seeds_differ() -> None:
    spec = ClusterSpec(brokers=3, bundles=10, topics=50)
    assert snapshot_digest(generate(spec, 1)) != snapshot_digest(generate(spec, 2))


def test_skew_concentrates_traffic() -> None:
    flat = generate(ClusterSpec(topic_skew=0.0), 3).topics.msg_rate_in_per_s
    steep = generate(ClusterSpec(topic_skew=1.5), 3).topics.msg_rate_in_per_s
    assert np.sort(steep)[-10:].sum() / steep.sum() > 5 * np.sort(flat)[-10:].sum() / flat.sum()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("brokers", -1),
        ("bundles", 0),
        ("topic_skew", -1),
        ("idle", 1.5),
        ("fan_out", math.nan),
        ("msg_rate_per_s", math.inf),
        ("cpu_percent_per_mb_per_s", math.nan),
        ("cpu_percent_per_1000_msg_per_s", -1.0),
        ("captured_at_ms", -5),
        ("cluster", "a/b"),
        ("cluster", ""),
        ("idle_namespaces", 1_000),
        ("anti_affinity_namespaces", -1),
    ],
)
def test_bounds_name_the_field(field: str, value: object) -> None:
    with pytest.raises(SettingError, match=field):
        generate(replace(ClusterSpec(), **{field: value}), 1)  # type: ignore[arg-type]


def test_negative_seed_is_refused() -> None:
    with pytest.raises(SettingError, match="seed"):
        generate(ClusterSpec(), -1)


@pytest.mark.parametrize("out", ["c.json", "c.zip", "folder"])
def test_command_writes_what_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str) -> None:
    spec = ClusterSpec(brokers=3, bundles=20, topics=100)
    arguments = ["--brokers", "3", "--bundles", "20", "--topics", "100", "--seed", "5", "--out", str(tmp_path / out)]
    assert main(["generate", *arguments]) == 0
    assert "3 brokers" in capsys.readouterr().out
    assert snapshot_digest(read_snapshot(tmp_path / out)) == snapshot_digest(generate(spec, 5))


def test_command_says_what_is_wrong_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--seed", "-1", "--out", str(tmp_path / "c.json")]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: seed: -1 is not a valid seed. Use a whole number of 0 or more."
    ]
    assert not (tmp_path / "c.json").exists()


def test_a_cluster_of_one_namespace_is_described_in_words_for_one() -> None:
    """It read: 240 bundles in 1 namespaces."""
    assert (
        " in 1 namespace, " in generate(ClusterSpec(brokers=2, namespaces=1, bundles=8, topics=40), 1).info.description
    )
