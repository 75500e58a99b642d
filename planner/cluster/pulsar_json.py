"""Pulsar's JSON: which column each key is about, and views of the messages that check what they read.

Messages of Pulsar 4.2.4, as the admin API, the metadata store, the system topics and recorded vectors hold them:
`LocalBrokerData` and `BrokerLoadData` (a broker's load report), `NamespaceBundleStats` (current values of a bundle),
`BundleData` with its `TimeAverageMessageData` (the leader's averages), `TopicStats`, `TopBundlesLoadData`.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from planner.cluster.errors import FormatError

Json: TypeAlias = Mapping[str, Any]

RATES: Final[Mapping[str, str]] = {
    "msgRateIn": "msg_rate_in_per_s",
    "msgRateOut": "msg_rate_out_per_s",
    "msgThroughputIn": "msg_throughput_in_bytes_per_s",
    "msgThroughputOut": "msg_throughput_out_bytes_per_s",
}
"""Column of each rate of a broker, bundle or topic."""

RESOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "cpu": ("cpu_usage_percent", "cpu_limit_percent"),
    "memory": ("memory_usage_mib", "memory_limit_mib"),
    "directMemory": ("direct_memory_usage_mib", "direct_memory_limit_mib"),
    "bandwidthIn": ("bandwidth_in_usage_kbit_per_s", "bandwidth_in_limit_kbit_per_s"),
    "bandwidthOut": ("bandwidth_out_usage_kbit_per_s", "bandwidth_out_limit_kbit_per_s"),
}
"""Columns of usage and limit of each resource (`ResourceUsage`) of a broker."""

USAGE_METRICS: Final[Mapping[str, str]] = {resource: f"pulsar_lb_{name}_usage" for resource, name in (
        ("cpu", "cpu"), ("memory", "memory"), ("directMemory", "directMemory"), ("bandwidthIn", "bandwidth_in"),
        ("bandwidthOut", "bandwidth_out"),
    )}  # fmt: skip
"""Prometheus metric with the usage of each resource, in percent of its limit."""

BROKER_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "topics": ("numTopics", "topics"),
    "producers": ("numProducers",),
    "consumers": ("numConsumers",),
    "reported_bundles": ("numBundles", "bundleCount"),
    "updated_at_ms": ("lastUpdate", "updatedAt"),
    "started_at_ms": ("startTimestamp",),
}
"""Keys of each column of whole numbers: that of `LocalBrokerData`, then that of `BrokerLoadData`."""

EMAS: Final[Mapping[str, str]] = {
    "weightedMaxEMA": "weighted_max_ema",
    "msgThroughputEMA": "msg_throughput_ema_bytes_per_s",
}
"""Columns of `BrokerLoadData` alone."""

BUNDLE_COUNTS: Final[Mapping[str, str]] = {
    "topics": "topics",
    "producerCount": "producers",
    "consumerCount": "consumers",
    "cacheSize": "cache_size_bytes",
}
"""Columns of whole numbers of a bundle."""

BUNDLE_STATS: Final[Mapping[str, str]] = {**RATES, **BUNDLE_COUNTS}
"""Column of each key of `NamespaceBundleStats`."""

BUNDLE_METRICS: Final[Mapping[str, str]] = {
    "pulsar_bundle_msg_rate_in": "msgRateIn",
    "pulsar_bundle_msg_rate_out": "msgRateOut",
    "pulsar_bundle_msg_throughput_in": "msgThroughputIn",
    "pulsar_bundle_msg_throughput_out": "msgThroughputOut",
    "pulsar_bundle_topics_count": "topics",
    "pulsar_bundle_producer_count": "producerCount",
    "pulsar_bundle_consumer_count": "consumerCount",
}
"""Key of `NamespaceBundleStats` that each Prometheus metric of a bundle shows."""

TERMS: Final[Mapping[str, str]] = {"shortTermData": "short_term_", "longTermData": "long_term_"}
"""Averages in `BundleData`, and how their columns begin."""

BROKER_AVERAGES: Final[Mapping[str, str]] = {
    f"{term}TermM{key[1:]}": f"{term}_term_{column}" for term in ("short", "long") for key, column in RATES.items()
}
"""Column of each key of `TimeAverageBrokerData`."""

COUNTERS: Final = ("msgInCount", "msgOutCount", "bytesInCount", "bytesOutCount")
"""Counters of a topic, in the order of `RATES`."""

BROKER_COLUMNS: Final = (
    *(column for pair in RESOURCES.values() for column in pair),
    *RATES.values(),
    *BROKER_COUNTS,
    *EMAS.values(),
)
"""Columns of numbers that a load report gives, in the order of `broker_numbers`."""

SYSTEM_TOPICS: Final[Mapping[str, str]] = {
    "loads": "loadbalancer-broker-load-data",
    "top_bundles": "loadbalancer-top-bundles-load-data",
    "ownership": "loadbalancer-service-unit-state",
}
"""Endings of the names of the load balancer's system topics (extensible load manager)."""

