"""Names of hosts: as a browser sends them, as they are allowed, and where a broker answers."""

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address

from planner.cluster.errors import PlannerError

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_NAME = re.compile(r"\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/?#@]*@)?([^/?#@]*)", re.IGNORECASE)
_LAST_PORT = 65_535
TLS_PORTS = ("443", "8443")
"""Ports that brokers use for TLS alone; 8443 is the one of `webServicePortTls` in examples of Pulsar."""


def host_name(header: str) -> str:
    """Return the name in a `Host` header, in small letters, without port and brackets; empty where it is malformed."""
    match = _HOST.fullmatch(header)
    if match is None or int(match[2] or 0) > _LAST_PORT:
        return ""
    return match[1].strip("[]").rstrip(".").lower()


def web_address(broker: str, program: Sequence[str] = ()) -> str:
    """Return the address at which the admin API of a broker answers.

    The id of a broker has its plain port where it has one, so that a port of TLS says that there is no other.

    Args:
        broker: Its id, host:port.
        program: The words that start `pulsar-admin`: where these ask by TLS, a broker is asked so too.
    """
    secure = broker.rpartition(":")[2] in TLS_PORTS or uses_tls(program)
    return f"{'https' if secure else 'http'}://{broker}"


def uses_tls(program: Sequence[str]) -> bool:
    """Say whether the words that start `pulsar-admin` give it an address with TLS."""
    return any(word.removeprefix("--admin-url=").startswith("https://") for word in program)


def allowed_name(text: str, where: str) -> str:
    """Return a name under which a server answers, as `host_name` gives it.

    Args:
        text: A name of a host, its address, `*.` and the end of names, or `*` for any.
        where: The option or setting it was given in.

    Raises:
        PlannerError: No `Host` header has such a name.
    """
    name = text.strip().strip("[]").rstrip(".").lower()
    if _NAME.fullmatch(name) or _is_ipv6(name):
        return name
    if not name:
        raise PlannerError("The name is empty.", where=where, remedy="Use a name, such as planner.example.")
    match = _ADDRESS.match(text.strip())
    meant = host_name(match[1]) if match is not None else ""
    if not meant:
        try:
            meant = name.encode("idna").decode()
        except UnicodeError:
            meant = ""
    remedy = (
        f"Use {meant}." if _NAME.fullmatch(meant) or _is_ipv6(meant) else "Use the name alone, such as planner.example."
    )
    raise PlannerError(f"{text[:100]!r} is not a valid host name.", where=where, remedy=remedy)


def _is_ipv6(name: str) -> bool:
    try:
        IPv6Address(name)
    except AddressValueError:
        return False
    return True
