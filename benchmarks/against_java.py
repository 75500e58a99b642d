"""Every shedding strategy beside the official Java class: same inputs, one run, warmed JVM.

    python -m benchmarks.against_java

Needs Java 17 and Maven. Prints milliseconds and the ratio planner / Java, at 20 brokers x 2,000 bundles and at 1,000 x
100,000. Both sides decide one cycle from a fresh memory over load data that are in memory, the planner with all its
reasons; both times are the median CPU time of the deciding thread, so that other work on the machine counts little.
Both must move equally many bundles. Java's TransferShedder has the filters that need no metadata store.

Java's Overload-, Threshold- and AvgShedder are slow at the large size: for each broker that sheds they filter the
averages of all bundles into a new map (`LoadData.getBundleDataForLoadShedding`), parsing each bundle's namespace. The
planner sorts the bundles of all these brokers once; half of its time goes into the moves, one object with its reason
for each.

Then the whole cycle of a modular leader, `ModularLoadManagerImpl.doLoadShedding`: shedding, isolation, anti-affinity,
the placement of each bundle, and the unloads. What surrounds the load manager in a broker answers at once, with no
policies; a broker's own caches take longer. The planner's cycle is measured with all its reasons, which are put
together when they are read (`explained`), with the notes on all orders of Java's maps as well (`noted`), for which it
decides three times, and without either, as simulations do (`alone`). Where Pulsar draws a
destination, both draw, so that a few bundles may stay in one of them.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.top_bundles import with_top_ranks
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.oracle.harness import Oracle

RUNS = 25
WARM_UP_MS = 4_000
KINDS = {
    "ThresholdShedder": "shedder_threshold",
    "OverloadShedder": "shedder_overload",
    "UniformLoadShedder": "shedder_uniform",
    "AvgShedder": "shedder_avg",
    "TransferShedder": "shedder_transfer",
}
# Strategies that wait for several cycles act at once.
CONFIG: Mapping[str, dict[str, Any]] = {
    "AvgShedder": {"loadBalancerAvgShedderHitCountHighThreshold": 1, "loadBalancerAvgShedderHitCountLowThreshold": 1},
    "TransferShedder": {
        "loadBalancerSheddingConditionHitCountThreshold": 0,
        "loadBalancerBrokerLoadTargetStd": 0.0,
    },
}
RESOURCES = {
    "cpu": ("cpu_usage_percent", "cpu_limit_percent"),
    "memory": ("memory_usage_mib", "memory_limit_mib"),
    "directMemory": ("direct_memory_usage_mib", "direct_memory_limit_mib"),
    "bandwidthIn": ("bandwidth_in_usage_kbit_per_s", "bandwidth_in_limit_kbit_per_s"),
    "bandwidthOut": ("bandwidth_out_usage_kbit_per_s", "bandwidth_out_limit_kbit_per_s"),
}
TRAFFIC = {
    "msgRateIn": "msg_rate_in_per_s",
    "msgRateOut": "msg_rate_out_per_s",
    "msgThroughputIn": "msg_throughput_in_bytes_per_s",
    "msgThroughputOut": "msg_throughput_out_bytes_per_s",
}


def rows(table: Any, prefix: str = "") -> list[dict[str, float]]:
    """Return the traffic of each row of a table."""
    columns = [getattr(table, prefix + column).tolist() for column in TRAFFIC.values()]
    return [dict(zip(TRAFFIC, values, strict=True)) for values in zip(*columns, strict=True)]


def broker_reports(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """Return the load report of each broker, without its bundles."""
    reports: list[dict[str, Any]] = [dict(row) for row in rows(snapshot.brokers)]
    for resource, (usage, limit) in RESOURCES.items():
        pairs = zip(getattr(snapshot.brokers, usage).tolist(), getattr(snapshot.brokers, limit).tolist(), strict=True)
        for report, (used, there_is) in zip(reports, pairs, strict=True):
            report[resource] = {"usage": used, "limit": there_is}
    return dict(zip(snapshot.brokers.name, reports, strict=True))


def modular(snapshot: Snapshot) -> dict[str, Any]:
    """Return what a modular leader knows, as the vectors write it."""
    names = snapshot.bundle_names
    brokers = broker_reports(snapshot)
    for at, report in enumerate(brokers.values()):
        report["bundles"] = [names[i] for i in snapshot.bundles_of(at).tolist()]
    short = rows(snapshot.bundles, "short_term_")
    return {
        "steps": [
            {
                "loadData": {
                    "brokers": brokers,
                    "bundleData": {n: {"shortTermData": s} for n, s in zip(names, short, strict=True)},
                }
            }
        ]
    }


def leader(snapshot: Snapshot) -> dict[str, Any]:
    """Return what a modular leader knows that also places bundles."""
    known = modular(snapshot)["steps"][0]["loadData"]
    long, table = rows(snapshot.bundles, "long_term_"), snapshot.brokers
    averages = zip(known["bundleData"].values(), long, snapshot.bundles.data_topics.tolist(), strict=True)
    for average, of_long, topics in averages:
        average |= {"longTermData": of_long, "topics": topics}
    now = dict(zip(snapshot.bundle_names, rows(snapshot.bundles), strict=True))
    for at, report in enumerate(known["brokers"].values()):
        report |= {
            "lastStats": {name: now[name] for name in report["bundles"]},
            "persistentTopicsEnabled": True,
            "nonPersistentTopicsEnabled": True,
            "brokerVersionString": table.version[at],
            "loadManagerClassName": table.load_manager_class[at],
        }
    return {"steps": [{"leader": table.name[0], "loadData": known, "registered": list(table.name)}]}


def extensible(snapshot: Snapshot) -> dict[str, Any]:
    """Return what an extensible leader knows, as the vectors write it."""
    now = snapshot.info.captured_at_ms
    reports = {name: {**report, "updatedAtMs": now} for name, report in broker_reports(snapshot).items()}
    top: dict[str, list[Any]] = {name: [] for name in snapshot.brokers.name}
    traffic = rows(snapshot.bundles)
    for i in np.argsort(snapshot.bundles.top_rank, kind="stable").tolist():
        if snapshot.bundles.top_rank[i] >= 0:
            owner = snapshot.brokers.name[snapshot.bundles.owner[i]]
            top[owner].append({"bundle": snapshot.bundle_names[i], **traffic[i]})
    step = {"availableBrokers": list(snapshot.brokers.name), "brokerLoad": reports, "topBundles": top}
    return {"nowMs": now, "steps": [step]}


def planner(shedder: Shedder, snapshot: Snapshot, config: Settings) -> tuple[float, int]:
    """Return the median CPU milliseconds of a decision, and how many bundles it moves."""
    memory: SheddingMemory[Any] = SheddingMemory(shedder.initial())
    taken = []
    for _ in range(RUNS + 3):
        start = time.thread_time()
        _, decision = shedder.decide(snapshot, memory, config)
        taken.append(time.thread_time() - start)
    return sorted(taken[3:])[RUNS // 2] * 1000, len(decision.moves)


def cycles(snapshot: Snapshot, config: Settings) -> tuple[float, float, float, int]:
    """Return the median CPU milliseconds of a whole cycle, and how many bundles it unloads.

    Explained and with the notes on all orders of maps, explained, and alone.
    """
    found: list[float] = []
    unloads = 0
    for explain, noted in ((True, True), (True, False), (False, False)):
        taken = []
        for _ in range(RUNS + 3):
            start = time.thread_time()
            _, decision = next_cycle(snapshot, None, config, 0, explain=explain)
            if noted:
                _ = decision.notes
            taken.append(time.thread_time() - start)
            unloads = sum(one.carried_out for one in decision.unloads)
        found.append(sorted(taken[3:])[RUNS // 2] * 1000)
    return found[0], found[1], found[2], unloads


def asked(java: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Java says to a question; where it has ended, it has said why on its standard error."""
    java.stdin.write(json.dumps(question) + "\n")
    java.stdin.flush()
    answer = java.stdout.readline()
    if not answer:
        raise SystemExit(f"Java ended with status {java.wait()}.")
    found: dict[str, Any] = json.loads(answer)
    return found


