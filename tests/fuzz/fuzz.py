"""A structure-aware fuzzer: takes what is well formed apart, puts hostile values in, and counts what comes of it.

Every input is drawn from its seed and number alone, so that `--seed 1 --first 1234 --inputs 1` shows one again. There
are two outcomes: refused in words that name place and remedy, or loaded and usable; any other is a fault.
"""

import argparse
import contextlib
import copy
import faulthandler
import hashlib
import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import PlannerError
from planner.cluster.releases import RELEASES, release
from planner.cluster.setting import conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import moment, plain
from planner.explain.outcome import Outcome
from planner.formats.document import write_document
from planner.formats.folder import parts_of_snapshot
from planner.formats.reading import read_upload
from planner.formats.validate import validate
from planner.history.lines import records_of_lines
from planner.history.records import Tally
from planner.replay.grid import Grid, grid_from_json, scenarios_of
from planner.replay.spec import Job, job_from_json, job_to_json
from planner.share.link import decode_link, encode_link
from planner.share.scenario_file import read_scenario_file, scenario_file
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.price import price_of
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.sequence import decide_cycles, same_load
from planner.workspace.database import open_workspace
from tests.app.plan.random_scenarios import random_scenario
from tests.data.replay.replays import grid_to_json

CAPTURES = Path(__file__).parent.parent / "goldens" / "captures"
_NUMBERS = (0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, 10**30, 1_763_700_000_000_000, 0.5, -0.0, 1e308, 1e-320)
_SIGNS = ("", " ", "a", "NaN", "0x", "\u202ea", "\x00", "\x1b[31m", "../../x", "=1+1", ":material/home:", "*a* $x$")
_NAMES = ("b:1", "a/b/0x00000000_0xffffffff", "0x00000000_0xffffffff", "persistent://t/n/x", "https://e.example")
_ODD = ("\ud800", "\u2066x\u2069", "a\nb", "\r\n", "<b>", "![a](http://e.example/x)", "٣", "é", "x" * 70_000, 10**400)
_SHAPES: tuple[Any, ...] = ([], {}, [[]], [1], {"a": 1}, None, True, False)
VALUES: tuple[Any, ...] = (*_NUMBERS, *_SIGNS, *_NAMES, *_SHAPES, *_ODD, "(a+)+$", "((", "x" * 5_000)
"""What is put in the place of something else."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where something stands inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, part in inner for place in places(part, (*path, key))]


def mutated(value: Any, random: Random) -> Any:
    """Return a JSON value with one to four hostile changes."""
    value = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        there = places(value)
        if not there:
            return random.choice(VALUES)
        *path, key = random.choice(there)
        home = value
        for part in path:
            home = home[part]
        change = random.randrange(6)
        if change == 0:
            del home[key]
        elif change == 1 and isinstance(home, list):
            home.insert(key, copy.deepcopy(home[key]))
        elif change == 1:
            home[str(random.choice(VALUES))[:50]] = home.pop(key)
        elif change == 2:
            _, donor = random.choice(there), random.choice(there)
            home[key] = copy.deepcopy(_at(value, donor))
        elif change == 3 and isinstance(home[key], int | float):
            with contextlib.suppress(OverflowError):
                home[key] = home[key] * random.choice((-1, 1_000, 1e300, 2**32, 0))
        else:
            home[key] = copy.deepcopy(random.choice(VALUES))  # else the next change changes it in all that follow
    return value


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


_WRITTEN: tuple[Callable[[str], str], ...] = (
    lambda text: "\ufeff" + text,
    lambda text: text + text,
    lambda text: text + "\0",
    lambda text: text.replace(", ", ",\r\n"),
    lambda text: text.replace("1", "9" * 5_000, 1),
    lambda text: text.replace("1", "-1e999", 1),
    lambda text: text.replace("{", '{"a": 1, "a": 2, ', 1),
    lambda text: text.replace('""', "[" * 100_000, 1).replace("true", "NaN", 1),
)
"""What no writer of JSON writes, but a person, another program or a mischief-maker."""


def text_of(value: Any, random: Random) -> bytes:
    """Return a value as JSON, now and then cut off, with bytes changed, or not as JSON is written."""
    text = json.dumps(value, ensure_ascii=random.random() < 0.5)
    if random.random() < 0.1:
        return random.choice(_WRITTEN)(text).encode("utf-8", "surrogatepass")
    if random.random() < 0.02:
        return text.encode("utf-16", "surrogatepass")
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if random.random() < 0.1:
        del data[random.randrange(len(data)) :]
    if random.random() < 0.1 and data:
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


@cache
def seeds() -> tuple[Snapshot, ...]:
    """Small clusters of both load managers."""
    specs = (ClusterSpec(brokers=3, namespaces=2, bundles=8, topics=20), ClusterSpec(brokers=4, bundles=6, topics=0))
    return tuple(generate(spec, at) for at, spec in enumerate(specs))


@cache
def _capture(name: str) -> Mapping[str, bytes]:
    with zipfile.ZipFile(CAPTURES / name) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def _zipped(files: Mapping[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


def use_snapshot(snapshot: Snapshot) -> None:
    """Do with a loaded snapshot what the pages do first; it must hold what the validator promises."""
    validate(snapshot)
    snapshot_digest(snapshot)
    moment(snapshot.info.captured_at_ms)
    plain(snapshot.info.cluster)
    again = read_upload("x.json", io.BytesIO(write_document(snapshot).encode()))
    assert snapshot_digest(again) == snapshot_digest(snapshot), "it is another one when it is read again"
    decide_cycles(same_load(snapshot, 1, snapshot.settings), snapshot.settings, 0)
    scenario = Scenario(cycles=2)
    if price_of(snapshot, scenario).seconds < 1:
        Outcome(simulate(snapshot, scenario)).prepare()


def settled(random: Random) -> dict[str, Any]:
    """Return settings of any release at their bounds."""
    known = release(random.choice(RELEASES)).settings
    chosen = [known[name] for name in random.sample(sorted(known), random.choice((1, 5, 30)))]
    chosen += random.sample([one for name, one in known.items() if "IntervalMinutes" in name], 1)  # never to end
    return {one.name: random.choice((one.minimum, one.maximum, conf_value(one.default), 0, "")) for one in chosen}


def document(random: Random) -> Snapshot:
    value = json.loads(write_document(random.choice(seeds())))
    if random.random() < 0.2:
        value["info"]["pulsar_version"] = random.choice((*RELEASES, "9.9", ""))
        value["settings"] = {name: to for name, to in settled(random).items() if to is not None}
    return read_upload("x.json", io.BytesIO(text_of(mutated(value, random), random)))


def hostile_table(data: bytes, random: Random) -> bytes:
    """Return a Parquet file with other values, and now and then another type, in one of its columns."""
    table = pq.read_table(io.BytesIO(data))
    name = random.choice(table.column_names)
    values, own = table[name].to_pylist(), table.schema.field(name).type
    how = random.randrange(4)
    kind = random.choice((pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.binary(), pa.list_(pa.int8()), own))
    for _ in range(random.randrange(1, 4) if values else 0):
        values[random.randrange(len(values))] = random.choice(VALUES)
    try:
        column = pa.array(values, kind)
        column = column.dictionary_encode() if how == 1 else column
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        column = pa.nulls(len(values), kind)
    table = table.set_column(table.column_names.index(name), name, column)
    sink = io.BytesIO()
    pq.write_table(_rows(table, random) if how > 1 else table, sink, row_group_size=random.choice((1, 1_000)))
    return sink.getvalue()


def _rows(table: pa.Table, random: Random) -> pa.Table:
    """Return a table with other rows, or with its columns under other names."""
    names = random.sample(table.column_names, len(table.column_names))
    rows = random.sample(range(table.num_rows), table.num_rows)
    changed: tuple[pa.Table, ...] = (
        table.slice(0, 0), table.slice(len(rows) // 2), pa.concat_tables([table, table]), table.take(rows),
        table.rename_columns(names), table.drop_columns(names[:1]), table.append_column("a.b", pa.nulls(len(rows))),
    )  # fmt: skip
    return random.choice(changed)


def folder(random: Random) -> Snapshot:
    files = parts_of_snapshot(random.choice(seeds()))
    manifest = json.loads(files["manifest.json"])
    del manifest["digest"]  # optional; with it every change would be found by it alone
    if random.random() < 0.4:
        manifest = mutated(manifest, random)
    else:
        part = random.choice(sorted(manifest["parts"]))
        data = hostile_table(files[f"{part}.parquet"], random)
        files[f"{part}.parquet"] = data
        manifest["parts"][part]["sha256"] = hashlib.sha256(data).hexdigest()
    files["manifest.json"] = text_of(manifest, random)
    data_ = bytearray(_zipped(files))
    if random.random() < 0.2:
        data_[random.randrange(len(data_))] ^= 1 << random.randrange(8)
    return read_upload("x.zip", io.BytesIO(bytes(data_)), trusted=random.random() < 0.5)


def capture(random: Random) -> Snapshot:
    files = dict(_capture(random.choice(("modular.zip", "extensible.zip"))))
    for name in random.sample(sorted(files), random.randrange(1, 4)):
        try:
            files[name] = text_of(mutated(json.loads(files[name]), random), random)
        except ValueError:
            files[name] = bytes(random.randrange(256) for _ in range(random.randrange(40)))
    return read_upload("x.zip", io.BytesIO(_zipped(files)))


def scenario(random: Random) -> None:
    cluster = seeds()[0]
    made = random_scenario(cluster, random.randrange(2**31), most_cycles=6)
    text = text_of(mutated(json.loads(scenario_file(made, "", "x")), random), random)
    found = read_scenario_file(text, "x.json").scenario
    if found is not None and price_of(cluster, found).seconds < 1:
        Outcome(simulate(cluster, found)).prepare()


def link(random: Random) -> None:
    text = encode_link(
        random_scenario(seeds()[0], random.randrange(2**31)),
        snapshot_digest(seeds()[0]),
        random.choice(("x", "\u202e", "=1")),
    )
    at = random.randrange(len(text))
    broken = random.choice(
        (text[:at], text[:at] + random.choice("Aa0_-.\u202e %") + text[at + 1 :], text * 2, text[at:])
    )
    decode_link(broken)


def replay_spec(random: Random) -> None:
    job = Job(
        name="j",
        history="h",
        clusters=("c",),
        first_day="2027-01-01",
        last_day="2027-01-02",
        scenarios=(Scenario(name="a"),),
    )
    content = json.loads(job_to_json(job))
    del content["sha256"]  # optional; with it every change would be found by it alone
    job_from_json(text_of(mutated(content, random), random).decode("utf-8", "replace"))


def grid(random: Random) -> None:
    wanted = Grid(
        base=random_scenario(seeds()[0], random.randrange(2**31)),
        strategies=("ThresholdShedder", "AvgShedder"),
        settings={"maxUnloadBundleNumPerShedding": (1, 2), "loadBalancerBrokerOverloadedThresholdPercentage": (70, 80)},
        more=(Scenario(name="a"),),
        releases=("3.0.7",),
    )
    text = text_of(mutated(json.loads(grid_to_json(wanted)), random), random)
    scenarios_of(grid_from_json(text, "x.json"), random.choice(seeds()))


def recording(random: Random) -> None:
    reports = [data for name, data in sorted(_capture("modular.zip").items()) if name.startswith("load-report")]
    value = {"broker": "b:1", "time_ms": 1_800_000_000_000, "report": json.loads(random.choice(reports))}
    line = text_of(mutated(value, random), random).replace(b"\n", b" ")
    for _ in records_of_lines([line, b"{}"], "c", Tally()):
        pass


@cache
def _stored(seed: int) -> tuple[str, bytes]:
    """Return the digest of a small cluster, and a workspace that has it."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "w.duckdb"
        opened = open_workspace(path)
        digest = opened.add(seeds()[seed], "one").digest
        opened.close()
        return digest, path.read_bytes()


