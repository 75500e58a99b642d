"""A raw capture as a snapshot: the parts put together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from planner.cluster.errors import FormatError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import REPORT_UPDATE_MAX_INTERVAL_MINUTES, SHEDDING_INTERVAL_MINUTES
from planner.cluster.ranges import bundle_name
from planner.cluster.releases import REFERENCE, Release, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import MAX_TEXT, MAX_VERSION, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles
from planner.cluster.units import MS_PER_MIN
from planner.formats.raw_capture.answers import Answers, read_answers
from planner.formats.raw_capture.bundles import (
    averages_written_ms,
    broker_sums,
    bundle_columns,
    current_stats,
    top_ranks,
)
from planner.formats.raw_capture.identity import CapturedBrokers, cluster_of, find_brokers, load_manager_of
from planner.formats.raw_capture.layout import claimed_bundles, read_boundaries, read_owners, taken_lately
from planner.formats.raw_capture.metadata_store import MetadataStore, read_metadata_store
from planner.formats.raw_capture.metrics import leader_metrics
from planner.formats.raw_capture.policies import read_capture_policies
from planner.formats.raw_capture.reports import Report, broker_columns, read_reports
from planner.formats.raw_capture.settings import read_capture_settings
from planner.formats.raw_capture.system_topics import read_system_topics
from planner.formats.raw_capture.topics import make_topic_table, read_topic_stats
from planner.formats.validate import TABLES, fitting_notes, validate
from planner.pulsar.load.top_bundles import with_top_ranks

_VERSION = re.compile(r"[0-9]+\.[0-9]+[\w.+-]*")
_LEADER_NODES = ("/loadbalance/leader", "/loadbalance/extension/leader")
_SLOW = frozenset(
    [
        "tenants",
        "namespaces",
        "policies",
        "anti-affinity",
        "persistent-topics",
        "partitioned-topics",
        "runtime-config",
        "clusters",
        "version",
        "isolation-policies",
        "failure-domains",
    ]
)
"""Answers about what people change; their age does not part rates from owners."""


def snapshot_of_capture(files: Mapping[str, bytes], source: str = "") -> Snapshot:
    """Build and validate the snapshot that a raw capture shows, given its files by name, `index.json` among them.

    What nobody answered is taken from elsewhere, estimated or left out; each time a warning in `info.warnings` says so.

    Args:
        files: Content by name.
        source: What `info.source` says of it; the number of answers by default.

    Raises:
        FormatError: The capture lacks what no snapshot can do without, or an answer holds what is no number.
        SnapshotError: What it says is no cluster.
    """
    answers = read_answers(files)
    captured_at_ms = _moment(answers)
    store = read_metadata_store(answers)
    topics = read_system_topics(answers, captured_at_ms)
    brokers = find_brokers(answers, store)
    manager = load_manager_of(answers, store, brokers)
    leader, leader_since_ms = _leader(answers, store)
    decides = release(_reported_version(answers))
    captured = read_capture_settings(answers, store, brokers, leader, decides)
    config = captured.in_force
    cluster = cluster_of(answers, store)
    reports = read_reports(answers, store, topics, brokers, config, manager)
    claims = claimed_bundles(answers, store, topics, brokers, reports)
    boundaries = _boundaries(answers, store, claims, decides)
    topic_stats = read_topic_stats(answers, brokers, claims)
    owners = read_owners(answers, claims, boundaries, topic_stats)
    stats = current_stats(answers, topics, brokers, reports, topic_stats, owners, decides)
    ranges = [(namespace, *pair) for namespace, edges in boundaries.items() for pair in pairwise(edges)]
    names = [bundle_name(*row) for row in ranges]
    place = {namespace: i for i, namespace in enumerate(boundaries)}
    position = {broker: i for i, broker in enumerate(brokers.names)}
    ranks = top_ranks(topics, names, owners)
    bundles = make_bundles(
        [low for _, low, _ in ranges],
        high=[high for _, _, high in ranges],
        namespace=[place[namespace] for namespace, _, _ in ranges],
        owner=[position[owners[name]] if name in owners else -1 for name in names],
        top_rank=-1 if ranks is None else ranks,
        **bundle_columns(answers, store, names, owners, stats, manager),
    )
    version = _version(answers, list(reports.values()))
    config = Settings(config.overrides, release(version))
    completed = _completed(reports, broker_sums(owners, stats))
    _warn_about_times(answers, brokers, reports, config, captured_at_ms)
    snapshot = Snapshot(
        info=SnapshotInfo(
            cluster=cluster,
            load_manager=manager,
            captured_at_ms=captured_at_ms,
            pulsar_version=version,
            leader=leader,
            leader_since_ms=leader_since_ms,
            taken_ms=taken_lately(store, captured_at_ms),
            averages_written_ms=averages_written_ms(store),
            leader_metrics=leader_metrics(answers, brokers.aliases.get(leader, "")),
            settings_from=captured.source,
            dynamic_settings=captured.dynamic,
            source=(source or _source(answers, brokers))[:MAX_TEXT],
        ),
        settings=config,
        brokers=make_brokers(brokers.names, **broker_columns(answers, store, brokers, completed)),
        namespaces=tuple(boundaries),
        bundles=bundles,
        topics=make_topic_table(answers, topic_stats, bundles, tuple(boundaries)),
        policies=read_capture_policies(answers, store, cluster),
    )
    validate(snapshot, {part: f"capture: {part}" for part in ("info", "policies", *TABLES)})
    snapshot = _with_top_bundles(answers, snapshot, captured=ranks is not None)
    return replace(snapshot, info=replace(snapshot.info, warnings=fitting_notes(answers.warnings())))


def _boundaries(
    answers: Answers, store: MetadataStore, claims: Mapping[str, Iterable[str]], decides: Release
) -> dict[str, tuple[int, ...]]:
    """Return the boundaries of the bundles of each namespace.

    Raises:
        FormatError: There are none.
    """
    boundaries = read_boundaries(answers, store, claims, decides)
    if not boundaries:
        raise FormatError(
            "The capture does not contain the bundles of any namespace.",
            where="bundles.*.json",
            remedy="Capture the bundles of the namespaces (GET /admin/v2/namespaces/{tenant}/{namespace}/bundles).",
        )
    return boundaries


def _completed(reports: Mapping[str, Report], sums: Mapping[str, Mapping[str, float]]) -> dict[str, Report]:
    """Return the reports of brokers; what one does not hold is the sum over the broker's bundles."""
    return {broker: {**sums.get(broker, {}), **report} for broker, report in reports.items()}


