"""Splits and unloads that a person asks a real modular cluster for end as the planner says."""

import json
from dataclasses import dataclass

import pytest

from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import parse_bundle
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.manual import SplitCommand, Verdict, answer
from planner.pulsar.splitting.registry import split_algorithm
from planner.pulsar.splitting.request import namespace_boundaries, split_request
from tests.cluster.launch import wait_for
from tests.cluster.scene import CALM, LONELY, NO_CONTENT, ORDERS, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

FLOW = "flow_or_qps_equally_divide"


@dataclass(frozen=True)
class Place:
    """A namespace of the cluster."""

    scene: Scene
    name: str

    def snapshot(self) -> Snapshot:
        return self.scene.snapshot(self.name)

    def boundaries(self) -> tuple[int, ...]:
        return self.scene.admin.boundaries(self.name)

    def busiest(self, snapshot: Snapshot) -> int:
        """Return the position of the bundle with the most topics."""
        mine = [row for row, name in enumerate(snapshot.bundle_names) if name.startswith(f"{self.name}/")]
        return max(mine, key=lambda row: len(snapshot.topics.of_bundle(row)))


def range_of(snapshot: Snapshot, row: int) -> str:
    return snapshot.bundle_names[row].rpartition("/")[2]


@pytest.fixture
def orders(modular: Scene) -> Place:
    return Place(modular, ORDERS)


def check_split(place: Place, command: SplitCommand, snapshot: Snapshot) -> Verdict:
    """Ask the planner, then Pulsar, and compare the status and the boundaries afterwards."""
    before = place.boundaries()
    assert namespace_boundaries(snapshot, snapshot.namespaces.index(place.name)) == before
    expected = answer(snapshot, command, snapshot.settings)
    status = place.scene.admin.split(
        place.name, command.bundle, algorithm=command.algorithm, positions=command.positions
    )
    assert status == expected.status, expected
    assert place.boundaries() == expected.namespace_boundaries, expected
    assert (expected.namespace_boundaries != before) is (expected.verdict is Verdict.SPLIT)
    return expected.verdict


@pytest.mark.parametrize("algorithm", ["", "range_equally_divide", "topic_count_equally_divide"])
def test_algorithm(orders: Place, algorithm: str) -> None:
    snapshot = orders.snapshot()
    bundle = range_of(snapshot, orders.busiest(snapshot))
    assert check_split(orders, SplitCommand(orders.name, bundle, algorithm), snapshot) is Verdict.SPLIT


def test_specified_positions(orders: Place) -> None:
    """Two inside make three children, ends and strangers are dropped."""
    snapshot = orders.snapshot()
    row = orders.busiest(snapshot)
    _, low, high = parse_bundle(snapshot.bundle_names[row])
    step = (high - low) // 3
    positions = (high, low + 2 * step, low, low + step, (high + 5) % 2**32)
    command = SplitCommand(orders.name, range_of(snapshot, row), "specified_positions_divide", positions)
    assert check_split(orders, command, snapshot) is Verdict.SPLIT


