"""Captures made by hand, and shadow mode on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.shadow.follow import ShadowResult, shadow_step
from planner.shadow.record import ShadowCycle
from planner.shadow.state import ShadowState
from planner.simulate.edits.scale_traffic import ScaleTraffic
from tests.app.simulate.traces import START_MS

AVG = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"


UNIFORM = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"


THRESHOLD = {"loadBalancerBundleUnloadMinThroughputThreshold": 0.1, "loadBalancerHistoryResourcePercentage": 0.0}


BUSY = {0: (20.0, 10.0, 10.0, 5.0), 1: (5.0, 5.0), 2: (5.0, 5.0)}


STEP_S = 10


def at(snapshot: Snapshot, second: float, **info: object) -> Snapshot:
    """Return a cluster some seconds later, just reported."""
    by_ms = int(second * 1000)
    moment = replace(snapshot.info, captured_at_ms=START_MS + by_ms, **info)  # type: ignore[arg-type]
    updated = snapshot.brokers.updated_at_ms * 0 + START_MS + by_ms
    return replace(snapshot, info=moment, brokers=replace(snapshot.brokers, updated_at_ms=updated))


def moved(snapshot: Snapshot, wanted: Mapping[str, int]) -> Snapshot:
    owner = snapshot.bundles.owner.copy()
    for bundle, broker in wanted.items():
        owner[snapshot.bundle_position[bundle]] = broker
    return snapshot.with_owner(owner)


def calmed(snapshot: Snapshot) -> Snapshot:
    """Return a cluster whose brokers are equally busy."""
    return replace(snapshot, brokers=replace(snapshot.brokers, cpu_usage_percent=np.full(len(snapshot.brokers), 300.0)))


def follow(captures: Sequence[Snapshot]) -> tuple[ShadowState, list[ShadowCycle], ShadowResult]:
    state, result = ShadowState(), None
    cycles: list[ShadowCycle] = []
    for before, after in pairwise(captures):
        state, result = shadow_step(state, before, after)
        cycles += result.cycles
    assert result is not None
    return state, cycles, result


def still(snapshot: Snapshot, *spans: tuple[int, int]) -> list[Snapshot]:
    """Return captures of an unchanged cluster every ten seconds of some spans of seconds."""
    return [at(snapshot, second) for begin, end in spans for second in range(begin, end, STEP_S)]


def other_bundle(busy: Snapshot, chosen: Mapping[str, int]) -> str:
    return next(n for n, o in zip(busy.bundle_names, busy.bundles.owner, strict=True) if o == 0 and n not in chosen)


def since(snapshot: Snapshot, elected_s: float, taken_s: Mapping[str, float] | None = None) -> Snapshot:
    """Return a capture that the metadata store tells more of: the election, and when bundles were taken."""
    taken = {bundle: START_MS + int(at * 1000) for bundle, at in (taken_s or {}).items()}
    info = replace(snapshot.info, leader_since_ms=START_MS + int(elected_s * 1000), taken_ms=taken)
    return replace(snapshot, info=info)


def every(snapshot: Snapshot, begin: int, end: int, step: int = 5) -> list[Snapshot]:
    return [at(snapshot, second) for second in range(begin, end, step)]


def unwritten(snapshot: Snapshot) -> Snapshot:
    """Return a cluster whose leader has not written averages of brokers: they are worked out from those of bundles."""
    unknown = np.full(len(snapshot.brokers), np.nan)
    terms = ("short_term", "long_term")
    columns: dict[str, Any] = {
        name: unknown for name in snapshot.brokers.__dataclass_fields__ if name.startswith(terms)
    }
    return replace(snapshot, brokers=replace(snapshot.brokers, **columns))


SWING = ScaleTraffic(factor=3.0, shape="daily", duration_min=20)


def counted(snapshot: Snapshot, unloaded: float | None, **more: float) -> Snapshot:
    """Return a capture in which the leader says how many bundles it has unloaded; None when it does not answer."""
    said = {} if unloaded is None else {"unloaded": unloaded, **more}
    return replace(snapshot, info=replace(snapshot.info, leader_metrics=said))
