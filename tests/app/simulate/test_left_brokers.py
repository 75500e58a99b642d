"""A broker that has left stays away, whatever later edits say, and a scenario says which of them change nothing."""

from typing import Any

import pytest

from planner.simulate.edits.registry import KINDS
from planner.simulate.trace import Trace
from tests.app.simulate.small_runs import quiet, small

CLUSTER = small()
GONE = CLUSTER.brokers.name[0]


def edit(kind: str, **said: Any) -> Any:
    return KINDS[kind](**said)


def brokers_at_the_end(trace: Trace) -> set[str]:
    table = trace.end.brokers
    return {name for name, here in zip(table.name, table.registered.tolist(), strict=True) if here}


@pytest.mark.parametrize("leaving", ["remove_broker", "kill_broker", "drain_broker"])
@pytest.mark.parametrize("named", [(), (GONE,)], ids=["all", "named"])
def test_a_rolling_restart_brings_nobody_back_who_left(leaving: str, named: tuple[str, ...]) -> None:
    restart = edit("rolling_restart", brokers=named, at_min=3, down_min=1, pause_min=1)
    trace = quiet(CLUSTER, edit(leaving, broker=GONE), restart, cycles=20)
    assert brokers_at_the_end(trace) == set(CLUSTER.brokers.name) - {GONE}
    assert any(GONE in note and "not restarted" in note for note in trace.notes) is bool(named)


@pytest.mark.parametrize("leaving", ["remove_broker", "kill_broker", "drain_broker"])
def test_a_broker_that_leaves_during_its_restart_does_not_come_back(leaving: str) -> None:
    restart = edit("rolling_restart", brokers=(GONE,), down_min=4)
    trace = quiet(CLUSTER, restart, edit(leaving, broker=GONE, at_min=2), cycles=10)
    assert brokers_at_the_end(trace) == set(CLUSTER.brokers.name) - {GONE}
    assert not any("Without effect" in note for note in trace.notes)


def test_a_restart_brings_all_brokers_back() -> None:
    trace = quiet(CLUSTER, edit("rolling_restart", down_min=1, pause_min=0), cycles=10)
    assert brokers_at_the_end(trace) == set(CLUSTER.brokers.name)


@pytest.mark.parametrize("kind", ["remove_broker", "kill_broker", "drain_broker"])
@pytest.mark.parametrize("leaving", ["remove_broker", "kill_broker"])
def test_an_edit_about_a_broker_that_left_says_that_it_does_nothing(leaving: str, kind: str) -> None:
    again = edit(kind, broker=GONE, at_min=2)
    trace = quiet(CLUSTER, edit(leaving, broker=GONE), again)
    assert f"Without effect, as {GONE} has left before: {again.phrase()}." in trace.notes


def test_a_broker_that_is_being_drained_can_be_shut_down_at_once() -> None:
    drained = edit("drain_broker", broker=GONE, bundles_per_min=0.1)
    trace = quiet(CLUSTER, drained, edit("remove_broker", broker=GONE, at_min=2))
    assert not (trace.end.bundles.owner == 0).any()
    assert any(event.why == "shut down" for cycle in trace.cycles for event in cycle.events)


def test_a_pin_to_a_broker_that_left_says_that_it_does_nothing() -> None:
    pin = edit("pin_bundle", bundle=CLUSTER.bundle_names[0], broker=GONE)
    trace = quiet(CLUSTER, edit("remove_broker", broker=GONE), pin)
    assert f"Without effect while {GONE} is not in the cluster: {pin.phrase()}." in trace.notes


def test_the_last_leader_has_no_successor() -> None:
    trace = quiet(CLUSTER, *(edit("remove_broker", broker=name) for name in CLUSTER.brokers.name))
    assert any(note.endswith("was the leader. No broker is left to take its place.") for note in trace.notes)
