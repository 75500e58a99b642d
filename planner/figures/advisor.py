"""What the advisor found: the front, how far settings can move, and how a choice did day by day."""

from collections import defaultdict
from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner.advise.advice import Advice, Holdout, SettingRange
from planner.advise.advice_text import shown
from planner.advise.objectives import Side, value_of
from planner.advise.verdict import verdict_of
from planner.cluster.setting import conf_value
from planner.figures.theme import ACCENT, CATEGORICAL, MUTED, WARNING, add_line, finish

_BAND = "rgba(0,114,178,0.13)"
_GREEN = CATEGORICAL[2]
_MOST_NAMES = 8
_SHORT = 32


def _axis(advice: Advice, side: Side) -> tuple[list[float], str]:
    """Return the values of a side and what they are: the objective when it is the only one, else the index."""
    objectives = advice.question.objectives(side)
    if len(objectives) == 1:
        values = [value_of(one.totals, objectives[0]) or 0.0 for one in advice.candidates]
        return values, f"{objectives[0].label} ({objectives[0].unit})"
    values = [one.balance if side == "balance" else one.disruption for one in advice.candidates]
    return values, f"{side} index"


def _plain(name: str) -> str:
    """Return a name in which nothing is markup; it may come from a link."""
    return escape(shown(name))


def front_figure(advice: Advice) -> go.Figure:
    """Draw every candidate by balance and disruption, the front as a line, current and recommended settings marked.

    Lower left is better, among candidates with the least overload. The shape of a mark says what its colour says.
    Every point of the front is named: by its place in the order of balance where there are many.
    """
    (x, x_title), (y, y_title) = _axis(advice, "balance"), _axis(advice, "disruption")
    at = {one.name: place for place, one in enumerate(advice.candidates)}
    hover = f"%{{text}}<br>{x_title}: %{{x:.4g}}<br>{y_title}: %{{y:.4g}}<extra></extra>"
    figure = go.Figure()

    def add(places: Sequence[int], label: str, **options: object) -> None:
        figure.add_scatter(
            x=[x[p] for p in places],
            y=[y[p] for p in places],
            text=[_plain(advice.candidates[p].name) for p in places],
            name=label,
            hovertemplate=hover,
            **{"mode": "markers", **options},
        )

    special = {advice.current, advice.chosen}
    rest = [p for p, one in enumerate(advice.candidates) if not one.on_front and one.name not in special]
    hot = [p for p in rest if advice.candidates[p].more_overload]
    add([p for p in rest if p not in hot], "not Pareto-optimal", marker={"color": MUTED, "size": 7, "opacity": 0.65})
    add(hot, "more overload", marker={"color": CATEGORICAL[3], "size": 9, "symbol": "x"})
    front = [at[one.name] for one in advice.front]
    line = {"color": ACCENT, "width": 1.5, "shape": "hv"}
    add(front, "Pareto front", mode="lines+markers", line=line, marker={"color": ACCENT, "size": 9})
    if advice.knee and advice.knee != advice.chosen:
        mark = {"color": ACCENT, "size": 15, "symbol": "circle-open", "line": {"width": 2}}
        add([at[advice.knee]], "balanced choice", marker=mark)
    if advice.current and advice.current != advice.chosen:
        add([at[advice.current]], "current settings", marker={"color": WARNING, "size": 14, "symbol": "diamond"})
    add([at[advice.chosen]], verdict_of(advice).mark, marker={"color": _GREEN, "size": 17, "symbol": "star"})
    _label(figure, advice, x, y)
    _name_front(figure, advice, x, y)
    x_title, y_title = f"{x_title} (lower is better)", f"{y_title} (lower is better)"
    return finish(figure, height=430, x_title=x_title, y_title=y_title, legend={"y": -0.2, "font": {"size": 11}})


def _label(figure: go.Figure, advice: Advice, x: Sequence[float], y: Sequence[float]) -> None:
    """Name the two marks beside them, each away from the other so that they never cover one another."""
    at = {one.name: place for place, one in enumerate(advice.candidates)}
    chosen = at[advice.chosen]
    current = at.get(advice.current, chosen)
    width = (max(x) - min(x)) or 1.0
    right = (x[chosen] - min(x)) / width <= 0.7  # noqa: PLR2004 - room for the words
    above = y[chosen] >= y[current]
    mark = verdict_of(advice).mark.capitalize()
    if current == chosen:
        texts = [(chosen, "Keep current" if advice.current else mark, True, right)]
    else:
        left = (x[current] - min(x)) / width <= 0.7  # noqa: PLR2004 - as above
        texts = [(chosen, mark, above, right), (current, "Current", not above, left)]
    for place, text, up, to_right in texts:
        figure.add_annotation(
            x=x[place],
            y=y[place],
            text=f"<b>{text}</b>",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=MUTED,
            ax=28 if to_right else -28,
            ay=-26 if up else 26,
            xanchor="left" if to_right else "right",
            standoff=8,
        )


