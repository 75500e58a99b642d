"""Isolation, anti-affinity, failure domains and dispatch limits of a raw capture."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from planner.cluster.names import DISPATCH_THROTTLING_RATE_IN_BYTE, DISPATCH_THROTTLING_RATE_IN_MSG
from planner.cluster.snapshot import MAX_NAME, DispatchRate, DispatchRatePolicy, IsolationPolicy, Policies
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.metadata_store import MetadataStore
from planner.pulsar.placement.filters import broker_domains

_Kind = Literal["dispatch", "subscription", "replicator"]

_RATES: Mapping[str, tuple[str, _Kind]] = {
    "dispatchRate": ("topicDispatchRate", "dispatch"),
    "subscriptionDispatchRate": ("subscriptionDispatchRate", "subscription"),
    "replicatorDispatchRate": ("replicatorDispatchRate", "replicator"),
}
"""Field of the namespace's policies, and kind, of each request. `publishRate` limits publishing and is none of them."""

_BEFORE = "clusterDispatchRate"
"""What `topicDispatchRate` was called; brokers still read it where the newer one says nothing of the cluster."""

_ASKED_RATE = "(" + "|".join(_RATES) + ")"
_POLICIES = "/admin/policies"
_LOCAL = "/admin/local-policies"
_SHOWN = 80
_MOST_NAMED = 5


def read_capture_policies(answers: Answers, store: MetadataStore, cluster: str) -> Policies:
    """Return the policies, from the admin API where it answered, else from the metadata store."""
    below = f"/admin/clusters/{cluster}"
    isolation = answers.json("isolation-policies", dict, "Isolation policies come from the metadata store.")
    if isolation is None or store.is_newer(f"{below}/namespaceIsolationPolicies", "isolation-policies"):
        isolation = store.node(f"{below}/namespaceIsolationPolicies")
    domains = answers.json("failure-domains", dict, "Failure domains come from the metadata store.")
    folder = f"{below}/failureDomain"
    if domains is None or any(store.is_newer(f"{folder}/{n}", "failure-domains") for n in store.below(folder)):
        domains = {name: store.node(f"{folder}/{name}") for name in store.below(folder)}
    of_domains = {n: _brokers(answers, n, d.get("brokers")) for n, d in domains.items() if isinstance(d, dict)}
    for note in domain_notes(of_domains):
        answers.warn(note)
    return Policies(
        isolation=tuple(_isolation(name, p) for name, p in isolation.items() if isinstance(p, dict)),
        anti_affinity_group=dict(_groups(answers, store)),
        failure_domains=of_domains,
        dispatch_rates=tuple(_dispatch_rates(answers, store, cluster)),
    )


