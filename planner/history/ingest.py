"""Raw recordings in, history out, by Spark.

Two stages. The first reads blocks of files into records (`sources`); what it finds is kept on disk by Spark, counted,
and compared with the days that are complete (`plan`). The second brings the records of each day that has to be made
together in the order of time, and makes the day of them (`assemble`, `days`); a worker holds one state of one cluster,
and writes the day itself, so that it appears as a whole or not at all. The ledger is written last: a run that was
killed is repeated, and skips the days that are complete.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from planner.cluster.errors import PlannerError, ReplayError
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
from planner.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SET_ASIDE = "set_aside"
"""Folder of a history with the rows that could not be read, one Parquet file for each raw file that has any."""

_MOST_TASKS = 512
_BATCH_ROWS = "256"
_RESULT = "cluster string, day int, failed boolean, said string"
_ASIDE_SCHEMA = arrow_schema("file string, line bigint, rows bigint, reason string, raw binary")
_ASIDE_BATCH = 1_000
_SAID = (
    ("No space left on device", "The disk is full.", "Make room for Spark's own files, too (spark.local.dir)."),
    ("OutOfMemoryError", "The memory of Spark is full.", "Give it more (spark.driver.memory, spark.executor.memory)."),
    ("Connection refused", "Spark cannot be reached.", "Check that it still runs, and run the same command again."),
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
        lines.append(
            f"{self.files_read:,} files read, {self.files_unchanged:,} unchanged; {len(self.days):,} days made,"
            f" {self.days_unchanged:,} unchanged, {self.days_removed:,} removed"
        )
        return [
            *lines,
            f"{self.rows_read:,} rows read = {self.rows_kept:,} kept + {self.rows_set_aside:,} set aside",
            *(f"  {count:,} set aside: {reason}" for reason, count in self.reasons[:10]),
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
        session: Spark; one in this process, on all cores, by default.
        progress: Is told what happens, one line each.

    Raises:
        FormatError: An input cannot be read, or there is none.
        ReplayError: Spark or the disk cannot do it, or another process ingests into the same history.
    """
    chosen = options or Options()
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
            given = _Session(session, stack)
            return _Ingest(given, root, chosen, progress).run(found, read, ledger, settings, anew=anew)


def _without_segments(ledger: Ledger, found: Sequence[Source]) -> Ledger:
    """Return a ledger without the snapshots that are read with the day of a history that they lie in."""
    days = {source.path for source in found if source.kind is SourceKind.HISTORY}
    kept = {path: entry for path, entry in ledger.sources.items() if str(Path(path).parent) not in days}
    return ledger.model_copy(update={"sources": kept})


class _Session:
    """The given session, or one that starts when it is first needed; it is stopped, or left as it was, at the end."""

    def __init__(self, session: "SparkSession | None", stack: ExitStack) -> None:
        self.given, self.stack = session, stack

    @cached_property
    def spark(self) -> "SparkSession":
        spark = self.given
        if spark is None:
            spark = local_session("pulsar-bundle-planner history")
            self.stack.callback(spark.stop)
        self.stack.enter_context(_small_batches(spark))
        return spark


