"""The contract of a dispatch limiter."""

from dataclasses import dataclass
from typing import Protocol, Self

from planner.cluster.snapshot import DispatchRate

UNLIMITED = -1
"""What a limiter answers for a dimension without limit."""


@dataclass(frozen=True, slots=True)
class PublishRate:
    """Average publish rate of the topic, which a relative limit is added to.

    Attributes:
        msg_per_s: Messages per second, at least 0.
        bytes_per_s: Bytes per second, at least 0.
    """

    msg_per_s: float = 0.0
    bytes_per_s: float = 0.0


NO_PUBLISHING = PublishRate()


@dataclass(frozen=True, slots=True)
class Available:
    """What may be read now.

    Attributes:
        msgs: Messages, `UNLIMITED` (-1) without limit, never below 0 otherwise.
        bytes: The same for bytes.
    """

    msgs: int
    bytes: int


class DispatchLimiter(Protocol):
    """Counts what was dispatched against a dispatch rate. Immutable: every change returns another limiter.

    Mirrors `DispatchRateLimiter` of Pulsar 4.2.4.

    Attributes:
        rate: The dispatch rate in force.
    """

    @property
    def rate(self) -> DispatchRate: ...  # noqa: D102

    @property
    def enabled(self) -> bool:
        """True when it limits messages or bytes."""

    def consume(self, msgs: int, byte_count: int, now_ns: int, publish: PublishRate = NO_PUBLISHING) -> Self:
        """Charge what was dispatched; the limiter may go into debt.

        Args:
            msgs: Messages (or entries, see `dispatchThrottlingOnBatchMessageEnabled`); nothing is charged below 1.
            byte_count: Bytes; the same.
            now_ns: The moment.
            publish: Average publish rate of the topic, for a rate relative to it.
        """

    def available(self, now_ns: int, publish: PublishRate = NO_PUBLISHING) -> tuple[Self, Available]:
        """Return what may be read now, and the limiter after the question.

        Args:
            now_ns: The moment, on any clock that only moves forward.
            publish: Average publish rate of the topic, for a rate relative to it.
        """

    def rates(self, publish: PublishRate = NO_PUBLISHING) -> Available:
        """Return the limits in force for one period."""

    def with_rate(self, rate: DispatchRate, now_ns: int, publish: PublishRate = NO_PUBLISHING) -> Self:
        """Return the limiter after the dispatch rate was changed by a policy."""


def effective_rates(rate: DispatchRate, publish: PublishRate) -> tuple[int, int]:
    """Return messages and bytes of one period, with the publish rate added where the limit is relative to it.

    A dimension with a rate <= 0 has no limit and is returned as it is.
    """
    if not rate.relative_to_publish_rate:
        return rate.msg_per_period, rate.bytes_per_period
    limits = (rate.msg_per_period, rate.bytes_per_period)
    published = (int(publish.msg_per_s), int(publish.bytes_per_s))
    msgs, byte_count = (limit + more if limit > 0 else limit for limit, more in zip(limits, published, strict=True))
    return msgs, byte_count
