"""The cluster before a plan and after it."""

from dataclasses import dataclass

from planner.cluster.text import times
from planner.simulate.demand import demand
from planner.simulate.judge import Result
from planner.simulate.trace import Trace
from planner.simulate.usage_model import Standing, standing


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
    """

    before: Standing
    after: Standing
    topics: int
    clients: int
    all_topics: int

    @property
    def rows(self) -> tuple[Row, ...]:
        """The measures that count, for a table."""
        one, two = self.before, self.after
        return (
            Row("Highest usage", f"{one.peak_usage * 100:.1f} %", f"{two.peak_usage * 100:.1f} %"),
            Row("Brokers above the limit", f"{one.over_threshold:,}", f"{two.over_threshold:,}"),
            Row("Headroom", times(one.growth.factor), times(two.growth.factor)),
            Row("Deviation of usage (points)", f"{one.std * 100:.1f}", f"{two.std * 100:.1f}"),
            Row("Unowned bundles with traffic", f"{one.unserved:,}", f"{two.unserved:,}"),
            Row("Disconnected topics", "", f"{self.topics:,} of {self.all_topics:,}"),
            Row("Disconnected clients", "", f"{self.clients:,}"),
        )


def before_after(trace: Trace, result: Result) -> BeforeAfter:
    """Compare the cluster as it was captured with the end of a simulation, both by the settings before it.

    Args:
        trace: The simulation.
        result: It as the judge measures it.
    """
    return BeforeAfter(
        before=standing(trace.start, trace.start.settings, trace.scenario.assumptions),
        after=demand(trace).standing,
        topics=result.topics,
        clients=result.clients,
        all_topics=result.all_topics,
    )