@contextmanager
def _said_plainly(root: Path) -> Iterator[None]:
    """Turn what Spark throws into one sentence."""
    try:
        with writing_history(root):
            yield
    except PlannerError:
        raise
    except Exception as error:
        text = str(error)
        for mark, what, remedy in _SAID:
            if mark in text:
                raise ReplayError(what, where=str(root), remedy=remedy) from error
        lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
        raise ReplayError(
            f"Spark stopped: {lines[0][:300].rstrip('.')}.", where=str(root), remedy="Run the same command again."
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
            reasons = self._set_aside(stream, read, bad_rows=any(e.set_aside for e in entries.values()))
            again = [Source(path, e.kind, e.size, e.changed_ns) for path in plan.read_too for e in [everything[path]]]
            self.progress(f"{len(plan.make):,} days to make, {plan.unchanged:,} unchanged.")
            made = self._make(stream, again, plan)
        finally:
            if stream is not None:
                stream.unpersist()
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
        )

    # --- first stage

    def _parsed(self, sources: Sequence[Source]) -> "DataFrame | None":
        """Return the rows of the stream, kept on disk once they were read."""
        from pyspark import StorageLevel  # noqa: PLC0415 - takes a second to import

        if not sources:
            return None
        blocks = [(number, block) for number, source in enumerate(sources) for block in blocks_of(source)]
        rows = [(task, n, b.path, b.kind.value, b.first, b.last) for task, (n, b) in enumerate(blocks)]
        columns = "task int, source int, path string, kind string, first bigint, last bigint"
        table = self.session.spark.createDataFrame(rows, columns)
        tasks = min(len(rows), _MOST_TASKS)
        read = table.repartitionById(tasks, "task").mapInArrow(_reader(self.options), DDL)
        return read.persist(StorageLevel.DISK_ONLY)

    def _entries(self, stream: "DataFrame | None", sources: Sequence[Source]) -> dict[str, SourceEntry]:
        """Return what the ledger says of the files just read, and see that the counts add up."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - as above

        if stream is None:
            return {}
        own = f.when(f.col("carry"), f.lit(0)).otherwise(f.col("rows"))
        carried = f.when(f.col("carry"), f.col("rows")).otherwise(f.lit(0))
        is_row = f.col("lane") == Lane.ROW.value
        sums = (
            stream.groupBy("source", "lane", f.when(is_row, f.col("cluster")), f.when(is_row, f.col("day")))
            .agg(f.sum(own), f.sum(carried), f.sum("digest_low"), f.sum("digest_high"))
            .collect()
        )
        moment: dict[int, Moment] = {}
        if any(source.kind in (SourceKind.SNAPSHOT, SourceKind.HISTORY) for source in sources):
            moments = stream.where(is_row & (f.col("kind") == Kind.SNAPSHOT.value))
            last = moments.groupBy("source").agg(f.max(f.struct("time_ms", "cluster", "metric"))).collect()
            moment = {source: Moment(time_ms=at, cluster=name, digest=said) for source, (at, name, said) in last}
        counts: dict[int, dict[str, int]] = {}
        days: dict[int, dict[str, dict[str, DayRows]]] = {}
        for source, lane, cluster, day, rows, before, low, high in sums:
            per_lane = counts.setdefault(source, {})
            per_lane[lane] = per_lane.get(lane, 0) + rows
            if lane == Lane.ROW.value:
                digest = f"{high % (1 << 32):08x}{low % (1 << 32):08x}"
                made = DayRows(rows=rows, carried=before, digest=digest)
                days.setdefault(source, {}).setdefault(cluster, {})[day_of(day * DAY_MS)] = made
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

    def _set_aside(
        self, stream: "DataFrame | None", sources: Sequence[Source], *, bad_rows: bool
    ) -> tuple[tuple[str, int], ...]:
        """Write the rows that could not be read, file by file, and count the reasons."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - as above

        folder = self.root / SET_ASIDE
        for source in sources:
            (folder / _aside_name(source.path)).unlink(missing_ok=True)
        if stream is None or not bad_rows:
            return ()
        before: dict[tuple[int, int], int] = {}
        for source, first, lines in sorted(
            tuple(r)
            for r in stream.where(f.col("lane") == Lane.BLOCK.value).select("source", "time_ms", "line").collect()
        ):
            before[source, first] = before.get((source, -1), 0)
            before[source, -1] = before[source, first] + lines
        bad = stream.where(f.col("lane") == Lane.ASIDE.value)
        reasons: dict[str, int] = {}
        ordered = bad.orderBy("source", "time_ms", "line").select("source", "time_ms", "line", "rows", "text", "raw")
        for number, rows in groupby(ordered.toLocalIterator(), key=lambda row: int(row[0])):
            folder.mkdir(parents=True, exist_ok=True)
            path = sources[number].path
            unfinished = self.root / STAGING / _aside_name(path)
            with pq.ParquetWriter(unfinished, _ASIDE_SCHEMA, compression="zstd") as writer:
                waiting: list[dict[str, Any]] = []
                for _, first, line, count, reason, raw in rows:
                    at = line + before.get((number, first), 0) if line else 0
                    waiting.append({"file": path, "line": at, "rows": count, "reason": reason, "raw": bytes(raw)})
                    reasons[reason] = reasons.get(reason, 0) + count
                    if len(waiting) == _ASIDE_BATCH:
                        writer.write_table(pa.Table.from_pylist(waiting, schema=_ASIDE_SCHEMA))
                        waiting = []
                writer.write_table(pa.Table.from_pylist(waiting, schema=_ASIDE_SCHEMA))
            unfinished.replace(folder / unfinished.name)
        return tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))

    # --- second stage

    def _make(self, stream: "DataFrame | None", again: Sequence[Source], plan: Plan) -> list[DayManifest]:
        """Make the days of a plan."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - as above

        if not plan.make:
            return []
        parts = [part for part in (stream, self._parsed(again)) if part is not None]
        rows = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
        days = [(p.cluster, day_start_ms(p.day) // DAY_MS) for p in plan.make]
        tasks = [(*day, task) for task, day in enumerate(days)]
        wanted = self.session.spark.createDataFrame(tasks, "cluster string, day int, task int")
        ordered = (
            rows.where(f.col("lane").isin(Lane.ROW.value, Lane.HINT.value))
            .join(f.broadcast(wanted), ["cluster", "day"])
            .repartitionById(min(len(tasks), _MOST_TASKS), "task")
            .sortWithinPartitions(
                "cluster", "day", "lane", "time_ms", "broker", "kind", f.get("names", f.lit(0)), "source", "line"
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
                _take_hint(hint, row)
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


def _take_hint(hint: Hint, row: Mapping[str, Any]) -> None:
    into = hint.first_ms if row["kind"] == "bundles" else hint.lag_ms
    for name, value in zip(row["names"], row["times"], strict=True):
        into[name] = min(value, into.get(name, value))
    hint.late += row["rows"]
