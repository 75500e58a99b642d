"""What the Brokers page draws."""

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.snapshot import LoadManager, Snapshot
from planner.figures.scores import resource_breakdown
from planner.pulsar.load.usage import (
    RESOURCES,
    ResourceWeights,
    deciding_resource,
    max_usage,
    usage_percent_by_resource,
    weighted_usage,
)
from planner.web import state
from planner.web.bundle_map import bundle_frame
from planner.web.text import count, moment
from planner.web.widgets import chart, table

_LABELS = {
    "cpu": "CPU",
    "memory": "Heap memory",
    "directMemory": "Direct memory",
    "bandwidthIn": "Bandwidth in",
    "bandwidthOut": "Bandwidth out",
}
_UNITS = {
    "cpu": "% of one core",
    "memory": "MiB",
    "directMemory": "MiB",
    "bandwidthIn": "kbit/s",
    "bandwidthOut": "kbit/s",
}
_SHOWN_BUNDLES = 2_000


def broker_frame(snapshot: Snapshot) -> pd.DataFrame:
    """Return one row for each broker."""
    brokers, manager = snapshot.brokers, snapshot.info.load_manager
    percents = usage_percent_by_resource(brokers)
    frame = pd.DataFrame({"broker": brokers.name})
    frame["usage W (%)"] = weighted_usage(brokers, snapshot.settings, manager) * 100
    frame["decided by"] = [_LABELS[r] for r in deciding_resource(brokers, snapshot.settings, manager)]
    for name, row in zip(RESOURCES, percents, strict=True):
        frame[f"{_LABELS[name]} (%)"] = row.astype(np.float64)
    frame["unweighted max (%)"] = max_usage(brokers, manager) * 100
    if manager is LoadManager.EXTENSIBLE:
        frame["weighted max EMA (%)"] = brokers.weighted_max_ema * 100
    frame["msg/s"] = brokers.msg_rate_in_per_s + brokers.msg_rate_out_per_s
    frame["MB/s"] = (brokers.msg_throughput_in_bytes_per_s + brokers.msg_throughput_out_bytes_per_s) / 1e6
    frame["bundles"] = snapshot.bundle_counts()
    frame["topics"] = brokers.topics
    frame["producers"] = brokers.producers
    frame["consumers"] = brokers.consumers
    frame["version"] = brokers.version
    frame["reported"] = [moment(t) for t in brokers.updated_at_ms.tolist()]
    return frame.sort_values("usage W (%)", ascending=False, kind="stable")


def _weight(weights: ResourceWeights, resource: str) -> float:
    return {
        "cpu": weights.cpu,
        "memory": weights.memory,
        "directMemory": weights.direct_memory,
        "bandwidthIn": weights.bandwidth_in,
        "bandwidthOut": weights.bandwidth_out,
    }[resource]


def resource_frame(snapshot: Snapshot, broker: int) -> pd.DataFrame:
    """Return one row for each resource of a broker: use, limit, percentage, weight, and what it counts for."""
    brokers, manager = snapshot.brokers, snapshot.info.load_manager
    weights = ResourceWeights.of(snapshot.settings, manager)
    percents = usage_percent_by_resource(brokers)[:, broker].astype(np.float64)
    decides = deciding_resource(brokers, snapshot.settings, manager)[broker]
    columns = {
        "cpu": (brokers.cpu_usage_percent, brokers.cpu_limit_percent),
        "memory": (brokers.memory_usage_mib, brokers.memory_limit_mib),
        "directMemory": (brokers.direct_memory_usage_mib, brokers.direct_memory_limit_mib),
        "bandwidthIn": (brokers.bandwidth_in_usage_kbit_per_s, brokers.bandwidth_in_limit_kbit_per_s),
        "bandwidthOut": (brokers.bandwidth_out_usage_kbit_per_s, brokers.bandwidth_out_limit_kbit_per_s),
    }
    rows = []
    for name, percent in zip(RESOURCES, percents.tolist(), strict=True):
        usage, limit = (float(c[broker]) for c in columns[name])
        weight = _weight(weights, name)
        if name == "memory" and manager is LoadManager.MODULAR:
            meaning = "never counts in the modular load manager"
        elif limit <= 0:
            meaning = "limit unknown, counts as 0 %"
        elif weight == 0:
            meaning = "weight 0, does not count"
        else:
            meaning = "decides the score" if name == decides else "counts, but another is larger"
        rows.append(
            {
                "resource": _LABELS[name],
                "used": usage,
                "limit": limit,
                "unit": _UNITS[name],
                "% of limit": percent,
                "weight": weight,
                "meaning": meaning,
            }
        )
    return pd.DataFrame(rows)


def _one(snapshot: Snapshot, broker: int) -> None:
    frame = resource_frame(snapshot, broker)
    decides = frame[frame["meaning"] == "decides the score"]
    what = f"{decides.iloc[0]['resource']} decides its score." if len(decides) else "No resource counts."
    counted = [m in {"decides the score", "counts, but another is larger"} for m in frame["meaning"]]
    chart(
        resource_breakdown(frame["resource"].tolist(), frame["% of limit"].tolist(), counted),
        f"{what} Grey ones do not count.",
        f"resources-{broker}",
    )
    table(frame, "resources", column_config={"% of limit": st.column_config.NumberColumn(format="%.4f")})
    rows = snapshot.bundles_of(broker)
    st.markdown(f"**{count(len(rows), 'bundle')} on {snapshot.brokers.name[broker]}**")
    bundles = bundle_frame(snapshot, rows[:_SHOWN_BUNDLES])
    bundles.insert(0, "namespace", [snapshot.namespaces[n] for n in snapshot.bundles.namespace[rows[:_SHOWN_BUNDLES]]])
    number = st.column_config.NumberColumn
    formats = {"MB/s": number(format="%.3f"), "msg/s": number(format="%.1f")}
    shown = bundles.drop(columns="owner").sort_values("MB/s", ascending=False)
    table(shown, "bundles-of-broker", column_config={**formats, "share of hash space (%)": number(format="%.3f")})


def draw(view: state.Current) -> None:
    """Draw the page."""
    snapshot = view.snapshot
    frame = broker_frame(snapshot)
    spread = frame["usage W (%)"]
    st.markdown(
        f"{count(len(frame), 'broker')}; usage W from {spread.min():.1f} % to {spread.max():.1f} %. W is the largest"
        " weighted percentage of a broker's resources; percentages are computed in single precision, as Pulsar does."
    )
    numbers = {c: st.column_config.NumberColumn(format="%.2f") for c in frame.columns if c.endswith(("(%)", "/s"))}
    event = table(frame, "brokers", column_config=numbers, on_select="rerun", selection_mode="single-row")
    names = frame["broker"].tolist()
    asked = state.param("broker")
    if asked and asked not in names:
        st.warning("The link names a broker that this snapshot does not have.", icon=":material/link_off:")
        asked = ""
    clicked = event.get("selection", {}).get("rows", []) if isinstance(event, dict) else []
    chosen = asked or names[0]
    if clicked and st.session_state.get("broker-row") != clicked[0]:
        st.session_state["broker-row"] = clicked[0]
        chosen = names[clicked[0]]
    st.subheader("One broker", anchor=False)
    picked = st.selectbox("Broker", names, index=names.index(chosen), key=f"broker-{chosen}") or chosen
    state.set_params(broker=picked)
    if picked != chosen:  # the box is drawn anew with what was picked, else its next choice would be lost
        st.rerun()
    _one(snapshot, snapshot.brokers.position[picked])
