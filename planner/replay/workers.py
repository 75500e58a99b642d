"""What the workers of a cluster need before a replay runs on them."""

from collections.abc import Iterator
from typing import Any

from planner.cluster.errors import ReplayError
from planner.spark.session import OpenSession, first_line


def check_workers(session: OpenSession, history: str) -> None:
    """See that the workers of a cluster have what a replay needs, and see the history's folder under the same path.

    Raises:
        ReplayError: They do not; it says what is missing on which worker.
    """

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        import os  # noqa: PLC0415 - this runs in a worker
        import socket  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for _ in batches:
            problem = ""
            try:
                import planner.replay.kernel  # noqa: F401, PLC0415
            except ImportError as error:
                problem = f"lacks a Python package: {error}"
            if not os.path.isdir(history):  # noqa: PTH112 - what a worker has least trouble with
                problem = problem or f"does not see the folder {history}"
            yield pa.RecordBatch.from_pylist([{"host": socket.gethostname(), "problem": problem}])

    try:
        numbers = session.spark.range(0, session.parallel * 2, 1, session.parallel * 2)
        found = numbers.mapInArrow(look, "host string, problem string").toArrow().to_pylist()
    except Exception as error:
        raise ReplayError(
            f"The workers cannot run Python: {first_line(error)}.",
            where=session.place.in_words,
            remedy="Give them the Python of this server and its packages, and say where it is with PYSPARK_PYTHON.",
        ) from error
    bad = next((row for row in found if row["problem"]), None)
    if bad is not None:
        raise ReplayError(
            f"The worker {bad['host']} {bad['problem']}.",
            where=session.place.in_words,
            remedy="Workers need numpy, pyarrow and pydantic, and the history on storage they share, under one path.",
        )
