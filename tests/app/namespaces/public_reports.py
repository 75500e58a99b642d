"""Namespaces of which operators asked in public, rebuilt: how many bundles, where to cut, why one broker is so busy.

The names are those of the reports where these have some; numbers of the Apache Pulsar issue or pull request stand
beside each. Rates that a report does not state are chosen so that its symptom shows.
"""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import FULL_HIGH, equal_boundaries, format_range
from planner.cluster.snapshot import Snapshot
from planner.formats.document import FORMAT, snapshot_of_document

_AT_MS = 1_800_000_000_000
_TRAFFIC = (
    "msg_rate_in_per_s",
    "msg_rate_out_per_s",
    "msg_throughput_in_bytes_per_s",
    "msg_throughput_out_bytes_per_s",
)
_CORES = 8

Row = dict[str, Any]


def topic(name: str, msg_per_s: float, size_bytes: int = 1_000, consumers: int = 1) -> Row:
    """A topic with one producer, of which each consumer gets every message; of idle ones without clients."""
    size = msg_per_s * size_bytes
    rates = (msg_per_s, msg_per_s * min(consumers, 1), size, size * min(consumers, 1))
    clients = {"producers": 1, "consumers": consumers} if msg_per_s else {}
    return {"name": name, **dict(zip(_TRAFFIC, rates, strict=True)), **clients}


def topics(pattern: str, rates: Sequence[float], size_bytes: int = 1_000) -> list[Row]:
    """Topics by a pattern with their number."""
    return [topic(pattern % at, rate, size_bytes) for at, rate in enumerate(rates)]


def falling(number: int, msg_per_s: float, exponent: float) -> list[float]:
    """Rates by a Zipf law, in an order that is not that of the hashes."""
    shares = [1 / (at + 1) ** exponent for at in range(number)]
    return [msg_per_s * share / sum(shares) for share in shares]


def _sums(rows: Sequence[Row], *names: str) -> Row:
    return {name: sum(row.get(name, 0) for row in rows) for name in names}


def _bundle(namespace: str, low: int, high: int, mine: Sequence[Row], owner: str | None) -> Row:
    traffic = _sums(mine, *_TRAFFIC)
    averages = {"short_term": {"samples": 10, **traffic}, "long_term": {"samples": 1_000, **traffic}}
    clients = _sums(mine, "producers", "consumers")
    placed = {"owner": owner} if owner is not None else {}
    return {
        "namespace": namespace,
        "range": format_range(low, high),
        **placed,
        **traffic,
        **clients,
        "topics": len(mine),
        "data_topics": len(mine),
        **averages,
    }


def _broker(name: str, bundles: Sequence[Row]) -> Row:
    mine = [one for one in bundles if one.get("owner") == name]
    traffic = _sums(mine, *_TRAFFIC)
    cpu = (
        5 * _CORES
        + sum(traffic[one] for one in _TRAFFIC[:2]) * 0.0015
        + sum(traffic[one] for one in _TRAFFIC[2:]) / 1e6
    )
    return {
        "name": name,
        "cpu_percent": {"usage": min(cpu, 100.0 * _CORES), "limit": 100.0 * _CORES},
        "memory_mib": {"usage": 3_000.0, "limit": 8_192.0},
        "direct_memory_mib": {"usage": 2_000.0, "limit": 16_384.0},
        "bandwidth_in_kbit_per_s": {"usage": traffic[_TRAFFIC[2]] / 125, "limit": 1e7},
        "bandwidth_out_kbit_per_s": {"usage": traffic[_TRAFFIC[3]] / 125, "limit": 1e7},
        **traffic,
        **_sums(mine, "topics", "producers", "consumers"),
        "reported_bundles": len(mine),
        "updated_at_ms": _AT_MS - 5_000,
        "started_at_ms": _AT_MS - 20 * 86_400_000,
    }


