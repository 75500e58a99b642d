"""Which broker was meant by a name that none has: its host alone, an address, another port, other capitals, a pod."""

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import Final

SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
"""What an address begins with, such as `http://`."""
_PORT: Final = re.compile(r":[0-9]{1,5}$")


def broker_meant(name: str, brokers: Sequence[str]) -> str:
    """Return the id of the broker that a name means; empty where none is like it, or several are.

    Args:
        name: The name that no broker has.
        brokers: The ids of the brokers, host:port.
    """
    text = SCHEME.sub("", name.strip(" \t\r\n\"'`")).rstrip("/")
    hosts = {broker: _bare(broker.rpartition(":")[0]) for broker in brokers}
    for wanted in (_bare(text), _bare(_PORT.sub("", text))):
        found = [broker for broker, host in hosts.items() if host == wanted]
        found = found or [broker for broker, host in hosts.items() if host.partition(".")[0] == wanted]
        if len(found) == 1:
            return found[0]
    return ""


def how_to_name(name: str, brokers: Sequence[str]) -> str:
    """Return what to write instead of a name that no broker has, as a sentence."""
    if meant := broker_meant(name, brokers):
        return f"Write {meant}."
    return f"Choose one of its brokers, such as {brokers[0]}." if brokers else "Choose one of its brokers."


def ipv6(text: str) -> IPv6Address | None:
    """Return an IPv6 address, with or without brackets; None for any other text."""
    try:
        return IPv6Address(text.strip("[]"))
    except AddressValueError:
        return None


def _bare(host: str) -> str:
    """Return what remains of a host where capitals and the writing of an address do not count."""
    address = ipv6(host)
    return host.lower().rstrip(".") if address is None else address.compressed
