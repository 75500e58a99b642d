"""Which dispatch limit is in force for a topic, and which others lose to it.

Mirrors `AbstractTopic` (`updateTopicPolicy`, `updateNamespaceDispatchRate`, `getSubscriptionDispatchRate`),
`PolicyHierarchyValue` and `DispatchRateImpl.normalize` of Pulsar 4.2.4. A policy counts as a whole, never field by
field: one that limits messages only leaves bytes without limit, whatever those below it say.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from planner.cluster.decisions import Reason, ReasonCode
from planner.cluster.errors import SettingError
from planner.cluster.names import DISPATCH_THROTTLING_RATE_IN_BYTE, DISPATCH_THROTTLING_RATE_IN_MSG
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies


class Level(StrEnum):
    """What shares one limiter."""

    BROKER = "broker"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"
    REPLICATOR = "replicator"


class Source(StrEnum):
    """Who states a limit; the first that does wins."""

    LOCAL_NAMED = "topic policy of the subscription"
    GLOBAL_NAMED = "global topic policy of the subscription"
    LOCAL_TOPIC = "topic policy"
    GLOBAL_TOPIC = "global topic policy"
    NAMESPACE = "namespace policy"
    BROKER = "broker setting"


RATE_SETTINGS: dict[Level, tuple[str, str]] = {
    Level.BROKER: (DISPATCH_THROTTLING_RATE_IN_MSG, DISPATCH_THROTTLING_RATE_IN_BYTE),
    Level.TOPIC: ("dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerTopicInByte"),
    Level.SUBSCRIPTION: ("dispatchThrottlingRatePerSubscriptionInMsg", "dispatchThrottlingRatePerSubscriptionInByte"),
    Level.REPLICATOR: ("dispatchThrottlingRatePerReplicatorInMsg", "dispatchThrottlingRatePerReplicatorInByte"),
}
"""Settings of messages and of bytes, by level."""

NO_LIMIT = DispatchRate()
"""A rate that limits nothing."""

POLICY_KINDS: dict[Level, Literal["dispatch", "subscription", "replicator"]] = {
    Level.TOPIC: "dispatch",
    Level.SUBSCRIPTION: "subscription",
    Level.REPLICATOR: "replicator",
}
"""Kind of the policies of a level; a broker has none."""

_IN_FORCE = ReasonCode("throttling.in_force", "in force", acts=True)
_NOT_SET = ReasonCode("throttling.not_set", "not set")
_STATES_NO_LIMIT = ReasonCode(
    "throttling.states_no_limit",
    (
        "no limit ({msg_per_period:.0f} messages, {bytes_per_period:.0f} bytes) counts as not set, so the "
        "next place applies"
    ),
)
_OVERRIDDEN = ReasonCode("throttling.overridden", "overridden by the {other}")
_LOST_MSGS = ReasonCode(
    "throttling.message_limit_lost",
    "overridden by the {other} as a whole: its {msg_per_period:,.0f} messages are no limit either",
)
_LOST_BYTES = ReasonCode(
    "throttling.byte_limit_lost",
    "overridden by the {other} as a whole: its {bytes_per_period:,.0f} bytes are no limit either",
)
_HIDDEN = ReasonCode("throttling.hidden", "hidden by the {other}, although that one has no limit")
_NON_PERSISTENT = ReasonCode("throttling.non_persistent", "without effect: only persistent topics are throttled")

CODES = (
    _IN_FORCE,
    _NOT_SET,
    _STATES_NO_LIMIT,
    _OVERRIDDEN,
    _LOST_MSGS,
    _LOST_BYTES,
    _HIDDEN,
    _NON_PERSISTENT,
)
"""Every kind of reason in a chain."""


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic, taken apart.

    Attributes:
        persistent: False for `non-persistent://`.
        namespace: `tenant/namespace`.
        base: Full name without `-partition-N`, which topic policies are set for.
        partition: N; None for a topic that is no partition.
    """

    persistent: bool
    namespace: str
    base: str
    partition: int | None


_TOPIC = re.compile(r"(persistent|non-persistent)://([^/]+/[^/]+)/.+", re.DOTALL)
_PARTITION = re.compile(r"-partition-(\d{1,9})$")


