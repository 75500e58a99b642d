"""The entry: `streamlit run app.py`. Nothing but wiring."""

import streamlit as st
from starlette.middleware import Middleware

from planner.web.headers import SecurityHeaders

app = st.App("planner/web/router.py", middleware=[Middleware(SecurityHeaders)])
