"""What a history holds: days of clusters, and for each day a manifest and the moments that are not in it yet.

A history is a folder with `cluster=<name>/day=<yyyy-mm-dd>/` (UTC). What belongs to a day is

- the Parquet files that `manifest.json` names: one *run* of moments (`moments.parquet`, `brokers.parquet`, ...) where
  the day was ingested or generated, more where it is large (`moments-01.parquet`, ...), and one for every stretch of a
  watch (`moments-<stamp>.parquet`, ...);
- every snapshot folder `<stamp>/` whose moment is in no run: a watch adds each capture as one, and later compacts them
  into a run. Its own manifest makes it whole.

Files that neither names belong to nobody: a writer that was killed left them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.cluster.errors import FormatError, escaped
from planner.cluster.files import check_file, content_of_file, plain_file
from planner.cluster.units import DAY_MS
from planner.formats import folder as snapshot_folder
from planner.formats.encoding import digest_of, first_error, parse_json
from planner.formats.rows import MOMENTS

MANIFEST = "manifest.json"
"""Name of the file that describes the others of its day."""

LOCK = ".lock"
"""Name of the file, in the folder of a cluster, that its writers lock."""


FORMAT: Literal["pulsar-bundle-planner history"] = "pulsar-bundle-planner history"
"""Value of the field `format` of a day's manifest."""
_DAY = re.compile(r"day=([0-9]{4}-[0-9]{2}-[0-9]{2})")
_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{3}Z")
_CLUSTER = "cluster="
_EPOCH = date(1970, 1, 1)
_AGAIN = "Delete the folder of the day and ingest its raw files again."