@pytest.mark.parametrize("named", [True, False])
def test_flow_or_qps(orders: Place, named: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A limit is chosen whose answer stays the same when rates are a part off, as rates never stand still."""
    snapshot = orders.snapshot()
    row = orders.busiest(snapshot)
    request = split_request(snapshot, row)
    algorithm = split_algorithm(FLOW)

    def cuts(limit: float) -> tuple[int, ...] | None:
        return algorithm.boundaries(
            request, snapshot.settings.changed(loadBalancerNamespaceBundleMaxMsgRate=round(limit))
        ).boundaries

    steady = next(
        found
        for part in (0.3, 0.2, 0.1)
        if (found := [r for r in range(5, 400) if cuts(r) and cuts(r) == cuts(r * (1 - part)) == cuts(r * (1 + part))])
    )
    limit = steady[len(steady) // 2]
    settings = {"loadBalancerNamespaceBundleMaxMsgRate": limit, "defaultNamespaceBundleSplitAlgorithm": FLOW}
    with orders.scene.settings(settings):
        command = SplitCommand(ORDERS, range_of(snapshot, row), FLOW if named else "")
        assert check_split(orders, command, orders.snapshot()) is Verdict.SPLIT


def test_largest(orders: Place) -> None:
    command = SplitCommand(orders.name, "LARGEST", "topic_count_equally_divide")
    assert check_split(orders, command, orders.snapshot()) is Verdict.SPLIT


def test_refusals(orders: Place) -> None:
    snapshot = orders.snapshot()
    bundle = range_of(snapshot, orders.busiest(snapshot))
    for command in (
        SplitCommand(orders.name, bundle, "unheard_of"),
        SplitCommand(orders.name, bundle, "specified_positions_divide"),
        SplitCommand(orders.name, bundle, FLOW),
        SplitCommand(orders.name, "0x00000001_0x00000002", "range_equally_divide"),
        SplitCommand(orders.name, "everything", "range_equally_divide"),
    ):
        assert check_split(orders, command, snapshot) is Verdict.REFUSED, command


def test_no_boundary(orders: Place) -> None:
    """Success is reported, and nothing changes. Pulsar itself adds a topic of events to a namespace in use."""
    quiet = Place(orders.scene, "acme/quiet")
    events = f"persistent://{quiet.name}/__change_events"
    half = 1 - (topic_hash(events) >> 31)
    names = (f"persistent://{quiet.name}/only-{number}" for number in range(20))
    only = next(name for name in names if topic_hash(name) >> 31 == half)
    admin = orders.scene.admin
    admin.create_namespace(quiet.name, 2)
    admin.create_topic(only)
    wait_for("the topic of events", lambda: events in quiet.snapshot().topics.name.to_pylist(), seconds=30)
    bundle = ("0x00000000_0x80000000", "0x80000000_0xffffffff")[half]
    command = SplitCommand(quiet.name, bundle, "topic_count_equally_divide")
    assert check_split(quiet, command, quiet.snapshot()) is Verdict.UNCHANGED


def test_unload_lands_at_its_destination(orders: Place) -> None:
    """One topic and one producer, since the destination is good for one lookup.

    When several clients come back at once, the leader places the bundle anew for the second that asks before the
    destination has it, and whoever is first gets it: about one in forty unloads of bundles with three topics here.
    """
    lonely = Place(orders.scene, LONELY)
    snapshot = lonely.snapshot()
    row = next(
        row
        for row, name in enumerate(snapshot.bundle_names)
        if name.startswith(f"{LONELY}/") and len(snapshot.topics.of_bundle(row)) == 1
    )
    name = snapshot.bundle_names[row]
    owner = orders.scene.cluster.owners()[name]
    assert owner == snapshot.brokers.name[int(snapshot.bundles.owner[row])]
    for destination in (broker.id for broker in orders.scene.cluster.brokers if broker.id != owner):
        assert orders.scene.admin.unload(LONELY, range_of(snapshot, row), destination) == NO_CONTENT
        landed = wait_for("an owner", lambda: orders.scene.cluster.owners().get(name), seconds=30)
        assert (name, owner, landed) == (name, owner, destination)


def test_hot(orders: Place) -> None:
    """Pulsar goes by the averages in the metadata store, which the leader writes once a minute here."""
    calm = Place(orders.scene, CALM)

    def stored() -> bool:
        nodes = orders.scene.cluster.metadata(f"/loadbalance/bundle-data/{CALM}")
        return [json.loads(node["data"])["topics"] >= 2 for node in nodes] == [True] * 4

    wait_for("averages in the metadata store", stored, seconds=90)
    snapshot = calm.snapshot()
    mine = [row for row, name in enumerate(snapshot.bundle_names) if name.startswith(f"{CALM}/")]
    assert not snapshot.bundles.averages_estimated[mine].any()
    command = SplitCommand(CALM, "HOT", "topic_count_equally_divide")
    assert check_split(calm, command, snapshot) is Verdict.SPLIT
