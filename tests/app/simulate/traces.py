"""Traces made by hand, for tests of what is read out of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH, equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.simulate.event import Event
from planner.simulate.scenario import Scenario
from planner.simulate.trace import BrokerState, Cycle, Trace

START_MS = 1_800_000_000_000
MINUTE_MS = 60_000
MB = 1024 * 1024


def cluster(
    usage: Sequence[float],
    bundles: Mapping[int, Sequence[float]] | None = None,
    *,
    load_manager: LoadManager = LoadManager.MODULAR,
    settings: Mapping[str, object] | None = None,
    rates: Mapping[int, Sequence[float]] | None = None,
    topics: int = 10,
) -> Snapshot:
    """Return brokers of given CPU usage (1.0 = 100 %) with bundles of given MiB/s (and msg/s; else 1000 a MiB/s)."""
    owned = bundles if bundles is not None else dict.fromkeys(range(len(usage)), (20.0, 10.0, 10.0))
    owner = np.array([b for b, sizes in owned.items() for _ in sizes], dtype=np.int32)
    size = np.array([s for sizes in owned.values() for s in sizes], dtype=np.float64)
    rate = np.array([r for each in rates.values() for r in each]) if rates is not None else size * 1000
    ends = [*equal_boundaries(len(owner))[:-1], FULL_HIGH] if len(owner) else [0]
    names = tuple(f"b{i + 1}:8080" for i in range(len(usage)))
    of_broker = [np.bincount(owner, column, minlength=len(usage)) for column in (rate, size * MB)]
    averages = {
        f"{term}_term_msg_{kind}_{way}": column / 2
        for term in ("short", "long")
        for kind, column, ways in (
            ("rate", rate, ("in_per_s", "out_per_s")),
            ("throughput", size * MB, ("in_bytes_per_s", "out_bytes_per_s")),
        )
        for way in ways
    }
    now = {name.removeprefix("short_term_"): column for name, column in averages.items() if name.startswith("short")}
    table = make_bundles(
        ends[:-1],
        high=ends[1:],
        namespace=np.zeros(len(owner), np.int32),
        owner=owner,
        topics=topics,
        producers=5,
        consumers=7,
        data_topics=topics,
        short_term_samples=10,
        long_term_samples=1000,
        top_rank=[i for sizes in owned.values() for i in range(len(sizes))],
        **averages,
        **now,
    )
    load = {
        f"msg_{kind}_{way}": column / 2
        for kind, column, ways in (
            ("rate", of_broker[0], ("in_per_s", "out_per_s")),
            ("throughput", of_broker[1], ("in_bytes_per_s", "out_bytes_per_s")),
        )
        for way in ways
    }
    extensible = load_manager is LoadManager.EXTENSIBLE
    ema = {"weighted_max_ema": list(usage), "msg_throughput_ema_bytes_per_s": of_broker[1]} if extensible else {}
    return Snapshot(
        info=SnapshotInfo("by-hand", load_manager, START_MS, leader=names[0] if names else ""),
        settings=Settings(in_full(settings or {})),
        brokers=make_brokers(
            names,
            cpu_usage_percent=[u * 1000 for u in usage],
            cpu_limit_percent=1000.0,
            bandwidth_in_limit_kbit_per_s=1e7,
            bandwidth_out_limit_kbit_per_s=1e7,
            updated_at_ms=START_MS,
            topics=[topics * int(n) for n in np.bincount(owner, minlength=len(usage))],
            **load,
            **ema,
        ),
        namespaces=("acme/orders",),
        bundles=table,
        topics=make_topics(),
    )


def state_of(usage: Sequence[float], snapshot: Snapshot) -> BrokerState:
    """Return brokers of given usage; those with 0 are not there."""
    brokers = snapshot.brokers
    return BrokerState(
        usage=np.array(usage),
        cpu_demand_percent=np.array(usage) * brokers.cpu_limit_percent,
        growth_factor=np.divide(1.0, np.array(usage), out=np.full(len(usage), np.inf), where=np.array(usage) > 0),
        msg_rate_per_s=brokers.msg_rate_in_per_s + brokers.msg_rate_out_per_s,
        throughput_bytes_per_s=brokers.msg_throughput_in_bytes_per_s + brokers.msg_throughput_out_bytes_per_s,
        bundles=snapshot.bundle_counts(),
        present=np.array(usage) > 0,
    )


def at_minute(snapshot: Snapshot, minute: float) -> Snapshot:
    """Return the same cluster later, freshly reported."""
    by_ms = int(minute * MINUTE_MS)
    info = replace(snapshot.info, captured_at_ms=snapshot.info.captured_at_ms + by_ms)
    return replace(
        snapshot, info=info, brokers=replace(snapshot.brokers, updated_at_ms=snapshot.brokers.updated_at_ms + by_ms)
    )


def trace_of(
    usage: Sequence[Sequence[float]],
    events: Mapping[int, Sequence[Event]] | None = None,
    *,
    view: Snapshot | Sequence[Snapshot] | None = None,
    settings: Mapping[str, object] | None = None,
    memories: Sequence[LeaderMemory] | None = None,
    scores: Sequence[Sequence[float]] | None = None,
) -> Trace:
    """Return a trace of brokers with given usage at each cycle, one minute apart, and events by cycle."""
    views = [view if isinstance(view, Snapshot) else cluster(usage[0])] * len(usage)
    if view is not None and not isinstance(view, Snapshot):
        views = list(view)
    config = Settings({**views[0].settings.overrides, **in_full(settings or {})})
    shedder, _ = effective_shedder(views[0].info.load_manager, config)
    fresh = elected(shedder, views[0].info.load_manager, config)
    cycles = [
        Cycle(
            index=at,
            at_ms=START_MS + at * MINUTE_MS,
            view=at_minute(views[at], at),
            memory=memories[at] if memories is not None else fresh,
            unloads=(),
            scores=np.array(scores[at] if scores is not None else row, dtype=np.float64),
            owner=views[at].bundles.owner,
            state=state_of(row, views[at]),
            events=tuple((events or {}).get(at, ())),
        )
        for at, row in enumerate(usage)
    ]
    return Trace(Scenario(cycles=len(cycles)), config, views[0], tuple(cycles), cycles[-1].view)


def shed(
    bundle: str,
    source: str,
    destination: str,
    minute: float,
    mib_per_s: float = 10.0,
    *,
    topics: int = 0,
    producers: int = 0,
    consumers: int = 0,
) -> Event:
    """Return the event of a bundle that is shed."""
    return Event(
        at_ms=START_MS + int(minute * MINUTE_MS),
        kind="shed",
        bundle=bundle,
        source=source,
        destination=destination,
        throughput_bytes_per_s=mib_per_s * MB,
        msg_rate_per_s=mib_per_s * 1000,
        topics=topics,
        producers=producers,
        consumers=consumers,
    )
