"""Splits and unloads that a person asks a real extensible load manager for end as the planner says."""

import pytest

from planner.cluster.ranges import parse_bundle
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.manual import SplitCommand, Verdict, answer
from tests.cluster.launch import wait_for
from tests.cluster.scene import NO_CONTENT, SHED, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SPARE = "globex/spare"
"""Topics without traffic, so that these changes leave the shedding test alone."""


@pytest.fixture
def spare(extensible: Scene) -> Scene:
    if SPARE not in extensible.admin.ask("/namespaces/globex"):
        extensible.admin.create_namespace(SPARE, 4)
        for number in range(24):
            topic = f"persistent://{SPARE}/spare-{number:02}"
            extensible.admin.create_topic(topic)
            extensible.admin.lookup(topic)
        events = f"persistent://{SPARE}/__change_events"
        wait_for("topics", lambda: events in snapshot_of(extensible).topics.name.to_pylist(), seconds=60)
    return extensible


def snapshot_of(scene: Scene) -> Snapshot:
    return scene.snapshot(SPARE)


def first_bundle(snapshot: Snapshot) -> str:
    """Return the first bundle of `SPARE` with four topics or more."""
    return next(
        name
        for row, name in enumerate(snapshot.bundle_names)
        if name.startswith(f"{SPARE}/") and len(snapshot.topics.of_bundle(row)) >= 4
    )


@pytest.mark.parametrize(
    ("algorithm", "parts", "verdict"),
    [
        ("", (), Verdict.SPLIT),
        ("topic_count_equally_divide", (), Verdict.SPLIT),
        ("specified_positions_divide", (2,), Verdict.SPLIT),
        ("specified_positions_divide", (3, 3 / 2), Verdict.REFUSED),
        ("flow_or_qps_equally_divide", (), Verdict.REFUSED),
        ("unheard_of", (), Verdict.REFUSED),
    ],
)
def test_manual_split(spare: Scene, algorithm: str, parts: tuple[float, ...], verdict: Verdict) -> None:
    """Cuts are given as parts of the bundle; two make three children, which this load manager refuses."""
    snapshot = snapshot_of(spare)
    name = first_bundle(snapshot)
    _, low, high = parse_bundle(name)
    positions = tuple(low + int((high - low) / part) for part in parts) or None
    command = SplitCommand(SPARE, name.rpartition("/")[2], algorithm, positions)
    expected = answer(snapshot, command, snapshot.settings)
    status = spare.admin.split(SPARE, command.bundle, algorithm=algorithm, positions=positions)
    assert (status, expected.verdict) == (expected.status, verdict)
    wait_for(
        f"the boundaries {expected.namespace_boundaries}",
        lambda: spare.admin.boundaries(SPARE) == expected.namespace_boundaries,
        seconds=20,
    )
    wanted = dict.fromkeys(expected.children, expected.owner)
    wait_for("children at their owner", lambda: wanted.items() <= spare.cluster.owners().items(), seconds=20)


def test_unload_lands_at_its_destination(spare: Scene) -> None:
    name = first_bundle(snapshot_of(spare))
    wait_for("an owner", lambda: name in spare.cluster.owners(), seconds=20)
    owner = spare.cluster.owners()[name]
    for destination in (broker.id for broker in spare.cluster.brokers if broker.id != owner):
        assert spare.admin.unload(SPARE, name.rpartition("/")[2], destination) == NO_CONTENT
        wanted = (name, destination)
        wait_for("the bundle at its destination", lambda at=wanted: at in spare.cluster.owners().items(), seconds=20)


def test_shedding_scene_is_untouched(spare: Scene) -> None:
    assert sum(name.startswith(f"{SHED}/") for name in spare.cluster.owners()) == 16
