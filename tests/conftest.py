"""What tests of several packages share."""

import gc
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.chromium import bring_chromium

ROOT = Path(__file__).parent.parent
BROWSER_TESTS = ROOT / "tests" / "e2e"


def _keep_compiled_code() -> None:
    """Let children find compiled code: they start the product some hundred times, and compile for 0.6 of 3.2 s."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


_keep_compiled_code()


def _keep_files_in_memory() -> None:
    """Let files of tests lie in memory where there is plenty: a third of what they take is waiting for a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - of this user alone
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 8 << 30:
        return
    if not os.statvfs(memory).f_flag & os.ST_NOEXEC:
        own = memory / f"planner-tests-{os.getuid()}"
        own.mkdir(mode=0o700, exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(own)


_keep_files_in_memory()

hypothesis.settings.register_profile("house", deadline=None)  # how fast a machine is decides no test
hypothesis.settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` writes the goldens that are text anew; look at the difference before it is kept."""
    parser.addoption("--rewrite", action="store_true", help="write goldens that are text anew")
    parser.addoption("--plots", default="", metavar="FOLDER", help="draw each story of tests/stories there")


_LONGEST = (
    "tests/app/pages",
    "tests/test_style.py::test_clean[mypy]",
    "tests/app/cli/test_wheel.py",
    "tests/data/replay/test_replay_command.py",
    "tests/data/replay/test_replay_jobs.py",
    "tests/app/namespaces/test_fix_agrees.py",
    "tests/app/namespaces/test_public_reports.py",
    "tests/app/optimize",
    "tests/app/remedy",
)
"""What takes longest, so that it begins first and the workers end together."""

_LONGEST_IN_WINDOWS = (
    "tests/e2e/test_questions.py",
    "tests/e2e/test_every_page.py::test_no_page_of_a_large_cluster",
    "tests/e2e/test_scenario_story.py",
)
"""The same of those that need a browser, which come last: the longest in the end would leave one worker alone."""

_TOGETHER = ("tests/app/pages",)
"""Folders whose tests share something that takes seconds to make, so that one worker makes it; other files do, too."""

_APART = (
    "tests/app/plan/test_answers.py",
    "tests/data/doors",
    "tests/e2e",
    "tests/fuzz",
    "tests/test_style.py",
)
"""What shares nothing, and would keep one worker long."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let workers take tests in the order given here; xdist would take groups of most tests first.

    A browser keeps an event loop in its worker, where tests that capture a cluster begin no other.
    """
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: a third of what tests take is waiting for a browser, a process or a clock."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_sessionstart(session: pytest.Session) -> None:
    """Bring a browser where tests need one and the machine has none; workers find it."""
    config = session.config
    if hasattr(config, "workerinput") or config.option.collectonly or config.option.markexpr.startswith("not e2e"):
        return
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if any(path.is_relative_to(BROWSER_TESTS) or BROWSER_TESTS.is_relative_to(path) for path in asked):
        bring_chromium(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - it takes minutes


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts a JVM or a browser, give the former to one worker, and put what takes longest first."""
    for item in items:
        if item.path.is_relative_to(BROWSER_TESTS):
            item.add_marker("e2e")
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one worker, and so one JVM
        elif not item.get_closest_marker("xdist_group") and not item.nodeid.startswith(_APART):
            file = item.nodeid.partition("::")[0]
            together = next((start for start in _TOGETHER if file.startswith(start)), file)
            item.add_marker(pytest.mark.xdist_group(together))
    items.sort(key=_turn)
    if getattr(config.option, "loadgroup", False):
        for item in items:
            _tell_group(item)


def pytest_collection_finish() -> None:
    """Let Python no longer look through what was imported and collected each time it looks for circles."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let what is left be given back as usual."""
    gc.unfreeze()


def _tell_group(item: Any) -> None:
    """Put the group of a test into its id, where xdist looks for it.

    xdist 3.8 writes it into an attribute that pytest 9.2 no longer reads, so that groups were spread over all workers.
    """
    group = next(item.iter_markers("xdist_group"), None)
    if group is not None and hasattr(item, "_id"):
        item._id = type(item._id).parse(f"{item.nodeid}@{group.args[0]}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a test by the id without its group, by which `--last-failed` finds it.

    It found none of a group, and where it finds none at all it runs every test again.
    """
    if hasattr(report, "node"):  # of a worker, which compares the id with its own
        report.nodeid = without_group(report.nodeid)
        if report.failed:
            print(f"\nFAILED {report.nodeid}", file=sys.stderr, flush=True)  # noqa: T201 - the summary is long to come


def without_group(nodeid: str) -> str:
    """Return the id of a test as it is when no worker is asked for."""
    return re.sub(r"@[^]]*$", "", nodeid)


def _turn(item: pytest.Item) -> tuple[int, int]:
    """Return when a test begins: what needs the JVM, the longest in their order, the others, those of a browser."""
    if item.get_closest_marker("spark"):
        return 0, 0
    if item.get_closest_marker("e2e"):
        # A browser keeps an event loop in its worker, where no other may begin; what opens no window is over at once.
        return 2, _place(item, _LONGEST_IN_WINDOWS) + int("visitor" not in getattr(item, "fixturenames", ()))
    return 1, _place(item, _LONGEST)


def _place(item: pytest.Item, longest: tuple[str, ...]) -> int:
    """Return where a test stands among those that take longest; behind them, where it does not."""
    return next((place for place, start in enumerate(longest) if item.nodeid.startswith(start)), len(longest))


@pytest.fixture(scope="session")
def small() -> Snapshot:
    """A generated cluster of five brokers."""
    return generate(ClusterSpec(brokers=5, bundles=60, topics=400, msg_rate_per_s=50_000, cluster="small"), 7)


@pytest.fixture
def workspace_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of its own for a test; the file does not exist yet."""
    path = tmp_path / "planner.duckdb"
    monkeypatch.setenv("PLANNER_WORKSPACE", str(path))
    return path
