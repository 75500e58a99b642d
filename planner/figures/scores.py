"""Broker scores against what the strategy compares them with."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from planner.cluster.arrays import BoolArray, FloatArray
from planner.cluster.decisions import Line
from planner.explain.cluster_tables import ResourceShares
from planner.figures.hash_space import colour_bar
from planner.figures.theme import (
    ACCENT,
    BELOW,
    CATEGORICAL,
    LABEL_PX,
    LINE_DASHES,
    MUTED,
    ROW_PX,
    SEQUENTIAL,
    WARNING,
    finish,
    label_rows,
    name_brokers,
    number_size,
    short_names,
)

_SHOWN = 200
_APART = 60
"""Most brokers whose cells are apart from each other: a gap is a pixel."""
_COLOURS_PX, _LETTER_PX = 150, 6
"""Room for the colours of a map, and for a letter of the names below it, which stand upright in a narrow window."""


def broker_scores(
    names: Sequence[str],
    scores: FloatArray,
    shedding: BoolArray,
    lines: Sequence[Line],
    unit: str,
    limit: float | None = None,
) -> go.Figure:
    """Draw the score of each broker, highest first, with the lines it is compared with.

    Args:
        names: Broker ids.
        scores: Score of each; NaN where unknown (not drawn).
        shedding: Which brokers unload something in the next cycle.
        lines: Average and thresholds.
        unit: `fraction` (drawn as percent, from 0 to 100 at least) or `msg/s`.
        limit: Where a broker counts as overloaded, in the unit of the scores; None where that cannot be compared. Not
            drawn where one of the lines is there.
    """
    factor, suffix = (100.0, " %") if unit == "fraction" else (1.0, f" {unit}")
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:_SHOWN]
    short = short_names(names)
    labels = [short[i] for i in order]
    values = scores[order] * factor
    colours = [WARNING if shedding[i] else ACCENT for i in order]
    status = ["sheds in the next cycle" if shedding[i] else "keeps its bundles" for i in order]
    figure = go.Figure(
        go.Bar(
            x=labels,
            y=values,
            marker={"color": colours, "line": {"width": 0}},
            customdata=status,
            hovertemplate="%{x}<br>%{y:.2f}" + suffix + "<br>%{customdata}<extra></extra>",
        )
    )
    for at, line in enumerate(lines):
        figure.add_hline(
            y=line.value * factor,
            line={"color": MUTED if at == 0 else WARNING, "width": 2, "dash": LINE_DASHES[at % len(LINE_DASHES)]},
            name=f"{line.label} {line.value * factor:.1f}{suffix}",
            showlegend=True,
        )
    if limit is not None and not any(math.isclose(line.value, limit) for line in lines):  # one of its own is that limit
        figure.add_hline(
            y=limit * factor,
            line={"color": CATEGORICAL[3], "width": 2},
            name=f"limit {limit * factor:g}{suffix}",
            showlegend=True,
        )
    title, legend = f"score ({'%' if unit == 'fraction' else unit})", {"y": 1.0, "yanchor": "bottom", "x": 0}
    finish(figure, height=290, y_title=title, legend=legend, from_zero=True, margin_t=44)
    name_brokers(figure.layout.xaxis, len(order))
    if unit == "fraction":
        figure.update_yaxes(range=[0, max(100.0, float(np.nan_to_num(values).max(initial=0.0)) * 1.05)])
    figure.data[0].showlegend = False
    return figure.update_layout(showlegend=bool(lines) or limit is not None)


def resource_breakdown(labels: Sequence[str], percents: Sequence[float], counted: Sequence[bool]) -> go.Figure:
    """Draw the resources of one broker in percent of their limits; grey those that cannot decide its score."""
    figure = go.Figure(
        go.Bar(
            x=list(percents),
            y=list(labels),
            orientation="h",
            marker={"color": [ACCENT if c else MUTED for c in counted]},
            text=[f"{p:.1f} %" for p in percents],
            textposition="auto",
            hovertemplate="%{y}: %{x:.3f} %<extra></extra>",
        )
    )
    figure = finish(figure, height=240, x_title="% of the limit")
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(range=[0, max(100.0, *percents) if len(percents) else 100.0])
    return figure


def resource_map(shares: ResourceShares) -> go.Figure:
    """Draw resources against brokers, coloured by their share of the limit; blank where that is unknown.

    Names stand above the rows, and few cells have numbers, so that a narrow window has room for all of them.
    """
    top = float(np.nanmax(shares.percents)) if np.isfinite(shares.percents).any() else 100.0
    names = short_names(shares.brokers)
    size = number_size(len(names), len(f"{top:.0f}"))
    labels = [
        name if counts else f"{name} (not counted)"
        for name, counts in zip(shares.resources, shares.counts, strict=True)
    ]
    figure = go.Figure(
        go.Heatmap(
            z=shares.percents,
            x=names,
            y=[row + BELOW for row in range(len(labels))],
            zmin=0,
            zmax=max(top, 100.0),
            colorscale=SEQUENTIAL,
            colorbar=colour_bar("% of the limit"),
            texttemplate="%{z:.0f}" if size else None,
            textfont={"size": size} if size else None,
            customdata=[[name] * len(shares.brokers) for name in shares.resources],
            hovertemplate="%{x}<br>%{customdata}: %{z:.1f} % of the limit<extra></extra>",
            hoverongaps=False,
            xgap=1 if len(names) <= _APART else 0,
            ygap=LABEL_PX,
        )
    )
    longest = max(map(len, names), default=0)
    figure = finish(figure, height=_COLOURS_PX + ROW_PX * len(labels) + _LETTER_PX * longest, margin_t=70)
    label_rows(figure, labels)
    name_brokers(figure.layout.xaxis, len(shares.brokers))
    return figure


def bars_by_name(values: Mapping[str, float], limit: float | None, y_title: str) -> go.Figure:
    """Draw one bar for each name in the order given; a limit in percent is a line, and bars above it stand out.

    The title of the axis says what the values are, with their unit.
    """
    high = [limit is not None and value > limit for value in values.values()]
    figure = go.Figure(
        go.Bar(
            x=list(values),
            y=list(values.values()),
            marker={"color": [WARNING if h else ACCENT for h in high], "line": {"width": 0}},
            hovertemplate="%{x}<br>%{y:.4g}<extra></extra>",
        )
    )
    if limit is not None:
        look = {"color": MUTED, "dash": "dash", "width": 2}
        figure.add_hline(y=limit, line=look)
        words = f"limit {limit:g} %"
        figure.add_scatter(x=[None], y=[None], mode="lines", name=words, line=look, showlegend=True)
    finish(figure, height=300, y_title=y_title, legend={"y": 1.02, "yanchor": "bottom"}, from_zero=True)
    figure.data[0].showlegend = False
    name_brokers(figure.layout.xaxis, len(values))
    return figure.update_layout(showlegend=limit is not None)