def _with_top_bundles(answers: Answers, snapshot: Snapshot, *, captured: bool) -> Snapshot:
    """Return a snapshot with the top bundles of its brokers, computed where they were not captured."""
    if captured or snapshot.info.load_manager is not LoadManager.EXTENSIBLE:
        return snapshot
    answers.warn("The top bundles that brokers reported were not captured; they are computed from current values.")
    return with_top_ranks(snapshot, snapshot.settings)


def _source(answers: Answers, brokers: CapturedBrokers) -> str:
    return f"Raw capture of {len(brokers.aliases)} of {len(brokers.names)} brokers, {len(answers.index)} answers"


def _moment(answers: Answers) -> int:
    at_ms = moment_of(answers)
    if not at_ms:
        answers.warn("The index has no times, so the time of the capture is unknown and shown as 1970.")
    return at_ms


def moment_of(answers: Answers) -> int:
    """Return when the last answer came, ms since 1970; 0 where the index has no times."""
    return max((entry.time_ms for entry in answers.index.values() if entry.time_ms), default=0)


def _leader(answers: Answers, store: MetadataStore) -> tuple[str, int]:
    """Return the leader, and when it was elected; 0 unknown."""
    nodes = [(store.node(path), store.created_ms.get(path, 0)) for path in _LEADER_NODES]
    found = [(answers.json("leader", dict, "The leader comes from the metadata store.") or {}, 0), *nodes]
    leader = next((name for answer, _ in found if isinstance(name := answer.get("brokerId"), str) and name), "")
    return leader, next((at for node, at in nodes if leader and node.get("brokerId") == leader), 0)


def _reported_version(answers: Answers) -> str:
    return "" if answers.trouble("version") else answers.text("version").strip().strip('"')


def _version(answers: Answers, reports: Sequence[Report]) -> str:
    found: list[object] = [_reported_version(answers)]
    found += [report.get(key) for report in reports for key in ("brokerVersionString", "brokerVersion")]
    known = [text for text in found if isinstance(text, str) and _VERSION.fullmatch(text)]
    if not known:
        answers.warn(f"The version of Pulsar was not captured; {REFERENCE.name} is shown.")
    elif len(set(known[1:] or known)) > 1:
        answers.warn(f"The brokers run different versions ({', '.join(sorted(set(known)))}); {known[0]} is shown.")
    return known[0][:MAX_VERSION] if known else REFERENCE.name


def _warn_about_times(
    answers: Answers, brokers: CapturedBrokers, reports: Mapping[str, Report], config: Settings, captured_at_ms: int
) -> None:
    """Warn where answers are so far apart that rates and owners may not fit together."""
    entries = (entry for entry in answers.index.values() if entry.file.partition(".")[0] not in _SLOW)
    times = [entry.time_ms for entry in entries if entry.time_ms]
    apart_ms = max(times, default=0) - min(times, default=0)
    cycle_ms = config.integer(SHEDDING_INTERVAL_MINUTES) * MS_PER_MIN
    if apart_ms > max(cycle_ms, MS_PER_MIN):
        answers.warn(
            f"The answers were gathered over {apart_ms / 1000:,.0f} s, longer than a load-balancer cycle "
            f"({cycle_ms / 1000:,.0f} s), so rates and owners may not match."
        )
    longest_ms = (config.integer(REPORT_UPDATE_MAX_INTERVAL_MINUTES) + 1) * MS_PER_MIN
    for broker in brokers.names:
        updated = reports[broker].get("lastUpdate")
        if isinstance(updated, int) and 0 < updated < captured_at_ms - longest_ms:
            answers.warn(
                f"The load report of {broker} is {(captured_at_ms - updated) / MS_PER_MIN:,.0f} "
                "minutes old, older than the report interval allows."
            )
