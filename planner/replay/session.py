"""Spark sessions: a local one that needs no set-up, or one on a cluster that exists.

`SPARK_REMOTE` (`sc://host:port`) names a Spark Connect server, which needs no Java here; `PLANNER_SPARK_MASTER` names a
master: `spark://host:7077`, `yarn`, `k8s://https://host:6443`. Without either, Spark runs on this machine.
"""

import os
import re
import socket
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from planner.model.errors import ReplayError
from planner.replay.java import JavaRuntime, find_java
from planner.replay.runners import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OpenSession", "SparkPlace", "check_workers", "local_session", "open_session", "package_code", "spark_place"]

_REMOTE: Final = "SPARK_REMOTE"
_MASTER: Final = "PLANNER_SPARK_MASTER"
_CONNECT_PORT: Final = 15_002
_MASTER_PORT: Final = 7_077
_PATIENCE_S: Final = 5.0
_WORKERS_S: Final = 60.0
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def local_session(name: str, cores: int | None = None, java: JavaRuntime | None = None) -> "SparkSession":
    """Start Spark in this process, on the loopback address alone.

    Args:
        name: What Spark calls the application.
        cores: How many cores it may use; all by default.
        java: The Java to run on; the one found on this machine by default.

    Raises:
        ReplayError: There is no Java, or Spark does not start.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return _start(f"local[{cores or '*'}]", name, java or find_java(), {"spark.driver.bindAddress": "127.0.0.1"})


def _start(master: str, name: str, runtime: JavaRuntime, more: dict[str, str]) -> "SparkSession":
    os.environ["JAVA_HOME"] = str(runtime.home)
    remote = os.environ.pop(_REMOTE, None)  # Spark refuses a master where a server is named as well
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes a second to import

    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **more,
    }
    if _is_loopback(master):
        options["spark.driver.host"] = "127.0.0.1"
    try:
        builder = SparkSession.builder.master(master).appName(name)
        for key, value in options.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except Exception as error:
        reason = first_line(error)
        where = "" if master.startswith("local") else f" with the master {master}"
        raise ReplayError(
            f"Spark does not start on {runtime.source} (Java {runtime.version}){where}: {reason}.",
            remedy="Set JAVA_HOME to a Java 17 or newer." if not where else f"Correct {_MASTER}, and see the log.",
        ) from error
    finally:
        if remote is not None:
            os.environ[_REMOTE] = remote


def _is_loopback(master: str) -> bool:
    return master.startswith("local") or any(f"//{host}:" in master for host in _LOOPBACK)


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """Where Spark runs.

    Attributes:
        kind: Which way it is reached.
        address: Its address, which may hold a token; empty for this machine.
    """

    kind: Literal["local", "connect", "master"]
    address: str = ""

    @property
    def in_words(self) -> str:
        """Where that is, without secrets."""
        if self.kind == "local":
            return "Spark on this machine"
        shown = re.sub(r"//[^/@]*@", "//", self.address.partition("/;")[0])
        return f"Spark Connect at {shown}" if self.kind == "connect" else f"Spark, master {shown}"


def spark_place() -> SparkPlace:
    """Return where Spark jobs run, as the environment says."""
    remote, master = os.environ.get(_REMOTE, "").strip(), os.environ.get(_MASTER, "").strip()
    if remote:
        return SparkPlace("connect", remote)
    return SparkPlace("master", master) if master else SparkPlace("local")


def package_code(folder: Path) -> Path:
    """Write this package as a zip that Spark gives to workers that do not have it.

    Args:
        folder: Where to.

    Returns:
        The file.
    """
    root = Path(__file__).resolve().parents[1]
    target = folder / "planner-code.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*.py")):
            entry = zipfile.ZipInfo(path.relative_to(root.parent).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return target


def _answers(address: str, default_port: int) -> bool:
    """Tell whether somebody listens at one of the hosts of `scheme://host:port,host:port/...`."""
    hosts = address.partition("://")[2].partition("/")[0].rpartition("@")[2]
    for one in hosts.split(","):
        host, _, port = one.rpartition(":") if re.search(r":[0-9]+$", one) else (one, "", "")
        with (
            suppress(OSError),
            socket.create_connection((host.strip("[]"), int(port or default_port)), timeout=_PATIENCE_S),
        ):
            return True
    return False


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that tasks can be run on.

    Attributes:
        spark: The session.
        place: Where it runs.
        parallel: Tasks that it can run at once.
    """

    spark: "SparkSession"
    place: SparkPlace
    parallel: int

    def cancel(self) -> None:
        """Stop everything that runs."""
        with suppress(Exception):
            if self.place.kind == "connect":
                self.spark.interruptAll()
            else:
                self.spark.sparkContext.cancelAllJobs()

    def ended_in_stages(self) -> int:
        """Return how many tasks have ended in stages that still run; 0 where Spark does not say."""
        if self.place.kind == "connect":
            return 0
        with suppress(Exception):
            tracker = self.spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            return sum(stage.numCompletedTasks for stage in stages if stage is not None)
        return 0


