"""How often shadow mode was right: predicted and unloaded bundles of each cycle, and the score so far."""

from collections.abc import Sequence
from itertools import accumulate

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner.figures.theme import ACCENT, MUTED, WARNING, finish

_FULL = 100.0


def _shares(right: Sequence[bool]) -> list[float]:
    """Return the share of right cycles up to each one, percent."""
    return [_FULL * hits / count for count, hits in enumerate(accumulate(map(int, right)), start=1)]


def shadow_score(
    numbers: Sequence[int], predicted: Sequence[int], unloaded: Sequence[int], right: Sequence[bool]
) -> go.Figure:
    """Draw what was predicted and unloaded in each cycle, and the share of right cycles so far.

    Args:
        numbers: Numbers of the cycles.
        predicted: Bundles predicted in each. Same length.
        unloaded: Bundles unloaded in each. Same length.
        right: Whether each was as predicted. Same length.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.45, 0.55], vertical_spacing=0.06)
    share = go.Scatter(
        x=list(numbers),
        y=_shares(right),
        mode="lines",
        name="right so far",
        line={"color": ACCENT, "width": 2, "shape": "hv"},
        hovertemplate="cycle %{x}: %{y:.1f} % right so far<extra></extra>",
    )
    wrong = [place for place, as_predicted in enumerate(right) if not as_predicted]
    marks = go.Scatter(
        x=[numbers[i] for i in wrong],
        y=[_shares(right)[i] for i in wrong],
        mode="markers",
        name="not as predicted",
        marker={"color": WARNING, "symbol": "x", "size": 9},
        hovertemplate="cycle %{x}: not as predicted<extra></extra>",
    )
    figure.add_traces([share, marks], rows=1, cols=1)
    for name, values, colour in (("predicted", predicted, MUTED), ("unloaded", unloaded, ACCENT)):
        figure.add_trace(
            go.Bar(
                x=list(numbers),
                y=list(values),
                name=name,
                marker={"color": colour},
                hovertemplate=f"cycle %{{x}}: %{{y}} {name}<extra></extra>",
            ),
            row=2,
            col=1,
        )
    figure = finish(figure, height=360)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.16}, barmode="group")
    figure.update_yaxes(title="right so far (%)", range=[0, 105], row=1, col=1)
    figure.update_yaxes(title="bundles", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="cycle", row=2, col=1)
    return figure


def shadow_text(numbers: Sequence[int], right: Sequence[bool]) -> str:
    """Say in a sentence what `shadow_score` shows."""
    hits = sum(right)
    wrong = [str(number) for number, as_predicted in zip(numbers, right, strict=True) if not as_predicted]
    shown = ", ".join(wrong[-10:])
    rest = f"; not in cycle {shown}{' (the last ten)' if len(wrong) > 10 else ''}" if wrong else ""  # noqa: PLR2004
    return f"{hits} of {len(right)} cycles went as predicted{rest}."
