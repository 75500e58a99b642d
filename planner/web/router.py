"""Which pages there are. Streamlit runs this script for every page."""

from pathlib import Path

import streamlit as st

from planner.web.state import PAGES

st.set_page_config(
    page_title="Pulsar bundle planner", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
)
st.navigation(
    {
        "Cluster": [
            st.Page(PAGES / "overview.py", title="Overview", icon=":material/monitoring:", default=True),
            st.Page(PAGES / "bundle_map.py", title="Bundle map", icon=":material/grid_on:", url_path="bundle-map"),
            st.Page(PAGES / "brokers.py", title="Brokers", icon=":material/dns:", url_path="brokers"),
        ],
        "Decisions": [
            st.Page(PAGES / "shedding.py", title="Shedding", icon=":material/low_priority:", url_path="shedding"),
            st.Page(PAGES / "split_lab.py", title="Split lab", icon=":material/content_cut:", url_path="split-lab"),
            st.Page(
                PAGES / "hit_counters.py",
                title="Hit counters",
                icon=":material/exposure_plus_1:",
                url_path="hit-counters",
            ),
            st.Page(PAGES / "throttling.py", title="Throttling", icon=":material/speed:", url_path="throttling"),
        ],
        "What-if": [
            st.Page(PAGES / "what_if.py", title="What-if", icon=":material/science:", url_path="what-if"),
            st.Page(PAGES / "moves.py", title="Moves", icon=":material/swap_horiz:", url_path="moves"),
            st.Page(PAGES / "compare.py", title="Compare", icon=":material/balance:", url_path="compare"),
            st.Page(PAGES / "why.py", title="Why", icon=":material/help:", url_path="why"),
            st.Page(
                PAGES / "failure_review.py",
                title="Failure review",
                icon=":material/emergency_home:",
                url_path="failure-review",
            ),
        ],
        "History": [
            st.Page(PAGES / "replay.py", title="Replay", icon=":material/replay:", url_path="replay"),
            st.Page(PAGES / "advisor.py", title="Advisor", icon=":material/lightbulb:", url_path="advisor"),
        ],
        "Data": [
            st.Page(PAGES / "snapshots.py", title="Snapshots", icon=":material/folder_open:", url_path="snapshots"),
            st.Page(PAGES / "shadow.py", title="Shadow", icon=":material/visibility:", url_path="shadow"),
        ],
    }
).run()
