"""What each broker of a raw capture says about itself, in the shape of `LocalBrokerData`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import OVERRIDE_BROKER_NIC_SPEED_GBPS
from planner.cluster.pulsar_json import (
    BROKER_AVERAGES,
    USAGE_METRICS,
    broker_facts,
    broker_numbers,
    host_and_port,
    or_unknown,
    web_services,
)
from planner.cluster.settings import Settings
from planner.cluster.units import KBIT_PER_GBIT, MIB
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.identity import OTHER_ANSWERED, REPORTS, CapturedBrokers
from planner.formats.raw_capture.metadata_store import DUMP, MetadataStore
from planner.formats.raw_capture.metrics import Metric, read_metrics
from planner.formats.raw_capture.system_topics import SystemTopics

Report = Mapping[str, Any]
"""One broker's report; `source` names where it is from. Without `cpu` the load of the broker is unknown."""

_PERCENT = 100.0
_UNKNOWN = "Its load is unknown and shown as 0. Do not trust decisions that place bundles on it."


def read_reports(
    answers: Answers,
    store: MetadataStore,
    topics: SystemTopics,
    brokers: CapturedBrokers,
    config: Settings,
    manager: LoadManager,
) -> dict[str, Report]:
    """Return the report of each broker.

    Modular: what the metadata store holds, since that is what the leader decides with; else the answer to
    `/broker-stats/load-report`, which is about the broker asked, whatever the path. Extensible: the load data in the
    system topic. Else the metrics, which know usages as percentages only.
    """
    answered = _answered(answers, brokers) if manager is LoadManager.MODULAR else {}
    reports: dict[str, Report] = {}
    for broker in brokers.names:
        tag = brokers.aliases.get(broker)
        stored = store.node(f"{REPORTS}/{broker}")
        if manager is LoadManager.EXTENSIBLE:
            reports[broker] = {**stored, **_extensible(answers, topics, broker, tag, config)}
        elif "cpu" in stored:
            reports[broker] = {**stored, "source": f"{DUMP}, {REPORTS}/{broker}"}
        elif broker in answered:
            reports[broker] = answered[broker]
        else:
            reports[broker] = _of_metrics(answers, tag, config, f"Broker {broker} ({tag}) returned no load report")
        known = "cpu" in reports[broker]
        if tag is None:
            shown = "Its load comes from the metadata store or system topic." if known else _UNKNOWN
            answers.warn(f"Broker {broker} did not answer. {shown}")
        elif not known:
            why = _why_unknown(answers, tag) if manager is LoadManager.EXTENSIBLE else ""
            answers.warn(f"Broker {broker} ({tag}) returned no load report{why}. {_UNKNOWN}")
    return reports


def _why_unknown(answers: Answers, tag: str) -> str:
    """Say what is wrong with the metrics of a broker; empty when nobody asked for them."""
    for stem in (f"metrics.{tag}", f"prometheus.{tag}"):
        if answers.has(stem):
            return f": {stem} has no metric of its load, such as {USAGE_METRICS['cpu']}; check the address of --metrics"
        if trouble := answers.trouble(stem):
            return f": of its metrics {trouble.rstrip('.)')}{')' if '(' in trouble else ''}"
    return ""


def _answered(answers: Answers, brokers: CapturedBrokers) -> dict[str, Report]:
    """Return the load reports that brokers answered, by the broker that each is about."""
    found: dict[str, Report] = {}
    for broker, tag in brokers.aliases.items():
        stem = f"load-report.{tag}"
        report = answers.json(stem, dict, "The metadata store is used, if it was captured.")
        if not report or not isinstance(report.get("cpu"), dict):
            continue
        named = list(web_services(report))
        about = next((url for url in named if url in brokers.names), broker)
        if about in found:
            answers.warn(f"{stem}: it is about {about}, like {found[about]['source']}. It was left out.")
        elif named and about not in named and host_and_port(answers.asked_at(stem)) != broker:
            answers.warn(f"{stem} is about {named[0]}, which is not among the brokers. It was left out.")
        else:
            if about != broker:
                answers.warn(f"{stem} is about {about}, not about {broker}: {OTHER_ANSWERED}.")
            found[about] = {**report, "source": stem}
    return found


