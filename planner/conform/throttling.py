"""Answers vectors about dispatch limiters: columns of two rows, messages and bytes, of whole numbers of any size."""

from typing import Any

import numpy as np
import numpy.typing as npt

from planner.cluster.errors import PulsarError, VectorError
from planner.cluster.names import DISPATCH_THROTTLING_RATE_IN_BYTE, DISPATCH_THROTTLING_RATE_IN_MSG
from planner.cluster.pulsar_json import Json
from planner.cluster.snapshot import DispatchRate
from planner.conform.load_data import config_of
from planner.pulsar.throttling.async_token_bucket import BucketColumn, bucket_column
from planner.pulsar.throttling.classic_limiter import ClassicColumn

_SECOND_NS = 1_000_000_000
_MOST = 2**53
_LEAST = {"rate": 1, "ratePeriodNanos": 1_000_000, "addTokensResolutionNanos": 1}
_INTS = frozenset({"ratePeriodInSecond", DISPATCH_THROTTLING_RATE_IN_MSG})
_MOMENTS = frozenset({"atNanos", "createdAtNanos"})
_BOTH = np.array([0, 1])
_ALWAYS = np.ones(2, dtype=bool)


def _whole(*values: int) -> npt.NDArray[Any]:
    return np.array([*values], dtype=object)


class OneLimiter:
    """One dispatch limiter with both dimensions.

    Args:
        kind: Its column.
        rate: The dispatch rate; a dimension <= 0 has no limit.
        now_ns: When it is made.
        published: Average publish rate of the topic in messages and bytes per s, for a rate relative to it.

    Raises:
        PulsarError: Pulsar refuses the rate.
    """

    def __init__(
        self,
        kind: type[BucketColumn] | type[ClassicColumn],
        rate: DispatchRate,
        now_ns: int = 0,
        published: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._published = published
        self._bucket = issubclass(kind, BucketColumn)
        self._rate = rate
        self.column = kind(self._first(), self._period(), now_ns)
        self.publish(published)

    def _first(self) -> npt.NDArray[Any]:
        """Return the rates of a new limiter: a classic one adds the publish rate at its first renewal only."""
        return self._effective() if self._bucket else _whole(self._rate.msg_per_period, self._rate.bytes_per_period)

    def _period(self) -> npt.NDArray[Any]:
        # A bucket takes a period below one second as one second.
        period_s = max(self._rate.period_s, 1) if self._bucket else self._rate.period_s
        return _whole(period_s * _SECOND_NS, period_s * _SECOND_NS)

    def _effective(self) -> npt.NDArray[Any]:
        stated = (self._rate.msg_per_period, self._rate.bytes_per_period)
        more = self._published if self._rate.relative_to_publish_rate else (0, 0)
        return _whole(*(limit + int(add) if limit > 0 else limit for limit, add in zip(stated, more, strict=True)))

    def publish(self, published: tuple[float, float]) -> None:
        """Take another average publish rate."""
        self._published = published
        if self._rate.relative_to_publish_rate:
            self.column.set_rate(self._effective())

    def change(self, rate: DispatchRate, now_ns: int) -> None:
        """Take the rate of a policy that was changed."""
        self._rate = rate
        self.column.change_policy(self._first(), self._period(), now_ns)
        self.publish(self._published)

    def consume(self, msgs: int, byte_count: int, now_ns: int) -> None:
        """Charge what was dispatched."""
        self.column.consume(_BOTH, _whole(msgs, byte_count), now_ns)

    def available(self, now_ns: int) -> tuple[int, int]:
        """Return the messages and bytes that may be read now, -1 without limit."""
        left, asked = self.column.peek(_BOTH, now_ns)
        self.column.commit(_BOTH, asked, _ALWAYS)
        msgs, byte_count = (int(one) if limited else -1 for one, limited in zip(left, self.column.limited, strict=True))
        return msgs, byte_count

    def rates(self) -> tuple[int, int]:
        """Return the messages and bytes of one period, -1 without limit."""
        msgs, byte_count = self.column.rates()
        return int(msgs), int(byte_count)


def _dispatch_rate(rate: Json) -> DispatchRate:
    return DispatchRate(
        msg_per_period=rate[DISPATCH_THROTTLING_RATE_IN_MSG],
        bytes_per_period=rate[DISPATCH_THROTTLING_RATE_IN_BYTE],
        period_s=rate.get("ratePeriodInSecond", 1),
        relative_to_publish_rate=rate.get("relativeToPublishRate", False),
    )


def _refuse_overflows(given: Json) -> None:
    """Refuse numbers with which a limiter's 64 bits overflow, or that are none.

    Raises:
        VectorError: It names the number.
    """
    for key, value in given.items():
        if isinstance(value, int | float) and key not in _MOMENTS:
            least = _LEAST.get(key, -_MOST)
            most = 2**31 - 1 if key in _INTS else _MOST
            if not least <= value <= most:
                what = f"{key} is {value}, which no broker has."
                raise VectorError(what, remedy=f"Record numbers between {least} and {most}.")
    for inner in (given.get("dispatchRate"), *given.get("ops", ())):
        if inner is not None:
            _refuse_overflows(inner)


def dispatch_throttle(vector: Json) -> Json:
    """Answer a vector of kind `dispatch_throttle`."""
    _refuse_overflows(vector["input"])
    given, buckets = vector["input"], bucket_column(config_of(vector).release)
    if given["limiter"] == "AsyncTokenBucket":
        return _bare_bucket(given, buckets)
    published = (given.get("avgPublishRateInMsg", 0.0), given.get("avgPublishRateInByte", 0.0))
    kind = ClassicColumn if given["limiter"] == "classic" else buckets
    limiter = OneLimiter(kind, _dispatch_rate(given["dispatchRate"]), given.get("createdAtNanos", 0), published)
    answers = []
    for op in given["ops"]:
        now_ns = op["atNanos"]
        if "dispatchRate" in op:
            limiter.change(_dispatch_rate(op["dispatchRate"]), now_ns)
        limiter.consume(op.get("consumeMsgs", 0), op.get("consumeBytes", 0), now_ns)
        msgs, byte_count = limiter.available(now_ns)
        answers.append({"availableMsgs": msgs, "availableBytes": byte_count})
    msgs, byte_count = limiter.rates()
    return {
        "ops": answers,
        "dispatchRateOnMsg": msgs,
        "dispatchRateOnByte": byte_count,
        "enabled": bool(limiter.column.limited.any()),
    }


def _bare_bucket(given: Json, buckets: type[BucketColumn]) -> Json:
    row, rate = np.array([0]), given["rate"]
    bucket = buckets(
        _whole(rate),
        _whole(given["ratePeriodNanos"]),
        given.get("createdAtNanos", 0),
        capacity=_whole(given.get("capacity", rate)),
        resolution_ns=_whole(given["addTokensResolutionNanos"]),
        initial=_whole(given.get("initialTokens", rate)),
    )
    answers = []
    for op in given["ops"]:
        if (consumed := op.get("consume", 0)) < 0:
            remedy = "Record what was consumed: 0 or more."
            raise PulsarError("IllegalArgumentException", "consumeTokens must be >= 0.", remedy=remedy)
        bucket.consume(row, _whole(consumed), op["atNanos"])
        tokens = bucket.balance(row, op["atNanos"])
        wait = bucket.throttling_duration_ns(row, op["atNanos"])
        answers.append({"tokens": int(tokens[0]), "throttlingDurationNanos": int(wait[0])})
    return {"ops": answers}
