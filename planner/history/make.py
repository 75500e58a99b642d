"""The second stage of an ingest: a worker makes a day of its records, or one run of a day that is cut.

Where a day falls into runs follows from what it holds alone (`RunLength`). Small ones are one run, and the runs of a
large one are made one after the other by one worker, or side by side: then one goes ahead through all records,
without making snapshots, and keeps the state of the cluster at the start of each run, from which others make them.
Either way the files are the same to the last byte, so that how many cores there are decides who makes them, and nothing
else.
"""

import hashlib
import pickle
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.files import PRIVATE, opened, write_whole
from planner.cluster.units import DAY_MS
from planner.history.assemble import DayAssembler
from planner.history.day_writer import STAGING, DayWriter, RunLength, Runs, writing_history
from planner.history.manifest import DayManifest, day_start_ms
from planner.history.moment import Moment
from planner.history.plan import DayPlan
from planner.history.records import Stream
from planner.history.sources import snapshot_of_source
from planner.history.spec import Options
from planner.history.staged import RunPart, hint_of, rows_in_order

_ROWS_A_BATCH = 4_000
_AHEAD_SHARE = 0.45


@dataclass(frozen=True, slots=True)
class ToMake:
    """A day, and the pieces that are of it.

    Attributes:
        plan: The day.
        pieces: What was read of it.
        ahead: Whether only the states at the start of its runs are wanted.
    """

    plan: DayPlan
    pieces: tuple[RunPart, ...]
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """The state of a cluster at the start of a run of a day.

    Attributes:
        run: Number of the run, from 0.
        path: File with the state.
        sha256: SHA-256 of it.
    """

    run: int
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a day.

    Attributes:
        manifest: Its manifest; as written, unless there are runs to be made.
        starts: The starts of all runs that have to be made.
    """

    manifest: DayManifest
    starts: tuple[Start, ...] = ()


@dataclass(frozen=True, slots=True)
class ToMakeRun:
    """A run of a day, and the pieces that are of the day.

    Attributes:
        cluster: Name of the cluster.
        day: `yyyy-mm-dd`.
        pieces: What was read of the day.
        start: Where it begins.
    """

    cluster: str
    day: str
    pieces: tuple[RunPart, ...]
    start: Start


def weight_of(pieces: Sequence[RunPart]) -> int:
    """Return about how much work records are, in batches of 512 kB."""
    return sum(piece.batches for piece in pieces)


def is_worth_cutting(weight: int, total: int, cores: int, run_rows: int) -> bool:
    """Return whether a day is done sooner when its runs are made side by side; it has two at least.

    Args:
        weight: What the day weighs.
        total: What all days weigh.
        cores: How many workers there are.
        run_rows: From how many rows on a run is complete.
    """
    return weight * _ROWS_A_BATCH >= 2 * run_rows and weight * (1 - _AHEAD_SHARE) * cores > total


@contextmanager
def naming_day(cluster: str, day: str) -> Iterator[None]:
    """Say of an error which day it was that could not be made.

    Raises:
        ReplayError: In place of the error.
    """
    try:
        yield
    except PlannerError as error:
        what = f"{day} of {cluster} cannot be made: {error.what}"
        raise ReplayError(what, where=error.where, remedy=error.remedy) from error


def make_day(root: Path, options: Options, given: ToMake) -> Made:
    """Make a day, or go ahead through it.

    Raises:
        ReplayError: It cannot be made.
    """
    plan = given.plan
    with naming_day(plan.cluster, plan.day):
        base = snapshot_of_source(Path(plan.base), plan.cluster, plan.base_ms) if plan.base else None
        hint = hint_of(piece for piece in given.pieces if piece.lane == Stream.HINT)
        assembler = DayAssembler(plan.cluster, day_start_ms(plan.day) // DAY_MS, hint, options, base)
        if given.ahead:
            starts = _go_ahead(root, options, assembler, given.pieces)
            return Made(_manifest(plan, options, assembler), tuple(starts))
        with DayWriter(root, plan.cluster, plan.day, options.run_rows) as writer:
            for moment in _moments(assembler, given.pieces):
                writer.add(moment.snapshot())
            return Made(writer.commit(_manifest(plan, options, assembler)))


def _moments(assembler: DayAssembler, pieces: Sequence[RunPart]) -> Iterator[Moment]:
    """Yield the moments that are left, of the records that were not taken yet."""
    records = [piece for piece in pieces if piece.lane == Stream.ROW]
    if not records:
        raise ReplayError("The rows of this day are missing.", remedy="Run the same command again.")
    yield from assembler.moments(islice(rows_in_order(records, assembler.at_ms), assembler.taken, None))


def _manifest(plan: DayPlan, options: Options, assembler: DayAssembler) -> DayManifest:
    return DayManifest(
        cluster=plan.cluster,
        day=plan.day,
        made_by="ingest",
        interval_ms=options.interval_ms if assembler.regular else 0,
        sources=dict(plan.sources),
        base=plan.base_name,
        rows=assembler.rows(),
        gaps=assembler.gaps,
        clock_skew_ms=assembler.skew_ms,
        splits=assembler.state.layout.changes,
        notes=assembler.notes(),
    )


def _go_ahead(root: Path, options: Options, assembler: DayAssembler, pieces: Sequence[RunPart]) -> list[Start]:
    """Take all records of a day, and keep the state at the start of each run."""
    folder = root / STAGING / f"ahead-{uuid.uuid4().hex}"
    with writing_history(root):
        folder.mkdir(mode=PRIVATE, parents=True)
    starts, length = [_keep(root, folder / "0", assembler)], RunLength(options.run_rows)
    following: Start | None = None
    for moment in _moments(assembler, pieces):
        if following is not None:
            starts.append(following)
        is_last = length.ends(moment.time_ms, moment.rows)
        following = _keep(root, folder / str(len(starts)), assembler) if is_last else None
    return starts


def _keep(root: Path, path: Path, assembler: DayAssembler) -> Start:
    content = pickle.dumps(assembler, pickle.HIGHEST_PROTOCOL)
    with writing_history(root):
        write_whole(path, content)
    return Start(int(path.name), str(path), hashlib.sha256(content).hexdigest())


def make_run(root: Path, options: Options, given: ToMakeRun) -> Runs:
    """Make a run of a day; its files wait in staging.

    Raises:
        ReplayError: It cannot be made.
    """
    start = given.start
    with naming_day(given.cluster, given.day):
        with writing_history(root), opened(Path(start.path)) as kept:
            content = kept.read()
        if hashlib.sha256(content).hexdigest() != start.sha256:
            raise ReplayError("The rows kept for this day have changed.", remedy="Run the same command again.")
        assembler: DayAssembler = pickle.loads(content)  # noqa: S301 - what this ingest has kept, by its digest
        with DayWriter(root, given.cluster, given.day, options.run_rows, start.run) as writer:
            for moment in _moments(assembler, given.pieces):
                writer.add(moment.snapshot())
                if writer.run_is_complete:
                    break
            return writer.hand_over()
