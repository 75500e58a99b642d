"""How often shadow mode was right: predicted and unloaded bundles of each cycle, and the score so far."""

from collections.abc import Sequence
from itertools import accumulate

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner.figures.theme import ACCENT, MUTED, WARNING, add_line, finish

_FULL = 100.0


def _shares(right: Sequence[bool]) -> list[float]:
    """Return the share of right cycles up to each one, percent."""
    return [_FULL * hits / count for count, hits in enumerate(accumulate(map(int, right)), start=1)]


def shadow_score(
    numbers: Sequence[int], predicted: Sequence[int], unloaded: Sequence[int], right: Sequence[bool]
) -> go.Figure:
    """Draw how many bundles were predicted and unloaded in each cycle, and the share of right cycles so far."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.45, 0.55], vertical_spacing=0.06)
    cycles, shares = list(numbers), _shares(right)
    hover = "cycle %{x}: %{y:.1f} % correct so far"
    add_line(figure, "right so far", cycles, shares, ACCENT, hover, look={"shape": "hv"}, row=1)
    wrong = [place for place, as_predicted in enumerate(right) if not as_predicted]
    figure.add_scatter(
        x=[numbers[i] for i in wrong],
        y=[shares[i] for i in wrong],
        mode="markers",
        name="not as predicted",
        marker={"color": WARNING, "symbol": "x", "size": 9},
        hovertemplate="cycle %{x}: not as predicted<extra></extra>",
        row=1,
        col=1,
    )
    for name, values, colour in (("predicted", predicted, MUTED), ("unloaded", unloaded, ACCENT)):
        hover = f"cycle %{{x}}: %{{y}} {name}<extra></extra>"
        look = {"color": colour}
        figure.add_bar(x=cycles, y=list(values), name=name, marker=look, hovertemplate=hover, row=2, col=1)
    finish(figure, height=360, legend={"y": -0.16}, barmode="group")
    figure.update_yaxes(title="correct so far (%)", range=[0, 105], row=1, col=1)
    figure.update_yaxes(title="bundles", rangemode="tozero", row=2, col=1)
    return figure.update_xaxes(title="cycle", row=2, col=1)


def shadow_text(numbers: Sequence[int], right: Sequence[bool]) -> str:
    """Say in a sentence what `shadow_score` shows."""
    hits = sum(right)
    wrong = [str(number) for number, as_predicted in zip(numbers, right, strict=True) if not as_predicted]
    shown = ", ".join(wrong[-10:])
    few = "" if len(wrong) <= 10 else " (last ten)"  # noqa: PLR2004
    rest = f"; mispredicted{few}: {shown}" if wrong else ""
    return f"{hits} of {len(right)} cycles as predicted{rest}."
