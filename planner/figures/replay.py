"""Quantities of replays over days."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from planner.figures.simulation import Curve, overlaid_curves


def curves_over_days(curves: Mapping[str, tuple[Sequence[int], Sequence[float]]], y_title: str) -> go.Figure:
    """Draw curves over days.

    Args:
        curves: Moments (ms since 1970) and values by the name of the curve; at most eight.
        y_title: What the values are, with their unit.

    Raises:
        ValueError: There are more than eight.
    """
    drawn = [Curve(name, np.array(at, dtype=np.float64), np.array(values)) for name, (at, values) in curves.items()]
    figure = overlaid_curves(drawn, "", y_title)
    figure.update_xaxes(type="date")
    figure.update_traces(hovertemplate="%{fullData.name}<br>%{x|%Y-%m-%d %H:%M}: %{y:.4g}<extra></extra>")
    return figure
