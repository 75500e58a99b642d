"""Rules that the placement filters of both load managers share, as pure functions over broker ids.

Mirrors parts of `LoadManagerShared`, `SimpleResourceAllocationPolicies` and `BrokerVersionFilter` of Pulsar 4.2.4.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.errors import PulsarError
from planner.cluster.snapshot import IsolationPolicy, Policies
from planner.pulsar.load.java_pattern import java_pattern
from planner.pulsar.load.namespace_policies import isolation_policy

NO_DOMAIN = "default"
"""Where Pulsar counts brokers that belong to no failure domain."""

_NUMBER = r"(0|[1-9][0-9]*)"
_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_INT = 2**31 - 1


def broker_host(broker: str) -> str:
    """Return the host of a broker id: what stands before its last colon."""
    return broker.rpartition(":")[0]


def matches_any(expressions: Iterable[str], text: str) -> bool:
    """Say whether one of Java's regular expressions matches the whole text; bad ones match nothing."""
    return any(java_pattern(expression).matches(text) for expression in expressions)


@dataclass(frozen=True, slots=True)
class Isolation:
    """Which brokers the isolation policies leave to a namespace.

    Attributes:
        policy: The policy of the namespace; None when it has none.
        primary: Its primary brokers; without a policy, the brokers that are shared.
        secondary: Its secondary brokers, used or not.
        uses_secondary: Whether there are too few primary ones.
        unable: Without a policy: brokers that do not serve its kind of topic.
        reserved: Without a policy: brokers that are primary ones of some policy.
    """

    policy: IsolationPolicy | None
    primary: tuple[str, ...]
    secondary: tuple[str, ...]
    uses_secondary: bool
    unable: tuple[str, ...]
    reserved: tuple[str, ...]

    @property
    def candidates(self) -> tuple[str, ...]:
        """The brokers that may take a bundle of the namespace."""
        return self.primary + self.secondary if self.uses_secondary else self.primary


def isolate(policies: Policies, namespace: str, brokers: Sequence[str], serves: Callable[[str], bool]) -> Isolation:
    """Apply the isolation policies.

    Args:
        policies: Those of the cluster; the first one that names the namespace is its policy.
        namespace: `tenant/namespace`.
        brokers: Broker ids.
        serves: Says whether a broker serves the bundle's kind of topic; asked only where there is no policy.
    """
    policy = isolation_policy(policies, namespace)
    if policy is None:
        able = list(filter(serves, brokers))
        taken = [expression for other in policies.isolation for expression in other.primary]
        reserved = tuple([broker for broker in able if matches_any(taken, broker_host(broker))] if taken else ())
        shared = tuple(able) if not reserved else tuple(_without(able, reserved))
        unable = () if len(able) == len(brokers) else tuple(_without(brokers, able))
        return Isolation(None, shared, (), False, unable, reserved)
    primary = tuple(broker for broker in brokers if matches_any(policy.primary, broker_host(broker)))
    first = set(primary)
    others = (broker for broker in brokers if broker not in first)
    secondary = tuple(broker for broker in others if matches_any(policy.secondary, broker_host(broker)))
    return Isolation(policy, primary, secondary, len(primary) < policy.min_limit, (), ())


def _without(brokers: Sequence[str], others: Sequence[str]) -> list[str]:
    left_out = set(others)
    return [broker for broker in brokers if broker not in left_out]


def broker_domains(policies: Policies) -> dict[str, str]:
    """Return the failure domain of each broker that has one; of several, the last one by its name.

    Pulsar reads the domains as its metadata store lists them, in the order of their names, and keeps the last one.
    """
    domains = sorted(policies.failure_domains.items(), key=lambda of: of[0].encode("utf-16-be", "surrogatepass"))
    return {broker: domain for domain, brokers in domains for broker in brokers}


@dataclass(frozen=True, slots=True)
class LeastOfGroup:
    """What the anti-affinity rule leaves.

    Attributes:
        in_domain: Brokers of the failure domains with the fewest members of the group; all without domains.
        kept: Those of them with the fewest members themselves.
        domain_sums: Members in each domain; empty without domains.
        least: Fewest members among `in_domain`.
    """

    in_domain: tuple[str, ...]
    kept: tuple[str, ...]
    domain_sums: Mapping[str, int]
    least: int


def least_of_group(count: Mapping[str, int], domains: Mapping[str, str]) -> LeastOfGroup:
    """Keep the brokers with the fewest members of an anti-affinity group.

    Args:
        count: Members on each candidate, in candidate order.
        domains: Failure domain of each broker; empty to take no account of them. Brokers without one count as one
            domain.
    """
    sums: dict[str, int] = {}
    in_domain = dict(count)
    if domains and count:
        for broker, members in count.items():
            domain = domains.get(broker, NO_DOMAIN)
            sums[domain] = sums.get(domain, 0) + members
        lowest = min(sums.values())
        in_domain = {b: members for b, members in count.items() if sums[domains.get(b, NO_DOMAIN)] == lowest}
    return LeastOfGroup(tuple(in_domain), fewest(in_domain), sums, min(in_domain.values(), default=0))


def fewest(count: Mapping[str, int]) -> tuple[str, ...]:
    """Return the brokers with the smallest number, in order."""
    least = min(count.values(), default=0)
    return tuple(broker for broker, number in count.items() if number == least)


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version as Pulsar compares it; metadata of the build does not count.

    Attributes:
        numbers: Major, minor and patch.
        preview: Identifiers of a preview, such as `rc` and `1`; empty for a release, which comes after its previews.
    """

    numbers: tuple[int, int, int]
    preview: tuple[str, ...]

    def compare(self, other: "Version") -> int:
        """Return a negative number when this version comes before the other one, 0 when it is the same."""
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        if not self.preview or not other.preview:
            return bool(other.preview) - bool(self.preview)
        for one, two in zip(self.preview, other.preview, strict=False):
            if one != two:
                if _is_int(one) and _is_int(two):
                    return int(one) - int(two)
                return 1 if one > two else -1
        return len(self.preview) - len(other.preview)


def _is_int(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(_INT)) and int(text) <= _INT


def parse_version(text: str, broker: str) -> Version:
    """Read a version.

    Raises:
        PulsarError: The text is no semantic version; Pulsar then compares none.
    """
    found = _VERSION.fullmatch(text)
    if not found or not all(_is_int(found[part]) for part in (1, 2, 3)):
        raise PulsarError(
            "BrokerFilterBadVersionException",
            f"'{text}' of {broker} is not a semantic version, so brokers cannot be compared.",
            remedy="Turn preferLaterVersions off, or correct the broker's version, such as 4.2.4.",
        )
    numbers = (int(found[1]), int(found[2]), int(found[3]))
    return Version(numbers, tuple(found[4].split(".")) if found[4] else ())


def latest(versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the brokers that run the latest version.

    Args:
        versions: Version of each candidate, in candidate order.

    Raises:
        PulsarError: There is no candidate, or one of them has no semantic version.
    """
    if not versions:
        raise PulsarError("BrokerFilterBadVersionException", "There is no candidate whose version could be the latest.")
    parsed = {broker: parse_version(text, broker) for broker, text in versions.items()}
    best = next(iter(parsed.values()))
    for version in parsed.values():
        if best.compare(version) < 0:
            best = version
    return tuple(broker for broker, version in parsed.items() if version.compare(best) == 0)
