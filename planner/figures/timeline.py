"""How busy the brokers are over the cycles of a simulation."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from planner.figures.theme import ACCENT, CATEGORICAL, MUTED, WARNING, finish
from planner.model.arrays import FloatArray

__all__ = ["usage_timeline"]

_EACH = 12
_NAMED = 5


def _line(minutes: FloatArray, values: FloatArray, name: str, colour: str, **options: object) -> go.Scatter:
    return go.Scatter(
        x=minutes,
        y=values,
        name=name,
        mode="lines",
        line={"color": colour, "width": 2, **options},
        hovertemplate=f"{name}<br>minute %{{x:g}}: %{{y:.1f}} %<extra></extra>",
    )


def _named(usage: FloatArray) -> list[int]:
    """Return the brokers to draw by name: those with the highest usage at any time."""
    peaks = np.nan_to_num(usage, nan=-1.0).max(axis=0)
    order = np.argsort(-peaks, kind="stable")
    return [int(broker) for broker in order[: len(order) if len(order) <= _EACH else _NAMED]]


def usage_timeline(
    minutes: Sequence[float], names: Sequence[str], usage_percent: FloatArray, shed: Sequence[int]
) -> go.Figure:
    """Draw the usage of each broker over time, with the bundles shed in each cycle as bars.

    Of many brokers the busiest are drawn by name, over the range from the lowest to the highest.

    Args:
        minutes: When each cycle was.
        names: Broker ids.
        usage_percent: Usage in each cycle, NaN where a broker is not there. Shape (cycles, brokers).
        shed: Bundles shed in each cycle.
    """
    at = np.array(minutes, dtype=np.float64)
    figure = go.Figure()
    there = np.where(np.isnan(usage_percent).all(axis=1, keepdims=True), 0.0, usage_percent)
    if len(names) > _EACH:
        low, high = np.nanmin(there, axis=1), np.nanmax(there, axis=1)
        figure.add_trace(go.Scatter(x=at, y=low, mode="lines", line={"width": 0}, hoverinfo="skip"))
        figure.add_trace(
            go.Scatter(
                x=at, y=high, mode="lines", line={"width": 0}, fill="tonexty", fillcolor="rgba(0,114,178,0.15)",
                name="lowest to highest", hoverinfo="skip",
            )
        )  # fmt: skip
    for place, broker in enumerate(_named(usage_percent)):
        colour = CATEGORICAL[place % len(CATEGORICAL)]
        dash = "solid" if place < len(CATEGORICAL) else "dot"
        figure.add_trace(_line(at, usage_percent[:, broker], names[broker], colour, dash=dash))
    figure.add_trace(_line(at, np.nanmean(there, axis=1), "average", MUTED, dash="dash"))
    if any(shed):
        figure.add_trace(
            go.Bar(
                x=at, y=list(shed), yaxis="y2", name="bundles shed", marker={"color": WARNING, "opacity": 0.55},
                hovertemplate="minute %{x:g}: %{y} bundles shed<extra></extra>",
            )
        )  # fmt: skip
    figure = finish(figure, height=340, x_title="minute", y_title="usage (%)")
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "y": -0.25, "font": {"size": 11}},
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "title": "bundles shed",
            "showgrid": False,
            "rangemode": "tozero",
            "range": [0, max(4, 3 * max(shed, default=0))],
            "tickformat": "d",
            "nticks": 4,
        },
        bargap=0.6,
    )
    figure.update_yaxes(rangemode="tozero", selector={"overlaying": None})
    figure.update_traces(selector={"name": "average"}, line={"color": ACCENT if len(names) > _EACH else MUTED})
    return figure