def domain_notes(domains: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a sentence on each broker in several failure domains, which the admin API refuses, but a store may have."""
    for broker, domain in broker_domains(Policies(failure_domains=domains)).items():
        others = [name for name, brokers in domains.items() if broker in brokers and name != domain]
        if others:
            yield (
                f"{broker[:_SHOWN]} is in several failure domains. Pulsar takes the last one by name,"
                f" {domain[:_SHOWN]}, and not {', '.join(name[:_SHOWN] for name in sorted(others)[:_MOST_NAMED])}."
                " Remove it from the others with pulsar-admin clusters update-failure-domain."
            )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


def _brokers(answers: Answers, domain: str, value: Any) -> tuple[str, ...]:
    """Return the brokers of a failure domain without what is no name, as `--broker-list b1,,b2` makes one."""
    every = _texts(value)
    kept = tuple(name for name in every if 0 < len(name) <= MAX_NAME)
    if len(kept) < len(every):
        answers.warn(
            f"Failure domain {domain[:_SHOWN]}: broker names that are empty or longer than {MAX_NAME:,} "
            f"characters were left out ({len(every) - len(kept)} of {len(every)}). Correct it with "
            "pulsar-admin clusters update-failure-domain."
        )
    return kept


def _isolation(name: str, policy: Mapping[str, Any]) -> IsolationPolicy:
    failover = policy.get("auto_failover_policy")
    given = failover.get("parameters") if isinstance(failover, dict) else None
    parameters: Mapping[str, Any] = given if isinstance(given, dict) else {}

    def parameter(key: str, default: int) -> int:
        text = str(parameters.get(key, default)).strip()
        return int(text) if text.isdecimal() and len(text) < 10 else default  # noqa: PLR2004 - digits of an int

    return IsolationPolicy(
        name=name,
        namespaces=_texts(policy.get("namespaces")),
        primary=_texts(policy.get("primary")),
        secondary=_texts(policy.get("secondary")),
        min_limit=parameter("min_limit", 1),
        usage_threshold_percent=parameter("usage_threshold", 100),
    )


def _groups(answers: Answers, store: MetadataStore) -> Iterator[tuple[str, str]]:
    """Yield namespace and anti-affinity group; the quotes of a group that was set as JSON are not part of its name."""
    seen: set[str] = set()
    for stem, (namespace,) in answers.asked(r"/admin/v2/namespaces/([^/]+/[^/]+)/antiAffinity"):
        if answers.trouble(stem) or store.is_newer(f"{_LOCAL}/{namespace}", stem):
            continue
        seen.add(namespace)
        if (plain := _unquoted(answers.text(stem))) and _fits(answers, namespace, plain):
            yield namespace, plain
    for namespace in store.below(_LOCAL):
        group = store.node(f"{_LOCAL}/{namespace}").get("namespaceAntiAffinityGroup")
        if namespace in seen or not isinstance(group, str):
            continue
        if (plain := _unquoted(group)) and _fits(answers, namespace, plain):
            yield namespace, plain


def _fits(answers: Answers, namespace: str, group: str) -> bool:
    if len(group) > MAX_NAME:
        answers.warn(
            f"The anti-affinity group of {namespace[:_SHOWN]} has a name longer than {MAX_NAME:,} "
            "characters. It was left out. Set another group with pulsar-admin namespaces "
            "set-anti-affinity-group."
        )
    return len(group) <= MAX_NAME


def _unquoted(group: str) -> str:
    return group.strip().strip('"').strip()


def _dispatch_rates(answers: Answers, store: MetadataStore, cluster: str) -> Iterator[DispatchRatePolicy]:
    seen: set[tuple[str, str]] = set()
    for stem, (namespace, asked) in answers.asked(rf"/admin/v2/namespaces/([^/]+/[^/]+)/{_ASKED_RATE}"):
        kind = _RATES[asked][1]
        if answers.has(stem):
            seen.add((namespace, kind))
            yield from _rate(kind, namespace, answers.json(stem, dict))
    for namespace, policies in _namespace_policies(answers, store):
        for field, kind in _RATES.values():
            if (namespace, kind) not in seen and (rate := _of_cluster(policies, field, cluster)) is not None:
                seen.add((namespace, kind))
                yield from _rate(kind, namespace, rate)
    for stem, (domain, topic, asked) in answers.asked(
        rf"/admin/v2/(persistent|non-persistent)/([^/]+/[^/]+/[^/]+)/{_ASKED_RATE}"
    ):
        yield from _rate(_RATES[asked][1], f"{domain}://{topic}", answers.json(stem, dict))


def _of_cluster(policies: Mapping[str, Any], field: str, cluster: str) -> Any:
    """Return the rate of a cluster in the policies of a namespace; of topics also as older releases wrote it.

    Mirrors `AbstractTopic.updateNamespaceDispatchRate`.
    """
    fields = (field, _BEFORE) if field == _RATES["dispatchRate"][0] else (field,)
    found = (rates.get(cluster) for name in fields if isinstance(rates := policies.get(name), dict))
    return next((rate for rate in found if rate is not None), None)


def _namespace_policies(answers: Answers, store: MetadataStore) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for stem, (namespace,) in answers.asked(r"/admin/v2/namespaces/([^/]+/[^/]+)"):
        policies = answers.json(stem, dict, f"Policies of {namespace} come from the metadata store.")
        if policies and not store.is_newer(f"{_POLICIES}/{namespace}", stem):
            yield namespace, policies
    for namespace in store.below(_POLICIES):
        if namespace.count("/") == 1:
            yield namespace, store.node(f"{_POLICIES}/{namespace}")


def _rate(kind: _Kind, target: str, rate: Any) -> Iterator[DispatchRatePolicy]:
    if not isinstance(rate, dict) or not rate:
        return

    def count(key: str, default: int, bits: int) -> int:
        value = rate.get(key)
        return value if type(value) is int and abs(value) < 1 << bits else default  # True is an int

    yield DispatchRatePolicy(
        kind=kind,
        target=target,
        rate=DispatchRate(
            msg_per_period=count(DISPATCH_THROTTLING_RATE_IN_MSG, -1, 31),
            bytes_per_period=count(DISPATCH_THROTTLING_RATE_IN_BYTE, -1, 63),
            period_s=count("ratePeriodInSecond", 1, 31),
            relative_to_publish_rate=rate.get("relativeToPublishRate") is True,
        ),
    )
