"""Reads the `loadData` shape of the vectors into a snapshot."""

import math
from typing import Any

from planner.cluster.errors import VectorError
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import BROKER_AVERAGES, BUNDLE_STATS, RATES, RESOURCES, TERMS, Json
from planner.cluster.ranges import parse_bundle
from planner.cluster.releases import REFERENCE, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics


def config_of(vector: Json) -> Settings:
    """Return the settings in force in a vector: its `config` over the defaults of its `release`.

    Raises:
        SettingError: A name is unknown to the release, or a value out of bounds.
    """
    return Settings(vector.get("config"), release(str(vector.get("release", REFERENCE.name))))


def snapshot_of_load_data(
    load_data: Json,
    config: Settings,
    *,
    load_manager: LoadManager = LoadManager.MODULAR,
    now_ms: int = 0,
) -> Snapshot:
    """Build the snapshot that a vector's `loadData` describes.

    Brokers and bundles keep the order of the vector; bundles come from `bundleData` first, then from the brokers' own
    lists. Bundles need not tile their namespaces.

    Args:
        load_data: `brokers` and `bundleData` as in the vectors' description; absent fields are 0 or empty.
        config: Settings in force.
        load_manager: The load manager.
        now_ms: The moment.

    Raises:
        VectorError: An average of a broker is no number; NaN means unknown in a snapshot.
    """
    brokers: dict[str, Json] = load_data.get("brokers", {})
    data: dict[str, Json] = load_data.get("bundleData", {})
    stats: dict[str, Json] = {}
    owner: dict[str, int] = {}
    for position, broker in enumerate(brokers.values()):
        last = broker.get("lastStats") or {}
        stats.update(last)
        owner.update(dict.fromkeys([*(broker.get("bundles") or ()), *last], position))
    names = list(dict.fromkeys([*data, *owner]))
    parsed = [parse_bundle(name) for name in names]
    namespaces = tuple(dict.fromkeys(namespace for namespace, _, _ in parsed))
    place = {namespace: i for i, namespace in enumerate(namespaces)}

    averages = [b.get("timeAverageData") or {} for b in brokers.values()]
    for name, given in zip(brokers, averages, strict=True):
        for key in BROKER_AVERAGES.keys() & given.keys():
            if not math.isfinite(given[key]):
                what = f"{key} of {name} is {given[key]}, which no broker reports."
                raise VectorError(what, remedy="Leave it out to use the sum over the bundles.")
    broker_columns: dict[str, Any] = {
        column: [given.get(key, float("nan")) for given in averages] for key, column in BROKER_AVERAGES.items()
    }
    for resource, (usage, limit) in RESOURCES.items():
        broker_columns[usage] = [(b.get(resource) or {}).get("usage", 0.0) for b in brokers.values()]
        broker_columns[limit] = [(b.get(resource) or {}).get("limit", 0.0) for b in brokers.values()]
    for key, column in RATES.items():
        broker_columns[column] = [b.get(key, 0.0) for b in brokers.values()]

    bundle_columns: dict[str, Any] = {
        "namespace": [place[namespace] for namespace, _, _ in parsed],
        "high": [high for _, _, high in parsed],
        "owner": [owner.get(name, -1) for name in names],
        "has_stats": [name in stats for name in names],
        "has_data": [name in data for name in names],
        "data_topics": [data.get(name, {}).get("topics", 0) for name in names],
    }
    for key, column in BUNDLE_STATS.items():
        bundle_columns[column] = [stats.get(name, {}).get(key, 0) for name in names]
    for key, prefix in TERMS.items():
        for field, column in RATES.items():
            bundle_columns[prefix + column] = [(data.get(n, {}).get(key) or {}).get(field, 0.0) for n in names]
    return Snapshot(
        info=SnapshotInfo(cluster="vector", load_manager=load_manager, captured_at_ms=now_ms),
        settings=config,
        brokers=make_brokers(tuple(brokers), **broker_columns),
        namespaces=namespaces,
        bundles=make_bundles([low for _, low, _ in parsed], **bundle_columns),
        topics=make_topics(),
    )
