"""What is slow to try: pages under hostile addresses and over hostile content, jobs, records, brokers that lie."""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.__main__ import main
from planner.capture.options import CaptureOptions, Limits
from planner.capture.run import capture_cluster
from planner.cluster.errors import HIDDEN
from planner.cluster.releases import RELEASES
from planner.cluster.snapshot import Snapshot
from planner.history.days import read_day
from planner.history.manifest import complete_days
from planner.shadow.record import RECORD, ShadowRecord
from planner.share.link import encode_link
from planner.simulate.price import price_of
from planner.simulate.scenario import Scenario
from planner.web import address as web_address
from planner.web import registry, state
from planner.workspace.samples import load_sample, samples
from tests.app.pages.conftest import forget, script
from tests.app.pages.test_shadow_page import IDLE, WRONG, cycle
from tests.app.plan.random_scenarios import random_scenario
from tests.data.capture.test_hostile_answers import HOSTILE, LATE, LIES
from tests.data.recorded_cluster import Cluster, ZooKeeper
from tests.data.replay.replays import JOB, make_job_folder
from tests.data.test_faults import watch
from tests.fuzz import fuzz

_LISTS = (",", ",,", "-", "a,b", "1;2", ":", "TransferShedder,AvgShedder", "topic:-1:-1:1:0", "0x10", "0xffffffff")
_ENDS = ("1", "-1", "inf", "-inf", "nan", "1e308", "-0", "9" * 400, "x" * 1_999, "x" * 2_001, "none", "\r\n", "%00")


