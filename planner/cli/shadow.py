"""`python -m planner shadow`: how well a watched history was predicted."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from cyclopts import Parameter

from planner.cluster.errors import CaptureError

if TYPE_CHECKING:
    from planner.shadow.watched import ShadowWatch

_ALL = 100.0
_UNJUDGED = 3


def shadow(
    *,
    history: Path,
    cluster: str = "",
    record: bool = False,
    at_least: float = 0.0,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Compare predictions with what a watched cluster did.

    Reads a watched history, predicts each load-balancer cycle from the capture before it, compares the prediction with
    what happened, and prints the score. `watch --shadow` does the same during a watch.

    Args:
        history: Folder of the histories.
        cluster: Name of the cluster, if the history has several.
        record: Also write the record that the page Shadow shows.
        at_least: For alerts: fail with status 1 if fewer percent of the cycles with unloads seen in time were right,
            and with status 3 if there was none.
        as_json: Print each cycle as a line of JSON, then the score.
    """
    from planner.shadow.record import ShadowRecord, clusters_of
    from planner.shadow.watched import ShadowWatch

    if not 0 <= at_least <= _ALL:
        raise CaptureError(f"{at_least} is not a percentage.", where="--at-least", remedy="Use 0 to 100.")
    found = clusters_of(history)
    name = cluster or next(iter(found), "")
    if name not in found or (not cluster and len(found) > 1):
        raise CaptureError(
            f"There is no cluster {name!r}." if cluster else f"There are {len(found)} clusters.",
            where=str(history),
            remedy=f"Choose one with --cluster: {', '.join(found)[:300]}." if found else "Watch a cluster first.",
        )
    if record and ShadowRecord(found[name]).path.exists():
        raise CaptureError(
            "This cluster already has a record.",
            where=str(ShadowRecord(found[name]).path),
            remedy="Delete or move it first, while no watch writes it.",
        )
    watch = ShadowWatch(
        history if record else None,
        lambda line: None if as_json else print_line(line),
        complain=lambda line: print_line(line, sys.stderr),
    )
    watch.follow(history, name)
    if as_json:
        for cycle in watch.cycles:
            print_line(json.dumps(asdict(cycle), separators=(",", ":")))
        print_line(json.dumps(asdict(watch.score), separators=(",", ":")))
    else:
        print_scores(watch, "")
    score = watch.score
    if at_least and not score.in_time:
        print_line(f"shadow: {_unjudged(watch)}", sys.stderr)
        raise SystemExit(_UNJUDGED)
    if 100.0 * score.in_time_right < at_least * score.in_time:
        raise SystemExit(1)


def _unjudged(watch: "ShadowWatch") -> str:
    """Say why nothing could be judged, and what to do."""
    acting = watch.score.acting
    if not acting:
        return "No cycle could be judged: there was no cycle with unloads. Watch for longer."
    reason = watch.too_seldom or "Watch for longer, or with a shorter --interval."
    return f"No cycle could be judged: none of {acting} cycles with unloads was seen in time. {reason}"


def print_scores(watch: "ShadowWatch", start: str) -> None:
    """Print the score; with several strategies that of each, first."""
    from planner.shadow.record import scores_by_strategy

    scores = scores_by_strategy(watch.cycles)
    for strategy, score in scores.items() if len(scores) > 1 else ():
        print_line(f"{start}{strategy}: {score.text}")
    print_line(f"{start}{watch.score.text}")


def print_line(line: str, file: TextIO | None = None) -> None:
    """Write a line at once, by default to standard output."""
    out = file or sys.stdout
    out.write(f"{line}\n")
    out.flush()
