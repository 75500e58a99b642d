"""Several scenarios over the same time, laid over one another."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from planner.figures.theme import CATEGORICAL, MUTED, finish

__all__ = ["MOST_CURVES", "bars_by_name", "overlaid_curves"]

MOST_CURVES = 8
_DASHES = ("solid", "dash", "dot", "dashdot")


def overlaid_curves(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], y_title: str) -> go.Figure:
    """Draw up to eight curves; each has its own colour and line, so that they can be told apart without colours.

    Args:
        curves: Minutes and values by the name of the curve.
        y_title: What the values are, with their unit.
    """
    figure = go.Figure()
    for place, (name, (minutes, values)) in enumerate(list(curves.items())[:MOST_CURVES]):
        line = {"color": CATEGORICAL[place], "width": 2, "dash": _DASHES[place % len(_DASHES)]}
        hover = "%{x:g} min: %{y:.4g}<extra>%{fullData.name}</extra>"
        figure.add_trace(
            go.Scatter(x=list(minutes), y=list(values), name=name, mode="lines", line=line, hovertemplate=hover)
        )
    figure = finish(figure, height=340, x_title="minute", y_title=y_title)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.25, "font": {"size": 11}})
    figure.update_yaxes(rangemode="tozero")
    return figure


def bars_by_name(values: Mapping[str, float], limit: float | None, y_title: str) -> go.Figure:
    """Draw one bar for each name in the order given, with a limit as a line.

    Args:
        values: By name.
        limit: Where the line is; None for no line.
        y_title: What the values are, with their unit.
    """
    hover = "%{x}<br>%{y:.4g}<extra></extra>"
    figure = go.Figure(
        go.Bar(x=list(values), y=list(values.values()), marker_color=CATEGORICAL[0], hovertemplate=hover)
    )
    if limit is not None:
        figure.add_hline(y=limit, line={"color": MUTED, "dash": "dash", "width": 1.5})
    figure = finish(figure, height=300, y_title=y_title)
    figure.update_xaxes(type="category", autotickangles=[0, -35])
    figure.update_yaxes(rangemode="tozero")
    return figure