def parse_topic(name: str) -> TopicName:
    """Take a full topic name apart.

    Raises:
        SettingError: It is none.
    """
    match = _TOPIC.fullmatch(name)
    if match is None:
        remedy = "Write persistent://tenant/namespace/topic."
        raise SettingError(f"'{name[:80]}' is not a full topic name.", where="Topic", remedy=remedy)
    partition = _PARTITION.search(name)
    base = name if partition is None else name[: partition.start()]
    number = None if partition is None else int(partition[1])
    return TopicName(match[1] == "persistent", match[2], base, number)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One place where a limit may be set.

    Attributes:
        source: Which kind of place.
        where: The topic, the namespace or the names of the settings.
        rate: What it states; None when it states nothing.
        reason: Why it is in force or not.
    """

    source: Source
    where: str
    rate: DispatchRate | None
    reason: Reason

    @property
    def in_force(self) -> bool:
        """True for the one that wins."""
        return self.reason.code.acts


@dataclass(frozen=True, slots=True)
class LimitChain:
    """The limit of one level, and everything it was chosen from.

    Attributes:
        level: What shares the limiter.
        candidates: From the first asked to the last; at most one is in force.
    """

    level: Level
    candidates: tuple[Candidate, ...]

    @property
    def winner(self) -> Candidate | None:
        """The candidate in force; None when nothing limits this level."""
        return next((c for c in self.candidates if c.in_force), None)

    @property
    def rate(self) -> DispatchRate:
        """The limit in force; `NO_LIMIT` when there is none."""
        winner = self.winner
        return NO_LIMIT if winner is None or winner.rate is None else winner.rate


def has_limit(rate: DispatchRate | None) -> bool:
    """Return whether a rate limits anything."""
    return rate is not None and (rate.msg_per_period > 0 or rate.bytes_per_period > 0)


def setting_rate(level: Level, config: Settings) -> DispatchRate:
    """Return the limit that the broker's settings state for a level.

    Its period is one second, and it is never relative to the publish rate: 4.2.4 does not read
    `dispatchThrottlingRateRelativeToPublishRate`.
    """
    msgs, byte_count = RATE_SETTINGS[level]
    return DispatchRate(config.integer(msgs), config.integer(byte_count))


def limit_chain(level: Level, topic: str, policies: Policies, config: Settings, subscription: str = "") -> LimitChain:
    """Return the limit in force at one level, with everything it wins over.

    Args:
        level: Which limiter.
        topic: Full topic name; a partition has the policies of its topic, and a quota of its own.
        policies: Those of the cluster.
        config: Settings of the brokers.
        subscription: Its name, for the policies of that subscription; empty for any other one.

    Raises:
        SettingError: `topic` is no full topic name.
    """
    name = parse_topic(topic)
    asked = list(_asked(level, name, policies, config, subscription))
    if not name.persistent:
        reason = _NON_PERSISTENT.of()
        unset = _NOT_SET.of()
        return LimitChain(level, tuple(Candidate(s, w, r, reason if has_limit(r) else unset) for s, w, r in asked))
    return LimitChain(level, tuple(_judged(asked)))


def all_chains(topic: str, policies: Policies, config: Settings, subscription: str = "") -> tuple[LimitChain, ...]:
    """Return the chains of all levels: broker, topic, subscription, replicator; see `limit_chain`."""
    return tuple(limit_chain(level, topic, policies, config, subscription) for level in Level)


_Asked = tuple[Source, str, DispatchRate | None]


def _asked(level: Level, name: TopicName, policies: Policies, config: Settings, subscription: str) -> Iterator[_Asked]:
    """Yield every place in the order of precedence, with what it states."""
    if level is not Level.BROKER:
        kind = POLICY_KINDS[level]
        of_kind = [p for p in policies.dispatch_rates if p.kind == kind]
        on_topic = [p for p in of_kind if p.target == name.base]
        if level is Level.SUBSCRIPTION and subscription:
            where = f"{name.base}, {subscription}"
            yield Source.LOCAL_NAMED, where, _stated(on_topic, subscription, is_global=False)
            yield Source.GLOBAL_NAMED, where, _stated(on_topic, subscription, is_global=True)
        yield Source.LOCAL_TOPIC, name.base, _stated(on_topic, "", is_global=False)
        yield Source.GLOBAL_TOPIC, name.base, _stated(on_topic, "", is_global=True)
        on_namespace = [p for p in of_kind if p.target == name.namespace]
        yield Source.NAMESPACE, name.namespace, _stated(on_namespace, "", is_global=None)
    yield Source.BROKER, ", ".join(RATE_SETTINGS[level]), setting_rate(level, config)


def _stated(
    policies: Iterable[DispatchRatePolicy], subscription: str, *, is_global: bool | None
) -> DispatchRate | None:
    rates = [p.rate for p in policies if p.subscription == subscription and is_global in {None, p.is_global}]
    return rates[-1] if rates else None


def _judged(asked: Iterable[_Asked]) -> Iterator[Candidate]:
    winner: _Asked | None = None
    hiding: Source | None = None
    for source, where, rate in asked:
        if rate is None:
            reason = _NOT_SET.of()
        elif source is Source.GLOBAL_NAMED and hiding is not None:
            reason = _HIDDEN.of(other=hiding)
        elif not has_limit(rate):
            both = {"msg_per_period": float(rate.msg_per_period), "bytes_per_period": float(rate.bytes_per_period)}
            reason = Reason(_STATES_NO_LIMIT if source is not Source.BROKER else _NOT_SET, None, None, both)
        elif winner is None:
            reason = _IN_FORCE.of()
            winner = (source, where, rate)
        else:
            reason = _overridden(rate, winner)
        if source is Source.LOCAL_NAMED and rate is not None and winner is None:
            hiding = source  # policies of one subscription are merged before anyone asks whether they limit anything
        yield Candidate(source, where, rate, reason)


def _overridden(rate: DispatchRate, winner: _Asked) -> Reason:
    source, _, chosen = winner
    if chosen is not None and rate.msg_per_period > 0 >= chosen.msg_per_period:
        return _LOST_MSGS.of(rate.msg_per_period, other=source)
    if chosen is not None and rate.bytes_per_period > 0 >= chosen.bytes_per_period:
        return _LOST_BYTES.of(rate.bytes_per_period, other=source)
    return _OVERRIDDEN.of(other=source)