def _extensible(
    answers: Answers, topics: SystemTopics, broker: str, tag: str | None, config: Settings
) -> dict[str, Any]:
    load = topics.loads.get(broker)
    if load is not None and isinstance(load.get("cpu"), dict):
        return {
            **load,
            "source": f"system-topics, {broker}",
            "numTopics": load.get("topics"),
            "numBundles": load.get("bundleCount"),
            "lastUpdate": load.get("updatedAt"),
        }
    return _of_metrics(
        answers,
        tag,
        config,
        "The extensible load manager has no load report, and its system topic was not captured",
    )


def _of_metrics(answers: Answers, tag: str | None, config: Settings, why: str) -> dict[str, Any]:
    """Return the usages that a broker's metrics show; nothing where there are none.

    Args:
        answers: The capture.
        tag: `b1`, `b2`, …; None of a broker that did not answer.
        config: Settings, which may give the speed of NICs.
        why: Why there is no better source, the beginning of a warning.
    """
    metrics = read_metrics(answers, tag) if tag is not None else []
    named = {
        name: value
        for name, labels, value in reversed(metrics)
        if name.startswith("pulsar_lb_") and "feature" not in labels
    }
    if USAGE_METRICS["cpu"] not in named:
        return {}
    limits = _limits(metrics, config)
    without = [resource for resource in USAGE_METRICS if resource not in limits]
    answers.warn(f"{why}. Usage of {', '.join(without)} is known only as a percentage and shown with a limit of 100.")
    if absent := [resource for resource, name in USAGE_METRICS.items() if name not in named]:
        answers.warn(f"The metrics of {tag} do not have the usage of {', '.join(absent)}; it is shown as 0.")
    report: dict[str, Any] = {"source": f"metrics.{tag}", "lastUpdate": answers.time_ms(f"metrics.{tag}")}
    for resource, name in USAGE_METRICS.items():
        limit = limits.get(resource, _PERCENT)
        report[resource] = {"usage": max(named.get(name, 0.0), 0.0) / _PERCENT * limit, "limit": limit}
    for name, labels, value in reversed(metrics):
        if name == "pulsar_lb_resource_usage" and labels.get("feature") == "max_ema":
            report["weightedMaxEMA"] = value
    return report


def _limits(metrics: Iterable[Metric], config: Settings) -> dict[str, float]:
    """Return what of each resource there is, as far as metrics and settings know."""
    limits: dict[str, float] = {}
    for name, labels, value in metrics:
        if name == "jvm_memory_bytes_max" and labels.get("area") == "heap" and value > 0:
            limits.setdefault("memory", value / MIB)
        elif name == "jvm_memory_direct_bytes_max" and value > 0:
            limits.setdefault("directMemory", value / MIB)
    speed = config[OVERRIDE_BROKER_NIC_SPEED_GBPS]
    if isinstance(speed, float) and speed > 0:
        cards = max(1, len(config.names("loadBalancerOverrideBrokerNics")))
        limits["bandwidthIn"] = limits["bandwidthOut"] = speed * KBIT_PER_GBIT * cards
    return limits


def broker_columns(
    answers: Answers, store: MetadataStore, brokers: CapturedBrokers, reports: Mapping[str, Report]
) -> dict[str, Sequence[Any]]:
    """Return the columns of the broker table that the reports and the metadata store know.

    Raises:
        FormatError: A report holds what is no number.
    """
    rows = [reports[broker] for broker in brokers.names]
    made = [{**broker_numbers(row, f"{row.get('source', '?')}: "), **broker_facts(row)} for row in rows]
    columns: dict[str, Sequence[Any]] = {name: [row[name] for row in made] for name in made[0]}
    for broker, speed in zip(brokers.names, columns["bandwidth_in_limit_kbit_per_s"], strict=True):
        if speed < 0:
            answers.warn(
                f"Broker {broker} does not know the speed of its NIC (limit {speed:g}), so bandwidth "
                "counts as 0 % there. Set loadBalancerOverrideBrokerNicSpeedGbps in Pulsar."
            )
    columns["has_load_data"] = ["cpu" in row for row in rows]
    paths = [f"/loadbalance/broker-time-average/{broker}" for broker in brokers.names]
    for key, column in BROKER_AVERAGES.items():
        columns[column] = [or_unknown(store.node(path).get(key), f"{DUMP}, {path}: {key}") for path in paths]
    return columns
