"""The brokers of a raw capture, and the aliases `b1`, `b2`, … that its files use for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planner.cluster.errors import FormatError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME
from planner.cluster.pulsar_json import host_and_port, web_services
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.metadata_store import MetadataStore
from planner.formats.raw_capture.metrics import broker_named

REPORTS = "/loadbalance/brokers"
"""Folder of the metadata store with one node for each active broker."""

UNNAMED = "captured"
"""What a cluster is called whose capture does not name it."""

OTHER_ANSWERED = "another broker answered; --broker-at gives each broker an address of its own"
"""Why an answer is not about the broker that was meant, and what to do."""

_STEMS = ("load-report", "owned", "topics", "metrics", "prometheus", "runtime-config")
_TELLING = ("load-report", "owned", "topics", "metrics", "prometheus")
_OWNED_PATH = r"/admin/v2/brokers/([^/]+)/([^/]+)/ownedNamespaces"


@dataclass(frozen=True, slots=True)
class CapturedBrokers:
    """The brokers of a capture.

    Attributes:
        names: Broker ids in the order of the source.
        aliases: `b1`, `b2`, … of each broker that answered, by broker id.
    """

    names: tuple[str, ...]
    aliases: Mapping[str, str]


def _known(answers: Answers, store: MetadataStore) -> tuple[str, ...]:
    for stem in ("brokers", "brokers-all"):
        listed = answers.json(stem, list, "The list of brokers comes from another part of the capture.")
        if listed and all(isinstance(name, str) for name in listed):
            return tuple(dict.fromkeys(listed))
    return tuple(name for name in store.below(REPORTS) if "/" not in name)


def _candidates(answers: Answers, tag: str) -> Iterator[str]:
    """Yield what a numbered broker may be called, the surest first."""
    yield from (groups[1] for stem, groups in answers.asked(_OWNED_PATH) if stem == f"owned.{tag}")
    for name in (f"{stem}.{tag}.{ending}" for stem in _STEMS for ending in ("json", "txt")):
        if name in answers.index and (broker := host_and_port(answers.index[name].asked)):
            yield broker
    if answers.has(f"load-report.{tag}"):
        yield from web_services(answers.json(f"load-report.{tag}", dict) or {})


def find_brokers(answers: Answers, store: MetadataStore) -> CapturedBrokers:
    """Return the brokers of a capture.

    They are those of `brokers.json`, else of the metadata store, else those that were asked. A number belongs to the
    broker named in the request for owned namespaces, which no other one answers; failing that to the one whose address
    was asked under it, or that is named in the load report. A broker that gave no answer worth reading has no number.

    Raises:
        FormatError: No broker is known.
    """
    known = _known(answers, store)
    aliases: dict[str, str] = {}
    for tag in answers.tags:
        names = list(_candidates(answers, tag))
        broker = next((name for name in names if name in known), None) if known else next(iter(names), None)
        if broker is None:
            answers.warn(f"{tag} is not one of the brokers that the cluster lists. Its answers were left out.")
        elif broker in aliases:
            answers.warn(f"{tag} and {aliases[broker]} are both {broker}. The answers of {tag} were left out.")
        elif any(answers.has(f"{stem}.{tag}") for stem in _TELLING):
            aliases[broker] = tag
    names = list(known or aliases)
    if not names:
        raise FormatError(
            "The capture does not name a broker.",
            where="brokers.json",
            remedy="Also capture the list of brokers (GET /admin/v2/brokers) or the metadata store.",
        )
    found = CapturedBrokers(tuple(names), aliases)
    _refuse_metrics_of_others(answers, found)
    return found


def _refuse_metrics_of_others(answers: Answers, brokers: CapturedBrokers) -> None:
    """Leave out metrics that name another broker than the one whose they would be: one address led to several."""
    hosts = {name: name.rpartition(":")[0] for name in brokers.names}
    for broker, tag in brokers.aliases.items():
        for stem in (f"metrics.{tag}", f"prometheus.{tag}"):
            named = broker_named(answers, stem)
            if named != hosts[broker] and named in hosts.values():
                answers.refuse(stem, f"they are those of {named}, not of {broker}: {OTHER_ANSWERED}")
                answers.warn(f"{stem} is of {named}, not of {broker}: {OTHER_ANSWERED}. It was left out.")


def cluster_of(answers: Answers, store: MetadataStore) -> str:
    """Return the name of the cluster, from what was asked, its settings, or the list of clusters; else `UNNAMED`."""
    for pattern in (_OWNED_PATH, r"/admin/v2/clusters/([^/]+)/.+", r"/admin/v2/brokers/([^/]+)"):
        for stem, groups in answers.asked(pattern):
            if len(groups) > 1 or "clusters/" in pattern or stem == "brokers":
                return groups[0]
    listed = answers.json("clusters", list) or []
    known = [name for name in listed if isinstance(name, str) and name != "global"]
    known += [name for name in store.below("/admin/clusters") if "/" not in name]
    return known[0] if known else UNNAMED


def load_manager_of(answers: Answers, store: MetadataStore, brokers: CapturedBrokers) -> LoadManager:
    """Return which load manager the cluster runs, as its settings, its brokers' reports, or their refusal tell."""
    for broker in brokers.names:
        tag = brokers.aliases.get(broker)
        reports = [store.node(f"{REPORTS}/{broker}")]
        if tag is not None:
            reports += [
                answers.json(f"{stem}.{tag}", dict) or {}
                for stem in ("runtime-config", "load-report")
                if answers.has(f"{stem}.{tag}")
            ]
        for answer in reports:
            name = answer.get(LOAD_MANAGER_CLASS_NAME)
            if isinstance(name, str) and name:
                return LoadManager.EXTENSIBLE if "Extensible" in name else LoadManager.MODULAR
    refusals = (f"load-report.{tag}.{ending}" for tag in brokers.aliases.values() for ending in ("json", "txt"))
    refused = any(b"ExtensibleLoadManager" in answers.files[name] for name in refusals if name in answers.files)
    return LoadManager.EXTENSIBLE if refused or answers.has("system-topics") else LoadManager.MODULAR