@contextlib.contextmanager
def server() -> Iterator[Path]:
    """A server that was just started: the folder of its workspace."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANNER_WORKSPACE", f"{folder}/w.duckdb")
        patch.setenv("PLANNER_HISTORIES", f"{folder}/histories")
        patch.setattr(st, "page_link", lambda *_, **__: None)
        forget()
        try:
            yield Path(folder)
        finally:
            state.workspace().close()
            forget()


def draw(name: str, **parts: str) -> AppTest:
    """Open a page.

    Raises:
        AssertionError: It failed.
    """
    test = script(name)
    for key, value in parts.items():
        test.query_params[key] = value
    test.run(timeout=120)
    assert not test.exception, (name, parts, [(e.message, e.stack_trace) for e in test.exception])
    return test


@cache
def _asked(name: str, sample: Snapshot) -> tuple[str, ...]:
    """Return the parts of the address that a page asks for."""
    names: set[str] = {"snapshot"}
    part = web_address.part

    def noted(asked: str) -> str:
        names.add(asked)
        return part(asked)

    with server(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(web_address, "part", noted)
        state.workspace().add(sample, "x")
        draw(name)
    return tuple(sorted(names))


@cache
def _looked_at() -> tuple[Snapshot, ...]:
    return (*fuzz.seeds(), *(load_sample(one) for one in samples() if one.file.endswith(".json")))


def address(random: Random) -> None:
    """A page under an address that nobody wrote."""
    snapshot, name = random.choice(_looked_at()), random.choice(registry.NAMES)
    pool = (*map(str, fuzz.VALUES), *_LISTS, *_ENDS, *snapshot.brokers.name, *snapshot.namespaces)
    names = _asked(name, fuzz.seeds()[0])
    parts = {
        part: random.choice(pool)[:2_100] for part in random.sample(names, min(len(names), random.choice((1, 3, 9))))
    }
    with server():
        saved = state.workspace().add(snapshot, "x")
        if random.random() < 0.8:
            parts["snapshot"] = saved.digest[:12]
        if random.random() < 0.3:
            made = random_scenario(fuzz.seeds()[0], random.randrange(2**31), most_cycles=6)
            made = replace(made, pulsar_version=random.choice(RELEASES))
            parts["scenario"] = encode_link(made, saved.digest, "x")
        draw(name, **parts)


def content(random: Random) -> None:
    """Every page over what was loaded, whatever it was made of."""
    snapshot = random.choice((fuzz.document, fuzz.folder, fuzz.capture))(random)
    if price_of(snapshot, Scenario()).seconds > 1:
        return
    with server():
        saved = state.workspace().add(snapshot, "x")
        for name in registry.NAMES:
            shown = draw(name, snapshot=saved.digest[:12])
            assert not any("cannot be read from the workspace" in str(error.value) for error in shown.error)


def _vouch(path: Path, before: bytes) -> None:
    """Have what stands beside a file say that it is what was written."""
    was, now = (hashlib.sha256(data).hexdigest() for data in (before, path.read_bytes()))
    for file in (other for other in path.parent.glob("*.json") if other.is_file()):
        with contextlib.suppress(ValueError):
            said = json.loads(file.read_bytes().decode().replace(was, now))
            for seal in ("sha256", "digest"):
                said.pop(seal, None)
            file.write_text(json.dumps(said))


def hurt(root: Path, random: Random) -> None:
    """Do something to one or two of the files in a folder."""
    for path in random.sample([p for p in sorted(root.rglob("*")) if p.is_file()], random.choice((1, 1, 2))):
        data = path.read_bytes()
        how = random.randrange(8)
        if path.suffix == ".json" and how < 5:
            value = json.loads(data)
            value.pop("sha256", None)  # else every change is found by it alone
            path.write_bytes(fuzz.text_of(fuzz.mutated(value, random), random))
        elif path.suffix == ".parquet" and how < 4:
            path.write_bytes(fuzz.hostile_table(data, random))
            _vouch(path, data)
        elif how == 5:
            path.unlink()
            random.choice((Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")))(path)
        elif how == 6:
            path.write_bytes(data[: random.randrange(len(data) + 1)])
        elif data:
            at = random.randrange(len(data))
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :])


def run(*arguments: str) -> None:
    """Run a command: it ends well, or in a sentence."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    assert status != 2 or "error: " in err.getvalue(), err.getvalue()
    assert not HIDDEN.search(err.getvalue()), err.getvalue()
    if "--json" in arguments and out.getvalue():
        json.loads(out.getvalue(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@cache
def _job() -> Path:
    folder = Path(tempfile.mkdtemp())
    make_job_folder(folder)
    return folder


def job_folder(random: Random) -> None:
    """A damaged job, on its pages and by its commands."""
    with server() as root:
        shutil.copytree(_job(), root / "jobs")
        if random.random() < 0.5:  # as an earlier version wrote it
            (root / "jobs" / JOB / "results" / "summary.json").write_text("{}")
        hurt(root / "jobs", random)
        for page in ("replay", "advisor"):
            draw(page, job=JOB)
        draw("replay")
        run("replay", "--list")
        for asked in ("--show", "--advise"):
            run("replay", asked, JOB)
            run("replay", asked, JOB, "--json")


def record(random: Random) -> None:
    """A damaged record of what a watch predicted, on its page."""
    with server() as root:
        folder = root / "histories" / "cluster=east"
        for each in (cycle(1), WRONG, IDLE):
            ShadowRecord(folder).add(each)
        lines = (folder / RECORD).read_bytes().splitlines()
        at = random.randrange(len(lines))
        lines[at] = fuzz.text_of(fuzz.mutated(json.loads(lines[at]), random), random)
        (folder / RECORD).write_bytes(b"\n".join(lines))
        draw("shadow")
        draw("shadow", cycle="2")


def watched(random: Random) -> None:
    """A damaged recording of a watch."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        watch(root, *range(1, random.choice((3, 70))))
        hurt(root, random)
        for day in complete_days(root):
            for snapshot in read_day(day.path):
                fuzz.use_snapshot(snapshot)


@cache
def _cluster() -> Cluster:
    return Cluster("modular")


def _capture(out: Path, metadata_store: str = "") -> None:
    limits = Limits(request_s=5.0, connect_s=2.0, back_off_s=0.01, per_second=2_000.0, attempts=1, answer_bytes=1 << 20)
    options = CaptureOptions(_cluster().url, out, limits=limits, metadata_store=metadata_store)
    fuzz.use_snapshot(capture_cluster(options).snapshot)


def broker(random: Random) -> None:
    """Brokers that lie."""
    cluster = _cluster()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "special", {})
        patch.setattr(cluster, "answers", dict(cluster.answers))
        for key in random.sample(sorted(cluster.answers), random.choice((1, 2, 5))):
            status, body, kind = cluster.answers[key]
            if random.random() < 0.3:
                cluster.special[key] = HOSTILE[random.choice([name for name in HOSTILE if name not in LATE])][0]
                continue
            with contextlib.suppress(ValueError):
                body = fuzz.text_of(fuzz.mutated(json.loads(body), random), random)
            kind = random.choice((kind, kind, "text/html", "application/json; charset=utf-16", ""))
            cluster.answers[key] = random.choice((status, status, 200, 204, 206, 401, 404, 409, 500, 599)), body, kind
        _capture(Path(folder) / "out")


def store(random: Random) -> None:
    """A metadata store that lies."""
    nodes = {node["path"]: node["data"] for node in json.loads(_cluster().files["zookeeper.json"])}
    for path in random.sample(sorted(nodes), random.choice((1, 3, 9))):
        try:
            nodes[path] = fuzz.text_of(fuzz.mutated(json.loads(nodes[path]), random), random).decode("utf-8", "replace")
        except ValueError:
            nodes[path] = str(random.choice(fuzz.VALUES))
    lying = ZooKeeper(nodes)
    lying.children[random.choice(sorted(lying.children))] |= set(
        random.sample(("..", ".", "", "a/b", "%00", "\u202e"), 2)
    )
    try:
        if random.random() < 0.3:
            lie = bytearray(random.choice(sorted(LIES.values())))
            lie[random.randrange(len(lie))] ^= 1 << random.randrange(8)
            lying.lies[random.choice(sorted(nodes))] = bytes(lie)
        with tempfile.TemporaryDirectory() as folder:
            _capture(Path(folder) / "out", lying.address)
    finally:
        lying.close()


_PATHS = (
    "", ".", "a\0b", "\udcff", "x" * 300, "s3a://x/y", "-", "~", "folder", "loop", "text", "scenario", "scenario/x",
)  # fmt: skip
_READ = (*_PATHS, "/dev/null", "/dev/zero", "/proc/self/mem", "/")
_WORDS = (
    "\x1b[31m",
    "\u202e",
    "a=b",
    "=",
    "..",
    "4.0.8",
    "AvgShedder",
    "1.AAAAAAAAAAAA",
    "zk:",
    "http://[",
    "9" * 9_000,
)
_NOBODY = "--admin-url http://127.0.0.1:9 --attempts 1"
_COMMANDS = (
    "plan --snapshot pip-364 --scenario scenario",
    "plan --snapshot text --scenario scenario",
    "conform",
    "upgrade --to 4.0.8 --snapshot pip-364",
    "optimize --snapshot threshold-shedder",
    "generate --brokers 2 --bundles 4 --topics 5",
    "replay",
    "shadow --history folder",
    "history generate --brokers 2 --bundles 4 --topic-count 0 --days 1 --interval-s 43200 --workers 1",
    f"capture {_NOBODY}",
    f"watch {_NOBODY} --failures 1",
)
_WRITES = {"--out", "--csv", "--save", "--report", "--history"}
_STARTS = {"--runner", "--detach", "--retry", "--history", "--interval", "--interval-s", "--workers", "--days"}
"""Options after which something goes on for ever, or for long, as is asked for."""


@cache
def _options(command: str) -> tuple[str, ...]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main([*command.split()[: 2 if command.startswith("history") else 1], "--help"])
    return tuple(sorted(set(re.findall("^  (--[a-z0-9-]+)", out.getvalue(), re.MULTILINE)) - _STARTS))


def command(random: Random) -> None:
    """A command with options that nobody means."""
    asked = random.choice(_COMMANDS)
    words = asked.split()
    pool = (*_READ, *_WORDS, *_ENDS, *map(str, fuzz.VALUES))
    known = _options(asked)
    for option in random.sample(known, min(len(known), random.choice((1, 1, 2, 4)))):
        words += [option, random.choice(_PATHS if option in _WRITES else pool)[:9_000]][
            : random.choice((1, 2, 2, 2, 2))
        ]
    if asked == "conform" or random.random() < 0.1:
        words.append(random.choice(_READ[:-1]))
    with server() as root, contextlib.chdir(root), contextlib.suppress(SystemExit):
        (root / "folder").mkdir()
        (root / "loop").symlink_to("loop")
        (root / "text").write_text("hello")
        (root / "scenario").write_text('{"version": 1, "cycles": 1}')
        run(*words)


KINDS: tuple[Callable[[Random], Snapshot | None], ...] = (
    address, content, job_folder, command, record, broker, store, watched, address, command,
)  # fmt: skip
