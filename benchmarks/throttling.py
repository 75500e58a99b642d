"""How long dispatch is simulated for many topics, beside plain array work of the same size in the same run.

    python benchmarks/throttling.py

Prints seconds for orientation, and the ratio to 600 sorts of one float for each topic, which depends less on
the machine: a simulated minute has 600 steps.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.dispatch.caps import broker_dispatch, dispatch_caps
from planner.simulate.dispatch.load import PublishPattern, SubscriptionLoad, TopicLoad
from planner.simulate.dispatch.simulate import simulate
from planner.simulate.generate import generate


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    """Return the shortest of several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def loads(topics: int, subscriptions: int, *, limited: bool) -> list[TopicLoad]:
    """Return topics of many kinds on ten brokers: batched or not, with backlog or without, tailing or behind."""
    return [
        TopicLoad(
            f"persistent://tenant/namespace/topic-{at}",
            PublishPattern(20.0 + at % 50, burst_msg_per_s=100.0, burst_s=1.0, burst_every_s=10.0 + at % 7),
            messages_per_entry=1 + at % 7,
            entry_bytes=500 + at % 900,
            subscriptions=tuple(SubscriptionLoad(f"s{i}", backlog_msgs=1000 * (at % 3)) for i in range(subscriptions)),
            brokers=(at % 10,),
            limit=DispatchRate(10 + at % 30) if limited else DispatchRate(),
        )
        for at in range(topics)
    ]


def measure(topics: int) -> None:
    """Print what one number of topics takes, for a simulated minute."""
    values = np.random.default_rng(1).random(topics)
    yardstick = seconds(lambda: [np.sort(values) for _ in range(600)])
    shared = Settings({"dispatchThrottlingRateInByte": 2_000_000, "dispatchThrottlingRateInMsg": 20_000})
    classic = Settings({"dispatchRateLimiterFactoryClassName": ""})
    one, three, free = loads(topics, 1, limited=True), loads(topics, 3, limited=True), loads(topics, 1, limited=False)
    rows = {
        "limit of each topic": lambda: simulate(one, Settings(), 60),
        "the same, classic limiter": lambda: simulate(one, classic, 60),
        "limit shared by each of 10 brokers": lambda: simulate(free, shared, 60),
        "limits of both": lambda: simulate(one, shared, 60),
        "no limit": lambda: simulate(free, Settings(), 60),
        "three subscriptions, both limits": lambda: simulate(three, shared, 60),
    }
    print(f"{topics:,} topics, one minute; 600 sorts take {yardstick:.3f} s")
    for name, work in rows.items():
        taken = seconds(work, 2)
        print(f"  {name:36} {taken:8.3f} s {taken / yardstick:8.2f} x sorts")


def measure_caps(bundles: int, topics: int) -> None:
    """Print what the caps of a whole cluster take."""
    snapshot = generate(ClusterSpec(brokers=100, bundles=bundles, topics=topics), 1)
    rates = [DispatchRatePolicy("dispatch", name, DispatchRate(10)) for name in snapshot.namespaces[::2]]
    rates.append(DispatchRatePolicy("dispatch", snapshot.topics.name[0].as_py(), DispatchRate(99)))
    limited = replace(snapshot, policies=replace(snapshot.policies, dispatch_rates=tuple(rates)))
    caps = dispatch_caps(limited)
    print(f"{topics:,} topics of {len(snapshot.namespaces):,} namespaces")
    print(f"  caps of all topics       {seconds(lambda: dispatch_caps(limited)):8.3f} s")
    print(f"  sums of all brokers      {seconds(lambda: broker_dispatch(limited, caps)):8.3f} s")


if __name__ == "__main__":
    measure(1_000)
    measure(10_000)
    measure_caps(10_000, 400_000)
