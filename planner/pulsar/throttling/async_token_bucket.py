"""AsyncTokenBucket: tokens earned by elapsed time, taken without asking, refilled when somebody looks.

Mirrors `AsyncTokenBucket` and `FinalRateAsyncTokenBucket` of Pulsar 4.2.4 (`org.apache.pulsar.broker.qos`), to the last
token. Differs in that what is a counter of atomics there is a value here: every call returns the bucket afterwards.
"""

from dataclasses import dataclass, replace

_LONG_MAX = 2**63 - 1
_TARGET_FILL = 0.01


@dataclass(frozen=True, slots=True)
class BucketRate:
    """How fast a bucket fills.

    Attributes:
        tokens: Tokens earned in one period, at least 1.
        period_ns: The period, at least 1 ns.
        capacity_tokens: Most tokens the bucket can hold.
        resolution_ns: Tokens are added only when more than this has passed since they were last added.
    """

    tokens: int
    period_ns: int
    capacity_tokens: int
    resolution_ns: int

    @property
    def target_tokens(self) -> int:
        """Tokens the bucket should hold when throttling ends."""
        return max(int(self.capacity_tokens * _TARGET_FILL), 1)


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A bucket.

    Attributes:
        tokens: Balance when tokens were last added; below 0 in debt.
        last_ns: When that was.
        remainder_ns: Elapsed time that did not suffice for a whole token yet.
        pending_tokens: Taken since.
    """

    tokens: int
    last_ns: int
    remainder_ns: int = 0
    pending_tokens: int = 0


def new_bucket(rate: BucketRate, now_ns: int, initial_tokens: int | None = None) -> TokenBucket:
    """Create a bucket.

    Args:
        rate: How fast it fills.
        now_ns: The moment.
        initial_tokens: Tokens in it, those of one period by default.
    """
    return TokenBucket(rate.tokens if initial_tokens is None else initial_tokens, now_ns)


def consume(bucket: TokenBucket, tokens: int) -> TokenBucket:
    """Take tokens, whether or not they are there."""
    return replace(bucket, pending_tokens=bucket.pending_tokens + tokens)


def balance(bucket: TokenBucket, rate: BucketRate, now_ns: int) -> tuple[TokenBucket, int]:
    """Add the tokens earned since they were last added, when it is time to, and return the balance.

    Args:
        bucket: The bucket.
        rate: How fast it fills; may have changed since the last call.
        now_ns: The moment.

    Returns:
        The bucket afterwards, and its balance in tokens; below 0 in debt.
    """
    token_ns = rate.period_ns // rate.tokens
    step_ns = token_ns - bucket.remainder_ns - 1 if token_ns > rate.resolution_ns else rate.resolution_ns
    if now_ns <= bucket.last_ns + max(step_ns, 0):
        return bucket, bucket.tokens - bucket.pending_tokens
    elapsed_ns = now_ns - bucket.last_ns + bucket.remainder_ns
    earned = min(elapsed_ns * rate.tokens // rate.period_ns, _LONG_MAX)
    remainder_ns = max(elapsed_ns - earned * rate.period_ns // rate.tokens, 0)
    if earned == 0:
        bucket = replace(bucket, last_ns=now_ns, remainder_ns=remainder_ns)
        return bucket, bucket.tokens - bucket.pending_tokens
    tokens = bucket.tokens
    if earned != bucket.pending_tokens:  # even the capacity is not looked at when nothing changes
        tokens = min(tokens + earned - bucket.pending_tokens, rate.capacity_tokens)
    return TokenBucket(tokens, now_ns, remainder_ns), tokens


def throttling_duration_ns(bucket: TokenBucket, rate: BucketRate, now_ns: int) -> tuple[TokenBucket, int]:
    """Return the bucket afterwards, and in how many ns it will hold the target; 0 when it does."""
    bucket, tokens = balance(bucket, rate, now_ns)
    missing = max(rate.target_tokens - tokens, 0)
    return bucket, min(missing * rate.period_ns // rate.tokens, _LONG_MAX)
