"""The hash space: every namespace as a raster, one namespace as exact bars, one bundle with its topics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.ranges import FULL_HIGH, HASH_SPACE, format_range
from planner.cluster.tables import BundleTable
from planner.figures.theme import ACCENT, MUTED, SEQUENTIAL, WARNING, finish, short_namespaces

COLUMNS = 1_024
"""Cells of the hash space in the raster."""
MAX_BARS = 2_000
"""The most bundles drawn one by one."""

_SHIFT = 22  # 2^32 hashes over 1,024 columns
_PICK_COLUMNS = 16
_DECADES = 4
_HALF_LABEL_PX = 36
"""Room for the half of the last label that is beyond the axis."""
_NOT_LOADED = "rgba(128, 128, 128, 0.3)"
_PLAIN = 2  # from 100 on without decimals


@dataclass(frozen=True, eq=False)
class Raster:
    """The hash space of some namespaces.

    Attributes:
        namespaces: Positions of the namespaces, top row first.
        values: Largest value of the bundles that touch a cell; NaN where there is none. Shape (rows, 1024).
        bundles: How many bundles begin in a cell, and at least one where one lies. Shape (rows,).
    """

    namespaces: Int64Array
    values: FloatArray
    bundles: Int64Array


def make_raster(table: BundleTable, namespaces: Int64Array, value: FloatArray) -> Raster:
    """Aggregate bundles into cells by maximum, so that a narrow hot bundle stays visible.

    Args:
        table: The bundles.
        namespaces: Positions of the namespaces to draw, one row each.
        value: What to draw, by bundle; NaN for a bundle without it.
    """
    row_of = np.full(int(table.namespace.max(initial=-1)) + 1, -1, dtype=np.int64)
    row_of[namespaces] = np.arange(len(namespaces))
    row = row_of[table.namespace] if len(table) else np.zeros(0, np.int64)
    shown = np.flatnonzero(row >= 0)
    first = table.low[shown] >> _SHIFT
    size = ((table.high[shown] - 1) >> _SHIFT) - first + 1
    begins = np.cumsum(size) - size
    cell = np.arange(int(size.sum())) - np.repeat(begins, size) + np.repeat(row[shown] * COLUMNS + first, size)
    cells = np.full(len(namespaces) * COLUMNS, -np.inf)
    known = np.nan_to_num(value[shown], nan=-np.inf)
    np.maximum.at(cells, cell, np.repeat(known, size))
    values = np.where(np.isinf(cells), np.nan, cells).reshape(len(namespaces), COLUMNS)
    return Raster(namespaces, values, np.bincount(row[shown], minlength=len(namespaces)))


def _decades(values: FloatArray) -> tuple[FloatArray, list[float] | None, list[str] | None]:
    """Return logarithms of values, at most four decades below the largest, and ticks with what they stand for."""
    known = values[np.isfinite(values)]
    peak = float(known.max()) if len(known) else 0.0
    if peak <= 0:
        return values, None, None
    top = np.log10(peak)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: FloatArray = np.where(np.isnan(values), np.nan, np.maximum(np.log10(values), top - _DECADES))
    ticks = [top - _DECADES + i for i in range(_DECADES + 1)]
    texts = [f"{10**t:,.3g}" if t < _PLAIN else f"{10**t:,.0f}" for t in ticks]
    return logs, ticks, [f"≤ {texts[0]}", *texts[1:]]


def raster_map(raster: Raster, names: Sequence[str], title: str, *, logarithmic: bool = True) -> go.Figure:
    """Draw the raster; invisible markers over it make rows clickable (custom data: the namespace).

    The figure depends on the cells alone: Streamlit forgets a click when the next run draws another figure.

    Args:
        raster: The cells.
        names: Name of each row's namespace.
        title: What the colour shows, with its unit.
        logarithmic: Spread the colours over the decades below the largest value, as traffic is skewed.
    """
    step = HASH_SPACE / COLUMNS
    rows = len(names)
    colours, ticks, texts = _decades(raster.values) if logarithmic else (raster.values, None, None)
    figure = go.Figure(
        go.Heatmap(
            z=colours,
            x0=step / 2,
            dx=step,
            y=list(range(rows)),
            colorscale=SEQUENTIAL,
            colorbar=colour_bar(title, tickvals=ticks, ticktext=texts),
            hoverinfo="skip",
        )
    )
    width = COLUMNS // _PICK_COLUMNS
    peaks = (
        np.nan_to_num(raster.values, nan=0.0).reshape(rows, _PICK_COLUMNS, width).max(axis=2) if rows else np.zeros(0)
    )
    where = (np.arange(_PICK_COLUMNS) + 0.5) * step * width
    figure.add_scatter(
        x=np.tile(where, rows),
        y=np.repeat(np.arange(rows), _PICK_COLUMNS),
        mode="markers",
        marker={"size": 36, "opacity": 0, "symbol": "square"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=[
            [name, int(count), float(peak)]
            for name, count, row in zip(names, raster.bundles.tolist(), peaks, strict=True)
            for peak in row
        ],
        hovertemplate=(
            "%{customdata[0]}<br>%{customdata[1]} bundles<br>at most %{customdata[2]:.4g} here<extra></extra>"
        ),
    )
    finish(figure, height=max(260, 190 + 14 * rows), margin_t=84, plot_bgcolor=_NOT_LOADED)
    name_rows(figure, names, every=max(1, rows // 40))
    return hash_axis(figure, showgrid=False)


def hash_axis(figure: go.Figure, span: tuple[int, int] = (0, HASH_SPACE), *, parts: int = 4, **more: Any) -> go.Figure:
    """Let the x axis of a finished figure be hashes, with room for the last label.

    Args:
        figure: The figure.
        span: From which hash to which.
        parts: Into how many parts its ticks divide it.
        more: What else the axis has, in Plotly's words.
    """
    ticks = [span[0] + (span[1] - span[0]) * i // parts for i in range(parts + 1)]
    texts = [f"0x{min(tick, FULL_HIGH):08x}" for tick in ticks]
    figure.update_layout(margin_r=_HALF_LABEL_PX)
    return figure.update_xaxes(tickvals=ticks, ticktext=texts, range=list(span), **more)


def name_rows(figure: go.Figure, namespaces: Sequence[str], every: int = 1) -> None:
    """Let the y axis be rows of namespaces, the first one on top; of many not every one is named."""
    rows = len(namespaces)
    ticks, texts = list(range(0, rows, every)), short_namespaces(namespaces[::every])
    figure.update_yaxes(tickvals=ticks, ticktext=texts, range=[rows - 0.5, -0.5], showgrid=False)


def colour_bar(title: str, **more: Any) -> dict[str, Any]:
    """Return the bar above a map that says what its colours are, in Plotly's words."""
    place = {"orientation": "h", "thickness": 10, "y": 1.0, "yanchor": "bottom"}
    return {"title": {"text": title, "side": "top"}, **place, **more}