@contextmanager
def open_session(name: str, folder: Path, cores: int = 0) -> Iterator[OpenSession]:
    """Open the session that the environment asks for, and close it at the end.

    Args:
        name: What Spark calls the application.
        folder: Where the packaged code may lie.
        cores: Cores of this machine to use where Spark runs here; 0 for all.

    Raises:
        ReplayError: Nobody answers, or Spark does not start.
    """
    place = spark_place()
    if place.kind == "local":
        spark = local_session(name, cores or None)
    elif place.kind == "connect":
        spark = _connect(place, name, folder)
    else:
        spark = _cluster(place, name, folder)
    try:
        yield OpenSession(spark, place, _parallel(spark))
    finally:
        with suppress(Exception):
            spark.stop()


def _connect(place: SparkPlace, name: str, folder: Path) -> "SparkSession":
    if not _answers(place.address, _CONNECT_PORT):
        raise ReplayError(
            f"Nobody answers: {place.in_words}.", remedy=f"Start the Spark Connect server, or correct {_REMOTE}."
        )
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes a second to import

    try:
        builder: Any = SparkSession.builder.remote(place.address)
        spark: SparkSession = builder.appName(name).create()
        spark.addArtifact(str(package_code(folder)), pyfile=True)
    except Exception as error:
        reason = first_line(error)
        raise ReplayError(
            f"The Spark Connect server refuses: {reason}.",
            where=place.in_words,
            remedy=f"See that it runs Spark 4, and that {_REMOTE} has the token that it asks for.",
        ) from error
    return spark


def _cluster(place: SparkPlace, name: str, folder: Path) -> "SparkSession":
    if place.address.startswith("spark://") and not _answers(place.address, _MASTER_PORT):
        raise ReplayError(f"Nobody answers: {place.in_words}.", remedy=f"Start the Spark master, or correct {_MASTER}.")
    if _is_loopback(place.address):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = _start(place.address, name, find_java(), {})
    spark.sparkContext.addPyFile(str(package_code(folder)))
    _wait_for_workers(spark, place)
    return spark


def _wait_for_workers(spark: "SparkSession", place: SparkPlace) -> None:
    """Wait until a worker has joined; without any, Spark would wait for ever."""
    until = time.monotonic() + _WORKERS_S
    while len(spark.sparkContext.statusTracker().getExecutorInfos()) <= 1:  # the driver is one
        if time.monotonic() > until:
            spark.stop()
            raise ReplayError(
                f"No worker came within {_WORKERS_S:.0f} s: {place.in_words}.",
                remedy="Start workers, or free cores and memory there (see spark.executor.memory).",
            )
        time.sleep(0.2)


def _parallel(spark: "SparkSession") -> int:
    """Return how many tasks Spark can run at once, which is the number of partitions that it makes unasked."""
    from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415 - see above

    try:
        return max(spark.range(100_000).select(spark_partition_id().alias("p")).distinct().count(), 1)
    except Exception as error:
        reason = first_line(error)
        raise ReplayError(f"Spark runs nothing: {reason}.", remedy="See the log, then retry.") from error


def check_workers(session: OpenSession, history: str) -> None:
    """See that the workers of a cluster have what a replay needs.

    Args:
        session: Where tasks are going to run.
        history: Root folder of the history, which they must see under this path.

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
