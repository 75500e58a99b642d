"""Starts a real Pulsar cluster on loopback addresses: one ZooKeeper with one bookie, and brokers, a process each.

Everything comes from Maven Central. Every process ends with the test run: brokers are killed by the kernel when their
parent dies, and the store ends with its standard input.
"""

import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from planner.spark.java import find_java
from tests.cluster.admin import Admin, AdminError

HERE = Path(__file__).parent
CLUSTER = "planner"
STAND_INS = {"4.0.8": {"pulsar-opentelemetry": "4.0.7"}}
"""By release, modules that were not published with it, and the version that stands in for them."""
READY_S = 240.0
_BALLAST = "direct-mib.txt"
_SOME_TOPIC = "persistent://public/default/ready"

_HEAP = ("-Xms128m", "-Xmx384m")
_QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true")
_OPENED = tuple(
    f"--add-opens={package}=ALL-UNNAMED"
    for package in (
        "java.base/java.io",
        "java.base/java.lang",
        "java.base/java.nio",
        "java.base/java.util.zip",
        "java.base/jdk.internal.misc",
        "java.base/jdk.internal.platform",
        "java.base/sun.net",
        "java.base/sun.nio.ch",
        "java.management/sun.management",
        "jdk.management/com.sun.management.internal",
    )
)

BASE_SETTINGS: Mapping[str, object] = {
    # One bookie.
    "managedLedgerDefaultEnsembleSize": 1,
    "managedLedgerDefaultWriteQuorum": 1,
    "managedLedgerDefaultAckQuorum": 1,
    # Small.
    "numIOThreads": 2,
    "numExecutorThreadPoolSize": 2,
    "numHttpServerThreads": 16,
    "managedLedgerCacheSizeMB": 32,
    "functionsWorkerEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    # Soon: statistics and reports every few seconds, cycles every minute, which is the least there is.
    "statsUpdateFrequencyInSecs": 5,
    "statsUpdateInitialDelayInSecs": 5,
    "loadBalancerReportUpdateMinIntervalMillis": 5000,
    "loadBalancerReportUpdateMaxIntervalMinutes": 1,
    "loadBalancerReportUpdateThresholdPercentage": 0,
    "loadBalancerHostUsageCheckIntervalMinutes": 1,
    "loadBalancerResourceQuotaUpdateIntervalMinutes": 1,
    "loadBalancerSheddingIntervalMinutes": 1,
    "loadBalancerSplitIntervalMinutes": 1,
    # Nothing moves or splits before a test says so.
    "loadBalancerEnabled": "true",
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    "loadBalancerAutoUnloadSplitBundlesEnabled": "false",
    # The loopback interface has no speed of its own, and is no NIC unless named.
    "loadBalancerOverrideBrokerNics": "lo",
    "loadBalancerOverrideBrokerNicSpeedGbps": 10,
    "brokerDeleteInactiveTopicsEnabled": "false",
    "allowAutoTopicCreation": "true",
}


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, condition: Any, *, seconds: float, every: float = 0.5) -> Any:
    """Return the first true value of a function.

    Raises:
        AssertionError: There is none in time.
    """
    last: Exception | None = None
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if value := condition():
                return value
            last = None
        except (OSError, httpx.HTTPError, AdminError) as error:
            last = error
        time.sleep(every)
    raise AssertionError(f"{what}: not within {seconds:g} s" + (f" ({last})" if last else ""))


def classpath(folder: Path, project: Path = HERE, release: str = "") -> str:
    """Return the class path of a broker or of another project, downloaded by Maven where it is not there yet.

    Args:
        folder: Where it is written down.
        project: Folder of the project.
        release: Of the brokers; empty for that of the project.
    """
    if not shutil.which("mvn"):
        pytest.fail("Maven is needed for the tests of a real cluster: install `maven`, or leave `-m cluster` out.")
    listed = folder / f"{project.name}{release}.txt"
    versions = {"release": release, **STAND_INS.get(release, {})} if release else {}
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listed}", *(f"-D{k}={v}" for k, v in versions.items())]
    subprocess.run(["mvn", "-q", "-B", "-f", str(project / "pom.xml"), *goal], check=True, timeout=900)
    return listed.read_text().strip()


def _tied(command: list[str]) -> list[str]:
    """Let a command die with its parent, where the system can."""
    tie = shutil.which("setpriv")
    return [tie, "--pdeathsig", "KILL", *command] if tie else command