def measure_cycles(java: Any, brokers: int, bundles: int) -> None:
    """Print the times of the cycle of a modular leader for every strategy and one cluster size."""
    print(f"{brokers} brokers, {bundles} bundles, whole cycles")
    print("  strategy                 noted   explained       alone        Java               ratios   unloads (Java)")
    for shedder in (one for one in SHEDDERS if one.load_manager is LoadManager.MODULAR):
        overrides = {"loadBalancerLoadSheddingStrategy": shedder.java_class, **CONFIG.get(shedder.name, {})}
        if shedder.profile.paired_placement:
            overrides["loadBalancerLoadPlacementStrategy"] = shedder.java_class
        snapshot = cluster(shedder, brokers, bundles)
        kind = f"cycle_{KINDS[shedder.name]}"
        answer = asked(java, {"kind": kind, "config": overrides, "input": leader(snapshot)})
        noted, explained, alone, unloads = cycles(snapshot, Settings(overrides))
        ratios = "".join(f"{ms / answer['ms']:7.3f}" for ms in (noted, explained, alone))
        print(
            f"  {shedder.name:18} {noted:8.3f} ms {explained:8.3f} ms {alone:8.3f} ms {answer['ms']:8.3f} ms {ratios}"
            f" {unloads:7} ({answer['moves']})"
        )


def cluster(shedder: Shedder, brokers: int, bundles: int) -> Snapshot:
    """Return a cluster that a strategy sheds from."""
    spec = ClusterSpec(
        brokers=brokers,
        bundles=bundles,
        topics=4 * bundles,
        load_manager=shedder.load_manager,
        ownership_skew=0.7,
        msg_rate_per_s=2e4 * brokers,
    )
    return generate(spec, 7)


def measure(java: Any, brokers: int, bundles: int) -> None:
    """Print the times of every strategy for one cluster size."""
    print(f"{brokers} brokers, {bundles} bundles")
    print("  strategy              planner        Java   ratio   moves")
    for shedder in SHEDDERS:
        overrides = CONFIG.get(shedder.name, {})
        config = Settings(overrides)
        snapshot = cluster(shedder, brokers, bundles)
        if shedder.load_manager is LoadManager.EXTENSIBLE:
            snapshot = with_top_ranks(snapshot, config)
        given = (modular if shedder.load_manager is LoadManager.MODULAR else extensible)(snapshot)
        answer = asked(java, {"kind": KINDS[shedder.name], "config": overrides, "input": given})
        taken, moves = planner(shedder, snapshot, config)
        if moves != answer["moves"]:
            raise SystemExit(f"{shedder.name}: the planner moves {moves} bundles, Java {answer['moves']}.")
        print(f"  {shedder.name:18} {taken:8.3f} ms {answer['ms']:8.3f} ms {taken / answer['ms']:7.2f} {moves:7}")


def main() -> None:
    """Compile, measure, print."""
    with tempfile.TemporaryDirectory() as place:
        oracle = Oracle(Path(place))
        command = [*oracle.command("Bench", "-Xmx6g"), str(WARM_UP_MS), str(RUNS)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as java:
            for size in ((20, 2_000), (1_000, 100_000)):
                measure(java, *size)
                measure_cycles(java, *size)


if __name__ == "__main__":
    main()
