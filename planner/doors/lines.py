"""A reading as lines of text, for the command line."""

from collections.abc import Iterator

from planner.cluster.text import count
from planner.doors.reading import Reading


def lines_of(reading: Reading) -> Iterator[str]:
    """Yield what was found, what does not agree, what is assumed, and what is missing with the command for it."""
    yield f"found: {reading.text}"
    yield from (f"not used: {text}" for text in reading.not_used)
    yield from (f"contradiction: {text}" for text in reading.contradictions)
    yield from (f"assumed: {text}" for text in reading.assumed)
    for one in reading.missing:
        yield f"missing: {one.what}. {one.assumed} {one.uncertain}"
        yield f"    {one.command}"
    if reading.snapshot is not None:
        snapshot = reading.snapshot
        parts = (
            count(len(snapshot.brokers), "broker"),
            count(len(snapshot.bundles), "bundle"),
            count(len(snapshot.topics), "topic"),
        )
        yield f"snapshot: {snapshot.info.cluster}, {', '.join(parts)}"
