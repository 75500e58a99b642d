"""The bundles of each namespace in a raw capture, and who owns them."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from planner.cluster.errors import FormatError
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.pulsar_json import last_stats, service_unit_owner, web_services
from planner.cluster.ranges import FULL_HIGH, bundle_name, parse_bundle
from planner.cluster.releases import Release
from planner.cluster.topic_names import FOUR_PARTS, is_namespace_with_cluster
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.identity import CapturedBrokers
from planner.formats.raw_capture.metadata_store import MetadataStore
from planner.formats.raw_capture.reports import Report
from planner.formats.raw_capture.system_topics import SystemTopics
from planner.formats.raw_capture.topics import ServedTopic

_BOUNDARY = re.compile("0x([0-9a-f]{8})")
_NAMESPACE_PATH = r"/admin/v2/namespaces/([^/]+/[^/]+)"
_OWNERSHIP = "/namespace"
_LATELY_MS = 300_000
_MOST_TAKEN = 10_000


def claimed_bundles(
    answers: Answers,
    store: MetadataStore,
    topics: SystemTopics,
    brokers: CapturedBrokers,
    reports: Mapping[str, Report],
) -> dict[str, list[str]]:
    """Return the bundles that each broker owns, by its own word where it answered.

    Else they are those of the ownership nodes of the metadata store, of the ownership channel of the extensible load
    manager, and of its last report.
    """
    stored = _stored_owners(store) | _channel_owners(topics)
    claims: dict[str, list[str]] = {}
    for broker in brokers.names:
        tag = brokers.aliases.get(broker)
        instead = "Its bundles come from the metadata store and its last report."
        owned = answers.json(f"owned.{tag}", dict, instead) if tag is not None else None
        if owned is not None:
            claims[broker] = list(owned)
            continue
        claims[broker] = [name for name, owner in stored.items() if owner == broker]
        claims[broker] += [n for n in last_stats(reports[broker]) if n not in stored]
    unlisted = sorted({o for o in stored.values() if o not in brokers.names})
    if unlisted:
        answers.warn(
            f"{', '.join(unlisted)} owns bundles but is not among the brokers. Those bundles are shown as unowned."
        )
    return claims


def _stored_owners(store: MetadataStore) -> dict[str, str]:
    owners: dict[str, str] = {}
    for name in store.below(_OWNERSHIP):
        owner = next(web_services(store.node(f"{_OWNERSHIP}/{name}"), ("httpUrl", "httpUrlTls")), None)
        if owner is not None:
            owners[name] = owner
    return owners


def taken_lately(store: MetadataStore, captured_at_ms: int) -> dict[str, int]:
    """Return the bundles that brokers took in the last minutes before a capture, and when: the newest ones."""
    start = f"{_OWNERSHIP}/"
    since_ms = captured_at_ms - _LATELY_MS
    found = {p[len(start) :]: at for p, at in store.created_ms.items() if at >= since_ms and p.startswith(start)}
    return dict(sorted(found.items(), key=lambda item: -item[1])[:_MOST_TAKEN])


def _channel_owners(topics: SystemTopics) -> dict[str, str]:
    return {name: owner for name, state in topics.ownership.items() if (owner := service_unit_owner(state))}


def read_boundaries(
    answers: Answers, store: MetadataStore, claims: Mapping[str, Iterable[str]], decides: Release
) -> dict[str, tuple[int, ...]]:
    """Return the boundaries of each namespace.

    They are what the admin API answered for the namespace's bundles, else what the metadata store holds, else what the
    namespace's policies say. Where nobody says, the owned bundles stay, and what lies between them becomes one bundle
    that is not loaded; that is how the namespaces of heartbeats get theirs.
    """
    found: dict[str, tuple[int, ...]] = {}
    for namespace, value, source in _sources(answers, store, decides):
        if namespace not in found:
            boundaries = _boundaries(value, source, answers)
            if boundaries is not None:
                found[namespace] = boundaries
    _add_owned(answers, claims, found, decides)
    listed = {name for _, name in _listed(answers)}
    for namespace in sorted(listed - set(found)):
        answers.warn(
            f"The bundles of {namespace} were not captured, and no broker owns one. The namespace was left out."
        )
    return found


def _add_owned(
    answers: Answers, claims: Mapping[str, Iterable[str]], found: dict[str, tuple[int, ...]], decides: Release
) -> None:
    """Add the namespaces that only the ownership of bundles tells of."""
    pieces: dict[str, set[tuple[int, int]]] = {}
    for name in (name for names in claims.values() for name in names):
        with contextlib.suppress(FormatError):  # `read_owners` reports it
            namespace, low, high = parse_bundle(name)
            plain = _is_served(namespace, decides) or is_heartbeat_or_sla_namespace(namespace, decides)
            if plain and namespace not in found:
                pieces.setdefault(namespace, set()).add((low, high))
    for namespace, ranges in pieces.items():
        found[namespace] = tuple(sorted({0, FULL_HIGH, *(edge for pair in ranges for edge in pair)}))
        if len(found[namespace]) - 1 > len(ranges):
            answers.warn(
                f"The bundles of {namespace} were not captured. The ranges between the owned bundles are "
                "shown as unowned bundles."
            )


def _is_served(namespace: str, decides: Release) -> bool:
    """Say whether a release serves namespaces of such a name: older ones take those that name a cluster as well."""
    with_cluster = decides.has(FOUR_PARTS) and is_namespace_with_cluster(namespace)
    return namespace.count("/") == 1 or with_cluster


def _sources(answers: Answers, store: MetadataStore, decides: Release) -> Iterator[tuple[str, Any, str]]:
    """Yield namespace, what may hold its boundaries, and where that is from, the freshest first."""
    for stem, (namespace,) in answers.asked(f"{_NAMESPACE_PATH}/bundles"):
        instead = f"The bundles of {namespace} come from the metadata store, its policies or its owned bundles."
        yield namespace, answers.json(stem, dict, instead), stem
    for folder in ("/admin/local-policies", "/admin/policies"):
        for namespace in store.below(folder):
            if _is_served(namespace, decides):
                yield namespace, store.node(f"{folder}/{namespace}").get("bundles"), f"{folder}/{namespace}"
    for stem, (namespace,) in answers.asked(_NAMESPACE_PATH):
        policies = answers.json(stem, dict, f"Policies of {namespace} come from the metadata store.") or {}
        yield namespace, policies.get("bundles"), stem


def _listed(answers: Answers) -> Iterator[tuple[str, str]]:
    for stem, _ in answers.asked(r"/admin/v2/namespaces/([^/]+)"):
        for name in answers.json(stem, list) or ():
            if isinstance(name, str):
                yield stem, name


def _boundaries(value: Any, source: str, answers: Answers) -> tuple[int, ...] | None:
    texts = value.get("boundaries") if isinstance(value, dict) else None
    if texts is None:
        return None
    matches = [_BOUNDARY.fullmatch(t) if isinstance(t, str) else None for t in texts] if isinstance(texts, list) else []
    edges = tuple(int(match[1], 16) for match in matches if match)
    whole = len(edges) == len(matches) > 1 and edges[0] == 0 and edges[-1] == FULL_HIGH
    if whole and all(low < high for low, high in pairwise(edges)):
        return edges
    answers.warn(f"{source}: the boundaries do not ascend from 0x00000000 to 0xffffffff. They were left out.")
    return None


def read_owners(
    answers: Answers,
    claims: Mapping[str, Sequence[str]],
    boundaries: Mapping[str, tuple[int, ...]],
    topic_stats: Mapping[str, ServedTopic],
) -> dict[str, str]:
    """Return the owner of each bundle of the layout that has one; the first claim counts.

    A bundle that nobody claims belongs to the broker that serves its topics: brokers of the extensible load manager do
    not list the bundles of `pulsar/system`.
    """
    layout = {
        bundle_name(namespace, low, high) for namespace, edges in boundaries.items() for low, high in pairwise(edges)
    }
    owners: dict[str, str] = {}
    for broker, names in claims.items():
        strays = [name for name in names if name not in layout]
        if strays:
            more = f" and {len(strays) - 1:,} more" if len(strays) > 1 else ""
            answers.warn(
                f"{strays[0]}{more}, owned by {broker}, is not among the bundles captured for its "
                "namespace, which was split meanwhile. It was left out; capture again."
            )
        for name in names:
            if name in layout and name in owners:
                answers.warn(
                    f"{owners[name]} and {broker} both claim {name}: it moved during the capture. It is "
                    "shown on the first."
                )
            elif name in layout:
                owners[name] = broker
    for stats in topic_stats.values():
        if stats.bundle in layout and stats.broker:
            owners.setdefault(stats.bundle, stats.broker)
    return owners
