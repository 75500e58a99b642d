"""Steady, skewed traffic by the official Python client, in a process of its own.

The client takes many seconds to close consumers; a process is ended at once. Run as a script it reads what to send from
the first line of standard input, prints `flowing`, and ends with standard input.
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

_TICK_S = 0.05


@dataclass(frozen=True, slots=True)
class Flow:
    """What goes through a topic: messages of one size at one rate, and a copy to each of some subscriptions."""

    msg_per_s: float
    msg_bytes: int = 1024
    subscriptions: int = 0


@contextmanager
def traffic(
    service_url: str, flows: Mapping[str, Flow], *, token: str = "", tls_trust: str = "", shift_s: float = 0.0
) -> Iterator[None]:
    """Produce and consume until the end of the block.

    Args:
        service_url: Binary service of any broker.
        flows: Flow by full topic name.
        token: JSON web token; empty for none.
        tls_trust: File of the certificate authority; empty without TLS.
        shift_s: After so many seconds each time, every topic gets the rate of another one; 0 for never.
    """
    given = {
        "service_url": service_url,
        "flows": {topic: asdict(flow) for topic, flow in flows.items()},
        "token": token,
        "tls_trust": tls_trust,
        "shift_s": shift_s,
    }
    child = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin
    assert child.stdout
    try:
        child.stdin.write(json.dumps(given) + "\n")
        child.stdin.flush()
        assert child.stdout.readline().strip() == "flowing", "the client of the tests could not start its traffic"
        yield
    finally:
        child.kill()
        child.wait(timeout=30)
        child.stdin.close()
        child.stdout.close()


def _ignore(*_: object) -> None:
    """A message lost while its topic moves is no matter here."""


def _acknowledge(consumer: Any, message: Any) -> None:
    consumer.acknowledge(message)


def _open(given: Mapping[str, Any]) -> list[tuple[Any, Flow]]:
    """Connect, and return a producer for each topic."""
    import pulsar  # noqa: PLC0415 - only this process needs it

    quiet = logging.getLogger("pulsar.client.of.tests")
    quiet.setLevel(logging.CRITICAL)
    client = pulsar.Client(
        given["service_url"],
        authentication=pulsar.AuthenticationToken(given["token"]) if given["token"] else None,
        tls_trust_certs_file_path=given["tls_trust"] or None,
        logger=quiet,
    )

    def connect(topic: str, flow: Flow) -> tuple[Any, Flow]:
        for number in range(flow.subscriptions):
            client.subscribe(topic, f"sub-{number}", message_listener=_acknowledge)
        return client.create_producer(topic, send_timeout_millis=10_000), flow

    flows = {topic: Flow(**values) for topic, values in given["flows"].items()}
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(connect, flows, flows.values()))


def _pump(producers: list[tuple[Any, Flow]], shift_s: float) -> None:
    """Send every flow's messages as they fall due, for ever."""
    start = time.monotonic()
    payloads = [b"x" * flow.msg_bytes for _, flow in producers]
    sent = [0] * len(producers)
    while True:
        time.sleep(_TICK_S)
        passed = time.monotonic() - start
        if shift_s and passed > shift_s:
            start, sent, passed = start + passed, [0] * len(producers), 0.0
            flows = [flow for _, flow in producers]
            by = len(flows) // 3 + 1
            shifted = flows[by:] + flows[:by]
            producers = [(producer, flow) for (producer, _), flow in zip(producers, shifted, strict=True)]
        for i, (producer, flow) in enumerate(producers):
            due = int(passed * flow.msg_per_s)
            # After a pause, such as an unload, what was missed is not made up for.
            for _ in range(min(due - sent[i], max(1, int(flow.msg_per_s)))):
                producer.send_async(payloads[i], _ignore)
            sent[i] = due


def _main() -> None:
    given = json.loads(sys.stdin.readline())
    producers = _open(given)
    threading.Thread(target=_pump, args=(producers, given["shift_s"]), daemon=True).start()
    print("flowing", flush=True)  # noqa: T201 - what the parent waits for
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main()
