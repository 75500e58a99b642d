"""The manifest of a day of history: it comes last, and a day without it does not exist.

A history is a folder with `cluster=<name>/day=<yyyy-mm-dd>/`, one for each complete day of each cluster (UTC).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.cluster.errors import FormatError
from planner.formats.encoding import first_error, parse_json

MANIFEST = "manifest.json"
"""Name of the file that describes the others of its day."""

DAY_MS = 86_400_000
"""Milliseconds of a day."""

_FORMAT: Literal["pulsar-bundle-planner history"] = "pulsar-bundle-planner history"
_DAY = re.compile(r"day=([0-9]{4}-[0-9]{2}-[0-9]{2})")
_CLUSTER = "cluster="
_EPOCH = date(1970, 1, 1)

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


class DayManifest(_Shape):
    """What a day holds.

    Attributes:
        format: Says what the file is.
        version: Version of the layout.
        cluster: Name of the cluster.
        day: `yyyy-mm-dd`, UTC.
        made_by: `generate` or `ingest`.
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

    format: Literal["pulsar-bundle-planner history"] = _FORMAT
    version: Literal[1] = 1
    cluster: str
    day: Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    made_by: Literal["generate", "ingest"]
    interval_ms: _Count
    moments: _Count
    first_ms: int
    last_ms: int
    parts: dict[str, Part]
    sources: dict[str, SourceRows] = {}
    base: str = ""
    rows: RowCounts = RowCounts()
    gaps: list[Gap] = []
    clock_skew_ms: dict[str, int] = {}
    splits: _Count = 0
    notes: list[str] = []


@dataclass(frozen=True, slots=True)
class DayFolder:
    """A complete day of a history.

    Attributes:
        path: Its folder.
        manifest: What it holds.
    """

    path: Path
    manifest: DayManifest


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
        raise FormatError(f"'{day[:40]}' is no day.", remedy="Write it as 2027-01-15.") from error


def day_folder(root: Path, cluster: str, day: str) -> Path:
    """Return where a day of a cluster lies in a history."""
    return root / f"{_CLUSTER}{quote(cluster, safe='')}" / f"day={day}"


def read_manifest(folder: Path) -> DayManifest:
    """Read the manifest of a day.

    Raises:
        FormatError: There is none, or it is no manifest of a day of history.
    """
    path = folder / MANIFEST
    where = f"{folder.parent.name}/{folder.name}/{MANIFEST}"
    try:
        value = parse_json(path.read_bytes(), where)
        return DayManifest.model_validate(value)
    except OSError as error:
        raise FormatError(
            f"It cannot be read: {error.strerror}.", where=where, remedy="Give a complete day of a history."
        ) from error
    except ValidationError as error:
        raise first_error(error, where) from error


def complete_days(root: Path, cluster: str | None = None) -> Iterator[DayFolder]:
    """Yield the complete days of a history, by cluster and day.

    Args:
        root: The history.
        cluster: Only the days of this one.

    Raises:
        FormatError: There is no such folder, or a manifest is damaged.
    """
    if not root.is_dir():
        raise FormatError("There is no such folder.", where=str(root), remedy="Give the folder of a history.")
    for parent in sorted(root.glob(f"{_CLUSTER}*")):
        if cluster is not None and unquote(parent.name.removeprefix(_CLUSTER)) != cluster:
            continue
        for folder in sorted(parent.glob("day=*")):
            if _DAY.fullmatch(folder.name) and (folder / MANIFEST).is_file():
                yield DayFolder(folder, read_manifest(folder))