_Count = Annotated[int, Field(ge=0)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Part(_Shape):
    """A file of a day.

    Attributes:
        rows: Its rows.
        sha256: SHA-256 of its bytes.
    """

    rows: _Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class SourceRows(_Shape):
    """What a raw file contributed to a day.

    Attributes:
        rows: Rows kept of it for this day.
        digest: Digest of those rows, whatever their order.
    """

    rows: _Count
    digest: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class RowCounts(_Shape):
    """What became of the raw rows of a day: kept = used + duplicate + outdated + not_placed.

    Attributes:
        kept: Rows of this day that could be read.
        used: Rows that went into the state of the cluster.
        duplicate: Rows that say again what another row said of the same moment.
        outdated: Rows that another row of the same moment and subject overrules.
        not_placed: Rows with nowhere to go, such as a topic with hash 0xffffffff, for which Pulsar has no bundle.
        carried: Rows of the day before that were read again to know the state at midnight; not among `kept`.
        late: Rows that stand in their file after later ones of the same broker; they count elsewhere as well.
        counter_resets: Counters that began anew, as after a restart or when a topic moved.
    """

    kept: _Count = 0
    used: _Count = 0
    duplicate: _Count = 0
    outdated: _Count = 0
    not_placed: _Count = 0
    carried: _Count = 0
    late: _Count = 0
    counter_resets: _Count = 0


class Gap(_Shape):
    """A time without data.

    Attributes:
        from_ms: Last moment with data before it, or the start of the day.
        to_ms: First moment with data after it, or the end of the day.
        broker: The broker that was silent; empty when all were.
    """

    from_ms: int
    to_ms: int
    broker: str = ""


class Sealed(BaseModel):
    """Something written as JSON with its own digest, so that rot in it shows.

    Attributes:
        digest: SHA-256 of everything else in it; empty where an earlier version wrote it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    digest: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.digest and self.digest != self._found():
            raise ValueError("its digest does not match its content")
        return self

    def _found(self) -> str:
        return digest_of(self.model_dump(mode="json"))

    def sealed(self) -> Self:
        """Return it with its digest."""
        return self.model_copy(update={"digest": self._found()})


class DayManifest(Sealed):
    """What a day holds.

    Attributes:
        format: Says what the file is.
        version: Version of the layout.
        cluster: Name of the cluster.
        day: `yyyy-mm-dd`, UTC.
        made_by: `generate`, `ingest` or `watch`: who began it.
        interval_ms: Time between moments where none is missing; 0 when they come as they were captured.
        moments: How many snapshots.
        first_ms: The first of them, ms since 1970.
        last_ms: The last of them.
        parts: Files of the day by name.
        sources: Raw files it was made from.
        base: The snapshot before this day that the layout, settings and policies started from; empty when none.
        rows: What became of the raw rows.
        gaps: Times without data; the first 1,000.
        clock_skew_ms: By how much the clock of a broker was ahead (negative: behind), where it was corrected.
        splits: How many times a range of bundles changed while it was followed.
        notes: What else there is to know, one sentence each.
    """

    model_config = ConfigDict(strict=True)

    format: Literal["pulsar-bundle-planner history"] = FORMAT
    version: Literal[1] = 1
    cluster: str
    day: Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    made_by: Literal["generate", "ingest", "watch"]
    interval_ms: _Count = 0
    moments: _Count = 0
    first_ms: int = 0
    last_ms: int = 0
    parts: dict[str, Part] = {}
    sources: dict[str, SourceRows] = {}
    base: str = ""
    rows: RowCounts = RowCounts()
    gaps: list[Gap] = []
    clock_skew_ms: dict[str, int] = {}
    splits: _Count = 0
    notes: list[str] = []

    @property
    def runs(self) -> tuple[str, ...]:
        """What tells the files of each run apart: `-<stamp>` in a run of a watch, else nothing, or its number."""
        names = (name.removesuffix(".parquet") for name in self.parts)
        return tuple(sorted(name.removeprefix(MOMENTS) for name in names if name.startswith(MOMENTS)))

    def rows_of(self, table: str) -> int:
        """Return how many rows a table (`brokers`, `bundles`, `topics`) has, over the moments of all runs."""
        names = [name for run in self.runs for t, name in self.files_of(run).items() if t == table]
        return sum(self.parts[name].rows for name in names)

    def files_of(self, run: str) -> dict[str, str]:
        """Return the files of a run, by the table that each holds."""
        tables = {name.removesuffix(f"{run}.parquet"): name for name in self.parts if name.endswith(f"{run}.parquet")}
        return {table: name for table, name in tables.items() if "-" not in table}


@dataclass(frozen=True, slots=True)
class DayFolder:
    """A day of a history.

    Attributes:
        path: Its folder.
        manifest: What it holds; number and bounds of the moments count those in segments, too.
        segments: Snapshot folders whose moment is in no run, by that moment.
        damage: Why nothing is known of it but its cluster and day; `read_day` says the same.
    """

    path: Path
    manifest: DayManifest
    segments: Mapping[int, Path] = field(default_factory=dict)
    damage: FormatError | None = None

    @property
    def is_watched(self) -> bool:
        """Whether a watch has added to it."""
        return bool(self.segments) or any(moment_of(run[1:]) for run in self.manifest.runs)

    def rows(self, table: str) -> int:
        """Return how many rows a table (`brokers`, `bundles`, `topics`) has, over all moments.

        Raises:
            FormatError: A segment is damaged.
        """
        total = self.manifest.rows_of(table)
        for segment in self.segments.values():
            try:
                total += pq.read_metadata(plain_file(segment / snapshot_folder.FILES[table])).num_rows
            except FileNotFoundError:
                continue  # it has no topics, or it was compacted meanwhile
            except (OSError, pa.ArrowException) as error:
                raise damaged(segment, error) from error
        return total


def day_of(time_ms: int) -> str:
    """Return the day, `yyyy-mm-dd` in UTC, of a moment."""
    return (_EPOCH + timedelta(days=time_ms // DAY_MS)).isoformat()


def day_start_ms(day: str) -> int:
    """Return the first ms since 1970 of a day.

    Raises:
        FormatError: It is no `yyyy-mm-dd`.
    """
    try:
        return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000
    except ValueError as error:
        raise FormatError("This is not a valid day.", where=day[:40], remedy="Write it as 2027-01-15.") from error


def day_folder(root: Path, cluster: str, day: str) -> Path:
    """Return where a day of a cluster lies in a history."""
    return root / f"{_CLUSTER}{quote(cluster, safe='')}" / f"day={day}"


def cluster_of_folder(folder: Path) -> str:
    """Return the cluster whose days a folder of a history holds."""
    return unquote(escaped(folder.name).removeprefix(_CLUSTER))


def stamp_of(time_ms: int) -> str:
    """Return a moment, ms since 1970, as the name of its folder."""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{time_ms % 1000:03d}Z"


def moment_of(name: str) -> int:
    """Return the moment that a stamp tells, ms since 1970; 0 when it is none."""
    if not _STAMP.fullmatch(name):
        return 0
    try:
        moment = datetime.strptime(name, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return round(moment.timestamp() * 1000)


def is_day_folder(path: Path) -> bool:
    """Whether a path is named as a day of a history is."""
    return bool(_DAY.fullmatch(path.name)) and path.parent.name.startswith(_CLUSTER)


def damaged(folder: Path, error: Exception) -> FormatError:
    """Return what to say of a day, or of a segment of one, that cannot be read."""
    reason = (str(error).splitlines() or ["?"])[0][:200].rstrip(".")
    return FormatError(
        f"The day cannot be read: {reason}.",
        where=f"{folder.parent.name}/{folder.name}",
        remedy=_remedy(folder),
    )


def _remedy(folder: Path) -> str:
    """Return what to do about a damaged day; what a watch saw lies nowhere else."""
    if moment_of(folder.name):
        return "Delete only this folder. It holds one moment; the other moments of the day stay."
    if any(moment_of(path.stem.partition("-")[2]) for path in folder.glob("*-*.parquet")):
        return (
            "Restore a copy of that file. It was watched, and there is no other source for it. Other days "
            "are not affected."
        )
    return _AGAIN


def check_parts(folder: Path, manifest: DayManifest, names: Iterable[str]) -> None:
    """See that files of a day are what its manifest says; a file that does not change is read once in a process.

    Raises:
        FormatError: One is missing or changed.
    """
    try:
        for name in names:
            check_file(folder / name, manifest.parts[name].sha256)
    except (OSError, KeyError) as error:
        raise damaged(folder, error) from error


def read_manifest(folder: Path) -> DayManifest:
    """Read the manifest of a day.

    Raises:
        FormatError: There is none, or it is no manifest of a day of history.
    """
    manifest = _manifest(folder)
    if manifest is None:
        raise FormatError("There is no such file.", where=_where(folder), remedy="Use a complete day of a history.")
    return manifest


def _where(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}/{MANIFEST}"


def _manifest(folder: Path) -> DayManifest | None:
    """Return the manifest of a day; None when there is none."""
    try:
        return DayManifest.model_validate(parse_json(content_of_file(folder / MANIFEST), _where(folder)))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FormatError(
            f"It cannot be read: {error.strerror}.", where=_where(folder), remedy="Use a complete day of a history."
        ) from error
    except (FormatError, ValidationError) as error:
        reason = first_error(error, MANIFEST) if isinstance(error, ValidationError) else error
        raise FormatError(
            f"The manifest is damaged: {reason.what}", where=reason.where, remedy=_remedy(folder)
        ) from error


def segments_of(folder: Path) -> dict[int, Path]:
    """Return the snapshot folders of a day by their moment, in the order of time.

    Raises:
        OSError: The folder cannot be read.
    """
    found = {moment_of(path.name): path for path in sorted(folder.iterdir())}
    return {time_ms: path for time_ms, path in found.items() if time_ms and os.path.lexists(path / MANIFEST)}


def times_of_run(folder: Path, manifest: DayManifest, run: str) -> list[int]:
    """Return the moments of a run, in the order of time.

    Raises:
        FormatError: It is damaged, or gone.
    """
    name = f"{MOMENTS}{run}.parquet"
    check_parts(folder, manifest, [name])
    try:
        times: list[int] = pq.read_table(folder / name, columns=["time_ms"])["time_ms"].to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise damaged(folder, error) from error
    return times


def open_day(folder: Path) -> DayFolder | None:
    """Return what a day holds now; None when there is nothing whole in it.

    Segments are looked for before the manifest is read, so that what a watch compacts meanwhile is in one or the other.

    Raises:
        FormatError: The manifest or a run is damaged.
        OSError: The folder cannot be read.
    """
    found = segments_of(folder)
    manifest = _manifest(folder)
    if manifest is None and not found:
        return None
    if manifest is None:
        manifest = _bare(folder)
    if not found:
        return DayFolder(folder, manifest)
    try:
        known = {time_ms for run in manifest.runs for time_ms in times_of_run(folder, manifest, run)}
    except FormatError:
        if _manifest(folder) != manifest:  # the run went meanwhile, to make room
            return open_day(folder)
        raise
    segments = {time_ms: path for time_ms, path in found.items() if time_ms not in known}
    times = [*known, *segments]
    bounds = {"moments": len(times), "first_ms": min(times), "last_ms": max(times)}
    return DayFolder(folder, manifest.model_copy(update=bounds), segments)


def _bare(folder: Path) -> DayManifest:
    """Return what the name of a day says of it."""
    day = folder.name.removeprefix("day=")
    return DayManifest(cluster=cluster_of_folder(folder.parent), day=day, made_by="watch")


def complete_days(
    root: Path, cluster: str | None = None, first_day: str = "", last_day: str = "9"
) -> Iterator[DayFolder]:
    """Yield the days of a history, or of one cluster, that hold a moment; one under way has those there are so far.

    A day that is damaged comes with its damage, so that whoever needs no other days than that one fails alone.

    Args:
        root: The history.
        cluster: The only cluster wanted.
        first_day: The first day wanted, `yyyy-mm-dd`; manifests of others are not opened.
        last_day: The last one.

    Raises:
        FormatError: There is no such folder, or it cannot be read.
    """
    if not root.is_dir():
        raise FormatError("There is no such folder.", where=str(root), remedy="Use the folder of a history.")
    for parent in sorted(root.glob(f"{_CLUSTER}*")):
        if cluster is not None and cluster_of_folder(parent) != cluster:
            continue
        for folder in sorted(parent.glob("day=*")):
            if not first_day <= folder.name.removeprefix("day=") <= last_day:
                continue
            try:
                day = open_day(folder) if is_day_folder(folder) and folder.is_dir() else None
            except OSError as error:
                day = DayFolder(folder, _bare(folder), damage=damaged(folder, error))
            except FormatError as error:
                day = DayFolder(folder, _bare(folder), damage=error)
            if day is not None:
                yield day
