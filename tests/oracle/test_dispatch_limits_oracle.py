"""Asks Pulsar's own classes which dispatch limit wins, and how many entries are read for so many bytes."""

import random
from typing import Any

import pytest

from planner.cluster.pulsar_json import Json
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies
from planner.pulsar.throttling.entries import LedgerSize, estimate_entries
from planner.pulsar.throttling.precedence import RATE_SETTINGS, Level, has_limit, limit_chain
from tests.oracle.cases import Case, seeded
from tests.oracle.harness import Oracle, check

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

TOPIC = "persistent://tenant/namespace/topic"
KINDS = ("dispatch", "subscription", "replicator")


def rate(draw: random.Random) -> list[Any]:
    return [
        draw.choice([-1, 0, 7, 500]),
        draw.choice([-1, 0, 1, 5_000_000_000]),
        draw.choice([1, 30]),
        draw.random() < 0.25,
    ]


def limits_case(draw: random.Random, at: int) -> Case:
    config: dict[str, Any] = {"dispatchThrottlingRateRelativeToPublishRate": draw.random() < 0.5}
    for level in (Level.TOPIC, Level.SUBSCRIPTION, Level.REPLICATOR):
        if draw.random() < 0.6:
            config |= dict(zip(RATE_SETTINGS[level], rate(draw), strict=False))
    policies = [
        {"kind": kind, "scope": scope, "subscription": name, "rate": rate(draw)}
        for scope in ("namespace", "local", "global")
        for kind in KINDS
        for name in ("", "sub")
        if draw.random() < 0.6 and (not name or (kind == "subscription" and scope != "namespace"))
    ]
    return {"id": f"limits-{at}", "kind": "dispatch_precedence", "config": config, "input": {"policies": policies}}


def limits_answer(case: Case) -> dict[str, Any]:
    policies = Policies(
        dispatch_rates=tuple(
            DispatchRatePolicy(
                p["kind"],
                "tenant/namespace" if p["scope"] == "namespace" else TOPIC,
                DispatchRate(*p["rate"]),
                p["subscription"],
                p["scope"] == "global",
            )
            for p in case["input"]["policies"]
        )
    )

    def won(level: Level, subscription: str = "") -> list[Any] | None:
        found = limit_chain(level, TOPIC, policies, Settings(case["config"]), subscription).rate
        if not has_limit(found):
            return None
        return [found.msg_per_period, found.bytes_per_period, found.period_s, found.relative_to_publish_rate]

    return {
        "dispatch": won(Level.TOPIC),
        "replicator": won(Level.REPLICATOR),
        "named": won(Level.SUBSCRIPTION, "sub"),
        "other": won(Level.SUBSCRIPTION, "other"),
    }


def without_no_limit(answer: Any) -> Any:
    """A record that limits nothing is the same as none."""
    return {k: None if v is None or max(v[0], v[1]) <= 0 else v for k, v in answer.items()}


def test_limits_win_as_in_pulsar(oracle: Oracle) -> None:
    draw = seeded()
    cases = [limits_case(draw, at) for at in range(400)]
    answers = [without_no_limit(answer) for answer in oracle(cases)]
    assert answers == [limits_answer(case) for case in cases]
    assert all(any(answer[name] for answer in answers) for name in ("dispatch", "replicator", "named", "other"))


def entries_case(draw: random.Random, at: int) -> Case:
    ledgers, name = [], 3
    for _ in range(draw.randint(0, 4)):
        name += draw.randint(1, 3)
        entries = draw.choice([0, draw.randint(1, 60)])
        size = draw.choice([entries * draw.randint(1, 2000), draw.randint(0, 4)]) if entries else 0
        ledgers.append([name, entries, size])
    total = sum(size + 64 * entries for _, entries, size in ledgers)
    given: dict[str, Any] = {"ledgers": ledgers, "maxEntries": draw.choice([draw.randint(1, 12), draw.randint(1, 100)])}
    given["maxBytes"] = draw.choice([draw.randint(-1, 300), draw.randint(1, total + 100)])
    given["ledger"] = draw.choice([draw.randint(2, 12), *(ledger[0] for ledger in ledgers)])
    given["entry"] = draw.choice([-1, 0, draw.randint(0, 70)])
    if ledgers and draw.random() < 0.7:
        given["open"] = ledgers[-1][0]
    return {"id": f"entries-{at}", "kind": "dispatch_entries", "config": {}, "input": given}


def entries_answer(case: Json) -> Json:
    given = case["input"]
    ledgers = [LedgerSize(*ledger) for ledger in given["ledgers"]]
    position = (given["ledger"], given["entry"])
    return {"entries": estimate_entries(given["maxEntries"], given["maxBytes"], ledgers, position)}


def test_entries_are_estimated_as_in_pulsar(oracle: Oracle) -> None:
    draw = seeded()
    answers = check(oracle, [entries_case(draw, at) for at in range(2_000)], entries_answer)
    assert len({answer["entries"] for answer in answers}) > 20
