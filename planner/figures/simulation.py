"""What a simulation did: brokers over the cycles, and several scenarios in one picture.

Every figure has a function that says the same in one sentence, for those who do not see it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner.cluster.arrays import BoolArray, FloatArray
from planner.cluster.decisions import Line
from planner.cluster.text import count, rounded
from planner.cluster.units import MIB
from planner.figures.theme import (
    ACCENT,
    CATEGORICAL,
    LINE_DASHES,
    MUTED,
    SEQUENTIAL,
    WARNING,
    add_line,
    finish,
    name_brokers,
    short_names,
)
from planner.simulate.event import Event
from planner.simulate.measures import BrokerSeries, CycleCounts, Imbalance, Quantity, imbalance_series

MOST_CURVES = 8
"""Most curves with colours of their own."""

_LINES = 30
"""Brokers drawn as lines of their own; of more, a band."""
_NAMED = 8
_ROWS_NAMED = 60
_FEW = 3
_FEW_BUNDLES = 4
_LEAST_MARK, _MOST_MARK, _MARKS_ROOM = 3, 14, 300
"""Pixels of the marks of real usage: the narrowest, the widest, and all together."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "5px,2px,2px,2px", "2px,4px")
_UNITS: Mapping[Quantity, tuple[float, str, str]] = {
    "usage": (100.0, "%", "usage"),
    "msg_rate_per_s": (1.0, "msg/s", "message rate"),
    "throughput_bytes_per_s": (1 / MIB, "MiB/s", "throughput"),
    "bundles": (1.0, "bundles", "bundles"),
}
_SHED, _MOVED, _SPLIT = CATEGORICAL[5], CATEGORICAL[0], CATEGORICAL[2]
_BROKER_EVENTS = {
    "broker_added": ("triangle-up", "joins"),
    "broker_removed": ("triangle-down", "leaves"),
    "broker_lost": ("x", "is lost"),
}


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """One scenario's curve.

    Attributes:
        name: What to call it.
        x: Cycle or minute. Shape (points,).
        y: Value, NaN where there is none. Shape (points,).
    """

    name: str
    x: FloatArray
    y: FloatArray


def _order_of_interest(table: FloatArray) -> list[int]:
    """Return columns by how much they change, then by how high they are."""
    with np.errstate(invalid="ignore"):
        high = np.nan_to_num(np.where(np.isnan(table), -np.inf, table).max(axis=0, initial=-np.inf), neginf=0.0)
        low = np.nan_to_num(np.where(np.isnan(table), np.inf, table).min(axis=0, initial=np.inf), posinf=0.0)
    order: list[int] = np.lexsort((-high, -(high - low))).tolist()
    return order


def brokers_over_cycles(
    series: BrokerSeries,
    counts: CycleCounts,
    events: Sequence[Sequence[Event]] = (),
    *,
    quantity: Quantity = "usage",
    limit: float | None = None,
    at: int | None = None,
) -> go.Figure:
    """Draw every broker over the cycles, and below what happened in each.

    Up to 30 brokers are lines, the eight that change most in colour; up to eight have the colour that `ownership_map`
    gives them. Of more than 30 the range from the lowest to the highest, the middle four fifths and the mean are drawn.

    Args:
        series: As `planner.simulate.measures.broker_series` returns it.
        counts: As `planner.simulate.measures.cycle_counts` returns it.
        events: Events by cycle; brokers that join or leave are marked.
        quantity: What to draw.
        limit: A line to draw, in the unit of the quantity (usage: 1.0 = 100 %).
        at: Index of a cycle to mark.
    """
    factor, unit, label = _UNITS[quantity]
    table = series.of(quantity) * factor
    cycles = np.arange(1, len(table) + 1)
    bars = [
        (name, values, colour)
        for name, values, colour in (
            ("shed", counts.shed, _SHED),
            ("moved by command", counts.moved, _MOVED),
            ("split", counts.splits, _SPLIT),
        )
        if values.any()
    ]
    rows = 2 if bars else 1
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, row_heights=[0.72, 0.28][:rows], vertical_spacing=0.06)
    _broker_lines(figure, series, table, cycles, unit)
    for name, values, colour in bars:
        hover = f"cycle %{{x}}: %{{y}} {name}<extra></extra>"
        figure.add_bar(x=cycles, y=values, name=name, marker={"color": colour}, hovertemplate=hover, row=2, col=1)
    _broker_marks(figure, events, float(np.nanmax(table)) if np.isfinite(table).any() else 0.0)
    if limit is not None:
        figure.add_hline(
            y=limit * factor,
            line={"color": WARNING, "width": 1.5, "dash": "dash"},
            annotation={"text": f"limit {limit * factor:g} {unit}", "font": {"size": 11}},
            row=1,
            col=1,
        )
    if at is not None:
        figure.add_vline(x=at + 1, line={"color": MUTED, "width": 2})
    legend = {"y": -0.22, "font": {"size": 11}, "traceorder": "normal"}
    finish(figure, height=320 if bars else 280, legend=legend, from_zero=True, barmode="stack", bargap=0.15)
    figure.update_yaxes(title=f"{label} ({unit})" if label != unit else label, row=1, col=1)
    if bars:
        figure.update_yaxes(title="bundles", row=2, col=1)
        if max(int(sum(values[at] for _, values, _ in bars)) for at in range(len(table))) <= _FEW_BUNDLES:
            figure.update_yaxes(dtick=1, row=2, col=1)
    figure.update_xaxes(tickprefix="cycle ", showtickprefix="first", row=rows, col=1)  # a title would meet the legend
    return figure.update_xaxes(range=[0.4, len(table) + 0.6])


