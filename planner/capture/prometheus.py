"""Fetches the series of a cluster from a Prometheus: hours and days as export files, a moment as an answer.

The files lie beside the history, are never changed, and each says in its name which time it has. A run that was killed,
or a later one with a longer time, asks only for what no file has.
"""

import gzip
import hashlib
import io
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

import msgspec

from planner.capture.prometheus_client import COARSEST, PrometheusClient, TooMuchError
from planner.capture.prometheus_options import PrometheusOptions
from planner.capture.prometheus_queries import COUNTERS, GAUGES, GROUPS, hosts_query, query_of
from planner.cluster.errors import CaptureError
from planner.cluster.files import PRIVATE, clear_unfinished, reading, sync_folder, whole_file
from planner.cluster.moments import iso_moment, parse_moment
from planner.cluster.units import DAY_MS, MS_PER_MIN, MS_PER_S, NS_PER_MS
from planner.doors.read import Given, read_with_outputs
from planner.doors.reading import Reading
from planner.formats.validate import fitting_notes
from planner.history.labels import BrokerRule, broker_of, has_port, normalised
from planner.history.whole_answer import INCOMPLETE, Said

FETCHED: Final = "fetched"
"""Folder of a history with what was fetched for it."""

LAG_MS: Final = MS_PER_MIN
"""The last minute is not asked for: not every broker may have been scraped since."""

_SAMPLES: Final = 1_000_000
"""Samples that one request asks for, at most."""
_MOST_POINTS: Final = 10_000
"""Points of a series that one request asks for; Prometheus answers at most 11,000."""
_RATE_MS: Final = MS_PER_MIN
"""Time over which the rate of a counter at a moment is taken."""
_HOSTS_STEP_MS: Final = 5 * MS_PER_MIN
_SUFFIX: Final = ".json.gz"
_EMPTY: Final = ".empty"

Progress = Callable[[str], None]
"""Called with a line of text for each part that is there."""


class Series(msgspec.Struct):
    """A series of an answer.

    Attributes:
        metric: Its labels.
        values: Its samples over time, as they were written.
        value: Its sample at a moment, as it was written.
    """

    metric: dict[str, str]
    values: msgspec.Raw = msgspec.Raw(b"")
    value: msgspec.Raw = msgspec.Raw(b"")


class _Data(msgspec.Struct):
    result: list[Series]
    resultType: str  # noqa: N815 - Prometheus' name


class _Answer(msgspec.Struct):
    status: str
    data: _Data
    isPartial: bool = False  # noqa: N815 - VictoriaMetrics' name
    warnings: list[str] = []


class _Store(msgspec.Struct):
    name: str
    lastError: str | None = None  # noqa: N815 - Thanos' name


