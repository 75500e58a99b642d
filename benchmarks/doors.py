"""How long outputs take to become a snapshot, and how much memory that needs.

Usage: python -m benchmarks.doors [--megabytes 200] [--brokers 50]

Three inputs: `broker-stats topics` of all brokers in one text each, the same in one file with the commands above each
answer, and a scrape of each broker. Every input is read by the command, in a process of its own; its peak memory is
that of the process (Linux).
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import MB, ROOT
from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import bundle_of_hash, equal_boundaries, format_range

_BUNDLES = 256
_SPACE = "iot/home"
_WATCH = """
import resource, sys
from planner.__main__ import main
status = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_maxrss, used.ru_utime + used.ru_stime, file=sys.stderr)
sys.exit(status)
"""


def _topic(draw: random.Random) -> dict[str, object]:
    """Return what a broker reports of a topic with a producer and two subscriptions, of the usual size."""
    rate = round(draw.uniform(0, 50), 3)
    client = {
        "msgRateIn": rate,
        "msgThroughputIn": rate * 1e3,
        "address": "/10.0.0.1:52792",
        "producerName": f"standalone-{draw.randrange(10**6)}-{draw.randrange(10**4)}",
        "connectedSince": "2026-11-25T02:09:26.967981346Z",
        "clientVersion": "Pulsar-Java-v4.0.8",
        "metadata": {},
    }
    subscription = {"consumers": [client], "msgBacklog": 2, "msgRateOut": rate, "type": "Shared"}
    return {
        "publishers": [client],
        "replication": {},
        "subscriptions": {f"sub-{at}": subscription for at in range(2)},
        "producerCount": 1,
        "msgRateIn": rate,
        "msgRateOut": 2 * rate,
        "msgThroughputIn": rate * 1e3,
        "msgThroughputOut": rate * 2e3,
        "storageSize": draw.randrange(10**9),
    }


def _names(count: int) -> Iterator[tuple[str, str, int]]:
    """Yield topics with the range and number of their bundle."""
    edges = equal_boundaries(_BUNDLES)
    for number in range(count):
        name = f"persistent://{_SPACE}/dev-{number:07d}"
        at = bundle_of_hash(edges, topic_hash(name))
        yield name, format_range(edges[at], edges[at + 1]), at


def _write_topics(folder: Path, brokers: int, size: float) -> tuple[Path, int]:
    """Write a file for each broker, and one with all of them; return that one, and the number of topics."""
    draw = random.Random(1)  # noqa: S311 - the same files again
    one = len(json.dumps(_topic(draw))) + 60
    count = int(size * MB / one)
    answers: list[dict[str, dict[str, object]]] = [{} for _ in range(brokers)]
    for name, span, at in _names(count):
        answers[at % brokers].setdefault(span, {}).setdefault("persistent", {})[name] = _topic(draw)  # type: ignore[index]
    terminal = folder / "terminal.txt"
    with terminal.open("w") as out:
        for at, spans in enumerate(answers):
            text = json.dumps({_SPACE: spans}, separators=(",", ":"))
            (folder / "apart").mkdir(exist_ok=True)
            (folder / "apart" / f"topics.broker-{at}.json").write_text(text)
            out.write(f"$ pulsar-admin --admin-url http://broker-{at}:8080 broker-stats topics\n{text}\n")
    return terminal, count


def _write_scrapes(folder: Path, brokers: int, size: float) -> tuple[Path, int]:
    """Write a scrape for each broker; return the folder, and the number of topics."""
    scrapes = folder / "scrapes"
    scrapes.mkdir()
    rates = [f"pulsar_{what}_{way}" for what in ("rate", "throughput") for way in ("in", "out")]
    counts = [f"pulsar_{what}_count" for what in ("producers", "consumers", "subscriptions")]
    metrics = [*rates, *counts, "pulsar_storage_size"]
    per_topic = len(metrics) * 115
    count = int(size * MB / per_topic)
    mine: list[list[str]] = [[] for _ in range(brokers)]
    for name, _, at in _names(count):
        mine[at % brokers].append(name)
    for at, names in enumerate(mine):
        lines = [
            f'pulsar_lb_{resource}_usage{{cluster="east",broker="broker-{at}",metric="loadBalancing"}} {20 + at % 60}.5'
            for resource in ("cpu", "memory", "directMemory", "bandwidth_in", "bandwidth_out")
        ]
        for metric in metrics:
            lines.append(f"# TYPE {metric} gauge")
            lines += [f'{metric}{{cluster="east",namespace="{_SPACE}",topic="{name}"}} 12.5' for name in names]
        (scrapes / f"broker-{at}.prom").write_text("\n".join(lines) + "\n")
    return scrapes, count


def _measure(what: str, source: Path, folder: Path, topics: int) -> None:
    size = sum(path.stat().st_size for path in ([source] if source.is_file() else source.iterdir())) / MB
    command = [sys.executable, "-c", _WATCH, "snapshot", str(source), "--out", str(folder / "out.zip")]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{what}: {done.stderr[-2_000:]}")
    peak_kib, processor_s = map(float, done.stderr.splitlines()[-1].split())
    took = f"{seconds:6.1f} s, {processor_s:5.1f} s of processor time, {peak_kib / 1_024:5.0f} MiB"
    print(f"{what:32} {size:6.0f} MB {topics:9,} topics {took}")


def main() -> None:
    """Write the inputs, and measure each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=float, default=200.0)
    parser.add_argument("--brokers", type=int, default=50)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        terminal, topics = _write_topics(folder, asked.brokers, asked.megabytes)
        _measure("broker-stats topics, a file each", folder / "apart", folder, topics)
        _measure("broker-stats topics, one terminal", terminal, folder, topics)
        scrapes, topics = _write_scrapes(folder, asked.brokers, asked.megabytes)
        _measure("scrapes", scrapes, folder, topics)


if __name__ == "__main__":
    main()
