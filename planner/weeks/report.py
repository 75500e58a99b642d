"""Advice over weeks as lines for a terminal."""

from collections.abc import Iterator, Sequence

from planner.cluster.text import count
from planner.weeks.advice import WeekRow


def week_lines(rows: Sequence[WeekRow]) -> Iterator[str]:
    """Yield a heading and a line for each row, with what to do under those that change something."""
    cut = sum(row.is_steady for row in rows)
    clusters = len({row.cluster for row in rows})
    yield (
        f"{count(len(rows), 'namespace')} of {count(clusters, 'cluster')}: {cut:,} to cut."
        " Shares are those of the worst moment."
    )
    widths = [max((len(text) for text in column), default=0) for column in zip(*map(_names, rows), strict=True)]
    yield (
        f"{'cluster':<{widths[0]}}  {'namespace':<{widths[1]}} {'moments':>7} {'bundles':>7} {'largest':>8}"
        f" {'busiest':>8} {'even with':>9} {'recreated':>9} {'cuts':>5}"
    )
    for row in rows:
        yield (
            f"{row.cluster:<{widths[0]}}  {row.namespace:<{widths[1]}} {row.moments:>7,} {row.bundles:>7,}"
            f" {row.largest_percent:>7.1f}% {row.placed_percent:>7.1f}% {row.even_bundles:>9,}"
            f" {row.recommended_bundles:>9,} {row.new_cuts if row.is_steady else 0:>5,}"
        )
        if row.new_cuts:
            yield f"  {row.sentence}"


def _names(row: WeekRow) -> tuple[str, str]:
    return row.cluster, row.namespace
