"""Widgets for settings, made from the catalogue; what is changed is the scenario's."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from planner.cluster.setting import Setting, SettingValue, conf_value
from planner.cluster.settings import Settings
from planner.web import state
from planner.web.choices import set_setting
from planner.web.session import bound

_WIDE = 3
_SAFE = 2**53 - 1  # the largest whole number that a browser holds exactly


def setting_widget(setting: Setting, value: SettingValue, key: str, store: Callable[[Any], None]) -> None:
    """Draw the widget of one setting; it shows a value and stores another one."""
    unit = f" ({setting.unit})" if setting.unit else ""
    label = f"{setting.name}{unit}"
    help_ = " ".join(part for part in (setting.meaning, setting.note, f"Default {setting.default}.") if part)
    content: Any = value
    draw: Callable[..., Any]
    if setting.kind == "boolean":
        # A narrow column cuts off the label of a toggle, unlike others.
        draw, help_, content = st.toggle, f"`{setting.name}`: {help_}", bool(value)
    elif setting.kind in {"int", "long"} and isinstance(value, int) and abs(value) <= _SAFE:
        draw = partial(st.number_input, min_value=-_SAFE, max_value=_SAFE, step=1)
    elif setting.kind == "double" and isinstance(value, int | float):
        draw, content = partial(st.number_input, min_value=-1e300, format="%g"), float(value)
    elif setting.kind == "string" and value in setting.choices:
        draw = partial(st.selectbox, options=setting.choices)
    else:
        draw, content = partial(st.text_input, max_chars=500), conf_value(value)
    bound(key, content, partial(draw, label, help=help_), store, typed=isinstance(content, str))


def setting_form(view: state.Current, names: Sequence[str], base: Settings, columns: int = _WIDE) -> None:
    """Draw a form for those settings that the release in force has; what is changed is the scenario's.

    Args:
        view: The snapshot in view.
        names: Real names of the settings, in the order of the form.
        base: Settings in force, with those of the scenario.
        columns: How many settings stand beside each other.
    """
    names = [name for name in names if name in base]
    for at in range(0, len(names), columns):
        for column, name in zip(st.columns(columns), names[at : at + columns], strict=False):
            with column:
                store = partial(set_setting, view, name)
                setting_widget(base.of(name), base[name], f"setting-{name}", store)
