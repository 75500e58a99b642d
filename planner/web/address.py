"""The address of a page and the widgets bound to it: the only module that touches the query parameters.

Each widget here shows a part of the address and writes it when a person changes it. A default leaves the address clean,
unless the part is `named`: what the page is about (a broker, a bundle, a job) stays in the address, as its default
depends on the data. A value that makes no sense falls back to the default with a note.

A part of a page that asks for itself sends the address that the browser knows. Where that was written over a moment
ago, the one written counts; else what a person chose meanwhile would be lost.

Streamlit's own `bind="query-params"` is not used: it writes formatted labels and repeated parameters, where addresses
have names and commas, it drops a bad value in silence, and nothing but its widget can write its parameter.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from planner.cluster.text import plain
from planner.web.headers import COOKIE
from planner.web.session import SEEN_S, SessionValue, bound, is_history_navigation

N = TypeVar("N", int, float)
Words = Callable[[str], str]

_LONGEST = 2_000
_NOTED = 60
_NOTHING = "-"
"""Written for an empty choice of several, where that is not the default."""


Address = tuple[str, tuple[tuple[str, str], ...]]
_WRITTEN_OVER: SessionValue[dict[Address, float]] = SessionValue("written_over", dict)
"""Each address, with its page, that another was written over not long ago, and when."""
_WRITTEN: SessionValue[dict[str, str]] = SessionValue("written", dict)
"""The parts of the address written last."""


def _address(parts: Mapping[str, str]) -> Address:
    return host(), tuple(sorted(parts.items()))


def parts() -> dict[str, str]:
    """Return all parts of the address, or of the one written over it a moment ago."""
    found: dict[str, str] = st.query_params.to_dict()
    since_s = time.monotonic() - _WRITTEN_OVER.get().get(_address(found), -SEEN_S)
    if since_s < SEEN_S and not is_history_navigation():
        found = dict(_WRITTEN.get())
        st.query_params.from_dict(found)
    return found


def replace(**wanted: str) -> None:
    """Put parts into the address, but empty ones, and take all others out."""
    before, after = parts(), {name: value for name, value in wanted.items() if value}
    if after == before:
        return
    st.query_params.from_dict(after)
    _WRITTEN.put(after)
    now_s = time.monotonic()
    recent = {one: at_s for one, at_s in _WRITTEN_OVER.get().items() if now_s - at_s < SEEN_S}
    if before:  # one without parts is what the menu asks for: it begins anew
        recent[_address(before)] = now_s
    recent.pop(_address(after), None)
    _WRITTEN_OVER.put(recent)


def put(**wanted: str) -> None:
    """Put parts into the address; empty ones are taken out, others stay."""
    replace(**{**parts(), **wanted})


def part(name: str) -> str:
    """Return a part of the address; empty when it is not there, or longer than any that the planner writes."""
    value = parts().get(name, "")
    if len(value) > _LONGEST:
        note(f"The value of “{plain(name)}” in this address is too long and was ignored.")
        put(**{name: ""})
    return value if len(value) <= _LONGEST else ""


def host() -> str:
    """Return the address of this page as the browser sees it; empty when it is unknown."""
    return st.context.url or ""


def at(page: str | None = None, **parts: str) -> str:
    """Return the whole address of a page, of this one when None, with parts in their order."""
    here = urlsplit(host() or "http://localhost:8501/")
    path = here.path or "/" if page is None else f"/{page}"
    return urlunsplit((here.scheme, here.netloc, path, urlencode(parts), ""))


def browser() -> str:
    """Return what this server calls the browser (see `headers`); empty when it keeps no cookies."""
    cookie: Any = st.context.cookies.get(COOKIE, "")
    return cookie if isinstance(cookie, str) and re.fullmatch(r"[0-9a-f]{32}", cookie) else ""


def note(text: str) -> None:
    """Say what is wrong with the address."""
    st.warning(text, icon=":material/link_off:")


def _refuse(name: str, label: str, fallback: str) -> None:
    """Note a value that makes no sense, and take it out of the address."""
    asked = plain(part(name)[:_NOTED])
    note(f"“{asked}” is not a valid value for “{label}”; using {plain(fallback)}.")
    put(**{name: ""})


def is_one_of(name: str, label: str, options: Collection[str], fallback: str = "the current value") -> bool:
    """Say whether a part of the address is one of several names; note where it is not, and what is used instead."""
    asked = part(name)
    if asked not in options:
        _refuse(name, label, fallback)
    return asked in options


def _store(name: str, default: Any, write: Callable[[Any], str], clears: Collection[str], value: Any) -> None:
    put(**dict.fromkeys(clears, ""))
    put(**{name: "" if value is None or value == default else write(value)})


def _draw(
    name: str,
    value: Any,
    default: Any,
    draw: Callable[..., Any],
    write: Callable[[Any], str] = str,
    *,
    named: bool = False,
    clears: Collection[str] = (),
    key: str = "",
) -> Any:
    """Draw a widget bound to one part of the address; see the module."""
    if named:
        default = None
        put(**{name: write(value)})
    return bound(f"address-{name}{key}", value, draw, partial(_store, name, default, write, clears))


def choice(
    name: str,
    label: str,
    options: Sequence[str] | Mapping[Any, str],
    default: str = "",
    *,
    words: Words = str,
    named: bool = False,
    segments: bool = False,
    clears: Collection[str] = (),
    place: Any = st,
    **more: Any,
) -> str:
    """Draw the choice of one of several names.

    Args:
        name: The part of the address.
        label: What is chosen.
        options: The names; or names with their words.
        default: The name chosen without an address; the first one when empty.
        words: Turns a name into words, where `options` does not.
        named: Whether the address has the default, too.
        segments: Draws all names beside each other instead of a list.
        clears: Other parts that a change takes out of the address.
        place: Where to draw.
        more: Further arguments of the widget.
    """
    names = list(options)
    default = default or names[0]
    asked = part(name)
    free = more.get("accept_new_options", False)
    value = asked if asked and (free or asked in names) else default
    label_of = options.__getitem__ if isinstance(options, Mapping) else words
    if asked and value != asked:
        _refuse(name, label, label_of(default))
    if free and value not in names:
        names = [value, *names]
    widget = partial(place.segmented_control, required=True) if segments else place.selectbox
    draw = partial(widget, label, names, format_func=label_of, **more)
    found: str = _draw(name, value, default, draw, named=named, clears=clears)
    return found


def several(
    name: str,
    label: str,
    options: Sequence[str] | Mapping[Any, str],
    default: Sequence[str] = (),
    *,
    place: Any = st,
    **more: Any,
) -> tuple[str, ...]:
    """Draw the choice of any number of names, separated by commas in the address; see `choice`."""
    asked = part(name)
    wanted = [one for one in asked.split(",") if one and one != _NOTHING]
    value = [one for one in dict.fromkeys(wanted) if one in options]
    if len(value) < len(wanted):
        _refuse(name, label, ", ".join(value or default) or "none")
        put(**{name: ",".join(value)})
    if not value and asked != _NOTHING:
        value = list(default)
    label_of = options.__getitem__ if isinstance(options, Mapping) else str
    draw = partial(place.multiselect, label, list(options), format_func=label_of, **more)
    return tuple(_draw(name, value, list(default), draw, lambda names: ",".join(names) or _NOTHING))


def number(
    name: str,
    label: str,
    default: N,
    low: N,
    high: N,
    *,
    slider: bool = False,
    named: bool = False,
    place: Any = st,
    **more: Any,
) -> N:
    """Draw a number within bounds, whole when the default is; see `choice`."""
    whole = isinstance(default, int)
    asked = part(name)
    try:
        value: Any = (int(asked) if whole else float(asked)) if asked else default
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        _refuse(name, label, f"{default:g}")
        value = default
    widget = place.slider if slider else partial(place.number_input, **({} if whole else {"format": "%g"}))
    draw = partial(widget, label, low, high, **more)
    key = f"-{low}-{high}" if slider else ""  # to Streamlit, a slider with other bounds is another widget
    found: N = _draw(name, value, default, draw, lambda v: f"{v:.12g}", named=named, key=key)
    return found


def text(name: str, label: str, *, max_chars: int = 200, place: Any = st, **more: Any) -> str:
    """Draw a field for any text; see `choice`."""
    value = part(name)
    if len(value) > max_chars:
        _refuse(name, label, "nothing")
        value = ""
    draw = partial(place.text_input, label, max_chars=max_chars, **more)
    return bound(f"address-{name}", value, draw, partial(_store, name, "", str, ()), typed=True)


def toggle(name: str, label: str, *, place: Any = st, **more: Any) -> bool:
    """Draw a switch that is off by default; see `choice`."""
    asked = part(name)
    if asked not in {"", "1"}:
        _refuse(name, label, "off")
    return bool(_draw(name, asked == "1", False, partial(place.toggle, label, **more), lambda _: "1"))
