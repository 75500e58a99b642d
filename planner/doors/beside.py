"""Mixes outputs with a whole snapshot: what people set replaces what the snapshot has, and so do newer loads of all.

Settings, the release, policies and the leader change seldom, so a newer answer about them counts. Rates and owners
change at every moment: they are taken where every broker has newer ones (see `planner.doors.newer`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

from planner.cluster.errors import PlannerError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.doors import pieces as kinds
from planner.doors.boundaries import boundaries_in
from planner.doors.capture_form import TOPICS, CaptureForm
from planner.doors.found import found_in
from planner.doors.newer import Loads, Renewed, renewed
from planner.doors.pieces import Piece
from planner.doors.settings import valid
from planner.doors.together import Together, capture_of, together, write_system_topics
from planner.doors.who import Who
from planner.doors.words import BROKER
from planner.formats.raw_capture.answers import INDEX, read_answers
from planner.formats.raw_capture.metadata_store import read_metadata_store
from planner.formats.raw_capture.policies import domain_notes, read_capture_policies
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.history.assumed import listed

_Set: TypeAlias = (
    kinds.Configuration
    | kinds.Version
    | kinds.Leader
    | kinds.IsolationPolicies
    | kinds.FailureDomains
    | kinds.NamespacePolicies
    | kinds.AntiAffinityGroup
    | kinds.DispatchLimit
)
_ONE_POLICY: Final = "ns-isolation-policy get"


@dataclass
class Mixed:
    """A snapshot with the outputs beside it.

    Attributes:
        snapshot: The snapshot.
        taken: The outputs that are in it.
        said: What it had otherwise before, one sentence each.
        left: What was not taken, with the reason, one sentence each.
    """

    snapshot: Snapshot
    taken: list[Piece] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def mixed(whole: kinds.WholeSnapshot, pieces: Sequence[Piece], now_ms: int = 0) -> Mixed:
    """Return a snapshot in which the outputs beside it count; settings files are taken elsewhere.

    Args:
        whole: The snapshot.
        pieces: The outputs.
        now_ms: Moment of outputs that do not say it, ms since 1970; 0 unknown.
    """
    made = Mixed(whole.snapshot)
    if whole.capture is not None:
        pieces = _completed(made, whole.capture, pieces)
    snapshot = made.snapshot
    given = [one for one in pieces if not (isinstance(one, kinds.Configuration) and one.form == "file")]
    if not given:
        return made
    of_cluster = [one for one in given if isinstance(one, _Set | kinds.Brokers)]
    found = together([*of_cluster, *_owned(snapshot)], snapshot.info.cluster)
    made.said += found.who.assumed
    made.taken += [one for one in found.pieces if isinstance(one, _Set) and one.source.file]
    _take_release(made, found)
    _take_settings(made, found)
    _take_leader(made, found)
    _take_policies(made, found)
    _take_loads(made, given, now_ms)
    made.left += [
        f"{one.source}: it does not name its namespace. Put the command above it."
        for one in found.who.unknown
        if isinstance(one, _Set)
    ]
    _compare_brokers(made, found)
    return made


def _completed(made: Mixed, capture: Mapping[str, bytes], pieces: Sequence[Piece]) -> list[Piece]:
    """Add the messages of system topics that a raw capture lacks; return the other pieces.

    A capture through one address has no loads with the extensible load manager: they are in these topics alone.
    """
    info, brokers = made.snapshot.info, made.snapshot.brokers
    unknown = {name for name, known in zip(brokers.name, brokers.has_load_data.tolist(), strict=True) if not known}
    messages = [one for one in pieces if _is_message(one) and getattr(one, "broker", "") in unknown]
    if info.load_manager is not LoadManager.EXTENSIBLE or f"{TOPICS}.json" in capture or not messages:
        return list(pieces)
    form = CaptureForm(info.cluster, info.captured_at_ms)
    write_system_topics(form, together(messages, info.cluster), info.captured_at_ms)
    added = form.finished()
    index = [*json.loads(capture[INDEX]), *json.loads(added[INDEX])]
    made.snapshot = snapshot_of_capture({**capture, **added, INDEX: json.dumps(index).encode()}, source=info.source)
    made.taken += messages
    times = [at for one in messages if isinstance(one, kinds.LoadReport) and (at := one.report.get("updatedAt"))]
    apart_min = max((abs(at - info.captured_at_ms) for at in times), default=0) / MS_PER_MIN
    names = listed(dict.fromkeys(one.broker for one in messages if isinstance(one, kinds.LoadReport)))
    made.said.append(
        f"{messages[0].source}: the loads of {names} are from the system topic, up to {apart_min:,.0f} min apart from "
        "the capture."
    )
    return [one for one in pieces if one not in messages]


def _is_message(piece: Piece) -> bool:
    return isinstance(piece, kinds.TopBundles) or (isinstance(piece, kinds.LoadReport) and piece.is_extensible)


def _owned(snapshot: Snapshot) -> Iterator[kinds.OwnedBundles]:
    """Yield the bundles of each broker, by which answers that do not name their namespace are told apart."""
    for at, broker in enumerate(snapshot.brokers.name):
        mine = np.flatnonzero(snapshot.bundles.owner == at).tolist()
        names = tuple(snapshot.bundle_names[position] for position in mine)
        name = broker if BROKER.fullmatch(broker) else f"{broker}:8080"
        yield kinds.OwnedBundles(source=kinds.Source(""), bundles=names, broker=name)


def _take_loads(made: Mixed, pieces: Sequence[Piece], now_ms: int) -> None:
    """Take the loads of all brokers where they are newer; say of others why they are not taken."""
    loads = [one for one in pieces if not isinstance(one, _Set | kinds.Brokers)]
    if not loads:
        return
    try:
        found = renewed(made.snapshot, pieces, now_ms)
    except PlannerError as error:  # the snapshot stays as it was
        found = Renewed(why_not=f"{error.what[:1].lower()}{error.what[1:].rstrip('.')}")
    taken = [one for one in loads if found.snapshot is not None and isinstance(one, Loads)]
    if found.snapshot is not None:
        made.snapshot = found.snapshot
        made.taken += taken
        made.said += found.said
    made.left += _left([one for one in loads if one not in taken], found.why_not)


def _left(pieces: Sequence[Piece], why_not: str) -> Iterator[str]:
    by_file: dict[str, list[Piece]] = {}
    for one in Who(pieces).named():
        by_file.setdefault(one.source.file, []).append(one)
    because = f": {why_not}" if why_not else ""
    for file, found in by_file.items():
        yield (
            f"{file}: {listed(found_in(found))} not taken into the snapshot, whose rates and owners are of another "
            f"moment{because}. To use it, read it without the snapshot."
        )


def _take_release(made: Mixed, found: Together) -> None:
    if not found.of(kinds.Version):
        return
    version, before = found.running, made.snapshot.info.pulsar_version
    if version == before:
        return
    decides = release(version)
    kept, _ = valid(Settings({}, decides), made.snapshot.settings.overrides)
    info = replace(made.snapshot.info, pulsar_version=version)
    made.snapshot = replace(made.snapshot, info=info, settings=Settings(kept, decides))
    made.said.append(f"The snapshot is of Pulsar {before}, but the brokers run {version}, which counts.")


def _take_settings(made: Mixed, found: Together) -> None:
    """Take the settings of running brokers and dynamic settings; the dynamic ones count above all."""
    dynamic = [one for one in found.of(kinds.Configuration) if one.form == "dynamic"]
    running = next((values for values in found.runtime.values() if values), None)
    snapshot = made.snapshot
    if not dynamic and running is None:
        return
    above = dict(snapshot.info.dynamic_settings or {})
    base = {name: value for name, value in snapshot.settings.overrides.items() if name not in above}
    if running is not None:
        base, wrong = valid(snapshot.settings, running)
        made.left += wrong
    if dynamic:
        above = {name: value for one in dynamic for name, value in one.values.items()}
    over, wrong = valid(snapshot.settings, above)
    made.left += wrong if dynamic else []
    config = Settings({**base, **over}, snapshot.settings.release)
    before = snapshot.settings
    if differing := [name for name in config if config[name] != before[name]]:
        made.said.append(f"The snapshot has other values of {listed(differing)}; the outputs beside it count.")
    has_base = running is not None or snapshot.info.settings_from == "brokers"
    info = replace(
        snapshot.info,
        settings_from="brokers" if has_base else snapshot.info.settings_from,
        dynamic_settings=above if dynamic else snapshot.info.dynamic_settings,
    )
    made.snapshot = replace(snapshot, settings=config, info=info)


def _take_leader(made: Mixed, found: Together) -> None:
    for leader in found.of(kinds.Leader)[-1:]:
        before = made.snapshot.info.leader
        if leader.broker not in made.snapshot.brokers.name:
            made.left.append(f"{leader.source}: the leader, {leader.broker}, is not a broker of the snapshot.")
        elif leader.broker != before:
            if before:
                made.said.append(f"The leader of the snapshot is {before}, but {leader.broker} counts.")
            info = replace(made.snapshot.info, leader=leader.broker, leader_since_ms=0, leader_metrics={})
            made.snapshot = replace(made.snapshot, info=info)


def _take_policies(made: Mixed, found: Together) -> None:
    """Replace the policies that the outputs name: all isolation policies or domains, and those of each namespace."""
    before = made.snapshot.policies
    answers = read_answers(capture_of(found, made.snapshot.info.captured_at_ms))
    given = read_capture_policies(answers, read_metadata_store(answers), found.cluster)
    isolation = before.isolation
    if pieces := found.of(kinds.IsolationPolicies):
        names = {one.name for one in given.isolation}
        only_some = all(_ONE_POLICY in one.source.command for one in pieces)
        kept = [one for one in isolation if only_some and one.name not in names]
        isolation = (*kept, *given.isolation)
    spaces = {one.namespace for one in found.of(kinds.NamespacePolicies)}
    grouped = {one.namespace for one in found.of(kinds.AntiAffinityGroup)}
    groups = {name: group for name, group in before.anti_affinity_group.items() if name not in grouped}
    limited = {(one.kind, one.target) for one in found.of(kinds.DispatchLimit)}
    limited |= {
        (one.kind, one.target) for one in (*before.dispatch_rates, *given.dispatch_rates) if one.target in spaces
    }
    rates = [one for one in before.dispatch_rates if (one.kind, one.target) not in limited]
    after = Policies(
        isolation=isolation,
        anti_affinity_group={**groups, **{n: g for n, g in given.anti_affinity_group.items() if n in grouped}},
        failure_domains=given.failure_domains if found.of(kinds.FailureDomains) else before.failure_domains,
        dispatch_rates=(*rates, *(one for one in given.dispatch_rates if (one.kind, one.target) in limited)),
    )
    if found.of(kinds.FailureDomains):
        made.said += domain_notes(after.failure_domains)
    for what, name in _PARTS.items():
        old, new = getattr(before, name), getattr(after, name)
        if old and old != new:
            made.said.append(f"The snapshot has other {what}; the outputs beside it count.")
    made.snapshot = replace(made.snapshot, policies=after)
    _compare_bundles(made, found)


_PARTS: Final = {
    "isolation policies": "isolation",
    "anti-affinity groups": "anti_affinity_group",
    "failure domains": "failure_domains",
    "dispatch limits": "dispatch_rates",
}


def _compare_bundles(made: Mixed, found: Together) -> None:
    """Note namespaces whose bundles were split or made since the snapshot."""
    spans: dict[str, set[int]] = {}
    for name in made.snapshot.bundle_names:
        namespace, _, span = name.rpartition("/")
        spans.setdefault(namespace, set()).update(int(edge, 16) for edge in span.split("_"))
    for one in found.of(kinds.NamespacePolicies):
        edges = boundaries_in(one.policies.get("bundles"))
        if edges and set(edges) != spans.get(one.namespace, set()):
            number = len(spans.get(one.namespace, ())) - 1
            made.said.append(
                f"{one.source}: {one.namespace} has {len(edges) - 1:,} bundles there, and "
                f"{max(number, 0):,} in the snapshot, which count."
            )


def _compare_brokers(made: Mixed, found: Together) -> None:
    """Note a list of other brokers than those of the snapshot."""
    lists = found.of(kinds.Brokers)
    listed_now = {name for one in lists for name in one.brokers}
    known = set(made.snapshot.brokers.name)
    if lists and listed_now != known:
        more = [f"{listed(sorted(listed_now - known))} not in the snapshot"] if listed_now - known else []
        more += [f"{listed(sorted(known - listed_now))} not in the list"] if known - listed_now else []
        made.said.append(f"The list of brokers is another one: {'; '.join(more)}. Those of the snapshot count.")
