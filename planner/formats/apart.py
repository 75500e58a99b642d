"""Reads an upload in a process of its own, with limits of memory and time, so that no file can harm the server.

The process checks everything and hands back tables in Arrow's own form; nothing it sends is run. Started as
`python -m planner.formats.apart NAME FOLDER BYTES SECONDS` with the upload on standard input.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from planner.cluster.errors import FormatError, PlannerError, SnapshotError, Violation
from planner.cluster.files import writing
from planner.cluster.resources import import_root
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import GIB, MIB
from planner.formats.encoding import head_to_json, read_head
from planner.formats.reading import TOO_LARGE, note_on, read_upload
from planner.formats.rows import snapshot_of_tables, table_to_arrow

MOST_BYTES = GIB
"""Memory that reading an upload may take."""

MOST_CPU_S = 8
"""Processor time that it may take."""

_PATIENCE_S = 30
_AT_ONCE = threading.Semaphore(2)
_ANSWER, _NOTE = "answer.json", "note"


def read_apart(file_name: str, data: BinaryIO) -> tuple[Snapshot, str]:
    """Read and validate an uploaded file as `read_upload` does, in a process of its own.

    Returns:
        The snapshot, and the note on it where it is one of several; empty where it is not.

    Raises:
        FormatError: As `read_upload`; or it takes more memory or time than there is for it.
        SnapshotError: The content is not a cluster.
    """
    with answered(__name__, file_name, data, MOST_BYTES, MOST_CPU_S, _PATIENCE_S) as (folder, answer):
        return snapshot_of_answer(answer, folder, file_name), answer[_NOTE]


@contextmanager
def answered(
    module: str, file_name: str, data: BinaryIO, most_bytes: int, most_cpu_s: int, patience_s: float
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Run a module of the planner over an upload in a process of its own, and give its folder and its answer.

    The module is run with name, folder, bytes and seconds as arguments and the upload on standard input.

    Args:
        module: Its name.
        file_name: What the person calls the upload.
        data: Its content, seekable.
        most_bytes: Memory that it may take.
        most_cpu_s: Processor time that it may take.
        patience_s: Time that it may take.

    Raises:
        FormatError: It takes more than there is, or answered with an error.
        SnapshotError: It answered that the content is not a cluster.
    """
    name = file_name[:120].replace("\0", "")
    command = [sys.executable, "-m", module, name]
    room = writing(
        name, FormatError, "Free some disk space on the server.", what="The file cannot be kept while it is read"
    )
    with _AT_ONCE, room, tempfile.TemporaryFile() as given, tempfile.TemporaryDirectory() as folder:
        data.seek(0)
        shutil.copyfileobj(data, given, MIB)
        given.seek(0)
        try:
            ended = subprocess.run(  # noqa: S603 - our own module
                [*command, folder, str(most_bytes), str(most_cpu_s)],
                stdin=given,
                stdout=subprocess.DEVNULL,
                env=_environment(),
                cwd=folder,
                timeout=patience_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = -signal.SIGXCPU
        if ended:
            raise FormatError(_why(ended, most_bytes, most_cpu_s), where=name, remedy=TOO_LARGE)
        answer = json.loads((Path(folder) / _ANSWER).read_bytes())
        if "error" in answer:
            raise _error_from_json(answer["error"])
        yield Path(folder), answer


def _why(ended: int, most_bytes: int, most_cpu_s: int) -> str:
    if ended == -signal.SIGXCPU:
        return f"The file takes more than {most_cpu_s} s to read."
    if ended < 0:
        return f"The file needs more than {most_bytes >> 20:,} MiB of memory to read."
    return "The file cannot be read. See the log of the server for the reason."


def _environment() -> dict[str, str]:
    """Return what the process needs to know: neither tokens nor more threads, each of which takes memory."""
    known = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    return {**known, **alone, "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONPATH": str(import_root())}


def snapshot_of_answer(answer: Mapping[str, Any], folder: Path, file_name: str) -> Snapshot:
    """Return the snapshot that a process left in a folder (see `leave_snapshot`)."""
    tables = {}
    for part in answer["parts"]:
        with pa.memory_map(str(folder / part)) as source:
            tables[part] = pa.ipc.open_file(source).read_all()
    return snapshot_of_tables(read_head(answer, file_name), tables)


def leave_snapshot(snapshot: Snapshot, folder: Path) -> dict[str, Any]:
    """Leave the tables of a snapshot in a folder, and return the rest of it for the answer."""
    tables = {part: table_to_arrow(snapshot, part, hashes=True) for part in ("brokers", "bundles", "topics")}
    for part, table in tables.items():
        with pa.OSFile(str(folder / part), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return {**head_to_json(snapshot), "parts": [part for part, table in tables.items() if table.num_rows]}


def _error_to_json(error: PlannerError) -> dict[str, Any]:
    if isinstance(error, SnapshotError):
        return {"violations": list(map(asdict, error.violations)), "total": error.total}
    return {"what": error.what, "where": error.where, "remedy": error.remedy}


def _error_from_json(fields: dict[str, Any]) -> PlannerError:
    if "violations" in fields:
        return SnapshotError([Violation(**one) for one in fields["violations"]], fields["total"])
    return FormatError(**fields)


class _NoPandas(MetaPathFinder):
    """Hides pandas from Arrow, which would load it for no use; that takes a second."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def answer_within(folder: Path, most_bytes: int, most_cpu_s: int, work: Callable[[], dict[str, Any]]) -> None:
    """Do something within limits, and leave its answer, or an error, in a folder."""
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (most_cpu_s, most_cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pa.set_cpu_count(2)
    try:
        answer = work()
    except PlannerError as error:
        answer = {"error": _error_to_json(error)}
    (folder / _ANSWER).write_text(json.dumps(answer), encoding="utf-8")


def without_pandas() -> None:
    """Hide pandas from Arrow in this process."""
    sys.meta_path.insert(0, _NoPandas())


def main(file_name: str, folder: Path, most_bytes: int, most_cpu_s: int) -> None:
    """Read standard input within the limits, and leave tables or an error in a folder."""

    def work() -> dict[str, Any]:
        answer = leave_snapshot(read_upload(file_name, sys.stdin.buffer, trusted=True), folder)
        return {**answer, _NOTE: note_on(sys.stdin.buffer, file_name)}

    answer_within(folder, most_bytes, most_cpu_s, work)


if __name__ == "__main__":
    without_pandas()
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
