"""The command line as a whole: help, exit statuses, and the options that people have in their scripts."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner import __version__
from planner.__main__ import COMMANDS, console, main
from planner.capture.options import CaptureOptions, Credentials, Limits
from planner.cluster.errors import CaptureError
from planner.cluster.load_manager import LoadManager
from planner.history.manifest import DayManifest
from planner.history.spec import HistorySpec
from planner.simulate.cluster_spec import ClusterSpec

ROOT = Path(__file__).parents[3]

_OF_A_CAPTURE = """
    admin-url attempts broker-at broker-url brokers-in ca-file cert-file cluster connect-timeout in-flight
    in-flight-per-broker
    key-file max-namespaces metadata-store metadata-store-login metrics namespaces no-topics oauth2-audience oauth2-file
    oauth2-scope rate request-timeout token-env token-file topics total-timeout
"""
_OF_A_CLUSTER = "brokers bundles cluster load-manager msg-rate-per-s namespaces out ownership-skew seed topics"

# What people have in their scripts: an option that is missing here one day breaks them.
_OF_PROMETHEUS = """
    accept-partial broker-names ca-file cert-file coarsest dry-run key-file login-file matchers org-id prometheus
    request-timeout token-env token-file
"""
OPTIONS = {
    "bundles": """
        brokers cluster count csv first-day growth-percent history horizon-weeks hours json last-day message-bytes
        moment moments-per-day msg-rate-per-s namespace pattern rates runner scenario seed snapshot subscriptions
        topics workers
    """,
    "capture": f"{_OF_A_CAPTURE} out",
    "conform": "release",
    "dashboard": "allow host port workspace",
    "fix": "json scenario snapshot",
    "generate": f"""{_OF_A_CLUSTER}
        anti-affinity-namespaces captured-at-ms cpu-percent-per-1000-msg-per-s cpu-percent-per-mb-per-s fan-out
        heterogeneity idle idle-namespaces isolated-namespaces joined-brokers message-bytes partitioned topic-skew
    """,
    "history": "",
    "history generate": f"""{_OF_A_CLUSTER}
        daily-swing days first-day form growth-percent-per-day interval-s noise peak-hour restart-minutes
        restarts-per-day spike-factor spike-minutes spikes-per-day splits-per-day topic-count weekend-share workers
    """,
    "history ingest": f"{_OF_PROMETHEUS} cluster from interval-s out report-valid-s sample-valid-s step-s to",
    "lint": "json release sarif severity snapshot",
    "optimize": """
        after-cycles back clients commands csv drain even exclude json keep least megabytes moves pause pin scenario
        seed snapshot save splits survive-loss topics traffic under wave-clients
    """,
    "plan": "batch broker commands csv everything follow json pause report scenario snapshot",
    "replay": """
        advise balance base cancel cluster days-per-task delete detach disruption first-day first-part history json
        last-day list loss name release retry runner scenarios setting show strategy weight workers
    """,
    "shadow": "at-least cluster history json record",
    "snapshot": f"{_OF_PROMETHEUS} at base cluster out release scenario-out",
    "upgrade": "hours json scenario snapshot to",
    "watch": f"{_OF_A_CAPTURE} captures failures history interval max-gib raw-gib refresh shadow spare-admin-url",
}
_NOT_FOR_HELP = {"numpy", "pandas", "pyarrow", "streamlit", "plotly", "pyspark", "duckdb", "httpx", "pydantic"}


@pytest.mark.parametrize("command", OPTIONS)
def test_every_option_has_its_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    shown = [line.split("  ")[1] for line in said.out.splitlines() if line.startswith("  --")]
    assert {name for names in shown for name in re.findall(r"--([a-z0-9-]+)", names)} == set(OPTIONS[command].split())


def test_help_is_plain_text_with_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == main(["--help"]) == 0
    both = capsys.readouterr().out
    assert both[: len(both) // 2] == both[len(both) // 2 :]
    assert both.isascii()
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z][a-z]+ ", both, re.MULTILINE)
    assert {command.partition(" ")[0] for command in OPTIONS} == set(COMMANDS)
    assert {path.stem for path in (ROOT / "planner" / "cli").glob("*.py")} - {"__init__", "help", "output"} == set(
        COMMANDS
    )


def test_help_waits_for_nothing_heavy() -> None:
    code = "import sys, planner.__main__ as m; m.main(sys.argv[1:]); print('\\n', *sys.modules)"
    for command in ("", *OPTIONS):
        done = subprocess.run(
            [sys.executable, "-c", code, *command.split(), "--help"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = set(done.stdout.splitlines()[-1].split())
        assert "cyclopts" in loaded
        assert not loaded & _NOT_FOR_HELP, command


def test_a_name_that_is_not_utf_8_is_spelled(tmp_path: Path) -> None:
    target = os.fsencode(tmp_path) + b"/b\xffd"
    done = subprocess.run(
        [sys.executable, "-m", "planner", "generate", "--out", target],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    )
    assert rb"/b\udcffd: 10 brokers" in done.stdout
    assert Path(os.fsdecode(target)).is_dir()


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert console(["--version"]) == 0
    assert capsys.readouterr().out == f"python -m planner {__version__}\npulsar-bundle-planner {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        "no-such-command",
        "conform",
        "history",
        "history bake",
        "history ingest --out x",
        "generate",
        "generate --out x --brokers many",
        "generate --out x --load-manager none",
        "generate --out x --colour red",
        "capture --admin-url http://x",
        "capture --admin-url http://x --out x --store-nodes 3",
        "plan --snapshot x",
        "plan --snapshot x --scenario y --json --commands",
        "replay",
        "replay --list --show x",
        "replay --history x --runner nowhere",
        "shadow",
        "dashboard --port many",
    ],
)
def test_usage_errors_are_one_line_and_status_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("plan east.zip", "plan needs --snapshot. Is that east.zip? Then write --snapshot east.zip."),
        ("plan", "plan needs --snapshot."),
        ("plan --snapshot", "--snapshot needs a value."),
        ("history generate", "history generate needs --out."),
        ("conform", "conform needs FILE."),
        ("bundles east.zip", "bundles does not take east.zip."),
        ("plan --frob 3", "plan needs --snapshot."),
    ],
)
def test_a_usage_error_says_what_is_missing(words: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without its option was told that the option "requires an argument"."""
    with pytest.raises(SystemExit):
        main(words.split())
    assert capsys.readouterr().err == f"error: {expected} Use --help to see the options.\n"


