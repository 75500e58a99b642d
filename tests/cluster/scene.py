"""What goes on in the clusters of the tests: namespaces, their topics, and the traffic on them."""

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from planner.cluster.hashing import topic_hash
from planner.cluster.snapshot import Snapshot
from tests.cluster.admin import Admin
from tests.cluster.launch import Cluster, start_cluster, wait_for
from tests.cluster.raw import raw_capture, snapshot_now
from tests.cluster.secure import SUPERUSER, Keys, make_keys
from tests.cluster.system_topics import Heard, listening
from tests.cluster.traffic import Flow, traffic

NO_CONTENT = 204
_STEADY = 0.6

ORDERS = "acme/orders"
"""Many topics, with subscriptions, in few bundles."""

CALM = "acme/calm"
"""Two topics and more in each bundle, which nothing changes before its one test."""

LONELY = "acme/lonely"
"""One topic with one producer in each bundle, so that one lookup places it."""

SHED = "globex/shed"
"""One topic in each of 16 bundles, all but a few on the first broker; the rates are a tenth apart."""

GROW = "globex/grow"
"""Too many topics in each of two bundles, once a test lowers the limit."""

SCARCE_FIRST_MIB = (64, 512, 1024)
"""Direct memory of the brokers; the first is the most loaded one where direct memory counts, the last the least."""

ONLY_DIRECT_MEMORY: Mapping[str, object] = {
    "loadBalancerDirectMemoryResourceWeight": 1.0,
    "loadBalancerCPUResourceWeight": 0.0,
    "loadBalancerMemoryResourceWeight": 0.0,
    "loadBalancerBandwidthInResourceWeight": 0.0,
    "loadBalancerBandwidthOutResourceWeight": 0.0,
    "loadBalancerHistoryResourcePercentage": 0.0,
}
"""Dynamic settings with which the usage of direct memory alone, as last reported, is the load of a broker."""


@dataclass(frozen=True)
class Scene:
    """A cluster with traffic.

    Attributes:
        cluster: The cluster.
        flows: What goes through which topic.
        heard: System topics of the extensible load manager; None with the modular one.
    """

    cluster: Cluster
    flows: Mapping[str, Flow] = field(repr=False)
    heard: Heard | None = None

    @property
    def admin(self) -> Admin:
        return self.cluster.admin()

    @property
    def namespaces(self) -> list[str]:
        return sorted({topic.partition("://")[2].rpartition("/")[0] for topic in self.flows})

    def raw(self) -> dict[str, bytes]:
        heard = self.heard.content() if self.heard else None
        return raw_capture(self.cluster, self.namespaces, heard)

    def snapshot(self, *more: str) -> Snapshot:
        heard = self.heard.content() if self.heard else None
        return snapshot_now(self.cluster, [*self.namespaces, *more], heard)

    def await_rates(self) -> None:
        """Wait until every topic has statistics of a whole period."""

        def all_flow() -> bool:
            topics = self.snapshot().topics
            rates = dict(zip(topics.name.to_pylist(), topics.msg_rate_in_per_s.tolist(), strict=True))
            return all(rates.get(topic, 0.0) > flow.msg_per_s * _STEADY for topic, flow in self.flows.items())

        wait_for("statistics of every topic", all_flow, seconds=120, every=1.0)

    @contextlib.contextmanager
    def settings(self, values: Mapping[str, object]) -> Iterator[None]:
        """Change dynamic settings until the end of the block, and wait until every broker goes by them."""
        self.admin.set_dynamic(values)
        try:
            wait_for("the settings are in force", lambda: self._in_force(values), seconds=20)
            yield
        finally:
            self.admin.clear_dynamic(list(values))
            wait_for("the old settings are in force", lambda: self._stored() == {}, seconds=20)

    def _stored(self) -> dict[str, str]:
        return dict(self.admin.ask("/brokers/configuration/values"))

    def _in_force(self, values: Mapping[str, object]) -> bool:
        for number in range(len(self.cluster.brokers)):
            running = self.cluster.admin(number).ask("/brokers/configuration/runtime")
            if any(running[name] != written(value) for name, value in values.items()):
                return False
        return True

    def put(self, wanted: Mapping[str, str]) -> None:
        """Unload bundles to where they are wanted, and wait until they are there; broker id by bundle name."""

        def move(name: str) -> None:
            namespace, _, span = name.rpartition("/")
            assert self.admin.unload(namespace, span, wanted[name]) == NO_CONTENT

        def settled() -> bool:
            owners = self.cluster.owners()
            strayed = [name for name, broker in wanted.items() if owners.get(name) not in {None, broker}]
            with ThreadPoolExecutor(max_workers=6) as pool:
                list(pool.map(move, strayed))
            return all(owners.get(name) == broker for name, broker in wanted.items())

        wait_for("the bundles are in place", settled, seconds=180, every=1.0)


