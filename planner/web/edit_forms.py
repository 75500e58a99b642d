"""The form of an edit, drawn from what its fields say of themselves."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from itertools import cycle
from types import MappingProxyType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import streamlit as st
from pydantic.fields import FieldInfo
from streamlit.delta_generator import DeltaGenerator

from planner.cluster.ranges import format_range
from planner.cluster.text import count, rounded
from planner.cluster.units import MIB
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.simulate.edits.edit import Ask, Edit, EditContext, Pick
from planner.simulate.edits.registry import KINDS

_SAFE = 2**53 - 1
"""The largest number that a browser's number field takes."""


@dataclass(frozen=True, eq=False, slots=True)
class _Entry:
    """One field of a form.

    Attributes:
        context: Kind of edit there is to choose from.
        key: Keeps its widget apart.
        ask: How to ask.
        type: Its type, without what is annotated.
        bounds: Those of the field, by pydantic's names: `ge`, `le`, `max_length`.
        start: Value to begin with.
        place: Where to draw it.
    """

    context: EditContext
    key: str
    ask: Ask
    type: Any
    bounds: Mapping[str, Any]
    start: Any
    place: DeltaGenerator

    def text(self, label: str, placeholder: str | None = None, value: str = "", most: int = 60) -> str:
        return self.place.text_input(
            label,
            value,
            key=self.key,
            max_chars=self.bounds.get("max_length", most),
            help=self.ask.help,
            placeholder=placeholder,
        )


def edit_form(context: EditContext, key: str) -> Edit:
    """Draw the form of an edit, kept apart by its key, and return what it says; it may still be out of bounds."""
    kind = st.selectbox("Kind of edit", list(KINDS), format_func=lambda k: KINDS[k].title, key=f"{key}-kind")
    edit = KINDS[kind or next(iter(KINDS))]
    if edit.hint:
        st.caption(edit.hint)
    said: dict[str, Any] = {}
    hints = get_type_hints(edit, include_extras=True)
    asked = [(field, *_asked(hints[field.name])) for field in fields(cast("Any", edit)) if field.name != "kind"]
    halves: Iterator[DeltaGenerator] | None = None
    for field, ask, kind_of, bounds in sorted(asked, key=lambda one: (one[0].name == "at_min", one[1].half)):
        if not ask.when(said):
            continue
        if ask.half:
            halves = halves or cycle(st.columns(2))
        place = next(halves) if ask.half and halves else st.container()
        pick = ask.pick(said) if callable(ask.pick) else ask.pick
        start = ask.start(context, said) if callable(ask.start) else _default(field) if ask.start is None else ask.start
        said[field.name] = _PICKERS[pick](
            _Entry(context, f"{key}-{kind}-{field.name}-{pick}-{start}", ask, kind_of, bounds, start, place)
        )
    return edit(**said)


def _asked(hint: Any) -> tuple[Ask, Any, Mapping[str, Any]]:
    """Return how a field is asked for, its type and its bounds."""
    base, *notes = get_args(hint)
    parts = [part for note in notes if isinstance(note, FieldInfo) for part in note.metadata]
    bounds = {name: getattr(part, name) for part in parts for name in ("ge", "le", "max_length") if hasattr(part, name)}
    return next(note for note in notes if isinstance(note, Ask)), base, bounds


def _default(field: "Field[Any]") -> Any:
    return "" if field.default is MISSING else field.default


def _value(entry: _Entry) -> Any:
    """Draw a field by its type."""
    ask, place = entry.ask, entry.place
    if entry.type is bool:
        return place.toggle(ask.label, entry.start, key=entry.key, help=ask.help)
    if entry.type is str:
        return entry.text(ask.label, ask.placeholder, entry.start).strip()
    if get_origin(entry.type) is Literal:
        options = ask.options
        said = {value: f"{value}: {options[value]}" if value in options else value for value in get_args(entry.type)}
        return place.selectbox(ask.label, list(said), format_func=said.__getitem__, key=entry.key, help=ask.help)
    kind = entry.type
    number = place.number_input(
        ask.label,
        kind(entry.bounds.get("ge", 0) if ask.least is None else ask.least),
        kind(min(entry.bounds["le"], _SAFE)),
        kind(entry.start),
        kind(ask.step),
        format="%d" if kind is int else "%g",
        key=entry.key,
        help=ask.help,
    )
    return kind(number)


