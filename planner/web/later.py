"""Answers that take long: worked out in the background, once for all sessions, while the rest of the page is there."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import streamlit as st

T = TypeVar("T")

_PATIENCE_S = 0.3
_LOOK_S = 0.5
WAITS = ":material/hourglass_top:"
"""Begins what is said of an answer that is not there yet."""
_POOL = ThreadPoolExecutor(2, "later")


@st.cache_resource(max_entries=64, show_spinner=False)
def _begun(key: str, _make: Callable[[], Any]) -> Future[Any]:
    del key
    return _POOL.submit(_make)


@st.fragment(run_every=_LOOK_S)
def _watch(begun: Future[Any], words: str) -> None:
    """Say what is waited for; draw the page again when it is there."""
    st.caption(f"{WAITS} {words} …")
    if begun.done():
        st.rerun()


def answer(key: str, make: Callable[[], T], words: str) -> T | None:
    """Return an answer; None while it is worked out, which is said here until the page is drawn with it.

    Args:
        key: Names the question and all that its answer depends on.
        make: Works it out. It runs in another thread and draws nothing.
        words: What is done meanwhile.

    Raises:
        PlannerError: There is no answer.
    """
    begun = _begun(key, make)
    wait((begun,), _PATIENCE_S)
    if not begun.done():
        _watch(begun, words)
        return None
    found: T = begun.result()
    return found