def _broker_lines(figure: go.Figure, series: BrokerSeries, table: FloatArray, cycles: np.ndarray, unit: str) -> None:
    if len(series.brokers) > _LINES:
        _bands(figure, table, cycles, unit)
        return
    interesting = _order_of_interest(table)[:_NAMED] if len(series.brokers) > 1 else [0]
    names = short_names(series.brokers)
    few = len(names) <= len(CATEGORICAL)
    colours = {column: CATEGORICAL[column if few else rank] for rank, column in enumerate(interesting)}
    for column in [i for i in range(len(names)) if i not in interesting] + interesting[::-1]:
        own = column in colours
        add_line(
            figure,
            names[column],
            cycles,
            table[:, column],
            colours.get(column, MUTED),
            f"{series.brokers[column]}<br>cycle %{{x}}: %{{y:.4g}} {unit}",
            row=1,
            width=2 if own else 1,
            opacity=1.0 if own else 0.55,
            showlegend=own,
            legendrank=1 + column,
        )
    if len(names) > 1:
        hover = f"mean<br>cycle %{{x}}: %{{y:.4g}} {unit}"
        add_line(figure, "mean", cycles, _mean(table), MUTED, hover, row=1, look={"dash": "dash"})


def _mean(table: FloatArray) -> FloatArray:
    """Return the mean over the brokers that are there; NaN where none is."""
    known = np.isfinite(table)
    total, number = np.where(known, table, 0.0).sum(axis=1), known.sum(axis=1)
    mean: FloatArray = np.divide(total, number, out=np.full(len(table), np.nan), where=number > 0)
    return mean


def _bands(figure: go.Figure, table: FloatArray, cycles: np.ndarray, unit: str) -> None:
    unowned: BoolArray = np.isfinite(table).sum(axis=1) == 0
    levels = np.nanpercentile(np.where(unowned[:, np.newaxis], 0.0, table), (0, 10, 90, 100), axis=1)
    levels[:, unowned] = np.nan
    for low, high, name, opacity in (
        (levels[0], levels[3], "lowest to highest", 0.18),
        (levels[1], levels[2], "middle 80 %", 0.35),
    ):
        figure.add_scatter(
            x=np.concatenate([cycles, cycles[::-1]]),
            y=np.concatenate([high, low[::-1]]),
            fill="toself",
            fillcolor=f"rgba(0,114,178,{opacity})",
            line={"width": 0},
            name=name,
            hoverinfo="skip",
            row=1,
            col=1,
        )
    lines = (("highest", levels[3], WARNING), ("mean", _mean(table), ACCENT), ("lowest", levels[0], MUTED))
    for name, values, colour in lines:
        add_line(figure, name, cycles, values, colour, f"{name}<br>cycle %{{x}}: %{{y:.4g}} {unit}", row=1)


def _broker_marks(figure: go.Figure, events: Sequence[Sequence[Event]], top: float) -> None:
    marks = [(at, e) for at, happened in enumerate(events, start=1) for e in happened if e.kind in _BROKER_EVENTS]
    if not marks:
        return
    figure.add_scatter(
        x=[at for at, _ in marks],
        y=[top * 1.06] * len(marks),
        mode="markers",
        name="broker joins or leaves",
        marker={"symbol": [_BROKER_EVENTS[e.kind][0] for _, e in marks], "size": 10, "color": WARNING},
        customdata=[f"{e.source} {_BROKER_EVENTS[e.kind][1]}" for _, e in marks],
        hovertemplate="%{customdata}<extra></extra>",
        row=1,
        col=1,
    )


