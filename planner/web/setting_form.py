"""A form for settings, made from the catalogue; what is changed goes into the address."""

from collections.abc import Sequence

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import Setting, SettingValue
from planner.cluster.settings import Settings
from planner.web import state
from planner.web.widgets import show_error

_WIDE = 3


def setting_widget(setting: Setting, value: SettingValue, key: str) -> SettingValue:
    """Draw the widget of one setting and return its value."""
    unit = f" ({setting.unit})" if setting.unit else ""
    default = f"Default {setting.default}."
    help_ = " ".join(part for part in (setting.meaning, setting.note, default) if part)
    label = f"{setting.name}{unit}"
    if setting.kind == "boolean":
        # A narrow column cuts off the label of a toggle, unlike others.
        return st.toggle(label, bool(value), key=key, help=f"`{setting.name}`: {help_}")
    if setting.kind in {"int", "long"} and isinstance(value, int):
        return int(st.number_input(label, value=value, step=1, key=key, help=help_))
    if setting.kind == "double" and isinstance(value, int | float):
        return float(st.number_input(label, value=float(value), key=key, help=help_, format="%g"))
    if setting.kind == "string" and value in setting.choices:
        return st.selectbox(label, setting.choices, setting.choices.index(str(value)), key=key, help=help_)
    return st.text_input(label, written(value), key=key, help=help_, max_chars=500)


def written(value: SettingValue) -> str:
    """Return a value as `broker.conf` writes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def setting_form(names: Sequence[str], base: Settings, prefix: str, columns: int = _WIDE) -> Settings:
    """Draw a form for some settings and return the settings in force with its changes.

    Values start with those of the address, else with those of `base`. A value out of bounds is said and not used.

    Args:
        names: Real names of the settings, in the order of the form.
        base: Settings in force.
        prefix: Keeps the widgets of several forms apart.
        columns: How many settings stand beside each other.
    """
    chosen = base
    for at in range(0, len(names), columns):
        row = names[at : at + columns]
        for column, name in zip(st.columns(columns), row, strict=False):
            setting = REFERENCE.settings[name]
            asked = state.param(name)
            try:
                start = setting.parse(asked) if asked else base[name]
            except PlannerError as error:
                show_error(error)
                start = base[name]
            with column:
                value = setting_widget(setting, start, f"{prefix}-{name}")
            try:
                chosen = chosen.changed(**{name: value})
            except PlannerError as error:
                show_error(error)
                continue
            state.set_params(**{name: "" if chosen[name] == base[name] else written(value)})
    return chosen