class _Stores(msgspec.Struct):
    data: dict[str, list[_Store]]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch left.

    Attributes:
        folder: Where the files are.
        files: How many there are now.
        fetched: How many of them this run asked for.
        samples: Samples that this run received, about.
        received_bytes: What this run received.
        notes: What a person must know.
    """

    folder: Path
    files: int
    fetched: int
    samples: int
    received_bytes: int
    notes: tuple[str, ...]


class Source:
    """A Prometheus whose answers name brokers by their web addresses.

    Attributes:
        client: Sends the requests.
        notes: What was assumed about brokers, each once.
        warnings: What the server said of its last answer.
        said: What it said of all of its answers, one sentence each.
    """

    def __init__(self, client: PrometheusClient, options: PrometheusOptions) -> None:
        self.client = client
        self.notes: dict[str, None] = {}
        self.warnings: list[str] = []
        self.said: dict[str, None] = {}
        self._options = options
        self._rules: Sequence[BrokerRule] = options.rules()
        self._hosts: dict[int, Mapping[str, str]] = {}

    def series(self, path: str, parameters: Mapping[str, str]) -> list[Series]:
        """Ask for series, as the server has them.

        Raises:
            TooMuchError: It cannot answer so much at once.
            CaptureError: There is no answer, or it is none of Prometheus.
        """
        with tempfile.TemporaryFile() as sink:
            self.client.get(path, parameters, sink)
            sink.seek(0)
            try:
                answer = msgspec.json.decode(sink.read(), type=_Answer)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise CaptureError(
                    "The answer is not one of Prometheus.",
                    where="--prometheus",
                    remedy="Check the address. Include the path before /api/v1, if there is one.",
                ) from error
        partial = ["the answer is partial"] * answer.isPartial
        if answer.status != "success" or (partial and not self._options.accept_partial):
            remedy = "Try again when all stores answer, or use --accept-partial."
            raise CaptureError(INCOMPLETE, where="--prometheus", remedy=remedy)
        self.warnings = partial + answer.warnings
        self.said |= dict.fromkeys(Said(warnings=tuple(self.warnings)).notes)
        return answer.data.result

    def of_moment(self, query: str, at_ms: int) -> list[Series]:
        """Return what a query gives at a moment."""
        return self._finest("query", {"query": query, "time": _seconds(at_ms)})

    def over(self, query: str, start_ms: int, end_ms: int, step_ms: int) -> list[Series]:
        """Return what a query gives from a moment to another one, which is included."""
        times = {"start": _seconds(start_ms), "end": _seconds(end_ms), "step": _seconds(step_ms)}
        return self._finest("query_range", {"query": query, **times})

    def _finest(self, path: str, parameters: Mapping[str, str]) -> list[Series]:
        """Ask for raw samples, and where there are none for averages, as far as the options allow."""
        found = self.series(path, parameters)
        coarsest = self._options.coarsest
        if not found and coarsest != "raw" and (found := self.series(path, {**parameters, COARSEST: coarsest})):
            self.warnings = [*self.warnings, f"only averages over up to {coarsest} are left of some times"]
            self.said |= dict.fromkeys(Said(warnings=tuple(self.warnings)).notes)
        return found

    def note_averages(self, query: str, at_ms: int) -> bool:
        """Note that Thanos has averages alone at a moment of which it has no raw samples; return whether it does."""
        given = {"query": f"count({query})", "time": _seconds(at_ms), COARSEST: "1h"}
        there = self._options.coarsest == "raw" and bool(self.series("query", given))
        if there:
            self.notes.setdefault("Raw samples are gone from some times; Thanos has averages. Use --coarsest 5m.")
        return there

    def note_stores(self) -> None:
        """Note the stores of a Thanos that it does not reach: what they have is missing without a warning."""
        with tempfile.TemporaryFile() as sink, suppress(CaptureError, msgspec.MsgspecError, UnicodeDecodeError):
            self.client.get("stores", {}, sink)
            sink.seek(0)
            for stores in msgspec.json.decode(sink.read(), type=_Stores).data.values():
                for name in (one.name for one in stores if one.lastError):
                    self.notes.setdefault(f"Thanos does not reach its store {name}. What it alone has is missing.")

    def named(self, series: Iterable[Series], at_ms: int) -> Iterator[Series]:
        """Yield series with Pulsar's own names, the web address of their broker as `instance`."""
        for one in series:
            one.metric = self.labels(one.metric, at_ms)
            yield one

    def labels(self, labels: Mapping[str, str], at_ms: int) -> dict[str, str]:
        """Return the labels of a series with Pulsar's own names, the web address of its broker as `instance`."""
        found = dict(normalised(labels))
        broker = next(filter(None, (rule.of({**labels, **found}) for rule in self._rules)), "")
        if not broker:
            broker = self._of_target(found.get("instance", ""), at_ms) or broker_of(found)[0]
            if self._rules:
                self.notes.setdefault(f"Some series have none of the labels of --broker-names, such as {broker}.")
        if has_port(broker):
            found["instance"] = broker
        return found

    def _of_target(self, instance: str, at_ms: int) -> str:
        """Return the broker at a target, by the host that it gives as its own; empty where that is unknown."""
        if not has_port(instance):
            return ""
        day = at_ms // DAY_MS
        if day not in self._hosts:
            self._hosts[day] = self._hosts_of(day * DAY_MS)
        own = self._hosts[day].get(instance, "")
        return own if not own or has_port(own) else f"{own}:{instance.rpartition(':')[2]}"

    def _hosts_of(self, start_ms: int) -> dict[str, str]:
        said: dict[str, set[str]] = {}
        ended_ms = min(start_ms + DAY_MS, max(start_ms, time.time_ns() // NS_PER_MS))
        end_ms = -(-ended_ms // _HOSTS_STEP_MS) * _HOSTS_STEP_MS  # each point looks back five minutes
        with suppress(TooMuchError):
            for one in self.over(hosts_query(self._options.matchers), start_ms, end_ms, _HOSTS_STEP_MS):
                labels = normalised(one.metric)
                if labels.get("instance") and labels.get("broker"):
                    said.setdefault(labels["instance"], set()).add(labels["broker"])
        for instance in sorted(name for name, hosts in said.items() if len(hosts) > 1):
            text = f"Several brokers were at {instance} on one day. Their pods tell them apart; where series have none,"
            self.notes.setdefault(f"{text} use --broker-names.")
        return {name: next(iter(hosts)) for name, hosts in said.items() if len(hosts) == 1}


def _seconds(ms: int) -> str:
    return f"{ms / MS_PER_S:.3f}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The time to fetch.

    Attributes:
        start_ms: First moment, ms since 1970.
        end_ms: Moment after the last one.
        step_ms: Time between two samples of a series.
    """

    start_ms: int
    end_ms: int
    step_ms: int

    def check(self) -> None:
        """Refuse a time that cannot be fetched.

        Raises:
            CaptureError: Naming the option.
        """
        if not MS_PER_S <= self.step_ms <= 5 * MS_PER_MIN:
            raise CaptureError(
                f"{self.step_ms / MS_PER_S:g} s between samples is out of range.",
                where="--step-s",
                remedy="Use 1 to 300 seconds: Prometheus calls a sample stale after five minutes.",
            )
        if self.start_ms >= self.end_ms:
            raise CaptureError(
                "The time ends before it begins, or has no whole step.",
                where="--from",
                remedy="Use an earlier --from, or a later --to.",
            )

    @staticmethod
    def of(start: str, end: str, step_s: int, now_ms: int) -> "Wanted":
        """Return the time between two moments as a person writes them; it ends a minute ago at the latest.

        Raises:
            CaptureError: One is no moment, or there is nothing between them.
        """
        step_ms = max(step_s, 0) * MS_PER_S
        bounds = [moment_of(text, name, now_ms) for text, name in ((start, "--from"), (end, "--to"))]
        unit = max(step_ms, 1)
        first, last = -(-bounds[0] // unit) * unit, min(bounds[1], now_ms - LAG_MS) // unit * unit + unit
        if last > bounds[1] and bounds[1] % unit == 0:
            last = bounds[1]  # a moment at the end belongs to the next part
        found = Wanted(first, last, step_ms)
        found.check()
        return found


def moment_of(text: str, where: str, now_ms: int) -> int:
    """Return a moment as a person writes it, in ms since 1970.

    Raises:
        CaptureError: It is none; names the option.
    """
    try:
        return parse_moment(text, now_ms)
    except ValueError:
        raise CaptureError(
            f"{text[:40]!r} is not a moment.", where=where, remedy="Write 2026-11-25T03:00:00Z, now or now-2h."
        ) from None


def fetch(options: PrometheusOptions, wanted: Wanted, history: Path, progress: Progress = lambda _: None) -> Fetched:
    """Fetch the series of a time into files beside a history; those that are there are not fetched again.

    Raises:
        CaptureError: The server does not answer, or the files cannot be written.
    """
    wanted.check()
    folder = folder_of(options, wanted.step_ms, history)
    with (
        PrometheusClient(options) as client,
        reading(folder, CaptureError, "Check the permissions of --out.", what="The files cannot be written"),
    ):
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        clear_unfinished(folder)
        work = _Fetch(Source(client, options), options, wanted, folder, progress)
        for group in GROUPS:
            work.group(group)
        work.source.note_stores()
        files = sum(path.name.endswith(_SUFFIX) for path in folder.iterdir())
        if not files:
            raise CaptureError(
                "Prometheus has none of Pulsar's series in this time.",
                where="--prometheus",
                remedy=" ".join(work.source.notes) or "Check --matchers, --from and --to; --dry-run lists the series.",
            )
        notes = (*work.source.notes, *work.source.said)
        return Fetched(folder, files, work.fetched, work.samples, client.received_bytes, notes)


def folder_of(options: PrometheusOptions, step_ms: int, history: Path) -> Path:
    """Return where the files of a source are: each server, choice of series, and step has its own folder."""
    parts = urlsplit(options.url)
    said = [options.url.rstrip("/"), options.matchers, list(options.broker_names), options.org_id, step_ms]
    if options.coarsest != "raw" or options.accept_partial:
        said += [options.coarsest, options.accept_partial]
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]
    host = "".join(sign if sign.isalnum() or sign in ".-" else "-" for sign in (parts.hostname or ""))[:60]
    return history / FETCHED / f"{host.strip('.') or 'prometheus'}-{digest}"


@dataclass
class _Fetch:
    """A fetch under way."""

    source: Source
    options: PrometheusOptions
    wanted: Wanted
    folder: Path
    progress: Progress
    fetched: int = 0
    samples: int = 0

    def group(self, group: str) -> None:
        """Fetch what is missing of a group."""
        gaps = list(_gaps(self._there(group), self.wanted))
        if not gaps:
            return
        span_ms = self._span_ms(group)
        left = [part for gap in gaps for part in _parts(*gap, span_ms)]
        total_ms = sum(end - start for start, end in left)
        done_ms = 0
        while left:
            start, end = left.pop(0)
            try:
                self._part(group, start, end)
            except TooMuchError:
                middle = start + (end - start) // self.wanted.step_ms // 2 * self.wanted.step_ms
                if middle == start:
                    raise
                left[:0] = [(start, middle), (middle, end)]
                continue
            done_ms += end - start
            self.progress(f"{group}: {done_ms / total_ms:.0%}, until {iso_moment(end)}")

    def _there(self, group: str) -> list[tuple[int, int]]:
        found = []
        for path in self.folder.iterdir():
            name = path.name.removeprefix(".")
            kind, _, times = name.removesuffix(_EMPTY).removesuffix(_SUFFIX).partition("-")
            start, _, end = times.partition("-")
            if kind == group and name.endswith((_SUFFIX, _EMPTY)):
                with suppress(ValueError):
                    found.append((parse_moment(start, 0), parse_moment(end, 0)))
        return sorted(found)

    def _span_ms(self, group: str) -> int:
        """Return for how long one request asks: as long as its answer stays small."""
        query = f"count({query_of(group, self.options.matchers)})"
        first, last, step = self.wanted.start_ms, self.wanted.end_ms - self.wanted.step_ms, self.wanted.step_ms
        looks = dict.fromkeys((first, (first + last) // 2 // step * step, last))
        counts = [float(msgspec.json.decode(one.value)[1]) for at in looks for one in self.source.of_moment(query, at)]
        points = min(_MOST_POINTS, int(_SAMPLES // max([*counts, 1.0])))
        return min(max(points, 1) * step, max(DAY_MS // step, 1) * step)

    def _part(self, group: str, start_ms: int, end_ms: int) -> None:
        step_ms = self.wanted.step_ms
        found = self.source.over(query_of(group, self.options.matchers), start_ms, end_ms - step_ms, step_ms)
        warnings = self.source.warnings
        self.fetched += 1
        self.samples += len(found) * ((end_ms - start_ms) // step_ms)
        name = f"{group}-{_compact(start_ms)}-{_compact(end_ms)}"
        if not found:
            (self.folder / f".{name}{_EMPTY}").touch(mode=0o600)
            if group == GROUPS[0]:
                self.source.note_averages(query_of(group, self.options.matchers), (start_ms + end_ms) // 2)
            return
        with (
            whole_file(self.folder / f"{name}{_SUFFIX}", 0o600) as file,
            # without the time and name that gzip would write, equal answers are equal files
            gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed,
        ):
            write_answer(self.source.named(found, start_ms), packed, "matrix", warnings)
        sync_folder(self.folder)


def _compact(ms: int) -> str:
    return iso_moment(ms).replace("-", "").replace(":", "")


def write_answer(
    series: Iterable[Series], sink: BinaryIO | gzip.GzipFile, kind: str, warnings: Sequence[str] = ()
) -> None:
    """Write series as Prometheus answers them.

    Args:
        series: The series.
        sink: Where to.
        kind: `matrix` over time, `vector` at a moment.
        warnings: What the server said of its answer.
    """
    sink.write(f'{{"status":"success","data":{{"resultType":"{kind}","result":['.encode())
    for at, one in enumerate(series):
        metric = json.dumps(one.metric, ensure_ascii=False).encode("utf-8", "replace")
        values = b'"values":' + bytes(one.values) if bytes(one.values) else b'"value":' + bytes(one.value)
        sink.write((b",\n" if at else b"\n") + b'{"metric":' + metric + b"," + values + b"}")
    said = f',"warnings":{json.dumps(list(warnings))}' if warnings else ""
    sink.write(f"\n]}}{said}}}\n".encode())


def _gaps(there: Iterable[tuple[int, int]], wanted: Wanted) -> Iterator[tuple[int, int]]:
    """Yield the times that no file has."""
    at = wanted.start_ms
    for start, end in sorted(there):
        if start > at:
            yield at, min(start, wanted.end_ms)
        at = max(at, end)
        if at >= wanted.end_ms:
            return
    yield at, wanted.end_ms


def _parts(start: int, end: int, span_ms: int) -> Iterator[tuple[int, int]]:
    for at in range(start, end, span_ms):
        yield at, min(at + span_ms, end)


def answers_at(options: PrometheusOptions, at_ms: int) -> tuple[list[tuple[str, bytes]], tuple[str, ...]]:
    """Return name and content of the answers that say what a cluster was like at a moment, and what was assumed.

    What the server warns about is in the answers.

    Counters are asked for where no gauge says the rates of topics, over the minute before.

    Raises:
        CaptureError: There is no answer, or the server has none of Pulsar's series at that moment.
    """
    found: list[tuple[str, bytes]] = []
    warned: dict[str, None] = {}
    with PrometheusClient(options) as client:
        source = Source(client, options)

        def take(group: str, answer: list[Series], kind: str) -> list[Series]:
            new = [text for text in source.warnings if text not in warned]  # each stands in one answer
            series = list(source.named(answer, at_ms))
            if series:
                warned.update(dict.fromkeys(new))
                found.append((f"{group} from Prometheus", _answer(series, kind, new)))
            return series

        rates = False
        for group in GAUGES:
            series = take(group, source.of_moment(query_of(group, options.matchers), at_ms), "vector")
            rates |= any(one.metric.get("__name__", "").startswith("pulsar_rate_") for one in series)
        if not rates:
            query = query_of(COUNTERS, options.matchers)
            take(COUNTERS, source.over(query, at_ms - _RATE_MS, at_ms, _RATE_MS), "matrix")
        if not found:
            source.note_averages(query_of(GROUPS[0], options.matchers), at_ms)
        source.note_stores()
        notes = tuple(source.notes)
    if not found:
        raise CaptureError(
            f"Prometheus has none of Pulsar's series at {iso_moment(at_ms)}.",
            where="--at",
            remedy=" ".join(notes) or "Check --matchers and --at.",
        )
    return found, notes


def snapshot_outputs(
    options: PrometheusOptions,
    at_ms: int,
    files: Sequence[Path] = (),
    *,
    cluster: str = "",
    release: str = "",
    progress: Progress = lambda _: None,
) -> Reading:
    """Return what a Prometheus says of a cluster at a moment, with outputs of tools in files; see `read_outputs`.

    Raises:
        CaptureError: There is no answer, or the server has none of Pulsar's series at that moment.
        FormatError: A file cannot be read.
        SnapshotError: They are not one cluster.
    """
    answers, notes = answers_at(options, at_ms)
    given = [Given(name, io.BytesIO(data)) for name, data in answers]
    found = read_with_outputs(given, *files, cluster=cluster, release=release, now_ms=at_ms, progress=progress)
    snapshot = found.snapshot
    if snapshot is not None and notes:
        info = replace(snapshot.info, warnings=fitting_notes([*snapshot.info.warnings, *notes]))
        snapshot = replace(snapshot, info=info)
    return replace(found, snapshot=snapshot, assumed=(*found.assumed, *notes))


def _answer(series: Iterable[Series], kind: str, warnings: Sequence[str]) -> bytes:
    sink = io.BytesIO()
    write_answer(series, sink, kind, warnings)
    return sink.getvalue()
