"""Answers that are worked out in the background: given once they are there, ended when nobody asks for them."""

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.errors import PlannerError
from planner.web import later


def stopped_at_first(ended: list[bool], takes_s: float, cancelled: Callable[[], bool]) -> str:
    """Work until it is stopped, for the first time, and as long as it takes to stop; note how it ended."""
    while not ended and not cancelled():
        time.sleep(0.01)
    ended.append(cancelled())
    time.sleep(takes_s if ended[-1] else 0)
    return "half" if ended[-1] else "whole"


def test_what_nobody_asks_for_any_more_is_ended_and_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "_FORGOTTEN_S", 0.5)
    ended: list[bool] = []
    make = partial(stopped_at_first, ended, 0)
    assert later.answer("forgotten", make, "Looking") is None
    for _ in range(4):  # more than half a second, but it goes on while somebody asks
        assert later.answer("forgotten", make, "Looking") is None
    assert not ended
    deadline = time.monotonic() + 60
    while not ended and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ended == [True]
    monkeypatch.setattr(later, "_PATIENCE_S", 60.0)
    assert later.answer("forgotten", make, "Looking") == "whole"
    assert later.answer("forgotten", make, "Looking") == "whole"
    assert ended == [True, False]


def test_half_an_answer_is_not_given_to_who_asks_as_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "_FORGOTTEN_S", 0.5)
    ended: list[bool] = []
    make = partial(stopped_at_first, ended, 1)
    answers = [later.answer("stopped", make, "Looking")]
    deadline = time.monotonic() + 60
    while not ended and time.monotonic() < deadline:
        time.sleep(0.05)
    while answers[-1] is None and time.monotonic() < deadline:
        answers.append(later.answer("stopped", make, "Looking"))
    assert answers[-1] == "whole"


def test_an_answer_does_not_wait_for_memory_to_be_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes up to a second of a large server."""
    may_end = threading.Event()
    monkeypatch.setattr(later, "give_back_holes", lambda: may_end.wait(60))
    monkeypatch.setattr(later, "_PATIENCE_S", 30.0)
    try:
        assert later.answer("at once", lambda _: "there", "Looking") == "there"
    finally:
        may_end.set()


def test_who_waits_long_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an answer that takes longer than that is begun again and again."""
    monkeypatch.setattr(later, "_FORGOTTEN_S", 0.5)
    monkeypatch.setattr(later, "_PATIENCE_S", 60.0)
    begun: list[int] = []

    def make(cancelled: Callable[[], bool]) -> str:
        begun.append(1)
        until = time.monotonic() + 1
        while time.monotonic() < until and not cancelled():
            time.sleep(0.01)
        return "late"

    assert later.answer("patience", make, "Looking") == "late"
    assert begun == [1]


def test_why_there_is_no_answer_is_said_each_time() -> None:
    def make(_: Callable[[], bool]) -> str:
        raise PlannerError("There is none.")

    for _ in range(3):
        with pytest.raises(PlannerError, match="There is none") as caught:
            later.answer("nothing", make, "Looking")
        assert len(caught.traceback) < 5


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
