"""Reads the system topics of the extensible load manager, in a process of its own.

Two of them are not persistent: who does not listen when a broker reports has missed it. Run as a script it takes the
address of a broker as its argument, prints each message as a line of JSON, and ends with standard input.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LOADS = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
_TOP_BUNDLES = "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data"
_OWNERSHIP = "persistent://pulsar/system/loadbalancer-service-unit-state"


@dataclass(frozen=True)
class Heard:
    """What was said since the listening began.

    Attributes:
        path: File with a message on each line.
    """

    path: Path

    def messages(self) -> dict[str, list[dict[str, Any]]]:
        """Return the messages of each topic, in the order of arrival."""
        topics: dict[str, list[dict[str, Any]]] = {_LOADS: [], _TOP_BUNDLES: [], _OWNERSHIP: []}
        text = self.path.read_text()
        for line in text[: text.rfind("\n") + 1].splitlines():
            message = json.loads(line)
            topics[message.pop("topic")].append(message)
        return topics

    def content(self) -> dict[str, Any]:
        """Return what a raw capture holds as `system-topics.json`."""
        return {"topics": self.messages()}

    def brokers(self) -> set[str]:
        """Return the brokers whose load and top bundles are known."""
        said = self.messages()
        last = [{m["key"]: m["value"] for m in said[topic]} for topic in (_LOADS, _TOP_BUNDLES)]
        return set.intersection(*({key for key, value in values.items() if value} for values in last))

    def released(self, since_ms: int) -> list[dict[str, Any]]:
        """Return the messages by which bundles began to leave their brokers."""
        return [
            message
            for message in self.messages()[_OWNERSHIP]
            if message["publish_time_ms"] >= since_ms and message["value"] and message["value"]["state"] == "Releasing"
        ]


@contextmanager
def listening(service_url: str, path: Path) -> Iterator[Heard]:
    """Listen until the end of the block."""
    with path.open("w") as out:
        child = subprocess.Popen([sys.executable, __file__, service_url], stdin=subprocess.PIPE, stdout=out)
    try:
        yield Heard(path)
    finally:
        child.kill()
        child.communicate(timeout=30)


def _main() -> None:
    import pulsar  # noqa: PLC0415 - only this process needs it

    quiet = logging.getLogger("pulsar.client.of.tests")
    quiet.setLevel(logging.CRITICAL)
    client = pulsar.Client(sys.argv[1], logger=quiet)

    def heard(reader: Any, message: Any) -> None:
        text = message.data().decode()
        said = {
            "topic": reader.topic(),
            "key": message.partition_key(),
            "publish_time_ms": message.publish_timestamp(),
            "value": json.loads(text) if text else "",
        }
        print(json.dumps(said), flush=True)  # noqa: T201 - what the parent reads

    for topic, start in (
        (_LOADS, pulsar.MessageId.latest),
        (_TOP_BUNDLES, pulsar.MessageId.latest),
        (_OWNERSHIP, pulsar.MessageId.earliest),
    ):
        client.create_reader(topic, start, reader_listener=heard)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main()
