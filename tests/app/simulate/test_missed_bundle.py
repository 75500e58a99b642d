"""A bundle that is not there: the hint says what was meant."""

import pytest

from planner.cluster.errors import ScenarioError
from planner.simulate.edits.registry import BundleSplit
from planner.simulate.missed_bundle import meant
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from tests.app.simulate.traces import cluster

KNOWN = [
    "pub/def/0x00000000_0x40000000",
    "pub/def/0x40000000_0x60000000",
    "pub/def/0x60000000_0x80000000",
    "pub/def/0x80000000_0xffffffff",
    "a/b/0x00000000_0xffffffff",
]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pub/def/0x40000000", "both ends of its range, such as pub/def/0x40000000_0x60000000 or pub/def/0x00000000_"),
        ("pub/def/0x70000000", "such as pub/def/0x60000000_0x80000000, which holds 0x70000000."),
        ("pub/def/70000000", "such as pub/def/0x60000000_0x80000000"),
        ("pub/def/0xffffffff", "such as pub/def/0x80000000_0xffffffff."),
        ("pub/def/all", "such as pub/def/0x00000000_0x40000000."),
        ("pub/def/0x40000000_0x80000000", "split: choose one of its children, pub/def/0x40000000_0x60000000, pub/def/"),
        ("pub/def/0x80000000_0xc0000000", "is part of pub/def/0x80000000_0xffffffff, which has not been split there"),
        ("pub/def/0x20000000_0x50000000", "At that place: pub/def/0x00000000_0x40000000, pub/def/0x40000000_"),
        ("pub/dev/0x40000000_0x60000000", "no bundles of the namespace 'pub/dev'. Its namespaces: a/b, pub/def."),
        (
            "pub/dev/0x40000000",
            "both ends of its range, such as pub/def/0x00000000_0x40000000. It has no bundles of the",
        ),
        ("0x40000000_0x60000000", "no bundles of the namespace '0x40000000_0x60000000'"),
        ("pub/def/0X40000000_0X60000000", "Write it as pub/def/0x40000000_0x60000000."),
        ("a/b/0x00000000_0xFFFFFFFF", "Write it as a/b/0x00000000_0xffffffff."),
        ("pub/def/0_40000000", "Write it as pub/def/0x00000000_0x40000000."),
        (" persistent://pub/def/0x40000000_0x60000000", "Write it as pub/def/0x40000000_0x60000000."),
        ("pub/def/40000000_80000000", "children, pub/def/0x40000000_0x60000000, pub/def/0x60000000_0x80000000."),
        ("pub/def", "That is a namespace of 4 bundles: choose one of them, such as pub/def/0x00000000_0x40000000."),
    ],
)
def test_the_kinds_of_misses(name: str, hint: str) -> None:
    assert hint in meant(name, KNOWN)


@pytest.mark.parametrize("tail", ["0x00000000", "0x00000000_0xffffffff"])
def test_an_edit_says_it(tail: str) -> None:
    snapshot = cluster((0.2, 0.2))
    edit = BundleSplit(bundle=f"acme/orders/{tail}", at_min=1)
    with pytest.raises(ScenarioError) as raised:
        simulate(snapshot, unchanged("4.2.4", cycles=2).with_steps(Step(edit)))
    assert raised.value.remedy == meant(edit.bundle, snapshot.bundle_names)
    assert snapshot.bundle_names[0] in raised.value.remedy
