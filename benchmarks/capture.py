"""How long the capture of a large cluster takes, how much memory it needs, and how many requests are under way at once.

Usage: python benchmarks/capture.py [--brokers N] [--bundles N] [--topics N] [--latency-ms N]

A stand-in on loopback, in a process of its own, gives each broker a port and answers in the shape that Pulsar 4.2.4 was
recorded in: a publisher and a subscription with its consumer for each topic, about 1.6 KB. The capture runs with its
default bounds in another process, whose peak memory is measured (Linux). The floor is reading the same bodies with
httpx one after the other, without looking at them.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from planner.capture.options import CaptureOptions, Limits
from planner.capture.run import capture_cluster
from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

_CLUSTER = "planner"
_MB = 1e6
_MOST_S = 60.0
_MOST_MIB = 1024.0


def peak_mib() -> float:
    """Return the greatest memory this process has used, in MiB; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


# What the stand-in answers.


def topic(name: str, row: int, s: Snapshot) -> dict[str, Any]:
    """Return what a broker tells of a topic."""
    t = s.topics
    rate_in, rate_out = float(t.msg_rate_in_per_s[row]), float(t.msg_rate_out_per_s[row])
    bytes_in, bytes_out = float(t.msg_throughput_in_bytes_per_s[row]), float(t.msg_throughput_out_bytes_per_s[row])
    since = "2026-11-21T01:47:39.388892128Z"
    consumer = {
        "address": "/127.0.0.1:39434",
        "consumerName": f"{row:010x}",
        "availablePermits": 200,
        "connectedSince": since,
        "msgRateOut": rate_out,
        "msgThroughputOut": bytes_out,
        "msgRateRedeliver": 0.0,
        "avgMessagesPerEntry": 1,
        "messageAckRate": rate_out,
        "unackedMessages": 0,
        "blockedConsumerOnUnackedMsgs": False,
        "clientVersion": "Pulsar-CPP-v4.2.0",
        "metadata": {},
    }
    publisher = {
        "msgRateIn": rate_in,
        "msgThroughputIn": bytes_in,
        "averageMsgSize": 558.0,
        "address": "/127.0.0.1:39434",
        "producerId": row,
        "producerName": f"planner-{row}",
        "connectedSince": since,
        "clientVersion": "Pulsar-CPP-v4.2.0",
        "metadata": {},
    }
    subscription = {
        "consumers": [consumer],
        "msgBacklog": 9,
        "msgRateExpired": 0.0,
        "msgRateOut": rate_out,
        "messageAckRate": rate_out,
        "msgThroughputOut": bytes_out,
        "msgRateRedeliver": 0.0,
        "numberOfEntriesSinceFirstNotAckedMessage": 1,
        "totalNonContiguousDeletedMessagesRange": 0,
        "type": "Shared",
        "filterProcessedMsgCount": 0,
        "filterAcceptedMsgCount": 0,
        "filterRejectedMsgCount": 0,
        "filterRescheduledMsgCount": 0,
        "blockedSubscriptionOnUnackedMsgs": False,
        "unackedMessages": 0,
    }
    return {
        "publishers": [publisher],
        "replication": {},
        "subscriptions": {"sub-0": subscription},
        "producerCount": 1,
        "averageMsgSize": 558.0,
        "msgRateIn": rate_in,
        "msgRateOut": rate_out,
        "msgThroughputIn": bytes_in,
        "msgThroughputOut": bytes_out,
        "storageSize": 1_000_000 + row,
        "backlogSize": 5_000,
        "pendingAddEntriesCount": 0,
        "topicName": name,
    }


