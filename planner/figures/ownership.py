"""Which broker owns which part of the hash space, at one moment of a simulation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from planner.cluster.ranges import HASH_SPACE
from planner.figures.hash_space import COLUMNS, Raster, colour_bar, hash_axis, name_rows
from planner.figures.theme import CATEGORICAL, SEQUENTIAL, WARNING, finish, short_names

MOST_COLOURS = len(CATEGORICAL)
"""Brokers that can have a colour of their own."""
_FEW_ROWS = 12


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happens to a bundle.

    Attributes:
        row: Row of its namespace.
        middle: Middle of its hash range.
        text: What happens.
    """

    row: int
    middle: float
    text: str


def ownership_map(
    raster: Raster, namespaces: Sequence[str], owners: Sequence[str] = (), marks: Sequence[Mark] = ()
) -> go.Figure:
    """Draw who owns which hash range, one row for each namespace. Rows and colours stay from cycle to cycle.

    Args:
        raster: Position in `owners` by cell, when there are any; else the usage of the owner, 0 to 100 %.
        namespaces: Name of each row.
        owners: At most eight brokers, each with a colour of its own; none to colour by usage.
        marks: Bundles that something happens to.

    Raises:
        ValueError: There are more owners than colours.
    """
    if len(owners) > MOST_COLOURS:
        raise ValueError(f"{len(owners)} owners; at most {MOST_COLOURS} can have separate colours")
    step, rows = HASH_SPACE / COLUMNS, len(namespaces)
    number = max(len(owners), 1)
    if owners:
        scale = [[(i + side) / number, CATEGORICAL[i]] for i in range(number) for side in (0, 1)]
        look: dict[str, Any] = {"colorscale": scale, "zmin": -0.5, "zmax": number - 0.5, "showscale": False}
    else:
        bar = colour_bar("usage of the owner (%)")
        look = {"colorscale": SEQUENTIAL, "zmin": 0, "zmax": 100, "colorbar": bar}
    figure = go.Figure(
        go.Heatmap(z=raster.values, x0=step / 2, dx=step, y=list(range(rows)), hoverinfo="skip", ygap=1, **look)
    )
    for name, colour in zip(short_names(owners), CATEGORICAL, strict=False):
        look = {"symbol": "square", "size": 11, "color": colour}
        figure.add_scatter(x=[None], y=[None], mode="markers", name=name, marker=look, showlegend=True)
    figure.add_scatter(
        x=[mark.middle for mark in marks],
        y=[mark.row for mark in marks],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": WARNING, "line": {"color": "white", "width": 1.5}},
        customdata=[mark.text for mark in marks],
        showlegend=False,
        hovertemplate="%{customdata}<extra></extra>",
    )
    height = min(640, (190 if owners else 150) + (20 if rows <= _FEW_ROWS else 14) * rows)
    below = {"y": 0, "yref": "container", "yanchor": "bottom"}
    finish(figure, height=height, legend=below, showlegend=bool(owners), margin_t=8 if owners else 64)
    name_rows(figure, namespaces)
    return hash_axis(figure, parts=2, autotickangles=[0, -35], showgrid=False)
