"""Real Spark servers on the loopback address: a standalone master with workers, a Spark Connect server."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from planner.spark.java import find_java

HOME = Path(pyspark.__file__).parent
PATIENCE_S = 240


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def python_without_planner(folder: Path) -> Path:
    """Return a Python that has the packages of this one, but not the planner where that is installed in place."""
    script = folder / "python"
    packages = sysconfig.get_paths()["purelib"]
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {shlex.quote(sys.executable)} -S "$@"\n', encoding="utf-8"
    )
    script.chmod(0o700)
    return script


def below(pid: int, mark: str) -> dict[int, int]:
    """Return the processes below one whose command line has a mark, and the parent of each."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    marked = {}
    for child in sorted(found - {pid}):
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                marked[child] = parents[child]
    return marked


class Server:
    """A Java program of Spark, in a process group of its own."""

    def __init__(self, folder: Path, name: str, program: str, *arguments: str, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{name}.log"
        variables = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            **environment,
        }
        variables.pop("SPARK_REMOTE", None)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(HOME / "bin" / program), *arguments],
                cwd=folder,
                env=variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while text not in self.said():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < until, self.said()
            time.sleep(0.1)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)


class Standalone:
    """A standalone master and its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.address = f"spark://127.0.0.1:{self.port}"
        self.workers: list[Server] = []
        self.start_master()

    def start_master(self) -> None:
        """Start the master, or another one that knows nothing at the same address."""
        program = "org.apache.spark.deploy.master.Master"
        ports = self._ports("127.0.0.1", self.port, free_port())
        self.master = Server(self.folder / "master", "master", "spark-class", program, *ports)

    @staticmethod
    def _ports(host: str, port: int, web: int) -> list[str]:
        return ["--host", host, "--port", str(port), "--webui-port", str(web)]

    def add_worker(self) -> Server:
        name = f"worker-{len(self.workers)}"
        worker = Server(
            self.folder / name,
            name,
            "spark-class",
            "org.apache.spark.deploy.worker.Worker",
            *self._ports("127.0.0.1", free_port(), free_port()),
            *("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name / "work")),
            self.address,
        )
        self.workers.append(worker)
        return worker

    def wait(self) -> None:
        self.master.wait_for("I have been elected leader")
        for worker in self.workers:
            worker.wait_for("Successfully registered with master")

    def stop(self) -> None:
        for server in (*self.workers, self.master):
            server.kill()


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Standalone]:
    """Start a master and workers with a core each."""
    cluster = Standalone(folder)
    try:
        cluster.master.wait_for("I have been elected leader")
        for _ in range(workers):
            cluster.add_worker()
        cluster.wait()
        yield cluster
    finally:
        cluster.stop()


class ConnectServer:
    """A Spark Connect server on two cores, which can be killed and started anew at the same address."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder, self.port, self.environment = folder, free_port(), environment
        self.address = f"sc://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.server = Server(
            self.folder,
            "connect",
            "spark-submit",
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"),
            *("--conf", f"spark.connect.grpc.binding.port={self.port}", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.connect.grpc.binding.address=127.0.0.1", "spark-internal"),
            **self.environment,
        )
        self.server.wait_for("Spark Connect server started")

    def kill(self) -> None:
        self.server.kill()


@contextmanager
def connect_server(folder: Path, **environment: str) -> Iterator[str]:
    """Start a Spark Connect server on two cores; gives its address."""
    server = ConnectServer(folder, **environment)
    try:
        yield server.address
    finally:
        server.kill()
