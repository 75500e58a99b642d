"""Long runs take little memory, can be stopped at any moment, and tell their price before."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from planner.cluster.errors import ScenarioError
from planner.cluster.snapshot import Snapshot
from planner.explain.outcome import Outcome
from planner.simulate import shelf
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.set_bundle_count import SetBundleCount
from planner.simulate.price import price_of
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.shelf import CycleStore


def test_cycles_on_disk_are_the_same(small: Snapshot, tmp_path: Path) -> None:
    scenario = Scenario(cycles=8)
    kept = CycleStore(8, small, tmp_path)
    plain, shelved = simulate(small, scenario), simulate(small, scenario, keep=kept.keep)
    assert kept.disk_bytes > 0
    assert plain.digest() == shelved.digest()
    kept.rest()
    assert Outcome(plain).summary == Outcome(shelved).summary
    for one, other in zip(plain.cycles, shelved.cycles, strict=True):
        for part in ("brokers", "bundles", "topics"):
            for field in fields(getattr(one.view, part)):
                mine, theirs = (getattr(getattr(cycle.view, part), field.name) for cycle in (one, other))
                if isinstance(mine, np.ndarray):
                    np.testing.assert_array_equal(mine, theirs)
        assert plain.decision(one.index).shedding.moves == shelved.decision(one.index).shedding.moves
    assert not list(tmp_path.iterdir())


def test_what_is_kept_shares_its_names_and_gathers_nothing_when_it_is_decided_again(small: Snapshot) -> None:
    """Names and orders of 100,000 bundles, once for each cycle that a page explains, are hundreds of megabytes."""
    kept = CycleStore(4, small)
    whole = Scenario(cycles=4, settings={"loadBalancerAutoBundleSplitEnabled": False})
    trace = simulate(small, whole, keep=kept.keep)
    outcome = Outcome(replace(trace, end=kept.keep_end(trace.end)))
    views = [cycle.view for cycle in outcome.trace.cycles]
    assert all(view.bundle_names is small.bundle_names for view in (*views, outcome.trace.end))
    assert not outcome.trace.end.bundles.owner.flags.owndata
    before = [set(vars(view)) for view in views]
    assert outcome.decision(1).shedding.moves == simulate(small, whole).decision(1).shedding.moves
    assert outcome.decision(1) is outcome.decision(1)
    assert [set(vars(view)) for view in views] == before


@pytest.mark.parametrize(("bound", "most"), [("MOST_DISK_BYTES", 30_000), ("_MOST_EVENTS", 0)])
def test_a_run_that_fills_its_room_says_how_far_it_came(
    small: Snapshot, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(shelf, bound, most)
    steps = (Step(AddBrokers(count=3)),)
    with pytest.raises(ScenarioError, match=r"After \d of 9 cycles there are .* Simulate at most \d cycles"):
        simulate(small, Scenario(steps=steps, cycles=9), keep=CycleStore(9, small).keep)


def test_a_cycle_without_end_is_stopped_inside(small: Snapshot) -> None:
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 50

    anew = SetBundleCount(namespace=small.namespaces[0], bundles=100_000)
    trace = simulate(small, Scenario(steps=(Step(anew),)), cancelled=cancelled)
    assert (trace.cycles, trace.complete, asked) == ((), False, 51)


def test_price(small: Snapshot) -> None:
    plain = price_of(small, Scenario())
    assert (plain.cycles, plain.bundles, plain.brokers) == (30, 60, 5)
    assert plain.seconds < 1
    long = price_of(small, Scenario(cycles=100_000))
    anew = price_of(small, Scenario(steps=(Step(SetBundleCount(namespace=small.namespaces[0], bundles=100_000)),)))
    joined = [Step(AddBrokers(count=1000, name_prefix=f"x{i}")) for i in range(200)]
    many = price_of(small, Scenario(steps=tuple(joined)))
    assert min(long.seconds, anew.seconds, many.seconds) > 60
    assert (anew.bundles, many.brokers) == (100_060, 200_005)
    off = Scenario(steps=tuple(replace(step, on=False) for step in joined))
    assert price_of(small, off) == plain
