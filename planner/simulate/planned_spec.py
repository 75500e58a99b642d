"""The description of a cluster that does not exist yet: brokers, and topics by pattern."""

import re
from dataclasses import dataclass, field
from typing import Literal

from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import REFERENCE

Distribution = Literal["equal", "skewed", "few carry most"]
"""How rates spread over the topics of a group."""

EXPONENTS: dict[Distribution, float] = {"equal": 0.0, "skewed": 0.8, "few carry most": 1.4}
"""Exponent of the Zipf law of each."""

_NUMBER = re.compile(r"%(?:0[0-9]{1,2})?d")
"""Without the zero, spaces would stand in names."""
_MOST_TOPICS = 2_000_000
_MOST_BROKERS = 2_000
MOST_BUNDLES = 65_536
"""Most bundles of a namespace that are considered."""
_CLUSTER = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTopics:
    """Topics of one namespace.

    Attributes:
        pattern: Full name, with `%d` or `%06d` for the number of the topic.
        count: How many there are.
        msg_rate_per_s: Messages published per second to all of them together.
        message_bytes: Size of a message.
        subscriptions: Subscriptions of each; each receives every message.
        distribution: How the rate spreads over the topics.
        bundles: Bundles of the namespace.
    """

    pattern: str = "persistent://iot/home/dev-%06d"
    count: int = 1_000
    msg_rate_per_s: float = 10_000.0
    message_bytes: float = 1_000.0
    subscriptions: int = 1
    distribution: Distribution = "skewed"
    bundles: int = 64

    def check(self) -> None:
        """Refuse what cannot be planned.

        Raises:
            SettingError: Naming the field and its bounds.
        """
        _between("count", self.count, 1, _MOST_TOPICS)
        _between("msg_rate_per_s", self.msg_rate_per_s, 0, 1e9)
        _between("message_bytes", self.message_bytes, 1, 1e7)
        _between("subscriptions", self.subscriptions, 0, 1_000)
        _between("bundles", self.bundles, 1, MOST_BUNDLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCluster:
    """What a cluster is to be.

    Attributes:
        cluster: Its name.
        brokers: Number of brokers, all alike.
        cores: Cores of each.
        nic_gbit_per_s: Speed of the network of each.
        memory_gib: Heap of each.
        direct_memory_gib: Direct memory of each.
        pulsar_version: Release that they run.
        load_manager: Load manager that they run.
        topics: Groups of topics; those of one namespace have one number of bundles.
        cpu_percent_per_mb_per_s: Percent of one core that one MB/s in or out costs.
        cpu_percent_per_1000_msg_per_s: Percent of one core that 1,000 msg/s in or out cost.
        captured_at_ms: Moment of the snapshot, ms since 1970.
    """

    cluster: str = "planned"
    brokers: int = 3
    cores: float = 8.0
    nic_gbit_per_s: float = 10.0
    memory_gib: float = 8.0
    direct_memory_gib: float = 16.0
    pulsar_version: str = REFERENCE.name
    load_manager: LoadManager = LoadManager.MODULAR
    topics: tuple[PlannedTopics, ...] = field(default_factory=lambda: (PlannedTopics(),))
    cpu_percent_per_mb_per_s: float = 1.0
    cpu_percent_per_1000_msg_per_s: float = 1.5
    captured_at_ms: int = 1_800_000_000_000

    def check(self) -> None:
        """Refuse what cannot be planned.

        Raises:
            SettingError: Naming the field and its bounds.
        """
        _between("brokers", self.brokers, 1, _MOST_BROKERS)
        _between("cores", self.cores, 0.1, 1_024)
        _between("nic_gbit_per_s", self.nic_gbit_per_s, 0.01, 1_000)
        _between("memory_gib", self.memory_gib, 0.1, 4_096)
        _between("direct_memory_gib", self.direct_memory_gib, 0.1, 4_096)
        _between("cpu_percent_per_mb_per_s", self.cpu_percent_per_mb_per_s, 0, 1e6)
        _between("cpu_percent_per_1000_msg_per_s", self.cpu_percent_per_1000_msg_per_s, 0, 1e6)
        _between("topics", sum(one.count for one in self.topics), 1, _MOST_TOPICS)
        for one in self.topics:
            one.check()
        if not _CLUSTER.fullmatch(self.cluster):
            remedy = "Use 1 to 100 letters, digits, dots, hyphens and underscores."
            raise SettingError(f"{self.cluster[:100]!r} is not a valid cluster name.", where="cluster", remedy=remedy)


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingError(
            f"{value:,} is out of range.", where=name, remedy=f"Use a number from {low:,.10g} to {high:,.10g}."
        )


def names_of(group: PlannedTopics) -> list[str]:
    """Return the names of the topics of a group.

    Raises:
        SettingError: The pattern has not exactly one number.
        FormatError: It is not a topic name.
    """
    places = _NUMBER.findall(group.pattern)
    if group.count == 1 and not places and "%" not in group.pattern:
        return [group.pattern]
    if len(places) != 1 or group.pattern.count("%") != 1:
        raise SettingError(
            f"{group.pattern[:200]!r} needs one place for the number of the topic.",
            where="pattern",
            remedy="Write %d or %06d once, as in persistent://iot/home/dev-%06d.",
        )
    return [group.pattern % number for number in range(group.count)]