def _tabs(entry: _Entry) -> str:
    options = get_args(entry.type)
    return str(
        entry.place.segmented_control(entry.ask.label, options, default=entry.start, key=entry.key) or options[0]
    )


def _broker(entry: _Entry) -> str:
    return str(entry.place.selectbox(entry.ask.label or "Broker", entry.context.brokers, key=entry.key) or "")


def _brokers(entry: _Entry) -> tuple[str, ...]:
    chosen = entry.place.multiselect(
        entry.ask.label or "Brokers", entry.context.brokers, key=entry.key, placeholder="all brokers"
    )
    return tuple(chosen)


def _or_empty(entry: _Entry, words: str, names: Iterable[str]) -> str:
    """Let one of several names be chosen, or none, which has words."""
    chosen = entry.place.selectbox(entry.ask.label, [words, *names], key=entry.key)
    return "" if chosen in {words, None} else str(chosen)


def _namespace(entry: _Entry) -> str:
    names = entry.context.snapshot.namespaces
    return str(entry.place.selectbox("Namespace", names, key=f"{entry.key}-namespace") or "")


def _bundle(entry: _Entry) -> str:
    """Let a bundle be chosen: first its namespace, then its range, the busiest first."""
    snapshot, namespace = entry.context.snapshot, _namespace(entry)
    place = snapshot.namespaces.index(namespace) if namespace in snapshot.namespaces else -1
    table = snapshot.bundles
    rows = [i for i, owner in enumerate(table.namespace.tolist()) if owner == place]
    traffic = table.throughput_bytes_per_s()
    rows.sort(key=lambda i: -float(traffic[i]))
    ranges = {format_range(int(table.low[i]), int(table.high[i])): i for i in rows}

    def label(text: str) -> str:
        at = ranges[text]
        return f"{text} · {rounded(traffic[at] / MIB)} MiB/s · {count(int(table.topics[at]), 'topic')}"

    chosen = entry.place.selectbox("Bundle", list(ranges), format_func=label, key=f"{entry.key}-{namespace}")
    return f"{namespace}/{chosen}"


def _topic(entry: _Entry) -> str:
    return entry.text("Topic", "persistent://tenant/namespace/topic", most=300).strip()


def _namespace_or_topic(entry: _Entry) -> str:
    places = ["namespace", "topic"]
    place = entry.place.segmented_control(entry.ask.label, places, default=places[0], key=f"{entry.key}-place")
    return _topic(entry) if place == "topic" else _namespace(entry)


def _names(entry: _Entry) -> tuple[str, ...]:
    text = entry.place.text_input(
        entry.ask.label, key=entry.key, placeholder=entry.ask.placeholder, max_chars=2_000, help="Separated by commas"
    )
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(entry: _Entry) -> tuple[tuple[str, str], ...]:
    """Let pairs of names be given; what is none lacks its second name, which the scenario refuses in a sentence."""
    text = entry.place.text_area(
        entry.ask.label,
        key=entry.key,
        placeholder="tenant/namespace/0x00000000_0x40000000 broker-1:8080",
        help="One move per line: the bundle, then the broker",
    )
    lines = (line.replace(",", " ").partition(" ") for line in map(str.strip, text.splitlines()) if line)
    return tuple((first, second.strip()) for first, _, second in lines)


def _positions(entry: _Entry) -> tuple[int, ...]:
    """Let positions of the hash space be given; what is none becomes -1, which the scenario refuses in a sentence."""
    found = []
    for part in _names(entry):
        try:
            found.append(int(part, 0))
        except ValueError:
            found.append(-1)
    return tuple(found)


_PICKERS: Mapping[Pick, Callable[[_Entry], Any]] = MappingProxyType(
    {
        "value": _value,
        "tabs": _tabs,
        "names": _names,
        "pairs": _pairs,
        "positions": _positions,
        "algorithm": lambda entry: _or_empty(entry, "default algorithm", (one.name for one in SPLIT_ALGORITHMS)),
        "broker": _broker,
        "brokers": _brokers,
        "destination": lambda entry: _or_empty(entry, "decided by placement", entry.context.brokers),
        "cluster": lambda _: "",
        "namespace": _namespace,
        "bundle": _bundle,
        "topic": _topic,
        "namespace or topic": _namespace_or_topic,
    }
)