@dataclass
class Broker:
    """One broker process.

    Attributes:
        id: Broker id, host:port.
        url: Address of its web service.
        service_url: Address of its binary service.
        folder: Where its configuration and its log are.
        command: What starts it.
        process: The process.
    """

    id: str
    url: str
    service_url: str
    folder: Path
    command: Sequence[str]
    process: "subprocess.Popen[bytes]"

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")

    def stop(self) -> None:
        """End the process at once, as a crash would."""
        self.process.kill()
        self.process.wait(timeout=30)

    def start(self) -> None:
        """Start it again where it was; its log goes on."""
        self.process = _run(self.command, self.folder)

    def carry(self, mib: int) -> None:
        """Let a broker that decides quickly have so much more direct memory in use, in MiB."""
        (self.folder / _BALLAST).write_text(str(mib))


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        name: Its name.
        brokers: Its brokers.
        store: The process with ZooKeeper and the bookie.
        store_url: URL of the metadata store.
        token: Token of a superuser; empty without authentication.
        tls: How certificates are checked; None without TLS.
    """

    name: str
    brokers: list[Broker]
    store: "subprocess.Popen[str]"
    store_url: str
    token: str = ""
    tls: ssl.SSLContext | None = None

    def admin(self, broker: int = 0) -> Admin:
        return self.admin_of(self.brokers[broker])

    def admin_of(self, broker: Broker) -> Admin:
        return Admin(broker.url, self.token, self.tls)

    def broker(self, identity: str) -> Broker:
        return next(broker for broker in self.brokers if broker.id == identity)

    @property
    def alive(self) -> list[Broker]:
        return [broker for broker in self.brokers if broker.process.poll() is None]

    @property
    def leader(self) -> Broker:
        """The broker that decides, of either load manager."""
        return self.broker(self.admin_of(self.alive[0]).leader())

    def owners(self) -> dict[str, str]:
        """Return the owner of each bundle, by each broker's own word."""
        owners: dict[str, str] = {}
        for broker in self.alive:
            owners |= dict.fromkeys(self.admin_of(broker).owned(self.name, broker.id), broker.id)
        return owners

    def metadata(self, *paths: str) -> list[dict[str, Any]]:
        """Return the nodes at and below some paths of the metadata store, as a raw capture holds them."""
        client = KazooClient(self.store_url.removeprefix("zk:"), read_only=True)
        client.start(timeout=15)
        try:
            return [node for path in paths for node in _nodes(client, path)]
        finally:
            client.stop()
            client.close()


def _nodes(client: KazooClient, path: str) -> Iterator[dict[str, Any]]:
    try:
        data, stat = client.get(path)
        children = sorted(client.get_children(path))
    except NoNodeError:  # never there, or removed meanwhile
        return
    if data:
        yield {"path": path, "mtime": stat.mtime, "data": data.decode()}
    for child in children:
        yield from _nodes(client, f"{path}/{child}")


def _start_store(java: str, paths: str, folder: Path, ports: tuple[int, int], web: str, service: str) -> Any:
    command = [
        *(java, "-Xmx256m", *_QUICK_START, *_OPENED, f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}"),
        *("-cp", paths, str(HERE / "LocalStore.java"), *map(str, ports), str(folder), CLUSTER, web, service),
    ]
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            _tied(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        )


def _await_store(store: Any, folder: Path) -> None:
    for line in store.stdout:
        if line.strip() == "ready":
            return
    raise AssertionError(f"The store did not start: {(folder / 'log.txt').read_text()[-3000:]}")


def _set_up(java: str, paths: str, folder: Path, store_url: str, ledgers: str) -> None:
    """Write what a new cluster needs into a metadata store, as an operator does."""
    command = [java, *_QUICK_START, *_OPENED, f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}", "-cp", paths]
    command += ["org.apache.pulsar.PulsarClusterMetadataSetup", "--cluster", CLUSTER]
    command += ["--metadata-store", store_url, "--configuration-metadata-store", store_url]
    command += ["--existing-bk-metadata-service-uri", ledgers]
    command += ["--web-service-url", "http://127.0.0.1:8080", "--broker-service-url", "pulsar://127.0.0.1:6650"]
    with (folder / "set-up.txt").open("wb") as log:
        done = subprocess.run(command, stdout=log, stderr=log, timeout=300, check=False)
    assert done.returncode == 0, (folder / "set-up.txt").read_text(errors="replace")[-3000:]


def _run(command: Sequence[str], folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)


