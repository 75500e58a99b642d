"""RoundRobinBrokerSelector: the brokers in turn, whatever their load.

Mirrors `RoundRobinBrokerSelector` of Pulsar 4.2.4, which can be chosen as the placement strategy of the modular load
manager, and which always places the bundles of `loadBalancerSheddingExcludedNamespaces` there. The rule is that of the
extensible load manager's strategy.
"""

from planner.cluster.load_manager import LoadManager
from planner.pulsar.placement.round_robin_extensible import RoundRobinExtensible


class RoundRobin(RoundRobinExtensible):
    """The strategy; see the module. Attributes as in `planner.pulsar.placement.protocol.Placement`."""

    name = "RoundRobinBrokerSelector"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector"
    load_manager = LoadManager.MODULAR
    summary = "Takes the candidates in turn; places bundles of namespaces that are excluded from shedding as well."


PLACEMENT = RoundRobin()
"""The strategy."""