def _ends(spread: Imbalance, at: int, factor: float, unit: str) -> str:
    low, high = spread.lowest[at] * factor, spread.highest[at] * factor
    return f"{rounded(low)} to {rounded(high)} {unit}" if np.isfinite([low, high]).all() else "unknown"


def timeline_text(series: BrokerSeries, counts: CycleCounts, *, quantity: Quantity = "usage") -> str:
    """Say what `brokers_over_cycles` shows."""
    factor, unit, label = _UNITS[quantity]
    spread = imbalance_series(series, quantity)
    if not len(spread.std):
        return "No cycle was simulated."
    what = "points" if unit == "%" else unit
    first, last = (
        f"{rounded(std * factor)} {what}" if np.isfinite(std) else "unknown" for std in (spread.std[0], spread.std[-1])
    )
    happened = [f"{int(n.sum())} {word}" for n, word in ((counts.shed, "shed"), (counts.splits, "split")) if n.sum()]
    moved = f"; bundles: {', '.join(happened)}" if happened else "; no bundle was shed"
    return (
        f"The {label} of {count(len(series.brokers), 'broker')} over {count(len(spread.std), 'cycle')}:"
        f" {_ends(spread, 0, factor, unit)} as the first begins, {_ends(spread, -1, factor, unit)} as the last"
        f" begins; deviation {first}, then {last}{moved}."
    )


def heat_map(series: BrokerSeries, *, quantity: Quantity = "usage", at: int | None = None) -> go.Figure:
    """Draw brokers against cycles, coloured by what they carry; blank while a broker is not there.

    Args:
        series: As `planner.simulate.measures.broker_series` returns it.
        quantity: What to draw; usage goes from 0 to at least 100 %.
        at: Index of a cycle to mark.
    """
    factor, unit, label = _UNITS[quantity]
    table = series.of(quantity) * factor
    top = float(np.nanmax(table)) if np.isfinite(table).any() else 1.0
    figure = go.Figure(
        go.Heatmap(
            z=table.T,
            x=np.arange(1, len(table) + 1),
            y=short_names(series.brokers),
            zmin=0,
            zmax=max(top, 100.0) if quantity == "usage" else top,
            colorscale=SEQUENTIAL,
            colorbar={"title": {"text": unit}, "thickness": 12},
            hovertemplate=f"%{{y}}<br>cycle %{{x}}: %{{z:.4g}} {unit}<extra></extra>",
            hoverongaps=False,
        )
    )
    if at is not None:
        figure.add_vline(x=at + 1, line={"color": WARNING, "width": 2})
    figure = finish(figure, height=max(220, min(900, 90 + 18 * len(series.brokers))), x_title="cycle")
    figure.update_yaxes(autorange="reversed")
    name_brokers(figure.layout.yaxis, len(series.brokers), _ROWS_NAMED)
    figure.update_layout(title={"text": label, "font": {"size": 13}})
    return figure


def heat_map_text(series: BrokerSeries, *, quantity: Quantity = "usage") -> str:
    """Say what `heat_map` shows."""
    factor, unit, label = _UNITS[quantity]
    table = series.of(quantity) * factor
    if not np.isfinite(table).any():
        return "No broker was present."
    cycle, broker = np.unravel_index(int(np.nanargmax(table)), table.shape)
    return (
        f"The {label} of {count(len(series.brokers), 'broker')} in {count(len(table), 'cycle')}. The highest is"
        f" {rounded(table[cycle, broker])} {unit}, on {series.brokers[int(broker)]} in cycle {int(cycle) + 1}."
    )


def overlaid_curves(curves: Sequence[Curve], x_title: str, y_title: str) -> go.Figure:
    """Draw one curve for each scenario, told apart by colour and by dashes.

    Args:
        curves: At most eight.
        x_title: What x is, such as `cycle`.
        y_title: What y is, with its unit.

    Raises:
        ValueError: There are more than eight.
    """
    if len(curves) > MOST_CURVES:
        raise ValueError(f"{len(curves)} curves; at most {MOST_CURVES} can be told apart")
    figure = go.Figure()
    for at, curve in enumerate(curves):
        hover, look = f"%{{fullData.name}}<br>{x_title} %{{x:.4g}}: %{{y:.4g}}", {"dash": _DASHES[at]}
        mode = "lines" if len(curve.x) > 1 else "markers"
        add_line(figure, curve.name, curve.x, curve.y, CATEGORICAL[at], hover, look=look, mode=mode)
    legend = {"y": -0.25, "font": {"size": 11}}
    return finish(figure, height=340, x_title=x_title, y_title=y_title, legend=legend, from_zero=True)


