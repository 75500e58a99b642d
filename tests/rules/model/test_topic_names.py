"""Names of topics by release: what `TopicName` of the official classes of each answered to the same names."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from planner.cluster.errors import FormatError, SnapshotError
from planner.cluster.hashing import partition_index, topic_hashes
from planner.cluster.releases import ReleaseName, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, make_topics
from planner.cluster.topic_names import full_topic_name, refusal, topic_name
from planner.formats.rows import bundle_of_topics
from planner.formats.validate import validate
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.simulate.traces import cluster

NO_BREAK, WIDE, SEPARATOR = "\u00a0", "\u2003", "\u001c"
OLD: tuple[ReleaseName, ...] = ("3.0.7", "3.2.3", "4.0.1")
LATE: tuple[ReleaseName, ...] = ("3.3.5", "4.0.4", "4.0.8")
NEW: tuple[ReleaseName, ...] = ("4.2.4", "5.0.0-M1", "5.0.1")

TAKEN: tuple[tuple[str, tuple[ReleaseName, ...], str, str], ...] = (
    ("persistent://t/n/x", (*OLD, *LATE, *NEW), "persistent://t/n/x", "t/n"),
    ("persistent://t/c/n/x", (*OLD, *LATE), "persistent://t/c/n/x", "t/c/n"),
    ("persistent://t/c/n/x/y", (*OLD, *LATE), "persistent://t/c/n/x/y", "t/c/n"),
    ("PERSISTENT://t/c/n/x", (*OLD, *LATE), "persistent://t/c/n/x", "t/c/n"),
    ("Persistent://t/n/x", (*OLD, *LATE), "persistent://t/n/x", "t/n"),
    ("Persistent://t/n/x", NEW, "Persistent://t/n/x", "t/n"),
    ("persistent://t/n/ ", OLD, "persistent://t/n/ ", "t/n"),
    (f"persistent://t/n/{WIDE}", OLD, f"persistent://t/n/{WIDE}", "t/n"),
    (f"persistent://t/n/{NO_BREAK}", (*OLD, *LATE, *NEW), f"persistent://t/n/{NO_BREAK}", "t/n"),
    ("topic://t/n/x", NEW[1:], "topic://t/n/x", "t/n"),
    ("TOPIC://t/n/x", NEW[1:], "TOPIC://t/n/x", "t/n"),
    ("topic://t/n/x/y", NEW[1:], "topic://t/n/x/y", "t/n"),
    ("segment://t/n/x/0000-ffff-0", NEW[1:], "segment://t/n/x/0000-ffff-0", "t/n"),
)
REFUSED: tuple[tuple[str, tuple[ReleaseName, ...], str], ...] = (
    ("persistent://t/c/n/x", NEW, "it has four parts, with a cluster, which Pulsar accepts up to 4.1"),
    ("topic://t/n/x", (*OLD, *LATE, NEW[0]), "has no domain 'topic', which only Pulsar 5 has"),
    ("segment://t/n/x/0000-ffff-0", (*OLD, *LATE, NEW[0]), "has no domain 'segment', which only Pulsar 5 has"),
    ("segment://t/n/x", NEW[1:], "a segment is named parent/hashStart-hashEnd-id"),
    ("persistent://t/n/ ", (*LATE, *NEW), "its local name is blank"),
    (f"persistent://t/n/{WIDE}", (*LATE, *NEW), "its local name is blank"),
    (f"persistent://t/n/{SEPARATOR}", (*LATE, *NEW), "its local name is blank"),
    ("persistent://t/n/", (*OLD, *LATE, *NEW), "its local name is blank"),
    ("persistent://t/c/n n/x", (*OLD, *LATE), "contains characters other than"),
    ("foo://t/n/x", (*OLD, *LATE, *NEW), "has no domain 'foo'"),
    ("persistent://t/n", (*OLD, *LATE, *NEW), "it lacks a tenant, a namespace or a local name"),
    ("t/n/x", (*OLD, *NEW), "it has no domain"),
)


@pytest.mark.parametrize(("name", "releases", "full", "namespace"), TAKEN)
def test_taken(name: str, releases: tuple[ReleaseName, ...], full: str, namespace: str) -> None:
    for one in releases:
        found = topic_name(name, release(one))
        assert (found.full, found.namespace) == (full, namespace), one
        assert full_topic_name(name, release=release(one)) == full
        assert refusal(name, release(one)) == ""


@pytest.mark.parametrize(("name", "releases", "why"), REFUSED)
def test_refused_with_the_reason_of_the_release(name: str, releases: tuple[ReleaseName, ...], why: str) -> None:
    for one in releases:
        assert why in refusal(name, release(one)), one
        with pytest.raises(FormatError, match="is not a topic name"):
            topic_name(name, release(one))


def test_a_partition_is_numbered_by_digits_of_the_first_plane() -> None:
    assert partition_index("persistent://t/n/a-partition-\u0661") == 1
    assert partition_index("persistent://t/n/a-partition-\U0001d7cf") == -1


def with_topic(version: ReleaseName, namespace: str, name: str) -> Snapshot:
    """A cluster of a release with one namespace, and a topic in the bundle that holds it."""
    made = cluster([0.5, 0.2])
    made = replace(
        made,
        info=replace(made.info, pulsar_version=version),
        settings=Settings({}, release(version)),
        namespaces=(namespace,),
    )
    hashes = topic_hashes([name.encode()])
    bundle = bundle_of_topics([name], hashes, made.bundles, made.namespaces)
    columns: dict[str, Any] = {"name": pa.array([name], pa.large_string()), "hash": hashes, "bundle": bundle}
    columns |= {column: [0.0] for column in TRAFFIC_COLUMNS}
    return replace(made, topics=make_topics(**columns))


@pytest.mark.parametrize(
    ("version", "namespace", "name"),
    [
        ("4.0.8", "t/c/n", "persistent://t/c/n/x"),
        ("3.0.7", "t/c/n", "non-persistent://t/c/n/x"),
        ("5.0.0-M1", "t/n", "topic://t/n/x"),
        ("5.0.0-M1", "t/n", "segment://t/n/x/0000-ffff-0"),
        ("4.2.4", "t/n", "Persistent://t/n/x"),
    ],
)
def test_a_cluster_with_such_topics_is_one(version: ReleaseName, namespace: str, name: str) -> None:
    snapshot = with_topic(version, namespace, name)
    validate(snapshot)
    assert simulate(snapshot, unchanged(version, cycles=2)).complete


@pytest.mark.parametrize(
    ("version", "namespace", "name", "why"),
    [
        ("4.2.4", "t/c/n", "persistent://t/c/n/x", "'t/c/n' includes a cluster, which Pulsar accepts only up to 4.1"),
        ("4.2.4", "t/n", "topic://t/n/x", "no domain 'topic', which only Pulsar 5 has"),
        ("4.0.8", "t/n", "Persistent://t/n/x", "its domain in capitals, which Pulsar 4.0.8 converts to lower case"),
        ("4.2.4", "t/n", "persistent://t/other/n/x", "which Pulsar accepts up to 4.1 and 4.2.4 does not"),
    ],
)
def test_a_cluster_that_cannot_have_them_is_refused_truthfully(
    version: ReleaseName, namespace: str, name: str, why: str
) -> None:
    with pytest.raises(SnapshotError) as refused:
        validate(with_topic(version, namespace, name))
    assert why in str(refused.value)
