"""One namespace: its bundles and topics along the hash space, and what each number of bundles gives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.ranges import HASH_SPACE, format_range
from planner.figures.hash_space import MAX_BARS, hash_axis
from planner.figures.theme import ACCENT, CATEGORICAL, MUTED, WARNING, finish, short_names
from planner.namespaces.counts import CountRow

_NAMED = len(CATEGORICAL) - 1
"""Brokers with a colour of their own; the others share the last one."""
_REST = "others"
_HEADROOM = 1.35
_SINGLE = 200
"""Bundles up to which each has a bar: narrower bars are little more than their borders, and slow to draw."""
_MARKED = 200
"""Topics with a point of their own."""
_POINT_WIDTH, _POINT_HEIGHT = 0.002, 0.025
"""Half the size of a point, as parts of the two axes."""
_LOG = "log"
_UPPER, _LOWER = {"xaxis": "x", "yaxis": "y"}, {"xaxis": "x2", "yaxis": "y2"}
_MARGIN = {"l": 80, "r": 24, "t": 64, "b": 68}
"""Room for labels and legend, in pixels: where a browser has to make some, it draws the figure twice."""
_LEAST_PERCENT = 0.1


def hash_line(
    bounds: tuple[Int64Array, Int64Array],
    share_percent: FloatArray,
    owners: Sequence[str],
    topics: tuple[Int64Array, FloatArray, Sequence[str]],
    cuts: Sequence[int] = (),
) -> go.Figure:
    """Draw a namespace along its hash space: its bundles in the colours of their brokers, below them its topics.

    Args:
        bounds: Lower and upper boundaries of the bundles, ascending; the first 2,000 are drawn.
        share_percent: Share of the namespace's load in each bundle.
        owners: Broker of each bundle; the brokers with most of the load have colours.
        topics: Hash, share of the load in percent, and name of the topics to draw.
        cuts: Where it would be cut.
    """
    low, high = (one[:MAX_BARS] for one in bounds)
    share, owners = share_percent[:MAX_BARS], list(owners)[:MAX_BARS]
    colours = _colours(owners, share)
    groups = [owner if owner in colours else _REST for owner in owners]
    drawn: list[dict[str, Any]] = []
    for name, colour in colours.items():
        mine = [at for at, group in enumerate(groups) if group == name]
        told = np.array([[format_range(int(low[at]), int(high[at])), owners[at]] for at in mine], dtype=object)
        of_broker = (low[mine], high[mine]), share[mine], told
        drawn += [{**one, **_UPPER} for one in _bundles(*of_broker, name, colour, single=len(low) <= _SINGLE)]
    drawn += [{**one, **_LOWER} for one in _topics(*topics)]
    upper, lower = (
        {"anchor": "y", "domain": [0, 1], "matches": "x2", "showticklabels": False},
        {"anchor": "y2", "domain": [0, 1]},
    )
    # In one go: a figure that is put together piece by piece takes ten times as long.
    figure = go.Figure(
        drawn,
        {
            "xaxis": upper,
            "xaxis2": lower,
            "yaxis": _height("x", (0.53, 1), share),
            "yaxis2": _height("x2", (0, 0.47), topics[1]),
            "shapes": [*(_cut_line(cut) for cut in cuts), *_points(*topics[:2])],
            "annotations": [_corner("bundles", ""), _corner("topics", "2")],
        },
    )
    legend = {"y": 1.02, "yanchor": "bottom", "x": 0}
    finish(figure, height=270, legend=legend, from_zero=True, margin=_MARGIN, barmode="overlay")
    return hash_axis(figure)


def _height(anchor: str, domain: tuple[float, float], values: FloatArray) -> dict[str, Any]:
    """Return an axis of shares, with room above the highest for a title, in Plotly's words."""
    axis = {"anchor": anchor, "domain": list(domain), "ticksuffix": " %", "nticks": 4}
    top = float(max(values, default=0))
    return {**axis, "range": [0, top * _HEADROOM]} if top else axis


def _cut_line(cut: int) -> dict[str, Any]:
    line = {"color": WARNING, "width": 1, "dash": "dash"}
    return {"type": "line", "x0": cut, "x1": cut, "y0": 0, "y1": 1, "xref": "x", "yref": "y domain", "line": line}


def _corner(text: str, axis: str) -> dict[str, Any]:
    """Return the title of a row, in Plotly's words.

    Titles beside plots of this height would overlap on a phone; above the highest value they cover nothing.
    """
    corner = {"x": 1, "xref": f"x{axis} domain", "xanchor": "right"}
    corner |= {"y": 1, "yref": f"y{axis} domain", "yanchor": "top"}
    return {"text": text, "showarrow": False, "font": {"size": 12}, **corner}


def _bundles(
    bounds: tuple[Int64Array, Int64Array],
    share: FloatArray,
    told: np.ndarray[tuple[int, ...], np.dtype[np.object_]],
    name: str,
    colour: str,
    *,
    single: bool,
) -> list[dict[str, Any]]:
    """Return the bundles of a broker, in Plotly's words: a bar each, or one outline of all where there are many."""
    low, high = bounds
    middle = low + (high - low) / 2
    hover = {
        "customdata": told,
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}<br>%{y:.3g} % of the load<extra></extra>",
    }
    if single:
        line = {"width": 0.5, "color": "rgba(255,255,255,0.7)"}
        marker = {"color": colour, "line": line}
        bars = {"type": "bar", "x": middle, "y": share, "width": high - low, "name": name, "marker": marker}
        return [{**bars, **hover}]
    edges, heights = np.column_stack((low, low, high, high)).ravel(), np.zeros(4 * len(low))
    heights[1::4] = heights[2::4] = share
    line = {"color": colour, "width": 1}
    outline = {"type": "scatter", "x": edges, "y": heights, "mode": "lines", "line": line, "name": name}
    outline |= {"fill": "tozeroy", "fillcolor": colour, "hoverinfo": "skip"}
    return [outline, {"type": "scatter", "x": middle, "y": share, "mode": "none", "showlegend": False, **hover}]