def bundle_bars(low: Int64Array, high: Int64Array, value: FloatArray, unit: str, selected: int = -1) -> go.Figure:
    """Draw the bundles of a namespace with their exact ranges (custom data: the range), at most 2,000.

    Args:
        low: Lower boundaries, ascending.
        high: Upper boundaries.
        value: Height of each bar.
        unit: What the height is.
        selected: Which one is marked, -1 for none.
    """
    low, high, value = low[:MAX_BARS], high[:MAX_BARS], value[:MAX_BARS]
    width = high - low
    colours = [WARNING if i == selected else ACCENT for i in range(len(low))]
    ranges = [format_range(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    figure = go.Figure(
        go.Bar(
            x=low + width / 2,
            y=np.nan_to_num(value),
            width=width,
            marker={"color": colours, "line": {"width": 0.5, "color": "rgba(255,255,255,0.7)"}},
            customdata=ranges,
            hovertemplate="%{customdata}<br>%{y:.5g} " + unit + "<extra></extra>",
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
        )
    )
    return hash_axis(finish(figure, height=260, y_title=unit))


def topic_positions(
    bundle: tuple[int, int],
    hashes: Int64Array,
    traffic: FloatArray,
    names: Sequence[str],
    unit: str,
    cuts: Sequence[int] = (),
) -> go.Figure:
    """Draw the topics of a bundle at their hashes, and the boundaries of a split: numbered, a single one with its hash.

    Args:
        bundle: Range of the bundle.
        hashes: Hash of each topic.
        traffic: Height of each.
        names: Topic names.
        unit: What the height is.
        cuts: Where the bundle would be cut.
    """
    figure = go.Figure()
    stems_x: list[float | None] = []
    stems_y: list[float | None] = []
    for at, height in zip(hashes.tolist(), traffic.tolist(), strict=True):
        stems_x += [at, at, None]
        stems_y += [0.0, height, None]
    figure.add_scatter(x=stems_x, y=stems_y, mode="lines", line={"color": MUTED, "width": 1}, hoverinfo="skip")
    figure.add_scatter(
        x=hashes,
        y=traffic,
        mode="markers",
        marker={"color": ACCENT, "size": 8},
        customdata=[[n, f"0x{h:08x}"] for n, h in zip(names, hashes.tolist(), strict=True)],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>%{y:.5g} " + unit + "<extra></extra>",
    )
    for at, cut in enumerate(cuts, start=1):
        figure.add_vline(
            x=cut,
            line={"color": WARNING, "width": 2, "dash": "dash"},
            annotation={"text": f"0x{cut:08x}" if len(cuts) == 1 else str(at), "font": {"size": 11}},
        )
    return hash_axis(finish(figure, height=280, y_title=unit, from_zero=True), bundle)