def load_report(broker: int, bundles: dict[str, dict[str, float]], s: Snapshot, url: str) -> dict[str, Any]:
    """Return the load report of a broker."""
    b = s.brokers

    def pair(name: str, unit: str) -> dict[str, float]:
        return {k: float(getattr(b, f"{name}_{k}_{unit}")[broker]) for k in ("usage", "limit")}

    return {
        "webServiceUrl": url,
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": True,
        "cpu": pair("cpu", "percent"),
        "memory": pair("memory", "mib"),
        "directMemory": pair("direct_memory", "mib"),
        "bandwidthIn": pair("bandwidth_in", "kbit_per_s"),
        "bandwidthOut": pair("bandwidth_out", "kbit_per_s"),
        "msgThroughputIn": float(b.msg_throughput_in_bytes_per_s[broker]),
        "msgThroughputOut": float(b.msg_throughput_out_bytes_per_s[broker]),
        "msgRateIn": float(b.msg_rate_in_per_s[broker]),
        "msgRateOut": float(b.msg_rate_out_per_s[broker]),
        "lastUpdate": time.time_ns() // 1_000_000,
        "lastStats": bundles,
        "numTopics": int(b.topics[broker]),
        "numBundles": len(bundles),
        "numConsumers": int(b.consumers[broker]),
        "numProducers": int(b.producers[broker]),
        "bundles": list(bundles),
        "brokerVersionString": "4.2.4",
        "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    }


def write_answers(s: Snapshot, ids: list[str], folder: Path) -> Iterator[tuple[str, str, bytes | Path]]:
    """Yield broker id (or "" for all), path and answer; long answers are written to files."""
    v2 = "/admin/v2"

    def told(value: object) -> bytes:
        return json.dumps(value).encode()

    yield "", f"{v2}/brokers", told(ids)
    yield "", f"{v2}/clusters", told([_CLUSTER])
    yield "", f"{v2}/brokers/leaderBroker", told({"brokerId": ids[0], "serviceUrl": f"http://{ids[0]}"})
    yield "", f"{v2}/brokers/version", b"4.2.4"
    yield "", f"{v2}/brokers/configuration/values", b"{}"
    yield "", f"{v2}/brokers/configuration/runtime", told({"clusterName": _CLUSTER})
    yield "", f"{v2}/clusters/{_CLUSTER}/namespaceIsolationPolicies", b"{}"
    yield "", f"{v2}/clusters/{_CLUSTER}/failureDomains", b"{}"
    tenants: dict[str, list[str]] = {}
    for name in s.namespaces:
        tenants.setdefault(name.partition("/")[0], []).append(name)
    yield "", f"{v2}/tenants", told(list(tenants))
    for tenant, names in tenants.items():
        yield "", f"{v2}/namespaces/{tenant}", told(names)
    edges: dict[int, list[int]] = {}
    for namespace, low in zip(s.bundles.namespace.tolist(), s.bundles.low.tolist(), strict=True):
        edges.setdefault(namespace, []).append(low)
    topics = s.topics.name.to_pylist()
    listed: dict[str, list[str]] = {}
    for name in topics:
        listed.setdefault("/".join(name.split("/")[2:4]), []).append(name)
    for i, name in enumerate(s.namespaces):
        bounds = [f"0x{low:08x}" for low in sorted(edges[i])] + ["0xffffffff"]
        bundles = {"boundaries": bounds, "numBundles": len(bounds) - 1}
        yield "", f"{v2}/namespaces/{name}/bundles", told(bundles)
        yield "", f"{v2}/namespaces/{name}", told({"bundles": bundles, "topicDispatchRate": {}})
        yield "", f"{v2}/namespaces/{name}/antiAffinity", b""
        yield "", f"{v2}/persistent/{name}", told(listed.get(name, []))
        yield "", f"{v2}/persistent/{name}/partitioned", b"[]"
    yield from of_brokers(s, ids, folder, topics)


def of_brokers(s: Snapshot, ids: list[str], folder: Path, topics: list[str]) -> Iterator[tuple[str, str, bytes | Path]]:
    """Yield what each broker tells of itself."""
    v2, b = "/admin/v2", s.bundles
    for broker, name in enumerate(ids):
        stats: dict[str, dict[str, float]] = {}
        tree: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
        for row in (b.owner == broker).nonzero()[0].tolist():
            namespace = s.namespaces[b.namespace[row]]
            span = f"0x{b.low[row]:08x}_0x{b.high[row]:08x}"
            stats[f"{namespace}/{span}"] = {
                "msgRateIn": float(b.msg_rate_in_per_s[row]),
                "msgThroughputIn": float(b.msg_throughput_in_bytes_per_s[row]),
                "msgRateOut": float(b.msg_rate_out_per_s[row]),
                "msgThroughputOut": float(b.msg_throughput_out_bytes_per_s[row]),
                "consumerCount": int(b.consumers[row]),
                "producerCount": int(b.producers[row]),
                "topics": int(b.topics[row]),
                "cacheSize": 0,
            }
            inside = {topics[t]: topic(topics[t], t, s) for t in s.topics.of_bundle(row).tolist()}
            tree.setdefault(namespace, {})[span] = {"persistent": inside}
        shared = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
        yield name, f"{v2}/brokers/{_CLUSTER}/{name}/ownedNamespaces", json.dumps(dict.fromkeys(stats, shared)).encode()
        report = load_report(broker, stats, s, f"http://{name}")
        yield name, f"{v2}/broker-stats/load-report", json.dumps(report).encode()
        path = folder / f"topics.{broker}"
        path.write_text(json.dumps(tree))
        yield name, f"{v2}/broker-stats/topics", path


class StandIn:
    """Serves the answers, and counts requests under way."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.answers: dict[tuple[str, str], bytes | Path] = {}
        self.in_flight = self.most_in_flight = self.requests = 0

    async def serve(self, broker: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer on one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                if path == "/counts":
                    counts = {"most_in_flight": self.most_in_flight, "requests": self.requests}
                    await self.give(writer, json.dumps(counts).encode())
                    continue
                self.requests += 1
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                await asyncio.sleep(self.latency_s)
                answer = self.answers.get((broker[0], path), self.answers.get(("", path)))
                body = answer.read_bytes() if isinstance(answer, Path) else answer
                await self.give(writer, body, last=lambda: setattr(self, "in_flight", self.in_flight - 1))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def give(self, writer: asyncio.StreamWriter, body: bytes | None, last: Any = None) -> None:
        """Send an answer; `last` is called before its last piece leaves, after which the client may ask for more."""
        status = b"200 OK" if body is not None else b"404 Not Found"
        content = body or b""
        writer.write(
            b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(content))
        )
        piece = 1 << 18
        for start in range(0, len(content) - piece, piece):
            writer.write(content[start : start + piece])
            await writer.drain()
        if last is not None:
            last()
        writer.write(content[(max(0, len(content) - 1) // piece) * piece :] if len(content) > piece else content)
        await writer.drain()


async def stand_in(args: argparse.Namespace) -> None:
    """Serve a generated cluster until the process is ended."""
    spec = ClusterSpec(brokers=args.brokers, bundles=args.bundles, topics=args.topics, msg_rate_per_s=1e6)
    snapshot = generate(spec, 1)
    server = StandIn(args.latency_ms / 1000)
    ids: list[str] = []
    for _ in range(args.brokers):
        name: list[str] = []
        listening = await asyncio.start_server(partial(server.serve, name), "127.0.0.1", 0)
        name.append(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        ids.append(name[0])
    with tempfile.TemporaryDirectory() as folder:
        for broker, path, answer in write_answers(snapshot, ids, Path(folder)):
            server.answers[broker, path] = answer
        print(json.dumps({"ids": ids, "bundles": len(snapshot.bundles), "topics": len(snapshot.topics)}), flush=True)
        await asyncio.Event().wait()


def measured(url: str) -> dict[str, Any]:
    """Capture in this process; return what it took."""
    with tempfile.TemporaryDirectory() as folder:
        before, began_s = peak_mib(), time.process_time()
        result = capture_cluster(CaptureOptions(url, Path(folder) / "capture"))
        shown = result.snapshot
        return {
            "took_s": result.took_s,
            "cpu_s": time.process_time() - began_s,
            "peak_mib": peak_mib(),
            "before_mib": before,
            "requests": result.requests,
            "received_mb": result.received_bytes / _MB,
            "missing": len(result.missing),
            "brokers": len(shown.brokers),
            "bundles": len(shown.bundles),
            "topics": len(shown.topics),
            "topics_with_stats": int(shown.topics.has_stats.sum()),
        }


def floor(ids: list[str]) -> float:
    """Return how long the largest bodies take to read, one after the other, in seconds."""
    began = time.perf_counter()
    with httpx.Client(trust_env=False) as http:
        for name in ids:
            http.get(f"http://{name}/admin/v2/broker-stats/topics", timeout=60)
    return time.perf_counter() - began


def main() -> int:
    """Measure, print, and say by the exit status whether the bounds were kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--bundles", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=200_000)
    parser.add_argument("--latency-ms", type=float, default=5.0)
    parser.add_argument("--role", choices=("all", "stand-in", "capture"), default="all", help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role == "stand-in":
        asyncio.run(stand_in(args))
    elif args.role == "capture":
        print(json.dumps(measured(args.url)))
    else:
        return compare(args)
    return 0


def compare(args: argparse.Namespace) -> int:
    """Start the stand-in, capture it, and print what it took."""
    me = [sys.executable, __file__]
    size = [f"--brokers={args.brokers}", f"--bundles={args.bundles}", f"--topics={args.topics}"]
    size.append(f"--latency-ms={args.latency_ms}")
    server = subprocess.Popen([*me, "--role=stand-in", *size], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None  # noqa: S101 - PIPE was asked for
        made = json.loads(server.stdout.readline())
        base_s = floor(made["ids"])
        url = f"http://{made['ids'][0]}"
        httpx.get(f"{url}/counts", trust_env=False)
        done = subprocess.run([*me, "--role=capture", f"--url={url}"], capture_output=True, text=True, check=True)
        taken = json.loads(done.stdout)
        counts = httpx.get(f"{url}/counts", trust_env=False).json()
    finally:
        server.terminate()
        server.wait()
    allowed = Limits().in_flight
    print(f"{taken['brokers']} brokers, {taken['bundles']:,} bundles, {taken['topics']:,} topics", end="; ")
    print(f"{taken['requests']:,} requests, {taken['received_mb']:,.0f} MB, {taken['missing']} without answer")
    print(f"capture and snapshot {taken['took_s']:6.1f} s   (at most {_MOST_S:g}; reading bodies alone {base_s:.1f} s)")
    print(f"of that, its processor{taken['cpu_s']:5.1f} s")
    print(f"peak memory          {taken['peak_mib']:6.0f} MiB (at most {_MOST_MIB:g})")
    print(f"most at once         {counts['most_in_flight']:6d}     (at most {allowed}), as the stand-in counts")
    whole = taken["bundles"] == made["bundles"] and taken["topics_with_stats"] == made["topics"]
    kept = taken["took_s"] <= _MOST_S and taken["peak_mib"] <= _MOST_MIB and counts["most_in_flight"] <= allowed
    if not whole:
        print("The snapshot is not the cluster that was served.")
    return 0 if whole and kept else 1


if __name__ == "__main__":
    sys.exit(main())
