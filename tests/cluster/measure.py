"""Measures shadow mode: records real clusters whose leader decides every few seconds, and judges what was recorded.

    python -m tests.cluster.measure record --out FOLDER --cycles 200 [--strategy NAME ...]
    python -m tests.cluster.measure judge  --out FOLDER

`record` leaves for each strategy the watched history, `truth.jsonl`: each cycle and unload that the leader wrote
into its log, and each thing that the operator of the test did, and `inputs.jsonl`: what the leader knew when it
decided. With `--raw` the raw answers of each capture, too. `judge` lets shadow mode follow the history, and
prints the table of docs/shadow.md; with `--wrong` each cycle that was judged wrong beside the truth of that time.
"""

import argparse
import contextlib
import json
import random
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.capture.options import CaptureOptions, Limits
from planner.capture.watch import Watched, WatchOptions, watch_cluster
from planner.shadow.record import Cause, ShadowCycle, score_of
from planner.shadow.watched import ShadowWatch, describe
from tests.cluster.admin import AdminError
from tests.cluster.conftest import AVG_SHEDDER, EXTENSIBLE, LOADBALANCE
from tests.cluster.launch import Broker, Cluster, classpath, start_cluster, wait_for
from tests.cluster.scene import ONLY_DIRECT_MEMORY, one_in_each_bundle
from tests.cluster.traffic import Flow, traffic

INTERVAL_MS = 10_000
CAPTURE_S = 1.0
DIRECT_MIB = (512, 512, 512, 512)
BASE_MIB, HOT_MIB = 20, 260
SHIFT_S = 50.0
STEADY = {"AvgShedder", "TransferShedder"}
"""Strategies that go by the rates of single bundles: these get so many messages that one more or less is no matter."""
NAMESPACES = {"globex/shadow": 32, "acme/a=b:c.d_e-f": 8}
ISOLATED = "acme/a=b:c.d_e-f"

_COMMON: Mapping[str, object] = {
    **ONLY_DIRECT_MEMORY,
    "loadBalancerHistoryResourcePercentage": 0.5,
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport": 0,
    "loadBalancerReportUpdateMinIntervalMillis": 1500,
    "statsUpdateFrequencyInSecs": 2,
    "statsUpdateInitialDelayInSecs": 2,
    "loadBalancerSheddingGracePeriodMinutes": 1,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0.001,
    "minUnloadMessage": 1,
    "minUnloadMessageThroughput": 100,
}
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "ThresholdShedder": {},
    "OverloadShedder": {
        "loadBalancerLoadSheddingStrategy": f"{LOADBALANCE}.impl.OverloadShedder",
        "loadBalancerBrokerOverloadedThresholdPercentage": 50,
    },
    "UniformLoadShedder": {
        "loadBalancerLoadSheddingStrategy": f"{LOADBALANCE}.impl.UniformLoadShedder",
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 1.5,
        "loadBalancerMsgRateDifferenceShedderThreshold": 20,
    },
    "AvgShedder": {
        **AVG_SHEDDER,
        "loadBalancerAvgShedderLowThreshold": 10,
        "loadBalancerAvgShedderHighThreshold": 30,
        "loadBalancerAvgShedderHitCountLowThreshold": 3,
        "loadBalancerAvgShedderHitCountHighThreshold": 2,
    },
    "TransferShedder": {
        **EXTENSIBLE,
        "loadBalancerBrokerLoadTargetStd": 0.1,
        "loadBalancerSheddingConditionHitCountThreshold": 1,
        "loadBalanceSheddingDelayInSeconds": 8,
        "loadBalancerMaxNumberOfBundlesInBundleLoadReport": 10,
    },
}
CHANGED: Mapping[str, tuple[str, object, object]] = {
    "ThresholdShedder": ("loadBalancerBrokerThresholdShedderPercentage", 5, 10),
    "OverloadShedder": ("loadBalancerBrokerOverloadedThresholdPercentage", 40, 50),
    "UniformLoadShedder": ("loadBalancerMsgRateDifferenceShedderThreshold", 40, 20),
    "AvgShedder": ("loadBalancerAvgShedderHighThreshold", 20, 30),
    "TransferShedder": ("loadBalancerBrokerLoadTargetStd", 0.14, 0.1),
}
"""The setting that the operator changes and changes back, by strategy."""

