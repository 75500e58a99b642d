"""Spark sessions: a local one that needs no set-up, or one on a cluster that exists.

`SPARK_REMOTE` (`sc://host:port`) names a Spark Connect server, which needs no Java here; `PLANNER_SPARK_MASTER` names a
master: `spark://host:7077`, `yarn`, `k8s://https://host:6443`. Without either, Spark runs on this machine. PySpark
starts a master's application with `spark-submit` in client mode: its options are those of `PYSPARK_SUBMIT_ARGS` and of
`spark-defaults.conf`. `PLANNER_SPARK_WAIT_S` says how long to wait for workers (60).
"""

import os
import re
import socket
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Literal

from planner.cluster.errors import ReplayError
from planner.spark.java import JavaRuntime, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_REMOTE: Final = "SPARK_REMOTE"
_MASTER: Final = "PLANNER_SPARK_MASTER"
_CONNECT_PORT: Final = 15_002
_MASTER_PORT: Final = 7_077
_PATIENCE_S: Final = 5.0
_WORKERS_S: Final = 60.0
_WAIT: Final = "PLANNER_SPARK_WAIT_S"
_KUBERNETES: Final = "k8s://"
_KUBERNETES_PORT: Final = 443
_ATTEMPTS: Final = 4
"""Attempts of local Spark at a task whose Python was killed; on a cluster, `spark.task.maxFailures`."""
_LIGHT: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""Java only hands work to Python and lives for minutes: compiling its code well costs more than it ever brings back."""
_STARTED_ANEW: Final = ("SESSION_NOT_FOUND", "SESSION_CHANGED", "SESSION_CLOSED", "NO_ACTIVE_SESSION")
"""Messages of Spark Connect about a session that the server has forgotten, or that PySpark closed for this reason."""

_LOOK_S: Final = 2.0
_SAY_S: Final = 15.0
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def local_session(name: str, cores: int | None = None, java: JavaRuntime | None = None) -> "SparkSession":
    """Start Spark here, on the loopback address alone; by default on all cores and the Java that is found.

    A shuffle has as many parts as there are cores.

    Raises:
        ReplayError: There is no Java, or Spark does not start.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    more = {
        "spark.driver.bindAddress": "127.0.0.1",
        **_LIGHT,
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 1),
    }
    return _start(f"local[{cores or '*'},{_ATTEMPTS}]", name, java or find_java(), more)


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
            remedy="Set JAVA_HOME to a Java 17 or newer." if not where else f"Correct {_MASTER}, and check the log.",
        ) from error
    finally:
        if remote is not None:
            os.environ[_REMOTE] = remote


def _is_loopback(master: str) -> bool:
    """Tell whether workers are on this machine; those of a Kubernetes proxy here are not."""
    return master.startswith("local") or any(master.startswith(f"spark://{host}:") for host in _LOOPBACK)


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


def _code() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files of this package, code and tables."""
    root = resources.files(__package__.partition(".")[0])
    folders = [("planner", root)]
    while folders:
        name, folder = folders.pop()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            inside = f"{name}/{entry.name}"
            if entry.is_dir():
                folders.append((inside, entry))
            elif entry.name.endswith((".py", ".csv")):
                yield inside, entry.read_bytes()


@cache
def code_digest() -> str:
    """Return a digest of the code of this package, wherever it lies; the same only for the same version."""
    digest = sha256()
    for name, content in sorted(_code()):
        digest.update(f"{name} {sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def package_code(folder: Path) -> Path:
    """Write this package, code and tables, as a zip in a folder; Spark gives it to workers that do not have it.

    Returns:
        The file.
    """
    target = folder / "planner-code.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(_code()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
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
        parallel: Tasks that it could run at once when it was opened, or was told to.
        fixed: Whether it was told to.
    """

    spark: "SparkSession"
    place: SparkPlace
    parallel: int
    fixed: bool = False

    def parallel_now(self) -> int:
        """Return how many tasks to run at once; workers of a cluster come and go. A Connect server says it once."""
        if self.fixed or self.place.kind != "master":
            return self.parallel
        return max(int(self.spark.sparkContext.defaultParallelism), 1)

    def on_workers(
        self, do: Callable[[Iterable[str]], Iterator[tuple[str, str]]], shares: Sequence[Sequence[str]]
    ) -> list[tuple[str, str]]:
        """Run a function over texts on the workers, each share of them as a task; return what it gives.

        Where there is a context, no query is made of it: planning one costs Java seconds, however little it has to do.
        """
        if self.place.kind != "connect":
            return self.spark.sparkContext.parallelize(shares, len(shares)).flatMap(do).collect()
        rows = [(task, text) for task, share in enumerate(shares) for text in share]
        table = self.spark.createDataFrame(rows, "task int, text string").repartitionById(len(shares), "task")

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa  # noqa: PLC0415 - this runs in a worker

            for batch in batches:
                for made, trouble in do(batch["text"].to_pylist()):
                    yield pa.RecordBatch.from_pylist([{"made": made, "trouble": trouble}])

        return [(made, trouble) for made, trouble in table.mapInArrow(run, "made string, trouble string").collect()]

    def gone(self, error: BaseException) -> ReplayError | None:
        """Return what to say when an error means that Spark itself is gone; None when it only failed at something."""
        text = f"{type(error).__name__}: {error}"
        if self.place.kind == "connect":
            if any(words in text for words in _STARTED_ANEW):
                what = "The Spark Connect server was restarted and no longer knows this job."
            elif "UNAVAILABLE" in text or "RETRIES_EXCEEDED" in text or not self.answers():
                what = "The Spark Connect server no longer answers."
            else:
                return None
            return ReplayError(what, where=self.place.in_words, remedy="Check that it runs, then retry.")
        try:
            stopped = bool(self.spark.sparkContext._jsc.sc().isStopped())  # noqa: SLF001
        except Exception:  # noqa: BLE001 - the JVM does not answer
            stopped = True
        if not stopped:
            return None
        return ReplayError(
            "The Java process of Spark on this machine has ended.",
            where=self.place.in_words,
            remedy=(
                "It was killed, possibly because it ran out of memory (spark.driver.memory). Retry: finished "
                "tasks are kept."
            ),
        )

    def answers(self) -> bool:
        """Tell whether somebody still listens where the session was opened."""
        return self.place.kind == "local" or _answers(self.place.address, _CONNECT_PORT)

    def has_executors(self) -> bool:
        """Tell whether a master has given any executor, or is gone, which the wave that runs says better."""
        try:
            return len(self.spark.sparkContext.statusTracker().getExecutorInfos()) > 1  # the driver is one
        except Exception:  # noqa: BLE001 - the JVM is gone
            return True

    def cancel(self) -> None:
        """Stop everything that runs."""
        with suppress(Exception):
            if self.place.kind == "connect":
                self.spark.interruptAll()
            else:
                self.spark.sparkContext.cancelAllJobs()


