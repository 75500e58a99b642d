"""Bundle map: the hash space of every namespace, down to one bundle and its topics."""

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.names import DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM
from planner.cluster.ranges import format_range
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import bytes_per_s, count, msg_per_s, plain, rounded
from planner.cluster.units import MIB
from planner.explain.cluster_tables import (
    MEASURES,
    bundle_frame,
    bundle_ranges,
    bundles_of_namespace,
    measure,
    namespace_rows,
)
from planner.figures.hash_space import MAX_BARS, bundle_bars, make_raster, raster_map, topic_positions
from planner.pulsar.splitting.factory import apply_split
from planner.pulsar.splitting.registry import default_split_algorithm
from planner.pulsar.splitting.request import namespace_boundaries, split_request
from planner.web import address, state
from planner.web.names import short
from planner.web.page import Page
from planner.web.widgets import chart, show_error, show_notes, table

_ROWS = 24
_TOPIC_ROWS = 2_000
_FEW_ROWS_PX = 280


def _map(snapshot: Snapshot) -> str | None:
    """Draw the namespaces over the hash space and return the one in view; None when none is found."""
    left, right, last = st.columns([5, 3, 2])
    words = {one: label for one, (label, _) in MEASURES.items()}
    name = address.choice("colour", "Colour by", words, segments=True, wrap=True, place=left)
    text = address.text("find", "Find a namespace", placeholder="part of tenant/namespace", place=right)
    title, unit = MEASURES[name]
    value = measure(snapshot, name)
    rows = namespace_rows(snapshot, value, text)
    if not len(rows):
        st.info("No namespace matches this text.", icon=":material/search_off:")
        return None
    pages = -(-len(rows) // _ROWS)
    page = 1
    if pages > 1:
        page = address.number(
            "rows", f"Page, of {pages}", 1, 1, pages, place=last, help=f"{_ROWS} namespaces per page, busiest first"
        )
    visible = rows[(page - 1) * _ROWS : page * _ROWS]
    names = [snapshot.namespaces[i] for i in visible.tolist()]
    raster = make_raster(snapshot.bundles, visible, value)
    peak = float(np.nanmax(raster.values)) if np.isfinite(raster.values).any() else 0.0
    summary = (
        f"{count(len(visible), 'namespace')} of {len(rows):,}, busiest first, across the hash space. {title}: at most"
        f" {rounded(peak)} {unit} in a bundle. A cell shows the highest value of its bundles. Grey bundles are unowned."
        " Click a row to open a namespace."
    )
    figure = raster_map(raster, names, f"{title} ({unit})", logarithmic=name != "owner")
    about = f"{name}-{page}-{text}"
    chart(figure, summary, "raster", lambda one: address.put(namespace=one, bundle=""), about=about)
    with st.expander("The namespaces as a table"):
        totals = [value[snapshot.bundles.namespace == i] for i in visible.tolist()]
        columns = {
            "namespace": names,
            "bundles": raster.bundles,
            f"largest ({unit})": [float(np.nanmax(t)) if np.isfinite(t).any() else np.nan for t in totals],
            f"sum ({unit})": [float(np.nansum(t)) for t in totals],
        }
        table(pd.DataFrame(columns), "namespaces")
    asked = address.part("namespace")
    found = [snapshot.namespaces[i] for i in rows.tolist()]
    options = found if asked in found or asked not in snapshot.namespaces else [asked, *found]
    heading, box = st.columns([3, 2], vertical_alignment="bottom")
    chosen = address.choice("namespace", "Namespace", options, found[0], named=True, clears=("bundle",), place=box)
    heading.header(plain(chosen), anchor=False)
    return chosen


def _namespace(snapshot: Snapshot, namespace: str) -> int:
    """Draw the bundles of a namespace and return the position of the one in view."""
    rows = bundles_of_namespace(snapshot, namespace)
    ranges = bundle_ranges(snapshot, rows)
    throughput = np.nan_to_num(measure(snapshot, "throughput")[rows])
    busiest = ranges[int(np.argmax(throughput))]
    asked = address.part("bundle")
    more = f" Showing the first {MAX_BARS:,}." if len(rows) > MAX_BARS else ""
    loaded = int((snapshot.bundles.owner[rows] >= 0).sum())
    at = ranges.index(asked if asked in ranges else busiest)
    chart(
        bundle_bars(snapshot.bundles.low[rows], snapshot.bundles.high[rows], throughput, "MiB/s", at),
        f"{count(len(rows), 'bundle')}, {loaded:,} of them with an owner. Click a bar to open a bundle.{more}",
        "bars",
        lambda one: address.put(namespace=namespace, bundle=one),
        about=namespace,
    )
    with st.expander("The bundles as a table"):
        table(bundle_frame(snapshot, rows[:_TOPIC_ROWS]), "bundles-of-namespace")
    heading, box = st.columns([3, 2], vertical_alignment="bottom")
    bundle = int(rows[ranges.index(address.choice("bundle", "Bundle", ranges, busiest, named=True, place=box))])
    heading.header(plain(snapshot.bundle_names[bundle]), anchor=False)
    return bundle


def _split_preview(snapshot: Snapshot, bundle: int) -> tuple[tuple[int, ...], str]:
    """Return where the default algorithm would cut a bundle, and a sentence about it."""
    algorithm = default_split_algorithm(snapshot.settings.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM))
    request = split_request(snapshot, bundle)
    answer = algorithm.boundaries(request, snapshot.settings)
    reasons = "; ".join(r.text for r in answer.reasons[:3])
    if not answer.boundaries:
        return (), f"{algorithm.name} would not split this bundle: {reasons}."
    boundaries = namespace_boundaries(snapshot, int(snapshot.bundles.namespace[bundle]))
    result = apply_split(boundaries, (request.low, request.high), answer.boundaries)
    children = ", ".join(format_range(*c) for c in result.children)
    return answer.boundaries, f"{algorithm.name} would split this bundle into {children}: {reasons}."