def cluster(
    brokers: int,
    namespace: str,
    bundles: int | Sequence[int],
    listed: Sequence[Row],
    *,
    manager: str = "modular",
    release: str = "4.2.4",
    settings: Row | None = None,
    primary: str = "",
    at: int | None = None,
    owned: bool = True,
) -> Snapshot:
    """Return a cluster with one namespace and a quiet one beside it, bundles dealt out one after the other.

    Args:
        brokers: How many there are.
        namespace: Its name.
        bundles: How many equal ones it has, or its boundaries.
        listed: Its topics.
        manager: The load manager.
        release: What the brokers run.
        settings: Settings that differ from their defaults.
        primary: Brokers that its isolation policy allows; empty for no policy.
        at: The one broker that owns all of it.
        owned: Whether any broker does.
    """
    names = [f"broker-{one}.pulsar:8080" for one in range(1, brokers + 1)]
    edges = equal_boundaries(bundles) if isinstance(bundles, int) else tuple(bundles)
    quiet = topics("persistent://other/quiet/t-%d", [10.0] * 20)
    rows = []
    for space, cuts, mine in ((namespace, edges, listed), ("other/quiet", equal_boundaries(4), quiet)):
        hashes = [topic_hash(one["name"]) for one in mine]
        for number, (low, high) in enumerate(pairwise(cuts)):
            inside = [one for one, place in zip(mine, hashes, strict=True) if low <= place < high]
            owner = names[number % brokers if at is None or space != namespace else at]
            rows.append(_bundle(space, low, high, inside, owner if owned or space != namespace else None))
    policy = {"name": "report", "namespaces": [namespace], "primary": [primary], "secondary": []}
    document = {
        "format": FORMAT,
        "version": 1,
        "info": {
            "cluster": "report",
            "load_manager": manager,
            "captured_at_ms": _AT_MS,
            "leader": names[0],
            "pulsar_version": release,
        },
        "settings": settings or {},
        "policies": {"isolation": [policy]} if primary else {},
        "brokers": [_broker(name, rows) for name in names],
        "bundles": rows,
        "topics": [*listed, *quiet],
    }
    return snapshot_of_document(json.dumps(document).encode(), "report.json")


