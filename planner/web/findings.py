"""What a diagnosis found, as cards; a remedy that is a setting is applied with one click."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from planner.explain.diagnosis import PATTERNS
from planner.explain.finding import Finding
from planner.web import scenarios, state
from planner.web.choices import written
from planner.web.widgets import button

_ICONS = {"high": ":material/error:", "medium": ":material/warning:", "low": ":material/info:"}
_WORDS = {"high": "clients suffer", "medium": "not balanced", "low": "could be tidier"}


def finding_cards(view: state.Current, findings: Sequence[Finding], key: str) -> None:
    """Draw what a diagnosis found: evidence, remedy, and a button that tries it.

    Args:
        view: The snapshot in view.
        findings: What was found.
        key: Keeps the buttons of several places apart.
    """
    if not findings:
        st.success("No known failure pattern shows in this simulation.", icon=":material/check_circle:")
        looked = ", ".join(pattern.__name__.replace("_", " ") for pattern in PATTERNS)
        st.caption(f"Looked for: {looked.replace('ema', 'EMA')}.")
    for at, finding in enumerate(findings):
        with st.container(border=True):
            st.markdown(f"{_ICONS[finding.severity]} **{finding.title}** · {_WORDS[finding.severity]}")
            st.text(finding.evidence)
            st.text(f"Remedy: {finding.remedy}")
            if finding.changes:
                label = ", ".join(f"{name} = {_shown(value)}" for name, value in finding.changes.items())
                apply = partial(_apply, view, finding)
                button(f"Try {label}", "science", apply, key=f"try-{key}-{at}-{finding.code}")


def _shown(value: Any) -> str:
    text = written(value)
    return text.rpartition(".")[2] if text.startswith("org.apache.") else text


def _apply(view: state.Current, finding: Finding) -> None:
    """Put the changes of a finding into the scenario."""
    present = scenarios.present(view)
    plain: dict[str, Any] = {
        name: written(value) if isinstance(value, tuple) else value for name, value in finding.changes.items()
    }
    scenarios.change(view, replace(present, settings={**present.settings, **plain}))
