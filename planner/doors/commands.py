"""The commands whose outputs make a cluster; their answers may be copied from a terminal as they are."""

from collections.abc import Sequence
from typing import Final

from planner.cluster.host_names import web_address
from planner.cluster.load_manager import LoadManager

UNKNOWN_CLUSTER = "cluster"
"""What a cluster is called whose name is not known."""

ANY_BROKER, EACH_BROKER, EACH_NAMESPACE = "", "for each broker", "for each namespace"

LOAD_REPORT: Final = "curl -s {address}/admin/v2/broker-stats/load-report"
METRICS: Final = "curl -s {address}/metrics/"
"""What says the load of a broker of the extensible load manager, which has no load report."""

COMMANDS: Sequence[tuple[str, str]] = (
    ("pulsar-admin brokers list {cluster}", ANY_BROKER),
    ("pulsar-admin brokers leader-broker", ANY_BROKER),
    ("pulsar-admin brokers version", ANY_BROKER),
    (LOAD_REPORT, EACH_BROKER),
    ("pulsar-admin --admin-url {address} broker-stats topics", EACH_BROKER),
    ("pulsar-admin brokers namespaces {cluster} --url {broker}", EACH_BROKER),
    ("pulsar-admin namespaces bundles {namespace}", EACH_NAMESPACE),
    ("pulsar-admin --admin-url {address} brokers get-runtime-config", ANY_BROKER),
    ("pulsar-admin brokers get-all-dynamic-config", ANY_BROKER),
    ("pulsar-admin ns-isolation-policy list {cluster}", ANY_BROKER),
)
"""Ten commands, and how often each is run."""


def to_fill_in(cluster: str) -> str:
    """Return the name of a cluster for a command, or the word that stands for one that is not known."""
    return "CLUSTER" if cluster == UNKNOWN_CLUSTER else cluster


def script(
    cluster: str = "CLUSTER",
    brokers: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    load_manager: LoadManager | None = None,
) -> str:
    """Return the commands as lines for a terminal, with the names that are known filled in.

    Without a load manager, the line of the load report names what to ask for instead under the extensible one.
    """
    of = {EACH_BROKER: list(brokers) or ["BROKER"], EACH_NAMESPACE: list(namespaces) or ["TENANT/NAMESPACE"]}
    lines: list[str] = []
    for command, often in COMMANDS:
        is_load = command == LOAD_REPORT
        asked = METRICS if is_load and load_manager is LoadManager.EXTENSIBLE else command
        for name in of.get(often, [""]):
            broker = name if often == EACH_BROKER else (brokers or ["BROKER"])[0]
            address = web_address(broker)
            filled = asked.format(cluster=to_fill_in(cluster), broker=broker, address=address, namespace=name)
            comment = f"    # {often}" if often and name in ("BROKER", "TENANT/NAMESPACE") else ""
            if is_load and load_manager is None:
                comment += f"; extensible load manager: {METRICS.format(address=address)}"
            lines.append(f"{filled}{comment}")
    return "\n".join(lines)
