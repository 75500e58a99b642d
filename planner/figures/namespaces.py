"""One namespace: its bundles and topics along the hash space, and what each number of bundles gives."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.ranges import format_range
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
"""Topics with a point of their own: a browser takes longer to draw a point than hundreds of stems."""
_LOG = "log"
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
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.5, 0.5])
    colours = _colours(owners, share)
    groups = [owner if owner in colours else _REST for owner in owners]
    for name, colour in colours.items():
        mine = [at for at, group in enumerate(groups) if group == name]
        told = np.array([[format_range(int(low[at]), int(high[at])), owners[at]] for at in mine], dtype=object)
        _bundles(figure, (low[mine], high[mine]), share[mine], told, name, colour, single=len(low) <= _SINGLE)
    _topics(figure, *topics)
    for cut in cuts:
        figure.add_vline(x=cut, line={"color": WARNING, "width": 1, "dash": "dash"}, row=1, col=1)
    legend = {"y": 1.02, "yanchor": "bottom", "x": 0}
    finish(figure, height=300, legend=legend, from_zero=True, margin_t=64, barmode="overlay")
    figure.update_yaxes(ticksuffix=" %", nticks=4)
    # Titles beside plots of this height would overlap on a phone; above the highest value they cover nothing.
    for row, (text, values) in enumerate((("bundles", share), ("topics", topics[1])), start=1):
        if top := float(max(values, default=0)):
            figure.update_yaxes(range=[0, top * _HEADROOM], row=row, col=1)
        corner = {"x": 1, "xref": "x domain", "y": 1, "yref": "y domain", "xanchor": "right", "yanchor": "top"}
        figure.add_annotation(text=text, showarrow=False, font={"size": 12}, **corner, row=row, col=1)
    return hash_axis(figure)


def _bundles(
    figure: go.Figure,
    bounds: tuple[Int64Array, Int64Array],
    share: FloatArray,
    told: np.ndarray[tuple[int, ...], np.dtype[np.object_]],
    name: str,
    colour: str,
    *,
    single: bool,
) -> None:
    """Draw the bundles of a broker: a bar each, or one outline of all of them where there are many."""
    low, high = bounds
    middle = low + (high - low) / 2
    hover = {
        "customdata": told,
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}<br>%{y:.3g} % of the load<extra></extra>",
    }
    if single:
        line = {"width": 0.5, "color": "rgba(255,255,255,0.7)"}
        marker = {"color": colour, "line": line}
        figure.add_bar(x=middle, y=share, width=high - low, name=name, marker=marker, **hover, row=1, col=1)
        return
    edges, heights = np.column_stack((low, low, high, high)).ravel(), np.zeros(4 * len(low))
    heights[1::4] = heights[2::4] = share
    outline = {"color": colour, "width": 1}
    figure.add_scatter(
        x=edges,
        y=heights,
        mode="lines",
        line=outline,
        fill="tozeroy",
        fillcolor=colour,
        name=name,
        hoverinfo="skip",
        row=1,
        col=1,
    )
    figure.add_scatter(x=middle, y=share, mode="none", showlegend=False, **hover, row=1, col=1)


def _colours(owners: Sequence[str], share: FloatArray) -> dict[str, str]:
    """Return the colours of the brokers with most of the load, and one for all others."""
    total: dict[str, float] = {}
    for owner, one in zip(owners, share.tolist(), strict=True):
        total[owner] = total.get(owner, 0.0) + one
    order = sorted(total, key=lambda name: -total[name])
    named = dict(zip(order[:_NAMED], CATEGORICAL, strict=False))
    return {**named, _REST: CATEGORICAL[-1]} if len(order) > _NAMED else named


def _topics(figure: go.Figure, hashes: Int64Array, share: FloatArray, names: Sequence[str]) -> None:
    # One line along zero: where it had gaps, a browser would draw as many lines as there are topics.
    stems_x, stems_y = np.repeat(hashes, 3), np.zeros(3 * len(hashes))
    stems_y[1::3] = share
    line = {"color": MUTED, "width": 1}
    figure.add_scatter(x=stems_x, y=stems_y, mode="lines", line=line, hoverinfo="skip", showlegend=False, row=2, col=1)
    order, told = np.argsort(-share, kind="stable"), np.array(names, dtype=object)
    for mode, chosen in (("markers", np.sort(order[:_MARKED])), ("none", np.sort(order[_MARKED:]))):
        figure.add_scatter(
            x=hashes[chosen],
            y=share[chosen],
            mode=mode,
            marker={"color": ACCENT, "size": 5},
            customdata=told[chosen],
            hovertemplate="%{customdata}<br>0x%{x:08x}<br>%{y:.3g} % of the load<extra></extra>",
            showlegend=False,
            row=2,
            col=1,
        )


def counts_figure(rows: Sequence[CountRow], now: CountRow, recommended: int, brokers: int) -> go.Figure:
    """Draw what each number of equal bundles gives: the heaviest bundle, and the broker with most of the load.

    Args:
        rows: One for each number.
        now: The namespace as it is.
        recommended: The number for a namespace made anew.
        brokers: How many brokers it may use.
    """
    x = [row.bundles for row in rows]
    figure = go.Figure()
    for name, values, colour, dash in (
        ("heaviest bundle", [row.largest_share_percent for row in rows], CATEGORICAL[1], "dot"),
        ("busiest broker", [row.placed_percent for row in rows], ACCENT, "solid"),
        ("lower bound", [row.bound_percent for row in rows], MUTED, "dash"),
    ):
        figure.add_scatter(
            x=x,
            y=values,
            mode="lines",
            name=name,
            line={"color": colour, "dash": dash, "width": 2},
            hovertemplate="%{x:,} bundles<br>%{y:.1f} %<extra>" + name + "</extra>",
        )
    chosen = next((row for row in rows if row.bundles == recommended), None)
    for label, row, symbol in (("as it is", now, "circle"), ("recommended", chosen, "star")):
        if row is not None:
            figure.add_scatter(
                x=[row.bundles],
                y=[row.placed_percent],
                mode="markers",
                name=label,
                marker={"color": WARNING, "size": 11, "symbol": symbol},
                hovertemplate="%{x:,} bundles<br>%{y:.1f} %<extra>" + label + "</extra>",
            )
    figure.add_hline(y=100 / max(brokers, 1), line={"color": MUTED, "width": 1, "dash": "dot"})
    finish(
        figure,
        height=250,
        x_title="equal bundles",
        y_title="share of the load (%)",
        legend={"y": 1.02, "yanchor": "bottom", "x": 0},
        margin_t=64,
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