def curves_over_days(curves: Mapping[str, tuple[Sequence[int], Sequence[float]]], y_title: str) -> go.Figure:
    """Draw quantities of replays over days: by the name of each curve, at most eight, its moments (ms) and values.

    Raises:
        ValueError: There are more than eight.
    """
    drawn = [Curve(name, np.array(at, dtype=np.float64), np.array(values)) for name, (at, values) in curves.items()]
    figure = overlaid_curves(drawn, "", y_title)
    figure.update_xaxes(type="date")
    return figure.update_traces(hovertemplate="%{fullData.name}<br>%{x|%Y-%m-%d %H:%M}: %{y:.4g}<extra></extra>")


def overlaid_text(curves: Sequence[Curve], y_title: str) -> str:
    """Say what `overlaid_curves` shows."""
    ends = [(c.name, c.y[np.isfinite(c.y)]) for c in curves]
    parts = [f"{name} from {y[0]:.4g} to {y[-1]:.4g}" for name, y in ends if len(y)]
    return f"{y_title}: {'; '.join(parts)}." if parts else f"{y_title}: no values."


def cycle_scores(
    names: Sequence[str],
    scores: FloatArray,
    shedding: BoolArray,
    lines: Sequence[Line],
    unit: str,
    top: float,
    *,
    actual: FloatArray | None = None,
) -> go.Figure:
    """Draw the scores of one cycle. Brokers and axis stay where they are from cycle to cycle.

    Args:
        names: Broker ids in the order in which they are drawn, the same for every cycle.
        scores: Score of each; NaN where unknown (not drawn).
        shedding: Which brokers shed something in this cycle.
        lines: What the scores are compared with.
        unit: `fraction` (drawn as percent) or `msg/s`.
        top: Highest score of any cycle, the end of the axis.
        actual: What the brokers really use, in the unit of the scores, drawn as marks: averages lag behind it.
    """
    factor, suffix = (100.0, "%") if unit == "fraction" else (1.0, unit)
    figure = go.Figure(
        go.Bar(
            x=short_names(names),
            y=scores * factor,
            marker={"color": [WARNING if s else ACCENT for s in shedding.tolist()], "line": {"width": 0}},
            customdata=[
                [n, "sheds" if s else "keeps its bundles"] for n, s in zip(names, shedding.tolist(), strict=True)
            ],
            name="score",
            hovertemplate=f"%{{customdata[0]}}<br>%{{y:.2f}} {suffix}<br>%{{customdata[1]}}<extra></extra>",
        )
    )
    if actual is not None:
        size = max(_LEAST_MARK, min(_MOST_MARK, _MARKS_ROOM // max(len(names), 1)))
        figure.add_scatter(
            x=figure.data[0].x,
            y=actual * factor,
            mode="markers",
            name="usage now",
            marker={"symbol": "line-ew", "size": size, "color": MUTED, "line": {"width": 2, "color": MUTED}},
            customdata=list(names),
            hovertemplate=f"%{{customdata}}<br>actual %{{y:.1f}} {suffix}<extra></extra>",
        )
    for at, line in enumerate(lines):
        look = {"color": MUTED if at == 0 else WARNING, "width": 1.5, "dash": LINE_DASHES[at % len(LINE_DASHES)]}
        figure.add_hline(y=line.value * factor, line=look)
        words = f"{line.label} {line.value * factor:.1f} {suffix}"
        figure.add_scatter(x=[None], y=[None], mode="lines", name=words, line=look, showlegend=True)
    finish(figure, height=240, y_title=f"score ({suffix})", legend={"y": 1.02, "yanchor": "bottom"})
    figure.update_traces(showlegend=False, selector={"name": "score"})
    name_brokers(figure.layout.xaxis, len(names))
    return figure.update_yaxes(range=[0, max(top * factor, 1e-9) * 1.08])


def cycle_scores_text(names: Sequence[str], scores: FloatArray, shedding: BoolArray, unit: str) -> str:
    """Say what `cycle_scores` shows."""
    factor, suffix = (100.0, "%") if unit == "fraction" else (1.0, unit)
    if not np.isfinite(scores).any():
        return "No broker has a score in this cycle."
    short = short_names(names)
    high, low = int(np.nanargmax(scores)), int(np.nanargmin(scores))
    sheds = [name for name, yes in zip(short, shedding.tolist(), strict=True) if yes]
    more = f" and {len(sheds) - _FEW} more" if len(sheds) > _FEW else ""
    end = f"{', '.join(sheds[:_FEW])}{more} shed" if sheds else "no broker sheds"
    return (
        f"Scores of {count(len(names), 'broker')}: the highest {scores[high] * factor:.1f} {suffix} ({short[high]}),"
        f" the lowest {scores[low] * factor:.1f} {suffix} ({short[low]}); {end}."
    )
