"""Splits and unloads that a person asks a real modular cluster for end as the planner says."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from planner.model.hashing import topic_hash
from planner.model.ranges import format_range, parse_bundle
from planner.model.snapshot import Snapshot
from planner.splitting.manual import SplitCommand, Verdict, answer
from planner.splitting.registry import split_algorithm
from planner.splitting.request import namespace_boundaries, split_request
from tests.cluster.launch import Cluster, wait_for
from tests.cluster.raw import snapshot_now
from tests.cluster.traffic import Flow, traffic

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

CALM = "acme/calm"
LONELY = "acme/lonely"
FLOW = "flow_or_qps_equally_divide"


@dataclass(frozen=True)
class Busy:
    """A namespace with skewed traffic on all of its topics."""

    cluster: Cluster
    name: str

    def snapshot(self) -> Snapshot:
        return snapshot_now(self.cluster, [self.name])

    def boundaries(self) -> tuple[int, ...]:
        return self.cluster.admin().boundaries(self.name)

    def busiest(self, snapshot: Snapshot) -> int:
        """Return the position of the bundle with the most topics."""
        mine = [row for row, name in enumerate(snapshot.bundles.namespace) if snapshot.namespaces[name] == self.name]
        return max(mine, key=lambda row: len(snapshot.topics.of_bundle(row)))

    def range_of(self, snapshot: Snapshot, row: int) -> str:
        return format_range(int(snapshot.bundles.low[row]), int(snapshot.bundles.high[row]))


@pytest.fixture(scope="module")
def busy(modular: Cluster) -> Iterator[Busy]:
    namespace = Busy(modular, "acme/orders")
    modular.admin().create_namespace(namespace.name, 4)
    topics = [f"persistent://{namespace.name}/order-{number:02}" for number in range(40)]
    flows = {topic: Flow(4.0 * 1.07**rank, subscriptions=rank % 3) for rank, topic in enumerate(topics)}
    for name in (CALM, LONELY):
        modular.admin().create_namespace(name, 4)
    flows |= {topic: Flow(2.0 ** (rank // 2 + 1)) for rank, topic in enumerate(in_each_quarter(CALM, 2))}
    flows |= dict.fromkeys(in_each_quarter(LONELY, 1), Flow(10.0))
    with traffic(modular.brokers[0].service_url, flows):

        def all_flow() -> bool:
            rates = dict(zip(*_rates(snapshot_now(modular, [namespace.name, CALM, LONELY])), strict=True))
            return all(rates.get(topic, 0.0) > flow.msg_per_s / 2 for topic, flow in flows.items())

        wait_for("statistics of every topic", all_flow, seconds=90)
        yield namespace


def in_each_quarter(namespace: str, count: int) -> list[str]:
    names = [f"persistent://{namespace}/topic-{number:02}" for number in range(60)]
    return [name for quarter in range(4) for name in [n for n in names if topic_hash(n) >> 30 == quarter][:count]]


def _rates(snapshot: Snapshot) -> tuple[list[str], list[float]]:
    return snapshot.topics.name.to_pylist(), snapshot.topics.msg_rate_in_per_s.tolist()


def check_split(busy: Busy, command: SplitCommand, snapshot: Snapshot) -> Verdict:
    """Ask the planner, then Pulsar, and compare the status and the boundaries afterwards."""
    before = busy.boundaries()
    assert namespace_boundaries(snapshot, snapshot.namespaces.index(busy.name)) == before
    expected = answer(snapshot, command, snapshot.settings)
    status = busy.cluster.admin().split(
        busy.name, command.bundle, algorithm=command.algorithm, positions=command.positions
    )
    assert status == expected.status, expected
    assert busy.boundaries() == expected.namespace_boundaries, expected
    assert (expected.namespace_boundaries != before) is (expected.verdict is Verdict.SPLIT)
    return expected.verdict


@pytest.mark.parametrize("algorithm", ["", "range_equally_divide", "topic_count_equally_divide"])
def test_algorithm(busy: Busy, algorithm: str) -> None:
    snapshot = busy.snapshot()
    bundle = busy.range_of(snapshot, busy.busiest(snapshot))
    assert check_split(busy, SplitCommand(busy.name, bundle, algorithm), snapshot) is Verdict.SPLIT


def test_specified_positions(busy: Busy) -> None:
    """Two inside make three children, ends and strangers are dropped."""
    snapshot = busy.snapshot()
    row = busy.busiest(snapshot)
    _, low, high = parse_bundle(snapshot.bundle_names[row])
    step = (high - low) // 3
    positions = (high, low + 2 * step, low, low + step, (high + 5) % 2**32)
    command = SplitCommand(busy.name, busy.range_of(snapshot, row), "specified_positions_divide", positions)
    assert check_split(busy, command, snapshot) is Verdict.SPLIT


@pytest.mark.parametrize("named", [True, False])
def test_flow_or_qps(busy: Busy, named: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A limit is chosen whose answer stays the same when rates are a tenth off, as rates never stand still."""
    snapshot = busy.snapshot()
    row = busy.busiest(snapshot)
    request = split_request(snapshot, row)
    algorithm = split_algorithm(FLOW)

    def cuts(limit: float) -> tuple[int, ...] | None:
        return algorithm.boundaries(
            request, snapshot.settings.changed(loadBalancerNamespaceBundleMaxMsgRate=round(limit))
        ).boundaries

    limits = [r for r in range(20, 400, 5) if cuts(r) and cuts(r) == cuts(r * 0.9) == cuts(r * 1.1)]
    assert limits
    settings = {"loadBalancerNamespaceBundleMaxMsgRate": limits[-1], "defaultNamespaceBundleSplitAlgorithm": FLOW}
    admin = busy.cluster.admin()
    admin.set_dynamic(settings)
    try:
        wait_for("the settings are in force", lambda: in_force(busy.cluster, settings), seconds=15)
        command = SplitCommand(busy.name, busy.range_of(snapshot, row), FLOW if named else "")
        assert check_split(busy, command, busy.snapshot()) is Verdict.SPLIT
    finally:
        admin.clear_dynamic(list(settings))
        wait_for("the settings are gone", lambda: not in_force(busy.cluster, settings), seconds=15)


