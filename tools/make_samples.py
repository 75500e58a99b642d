# ruff: noqa: ISC004 - a table of samples with long sentences
"""Makes every file in `sample_snapshots/` again, and its index.

    python tools/make_samples.py

Sources: the captures under `tests/goldens/captures/`, the generator, and the worked examples written down below.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from planner.cluster.digest import snapshot_digest
from planner.cluster.hashing import topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.formats.archive import write_zip
from planner.formats.document import write_document
from planner.formats.reading import read_snapshot
from planner.formats.validate import validate
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.workspace.samples import FOLDER, Sample

ROOT = Path(__file__).resolve().parents[1]
MB = 1024 * 1024
AT_MS = 1_800_000_000_000
MODULAR = "org.apache.pulsar.broker.loadbalance.impl."
EXTENSIBLE = {
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
    "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
}
CONCEPTS = "Worked example of Pulsar's Concepts page, recomputed with the code of 4.2.4."
_WIDTH = 24
STORY_SEED = 3


def forge_topic(namespace: str, stem: str, wanted: int) -> str:
    """Return a topic name with a wanted CRC-32: a stem and a run of the letters p and q.

    CRC-32 is linear: each letter that turns from p to q changes the hash by a fixed pattern, so that the letters to
    turn follow from Gaussian elimination over bits.
    """
    size = 48
    base = f"persistent://{namespace}/{stem}-" + "p" * size
    start = len(base) - size

    def turned(at: int) -> int:
        return topic_hash(base[: start + at] + "q" + base[start + at + 1 :]) ^ topic_hash(base)

    rows: list[tuple[int, int]] = []
    for at in range(size):
        pattern, mask = turned(at), 1 << at
        for known, known_mask in rows:
            if pattern ^ known < pattern:
                pattern, mask = pattern ^ known, mask ^ known_mask
        if pattern:
            rows.append((pattern, mask))
            rows.sort(reverse=True)
    missing, letters = topic_hash(base) ^ wanted, 0
    for known, known_mask in rows:
        if missing ^ known < missing:
            missing, letters = missing ^ known, letters ^ known_mask
    name = base[:start] + "".join("q" if letters >> at & 1 else "p" for at in range(size))
    if topic_hash(name) != wanted:
        raise ValueError(f"no name found for {wanted:#010x}")
    return name


def cluster(
    usages_percent: Sequence[float],
    bundles_mb_per_s: Sequence[Sequence[float]],
    settings: dict[str, Any],
    *,
    description: str,
    broker_rates: Sequence[float] | None = None,
    bundle_rates: Sequence[Sequence[float]] | None = None,
) -> Snapshot:
    """Return a small cluster: one namespace with equal ranges; a broker's traffic is the sum over its bundles.

    Args:
        usages_percent: CPU usage of each broker, of a limit of 100.
        bundles_mb_per_s: Throughput of each bundle of each broker, half of it in and half of it out.
        settings: Settings in force.
        description: What there is to see.
        broker_rates: Message rate of each broker; by default the sum over its bundles.
        bundle_rates: Message rate of each bundle; by default one message for each 10 kB.
    """
    brokers = tuple(f"broker-{i + 1}:8080" for i in range(len(usages_percent)))
    owner = np.repeat(np.arange(len(brokers)), [len(b) for b in bundles_mb_per_s])
    throughput = np.array([v * MB for b in bundles_mb_per_s for v in b])
    rates = np.array([v for b in bundle_rates for v in b]) if bundle_rates is not None else throughput / 10_000
    size = len(throughput)
    low = np.arange(size, dtype=np.int64) * (2**32 // size)
    high = np.append(low[1:], FULL_HIGH)
    traffic = {
        "msg_rate_in_per_s": rates / 2,
        "msg_rate_out_per_s": rates / 2,
        "msg_throughput_in_bytes_per_s": throughput / 2,
        "msg_throughput_out_bytes_per_s": throughput / 2,
    }
    totals = {k: np.bincount(owner, weights=v, minlength=len(brokers)).astype(np.float64) for k, v in traffic.items()}
    if broker_rates is not None:
        totals["msg_rate_in_per_s"] = totals["msg_rate_out_per_s"] = np.array(broker_rates) / 2
    extensible = "loadManagerClassName" in settings
    extra: dict[str, Any] = {}
    ranks = np.full(size, -1)
    if extensible:
        extra["weighted_max_ema"] = np.array(usages_percent) / 100
        extra["msg_throughput_ema_bytes_per_s"] = (
            totals["msg_throughput_in_bytes_per_s"] + totals["msg_throughput_out_bytes_per_s"]
        )
        for broker in range(len(brokers)):
            rows = np.flatnonzero(owner == broker)
            ranks[rows[np.argsort(throughput[rows], kind="stable")]] = np.arange(len(rows))
    averages = {f"{term}_term_{k}": v for term in ("short", "long") for k, v in traffic.items()}
    return Snapshot(
        info=SnapshotInfo(
            cluster="example",
            load_manager=LoadManager.EXTENSIBLE if extensible else LoadManager.MODULAR,
            captured_at_ms=AT_MS,
            leader=brokers[0],
            source="Worked example",
            description=description,
        ),
        settings=Settings(settings),
        brokers=make_brokers(
            brokers,
            cpu_usage_percent=list(usages_percent),
            cpu_limit_percent=100.0,
            updated_at_ms=AT_MS - 1_000,
            version=("4.2.4",) * len(brokers),
            **totals,
            **extra,
        ),
        namespaces=("example/orders",),
        bundles=make_bundles(
            low,
            high=high,
            namespace=np.zeros(size, np.int32),
            owner=owner,
            topics=np.full(size, 2),
            data_topics=np.full(size, 2),
            producers=np.full(size, 2),
            consumers=np.full(size, 2),
            short_term_samples=np.full(size, 10),
            long_term_samples=np.full(size, 1_000),
            top_rank=ranks,
            **traffic,
            **averages,
        ),
        topics=make_topics(),
    )


def split_example(
    hashes: Sequence[int], rates: Sequence[float], mb_per_s: Sequence[float], settings: dict[str, Any], description: str
) -> Snapshot:
    """Return a cluster with one namespace of two bundles, whose first holds topics with given hashes and traffic."""
    names = [forge_topic("example/split", f"t{i + 1}", h) for i, h in enumerate(hashes)]
    rate, throughput = np.array(rates), np.array(mb_per_s) * MB
    traffic = {
        "msg_rate_in_per_s": rate / 2,
        "msg_rate_out_per_s": rate / 2,
        "msg_throughput_in_bytes_per_s": throughput / 2,
        "msg_throughput_out_bytes_per_s": throughput / 2,
    }
    sums = {k: np.array([v.sum(), 0.0]) for k, v in traffic.items()}
    averages = {f"{term}_term_{k}": v for term in ("short", "long") for k, v in sums.items()}
    counts = np.array([len(names), 0])
    return Snapshot(
        info=SnapshotInfo(
            cluster="example",
            load_manager=LoadManager.MODULAR,
            captured_at_ms=AT_MS,
            leader="broker-1:8080",
            source="Worked example",
            description=description,
        ),
        settings=Settings(settings),
        brokers=make_brokers(
            ("broker-1:8080", "broker-2:8080"),
            cpu_usage_percent=[50.0, 45.0],
            cpu_limit_percent=100.0,
            updated_at_ms=AT_MS - 1_000,
            version=("4.2.4", "4.2.4"),
            **{k: np.array([v.sum(), 0.0]) for k, v in traffic.items()},
        ),
        namespaces=("example/split",),
        bundles=make_bundles(
            [0, 0x80000000],
            high=[0x80000000, FULL_HIGH],
            namespace=[0, 0],
            owner=[0, 1],
            topics=counts,
            data_topics=counts,
            producers=counts,
            consumers=counts,
            short_term_samples=[10, 10],
            long_term_samples=[1_000, 1_000],
            **sums,
            **averages,
        ),
        topics=make_topics(
            np.array(hashes, dtype=np.uint32),
            name=pa.array(names, type=pa.large_string()),
            bundle=np.zeros(len(names), np.int32),
            producers=np.ones(len(names), np.int32),
            consumers=np.ones(len(names), np.int32),
            **traffic,
        ),
    )


SIX = [0x10000000, 0x15000000, 0x24000000, 0x39000000, 0x58000000, 0x76000000]
RATES = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
THROUGHPUTS = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def pip364() -> Snapshot:
    """Return the cluster of the PIP-364 experiments: five brokers, with loads spread over plausible bundles."""
    usage = [62.0, 61.4, 34.5, 68.5, 41.9]
    rng = np.random.default_rng(364)
    bundles = []
    for percent in usage:
        shares = rng.dirichlet(np.full(12, 4.0))
        bundles.append([round(float(s * percent * 4), 3) for s in shares])
    return cluster(
        usage,
        bundles,
        {
            "loadBalancerLoadPlacementStrategy": MODULAR + "LeastResourceUsageWithWeight",
            "loadBalancerDistributeBundlesEvenlyEnabled": False,
            "loadBalancerAutoBundleSplitEnabled": False,
            "loadBalancerAutoUnloadSplitBundlesEnabled": False,
        },
        description="Usages of the first round of the experiment; bundle rates are made up, as none were published.",
    )


def story() -> Snapshot:
    """Return a cluster that has something to show on every page: see its title and what it shows in the index."""
    spec = ClusterSpec(
        brokers=20,
        namespaces=8,
        bundles=240,
        topics=3_000,
        msg_rate_per_s=300_000,
        topic_skew=0.9,
        ownership_skew=0.4,
        heterogeneity=0.0,
        partitioned=0.5,
        joined_brokers=1,
        anti_affinity_namespaces=4,
        cluster="story",
    )
    made = generate(spec, STORY_SEED)
    brokers = made.brokers
    large = np.arange(len(brokers)) % 3 == 0  # every third machine has twice the cores and twice the network
    limits = ("cpu_limit_percent", "bandwidth_in_limit_kbit_per_s", "bandwidth_out_limit_kbit_per_s")
    brokers = dataclasses.replace(
        brokers, **{name: getattr(brokers, name) * np.where(large, 2.0, 1.0) for name in limits}
    )
    limit = DispatchRatePolicy("dispatch", made.namespaces[0], DispatchRate(msg_per_period=33_000, period_s=1))
    info = dataclasses.replace(
        made.info,
        description="20 brokers of two machine types; the last one joined ten minutes ago. Not a real cluster.",
    )
    policies = dataclasses.replace(made.policies, dispatch_rates=(limit,))
    return dataclasses.replace(made, info=info, brokers=brokers, policies=policies)


def builds() -> list[tuple[str, str, str, str, str, Snapshot]]:
    """Return file, title, group, what it shows, provenance and content of every sample."""
    captures = ROOT / "tests" / "goldens" / "captures"
    real = "Raw answers of a real Pulsar 4.2.4 cluster of three brokers, converted."
    documentation, clusters, algorithms = "Real clusters", "Large clusters", "Examples of the documentation"
    return [
        (
            "story.zip",
            "Story: 20 brokers and what can be wrong with them",
            "A cluster with a story",
            (
                "Skewed load on two types of machines, a topic that no split can divide, a broker that joined ten"
                " minutes ago and owns no bundles, and two strategies that work against each other. Every page has"
                " something to show."
            ),
            f"Generated, seed {STORY_SEED}; not a real cluster.",
            story(),
        ),
        (
            "real-modular.json",
            "Real cluster, modular load manager",
            documentation,
            "Three brokers with 83 bundles and skewed traffic, isolation and anti-affinity policies; averages from the"
            " metadata store.",
            real,
            read_snapshot(captures / "modular.zip"),
        ),
        (
            "real-extensible.json",
            "Real cluster, extensible load manager",
            documentation,
            "The same cluster with the extensible load manager; averages are estimated.",
            real,
            read_snapshot(captures / "extensible.zip"),
        ),
        (
            "threshold-shedder.json",
            "ThresholdShedder: 40 / 10 / 10 %",
            algorithms,
            (
                "The average is 20 %, so 40 % is above the threshold of 30 %: 21 MiB/s must leave, and the 50 MiB/s"
                " bundle is shed."
            ),
            CONCEPTS,
            cluster(
                [40, 10, 10], [[50, 40, 30, 20], [35], [35]], {}, description="Limit 30 %, required 140 x 0.15 MiB/s."
            ),
        ),
        (
            "threshold-shedder-80.json",
            "ThresholdShedder: 80 % against an average of 60 %",
            algorithms,
            "10 GiB/s x 0.15 = 1.5 GiB/s must leave; the largest bundle is shed, although it has 5 GiB/s.",
            CONCEPTS,
            cluster(
                [80, 60, 40],
                [[5_120, 3_072, 2_048], [3_000, 3_000], [2_000, 2_000]],
                {},
                description="The largest bundle moves, far more than required.",
            ),
        ),
        (
            "threshold-lower-boundary.json",
            "ThresholdShedder: the lower boundary",
            algorithms,
            (
                "Ten brokers at 80 % and one at 5 %: no broker is above the average + 10 points, so only"
                " lowerBoundarySheddingEnabled helps the idle broker."
            ),
            CONCEPTS,
            cluster(
                [80] * 10 + [5],
                [[60, 60, 80, 100]] * 10 + [[10, 10]],
                {"lowerBoundarySheddingEnabled": True},
                description="Switch lowerBoundarySheddingEnabled off to see that nothing would happen.",
            ),
        ),
        (
            "overload-shedder.json",
            "OverloadShedder: 95 %",
            algorithms,
            "Usage is 95 % at 100 MiB/s: 15 MiB/s must leave, and the 30 MiB/s bundle is shed.",
            CONCEPTS,
            cluster(
                [95, 40, 30],
                [[30, 25, 20, 15, 10], [40], [30]],
                {"loadBalancerLoadSheddingStrategy": MODULAR + "OverloadShedder"},
                description="Threshold 85 %, 100 MiB/s x (0.95 - 0.85 + 0.05).",
            ),
        ),
        (
            "uniform-shedder-rate.json",
            "UniformLoadShedder: 50,000 against 30,000 msg/s",
            algorithms,
            (
                "The rates are 66.7 % apart, more than 50 %: up to 4,000 msg/s may leave, and only the 3,000 msg/s"
                " bundle fits."
            ),
            CONCEPTS,
            cluster(
                [50, 40],
                [[30, 12, 5, 3], [30]],
                {"loadBalancerLoadSheddingStrategy": MODULAR + "UniformLoadShedder"},
                bundle_rates=[[30_000, 12_000, 5_000, 3_000], [30_000]],
                description="Quota (50,000 - 30,000) x 0.2.",
            ),
        ),
        (
            "uniform-shedder-throughput.json",
            "UniformLoadShedder: 450 against 100 MiB/s",
            algorithms,
            "4.5 times the throughput, more than 4, at nearly equal message rates.",
            CONCEPTS,
            cluster(
                [60, 40],
                [[200, 120, 70, 60], [60, 40]],
                {"loadBalancerLoadSheddingStrategy": MODULAR + "UniformLoadShedder"},
                bundle_rates=[[4_000, 3_000, 2_000, 1_000], [5_000, 4_000]],
                description="Quota (450 - 100) x 0.2 = 70 MiB/s.",
            ),
        ),
        (
            "avg-shedder.json",
            "AvgShedder: 20 / 30 / 52 / 70 / 80",
            algorithms,
            "Pairs 20 with 80 and 30 with 70, and moves the 200 msg/s bundle of the highest broker to the lowest.",
            CONCEPTS,
            cluster(
                [20, 30, 52, 70, 80],
                [[3, 2], [3, 3], [4, 4], [4, 4], [4, 3, 2, 1]],
                {
                    "loadBalancerLoadSheddingStrategy": MODULAR + "AvgShedder",
                    "loadBalancerLoadPlacementStrategy": MODULAR + "AvgShedder",
                    "minUnloadMessage": 100,
                    "maxUnloadPercentage": 0.5,
                    "loadBalancerAvgShedderHitCountHighThreshold": 1,
                },
                bundle_rates=[[300, 200], [300, 300], [400, 350], [400, 350], [400, 300, 200, 100]],
                description="loadBalancerAvgShedderHitCountHighThreshold is 1 here: the first cycle already moves.",
            ),
        ),
        (
            "transfer-shedder.json",
            "TransferShedder: one transfer",
            algorithms,
            "Loads of 2, 40 and 90 %: 30 MiB/s move from the highest to the lowest broker.",
            CONCEPTS,
            cluster(
                [2, 40, 90],
                [[1, 2], [10, 20], [30, 30, 30]],
                {**EXTENSIBLE, "loadBalancerSheddingConditionHitCountThreshold": 0},
                description="loadBalancerSheddingConditionHitCountThreshold is 0 here: the first cycle already moves.",
            ),
        ),
        (
            "transfer-shedder-underloaded.json",
            "TransferShedder: overloaded, then underloaded",
            algorithms,
            (
                "The first pair moves 30 MiB/s because of overload; the second lowest broker is still underloaded"
                " and receives 20 MiB/s."
            ),
            CONCEPTS,
            cluster(
                [2, 4, 48, 90],
                [[1, 1], [2, 2], [20, 30], [30, 60]],
                {**EXTENSIBLE, "loadBalancerSheddingConditionHitCountThreshold": 0},
                description="Two pairs, two reasons.",
            ),
        ),
        (
            "transfer-shedder-swap.json",
            "TransferShedder: a swap",
            algorithms,
            "No bundle of the loaded broker fits, so 38 MiB/s leave, and 4 and 8 MiB/s come back in exchange.",
            CONCEPTS,
            cluster(
                [20, 80],
                [[4, 8, 8], [38, 42]],
                {**EXTENSIBLE, "loadBalancerSheddingConditionHitCountThreshold": 0},
                description="Three moves of one swap.",
            ),
        ),
        (
            "split-flow-or-qps.json",
            "flow_or_qps_equally_divide: six topics",
            algorithms,
            "Limit 450 msg/s: cut at 0x1c800001, 0x2e800001, 0x48800001, 0x67000001. The public page differs.",
            CONCEPTS,
            split_example(
                SIX,
                RATES,
                THROUGHPUTS,
                {
                    "defaultNamespaceBundleSplitAlgorithm": "flow_or_qps_equally_divide",
                    "loadBalancerNamespaceBundleMaxMsgRate": 450,
                    "loadBalancerNamespaceBundleMaxBandwidthMbytes": 200,
                },
                "See the first bundle on the Bundle map.",
            ),
        ),
        (
            "split-topic-count.json",
            "topic_count_equally_divide: six topics",
            algorithms,
            "Hashes 0x10 to 0x75 (x 0x01000000): cut at 0x4d000000. The public page says 0x50000000.",
            CONCEPTS,
            split_example(
                [0x10000000, 0x20000000, 0x35000000, 0x65000000, 0x70000000, 0x75000000],
                RATES,
                THROUGHPUTS,
                {"defaultNamespaceBundleSplitAlgorithm": "topic_count_equally_divide"},
                "See the first bundle on the Bundle map.",
            ),
        ),
        (
            "split-range.json",
            "range_equally_divide: the middle",
            algorithms,
            "0x00000000 to 0x80000000 is cut at 0x40000000, regardless of the topics.",
            CONCEPTS,
            split_example(SIX, RATES, THROUGHPUTS, {}, "See the first bundle on the Bundle map."),
        ),
        (
            "placement-10-30-80.json",
            "LeastResourceUsageWithWeight: 10 / 30 / 80 %",
            algorithms,
            (
                "In exact arithmetic, 10 and 30 % are both far enough below the average; in single precision, only"
                " 10 % is."
            ),
            CONCEPTS,
            cluster(
                [10, 30, 80],
                [[5, 5], [15, 15], [40, 40]],
                {"loadBalancerLoadPlacementStrategy": MODULAR + "LeastResourceUsageWithWeight"},
                description="30 of 100 is 30.000002 % in single precision.",
            ),
        ),
        (
            "pip-364.json",
            "PIP-364: five brokers before the first round",
            algorithms,
            "ThresholdShedder with LeastResourceUsageWithWeight, as in the published experiment.",
            ("Usage figures published for PIP-364's experiment; bundle rates are invented, as none were published."),
            pip364(),
        ),
        (
            "generated-100.zip",
            "100 brokers, 10,000 bundles, 200,000 topics",
            clusters,
            "A large, skewed, heterogeneous cluster.",
            "Generated, seed 1; not a real cluster.",
            generate(ClusterSpec(brokers=100, bundles=10_000, topics=200_000, msg_rate_per_s=2e6), 1),
        ),
    ]


def main() -> None:
    """Write every sample and the index."""
    FOLDER.mkdir(exist_ok=True)
    index = []
    for file, title, group, shows, provenance, snapshot in builds():
        validate(snapshot)
        path = FOLDER / file
        if path.suffix == ".json":
            path.write_text(write_document(snapshot), encoding="utf-8")
        else:
            with path.open("wb") as target:
                write_zip(snapshot, target)
        digest = snapshot_digest(read_snapshot(path))
        index.append(dataclasses.asdict(Sample(file, title, group, shows, provenance, digest)))
        print(f"{digest[:12]}  {path.stat().st_size:>9,}  {file}")
    (FOLDER / "index.json").write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
