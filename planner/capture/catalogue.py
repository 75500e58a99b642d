"""Every request that a capture sends: who is asked, what it needs, what it gives, and what is kept of the answer.

Nothing but the requests listed here is ever sent to a cluster, each with GET. Paths and permissions are those of Pulsar
4.2.4 (`BrokersBase`, `BrokerStatsBase`, `ClustersBase`, `TenantsBase`, `NamespacesBase`, `PersistentTopicsBase`). The
table of `docs/capture.md` is made from this list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from urllib.parse import quote

from planner.cluster.releases import REFERENCE

_MIB = 1 << 20


class Scope(StrEnum):
    """Of whom a request is asked, and how often."""

    CLUSTER = "once"
    TENANT = "each tenant"
    NAMESPACE = "each namespace"
    BROKER = "each broker, of itself"


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """One kind of request.

    Attributes:
        name: First part of the file name of the answer.
        path: Path with `{cluster}`, `{tenant}`, `{namespace}`, `{broker}` where they go.
        scope: How often it is asked, and of whom.
        permission: What the token's role needs to be.
        gives: What the snapshot has from it.
        without: What the snapshot shows when it is refused.
        max_bytes: Longest answer that is read, unless `Limits` allows less.
        required: The capture ends when it fails.
        text: The answer is no JSON.
        may_be_unset: HTTP 404 says that nothing was ever set.
        only_settings: Of the answer only the settings that the planner knows are kept, since it holds passwords.
        when: Condition, in words; empty for always.
    """

    name: str
    path: str
    scope: Scope
    permission: str
    gives: str
    without: str
    max_bytes: int = 4 * _MIB
    required: bool = False
    text: bool = False
    may_be_unset: bool = False
    only_settings: bool = False
    when: str = ""

    def filled(self, names: Mapping[str, str]) -> str:
        """Return the path with names filled in, each escaped; a colon stays, as Pulsar's own tools leave it."""
        return self.path.format_map({key: quote(name, safe=":") for key, name in names.items()})


_SUPER = "superuser, or the broker operation "
_TENANT_ADMIN = "superuser or admin of the tenant"
_NAMESPACE = "superuser, admin of the tenant, or the namespace "

