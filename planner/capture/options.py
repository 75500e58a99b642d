"""What a capture is asked to do, its bounds, and how far it is."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from planner.cluster.errors import CaptureError

_FILTER = re.compile(r"[-=:.\w*]+/[-=:.\w*]+", re.ASCII)
_CLUSTER = re.compile(r"[-=:.\w]{1,200}", re.ASCII)
_METRICS = ("auto", "off", "admin", "prometheus")
_TEMPLATE = re.compile(r"https?://[^/?#@]*\{host\}[^/?#@]*")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where secrets are; never a secret itself, so that options can be shown, logged and compared.

    Attributes:
        token_file: File with a token (JWT).
        token_env: Name of an environment variable with a token; used if there is no token file.
        ca_file: Certificates of trusted authorities, PEM; by default those of the system.
        cert_file: Client certificate, PEM.
        key_file: Private key of the client certificate, PEM; by default in `cert_file`.
        oauth2_file: Key file of OAuth2 client credentials: JSON with `client_id`, `client_secret`, `issuer_url`.
        oauth2_audience: Audience to request; empty for none.
        oauth2_scope: Scope to request; empty for none.
        store_auth_file: File with `user:password` for the metadata store.
    """

    token_file: Path | None = None
    token_env: str = "PLANNER_PULSAR_TOKEN"  # noqa: S105 - the name of a variable
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    oauth2_file: Path | None = None
    oauth2_audience: str = ""
    oauth2_scope: str = ""
    store_auth_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a capture may take, of the cluster and of this machine.

    Attributes:
        in_flight: Most requests at the same time.
        in_flight_per_broker: Most requests to one broker at the same time.
        per_second: Most requests started per second.
        connect_s: Longest wait for a connection, in seconds.
        request_s: Longest time of one request, from the first to the last byte, in seconds.
        total_s: Longest time of a capture, in seconds.
        attempts: Attempts per request after temporary failures.
        back_off_s: Pause before the second attempt, in seconds; doubled each time, plus a random half.
        answer_bytes: Largest size of one answer, unless the catalogue sets a lower one.
        total_bytes: Largest size of all answers together.
        namespaces: Most namespaces to capture.
        brokers: Most brokers to capture.
        store_nodes: Most nodes of the metadata store to read.
        store_per_second: Most nodes of the metadata store to read per second.
    """

    in_flight: int = 16
    in_flight_per_broker: int = 4
    per_second: float = 100.0
    connect_s: float = 5.0
    request_s: float = 60.0
    total_s: float = 900.0
    attempts: int = 3
    back_off_s: float = 0.5
    answer_bytes: int = 128 << 20
    total_bytes: int = 4 << 30
    namespaces: int = 20_000
    brokers: int = 2_000
    store_nodes: int = 1_000_000
    store_per_second: float = 5_000.0


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """What a capture is asked to do.

    Attributes:
        admin_url: Address of the admin API of any broker, such as `http://broker-1:8080`.
        out: Folder for the capture, that one is in by default: `raw/` and `snapshot/` inside it.
        metadata_store: Address of the metadata store, such as `zk:host:port,host:port/chroot`; the only source of
            averages. Empty to capture without it.
        metrics: `auto`, `off`, `admin`, `prometheus`, or an address with `{host}` such as `http://{host}:9090/metrics`.
        namespaces: Names `tenant/namespace`, with `*` for any text; empty for all.
        with_topics: Whether topics are captured.
        cluster: Name of the cluster; by default the cluster returns it.
        broker_url: Address of a broker with `{host}`, if it is not the broker id with the scheme of `admin_url`.
        broker_at: Addresses of single brokers, `broker-id=address`, if this machine cannot reach their ids: through a
            forwarded port, for example.
        brokers_in: Listed brokers that requests may go to: hosts or host:port, with `*` for any text; empty for all.
            The token is sent to no other broker.
        credentials: Where secrets are.
        limits: Bounds.
    """

    admin_url: str
    out: Path = Path()
    metadata_store: str = ""
    metrics: str = "auto"
    namespaces: tuple[str, ...] = ()
    with_topics: bool = True
    cluster: str = ""
    broker_url: str = ""
    broker_at: tuple[str, ...] = ()
    brokers_in: tuple[str, ...] = ()
    credentials: Credentials = field(default_factory=Credentials)
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Refuse options that cannot be carried out; the metadata store is checked where it is known (`check_options`).

        Raises:
            CaptureError: Naming the option.
        """
        check_url(self.admin_url, "--admin-url")
        for name in self.namespaces:
            if not _FILTER.fullmatch(name):
                raise CaptureError(
                    f"{name[:80]!r} is not a namespace (tenant/namespace).",
                    where="--namespaces",
                    remedy="Write acme/orders or acme/*.",
                )
        if self.cluster and not _CLUSTER.fullmatch(self.cluster):
            raise CaptureError(
                "This is not a valid cluster name.", where="--cluster", remedy="Use its configured name."
            )
        if self.metrics not in _METRICS and not _TEMPLATE.match(self.metrics):
            raise CaptureError(
                f"{self.metrics[:80]!r} is not {', '.join(_METRICS)} or an address with {{host}}.",
                where="--metrics",
                remedy="Write http://{host}:8080/metrics/ with the port of your brokers.",
            )
        if self.broker_url and not _TEMPLATE.fullmatch(self.broker_url.rstrip("/")):
            raise CaptureError(
                "This is not an address with {host}.", where="--broker-url", remedy="Write https://{host}:8443."
            )
        for item in self.broker_at:
            broker, equals, url = item.partition("=")
            if not equals or ":" not in broker:
                raise CaptureError(
                    f"{item[:80]!r} is not of the form broker-id=address.",
                    where="--broker-at",
                    remedy="Write broker-1.example:8080=http://127.0.0.1:18080.",
                )
            check_url(url, "--broker-at")
        self._check_limits()

    def may_ask(self, url: str) -> bool:
        """Say whether the broker at an address may be asked."""
        place = urlsplit(url)
        names = (place.hostname or "", place.netloc)
        return not self.brokers_in or any(fnmatchcase(name, one) for name in names for one in self.brokers_in)

    def _check_limits(self) -> None:
        limits = self.limits
        for name in Limits.__slots__:
            value = getattr(limits, name)
            if not 0 < value < float("inf"):
                raise CaptureError(
                    f"{value} is not above 0.", where=f"limit {name}", remedy="Use a positive number, or leave it out."
                )


