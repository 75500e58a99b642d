"""Simulations in the background: shared, kept while somebody looks, and ended with the last tab."""

from dataclasses import replace

import pytest

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.scenario import Scenario, Step
from planner.web import simulations, state
from planner.web.simulations import LIMITS, SIMULATIONS
from planner.web.tasks import Tasks


@pytest.fixture
def view(page: object, small: Snapshot) -> state.Current:
    assert page is not None
    return state.Current(state.workspace().add(small, "small"), small)


def test_sessions_share_a_simulation_whatever_its_name(view: state.Current) -> None:
    tasks = Tasks(LIMITS, is_open=lambda _: True)
    first = simulations.ask(view, Scenario(cycles=20, name="mine"), "a", tasks)
    assert simulations.ask(view, Scenario(cycles=20, name="yours"), "b", tasks) is first
    assert simulations.ask(view, Scenario(cycles=21), "a", tasks) is not first
    assert first.watchers == {"a", "b"}
    assert first.finished.wait(60)
    assert (first.state[0].done, first.state[0].total, first.state[0].fraction) == (20, 20, 1.0)
    assert first.result is not None
    assert first.result.trace.scenario.name == ""


@pytest.mark.parametrize("tab", ["open", "closed"])
def test_a_simulation_ends_with_its_last_tab(view: state.Current, tab: str) -> None:
    tasks = Tasks(replace(LIMITS, unwatched_s=0.0), is_open=lambda session: session == "open")
    task = simulations.ask(view, Scenario(cycles=20), tab, tasks)
    assert task.finished.wait(60)
    assert (task.result is not None, task.stop.is_set()) == (tab == "open", tab == "closed")


def test_what_somebody_looks_at_is_not_forgotten(view: state.Current) -> None:
    """Else three visitors' comparisons run again and again, each for another's sake."""
    tasks = Tasks(replace(LIMITS, kept=1), is_open=lambda session: session == "me")
    asked = [Scenario(cycles=cycles) for cycles in (1, 2, 3)]
    started = [simulations.ask(view, one, "me", tasks) for one in asked]
    assert all(one.finished.wait(60) for one in started)
    assert all(tasks.find(one.key) is one for one in started)
    tasks.leave_others("me")
    assert simulations.ask(view, asked[2], "me", tasks) is started[2]
    assert [tasks.find(one.key) for one in started] == [None, None, started[2]]


def test_cycles_are_on_disk_and_the_oldest_go_when_they_take_too_much(view: state.Current) -> None:
    tasks = Tasks(LIMITS, is_open=lambda _: True)
    first = simulations.ask(view, Scenario(cycles=5), "me", tasks)
    assert first.finished.wait(60)
    assert first.files is not None
    assert first.files.disk_bytes > 0
    tasks.limits = replace(LIMITS, disk_bytes=first.files.disk_bytes)
    second = simulations.ask(view, Scenario(cycles=6), "me", tasks)
    assert second.finished.wait(60)
    assert simulations.ask(view, Scenario(cycles=6), "me", tasks) is second
    assert tasks.find(first.key) is None


def test_too_many_simulations_are_rejected(view: state.Current, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SIMULATIONS, "limits", replace(LIMITS, unfinished=0))
    with pytest.raises(PlannerError, match="Too many simulations are running on this server") as error:
        simulations.ask(view, Scenario(cycles=7), "me")
    assert error.value.remedy == "Wait until others finish, then reload the page."


def test_why_a_simulation_failed_is_shown(view: state.Current) -> None:
    tasks = Tasks(LIMITS)
    task = simulations.ask(view, Scenario(cycles=1, steps=(Step(RemoveBroker(broker="nowhere:1")),)), "me", tasks)
    assert task.finished.wait(60)
    with pytest.raises(PlannerError, match="nowhere:1"):
        task.value()
    assert task.files is None
