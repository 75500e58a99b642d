"""Reads uploaded or pasted outputs in a process of its own, with limits of memory and time.

See `planner.formats.apart`. Several files go to the process as one zip.
"""

import io
import json
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from planner.cluster.units import GIB
from planner.doors.pieces import Configuration, Source
from planner.doors.read import Given, read_given
from planner.doors.reading import Missing, Reading
from planner.formats.apart import answer_within, answered, leave_snapshot, snapshot_of_answer, without_pandas
from planner.formats.archive import members_of_zip

MOST_BYTES = 3 * GIB // 2
"""Memory that reading outputs may take."""

MOST_CPU_S = 60
"""Processor time that it may take."""

_PATIENCE_S = 120
_ASKED = "asked.json"
_TEXTS = ("found", "assumed", "contradictions", "not_used", "expected")


def read_outputs_apart(
    files: Sequence[Given], *, cluster: str = "", broker_names: Sequence[str] = (), now_ms: int = 0
) -> Reading:
    """Read files as `planner.doors.read.read_given` does, in a process of its own.

    Raises:
        FormatError: As `read_given`; or it takes more memory or time than there is for it.
        SnapshotError: They are not one cluster.
    """
    sent = io.BytesIO()
    names = [one.name for one in files]
    asked = {"names": names, "cluster": cluster, "broker_names": [*broker_names], "now_ms": now_ms}
    with zipfile.ZipFile(sent, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_ASKED, json.dumps(asked))
        for at, one in enumerate(files):
            one.data.seek(0)
            archive.writestr(str(at), one.data.read())
    called = names[0] if len(names) == 1 else f"{len(names)} files"
    with answered(__name__, called, sent, MOST_BYTES, MOST_CPU_S, _PATIENCE_S) as (folder, answer):
        snapshot = snapshot_of_answer(answer["snapshot"], folder, called) if answer["snapshot"] else None
    return Reading(
        snapshot,
        missing=tuple(Missing(**one) for one in answer["missing"]),
        configurations=tuple(_configuration(one) for one in answer["configurations"]),
        not_enough=answer["not_enough"],
        **{name: tuple(answer[name]) for name in _TEXTS},
    )


def _configuration(fields: dict[str, Any]) -> Configuration:
    return Configuration(
        **{
            **fields,
            "source": Source(**fields["source"]),
            "foreign": tuple(fields["foreign"]),
            "repeated": tuple(fields["repeated"]),
            "unprefixed": tuple(fields["unprefixed"]),
            "releases": tuple(fields["releases"]),
        }
    )


def _work(folder: Path) -> dict[str, Any]:
    members = dict(members_of_zip(io.BytesIO(sys.stdin.buffer.read()), "upload"))
    asked = json.loads(members.pop(_ASKED))
    # Each is let go when it is read.
    files = (Given(name, io.BytesIO(members.pop(str(at)))) for at, name in enumerate(asked["names"]))
    options = {name: asked[name] for name in ("cluster", "broker_names", "now_ms")}
    reading = read_given(files, **options)
    return {
        "snapshot": None if reading.snapshot is None else leave_snapshot(reading.snapshot, folder),
        "missing": [asdict(one) for one in reading.missing],
        "configurations": [asdict(one) for one in reading.configurations],
        "not_enough": reading.not_enough,
        **{name: list(getattr(reading, name)) for name in _TEXTS},
    }


def main(folder: Path, most_bytes: int, most_cpu_s: int) -> None:
    """Read standard input within the limits, and leave a reading or an error in a folder."""
    answer_within(folder, most_bytes, most_cpu_s, lambda: _work(folder))


if __name__ == "__main__":
    without_pandas()
    main(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
