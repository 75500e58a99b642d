"""Renews a snapshot: newer outputs with the load of every broker give rates, usage and owners, the snapshot the rest.

Loads of some brokers alone are not mixed with those of another moment: that would make a cluster that never was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from planner.cluster.arrays import frozen
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import REPORT_UPDATE_MAX_INTERVAL_MINUTES
from planner.cluster.pulsar_json import USAGE_METRICS
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BundleTable
from planner.cluster.text import count, moment
from planner.cluster.units import MS_PER_MIN
from planner.doors import pieces as kinds
from planner.doors.found import found_in
from planner.doors.pieces import Piece, Source
from planner.doors.together import Together, capture_of, moment_of, together
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.history.assumed import listed
from planner.pulsar.load.averages import LONG_TERM_SAMPLES, refresh

Loads: TypeAlias = (
    kinds.LoadReport
    | kinds.TopBundles
    | kinds.OwnershipChange
    | kinds.OwnedBundles
    | kinds.BrokerTopics
    | kinds.TopicStatsOf
    | kinds.Metrics
    | kinds.Averages
)
"""What changes at every moment."""

_USAGE: Final = frozenset(USAGE_METRICS.values())
_OURS: Final = Source("")
_BUNDLES: Final = "lastStats"


@dataclass(frozen=True, slots=True)
class Renewed:
    """A snapshot with the loads of newer outputs, or why there is none.

    Attributes:
        snapshot: The snapshot; None where the loads were not taken.
        said: What comes from where, one sentence each.
        why_not: Why they were not taken, one sentence without its end.
    """

    snapshot: Snapshot | None = None
    said: tuple[str, ...] = ()
    why_not: str = ""


def renewed(old: Snapshot, pieces: Sequence[Piece], now_ms: int) -> Renewed:
    """Return a snapshot with newer loads.

    Args:
        old: The snapshot.
        pieces: The outputs beside it.
        now_ms: Moment of outputs that do not say it, ms since 1970; 0 unknown.

    Raises:
        PlannerError: The loads are not one cluster.
    """
    loads = [one for one in pieces if isinstance(one, Loads)]
    lists = [one for one in pieces if isinstance(one, kinds.Brokers)]
    made = together([*_rest(old, lists), *lists, *loads], old.info.cluster)
    at_ms = moment_of(made) or now_ms
    if not loads or not at_ms:
        return Renewed(why_not="they do not say when they were printed")
    if at_ms <= old.info.captured_at_ms:
        return Renewed(why_not=f"they are of {moment(at_ms)}, and the snapshot is not older")
    if lacking := [broker for broker in _wanted(old, lists) if not _has_load(made, broker)]:
        return Renewed(why_not=f"they lack the load or the topics of {listed(lacking)}")
    fresh = snapshot_of_capture(capture_of(made, at_ms), source=old.info.source)
    fresh, kept = _with_idle_owners(fresh, old, made)
    fresh, samples = _with_long_term(fresh, old, at_ms)
    apart_min = (at_ms - old.info.captured_at_ms) / MS_PER_MIN
    age = f"{apart_min:,.0f} min" if apart_min < 120 else f"{apart_min / 60:,.0f} h"  # noqa: PLR2004 - two hours
    found = listed(found_in(one for one in made.pieces if isinstance(one, Loads)))
    rest = f"Settings, policies and boundaries of bundles are of the snapshot, {age} before."
    said = [f"Rates, usage and owners are of {moment(at_ms)} ({found}). {rest}"]
    if kept:
        said.append(f"{count(kept, 'bundle')} that the outputs do not name have the owner of the snapshot.")
    if samples:
        said.append(
            f"Long-term averages go on from those of the snapshot with {count(samples, 'sample')} of the newer rates,"
            " as brokers report at least so often. Short-term averages start again with these rates."
        )
    if not moment_of(made):
        said.append(f"The outputs do not say when they were printed; {moment(at_ms)} is assumed.")
    said += [*made.who.assumed, *made.said.texts]
    info = replace(old.info, captured_at_ms=at_ms, warnings=(*old.info.warnings, *fresh.info.warnings))
    return Renewed(replace(fresh, settings=old.settings, policies=old.policies, info=info), tuple(said))


def _rest(old: Snapshot, lists: Sequence[kinds.Brokers]) -> Iterator[Piece]:
    """Yield what a snapshot knows beside loads."""
    if not lists:
        yield kinds.Brokers(source=_OURS, brokers=list(_wanted(old, lists)))
    yield kinds.Version(source=_OURS, version=old.info.pulsar_version)
    values = {name: conf_value(value) for name, value in old.settings.items()}
    yield kinds.Configuration(source=_OURS, values=values, form="runtime")
    edges: dict[str, set[str]] = {}
    for name in old.bundle_names:
        namespace, _, span = name.rpartition("/")
        edges.setdefault(namespace, set()).update(span.split("_"))
    for namespace, found in edges.items():
        yield kinds.NamespaceBundles(source=_OURS, bundles={"boundaries": sorted(found)}, namespace=namespace)


def _wanted(old: Snapshot, lists: Sequence[kinds.Brokers]) -> list[str]:
    """Return the brokers that there are now, as far as that is known."""
    if lists:
        return list(dict.fromkeys(name for one in lists for name in one.brokers))
    return [name for name, there in zip(old.brokers.name, old.brokers.registered.tolist(), strict=True) if there]


def _has_load(made: Together, broker: str) -> bool:
    """Say whether usage and rates of a broker are known."""
    report, metrics = made.reports.get(broker), made.metrics.get(broker)
    has_usage = report is not None or (metrics is not None and any(name in _USAGE for name, *_ in metrics.plain))
    has_rates = (report is not None and _BUNDLES in report.report) or broker in made.tops or broker in made.topics
    return has_usage and (has_rates or metrics is not None)


def _with_idle_owners(fresh: Snapshot, old: Snapshot, made: Together) -> tuple[Snapshot, int]:
    """Give bundles without traffic, which metrics and topics do not name, the owner that they had; return how many.

    A load report and `brokers namespaces` list them, so where each broker has one, what is left has no owner, but for
    the bundles of heartbeats, which reports leave out.
    """
    lists = {one.broker for one in made.of(kinds.OwnedBundles)}
    lists |= {name for name, one in made.reports.items() if _BUNDLES in one.report}
    are_listed = lists >= set(made.brokers)
    owner = fresh.bundles.owner.copy()
    owners = zip(old.bundle_names, old.bundles.owner.tolist(), strict=True)
    before = {name: old.brokers.name[at] for name, at in owners if at >= 0}
    place = {name: at for at, name in enumerate(fresh.brokers.name)}
    for at in np.flatnonzero(owner < 0).tolist():
        name = fresh.bundle_names[at]
        if not are_listed or is_heartbeat_or_sla_namespace(name.rpartition("/")[0], made.decides):
            owner[at] = place.get(before.get(name, ""), -1)
    kept = int(np.count_nonzero(owner != fresh.bundles.owner))
    return (fresh.with_columns(bundles=replace(fresh.bundles, owner=frozen(owner))) if kept else fresh), kept


def _with_long_term(fresh: Snapshot, old: Snapshot, at_ms: int) -> tuple[Snapshot, int]:
    """Let long-term averages go on from those of the snapshot; return the samples that they take, 0 where none goes on.

    The leader takes a sample with each report, and each broker reports at least once in a time that is a setting. How
    often it did is unknown. Ten samples are all that a short-term average holds, so that the newer rates alone are
    nearer to it; of a long-term average they are a small part.
    """
    bundles = fresh.bundles
    rows = np.array([old.bundle_position.get(name, -1) for name in fresh.bundle_names], dtype=np.int64)
    sampled = np.append(old.bundles.has_data & (old.bundles.long_term_samples > 0), False)[rows]
    goes_on = bundles.has_data & bundles.averages_estimated & sampled
    if fresh.info.load_manager is not LoadManager.MODULAR or not goes_on.any():
        return fresh, 0
    longest_ms = max(old.settings.number(REPORT_UPDATE_MAX_INTERVAL_MINUTES), 1.0) * MS_PER_MIN
    each = max(int((at_ms - old.info.captured_at_ms) / longest_ms), 1)
    samples = min(each * int(np.count_nonzero(fresh.brokers.has_load_data)), LONG_TERM_SAMPLES)
    names = [name for name in BundleTable.__dataclass_fields__ if name.startswith("long_term_")]
    before = {name: getattr(old.bundles, name)[rows] for name in names}
    table = replace(bundles, **{n: np.where(goes_on, before[n], getattr(bundles, n)) for n in names})
    for _ in range(samples):
        table = refresh(table)
    after: dict[str, Any] = {n: frozen(np.where(goes_on, getattr(table, n), getattr(bundles, n))) for n in names}
    return fresh.with_columns(bundles=replace(bundles, **after)), samples
