"""The examples of Pulsar's page about dispatch throttling, as Pulsar 4.2.4 plays them."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    config: Settings = Settings()  # noqa: RUF009 - frozen


def _backlog(messages: int, messages_per_entry: int, publish: PublishPattern | None = None) -> TopicLoad:
    subscriptions = (SubscriptionLoad(backlog_msgs=messages),)
    pattern = PublishPattern() if publish is None else publish
    return TopicLoad(_NAME, pattern, messages_per_entry, subscriptions=subscriptions, limit=_TEN)


_SIXES = _backlog(6_000, 6)

DOCUMENTED: tuple[DocumentedCase, ...] = (
    DocumentedCase(
        "11 of 10 delivered",
        "9 may be delivered in the next period",
        agrees=True,
        load=_backlog(11, 11, publish=PublishPattern(11)),
    ),
    DocumentedCase(
        "30 of 10 delivered",
        "nothing is delivered in the next two periods",
        agrees=True,
        load=_backlog(3_000, 3),
    ),
    DocumentedCase(
        "10 per second, 6 messages in an entry",
        "10 entries are read each second",
        agrees=False,
        load=_SIXES,
    ),
    DocumentedCase(
        "the same with preciseDispatcherFlowControl",
        "2 entries are read each second",
        agrees=False,
        load=_SIXES,
        config=Settings({"preciseDispatcherFlowControl": True}),
    ),
    DocumentedCase(
        "the same with dispatchThrottlingOnBatchMessageEnabled",
        "10 entries are read and delivered each second",
        agrees=True,
        load=_SIXES,
        config=Settings({"dispatchThrottlingOnBatchMessageEnabled": True}),
    ),
    DocumentedCase(
        "both of them",
        "only one of them may be enabled",
        agrees=False,
        load=_SIXES,
        config=Settings({"dispatchThrottlingOnBatchMessageEnabled": True, "preciseDispatcherFlowControl": True}),
    ),
)
"""In the order of the page."""


def play(cases: Sequence[DocumentedCase] = DOCUMENTED, periods: int = 6) -> tuple[DispatchTrace, ...]:
    """Return what happens in each case in the first periods of one second."""
    return tuple(simulate([case.load], case.config, periods) for case in cases)


DIFFERENCES: tuple[str, ...] = (
    (
        "The page gives -1 as the default of every limit. In 4.2.4 it is 0, and both mean no limit; -1 is the default"
        " of a field of a policy."
    ),
    (
        "A policy is taken as a whole. One that limits messages only leaves bytes without limit, although a namespace"
        " policy or a broker setting limits bytes."
    ),
    "A policy of -1 messages and -1 bytes exempts no topic: it counts as not set, and the next one applies.",
    "dispatchThrottlingRateInMsg and …InByte hold for each broker process, not for the cluster.",
    "ratePeriodInSecond is no parameter of broker.conf. Limits of broker.conf have a period of one second.",
    (
        "dispatchThrottlingRateRelativeToPublishRate of broker.conf has no effect in 4.2.4; only policies can be"
        " relative to the publish rate."
    ),
    (
        "preciseDispatcherFlowControl divides the permits of the consumers by the messages in an entry, never what a"
        " limit leaves: with 10 messages left and 1000 permits, 10 entries are read, not 2."
    ),
    "preciseDispatcherFlowControl and dispatchThrottlingOnBatchMessageEnabled do not exclude each other.",
    (
        "No scheduled task refreshes the quota with the default limiter: a token bucket earns by elapsed time when it"
        " is asked, at most one period's tokens. Only the classic limiter works as the page says."
    ),
    (
        "Entry sizes are estimated from the ledgers at the read position and 64 bytes more, not from publish or"
        " dispatch statistics."
    ),
    (
        "With dispatchThrottlingOnNonBacklogConsumerEnabled=false nothing is throttled at all while consumers are"
        " connected, whatever their backlog, unless cacheEvictionByExpectedReadCount is false too."
    ),
)
"""Where Pulsar's page about dispatch throttling says something else than 4.2.4 does."""
