"""Raw recordings in, history out, by Spark.

Two stages. The first reads blocks of files into records (`sources`); what it finds is kept on disk by Spark, counted,
and compared with the days that are complete (`plan`). The second brings the records of each day that has to be made
together in the order of time, and makes the day of them (`assemble`, `days`); a worker holds one state of one cluster,
and writes the day itself, so that it appears as a whole or not at all. The ledger is written last: a run that was
killed is repeated, and skips the days that are complete.
"""

import json
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import groupby, islice
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
from planner.history.manifest import DAY_MS, DayManifest, day_folder, day_of, day_start_ms
from planner.history.plan import DayPlan, Plan, changed_sources, plan_days
from planner.history.records import DDL, Hint, Kind, Lane, Row, Tally, batches, rows_of_batch
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
from planner.spark.schema import arrow_schema
from planner.spark.session import OpenSession, SparkPlace, check_workers, first_line, open_session, parallel_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SET_ASIDE = "set_aside"
"""Folder of a history with the rows that could not be read, one Parquet file for each raw file that has any."""

_TASKS_A_CORE = 4
_MOST_REASONS = 1_000
_MOST_CLOCKS = 5
_YEAR_DAYS = 366
_BATCH_ROWS = "256"
_RESULT = "cluster string, day int, failed boolean, said string"
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
        clear_staging(root)
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
        self.stack.enter_context(_small_batches(opened.spark))
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


