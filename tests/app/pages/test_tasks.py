"""Answers that are worked out in the background: given once they are there, ended when nobody asks for them."""

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.errors import PlannerError
from planner.web import tasks
from planner.web.tasks import Limits, Newest, Progress, Report, Stopped, Tasks


def stopped_at_first(ended: list[bool], takes_s: float, _: Report, stopped: Stopped) -> str:
    """Work until it is stopped, for the first time, and as long as it takes to stop; note how it ended."""
    while not ended and not stopped():
        time.sleep(0.01)
    ended.append(stopped())
    time.sleep(takes_s if ended[-1] else 0)
    return "half" if ended[-1] else "whole"


def under(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    """Give the answers of pages other limits."""
    monkeypatch.setattr(tasks, "ANSWERS", Tasks(Limits(**limits)))


def test_what_nobody_asks_for_any_more_is_ended_and_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    under(monkeypatch, unwatched_s=0.5)
    ended: list[bool] = []
    work = partial(stopped_at_first, ended, 0)
    for _ in range(5):  # more than half a second, but it goes on while somebody asks
        assert tasks.answer("forgotten", work, "Looking") is None
    assert not ended
    deadline = time.monotonic() + 60
    while not ended and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ended == [True]
    tasks.ANSWERS.limits = Limits(unwatched_s=0.5, patience_s=60.0)
    assert tasks.answer("forgotten", work, "Looking") == "whole"
    assert tasks.answer("forgotten", work, "Looking") == "whole"
    assert ended == [True, False]


def test_half_an_answer_is_not_given_to_who_asks_as_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    under(monkeypatch, unwatched_s=0.5)
    ended: list[bool] = []
    work = partial(stopped_at_first, ended, 1)
    answers = [tasks.answer("stopped", work, "Looking")]
    deadline = time.monotonic() + 60
    while not ended and time.monotonic() < deadline:
        time.sleep(0.05)
    while answers[-1] is None and time.monotonic() < deadline:
        answers.append(tasks.answer("stopped", work, "Looking"))
    assert answers[-1] == "whole"


def test_an_answer_does_not_wait_for_memory_to_be_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes up to a second of a large server."""
    may_end = threading.Event()
    monkeypatch.setattr(tasks, "ANSWERS", Tasks(Limits(patience_s=30.0), after=lambda: may_end.wait(60)))
    try:
        assert tasks.answer("at once", lambda *_: "there", "Looking") == "there"
    finally:
        may_end.set()


def test_who_waits_long_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an answer that takes longer than that is begun again and again."""
    under(monkeypatch, unwatched_s=0.5, patience_s=60.0)
    begun: list[int] = []

    def work(_: Report, stopped: Stopped) -> str:
        begun.append(1)
        until = time.monotonic() + 1
        while time.monotonic() < until and not stopped():
            time.sleep(0.01)
        return "late"

    assert tasks.answer("patience", work, "Looking") == "late"
    assert begun == [1]


@pytest.mark.parametrize("error", [PlannerError("There is none."), ValueError("There is none.")])
def test_why_there_is_no_answer_is_said_each_time(error: Exception) -> None:
    def work(*_: object) -> str:
        raise error

    for _ in range(3):
        with pytest.raises(type(error), match="There is none") as caught:
            tasks.answer(f"nothing {error!r}", work, "Looking")
        assert len(caught.traceback) < 5


def test_two_sessions_share_one_task() -> None:
    shared, begun, may_end = Tasks(Limits()), list[int](), threading.Event()

    def work(_: Report, stopped: Stopped) -> tuple[int, ...]:
        begun.append(1)
        while not may_end.wait(0.001) and not stopped():
            pass
        return (1,)

    first, second = shared.ask("same", work, "a"), shared.ask("same", work, "b")
    assert first is second
    shared.leave("same", "a")
    assert not first.stop.is_set(), "the other session still watches"
    may_end.set()
    assert first.finished.wait(60)
    assert second.result == (1,)
    assert begun == [1]


def test_a_task_stops_with_its_last_watcher_and_starts_again() -> None:
    shared = Tasks(Limits())

    def work(_: Report, stopped: Stopped) -> str:
        while not stopped():
            time.sleep(0.001)
        return "half"

    task = shared.ask("left", work, "a")
    shared.leave("left", "b")
    assert not task.stop.is_set()
    shared.leave("left", "a")
    assert task.finished.wait(60)
    assert task.result is None
    again = shared.ask("left", lambda *_: "whole", "a")
    assert again.finished.wait(60)
    assert again.result == "whole"


def turns(asked: Sequence[tuple[str, bool]]) -> list[int]:
    """Return whose turn it was, of tasks of sessions, needed now or prepared ahead, one at a time."""
    shared, done, started = Tasks(Limits(at_once=1, turn_s=0.0)), list[int](), threading.Event()

    def work(name: int, _: Report, stopped: Stopped) -> None:
        started.wait(60)
        for _at in range(5):
            done.append(name)
            stopped()

    all_asked = [
        shared.ask(str(name), partial(work, name), session, ahead=ahead) for name, (session, ahead) in enumerate(asked)
    ]
    while not any(one.under_way for one in all_asked):
        time.sleep(0.001)
    started.set()
    assert all(one.finished.wait(60) for one in all_asked)
    return done


@pytest.mark.parametrize("sessions", ["ab", "aaaaaaaaab"])
def test_a_session_with_many_questions_keeps_no_other_waiting(sessions: str) -> None:
    done = turns([(one, False) for one in sessions])
    last = len(sessions) - 1
    assert done.index(last) <= 9, "it had its turn beside the first task of the other session"
    assert [name for name in done if name != last] == [name for name in range(last) for _ in range(5)]


def test_what_a_page_needs_now_goes_before_what_is_prepared_ahead() -> None:
    done = turns([("a", True), ("a", True), ("a", False)])
    assert done.index(1) > max(at for at, name in enumerate(done) if name == 2)


def test_one_place_is_kept_free_of_what_is_prepared_ahead() -> None:
    shared, may_end = Tasks(Limits(at_once=2)), threading.Event()
    ahead = [shared.ask(f"ahead {at}", lambda *_: may_end.wait(60), "a", ahead=True) for at in range(3)]
    now = shared.ask("now", lambda *_: "there", "b")
    assert now.finished.wait(60)
    assert sum(one.under_way for one in ahead) <= 1
    may_end.set()
    assert all(one.finished.wait(60) for one in ahead)


def test_a_partial_result_is_replaced_whole() -> None:
    shared, may_end = Tasks(Limits()), threading.Event()

    def work(report: Report, _: Stopped) -> tuple[int, ...]:
        for at in range(2_000):
            report(Progress(at / 2_000, str(at)), (at,) * 3)
        report(Progress(1.0, "last"))
        may_end.wait(60)
        return (-1,) * 3

    task = shared.ask("partial", work, "a")
    while task.state[0].words != "last":
        progress, found = task.state
        assert found is None or len(set(found)) == 1
        assert found is None or progress.words in {str(found[0]), "last"}
    assert task.newest == (1_999,) * 3, "progress alone leaves the result before"
    may_end.set()
    assert task.finished.wait(60)
    assert task.newest == (-1,) * 3


def test_few_results_are_kept() -> None:
    shared = Tasks(Limits(kept=2))
    for key in "abcd":
        assert shared.ask(key, lambda *_: 1, "a").finished.wait(60)
    assert [shared.find(key) is not None for key in "abcd"] == [False, False, True, True]


def test_shared_values_are_replaced_by_many_sessions_and_none_is_lost() -> None:
    values: Newest[tuple[int, ...]] = Newest(2)
    first = values.replace("a", lambda known: known or ())

    def add(name: int) -> None:
        for _ in range(100):
            values.replace("a", lambda known: (*(known or ()), name))

    threads = [threading.Thread(target=add, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(values.replace("a", lambda known: known or ())) == sorted([*range(4)] * 100)
    assert first == ()
    for key in "bc":
        values.replace(key, lambda _: ())
    assert values.replace("a", lambda known: known or ()) == ()


_REFUSES = """
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.web import session, widgets


def act():
    raise PlannerError("It cannot be done.")


widgets.button("Do it", "add", act)
widgets.show_refused()
if st.session_state.get("answers", 0):
    st.session_state["answers"] -= 1
    session.draw_again()
"""


def test_a_refusal_outlives_answers_that_draw_the_page_again() -> None:
    test = AppTest.from_string(_REFUSES, default_timeout=60).run()
    test.session_state["answers"] = 2
    assert [error.value for error in test.button[0].click().run().error] == ["It cannot be done."]
    assert test.session_state["answers"] == 0
    assert not test.run().error
