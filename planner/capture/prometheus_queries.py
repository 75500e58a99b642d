"""What is asked of a Prometheus: the series that the planner reads, in groups that are asked for separately."""

from collections.abc import Mapping
from typing import Final

from planner.history.prometheus import BROKER_METRICS, BUNDLE_METRICS, COUNTER_METRICS, JAVA_METRICS, TOPIC_METRICS

_LOAD: Final = tuple(name for name in BROKER_METRICS if name not in JAVA_METRICS)
_OF_A_BROKER: Final = ("pulsar_lb_cpu_usage", "pulsar_topics_count", "pulsar_broker_topics_count")
_OTEL: Final = (
    r"pulsar[._]broker[._]topic[._]message[._](?:incoming|outgoing)[._](?:count|size)(?:[._]bytes)?(?:[._]total)?"
)
_OTEL_GAUGES: Final = r"pulsar[._]broker[._]topic[._](?:producer|consumer)[._]count"

GAUGES: Final[Mapping[str, str]] = {
    "brokers": "",
    "bundles": "|".join(BUNDLE_METRICS),
    "topics": "|".join([*TOPIC_METRICS, _OTEL_GAUGES]),
}
"""Groups of gauges, and what the names of their series match; brokers have a query of their own."""

COUNTERS: Final = "counters"
"""Group of the counters of topics."""

GROUPS: Final = (*GAUGES, COUNTERS)
"""The groups, in the order in which they are asked for."""


def names_of(group: str) -> str:
    """Return the regular expression that the names of a group match."""
    if group == COUNTERS:
        return "|".join([*COUNTER_METRICS, _OTEL])
    return GAUGES[group] or "|".join(BROKER_METRICS)


def selector(names: str, matchers: str) -> str:
    """Return a selector of series by a regular expression for their names, and further matchers."""
    return "{" + ",".join(filter(None, (f'__name__=~"{names}"', matchers.strip().rstrip(",")))) + "}"


def query_of(group: str, matchers: str) -> str:
    """Return the query for a group of series.

    Metrics of Java are asked of programs that are brokers alone: bookies and proxies have them as well.
    """
    if group != "brokers":
        return selector(names_of(group), matchers)
    brokers = selector("|".join(_OF_A_BROKER), matchers)
    java = selector("|".join(JAVA_METRICS), f'area=~"heap|",{matchers}')
    load = selector("|".join(_LOAD), f'feature=~"max_ema|",{matchers}')
    return f"{load} or ({java} and on (instance) {brokers})"


def names_query(matchers: str) -> str:
    """Return the query for the number of series of each metric that the planner reads."""
    return f"count by (__name__) ({selector('|'.join(map(names_of, GROUPS)), matchers)})"


def brokers_query(matchers: str) -> str:
    """Return the query for one series of each broker, with all its labels."""
    return selector("pulsar_lb_cpu_usage|pulsar_broker_topics_count", matchers)


def hosts_query(matchers: str) -> str:
    """Return the query for the targets of the last five minutes, and the host that each gives as its own."""
    usage = selector("pulsar_lb_cpu_usage", matchers)
    return f"count by (instance, broker, exported_instance, exported_broker) (last_over_time({usage}[5m]))"
