"""The script that Streamlit runs for every page."""

from pathlib import Path

import streamlit as st

from planner.web.registry import navigation

# Captions and what is chosen can be read on every background (WCAG: a contrast of 4.5), also where the accent of the
# theme is light. Pages use the width of the screen and begin near its top; what copies a link is there before anybody
# points at it. Names of settings fit into the drawer. What answers an older question fades at once. Headings have no
# links of their own, each of which would be one more stop of the Tab key.
_STYLE = """<style>
[data-testid=stMainBlockContainer] {padding: 3rem clamp(1rem, 3vw, 3rem) 4rem}
.st-key-link [data-testid=stCode] > div, .st-key-link [data-testid=stCode] > div * {opacity: 1; visibility: visible}
.st-key-link pre {padding-right: 3rem}
[data-testid=stMultiSelect] input {min-width: 24px}
[data-testid=stElementContainer][data-stale=true] {opacity: .33; transition: opacity .3s ease-in .2s}
[data-testid=stSidebar] [data-testid=stWidgetLabel] p {font-size: .8rem}
[data-testid=stHeaderActionElements] {display: none}
[data-testid=stCaptionContainer] {color: inherit; opacity: .82}
[data-tag], [data-testid=stBaseButton-primary]:not(:disabled)
  {background: #0067A3; border-color: #0067A3}
[data-tag] *, [data-testid=stBaseButton-primary]:not(:disabled) * {color: #fff}
</style>"""

_DRAWER_PX = 360
_ICON, _LOGO = (str(Path(__file__).with_name(name)) for name in ("icon.svg", "logo.svg"))
st.set_page_config(page_title="Pulsar bundle planner", page_icon=_ICON, layout="wide", initial_sidebar_state=_DRAWER_PX)
st.logo(_LOGO)
st.html(_STYLE)
navigation().run()