def workspace(random: Random) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "w.duckdb"
        digest, stored = _stored(random.choice(range(len(seeds()))))
        path.write_bytes(stored)
        if random.random() < 0.5:
            data = bytearray(path.read_bytes())
            for _ in range(random.randrange(1, 20)):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            path.write_bytes(data)
        else:
            table = random.choice(("snapshots", "brokers", "bundles", "topics"))
            with duckdb.connect(str(path)) as connection:
                columns = [row[0] for row in connection.sql(f"DESCRIBE {table}").fetchall()]
                change = f"UPDATE {table} SET {random.choice(columns)} = ?"  # noqa: S608
                try:
                    connection.execute(change, [random.choice(VALUES)])
                except duckdb.Error:
                    return
        again = open_workspace(path)
        try:
            for saved in again.saved():
                moment(saved.captured_at_ms)
            use_snapshot(again.snapshot(digest))
        finally:
            again.close()


def settings(random: Random) -> None:
    names = ("loadBalancerEnabled", "loadBalancerSheddingIntervalMinutes", "loadManagerClassName", "nothing", "")
    Settings({random.choice(names): random.choice(VALUES)})


KINDS: tuple[Callable[[Random], Snapshot | None], ...] = (
    document, folder, capture, scenario, link, replay_spec, recording, workspace, settings, grid,
)  # fmt: skip
_SLOW_EVERY = 50
MOST_S = 120.0
"""How long one input may take; a pipe that is waited for takes for ever."""
_LONGEST = 5_000
_AT_ONCE = 250


