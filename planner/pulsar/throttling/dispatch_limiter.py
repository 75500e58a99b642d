"""The default dispatch limiter: one token bucket for messages and one for bytes.

Mirrors `DispatchRateLimiterAsyncTokenBucketImpl` of Pulsar 4.2.4.
"""

from dataclasses import dataclass, replace

from planner.cluster.snapshot import DispatchRate
from planner.pulsar.throttling import async_token_bucket
from planner.pulsar.throttling.async_token_bucket import BucketRate, TokenBucket, new_bucket
from planner.pulsar.throttling.protocol import NO_PUBLISHING, UNLIMITED, Available, PublishRate, effective_rates

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class AsyncTokenBucketLimiter:
    """A dispatch limiter; see `DispatchLimiter`.

    Attributes:
        rate: The dispatch rate in force.
        msgs: Bucket of messages; None without limit.
        bytes: Bucket of bytes; None without limit.
    """

    rate: DispatchRate
    msgs: TokenBucket | None
    bytes: TokenBucket | None

    @property
    def enabled(self) -> bool:
        """True when it limits messages or bytes."""
        return self.msgs is not None or self.bytes is not None

    def consume(
        self, msgs: int, byte_count: int, now_ns: int, publish: PublishRate = NO_PUBLISHING
    ) -> "AsyncTokenBucketLimiter":
        """Charge what was dispatched; the moment does not matter to a bucket."""
        del now_ns, publish
        taken = self
        if self.msgs is not None and msgs > 0:
            taken = replace(taken, msgs=async_token_bucket.consume(self.msgs, msgs))
        if self.bytes is not None and byte_count > 0:
            taken = replace(taken, bytes=async_token_bucket.consume(self.bytes, byte_count))
        return taken

    def available(
        self, now_ns: int, publish: PublishRate = NO_PUBLISHING
    ) -> tuple["AsyncTokenBucketLimiter", Available]:
        """Return what may be read now; asking adds the tokens that are due."""
        msg_rate, byte_rate = _bucket_rates(self.rate, publish)
        msgs, msg_tokens = _asked(self.msgs, msg_rate, now_ns)
        byte_bucket, byte_tokens = _asked(self.bytes, byte_rate, now_ns)
        return replace(self, msgs=msgs, bytes=byte_bucket), Available(msg_tokens, byte_tokens)

    def rates(self, publish: PublishRate = NO_PUBLISHING) -> Available:
        """Return the limits in force for one period."""
        msgs, byte_count = effective_rates(self.rate, publish)
        return Available(
            UNLIMITED if self.msgs is None else msgs,
            UNLIMITED if self.bytes is None else byte_count,
        )

    def with_rate(
        self, rate: DispatchRate, now_ns: int, publish: PublishRate = NO_PUBLISHING
    ) -> "AsyncTokenBucketLimiter":
        """Return the limiter after a policy change: new full buckets, so that debt is forgotten."""
        return async_token_bucket_limiter(rate, now_ns, publish)


def async_token_bucket_limiter(
    rate: DispatchRate, now_ns: int, publish: PublishRate = NO_PUBLISHING
) -> AsyncTokenBucketLimiter:
    """Create a limiter with full buckets.

    Args:
        rate: The dispatch rate; a dimension <= 0 has no limit, a period below one second counts as one second.
        now_ns: The moment.
        publish: Average publish rate of the topic, for a rate relative to it.
    """
    msg_rate, byte_rate = _bucket_rates(rate, publish)
    return AsyncTokenBucketLimiter(
        rate,
        new_bucket(msg_rate, now_ns) if msg_rate else None,
        new_bucket(byte_rate, now_ns) if byte_rate else None,
    )


def _bucket_rates(rate: DispatchRate, publish: PublishRate) -> tuple[BucketRate | None, BucketRate | None]:
    period_ns = max(rate.period_s, 1) * _SECOND_NS
    msgs, byte_count = effective_rates(rate, publish)
    return (
        BucketRate(msgs, period_ns, msgs, period_ns) if msgs > 0 else None,
        BucketRate(byte_count, period_ns, byte_count, period_ns) if byte_count > 0 else None,
    )


def _asked(bucket: TokenBucket | None, rate: BucketRate | None, now_ns: int) -> tuple[TokenBucket | None, int]:
    if bucket is None or rate is None:
        return bucket, UNLIMITED
    bucket, tokens = async_token_bucket.balance(bucket, rate, now_ns)
    return bucket, max(tokens, 0)
