"""Asks a cluster for everything that the catalogue lists, in an order that keeps what changes fast close together."""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from planner.capture.addresses import BEHIND_ONE, BROKER_ID, NO_LOADS, check_apart, tls_addresses
from planner.capture.answer_filter import NamespaceFilter, only_namespaces, only_settings
from planner.capture.catalogue import STORE_FOLDERS, AdminRequest, request_named
from planner.capture.client import AdminClient, AnswerError
from planner.capture.options import CaptureOptions, Progress, ProgressSink
from planner.capture.parts import UNSET, Part, Parts, stem_of
from planner.capture.stores.protocol import Dump, MetadataStore
from planner.capture.stores.registry import connect
from planner.cluster.errors import CaptureError, FormatError
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME
from planner.cluster.releases import release
from planner.cluster.units import NS_PER_MS
from planner.formats.encoding import parse_json
from planner.formats.raw_capture.metadata_store import DUMP

MOMENT = ("owned", "load-report", "topics", "metrics", "prometheus")
"""Answers of each broker about the moment; the closer together they are, the better they fit."""

REPEATS = (
    "the configuration repeats the token that was sent; only settings of the load balancer were kept, without the token"
)
"""Note of a configuration that holds the secret of whoever captures."""

_OF_BROKERS = frozenset({"auto", "off", "admin", "prometheus"})
_NAME = r"(?!\.{1,2}(?:/|\Z))[-=:.\w]+"  # a path with . or .. leads elsewhere; no admin API can make such a name
_NAMESPACE = re.compile(f"{_NAME}/{_NAME}", re.ASCII)
_TENANT = re.compile(_NAME, re.ASCII)
_CUT = frozenset({"owned", "load-report", "topics", "metrics", "prometheus"})
_JSON = "application/json, text/plain;q=0.5"
_TEXT = "text/plain, */*;q=0.1"
_OK = 200
_NOT_FOUND = 404
_FORBIDDEN = (401, 403)
_START = 512
_REASON = 200
_LONGEST_WAIT_S = 2.0
_REPORTS = tuple(folder for folder in STORE_FOLDERS if folder.path == "/loadbalance/brokers")
_OF_ANSWER = ("asked", "answered", "status", "time_ms", "took_ms", "attempts", "content_type")


_Job = Callable[[], Any]


