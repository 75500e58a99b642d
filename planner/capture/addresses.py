"""Where the brokers of a cluster are asked."""

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from planner.capture.client import Endpoint, endpoint_of
from planner.cluster.errors import CaptureError, FormatError
from planner.cluster.pulsar_json import host_and_port
from planner.formats.encoding import parse_json

BROKER_ID = re.compile(r"(?:[-\w.]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}")
"""A broker id: host and port of its web service."""

BEHIND_ONE = (
    "Behind one address (a proxy, an ingress, a forwarded port), leave these out and name the --metadata-store: it has "
    "loads and owners."
)
"""What to do where brokers have no addresses of their own."""

NO_LOADS = (
    "With the extensible load manager, loads are in a system topic alone, so usage is unknown. To add it, let this run "
    "for three minutes: pulsar-client consume -s planner -n 0 "
    "non-persistent://pulsar/system/loadbalancer-broker-load-data > loads.txt; then: "
    "python -m planner snapshot CAPTURE/raw loads.txt --out complete.zip"
)
"""How to get the loads that a capture through one address does not have."""


def check_apart(addresses: Mapping[str, str]) -> None:
    """Refuse one address for two brokers: answers that do not name their broker would be taken for both.

    Args:
        addresses: Address by broker id.

    Raises:
        CaptureError: Naming the address and two of its brokers.
    """
    taken: dict[Endpoint, str] = {}
    for broker, address in addresses.items():
        if (other := taken.setdefault(endpoint_of(address), broker)) != broker:
            raise CaptureError(
                f"{address} is the address of both {other} and {broker}, so their answers cannot be told apart.",
                where="--broker-at, --broker-url",
                remedy=f"Give each broker an address of its own. {BEHIND_ONE}",
            )


def tls_addresses(nodes: Iterable[Mapping[str, Any]], brokers: Mapping[str, str]) -> dict[str, str]:
    """Return the https addresses that brokers have registered in the metadata store, by broker id.

    Args:
        nodes: Load reports of the metadata store, as a dump of it has them.
        brokers: The brokers; others are passed over.
    """
    found: dict[str, str] = {}
    for node in nodes:
        broker = str(node["path"]).rpartition("/")[2]
        with contextlib.suppress(FormatError):
            report = parse_json(str(node["data"]), broker)
            url = report.get("webServiceUrlTls") if isinstance(report, dict) else None
            place = host_and_port(url)
            if broker in brokers and place is not None and BROKER_ID.fullmatch(place):
                found[broker] = f"https://{place}"
    return found