_WATCH = ("watch", "--history", "x", "--admin-url", "http://127.0.0.1:9")
_PLAN = ("plan", "--snapshot", "threshold-shedder", "--scenario")


@pytest.mark.parametrize(
    "words",
    [
        (*_WATCH, "--max-gib", "inf"),
        (*_WATCH, "--raw-gib", "nan"),
        (*_PLAN, "/dev/zero"),
        (*_PLAN, "http://["),
        ("plan", "--scenario", "scenario.json", "--snapshot", "x" * 9_000),
        (*_PLAN, "scenario.json", "--csv", ""),
        (*_PLAN, "scenario.json", "--csv", "a\0b"),
        (*_PLAN, "scenario.json", "--csv", "pipe"),
        ("upgrade", "--snapshot", "pip-364", "--hours", "99999999999999999999"),
        ("shadow", "--history", "x", "--at-least", "nan"),
        ("history", "ingest", "a\0b", "--out", "x"),
        ("conform", "a\0b"),
        ("replay", "--show", ""),
        ("dashboard", "--port", "99999999"),
        ("dashboard", "--port", "-5"),
        ("dashboard", "--host", "x..y"),
        ("replay", "--delete="),
        ("conform", "/dev/zero"),
        ("conform", "\x1b[31m\u202e", "--release", "\x1b[31m\u202e"),
        ("\x1b[31m",),
        ("generate", "--out", "x", "--brokers", "\x1b[31m" + "9" * 9_000),
    ],
)
def test_odd_values_are_refused_in_a_short_line_with_a_remedy(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.json").write_text('{"version": 1, "cycles": 1}')
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SystemExit, match="2"):  # as a process ends
        sys.exit(main(words))
    lines = capsys.readouterr().err.splitlines()
    assert all(line.isprintable() for line in lines)
    (said,) = [line for line in lines if line.startswith("error: ")]
    assert len(said) < 3_000
    assert said.endswith(".")


def test_an_interruption_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.conform.reader.read_vectors", interrupted)
    assert main(["conform", "x.jsonl"]) == 130


def test_options_of_a_capture_reach_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[CaptureOptions] = []

    def captured(options: CaptureOptions, *_: Any) -> None:
        given.append(options)
        raise CaptureError("Enough.")

    monkeypatch.setattr("planner.capture.run.capture_cluster", captured)
    words = f"capture --admin-url http://b:8080 --out {tmp_path} --namespaces a/b a/c --no-topics --token-file t"
    words += " --metadata-store zk:z:2181 --metadata-store-login l --rate 3 --max-namespaces 9 --total-timeout 2.5"
    assert main(words.split()) == main(["capture", "--admin-url", "http://b:8080", "--out", "x"]) == 2
    assert given == [
        CaptureOptions(
            admin_url="http://b:8080",
            out=tmp_path,
            metadata_store="zk:z:2181",
            namespaces=("a/b", "a/c"),
            with_topics=False,
            credentials=Credentials(token_file=Path("t"), store_auth_file=Path("l")),
            limits=Limits(per_second=3.0, namespaces=9, total_s=2.5),
        ),
        CaptureOptions(admin_url="http://b:8080", out=Path("x")),
    ]


def test_options_of_a_generated_history_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Any, ...]] = []

    def write(*wanted: Any) -> list[DayManifest]:
        given.append(wanted)
        return []

    monkeypatch.setattr("planner.history.generate.write_history", write)
    words = (
        "history generate --out x --topic-count 7 --topics --days 2 --load-manager extensible --cluster c --workers 3"
    )
    assert main(words.split()) == 0
    cluster = ClusterSpec(topics=7, load_manager=LoadManager.EXTENSIBLE, cluster="c")
    assert given == [(Path("x"), HistorySpec(cluster=cluster, days=2, topics=True), 1, 3)]


@pytest.mark.parametrize("program", [console, lambda words: main(["dashboard", *words])])
def test_the_dashboard_is_streamlit_with_the_app(program: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: called.append((path, words)))
    monkeypatch.setenv("PLANNER_WORKSPACE", "before")
    monkeypatch.chdir(tmp_path)
    shared = ["--port", "9000", "--host", "0.0.0.0", "--allow", "a.example", "--allow", "b.example"]  # noqa: S104 - only said
    for words in ([], [*shared, "--workspace", "w/p.duckdb"]):
        assert program(words) == 0
    (path, plain), (_, told) = called
    assert path == sys.executable
    assert plain[1:] == [
        "-m",
        "streamlit",
        "run",
        str(ROOT / "app.py"),
        "--server.port=8501",
        "--server.address=localhost",
    ]
    assert told[5:7] == ["--server.port=9000", "--server.address=0.0.0.0"]
    names = ["localhost", "127.0.0.1", "::1", "0.0.0.0", "a.example", "b.example"]  # noqa: S104 - only said
    assert told[7:] == [f"--server.allowedHosts={name}" for name in names]
    assert os.environ["PLANNER_WORKSPACE"] == str(tmp_path / "w" / "p.duckdb")
