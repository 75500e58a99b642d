"""The entry: `streamlit run app.py`. Nothing but wiring."""

import os
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from planner.web import headers
from planner.web.heap import give_back_what_is_freed

give_back_what_is_freed()
os.umask(0o077)  # what the server writes, jobs and the log of the workspace too, is its user's alone

app = st.App(Path(headers.__file__).with_name("router.py"), middleware=[Middleware(headers.SecurityHeaders)])