def _colours(owners: Sequence[str], share: FloatArray) -> dict[str, str]:
    """Return the colours of the brokers with most of the load, and one for all others."""
    total: dict[str, float] = {}
    for owner, one in zip(owners, share.tolist(), strict=True):
        total[owner] = total.get(owner, 0.0) + one
    order = sorted(total, key=lambda name: -total[name])
    named = dict(zip(order[:_NAMED], CATEGORICAL, strict=False))
    return {**named, _REST: CATEGORICAL[-1]} if len(order) > _NAMED else named


def _topics(hashes: Int64Array, share: FloatArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return topics, in Plotly's words: a stem each, and what it says when somebody points at its end."""
    # One line along zero: where it had gaps, a browser would draw as many lines as there are topics.
    stems_x, stems_y = np.repeat(hashes, 3), np.zeros(3 * len(hashes), dtype=np.float32)
    stems_y[1::3] = share
    line = {"color": MUTED, "width": 1}
    stems = {"type": "scatter", "x": stems_x, "y": stems_y, "mode": "lines", "line": line}
    ends: dict[str, Any] = {"type": "scatter", "x": hashes, "y": share.astype(np.float32), "mode": "none"}
    ends |= {"customdata": np.array(names, dtype=object), "showlegend": False}
    hover = "%{customdata}<br>0x%{x:08x}<br>%{y:.3g} % of the load<extra></extra>"
    return [{**stems, "hoverinfo": "skip", "showlegend": False}, {**ends, "hovertemplate": hover}]


def _points(hashes: Int64Array, share: FloatArray) -> list[dict[str, Any]]:
    """Return the points of the heaviest topics, in Plotly's words: one shape, as a browser draws that at once.

    It takes longer to draw a marker than hundreds of stems.
    """
    heaviest = np.argsort(-share, kind="stable")[:_MARKED]
    wide, high = _POINT_WIDTH * HASH_SPACE, _POINT_HEIGHT * _HEADROOM * float(max(share, default=0))
    if not high:
        return []
    path = "".join(
        f"M{x - wide:.0f},{y:.5g}L{x:.0f},{y + high:.5g}L{x + wide:.0f},{y:.5g}L{x:.0f},{y - high:.5g}Z"
        for x, y in zip(hashes[heaviest].tolist(), share[heaviest].tolist(), strict=True)
    )
    look = {"fillcolor": ACCENT, "line": {"color": ACCENT, "width": 1}}
    return [{"type": "path", "path": path, "xref": "x2", "yref": "y2", **look}]


def counts_figure(rows: Sequence[CountRow], now: CountRow, recommended: int, brokers: int) -> go.Figure:
    """Draw what each number of equal bundles gives: the heaviest bundle, and the broker with most of the load.

    Args:
        rows: One for each number.
        now: The namespace as it is.
        recommended: The number for a namespace made anew.
        brokers: How many brokers it may use.
    """
    x = [row.bundles for row in rows]
    hover = "%{{x:,}} bundles<br>%{{y:.1f}} %<extra>{}</extra>"
    drawn: list[dict[str, Any]] = []
    for name, values, colour, dash in (
        ("heaviest bundle", [row.largest_share_percent for row in rows], CATEGORICAL[1], "dot"),
        ("busiest broker", [row.placed_percent for row in rows], ACCENT, "solid"),
        ("lower bound", [row.bound_percent for row in rows], MUTED, "dash"),
    ):
        line = {"color": colour, "dash": dash, "width": 2}
        curve = {"x": np.array(x), "y": np.array(values), "mode": "lines", "line": line}
        drawn.append({"type": "scatter", **curve, "name": name, "hovertemplate": hover.format(name)})
    chosen = next((row for row in rows if row.bundles == recommended), None)
    for label, row, symbol in (("as it is", now, "circle"), ("recommended", chosen, "star")):
        if row is not None:
            marker = {"color": WARNING, "size": 11, "symbol": symbol}
            point = {"x": [row.bundles], "y": [row.placed_percent], "mode": "markers", "marker": marker}
            drawn.append({"type": "scatter", **point, "name": label, "hovertemplate": hover.format(label)})
    line = {"color": MUTED, "width": 1, "dash": "dot"}
    even = {"type": "line", "y0": 100 / max(brokers, 1), "y1": 100 / max(brokers, 1), "yref": "y", "line": line}
    figure = go.Figure(drawn, {"shapes": [{**even, "x0": 0, "x1": 1, "xref": "x domain"}]})
    finish(
        figure,
        height=250,
        x_title="equal bundles",
        y_title="share of the load (%)",
        legend={"y": 1.02, "yanchor": "bottom", "x": 0},
        margin=_MARGIN,
    )
    ticks = [tick for tick in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536) if tick <= max(x)]
    figure.update_xaxes(type=_LOG, tickvals=ticks, ticktext=[f"{tick:,}" for tick in ticks])
    low = max(min(*(row.bound_percent for row in rows), 100 / max(brokers, 1)), _LEAST_PERCENT)
    shares = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if tick >= low * 0.9]
    span = [np.log10(low * 0.9), np.log10(110)]
    return figure.update_yaxes(type=_LOG, range=span, tickvals=shares, ticktext=[f"{tick:g}" for tick in shares])


def owners_named(owners: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return brokers of bundles as figures write them; others, such as unowned bundles, as they are."""
    short = dict(zip(names, short_names(names), strict=True)) if names else {}
    return [short.get(owner, owner) for owner in owners]