class Collector:
    """Fills a folder of parts with what the client is told, and tells the progress."""

    def __init__(
        self,
        options: CaptureOptions,
        client: AdminClient,
        parts: Parts,
        progress: ProgressSink,
        reports_at_s: float = 0.0,
    ) -> None:
        self.options = options
        self._reports_at_s = reports_at_s
        self.notes: dict[str, None] = {}
        self._dumped, self._dumped_ms = Dump((), ()), 0
        self._client = client
        self._parts = parts
        self._progress = progress
        self._wanted = NamespaceFilter(options.namespaces)
        self._stage = "brokers"
        self._done = self._total = self._failed = 0
        self._first = options.admin_url.rstrip("/")
        self._unreachable: set[str] = set()
        self._hidden = False

    async def run(self) -> None:
        """Ask for everything.

        Raises:
            CaptureError: What no capture can do without is missing, or a bound was broken.
        """
        async with _store(self.options) as store:
            brokers = await self._brokers(store)
            bases = await self._bases(brokers, store)
            tags = {broker: f"b{i}" for i, broker in enumerate(brokers, 1)}
            self._parts.only_brokers(len(brokers))
            await self._of_brokers(("runtime-config",), bases, tags, {})
            bases = await self._answering(bases, tags, store)
            cluster = await self._cluster(tags)
            names = {"cluster": cluster}
            self._report("cluster")
            once = ("leader", "version", "dynamic-config-values", "isolation-policies", "failure-domains")
            await self._each(partial(self._ask, request_named(n), self._first, (), names) for n in once)
            namespaces = await self._namespaces()
            self._report("namespaces")
            slow = ["policies", "anti-affinity"]
            if self.options.with_topics:
                slow += ["persistent-topics", "partitioned-topics"]
            await self._of_namespaces(slow, namespaces)
            self._report("load, owners and bundles")
            await self._moment(cluster, namespaces, bases, tags, store)
            await self._who_left(brokers)

    # What there is.

    async def _brokers(self, store: MetadataStore | None) -> list[str]:
        """Return the brokers that the API lists; those of the metadata store where it may not be asked."""
        try:
            part = await self._ask(request_named("brokers-all"), self._first, (), {})
        except CaptureError:
            kept = self._parts.find(stem_of("brokers-all"))
            if store is None or kept is None or kept.status not in _FORBIDDEN or not await self._is_known():
                raise
            dump = await asyncio.to_thread(partial(store.dump, "", NamespaceFilter(()), _REPORTS))
            registered = [str(node["path"]).rpartition("/")[2] for node in dump.nodes]
            if not (names := [name for name in registered if BROKER_ID.fullmatch(name)]):
                raise
            self._note(
                f"The API refused the list of brokers ({_trouble(kept)}): they are those in the metadata store, with"
                " the load and the owners that it keeps"
            )
            return names
        names = list(dict.fromkeys(self._parts.json(part, list)))
        wrong = [name for name in names if not isinstance(name, str) or not BROKER_ID.fullmatch(name)]
        if wrong or not names:
            raise CaptureError(
                f"{str(wrong[0])[:80]!r} is not a broker id (host:port)." if wrong else "The cluster lists no broker.",
                where=self._first + part.path,
                remedy="Use the admin address of a Pulsar broker.",
            )
        if len(names) > self.options.limits.brokers:
            raise CaptureError(
                f"The cluster lists {len(names):,} brokers; at most {self.options.limits.brokers:,} can be captured.",
                where=self._first + part.path,
                remedy="Check the address.",
            )
        return names

    async def _is_known(self) -> bool:
        """Return whether the cluster accepts the credentials: whoever they are of may list its clusters."""
        part = await self._ask(request_named("clusters"), self._first, (), {})
        return part.status not in _FORBIDDEN

    async def _bases(self, brokers: Sequence[str], store: MetadataStore | None) -> dict[str, str]:
        """Return the address of each broker: as configured, as the metadata store says for TLS, else of its id."""
        scheme = urlsplit(self._first).scheme
        bases = {broker: f"{scheme}://{broker}" for broker in brokers}
        if self.options.broker_url:
            template = self.options.broker_url.rstrip("/")
            bases = {broker: template.replace("{host}", broker.rpartition(":")[0]) for broker in brokers}
        elif scheme == "https" and store is not None:
            dump = await asyncio.to_thread(partial(store.dump, "", NamespaceFilter(()), _REPORTS))
            bases |= tls_addresses(dump.nodes, bases)
        bases |= {name: base for name, _, base in (at.partition("=") for at in self.options.broker_at) if name in bases}
        bases = {name: base.rstrip("/") for name, base in bases.items()}
        for broker in [name for name, base in bases.items() if not self.options.may_ask(base)]:
            self._note(f"Broker {broker} is not covered by --brokers-in, so no request was sent to it")
            del bases[broker]
        check_apart(bases)
        for base in bases.values():
            self._client.trust(base)
        return bases

    async def _answering(
        self, bases: dict[str, str], tags: Mapping[str, str], store: MetadataStore | None
    ) -> dict[str, str]:
        """Return the addresses at which brokers answer; others are asked nothing more.

        Where none does, the admin address is all that there is, and it may lead to any broker. Only what names its
        broker is asked there; the rest comes from the metadata store.

        Raises:
            CaptureError: No broker answers, and there is no metadata store.
        """
        there = {broker: base for broker, base in bases.items() if base not in self._unreachable}
        if there or not bases:
            return there
        broker, base = next(iter(bases.items()))
        silent = self._parts.find(stem_of("runtime-config", tags[broker]))
        why = _trouble(silent) if silent is not None else "no answer"
        if store is None:
            raise CaptureError(
                f"No broker returned its load or its bundles: {broker} and all others cannot be reached under their "
                f"ids. The first error: {why}.",
                where=base,
                remedy=f"Give each broker an address with --broker-at or --broker-url. {BEHIND_ONE}",
            )
        self._hidden = True
        await self._ask(request_named("runtime-config"), self._first, (), {})
        self._note(
            f"No broker can be reached under its id, so {self._first} alone was asked, which may lead to any of them. "
            "Loads and owners come from the metadata store; rates of topics, and all else that it does not have, are "
            "unknown. --broker-at gives each broker an address"
        )
        return dict.fromkeys(bases, self._first)

    async def _cluster(self, tags: Mapping[str, str]) -> str:
        if self.options.cluster:
            return self.options.cluster
        names: dict[str, None] = {}
        for config in self._reported("runtime-config", tags):
            name = config.get("clusterName")
            if isinstance(name, str) and name:
                names[name] = None
        if not names:
            part = await self._ask(request_named("clusters"), self._first, (), {})
            names = dict.fromkeys(n for n in self._texts(part, _TENANT) if n != "global") if part.good else {}
        if len(names) != 1:
            raise CaptureError(
                f"The name of the cluster is unknown ({', '.join(names)[:200] or 'no broker names it'}).",
                where=self._first,
                remedy="Set it with --cluster.",
            )
        return next(iter(names))

    async def _namespaces(self) -> list[str]:
        """Return the namespaces that are wanted, as far as one may list them."""
        self._report("tenants")
        tenants = self._wanted.tenants
        if tenants is None:
            part = await self._ask(request_named("tenants"), self._first, (), {})
            tenants = tuple(self._texts(part, _TENANT)) if part.good else ()
            if not part.good:
                self._note(
                    f"The tenants cannot be listed ({_trouble(part)}): only namespaces with bundles that brokers own"
                )
        listed = [t for t in dict.fromkeys(tenants) if not self._wanted.names_all(t)]
        request = request_named("namespaces")
        await self._each(partial(self._ask, request, self._first, (tenant,), {"tenant": tenant}) for tenant in listed)
        found = dict.fromkeys(self._wanted.named())
        for tenant in listed:
            answer = self._parts.find(stem_of("namespaces", tenant))
            if answer is not None and answer.good:
                found |= dict.fromkeys(n for n in self._texts(answer, _NAMESPACE) if self._wanted.wants(n))
        if len(found) > self.options.limits.namespaces:
            raise CaptureError(
                f"There are {len(found):,} namespaces; at most {self.options.limits.namespaces:,} can be captured.",
                where=self._first,
                remedy="Name some with --namespaces, or raise --max-namespaces.",
            )
        return list(found)

    def _texts(self, part: Part, shape: re.Pattern[str]) -> Iterator[str]:
        try:
            listed = self._parts.json(part, list)
        except FormatError as error:
            self._note(f"{part.path}: {error.what.rstrip('.')}; its entries were left out")
            return
        for name in listed:
            if isinstance(name, str) and shape.fullmatch(name):
                yield name
            else:
                self._note(f"{part.path}: {str(name)[:80]!r} is not a valid name in Pulsar; it was left out")

    # The moment.

    async def _moment(
        self,
        cluster: str,
        namespaces: Sequence[str],
        bases: Mapping[str, str],
        tags: Mapping[str, str],
        store: MetadataStore | None,
    ) -> None:
        config: Mapping[str, Any] = next(self._reported("runtime-config", tags), {})
        extensible = "Extensible" in str(config.get(LOAD_MANAGER_CLASS_NAME, ""))
        names = {"cluster": cluster}
        await self._of_namespaces(("bundles",), namespaces)
        fast = ["owned"] if extensible else ["owned", "load-report"]
        try:
            async with asyncio.TaskGroup() as group:
                ask = self._named_ones(tags, names) if self._hidden else self._of_brokers(fast, bases, tags, names)
                group.create_task(ask)
                if store is not None:
                    group.create_task(asyncio.to_thread(self._dump, store, cluster))
        except BaseExceptionGroup as errors:
            raise _first_of(errors) from None
        await self._of_namespaces(("policies", "anti-affinity", "bundles"), self._unlisted(tags, namespaces))
        if not self._hidden:
            await self._rest(bases, tags, names, extensible=extensible)
        elif self.options.metrics not in _OF_BROKERS:
            await self._prometheus(bases, tags)
        elif extensible:
            self._note(NO_LOADS)
        if store is not None:
            await asyncio.sleep(min(max(self._reports_at_s - time.time(), 0.0), _LONGEST_WAIT_S))
            await asyncio.to_thread(self._keep_dump, store, cluster)

    async def _named_ones(self, tags: Mapping[str, str], names: Mapping[str, str]) -> None:
        """Ask the admin address for what only the broker in the path answers: a proxy passes the request on to it."""
        for broker, tag in tags.items():
            part = await self._ask(request_named("owned"), self._first, (tag,), {**names, "broker": broker})
            if not part.good:  # it redirects to brokers, and they cannot be reached
                return

    async def _rest(
        self, bases: Mapping[str, str], tags: Mapping[str, str], names: Mapping[str, str], *, extensible: bool
    ) -> None:
        """Ask each broker for its topics and metrics."""
        rest = ["topics"] if self.options.with_topics else []
        metrics = self.options.metrics
        if metrics == "admin" or (metrics == "auto" and extensible):
            rest.append("metrics")
        elif metrics == "off" and extensible:
            self._note("Metrics were not captured (--metrics off), and the extensible load manager has no load report")
        if extensible and metrics != "off":
            self._note(
                "Brokers of the extensible load manager take one more sample of weightedMaxEMA for each "
                "request for metrics"
            )
        await self._of_brokers(rest, bases, tags, names)
        if metrics == "auto" and not extensible:
            await self._of_brokers(("metrics",), self._leader_of(bases), tags, names)
        if metrics not in {"auto", "off", "admin"}:
            await self._prometheus(bases, tags)

    def _leader_of(self, bases: Mapping[str, str]) -> dict[str, str]:
        """Return the leader's address; nothing when nobody knows it."""
        part = self._parts.find("leader")
        with contextlib.suppress(FormatError):
            name = self._parts.json(part, dict).get("brokerId") if part is not None and part.good else None
            return {broker: base for broker, base in bases.items() if broker == name}
        return {}

    def _reported(self, request: str, tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the objects that the brokers answered to a request."""
        for stem in (*(stem_of(request, tag) for tag in tags.values()), stem_of(request)):
            part = self._parts.find(stem)
            if part is not None and part.good:
                yield self._parts.json(part, dict)

    def _unlisted(self, tags: Mapping[str, str], known: Sequence[str]) -> list[str]:
        """Return namespaces that nobody listed and some broker owns bundles of; not those of one broker."""
        found: dict[str, None] = {}
        version = self._parts.find("version")
        text = self._parts.read(version).decode(errors="replace") if version and version.good else ""
        decides = release(text.strip(' "\n'))
        for tag in tags.values():
            part = self._parts.find(stem_of("owned", tag))
            if part is not None and part.good:
                with contextlib.suppress(FormatError):
                    for name in self._parts.json(part, dict):
                        namespace = name.rpartition("/")[0]
                        own = is_heartbeat_or_sla_namespace(namespace, decides)
                        if _NAMESPACE.fullmatch(namespace) and not own and self._wanted.wants(namespace):
                            found[namespace] = None
        unlisted = [name for name in found if name not in set(known)]
        return unlisted[: max(0, self.options.limits.namespaces - len(known))]

    async def _prometheus(self, bases: Mapping[str, str], tags: Mapping[str, str]) -> None:
        request = request_named("prometheus")
        jobs = []
        seen: dict[tuple[str, str], str] = {}
        for broker, base in bases.items():
            where, path = base, request.path
            if self.options.metrics != "prometheus":
                parts = urlsplit(self.options.metrics.replace("{host}", broker.rpartition(":")[0]))
                where, path = f"{parts.scheme}://{parts.netloc}", parts.path or request.path
                self._client.trust(where)
            if (other := seen.setdefault((where, path), broker)) != broker:
                self._note(
                    f"{where}{path} would give the metrics of both {other} and {broker}; of {broker} none are kept"
                )
                continue
            jobs.append(partial(self._ask, request, where, (tags[broker],), {}, path))
        await self._each(jobs)

    async def _who_left(self, brokers: Sequence[str]) -> None:
        """Ask again which brokers there are."""
        self._report("brokers, again")
        with contextlib.suppress(CaptureError, FormatError):
            request = request_named("brokers-all")
            part = await self._ask(request, self._first, (), {}, stem="brokers-after", again=True)
            after = {name for name in self._parts.json(part, list) if isinstance(name, str)} if part.good else None
            if after is not None:
                for name in (n for n in brokers if n not in after):
                    self._note(
                        f"Broker {name} left during the capture: its bundles moved to other brokers, or are about to"
                    )
                for name in sorted(after - set(brokers)):
                    self._note(f"Broker {name[:80]} joined during the capture and was not captured")

    def _dump(self, store: MetadataStore, cluster: str) -> None:
        """Read the metadata store, in a thread of its own."""
        if self._parts.find(DUMP) is not None:
            return
        self._dumped_ms = time.time_ns() // NS_PER_MS
        self._dumped = store.dump(cluster, self._wanted)
        for note in self._dumped.notes:
            self._note(note.rstrip("."))

    def _keep_dump(self, store: MetadataStore, cluster: str) -> None:
        """Keep what was read, with the load reports as they are now: they change most, and all the rest took time."""
        if self._parts.find(DUMP) is not None:
            return
        nodes = self._dumped.nodes
        others = tuple(node for node in nodes if not str(node["path"]).startswith(f"{_REPORTS[0].path}/"))
        if len(others) < len(nodes):
            with contextlib.suppress(CaptureError):  # those of before are there
                nodes = (*others, *store.dump("", NamespaceFilter(()), _REPORTS).nodes)
        data = Dump(nodes, ()).to_json()
        self._parts.unfinished(DUMP).write_bytes(data)
        path = " ".join(folder.path.format(cluster=cluster) for folder in STORE_FOLDERS)
        part = Part(f"{DUMP}.json", path, DUMP, status=_OK, time_ms=self._dumped_ms, bytes=len(data), method="ZK")
        self._parts.add(DUMP, part)

    # Asking.

    async def _of_namespaces(self, requests: Iterable[str], namespaces: Sequence[str]) -> None:
        jobs = []
        for name in requests:
            for namespace in namespaces:
                tenant, _, local = namespace.partition("/")
                names = {"tenant": tenant, "namespace": local}
                jobs.append(partial(self._ask, request_named(name), self._first, (tenant, local), names))
        await self._each(jobs)

    async def _of_brokers(
        self, requests: Iterable[str], bases: Mapping[str, str], tags: Mapping[str, str], names: Mapping[str, str]
    ) -> None:
        await self._each(
            partial(self._ask, request_named(name), base, (tags[broker],), {**names, "broker": broker})
            for name in requests
            for broker, base in bases.items()
        )

    async def _each(self, jobs: Iterable[_Job]) -> None:
        """Do jobs side by side, as many as requests may be under way."""
        waiting = list(jobs)
        self._total += len(waiting)
        queue = iter(waiting)

        async def work() -> None:
            for job in queue:
                await job()

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(len(waiting), 4 * self.options.limits.in_flight)):
                    group.create_task(work())
        except BaseExceptionGroup as errors:
            raise _first_of(errors) from None

    async def _ask(
        self,
        request: AdminRequest,
        base: str,
        about: tuple[str, ...],
        names: Mapping[str, str],
        path: str = "",
        *,
        stem: str = "",
        again: bool = False,
    ) -> Part:
        """Return an answer: the one that is there, or a new one. A refused one is a part with a note.

        Raises:
            CaptureError: The request is required, and there is no answer.
        """
        stem = stem or stem_of(request.name, *about)
        path = path or request.filled(names)
        kept = self._parts.find(stem)
        if kept is None or not kept.good or again or (kept.asked, kept.path) != (base, path):
            kept = self._parts.add(stem, await self._fetch(request, base, path, stem))
        self._done += 1
        self._failed += not kept.good
        self._report(self._stage)
        if request.required and not kept.good:
            raise CaptureError(
                f"No answer: {_trouble(kept)}.",
                where=base + path,
                remedy=self._client.how_to_be_let_in if kept.status in _FORBIDDEN else "Check the admin address.",
            )
        return kept

    async def _fetch(self, request: AdminRequest, base: str, path: str, stem: str) -> Part:
        target = self._parts.unfinished(stem)
        accept = _TEXT if request.name == "prometheus" else _JSON
        try:
            reduce = (lambda data: _settings_of(data, request.name)) if request.only_settings else None
            answer = await self._client.get(
                base, path, target, max_bytes=request.max_bytes, accept=accept, reduce=reduce
            )
            good = answer.status == _OK
            note = await asyncio.to_thread(self._keep, request, stem, answer.size_bytes) if good else ""
        except (AnswerError, FormatError) as error:
            if request.required and isinstance(error, FormatError):
                raise FormatError(error.what, where=base + path, remedy=error.remedy) from error
            if request.required:
                raise
            if isinstance(error, AnswerError) and not error.hostile:
                self._unreachable.add(base)
            now_ms = time.time_ns() // NS_PER_MS
            return Part(f"{stem}.txt", path, base, time_ms=now_ms, note=f"{error.what} {error.remedy}".strip())
        if request.may_be_unset and answer.status == _NOT_FOUND:
            note = UNSET
        elif answer.status in _FORBIDDEN:
            note = _reason_in(target)
        elif answer.had_secret:
            note = REPEATS
        ending = "json" if good and not request.text else "txt"
        known: dict[str, Any] = {name: getattr(answer, name) for name in _OF_ANSWER}
        return Part(f"{stem}.{ending}", path, bytes=target.stat().st_size, note=note, **known)

    def _keep(self, request: AdminRequest, stem: str, size: int) -> str:
        """Look at an answer and cut it to what is kept; say so.

        Raises:
            FormatError: It is a web page, or what must be cut is no JSON.
        """
        target = self._parts.unfinished(stem)
        if not request.text:
            with target.open("rb") as file:
                start = file.read(_START)
            if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
                parse_json(start, request.name)
        if request.only_settings and size:
            return "only settings of the load balancer were kept"
        if self._wanted and request.name in _CUT and size:
            target.write_bytes(only_namespaces(request.name, target.read_bytes(), self._wanted))
            return "reduced to --namespaces"
        return ""

    def _note(self, text: str) -> None:
        self.notes[f"{text}."] = None

    def _report(self, stage: str) -> None:
        self._stage = stage
        self._progress(
            Progress(stage, self._done, max(self._done, self._total), self._failed, self._client.pace.in_flight)
        )


def _settings_of(data: bytes, name: str) -> bytes:
    """Return the settings of a configuration; nothing of an empty answer.

    Raises:
        FormatError: It is a web page, or no JSON object.
    """
    return only_settings(data, name) if data.strip() else b""


def _reason_in(path: Path) -> str:
    """Return why a broker refused, as its answer says."""
    with contextlib.suppress(FormatError):
        answer = parse_json(path.read_bytes()[:_START], path.name)
        if isinstance(answer, dict) and isinstance(reason := answer.get("reason"), str):
            return "".join(c for c in reason if c.isprintable())[:_REASON]
    return ""


def _trouble(part: Part) -> str:
    if part.status in _FORBIDDEN:
        return f"refused with HTTP {part.status}" + (f" ({part.note.rstrip('.')})" if part.note else "")
    return part.note.rstrip(".") if part.status is None else f"HTTP {part.status}"


def _first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that matters of those that happened side by side."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@contextlib.asynccontextmanager
async def _store(options: CaptureOptions) -> Any:
    """Connect to the metadata store, when there is one to ask."""
    store = await asyncio.to_thread(connect, options)
    try:
        yield store
    finally:
        if store is not None:
            await asyncio.to_thread(store.close)
