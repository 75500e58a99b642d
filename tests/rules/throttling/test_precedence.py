"""Which limit wins is what Pulsar's own classes answered, and every loser says why it lost."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import SettingError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies
from planner.pulsar.throttling.precedence import (
    CODES,
    NO_LIMIT,
    RATE_SETTINGS,
    Level,
    LimitChain,
    Source,
    all_chains,
    has_limit,
    limit_chain,
    parse_topic,
)

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "dispatch_limits"
TOPIC = "persistent://tenant/namespace/topic"
ASKED = {
    "dispatch": (Level.TOPIC, ""),
    "replicator": (Level.REPLICATOR, ""),
    "named": (Level.SUBSCRIPTION, "sub"),
    "other": (Level.SUBSCRIPTION, "other"),
}


def recorded() -> list[dict[str, Any]]:
    with gzip.open(GOLDENS / "precedence.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def policies_of(case: dict[str, Any]) -> Policies:
    return Policies(
        dispatch_rates=tuple(
            DispatchRatePolicy(
                p["kind"],
                "tenant/namespace" if p["scope"] == "namespace" else TOPIC,
                DispatchRate(*p["rate"]),
                p["subscription"],
                p["scope"] == "global",
            )
            for p in case["policies"]
        )
    )


def in_effect(rate: DispatchRate) -> tuple[int, int, int, bool] | None:
    if not has_limit(rate):
        return None
    limits = (rate.msg_per_period, rate.bytes_per_period)
    msgs, byte_count = (limit if limit > 0 else -1 for limit in limits)
    return msgs, byte_count, rate.period_s, rate.relative_to_publish_rate


def test_wins_as_recorded() -> None:
    cases = recorded()
    for case in cases:
        policies, config = policies_of(case["input"]), Settings(case["input"]["settings"])
        for name, (level, subscription) in ASKED.items():
            rate = case["expected"][name]
            expected = None if rate is None else in_effect(DispatchRate(*rate))
            chain = limit_chain(level, TOPIC, policies, config, subscription)
            assert in_effect(chain.rate) == expected, (case, name)
    assert len(cases) == 150


def policy(kind: Any, target: str, msgs: int = -1, byte_count: int = -1, **more: Any) -> DispatchRatePolicy:
    return DispatchRatePolicy(kind, target, DispatchRate(msgs, byte_count), **more)


def codes(chain: LimitChain) -> dict[Source, str]:
    return {c.source: c.reason.code.code.removeprefix("throttling.") for c in chain.candidates}


def test_a_policy_wins_as_a_whole() -> None:
    """Messages from the topic's policy leave bytes without limit, although namespace and broker limit them."""
    policies = Policies(
        dispatch_rates=(
            policy("dispatch", TOPIC, 10),
            policy("dispatch", "tenant/namespace", 20, 1_000),
            policy("dispatch", "tenant/other", 1, 1),
            policy("subscription", TOPIC, 1, 1),
        )
    )
    config = Settings({"dispatchThrottlingRatePerTopicInByte": 500})
    chain = limit_chain(Level.TOPIC, TOPIC, policies, config)
    assert chain.rate == DispatchRate(10, -1)
    assert codes(chain) == {
        Source.LOCAL_TOPIC: "in_force",
        Source.GLOBAL_TOPIC: "not_set",
        Source.NAMESPACE: "byte_limit_lost",
        Source.BROKER: "byte_limit_lost",
    }
    assert "its 500 bytes are no limit either" in chain.candidates[-1].reason.text
    assert "overridden by the topic policy" in chain.candidates[-1].reason.text


def test_no_limit_exempts_nobody() -> None:
    policies = Policies(dispatch_rates=(policy("dispatch", TOPIC, -1, 0), policy("dispatch", "tenant/namespace", 5)))
    chain = limit_chain(Level.TOPIC, TOPIC, policies, Settings())
    assert codes(chain)[Source.LOCAL_TOPIC] == "states_no_limit"
    assert chain.winner is not None
    assert chain.winner.source is Source.NAMESPACE


