"""Puts pieces together into the answers of a raw capture."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.moments import LAST_MS, SECONDS_BELOW
from planner.cluster.names import DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES, LOAD_MANAGER_CLASS_NAME
from planner.cluster.pulsar_json import BUNDLE_METRICS, RATES, Json, service_unit_owner
from planner.cluster.ranges import bundle_name
from planner.cluster.releases import RELEASES, Release, release
from planner.cluster.text import count
from planner.cluster.topic_names import FOUR_PARTS, refusal
from planner.doors import pieces as kinds
from planner.doors.again import last_answers, of_cluster, of_part
from planner.doors.boundaries import boundaries_in
from planner.doors.capture_form import CaptureForm
from planner.doors.commands import UNKNOWN_CLUSTER
from planner.doors.contradictions import Contradictions
from planner.doors.images import is_one_release, release_of_images
from planner.doors.metrics_reader import is_of_any_program
from planner.doors.metrics_text import as_text
from planner.doors.pieces import Piece, TopicsOfBundles
from planner.doors.placing import Placed, edges_of, place
from planner.doors.plausible import time_ms_of
from planner.doors.slim import slim
from planner.doors.vocabulary import is_before_and_after, merged
from planner.doors.who import Who, bundles_of
from planner.doors.words import BROKER, BUNDLE
from planner.formats.raw_capture.policies import domain_notes
from planner.history.assumed import listed

_CLUSTER_COMMAND: Final = re.compile(
    r"\b(?:brokers (?:list|namespaces)|ns-isolation-policy (?:list|get)|clusters list-failure-domains)\s+([\w.-]+)"
)
NEWEST_WITH_CLUSTERS: Final = next(name for name in reversed(RELEASES) if release(name).has(FOUR_PARTS))
"""The newest release that has namespaces with a cluster in their names."""
_EXTENSIBLE: Final = "Extensible"
_FEATURE: Final = "feature"


@dataclass
class Together:
    """Pieces by what they are about.

    Attributes:
        pieces: All of them, each with its broker or namespace.
        who: How they were named.
        said: Where two of them do not agree.
        called: Name of the cluster as a person gave it; empty where none did.
        told: The release as a person gave it; empty where none did.
        reports: The load report of each broker.
        tops: The top bundles of each broker.
        owned: The bundles of each broker.
        topics: The topics of each broker, as it lists them.
        metrics: The metrics of each broker.
        bundles: Boundaries of each namespace, as answered.
        runtime: The settings of each running broker; of one that is not named under an empty name.
        placed: Topics that are placed by their hash.
        known: Boundaries of each namespace, answered or concluded from the ranges that brokers name.
        partial: Namespaces of which only some ranges are known.
    """

    pieces: Sequence[Piece]
    who: Who
    said: Contradictions
    called: str = ""
    told: str = ""
    reports: dict[str, kinds.LoadReport] = field(default_factory=dict)
    tops: dict[str, kinds.TopBundles] = field(default_factory=dict)
    owned: dict[str, list[str]] = field(default_factory=dict)
    topics: dict[str, TopicsOfBundles] = field(default_factory=dict)
    metrics: dict[str, kinds.Metrics] = field(default_factory=dict)
    bundles: dict[str, Json] = field(default_factory=dict)
    runtime: dict[str, Mapping[str, str]] = field(default_factory=dict)
    placed: Placed = field(default_factory=Placed)
    known: dict[str, tuple[int, ...]] = field(default_factory=dict)
    partial: dict[str, None] = field(default_factory=dict)
    _by_type: dict[type[kinds.Piece], list[Any]] = field(default_factory=dict)

    def of(self, kind: type[kinds.Piece]) -> list[Any]:
        """Return the pieces of a type."""
        if kind not in self._by_type:
            self._by_type[kind] = [piece for piece in self.pieces if isinstance(piece, kind)]
        return self._by_type[kind]

    @property
    def brokers(self) -> list[str]:
        """Every broker, in the order of appearance."""
        return list(self.who.brokers)

    @property
    def unowned(self) -> list[str]:
        """Bundles that no broker names, of namespaces of which brokers name others."""
        owned = {name for names in self.owned.values() for name in names}
        served = {name.rpartition("/")[0] for name in owned}
        return [
            name
            for namespace, edges in self.known.items()
            if namespace in served and not is_heartbeat_or_sla_namespace(namespace, self.decides)
            for low, high in pairwise(edges)
            if (name := bundle_name(namespace, low, high)) not in owned
        ]

    @property
    def is_extensible(self) -> bool:
        """Whether anything shows that the cluster runs the extensible load manager."""
        named = [values.get(LOAD_MANAGER_CLASS_NAME, "") for values in self.runtime.values()]
        named += [str(one.report.get(LOAD_MANAGER_CLASS_NAME) or "") for one in self.reports.values()]
        if any(named):
            return any(_EXTENSIBLE in name for name in named)
        shown = any(one.is_extensible for one in self.reports.values()) or bool(self.tops)
        shown = shown or any(one.shows_extensible for one in self.of(kinds.NotUsed))
        shown = shown or any(self.of(kinds.OwnershipChange))
        return shown or any(_FEATURE in labels for one in self.metrics.values() for _, labels, _ in one.plain)

    @property
    def cluster(self) -> str:
        """Name of the cluster: as given, else from labels, policies or commands."""
        if self.called:
            return self.called
        labelled = [one.cluster for one in self.metrics.values() if one.cluster]
        asked = [found[1] for piece in self.pieces if (found := _CLUSTER_COMMAND.search(piece.source.command))]
        policies = [one.policies for one in self.of(kinds.NamespacePolicies)]
        limited = [
            name
            for one in policies
            for key in (
                "topicDispatchRate",
                "clusterDispatchRate",
                "subscriptionDispatchRate",
                "replicatorDispatchRate",
            )
            for rates in [one.get(key)]
            if isinstance(rates, dict)
            for name in rates
        ]
        replicated = [names for one in policies if isinstance(names := one.get("replication_clusters"), list)]
        alone = [str(names[0]) for names in replicated if len(names) == 1]
        return next(iter([*labelled, *asked, *limited, *alone]), UNKNOWN_CLUSTER)

    @cached_property
    def version(self) -> str:
        """The version that is named, else the newest that fits the names of namespaces; empty where any does."""
        return self.named or (NEWEST_WITH_CLUSTERS if self.has_clusters_in_names else "")

    @cached_property
    def named(self) -> str:
        """The version as a person gave it, else that the brokers or their images name; empty where none does."""
        return self.told or self.running or release_of_images(self.files)[0]

    @cached_property
    def has_clusters_in_names(self) -> bool:
        """Whether brokers serve namespaces with a cluster, as those of their health checks up to 4.0 are."""
        of_brokers = (kinds.LoadReport, kinds.OwnedBundles, kinds.BrokerTopics, kinds.Metrics)
        every = (name for kind in of_brokers for one in self.of(kind) for name in bundles_of(one))
        return any(name.count("/") > len("//") for name in every)

    @cached_property
    def running(self) -> str:
        """The version that the brokers name; empty where none does."""
        named = [one.version for one in self.of(kinds.Version)]
        for key in ("brokerVersionString", "brokerVersion"):
            named += [text for one in self.reports.values() if isinstance(text := one.report.get(key), str)]
        return next(filter(None, named), "")

    @cached_property
    def decides(self) -> Release:
        """The release that decides by that version; the reference where none is named."""
        return release(self.version)

    @property
    def file(self) -> Mapping[str, str]:
        """The settings that brokers start with: of the first settings file, where there are two of them."""
        return merged(self.files)

    @property
    def files(self) -> list[kinds.Configuration]:
        """The settings files that count: the first one, where there are two of one before and after a change."""
        files = [one for one in self.of(kinds.Configuration) if one.form == "file"]
        return files[:1] if is_before_and_after(files) else files


def together(pieces: Sequence[Piece], cluster: str = "", version: str = "") -> Together:
    """Sort pieces by broker and namespace, and resolve what two of them say about one thing."""
    said = Contradictions()
    who = Who(last_answers(_of_one_cluster(pieces, cluster, said), of_cluster, said))
    named = who.named()
    unknown = {id(piece) for piece in who.unknown}
    known = [piece for piece in named if id(piece) not in unknown]
    made = Together(last_answers(known, of_part, said), who, said, cluster, version)
    _leave_out_odd_brokers(made)
    _leave_out_other_programs(made)
    _take_reports(made)
    _take_configurations(made)
    _compare_versions(made)
    by_broker: dict[str, list[kinds.Metrics]] = {}
    for one in made.of(kinds.Metrics):
        by_broker.setdefault(one.broker, []).append(one)
    made.metrics = {broker: _merged_metrics(made, pieces) for broker, pieces in by_broker.items()}
    _take_topics(made)
    _take_bundles(made)
    _place_the_rest(made)
    _take_owned(made)
    for topics in (*made.of(kinds.BrokerTopics), *made.of(kinds.TopicStatsOf)):
        made.said.parts(topics)
    said.averages([one.path for one in made.of(kinds.Averages)], made.brokers)
    for note in domain_notes(_domains(made)):
        said.add(note)
    made.said.check_metrics(made.metrics, made.placed.topics)
    made.said.check(made.reports, made.owned, made.topics, made.bundles, made.brokers, made.of(kinds.Brokers))
    return made


def _domains(made: Together) -> dict[str, tuple[str, ...]]:
    found = {name: domain for one in made.of(kinds.FailureDomains) for name, domain in one.domains.items()}
    lists = {name: domain.get("brokers") for name, domain in found.items()}
    return {n: tuple(b for b in given if isinstance(b, str)) for n, given in lists.items() if isinstance(given, list)}


def _of_one_cluster(pieces: Sequence[Piece], called: str, said: Contradictions) -> Sequence[Piece]:
    """Leave out metrics and lists of brokers of other clusters than the one that is called so, or that most are of."""
    for what, cluster_of in (("metrics", _cluster_of_metrics), ("lists of brokers", _cluster_of_list)):
        named: Counter[str] = Counter()
        for one in pieces:
            if name := cluster_of(one):
                named[name] += _size(one)
        if len(named) > 1:
            kept = called if called in named else named.most_common(1)[0][0]
            said.add(
                f"The {what} are of several clusters: {listed(named)}. Those of {kept} count"
                f"{f', as none is called {called[:100]}' if called and called != kept else ''}; to read another one, "
                "read all of it again with the name of that cluster."
            )
            pieces = [one for one in pieces if cluster_of(one) in ("", kept)]
    return pieces


def _cluster_of_metrics(piece: Piece) -> str:
    return piece.cluster if isinstance(piece, kinds.Metrics) else ""


def _cluster_of_list(piece: Piece) -> str:
    found = _CLUSTER_COMMAND.search(piece.source.command) if isinstance(piece, kinds.Brokers) else None
    return found[1] if found else ""


def _size(piece: Piece) -> int:
    rows = (piece.plain, piece.bundles, piece.topics) if isinstance(piece, kinds.Metrics) else ("x",)
    return sum(map(len, rows))


def _leave_out_odd_brokers(made: Together) -> None:
    """Leave out what is called a broker and cannot be one, with all that is said of it."""
    odd = [name for name in made.who.brokers if not BROKER.fullmatch(name)]
    _leave_out(made, odd, "not a broker id, which is host:port.")


def _leave_out_other_programs(made: Together) -> None:
    """Leave out what has metrics of Java alone, and is named by nothing else: ZooKeeper, bookies and proxies do."""
    named = {name for one in made.of(kinds.Brokers) for name in one.brokers}
    pieces = [(name, one) for one in made.pieces if (name := getattr(one, "broker", ""))]
    named |= {name for name, one in pieces if not (isinstance(one, kinds.Metrics) and is_of_any_program(one))}
    _leave_out(
        made,
        [name for name, _ in pieces if name not in named],
        "they have only the metrics of any Java program, such as a bookie, ZooKeeper or a proxy.",
    )


def _leave_out(made: Together, names: Sequence[str], why: str) -> None:
    if names:
        gone = set(names)
        made.said.add(f"{listed(dict.fromkeys(names))} left out: {why}")
        made.pieces = [piece for piece in made.pieces if getattr(piece, "broker", "") not in gone]
        made._by_type.clear()  # noqa: SLF001 - our own
        for name in gone:
            made.who.brokers.pop(name, None)


def _take_reports(made: Together) -> None:
    for one in made.of(kinds.LoadReport):
        before = made.reports.get(one.broker)
        if before is not None:
            one = made.said.newer_report(before, one)  # noqa: PLW2901 - the one that counts
        made.reports[one.broker] = one
    for top in made.of(kinds.TopBundles):
        made.tops[top.broker] = top


def _compare_versions(made: Together) -> None:
    """Note load reports that name another release than the answer about it."""
    named = {made.told} if made.told else {one.version for one in made.of(kinds.Version)}
    texts = [one.report.get("brokerVersionString") for one in made.reports.values()]
    others = dict.fromkeys(text for text in texts if isinstance(text, str) and text and text not in named)
    if named and others:
        made.said.add(
            f"Load reports name Pulsar {listed(others)}, but the release is given as {made.version}, which counts."
        )
    of_images, where = release_of_images(made.files)
    told = made.told or made.running
    if of_images and told and not is_one_release(of_images, told):
        made.said.add(f"{where} has images of Pulsar {of_images}, but the brokers run {told}, which counts.")


def _take_configurations(made: Together) -> None:
    for one in made.of(kinds.Configuration):
        if one.form == "runtime":
            made.runtime[one.broker] = {**made.runtime.get(one.broker, {}), **one.values}


def _merged_metrics(made: Together, pieces: Sequence[kinds.Metrics]) -> kinds.Metrics:
    """Return the metrics of a broker of several texts as one; of what several say, the newest counts.

    An export has each metric in a text of its own, so that those of one moment are put together.
    """
    ordered = sorted(pieces, key=lambda one: one.at_ms)
    if len(ordered) == 1:
        return ordered[0]
    plain: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    rows: dict[str, dict[str, dict[str, float]]] = {"bundles": {}, "topics": {}}
    totals: dict[str, float] = {}
    again = False
    for one in ordered:
        said = {(name, tuple(sorted(labels.items()))): value for name, labels, value in one.plain}
        again = again or any(plain.get(key, value) != value for key, value in said.items())
        plain |= said
        totals |= one.totals
        for what, before in rows.items():
            given: Mapping[str, Mapping[str, float]] = getattr(one, what)
            if _are_again(before, given):  # a later scrape says which topics are there now
                again = again or before != given
                before.clear()
            for name, values in given.items():
                before.setdefault(name, {}).update(values)
    if again:
        made.said.add(f"There are metrics of several moments of {ordered[-1].broker}; the last ones count.")
    return replace(
        ordered[-1],
        host=next((one.host for one in ordered if one.host), ""),
        cluster=next((one.cluster for one in ordered if one.cluster), ""),
        plain=[(name, dict(labels), value) for (name, labels), value in plain.items()],
        bundles=rows["bundles"],
        topics=rows["topics"],
        totals=totals,
    )


def _are_again(before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]) -> bool:
    """Say whether a text has every value of topics or bundles that an earlier one has, and some of the same."""
    first, then = ({name for values in rows.values() for name in values} for rows in (before, after))
    return first <= then and not before.keys().isdisjoint(after)


def _take_topics(made: Together) -> None:
    for one in made.of(kinds.BrokerTopics):
        if one.broker in made.topics and made.topics[one.broker] != one.topics:
            made.said.add(f"Several answers list the topics of {one.broker}; the last one counts.")
        made.topics[one.broker] = _accepted(made, one)


def _accepted(made: Together, one: kinds.BrokerTopics) -> TopicsOfBundles:
    """Return the topics of a broker without those whose names the release does not accept."""
    decides = made.decides
    wrong = [name for s in one.topics.values() for found in s.values() for name in found if refusal(name, decides)]
    if not wrong:
        return one.topics
    made.said.add(
        f"{one.source}: {count(len(wrong), 'topic')} left out, whose names are not valid: {listed(wrong)}. The first"
        f" was refused: {refusal(wrong[0], decides)}. If the brokers run another release, add what pulsar-admin brokers"
        " version prints."
    )
    gone = set(wrong)
    return {
        namespace: {
            span: {name: stats for name, stats in found.items() if name not in gone} for span, found in spans.items()
        }
        for namespace, spans in one.topics.items()
    }


def _take_bundles(made: Together) -> None:
    """Take the boundaries of namespaces; of two answers that with more bundles, as bundles are split and not joined."""
    for one in [*made.of(kinds.NamespaceBundles), *made.of(kinds.NamespacePolicies)]:
        given = one.bundles if isinstance(one, kinds.NamespaceBundles) else one.policies.get("bundles")
        edges = boundaries_in(given)
        if not edges:
            continue
        before = boundaries_in(made.bundles.get(one.namespace))
        if before and before != edges:
            made.said.add(
                f"Two answers give different bundles of {one.namespace} ({len(before) - 1} and {len(edges) - 1}); the "
                "one with more bundles counts."
            )
        if len(edges) > len(before):
            made.bundles[one.namespace] = given
    spans: dict[str, set[str]] = {}
    for piece in made.pieces:
        for name in [piece.bundle] if isinstance(piece, kinds.OwnershipChange) else bundles_of(piece):
            namespace, _, span = name.rpartition("/")
            low, _, high = span.partition("_")
            if BUNDLE.fullmatch(name) and low < high:  # others are named where their broker is
                spans.setdefault(namespace, set()).add(span)
    for namespace, found in spans.items():
        edges = boundaries_in(made.bundles.get(namespace))
        made.known[namespace] = edges or edges_of(found)
        if not edges and len(found) < len(made.known[namespace]) - 1:
            made.partial[namespace] = None
    made.known |= {name: boundaries_in(given) for name, given in made.bundles.items()}


def _place_the_rest(made: Together) -> None:
    """Place topics whose bundle no piece names, and the single topics of `topics stats`."""
    of_brokers = {
        broker: {name: _stats_of(values) for name, values in one.topics.items()}
        for broker, one in made.metrics.items()
        if one.topics and broker not in made.topics
    }
    known = made.known
    made.placed = place(of_brokers, known, _default_bundles(made), made.decides)
    singles = [one for one in made.of(kinds.TopicStatsOf) if not _is_listed(made, one.topic)]
    if singles:
        _place_singles(made, singles, known)


def _is_listed(made: Together, topic: str) -> bool:
    return any(
        topic in topics
        for of_broker in (*made.topics.values(), *made.placed.topics.values())
        for spans in of_broker.values()
        for topics in spans.values()
    )


def _place_singles(made: Together, singles: Sequence[kinds.TopicStatsOf], known: Mapping[str, tuple[int, ...]]) -> None:
    """Give single topics to the owner of their bundle."""
    owners = {
        name: broker for piece in made.pieces for name in bundles_of(piece) if (broker := getattr(piece, "broker", ""))
    }
    lone = place({"": {one.topic: one.stats for one in singles}}, known, _default_bundles(made), made.decides)
    named = {one.topic: one.broker for one in singles}
    for namespace, spans in lone.topics.get("", {}).items():
        for span, topics in spans.items():
            for name, stats in topics.items():
                broker = named[name] or owners.get(f"{namespace}/{span}", "")
                if not broker:
                    made.said.add(f"The owner of {name} is not known, so its rates are not used.")
                    continue
                made.who.brokers.setdefault(broker)
                of_broker = made.placed.topics.setdefault(broker, {})
                of_broker.setdefault(namespace, {}).setdefault(span, {})[name] = stats


def _default_bundles(made: Together) -> int:
    configured = [*made.runtime.values(), *(one.values for one in made.of(kinds.Configuration))]
    given = next((v for one in configured if (v := one.get(DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES))), "")
    if given.isdecimal() and 0 < len(given) < 5:  # noqa: PLR2004 - more bundles than any namespace has
        return max(1, int(given))
    default = made.decides.settings[DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES].default
    return default if isinstance(default, int) else 1


def _stats_of(values: Mapping[str, float]) -> Json:
    rates = {key: values.get(column, 0.0) for key, column in RATES.items()}
    return slim(int(values.get("producers", 0)), int(values.get("consumers", 0)), rates)


def _take_owned(made: Together) -> None:
    """Collect the bundles of each broker from all that names them; the list of its own bundles is complete."""
    changes = sorted(made.of(kinds.OwnershipChange), key=lambda one: one.at_ms)
    channel = {one.bundle: service_unit_owner(one.message) for one in changes}
    for broker in made.brokers:
        lists = [one.bundles for one in made.of(kinds.OwnedBundles) if one.broker == broker]
        names: dict[str, None] = dict.fromkeys(name for names in lists for name in names)
        if not lists:
            names |= dict.fromkeys(name for name, owner in channel.items() if owner == broker)
            if broker in made.reports:
                names |= dict.fromkeys(bundles_of(made.reports[broker]))
            for piece in (made.metrics.get(broker), made.tops.get(broker)):
                names |= dict.fromkeys(bundles_of(piece) if piece is not None else ())
        for topics in (made.topics.get(broker), made.placed.topics.get(broker)):
            for namespace, spans in (topics or {}).items():
                if not is_heartbeat_or_sla_namespace(namespace, made.decides):
                    names |= dict.fromkeys(f"{namespace}/{span}" for span, of_bundle in spans.items() if of_bundle)
        if names or lists:
            made.owned[broker] = made.said.apart(broker, list(names), made.topics.get(broker))
    made.said.owners(made.owned)


def moment_of(made: Together) -> int:
    """Return the newest moment that the pieces name, ms since 1970; 0 where none does."""
    times = [one.at_ms for one in made.metrics.values()]
    times += [one.at_ms for one in made.of(kinds.OwnershipChange)]
    times += [at for one in made.reports.values() if (at := time_ms_of(one)) >= SECONDS_BELOW]
    return max((at for at in times if 0 < at <= LAST_MS), default=0)


def capture_of(made: Together, at_ms: int) -> Mapping[str, bytes]:
    """Return the pieces as the files of a raw capture."""
    form = CaptureForm(made.cluster, at_ms)
    form.brokers(made.brokers)
    for at, broker in enumerate(made.brokers, 1):
        _write_broker(form, made, f"b{at}", broker)
    if made.is_extensible:
        write_system_topics(form, made, at_ms)
    _write_namespaces(form, made)
    isolation = {name: policy for one in made.of(kinds.IsolationPolicies) for name, policy in one.policies.items()}
    if made.of(kinds.IsolationPolicies):
        form.of_cluster("isolation-policies", isolation, "namespaceIsolationPolicies")
    if domains := made.of(kinds.FailureDomains):
        found = {name: domain for one in domains for name, domain in one.domains.items()}
        form.of_cluster("failure-domains", found, "failureDomains")
    for number, limit in enumerate(made.of(kinds.DispatchLimit), 1):
        form.dispatch_limit(number, limit.kind, limit.target, limit.rate)
    for leader in made.of(kinds.Leader)[-1:]:
        form.add_json("leader", {"brokerId": leader.broker}, "/admin/v2/brokers/leaderBroker")
    if named := made.version:
        form.add("version.txt", named, "/admin/v2/brokers/version")
    if averages := {one.path: one.values for one in made.of(kinds.Averages)}:
        form.metadata_store({path: json.dumps(values) for path, values in averages.items()})
    dynamic = [one for one in made.of(kinds.Configuration) if one.form == "dynamic"]
    if dynamic:
        values = {name: value for one in dynamic for name, value in one.values.items()}
        form.add_json("dynamic-config-values", values, "/admin/v2/brokers/configuration/values")
    return form.finished()


def _write_broker(form: CaptureForm, made: Together, tag: str, broker: str) -> None:
    report = made.reports.get(broker)
    if report is not None and not made.is_extensible:
        # Who it is about was found out; its addresses may be those of another port.
        of_broker = {**report.report, "webServiceUrl": f"http://{broker}"}
        form.of_broker("load-report", tag, broker, of_broker, "/broker-stats/load-report")
    if broker in made.owned:
        form.owned(tag, broker, made.owned[broker])
    topics = made.topics.get(broker) or made.placed.topics.get(broker) or {}
    wrapped = {space: {span: {"persistent": dict(t)} for span, t in spans.items()} for space, spans in topics.items()}
    for space, spans in (made.placed.topics.get(broker) or {}).items():
        for span, more in spans.items():
            wrapped.setdefault(space, {}).setdefault(span, {"persistent": {}})["persistent"].update(more)
    form.of_broker("topics", tag, broker, wrapped, "/broker-stats/topics")
    if broker in made.metrics:
        one = made.metrics[broker]
        of_bundles = (
            (metric, {"bundle": bundle}, float(values[key]))
            for bundle, values in one.bundles.items()
            for metric, key in BUNDLE_METRICS.items()
            if key in values
        )
        form.add(f"prometheus.{tag}.txt", as_text([*one.plain, *of_bundles]), "/metrics/", broker)
    values = made.runtime.get(broker) or made.runtime.get("") or ({} if made.runtime else made.file)
    if values:
        form.of_broker("runtime-config", tag, broker, values, "/brokers/configuration/runtime")


def write_system_topics(form: CaptureForm, made: Together, at_ms: int) -> None:
    """Write loads, top bundles and owners as messages of the system topics of the extensible load manager."""
    loads = [_message(one.broker, one.report, at_ms) for one in made.reports.values()]
    tops = [_message(one.broker, one.report, at_ms) for one in made.tops.values()]
    ownership = [_message(one.bundle, one.message, one.at_ms or at_ms) for one in made.of(kinds.OwnershipChange)]
    form.system_topics({"loads": loads, "top_bundles": tops, "ownership": ownership})


def _message(key: str, value: Json, at_ms: int) -> Mapping[str, Any]:
    return {"key": key, "value": value, "publish_time_ms": at_ms}


def _write_namespaces(form: CaptureForm, made: Together) -> None:
    policies = {one.namespace: one for one in made.of(kinds.NamespacePolicies)}
    groups = {one.namespace: one.group for one in made.of(kinds.AntiAffinityGroup)}
    names: dict[str, dict[str, None]] = {}
    partitioned: dict[str, dict[str, None]] = {}
    for one in made.of(kinds.TopicNames):
        for name in one.names:
            namespace = "/".join(name.partition("://")[2].split("/")[:2])
            (partitioned if one.are_partitioned else names).setdefault(namespace, {})[name] = None
    assumed = {
        namespace: {"boundaries": [f"0x{edge:08x}" for edge in edges]}
        for namespace, edges in {**made.known, **made.placed.boundaries}.items()
        if namespace not in made.bundles and not is_heartbeat_or_sla_namespace(namespace, made.decides)
    }
    bundles = {**made.bundles, **assumed}
    every = sorted({*bundles, *policies, *groups, *names, *partitioned})
    for number, namespace in enumerate(every, 1):
        if namespace in bundles:
            form.of_namespace("bundles", number, namespace, bundles[namespace], "/bundles")
        if namespace in policies:
            form.of_namespace("policies", number, namespace, policies[namespace].policies)
        if groups.get(namespace):
            form.of_namespace("anti-affinity", number, namespace, groups[namespace], "/antiAffinity")
        for found, is_partitioned in ((names, False), (partitioned, True)):
            if namespace in found:
                form.topics(number, namespace, list(found[namespace]), are_partitioned=is_partitioned)
