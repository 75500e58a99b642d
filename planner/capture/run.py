"""Captures a cluster: raw answers, and the snapshot that they show."""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.compute as pc

from planner.capture.client import AdminClient
from planner.capture.collect import MOMENT, REPEATS, Collector
from planner.capture.options import CaptureOptions, Progress, ProgressSink
from planner.capture.parts import Part, Parts
from planner.capture.stores.registry import kind_of
from planner.cluster.errors import CaptureError
from planner.cluster.files import PRIVATE, writing
from planner.cluster.internal_namespaces import is_system_service_namespace
from planner.cluster.names import REPORT_UPDATE_MIN_INTERVAL_MILLIS
from planner.cluster.snapshot import MAX_TEXT, Snapshot
from planner.cluster.text import count
from planner.formats.folder import write_folder
from planner.formats.reading import read_snapshot
from planner.formats.validate import fitting_notes

RAW = "raw"
"""Name of the folder of raw answers inside the folder of a capture."""

SNAPSHOT = "snapshot"
"""Name of the folder of the snapshot."""


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a capture brought.

    Attributes:
        snapshot: What the cluster looks like; its `info.warnings` say what is missing, odd or estimated.
        folder: The folder of the capture.
        parts: Every part, missing ones included.
        kept: How many were there from an earlier attempt.
        requests: How many requests were sent, repeated ones counted.
        most_in_flight: How many were under way at once at most.
        received_bytes: What all answers had.
        took_s: How long it took.
    """

    snapshot: Snapshot
    folder: Path
    parts: tuple[Part, ...]
    kept: int
    requests: int
    most_in_flight: int
    received_bytes: int
    took_s: float

    @property
    def missing(self) -> tuple[Part, ...]:
        """Parts that nobody gave."""
        return tuple(part for part in self.parts if not part.good)

    @property
    def text(self) -> str:
        """One line about it."""
        taken = self.snapshot
        kept = f", {self.kept} parts kept from the earlier capture" if self.kept else ""
        return (
            f"{self.folder / SNAPSHOT}: {taken.info.cluster}, {count(len(taken.brokers), 'broker')},"
            f" {count(len(taken.bundles), 'bundle')}, {count(len(taken.topics), 'topic')};"
            f" {count(self.requests, 'request')} in {self.took_s:,.1f} s{kept}"
        )


def check_options(options: CaptureOptions) -> None:
    """Refuse options that cannot be carried out, before anybody is asked.

    Raises:
        CaptureError: Naming the option.
    """
    options.check()
    if options.metadata_store:
        kind_of(options.metadata_store)


def capture_cluster(
    options: CaptureOptions,
    progress: ProgressSink = lambda _: None,
    *,
    fresh: Collection[str] = (),
    reports_at_s: float = 0.0,
) -> CaptureResult:
    """Capture a running cluster with read-only requests.

    Raw answers go to `raw/` in `options.out`, the snapshot to `snapshot/`. A capture that was cut short goes on where
    it ended when it is asked for again with the same folder. Call it from a thread that runs no event loop.

    Args:
        options: What to capture, and how.
        progress: Told for each part.
        fresh: Names of requests that are sent again where the folder has their answers already.
        reports_at_s: When the load reports in the metadata store are read, s since 1970, if all else is there by then;
            it is waited for up to two seconds.

    Raises:
        CaptureError: The cluster cannot be captured, or a bound was broken; what arrived stays in the folder.
        FormatError: An answer that no snapshot can do without cannot be read.
        SnapshotError: What the cluster says is no cluster.
    """
    check_options(options)
    began = time.monotonic()
    parts = Parts(options.out / RAW, _purpose(options), fresh)
    try:
        client, notes = asyncio.run(_collect(options, parts, progress, reports_at_s))
        parts.finish()
    finally:
        parts.close()
    _check_somebody_answered(options, tuple(parts))
    progress(Progress("snapshot", len(tuple(parts)), len(tuple(parts)), 0, 0))
    snapshot = read_snapshot(parts.folder)
    found = [
        *_of_time(snapshot, tuple(parts)),
        *_of_tokens(tuple(parts)),
        *_of_refusals(tuple(parts)),
        *_of_content(options, snapshot),
    ]
    warnings = (*notes, *found, *snapshot.info.warnings)
    source = f"{snapshot.info.source}, from {options.admin_url}"
    info = replace(snapshot.info, warnings=fitting_notes(warnings), source=source[:MAX_TEXT])
    snapshot = replace(snapshot, info=info)
    with writing(options.out, CaptureError):
        (options.out / SNAPSHOT).mkdir(mode=PRIVATE, exist_ok=True)
    write_folder(snapshot, options.out / SNAPSHOT)
    return CaptureResult(
        snapshot,
        options.out,
        tuple(parts),
        kept=parts.kept,
        requests=client.pace.started,
        most_in_flight=client.pace.most_in_flight,
        received_bytes=client.received_bytes,
        took_s=time.monotonic() - began,
    )


async def _collect(
    options: CaptureOptions, parts: Parts, progress: ProgressSink, reports_at_s: float
) -> tuple[AdminClient, tuple[str, ...]]:
    # Errors of the network are answers that nobody gave; what the disk refuses ends the capture.
    with writing(parts.folder, CaptureError, "Free some disk space, or choose another folder."):
        try:
            async with asyncio.timeout(options.limits.total_s), AdminClient(options) as client:
                collector = Collector(options, client, parts, progress, reports_at_s)
                await collector.run()
                return client, tuple(collector.notes)
        except TimeoutError as error:
            raise CaptureError(
                f"The capture was not complete after {options.limits.total_s:,.0f} s.",
                where=options.admin_url,
                remedy="Run the capture again with the same --out to continue, or raise --total-timeout.",
            ) from error


def _purpose(options: CaptureOptions) -> dict[str, object]:
    """Return what makes two captures the same; JSON, and no secret."""
    return {
        "admin_url": options.admin_url,
        "metadata_store": options.metadata_store,
        "metrics": options.metrics,
        "namespaces": list(options.namespaces),
        "topics": options.with_topics,
        "cluster": options.cluster,
        "broker_url": options.broker_url,
        **({"broker_at": list(options.broker_at)} if options.broker_at else {}),
        **({"brokers_in": list(options.brokers_in)} if options.brokers_in else {}),
    }


def _check_somebody_answered(options: CaptureOptions, parts: Sequence[Part]) -> None:
    """Refuse a capture in which no broker told anything about itself.

    Raises:
        CaptureError: With the first reason.
    """
    moment = [part for part in parts if part.file.partition(".")[0] in MOMENT]
    if moment and not any(part.good for part in moment) and not options.metadata_store:
        first = moment[0]
        reason = first.note or f"HTTP {first.status}"
        raise CaptureError(
            f"No broker returned its load or its bundles. The first error: {reason.rstrip('.')}.",
            where=first.asked + first.path,
            remedy="Each broker must be reachable by its id, --broker-url or --broker-at, with a superuser's token.",
        )


def _of_time(snapshot: Snapshot, parts: Sequence[Part]) -> list[str]:
    times = [part.time_ms for part in parts if part.good and part.file.partition(".")[0] in MOMENT]
    apart_ms = max(times, default=0) - min(times, default=0)
    interval_ms = snapshot.settings.integer(REPORT_UPDATE_MIN_INTERVAL_MILLIS)
    if apart_ms <= interval_ms:
        return []
    asked = f"Loads, owners and topics were captured over {apart_ms / 1000:,.1f} s"
    return [f"{asked}, longer than a report interval ({interval_ms / 1000:g} s), so some may be one report apart."]


def _of_tokens(parts: Sequence[Part]) -> list[str]:
    if not any(part.note == REPEATS for part in parts):
        return []
    return ["The brokers use the same token as you. Their configuration was read; secrets were removed."]


def _of_refusals(parts: Sequence[Part]) -> list[str]:
    """Say which requests were refused for want of rights, one sentence for each kind."""
    refused = Counter((part.file.partition(".")[0], part.status) for part in parts if part.status in {401, 403})
    return [
        f"{name} was refused {count} times with HTTP {status}; capture again with a token that may read it."
        for (name, status), count in refused.items()
    ]


def _of_content(options: CaptureOptions, snapshot: Snapshot) -> list[str]:
    notes: list[str] = []
    if options.namespaces:
        notes.append(
            f"Only namespaces that match {', '.join(options.namespaces)} were captured; the load of "
            "brokers includes all namespaces."
        )
    if not options.with_topics:
        notes.append("Topics were not captured, so splits that need them cannot be predicted.")
    inside = [
        i for i, name in enumerate(snapshot.namespaces) if is_system_service_namespace(name, snapshot.settings.release)
    ]
    system = sum(int((snapshot.bundles.namespace == i).sum()) for i in inside)
    if system:
        notes.append(f"{system} bundles are Pulsar's own (pulsar/system, heartbeats). Heartbeats never move.")
    if len(snapshot.topics):
        partitions = int(
            pc.sum(pc.match_substring_regex(snapshot.topics.name, "-partition-(0|[1-9][0-9]*)$")).as_py() or 0
        )
        if partitions:
            notes.append(f"{partitions:,} of the topics are partitions. Each belongs to the bundle of its own hash.")
    return notes
