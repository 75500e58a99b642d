"""Answers that are worked out in the background: given once they are there, ended when nobody asks for them."""

import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.errors import PlannerError
from planner.web import tasks
from planner.web.task import Limits, Progress, Report, Stopped
from planner.web.tasks import Newest, Tasks


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


def test_what_comes_last_begins_when_its_session_waits_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    under(monkeypatch, patience_s=0.0)
    may_end = threading.Event()
    first = partial(tasks.answer, "first", lambda *_: str(may_end.wait(60)), "Looking")
    last = partial(tasks.answer, "last", lambda *_: "last", "Looking", last=True)
    try:
        assert (first(), last()) == (None, None)
        assert tasks.ANSWERS.find("last") is None
    finally:
        may_end.set()
    for ask in (first, last):
        deadline = time.monotonic() + 60
        while (found := ask()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert found in ("True", "last")


def test_who_waits_for_the_others_to_end_does_not_keep_them_going(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that a page began goes on for minutes; nobody needs it once another page is open."""
    under(monkeypatch, patience_s=0.0, unwatched_s=0.3)
    ended: list[bool] = []
    assert tasks.answer("left", partial(stopped_at_first, ended, 0), "Looking") is None
    deadline = time.monotonic() + 20
    while tasks.answer("last", lambda *_: "last", "Looking", last=True) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ended == [True]


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
    shared.leave("a", "same")
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
    shared.leave("b", "left")
    assert not task.stop.is_set()
    shared.leave("a", "left")
    assert task.finished.wait(60)
    assert task.result is None
    again = shared.ask("left", lambda *_: "whole", "a")
    assert again.finished.wait(60)
    assert again.result == "whole"


def turns(asked: Sequence[tuple[str, dict[str, Any]]], times: int = 5, **limits: Any) -> list[int]:
    """Return whose turn it was, of tasks that sessions ask for, one at a time, each of which needs several turns."""
    shared = Tasks(Limits(**{"at_once": 1, "turn_s": 0.0, **limits}))
    done, started = list[int](), threading.Event()

    def work(name: int, _: Report, stopped: Stopped) -> None:
        started.wait(60)
        for _at in range(times):
            done.append(name)
            stopped()

    all_asked = [
        shared.ask(str(name), partial(work, name), session, **more) for name, (session, more) in enumerate(asked)
    ]
    started.set()
    assert all(one.finished.wait(60) for one in all_asked)
    assert shared.unfinished() == ()
    return done


@pytest.mark.parametrize(
    ("sessions", "order"),
    [
        ("aa", [0] * 5 + [1] * 5),
        ("ab", [0, 1] * 5),
        ("aaabb", [0, 3] * 5 + [1, 4] * 5 + [2] * 5),
        ("aaaaaaaaab", [0, 9] * 5 + [name for name in range(1, 9) for _ in range(5)]),
    ],
)
def test_sessions_take_turns_and_tasks_of_one_session_follow_each_other(sessions: str, order: list[int]) -> None:
    """However many sessions there are: else all tasks of all of them were in memory at once."""
    assert turns([(one, {}) for one in sessions]) == order


def test_many_sessions_have_equal_turns() -> None:
    assert turns([(one, {}) for one in "abcdef"], times=20) == [*range(6)] * 20


def test_of_tasks_that_wait_equally_long_the_cheapest_begins() -> None:
    costs = [9.0, 3.0, 1.0, 2.0]
    done = turns([("a", {"cost": cost}) for cost in costs])
    assert done == [name for name in (0, 2, 3, 1) for _ in range(5)], "the first one found a free turn"


@pytest.mark.parametrize("alone_s", [60.0, 0.0])
def test_a_large_task_that_passes_its_turn_on_keeps_its_place_in_memory(alone_s: float) -> None:
    """Else as many large tasks as there are visitors were in memory at once, each waiting in the middle."""
    done = turns([("a", {"rows": 2}), ("b", {"rows": 2}), ("c", {"rows": 1})], 3, large_rows=1, alone_s=alone_s)
    assert done == [0, 2, 0, 2, 0, 2, 1, 1, 1], "the small one takes turns with the first large one, the other waits"


@pytest.mark.parametrize(("alone_s", "together"), [(60.0, 1), (0.0, 2)])
def test_a_large_task_has_the_memory_to_itself_for_a_while(alone_s: float, together: int) -> None:
    shared = Tasks(Limits(at_once=2, look_s=0.01, large_rows=1, alone_s=alone_s))
    lock, may_end, now, most = threading.Lock(), threading.Event(), [0], [0]

    def work(_: Report, stopped: Stopped) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        while not may_end.wait(0.01):
            stopped()
        with lock:
            now[0] -= 1

    asked = [shared.ask(name, work, name, rows=2) for name in "abc"]
    if together == 1:
        assert shared.ask("small", lambda *_: "there", "d", rows=1).finished.wait(60), "the other turn is free for it"
    deadline = time.monotonic() + 60
    while most[0] < together and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sum(one.under_way for one in asked) == together
    may_end.set()
    assert all(one.finished.wait(60) for one in asked)
    assert most == [together]


def test_what_a_page_needs_now_goes_before_what_is_prepared_ahead() -> None:
    done = turns([("a", {"ahead": True}), ("a", {"ahead": True}), ("a", {})])
    assert done == [0] + [2] * 5 + [0] * 4 + [1] * 5


def test_only_tasks_that_had_a_turn_have_a_thread() -> None:
    shared, may_end, before = Tasks(Limits(at_once=2)), threading.Event(), threading.active_count()
    asked = [shared.ask(str(name), lambda *_: may_end.wait(60), str(name)) for name in range(20)]
    assert threading.active_count() <= before + 2
    assert [one.under_way for one in asked] == [True] * 2 + [False] * 18
    shared.leave("19", "19")
    assert asked[19].finished.is_set(), "it ends at once, without a thread"
    may_end.set()
    assert all(one.finished.wait(60) for one in asked)
    assert [one.result for one in asked] == [True] * 19 + [None]


def test_a_task_for_which_there_is_no_thread_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    shared = Tasks(Limits(at_once=1))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        task = shared.ask("none", lambda *_: 1, "a")
    assert task.finished.is_set()
    with pytest.raises(RuntimeError, match="new thread"):
        task.value()
    assert shared.ask("next", lambda *_: 1, "a").finished.wait(60), "its turn is free again"


def test_a_task_that_has_ended_keeps_nothing_of_its_question() -> None:
    """Else each of the kept tasks held the snapshot that it was asked about."""
    question = frozenset({"a large snapshot"})
    kept = weakref.ref(question)
    shared = Tasks(Limits(), after=lambda: None)

    def work(data: frozenset[str], *_: object) -> int:
        if shared.find("fails") is not None:
            raise ValueError(len(data))
        return len(data)

    for key in ("answers", "fails"):
        assert shared.ask(key, partial(work, question), "a").finished.wait(60)
    del question
    deadline = time.monotonic() + 60
    while kept() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert kept() is None


def test_more_than_a_number_of_unfinished_tasks_are_rejected() -> None:
    shared, may_end = Tasks(Limits(at_once=1, unfinished=2)), threading.Event()
    asked = [shared.ask(name, lambda *_: may_end.wait(60), "a") for name in "ab"]
    with pytest.raises(PlannerError, match="2 answers are already being computed"):
        shared.ask("c", lambda *_: 1, "b")
    assert shared.ask("b", lambda *_: 1, "b") is asked[1], "a task that is there is shared"
    assert shared.latest("c") is None
    shared.leave("b", "b")
    shared.leave("a", "b")
    last = shared.ask("c", lambda *_: 1, "b")
    may_end.set()
    assert last.finished.wait(60)


def test_a_stopped_task_that_is_asked_for_again_does_not_count_twice() -> None:
    shared, may_end = Tasks(Limits(at_once=1, unfinished=1)), threading.Event()
    first = shared.ask("a", lambda *_: may_end.wait(60), "a")
    shared.leave("a", "a")
    again = shared.ask("a", lambda *_: "there", "a")
    assert again.number > first.number
    may_end.set()
    assert again.finished.wait(60)
    assert again.result == "there"


def until_it_stops(_: Report, stopped: Stopped) -> None:
    while not stopped():
        time.sleep(0.001)


def test_a_task_stops_when_all_tabs_that_watch_it_have_been_closed() -> None:
    """Whether it works or waits; one whose tab is open goes on, though no page asks for it."""
    tabs = {"a", "b"}
    shared = Tasks(Limits(at_once=1, turn_s=0.0, look_s=0.01, unwatched_s=0.3), is_open=tabs.__contains__)
    working, waiting = shared.ask("working", until_it_stops, "a"), shared.ask("waiting", until_it_stops, "a")
    shared.ask("working", until_it_stops, "b")
    time.sleep(1)
    assert shared.unfinished() == (waiting, working), "nobody asked, but both tabs are open"
    tabs.remove("a")
    assert waiting.finished.wait(60)
    assert not waiting.under_way
    assert not working.stop.is_set(), "another tab watches it"
    tabs.remove("b")
    assert working.finished.wait(60)
    assert shared.unfinished() == ()


def test_a_browser_looks_less_often_at_what_works_for_long() -> None:
    """Three places that looked five times a second took a processor, as long as the answers took."""
    now, shown = [0.0], Limits()
    shared = Tasks(shown, clock=lambda: now[0])
    first, waits = shared.ask("first", until_it_stops, "a"), Tasks(Limits(at_once=0)).ask("waits", until_it_stops, "a")
    periods = []
    for now[0] in (0.0, 4.0, 12.0, 300.0):
        periods.append(shared.period_s((first, waits)))
    assert periods == [0.5, 0.5, pytest.approx(1.2), 2.0]
    assert shared.period_s((waits,)) == 0.5
    assert shared.period_s((waits,), needed=False) == 2.0, "the place that needs it looks"
    shared.clear()
    assert Tasks(Limits(look_s=3.0)).period_s((waits,)) == 3.0
    assert shown.unwatched_s is not None
    assert periods[-1] < shown.unwatched_s / 2, "what a page looks at is not stopped"


def test_a_tab_may_be_away_for_a_while() -> None:
    now, tabs = [0.0], {"a"}
    shared = Tasks(Limits(at_once=0, unwatched_s=5.0), is_open=tabs.__contains__, clock=lambda: now[0])
    task = shared.ask("waits", until_it_stops, "a")
    for now_s, is_open in [(100.0, True), (104.0, False), (108.0, True), (112.0, False), (113.0, False)]:
        now[0] = now_s
        (tabs.add if is_open else tabs.discard)("a")
        shared.look()
        assert not task.stop.is_set()
    now[0] = 113.1
    shared.look()
    assert task.finished.is_set()


def test_a_session_leaves_all_but_some_tasks() -> None:
    shared = Tasks(Limits())
    asked = [shared.ask(name, until_it_stops, "a") for name in ("kept", "shared", "left")]
    shared.ask("shared", until_it_stops, "b")
    shared.leave_others("a", {"kept"})
    assert asked[2].finished.wait(60)
    assert shared.unfinished() == (asked[0], asked[1])
    shared.clear()
    assert all(one.finished.wait(60) for one in asked)
    assert len(shared) == 0


@dataclass
class Files:
    """Files of a size."""

    disk_bytes: int
    rested: int = 0

    def rest(self) -> None:
        self.rested += 1


def test_finished_tasks_are_forgotten_when_their_files_are_large_those_of_open_tabs_last() -> None:
    shared = Tasks(Limits(kept=9, kept_open=9, disk_bytes=100), is_open=lambda tab: tab == "open")
    sessions = {"a": "open", "b": "closed", "c": "open", "d": "closed"}
    for key, session in sessions.items():
        assert shared.ask(key, lambda *_: 1, session, files=Files(25)).finished.wait(60)
    assert len(shared) == 4
    assert shared.ask("e", lambda *_: 1, "open", files=Files(30)).finished.wait(60)
    assert [key for key in "abcde" if shared.find(key)] == ["a", "c", "e"]
    assert shared.ask("f", lambda *_: 1, "open", files=Files(60)).finished.wait(60)
    assert [key for key in "abcdef" if shared.find(key)] == ["e", "f"]
    shared.ask("e", lambda *_: 1, "open")
    assert [key for key in "abcdef" if shared.find(key)] == ["e", "f"], "90 bytes may stay"


def test_more_finished_tasks_are_kept_while_open_tabs_watch_them() -> None:
    tabs = {"a"}
    shared = Tasks(Limits(kept=1, kept_open=3), is_open=tabs.__contains__)
    for key in "123":
        assert shared.ask(key, lambda *_: 1, "a").finished.wait(60)
    assert [key for key in "123" if shared.find(key)] == ["1", "2", "3"]
    assert shared.ask("4", lambda *_: 1, "a").finished.wait(60)
    assert [key for key in "1234" if shared.find(key)] == ["2", "3", "4"]
    shared.leave_others("a", {"4"})
    shared.ask("4", lambda *_: 1, "a")
    assert [key for key in "1234" if shared.find(key)] == ["4"]


def test_files_of_finished_tasks_rest_and_those_without_a_result_are_gone() -> None:
    shared, may_end = Tasks(Limits(at_once=1)), threading.Event()
    files = [Files(1) for _ in range(3)]

    def fail(*_: object) -> None:
        raise PlannerError("It failed.")

    done = shared.ask("done", lambda *_: 1, "a", files=files[0])
    failed = shared.ask("failed", fail, "a", files=files[1])
    assert done.finished.wait(60)
    assert failed.finished.wait(60)
    working = shared.ask("working", lambda *_: may_end.wait(60), "a", files=files[2])
    shared.rest()
    may_end.set()
    assert working.finished.wait(60)
    assert [one.rested for one in files] == [1, 0, 0]
    assert failed.files is None


def test_a_result_that_was_complete_before_its_task_was_stopped_is_kept() -> None:
    shared, begun, may_end = Tasks(Limits()), threading.Event(), threading.Event()

    def work(*_: object) -> str:
        begun.set()
        may_end.wait(60)
        return "whole"

    task = shared.ask("late", work, "a")
    assert begun.wait(60)
    task.stop.set()
    may_end.set()
    assert task.finished.wait(60)
    assert shared.latest("late") is task
    assert shared.find("late") is None
    assert task.result == "whole"


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
            report(Progress(at, 2_000, str(at)), (at,) * 3)
        report(Progress(2_000, 2_000, "last"))
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


_WAITS = """
import threading

import streamlit as st

from planner.web import tasks

ready = st.session_state.setdefault("ready", threading.Event())
tasks.answer("waits", lambda report, stopped: ready.wait(60), "Looking")
st.button("What follows")
"""


def test_what_follows_stays_where_it_is_once_an_answer_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One place further up, a browser shows it twice until the page has been drawn to its end."""
    under(monkeypatch, patience_s=0.2)
    test = AppTest.from_string(_WAITS, default_timeout=60).run()
    places = [[place for place, one in test.main.children.items() if one.type == "button"]]
    assert [one.value for one in test.caption] == [f"{tasks.WAITS} Looking …"]
    test.session_state["ready"].set()
    deadline = time.monotonic() + 60
    while test.run().caption and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not test.caption
    places += [[place for place, one in test.main.children.items() if one.type == "button"]]
    assert places[0] == places[1]
