"""The ledger of a history: which raw files it was made from, and what became of their rows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.cluster.errors import FormatError, ReplayError
from planner.cluster.files import PRIVATE, content_of_file, only_writer, write_whole
from planner.formats.encoding import first_error, parse_json
from planner.history.day_writer import STAGING, writing_history
from planner.history.manifest import Sealed, SourceRows
from planner.history.sources import SourceKind

LEDGER = "ledger.json"
"""Name of the file."""

_Count = Annotated[int, Field(ge=0)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DayRows(SourceRows):
    """What a file contributes to a day.

    Attributes:
        carried: Rows of the day before that matter to this one; not among `rows`.
    """

    carried: _Count = 0


class Moment(_Shape):
    """The snapshot that a file is.

    Attributes:
        cluster: Its cluster.
        time_ms: Its moment, ms since 1970.
        digest: Digest of its content.
    """

    cluster: str
    time_ms: int
    digest: str


class SourceEntry(_Shape):
    """A raw file.

    Attributes:
        kind: What it was taken for.
        size: Its bytes when it was read.
        changed_ns: When it was last changed, ns since 1970.
        cluster: Cluster that was assumed where its rows do not give one.
        read: Rows read: kept + set aside.
        kept: Rows that went into days.
        set_aside: Rows that could not be read.
        days: What it contributes, by cluster and day.
        moment: The snapshot it is, when it is one.
    """

    kind: SourceKind
    size: _Count
    changed_ns: int
    cluster: str
    read: _Count
    kept: _Count
    set_aside: _Count
    days: dict[str, dict[str, DayRows]] = {}
    moment: Moment | None = None


class Ledger(Sealed):
    """All raw files of a history.

    Attributes:
        sources: By path.
        settings: How raw rows were made history: interval and validity in ms; other ones make every day anew.
    """

    format: str = "pulsar-bundle-planner ledger"
    version: int = 1
    settings: dict[str, int] = Field(default_factory=dict)
    sources: dict[str, SourceEntry] = Field(default_factory=dict)


def read_ledger(root: Path) -> Ledger:
    """Read the ledger of a history; an empty one when there is none.

    Raises:
        ReplayError: It is damaged.
    """
    path = root / LEDGER
    try:
        return Ledger.model_validate(parse_json(content_of_file(path), LEDGER))
    except FileNotFoundError:
        return Ledger()
    except (FormatError, OSError, ValidationError) as error:
        reason = first_error(error, LEDGER) if isinstance(error, ValidationError) else error
        raise ReplayError(
            f"The ledger is damaged: {f'{reason.strerror}.' if isinstance(reason, OSError) else reason.what}",
            where=str(path),
            remedy="Delete it. The raw files are then read again, and unchanged days stay.",
        ) from error


def write_ledger(root: Path, ledger: Ledger) -> None:
    """Write the ledger in place of the one that is there, at once.

    Raises:
        ReplayError: The disk does not take it.
    """
    with writing_history(root):
        write_whole(root / LEDGER, json.dumps(ledger.sealed().model_dump(mode="json"), ensure_ascii=False) + "\n")


@contextmanager
def only_ingest(root: Path) -> Iterator[None]:
    """Keep other processes from ingesting into the same history meanwhile; a process that dies lets go.

    Raises:
        ReplayError: Another one is at it, or the folder cannot be written.
    """
    with writing_history(root):
        (root / STAGING).mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    with only_writer(root / STAGING / "lock", wait=False) as alone:
        if not alone:
            raise ReplayError(
                "Another process is ingesting into this history.", where=str(root), remedy="Wait until it has finished."
            )
        yield
