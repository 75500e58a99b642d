"""What a page needs is begun when a browser asks for it, seconds before that has the code that draws it."""

import threading
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_STATIC = Path(st.__file__).parent / "static"
_DRAWS = ("PlotlyChart", "DataFrame", "arrowFormatUtils")
"""Megabytes of code for figures and tables; a browser would request it only with the first figure."""


def _links() -> str:
    """Return what names that code to a browser, as the index page names the rest: relative to the page."""
    files = [file for name in _DRAWS for file in sorted(_STATIC.glob(f"static/js/{name}.*.js"))]
    return ", ".join(f"<./{file.relative_to(_STATIC).as_posix()}>; rel=modulepreload" for file in files)


_MOST_AT_ONCE = 4
_FREE = threading.BoundedSemaphore(_MOST_AT_ONCE)
"""For how many requests a snapshot is looked for at once; the pages of others load theirs when they are drawn."""


def _load(asked: str) -> None:
    from planner.web import state  # noqa: PLC0415 - the server starts without it in half the time

    try:
        state.load_ahead(asked)
    finally:
        _FREE.release()


def _begin(asked: str) -> None:
    """Begin to load a snapshot in another thread, unless enough are under way."""
    if not _FREE.acquire(blocking=False):
        return
    try:
        threading.Thread(target=_load, args=(asked,), daemon=True).start()
    except RuntimeError:  # the system gives no thread
        _FREE.release()


class Ahead:
    """ASGI middleware: the answer names the code that its page will need, and the snapshot of the address is loaded."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._links = _links()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""

        async def with_links(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                if answer.get("content-type", "").startswith("text/html"):
                    answer["link"] = self._links
                    if asked := QueryParams(scope["query_string"]).get("snapshot"):
                        _begin(asked)
            await send(message)

        await self._app(scope, receive, with_links if scope["type"] == "http" else send)