def _name_front(figure: go.Figure, advice: Advice, x: Sequence[float], y: Sequence[float]) -> None:
    """Name the points of the front that have no mark of their own, above and to the right where the front is not."""
    at = {one.name: place for place, one in enumerate(advice.candidates)}
    many = len(advice.front) > _MOST_NAMES
    for number, one in enumerate(advice.front, start=1):
        if not many and one.name in {advice.current, advice.chosen}:
            continue
        place = at[one.name]
        figure.add_annotation(
            x=x[place],
            y=y[place],
            text=str(number) if many else escape(shown(one.name, _SHORT)),
            font={"size": 11},
            showarrow=False,
            xanchor="left" if x[place] <= min(x) + 0.7 * (max(x) - min(x)) else "right",
            yanchor="bottom",
            xshift=6 if x[place] <= min(x) + 0.7 * (max(x) - min(x)) else -6,
            yshift=2,
        )


def sensitivity_figure(found: SettingRange) -> go.Figure:
    """Draw both indices along one setting; the band is how far it can move, open marks are values that would not do."""
    labels = [conf_value(step.value) or "not set" for step in found.steps]
    figure = go.Figure()
    for label, colour, dash, values in (
        ("balance", ACCENT, "solid", [step.balance for step in found.steps]),
        ("disruption", CATEGORICAL[1], "dash", [step.disruption for step in found.steps]),
    ):
        symbols = [
            "star" if step.value == found.chosen else "circle" if step.holds else "circle-open" for step in found.steps
        ]
        marker = {"size": [13 if s == "star" else 9 for s in symbols], "symbol": symbols}
        hover, look = f"%{{x}}: {label} %{{y:.4g}}", {"dash": dash}
        add_line(figure, label, labels, values, colour, hover, look=look, mode="lines+markers", marker=marker)
    places = [at for at, step in enumerate(found.steps) if step.value in {found.low, found.high}]
    figure.add_vrect(x0=min(places) - 0.4, x1=max(places) + 0.4, fillcolor=_BAND, line_width=0, layer="below")
    legend, y_title = {"y": 1.18, "font": {"size": 11}}, "index (100 = average)"
    finish(figure, height=270, x_title=found.setting, y_title=y_title, legend=legend, from_zero=True)
    return figure.update_xaxes(type="category", title={"font": {"size": 11}})


def holdout_figure(found: Holdout) -> go.Figure:
    """Draw both indices day by day, with the current settings and with the choice; what it is judged on is shaded.

    Several clusters are averaged.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    days = sorted({pair.day for pair in found.days})
    sides: tuple[Side, ...] = ("balance", "disruption")
    for row, side in enumerate(sides, start=1):
        by_day: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for pair in found.days:
            by_day[pair.day].append(pair.of(side))
        for place, (label, colour, dash, symbol) in enumerate(
            (("current settings", WARNING, "dash", "diamond"), ("chosen on the first days", _GREEN, "solid", "star"))
        ):
            values = [sum(two[place] for two in by_day[day]) / len(by_day[day]) for day in days]
            figure.add_scatter(
                x=days,
                y=values,
                name=label,
                legendgroup=label,
                showlegend=row == 1,
                mode="lines+markers",
                line={"color": colour, "width": 2, "dash": dash},
                marker={"symbol": symbol, "size": 9},
                hovertemplate=f"%{{x}}: {side} %{{y:.4g}}<extra>{label}</extra>",
                row=row,
                col=1,
            )
    cut = len([day for day in days if day in found.first_days]) - 0.5
    figure.add_vrect(x0=cut, x1=len(days) - 0.5, fillcolor=_BAND, line_width=0, layer="below", row="all", col=1)
    figure.add_annotation(
        x=cut, y=1, yref="paper", yanchor="bottom", xanchor="left", text="tested on", showarrow=False, xshift=4
    )
    legend = {"y": 1.08, "yanchor": "bottom", "font": {"size": 11}}
    figure = finish(figure, height=450, legend=legend, from_zero=True, margin_t=64)
    figure.update_xaxes(type="category", autotickangles=[0, -45])
    for row, side in enumerate(sides, start=1):
        figure.update_yaxes(title=f"{side} index", row=row, col=1)
    return figure