CATALOGUE: tuple[AdminRequest, ...] = (
    AdminRequest(
        "brokers-all",
        "/admin/v2/brokers",
        Scope.CLUSTER,
        f"{_SUPER}LIST_BROKERS",
        "the active brokers",
        "the capture ends",
        required=True,
    ),
    AdminRequest(
        "clusters",
        "/admin/v2/clusters",
        Scope.CLUSTER,
        "none",
        "the name of the cluster, when no broker tells its configuration",
        "the name is what `--cluster` says",
    ),
    AdminRequest(
        "leader",
        "/admin/v2/brokers/leaderBroker",
        Scope.CLUSTER,
        f"{_SUPER}GET_LEADER_BROKER",
        "the leader",
        "the leader is that of the metadata store, else unknown",
    ),
    AdminRequest(
        "version",
        "/admin/v2/brokers/version",
        Scope.CLUSTER,
        "none",
        "the version of Pulsar",
        "the version is that of the load reports",
    ),
    AdminRequest(
        "dynamic-config-values",
        "/admin/v2/brokers/configuration/values",
        Scope.CLUSTER,
        f"{_SUPER}LIST_DYNAMIC_CONFIGURATIONS",
        "settings changed while the cluster runs",
        "settings are those of the brokers' files",
        only_settings=True,
    ),
    AdminRequest(
        "isolation-policies",
        "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies",
        Scope.CLUSTER,
        "superuser, or the cluster policy NAMESPACE_ISOLATION",
        "namespace isolation policies",
        "those of the metadata store, else none",
        may_be_unset=True,
    ),
    AdminRequest(
        "failure-domains",
        "/admin/v2/clusters/{cluster}/failureDomains",
        Scope.CLUSTER,
        "superuser, or the cluster operation GET_FAILURE_DOMAIN",
        "failure domains",
        "those of the metadata store, else none",
    ),
    AdminRequest(
        "tenants",
        "/admin/v2/tenants",
        Scope.CLUSTER,
        "superuser, or the tenant operation LIST_TENANTS",
        "the tenants",
        "only namespaces named by `--namespaces` without a wildcard, or owned by a broker",
        when="unless `--namespaces` names every tenant",
    ),
    AdminRequest(
        "namespaces",
        "/admin/v2/namespaces/{tenant}",
        Scope.TENANT,
        _TENANT_ADMIN,
        "the namespaces",
        "only namespaces that a broker owns bundles of",
        when="unless `--namespaces` names every namespace",
    ),
    AdminRequest(
        "runtime-config",
        "/admin/v2/brokers/configuration/runtime",
        Scope.BROKER,
        f"{_SUPER}LIST_RUNTIME_CONFIGURATIONS",
        "settings in force, which load manager runs, the name of the cluster",
        "the defaults of 4.2.4 with the dynamic settings",
        only_settings=True,
    ),
    AdminRequest(
        "policies",
        "/admin/v2/namespaces/{tenant}/{namespace}",
        Scope.NAMESPACE,
        _NAMESPACE + "policy ALL",
        "dispatch rates; bundles where they are not answered",
        "those of the metadata store, else none",
    ),
    AdminRequest(
        "anti-affinity",
        "/admin/v2/namespaces/{tenant}/{namespace}/antiAffinity",
        Scope.NAMESPACE,
        _NAMESPACE + "policy ANTI_AFFINITY",
        "the anti-affinity group",
        "that of the metadata store, else none",
        text=True,
    ),
    AdminRequest(
        "persistent-topics",
        "/admin/v2/persistent/{tenant}/{namespace}",
        Scope.NAMESPACE,
        _NAMESPACE + "operation GET_TOPICS",
        "topics that no broker has loaded, partitions one by one",
        "only topics that brokers have loaded",
        max_bytes=128 * _MIB,
        when="with topics",
    ),
    AdminRequest(
        "partitioned-topics",
        "/admin/v2/persistent/{tenant}/{namespace}/partitioned",
        Scope.NAMESPACE,
        _NAMESPACE + "operation GET_TOPICS",
        "which topics are partitioned",
        "no word about partitioned topics without partitions",
        max_bytes=128 * _MIB,
        when="with topics",
    ),
    AdminRequest(
        "bundles",
        "/admin/v2/namespaces/{tenant}/{namespace}/bundles",
        Scope.NAMESPACE,
        _NAMESPACE + "operation GET_BUNDLE",
        "the bundles",
        "those of the metadata store, of the policies, or the owned ones",
    ),
    AdminRequest(
        "owned",
        "/admin/v2/brokers/{cluster}/{broker}/ownedNamespaces",
        Scope.BROKER,
        f"{_SUPER}LIST_OWNED_NAMESPACES",
        "the bundles of each broker",
        "those of the metadata store or of its load report",
        max_bytes=64 * _MIB,
    ),
    AdminRequest(
        "load-report",
        "/admin/v2/broker-stats/load-report",
        Scope.BROKER,
        "superuser",
        "load of the broker and current values of its bundles",
        "those of the metadata store, else unknown",
        max_bytes=64 * _MIB,
        when="modular load manager; the extensible one has none",
    ),
    AdminRequest(
        "topics",
        "/admin/v2/broker-stats/topics",
        Scope.BROKER,
        "superuser",
        "rates, producers and consumers of topics",
        "topics without rates",
        max_bytes=1024 * _MIB,
        when="with topics",
    ),
    AdminRequest(
        "metrics",
        "/admin/v2/broker-stats/metrics",
        Scope.BROKER,
        "superuser",
        "load of the broker as percentages",
        "load unknown",
        max_bytes=64 * _MIB,
        when="extensible load manager, unless `--metrics` says otherwise",
    ),
    AdminRequest(
        "prometheus",
        "/metrics/",
        Scope.BROKER,
        "none; any role with `authenticateMetricsEndpoint`",
        "load of the broker as percentages",
        "load unknown",
        max_bytes=64 * _MIB,
        text=True,
        when="`--metrics prometheus` or an address",
    ),
)
"""All requests, in the order in which they are first sent: what changes fast comes last, and close together."""

_BY_NAME = MappingProxyType({request.name: request for request in CATALOGUE})


def request_named(name: str) -> AdminRequest:
    """Return a request by its name."""
    return _BY_NAME[name]


KEPT_CONFIGURATION: frozenset[str] = frozenset(REFERENCE.settings) | {"clusterName", "loadManagerClassName"}
"""Names that are kept of a broker's configuration; others, passwords among them, are dropped as the answer arrives."""


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """Nodes of the metadata store that are read.

    Attributes:
        path: Path of the folder, or of a single node.
        gives: What the snapshot has from it.
        below: Whether its children, at any depth, are read as well.
        by_namespace: Whether its children are namespaces, so that `--namespaces` applies.
        only_settings: See `AdminRequest`.
    """

    path: str
    gives: str
    below: bool = True
    by_namespace: bool = False
    only_settings: bool = False


STORE_FOLDERS: tuple[StoreFolder, ...] = (
    StoreFolder("/loadbalance/leader", "the leader", below=False),
    StoreFolder("/loadbalance/extension/leader", "the leader (extensible load manager)", below=False),
    StoreFolder("/loadbalance/brokers", "the load reports as the leader reads them; versions, addresses over TLS"),
    StoreFolder("/loadbalance/broker-time-average", "short-term and long-term averages of brokers"),
    StoreFolder("/loadbalance/bundle-data", "short-term and long-term averages of bundles", by_namespace=True),
    StoreFolder("/namespace", "owners of bundles (modular load manager)", by_namespace=True),
    StoreFolder("/admin/local-policies", "bundles and anti-affinity groups", by_namespace=True),
    StoreFolder("/admin/policies", "dispatch rates", by_namespace=True),
    StoreFolder("/admin/clusters/{cluster}/namespaceIsolationPolicies", "isolation policies", below=False),
    StoreFolder("/admin/clusters/{cluster}/failureDomain", "failure domains"),
    StoreFolder("/admin/configuration", "settings changed while the cluster runs", below=False, only_settings=True),
)
"""All nodes that are read where the metadata store may be asked. They need the right to read, where ACLs are set."""
