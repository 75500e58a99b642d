"""The script that Streamlit runs for every page."""

from pathlib import Path

import streamlit as st

from planner.web.headers import SCRIPT
from planner.web.registry import navigation

_DRAWER_PX = 360
_ICON, _LOGO = (str(Path(__file__).with_name(name)) for name in ("icon.svg", "logo.svg"))
st.set_page_config(page_title="Pulsar bundle planner", page_icon=_ICON, layout="wide", initial_sidebar_state=_DRAWER_PX)
st.logo(_LOGO)
st.html(Path(__file__).with_name("style.css"))
st.html(f"<script>{SCRIPT}</script>", unsafe_allow_javascript=True)
navigation().run()
