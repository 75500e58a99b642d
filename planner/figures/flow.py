"""Where bundles go: from which brokers to which."""

from collections.abc import Mapping

import plotly.graph_objects as go

from planner.figures.theme import ACCENT, MUTED, WARNING, finish

__all__ = ["move_flow"]

_MOST = 60
_NOBODY = "nobody"


def move_flow(flows: Mapping[tuple[str, str], tuple[int, float]]) -> go.Figure:
    """Draw moves as ribbons from the brokers on the left to the brokers on the right, as wide as their throughput.

    Args:
        flows: Bundles and bytes/s by source and destination; an empty source is nobody. The largest 60 are drawn.
    """
    largest = sorted(flows.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))[:_MOST]
    sources = list(dict.fromkeys(source for (source, _), _ in largest))
    destinations = list(dict.fromkeys(destination for (_, destination), _ in largest))
    total = sum(size for _, (_, size) in largest)
    by_size = total > 0
    figure = go.Figure(
        go.Sankey(
            node={
                "label": [*(name or _NOBODY for name in sources), *destinations],
                "color": [*([WARNING] * len(sources)), *([ACCENT] * len(destinations))],
                "pad": 14,
                "thickness": 14,
                "line": {"width": 0},
                "hovertemplate": "%{label}<extra></extra>",
            },
            link={
                "source": [sources.index(source) for (source, _), _ in largest],
                "target": [len(sources) + destinations.index(to) for (_, to), _ in largest],
                "value": [max(size, total * 1e-4) / 1e6 if by_size else bundles for _, (bundles, size) in largest],
                "color": "rgba(0,114,178,0.28)",
                "customdata": [[bundles, size / 1e6] for _, (bundles, size) in largest],
                "hovertemplate": (
                    "%{source.label} to %{target.label}<br>%{customdata[0]} bundles, %{customdata[1]:.3g} MB/s"
                    "<extra></extra>"
                ),
            },
            textfont={"color": MUTED, "size": 12, "shadow": "none"},
        )
    )
    return finish(figure, height=max(240, min(760, 90 + 26 * max(len(sources), len(destinations)))))
