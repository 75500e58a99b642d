"""Writes histories the way a recorder would have: load reports, `broker-stats` topics, or Prometheus exports.

For trying an ingest without a cluster, for tests and for benchmarks.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.errors import SettingError
from planner.cluster.pulsar_json import BROKER_COUNTS, BUNDLE_STATS, COUNTERS, RATES, RESOURCES, USAGE_METRICS
from planner.cluster.ranges import format_range
from planner.cluster.snapshot import Snapshot
from planner.history.day_writer import writing_history
from planner.history.manifest import day_of
from planner.history.prometheus import BUNDLE_METRICS, COUNTER_METRICS
from planner.history.spec import FORMS

_MANAGER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
_COUNTER_COLUMNS = dict(zip(COUNTERS, RATES.values(), strict=True))


def report_lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield the load report of each broker that is there, with the time at which it was asked for."""
    brokers, bundles = snapshot.brokers, snapshot.bundles
    values = {key: getattr(bundles, column).tolist() for key, column in BUNDLE_STATS.items()}
    for at in np.flatnonzero(brokers.registered).tolist():
        report: dict[str, Any] = {
            "webServiceUrl": f"http://{brokers.name[at]}",
            "persistentTopicsEnabled": bool(brokers.persistent_topics_enabled[at]),
            "nonPersistentTopicsEnabled": bool(brokers.non_persistent_topics_enabled[at]),
        }
        for key, columns in RESOURCES.items():
            usage, limit = (float(getattr(brokers, column)[at]) for column in columns)
            report[key] = {"usage": usage, "limit": limit}
        report |= {key: float(getattr(brokers, column)[at]) for key, column in RATES.items()}
        owned = [i for i in snapshot.bundles_of(at).tolist() if bundles.has_stats[i]]
        report |= {
            **{keys[0]: int(getattr(brokers, column)[at]) for column, keys in BROKER_COUNTS.items()},
            "brokerVersionString": brokers.version[at],
            "loadManagerClassName": brokers.load_manager_class[at] or _MANAGER,
            "lastStats": {snapshot.bundle_names[i]: {key: column[i] for key, column in values.items()} for i in owned},
        }
        yield json.dumps(_envelope(snapshot, brokers.name[at]) | {"report": report}, separators=(",", ":"))


def _envelope(snapshot: Snapshot, broker: str) -> dict[str, Any]:
    return {"time_ms": snapshot.info.captured_at_ms, "cluster": snapshot.info.cluster, "broker": broker}


class _Counters:
    """Counters of topics that grow with their rates; at the first moment they have counted for `since_ms`."""

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.last_ms = -1
        self.owner = np.zeros(0, dtype=np.int64)
        self.counted: dict[str, FloatArray] = {}

    def at(self, snapshot: Snapshot) -> dict[str, FloatArray]:
        """Return what each counter shows; those of a topic that moved begin anew. Shape (counters,)."""
        topics = snapshot.topics
        owner = snapshot.bundles.owner[topics.bundle].astype(np.int64)
        seconds = (snapshot.info.captured_at_ms - self.last_ms if self.last_ms >= 0 else self.since_ms) / 1_000
        for column in _COUNTER_COLUMNS.values():
            before = self.counted.get(column, np.zeros(len(topics)))
            kept = np.where(self.owner == owner, before, 0.0) if len(self.owner) else before
            self.counted[column] = kept + np.round(getattr(topics, column) * seconds)
        self.last_ms, self.owner = snapshot.info.captured_at_ms, owner
        return self.counted


def topic_lines(snapshots: Iterable[Snapshot], since_ms: int) -> Iterator[str]:
    """Yield, moment by moment, what each broker says of its topics, which are the same in all snapshots.

    Counters grow with the rates; at the first moment they have counted for `since_ms`.
    """
    counters = _Counters(since_ms)
    for snapshot in snapshots:
        topics, bundles = snapshot.topics, snapshot.bundles
        counted = counters.at(snapshot) if len(topics) else {}
        names = topics.name.to_pylist()
        rates = {key: getattr(topics, column).tolist() for key, column in RATES.items()}
        shown = {key: counted[c].astype(np.int64).tolist() for key, c in _COUNTER_COLUMNS.items() if c in counted}
        for broker in np.flatnonzero(snapshot.brokers.registered).tolist():
            answer: dict[str, Any] = {}
            for bundle in snapshot.bundles_of(broker).tolist():
                namespace = snapshot.namespaces[int(bundles.namespace[bundle])]
                span = format_range(int(bundles.low[bundle]), int(bundles.high[bundle]))
                listed = answer.setdefault(namespace, {}).setdefault(span, {}).setdefault("persistent", {})
                for at in topics.of_bundle(bundle).tolist():
                    stats: dict[str, Any] = {key: column[at] for key, column in {**rates, **shown}.items()}
                    stats["producerCount"] = int(topics.producers[at])
                    stats["subscriptions"] = {"sub": {"consumers": [{}] * int(topics.consumers[at])}}
                    listed[names[at]] = stats
            name = snapshot.brokers.name[broker]
            yield json.dumps(_envelope(snapshot, name) | {"topics": answer}, separators=(",", ":"))


