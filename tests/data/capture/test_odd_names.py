"""Names with every character that Pulsar admits come through capture, reader, link, commands and page address."""

import json
import random
import shlex
import string
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import pytest

from planner.capture.options import CaptureOptions
from planner.capture.run import RAW, capture_cluster
from planner.cluster.digest import snapshot_digest
from planner.cluster.hashing import topic_hash
from planner.cluster.snapshot import Snapshot
from planner.formats.reading import read_snapshot
from planner.share.commands import plan_commands
from planner.share.link import decode_link, encode_link
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from tests.data.recorded_cluster import RECORDED, Cluster

Options = Callable[..., CaptureOptions]
NAMED = string.ascii_letters + string.digits + "-=:._"
IN_TOPICS = NAMED + "%?#&+ ~'\"\\|<>[]{}()*;,!$@^`äß☃🚀"
COUNT = 250
TOPICS = 3
BROKERS = 3
SPANS = ("0x00000000_0x80000000", "0x80000000_0xffffffff")


def odd_names(count: int) -> list[str]:
    """Return tenants' namespaces; those that look like files, tags, heartbeats, escapes and options among them."""
    draw = random.Random(14)  # noqa: S311 - no secret
    names = {"acme/a=b:c-d_e", "b1/b2", "b77/.b77", "-/--help", "acme/owned.b1", "acme/b1.json", "x=y/=3D"}
    names |= {
        "pulsar/a:b",
        "acme/antiAffinity",
        "acme/bundles",
        ".../....",
        "acme/" + "n" * 200,
        "Acme/Orders",
        "acme/orders",
    }
    while len(names) < count:
        made = ["".join(draw.choices(NAMED, k=draw.randint(1, 12))) for _ in range(2)]
        if not any(part in {".", ".."} for part in made):
            names.add("/".join(made))
    return sorted(names)


def odd_topics(namespace: str) -> list[str]:
    """Return topics of a namespace that lie in one of its two bundles."""
    draw = random.Random(namespace)  # noqa: S311 - no secret
    found: list[str] = []
    while len(found) < TOPICS:
        topic = f"persistent://{namespace}/t{''.join(draw.choices(IN_TOPICS, k=8))}z"
        if not found or topic_hash(topic) >> 31 == topic_hash(found[0]) >> 31:
            found.append(topic)
    return found


def span_of(namespace: str) -> str:
    return SPANS[topic_hash(odd_topics(namespace)[0]) >> 31]


@pytest.fixture
def odd(cluster: Cluster, options: Options) -> tuple[list[str], CaptureOptions]:
    """A cluster with such namespaces, a bundle and a topic in each."""
    names = odd_names(COUNT)
    tenants = sorted({name.partition("/")[0] for name in names})

    def give(path: str, value: object, broker: str = "") -> None:
        cluster.answers[broker, path] = (200, json.dumps(value).encode(), "application/json")

    give("/admin/v2/tenants", tenants)
    for tenant in tenants:
        mine = [name for name in names if name.startswith(f"{tenant}/")]
        give(f"/admin/v2/namespaces/{quote(tenant, safe=':')}", mine)
    for number, name in enumerate(names):
        path = f"/admin/v2/namespaces/{'/'.join(quote(part, safe=':') for part in name.split('/'))}"
        give(path, {})
        give(f"{path}/bundles", {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"]})
        cluster.answers["", f"{path}/antiAffinity"] = (200, f"group-{number}".encode(), "text/plain")
    of = {RECORDED[i]: [name for at, name in enumerate(names) if at % BROKERS == i] for i in range(BROKERS)}
    for broker, mine in of.items():
        owned: dict[str, object] = {f"{name}/{span_of(name)}": {} for name in mine}
        give(f"/admin/v2/brokers/planner/{quote(cluster.ids[broker], safe=':')}/ownedNamespaces", owned, broker)
        stats = {"msgRateIn": 5.0}
        topics = {n: {span_of(n): {"persistent": dict.fromkeys(odd_topics(n), stats)}} for n in mine}
        give("/admin/v2/broker-stats/topics", topics, broker)
    return names, options(cluster, limits={"per_second": 1e6})


def test_odd_names_come_through_everything(odd: tuple[list[str], CaptureOptions]) -> None:
    names, asked = odd
    result = capture_cluster(asked)
    for snapshot in (result.snapshot, read_snapshot(asked.out / RAW), read_snapshot(asked.out / "snapshot")):
        assert set(names) <= set(snapshot.namespaces)
        known = dict(zip(snapshot.topics.name.to_pylist(), snapshot.topics.bundle.tolist(), strict=True))
        for name in names:
            assert {snapshot.bundle_names[known[topic]] for topic in odd_topics(name)} == {f"{name}/{span_of(name)}"}
        groups = snapshot.policies.anti_affinity_group
        assert [groups[name] for name in names] == [f"group-{number}" for number in range(len(names))]
    assert not [w for w in result.snapshot.info.warnings if "not one of the brokers" in w]
    linked_and_planned(result.snapshot, names)


def linked_and_planned(snapshot: Snapshot, names: list[str]) -> None:
    """Move a bundle of each namespace; each survives its link, and the commands name just those bundles."""
    settings = snapshot.settings.changed(loadBalancerSheddingEnabled=False)
    free = replace(snapshot.policies, anti_affinity_group={})
    calm = replace(snapshot, settings=settings, policies=free)
    bundles = [f"{name}/{span_of(name)}" for name in names]
    digest, brokers = snapshot_digest(calm), snapshot.brokers.name
    owner = {name: int(snapshot.bundles.owner[snapshot.bundle_position[name]]) for name in bundles}
    steps = tuple(Step(MoveBundle(bundle=n, destination=brokers[(owner[n] + 1) % BROKERS])) for n in bundles)
    for step in steps:
        scenario = Scenario(name="odd", steps=(step,), cycles=1)
        assert decode_link(encode_link(scenario, digest, "odd")).scenario == scenario
    planned = plan_commands(simulate(calm, Scenario(steps=steps, cycles=1)))
    words = [shlex.split(command.line) for command in planned if command.section == "unloads" and command.line]
    unloads = [line for line in words if "unload" in line]
    known = set(names)
    told = {f"{name}/{span}" for line in unloads for name in line if name in known for span in line if span in SPANS}
    by_hand = {name for name in bundles if name.startswith("-")}  # `pulsar-admin` would take it for an option
    assert by_hand
    assert told == set(bundles) - by_hand
    assert len(unloads) == len(told)
    for name in by_hand:
        assert any(name in command.note and command.note.startswith("By hand") for command in planned)
