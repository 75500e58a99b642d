"""The entry: `streamlit run app.py`. Nothing but wiring."""

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from planner.web import headers, registry
from planner.web.ahead import Ahead
from planner.web.heap import trim_memory_when_freed

trim_memory_when_freed()
os.umask(0o077)  # what the server writes, jobs and the log of the workspace too, is its user's alone


@asynccontextmanager
async def _started(_: st.App) -> AsyncIterator[None]:
    """Read the pages, which takes more than a second, while the first browser loads what draws them."""
    threading.Thread(target=registry.read_pages, daemon=True).start()
    yield


app = st.App(
    Path(headers.__file__).with_name("router.py"),
    middleware=[Middleware(headers.SecurityHeaders), Middleware(Ahead)],
    lifespan=_started,
)