def written(value: object) -> str:
    """Write a setting as Pulsar does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def one_in_each_bundle(namespace: str, bundles: int, count: int = 1, domain: str = "persistent") -> list[str]:
    """Return topics, so that each of 2^n equal bundles holds some, bundle by bundle."""
    shift = 33 - bundles.bit_length()
    names = [f"{domain}://{namespace}/topic-{number:03}" for number in range(64 * bundles)]
    return [name for place in range(bundles) for name in [n for n in names if topic_hash(n) >> shift == place][:count]]


def shed_flows() -> dict[str, Flow]:
    """Return the flows of `SHED`, a tenth apart."""
    return {topic: Flow(10.0 * 1.1**rank) for rank, topic in enumerate(one_in_each_bundle(SHED, 16))}


def modular_scene(
    running: contextlib.ExitStack, paths: str, folder: Path, *, interval_ms: int = 0, shift_s: float = 0.0
) -> Scene:
    """Start three brokers with the modular load manager; see `start_cluster`, and `traffic` for the shift."""
    # All bundles are stored then, and not just the busiest.
    settings = {"loadBalancerMaxNumberOfBundlesInBundleLoadReport": 0}
    cluster = running.enter_context(
        start_cluster(paths, folder, settings, direct_mib=SCARCE_FIRST_MIB, interval_ms=interval_ms)
    )
    orders = [f"persistent://{ORDERS}/order-{number:02}" for number in range(40)]
    flows = {topic: Flow(1.5 * 1.07**rank, subscriptions=rank % 3) for rank, topic in enumerate(orders)}
    flows |= {topic: Flow(2.0 ** (rank // 2 + 1)) for rank, topic in enumerate(one_in_each_bundle(CALM, 4, 2))}
    flows |= dict.fromkeys(one_in_each_bundle(LONELY, 4), Flow(5.0))
    flows |= dict.fromkeys(one_in_each_bundle(GROW, 2, 15), Flow(1.0))
    flows |= shed_flows()
    for namespace, bundles in {ORDERS: 4, CALM: 4, LONELY: 4, GROW: 2, SHED: 16}.items():
        cluster.admin().create_namespace(namespace, bundles)
    running.enter_context(traffic(cluster.brokers[0].service_url, flows, shift_s=shift_s))
    scene = Scene(cluster, flows)
    first, second, last = (broker.id for broker in cluster.brokers)
    wanted = {name: second for name in cluster.owners() if name.startswith(f"{ORDERS}/")}
    scene.put(wanted | shed_layout(cluster, first, last))
    scene.await_rates()
    return scene


def shedding_scene(
    running: contextlib.ExitStack, paths: str, folder: Path, settings: Mapping[str, object], *, interval_ms: int = 0
) -> Scene:
    """Start three brokers with nothing but `SHED`; see `start_cluster`."""
    cluster = running.enter_context(
        start_cluster(paths, folder, settings, direct_mib=SCARCE_FIRST_MIB, interval_ms=interval_ms)
    )
    cluster.admin().create_namespace(SHED, 16)
    heard = None
    if cluster.metadata("/loadbalance/extension"):
        heard = running.enter_context(listening(cluster.brokers[0].service_url, folder / "heard.jsonl"))
    flows = shed_flows()
    running.enter_context(traffic(cluster.brokers[0].service_url, flows))
    scene = Scene(cluster, flows, heard)
    scene.put(shed_layout(cluster, cluster.brokers[0].id, cluster.brokers[-1].id))
    scene.await_rates()
    return scene


def shed_layout(cluster: Cluster, first: str, last: str) -> dict[str, str]:
    """Return a layout with all bundles of `SHED` on the first broker, but three small ones on the last."""
    names = sorted(name for name in cluster.owners() if name.startswith(f"{SHED}/"))
    assert len(names) == 16
    return {name: last if rank < 3 else first for rank, name in enumerate(names)}


@dataclass(frozen=True)
class SecureScene:
    """A cluster that wants TLS and a token or client certificate.

    Attributes:
        cluster: The cluster.
        keys: What is needed to get in.
    """

    cluster: Cluster
    keys: Keys


def secure_scene(running: contextlib.ExitStack, paths: str, folder: Path) -> SecureScene:
    """Start one broker with TLS ports alone."""
    keys = make_keys(folder / "keys")
    return SecureScene(
        running.enter_context(
            start_cluster(
                paths,
                folder / "cluster",
                keys.settings(),
                direct_mib=(256,),
                token=keys.token(SUPERUSER),
                tls=keys.tls(),
            )
        ),
        keys,
    )
