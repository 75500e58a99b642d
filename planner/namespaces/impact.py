"""What a simulation does to one namespace: who is disconnected, what moves, which bundles split, what is refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.cluster.errors import ScenarioError
from planner.cluster.internal_bundles import is_internal_bundle
from planner.cluster.names import NAMESPACE_MAXIMUM_BUNDLES, SHEDDING_INTERVAL_MINUTES
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MIN_PER_HOUR, MS_PER_MIN
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.event import Event
from planner.simulate.moves import disconnections
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.trace import Stretch

MOST_HOURS: Final = 168
"""The longest forecast of splits."""
MOST_GROWTH: Final = 1_000
"""The largest factor of traffic in one."""


@dataclass(frozen=True, slots=True)
class Impact:
    """What happens to a namespace.

    Attributes:
        events: Everything about its bundles, in order.
        topics: Topics disconnected, each as often as it is.
        clients: Producers and consumers disconnected, likewise.
        minutes: How long was simulated.
        start_ms: When the simulation began, ms since 1970.
    """

    events: tuple[Event, ...]
    topics: int
    clients: int
    minutes: float
    start_ms: int

    @property
    def text(self) -> str:
        """It in a sentence."""
        kinds = {kind: sum(one.kind == kind for one in self.events) for kind in ("shed", "moved", "split")}
        parts = [
            f"{count(kinds['shed'], 'bundle')} shed" * bool(kinds["shed"]),
            f"{count(kinds['moved'], 'bundle')} unloaded by command" * bool(kinds["moved"]),
            count(kinds["split"], "split") * bool(kinds["split"]),
        ]
        said = ", ".join(filter(None, parts))
        if not said and not self.clients and not self.topics:
            return f"Nothing happens to it in {self.minutes:.0f} min."
        gone = f"{count(self.topics, 'topic')} and {count(self.clients, 'client')} disconnected"
        return f"{f'{said}; ' if said else ''}{gone} in {self.minutes:.0f} min."


def impact(trace: Stretch, namespace: str) -> Impact:
    """Return what a simulation does to a namespace."""
    closed = [one for cycle in disconnections(trace) for one in cycle if _is_of(one, namespace)]
    return Impact(
        tuple(one for one in trace.events if _is_of(one, namespace)),
        sum(one.topics for one in closed),
        sum(one.producers + one.consumers for one in closed),
        _minutes(trace),
        trace.start.info.captured_at_ms,
    )


def _is_of(event: Event, namespace: str) -> bool:
    return event.bundle.rpartition("/")[0] == namespace


def _minutes(trace: Stretch) -> float:
    """Return how long was simulated: up to the last cycle, and one interval beyond."""
    times = [cycle.at_ms for cycle in trace.cycles]
    step = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else MS_PER_MIN
    return (times[-1] - times[0] + step) / MS_PER_MIN if times else 0.0


@dataclass(frozen=True, eq=False, slots=True)
class SplitForecast:
    """The automatic splits of a namespace in a simulation.

    Attributes:
        namespace: Its name.
        bundles: Bundles before.
        after: Bundles at the end.
        splits: How many splits were carried out.
        first_min: Minutes until the first of them; None where there is none.
        settings: The limits that were exceeded, the most frequent first.
        refused: How many bundles Pulsar refused to split, some maybe more than once.
        why: Why it refused the first, or why it split the first.
        is_full: Whether it has reached the most bundles that automatic splits make.
    """

    namespace: str
    bundles: int
    after: int
    splits: int
    first_min: float | None
    settings: tuple[str, ...]
    refused: int
    why: str
    is_full: bool

    @property
    def text(self) -> str:
        """It in a sentence."""
        parts = []
        if self.splits:
            parts.append(
                f"{count(self.splits, 'split')}, the first after {self.first_min or 0:.0f} min: from {self.bundles:,}"
                f" to {count(self.after, 'bundle')}"
            )
        if self.refused:
            parts.append(f"{count(self.refused, 'split')} refused")
        limits = f" ({', '.join(self.settings)})" if self.settings else ""
        full = f" It has reached {NAMESPACE_MAXIMUM_BUNDLES}." if self.is_full else ""
        return f"{'; '.join(parts)}{limits}. {self.why[:1].upper()}{self.why[1:].rstrip('.')}.{full}"


def split_forecasts(trace: Stretch, end: Snapshot) -> tuple[SplitForecast, ...]:
    """Return the automatic splits of a simulation by namespace, most first; none for one that neither splits nor tries.

    Splits that an edit asks for are left out: they exceed no limit.

    Args:
        trace: The simulation.
        end: The cluster at its end.
    """
    by_space: dict[str, list[Event]] = {}
    for event in trace.events:
        automatic = event.kind == "split_refused" or (event.kind == "split" and event.exceeded is not None)
        if automatic and not is_internal_bundle(event.bundle, trace.settings.release):
            by_space.setdefault(event.bundle.rpartition("/")[0], []).append(event)
    before, after = _bundles(trace.start), _bundles(end)
    most = trace.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
    start_ms = trace.start.info.captured_at_ms
    found = []
    for space, events in by_space.items():
        splits = [one for one in events if one.kind == "split"]
        hit = [one.exceeded.setting for one in events if one.exceeded is not None]
        found.append(
            SplitForecast(
                space,
                before.get(space, 0),
                after.get(space, 0),
                len(splits),
                (splits[0].at_ms - start_ms) / MS_PER_MIN if splits else None,
                tuple(sorted(set(hit), key=hit.count, reverse=True)),
                len(events) - len(splits),
                _why(events),
                after.get(space, 0) >= most,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.splits, -one.refused, one.namespace)))


def _why(events: Sequence[Event]) -> str:
    refused = next((one for one in events if one.kind == "split_refused"), None)
    return (refused or events[0]).why or "no reason given"


def _bundles(snapshot: Snapshot) -> dict[str, int]:
    number = np.bincount(snapshot.bundles.namespace, minlength=len(snapshot.namespaces))
    return dict(zip(snapshot.namespaces, number.tolist(), strict=True))


def growing(snapshot: Snapshot, hours: float, factor: float, base: Scenario | None = None) -> Scenario:
    """Return a scenario of so many hours within which all traffic grows to a factor, added to another one.

    Raises:
        ScenarioError: A number is out of range.
    """
    if not 0 < hours <= MOST_HOURS:
        raise ScenarioError(f"{hours:g} hours is out of range.", remedy=f"Use more than 0, and at most {MOST_HOURS}.")
    if not 0 <= factor <= MOST_GROWTH:
        most = (MOST_GROWTH - 1) * 100
        raise ScenarioError(
            f"A growth by {(factor - 1) * 100:g} % is out of range.", remedy=f"Use -100 to {most:,.0f} %."
        )
    base = base or unchanged(snapshot.settings.release.name)
    minutes = hours * MIN_PER_HOUR
    grows = TrafficGrowth(factor=factor, shape="growth", duration_min=minutes)
    steps = (*base.steps, Step(grows)) if factor != 1 else base.steps
    interval_min = max(base.settings_over(snapshot).integer(SHEDDING_INTERVAL_MINUTES), 1)
    return replace(base, steps=steps, cycles=max(round(minutes / interval_min), 1))