def start_java(paths: str, folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start a small Java program that ends with the test run; its log goes into the folder."""
    java = str(find_java().home / "bin" / "java")
    options = "-Xmx256m", *_QUICK_START, *_OPENED, f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}"
    return _run(_tied([java, *options, "-cp", paths, *arguments]), folder)


def _start_broker(
    java: str,
    paths: str,
    folder: Path,
    host: str,
    direct_mib: int,
    settings: Mapping[str, object],
    *,
    tls: bool,
    interval_ms: int,
) -> Broker:
    folder.mkdir()
    web, service = free_port(host), free_port(host)
    own = {
        "clusterName": CLUSTER,
        "advertisedAddress": host,
        "bindAddress": host,
        "webServicePort": "" if tls else web,
        "brokerServicePort": "" if tls else service,
        "webServicePortTls": web if tls else "",
        "brokerServicePortTls": service if tls else "",
        **settings,
    }
    conf = folder / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
    command = [
        *(
            java,
            *_HEAP,
            f"-XX:MaxDirectMemorySize={direct_mib}m",
            *_QUICK_START,
            *_OPENED,
            "-Dio.netty.tryReflectionSetAccessible=true",
        ),
        *("-Dpulsar.allocator.exit_on_oom=true", f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}"),
        *("-cp", paths),
    ]
    if interval_ms:
        command += [str(HERE / "QuickBroker.java"), str(conf), str(interval_ms), str(folder / _BALLAST)]
    else:
        command += ["org.apache.pulsar.PulsarBrokerStarter", "--broker-conf", str(conf)]
    command = _tied(command)
    end = "s" if tls else ""
    service_url = f"pulsar{'+ssl' if tls else ''}://{host}:{service}"
    return Broker(f"{host}:{web}", f"http{end}://{host}:{web}", service_url, folder, command, _run(command, folder))


@contextlib.contextmanager
def start_cluster(
    paths: str,
    folder: Path,
    settings: Mapping[str, object],
    *,
    direct_mib: Sequence[int] = (256, 256, 256),
    token: str = "",
    tls: ssl.SSLContext | None = None,
    interval_ms: int = 0,
    etcd_url: str = "",
) -> Iterator[Cluster]:
    """Start a cluster, wait until every broker answers, and stop it in the end, whatever happens.

    Args:
        paths: Class path.
        folder: A folder to be made for configuration, data and logs.
        settings: What differs from `BASE_SETTINGS`, under the names of `broker.conf`.
        direct_mib: Direct memory that each broker may use. All use much the same, so that one with little is the most
            loaded one where direct memory counts, at once and for certain.
        token: Token of a superuser, when the settings ask for one.
        tls: How certificates are checked; brokers have TLS ports only then, and the settings name the certificates.
        interval_ms: Time from one load-balancer cycle to the next, where it is less than a minute (`QuickBroker.java`).
        etcd_url: Address of an etcd that holds the metadata of brokers; that of the bookie stays in ZooKeeper.
    """
    java = str(find_java().home / "bin" / "java")
    ports = free_port(), free_port()
    store_url = f"etcd:{etcd_url}" if etcd_url else f"zk:127.0.0.1:{ports[0]}"
    ledgers = f"zk+null://127.0.0.1:{ports[0]}/ledgers"
    settings = {**settings, "bookkeeperMetadataServiceUri": ledgers} if etcd_url else settings
    common = {**BASE_SETTINGS, "metadataStoreUrl": store_url, "configurationMetadataStoreUrl": store_url, **settings}
    store_folder = folder / "store"
    store_folder.mkdir(parents=True)
    store = _start_store(java, paths, store_folder, ports, "http://127.0.0.1:8080", "pulsar://127.0.0.1:6650")
    started: list[Broker] = []
    try:
        _await_store(store, store_folder)
        if etcd_url:
            _set_up(java, paths, store_folder, store_url, ledgers)
        for number, mib in enumerate(direct_mib, start=1):
            host = f"127.0.0.{number}"
            place = folder / f"b{number}"
            how: Any = {"tls": tls is not None, "interval_ms": interval_ms}
            started.append(_start_broker(java, paths, place, host, mib, common, **how))
        cluster = Cluster(CLUSTER, started, store, store_url, token, tls)
        _await_brokers(cluster)
        yield cluster
    finally:
        for broker in started:
            broker.process.kill()
        store.kill()
        for broker in started:
            broker.process.wait(timeout=30)
        store.communicate(timeout=30)


def _await_brokers(cluster: Cluster) -> None:
    wanted = sorted(broker.id for broker in cluster.brokers)

    def ready() -> bool:
        dead = next((broker for broker in cluster.brokers if broker.process.poll() is not None), None)
        if dead is not None:
            pytest.fail(f"Broker {dead.id} ended at start:\n{dead.log[-4000:]}")
        admins = [cluster.admin(number) for number in range(len(wanted))]
        return all(sorted(admin.brokers()) == wanted and admin.lookup(_SOME_TOPIC) for admin in admins)

    wait_for(f"{len(wanted)} brokers are ready", ready, seconds=READY_S)
