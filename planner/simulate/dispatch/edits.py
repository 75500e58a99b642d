"""Changing dispatch limits: the policies and settings after an edit, and the commands that make it so.

Commands are those of `pulsar-admin` 4.2.4 (`topicPolicies`, `namespaces`, `brokers update-dynamic-config`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.cluster.setting import SettingValue, conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies
from planner.pulsar.throttling.precedence import (
    POLICY_KINDS,
    RATE_SETTINGS,
    Level,
    LimitChain,
    Source,
    has_limit,
    limit_chain,
    parse_topic,
)
from planner.simulate.admin_commands import PROGRAM, quoted

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
        target: Namespace, or full name of a topic without `-partition-N`, that a policy is set for.
        rate: The limit; one that limits nothing removes what is set there. A broker setting has no period and is
            never relative to the publish rate.
        subscription: The one meant, for policies of a named subscription.
    """

    level: Level
    place: Source
    target: str
    rate: DispatchRate
    subscription: str = ""

    @staticmethod
    def about(topic: str, level: Level, place: Source, rate: DispatchRate, subscription: str = "") -> "LimitEdit":
        """Return the edit for a topic (or a partition of it) that is looked at.

        Raises:
            SettingError: It is no full topic name.
        """
        name = parse_topic(topic)
        return LimitEdit(level, place, name.namespace if place is Source.NAMESPACE else name.base, rate, subscription)

    def words(self) -> tuple[list[str], list[str]]:
        """Return the words of `pulsar-admin` before and after the target of a policy."""
        rate, limits = self.rate, has_limit(self.rate)
        group = "namespaces" if self.place is Source.NAMESPACE else "topicPolicies"
        after: list[str] = []
        if limits:
            after = [
                "--msg-dispatch-rate",
                str(rate.msg_per_period),
                "--byte-dispatch-rate",
                str(rate.bytes_per_period),
            ]
            after += ["--dispatch-rate-period", str(rate.period_s)]
            after += ["--relative-to-publish-rate"] if rate.relative_to_publish_rate else []
        after += ["--subscription", self.subscription] if self.place in _NAMED else []
        after += ["--global"] if self.place in _GLOBAL else []
        return [group, f"{'set' if limits else 'remove'}-{_VERBS[self.level]}"], after

    def commands(self) -> tuple[str, ...]:
        """Return the commands that make it so, as a shell reads them."""
        if self.place is Source.BROKER:
            values = (self.rate.msg_per_period, self.rate.bytes_per_period)
            return setting_commands(dict(zip(RATE_SETTINGS[self.level], values, strict=True)))
        before, after = self.words()
        return (quoted([*PROGRAM, *before, self.target, *after]),)


def doubled_limit(topic: str, policies: Policies, config: Settings) -> LimitEdit | None:
    """Return the edit that doubles the limit that a topic meets first; None where none is in force.

    Args:
        topic: Full topic name, or that of a partition.
        policies: Those of the cluster.
        config: Settings of the brokers.

    Raises:
        SettingError: It is no full topic name.
    """
    chains = [limit_chain(level, topic, policies, config) for level in (Level.TOPIC, Level.SUBSCRIPTION)]
    chains = [chain for chain in chains if has_limit(chain.rate) and chain.winner is not None]
    if not chains:
        return None
    first = min(chains, key=lambda chain: [(n if n > 0 else math.inf) / chain.rate.period_s for n in _amounts(chain)])
    rate, winner = first.rate, first.winner
    msgs, size = (amount * 2 if amount > 0 else amount for amount in _amounts(first))
    doubled = replace(rate, msg_per_period=msgs, bytes_per_period=size)
    return LimitEdit.about(topic, first.level, winner.source, doubled) if winner is not None else None


def _amounts(chain: LimitChain) -> tuple[int, int]:
    return chain.rate.msg_per_period, chain.rate.bytes_per_period


def edited(edits: tuple[LimitEdit, ...], policies: Policies, config: Settings) -> tuple[Policies, Settings]:
    """Return policies and settings after some edits.

    Raises:
        SettingError: A limit is out of bounds.
    """
    for edit in edits:
        if edit.place is Source.BROKER:
            values = (edit.rate.msg_per_period, edit.rate.bytes_per_period)
            config = config.changed(**dict(zip(RATE_SETTINGS[edit.level], values, strict=True)))
        else:
            policies = with_limit(policies, edit)
    return policies, config


def with_limit(policies: Policies, edit: LimitEdit) -> Policies:
    """Return policies with a limit of a namespace or topic set, or removed where the rate limits nothing."""
    made = DispatchRatePolicy(
        POLICY_KINDS[edit.level],
        edit.target,
        edit.rate,
        edit.subscription if edit.place in _NAMED else "",
        edit.place in _GLOBAL,
    )
    kept = tuple(p for p in policies.dispatch_rates if not _same_place(p, made))
    return replace(policies, dispatch_rates=(*kept, made) if has_limit(made.rate) else kept)


def _same_place(one: DispatchRatePolicy, other: DispatchRatePolicy) -> bool:
    alike = (one.kind, one.target, one.subscription) == (other.kind, other.target, other.subscription)
    return alike and ("://" not in one.target or one.is_global == other.is_global)


def setting_commands(values: Mapping[str, SettingValue]) -> tuple[str, ...]:
    """Return the commands that change settings of all brokers while they run, each written as in `broker.conf`."""
    verb = (*PROGRAM, "brokers", "update-dynamic-config", "--config")
    return tuple(quoted([*verb, name, "--value", conf_value(value)]) for name, value in values.items())
