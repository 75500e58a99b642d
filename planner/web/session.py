"""State of one browser session: the only module that touches Streamlit's session state.

`SessionValue` is a value that outlives a run of a page; `bound` draws a widget that shows a value kept elsewhere (the
address, the scenario). Data flows one way: the value decides what the widget shows, a change by a person is stored by a
callback before the page runs again, and the run reads the stored value. The widget's key never depends on its value, so
that no choice can be lost between two runs.
"""

import time
from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

T = TypeVar("T")
_UNSET = object()
SEEN_S = 3.0
"""Most seconds until a browser has received the value of a field."""


class SessionValue(Generic[T]):
    """A typed value of the session.

    Args:
        name: Its key; one for each value of the product.
        initial: Makes the value when there is none yet.
    """

    def __init__(self, name: str, initial: Callable[[], T]) -> None:
        self._name, self._initial = name, initial

    def get(self) -> T:
        """Return the value; a new one is kept from now on."""
        found: T = st.session_state.setdefault(self._name, self._initial())
        return found

    def put(self, value: T) -> None:
        """Keep another value."""
        st.session_state[self._name] = value

    def take(self) -> T:
        """Return the value and forget it."""
        found = self.get()
        del st.session_state[self._name]
        return found


_AGAIN = SessionValue("again", bool)


def draw_again() -> NoReturn:
    """Draw the page again, though nobody did anything: what was said last is said once more."""
    _AGAIN.put(value=True)
    st.rerun()


def is_drawn_again() -> bool:
    """Return whether the page draws itself again; asked once a run."""
    return _AGAIN.take()


def widget_state(key: str) -> Any:
    """Return what a widget of this page was set to; None before it is drawn."""
    return st.session_state.get(key)


def refill(key: str, value: object) -> None:
    """Set a widget of this page that is not drawn yet."""
    st.session_state[key] = value


def is_history_navigation() -> bool:
    """Return whether this run is due to the browser's own *Back* or *Forward*."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def forget_upload(given: UploadedFile) -> None:
    """Free the memory of an uploaded file that was read; it stays known by its name and id."""
    context = get_script_run_ctx()
    if context is not None and isinstance(manager := context.uploaded_file_mgr, MemoryUploadedFileManager):
        manager.add_file(context.session_id, UploadedFileRec(given.file_id, given.name, given.type, b""))


_SET_AT: SessionValue[dict[str, float]] = SessionValue("set_at", dict)
"""When a field was set to its value, until a person sets it to another."""


def _changed(key: str, store: Callable[[Any], None]) -> None:
    _SET_AT.get().pop(key, None)
    store(st.session_state[key])


def _must_set(key: str, value: object) -> bool:
    """Return whether to set a field in this run: its value is a new one, or the browser may not have received it."""
    now_s, set_at = time.monotonic(), _SET_AT.get()
    if st.session_state.get(key, _UNSET) != value:
        set_at[key] = now_s
        return True
    return now_s - set_at.get(key, -SEEN_S) < SEEN_S


def bound(key: str, value: T, draw: Callable[..., Any], store: Callable[[Any], None], *, typed: bool = False) -> T:
    """Draw a widget that shows a value and stores what a person sets it to.

    Args:
        key: Names the widget on its page; it does not depend on the value.
        value: What the widget shows.
        draw: Draws it; called with `key` and `on_change`.
        store: Puts what was set to where the value comes from; called before the page runs again. Several may be called
            one after the other, so it reads whatever else it needs at that moment.
        typed: Whether it is a field for text, which somebody may be at while the page is drawn again.

    Returns:
        The value.
    """
    # Each time: of two runs in a row a browser may see the second alone, or take the widget of the second for another
    # one. Where that does not bring the value, it takes the widget's own default, and sends it as if a person had
    # chosen it. A field for text is set no longer than a browser takes to receive it, as that replaces what is typed.
    if not typed or _must_set(key, value):
        st.session_state[key] = value
    draw(key=key, on_change=_changed, args=(key, store))
    return value
