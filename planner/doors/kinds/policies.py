"""Isolation policies and failure domains: as JSON, or as Java prints them."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from planner.cluster.errors import FormatError
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import FailureDomains, IsolationPolicies, NotUsed

if TYPE_CHECKING:
    from planner.cluster.pulsar_json import Json

_ISOLATION_LINE: Final = re.compile(
    r"\s*+(\S++(?: \S++)*+)\s{2,}+NamespaceIsolationData\w*[({]\s*"
    r"namespaces=\[(.*?)\], primary=\[(.*?)\], secondary=(?:\[(.*?)\]|null)"
    r"(?:, (?:autoFailoverPolicy|auto_failover_policy)=(?:null|\w+[({](.*?)[)}]))?(?:, unloadScope=\w+)?[)}]\s*"
)
_PARAMETERS: Final = re.compile(r"parameters=\{([^}]*)\}?")
_DOMAIN_LINE: Final = re.compile(r"\s*+(\S++(?: \S++)*+)\s{2,}+FailureDomain\w*[({]\s*brokers=\[(.*?)\]\s*[)}]\s*")
_ONE_DOMAIN: Final = re.compile(r"get-failure-domain\s.*--domain-name[ =]['\"]?([^\s'\"]+)")
_OF_BROKER: Final = frozenset(["brokerName", "policyName", "isPrimary", "namespaceRegex"])
_OF_ISOLATION: Final = frozenset(["namespaces", "primary"])


def _listed(text: str | None) -> list[str]:
    return [part for part in (text or "").split(", ") if part]


def _is_isolation(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _OF_ISOLATION


def _recognise_isolation(chunk: Chunk) -> int:
    keys = chunk.keys
    if keys.keys() >= _OF_ISOLATION:
        return SURE
    found = bool(keys) and all(b'"primary"' in bytes(memoryview(part)) for part in keys.values())
    return SURE if found else NO


def _read_isolation(chunk: Chunk) -> Iterator[IsolationPolicies]:
    if chunk.is_json:
        value = chunk.value
        if _is_isolation(value):  # `ns-isolation-policy get CLUSTER NAME` does not print the name
            value = {chunk.about or (chunk.source.command.split() or ["policy"])[-1]: value}
        for name, policy in value.items():
            if isinstance(policy, dict) and policy.get("secondary", ()) is None:  # as Java prints none
                policy["secondary"] = []
            _check(policy, f"{chunk.source}: {name}")
        yield IsolationPolicies(source=chunk.source, policies=value)
        return
    policies: dict[str, Json] = {}
    for line in chunk.lines:
        if found := _ISOLATION_LINE.fullmatch(line):
            given = _PARAMETERS.search(found[5] or "")
            pairs = (part.partition("=") for part in _listed(given[1] if given else ""))
            policies[found[1]] = {
                "namespaces": _listed(found[2]),
                "primary": _listed(found[3]),
                "secondary": _listed(found[4]),
                "auto_failover_policy": {"parameters": {name: value for name, _, value in pairs}},
            }
    yield IsolationPolicies(source=chunk.source, policies=policies)


def _check(policy: Any, where: str) -> None:
    """Refuse a policy that is not one.

    Raises:
        FormatError: A list of expressions is missing, or has something else.
    """
    for name in ("namespaces", "primary", "secondary"):
        given = policy.get(name, [] if name == "secondary" else None) if isinstance(policy, dict) else None
        if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
            raise FormatError(f"'{name}' is not a list of texts.", where=where, remedy="Save the answer unchanged.")
    failover = policy.get("auto_failover_policy")
    if not isinstance(failover, dict) or not isinstance(failover.get("parameters"), dict):
        what = "'auto_failover_policy' has no parameters."
        raise FormatError(what, where=where, remedy="Save the answer unchanged.")
    for name, value in failover["parameters"].items():
        if not str(value).strip().isdecimal():
            raise FormatError(f"'{name}' is not a whole number.", where=where, remedy="Save the answer unchanged.")


def _recognise_domains(chunk: Chunk) -> int:
    keys = chunk.keys
    if keys.keys() == {"brokers"}:  # `get-failure-domain` does not print the name
        return SURE if _ONE_DOMAIN.search(chunk.source.command) else NO
    if not keys:
        return NO
    parts = [bytes(memoryview(part)).split() for part in keys.values()]
    return SURE if all(b"".join(part).startswith(b'{"brokers":') for part in parts) else NO


def _read_domains(chunk: Chunk) -> Iterator[FailureDomains]:
    if chunk.is_json:
        value = chunk.value
        named = _ONE_DOMAIN.search(chunk.source.command)
        domains = {named[1]: value} if named and "brokers" in value else value
        for name, domain in domains.items():
            brokers = domain.get("brokers") if isinstance(domain, dict) else None
            if not isinstance(brokers, list) or not all(isinstance(broker, str) for broker in brokers):
                what = "'brokers' is not a list of texts."
                raise FormatError(what, where=f"{chunk.source}: {name}", remedy="Save the answer unchanged.")
        yield FailureDomains(source=chunk.source, domains=domains)
        return
    rows = [found for line in chunk.lines if (found := _DOMAIN_LINE.fullmatch(line))]
    yield FailureDomains(source=chunk.source, domains={row[1]: {"brokers": _listed(row[2])} for row in rows})


ISOLATION = Kind(
    "isolation policies",
    "pulsar-admin ns-isolation-policy list CLUSTER",
    _recognise_isolation,
    _read_isolation,
    _ISOLATION_LINE,
)
DOMAINS = Kind(
    "failure domains",
    "pulsar-admin clusters list-failure-domains CLUSTER",
    _recognise_domains,
    _read_domains,
    _DOMAIN_LINE,
)


def _recognise_broker(chunk: Chunk) -> int:
    return SURE if "brokerName" in chunk.keys and chunk.keys.keys() <= _OF_BROKER else NO


def _read_broker(chunk: Chunk) -> Iterator[NotUsed]:
    why = "a broker with the namespaces that policies give it; use ns-isolation-policy list for the policies themselves"
    yield NotUsed(source=chunk.source, why=why, is_expected=True)


BROKER = Kind(
    "broker of isolation policies", "pulsar-admin ns-isolation-policy brokers CLUSTER", _recognise_broker, _read_broker
)
