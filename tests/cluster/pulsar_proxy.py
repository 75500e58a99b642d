"""A real Pulsar proxy: one address in front of all brokers, which passes each request on to the next of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.cluster.launch import HERE, Cluster, classpath, free_port, start_java, wait_for


@dataclass(frozen=True)
class Proxy:
    """A running proxy.

    Attributes:
        port: Of its web service.
        service_url: Of its binary service.
    """

    port: int
    service_url: str


@contextmanager
def pulsar_proxy(cluster: Cluster, folder: Path) -> Iterator[Proxy]:
    """Run a proxy that listens on every loopback address."""
    folder.mkdir(parents=True)
    port, service_port = free_port("0.0.0.0"), free_port()  # noqa: S104 - 127.0.0.11, … are addresses of it, too
    store = cluster.store_url
    settings = {
        "metadataStoreUrl": store,
        "configurationMetadataStoreUrl": store,
        "clusterName": cluster.name,
        "servicePort": service_port,
        "webServicePort": port,
        "bindAddress": "0.0.0.0",  # noqa: S104
        "advertisedAddress": "127.0.0.1",
        "brokerProxyAllowedTargetPorts": "*",  # by default those that brokers have, which are others here
    }
    conf = folder / "proxy.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    main = "org.apache.pulsar.proxy.server.ProxyServiceStarter"
    process = start_java(classpath(folder, HERE / "proxy"), folder, main, "--config", str(conf))
    try:

        def ready() -> bool:
            assert process.poll() is None, (folder / "log.txt").read_text(errors="replace")[-3000:]
            found = httpx.get(f"http://127.0.0.1:{port}/admin/v2/brokers", trust_env=False, timeout=10)
            return found.is_success and len(found.json()) == len(cluster.brokers)

        wait_for("the proxy is ready", ready, seconds=120)
        yield Proxy(port, f"pulsar://127.0.0.1:{service_port}")
    finally:
        process.kill()
        process.wait(timeout=30)
