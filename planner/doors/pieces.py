"""Pieces: what one output says of a cluster, typed, with where it was found.

A piece need not say which broker or namespace it is about, because the tools do not print it; `planner.doors.who` finds
that out from the other pieces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from planner.cluster.pulsar_json import Json
from planner.cluster.snapshot import Snapshot

TopicsOfBundles: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Json]]]
"""Topics with what a broker reports of each, by namespace and range: `broker-stats topics` without its domains."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a piece was found.

    Attributes:
        file: Name of the file; `pasted text` for what was pasted.
        position: Place in the file, such as `line 10`; empty for all of it.
        command: The command that stands above it, as in a copied terminal; empty where none does.
    """

    file: str
    position: str = ""
    command: str = ""

    def __str__(self) -> str:
        return f"{self.file}, {self.position}" if self.position else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one output says.

    Attributes:
        source: Where it was found.
    """

    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport(Piece):
    """A broker's load report.

    Attributes:
        report: `LocalBrokerData`, or `BrokerLoadData` of the extensible load manager.
        broker: The broker, where it is known.
        is_extensible: Whether it is `BrokerLoadData`, which lists no bundles.
        is_simple: Whether `SimpleLoadManagerImpl` wrote it, whose form is another one.
        parts: What it is made of, where that is not the whole report.
    """

    report: Json
    broker: str = ""
    is_extensible: bool = False
    is_simple: bool = False
    parts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopBundles(Piece):
    """The bundles that a broker of the extensible load manager reports, `TopBundlesLoadData`."""

    report: Json
    broker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipChange(Piece):
    """A message about the owner of a bundle, `ServiceUnitStateData`; later messages count."""

    bundle: str
    message: Json
    at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedBundles(Piece):
    """The bundles of a broker."""

    bundles: Sequence[str]
    broker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceBundles(Piece):
    """The boundaries of the bundles of a namespace, `BundlesData`."""

    bundles: Json
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePolicies(Piece):
    """The policies of a namespace, with the boundaries of its bundles."""

    policies: Json
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AntiAffinityGroup(Piece):
    """The anti-affinity group of a namespace."""

    group: str
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTopics(Piece):
    """The topics of a broker with their rates.

    Attributes:
        topics: The topics.
        broker: The broker, where it is known.
        lacking: How many topics lack a field, by its name.
        apart: How many topics have a rate that their parts do not add up to, by its name.
    """

    topics: TopicsOfBundles
    broker: str = ""
    lacking: Mapping[str, int] = field(default_factory=dict)
    apart: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatsOf(Piece):
    """What the owner of a topic reports of it; most releases do not say which broker that is.

    Attributes:
        topic: The topic.
        stats: What is used of its statistics.
        broker: The owner, where it is named.
        lacking: Which fields are not there.
        apart: Which rates its parts do not add up to.
    """

    topic: str
    stats: Json
    broker: str = ""
    lacking: Mapping[str, int] = field(default_factory=dict)
    apart: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNames(Piece):
    """Names of topics without rates.

    Attributes:
        names: Full names.
        are_partitioned: Whether they are partitioned topics, without their partitions.
    """

    names: Sequence[str]
    are_partitioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration(Piece):
    """Settings, by their `broker.conf` names; only those that the planner knows are kept, so that no secret is.

    Attributes:
        values: Value of each setting.
        form: `runtime` of a broker, `dynamic` overrides, or `file` that brokers start with.
        broker: The broker of a runtime configuration, where it is known.
        misspelt: Names that are none of Pulsar's load balancer, and the setting that each may mean.
        foreign: Other names, which the planner does not use.
        invalid: Settings with a value that they cannot have, and what they can; the value itself is not kept, because
            it may be anything.
        meant: The number that such a value means, where it is clear: 70 of `70%`.
        read_false: Switches with a text that is neither `true` nor `false`, which brokers take for false, and whether
            it seems to mean true.
        variables: Settings whose value a template or a shell fills in, and whether a default of it is taken.
        repeated: Settings with several values, of which the last one counts.
        unprefixed: Variables that images of Pulsar ignore: without the prefix, they only change lines of `broker.conf`.
        releases: Releases that the images beside the settings are of.
    """

    values: Mapping[str, str]
    form: Literal["runtime", "dynamic", "file"]
    broker: str = ""
    misspelt: Mapping[str, str] = field(default_factory=dict)
    foreign: Sequence[str] = ()
    invalid: Mapping[str, str] = field(default_factory=dict)
    meant: Mapping[str, str] = field(default_factory=dict)
    read_false: Mapping[str, bool] = field(default_factory=dict)
    variables: Mapping[str, bool] = field(default_factory=dict)
    repeated: Sequence[str] = ()
    unprefixed: Sequence[str] = ()
    releases: Sequence[str] = ()

    @property
    def is_of_brokers(self) -> bool:
        """Whether it has any setting of the load balancer, right or wrong; a file of a proxy or a bookie has none."""
        wrong = self.misspelt or self.invalid or self.read_false or self.variables or self.unprefixed
        return bool(self.values or wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPolicies(Piece):
    """Isolation policies by name, as the admin API answers."""

    policies: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchLimit(Piece):
    """A dispatch limit of a namespace or topic.

    Attributes:
        kind: Of all subscriptions of a topic, of each subscription, or of replicators.
        target: The namespace, or the full name of the topic.
        rate: The limit, `DispatchRate`.
    """

    kind: Literal["dispatch", "subscription", "replicator"]
    target: str
    rate: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDomains(Piece):
    """Failure domains by name, as the admin API answers."""

    domains: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers(Piece):
    """The brokers of the cluster."""

    brokers: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces(Piece):
    """Names of namespaces."""

    namespaces: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(Piece):
    """The leader."""

    broker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(Piece):
    """The release that brokers run."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Averages(Piece):
    """Averages that the leader keeps in the metadata store.

    Attributes:
        path: Path of the node, `/loadbalance/bundle-data/…` or `/loadbalance/broker-time-average/…`.
        values: `BundleData`, or `TimeAverageBrokerData`.
    """

    path: str
    values: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics(Piece):
    """Metrics of a broker at one moment.

    Attributes:
        broker: Broker id, or its host alone, or empty.
        pod: The pod, where a label says it; brokers behind one address are told apart by it.
        host: The host that the broker advertises, where a label says it; `broker` may be another address of it.
        labels: The labels that say where it was collected, such as `instance` and `job`.
        cluster: Name of the cluster, where a label says it.
        at_ms: When, ms since 1970; 0 unknown.
        plain: Name, labels and value of the metrics of the broker itself.
        bundles: Values of `NamespaceBundleStats` by bundle.
        topics: Values of `TopicStats` by topic.
        totals: What the broker says of all its topics, by the column of topics, and their number as `topics`.
    """

    broker: str = ""
    pod: str = ""
    host: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    at_ms: int = 0
    plain: Sequence[tuple[str, Mapping[str, str], float]] = ()
    bundles: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSnapshot(Piece):
    """A snapshot or capture of the planner's own.

    Attributes:
        snapshot: The snapshot.
        capture: The files of a raw capture; None of a snapshot.
    """

    snapshot: Snapshot
    capture: Mapping[str, bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUsed(Piece):
    """An output that is recognised, and says nothing that the planner can use.

    Attributes:
        why: What it is and why it is not used, one sentence.
        shows_extensible: Whether it shows that the cluster runs the extensible load manager.
        is_expected: Whether nothing is lost by it.
        letters: How long it is without blanks, where it is single lines among others.
    """

    why: str
    shows_extensible: bool = False
    is_expected: bool = False
    letters: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed(Piece):
    """What is assumed about how a file is to be read, one sentence."""

    text: str