@contextmanager
def _small_batches(spark: "SparkSession") -> Iterator[None]:
    """Hand few rows at a time to Python, since a row may hold thousands of topics."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, _BATCH_ROWS)
    try:
        yield
    finally:
        if before is not None:
            spark.conf.set(name, before)


class _Ingest:
    """One run."""

    def __init__(self, session: _Session, root: Path, options: Options, progress: Callable[[str], None]) -> None:
        self.session, self.root, self.options, self.progress = session, root, options, progress

    def run(
        self, found: list[Source], read: list[Source], ledger: Ledger, settings: dict[str, int], *, anew: bool
    ) -> IngestResult:
        stream = self._parsed(read)
        try:
            entries = self._entries(stream, read)
            known = {} if anew else dict(ledger.sources)
            everything = known | entries
            plan = plan_days(self.root, everything, frozenset(entries), anew=anew)
            reasons = self._set_aside(stream, read)
            if entries and not anew:  # a run that is killed from here on need not read them again
                write_ledger(self.root, Ledger(settings=settings, sources=everything))
            again = [Source(path, e.kind, e.size, e.changed_ns) for path in plan.read_too for e in [everything[path]]]
            self.progress(f"{len(plan.make):,} days to make, {plan.unchanged:,} unchanged.")
            made = self._make(stream, again, plan)
        finally:
            if stream is not None:
                stream.kept.unpersist()
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

    # --- first stage

    def _parsed(self, sources: Sequence[Source]) -> "_Stream | None":
        """Read files; the rows are kept on disk once they were read."""
        from pyspark import StorageLevel  # noqa: PLC0415 - takes a second to import

        if not sources:
            return None
        blocks = [(number, block) for number, source in enumerate(sources) for block in blocks_of(source)]
        tasks = self._tasks([block.last - block.first for _, block in blocks])
        rows = [(task, n, b.path, b.kind.value, b.first, b.last) for task, (n, b) in zip(tasks, blocks, strict=True)]
        columns = "task int, source int, path string, kind string, first bigint, last bigint"
        table = self.session.spark.createDataFrame(rows, columns)
        read = table.repartitionById(max(tasks) + 1, "task").mapInArrow(_reader(self.options), DDL)
        kept = read.persist(StorageLevel.DISK_ONLY)
        sums = _sums(kept)
        return without_strays(kept, sums) or _Stream(kept, kept, sums)

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

    def _entries(self, stream: "_Stream | None", sources: Sequence[Source]) -> dict[str, SourceEntry]:
        """Return what the ledger says of the files just read, and see that the counts add up."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - as above

        if stream is None:
            return {}
        moment: dict[int, Moment] = {}
        if any(source.kind in (SourceKind.SNAPSHOT, SourceKind.HISTORY) for source in sources):
            moments = stream.rows.where((f.col("lane") == Lane.ROW.value) & (f.col("kind") == Kind.SNAPSHOT.value))
            last = moments.groupBy("source").agg(f.max(f.struct("time_ms", "cluster", "text"))).collect()
            moment = {source: Moment(time_ms=at, cluster=name, digest=said) for source, (at, name, said) in last}
        counts: dict[int, dict[str, int]] = {}
        days: dict[int, dict[str, dict[str, DayRows]]] = {}
        for found in stream.sums:
            per_lane = counts.setdefault(found.source, {})
            per_lane[found.lane] = per_lane.get(found.lane, 0) + found.rows
            if found.cluster is not None and found.day is not None:
                digest = f"{found.high % (1 << 32):08x}{found.low % (1 << 32):08x}"
                made = DayRows(rows=found.rows, carried=found.carried, digest=digest)
                days.setdefault(found.source, {}).setdefault(found.cluster, {})[day_of(found.day * DAY_MS)] = made
        return {
            source.path: self._entry(source, counts.get(n, {}), days.get(n, {}), moment.get(n))
            for n, source in enumerate(sources)
        }

    def _entry(
        self,
        source: Source,
        counts: Mapping[str, int],
        days: dict[str, dict[str, DayRows]],
        moment: Moment | None,
    ) -> SourceEntry:
        read, kept, aside = (counts.get(lane.value, 0) for lane in (Lane.BLOCK, Lane.ROW, Lane.ASIDE))
        if read != kept + aside:
            raise ReplayError(
                f"{read:,} rows were read, but {kept:,} kept and {aside:,} set aside.",
                where=source.path,
                remedy="The file changed while it was read; run again when nobody writes to it.",
            )
        about = {"size": source.size, "changed_ns": source.changed_ns, "cluster": self.options.cluster}
        return SourceEntry(kind=source.kind, **about, read=read, kept=kept, set_aside=aside, days=days, moment=moment)

    def _set_aside(self, stream: "_Stream | None", sources: Sequence[Source]) -> tuple[tuple[str, int], ...]:
        """Write the rows that could not be read, file by file, and count the reasons."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - as above

        for source in sources:
            (self.root / SET_ASIDE / _aside_name(source.path)).unlink(missing_ok=True)
        with_bad_rows = {found.source for found in stream.sums if found.lane == Lane.ASIDE.value} if stream else set()
        if stream is None or not with_bad_rows:
            return ()
        (self.root / SET_ASIDE).mkdir(exist_ok=True)
        blocks = stream.rows.where((f.col("lane") == Lane.BLOCK.value) & f.col("source").isin(list(with_bad_rows)))
        before: dict[tuple[int, int], int] = {}
        lines: dict[int, int] = {}
        for source, first, count in sorted(tuple(r) for r in blocks.select("source", "block", "line").collect()):
            before[source, first] = lines.get(source, 0)
            lines[source] = before[source, first] + count
        bad = stream.rows.where(f.col("lane") == Lane.ASIDE.value)
        columns = ("source", "block", "line", "rows", "text", "measure", "subject", "body")
        paths = {number: sources[number].path for number in with_bad_rows}
        ordered = bad.select(*columns).repartition("source").sortWithinPartitions("source", "block", "line")
        ordered.mapInArrow(_aside_writer(self.root, paths, before), "source int").collect()
        reasons = bad.groupBy("text").agg(f.sum("rows").alias("n")).orderBy(f.desc("n"), "text").limit(_MOST_REASONS)
        return tuple((reason, count) for reason, count in reasons.collect())

    # --- second stage

    def _make(self, stream: "_Stream | None", again: Sequence[Source], plan: Plan) -> list[DayManifest]:
        """Make the days of a plan."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - as above

        if not plan.make:
            return []
        parts = [part.rows for part in (stream, self._parsed(again)) if part is not None]
        rows = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
        days = [(p.cluster, day_start_ms(p.day) // DAY_MS) for p in plan.make]
        shares = self._tasks([sum(rows.rows for rows in p.sources.values()) for p in plan.make])
        tasks = [(*day, task) for task, day in zip(shares, days, strict=True)]
        wanted = self.session.spark.createDataFrame(tasks, "cluster string, day int, task int")
        ordered = (
            rows.where(f.col("lane").isin(Lane.ROW.value, Lane.HINT.value))
            .join(f.broadcast(wanted), ["cluster", "day"])
            .repartitionById(max(shares) + 1, "task")
            .sortWithinPartitions(
                "cluster", "day", "lane", "time_ms", "broker", "kind", "subject", "source", "block", "line"
            )
        )
        plans = {(p.cluster, day): p for p, (_, day) in zip(plan.make, days, strict=True)}
        made: list[DayManifest] = []
        troubles: list[tuple[str, dict[str, str]]] = []
        for cluster, day, failed, said in ordered.mapInArrow(_maker(self.root, self.options, plans), _RESULT).collect():
            if failed:
                troubles.append((f"{day_of(day * DAY_MS)} of {cluster}", json.loads(said)))
            else:
                made.append(DayManifest.model_validate_json(said))
        if troubles:
            which, trouble = min(troubles)
            others = f" ({len(troubles) - 1} more days failed.)" if len(troubles) > 1 else ""
            raise ReplayError(
                f"{which} cannot be made: {trouble['what']}{others}", where=trouble["where"], remedy=trouble["remedy"]
            )
        return sorted(made, key=lambda m: (m.cluster, m.day))


def _aside_name(path: str) -> str:
    return f"{blake2b(path.encode(), digest_size=8).hexdigest()}.parquet"


@dataclass(frozen=True, slots=True)
class _Sum:
    """What a file has in a lane of the stream, for each cluster and day where these are records.

    Attributes:
        rows: Rows of this day.
        carried: Rows of the day before.
        low: Sum of the lower halves of the digests.
        high: Sum of the upper halves.
        least: The shortest lag of any broker's clock; None where none is known.
        most: The longest.
    """

    source: int
    lane: str
    cluster: str | None
    day: int | None
    rows: int
    carried: int
    low: int
    high: int
    least: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class _Stream:
    """Rows of the stream.

    Attributes:
        rows: The rows.
        kept: The same as Spark keeps them on disk.
        sums: What they come to.
    """

    rows: "DataFrame"
    kept: "DataFrame"
    sums: list[_Sum]


def _sums(stream: "DataFrame") -> list[_Sum]:
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes a second to import

    own = f.when(f.col("carry"), f.lit(0)).otherwise(f.col("rows"))
    carried = f.when(f.col("carry"), f.col("rows")).otherwise(f.lit(0))
    is_row = f.col("lane") == Lane.ROW.value
    numbers = (own, carried, f.col("digest_low"), f.col("digest_high"))
    lag = f.when(is_row, f.col("measure"))
    found = (
        stream.groupBy("source", "lane", f.when(is_row, f.col("cluster")), f.when(is_row, f.col("day")))
        .agg(*(f.sum(number) for number in numbers), f.min(lag), f.max(lag))
        .collect()
    )
    return [_Sum(*row) for row in found]


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


def without_strays(stream: "DataFrame", sums: Sequence[_Sum]) -> _Stream | None:
    """Put aside what a wrong clock has dated; None when there is nothing.

    That are rows years off from the others of their file, and reports whose broker dates them more than a day off from
    its other reports in the file. What is put aside depends on nothing but the file.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    days: dict[int, dict[int, int]] = {}
    lags: dict[int, list[int]] = {}
    for found in sums:
        if found.day is not None and found.rows:
            of_source = days.setdefault(found.source, {})
            of_source[found.day] = of_source.get(found.day, 0) + found.rows
            lags.setdefault(found.source, []).extend(lag for lag in (found.least, found.most) if lag is not None)
    spans = {source: _span(of_source) for source, of_source in days.items()}
    off = {source for source, (first, last) in spans.items() if (first, last) != (min(days[source]), max(days[source]))}
    apart = {source for source, of_source in lags.items() if of_source and max(of_source) - min(of_source) > DAY_MS}
    if not off | apart:
        return None
    spark = stream.sparkSession
    is_row, own_day = f.col("lane") == Lane.ROW.value, f.floor(f.col("time_ms") / DAY_MS)
    whole = spark.createDataFrame(
        [(source, *spans[source]) for source in sorted(off | apart)], "source int, first int, last int"
    )
    keys = ["source", "cluster", "broker"]
    middle = (
        stream.where(is_row & f.col("source").isin(sorted(apart)) & ~f.col("carry") & f.col("measure").isNotNull())
        .groupBy(*keys)
        .agg(f.median("measure").alias("middle"))
    )
    years = f.coalesce((own_day < f.col("first")) | (own_day > f.col("last")), f.lit(False))
    clock = f.coalesce(f.abs(f.col("measure") - f.col("middle")) > DAY_MS, f.lit(False))
    bad = is_row & (years | clock)
    instead: dict[str, Any] = {
        "lane": f.lit(Lane.ASIDE.value),
        "text": f.when(years, f.lit(_YEARS_OFF)).otherwise(f.lit(_CLOCK_OFF)),
        "measure": f.lit(0),
        "subject": f.lit(""),
        "body": f.lit(bytearray()),
    }
    joined = stream.join(f.broadcast(whole), "source", "left").join(middle, keys, "left")
    columns = [
        f.when(bad, instead[c]).otherwise(f.col(c)).alias(c) if c in instead else f.col(c) for c in stream.columns
    ]
    rows = joined.where(~(bad & f.col("carry"))).select(*columns)
    return _Stream(rows, stream, _sums(rows))


def _aside_writer(
    root: Path, paths: Mapping[int, str], before: Mapping[tuple[int, int], int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what writes the rows that could not be read: those of a file, which come together, into one file."""

    def lines_of(batch: pa.RecordBatch) -> Iterator[tuple[int, dict[str, Any]]]:
        for row in batch.to_pylist():
            source, line = row["source"], row["line"]
            place = line + before.get((source, row["block"]), 0) if line else 0
            said = {"rows": row["rows"], "reason": row["text"], "bytes": row["measure"], "sha256": row["subject"]}
            yield source, {"file": paths[source], "line": place, **said, "raw": row["body"]}

    def write(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in given for row in lines_of(batch))
        for source, mine in groupby(rows, key=lambda item: item[0]):
            name = _aside_name(paths[source])
            unfinished = root / STAGING / f"{uuid.uuid4().hex}-{name}"
            with writing_history(root), pq.ParquetWriter(unfinished, _ASIDE_SCHEMA, compression="zstd") as writer:
                while some := [row for _, row in islice(mine, _ASIDE_BATCH)]:
                    writer.write_table(pa.Table.from_pylist(some, schema=_ASIDE_SCHEMA))
            with writing_history(root):
                put_in_place(unfinished, root / SET_ASIDE / name)
            yield pa.RecordBatch.from_pydict({"source": pa.array([source], pa.int32())})

    return write


def _reader(options: Options) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a worker of the first stage does: blocks in, rows of the stream out."""

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            for row in batch.to_pylist():
                block = Block(row["path"], SourceKind(row["kind"]), row["first"], row["last"])
                tally = Tally()
                found = read_block(block, options.cluster, tally)
                yield from batches(found, row["source"], options.carry_ms, tally, block.first)

    return read


def _days_of(given: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """Cut batches where another cluster or day begins."""
    for batch in given:
        keys = list(zip(batch.column("cluster").to_pylist(), batch.column("day").to_pylist(), strict=True))
        start = 0
        for end in range(1, len(keys) + 1):
            if end == len(keys) or keys[end] != keys[start]:
                yield keys[start], batch.slice(start, end - start)
                start = end


def _maker(
    root: Path, options: Options, plans: Mapping[tuple[str, int], DayPlan]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a worker of the second stage does: ordered rows in, a line for each day written out."""

    def make(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for key, pieces in groupby(_days_of(given), key=lambda item: item[0]):
            failed, said = False, ""
            try:
                said = _make_day(root, options, plans[key], (piece for _, piece in pieces)).model_dump_json()
            except PlannerError as error:
                failed, said = True, json.dumps({"what": error.what, "where": error.where, "remedy": error.remedy})
            row = {"cluster": key[0], "day": key[1], "failed": failed, "said": said}
            yield pa.RecordBatch.from_pylist([row], schema=arrow_schema(_RESULT))

    return make


def _make_day(root: Path, options: Options, plan: DayPlan, pieces: Iterator[pa.RecordBatch]) -> DayManifest:
    hint = Hint()
    base = snapshot_of_source(Path(plan.base)) if plan.base else None
    assembler: DayAssembler | None = None
    with DayWriter(root, plan.cluster, plan.day) as writer:
        for piece in pieces:
            lanes = piece.column("lane").to_pylist()
            hints = next((i for i, lane in enumerate(lanes) if lane == Lane.ROW.value), len(lanes))
            for row in piece.slice(0, hints).to_pylist():
                hint.take(row)
            if hints < len(lanes):
                if assembler is None:
                    assembler = DayAssembler(plan.cluster, day_start_ms(plan.day) // DAY_MS, hint, options, base)
                rows: Iterator[Row] = rows_of_batch(piece.slice(hints))
                for snapshot in assembler.take(rows):
                    writer.add(snapshot)
        if assembler is None:
            raise ReplayError("There are no rows.", where=plan.day, remedy="Run the same command again.")
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
