"""Every request that a capture sends: who is asked, what it needs, what it gives, and what is kept of the answer.

Nothing but the requests listed here is ever sent to a cluster, each with GET. Paths and permissions are those of Pulsar
4.2.4 (`BrokersBase`, `BrokerStatsBase`, `ClustersBase`, `TenantsBase`, `NamespacesBase`, `PersistentTopicsBase`). The
table of `docs/capture.md` is made from this list, which stands in `requests.csv`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from planner.cluster.files import packaged_rows
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME
from planner.cluster.releases import REFERENCE
from planner.cluster.units import MIB

_LEAST_MIB = 4


class Scope(StrEnum):
    """Of whom a request is asked, and how often."""

    CLUSTER = "once"
    TENANT = "each tenant"
    NAMESPACE = "each namespace"
    BROKER = "each broker, about itself"


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
    max_bytes: int = _LEAST_MIB * MIB
    required: bool = False
    text: bool = False
    may_be_unset: bool = False
    only_settings: bool = False
    when: str = ""

    def filled(self, names: Mapping[str, str]) -> str:
        """Return the path with names filled in, each escaped; a colon stays, as Pulsar's own tools leave it."""
        return self.path.format_map({key: quote(name, safe=":") for key, name in names.items()})


def _request(row: Mapping[str, str]) -> AdminRequest:
    texts: dict[str, Any] = {name: row[name] for name in ("name", "path", "permission", "gives", "without", "when")}
    switches: dict[str, Any] = dict.fromkeys(row["flags"].split(), True)
    return AdminRequest(
        **texts, **switches, scope=Scope[row["scope"].upper()], max_bytes=int(row["max_mib"] or _LEAST_MIB) * MIB
    )


CATALOGUE: tuple[AdminRequest, ...] = tuple(map(_request, packaged_rows("planner.capture", "requests.csv")))
"""All requests, in the order in which they are first sent: what changes fast comes last, and close together."""

_BY_NAME = MappingProxyType({request.name: request for request in CATALOGUE})


def request_named(name: str) -> AdminRequest:
    """Return a request by its name."""
    return _BY_NAME[name]


KEPT_CONFIGURATION: frozenset[str] = frozenset(REFERENCE.settings) | {"clusterName", LOAD_MANAGER_CLASS_NAME}
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
    StoreFolder("/loadbalance/brokers", "the load reports that the leader reads; versions and TLS addresses"),
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
