"""Colours and layout that all figures share. Readable in light and dark, and with every common colour blindness."""

from collections.abc import Sequence

import plotly.graph_objects as go

ACCENT = "#0072B2"
WARNING = "#D55E00"
MUTED = "#8C99A8"
CATEGORICAL = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
"""Okabe and Ito's hues."""
SEQUENTIAL = "Cividis"
"""Ordered scale that is the same to colour-blind readers."""


def finish(figure: go.Figure, *, height: int, x_title: str = "", y_title: str = "") -> go.Figure:
    """Give a figure its size, axis titles and quiet layout; text colours are left to the page's theme."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    figure.update_xaxes(title=x_title, automargin=True, zeroline=False)
    figure.update_yaxes(title=y_title, automargin=True, zeroline=False)
    return figure


def short_names(names: Sequence[str]) -> list[str]:
    """Return broker ids without the ending that all of them share, for axes and labels."""
    for separator in ".:":
        tails = {name[name.find(separator) :] if separator in name else "" for name in names}
        if len(names) > 1 and len(tails) == 1 and tails != {""}:
            return [name[: name.index(separator)] for name in names]
    return list(names)