class TooLongError(BaseException):
    """An input took longer than it may; nothing that is tried takes it for an error of its own."""


@contextlib.contextmanager
def at_most(seconds: float, what: str = "It") -> Iterator[None]:
    """End what takes longer, also where it waits; the alarm of whoever runs the tests goes on afterwards.

    What waits inside of a library hears no alarm. Half a minute later that is named on standard error, and the process
    ends.

    Raises:
        TooLongError: It did.
    """

    def stop(*_: object) -> None:
        raise TooLongError

    def end() -> None:
        os.write(2, f"{what}: took more than {seconds:g} s, and hears no alarm.\n".encode())
        faulthandler.dump_traceback(2)
        os._exit(3)

    handler, began = signal.signal(signal.SIGALRM, stop), time.monotonic()
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    last = threading.Timer(seconds + 30, end)
    last.daemon = True
    last.start()
    try:
        yield
    finally:
        last.cancel()
        signal.setitimer(signal.ITIMER_REAL, left_s and max(left_s - (time.monotonic() - began), 0.001))
        signal.signal(signal.SIGALRM, handler)


def kind_of(number: int) -> Callable[[Random], Snapshot | None]:
    """Return what kind of input has a number: what is slow to try comes once in fifty."""
    from tests.fuzz import slow  # noqa: PLC0415 - it uses this module

    if number % _SLOW_EVERY == _SLOW_EVERY - 1:
        return slow.KINDS[number // _SLOW_EVERY % len(slow.KINDS)]
    return KINDS[number % len(KINDS)]


def run(seed: int, first: int, inputs: int) -> tuple[Counter[str], list[str]]:
    """Try inputs; return how many came to what, and each fault with what shows it again."""
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(first, first + inputs):
        random = Random(f"{seed}/{number}")  # noqa: S311 - reproducible
        kind = kind_of(number)
        try:
            with at_most(MOST_S, f"--seed {seed} --first {number}: {kind.__name__}"):
                loaded = kind(random)
                if loaded is not None:
                    use_snapshot(loaded)
            outcome = "loaded"
        except TooLongError:
            outcome = "fault"
            faults.append(f"--seed {seed} --first {number}: {kind.__name__}: it took more than {MOST_S:g} s")
        except PlannerError as error:
            outcome = "refused"
            said = str(error)
            if not (error.what and error.where and error.remedy and said.isprintable() and len(said) <= _LONGEST):
                outcome = "fault"
                faults.append(f"--seed {seed} --first {number}: {kind.__name__}: not in words: {error!r}"[:300])
        except Exception as error:  # noqa: BLE001 - what is looked for
            outcome = "fault"
            last = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{Path(last.filename).name}:{last.lineno}"
            faults.append(f"--seed {seed} --first {number}: {kind.__name__}: {error!r} at {at}"[:300])
        outcomes[f"{kind.__name__}: {outcome}"] += 1
    return outcomes, faults


def main() -> int:
    """Try inputs from the command line and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    outcomes: Counter[str] = Counter()
    failed = 0
    for first in range(asked.first, asked.first + asked.inputs, _AT_ONCE):
        found, faults = run(asked.seed, first, min(_AT_ONCE, asked.first + asked.inputs - first))
        outcomes.update(found)
        failed += len(faults)
        sys.stdout.writelines(f"{fault}\n" for fault in faults)  # hours before the end
        sys.stdout.flush()
    sys.stdout.writelines(f"{count:7,} {name}\n" for name, count in sorted(outcomes.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
