"""Raw recordings in, history out, by Spark.

Two stages. The first reads blocks of files into records (`sources`), which stay in files aside (`staged`); what they
hold is counted, and compared with the days that are complete (`plan`). The second brings the records of each day
that has to be made together in the order of time, and makes the day of them (`make`, `assemble`, `days`); a worker
holds one state of one cluster, and writes the day itself, so that it appears as a whole or not at all. The runs of a
day that would be waited for are made side by side, and put in place here. Through Spark go only pieces of work, and
what became of them. The ledger is written last: a run that was killed is repeated, reads no block
that was read, and skips the days that are complete.
"""

import json
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from planner.cluster.errors import PlannerError, ReplayError, escaped
from planner.cluster.files import PRIVATE, check_spelling, put_in_place
from planner.cluster.text import count
from planner.cluster.units import DAY_MS
from planner.history.day_writer import STAGING, Runs, clear_staging, commit_day, delete_day, writing_history
from planner.history.ledger import (
    DayRows,
    Ledger,
    Moment,
    SourceEntry,
    only_ingest,
    read_ledger,
    write_ledger,
)
from planner.history.make import Made, ToMake, ToMakeRun, is_worth_cutting, make_day, make_run, naming_day, weight_of
from planner.history.manifest import DayManifest, day_folder, day_of
from planner.history.plan import DayPlan, Plan, changed_sources, plan_days
from planner.history.records import Stream, Tally, batches
from planner.history.sources import (
    Block,
    Source,
    SourceKind,
    blocks_of,
    find_sources,
    read_block,
)
from planner.history.spec import Options
from planner.history.staged import (
    READ,
    RunPart,
    Strays,
    asides_in_order,
    lags_of,
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


_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_Key = TypeVar("_Key")

SET_ASIDE = "set_aside"
"""Folder of a history with the rows that could not be read, one Parquet file for each raw file that has any."""

_TASKS_A_CORE = 4
_MOST_REASONS = 1_000
_MOST_CLOCKS = 5
_MOST_NOTES = 20
_YEAR_DAYS = 366
_ASIDE_SCHEMA = arrow_schema(
    "file string, line bigint, rows bigint, reason string, bytes bigint, sha256 string, raw binary"
)
_ASIDE_BATCH = 1_000
_YEARS_OFF = (
    "The time is years away from the other rows of the file. If it is correct, put such rows in a separate file."
)
_CLOCK_OFF = (
    "The broker's clock differs by more than a day from its other reports in the file. Correct "
    "lastUpdate, or leave it out."
)
_LOST = "Py4JNetworkError"
_GONE = (
    "Spark's Java process has ended.",
    "Check whether the machine ran out of memory, and run the same command again.",
)
_UNREACHABLE = ("Spark cannot be reached.", "Check that it still runs, and run the same command again.")
_SAID = (
    ("No space left on device", "The disk is full.", "Free disk space for Spark's own files, too (spark.local.dir)."),
    (
        "OutOfMemoryError",
        "Spark ran out of memory.",
        "Give Spark more memory (spark.driver.memory, spark.executor.memory).",
    ),
    ("ConnectException", *_UNREACHABLE),
    ("StatusCode.UNAVAILABLE", *_UNREACHABLE),
    ("Connection refused", *_GONE),
    (_LOST, *_GONE),
    ("Error while sending or receiving", *_GONE),
    (
        "Python worker exited",
        "A worker ended unexpectedly.",
        "Check whether the machine ran out of memory, and run the command again.",
    ),
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
    def _notes(self) -> Iterator[str]:
        """What the manifests of the days note, each sentence once."""
        days: dict[str, list[str]] = {}
        for made in self.days:
            for note in made.notes:
                days.setdefault(note, []).append(f"{made.cluster} {made.day}")
        for note, which in list(days.items())[:_MOST_NOTES]:
            more = f" and {count(len(which) - 1, 'more day')}" if len(which) > 1 else ""
            yield f"note: {which[0]}{more}: {note}"
        if (left := len(days) - _MOST_NOTES) > 0:
            yield f"{count(left, 'more note')}, which the manifests of the days list"

    @property
    def lines(self) -> list[str]:
        """The same for people, with a line for each day and for the ten most frequent reasons."""
        lines = []
        for made in self.days:
            rows = made.rows
            lines.append(
                f"{made.cluster} {made.day}: {count(made.moments, 'snapshot')} of {count(rows.kept, 'row')}"
                f" ({rows.used:,} used, {rows.duplicate:,} duplicate, {rows.outdated:,} outdated,"
                f" {rows.not_placed:,} not placed; {rows.late:,} were late),"
                f" {count(len(made.gaps), 'gap')}, {count(made.splits, 'split')}"
            )
            for broker, skew_ms in list(made.clock_skew_ms.items())[:_MOST_CLOCKS]:
                way = "ahead" if skew_ms > 0 else "behind"
                lines.append(f"  the clock of {broker} is {abs(skew_ms) / 1_000:,.1f} s {way}, and was corrected")
            if (more := len(made.clock_skew_ms) - _MOST_CLOCKS) > 0:
                lines.append(f"  the clocks of {more:,} more brokers were corrected, too; the manifest lists them")
        lines += [*self._notes]
        lines.append(
            f"{count(self.files_read, 'file')} read, {self.files_unchanged:,} unchanged;"
            f" {count(len(self.days), 'day')} made,"
            f" {self.days_unchanged:,} unchanged, {self.days_removed:,} removed"
        )
        return [
            *lines,
            f"{self.rows_read:,} rows read = {self.rows_kept:,} kept + {self.rows_set_aside:,} set aside",
            *(f"  {number:,} set aside: {reason}" for reason, number in self.reasons[:10]),
            *(f"not made: {item}" for item in self.damaged),
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
    chosen, root = options or Options(), check_spelling(root)
    found = find_sources(inputs, root)
    with only_ingest(root):
        clear_staging(root, keep=READ)
        ledger = _without_segments(read_ledger(root), found)
        settings = {name: getattr(chosen, name) for name in ("interval_ms", "report_ms", "sample_ms")}
        afresh = bool(ledger.sources) and ledger.settings != settings
        read = found if afresh else changed_sources(found, ledger.sources, chosen.cluster)
        progress(f"{count(len(found), 'file')}, {len(read):,} of them new or changed.")
        with ExitStack() as stack:
            stack.enter_context(_plain_errors(root))
            stack.callback(clear_staging, root)
            places = {escaped(str(path if path.is_dir() else path.parent)) for path in map(Path.resolve, inputs)}
            opened = cache(partial(_opened, session, stack, [str(root), *sorted(places)]))  # when there is work for it
            return _Ingest(opened, root, chosen, progress).run(found, read, ledger, settings, afresh=afresh)


def _without_segments(ledger: Ledger, found: Sequence[Source]) -> Ledger:
    """Return a ledger without the snapshots that are read with the day of a history that they lie in."""
    days = {source.path for source in found if source.kind is SourceKind.HISTORY}
    kept = {path: entry for path, entry in ledger.sources.items() if str(Path(path).parent) not in days}
    return ledger.model_copy(update={"sources": kept})


@dataclass(frozen=True, slots=True)
class _ToRead:
    """A block of a file, known by its number; the pieces that it has already where some of its rows stray."""

    source: int
    block: Block
    name: str
    strays: Strays | None = None
    pieces: tuple[RunPart, ...] = ()


@dataclass(frozen=True, slots=True)
class _ToPutAside:
    """The rows of a file that could not be read, and how many lines of it stand before each of its blocks."""

    path: str
    before: Mapping[int, int]
    pieces: tuple[RunPart, ...]


def _grouped(pieces: Iterable[RunPart], key: Callable[[RunPart], _Key]) -> dict[_Key, list[RunPart]]:
    found: dict[_Key, list[RunPart]] = {}
    for piece in pieces:
        found.setdefault(key(piece), []).append(piece)
    return found


def _opened(session: "SparkSession | None", stack: ExitStack, folders: Sequence[str]) -> OpenSession:
    """Return the given session, or start one where the environment says, which is stopped at the end."""
    if session is not None:
        return OpenSession(session, SparkPlace("local"), parallel_of(session))
    code = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    opened = stack.enter_context(open_session("pulsar-bundle-planner history", code))
    if opened.place.kind != "local":
        check_workers(opened, __name__, folders)
    return opened


@contextmanager
def _plain_errors(root: Path) -> Iterator[None]:
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

    def __init__(
        self, opened: Callable[[], OpenSession], root: Path, options: Options, progress: Callable[[str], None]
    ) -> None:
        self.opened, self.root, self.options, self.progress = opened, root, options, progress
        self.aside = root / STAGING / READ

    def run(
        self, found: list[Source], read: list[Source], ledger: Ledger, settings: dict[str, int], *, afresh: bool
    ) -> IngestResult:
        pieces = self._parsed(read)
        entries = self._entries(pieces, read)
        known = {} if afresh else dict(ledger.sources)
        everything = known | entries
        plan = plan_days(self.root, everything, frozenset(entries), afresh=afresh)
        reasons = self._set_aside(pieces, read)
        if entries and not afresh:  # a run that is killed from here on need not read them again
            write_ledger(self.root, Ledger(settings=settings, sources=everything))
        again = [Source(path, e.kind, e.size, e.changed_ns) for path in plan.read_too for e in [everything[path]]]
        self.progress(f"{count(len(plan.make), 'day')} to make, {plan.unchanged:,} unchanged.")
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
        self, do: Callable[[_Given], _Made], work: Sequence[tuple[int, _Given]], takes: type[_Given], gives: type[_Made]
    ) -> list[_Made]:
        """Do pieces of work, each with a weight, on the workers, where they travel as text; return what they give.

        Raises:
            ReplayError: One of them cannot be done.
        """
        texts = [(weight, TypeAdapter(takes).dump_json(given).decode()) for weight, given in work]

        def run(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
            taken, given = TypeAdapter(takes), TypeAdapter(gives)
            for text in texts:
                try:
                    yield given.dump_json(do(taken.validate_json(text))).decode(), ""
                except PlannerError as error:
                    yield "", json.dumps([error.what, error.where, error.remedy])

        done = self.opened().on_workers(run, self._shares(texts))
        if troubles := [trouble for _, trouble in done if trouble]:
            what, where, remedy = json.loads(min(troubles))
            raise ReplayError(what, where=where, remedy=remedy)
        return [TypeAdapter(gives).validate_json(made) for made, _ in done]

    # --- first stage

    def _parsed(self, sources: Sequence[Source]) -> list[RunPart]:
        """Read files; the rows are kept on disk once they were read."""
        if not sources:
            return []
        with writing_history(self.root):
            self.aside.mkdir(mode=PRIVATE, exist_ok=True)
        work = [_ToRead(n, b, self._name(source, b)) for n, source in enumerate(sources) for b in blocks_of(source)]
        pieces = self._read(work)
        strays = misdated_rows(pieces)
        of_block = _grouped(pieces, lambda piece: (piece.source, piece.block))
        again = [
            replace(
                one,
                name=f"{one.name}-{blake2b(repr(strays[one.source]).encode(), digest_size=8).hexdigest()}",
                strays=strays[one.source],
                pieces=tuple(of_block[one.source, one.block.first]),
            )
            for one in work
            if one.source in strays
        ]
        kept = [piece for piece in pieces if piece.source not in strays]
        return kept + self._read(again) if again else pieces

    def _name(self, source: Source, block: Block) -> str:
        """Return what is read: the same name for the same rows."""
        about = [code_digest(), self.options.cluster, self.options.carry_ms, source.size, source.changed_ns]
        text = json.dumps([*about, block.path, block.kind, block.first, block.last])
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def _read(self, work: Sequence[_ToRead]) -> list[RunPart]:
        """Read blocks of files, or put aside what strays in pieces of them."""
        weighed = [(one.block.last - one.block.first, one) for one in work]
        found = self._on_spark(partial(_read_one, self.aside, self.options), weighed, _ToRead, list[RunPart])
        return [piece for pieces in found for piece in pieces]

    def _shares(self, work: Sequence[tuple[int, str]]) -> list[list[str]]:
        """Share pieces of work, each with a weight, out to as many tasks as keep the cluster busy."""
        shares: list[list[str]] = [[] for _ in range(min(len(work), _TASKS_A_CORE * self.opened().parallel_now()))]
        loads = [(0, task) for task in range(len(shares))]
        for weight, text in sorted(work, key=lambda one: -one[0]):
            load, task = heappop(loads)
            shares[task].append(text)
            heappush(loads, (load + weight + 1, task))
        return shares

    def _entries(self, pieces: Sequence[RunPart], sources: Sequence[Source]) -> dict[str, SourceEntry]:
        """Return what the ledger says of the files just read, and see that the counts add up."""
        of_source = _grouped(pieces, lambda piece: piece.source)
        return {source.path: self._entry(source, of_source.get(n, [])) for n, source in enumerate(sources)}

    def _entry(self, source: Source, pieces: Sequence[RunPart]) -> SourceEntry:
        read, kept, aside = (
            sum(piece.rows for piece in pieces if piece.lane == lane)
            for lane in (Stream.BLOCK, Stream.ROW, Stream.ASIDE)
        )
        if read != kept + aside:
            raise ReplayError(
                f"{read:,} rows were read, but {kept:,} kept and {aside:,} set aside.",
                where=source.path,
                remedy="The file changed while it was read. Run the command again when no program writes to it.",
            )
        days: dict[str, dict[str, DayRows]] = {}
        records = [piece for piece in pieces if piece.lane == Stream.ROW]
        for (cluster, day), mine in _grouped(records, lambda piece: (piece.cluster, piece.day)).items():
            low, high = (sum(getattr(piece, half) for piece in mine) % (1 << 32) for half in ("low", "high"))
            sums = {name: sum(getattr(piece, name) for piece in mine) for name in ("rows", "carried")}
            days.setdefault(cluster, {})[day_of(day * DAY_MS)] = DayRows(**sums, digest=f"{high:08x}{low:08x}")
        last = max((piece.snapshot for piece in records if piece.snapshot), default=None)
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

    def _set_aside(self, pieces: Sequence[RunPart], sources: Sequence[Source]) -> tuple[tuple[str, int], ...]:
        """Write the rows that could not be read, file by file, and count the reasons."""
        for source in sources:
            (self.root / SET_ASIDE / _aside_name(source.path)).unlink(missing_ok=True)
        bad = _grouped((piece for piece in pieces if piece.lane == Stream.ASIDE), lambda piece: piece.source)
        if not bad:
            return ()
        (self.root / SET_ASIDE).mkdir(mode=PRIVATE, exist_ok=True)
        blocks = _grouped((piece for piece in pieces if piece.lane == Stream.BLOCK), lambda piece: piece.source)
        work = []
        for n, mine in bad.items():
            in_order = sorted(blocks[n], key=lambda piece: piece.block)
            starts = accumulate((piece.lines for piece in in_order), initial=0)
            before = {piece.block: lines for piece, lines in zip(in_order, starts, strict=False)}
            work.append((sum(piece.rows for piece in mine), _ToPutAside(sources[n].path, before, tuple(mine))))
        reasons: Counter[str] = Counter()
        for chunk in self._on_spark(partial(_put_aside_one, self.root), work, _ToPutAside, dict[str, int]):
            reasons.update(chunk)
        return tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REASONS])

    # --- second stage

    def _make(self, pieces: Sequence[RunPart], plan: Plan) -> list[DayManifest]:
        """Make the days of a plan."""
        if not plan.make:
            return []
        useful = (piece for piece in pieces if piece.lane in (Stream.ROW, Stream.HINT))
        of_day = _grouped(useful, lambda piece: (piece.cluster, day_of(piece.day * DAY_MS)))
        weighed = [(weight_of(mine), one, tuple(mine)) for one in plan.make for mine in [of_day.get(_key(one), [])]]
        total, cores, run_rows = (
            sum(weight for weight, *_ in weighed),
            self.opened().parallel_now(),
            self.options.run_rows,
        )
        work = [
            (weight, ToMake(one, mine, is_worth_cutting(weight, total, cores, run_rows)))
            for weight, one, mine in weighed
        ]
        made = self._on_spark(partial(make_day, self.root, self.options), work, ToMake, Made)
        left = [(1, ToMakeRun(*_key(m.manifest), tuple(of_day[_key(m.manifest)]), s)) for m in made for s in m.starts]
        runs: dict[tuple[str, str], list[Runs]] = {}
        for run in self._on_spark(partial(make_run, self.root, self.options), left, ToMakeRun, Runs) if left else ():
            runs.setdefault(_key(run), []).append(run)
        days = [
            one.manifest if not one.starts else self._commit(one.manifest, runs[_key(one.manifest)]) for one in made
        ]
        return sorted(days, key=_key)

    def _commit(self, manifest: DayManifest, runs: Sequence[Runs]) -> DayManifest:
        with naming_day(manifest.cluster, manifest.day):
            return commit_day(self.root, manifest, runs)


def _key(of: DayPlan | DayManifest | Runs) -> tuple[str, str]:
    return of.cluster, of.day


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


def misdated_rows(pieces: Sequence[RunPart]) -> dict[int, Strays]:
    """Return what a wrong clock has dated, by the number of the file; nothing for most files.

    That are rows years off from the others of their file, and reports whose broker dates them more than a day off from
    its other reports in the file. What is put aside depends on nothing but the file.
    """
    records = _grouped((piece for piece in pieces if piece.lane == Stream.ROW), lambda piece: piece.source)
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


def _put_aside_one(root: Path, given: _ToPutAside) -> dict[str, int]:
    """Write the rows of a file that could not be read; return the most frequent reasons with their number."""
    reasons: Counter[str] = Counter()

    def listed() -> Iterator[dict[str, Any]]:
        for block, row in asides_in_order(given.pieces):
            reasons[row["text"]] += row["rows"]
            line = row["line"] + given.before.get(block, 0) if row["line"] else 0
            about = {"rows": row["rows"], "reason": row["text"], "bytes": row["measure"], "sha256": row["subject"]}
            yield {"file": given.path, "line": line, **about, "raw": row["body"]}

    rows, name = listed(), _aside_name(given.path)
    unfinished = root / STAGING / f"{uuid.uuid4().hex}-{name}"
    with writing_history(root), pq.ParquetWriter(unfinished, _ASIDE_SCHEMA, compression="zstd") as writer:
        while chunk := list(islice(rows, _ASIDE_BATCH)):
            writer.write_table(pa.Table.from_pylist(chunk, schema=_ASIDE_SCHEMA))
    with writing_history(root):
        put_in_place(unfinished, root / SET_ASIDE / name)
    return dict(reasons.most_common(_MOST_REASONS))


def _read_one(aside: Path, options: Options, given: _ToRead) -> list[RunPart]:
    """Read a block, or put aside what strays in its pieces; return its pieces."""

    def rows() -> Iterator[pa.RecordBatch]:
        if given.strays is not None:
            return without_strays(given.pieces, given.strays, _YEARS_OFF, _CLOCK_OFF)
        tally = Tally()
        found = read_block(given.block, options.cluster, tally)
        return batches(found, given.source, options.carry_ms, tally, given.block.first)

    with writing_history(aside.parent.parent):
        found = staged(aside, given.name, rows)
    return [replace(piece, source=given.source, block=given.block.first) for piece in found]
