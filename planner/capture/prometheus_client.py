"""Asks a Prometheus, or what speaks its protocol: GET alone, bounded in size and time, no redirects."""

import base64
import json
import random
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import BinaryIO, Final, Self

import httpx

from planner.capture.client import UNREACHABLE, reason_of
from planner.capture.credentials import read_login, read_token, tls_context
from planner.capture.options import Credentials
from planner.capture.prometheus_options import PrometheusOptions
from planner.cluster.errors import CaptureError
from planner.cluster.version import VERSION

_OK: Final = 200
_MAX_ERROR_BYTES: Final = 16 << 10
_SHOWN: Final = 200
_MOST_READ: Final = 2_000
_LONGEST_PAUSE_S: Final = 30.0
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
_REFUSED: Final = frozenset({401, 403})
_TOO_LARGE: Final = frozenset({413, 414, 422, 503, 504})
_TENANT: Final = re.compile(r"\bno org id\b|\btenant id\b|X-Scope-OrgID", re.IGNORECASE)
_TENANT_HEADERS: Final = ("X-Scope-OrgID", "THANOS-TENANT")
_RESOLUTION: Final = "maximum resolution"
_OF_A_STORE: Final = re.compile(r"rpc error: code = |partial response", re.IGNORECASE)
_OF_A_BOUND: Final = re.compile(r"ResourceExhausted|DeadlineExceeded|limit|too many|exceed|timed? ?out", re.IGNORECASE)
COARSEST: Final = "max_source_resolution"
"""Parameter of Thanos that says how coarse samples may be. Sent always: without it, servers may choose averages."""


class TooMuchError(CaptureError):
    """The server does not answer so much at once, or the answer is too long: ask for a shorter time."""


