"""Colours and layout that all figures share. Readable in light and dark, and with every common colour blindness."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go

ACCENT = "#0072B2"
WARNING = "#D55E00"
MUTED = "#8C99A8"
CATEGORICAL = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
"""Okabe and Ito's hues."""
SEQUENTIAL = "Cividis"
"""Ordered scale that is the same to colour-blind readers."""

LINE_DASHES = ("dot", "dash", "longdash", "dashdot")
"""Dash patterns of the lines that scores are compared with."""

_LONGEST_NAME, _END = 20, 16
_LONGEST_NAMESPACE = 28
_MOST_NAMED = 24
"""Most brokers whose names fit beside each other, also in the narrowest window."""

ROW_PX, LABEL_PX = 40, 18
"""Height of a row whose name stands above its content, and of that name."""
BELOW = LABEL_PX / ROW_PX / 2
"""By how much of a row its content stands below its middle."""
NARROWEST_PX = 300
"""Width of a drawing without names beside it, in a window of 390 pixels."""

_NUMBER_SIZES, _LETTER_WIDTH, _EDGES_PX = (12, 11, 10, 9), 0.56, 3
"""Sizes of numbers in cells, the width of a digit as a share of its size, and the room around a number."""
_ADDRESS = re.compile(r"[0-9.]+(:[0-9]+)?|.*:.*:.*")
"""Host given as an IP address, whose dots do not separate a name from a domain."""


def finish(
    figure: go.Figure,
    *,
    height: int,
    x_title: str = "",
    y_title: str = "",
    legend: Mapping[str, Any] | None = None,
    from_zero: bool = False,
    **layout: Any,
) -> go.Figure:
    """Give a figure its size, axis titles and quiet layout; text colours are left to the page's theme.

    Args:
        figure: The figure, with all that it draws.
        height: In pixels.
        x_title: Title of its x axes.
        y_title: Title of its y axes.
        legend: Where the legend is and how it looks, in Plotly's words; its entries stand in a row. None for no legend.
        from_zero: Let the y axes begin at 0.
        layout: What else its layout has, in Plotly's words.
    """
    if legend is not None:
        layout = {"showlegend": True, "legend": {"orientation": "h", **legend}, **layout}
    usual = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 28, "b": 8},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }
    # One by one: what Plotly calls an update looks at every name again and again, and takes three times as long.
    for name, value in usual.items():
        figure.layout[name] = value
    figure.update_layout(layout)
    for axis in figure.select_xaxes():
        axis.title, axis.automargin, axis.zeroline = x_title, True, False
    for axis in figure.select_yaxes():
        axis.title, axis.automargin, axis.zeroline = y_title, True, False
        if from_zero:
            axis.rangemode = "tozero"
    return figure


def add_line(
    figure: go.Figure,
    name: str,
    x: Any,
    y: Any,
    colour: str,
    hover: str,
    *,
    width: float = 2,
    look: Mapping[str, str] = MappingProxyType({}),
    row: int | None = None,
    **more: Any,
) -> None:
    """Draw a line.

    Args:
        figure: Where to draw it.
        name: What the legend calls it.
        x: Places of its points.
        y: Their heights, NaN where there is none.
        colour: Its colour.
        hover: What a point says when somebody points at it, in Plotly's words.
        width: In pixels.
        look: How else it looks, such as `dash` and `shape`.
        row: Row of a figure that has several.
        more: What else Plotly's `Scatter` has.
    """
    figure.add_scatter(
        x=x,
        y=y,
        name=name,
        line={"color": colour, "width": width, **look},
        hovertemplate=f"{hover}<extra></extra>",
        row=row,
        col=row and 1,
        **{"mode": "lines", **more},
    )


def short_names(names: Sequence[str]) -> list[str]:
    """Return broker ids without their domain and port, where they can be told apart, for axes and labels.

    Of those that are long all the same the last words are left, which have the number.
    """
    heads = without_endings(names)
    clipped = [
        name if len(name) <= _LONGEST_NAME else f"…{re.split('[-._]', name[-_END:], maxsplit=1)[-1]}" for name in heads
    ]
    return clipped if len(names) > 1 and len(set(clipped)) == len(names) else heads


def without_endings(names: Sequence[str]) -> list[str]:
    """Return broker ids up to the first dot, addresses up to a port that all share, where that tells them apart."""
    one_port = len({name.rpartition(":")[2] for name in names}) == 1
    hosts = [name.rpartition(":")[0] if one_port and ":" in name else name for name in names]
    heads = [host if _ADDRESS.fullmatch(host) else host.partition(".")[0] for host in hosts]
    unlike = (found for found in (heads, hosts) if len(names) > 1 and len(set(found)) == len(names))
    return next(unlike, list(names))


def short_namespaces(names: Sequence[str]) -> list[str]:
    """Return namespaces as they fit beside a drawing: of long ones the start and the end."""
    return [name if len(name) <= _LONGEST_NAMESPACE else f"{name[:11]}…{name[-14:]}" for name in names]


def name_brokers(axis: "go.layout.XAxis | go.layout.YAxis", number: int, room: int = _MOST_NAMED) -> None:
    """Name brokers along an axis, where there is no room for all every second one, every third, and so on."""
    axis.update(type="category", dtick=max(1, -(-number // room)))
    if isinstance(axis, go.layout.XAxis):
        axis.autotickangles = [0, -35, -90]


def label_rows(figure: go.Figure, names: Sequence[str]) -> None:
    """Write the name of each row above it, where a narrow window leaves room too; the first row is at `BELOW`."""
    for row, name in enumerate(names):
        figure.add_annotation(
            text=name,
            x=0,
            xref="paper",
            xanchor="left",
            y=row - 0.5,
            yanchor="top",
            showarrow=False,
            borderpad=0,
            font={"size": 11},
        )
    figure.update_yaxes(showticklabels=False, ticks="", range=[len(names) - 0.4, -0.5], showgrid=False)


def number_size(columns: int, letters: int) -> int:
    """Return the size of the numbers in the cells of a map; 0 where cells have no room for them in a narrow window.

    Args:
        columns: Cells beside each other.
        letters: The most letters of a number.
    """
    room = NARROWEST_PX / max(columns, 1) - _EDGES_PX
    return next((size for size in _NUMBER_SIZES if letters * size * _LETTER_WIDTH <= room), 0)