def in_force(cluster: Cluster, settings: dict[str, object]) -> bool:
    """Say whether every broker goes by some settings."""
    running = [cluster.admin(number).ask("/brokers/configuration/runtime") for number in range(len(cluster.brokers))]
    return all(values[name] == str(value) for values in running for name, value in settings.items())


def test_largest(busy: Busy) -> None:
    command = SplitCommand(busy.name, "LARGEST", "topic_count_equally_divide")
    assert check_split(busy, command, busy.snapshot()) is Verdict.SPLIT


def test_refusals(busy: Busy) -> None:
    snapshot = busy.snapshot()
    bundle = busy.range_of(snapshot, busy.busiest(snapshot))
    for command in (
        SplitCommand(busy.name, bundle, "unheard_of"),
        SplitCommand(busy.name, bundle, "specified_positions_divide"),
        SplitCommand(busy.name, bundle, FLOW),
        SplitCommand(busy.name, "0x00000001_0x00000002", "range_equally_divide"),
        SplitCommand(busy.name, "everything", "range_equally_divide"),
    ):
        assert check_split(busy, command, snapshot) is Verdict.REFUSED, command


def test_no_boundary(busy: Busy) -> None:
    """Success is reported, and nothing changes. Pulsar itself adds a topic of events to a namespace in use."""
    quiet = Busy(busy.cluster, "acme/quiet")
    events = f"persistent://{quiet.name}/__change_events"
    half = 1 - (topic_hash(events) >> 31)
    names = (f"persistent://{quiet.name}/only-{number}" for number in range(20))
    only = next(name for name in names if topic_hash(name) >> 31 == half)
    admin = busy.cluster.admin()
    admin.create_namespace(quiet.name, 2)
    admin.create_topic(only)
    wait_for("the topic of events", lambda: events in quiet.snapshot().topics.name.to_pylist(), seconds=30)
    bundle = ("0x00000000_0x80000000", "0x80000000_0xffffffff")[half]
    command = SplitCommand(quiet.name, bundle, "topic_count_equally_divide")
    assert check_split(quiet, command, quiet.snapshot()) is Verdict.UNCHANGED


def test_unload_lands_at_its_destination(busy: Busy) -> None:
    """One topic and one producer, since the destination is good for one lookup.

    When several clients come back at once, the leader places the bundle anew for the second that asks before the
    destination has it, and whoever is first gets it: about one in forty unloads of bundles with three topics here.
    """
    lonely = Busy(busy.cluster, LONELY)
    snapshot = lonely.snapshot()
    row = next(
        row
        for row, name in enumerate(snapshot.bundle_names)
        if name.startswith(f"{LONELY}/") and len(snapshot.topics.of_bundle(row)) == 1
    )
    name = snapshot.bundle_names[row]
    owner = busy.cluster.owners()[name]
    assert owner == snapshot.brokers.name[int(snapshot.bundles.owner[row])]
    for destination in (broker.id for broker in busy.cluster.brokers if broker.id != owner):
        assert busy.cluster.admin().unload(LONELY, lonely.range_of(snapshot, row), destination) == 204
        landed = wait_for("an owner", lambda: busy.cluster.owners().get(name), seconds=30)
        assert (name, owner, landed) == (name, owner, destination)


def test_hot(busy: Busy) -> None:
    """Pulsar goes by the averages in the metadata store, which the leader writes once a minute here."""
    calm = Busy(busy.cluster, CALM)

    def stored() -> bool:
        nodes = busy.cluster.metadata(f"/loadbalance/bundle-data/{CALM}")
        return [json.loads(node["data"])["topics"] >= 2 for node in nodes] == [True] * 4

    wait_for("averages in the metadata store", stored, seconds=90)
    snapshot = calm.snapshot()
    mine = [row for row, name in enumerate(snapshot.bundle_names) if name.startswith(f"{CALM}/")]
    assert not snapshot.bundles.averages_estimated[mine].any()
    command = SplitCommand(CALM, "HOT", "topic_count_equally_divide")
    assert check_split(calm, command, snapshot) is Verdict.SPLIT
