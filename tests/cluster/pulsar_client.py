"""The real `pulsar-client`, which reads a topic as an operator does."""

import time
from pathlib import Path

from tests.cluster.launch import HERE, classpath, start_java

_MAIN = "org.apache.pulsar.client.cli.PulsarClientTool"


def consumed(service_url: str, topic: str, folder: Path, seconds: float) -> str:
    """Return what `pulsar-client consume -s planner -n 0` of a topic prints in some seconds.

    Args:
        service_url: Binary service of a broker or proxy.
        topic: The topic.
        folder: A folder to be made for its configuration and what it prints.
        seconds: How long it runs after its first message, or twice as long without one.
    """
    folder.mkdir(parents=True)
    conf = folder / "client.conf"
    conf.write_text(f"brokerServiceUrl={service_url}\n")
    paths = classpath(folder, HERE / "tools")
    process = start_java(paths, folder, _MAIN, str(conf), "consume", "-s", "planner", "-n", "0", topic)
    printed = folder / "log.txt"
    until = time.monotonic() + seconds * 2
    try:
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.5)
            if "got message" in printed.read_text(errors="replace"):
                time.sleep(seconds)
                break
    finally:
        process.kill()
        process.wait(timeout=30)
    return printed.read_text(errors="replace")
