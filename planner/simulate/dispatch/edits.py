"""Changing dispatch limits: the policies and settings after an edit, and the commands that make it so.

Commands are those of `pulsar-admin` 4.2.4 (`topicPolicies`, `namespaces`, `brokers update-dynamic-config`).
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies
from planner.pulsar.throttling.precedence import POLICY_KINDS, RATE_SETTINGS, Level, Source, has_limit, parse_topic

PLACES: dict[Level, tuple[Source, ...]] = {
    Level.BROKER: (Source.BROKER,),
    Level.TOPIC: (Source.LOCAL_TOPIC, Source.GLOBAL_TOPIC, Source.NAMESPACE, Source.BROKER),
    Level.SUBSCRIPTION: (
        Source.LOCAL_NAMED,
        Source.GLOBAL_NAMED,
        Source.LOCAL_TOPIC,
        Source.GLOBAL_TOPIC,
        Source.NAMESPACE,
        Source.BROKER,
    ),
    Level.REPLICATOR: (Source.LOCAL_TOPIC, Source.GLOBAL_TOPIC, Source.NAMESPACE, Source.BROKER),
}
"""Where the limit of a level can be set."""

_LEVELS = {"topic": Level.TOPIC, "subscription": Level.SUBSCRIPTION}
_GLOBAL = (Source.GLOBAL_NAMED, Source.GLOBAL_TOPIC)
_NAMED = (Source.LOCAL_NAMED, Source.GLOBAL_NAMED)
_VERBS = {
    Level.TOPIC: "dispatch-rate",
    Level.SUBSCRIPTION: "subscription-dispatch-rate",
    Level.REPLICATOR: "replicator-dispatch-rate",
}


@dataclass(frozen=True, slots=True)
class LimitEdit:
    """One limit that is set or removed.

    Attributes:
        level: Which limiter.
        place: Where it is set.
        topic: Full name of a topic (or of a partition of it) that is looked at.
        rate: The limit; one that limits nothing removes what is set there. A broker setting has no period and is
            never relative to the publish rate.
        subscription: The one meant, for policies of a named subscription.
    """

    level: Level
    place: Source
    topic: str
    rate: DispatchRate
    subscription: str = ""

    @property
    def target(self) -> str:
        """The topic or namespace a policy is set for."""
        name = parse_topic(self.topic)
        return name.namespace if self.place is Source.NAMESPACE else name.base


def edited(edits: tuple[LimitEdit, ...], policies: Policies, config: Settings) -> tuple[Policies, Settings]:
    """Return policies and settings after some edits.

    Raises:
        SettingError: A limit is out of bounds, or a topic has no full name.
    """
    for edit in edits:
        if edit.place is Source.BROKER:
            values = (edit.rate.msg_per_period, edit.rate.bytes_per_period)
            config = config.changed(**dict(zip(RATE_SETTINGS[edit.level], values, strict=True)))
            continue
        made = DispatchRatePolicy(
            POLICY_KINDS[edit.level],
            edit.target,
            edit.rate,
            edit.subscription if edit.place in _NAMED else "",
            edit.place in _GLOBAL,
        )
        policies = _replaced(policies, made)
    return policies, config


def with_policy(
    policies: Policies, level: Literal["topic", "subscription"], target: str, rate: DispatchRate
) -> Policies:
    """Return policies with the limit of a namespace, or of a topic, set; removed where the rate limits nothing.

    Args:
        policies: Those before.
        level: What is limited: all dispatch of a topic, or each subscription.
        target: Namespace, or full name of a topic without `-partition-N`.
        rate: The limit.
    """
    return _replaced(policies, DispatchRatePolicy(POLICY_KINDS[_LEVELS[level]], target, rate))


def _replaced(policies: Policies, made: DispatchRatePolicy) -> Policies:
    kept = tuple(p for p in policies.dispatch_rates if not _same_place(p, made))
    return replace(policies, dispatch_rates=(*kept, made) if has_limit(made.rate) else kept)


def _same_place(one: DispatchRatePolicy, other: DispatchRatePolicy) -> bool:
    alike = (one.kind, one.target, one.subscription) == (other.kind, other.target, other.subscription)
    return alike and ("://" not in one.target or one.is_global == other.is_global)


def commands(edit: LimitEdit) -> tuple[str, ...]:
    """Return the commands that make one edit."""
    rate = edit.rate
    if edit.place is Source.BROKER:
        names = RATE_SETTINGS[edit.level]
        return setting_commands(dict(zip(names, (rate.msg_per_period, rate.bytes_per_period), strict=True)))
    group = "namespaces" if edit.place is Source.NAMESPACE else "topicPolicies"
    verb = "set" if has_limit(rate) else "remove"
    words = ["pulsar-admin", group, f"{verb}-{_VERBS[edit.level]}", edit.target, *_rate_words(rate)]
    words += ["--subscription", edit.subscription] if edit.place in _NAMED else []
    words += ["--global"] if edit.place in _GLOBAL else []
    return (shlex.join(words),)


def _rate_words(rate: DispatchRate) -> list[str]:
    if not has_limit(rate):
        return []
    words = ["--msg-dispatch-rate", str(rate.msg_per_period), "--byte-dispatch-rate", str(rate.bytes_per_period)]
    words += ["--dispatch-rate-period", str(rate.period_s)]
    return [*words, "--relative-to-publish-rate"] if rate.relative_to_publish_rate else words


def policy_words(
    level: Literal["topic", "subscription"], target: str, rate: DispatchRate
) -> tuple[list[str], list[str]]:
    """Return the words of `pulsar-admin` before and after the name of what `with_policy` changes."""
    group = "topicPolicies" if "://" in target else "namespaces"
    verb = "set" if has_limit(rate) else "remove"
    return [group, f"{verb}-{_VERBS[_LEVELS[level]]}"], _rate_words(rate)


def setting_commands(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the commands that change settings of all brokers while they run.

    Args:
        values: New values by name, as `broker.conf` writes them.
    """
    return tuple(
        shlex.join(["pulsar-admin", "brokers", "update-dynamic-config", "--config", name, "--value", _text(value)])
        for name, value in values.items()
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
