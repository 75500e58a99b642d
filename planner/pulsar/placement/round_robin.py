"""RoundRobinBrokerSelector: the brokers in turn, whatever their load.

Mirrors `RoundRobinBrokerSelector` of Pulsar 4.2.4, which can be chosen as the placement strategy of the modular load
manager, and which always places the bundles of `loadBalancerSheddingExcludedNamespaces` there. The rule is that of the
extensible load manager's strategy.
"""

from dataclasses import dataclass, field

from planner.cluster.snapshot import LoadManager
from planner.pulsar.placement.round_robin_extensible import RoundRobinExtensible


@dataclass(frozen=True, slots=True)
class RoundRobin(RoundRobinExtensible):
    """The strategy; see the module. Attributes as in `planner.pulsar.placement.protocol.Placement`."""

    name: str = field(default="RoundRobinBrokerSelector", init=False)
    java_class: str = field(default="org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector", init=False)
    load_manager: LoadManager = field(default=LoadManager.MODULAR, init=False)
    summary: str = field(
        default="Takes the candidates in turn; places bundles of namespaces that are excluded from shedding as well.",
        init=False,
    )


PLACEMENT = RoundRobin()
"""The strategy."""