def test_the_named_subscription_comes_first() -> None:
    policies = Policies(
        dispatch_rates=(
            policy("subscription", TOPIC, 10),
            policy("subscription", TOPIC, 7, subscription="slow"),
            policy("subscription", TOPIC, -1, subscription="hidden"),
            policy("subscription", TOPIC, 8, subscription="hidden", is_global=True),
        )
    )
    assert limit_chain(Level.SUBSCRIPTION, TOPIC, policies, Settings(), "slow").rate.msg_per_period == 7
    assert limit_chain(Level.SUBSCRIPTION, TOPIC, policies, Settings(), "fast").rate.msg_per_period == 10
    hidden = limit_chain(Level.SUBSCRIPTION, TOPIC, policies, Settings(), "hidden")
    assert hidden.rate.msg_per_period == 10
    assert codes(hidden)[Source.GLOBAL_NAMED] == "hidden"


def test_partitions_have_the_policies_of_their_topic() -> None:
    policies = Policies(dispatch_rates=(policy("dispatch", TOPIC, 10),))
    chains = all_chains(f"{TOPIC}-partition-3", policies, Settings())
    assert [c.level for c in chains] == list(Level)
    assert chains[1].rate.msg_per_period == 10
    assert not any(has_limit(c.rate) for c in chains if c.level is not Level.TOPIC)
    assert not has_limit(NO_LIMIT)


def test_the_defaults_are_0_and_limit_nothing() -> None:
    """The documentation says -1."""
    assert {Settings()[name] for names in RATE_SETTINGS.values() for name in names} == {0}
    for chain in all_chains(TOPIC, Policies(), Settings({"dispatchThrottlingRateRelativeToPublishRate": True})):
        assert chain.winner is None
        assert not has_limit(chain.rate)
    limited = limit_chain(Level.BROKER, TOPIC, Policies(), Settings({"dispatchThrottlingRateInMsg": 9}))
    assert limited.rate == DispatchRate(9, 0, period_s=1, relative_to_publish_rate=False)


def test_non_persistent_topics_are_not_throttled() -> None:
    policies = Policies(dispatch_rates=(policy("dispatch", "tenant/namespace", 10),))
    chain = limit_chain(Level.TOPIC, f"non-{TOPIC}", policies, Settings())
    assert chain.winner is None
    assert codes(chain)[Source.NAMESPACE] == "non_persistent"


@pytest.mark.parametrize("name", ["topic", "persistent://a/b", "http://a/b/c", ""])
def test_what_is_no_topic_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="full topic name"):
        parse_topic(name)


def test_a_topic_name_taken_apart() -> None:
    assert parse_topic(f"{TOPIC}-partition-12").partition == 12
    assert parse_topic(f"{TOPIC}-partition-x").base == f"{TOPIC}-partition-x"


rates = st.builds(DispatchRate, st.integers(-1, 3), st.integers(-1, 3))
stated = st.builds(
    DispatchRatePolicy,
    st.sampled_from(["dispatch", "subscription", "replicator"]),
    st.sampled_from([TOPIC, "tenant/namespace"]),
    rates,
    st.sampled_from(["", "sub"]),
    st.booleans(),
)


@given(st.lists(stated, max_size=8), st.sampled_from(["", "sub"]), st.integers(-1, 2))
def test_at_most_one_wins_and_everyone_says_why(
    given_policies: list[DispatchRatePolicy], subscription: str, setting: int
) -> None:
    config = Settings({"dispatchThrottlingRatePerSubscriptionInMsg": setting})
    for chain in all_chains(TOPIC, Policies(dispatch_rates=tuple(given_policies)), config, subscription):
        countable = [c for c in chain.candidates if c.reason.code.code != "throttling.hidden"]
        assert sum(c.in_force for c in chain.candidates) == int(any(has_limit(c.rate) for c in countable))
        assert all(c.reason.code in CODES and c.reason.text for c in chain.candidates)
        assert has_limit(chain.rate) == (chain.winner is not None)
