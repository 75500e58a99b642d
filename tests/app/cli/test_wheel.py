"""What is installed from the wheel works from an empty folder, without the checkout."""

import os
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from planner import __version__

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "goldens" / "averages" / "bundles.jsonl.gz"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed console script; dependencies are those of the tests."""
    made = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)], cwd=ROOT, check=True)
    (wheel,) = made.glob("*.whl")
    place = tmp_path_factory.mktemp("installed")
    venv.create(place)
    python = place / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin" / "pulsar-bundle-planner"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An empty folder to work in."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STREAMLIT", "COV"))}


def run(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def test_commands_work_outside_the_checkout(program: Path, empty: Path) -> None:
    version = run(empty, program, "--version")
    assert (version.stdout, version.returncode) == (f"pulsar-bundle-planner {__version__}\n", 0)
    assert "capture" in run(empty, program, "--help").stdout
    checked = run(empty, program, "conform", GOLDEN)
    assert checked.stdout.endswith(" passed, 0 failed\n"), checked.stderr
    (empty / "scenario.json").write_text('{"version": 1}')
    planned = run(empty, program, "plan", "--snapshot", "pip-364", "--scenario", "scenario.json")
    assert "Moves: " in planned.stdout, planned.stderr
    assert run(empty, program, "plan", "--snapshot", "none", "--scenario", "scenario.json").returncode == 2


def test_package_and_resources_are_those_of_the_wheel(program: Path, empty: Path) -> None:
    code = "import planner, planner.cluster.resources as r; print(planner.__file__, r.resources())"
    package, resources = run(empty, program.with_name("python"), "-c", code).stdout.split()
    assert not package.startswith(str(ROOT))
    assert resources == str(Path(package).parent / "resources")
    listed = {path.name for path in Path(resources).iterdir()}
    assert listed - {"__pycache__"} == {"app.py", "pages", "sample_snapshots", ".streamlit"}
    for folder in ("pages", "sample_snapshots", ".streamlit"):
        there = {path.name for path in (Path(resources) / folder).iterdir() if path.is_file()}
        assert there == {path.name for path in (ROOT / folder).iterdir() if path.is_file()}


def test_pages_draw_from_the_wheel(program: Path, empty: Path) -> None:
    code = (
        "from planner.cluster.resources import resources\n"
        "from streamlit.testing.v1 import AppTest\n"
        "from planner.web import headers\n"
        "router = headers.__file__.replace('headers', 'router')\n"
        "at = AppTest.from_file(router, default_timeout=60).run()\n"
        "assert not at.exception, at.exception\n"
        "print(at.title[0].value)\n"
    )
    drawn = run(empty, program.with_name("python"), "-c", code)
    assert drawn.stdout.strip() == "Overview", drawn.stderr
    assert (empty / ".workspace" / "planner.duckdb").exists()


@pytest.fixture
def served(program: Path, empty: Path) -> Iterator[str]:
    """Address of the dashboard, opened by the program without a command."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [str(program), "--port", str(port), "--workspace", "kept/other.duckdb"]
    with (
        (empty / "log.txt").open("wb") as log,
        subprocess.Popen(command, cwd=empty, env=environment(), stdout=log, stderr=log) as server,
    ):
        yield f"http://localhost:{port}"
        server.terminate()
        server.wait(PATIENCE_S)


def answer(address: str) -> tuple[str, dict[str, str]]:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urlopen(address, timeout=PATIENCE_S) as got:  # noqa: S310 - our own server
                return got.read().decode(), {name.lower(): value for name, value in got.headers.items()}
        except (URLError, ConnectionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def test_without_a_command_the_dashboard_opens(served: str, empty: Path) -> None:
    assert answer(f"{served}/_stcore/health")[0] == "ok"
    page, headers = answer(f"{served}/")
    assert '<div id="root">' in page
    assert "content-security-policy" in headers
    assert answer(f"{served}/bundle-map")[0] == page
    said = (empty / "log.txt").read_text()
    assert "localhost" in said
    assert "External URL" not in said  # the settings that came along hold: headless, this machine alone