_OWNER_BY_STATE: Final[Mapping[str, str]] = {
    "Owned": "dstBroker", "Assigning": "dstBroker", "Releasing": "dstBroker", "Splitting": "sourceBroker"
}  # fmt: skip
_DEFAULT_PORT = {"http": 80, "https": 443}
_AGAIN = "Capture the cluster again, or correct the file."

MOST: Final = 1e18
"""Larger than any rate or size; sums of many such numbers are still finite. Limits are 0 or less, or from 1 / this on:
a percentage that single precision cannot hold is infinite, and what Pulsar makes of it is not imitated."""


def number(value: object, where: str, *, least: float = 0.0) -> float:
    """Return a number of a message; 0 when it is absent.

    Args:
        value: What the message holds.
        where: File and field, for the error.
        least: Smallest number accepted.

    Raises:
        FormatError: It is something else, not finite, or too small.
    """
    if value is None:
        return 0.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            if math.isfinite(value) and value > MOST:
                raise FormatError(f"{str(value)[:60]} is more than {MOST:,.0e}.", where=where, remedy=_AGAIN)
            if math.isfinite(value) and value >= least:
                return float(value)
    raise FormatError(
        f"{str(value)[:60]!r} is not a finite number{' of 0 or more' if least == 0 else ''}.",
        where=where,
        remedy=_AGAIN,
    )


def whole(value: object, where: str, *, most: int = 2**63 - 1) -> int:
    """Return a whole number of a message; 0 when it is absent.

    Raises:
        FormatError: It is something else, below 0, or more than it can be.
    """
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    raise FormatError(f"{str(value)[:60]!r} is not a whole number from 0 to {most}.", where=where, remedy=_AGAIN)


def or_unknown(value: object, where: str) -> float:
    """Return a number of a message; NaN when it is absent.

    Raises:
        FormatError: It is something else, not finite, or below 0.
    """
    return math.nan if value is None else number(value, where)


def text_of(message: Json, *keys: str) -> str:
    """Return the first key that holds a text; empty when none does."""
    return next((value for key in keys if isinstance(value := message.get(key), str)), "")


def objects(value: Any) -> Iterator[tuple[str, Json]]:
    """Yield the keys of an object whose values are objects; nothing for anything else."""
    return ((k, v) for k, v in (value.items() if isinstance(value, dict) else ()) if isinstance(v, dict))


def host_and_port(url: object) -> str | None:
    """Return the broker id in the address of a web service, such as `127.0.0.1:8080` of `http://127.0.0.1:8080/x`."""
    if not isinstance(url, str) or "://" not in url:
        return None
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORT.get(parts.scheme)
        host = parts.netloc.rpartition("@")[2].removesuffix(f":{parts.port}")
        if host and port:
            return f"{host}:{port}"
    return None


def web_services(message: Json, keys: tuple[str, ...] = ("webServiceUrl", "webServiceUrlTls")) -> Iterator[str]:
    """Yield the broker ids in the addresses that a load report, or a node of an owner, gives."""
    return (found for key in keys if (found := host_and_port(message.get(key))))


def usage_and_limit(report: Json, resource: str, where: str = "") -> tuple[float, float]:
    """Return usage and limit of a resource; 0 when it is absent.

    Raises:
        FormatError: One is no number, or the percentage is none.
    """
    pair = report.get(resource)
    if not isinstance(pair, dict):
        return 0.0, 0.0
    limit = number(pair.get("limit"), f"{where}{resource}.limit", least=-math.inf)
    # Pulsar starts every resource as (-1, -1), and leaves it so where the host does not tell.
    usage = number(pair.get("usage"), f"{where}{resource}.usage", least=0.0 if limit > 0 else -1.0)
    if max(usage, limit) > MOST or 0 < limit < 1 / MOST:
        what = (
            f"{usage:g} of {limit:g} is not a valid percentage: the usage is {MOST:g} at most, the limit at "
            f"least {1 / MOST:g}."
        )
        raise FormatError(what, where=f"{where}{resource}", remedy=_AGAIN)
    return usage, limit


