"""The real `pulsar-client`, which reads a topic as an operator does."""

import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.launch import HERE, classpath, start_java

_MAIN = "org.apache.pulsar.client.cli.PulsarClientTool"


def consumed(service_url: str, topic: str, folder: Path, keys: Sequence[str], seconds: float) -> str:
    """Return what `pulsar-client consume -s planner -n 0` of a topic prints until it has a message of each key.

    Args:
        service_url: Binary service of a broker or proxy.
        topic: The topic.
        folder: A folder to be made for its configuration and what it prints.
        keys: Keys of which it waits for a message: brokers report when they please.
        seconds: How long it runs at most.
    """
    folder.mkdir(parents=True)
    conf = folder / "client.conf"
    conf.write_text(f"brokerServiceUrl={service_url}\n")
    paths = classpath(folder, HERE / "tools")
    process = start_java(paths, folder, _MAIN, str(conf), "consume", "-s", "planner", "-n", "0", topic)
    printed = folder / "log.txt"
    until = time.monotonic() + seconds
    try:
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.5)
            said = printed.read_text(errors="replace")
            if all(f"key:[{key}]" in said for key in keys):
                time.sleep(1)  # the last line may be half written
                break
    finally:
        process.kill()
        process.wait(timeout=30)
    return printed.read_text(errors="replace")
