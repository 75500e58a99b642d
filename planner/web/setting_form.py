"""Widgets for settings, made from the catalogue."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import Setting, SettingValue
from planner.cluster.settings import Settings
from planner.web import address
from planner.web.session import bound
from planner.web.widgets import show_error

_WIDE = 3
_EMPTY = {"names": "[]", "optional double": "null"}
"""How the address has a value that `broker.conf` leaves empty."""
_SAFE = 2**53 - 1  # the largest whole number that a browser holds exactly


def setting_widget(setting: Setting, value: SettingValue, key: str, store: Callable[[Any], None]) -> None:
    """Draw the widget of one setting; it shows a value and stores another one."""
    unit = f" ({setting.unit})" if setting.unit else ""
    label = f"{setting.name}{unit}"
    help_ = " ".join(part for part in (setting.meaning, setting.note, f"Default {setting.default}.") if part)
    shown: Any = value
    draw: Callable[..., Any]
    if setting.kind == "boolean":
        # A narrow column cuts off the label of a toggle, unlike others.
        draw, help_, shown = st.toggle, f"`{setting.name}`: {help_}", bool(value)
    elif setting.kind in {"int", "long"} and isinstance(value, int) and abs(value) <= _SAFE:
        draw = partial(st.number_input, min_value=-_SAFE, max_value=_SAFE, step=1)
    elif setting.kind == "double" and isinstance(value, int | float):
        draw, shown = partial(st.number_input, min_value=-1e300, format="%g"), float(value)
    elif setting.kind == "string" and value in setting.choices:
        draw = partial(st.selectbox, options=setting.choices)
    else:
        draw, shown = partial(st.text_input, max_chars=500), written(value)
    bound(key, shown, partial(draw, label, help=help_), store)


def written(value: SettingValue) -> str:
    """Return a value as `broker.conf` writes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def setting_form(names: Sequence[str], base: Settings, columns: int = _WIDE) -> Settings:
    """Draw a form for some settings and return the settings in force with its changes.

    Each setting is a part of the address, by its own name. A value out of bounds is said and not used.

    Args:
        names: Real names of the settings, in the order of the form.
        base: Settings in force.
        columns: How many settings stand beside each other.
    """
    chosen = base
    for at in range(0, len(names), columns):
        for column, name in zip(st.columns(columns), names[at : at + columns], strict=False):
            setting, start, asked = REFERENCE.settings[name], base[name], address.part(name)
            try:
                value = setting.parse(asked) if asked else start
            except PlannerError as error:
                show_error(error)
                address.put(**{name: ""})
                value = start

            with column:
                setting_widget(setting, value, f"setting-{name}", partial(_store, setting, start))
            chosen = chosen.changed(**{name: value})
    return chosen


def _store(setting: Setting, start: SettingValue, given: Any) -> None:
    same = given in (start, written(start))
    address.put(**{setting.name: "" if same else written(given) or _EMPTY.get(setting.kind, "")})
