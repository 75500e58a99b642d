"""All kinds of outputs; where several are equally sure of a chunk, or match a line, the first one counts."""

from planner.doors.kind import Kind
from planner.doors.kinds import (
    broker_topics,
    configuration,
    lists,
    load_report,
    manifests,
    monitor_brokers,
    monitoring_metrics,
    namespace,
    policies,
    refusals,
    scrape,
    series,
    system_topic,
    topic_stats,
)

KINDS: tuple[Kind, ...] = (
    load_report.KIND,
    broker_topics.KIND,
    scrape.KIND,
    monitoring_metrics.KIND,
    series.ANSWER,
    series.EXPORT,
    system_topic.KIND,
    monitor_brokers.KIND,
    topic_stats.KIND,
    manifests.KIND,
    namespace.BUNDLES,
    namespace.POLICIES,
    namespace.GROUP,
    policies.ISOLATION,
    policies.DOMAINS,
    lists.OWNED,
    lists.TOPICS,
    lists.BROKERS,
    lists.VERSION,
    lists.NAMESPACES,
    lists.LEADER,
    refusals.ALLOCATOR,
    refusals.ERROR,
    configuration.JSON,
    configuration.CONF,
    configuration.TABLE,
)
"""All kinds."""
