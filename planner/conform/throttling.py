"""Answers vectors about dispatch limiters."""

from collections.abc import Callable, Mapping

from planner.cluster.snapshot import DispatchRate
from planner.conform.load_data import Json
from planner.pulsar.throttling import async_token_bucket
from planner.pulsar.throttling.async_token_bucket import BucketRate, new_bucket
from planner.pulsar.throttling.classic_limiter import classic_limiter
from planner.pulsar.throttling.dispatch_limiter import async_token_bucket_limiter
from planner.pulsar.throttling.protocol import DispatchLimiter, PublishRate


def _dispatch_rate(rate: Json) -> DispatchRate:
    return DispatchRate(
        msg_per_period=rate["dispatchThrottlingRateInMsg"],
        bytes_per_period=rate["dispatchThrottlingRateInByte"],
        period_s=rate.get("ratePeriodInSecond", 1),
        relative_to_publish_rate=rate.get("relativeToPublishRate", False),
    )


def _dispatch_throttle(vector: Json) -> Json:
    given = vector["input"]
    if given["limiter"] == "AsyncTokenBucket":
        return _bare_bucket(given)
    rate, start_ns = _dispatch_rate(given["dispatchRate"]), given.get("createdAtNanos", 0)
    publish = PublishRate(given.get("avgPublishRateInMsg", 0.0), given.get("avgPublishRateInByte", 0.0))
    limiter: DispatchLimiter
    if given["limiter"] == "classic":
        limiter = classic_limiter(rate)
    else:
        limiter = async_token_bucket_limiter(rate, start_ns, publish)
    answers = []
    for op in given["ops"]:
        now_ns = op["atNanos"]
        if "dispatchRate" in op:
            limiter = limiter.with_rate(_dispatch_rate(op["dispatchRate"]), now_ns, publish)
        limiter = limiter.consume(op.get("consumeMsgs", 0), op.get("consumeBytes", 0), now_ns, publish)
        limiter, left = limiter.available(now_ns, publish)
        answers.append({"availableMsgs": left.msgs, "availableBytes": left.bytes})
    limits = limiter.rates(publish)
    return {
        "ops": answers,
        "dispatchRateOnMsg": limits.msgs,
        "dispatchRateOnByte": limits.bytes,
        "enabled": limiter.enabled,
    }


def _bare_bucket(given: Json) -> Json:
    capacity = given.get("capacity", given["rate"])
    rate = BucketRate(given["rate"], given["ratePeriodNanos"], capacity, given["addTokensResolutionNanos"])
    bucket = new_bucket(rate, given.get("createdAtNanos", 0), given.get("initialTokens"))
    answers = []
    for op in given["ops"]:
        bucket = async_token_bucket.consume(bucket, op.get("consume", 0))
        bucket, tokens = async_token_bucket.balance(bucket, rate, op["atNanos"])
        bucket, duration_ns = async_token_bucket.throttling_duration_ns(bucket, rate, op["atNanos"])
        answers.append({"tokens": tokens, "throttlingDurationNanos": duration_ns})
    return {"ops": answers}


ANSWERS: Mapping[str, Callable[[Json], Json]] = {"dispatch_throttle": _dispatch_throttle}
"""What the planner answers to a vector, by kind."""
