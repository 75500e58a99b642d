"""Brokers: resources, what decides the usage, and the bundles of each."""

import streamlit as st

from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, percent
from planner.explain.cluster_tables import broker_frame, bundle_frame, resource_frame
from planner.explain.health import usage_of
from planner.explain.kind_patterns import refused_kinds
from planner.figures.scores import resource_breakdown
from planner.web import address, state
from planner.web.page import Page
from planner.web.resource_map import show_resources
from planner.web.widgets import chart, table

_SHOWN_BUNDLES = 2_000
_COUNTS = ("decides the usage", "counts, but another resource is higher")


def _one(snapshot: Snapshot, broker: int) -> None:
    """Draw the resources of a broker and its bundles."""
    frame = resource_frame(snapshot, broker)
    decides = frame[frame["meaning"] == _COUNTS[0]]
    what = f"{decides.iloc[0]['resource']} decides its usage." if len(decides) else "No resource counts."
    counted = frame["meaning"].isin(_COUNTS).tolist()
    figure = resource_breakdown(frame["resource"].tolist(), frame["% of limit"].tolist(), counted)
    chart(figure, f"{what} Grey resources do not count.", "resources", about=broker)
    table(frame, "resources", formats={"% of limit": "%.1f"})
    if said := refused_kinds(snapshot, broker):
        st.markdown(f"{said} Placement follows from that: see the findings of *Overview*.")
    rows = snapshot.bundles_of(broker)
    st.markdown(f"**{count(len(rows), 'bundle')} on {snapshot.brokers.name[broker]}**")
    rows = rows[:_SHOWN_BUNDLES]
    bundles = bundle_frame(snapshot, rows).drop(columns="owner")
    bundles.insert(0, "namespace", [snapshot.namespaces[n] for n in snapshot.bundles.namespace[rows]])
    by_rate = bundles.sort_values("MiB/s", ascending=False)
    table(by_rate, "bundles-of-broker", formats={"share of hash space (%)": "%.2f"})


def draw(view: state.Current) -> None:
    """Draw the page."""
    snapshot = view.measured
    frame = broker_frame(snapshot)
    there = int((snapshot.brokers.registered & snapshot.brokers.has_load_data).sum())
    least, _, highest = usage_of(snapshot, snapshot.settings)
    rest = f" {len(frame) - there:,} of {len(frame):,} report no load." if there < len(frame) else ""
    st.markdown(
        f"{count(there, 'broker')} with a usage from {percent(least)} to {percent(highest)}.{rest} Usage"
        " is the share of a broker's most used resource, with the weights of the settings."
    )
    show_resources(snapshot, "resource-map")
    names = frame["broker"].tolist()
    formats = {column: "%.1f" for column in frame.columns if column.endswith(("(%)", "/s"))}
    table(frame, "brokers", formats=formats, pick=lambda row: address.put(broker=names[row]))
    st.header("Broker details", anchor=False)
    picked = address.choice("broker", "Broker", names, named=True)
    _one(snapshot, snapshot.brokers.position[picked])


PAGE = Page(
    title="Brokers",
    icon=":material/dns:",
    purpose="The resources and limits of each broker, the resource that decides its usage, and its bundles.",
    draw=draw,
)
