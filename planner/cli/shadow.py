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
    """Compare what was predicted with what a watched cluster did.

    Goes through a watched history, predicts each load-balancer cycle from the capture before it, compares with what
    happened, and prints the score. `watch --shadow` does the same while it watches.

    Args:
        history: Folder of the histories.
        cluster: Name of the cluster, where there are several.
        record: Write the record that the page Shadow shows, too.
        at_least: Fail when, of the cycles with unloads seen in time, fewer percent were right (status 1), or when there
            was none to judge (status 3); for alerts.
        as_json: Print each cycle as a line of JSON, then the score.
    """
    from planner.shadow.record import ShadowRecord, clusters_of
    from planner.shadow.watched import ShadowWatch

    if not 0 <= at_least <= _ALL:
        raise CaptureError(f"{at_least} is no share in percent.", where="--at-least", remedy="Give 0 to 100.")
    found = clusters_of(history)
    name = cluster or next(iter(found), "")
    if name not in found or (not cluster and len(found) > 1):
        raise CaptureError(
            f"There is no cluster {name!r}." if cluster else f"There are {len(found)} clusters.",
            where=str(history),
            remedy=f"Name one with --cluster: {', '.join(found)[:300]}." if found else "Watch a cluster first.",
        )
    if record and ShadowRecord(found[name]).path.exists():
        raise CaptureError(
            "There is a record of this cluster already.",
            where=str(ShadowRecord(found[name]).path),
            remedy="Delete or move it first, when no watch writes it.",
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
        return "Nothing could be judged: there was no cycle with unloads. Watch for longer."
    reason = watch.too_seldom or "Watch for longer, or with a shorter --interval."
    return f"Nothing could be judged: of {acting} cycles with unloads none was seen in time. {reason}"


def print_scores(watch: "ShadowWatch", start: str) -> None:
    """Print the score; with several strategies that of each, first."""
    from planner.shadow.record import scores_by_strategy

    scores = scores_by_strategy(watch.cycles)
    for strategy, score in scores.items() if len(scores) > 1 else ():
        print_line(f"{start}{strategy}: {score.text}")
    print_line(f"{start}{watch.score.text}")


def print_line(line: str, file: TextIO | None = None) -> None:
    """Write a line at once, on standard output unless told otherwise."""
    out = file or sys.stdout
    out.write(f"{line}\n")
    out.flush()
