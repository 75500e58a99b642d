"""The metrics in a raw capture: `metrics.bN.json` of the admin API and the Prometheus text."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.formats.raw_capture.answers import Answers

Metric = tuple[str, Mapping[str, str], float]
"""Name as Prometheus shows it (`pulsar_…`), labels, value."""

_LINE = re.compile(r"((?:pulsar_lb|pulsar_bundle|jvm)_\w+)(?:\{([^}]*)\})? (\S+)(?: \d+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_UNLOADED = "pulsar_lb_unload_bundle_total"
_BY_REASON = "pulsar_lb_unload_broker_breakdown_total"
_STATS = "pulsar_lb_resource_usage_stats"
_INSTEAD = "The Prometheus metrics are used, if they were captured."
_STATISTICS = ("avg", "std")
_MOST = 2**53
_NAMES = {"jvm_max_memory": "jvm_memory_bytes_max", "jvm_max_direct_memory": "jvm_memory_direct_bytes_max"}


def read_metrics(answers: Answers, tag: str) -> list[Metric]:
    """Return the load-balancing, bundle and JVM metrics of a broker (`b1`, `b2`, …); those of the admin API first.

    Names of the admin API (`brk_…`) are turned into those of Prometheus. A value that is no finite number is none.
    """
    found = (*_of_admin(answers, tag), *_of_prometheus(answers.text(f"prometheus.{tag}")))
    return [metric for metric in found if math.isfinite(metric[2])]


def broker_named(answers: Answers, stem: str) -> str:
    """Return the host that metrics name as their broker, which is its id without the port; empty when they do not.

    Args:
        answers: The capture.
        stem: `metrics.b1`, `prometheus.b1`, …
    """
    of_admin = stem.startswith("metrics.")
    metrics = metrics_of_admin(answers.json(stem, list, _INSTEAD)) if of_admin else _of_prometheus(answers.text(stem))
    return next(
        (host for name, labels, _ in metrics if name.startswith("pulsar_") and (host := labels.get("broker"))), ""
    )


def leader_metrics(answers: Answers, tag: str) -> dict[str, float]:
    """Return what a leader says of its strategy, as in `SnapshotInfo.leader_metrics`; nothing when nobody asked it.

    Before the first unload a leader shows no number. The extensible load manager counts what it unloads on request with
    the rest, and apart.
    """
    metrics = read_metrics(answers, tag) if tag else []
    values: dict[str, float] = {"unloaded": 0.0} if metrics else {}
    for name, labels, value in metrics:
        if not 0 <= value < _MOST:
            continue
        if name == _UNLOADED:
            values["unloaded"] += value
        elif name == _BY_REASON and labels.get("reason") == "Admin" and labels.get("result") == "Success":
            values["unloaded"] -= value
        elif name == _BY_REASON and labels.get("result") == "Skip":
            values[f"Skip/{labels.get('reason', '')[:40]}"] = value
        elif name == _STATS and labels.get("stat") in _STATISTICS:
            values[f"load_{labels['stat']}"] = value
    return {name: value for name, value in values.items() if value >= 0}


def _of_admin(answers: Answers, tag: str) -> Iterator[Metric]:
    yield from metrics_of_admin(answers.json(f"metrics.{tag}", list, _INSTEAD))


def metrics_of_admin(answer: Any) -> Iterator[Metric]:
    """Yield the metrics of an answer to `/admin/v2/broker-stats/metrics`, by the names that Prometheus shows."""
    for group in answer if isinstance(answer, list) else ():
        if not isinstance(group, dict) or not isinstance(group.get("metrics"), dict):
            continue
        labels = group.get("dimensions")
        texts: dict[str, Any] = labels if isinstance(labels, dict) else {}
        for name, value in group["metrics"].items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                full = _NAMES.get(name, name.replace("brk_", "pulsar_", 1))
                heap = {"area": "heap"} if name == "jvm_max_memory" else {}
                yield full, {**texts, **heap}, float(value)


def _of_prometheus(text: str) -> Iterator[Metric]:
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            try:
                value = float(match[3])
            except ValueError:
                continue
            yield match[1], dict(_LABEL.findall(match[2] or "")), value