class PrometheusClient:
    """Asks one server; use as a context manager. Proxies and logins of the environment are not used.

    Attributes:
        requests: Requests sent.
        received_bytes: What all answers together had.
    """

    def __init__(self, options: PrometheusOptions) -> None:
        options.check()
        self.requests = 0
        self.received_bytes = 0
        self._options = options
        self._base = options.url.rstrip("/")
        secrets = options.secrets
        given = Credentials(secrets.token_file, secrets.token_env, secrets.ca_file, secrets.cert_file, secrets.key_file)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        headers["User-Agent"] = f"pulsar-bundle-planner/{VERSION}"
        self._secrets: list[bytes] = []
        if secrets.login_file is not None:
            login = read_login(secrets.login_file, "login of Prometheus")
            coded = base64.b64encode(login.encode()).decode()
            headers["Authorization"] = f"Basic {coded}"
            self._secrets = [coded.encode(), login.encode()]
        elif token := read_token(given):
            headers["Authorization"] = f"Bearer {token}"
            self._secrets = [token.encode()]
        if options.org_id:
            headers |= dict.fromkeys(_TENANT_HEADERS, options.org_id)
        self._http = httpx.Client(
            verify=tls_context(given),
            follow_redirects=False,
            trust_env=False,
            headers=headers,
            timeout=httpx.Timeout(options.request_s, connect=min(10.0, options.request_s)),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, parameters: Mapping[str, str], sink: BinaryIO) -> None:
        """Ask for one thing and put the answer into a file that is empty; passing failures are tried again.

        Partial answers of Thanos and VictoriaMetrics are not accepted, unless the options say so: they would be gaps in
        silence. Samples are raw, unless the parameters say otherwise.

        Args:
            path: What to ask, such as `query_range`.
            parameters: Of the query.
            sink: The file, which can be read and truncated.

        Raises:
            TooMuchError: The server cannot answer so much at once.
            CaptureError: There is no answer, or it broke a bound.
            OSError: The file cannot be written.
        """
        partial = self._options.accept_partial
        whole = {
            COARSEST: "0s",
            "partial_response": str(partial).lower(),
            "deny_partial_response": str(int(not partial)),
        }
        whole |= {"nocache": "1", **parameters}
        for attempt in range(1, self._options.attempts + 1):
            last = attempt == self._options.attempts
            pause_s = self._options.back_off_s * 2 ** (attempt - 1)
            pause_s *= 1 + random.random() / 2  # noqa: S311 - spreads attempts, no secret
            sink.seek(0)
            sink.truncate()
            try:
                status, asked_pause_s = self._once(path, whole, sink)
            except UNREACHABLE as error:
                if last:
                    raise self._unreachable(error) from None
            else:
                if status == _OK:
                    return
                if status not in _PASSING or last:
                    raise self._refusal(status, _error_text(sink))
                pause_s = max(pause_s, asked_pause_s)
            time.sleep(min(pause_s, _LONGEST_PAUSE_S))
        raise AssertionError("unreachable")  # pragma: no cover - the last attempt returns or raises

    def _once(self, path: str, parameters: Mapping[str, str], sink: BinaryIO) -> tuple[int, float]:
        """Ask once; return the status, and the pause that the server asks for."""
        until_s = time.monotonic() + self._options.request_s
        self.requests += 1
        with self._http.stream("GET", f"{self._base}/api/v1/{path}", params=dict(parameters)) as response:
            if response.is_redirect:
                raise CaptureError(
                    "The server redirects to another address. Secrets are not sent there.",
                    where="--prometheus",
                    remedy="Use the address that it redirects to, if you trust it. Include the path before /api/v1.",
                )
            good = response.status_code == _OK
            most = self._options.answer_bytes if good else _MAX_ERROR_BYTES
            sink.writelines(self._pieces(response, most, until_s, good=good))
            after = response.headers.get("retry-after", "")
            return response.status_code, float(after) if after.isdecimal() and len(after) < 4 else 0.0  # noqa: PLR2004

    def _pieces(self, response: httpx.Response, most: int, until_s: float, *, good: bool) -> Iterator[bytes]:
        size, tail = 0, b""
        overlap = max((len(secret) for secret in self._secrets), default=1) - 1
        for piece in response.iter_raw(1 << 16):
            size += len(piece)
            self.received_bytes += len(piece)
            if any(secret in tail + piece for secret in self._secrets):
                raise CaptureError(
                    "The answer repeats a secret that was sent, so it was not kept.",
                    where="--prometheus",
                    remedy="Send requests to Prometheus itself.",
                )
            tail = (tail + piece)[-overlap:] if overlap else b""
            if size > most or time.monotonic() > until_s:
                if not good:
                    return
                what = f"is longer than {most >> 20:,} MiB" if size > most else "takes too long"
                raise TooMuchError(
                    f"The answer {what}.", where="--prometheus", remedy="Ask for a longer step, or fewer series."
                )
            yield piece

    def _unreachable(self, error: Exception) -> CaptureError:
        reason = reason_of(error)
        if isinstance(error, httpx.ReadTimeout):
            return TooMuchError(
                f"No answer within {self._options.request_s:g} s.",
                where="--prometheus",
                remedy="Ask for a longer step, or fewer series.",
            )
        untrusted = isinstance(error, ssl.SSLError) or "certificate" in reason.lower()
        return CaptureError(
            f"The address cannot be reached: {reason}.",
            where="--prometheus",
            remedy="Name the authorities to trust with --ca-file."
            if untrusted
            else "Check the host and port, and that Prometheus answers there.",
        )

    def _refusal(self, status: int, reason: str) -> CaptureError:
        if status in {400, *_REFUSED} and _TENANT.search(reason):
            what = f"Prometheus does not know whose series are meant ({status}: {reason[:_SHOWN]})."
            return CaptureError(what, where="--prometheus", remedy="Name the tenant with --org-id.")
        if status in _REFUSED:
            remedy = "Use --token-file or --login-file." if not self._secrets else "Check the secret and its rights."
            return CaptureError(f"Prometheus refuses the request ({status}).", where="--prometheus", remedy=remedy)
        if status in _TOO_LARGE and _OF_A_STORE.search(reason) and not _OF_A_BOUND.search(reason):
            what = f"A store of Thanos does not answer ({status}: {reason[:_SHOWN]})."
            remedy = "Try again when all stores answer. If another server has the same series, use --accept-partial."
            return CaptureError(what, where="--prometheus", remedy=remedy)
        said = f": {reason[:_SHOWN]}" if reason else ""
        what = f"Prometheus answered with status {status}{said}."
        if status in _TOO_LARGE or _RESOLUTION in reason:
            return TooMuchError(what, where="--prometheus", remedy="Ask for a longer step, or fewer series.")
        return CaptureError(
            what, where="--prometheus", remedy="Check the address. Include the path before /api/v1, if there is one."
        )


def _error_text(sink: BinaryIO) -> str:
    """Return what an answer says is wrong."""
    sink.seek(0)
    data = sink.read(_MAX_ERROR_BYTES)
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    text = said.get("error") if isinstance(said, dict) else data.decode("utf-8", "replace").split("\n", 1)[0]
    return " ".join(str(text or "").split())[:_MOST_READ].rstrip(".")
