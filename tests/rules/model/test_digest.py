"""The digest names content, not its clothes."""

import math
import string
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.cluster.tables import BrokerTable, BundleTable, TopicTable, column_info
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

CLUSTER = generate(ClusterSpec(brokers=3, namespaces=2, bundles=8, topics=30), 7)
DIGEST = snapshot_digest(CLUSTER)
COLUMNS = [
    (part, info)
    for part, kind in (("brokers", BrokerTable), ("bundles", BundleTable), ("topics", TopicTable))
    for info in column_info(kind)
]


def other_value(kind: str, old: Any) -> Any:
    if kind == "text":
        return "another-1:8080"
    if kind == "bool":
        return not old
    return 1.5 if kind == "float" and math.isnan(old) else old + 1


def with_column(snapshot: Snapshot, part: str, name: str, values: Any) -> Snapshot:
    return replace(snapshot, **{part: replace(getattr(snapshot, part), **{name: values})})


def test_is_64_hex_digits_and_stable() -> None:
    assert len(DIGEST) == 64
    assert set(DIGEST) <= set(string.hexdigits.lower())
    assert snapshot_digest(generate(ClusterSpec(brokers=3, namespaces=2, bundles=8, topics=30), 7)) == DIGEST


@pytest.mark.parametrize(("part", "info"), COLUMNS, ids=[f"{p}.{i.name}" for p, i in COLUMNS])
def test_every_column_counts(part: str, info: Any) -> None:
    values = getattr(getattr(CLUSTER, part), info.name)
    if isinstance(values, tuple):
        new: Any = (*values[:-1], other_value(info.kind, values[-1]))
    elif isinstance(values, pa.Array):
        new = pa.array([*values.to_pylist()[:-1], "persistent://a/b/c"], type=values.type)
    else:
        new = np.array(values)
        new[-1] = 0 if info.name == "namespace" else other_value(info.kind, values[-1].item())
    assert snapshot_digest(with_column(CLUSTER, part, info.name, new)) != DIGEST


def test_rows_in_another_order_are_another_cluster() -> None:
    turned = replace(CLUSTER.bundles, msg_rate_in_per_s=CLUSTER.bundles.msg_rate_in_per_s[::-1])
    assert snapshot_digest(replace(CLUSTER, bundles=turned)) != DIGEST


@pytest.mark.parametrize(
    "change",
    [
        {"cluster": "other"},
        {"load_manager": LoadManager.EXTENSIBLE},
        {"captured_at_ms": 1},
        {"pulsar_version": "4.0.0"},
        {"leader": ""},
    ],
    ids=lambda change: next(iter(change)),
)
def test_info_that_decides_counts(change: dict[str, Any]) -> None:
    assert snapshot_digest(replace(CLUSTER, info=replace(CLUSTER.info, **change))) != DIGEST


def test_what_only_people_read_does_not_count() -> None:
    info = replace(CLUSTER.info, source="elsewhere", description="told otherwise", warnings=("odd",))
    assert snapshot_digest(replace(CLUSTER, info=info)) == DIGEST


def test_settings_and_policies_count() -> None:
    settings = CLUSTER.settings.changed(loadBalancerSheddingEnabled=False)
    policies = Policies(isolation=(IsolationPolicy("p", ("a/b",), ("x",)),))
    assert (
        len(
            {
                DIGEST,
                *(snapshot_digest(replace(CLUSTER, **c)) for c in ({"settings": settings}, {"policies": policies})),
            }
        )
        == 3
    )
    same = Settings({**settings.overrides, "loadBalancerSheddingEnabled": True})
    assert snapshot_digest(replace(CLUSTER, settings=same)) == DIGEST


def test_order_of_mappings_and_namespaces_does_not_count() -> None:
    one = Policies(anti_affinity_group={"a/b": "g", "c/d": "h"}, failure_domains={"x": ("b",), "y": ()})
    two = Policies(anti_affinity_group={"c/d": "h", "a/b": "g"}, failure_domains={"y": (), "x": ("b",)})
    assert snapshot_digest(replace(CLUSTER, policies=one)) == snapshot_digest(replace(CLUSTER, policies=two))
    swapped = replace(
        CLUSTER,
        namespaces=CLUSTER.namespaces[::-1],
        bundles=replace(CLUSTER.bundles, namespace=(1 - CLUSTER.bundles.namespace).astype(np.int32)),
    )
    assert snapshot_digest(swapped) == DIGEST


def test_zeros_and_unknowns_have_one_form() -> None:
    rates = np.array(CLUSTER.bundles.msg_rate_in_per_s)
    rates[0] = 0.0
    minus = np.array(rates)
    minus[0] = -0.0
    zero, minus_zero = (with_column(CLUSTER, "bundles", "msg_rate_in_per_s", r) for r in (rates, minus))
    assert snapshot_digest(zero) == snapshot_digest(minus_zero)
    column = np.array([np.nan, 1.0, np.nan])
    odd = np.array(column)
    odd.view(np.uint64)[0] = 0xFFF8_0000_0000_1234  # another NaN
    one, two = (with_column(CLUSTER, "brokers", "weighted_max_ema", c) for c in (column, odd))
    assert snapshot_digest(one) == snapshot_digest(two) != DIGEST


@pytest.mark.parametrize(
    "form",
    [
        lambda names: names.cast(pa.string()),
        lambda names: pa.chunked_array([names.slice(0, 11), names.slice(11)]),
        lambda names: pa.concat_arrays([pa.array(["x"], type=names.type), names]).slice(1),
        lambda names: names.dictionary_encode(),
    ],
    ids=["short offsets", "chunks", "slice", "dictionary"],
)
def test_the_arrow_form_of_names_does_not_count(form: Any) -> None:
    assert snapshot_digest(with_column(CLUSTER, "topics", "name", form(CLUSTER.topics.name))) == DIGEST


def test_boundaries_between_names_count() -> None:
    names = CLUSTER.topics.name.to_pylist()
    shifted = [names[0] + names[1][0], names[1][1:], *names[2:]]
    assert snapshot_digest(with_column(CLUSTER, "topics", "name", pa.array(shifted, type=pa.large_string()))) != DIGEST