_LINE = re.compile(r"^(\d{13}) (.*)$", re.MULTILINE)
_UNLOADING = re.compile(r"Unloading bundle: (?:(\S+) from broker (\S+)|Unload\[.*?serviceUnit=([^,\s]+))")


@dataclass
class Operator:
    """Does to a cluster what people and machines do, and writes down what and when."""

    cluster: Cluster
    strategy: str
    path: Path
    chance: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311 - no secret
    isolated: bool = False
    changed: bool = False
    held: bool = False

    def note(self, kind: str, **what: object) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"at_ms": time.time_ns() // 1_000_000, "kind": kind, **what}) + "\n")

    def load(self) -> None:
        """Make another broker the busiest one."""
        hot = self.chance.randrange(len(self.cluster.brokers))
        for number, broker in enumerate(self.cluster.brokers):
            broker.carry(HOT_MIB if number == hot else BASE_MIB + 15 * number)
        self.note("load", broker=self.cluster.brokers[hot].id)

    def act(self, number: int) -> None:
        """Do the next thing; every kind comes round."""
        kinds: Sequence[Callable[[], None]] = (
            self.unload, self.load, self.policies, self.load, self.settings, self.load, self.split, self.load,
            self.unload, self.restart, self.load, self.policies, self.hold, self.load, self.settings, self.kill_leader,
        )  # fmt: skip
        with contextlib.suppress(AdminError, OSError, AssertionError):
            kinds[number % len(kinds)]()

    def _bundles(self) -> list[tuple[str, str]]:
        found = [
            (name, broker) for name, broker in self.cluster.owners().items() if name.rpartition("/")[0] in NAMESPACES
        ]
        return sorted(found)

    def unload(self) -> None:
        admin, extra = self.cluster.admin_of(self.cluster.alive[0]), self.chance.randint(1, 3)
        for name, broker in self.chance.sample(self._bundles(), extra):
            to = self.chance.choice([b.id for b in self.cluster.alive if b.id != broker])
            namespace, _, span = name.rpartition("/")
            self.note("unload", bundle=name, status=admin.unload(namespace, span, to))

    def split(self) -> None:
        wide = [n for n, _ in self._bundles() if n.startswith("globex")]
        name = self.chance.choice(wide)
        namespace, _, span = name.rpartition("/")
        low, high = (int(edge, 16) for edge in span.split("_"))
        if high - low > 1 << 26:
            self.note("split", bundle=name)
            self.cluster.admin_of(self.cluster.alive[0]).split(namespace, span, algorithm="range_equally_divide")

    def policies(self) -> None:
        admin, path = (
            self.cluster.admin_of(self.cluster.alive[0]),
            f"/clusters/{self.cluster.name}/namespaceIsolationPolicies/held",
        )
        if self.isolated:
            admin.ask(path, method="DELETE")
        else:
            failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "100"}}
            hosts = [broker.id.partition(":")[0] for broker in self.cluster.brokers[:2]]
            policy = {
                "namespaces": [re.escape(ISOLATED)],
                "primary": hosts,
                "secondary": [],
                "auto_failover_policy": failover,
            }
            admin.ask(path, method="POST", body={**policy, "unload_scope": "none"})
        self.isolated = not self.isolated
        self.note("policies", isolated=self.isolated)

    def settings(self) -> None:
        name, other, usual = CHANGED[self.strategy]
        self.changed = not self.changed
        self.note("settings", name=name)
        self.cluster.admin_of(self.cluster.alive[0]).set_dynamic({name: other if self.changed else usual})

    def hold(self) -> None:
        """Switch shedding off, unload something by hand, and switch it on again."""
        admin = self.cluster.admin_of(self.cluster.alive[0])
        self.note("hold")
        admin.set_dynamic({"loadBalancerSheddingEnabled": False})
        time.sleep(2)
        self.unload()
        time.sleep(1.5 * INTERVAL_MS / 1000)
        admin.set_dynamic({"loadBalancerSheddingEnabled": True})
        self.note("release")

    def restart(self) -> None:
        leader = self.cluster.leader.id
        self._again(self.chance.choice([b for b in self.cluster.alive if b.id != leader]), "restart")

    def kill_leader(self) -> None:
        self._again(self.cluster.leader, "leader killed")

    def _again(self, broker: Broker, kind: str) -> None:
        self.note(kind, broker=broker.id)
        broker.stop()
        time.sleep(2)
        broker.start()
        wait_for(f"{broker.id} is back", lambda: broker.id in self.cluster.admin_of(broker).brokers(), seconds=120)
        self.note("back", broker=broker.id)


