"""Counters and averages of a strategy over consecutive cycles, and the pairs it compares."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from planner.figures.theme import ACCENT, CATEGORICAL, MUTED, WARNING, finish

__all__ = ["counter_lines", "paired_scores"]


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
        figure.add_trace(
            go.Scatter(
                x=list(range(1, len(values) + 1)),
                y=list(values),
                mode="lines+markers",
                name=name,
                line={"color": CATEGORICAL[at % len(CATEGORICAL)], "width": 2, "shape": "hv"},
                hovertemplate=f"{name}<br>cycle %{{x}}: %{{y:.4g}}<extra></extra>",
            )
        )
    if limit is not None:
        figure.add_hline(
            y=limit,
            line={"color": WARNING, "width": 1.5, "dash": "dash"},
            annotation={"text": f"{limit_label} {limit:g}", "font": {"size": 11}},
        )
    for cycle in fired:
        figure.add_vline(x=cycle, line={"color": WARNING, "width": 1, "dash": "dot"})
    figure = finish(figure, height=300, x_title="cycle", y_title=y_title)
    figure.update_layout(showlegend=len(series) <= 12, legend={"orientation": "h", "y": -0.3})  # noqa: PLR2004 - room
    figure.update_xaxes(dtick=1 if max((len(v) for v in series.values()), default=0) <= 30 else None)  # noqa: PLR2004
    figure.update_yaxes(rangemode="tozero")
    return figure


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
        figure.add_trace(
            go.Scatter(
                x=[score_below, score_above],
                y=[at, at],
                mode="lines+markers",
                line={"color": colour, "width": 3},
                marker={"size": 11, "color": [ACCENT, colour]},
                customdata=[below, above],
                hovertemplate="%{customdata}: %{x:.2f}<extra></extra>",
            )
        )
    figure = finish(figure, height=max(180, min(700, 90 + 34 * len(pairs))), x_title="score (points)")
    figure.update_yaxes(
        tickvals=list(range(len(pairs))),
        ticktext=[b if b == a else f"{b} ↔ {a}" for b, _, a, _ in pairs],
        range=[len(pairs) - 0.5, -0.5],
    )
    return figure