def prometheus_series(snapshots: Iterable[Snapshot], since_ms: int) -> Iterator[dict[str, Any]]:
    """Yield the series of a day, as a range query answers them: brokers, bundles, counters (see `topic_lines`)."""
    series: dict[tuple[str, str, str, str], list[list[Any]]] = {}
    counters = _Counters(since_ms)
    cluster = ""
    for snapshot in snapshots:
        cluster, second = snapshot.info.cluster, snapshot.info.captured_at_ms / 1_000
        for key, value in (*_broker_samples(snapshot), *_bundle_samples(snapshot), *_topic_samples(snapshot, counters)):
            series.setdefault(key, []).append([second, repr(value)])
    for (metric, broker, label, name), values in series.items():
        labels = {"__name__": metric, "instance": broker, "cluster": cluster}
        yield {"metric": labels | ({label: name} if label else {}), "values": values}


_Sample = tuple[tuple[str, str, str, str], float]


def _broker_samples(snapshot: Snapshot) -> Iterator[_Sample]:
    brokers = snapshot.brokers
    for key, metric in USAGE_METRICS.items():
        usage, limit = (getattr(brokers, column) for column in RESOURCES[key])
        for at in np.flatnonzero(brokers.registered & (limit > 0)).tolist():
            yield (metric, brokers.name[at], "", ""), float(usage[at] / limit[at] * 100.0)


def _bundle_samples(snapshot: Snapshot) -> Iterator[_Sample]:
    bundles = snapshot.bundles
    reported = np.flatnonzero(bundles.has_stats).tolist()
    for metric, column in BUNDLE_METRICS.items():
        values = getattr(bundles, column).tolist()
        for at in reported:
            broker = snapshot.brokers.name[int(bundles.owner[at])]
            yield (metric, broker, "bundle", snapshot.bundle_names[at]), float(values[at])


def _topic_samples(snapshot: Snapshot, counters: _Counters) -> Iterator[_Sample]:
    if not len(snapshot.topics):
        return
    shown, names = counters.at(snapshot), snapshot.topics.name.to_pylist()
    owner = snapshot.bundles.owner[snapshot.topics.bundle].tolist()
    for metric, column in COUNTER_METRICS.items():
        for at, value in enumerate(shown[column].tolist()):
            yield (metric, snapshot.brokers.name[owner[at]], "topic", names[at]), value


def write_raw(out: Path, snapshots: Iterable[Snapshot], form: str) -> Path:
    """Write the snapshots of a day, at least one, in the order of time, as a recorder would have; return the file.

    The folder is made when it does not exist; the form is one of `FORMS`.

    Raises:
        SettingError: The form is unknown.
        ReplayError: The file cannot be written.
    """
    if form not in FORMS:
        raise SettingError(f"'{form}' is not a known form.", where="form", remedy=f"Use {', '.join(FORMS)}.")
    rest = iter(snapshots)
    head = list(islice(rest, 2))
    first = head[0]
    since_ms = head[-1].info.captured_at_ms - first.info.captured_at_ms

    path = out / f"{form}-{first.info.cluster}-{day_of(first.info.captured_at_ms)}"
    path = path.with_name(path.name + (".json" if form == "prometheus" else ".jsonl"))
    with writing_history(out):
        out.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            if form == "prometheus":
                file.write('{"status":"success","data":{"resultType":"matrix","result":[')
                for number, item in enumerate(prometheus_series(chain(head, rest), since_ms)):
                    file.write(("," if number else "") + json.dumps(item, separators=(",", ":")))
                file.write("]}}\n")
            else:
                lines = (
                    topic_lines(chain(head, rest), since_ms)
                    if form == "topics"
                    else (x for s in chain(head, rest) for x in report_lines(s))
                )
                file.writelines(f"{line}\n" for line in lines)
    return path
