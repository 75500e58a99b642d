"""What the Bundle map page draws."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import PlannerError
from planner.cluster.ranges import format_range
from planner.cluster.snapshot import Snapshot
from planner.figures.hash_space import MAX_BARS, bundle_bars, make_raster, raster_map, topic_positions
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.splitting.factory import apply_split
from planner.pulsar.splitting.registry import default_split_algorithm
from planner.pulsar.splitting.request import namespace_boundaries, split_request
from planner.web import state
from planner.web.text import bytes_per_s, count, msg_per_s
from planner.web.widgets import chart, plain, show_error, show_notes, table

MEASURES = {
    "throughput": ("Throughput", "MB/s"),
    "rate": ("Message rate", "msg/s"),
    "topics": ("Topics", "topics"),
    "owner": ("Owner rank", "1 = busiest broker"),
}
"""What the colour can show: name and unit."""

_ROWS = 40
_TOPIC_ROWS = 2_000


def measure(snapshot: Snapshot, name: str) -> FloatArray:
    """Return the value of each bundle for a measure; NaN where it has none."""
    bundles = snapshot.bundles
    if name == "throughput":
        return (bundles.msg_throughput_in_bytes_per_s + bundles.msg_throughput_out_bytes_per_s) / 1e6
    if name == "rate":
        return bundles.msg_rate_in_per_s + bundles.msg_rate_out_per_s
    if name == "topics":
        return bundles.topics.astype(np.float64)
    usage = weighted_usage(snapshot.brokers, snapshot.settings, snapshot.info.load_manager)
    rank = np.empty(len(usage))
    rank[np.argsort(-usage, kind="stable")] = np.arange(1, len(usage) + 1)
    owned = bundles.owner >= 0
    values: FloatArray = np.where(owned, rank[np.maximum(bundles.owner, 0)], np.nan)
    return values


def namespace_rows(snapshot: Snapshot, value: FloatArray, text: str) -> Int64Array:
    """Return the namespaces whose name contains a text, the one with the largest total first."""
    totals = np.bincount(snapshot.bundles.namespace, weights=np.nan_to_num(value), minlength=len(snapshot.namespaces))
    order = np.argsort(-totals, kind="stable")
    wanted = text.strip().lower()
    if wanted:
        order = np.array([i for i in order.tolist() if wanted in snapshot.namespaces[i].lower()], dtype=np.int64)
    return order.astype(np.int64)


def bundle_frame(snapshot: Snapshot, rows: Int64Array) -> pd.DataFrame:
    """Return a table of bundles, in the order given."""
    bundles = snapshot.bundles
    owners = bundles.owner[rows]
    return pd.DataFrame(
        {
            "range": [format_range(int(bundles.low[i]), int(bundles.high[i])) for i in rows],
            "owner": [snapshot.brokers.name[o] if o >= 0 else "not loaded" for o in owners],
            "MB/s": (bundles.msg_throughput_in_bytes_per_s[rows] + bundles.msg_throughput_out_bytes_per_s[rows]) / 1e6,
            "msg/s": bundles.msg_rate_in_per_s[rows] + bundles.msg_rate_out_per_s[rows],
            "topics": bundles.topics[rows],
            "producers": bundles.producers[rows],
            "consumers": bundles.consumers[rows],
            "share of hash space (%)": (bundles.high[rows] - bundles.low[rows]) / 2**32 * 100,
        }
    )


def _clicked(event: Any) -> Any:
    points = (event or {}).get("selection", {}).get("points", []) if isinstance(event, dict) else []
    return points[0].get("customdata") if points else None


def _choose_namespace(snapshot: Snapshot, rows: Int64Array) -> str:
    """Return the namespace in view: from the address, else the first row."""
    names = [snapshot.namespaces[i] for i in rows.tolist()]
    asked = state.param("namespace")
    if asked and asked not in snapshot.namespaces:
        st.warning("The link names a namespace that this snapshot does not have.", icon=":material/link_off:")
        asked = ""
    chosen = asked or names[0]
    options = names if chosen in names else [chosen, *names]
    picked = st.selectbox("Namespace", options, index=options.index(chosen), key=f"namespace-{chosen}")
    if picked and picked != chosen:  # the box is drawn anew with what was picked, else its next choice would be lost
        state.set_params(namespace=picked, bundle="")
        st.rerun()
    return chosen


def _map(snapshot: Snapshot) -> str | None:
    left, right = st.columns([2, 2])
    name = left.segmented_control(
        "Colour by",
        list(MEASURES),
        default="throughput",
        format_func=lambda m: MEASURES[m][0],
        key="map-measure",
        wrap=True,
    )
    text = right.text_input("Find a namespace", placeholder="part of tenant/namespace", max_chars=200)
    name = name or "throughput"
    value = measure(snapshot, name)
    rows = namespace_rows(snapshot, value, text)
    if not len(rows):
        st.info("No namespace has this text in its name.", icon=":material/search_off:")
        return None
    pages = -(-len(rows) // _ROWS)
    help_ = f"{_ROWS} namespaces a page, busiest first"
    page = st.number_input(f"Page, of {pages}", 1, pages, 1, help=help_, key=f"map-page-{pages}") if pages > 1 else 1
    shown = rows[(int(page) - 1) * _ROWS : int(page) * _ROWS]
    names = [snapshot.namespaces[i] for i in shown.tolist()]
    title, unit = MEASURES[name]
    raster = make_raster(snapshot.bundles, shown, value)
    peak = float(np.nanmax(raster.values)) if np.isfinite(raster.values).any() else 0.0
    summary = (
        f"{count(len(shown), 'namespace')} of {len(rows):,}, busiest first, over the hash space. {title}: at most"
        f" {peak:.4g} {unit} in a bundle. A cell shows the largest of the bundles in it. Click a row to open it."
    )
    event = chart(
        raster_map(raster, names, f"{title} ({unit})", logarithmic=name != "owner"),
        summary,
        f"raster-{name}-{page}-{text}",
        on_select="rerun",
        selection_mode="points",
    )
    picked = _clicked(event)
    if picked and picked[0] in snapshot.namespaces and st.session_state.get("raster-pick") != picked[0]:
        st.session_state["raster-pick"] = picked[0]
        state.set_params(namespace=picked[0], bundle="")
        st.rerun()
    with st.expander("The namespaces as a table"):
        totals = [value[snapshot.bundles.namespace == i] for i in shown.tolist()]
        table(
            pd.DataFrame(
                {
                    "namespace": names,
                    "bundles": raster.bundles,
                    f"largest ({unit})": [float(np.nanmax(t)) if np.isfinite(t).any() else np.nan for t in totals],
                    f"sum ({unit})": [float(np.nansum(t)) for t in totals],
                }
            ),
            "namespaces",
        )
    return _choose_namespace(snapshot, rows)


def _namespace(snapshot: Snapshot, namespace: str) -> int:
    """Draw the bundles of a namespace and return the position of the one in view."""
    position = snapshot.namespaces.index(namespace)
    rows = np.flatnonzero(snapshot.bundles.namespace == position)
    rows = rows[np.argsort(snapshot.bundles.low[rows], kind="stable")]
    ranges = [format_range(int(snapshot.bundles.low[i]), int(snapshot.bundles.high[i])) for i in rows]
    throughput = measure(snapshot, "throughput")[rows]
    asked = state.param("bundle")
    if asked and asked not in ranges:
        st.warning(f"The link names a bundle that {namespace} does not have.", icon=":material/link_off:")
        asked = ""
    chosen = asked or ranges[int(np.argmax(throughput))]
    st.subheader(namespace, anchor=False)
    more = f" The first {MAX_BARS:,} are drawn." if len(rows) > MAX_BARS else ""
    loaded = int((snapshot.bundles.owner[rows] >= 0).sum())
    event = chart(
        bundle_bars(snapshot.bundles.low[rows], snapshot.bundles.high[rows], throughput, "MB/s", ranges.index(chosen)),
        f"{count(len(rows), 'bundle')}, {loaded:,} of them loaded. Click a bar to open the bundle.{more}",
        f"bars-{namespace}",
        on_select="rerun",
        selection_mode="points",
    )
    picked = _clicked(event)
    if isinstance(picked, list):
        picked = picked[0] if picked else None
    if picked in ranges and st.session_state.get("bar-pick") != (namespace, picked):
        st.session_state["bar-pick"] = (namespace, picked)
        state.set_params(namespace=namespace, bundle=picked)
        st.rerun()
    with st.expander("The bundles as a table"):
        table(bundle_frame(snapshot, rows[:_TOPIC_ROWS]), "bundles-of-namespace")
    option = st.selectbox("Bundle", ranges, index=ranges.index(chosen), key=f"bundle-{namespace}-{chosen}") or chosen
    state.set_params(namespace=namespace, bundle=option)
    if option != chosen:
        st.rerun()
    return int(rows[ranges.index(option)])


def _split_preview(snapshot: Snapshot, bundle: int) -> tuple[tuple[int, ...], str]:
    """Return where the default algorithm would cut a bundle, and a sentence about it."""
    algorithm = default_split_algorithm(snapshot.settings.text("defaultNamespaceBundleSplitAlgorithm"))
    request = split_request(snapshot, bundle)
    answer = algorithm.boundaries(request, snapshot.settings)
    reasons = "; ".join(r.text for r in answer.reasons[:3])
    if not answer.boundaries:
        return (), f"{algorithm.name} would not split it: {reasons}."
    boundaries = namespace_boundaries(snapshot, int(snapshot.bundles.namespace[bundle]))
    result = apply_split(boundaries, (request.low, request.high), answer.boundaries)
    children = ", ".join(format_range(*c) for c in result.children)
    return answer.boundaries, f"{algorithm.name} would split it into {children}: {reasons}."


def _bundle(view: state.Current, bundle: int) -> None:
    snapshot = view.snapshot
    bundles = snapshot.bundles
    low, high = int(bundles.low[bundle]), int(bundles.high[bundle])
    st.subheader(format_range(low, high), anchor=False)
    st.code(snapshot.bundle_names[bundle], language=None)
    owner = int(bundles.owner[bundle])
    rate = bundles.msg_rate_in_per_s[bundle] + bundles.msg_rate_out_per_s[bundle]
    throughput = bundles.msg_throughput_in_bytes_per_s[bundle] + bundles.msg_throughput_out_bytes_per_s[bundle]
    figures = (
        ("Throughput", bytes_per_s(float(throughput))),
        ("Messages", msg_per_s(float(rate))),
        (
            "Topics · producers · consumers",
            f"{bundles.topics[bundle]} · {bundles.producers[bundle]} · {bundles.consumers[bundle]}",
        ),
    )
    st.markdown(f"Owner: **{plain(snapshot.brokers.name[owner])}**" if owner >= 0 else "Not loaded by any broker.")
    for column, (label, value) in zip(st.columns(3), figures, strict=True):
        column.metric(label, value)
    try:
        cuts, split = _split_preview(snapshot, bundle)
    except PlannerError as error:
        cuts, split = (), ""
        show_error(error)
    algorithm = default_split_algorithm(snapshot.settings.text("defaultNamespaceBundleSplitAlgorithm"))
    show_notes(algorithm.differences, "Where the public documentation differs from the code")
    topics = state.workspace().topics_of_bundle(view.digest, bundle).to_pandas()
    if topics.empty:
        st.info("The snapshot lists no topic in this bundle.", icon=":material/topic:")
        st.markdown(f"**Split:** {split}")
        return
    traffic = (topics["msg_throughput_in_bytes_per_s"] + topics["msg_throughput_out_bytes_per_s"]) / 1e6
    frame = pd.DataFrame(
        {
            "topic": topics["name"],
            "hash": [f"0x{h:08x}" for h in topics["hash"]],
            "MB/s": traffic,
            "msg/s in": topics["msg_rate_in_per_s"],
            "msg/s out": topics["msg_rate_out_per_s"],
            "producers": topics["producers"],
            "consumers": topics["consumers"],
            "rates known": topics["has_stats"],
        }
    )
    shown = f" (the first {len(frame):,} by hash)" if len(frame) >= _TOPIC_ROWS else ""
    chart(
        topic_positions(
            (low, high),
            topics["hash"].to_numpy(np.int64),
            traffic.to_numpy(np.float64),
            frame["topic"].tolist(),
            "MB/s",
            cuts,
        ),
        f"{count(len(frame), 'topic')}{shown} at their places in the hash space. **Split:** {split}",
        f"topics-{bundle}",
    )
    table(frame, "topics-of-bundle", column_config={"MB/s": st.column_config.NumberColumn(format="%.4f")})


def draw(view: state.Current) -> None:
    """Draw the page."""
    if not len(view.snapshot.bundles):
        st.info("The snapshot has no bundles.", icon=":material/grid_off:")
        return
    namespace = _map(view.snapshot)
    if namespace is not None:
        _bundle(view, _namespace(view.snapshot, namespace))