def broker_numbers(report: Json, where: str = "") -> dict[str, float]:
    """Return the columns of `BrokerTable` that a load report gives, in the order of `BROKER_COLUMNS`.

    Args:
        report: `LocalBrokerData` or `BrokerLoadData`; what is absent is 0, the number of bundles -1, an EMA NaN.
        where: How the place of a field begins in an error.

    Raises:
        FormatError: A value is no number.
    """
    found: dict[str, float] = {}
    for resource, columns in RESOURCES.items():
        found |= zip(columns, usage_and_limit(report, resource, where), strict=True)
    for key, column in RATES.items():
        found[column] = number(report.get(key), where + key)
    for column, keys in BROKER_COUNTS.items():
        value = report.get(keys[0], report.get(keys[-1]))
        absent = column == "reported_bundles" and value is None
        found[column] = -1 if absent else whole(value, where + keys[0])
    for key, column in EMAS.items():
        found[column] = or_unknown(report.get(key), where + key)
    return found


def broker_facts(report: Json) -> dict[str, Any]:
    """Return the other columns of `BrokerTable` that a load report gives: texts and switches."""
    return {
        "version": text_of(report, "brokerVersionString", "brokerVersion"),
        "load_manager_class": text_of(report, "loadManagerClassName"),
        "persistent_topics_enabled": report.get("persistentTopicsEnabled") is not False,
        "non_persistent_topics_enabled": report.get("nonPersistentTopicsEnabled") is not False,
    }


def bundle_numbers(stats: Json, where: str) -> dict[str, float]:
    """Return the columns of `BundleTable` that `NamespaceBundleStats` gives, in the order of `BUNDLE_STATS`.

    Raises:
        FormatError: A value is no number.
    """
    rates: dict[str, float] = {column: number(stats.get(key), f"{where}{key}") for key, column in RATES.items()}
    return rates | {column: whole(stats.get(key), f"{where}{key}") for key, column in BUNDLE_COUNTS.items()}


def last_stats(report: Json) -> dict[str, Json]:
    """Return the bundles that a load report lists, with their `NamespaceBundleStats`."""
    return dict(objects(report.get("lastStats")))


def top_bundles(report: Json) -> list[tuple[str, Json]]:
    """Return the bundles of `TopBundlesLoadData`, lightest first, with their `NamespaceBundleStats`."""
    rows = report.get("topBundlesLoadData")
    return [
        (row["bundleName"], row["stats"])
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("bundleName"), str) and isinstance(row.get("stats"), dict)
    ]


@dataclass(frozen=True, slots=True)
class TopicStats:
    """What a broker reports about a topic.

    Attributes:
        rates: Values of `RATES`, in their order.
        producers: Producers connected.
        consumers: Consumers of all subscriptions.
    """

    rates: tuple[float, ...]
    producers: int
    consumers: int

    @classmethod
    def of(cls, stats: Json, where: str) -> "TopicStats":
        """Read it.

        Raises:
            FormatError: A value is no number.
        """
        publishers = stats.get("publishers")
        producers = stats.get("producerCount", len(publishers) if isinstance(publishers, list) else 0)
        consumers = [s.get("consumers") for _, s in objects(stats.get("subscriptions"))]
        return cls(
            tuple(number(stats.get(key), f"{where}: {key}") for key in RATES),
            whole(producers, f"{where}: producerCount", most=2**31 - 1),
            sum(len(c) for c in consumers if isinstance(c, list)),
        )


def bundles_of_topics(answer: Any) -> Iterator[tuple[str, str, Iterator[tuple[str, Json]]]]:
    """Yield namespace, range and topics of each bundle in an answer to `/broker-stats/topics`."""
    for namespace, ranges in objects(answer):
        for span, domains in objects(ranges):
            yield namespace, span, (topic for _, topics in objects(domains) for topic in objects(topics))


def service_unit_owner(message: Json) -> str:
    """Return who owns a bundle by a message of its ownership (`ServiceUnitStateData`); empty when nobody does.

    It is what brokers answer to a lookup (`ServiceUnitStateChannelImpl.getOwnerAsync`): a bundle that is given away
    belongs to the broker that takes it, if any, as soon as that is decided, and one that is split to who splits it.
    """
    return text_of(message, _OWNER_BY_STATE.get(text_of(message, "state"), ""))
