"""A form that describes a cluster that does not exist yet."""

import time
from functools import partial

import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import REFERENCE, RELEASES
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import EXPONENTS, Distribution, PlannedCluster, PlannedTopics
from planner.web import state
from planner.web.page import arrive
from planner.web.widgets import show_error

_START = PlannedTopics(count=26_000, msg_rate_per_s=50_000.0)
_COLUMNS = {
    "pattern": "topics",
    "count": "number of topics",
    "msg_rate_per_s": "msg/s, all together",
    "message_bytes": "bytes per message",
    "subscriptions": "subscriptions each",
    "distribution": "rates",
    "bundles": "bundles of the namespace",
}
_FIELDS = {**_COLUMNS, "cluster": "Name of the cluster", "topics": "number of topics"}
"""Fields and columns of the form, by what `plan_cluster` calls them."""


def planned_part() -> None:
    """Draw the form, and open the cluster that it describes."""
    st.markdown(
        "Describe brokers and topics. Topics are hashed into bundles, and bundles are placed on empty brokers, as"
        " Pulsar does. The snapshot is marked as planned: no broker was measured."
    )
    with st.form("planned", border=True):
        spec = _machines()
        st.caption(
            "Each row is one namespace, or a part of one with the same number of bundles. `%d` or `%06d` stands for the"
            " number of a topic."
        )
        start = pd.DataFrame([{title: getattr(_START, field) for field, title in _COLUMNS.items()}])
        rows = st.data_editor(
            start,
            num_rows="dynamic",
            hide_index=True,
            key="planned-topics",
            column_config={
                _COLUMNS["distribution"]: st.column_config.SelectboxColumn(options=list(EXPONENTS), required=True)
            },
        )
        sent = st.form_submit_button("Plan this cluster", type="primary", icon=":material/add_box:")
    if not sent:
        return
    try:
        groups = tuple(_group(row) for row in rows.to_dict("records"))
        snapshot = plan_cluster(spec(topics=groups))
        saved = state.workspace().add(snapshot, f"{snapshot.info.cluster} (planned)")
    except PlannerError as error:
        if isinstance(error, SettingError):
            error = SettingError(error.what, where=_FIELDS.get(error.where, error.where), remedy=error.remedy)
        show_error(error)
        return
    arrive(saved, "planned", "overview")


def _machines() -> "partial[PlannedCluster]":
    """Draw the fields about brokers; return what lacks the topics alone."""
    first, second, third = st.columns(3)
    name = first.text_input("Name of the cluster", "planned", max_chars=100)
    brokers = first.number_input("Brokers", 1, 2_000, 6)
    release = second.selectbox("Release", list(RELEASES), index=list(RELEASES).index(REFERENCE.name))
    manager = second.selectbox("Load manager", [one.value for one in LoadManager])
    cores = third.number_input("Cores of each broker", 0.5, 1_024.0, 8.0)
    nic = third.number_input("Network of each broker, Gbit/s", 0.01, 1_000.0, 10.0)
    memory = first.number_input("Heap of each broker, GiB", 0.5, 4_096.0, 8.0)
    direct = second.number_input("Direct memory of each broker, GiB", 0.5, 4_096.0, 16.0)
    cost = third.number_input(
        "CPU per 1,000 msg/s, % of a core", 0.0, 1_000.0, 1.5, help="Measure it on one broker; it decides the usage."
    )
    return partial(
        PlannedCluster,
        cluster=name.strip() or "planned",
        brokers=int(brokers),
        cores=float(cores),
        nic_gbit_per_s=float(nic),
        memory_gib=float(memory),
        direct_memory_gib=float(direct),
        pulsar_version=release,
        load_manager=LoadManager(manager),
        cpu_percent_per_1000_msg_per_s=float(cost),
        captured_at_ms=int(time.time() * 1_000),
    )


def _group(row: "dict[object, object]") -> PlannedTopics:
    """Read a row of the table.

    Raises:
        PlannerError: A cell is empty, or is not a number.
    """
    given = {field: row.get(title) for field, title in _COLUMNS.items()}
    try:
        distribution: Distribution = next(name for name in EXPONENTS if name == given["distribution"])
        return PlannedTopics(
            pattern=str(given["pattern"] or "").strip(),
            count=int(str(given["count"]).partition(".")[0]),
            msg_rate_per_s=float(str(given["msg_rate_per_s"])),
            message_bytes=float(str(given["message_bytes"])),
            subscriptions=int(str(given["subscriptions"]).partition(".")[0]),
            distribution=distribution,
            bundles=int(str(given["bundles"]).partition(".")[0]),
        )
    except (ValueError, StopIteration) as error:
        raise PlannerError("A row of topics is not complete.", remedy="Fill in every cell of it.") from error
