"""Answers that take long: worked out in the background, once for all sessions, while the rest of the page is there.

What nobody asks for any more, because the question has changed or the tab is closed, is ended.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeAlias, TypeVar

import streamlit as st

from planner.web.heap import give_back_holes
from planner.web.session import draw_again

T = TypeVar("T")
Make: TypeAlias = Callable[[Callable[[], bool]], T]
"""Works an answer out, in another thread. Draws nothing; is given what says whether to stop, with any answer."""

_PATIENCE_S = 0.3
_LOOK_S = 0.2
_FORGOTTEN_S = 10.0
WAITS = ":material/hourglass_top:"
"""Begins what is said of an answer that is not there yet."""
_POOL = ThreadPoolExecutor(2, "later")


class _ForgottenError(Exception):
    """Nobody waited for the answer."""


class _Work:
    """An answer that is worked out as long as somebody asks for it."""

    def __init__(self, make: Make[Any]) -> None:
        self.make = make
        self.asked_s = time.monotonic()
        self._forgotten = False
        self.future: Future[Any] = _POOL.submit(self._run)
        self.future.add_done_callback(lambda _: give_back_holes())

    def is_forgotten(self) -> bool:
        """Return whether nobody asked for long; once said it stays so: what was stopped by it is half an answer."""
        self._forgotten = self._forgotten or time.monotonic() - self.asked_s > _FORGOTTEN_S
        return self._forgotten

    def _run(self) -> Any:
        found = None if self.is_forgotten() else self.make(self.is_forgotten)
        if self.is_forgotten():
            raise _ForgottenError
        return found


@st.cache_resource(max_entries=64, show_spinner=False)
def _begun(key: str, _make: Make[Any]) -> _Work:
    del key
    return _Work(_make)


@st.fragment(run_every=_LOOK_S)
def _watch(work: _Work, words: str) -> None:
    """Say what is waited for; draw the page again when it is there."""
    work.asked_s = time.monotonic()
    st.caption(f"{WAITS} {words} …")
    if work.future.done():
        draw_again()


def answer(key: str, make: Make[T], words: str) -> T | None:
    """Return an answer; None while it is worked out, which is said here until the page is drawn with it.

    Args:
        key: Names the question and all that its answer depends on.
        make: Works it out.
        words: What is done meanwhile.

    Raises:
        PlannerError: There is no answer.
    """
    while True:
        work = _begun(key, make)
        until_s = time.monotonic() + _PATIENCE_S
        while (left_s := until_s - time.monotonic()) > 0 and not work.future.done():
            work.asked_s = time.monotonic()  # who waits asks, however long
            wait((work.future,), min(left_s, _LOOK_S))
        if not work.future.done() or not isinstance(work.future.exception(), _ForgottenError):
            break
        _begun.clear(key, make)
    if not work.future.done():
        _watch(work, words)
        return None
    if (error := work.future.exception()) is not None:
        raise error.with_traceback(None)  # it is raised at every visit, and would keep the frames of each
    found: T = work.future.result()
    return found