class Guard:
    """Looks whether anybody works for a session, as Spark itself would wait for ever or for many minutes.

    `report` is told in words what is missing, and "" when it is there again.
    """

    def __init__(self, session: OpenSession, report: Callable[[str], None]) -> None:
        self.session, self.report = session, report
        self.wait_s = max(2 * _wait_s(), _SAY_S)
        self.looked_s = self.missing_since_s = 0.0
        self.reported = False

    def look(self) -> None:
        """Look, if it is time to.

        Raises:
            ReplayError: Nobody has worked for twice `PLANNER_SPARK_WAIT_S`.
        """
        now_s = time.monotonic()
        if self.session.place.kind == "local" or now_s - self.looked_s < _LOOK_S:
            return
        self.looked_s = now_s
        connect = self.session.place.kind == "connect"
        if self.session.answers() if connect else self.session.has_executors():
            if self.reported:
                self.report("")
            self.missing_since_s, self.reported = 0.0, False
            return
        self.missing_since_s = self.missing_since_s or now_s
        missing_s = now_s - self.missing_since_s
        what = "The Spark Connect server does not answer" if connect else "No Spark worker is left"
        if missing_s >= self.wait_s:
            remedy = (
                "Start the server, then retry: finished tasks are kept."
                if connect
                else (
                    "Start workers, then retry: finished tasks are kept. If a standalone master was "
                    "restarted without spark.deploy.recoveryMode, it has ended the workers of this job."
                )
            )
            where = self.session.place.in_words
            raise ReplayError(f"{what}, since {missing_s:.0f} s.", where=where, remedy=remedy)
        if missing_s >= min(_SAY_S, self.wait_s / 2) and not self.reported:
            self.reported = True
            self.report(f"{what}: waiting")


