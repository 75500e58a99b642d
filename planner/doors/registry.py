"""All kinds of outputs; where several are equally sure of a chunk, or match a line, the first one counts."""

from planner.doors.kind import Kind
from planner.doors.kinds import broker_topics, configuration, lists, load_report, namespace, policies, refusals

KINDS: tuple[Kind, ...] = (
    load_report.KIND,
    broker_topics.KIND,
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