def _bundle(view: state.Current, bundle: int) -> None:
    snapshot = view.snapshot
    bundles = snapshot.bundles
    owner = int(bundles.owner[bundle])
    rate = bundles.msg_rate_per_s(bundle)
    throughput = bundles.throughput_bytes_per_s(bundle)
    owned = owner >= 0
    st.markdown(f"Owner: **{plain(short(snapshot.brokers.name[owner]))}**" if owned else "Unowned.")
    figures = (
        ("Throughput", bytes_per_s(float(throughput))),
        ("Messages", msg_per_s(float(rate))),
        (
            "Topics · producers · consumers",
            f"{bundles.topics[bundle]} · {bundles.producers[bundle]} · {bundles.consumers[bundle]}",
        ),
    )
    for column, (label, value) in zip(st.columns(3), figures, strict=True):
        column.metric(label, value)
    try:
        cuts, split = _split_preview(snapshot, bundle)
    except PlannerError as error:
        cuts, split = (), ""
        show_error(error)
    algorithm = default_split_algorithm(snapshot.settings.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM))
    show_notes(algorithm.differences, "Where the public documentation differs from the code")
    _topics(view, bundle, cuts, split)


def _topics(view: state.Current, bundle: int, cuts: tuple[int, ...], split: str) -> None:
    """Draw the topics of a bundle at their hashes, and where it would be cut."""
    listed = view.snapshot.topics
    rows = np.sort(listed.of_bundle(bundle))
    rows = rows[np.argsort(listed.hash[rows], kind="stable")][:_TOPIC_ROWS]
    if not len(rows):
        st.info("The snapshot lists no topics of this bundle.", icon=":material/topic:")
        st.markdown(f"**Split:** {split}")
        return
    traffic = listed.throughput_bytes_per_s(rows) / MIB
    frame = pd.DataFrame(
        {
            "topic": listed.name.take(rows).to_pylist(),
            "hash": [f"0x{h:08x}" for h in listed.hash[rows].tolist()],
            "MiB/s": traffic,
            "msg/s in": listed.msg_rate_in_per_s[rows],
            "msg/s out": listed.msg_rate_out_per_s[rows],
            "producers": listed.producers[rows],
            "consumers": listed.consumers[rows],
            "rates known": listed.has_stats[rows],
        }
    )
    bundles = view.snapshot.bundles
    figure = topic_positions(
        (int(bundles.low[bundle]), int(bundles.high[bundle])),
        listed.hash[rows].astype(np.int64),
        traffic,
        frame["topic"].tolist(),
        "MiB/s",
        cuts,
    )
    extent = f" (the first {len(frame):,} by hash)" if len(frame) >= _TOPIC_ROWS else ""
    summary = f"{count(len(frame), 'topic')}{extent} by position in the hash space. **Split:** {split}"
    chart(figure, summary, "topics", about=bundle)
    table(frame, "topics-of-bundle", height=_FEW_ROWS_PX, formats={"MiB/s": "%.4f"})


def draw(view: state.Current) -> None:
    """Draw the page."""
    if not len(view.snapshot.bundles):
        st.info("The snapshot has no bundles.", icon=":material/grid_off:")
        return
    namespace = _map(view.snapshot)
    if namespace is not None:
        _bundle(view, _namespace(view.snapshot, namespace))


PAGE = Page(
    title="Bundle map",
    icon=":material/grid_on:",
    purpose="How traffic is distributed over the hash space of every namespace, down to one bundle and its topics.",
    draw=draw,
)
