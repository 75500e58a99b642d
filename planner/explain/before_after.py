"""The cluster before a plan and after it, and whether the plan is worth its disconnections."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.cluster.internal_bundles import internal_bundles, is_internal_bundle
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.text import count
from planner.simulate.moves import disconnections
from planner.simulate.trace import Trace
from planner.simulate.usage_model import Standing, at_the_end, standing

_POINT: Final = 0.01
_NEAR: Final = 1.25
"""A headroom above this is not worth a warning however it changed."""
_LOSS: Final = 0.98
_MUCH: Final = 0.1
_LITTLE_GAIN: Final = 0.01


@dataclass(frozen=True, slots=True)
class Row:
    """One measure, as it is read: before and after."""

    measure: str
    now: str
    after: str


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """What a plan changes.

    Attributes:
        before: The cluster as it was captured.
        after: The cluster at the end of the simulation.
        topics: Topics that are cut off on the way, each as often as it is; those that Pulsar keeps for itself do not
            count.
        clients: Producers and consumers, likewise.
        all_topics: Topics that the cluster has, likewise.
        worse: What speaks against the plan, one sentence each; none when nothing does.
    """

    before: Standing
    after: Standing
    topics: int
    clients: int
    all_topics: int
    worse: tuple[str, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The measures that count, for a table."""
        one, two = self.before, self.after
        return (
            Row("Highest usage", f"{one.peak_usage * 100:.1f} %", f"{two.peak_usage * 100:.1f} %"),
            Row("Brokers above the limit", f"{one.over_threshold:,}", f"{two.over_threshold:,}"),
            Row("Headroom", f"{one.growth.factor:.2f}x", f"{two.growth.factor:.2f}x"),
            Row("Deviation of usage (points)", f"{one.std * 100:.1f}", f"{two.std * 100:.1f}"),
            Row("Unowned bundles with traffic", f"{one.unserved:,}", f"{two.unserved:,}"),
            Row("Disconnected topics", "", f"{self.topics:,} of {self.all_topics:,}"),
            Row("Disconnected clients", "", f"{self.clients:,}"),
        )


def before_after(trace: Trace) -> BeforeAfter:
    """Compare the cluster as it was captured with the end of a simulation, both by the settings before it."""
    config, assumptions = trace.start.settings, trace.scenario.assumptions
    before = standing(trace.start, config, assumptions)
    after = standing(at_the_end(trace), config, assumptions)
    release = config.release
    cut = [e for events in disconnections(trace) for e in events if not is_internal_bundle(e.bundle, release)]
    topics = sum(event.topics for event in cut)
    every = int(trace.start.bundles.topics[~internal_bundles(trace.start)].sum())
    return BeforeAfter(
        before=before,
        after=after,
        topics=topics,
        clients=sum(event.producers + event.consumers for event in cut),
        all_topics=every,
        worse=tuple(_worse(trace, before, after, topics, every)),
    )


def _worse(trace: Trace, before: Standing, after: Standing, topics: int, every: int) -> Iterator[str]:
    limit = trace.start.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    if after.peak_usage > before.peak_usage + _POINT and after.peak_usage * 100 > limit:
        yield (
            f"The highest usage rises from {before.peak_usage * 100:.1f} % to {after.peak_usage * 100:.1f} %; the"
            f" limit is {limit} %."
        )
    if after.over_threshold > before.over_threshold:
        yield f"Brokers above {limit} %: {after.over_threshold:,} at the end, {before.over_threshold:,} now."
    if after.growth.factor < min(before.growth.factor * _LOSS, _NEAR):
        yield f"Headroom falls from {before.growth.factor:.2f}x to {after.growth.factor:.2f}x."
    if after.unserved > before.unserved:
        yield f"Unowned bundles with traffic: {after.unserved:,} at the end, {before.unserved:,} now."
    gain = before.std - after.std
    on_purpose = any(edit.emptied() or edit.recreated() for edit in trace.scenario.edits)
    nothing = gain < _LITTLE_GAIN and after.peak_usage > before.peak_usage - _POINT
    if nothing and not on_purpose and topics > _MUCH * every:
        yield (
            f"The plan disconnects {topics:,} of {count(every, 'topic')} without improving balance: the deviation of"
            f" usage goes from {before.std * 100:.1f} to {after.std * 100:.1f} points."
        )
