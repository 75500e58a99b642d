"""Random questions to Pulsar's classes and to the planner, in the schema of the vectors: realistic and adversarial."""

import os
import random
from collections.abc import Callable, Sequence
from typing import Any

from planner.cluster.hashing import java_string_hash

SEED = int(os.environ.get("PLANNER_ORACLE_SEED", "1"))

SECOND_NS = 1_000_000_000

Case = dict[str, Any]


def seeded() -> random.Random:
    return random.Random(SEED)  # noqa: S311 - random cases, no secret


def case(kind: str, number: int, given: Case, config: Case | None = None) -> Case:
    return {"kind": kind, "id": f"{kind}-{number}", "config": config or {}, "input": given}


# Dispatch limiters


def moments(rng: random.Random, count: int, unit_ns: int, start_ns: int) -> list[int]:
    """Return moments that fall on, just before and just after whole units, and anywhere."""
    now, found = start_ns, []
    for _ in range(count):
        edges = [0, 1, unit_ns - 1, unit_ns, unit_ns + 1, unit_ns // 2, unit_ns // 7, unit_ns * 3 + 7]
        now += rng.choice([*edges, rng.randrange(2 * unit_ns), rng.randrange(unit_ns // 100 + 1)])
        found.append(now)
    return found


def amount(rng: random.Random, rate: int) -> int:
    return rng.choice([0, 1, rate, rate + 1, 3 * rate, rng.randrange(rate + 1), rng.randrange(2 * rate + 1)])


def bucket_case(rng: random.Random) -> Case:
    rate = rng.choice([1, 2, 3, 7, 10, 100, 1000, 123457, 10**7, 5 * 10**9, rng.randrange(1, 10**6), 10**12])
    period = rng.choice([SECOND_NS, SECOND_NS, 10 * SECOND_NS, 60 * SECOND_NS, 3 * SECOND_NS + 1])
    resolution = rng.choice([10**6, 16 * 10**6, 10**8, SECOND_NS, period, 1])
    start = rng.choice([0, 0, 1, rng.randrange(10**13), -5 * SECOND_NS])
    unit = rng.choice([period, max(period // rate, 10), resolution + 1])
    ops = [
        {"atNanos": now, **({"consume": amount(rng, rate)} if rng.random() < 0.6 else {})}
        for now in moments(rng, rng.randrange(1, 25), unit, start)
    ]
    given = {
        "limiter": "AsyncTokenBucket",
        "rate": rate,
        "ratePeriodNanos": period,
        "addTokensResolutionNanos": resolution,
        "createdAtNanos": start,
        "ops": ops,
    }
    if rng.random() < 0.3:
        given["capacity"] = rng.choice([rate * 2, rate // 2 + 1, rate * 10])
    if rng.random() < 0.3:
        given["initialTokens"] = rng.choice([0, rate, 1, -rate])
    return given


def dispatch_rate(rng: random.Random) -> Case:
    return {
        "dispatchThrottlingRateInMsg": rng.choice([-1, 0, 1, 10, 100, 25000, 2**31 - 1]),
        "dispatchThrottlingRateInByte": rng.choice([-1, 0, 1, 1024, 10**6, 50_000_000, 10**12]),
        "ratePeriodInSecond": rng.choice([1, 1, 1, 2, 10, 60]),
        "relativeToPublishRate": rng.random() < 0.3,
    }


def limiter_case(rng: random.Random) -> Case:
    rate = dispatch_rate(rng)
    msgs, byte_count = (max(rate[f"dispatchThrottlingRateIn{what}"], 1) for what in ("Msg", "Byte"))
    start = rng.choice([0, 0, rng.randrange(10**13)])
    ops = []
    for now in moments(rng, rng.randrange(1, 25), rate["ratePeriodInSecond"] * SECOND_NS, start):
        op: Case = {"atNanos": now}
        if rng.random() < 0.6:
            op |= {"consumeMsgs": amount(rng, msgs), "consumeBytes": amount(rng, byte_count)}
        if rng.random() < 0.06:
            op["dispatchRate"] = dispatch_rate(rng)
        ops.append(op)
    given = {
        "limiter": rng.choice(["classic", "asyncTokenBucket"]),
        "dispatchRate": rate,
        "createdAtNanos": start,
        "ops": ops,
    }
    if rng.random() < 0.7:
        given["avgPublishRateInMsg"] = rng.choice([0.0, 12.48, rng.random() * 1000])
        given["avgPublishRateInByte"] = rng.choice([0.0, rng.random() * 1e6])
    return given


def dispatch_throttle_case(rng: random.Random, number: int) -> Case:
    return case("dispatch_throttle", number, bucket_case(rng) if rng.random() < 0.5 else limiter_case(rng))


# Load data of the modular load manager

PERCENTS = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 75, 80, 84.99, 85, 85.01, 90, 95, 100, 120]
CORES = [100.0, 100.0, 400.0, 1600.0, 333.3, 77.7]
NICS = [1e6, 1e7, 2.5e7, 123456.789]
MIB = 1048576.0


def usage(rng: random.Random, limits: list[float], percents: Sequence[float]) -> Case:
    limit = rng.choice(limits)
    percent = rng.choice(percents) if rng.random() < 0.7 else rng.random() * 110
    return {"usage": limit * percent / 100, "limit": limit}


def resources(rng: random.Random) -> Case:
    """Return usages of a broker: mostly CPU decides, on round percentages; some are unknown, beyond 100 % or absent."""
    found = {"cpu": usage(rng, CORES, PERCENTS)}
    if rng.random() < 0.4:
        calm = [0, 1, 2, 5, 10, 30]
        found["bandwidthIn"] = usage(rng, NICS, calm)
        found["bandwidthOut"] = usage(rng, NICS, PERCENTS if rng.random() < 0.3 else calm)
        found["memory"] = usage(rng, [8192.0], PERCENTS)
        found["directMemory"] = usage(rng, [16384.0], PERCENTS)
    if rng.random() < 0.05:
        rng.choice(list(found.values()))["limit"] = rng.choice([0.0, -1.0])
    if rng.random() < 0.05:
        del found["cpu"]
    return found


def bundle_sizes(rng: random.Random, count: int) -> list[float]:
    """Return throughputs of bundles: equal or round ones that add up to a wanted sum, zeros, a giant, a long tail."""
    profile = rng.choice(["equal", "few", "round", "zero", "giant", "tail", "tail", "noise", "huge"])
    base = rng.choice([1.0, 1e3, 1e6, MIB, 123456.789])
    draw: Callable[[], float] = {
        "equal": lambda: base * 7,
        "few": lambda: base * rng.choice([1, 2, 3]),
        "round": lambda: base * rng.choice([0, 5, 10, 15, 25, 30, 50]),
        "zero": lambda: base * rng.choice([0, 0, 0, 1]),
        "giant": lambda: base,
        "tail": lambda: base * rng.lognormvariate(0, 1.5),
        "noise": lambda: base * (1 + rng.random() * 1e-7),
        "huge": lambda: rng.choice([2.0**31 - 1, 2.0**31, 2.0**32, 1e10, 5e9]) * rng.choice([1, rng.random()]),
    }[profile]
    sizes = [draw() for _ in range(count)]
    if profile == "giant" and sizes:
        sizes[rng.randrange(count)] = base * 1e4
    return sizes


def traffic(rng: random.Random, throughput: float, message_bytes: float) -> Case:
    share = rng.choice([0.0, 0.25, 0.5, 0.5, 1.0])
    rate = throughput / message_bytes
    return {
        "msgRateIn": rate * share,
        "msgRateOut": rate * (1 - share),
        "msgThroughputIn": throughput * share,
        "msgThroughputOut": throughput * (1 - share),
    }


SPACES = ["t/n", "t/n", "t/m", "tenant/edge", "pulsar/system"]
SPACES += [f"{kept}/{cluster}b1:8080" for kept in ("pulsar", "sla-monitor") for cluster in ("", "c/")]


def bundle_names(rng: random.Random, count: int) -> list[str]:
    step = 2**32 // max(count, 1)
    spaces = SPACES if rng.random() < 0.3 else SPACES[:4]
    return [f"{rng.choice(spaces)}/0x{at * step:08x}_0x{at * step + step - 1:08x}" for at in range(count)]


def broker_names(rng: random.Random, count: int) -> list[str]:
    pattern = rng.choice(["broker-{:02d}.pulsar:8080", "b{}:8080", "10.0.0.{}:8080", "pulsar-broker-{}.ns.svc:8443"])
    return [pattern.format(number) for number in rng.sample(range(max(1000, count)), count)]


def load_data(rng: random.Random, brokers: list[str], owned: dict[str, list[str]], sizes: dict[str, float]) -> Case:
    """Return what a leader knows; `owned` bundles may lack averages, averages may be of nobody's bundles."""
    message_bytes = rng.choice([1.0, 100.0, 1024.0, 1000.0])
    data: Case = {"brokers": {}, "bundleData": {}}
    odd = rng.random() < 0.4
    for name, size in sizes.items():
        if not (odd and rng.random() < 0.1):
            data["bundleData"][name] = {"topics": 1, "shortTermData": traffic(rng, size, message_bytes)}
    for broker in brokers:
        total = sum(sizes[name] for name in owned[broker])
        if rng.random() < 0.2:
            total = rng.choice([0.0, 100e6, 60e6, 140e6, 1e9, 4e9, rng.random() * 1e9])
        data["brokers"][broker] = {**resources(rng), **traffic(rng, total, message_bytes), "bundles": owned[broker]}
    if rng.random() < 0.4:
        data["recentlyUnloadedBundles"] = [name for name in sizes if rng.random() < 0.2]
    return data


def dealt(rng: random.Random, names: list[str], brokers: list[str]) -> dict[str, list[str]]:
    """Return who owns what: evenly, or most at one broker."""
    favourite = rng.choice(brokers) if brokers and rng.random() < 0.3 else None
    owned: dict[str, list[str]] = {broker: [] for broker in brokers}
    for name in names:
        if brokers:
            owned[favourite if favourite and rng.random() < 0.7 else rng.choice(brokers)].append(name)
    return owned


SHEDDERS: dict[str, dict[str, list[Any]]] = {
    "shedder_overload": {"loadBalancerBrokerOverloadedThresholdPercentage": [0, 30, 50, 85, 90, 100]},
    "shedder_threshold": {
        "loadBalancerBrokerThresholdShedderPercentage": [0, 1, 5, 10, 20, 25],
        "loadBalancerHistoryResourcePercentage": [0.0, 0.5, 0.9, 1.0, 1.5, 90.0],
        "loadBalancerBundleUnloadMinThroughputThreshold": [0.0, 1.0, 10.0, 100.0],
        "lowerBoundarySheddingEnabled": [True, True, False],
    },
    "shedder_uniform": {
        "loadBalancerMsgRateDifferenceShedderThreshold": [0, -1, 1, 10, 50, 100],
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": [0, -1, 1, 1.5, 4],
        "maxUnloadBundleNumPerShedding": [-1, 0, 1, 2, 5],
        "maxUnloadPercentage": [0.0, 0.2, 0.5, 1.0, 1.5, 20.0],
        "minUnloadMessage": [0, 1, 1000, 100000],
        "minUnloadMessageThroughput": [0, 1, 1048576, 2**31 - 1],
    },
    "shedder_avg": {
        "loadBalancerAvgShedderLowThreshold": [0, 5, 10, 15, 20],
        "loadBalancerAvgShedderHighThreshold": [20, 30, 40, 50],
        "loadBalancerAvgShedderHitCountLowThreshold": [0, 1, 2, 4, 8],
        "loadBalancerAvgShedderHitCountHighThreshold": [0, 1, 2, 3],
        "maxUnloadPercentage": [0.0, 0.2, 0.5, 1.0, 1.5, 20.0],
        "minUnloadMessage": [0, 1, 100, 1000],
        "minUnloadMessageThroughput": [0, 1, 1048576],
    },
}
WEIGHTS: dict[str, list[Any]] = {
    "loadBalancerCPUResourceWeight": [1.0, 0.5, 0.0, 1.5],
    "loadBalancerBandwidthInResourceWeight": [1.0, 0.5, 0.0],
    "loadBalancerBandwithInResourceWeight": [1.0, 0.3],
    "loadBalancerBandwidthOutResourceWeight": [1.0, 0.5, 0.0],
    "loadBalancerBandwithOutResourceWeight": [1.0, 0.3],
    "loadBalancerDirectMemoryResourceWeight": [0.0, 1.0, 0.5],
    "loadBalancerMemoryResourceWeight": [0.0, 1.0],
}


def settings(rng: random.Random, chance: float, *choices: dict[str, list[Any]]) -> Case:
    return {name: rng.choice(values) for each in choices for name, values in each.items() if rng.random() < chance}


def modular_case(kind: str, rng: random.Random, number: int, size: tuple[int, int] | None = None) -> Case:
    """Return a case of a modular shedding strategy whose steps share bundles but not loads.

    Args:
        kind: Kind of the vector.
        rng: Decides.
        number: Goes into its name.
        size: Brokers and bundles; small ones otherwise, among them none and one.
    """
    brokers, bundles = size or (
        rng.choice([0, 1, 1, 2, 2, 3, 4, 5, 7, 12, 13, 24]),
        rng.choice([0, 1, 2, 3, 6, 12, 30, 60]),
    )
    hosts, names = broker_names(rng, brokers), bundle_names(rng, bundles)
    steps = []
    for _ in range(2 if size else rng.choice([1, 1, 2, 4, 9])):
        if not size and hosts and rng.random() < 0.1:
            hosts = [host for host in hosts if rng.random() < 0.8] + broker_names(rng, rng.randrange(2))
            hosts = list(dict.fromkeys(hosts))
        sizes = dict(zip(names, bundle_sizes(rng, bundles), strict=True))
        steps.append({"loadData": load_data(rng, hosts, dealt(rng, names, hosts), sizes)})
    config = settings(rng, 0.6, SHEDDERS[kind])
    if rng.random() < 0.3:
        config |= settings(rng, 0.4, WEIGHTS)
    return case(kind, number, {"steps": steps}, config)


def bucket(key: str, table: int) -> int:
    unsigned = java_string_hash(key) & 0xFFFFFFFF
    return (unsigned ^ (unsigned >> 16)) & (table - 1)


# Reports, averages and topics


def stats(rng: random.Random) -> Case:
    """Return what a broker reports of a bundle: whole numbers, zeros and any."""
    traffic_ = {key: rng.choice([0, 0.1, 5, rng.random() * 1e5]) for key in traffic(rng, 1.0, 1.0)}
    counts = {key: rng.choice([0, 1, 7, 100_000]) for key in ("topics", "producerCount", "consumerCount")}
    return {**traffic_, **counts, "cacheSize": rng.choice([0, 10**9])}


def resource_usage_case(rng: random.Random, number: int) -> Case:
    given = resources(rng)
    if rng.random() < 0.5:
        names = bundle_names(rng, rng.choice([0, 1, 3, 8]))
        given["lastStats"] = {name: stats(rng) for name in names if rng.random() < 0.7}
        given["bundles"] = [name for name in names if rng.random() < 0.7]
    return case("resource_usage", number, given, settings(rng, 0.4, WEIGHTS))


def broker_time_average_case(rng: random.Random, number: int) -> Case:
    names = bundle_names(rng, rng.choice([0, 1, 3, 8, 14, 30]))
    data = {
        name: {"topics": 1, "shortTermData": stats(rng), "longTermData": stats(rng)}
        for name in names
        if rng.random() < 0.8
    }
    owned = [name for name in names if rng.random() < 0.8]
    return case("broker_time_average", number, {"bundles": owned, "bundleData": data, "defaultStats": stats(rng)})


def broker_load_data_case(rng: random.Random, number: int) -> Case:
    updates = [
        {"clear": True}
        if rng.random() < 0.1
        else {**resources(rng), **traffic(rng, rng.random() * 1e8, 100.0), "bundleCount": 3, "topics": 9}
        for _ in range(rng.randrange(1, 9))
    ]
    weights = settings(rng, 0.4, WEIGHTS, {"loadBalancerHistoryResourcePercentage": [0.0, 0.5, 0.9, 1.0, 1.5, 90.0]})
    return case("broker_load_data", number, {"updates": updates}, weights)


def topic_to_bundle_case(rng: random.Random, number: int) -> Case:
    space = rng.choice(["t/n", "public/default", "a-b/c.d_e=1"])
    name = rng.choice(["x", "a b", "ü", "订单", "a+b%2F", "-partition-", "x-partition-3", "x-partition-03", "x.y=z"])
    full = f"{rng.choice(['persistent', 'non-persistent'])}://{space}"
    some = [f"{full}/{name}{rng.randrange(10**6)}", f"{full}/{name}", f"{full}/{name}-partition-{rng.randrange(2**32)}"]
    topics = [*some, f"{full}/{rng.random()}-partition-{rng.choice(['', '-1', '7', '1x', '2147483647'])}"]
    topics += rng.choices([name, f"{space}/{name}", f"{space}/c/{name}", "://", "", "queue://t/n/x", f"{full}/", full])
    given: Case = {"namespace": space, "topics": topics}
    if rng.random() < 0.5:
        given["numBundles"] = rng.choice([1, 2, 3, 4, 7, 12, 64, 1000])
    else:
        inner = {rng.randrange(1, 2**32 - 1) for _ in range(rng.randrange(5))}
        given["boundaries"] = [f"0x{edge:08x}" for edge in sorted({0, 2**32 - 1, *inner})]
    return case("topic_to_bundle", number, given)


# Placement strategies of the modular load manager

PLACEMENTS: dict[str, dict[str, list[Any]]] = {
    "LeastLongTermMessageRate": {"loadBalancerBrokerOverloadedThresholdPercentage": [0, 30, 50, 85, 100]},
    "LeastResourceUsageWithWeight": {
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": [0, 5, 10, 20],
        "loadBalancerHistoryResourcePercentage": [0.0, 0.5, 0.9, 1.0, 1.5, 90.0],
    },
    "RoundRobinBrokerSelector": {},
    "AvgShedder": {},
}


def placement_case(strategy: str, rng: random.Random, number: int, size: tuple[int, int] | None = None) -> Case:
    """Return a case of a placement strategy: candidates come and go, reports change.

    Args:
        strategy: Its name.
        rng: Decides.
        number: Goes into its name.
        size: Brokers and bundles; small ones otherwise, among them none and one.
    """
    least = int(strategy == "AvgShedder")  # it fails without a candidate
    brokers, bundles = size or (rng.choice([least, 1, 2, 3, 5, 8, 12, 13, 25]), rng.choice([0, 1, 3, 12, 30]))
    hosts, names = broker_names(rng, brokers), bundle_names(rng, bundles)
    steps, candidates = [], rng.sample(hosts, rng.choice([brokers, brokers, rng.randrange(least, brokers + 1)]))
    for _ in range(1 if least else rng.choice([1, 2] if size else [1, 2, 4, 12])):
        step: Case = {}
        if rng.random() < 0.4:
            count = rng.choice([len(candidates), rng.randrange(least, brokers + 1)])
            candidates = rng.sample(hosts, count)
        if strategy == "LeastResourceUsageWithWeight" and rng.random() < 0.2:
            step["activeBrokers"] = sorted({*candidates, *rng.sample(hosts, rng.randrange(brokers + 1))})
        step["candidates"] = candidates
        if strategy.startswith("Least"):
            data = load_data(
                rng, hosts, dealt(rng, names, hosts), dict(zip(names, bundle_sizes(rng, bundles), strict=True))
            )
            plain = rng.random() < 0.5
            for averages in data["bundleData"].values():
                averages["longTermData"] = traffic(rng, rng.choice([0, 7, 1e3, rng.random() * 1e6]), 1.0)
            for broker in data["brokers"].values():
                rates = [0, 1, 5, 30] if plain else [rng.random() * 1e5, 0.1, 0.2, 0.30000000000000004]
                keys = ("longTermMsgRateIn", "longTermMsgRateOut")
                broker["timeAverageData"] = {key: rng.choice(rates) for key in keys}
                known = list(data["bundleData"])
                broker["preallocatedBundles"] = rng.sample(known, min(len(known), rng.choice([0, 0, 1, 2, 5])))
            step["loadData"] = data
        steps.append(step)
    config = settings(rng, 0.6, PLACEMENTS[strategy]) | settings(rng, rng.choice([0.0, 0.4]), WEIGHTS)
    return case("placement", number, {"strategy": strategy, "steps": steps}, config)
