"""The examples of Pulsar's page about dispatch throttling, as Pulsar 4.2.4 plays them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.files import packaged_rows
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate
from planner.simulate.dispatch.load import PublishPattern, SubscriptionLoad, TopicLoad
from planner.simulate.dispatch.simulate import simulate
from planner.simulate.dispatch.trace import DispatchTrace

_TEN = DispatchRate(10)
_NAME = "persistent://public/default/example"


@dataclass(frozen=True, slots=True)
class DocumentedCase:
    """One example.

    Attributes:
        title: What it is about.
        document: What the page says.
        agrees: Whether 4.2.4 does so.
        load: The topic that shows it.
        config: Settings of the brokers.
    """

    title: str
    document: str
    agrees: bool
    load: TopicLoad
    config: Settings


def _case(row: Mapping[str, str]) -> DocumentedCase:
    config = Settings(dict.fromkeys(row["switched_on"].split(), True))
    load = TopicLoad(
        _NAME,
        PublishPattern(float(row["published_msg_per_s"])),
        int(row["messages_per_entry"]),
        subscriptions=(SubscriptionLoad(backlog_msgs=int(row["backlog_msgs"])),),
        limit=_TEN,
    )
    return DocumentedCase(row["title"], row["document"], row["agrees"] == "yes", load, config)


DOCUMENTED: tuple[DocumentedCase, ...] = tuple(map(_case, packaged_rows("planner.simulate.dispatch", "documented.csv")))
"""In the order of the page."""


def play(cases: Sequence[DocumentedCase] = DOCUMENTED, periods: int = 6) -> tuple[DispatchTrace, ...]:
    """Return what happens in each case in the first periods of one second."""
    return tuple(simulate([case.load], case.config, periods) for case in cases)


DIFFERENCES: tuple[str, ...] = tuple(
    row["difference"] for row in packaged_rows("planner.simulate.dispatch", "differences.csv")
)
"""Points where Pulsar's page about dispatch throttling differs from 4.2.4."""