def logged(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yield what the brokers wrote about elections, cycles and unloads."""
    for broker in cluster.brokers:
        for match in _LINE.finditer(broker.log):
            at_ms, text = int(match[1]), match[2]
            if text in {"ELECTED", "CYCLE", "DECIDED"}:
                yield {"at_ms": at_ms, "kind": text.lower(), "broker": broker.id}
            elif (unload := _UNLOADING.search(text)) is not None:
                yield {"at_ms": at_ms, "kind": "leader unloads", "bundle": unload[1] or unload[3], "broker": broker.id}


def record(strategy: str, out: Path, cycles: int, paths: str, raw: bool) -> None:  # noqa: FBT001 - of the command
    """Record a cluster under one strategy until its leaders have decided so often."""
    folder = out / strategy
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = {**_COMMON, **SETTINGS[strategy]}
    truth = folder / "truth.jsonl"
    with contextlib.ExitStack() as running:
        cluster = running.enter_context(
            start_cluster(paths, folder / "cluster", settings, direct_mib=DIRECT_MIB, interval_ms=INTERVAL_MS)
        )
        flows: dict[str, Flow] = {}
        steady = strategy in STEADY
        slowest, msg_bytes, domain = (20.0, 64, "non-persistent") if steady else (1.0, 1024, "persistent")
        for namespace, bundles in NAMESPACES.items():
            cluster.admin().create_namespace(namespace, bundles)
            topics = one_in_each_bundle(namespace, bundles, domain=domain)
            flows |= {topic: Flow(slowest * 1.09**i, msg_bytes) for i, topic in enumerate(topics)}
        shift_s = SHIFT_S if strategy == "UniformLoadShedder" else 0.0
        running.enter_context(traffic(cluster.brokers[0].service_url, flows, shift_s=shift_s))
        operator = Operator(cluster, strategy, truth)
        operator.load()
        ended = threading.Event()
        running.callback(ended.set)
        watch = threading.Thread(target=_watch, args=(cluster, folder, ended, raw), daemon=True)
        watch.start()
        time.sleep(15)
        cluster.admin().set_dynamic({"loadBalancerSheddingEnabled": True})
        operator.note("release")
        _operate(operator, cycles)
        ended.set()
        watch.join(60)
        found = [*map(json.loads, truth.read_text().splitlines()), *logged(cluster)]
    truth.write_text("".join(json.dumps(line) + "\n" for line in sorted(found, key=lambda line: line["at_ms"])))
    known: list[str] = []
    for broker in sorted((folder / "cluster").glob("b*")):
        shutil.move(broker / "log.txt", folder / f"{broker.name}.log")
        if (inputs := broker / "inputs.jsonl").exists():
            known += inputs.read_text().splitlines()
    known.sort(key=lambda line: int(json.loads(line)["at_ms"]))
    (folder / "inputs.jsonl").write_text("".join(f"{line}\n" for line in known))
    shutil.rmtree(folder / "cluster")


def _operate(operator: Operator, cycles: int) -> None:
    until_s, number = time.monotonic() + cycles * INTERVAL_MS / 1000, 0
    while time.monotonic() < until_s:
        time.sleep(operator.chance.uniform(1.2, 2.2) * INTERVAL_MS / 1000)
        operator.act(number)
        number += 1


def _watch(cluster: Cluster, folder: Path, ended: threading.Event, raw: bool) -> None:  # noqa: FBT001 - of the command
    capture = CaptureOptions(
        cluster.brokers[0].url,
        metadata_store=cluster.store_url,
        limits=Limits(attempts=1, connect_s=2.0, request_s=5.0, per_second=500.0),
    )

    shadow = ShadowWatch(None, lambda _: None, interval_ms=INTERVAL_MS)

    def tell(watched: Watched) -> None:
        if watched.snapshot is not None:
            shadow.add(watched.snapshot)
        said = watched.error if watched.snapshot is None else f"{watched.took_s:.1f} s"
        with (folder / "watch.log").open("a") as file:
            file.write(f"{time.time_ns() // 1_000_000} {watched.number}: {said}\n")
        if raw and watched.snapshot is not None and watched.raw is not None:
            shutil.copytree(watched.raw, folder / "raw" / str(watched.snapshot.info.captured_at_ms))

    options = WatchOptions(capture, folder / "history", interval_s=CAPTURE_S, refresh_s=60.0)
    watch_cluster(options, tell, ended, lambda: shadow.cycle_ms)


def judge(folder: Path, wrong: bool) -> Sequence[ShadowCycle]:  # noqa: FBT001 - a switch of the command
    """Let shadow mode follow what was recorded; print each wrong cycle when asked to."""
    shadow = ShadowWatch(None, lambda _: None, interval_ms=INTERVAL_MS)
    shadow.follow(folder / "history", "planner")
    truth = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    for cycle in shadow.cycles if wrong else ():
        if not cycle.right or cycle.differences:
            print(f"\n{folder.name} {describe(cycle)}\n  {cycle.from_ms} to {cycle.to_ms}")  # noqa: T201
            for difference in cycle.differences:
                print(f"    {difference.bundle} {difference.what}: {difference.cause}")  # noqa: T201
            for line in truth:
                if cycle.from_ms - INTERVAL_MS <= line["at_ms"] <= cycle.to_ms + INTERVAL_MS // 2:
                    what = {k: v for k, v in line.items() if k not in {"at_ms", "kind"}}
                    print(f"  {(line['at_ms'] - cycle.from_ms) / 1000:+7.2f} s {line['kind']} {what}")  # noqa: T201
    return shadow.cycles


_DONE_BY: Mapping[Cause, tuple[str, float]] = {
    Cause.MANUAL: ("unload", 35.0),  # while shedding is off no cycle is judged: it is told with the next one
    Cause.MANUAL_SPLIT: ("split", 15.0),
    Cause.BROKER_LEFT: ("restart|leader killed", 60.0),
    Cause.LEADER: ("leader killed", 60.0),
    Cause.SETTINGS: ("settings|hold|release", 30.0),
    Cause.POLICIES: ("policies", 30.0),
}
"""What somebody must have done, at most so many seconds before, for a cause to be true."""


def causes(folder: Path, cycles: Sequence[ShadowCycle]) -> tuple[int, int]:
    """Return how many causes were named that somebody's doing can prove, and how many of them nobody did."""
    truth = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    named = wrong = 0
    for cycle in cycles:
        for difference in cycle.differences:
            if difference.cause not in _DONE_BY:
                continue
            kinds, seconds = _DONE_BY[difference.cause]
            since_ms, until_ms = cycle.from_ms - 1000 * seconds, cycle.to_ms + INTERVAL_MS
            done = [t for t in truth if since_ms <= t["at_ms"] <= until_ms and t["kind"] in kinds.split("|")]
            proved = any(t.get("bundle", difference.bundle) == difference.bundle for t in done)
            named += 1
            wrong += not proved
    return named, wrong


def row(strategy: str, folder: Path, cycles: Sequence[ShadowCycle]) -> str:
    """Return a line of the table of docs/shadow.md."""
    score, (named, wrong) = score_of(cycles), causes(folder, cycles)
    cells = [
        f"{score.cycles + score.by_hand}",
        f"{score.right} of {score.cycles}",
        f"{score.acting_right} of {score.acting}",
        f"{score.in_time_right} of {score.in_time}",
        f"{score.destinations_right} of {score.destinations}",
        f"{score.by_hand}",
        f"{wrong} of {named}",
    ]
    return f"| {strategy} | {' | '.join(cells)} |"


def main() -> None:
    """Record, or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "judge"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--strategy", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--raw", action="store_true")
    given = parser.parse_args()
    if given.what == "record":
        given.out.mkdir(parents=True, exist_ok=True)
        paths = classpath(given.out)
        for strategy in given.strategy:
            record(strategy, given.out, given.cycles, paths, given.raw)
    for strategy in (s for s in given.strategy if (given.out / s / "truth.jsonl").is_file()):
        cycles = judge(given.out / strategy, given.wrong)
        print(row(strategy, given.out / strategy, cycles), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
