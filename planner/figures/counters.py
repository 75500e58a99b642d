"""Counters and averages of a strategy over consecutive cycles, and the pairs it compares."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from planner.cluster.arrays import FloatArray
from planner.figures.theme import (
    ACCENT,
    BELOW,
    CATEGORICAL,
    LABEL_PX,
    MUTED,
    ROW_PX,
    WARNING,
    add_line,
    finish,
    label_rows,
)

_NUMBERED = 30
"""Cycles that have room for a number each."""
_NAMED = 12
"""Counters that have room in the legend."""
_AXIS_PX = 100
_FAINT = "#6B7B8C"  # white numbers can be read on it


def counter_grid(
    names: Sequence[str],
    values: FloatArray,
    needed: float,
    marked: Sequence[tuple[int, int]],
    mark: str,
    in_vain: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """Draw counters as cells, one row for each that counts and one column for each cycle; empty where nothing counts.

    Args:
        names: What each row is about.
        values: Count after each cycle. Shape (rows, cycles).
        needed: Count at which the strategy acts; the colour is full there.
        marked: Rows and cycles (from 1) to mark, such as those in which the strategy acts.
        mark: What the mark means.
        in_vain: Rows and cycles in which the count was reached, and nothing came of it.
    """
    cycles = values.shape[1] if values.ndim > 1 else 0
    few = cycles <= _NUMBERED
    figure = go.Figure(
        go.Heatmap(
            x=list(range(1, cycles + 1)),
            y=[row + BELOW for row in range(len(names))],
            z=np.where(values > 0, values, np.nan),
            zmin=0,
            zmax=max(needed, 1.0),
            colorscale=[[0.0, _FAINT], [1.0, ACCENT]],
            showscale=False,
            xgap=2,
            ygap=LABEL_PX,
            text=[[f"{value:.0f}" if value > 0 else "" for value in row] for row in values.tolist()] if few else None,
            texttemplate="%{text}" if few else None,
            textfont={"color": "#FFFFFF"},
            hoverongaps=False,
            customdata=[[name] * cycles for name in names],
            hovertemplate=f"%{{customdata}}<br>cycle %{{x}}: %{{z:d}} of {needed:g} needed<extra></extra>",
        )
    )
    for places, symbol, label in ((marked, "square-open", mark), (in_vain, "x-thin", "reached, but no bundle fits")):
        if places or places is marked:
            figure.add_scatter(
                x=[cycle for _, cycle in places],
                y=[row + BELOW for row, _ in places],
                mode="markers",
                marker={"symbol": symbol, "size": 17, "color": WARNING, "line": {"width": 3, "color": WARNING}},
                hovertemplate=f"{label} in cycle %{{x}}<extra></extra>",
            )
    figure = finish(figure, height=_AXIS_PX + ROW_PX * max(1, len(names)), x_title="cycle")
    label_rows(figure, names)
    figure.update_xaxes(range=[0.5, max(cycles, 1) + 0.5], dtick=1 if few else None, showgrid=False)
    return figure


def counter_lines(
    series: Mapping[str, Sequence[float]], limit: float | None, limit_label: str, fired: Sequence[int], y_title: str
) -> go.Figure:
    """Draw one line for each counter over the cycles, the limit, and marks where the strategy acts.

    Args:
        series: Values after each cycle, by what is counted.
        limit: Value from which the strategy acts; None when it has none.
        limit_label: What to call it.
        fired: Cycles (from 1) in which it acts.
        y_title: What is counted, with its unit.
    """
    figure = go.Figure()
    for at, (name, values) in enumerate(series.items()):
        cycles, colour = list(range(1, len(values) + 1)), CATEGORICAL[at % len(CATEGORICAL)]
        hover, look = f"{name}<br>cycle %{{x}}: %{{y:.4g}}", {"shape": "hv"}
        add_line(figure, name, cycles, list(values), colour, hover, look=look, mode="lines+markers")
    if limit is not None:
        figure.add_hline(
            y=limit,
            line={"color": WARNING, "width": 1.5, "dash": "dash"},
            name=f"{limit_label} {limit:.4g}",
            showlegend=True,
        )
    for cycle in fired:
        figure.add_vline(x=cycle, line={"color": WARNING, "width": 1, "dash": "dot"})
    figure = finish(figure, height=300, y_title=y_title, legend={"y": -0.3}, from_zero=True)
    figure.update_layout(showlegend=len(series) <= _NAMED)
    most = max(map(len, series.values()), default=0)
    first = {"tickprefix": "cycle ", "showtickprefix": "first"}  # a title would meet a long legend
    return figure.update_xaxes(dtick=1 if most <= _NUMBERED else None, **first)


def paired_scores(pairs: Sequence[tuple[str, float, str, float]], low: float, high: float) -> go.Figure:
    """Draw each pair as a line from the lower to the higher score.

    Args:
        pairs: Lower broker, its score, higher broker, its score; scores in points.
        low: Difference from which a low hit counts.
        high: Difference from which a high hit counts too.
    """
    figure = go.Figure()
    for at, (below, score_below, above, score_above) in enumerate(pairs):
        difference = score_above - score_below
        colour = WARNING if difference >= high else CATEGORICAL[1] if difference >= low else MUTED
        figure.add_scatter(
            x=[score_below, score_above],
            y=[at + BELOW, at + BELOW],
            mode="lines+markers",
            line={"color": colour, "width": 3},
            marker={"size": 11, "color": [ACCENT, colour]},
            customdata=[below, above],
            hovertemplate="%{customdata}: %{x:.2f}<extra></extra>",
        )
    figure = finish(figure, height=_AXIS_PX + ROW_PX * max(1, len(pairs)), x_title="score (points)")
    label_rows(figure, [b if b == a else f"{b} ↔ {a}" for b, _, a, _ in pairs])
    return figure
