"""Where bundles went: the flow of moves from broker to broker."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import plotly.graph_objects as go

from planner.cluster.relocation import Relocation
from planner.cluster.text import count, rounded
from planner.cluster.units import MIB
from planner.figures.theme import CATEGORICAL, finish, short_names

Pair: TypeAlias = tuple[str, str]
"""A donor and a receiver."""
Size: TypeAlias = tuple[int, float]
"""Bundles and their throughput in MiB/s."""

MOST_FLOW_BROKERS = 10
"""Brokers on each side of a flow; the others are drawn together."""

_NODE_PAD, _NODE_ROOM, _LEAST_HEIGHT = 14, 28, 180
"""Pixels between the nodes of a flow, for each node, and for all."""
_MARGINS = 36
_MARGIN, _LABEL_PX = 10, 7
"""Pixels beside the names of a flow, and for each letter."""
_REST = "other brokers"
_THIN = 1e-4
"""Share of all that the thinnest ribbon is drawn as, so that a bundle without traffic is still seen."""


def _flows(moves: Sequence[Relocation]) -> dict[Pair, Size]:
    """Return bundles and MiB/s that went from each broker to each other."""
    flows: dict[Pair, Size] = {}
    for move in moves:
        if move.destination:
            pair = (move.source or "no owner", move.destination)
            bundles, size = flows.get(pair, (0, 0.0))
            flows[pair] = bundles + 1, size + move.throughput_bytes_per_s / MIB
    return flows


def _together(flows: Mapping[Pair, Size]) -> dict[Pair, Size]:
    """Return flows in which brokers without a place of their own are one."""
    own = [_kept(flows, side) for side in (0, 1)]
    drawn: dict[Pair, Size] = {}
    for pair, (bundles, size) in flows.items():
        source, target = (name if name in names else _REST for name, names in zip(pair, own, strict=True))
        before = drawn.get((source, target), (0, 0.0))
        drawn[source, target] = before[0] + bundles, before[1] + size
    return drawn


def _kept(flows: Mapping[Pair, Size], side: int) -> set[str]:
    """Return the brokers of one side with a place of their own: those with the most throughput, then bundles."""
    sums: dict[str, tuple[float, int]] = {}
    for pair, (bundles, size) in flows.items():
        before = sums.get(pair[side], (0.0, 0))
        sums[pair[side]] = before[0] + size, before[1] + bundles
    return set(sorted(sums, key=lambda name: (-sums[name][0], -sums[name][1], name))[:MOST_FLOW_BROKERS])


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.45)"


def move_flow(moves: Sequence[Relocation], *, by_bundles: bool = False) -> go.Figure:
    """Draw what went from which broker (left) to which (right).

    At most 10 brokers of each side have a place of their own; what the others gave and got is drawn together.

    Args:
        moves: As `planner.simulate.moves.relocations` returns them, or some of them.
        by_bundles: Draw numbers of bundles; else their throughput.
    """
    flows = dict(sorted(_together(_flows(moves)).items()))
    widths = _widths(flows, by_bundles=by_bundles)
    sides = [sorted({pair[side] for pair in flows}, key=lambda n: (n == _REST, n)) for side in (0, 1)]
    room_px, heights = _layout(widths, sides)
    left, right = sides
    names = sorted({*left, *right})
    colour = {name: CATEGORICAL[at % len(CATEGORICAL)] for at, name in enumerate(names)}
    node = {
        "color": [colour[name] for name in (*left, *right)],
        "x": [0.001] * len(left) + [0.999] * len(right),
        "y": [y for each in heights for y in each],
        "pad": _NODE_PAD,
        "thickness": 12,
        "line": {"width": 0},
        "customdata": [*left, *right],
        "hovertemplate": f"%{{customdata}}: %{{value:.4g}} {'bundles' if by_bundles else 'MiB/s'}<extra></extra>",
    }
    link = {
        "source": [left.index(source) for source, _ in flows],
        "target": [len(left) + right.index(target) for _, target in flows],
        "value": list(widths.values()),
        "color": [_faded(colour[source]) for source, _ in flows],
        "customdata": [[f"{s} → {t}", count(bundles, "bundle"), size] for (s, t), (bundles, size) in flows.items()],
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}, %{customdata[2]:.4g} MiB/s<extra></extra>",
    }
    figure = finish(go.Figure(go.Sankey(arrangement="fixed", node=node, link=link)), height=round(room_px) + _MARGINS)
    own = [name for name in names if name != _REST]
    labels = dict(zip(own, short_names(own), strict=True))
    _label(figure, sides, heights, {name: labels.get(name, name) for name in names})
    return figure


def _widths(flows: Mapping[Pair, Size], *, by_bundles: bool) -> dict[Pair, float]:
    """Return how wide each flow is drawn, in bundles or MiB/s; one without traffic is still seen."""
    sizes = {pair: float(bundles) if by_bundles else size for pair, (bundles, size) in flows.items()}
    least = sum(sizes.values()) * _THIN or 1.0
    return {pair: max(size, least) for pair, size in sizes.items()}


def _layout(widths: Mapping[Pair, float], sides: Sequence[Sequence[str]]) -> tuple[float, list[list[float]]]:
    """Return the height of the drawing in pixels, and the middle of each node of each side as a share of it."""
    most = max(*map(len, sides), 1)
    room_px = max(_LEAST_HEIGHT, _NODE_ROOM * most)
    px_per_unit = (room_px - _NODE_PAD * (most - 1)) / max(sum(widths.values()), 1e-9)
    heights = []
    for side, names in enumerate(sides):
        sums = [sum(width for pair, width in widths.items() if pair[side] == name) for name in names]
        heights.append(_heights(sums, room_px, px_per_unit))
    return room_px, heights


def _label(
    figure: go.Figure, sides: Sequence[Sequence[str]], heights: Sequence[Sequence[float]], labels: Mapping[str, str]
) -> None:
    """Write the names beside the flow: left of the sources, right of the destinations."""
    for x, (names, ys) in enumerate(zip(sides, heights, strict=True)):
        anchor, shift = ("left", 4) if x else ("right", -4)
        for name, y in zip(names, ys, strict=True):
            figure.add_annotation(
                x=x, y=1 - y, xref="paper", yref="paper", xanchor=anchor, yanchor="middle", xshift=shift,
                showarrow=False, text=labels[name],
            )  # fmt: skip
    width = _LABEL_PX * max(map(len, labels.values()), default=0) + _MARGIN
    figure.update_layout(margin_l=width, margin_r=width)


def _heights(sums: Sequence[float], room_px: float, px_per_unit: float) -> list[float]:
    """Return where the middle of each node of one side is, top to bottom, as shares of the height.

    The room that the nodes leave is shared out between them, so that no two labels meet.
    """
    sizes = np.array(sums) * px_per_unit
    gap = (room_px - float(sizes.sum())) / max(len(sums) - 1, 1) if len(sums) > 1 else 0.0
    tops = np.cumsum(sizes + gap) - sizes - gap
    heights: list[float] = ((tops + sizes / 2) / room_px).clip(0.001, 0.999).tolist()
    return heights


def flow_text(moves: Sequence[Relocation]) -> str:
    """Say what `move_flow` shows."""
    flows = _flows(moves)
    if not flows:
        return "No bundle moved from one broker to another."
    moved = [move for move in moves if move.destination]
    back = sum(bundles for (source, target), (bundles, _) in flows.items() if source == target)
    apart = {pair: size for pair, size in flows.items() if pair[0] != pair[1]}
    total = sum(size for _, size in flows.values())
    names = sorted({name for pair in flows for name in pair})
    short = dict(zip(names, short_names(names), strict=True))
    sides = [len({pair[side] for pair in flows}) for side in (0, 1)]
    rest = f" Showing the {MOST_FLOW_BROKERS} busiest brokers on each side." if max(sides) > MOST_FLOW_BROKERS else ""
    of = count(len({move.bundle for move in moved}), "bundle")
    where = f"from {count(sides[0], 'broker')} to {sides[1]}"
    parts = [f"{count(len(moved), 'move')} of {of} with {rounded(total)} MiB/s, {where}."]
    if back:
        parts.append(f"Of them, {back:,} came back to the same broker.")
    if apart:
        (source, target), (_, size) = max(apart.items(), key=lambda item: item[1][::-1])
        parts.append(f"The largest flow is {rounded(size)} MiB/s from {short[source]} to {short[target]}.")
    return f"{' '.join(parts)}{rest}"
