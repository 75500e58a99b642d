"""Charts as images, for a report that is read where nothing draws them."""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from planner.cluster.arrays import FloatArray
from planner.figures.theme import ACCENT, CATEGORICAL, MUTED, WARNING

_EACH = 8
_SIZE_INCHES = (9.0, 3.6)
_DPI = 110


def _png(figure: Figure) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI, bbox_inches="tight", metadata={"Software": None})
    return data.getvalue()


def usage_image(
    minutes: Sequence[float], names: Sequence[str], usage_percent: FloatArray, shed: Sequence[int]
) -> bytes:
    """Draw the usage of the brokers over time as a PNG, with the bundles shed in each cycle as bars.

    Args:
        minutes: When each cycle was.
        names: Broker ids.
        usage_percent: Usage in each cycle, NaN where a broker is not there. Shape (cycles, brokers).
        shed: Bundles shed in each cycle.
    """
    figure = Figure(figsize=_SIZE_INCHES)
    axes = figure.subplots()
    peaks = np.nan_to_num(usage_percent, nan=-1.0).max(axis=0)
    busiest = np.argsort(-peaks, kind="stable")[:_EACH]
    others = [broker for broker in range(len(names)) if broker not in set(busiest.tolist())]
    for broker in others:
        axes.plot(minutes, usage_percent[:, broker], color=MUTED, linewidth=0.6, alpha=0.5)
    for place, broker in enumerate(busiest.tolist()):
        axes.plot(minutes, usage_percent[:, broker], color=CATEGORICAL[place], linewidth=1.6, label=names[broker])
    axes.set_xlabel("minute")
    axes.set_ylabel("usage (%)")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    if any(shed):
        right = axes.twinx()
        right.bar(minutes, list(shed), width=0.6, color=WARNING, alpha=0.45)
        right.set_ylabel("bundles shed")
        right.set_ylim(0, 3 * max(shed))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncol=4, fontsize=8, frameon=False)
    return _png(figure)


def before_after_image(names: Sequence[str], before_percent: FloatArray, after_percent: FloatArray) -> bytes:
    """Draw the usage of each broker before and after as a PNG, the busiest first.

    Args:
        names: Broker ids.
        before_percent: Usage at the start, NaN where a broker is not there. Shape (brokers,).
        after_percent: Usage at the end, likewise.
    """
    shown = np.argsort(-np.nan_to_num(before_percent, nan=-1.0), kind="stable")[:40]
    figure = Figure(figsize=_SIZE_INCHES)
    axes = figure.subplots()
    places = np.arange(len(shown))
    axes.bar(places - 0.2, np.nan_to_num(before_percent[shown]), width=0.4, color=MUTED, label="before")
    axes.bar(places + 0.2, np.nan_to_num(after_percent[shown]), width=0.4, color=ACCENT, label="after")
    axes.set_xticks(places, [names[i] for i in shown.tolist()], rotation=60, ha="right", fontsize=7)
    axes.set_ylabel("usage (%)")
    axes.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=8)
    return _png(figure)
