"""Sums by broker, of which only those are worked out again that changed."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.set_bundle_count import SetBundleCount
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.leader_view import LeaderView
from planner.simulate.load_model import BrokerSums, broker_sums
from planner.simulate.renumbering import Renumbering, Room
from tests.app.simulate.small_runs import QUIET, quiet, run, small


def test_sums_are_those_of_all_bundles_to_the_last_bit() -> None:
    draw = np.random.default_rng(3)
    load, owner = draw.random((5, 300)), draw.integers(-1, 8, 300)
    kept = BrokerSums(slice(1, 4))
    for step in range(30):
        owner = owner.copy()
        owner[draw.integers(0, 300, step % 4)] = draw.integers(-1, 8)
        if step % 10 == 9:
            load = draw.random((5, 300))
        brokers = 8 + step // 7
        expected = broker_sums(load[1:4], owner, brokers)
        assert kept.of(load, owner, brokers).tobytes() == expected.tobytes()


def test_brokers_report_their_traffic_when_the_only_namespace_was_made_anew() -> None:
    cluster = small(namespaces=1)
    end = quiet(cluster, SetBundleCount(namespace=cluster.namespaces[0], bundles=7), cycles=4)
    view, truth = end.cycles[-1].view, end.end
    for name in ("msg_rate_in_per_s", "msg_rate_out_per_s"):
        owner, column = truth.bundles.owner, getattr(truth.bundles, name)
        expected = np.bincount(owner, column, minlength=len(view.brokers))
        assert (expected % 1 > 0).any()
        np.testing.assert_allclose(getattr(view.brokers, name), expected, rtol=1e-12)


def test_sums_over_nothing_can_hold_fractions() -> None:
    nobody = np.full(3, -1)
    assert broker_sums(np.ones((2, 3)), nobody, 4).dtype == np.float64


def test_sums_follow_splits_to_the_last_bit() -> None:
    draw = np.random.default_rng(5)
    load, owner = draw.random((5, 300)), draw.integers(-1, 8, 300)
    kept, worked_out = BrokerSums(), 0
    kept.of(load, owner, 8)
    for step in range(40):
        at = int(draw.integers(0, load.shape[1]))
        change = Renumbering(
            np.insert(np.arange(load.shape[1]), at, at),
            np.isin(np.arange(load.shape[1] + 1), [at, at + 1]),
            np.array([at]),
        )
        after = change.follow(load)
        after[:, change.made] = load[:, [at]] * [0.3, 0.7]
        kept.cut(load, after, change.gone, change.follow)
        load, owner = after, change.follow(owner)
        if step % 3:
            owner[draw.integers(0, len(owner), step % 4)] = draw.integers(-1, 8)
            expected = broker_sums(load, owner, 8)
            last = kept._last
            assert kept.of(load, owner.copy(), 8).tobytes() == expected.tobytes()
            worked_out += last is not None and last[0] is load
    assert worked_out == 26, "they were not followed, but summed up anew"


def test_numbers_follow_inside_their_room_as_outside() -> None:
    draw = np.random.default_rng(7)
    room, values = Room(), draw.random((3, 40))
    for step in range(60):
        before = values.shape[1]
        first = int(draw.integers(0, before - 4))
        gone = first + (np.arange(3) if step % 3 else np.array([0, 2]))  # the latter stand apart from each other
        others = np.delete(np.arange(before), gone)
        parent = np.insert(others, first, np.full(step % 5 + 1, first))
        new = np.isin(np.arange(len(parent)), first + np.arange(step % 5 + 1))
        change = Renumbering(parent, new, gone)
        expected = change.follow(values)
        values = room.follow(values, change)
        assert values.tobytes() == expected.tobytes()


def test_what_brokers_measured_is_summed_up_after_every_split(monkeypatch: pytest.MonkeyPatch) -> None:
    follow, seen = LeaderView.rebuilt, Counter[str]()

    def rebuilt(view: LeaderView, change: Renumbering) -> None:
        seen["outdated"] += bool(view._outdated.any())
        known, room = [change.follow(view.reported), change.follow(view.measured)], view.reported.base
        for values in known:
            values[:, change.made] = 0.0
        follow(view, change)
        for values, now in zip(known, (view.reported, view.measured), strict=True):
            assert now.tobytes() == values.tobytes()
        seen["in the same room"] += view.reported.base is room
        expected = broker_sums(view.measured, view.measured_by, len(view.table))
        assert view.totals.tobytes() == expected.tobytes()
        seen["splits"] += 1

    monkeypatch.setattr(LeaderView, "rebuilt", rebuilt)
    draw = Random(3)  # noqa: S311 - a test
    for load_manager in LoadManager:
        cluster = small(load_manager)
        names = draw.sample(cluster.bundle_names, 16)
        moves = [
            MoveBundle(bundle=name, destination=draw.choice(cluster.brokers.name), at_min=draw.random() * 2)
            for name in names[8:]
        ]
        splits = [SplitBundle(bundle=name, at_min=draw.random() * 5) for name in names[:8]]
        run(cluster, *moves, *splits, KillBroker(broker=cluster.brokers.name[1], at_min=2.5), settings=QUIET)
    assert seen["splits"] == 16
    assert seen["in the same room"] > 8
    assert seen["outdated"]
