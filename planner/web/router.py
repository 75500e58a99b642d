"""The script that Streamlit runs for every page."""

from pathlib import Path

import streamlit as st

from planner.web.registry import navigation

st.set_page_config(
    page_title="Pulsar bundle planner", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
)
navigation().run()