def check_url(
    url: str, where: str, *, path: bool = False, remedy: str = "Write http://broker-1:8080 or https://broker-1:8443."
) -> None:
    """Refuse what is no plain http or https address; one with a password is refused without being shown.

    Args:
        url: The address.
        where: The option that it is from.
        path: Whether it may have a path.
        remedy: An example of a good one.

    Raises:
        CaptureError: Naming the option.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise CaptureError("This is not a valid address.", where=where, remedy=remedy) from error
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise CaptureError(
            "The address contains a user, a password or parameters.",
            where=where,
            remedy="Put secrets in a file or in the environment.",
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise CaptureError("This is not an http or https address.", where=where, remedy=remedy)
    if path and (not url.isascii() or not url.isprintable() or " " in url or ".." in parts.path or "\\" in url):
        raise CaptureError("This is not a valid address.", where=where, remedy=remedy)
    if parts.path.strip("/") and not path:
        raise CaptureError(f"The address has a path ({parts.path[:80]}).", where=where, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a capture is.

    Attributes:
        stage: What is being asked for.
        done: Parts there are.
        total: Parts known to be wanted; grows as namespaces are found.
        failed: Parts that nobody gave.
        in_flight: Requests under way.
    """

    stage: str
    done: int
    total: int
    failed: int
    in_flight: int


ProgressSink = Callable[[Progress], None]
"""Called for each part, in the thread that captures; it must return at once."""
