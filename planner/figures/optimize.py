"""The best plan: moves against the highest usage, with what no plan can beat; brokers before and after."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import plotly.graph_objects as go

from planner.cluster.arrays import FloatArray
from planner.figures.theme import ACCENT, CATEGORICAL, MUTED, WARNING, add_line, finish, name_brokers, short_names
from planner.optimize.plan import Plan

_GREEN = CATEGORICAL[2]
_LINE_POINTS: Final = 5.0
"""Points of usage that a line of a label is high."""
_LINE_PX, _LETTER_PX, _MARK_PX, _NARROW_PX = 13, 6.3, 8, 280
"""Height of a line of a label, width of its letters, half of a mark, and width of the figure in a narrow window."""
_ABOVE = {"y": 1.02, "yanchor": "bottom", "x": 0}


def frontier_figure(
    frontier: Plan, plan: Plan, limit_percent: float, others: Mapping[str, tuple[int, float]]
) -> go.Figure:
    """Draw the highest usage after each further move, the bound under it, a plan, and the results of strategies.

    Args:
        frontier: A plan without a budget, which went through all others.
        plan: The plan that is marked.
        limit_percent: Usage from which a broker is overloaded.
        others: Moves and highest usage (percent) of each strategy, by its name.
    """
    steps = frontier.frontier
    moves = [step.moves for step in steps]
    figure = go.Figure()
    below = f"lower bound{' without splits' if plan.splits else ''}"
    hover = "%{x:,} moves: %{y:.1f} %"
    peaks = [step.peak * 100 for step in steps]
    add_line(figure, "best plan found", moves, peaks, ACCENT, hover, width=2.5, mode=None)
    least, label = [frontier.least_with(step.moves) * 100 for step in steps], f"%{{x:,}} moves: {below} %{{y:.1f}} %"
    add_line(figure, below, moves, least, MUTED, label, width=1.5, look={"dash": "dot"}, mode=None)
    figure.add_scatter(
        x=[len(plan.moves)],
        y=[plan.peak * 100],
        name="this plan",
        mode="markers",
        marker={"color": _GREEN, "size": 16, "symbol": "star"},
        hovertemplate=f"{hover}<extra></extra>",
    )
    if others:
        names = list(others)
        figure.add_scatter(
            x=[others[name][0] for name in names],
            y=[others[name][1] for name in names],
            text=names,
            name="strategies",
            mode="markers",
            marker={"color": WARNING, "size": 11, "symbol": "diamond"},
            hovertemplate=f"%{{text}}<br>{hover}<extra></extra>",
        )
        most = max(moves[-1], *(number for number, _ in others.values()))
        for name, at, peak, left, shift_px in _apart(_stacked(others), most):
            side = {"xanchor": "right", "xshift": -10} if left else {"xanchor": "left", "xshift": 10}
            look = {"showarrow": False, "font": {"size": 11}, "yshift": shift_px}
            figure.add_annotation(x=at, y=peak, text=name, **look, **side)
    figure.add_hline(y=limit_percent, line={"color": MUTED, "width": 1, "dash": "dash"})
    titles = {"x_title": "bundles moved", "y_title": "highest usage (%)"}
    return finish(figure, height=360, **titles, legend=_ABOVE, from_zero=True, margin_t=52)


def _stacked(others: Mapping[str, tuple[int, float]]) -> Iterator[tuple[str, int, float]]:
    """Yield labels with their places; those that would lie on each other are one, line by line."""
    groups: list[list[str]] = []
    for name in sorted(others, key=others.__getitem__):
        at, peak = others[groups[-1][0]] if groups else (-1, 0.0)
        if others[name][0] == at and others[name][1] - peak < _LINE_POINTS:
            groups[-1].append(name)
        else:
            groups.append([name])
    for names in groups:
        yield "<br>".join(names), *others[names[0]]


def _apart(labels: Iterable[tuple[str, int, float]], most_moves: int) -> Iterator[tuple[str, int, float, bool, int]]:
    """Yield labels with their places, the side of their marks, and how far to move each up so that none lie on others.

    Args:
        labels: Each with its place.
        most_moves: The end of the axis of moves.
    """
    found, scale = list(labels), _NARROW_PX / max(most_moves, 1)
    marks = [(at * scale, peak / _LINE_POINTS * _LINE_PX) for _, at, peak in found]
    taken = [(x - _MARK_PX, x + _MARK_PX, y - _MARK_PX, y + _MARK_PX) for x, y in marks]
    for (name, at, peak), (across, up) in zip(found, marks, strict=True):
        lines = name.split("<br>")
        width, height = max(map(len, lines)) * _LETTER_PX, len(lines) * _LINE_PX
        left = across + width > _NARROW_PX and across > width
        start = across - width - _MARK_PX if left else across + _MARK_PX
        for step in (0, -1, 1, -2, 2, -3, 3):
            low = up + step * _LINE_PX - height / 2
            box = (start, start + width, low, low + height)
            if not any(box[0] < b and a < box[1] and box[2] < d and c < box[3] for a, b, c, d in taken):
                break
        taken.append(box)
        yield name, at, peak, left, step * _LINE_PX


def before_after_figure(names: Sequence[str], before: FloatArray, after: FloatArray, limit_percent: float) -> go.Figure:
    """Draw the usage of each broker before and after a plan, the most used before it first.

    Args:
        names: Broker ids.
        before: Usage of each (1.0 = 100 %).
        after: The same with the plan.
        limit_percent: Usage from which a broker is overloaded.
    """
    order = np.argsort(-before, kind="stable")
    short = short_names(names)
    labels = [short[at] for at in order.tolist()]
    figure = go.Figure()
    for label, values, colour, symbol in (
        ("before", before, MUTED, "circle-open"),
        ("after", after, ACCENT, "circle"),
    ):
        figure.add_scatter(
            x=labels,
            y=values[order] * 100,
            name=label,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 7},
            hovertemplate=f"%{{x}}: %{{y:.1f}} % {label}<extra></extra>",
        )
    figure.add_hline(y=limit_percent, line={"color": MUTED, "width": 1, "dash": "dash"})
    finish(figure, height=300, y_title="usage (%)", legend=_ABOVE, from_zero=True, margin_t=44)
    name_brokers(figure.layout.xaxis, len(labels))
    return figure
