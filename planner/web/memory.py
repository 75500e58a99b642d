"""What a leader remembers, as a table that people can read and a document to take away."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from planner.pulsar.manager.leader import LeaderMemory, memory_to_json
from planner.web.text import moment
from planner.web.widgets import table

_PARTS = {
    "shedding": "Shedding strategy",
    "modular": "Placement",
    "extensible": "Placement",
    "split_hits": "Automatic splits",
}
_MEANINGS = {
    "usage_ema": "averaged usage (%)",
    "hits_high": "high hits (cycles in a row)",
    "hits_low": "low hits (cycles in a row)",
    "hit_count": "cycles in a row that call for shedding",
    "broker": "broker that bundles with these averages are bound to",
    "most_brokers": "most brokers of any cycle",
    "recently_unloaded_bundles": "unloaded at",
    "recently_unloaded_brokers": "last handed something over at",
    "usage": "averaged usage (%)",
    "counter": "turns taken",
    "listed": "brokers in turn",
    "bundles": "bundles promised and not reported yet",
    "promised": "promised to",
    "preallocated": "counts for, until it is reported",
    "affinities": "named as destination",
    "split_hits": "checks in a row above a limit",
}
_PERCENT = {"usage_ema", "usage"}
_MOMENTS = {"recently_unloaded_bundles", "recently_unloaded_brokers"}
_ROTATION = "Round robin for excluded namespaces"
_SHOWN = 5_000
_ROOM = 8


def _text(name: str, value: Any) -> str:
    if name in _PERCENT:
        return f"{value * 100:.4f}"
    if name in _MOMENTS:
        return moment(value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _entries(part: str, name: str, value: Any) -> Iterator[dict[str, str]]:
    """Yield the rows of one thing that is remembered; none when it is empty."""
    row = {"kept by": part, "what": _MEANINGS.get(name, name.replace("_", " "))}
    if isinstance(value, Mapping):
        for of, held in value.items():
            inner = held.items() if isinstance(held, Mapping) else [("", held)]
            for bundle, number in inner:
                yield {**row, "of": f"{bundle} on {of}" if bundle else str(of), "value": _text(name, number)}
    elif name == "broker":
        for key, broker in value:
            yield {**row, "of": " · ".join(f"{number:g}" for number in key), "value": str(broker)}
    elif value:
        yield {**row, "of": "", "value": _text(name, value)}


def memory_frame(memory: LeaderMemory) -> pd.DataFrame:
    """Return one row for each thing that a leader remembers: who keeps it, what it is, of what, and its value."""
    rows: list[dict[str, str]] = []
    for part, content in memory_to_json(memory).items():
        if part == "split_hits":
            rows += _entries(_PARTS[part], part, content)
            continue
        for name, value in content.items():
            if name in {"state", "placement", "rotation"}:
                keeper = _ROTATION if name == "rotation" else _PARTS[part]
                for own, held in (value or {}).items():
                    rows += [] if own == "kind" else _entries(keeper, own, held)
            else:
                keeper = "Leader" if name in _MOMENTS else _PARTS[part]
                rows += _entries(keeper, name, value)
    return pd.DataFrame(rows, columns=["kept by", "what", "of", "value"])


def show_memory(memory: LeaderMemory, key: str) -> None:
    """Draw what the leader remembers after a cycle, with a download as JSON."""
    frame = memory_frame(memory)
    with st.expander(f"What the leader remembers after this cycle ({len(frame):,})"):
        if frame.empty:
            st.markdown("Nothing: no average, no hit count, no promise, no bundle that was unloaded.")
        else:
            more = f" Shown are the first {_SHOWN:,}." if len(frame) > _SHOWN else ""
            st.markdown(f"A leader that is elected next starts without all of this.{more}")
            table(frame.head(_SHOWN), f"{key}-memory", height=280 if len(frame) > _ROOM else None)
        st.download_button(
            "Download as JSON",
            json.dumps(memory_to_json(memory), indent=2).encode(),
            file_name="leader-memory.json",
            mime="application/json",
            icon=":material/download:",
            key=f"{key}-memory-json",
        )
