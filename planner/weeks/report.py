"""Advice over weeks as lines for a terminal."""

from collections.abc import Iterator, Sequence

from planner.cluster.text import count
from planner.weeks.advice import WeekRow
from planner.weeks.growth import TOO_SHORT


def week_lines(rows: Sequence[WeekRow]) -> Iterator[str]:
    """Yield a heading and a line for each row, with what to do, and what growth does, under those that change."""
    cut = sum(row.is_steady for row in rows)
    clusters = len({row.cluster for row in rows})
    yield (
        f"{count(len(rows), 'namespace')} of {count(clusters, 'cluster')}: {cut:,} to cut."
        " Shares are those of the worst moment."
    )
    if short := sum(row.growth_percent_per_week is None for row in rows):
        yield f"The history is too short to measure the growth of {count(short, 'namespace')}: {TOO_SHORT}."
    widths = [max((len(text) for text in column), default=0) for column in zip(*map(_names, rows), strict=True)]
    yield (
        f"{'cluster':<{widths[0]}}  {'namespace':<{widths[1]}} {'moments':>7} {'bundles':>7} {'largest':>8}"
        f" {'busiest':>8} {'even with':>9} {'recreated':>9} {'cuts':>5} {'growth':>8} {'split':>8} {'later':>6}"
    )
    for row in rows:
        yield (
            f"{row.cluster:<{widths[0]}}  {row.namespace:<{widths[1]}} {row.moments:>7,} {row.bundles:>7,}"
            f" {row.largest_percent:>7.1f}% {row.placed_percent:>7.1f}% {row.even_bundles:>9,}"
            f" {row.recommended_bundles:>9,} {row.new_cuts if row.is_steady else 0:>5,} {growth(row):>8}"
            f" {split(row):>8} {'-' if row.later_bundles is None else f'{row.later_bundles:,}':>6}"
        )
        if row.new_cuts:
            yield f"  {row.sentence}"
        if row.split_due_weeks is not None or row.is_lasting is False:
            yield f"  {row.outlook}"


def growth(row: WeekRow) -> str:
    """Return by how much traffic grows in a week."""
    return "-" if row.growth_percent_per_week is None else f"{row.growth_percent_per_week:+.1f} %"


def split(row: WeekRow) -> str:
    """Return when the next automatic split is due."""
    if row.split_due_weeks is None:
        return "-"
    return f"in {row.split_due_weeks} w" if row.split_due_weeks else "now"


def _names(row: WeekRow) -> tuple[str, str]:
    return row.cluster, row.namespace
