"""The entry: `streamlit run app.py`. Nothing but wiring."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from planner.web import headers

app = st.App(Path(headers.__file__).with_name("router.py"), middleware=[Middleware(headers.SecurityHeaders)])
