"""The one HTTP client: GET alone, bounded in size and time, redirected to brokers of the cluster alone."""

import asyncio
import json
import random
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urljoin, urlsplit

import httpx

from planner.capture.credentials import ClientKey, read_client_key, read_token, tls_context
from planner.capture.oauth2 import TokenSource
from planner.capture.options import CaptureOptions, Limits
from planner.cluster.errors import CaptureError, FormatError
from planner.cluster.units import NS_PER_MS
from planner.cluster.version import VERSION

Endpoint = tuple[str, str, int]
"""Scheme, host and port of an address."""

Reduce = Callable[[bytes], bytes]
"""Reduces an answer to its kept part, in memory; raises `FormatError` where it cannot."""

UNREACHABLE = (httpx.TransportError, ssl.SSLError, ConnectionError)
"""Errors of httpx when the other side cannot be reached; it passes on a late TLS alert unchanged."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({429, 500, 502, 503, 504})
_OK = 200
_MAX_HOPS = 3
_MAX_ERROR_BYTES = 64 << 10
_LONGEST_PAUSE_S = 30.0
_PORTS = {"http": 80, "https": 443}
_SHOWN = 120
_LONGEST_REASON = 200
_OF_PROGRAMS = re.compile(r"^\[Errno -?\d+\] | \(_ssl\.c:\d+\)$")
_UNTRUSTED = "Name the authorities to trust with --ca-file."


_ASK_ITSELF = "Send requests to the broker's admin address itself: a proxy or another cluster answered."


class AnswerError(CaptureError):
    """One answer that is not used: it broke a bound, led elsewhere, or never came.

    Attributes:
        hostile: Whether the other side did what no broker does, rather than being out of reach or busy.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = _ASK_ITSELF, hostile: bool = True) -> None:
        self.hostile = hostile
        super().__init__(what, where=where, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: HTTP status.
        asked: Address that was asked.
        answered: Address that answered in the end.
        content_type: As the answer says.
        size_bytes: Length of the body, which is in the file.
        time_ms: When the request was sent, ms since 1970.
        took_ms: How long it took, all attempts counted.
        attempts: How often it was sent.
        had_secret: Whether it repeated a secret that was sent, which is not in what was kept.
    """

    status: int
    asked: str
    answered: str
    content_type: str
    size_bytes: int
    time_ms: int
    took_ms: int
    attempts: int
    had_secret: bool = False


def endpoint_of(url: str) -> Endpoint:
    """Return scheme, host and port of an address; the usual port where none is given."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


class Pace:
    """Lets requests begin: so many at once, so many at once to one broker, so many in a second.

    Attributes:
        in_flight: Requests under way.
        most_in_flight: The most there ever were.
        started: Requests begun.
    """

    def __init__(self, limits: Limits) -> None:
        self.in_flight = 0
        self.most_in_flight = 0
        self.started = 0
        self._apart_s = 1.0 / limits.per_second
        self._next_s = 0.0
        self._all = asyncio.Semaphore(limits.in_flight)
        self._per_broker = limits.in_flight_per_broker
        self._brokers: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def turn(self, base: str) -> AsyncIterator[None]:
        """Wait for one's turn to ask an address, and hold it."""
        broker = self._brokers.setdefault(base, asyncio.Semaphore(self._per_broker))
        async with broker, self._all:
            now = asyncio.get_running_loop().time()
            starts = max(now, self._next_s)
            self._next_s = starts + self._apart_s
            if starts > now:
                await asyncio.sleep(starts - now)
            self.in_flight += 1
            self.started += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                yield
            finally:
                self.in_flight -= 1


class AdminClient:
    """Asks brokers, as `CaptureOptions` allow.

    Use as an asynchronous context manager. Proxies and logins of the environment are not used.

    Attributes:
        pace: How many requests were sent, and at once.
        received_bytes: What all answers together had.
    """

    def __init__(self, options: CaptureOptions) -> None:
        self.pace = Pace(options.limits)
        self.received_bytes = 0
        self._limits = options.limits
        self._trusted_endpoints = {endpoint_of(options.admin_url)}
        self._token = read_token(options.credentials)
        self._key: ClientKey | None = None
        if options.credentials.oauth2_file is not None:
            self._key = read_client_key(options.credentials.oauth2_file)
        self._secrets = [s.encode() for s in (self._token, self._key.client_secret if self._key else "") if s]
        self._http = httpx.AsyncClient(
            verify=tls_context(options.credentials),
            follow_redirects=False,
            trust_env=False,
            headers={"Accept-Encoding": "identity", "User-Agent": f"pulsar-bundle-planner/{VERSION}"},
            timeout=httpx.Timeout(self._limits.request_s, connect=self._limits.connect_s),
            limits=httpx.Limits(max_connections=self._limits.in_flight),
        )
        self._source = TokenSource(self._http, self._key, options) if self._key is not None else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    def trust(self, base: str) -> None:
        """Let requests be sent, and redirected, to the address of a broker."""
        self._trusted_endpoints.add(endpoint_of(base))

    async def get(
        self, base: str, path: str, target: Path, *, max_bytes: int, accept: str, reduce: Reduce | None = None
    ) -> Answer:
        """Ask for one thing, and put what is answered into a file.

        An answer that repeats a secret is refused; where one is reduced, it is only when the secret is in what is kept.
        An answer that is an error is put there as well, its first 64 KiB; passing failures are tried again.

        Args:
            base: Address of the broker, which must be trusted.
            path: Path, already escaped.
            target: The file.
            max_bytes: What the answer may have.
            accept: Media type to ask for.
            reduce: Cuts a good answer before any of it is written.

        Raises:
            AnswerError: There is no answer, or it broke a bound.
            OSError: The file cannot be written.
        """
        began, sent_ms = time.monotonic(), _now_ms()
        for attempt in range(1, self._limits.attempts + 1):
            last = attempt == self._limits.attempts
            pause_s = self._limits.back_off_s * 2 ** (attempt - 1)
            pause_s *= 1 + random.random() / 2  # noqa: S311 - spreads attempts, no secret
            sent_ms = _now_ms()
            try:
                async with self.pace.turn(base):
                    answer = await self._once(base, path, _Body(target, max_bytes, reduce), accept)
            except UNREACHABLE as error:
                if last:
                    raise AnswerError(
                        f"The address cannot be reached: {reason_of(error)}.",
                        where=base + path,
                        remedy=_UNTRUSTED
                        if "certificate" in str(error).lower()
                        else "Check the host and port, and that a broker answers there.",
                        hostile=False,
                    ) from error
            else:
                status, answered, headers, size, had_secret = answer
                if status not in _PASSING or last:
                    took_ms = round((time.monotonic() - began) * 1000)
                    kind = headers.get("content-type", "")[:_SHOWN]
                    return Answer(status, base, answered, kind, size, sent_ms, took_ms, attempt, had_secret)
                pause_s = max(pause_s, _asked_pause_s(headers))
            await asyncio.sleep(min(pause_s, _LONGEST_PAUSE_S))
        raise AssertionError("unreachable")  # pragma: no cover - the last attempt returns or raises

    async def _once(
        self, base: str, path: str, body: "_Body", accept: str
    ) -> tuple[int, str, Mapping[str, str], int, bool]:
        url = base + path
        try:
            async with asyncio.timeout(self._limits.request_s):
                for _ in range(_MAX_HOPS + 1):
                    async with self._http.stream("GET", url, headers=await self._headers(accept)) as response:
                        if response.status_code not in _REDIRECTS:
                            saved = await self._save(response, body)
                            answered = "{}://{}:{}".format(*endpoint_of(url))
                            return response.status_code, answered, response.headers, *saved
                        url = self._next(url, path, response.headers.get("location", ""))
        except TimeoutError as error:
            raise AnswerError(
                f"The answer was not complete after {self._limits.request_s:g} s.",
                where=base + path,
                remedy="Try again when the broker is less busy, or raise --request-timeout.",
            ) from error
        except httpx.InvalidURL as error:
            raise AnswerError("The server redirects to an invalid address.", where=base + path) from error
        raise AnswerError(f"The server redirects more than {_MAX_HOPS} times.", where=base + path)

    @property
    def how_to_be_let_in(self) -> str:
        """What to do about a refusal: it differs when no token was sent."""
        if self._token or self._source is not None:
            return "The token is not sufficient. Use a token with the permission."
        return "The request had no token. Use a token with the permission, with --token-file."

    async def _headers(self, accept: str) -> dict[str, str]:
        token = self._token if self._source is None else await self._source.token()
        if token and token.encode() not in self._secrets:
            self._secrets.append(token.encode())
        return {"Accept": accept, **({"Authorization": f"Bearer {token}"} if token else {})}

    def _next(self, url: str, path: str, location: str) -> str:
        """Return where a redirect leads, when that is the same question to a broker of the cluster."""
        try:
            target = urljoin(url, location)
            there, led = endpoint_of(target), urlsplit(target).path
        except ValueError as error:
            raise AnswerError("The server redirects to an invalid address.", where=url) from error
        shown = "{}://{}:{}".format(*there)[:_SHOWN]
        if not location or there not in self._trusted_endpoints:
            raise AnswerError(
                f"The server redirects to {shown}, which is not a broker of the cluster."
                if location
                else "The server redirects without an address.",
                where=url,
            )
        if led.rstrip("/") != path.rstrip("/"):
            raise AnswerError(f"The server redirects to another path ({led[:_SHOWN]}).", where=url)
        return target

    async def _save(self, response: httpx.Response, body: "_Body") -> tuple[int, bool]:
        """Write a body piece by piece; an error is truncated, an answer that is too long is rejected.

        Returns:
            What was written, in bytes, and whether a secret was in what was not.
        """
        where = str(response.request.url.copy_with(query=None))
        if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
            raise AnswerError("The answer is compressed, although the request did not allow it.", where=where)
        good = response.status_code == _OK
        if good and body.reduce is not None:
            whole = b"".join([piece async for piece in self._pieces(response, body, where)])
            kept, had_secret = self._reduced(whole, body.reduce, where)
            await asyncio.to_thread(body.target.write_bytes, kept)
            return len(kept), had_secret
        size, tail = 0, b""
        overlap = max((len(secret) for secret in self._secrets), default=1) - 1
        with body.target.open("wb") as file:
            async for piece in self._pieces(response, body, where):
                if any(secret in tail + piece for secret in self._secrets):
                    raise AnswerError("The answer repeats a secret that was sent, so it was not kept.", where=where)
                tail = (tail + piece)[-overlap:] if overlap else b""
                if not good and size + len(piece) > _MAX_ERROR_BYTES:
                    return size, False
                size += len(piece)
                file.write(piece)
        return size, False

    async def _pieces(self, response: httpx.Response, body: "_Body", where: str) -> AsyncIterator[bytes]:
        """Yield a body as it comes, within the bounds; of an error only so much as is kept."""
        size, most = 0, min(body.max_bytes, self._limits.answer_bytes)
        async for piece in response.aiter_raw():
            size += len(piece)
            self.received_bytes += len(piece)
            if response.status_code == _OK and size > most:
                raise AnswerError(
                    f"The answer is longer than {most >> 20:,} MiB.",
                    where=where,
                    remedy="Pulsar's answers are smaller. Capture fewer namespaces, or without topics.",
                )
            if self.received_bytes > self._limits.total_bytes:
                raise CaptureError(
                    f"All answers together are longer than {self._limits.total_bytes >> 20} MiB.",
                    where=where,
                    remedy="Capture fewer namespaces, or without topics.",
                )
            yield piece

    def _reduced(self, whole: bytes, reduce: Reduce, where: str) -> tuple[bytes, bool]:
        """Return what is kept of an answer, and whether a secret was in the rest; errors say nothing of the answer.

        Raises:
            AnswerError: It cannot be reduced, or a secret is in what would be kept.
        """
        try:
            kept = reduce(whole)
        except FormatError as error:
            leaks = self._holds_secret(f"{error.what} {error.where} {error.remedy}".encode())
            what = "The answer cannot be read." if leaks else error.what
            raise AnswerError(what, where=where, remedy=_ASK_ITSELF if leaks else error.remedy) from None
        if self._holds_secret(kept):
            raise AnswerError(
                "A setting that the planner needs contains a secret that was sent. Nothing was kept.",
                where=where,
                remedy="Capture with another token of the same role.",
            )
        return kept, self._holds_secret(whole)

    def _holds_secret(self, data: bytes) -> bool:
        """Return whether a secret is in data, as it is or as JSON writes it."""
        written = (json.dumps(secret.decode())[1:-1].encode() for secret in self._secrets)
        return any(secret in data for secret in (*self._secrets, *written))


@dataclass(frozen=True, slots=True)
class _Body:
    """Where an answer goes.

    Attributes:
        target: The file.
        max_bytes: What it may have.
        reduce: Cuts a good answer before any of it is written; None to write all of it.
    """

    target: Path
    max_bytes: int
    reduce: Reduce | None


def _now_ms() -> int:
    return time.time_ns() // NS_PER_MS


def reason_of(error: Exception) -> str:
    """Return why no answer came, in one line, without the numbers that only programs know."""
    text = _OF_PROGRAMS.sub("", str(error).split("\n", 1)[0]).rstrip(".")[:_LONGEST_REASON]
    return text or type(error).__name__


def _asked_pause_s(headers: Mapping[str, str]) -> float:
    text = headers.get("retry-after", "")
    return float(text) if text.isdecimal() and len(text) < 4 else 0.0  # noqa: PLR2004 - below 1,000 s