@contextmanager
def open_session(name: str, folder: Path, cores: int = 0) -> Iterator[OpenSession]:
    """Open the session that the environment asks for, and close it at the end.

    Args:
        name: What Spark calls the application.
        folder: Where the packaged code may lie.
        cores: Cores of this machine to use where Spark runs here, else how many tasks to run at once; 0 for all.

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
        fixed = cores > 0 and place.kind != "local"
        yield OpenSession(spark, place, cores if fixed else parallel_of(spark), fixed)
    except ReplayError:
        if place.kind == "connect":
            spark.release_session_on_close = False  # type: ignore[attr-defined]  # a server that is gone would be asked for minutes
        raise
    finally:
        with suppress(Exception):
            spark.stop()


def _connect(place: SparkPlace, name: str, folder: Path) -> "SparkSession":
    if not _answers(place.address, _CONNECT_PORT):
        raise ReplayError(
            f"No answer from {place.in_words}.", remedy=f"Start the Spark Connect server, or correct {_REMOTE}."
        )
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes a second to import
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415

    try:
        builder: Any = SparkSession.builder.remote(place.address)
        spark: SparkSession = builder.appName(name).create()
        client: Any = spark.client
        client.set_retry_policies([DefaultPolicy(max_retries=9, max_backoff=10_000)])  # about a minute in all
        spark.addArtifact(str(package_code(folder)), pyfile=True)
    except Exception as error:
        reason = first_line(error)
        raise ReplayError(
            f"The Spark Connect server refuses the connection: {reason}.",
            where=place.in_words,
            remedy=f"Check that it runs Spark 4, and that {_REMOTE} contains its token.",
        ) from error
    return spark


def _cluster(place: SparkPlace, name: str, folder: Path) -> "SparkSession":
    wait_s = _wait_s()
    _check_master(place)
    if _is_loopback(place.address):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = _start(place.address, name, find_java(), {})
    spark.sparkContext.addPyFile(str(package_code(folder)))
    _wait_for_workers(spark, place, wait_s)
    return spark


def _wait_s() -> float:
    given = os.environ.get(_WAIT, "").strip()
    if not given:
        return _WORKERS_S
    if not re.fullmatch(r"[0-9]{1,5}", given):
        raise ReplayError(
            f"{_WAIT} is not a number of seconds.", where=given[:20], remedy="Use a whole number, or leave it empty."
        )
    return float(given)


def _check_master(place: SparkPlace) -> None:
    """Refuse a master that cannot be there, since Spark itself would try for minutes, or not say why."""
    address, port = place.address, _MASTER_PORT
    if address == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        raise ReplayError(
            "The address of YARN is not configured.",
            remedy="Set HADOOP_CONF_DIR to the folder with the cluster's yarn-site.xml.",
        )
    if address.startswith(_KUBERNETES):
        address, port = address.removeprefix(_KUBERNETES), _KUBERNETES_PORT
        address = address if "://" in address else f"https://{address}"
    elif not address.startswith("spark://"):
        return
    if not _answers(address, port):
        raise ReplayError(f"No answer from {place.in_words}.", remedy=f"Start the Spark master, or correct {_MASTER}.")


def _wait_for_workers(spark: "SparkSession", place: SparkPlace, wait_s: float) -> None:
    """Wait until a worker has joined; without any, Spark would wait for ever.

    Something small is run meanwhile, for a cluster that allocates workers on demand gives none before.
    """
    until = time.monotonic() + wait_s
    asking = Thread(target=_ask_for_workers, args=(spark,), daemon=True)
    asking.start()
    while len(spark.sparkContext.statusTracker().getExecutorInfos()) <= 1:  # the driver is one
        if time.monotonic() > until:
            spark.stop()
            raise ReplayError(
                f"No worker registered within {wait_s:.0f} s: {place.in_words}.",
                remedy=(
                    "Start workers, or free cores and memory there (see spark.executor.memory). To wait "
                    f"longer, set {_WAIT}."
                ),
            )
        time.sleep(0.2)
    asking.join()


def _ask_for_workers(spark: "SparkSession") -> None:
    with suppress(Exception):  # it is stopped when none came; anything else shows at the next step
        spark.range(0, 2, 1, 2).count()


def parallel_of(spark: "SparkSession") -> int:
    """Return how many tasks Spark can run at once, which is the number of partitions that it makes unasked.

    Raises:
        ReplayError: It runs nothing.
    """
    from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415 - see above
    from pyspark.sql.utils import is_remote  # noqa: PLC0415

    try:
        if not is_remote():
            return max(int(spark.sparkContext.defaultParallelism), 1)
        return max(spark.range(100_000).select(spark_partition_id().alias("p")).distinct().count(), 1)
    except Exception as error:
        reason = first_line(error)
        raise ReplayError(f"Spark did not run the job: {reason}.", remedy="Check the log, then retry.") from error


def check_workers(session: OpenSession, module: str, folders: Sequence[str]) -> None:
    """See that the workers of a cluster can import a module, and see folders under the same path as here.

    Raises:
        ReplayError: They do not; it says what is missing on which worker.
    """

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib  # noqa: PLC0415 - this runs in a worker
        import os  # noqa: PLC0415
        import socket  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for _ in batches:
            problem = ""
            try:
                importlib.import_module(module)
            except ImportError as error:
                problem = f"lacks a Python package: {error}"
            for folder in folders:
                if not os.path.isdir(folder):  # noqa: PTH112 - what a worker has least trouble with
                    problem = problem or f"does not see the folder {folder}"
            yield pa.RecordBatch.from_pylist([{"host": socket.gethostname(), "problem": problem}])

    try:
        numbers = session.spark.range(0, session.parallel * 2, 1, session.parallel * 2)
        found = numbers.mapInArrow(look, "host string, problem string").toArrow().to_pylist()
    except Exception as error:
        raise ReplayError(
            f"The workers cannot run Python: {first_line(error)}.",
            where=session.place.in_words,
            remedy=(
                "Install the Python version of this server and its packages on the workers, and set its path "
                "in PYSPARK_PYTHON."
            ),
        ) from error
    bad = next((row for row in found if row["problem"]), None)
    if bad is not None:
        raise ReplayError(
            f"The worker {bad['host']} {bad['problem']}.",
            where=session.place.in_words,
            remedy="Workers need the planner's packages, and shared storage with the folder at the same path.",
        )


def first_line(error: BaseException) -> str:
    """Return what an error of Spark says first, without its stack."""
    lines = (line.strip().rstrip(".") for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)[:300]