def _one_topic_each() -> Snapshot:
    names = [f"persistent://one/each/k{at}" for at in range(16)]
    places = sorted(map(topic_hash, names))
    edges = (0, *((low + high) // 2 for low, high in pairwise(places)), FULL_HIGH)
    return cluster(4, "one/each", edges, [topic(*one) for one in zip(names, falling(16, 60_000, 1.0), strict=True)])


def _split_in_vain() -> Snapshot:
    name = "persistent://public/default/test-topic-o"
    low, high, edges = 0, FULL_HIGH, {0, FULL_HIGH}
    for _ in range(12):
        middle = low + (high - low) // 2
        edges.add(middle)
        low, high = (low, middle) if topic_hash(name) < middle else (middle, high)
    small = topics("persistent://public/default/small-%d", [10.0] * 20)
    return cluster(3, "public/default", sorted(edges), [topic(name, 45_000, 2_000), *small])


def _skewed() -> list[Row]:
    rates = [25_000.0, *[1_000.0] * 15]
    return topics("persistent://orders/stream/by-key-partition-%d", rates) + topics(
        "persistent://orders/stream/t-%d", [20.0] * 50
    )


REPORTS: Final[dict[str, tuple[str, Callable[[], Snapshot]]]] = {
    "eight partitions on two of three brokers (issue 10143)": (
        "public/default",
        lambda: cluster(3, "public/default", 4, topics("persistent://public/default/orders-partition-%d", [3e3] * 8)),
    ),
    "partitions on one broker (issue 386)": (
        "shop/cart",
        lambda: cluster(3, "shop/cart", 1, topics("persistent://shop/cart/cart-partition-%d", [4e3, 4e3])),
    ),
    "four bundles, three brokers (pull request 12137)": (
        "acme/events",
        lambda: cluster(3, "acme/events", 4, topics("persistent://acme/events/t-%d", falling(400, 3e4, 0.9))),
    ),
    "sixteen bundles, twenty brokers (pull request 17722)": (
        "public/default",
        lambda: cluster(20, "public/default", 16, topics("persistent://public/default/a-%d", falling(500, 2e5, 0.8))),
    ),
    "128 bundles, all above a limit (issue 9484)": (
        "MusicUserService/MusicUserTopicService",
        lambda: cluster(
            6,
            "MusicUserService/MusicUserTopicService",
            128,
            topics("persistent://MusicUserService/MusicUserTopicService/e-partition-%d", falling(300, 4e5, 0.4), 300),
            settings={"loadBalancerNamespaceBundleMaxMsgRate": 1_000},
        ),
    ),
    "one topic is the load (issue 3419)": (
        "bank/tx",
        lambda: cluster(
            3,
            "bank/tx",
            8,
            [topic("persistent://bank/tx/ledger", 3e4), *topics("persistent://bank/tx/aux-%d", [50.0] * 60)],
        ),
    ),
    "split again and again for one topic (pull request 11937)": ("public/default", _split_in_vain),
    "120 of 128 bundles, 40 of them hot (pull request 16552)": (
        "ads/clicks",
        lambda: cluster(
            8,
            "ads/clicks",
            120,
            topics("persistent://ads/clicks/c-%d", falling(600, 1.6e5, 0.6), 400),
            settings={"loadBalancerNamespaceBundleMaxMsgRate": 3_000},
        ),
    ),
    "outstanding partitions (PIP-143)": (
        "logs/app",
        lambda: cluster(
            5,
            "logs/app",
            8,
            topics("persistent://logs/app/outstanding-partition-%d", [6e3] * 10, 800)
            + topics("persistent://logs/app/t-%d", [8.0] * 300),
        ),
    ),
    "as many partitions, not as much load (PIP-255)": (
        "pip/rr",
        lambda: cluster(
            6,
            "pip/rr",
            32,
            [
                one
                for at, rate in enumerate((1_250.0, 830.0, 375.0, 125.0, 33.0, 4.0))
                for one in topics(f"persistent://pip/rr/t{at}-partition-%d", [rate] * 24)
            ],
        ),
    ),
    "transaction coordinators without traffic (pull request 22953)": (
        "txn/coord",
        lambda: cluster(4, "txn/coord", 4, topics("persistent://txn/coord/tc-partition-%d", [0.0] * 16)),
    ),
    "one broker by policy (issue 14429)": (
        "zcola_qos/test",
        lambda: cluster(
            3,
            "zcola_qos/test",
            4,
            topics("persistent://zcola_qos/test/zcola2-partition-%d", [1_100.0] * 8),
            primary=r"broker-1\.pulsar",
            at=0,
        ),
    ),
    "no broker by policy (issue 7432)": (
        "testtenant/ns1",
        lambda: cluster(
            3,
            "testtenant/ns1",
            4,
            topics("persistent://testtenant/ns1/%d", [50.0] * 20),
            primary=r"server1\.com",
            owned=False,
        ),
    ),
    "a namespace with a cluster in its name": (
        "prop/use/ns",
        lambda: cluster(
            4, "prop/use/ns", 8, topics("persistent://prop/use/ns/old-%d", falling(150, 4e4, 1.1)), release="4.0.0"
        ),
    ),
    "topics that are not ASCII": (
        "shop/orders",
        lambda: cluster(
            4,
            "shop/orders",
            6,
            topics("persistent://shop/orders/bestellung-ä%d", falling(90, 5e4, 1.2))
            + topics("persistent://shop/orders/订单-%d", [100.0] * 30),
        ),
    ),
    "a bundle for each topic": ("one/each", _one_topic_each),
    "one hot partition": ("orders/stream", lambda: cluster(6, "orders/stream", 16, _skewed())),
    "64 of 64 bundles, extensible": (
        "game/world",
        lambda: cluster(
            10,
            "game/world",
            64,
            topics("persistent://game/world/w-%d", falling(900, 1.2e5, 1.1), 600),
            manager="extensible",
            settings={"loadBalancerNamespaceMaximumBundles": 64},
        ),
    ),
    "50,000 consumers of one topic (streamnative/mop issue 492)": (
        "public/default",
        lambda: cluster(
            4,
            "public/default",
            64,
            [
                topic("non-persistent://public/default/mop", 200.0, consumers=50_000),
                *topics("non-persistent://public/default/d-%d", [2.0] * 300),
            ],
        ),
    ),
    "sessions without a limit (pull request 13108)": (
        "public/default",
        lambda: cluster(
            4,
            "public/default",
            8,
            [topic(f"persistent://public/default/d-{at}", 20.0, consumers=200) for at in range(100)],
            settings={"loadBalancerNamespaceBundleMaxSessions": -1},
        ),
    ),
    "boundaries from splits by topic count (pull request 25031)": (
        "cc/billing",
        lambda: cluster(
            3,
            "cc/billing",
            (0, 0x40000000, 0x80000000, 0xC0000000, 0xCD19337B, 0xD90F1766, 0xDDC47076, FULL_HIGH),
            topics("persistent://cc/billing/sim-aggr-data-partition-%d", falling(32, 4e4, 0.6))
            + topics("persistent://cc/billing/x-%d", [10.0] * 80),
        ),
    ),
    "all on one broker after a restart": (
        "late/joiner",
        lambda: cluster(
            4, "late/joiner", 16, topics("persistent://late/joiner/x-%d", falling(200, 7e4, 0.6), 1_500), at=0
        ),
    ),
    "one broker": (
        "dev/local",
        lambda: cluster(1, "dev/local", 4, topics("persistent://dev/local/x-%d", [500.0] * 40)),
    ),
    "six hot topics in four bundles": (
        "pay/gw",
        lambda: cluster(
            3,
            "pay/gw",
            4,
            topics("persistent://pay/gw/hot-%d", [1.5e4] * 6) + topics("persistent://pay/gw/c-%d", [15.0] * 120),
        ),
    ),
    "unloaded, and not asked for since": (
        "sleepy/ns",
        lambda: cluster(3, "sleepy/ns", 16, topics("persistent://sleepy/ns/x-%d", [100.0] * 40), owned=False),
    ),
}
"""By what was reported: the namespace, and what makes its cluster."""
