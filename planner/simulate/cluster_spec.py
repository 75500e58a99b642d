"""What a generated cluster is like."""

import re
from dataclasses import dataclass

from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.moments import LAST_MS

_CLUSTER = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What to generate.

    Attributes:
        brokers: Number of brokers.
        namespaces: Number of namespaces; 0 for one per 100 bundles.
        bundles: Number of bundles; each namespace gets at least one.
        topics: Number of topics, including partitions.
        load_manager: Load manager of the brokers.
        msg_rate_per_s: Messages published per second in the whole cluster.
        message_bytes: Mean size of a message.
        fan_out: Mean number of subscriptions of a topic that has any.
        topic_skew: Exponent of the Zipf law over the rates of the topics; 0 makes all equal.
        ownership_skew: How unevenly brokers own bundles: 0 for equal numbers, 1 for a strong skew.
        heterogeneity: Share of the brokers that have half or twice the cores and NIC speed.
        partitioned: Share of the topics that are partitions of a partitioned topic.
        idle: Share of the topics without traffic.
        joined_brokers: Number of brokers that joined ten minutes ago and own no bundles yet.
        idle_namespaces: Number of namespaces whose topics have no traffic.
        isolated_namespaces: Number of namespaces with an isolation policy.
        anti_affinity_namespaces: Number of namespaces in anti-affinity groups, four per group.
        cpu_percent_per_mb_per_s: Percent of one core that one MB/s in or out costs.
        cpu_percent_per_1000_msg_per_s: Percent of one core that 1,000 msg/s in or out cost.
        captured_at_ms: Time of the snapshot, ms since 1970.
        cluster: Name of the cluster.
    """

    brokers: int = 10
    namespaces: int = 0
    bundles: int = 400
    topics: int = 4_000
    load_manager: LoadManager = LoadManager.MODULAR
    msg_rate_per_s: float = 100_000.0
    message_bytes: float = 1_000.0
    fan_out: float = 1.5
    topic_skew: float = 0.8
    ownership_skew: float = 0.3
    heterogeneity: float = 0.2
    partitioned: float = 0.6
    idle: float = 0.1
    joined_brokers: int = 0
    idle_namespaces: int = 0
    isolated_namespaces: int = 0
    anti_affinity_namespaces: int = 0
    cpu_percent_per_mb_per_s: float = 1.0
    cpu_percent_per_1000_msg_per_s: float = 1.5
    captured_at_ms: int = 1_800_000_000_000
    cluster: str = "generated"

    def check(self) -> None:
        """Refuse what cannot be generated.

        Raises:
            SettingError: Naming the field and its bounds.
        """
        bounds: dict[str, tuple[float, float]] = {
            "brokers": (1, 20_000),
            "bundles": (1, 5_000_000),
            "topics": (0, 20_000_000),
            "namespaces": (0, self.bundles),
            "joined_brokers": (0, self.brokers - 1),
            "idle_namespaces": (0, self.namespaces or self.bundles),
            "isolated_namespaces": (0, self.namespaces or self.bundles),
            "anti_affinity_namespaces": (0, self.namespaces or self.bundles),
            "msg_rate_per_s": (0, 1e9),
            "message_bytes": (1, 1e6),
            "fan_out": (0, 100),
            "topic_skew": (0, 5),
            "ownership_skew": (0, 1),
            "heterogeneity": (0, 1),
            "partitioned": (0, 1),
            "idle": (0, 1),
            "cpu_percent_per_mb_per_s": (0, 1e6),
            "cpu_percent_per_1000_msg_per_s": (0, 1e6),
            "captured_at_ms": (0, LAST_MS),
        }
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise SettingError(
                    f"{value} is out of range.", where=name, remedy=f"Use a number from {low:g} to {high:g}."
                )
        if not _CLUSTER.fullmatch(self.cluster):
            remedy = "Use 1 to 100 letters, digits, dots, hyphens and underscores."
            raise SettingError(f"{self.cluster[:100]!r} is not a valid cluster name.", where="cluster", remedy=remedy)
