"""The classic dispatch limiter: counts what was taken, and a timer forgives one rate every period.

Mirrors `DispatchRateLimiterClassicImpl` and the `RateLimiter` below it of Pulsar 4.2.4. Differs in that the timer does
not run: renewals that fall due are made up for at the next call.
"""

from dataclasses import dataclass, replace

from planner.cluster.errors import PulsarError
from planner.cluster.snapshot import DispatchRate
from planner.pulsar.throttling.protocol import NO_PUBLISHING, UNLIMITED, Available, PublishRate, effective_rates

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PermitCounter:
    """What was taken in one dimension.

    Attributes:
        permits: Permits of one period.
        acquired: Permits taken and not yet forgiven; more than `permits` in debt.
        renewal_ns: When the next renewal is due; None until permits were first taken.
    """

    permits: int
    acquired: int = 0
    renewal_ns: int | None = None

    def renewed(self, period_ns: int, now_ns: int, updated_permits: int) -> "PermitCounter":
        """Return the counter after the renewals that are due at or before a moment.

        Args:
            period_ns: Time between renewals.
            now_ns: The moment.
            updated_permits: Permits of the periods after the first renewal; as before when not positive.
        """
        if self.renewal_ns is None or self.renewal_ns > now_ns:
            return self
        later = (now_ns - self.renewal_ns) // period_ns
        permits = updated_permits if updated_permits > 0 else self.permits
        acquired = max(max(self.acquired - self.permits, 0) - later * permits, 0)
        return PermitCounter(permits, acquired, self.renewal_ns + (later + 1) * period_ns)

    def taken(self, permits: int, period_ns: int, now_ns: int) -> "PermitCounter":
        """Return the counter after permits were taken; the first time starts the timer."""
        due = now_ns + period_ns if self.renewal_ns is None else self.renewal_ns
        return replace(self, acquired=self.acquired + permits, renewal_ns=due)

    @property
    def available(self) -> int:
        """Permits left in this period."""
        return max(self.permits - self.acquired, 0)

    def with_permits(self, permits: int, period_ns: int, now_ns: int) -> "PermitCounter":
        """Return the counter after a policy change: debt stays, and the timer starts anew."""
        return PermitCounter(permits, self.acquired, now_ns + period_ns)


@dataclass(frozen=True, slots=True)
class ClassicLimiter:
    """A dispatch limiter; see `DispatchLimiter`.

    Attributes:
        rate: The dispatch rate in force.
        msgs: Messages taken; None without limit.
        bytes: Bytes taken; None without limit.
    """

    rate: DispatchRate
    msgs: PermitCounter | None
    bytes: PermitCounter | None

    @property
    def enabled(self) -> bool:
        """True when it limits messages or bytes."""
        return self.msgs is not None or self.bytes is not None

    def consume(
        self, msgs: int, byte_count: int, now_ns: int, publish: PublishRate = NO_PUBLISHING
    ) -> "ClassicLimiter":
        """Charge what was dispatched; the first charge starts the timer of its dimension."""
        now = self._renewed(now_ns, publish)
        period_ns = self.rate.period_s * _SECOND_NS
        taken_msgs, taken_bytes = now.msgs, now.bytes
        if taken_msgs is not None and msgs > 0:
            taken_msgs = taken_msgs.taken(msgs, period_ns, now_ns)
        if taken_bytes is not None and byte_count > 0:
            taken_bytes = taken_bytes.taken(byte_count, period_ns, now_ns)
        return ClassicLimiter(self.rate, taken_msgs, taken_bytes)

    def available(self, now_ns: int, publish: PublishRate = NO_PUBLISHING) -> tuple["ClassicLimiter", Available]:
        """Return what may be read now."""
        now = self._renewed(now_ns, publish)
        msgs = UNLIMITED if now.msgs is None else now.msgs.available
        return now, Available(msgs, UNLIMITED if now.bytes is None else now.bytes.available)

    def rates(self, publish: PublishRate = NO_PUBLISHING) -> Available:
        """Return the limits in force for one period; a relative limit is updated by renewals only."""
        del publish
        return Available(
            UNLIMITED if self.msgs is None else self.msgs.permits,
            UNLIMITED if self.bytes is None else self.bytes.permits,
        )

    def with_rate(self, rate: DispatchRate, now_ns: int, publish: PublishRate = NO_PUBLISHING) -> "ClassicLimiter":
        """Return the limiter after a policy change.

        Raises:
            PulsarError: The period is not positive.
        """
        now, fresh = self._renewed(now_ns, publish), classic_limiter(rate)
        return ClassicLimiter(
            rate,
            _changed(now.msgs, fresh.msgs, rate.period_s, now_ns),
            _changed(now.bytes, fresh.bytes, rate.period_s, now_ns),
        )

    def _renewed(self, now_ns: int, publish: PublishRate) -> "ClassicLimiter":
        period_ns = self.rate.period_s * _SECOND_NS
        updated = effective_rates(self.rate, publish) if self.rate.relative_to_publish_rate else (0, 0)
        msgs, byte_count = (
            counter and counter.renewed(period_ns, now_ns, permits)
            for counter, permits in zip((self.msgs, self.bytes), updated, strict=True)
        )
        return replace(self, msgs=msgs, bytes=byte_count)


def classic_limiter(rate: DispatchRate) -> ClassicLimiter:
    """Create a limiter that nothing was taken from.

    Args:
        rate: The dispatch rate; a dimension <= 0 has no limit. A relative limit counts as it is until
            the first renewal.

    Raises:
        PulsarError: There is a limit and its period is not positive.
    """
    limits = (rate.msg_per_period, rate.bytes_per_period)
    if rate.period_s <= 0 and max(limits) > 0:
        remedy = "Give a ratePeriodInSecond of at least 1."
        raise PulsarError("IllegalArgumentException", "Renew permit time must be > 0.", remedy=remedy)
    msgs, byte_count = (PermitCounter(limit) if limit > 0 else None for limit in limits)
    return ClassicLimiter(rate, msgs, byte_count)


def _changed(
    counter: PermitCounter | None, fresh: PermitCounter | None, period_s: int, now_ns: int
) -> PermitCounter | None:
    if counter is None or fresh is None:
        return fresh
    return counter.with_permits(fresh.permits, period_s * _SECOND_NS, now_ns)
