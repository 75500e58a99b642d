"""Steady, skewed traffic by the official Python client."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Flow", "traffic"]

_TICK_S = 0.05


@dataclass(frozen=True, slots=True)
class Flow:
    """What goes through a topic: messages of one size at one rate, and a copy to each of some subscriptions."""

    msg_per_s: float
    msg_bytes: int = 1024
    subscriptions: int = 0


class _Pump(threading.Thread):
    """Sends every flow's messages as they fall due."""

    def __init__(self, producers: Mapping[str, tuple[Any, Flow]]) -> None:
        super().__init__(daemon=True, name="traffic")
        self.producers = producers
        self.halt = threading.Event()

    def run(self) -> None:
        start = time.monotonic()
        payload = {name: b"x" * flow.msg_bytes for name, (_, flow) in self.producers.items()}
        sent = dict.fromkeys(payload, 0)
        while not self.halt.wait(_TICK_S):
            passed = time.monotonic() - start
            for name, (producer, flow) in self.producers.items():
                due = int(passed * flow.msg_per_s)
                # After a pause, such as an unload, what was missed is not made up for.
                for _ in range(min(due - sent[name], max(1, int(flow.msg_per_s)))):
                    producer.send_async(payload[name], _ignore)
                sent[name] = due


def _ignore(*_: object) -> None:
    """A message lost while its topic moves is no matter here."""


def _acknowledge(consumer: Any, message: Any) -> None:
    consumer.acknowledge(message)


@contextmanager
def traffic(service_url: str, flows: Mapping[str, Flow], *, token: str = "", tls_trust: str = "") -> Iterator[None]:
    """Produce and consume until the end of the block.

    Args:
        service_url: Binary service of any broker.
        flows: Flow by full topic name.
        token: JSON web token; empty for none.
        tls_trust: File of the certificate authority; empty without TLS.
    """
    import pulsar  # noqa: PLC0415 - only `pytest -m cluster` needs it

    quiet = logging.getLogger("pulsar.client.of.tests")
    quiet.setLevel(logging.CRITICAL)
    client = pulsar.Client(
        service_url,
        authentication=pulsar.AuthenticationToken(token) if token else None,
        tls_trust_certs_file_path=tls_trust or None,
        logger=quiet,
    )
    producers: dict[str, tuple[Any, Flow]] = {}
    try:
        for topic, flow in flows.items():
            for number in range(flow.subscriptions):
                client.subscribe(topic, f"sub-{number}", message_listener=_acknowledge)
            producer = client.create_producer(topic, block_if_queue_full=False, send_timeout_millis=10_000)
            producers[topic] = producer, flow
        pump = _Pump(producers)
        pump.start()
        try:
            yield
        finally:
            pump.halt.set()
            pump.join(timeout=30)
    finally:
        client.shutdown()
