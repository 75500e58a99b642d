"""Dispatch over time, scenarios side by side, and what the topics of each broker may dispatch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner.cluster.arrays import FloatArray
from planner.figures.theme import ACCENT, CATEGORICAL, MUTED, WARNING, add_line, finish

_FAR = 4.0


def dispatch_timeline(
    ends_s: FloatArray,
    *,
    demand: FloatArray,
    allowed: FloatArray,
    delivered: FloatArray,
    debt: FloatArray,
    waiting: FloatArray,
    unit: str,
) -> go.Figure:
    """Draw what consumers wanted, what limits left, what was sent, and below it debt and backlog.

    Args:
        ends_s: End of each period. Shape (periods,), as of every other array.
        demand: What consumers would have taken.
        allowed: What the binding limiters left, NaN where nothing limits.
        delivered: What was sent.
        debt: Debt at the beginning and at the end of each period. Shape (periods + 1,).
        waiting: Backlog at the same moments. Shape (periods + 1,).
        unit: What all of them count, such as `messages in 1 s`.
    """
    begins = ends_s - (ends_s[0] if len(ends_s) else 0.0)
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.56, 0.22, 0.22])
    steps, hover = {"shape": "hv"}, "%{x:g} s: %{y:,.0f} "
    filled: dict[str, Any] = {"fill": "tozeroy", "fillcolor": "rgba(0,114,178,0.25)"}
    label = f"{hover}delivered"
    add_line(figure, "delivered", begins, delivered, ACCENT, label, look=steps, row=1, mode=None, **filled)
    for name, values, colour, dash in (("demand", demand, MUTED, "dot"), ("allowed", allowed, WARNING, "solid")):
        look = {**steps, "dash": dash}
        add_line(figure, name, begins, values, colour, hover + name, look=look, row=1, mode=None)
    moments = np.concatenate(([0.0], ends_s))
    for row, name, values, colour in ((2, "debt", debt, CATEGORICAL[3]), (3, "backlog", waiting, CATEGORICAL[2])):
        add_line(figure, name, moments, values, colour, hover + name, row=row, mode=None, fill="tozeroy")
    finish(figure, height=460, legend={"y": -0.16, "x": 0}, from_zero=True)
    figure.update_yaxes(nticks=4)
    served = max(float(np.nanmax(values, initial=0.0)) for values in (delivered, np.nan_to_num(allowed)))
    most = float(demand.max(initial=0.0))
    if served > 0 and most > _FAR * served:  # a demand far beyond would press the rest flat
        figure.update_yaxes(range=[0, 2 * served], row=1, col=1)
        text = f"demand up to {most:,.0f} ↑"
        figure.add_annotation(text=text, x=1, xref="x domain", y=1, yref="y domain", showarrow=False, yshift=9)
    for row, title in ((1, unit), (2, "debt"), (3, "backlog")):
        figure.update_yaxes(title=title, row=row, col=1)
    return figure.update_xaxes(title="seconds", row=3, col=1)


def scenario_lines(ends_s: FloatArray, series: Mapping[str, FloatArray], y_title: str) -> go.Figure:
    """Draw one line for each scenario over the ends of the periods; the title says what its values are, with unit."""
    figure = go.Figure()
    dashes = ("solid", "dash", "dot", "dashdot")
    for at, (name, values) in enumerate(series.items()):
        colour, look = CATEGORICAL[at % len(CATEGORICAL)], {"dash": dashes[at % len(dashes)]}
        add_line(figure, name, ends_s, values, colour, f"{name}<br>%{{x:g}} s: %{{y:,.0f}}", width=2.5, look=look)
    legend = {"y": 1.12, "x": 0}
    return finish(figure, height=300, x_title="seconds", y_title=y_title, legend=legend, from_zero=True)


def broker_bars(
    names: Sequence[str],
    now: FloatArray,
    allowed: FloatArray,
    unlimited: FloatArray,
    bandwidth: FloatArray,
    shared: FloatArray,
) -> go.Figure:
    """Draw for each broker what its topics dispatch now and may dispatch, beside its bandwidth.

    Args:
        names: Brokers. Every other argument is in MiB/s. Shape (brokers,).
        now: What all topics dispatch now.
        allowed: What those with a limit may dispatch in all.
        unlimited: What those without limit dispatch now.
        bandwidth: Outbound bandwidth; NaN unknown.
        shared: Limit that the broker itself shares; infinite without.
    """
    figure = go.Figure()
    hover = "%{y}<br>%{x:,.3g} MiB/s "
    bars = (
        ("dispatched now", now, MUTED, "now", None),
        ("limit of the limited topics", allowed, ACCENT, "may", None),
        ("dispatched without a limit", unlimited, CATEGORICAL[1], "may", allowed),
    )
    for name, values, colour, group, base in bars:
        figure.add_bar(
            y=list(names),
            x=values,
            name=name,
            orientation="h",
            marker={"color": colour},
            offsetgroup=group,
            base=base,
            hovertemplate=hover + name + "<extra></extra>",
        )
    limits = (("bandwidth", bandwidth, WARNING, "line-ns"), ("broker's own limit", shared, CATEGORICAL[3], "diamond"))
    for name, values, colour, symbol in limits:
        known = np.isfinite(values)
        if known.any():
            figure.add_scatter(
                y=[n for n, k in zip(names, known, strict=True) if k],
                x=values[known],
                name=name,
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 13, "line": {"color": colour, "width": 3}},
                hovertemplate=hover + name + "<extra></extra>",
            )
    height = max(220, min(900, 130 + 46 * len(names)))
    finish(figure, height=height, x_title="MiB/s", legend={"y": -0.35, "x": 0}, barmode="group")
    figure.update_yaxes(autorange="reversed")
    return figure.update_xaxes(rangemode="tozero")
