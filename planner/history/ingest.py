"""Raw recordings in, history out, by Spark.

Two stages. The first reads blocks of files into records (`sources`), which stay in files aside (`staged`); what they
hold is counted, and compared with the days that are complete (`plan`). The second brings the records of each day
that has to be made together in the order of time, and makes the day of them (`assemble`, `days`); a worker holds one
state of one cluster, and writes the day itself, so that it appears as a whole or not at all. Through Spark go only
pieces of work, and what became of them. The ledger is written last: a run that was killed is repeated, reads no block
that was read, and skips the days that are complete.
"""

import json
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple, dataclass, replace
from functools import cached_property
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.files import put_in_place
from planner.history.assemble import DayAssembler
from planner.history.days import STAGING, DayWriter, clear_staging, delete_day, writing_history
from planner.history.ledger import (
    DayRows,
    Ledger,
    Moment,
    SourceEntry,
    only_ingest,
    read_ledger,
    write_ledger,
)
from planner.history.manifest import DAY_MS, DayManifest, SourceRows, day_folder, day_of, day_start_ms
from planner.history.plan import DayPlan, Plan, changed_sources, plan_days
from planner.history.records import Lane, Tally, batches
from planner.history.sources import (
    Block,
    Source,
    SourceKind,
    blocks_of,
    find_sources,
    read_block,
    snapshot_of_source,
)
from planner.history.spec import Options
from planner.history.staged import (
    READ,
    Piece,
    Strays,
    asides_in_order,
    hint_of,
    lags_of,
    rows_in_order,
    staged,
    without_strays,
)
from planner.spark.schema import arrow_schema
from planner.spark.session import (
    OpenSession,
    SparkPlace,
    check_workers,
    code_digest,
    first_line,
    open_session,
    parallel_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SET_ASIDE = "set_aside"
"""Folder of a history with the rows that could not be read, one Parquet file for each raw file that has any."""

_TASKS_A_CORE = 4
_MOST_REASONS = 1_000
_MOST_CLOCKS = 5
_YEAR_DAYS = 366
_PIECES = "source int, block bigint, said string"
_ASIDE_SCHEMA = arrow_schema(
    "file string, line bigint, rows bigint, reason string, bytes bigint, sha256 string, raw binary"
)
_ASIDE_BATCH = 1_000
_YEARS_OFF = (
    "The time is years off from the other rows of the file. If it is right, give such rows in a file of their own."
)
_CLOCK_OFF = (
    "The broker's clock is more than a day off from its other reports in the file. Correct lastUpdate, or leave it out."
)
_LOST = "Py4JNetworkError"
_GONE = ("Spark's Java process is gone.", "See whether the machine ran out of memory, and run the same command again.")
_UNREACHABLE = ("Spark cannot be reached.", "Check that it still runs, and run the same command again.")
_SAID = (
    ("No space left on device", "The disk is full.", "Make room for Spark's own files, too (spark.local.dir)."),
    ("OutOfMemoryError", "The memory of Spark is full.", "Give it more (spark.driver.memory, spark.executor.memory)."),
    ("ConnectException", *_UNREACHABLE),
    ("StatusCode.UNAVAILABLE", *_UNREACHABLE),
    ("Connection refused", *_GONE),
    (_LOST, *_GONE),
    ("Error while sending or receiving", *_GONE),
    ("Python worker exited", "A worker died.", "Look whether the machine ran out of memory, and run again."),
)


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did.

    Attributes:
        files_read: Raw files read.
        files_unchanged: Raw files that had not changed since they were read.
        rows_read: Rows of the files read: kept + set aside.
        rows_kept: Rows that are in days.
        rows_set_aside: Rows that could not be read; they lie in `set_aside` with file, line and reason.
        days: Days made, by cluster and day.
        days_unchanged: How many days were complete before and stay as they are.
        days_removed: How many days were removed, because no file contributes to them any more.
        reasons: Why rows were set aside, the most frequent first, with their number.
        damaged: Days that stay as they are, because what is there cannot be read: which, why, and what to do.
    """

    files_read: int
    files_unchanged: int
    rows_read: int
    rows_kept: int
    rows_set_aside: int
    days: tuple[DayManifest, ...]
    days_unchanged: int
    days_removed: int
    reasons: tuple[tuple[str, int], ...]
    damaged: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The same for people, with a line for each day and for the ten most frequent reasons."""
        lines = []
        for made in self.days:
            rows = made.rows
            lines.append(
                f"{made.cluster} {made.day}: {made.moments:,} snapshots of {rows.kept:,} rows ({rows.used:,} used,"
                f" {rows.duplicate:,} duplicate, {rows.outdated:,} outdated, {rows.not_placed:,} not placed;"
                f" {rows.late:,} were late), {len(made.gaps):,} gaps, {made.splits:,} splits"
            )
            for broker, skew_ms in list(made.clock_skew_ms.items())[:_MOST_CLOCKS]:
                way = "ahead" if skew_ms > 0 else "behind"
                lines.append(f"  the clock of {broker} is {abs(skew_ms) / 1_000:,.1f} s {way}, and was corrected")
            if (more := len(made.clock_skew_ms) - _MOST_CLOCKS) > 0:
                lines.append(f"  so were the clocks of {more:,} more brokers; the manifest lists them")
        lines.append(
            f"{self.files_read:,} files read, {self.files_unchanged:,} unchanged; {len(self.days):,} days made,"
            f" {self.days_unchanged:,} unchanged, {self.days_removed:,} removed"
        )
        return [
            *lines,
            f"{self.rows_read:,} rows read = {self.rows_kept:,} kept + {self.rows_set_aside:,} set aside",
            *(f"  {count:,} set aside: {reason}" for reason, count in self.reasons[:10]),
            *(f"not made: {said}" for said in self.damaged),
        ]


def ingest(
    inputs: Sequence[Path],
    root: Path,
    options: Options | None = None,
    session: "SparkSession | None" = None,
    progress: Callable[[str], None] = lambda _: None,
) -> IngestResult:
    """Bring raw recordings into a history.

    Files that did not change since the last time are not read again, and days whose rows did not change are not made
    again, so that a day added costs a day.

    Args:
        inputs: Files, and folders to look through.
        root: The history; made when it does not exist.
        options: How raw rows become history.
        session: Spark; by default where the environment says (see `planner.spark.session`), else on all cores here.
        progress: Is told what happens, one line each.

    Raises:
        FormatError: An input cannot be read, or there is none.
        ReplayError: Spark or the disk cannot do it, or another process ingests into the same history.
    """
    chosen, root = options or Options(), root.resolve()
    found = find_sources(inputs, root)
    with only_ingest(root):
        clear_staging(root, keep=READ)
        ledger = _without_segments(read_ledger(root), found)
        settings = {
            "interval_ms": chosen.interval_ms,
            "report_ms": chosen.validity.report_ms,
            "sample_ms": chosen.validity.sample_ms,
        }
        anew = bool(ledger.sources) and ledger.settings != settings
        read = found if anew else changed_sources(found, ledger.sources, chosen.cluster)
        progress(f"{len(found):,} files, {len(read):,} of them new or changed.")
        with ExitStack() as stack:
            stack.enter_context(_said_plainly(root))
            stack.callback(clear_staging, root)
            places = {str(path if path.is_dir() else path.parent) for path in map(Path.resolve, inputs)}
            given = _Session(session, stack, [str(root), *sorted(places)])
            return _Ingest(given, root, chosen, progress).run(found, read, ledger, settings, anew=anew)


def _without_segments(ledger: Ledger, found: Sequence[Source]) -> Ledger:
    """Return a ledger without the snapshots that are read with the day of a history that they lie in."""
    days = {source.path for source in found if source.kind is SourceKind.HISTORY}
    kept = {path: entry for path, entry in ledger.sources.items() if str(Path(path).parent) not in days}
    return ledger.model_copy(update={"sources": kept})


class _Session:
    """The given session, or one where the environment says, which starts when needed and is stopped at the end."""

    def __init__(self, session: "SparkSession | None", stack: ExitStack, folders: Sequence[str]) -> None:
        self.given, self.stack, self.folders = session, stack, folders

    @cached_property
    def _open(self) -> OpenSession:
        if self.given is not None:
            opened = OpenSession(self.given, SparkPlace("local"), parallel_of(self.given))
        else:
            code = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
            opened = self.stack.enter_context(open_session("pulsar-bundle-planner history", code))
            if opened.place.kind != "local":
                check_workers(opened, __name__, self.folders)
        return opened

    @property
    def spark(self) -> "SparkSession":
        return self._open.spark

    @property
    def parallel(self) -> int:
        """How many tasks run at once."""
        return self._open.parallel_now()


@contextmanager
def _said_plainly(root: Path) -> Iterator[None]:
    """Turn what Spark throws into one sentence; a lost connection is an OSError, too, but none of the disk."""
    try:
        yield
    except PlannerError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and not isinstance(error, ConnectionError):
            with writing_history(root):
                raise
        text = f"{type(error).__name__}: {error}"
        for mark, what, remedy in _SAID:
            if mark in text or (mark == _LOST and isinstance(error, ConnectionError)):
                raise ReplayError(what, where=str(root), remedy=remedy) from error
        raise ReplayError(
            f"Spark stopped: {first_line(error)}.", where=str(root), remedy="Run the same command again."
        ) from error


class _Ingest:
    """One run."""

    def __init__(self, session: _Session, root: Path, options: Options, progress: Callable[[str], None]) -> None:
        self.session, self.root, self.options, self.progress = session, root, options, progress
        self.aside = root / STAGING / READ

    def run(
        self, found: list[Source], read: list[Source], ledger: Ledger, settings: dict[str, int], *, anew: bool
    ) -> IngestResult:
        pieces = self._parsed(read)
        entries = self._entries(pieces, read)
        known = {} if anew else dict(ledger.sources)
        everything = known | entries
        plan = plan_days(self.root, everything, frozenset(entries), anew=anew)
        reasons = self._set_aside(pieces, read)
        if entries and not anew:  # a run that is killed from here on need not read them again
            write_ledger(self.root, Ledger(settings=settings, sources=everything))
        again = [Source(path, e.kind, e.size, e.changed_ns) for path in plan.read_too for e in [everything[path]]]
        self.progress(f"{len(plan.make):,} days to make, {plan.unchanged:,} unchanged.")
        made = self._make([*pieces, *self._parsed(again)], plan)
        for cluster, day in plan.remove:
            delete_day(day_folder(self.root, cluster, day))
        write_ledger(self.root, Ledger(settings=settings, sources=everything))
        return IngestResult(
            files_read=len(read),
            files_unchanged=len(found) - len(read),
            rows_read=sum(e.read for e in entries.values()),
            rows_kept=sum(e.kept for e in entries.values()),
            rows_set_aside=sum(e.set_aside for e in entries.values()),
            days=tuple(made),
            days_unchanged=plan.unchanged,
            days_removed=len(plan.remove),
            reasons=reasons,
            damaged=plan.damaged,
        )

    def _on_spark(
        self, work: Callable[[str], Iterable[tuple[Any, ...]]], pieces: Sequence[tuple[int, str]], columns: str
    ) -> list[tuple[Any, ...]]:
        """Do pieces of work, each with a weight and told as text, on the workers; return the rows that they give.

        Raises:
            ReplayError: One of them cannot be done.
        """
        tasks = self._tasks([weight for weight, _ in pieces])
        rows = [(task, text) for task, (_, text) in zip(tasks, pieces, strict=True)]
        table = self.session.spark.createDataFrame(rows, "task int, text string").repartitionById(
            max(tasks) + 1, "task"
        )
        schema = arrow_schema(f"trouble string, {columns}")

        def run(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in given:
                for text in batch["text"].to_pylist():
                    try:
                        found = [dict(zip(schema.names, ("", *row), strict=True)) for row in work(text)]
                    except PlannerError as error:
                        found = [{"trouble": json.dumps([error.what, error.where, error.remedy])}]
                    yield pa.RecordBatch.from_pylist(found, schema=schema)

        done = table.mapInArrow(run, f"trouble string, {columns}").collect()
        troubles = [trouble for trouble, *_ in done if trouble]
        if troubles:
            what, where, remedy = json.loads(min(troubles))
            raise ReplayError(what, where=where, remedy=remedy)
        return [tuple(row)[1:] for row in done]

    # --- first stage

    def _parsed(self, sources: Sequence[Source]) -> list[Piece]:
        """Read files; the rows are kept on disk once they were read."""
        if not sources:
            return []
        with writing_history(self.root):
            self.aside.mkdir(exist_ok=True)
        blocks = [(number, block) for number, source in enumerate(sources) for block in blocks_of(source)]
        work = [(n, block, self._name(sources[n], block)) for n, block in blocks]
        pieces = self._read(work, {})
        strays = strays_of(pieces)
        if not strays:
            return pieces
        kept = [piece for piece in pieces if piece.source not in strays]
        again = {n: [piece for piece in pieces if piece.source == n] for n in strays}
        return kept + self._read(
            [
                (n, block, f"{name}-{blake2b(repr(strays[n]).encode(), digest_size=8).hexdigest()}")
                for n, block, name in work
                if n in strays
            ],
            {n: (strays[n], again[n]) for n in strays},
        )

    def _name(self, source: Source, block: Block) -> str:
        """Return what is read: the same name for the same rows."""
        about = [code_digest(), self.options.cluster, self.options.carry_ms, source.size, source.changed_ns]
        text = json.dumps([*about, block.path, block.kind, block.first, block.last])
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def _read(
        self, blocks: Sequence[tuple[int, Block, str]], strays: Mapping[int, tuple[Strays, Sequence[Piece]]]
    ) -> list[Piece]:
        """Read blocks of files, or put aside what strays in pieces of them."""
        work = []
        for source, block, name in blocks:
            stray, pieces = strays.get(source, (None, ()))
            mine = [piece.to_json() for piece in pieces if piece.block == block.first]
            content = [
                source,
                block.path,
                block.kind.value,
                block.first,
                block.last,
                name,
                stray and astuple(stray),
                mine,
            ]
            work.append((block.last - block.first, json.dumps(content)))
        found = self._on_spark(_reader(self.aside, self.options), work, _PIECES)
        return [replace(Piece.from_json(said), source=source, block=block) for source, block, said in found]

    def _tasks(self, weights: Sequence[int]) -> list[int]:
        """Share pieces of work out to as many tasks as keep the cluster busy; return the task of each."""
        count = min(len(weights), _TASKS_A_CORE * self.session.parallel)
        loads = [(0, task) for task in range(count)]
        chosen = [0] * len(weights)
        for at in sorted(range(len(weights)), key=lambda i: -weights[i]):
            load, task = heappop(loads)
            chosen[at] = task
            heappush(loads, (load + weights[at] + 1, task))
        return chosen

    def _entries(self, pieces: Sequence[Piece], sources: Sequence[Source]) -> dict[str, SourceEntry]:
        """Return what the ledger says of the files just read, and see that the counts add up."""
        counts: dict[int, dict[str, int]] = {}
        days: dict[int, dict[tuple[str, int], list[Piece]]] = {}
        for piece in pieces:
            per_lane = counts.setdefault(piece.source, {})
            per_lane[piece.lane] = per_lane.get(piece.lane, 0) + piece.rows
            if piece.lane == Lane.ROW:
                days.setdefault(piece.source, {}).setdefault((piece.cluster, piece.day), []).append(piece)
        return {
            source.path: self._entry(source, counts.get(n, {}), days.get(n, {})) for n, source in enumerate(sources)
        }

    def _entry(
        self, source: Source, counts: Mapping[str, int], of_days: Mapping[tuple[str, int], Sequence[Piece]]
    ) -> SourceEntry:
        read, kept, aside = (counts.get(lane.value, 0) for lane in (Lane.BLOCK, Lane.ROW, Lane.ASIDE))
        if read != kept + aside:
            raise ReplayError(
                f"{read:,} rows were read, but {kept:,} kept and {aside:,} set aside.",
                where=source.path,
                remedy="The file changed while it was read; run again when nobody writes to it.",
            )
        days: dict[str, dict[str, DayRows]] = {}
        for (cluster, day), pieces in of_days.items():
            low, high = (sum(getattr(piece, half) for piece in pieces) % (1 << 32) for half in ("low", "high"))
            sums = {name: sum(getattr(piece, name) for piece in pieces) for name in ("rows", "carried")}
            days.setdefault(cluster, {})[day_of(day * DAY_MS)] = DayRows(**sums, digest=f"{high:08x}{low:08x}")
        last = max((piece.snapshot for pieces in of_days.values() for piece in pieces if piece.snapshot), default=None)
        return SourceEntry(
            kind=source.kind,
            size=source.size,
            changed_ns=source.changed_ns,
            cluster=self.options.cluster,
            read=read,
            kept=kept,
            set_aside=aside,
            days=days,
            moment=last and Moment(time_ms=last[0], cluster=last[1], digest=last[2]),
        )

    def _set_aside(self, pieces: Sequence[Piece], sources: Sequence[Source]) -> tuple[tuple[str, int], ...]:
        """Write the rows that could not be read, file by file, and count the reasons."""
        for source in sources:
            (self.root / SET_ASIDE / _aside_name(source.path)).unlink(missing_ok=True)
        bad: dict[int, list[Piece]] = {}
        for piece in pieces:
            if piece.lane == Lane.ASIDE:
                bad.setdefault(piece.source, []).append(piece)
        if not bad:
            return ()
        (self.root / SET_ASIDE).mkdir(exist_ok=True)
        before: dict[int, dict[int, int]] = {}
        lines: dict[int, int] = {}
        for piece in sorted((p for p in pieces if p.lane == Lane.BLOCK), key=lambda p: p.block):
            before.setdefault(piece.source, {})[piece.block] = lines.get(piece.source, 0)
            lines[piece.source] = lines.get(piece.source, 0) + piece.lines
        work = [
            (
                sum(piece.rows for piece in mine),
                json.dumps([sources[n].path, list(before[n].items()), [piece.to_json() for piece in mine]]),
            )
            for n, mine in bad.items()
        ]
        reasons: Counter[str] = Counter()
        for reason, count in self._on_spark(_aside_writer(self.root), work, "reason string, rows bigint"):
            reasons[reason] += count
        return tuple(sorted(reasons.items(), key=lambda said: (-said[1], said[0]))[:_MOST_REASONS])

    # --- second stage

    def _make(self, pieces: Sequence[Piece], plan: Plan) -> list[DayManifest]:
        """Make the days of a plan."""
        if not plan.make:
            return []
        mine: dict[tuple[str, int], list[Piece]] = {}
        for piece in pieces:
            if piece.lane in (Lane.ROW, Lane.HINT):
                mine.setdefault((piece.cluster, piece.day), []).append(piece)
        work = []
        for one in plan.make:
            parts = mine.get((one.cluster, day_start_ms(one.day) // DAY_MS), [])
            wanted = {**asdict(one), "sources": {path: rows.model_dump() for path, rows in one.sources.items()}}
            content = json.dumps([wanted, [part.to_json() for part in parts]])
            work.append((sum(rows.rows for rows in one.sources.values()), content))
        made = self._on_spark(_maker(self.root, self.options), work, "said string")
        return sorted((DayManifest.model_validate_json(said) for (said,) in made), key=lambda m: (m.cluster, m.day))


def _aside_name(path: str) -> str:
    return f"{blake2b(path.encode(), digest_size=8).hexdigest()}.parquet"


def _span(rows_of_day: Mapping[int, int]) -> tuple[int, int]:
    """Return the first and the last day of a file, without days years off that have few of its rows.

    Days are years off when there is nothing for a year between them and those with the most rows.
    """
    groups: list[list[int]] = []
    for day in sorted(rows_of_day):
        if groups and day - groups[-1][-1] <= _YEAR_DAYS:
            groups[-1].append(day)
        else:
            groups.append([day])
    sizes = [sum(rows_of_day[day] for day in group) for group in groups]
    kept = [group for group, size in zip(groups, sizes, strict=True) if 2 * size >= max(sizes)]
    return kept[0][0], kept[-1][-1]


def strays_of(pieces: Sequence[Piece]) -> dict[int, Strays]:
    """Return what a wrong clock has dated, by the number of the file; nothing for most files.

    That are rows years off from the others of their file, and reports whose broker dates them more than a day off from
    its other reports in the file. What is put aside depends on nothing but the file.
    """
    records: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.lane == Lane.ROW:
            records.setdefault(piece.source, []).append(piece)
    found = {}
    for source, mine in records.items():
        days: dict[int, int] = {}
        for piece in mine:
            if piece.rows:
                days[piece.day] = days.get(piece.day, 0) + piece.rows
        if not days:
            continue
        (first, last) = span = _span(days)
        lags = [lag for piece in mine if piece.rows for lag in (piece.least, piece.most) if lag is not None]
        is_apart = bool(lags) and max(lags) - min(lags) > DAY_MS
        if is_apart or span != (min(days), max(days)):
            found[source] = Strays(first, last, lags_of(mine) if is_apart else ())
    return found


def _aside_writer(root: Path) -> Callable[[str], Iterator[tuple[str, int]]]:
    """Return what writes the rows of a file that could not be read, and counts the reasons."""

    def write(text: str) -> Iterator[tuple[str, int]]:
        path, before, said = json.loads(text)
        lines = dict(before)
        reasons: Counter[str] = Counter()

        def listed() -> Iterator[dict[str, Any]]:
            for block, row in asides_in_order([Piece.from_json(piece) for piece in said]):
                reasons[row["text"]] += row["rows"]
                line = row["line"] + lines.get(block, 0) if row["line"] else 0
                about = {"rows": row["rows"], "reason": row["text"], "bytes": row["measure"], "sha256": row["subject"]}
                yield {"file": path, "line": line, **about, "raw": row["body"]}

        rows = listed()
        unfinished = root / STAGING / f"{uuid.uuid4().hex}-{_aside_name(path)}"
        with writing_history(root), pq.ParquetWriter(unfinished, _ASIDE_SCHEMA, compression="zstd") as writer:
            while some := list(islice(rows, _ASIDE_BATCH)):
                writer.write_table(pa.Table.from_pylist(some, schema=_ASIDE_SCHEMA))
        with writing_history(root):
            put_in_place(unfinished, root / SET_ASIDE / _aside_name(path))
        yield from reasons.most_common(_MOST_REASONS)

    return write


def _reader(aside: Path, options: Options) -> Callable[[str], Iterator[tuple[int, int, str]]]:
    """Return what a worker of the first stage does: a block in, its pieces out."""

    def read(text: str) -> Iterator[tuple[int, int, str]]:
        source, path, kind, first, last, name, stray, pieces = json.loads(text)
        block = Block(path, SourceKind(kind), first, last)

        def rows() -> Iterator[pa.RecordBatch]:
            if stray is not None:
                again = [Piece.from_json(piece) for piece in pieces]
                strays = Strays(stray[0], stray[1], tuple(map(tuple, stray[2])))
                return without_strays(again, strays, _YEARS_OFF, _CLOCK_OFF)
            tally = Tally()
            return batches(read_block(block, options.cluster, tally), source, options.carry_ms, tally, first)

        with writing_history(aside.parent.parent):
            yield from ((source, first, said) for said in staged(aside, name, rows))

    return read


def _maker(root: Path, options: Options) -> Callable[[str], Iterator[tuple[str]]]:
    """Return what a worker of the second stage does: a day and its pieces in, the manifest out."""

    def make(text: str) -> Iterator[tuple[str]]:
        wanted, said = json.loads(text)
        plan = DayPlan(**{**wanted, "sources": {path: SourceRows(**rows) for path, rows in wanted["sources"].items()}})
        try:
            yield (_make_day(root, options, plan, [Piece.from_json(piece) for piece in said]).model_dump_json(),)
        except PlannerError as error:
            what = f"{plan.day} of {plan.cluster} cannot be made: {error.what}"
            raise ReplayError(what, where=error.where, remedy=error.remedy) from error

    return make


def _make_day(root: Path, options: Options, plan: DayPlan, pieces: Sequence[Piece]) -> DayManifest:
    base = snapshot_of_source(Path(plan.base)) if plan.base else None
    hint = hint_of(piece for piece in pieces if piece.lane == Lane.HINT)
    rows = [piece for piece in pieces if piece.lane == Lane.ROW]
    if not rows:
        raise ReplayError("There are no rows.", where=plan.day, remedy="Run the same command again.")
    assembler = DayAssembler(plan.cluster, day_start_ms(plan.day) // DAY_MS, hint, options, base)
    with DayWriter(root, plan.cluster, plan.day) as writer:
        for snapshot in assembler.take(rows_in_order(rows)):
            writer.add(snapshot)
        for snapshot in assembler.finish():
            writer.add(snapshot)
        return writer.commit(
            DayManifest(
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
        )
