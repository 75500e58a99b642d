"""Which series are asked of a Prometheus, where, and where its secrets are."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

from planner.capture.options import check_url
from planner.cluster.errors import CaptureError, FormatError
from planner.history.labels import BrokerRule

Coarsest = Literal["raw", "5m", "1h"]
"""How coarse samples may be: as they were scraped, or averages of Thanos."""

_MATCHER: Final = r'[A-Za-z_][A-Za-z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\[^\n])*"'
_MATCHERS: Final = re.compile(rf"\s*{_MATCHER}(?:\s*,\s*{_MATCHER})*\s*,?\s*")
_TENANT: Final = re.compile(r"[-A-Za-z0-9_.|!*'()]{1,150}")
_URL_REMEDY: Final = "Write http://prometheus:9090, or https://mimir.example/prometheus."


@dataclass(frozen=True, slots=True)
class PrometheusSecrets:
    """Where the secrets for a Prometheus are; never a secret itself.

    Attributes:
        token_file: File with a bearer token.
        token_env: Name of an environment variable with a bearer token; used if there is no token file.
        login_file: File with `user:password` for basic authentication.
        ca_file: Certificates of trusted authorities, PEM; by default those of the system.
        cert_file: Client certificate, PEM.
        key_file: Private key of the client certificate, PEM; by default in `cert_file`.
    """

    token_file: Path | None = None
    token_env: str = "PLANNER_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable
    login_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """Which series to ask for, and where.

    Attributes:
        url: Address of Prometheus, Thanos, Mimir or VictoriaMetrics, with the path before `/api/v1`.
        matchers: Labels of the wanted series, such as `cluster="east",job="broker"`; empty for all.
        broker_names: Addresses of brokers with labels in braces, such as `{pod}.pulsar-broker.ns.svc:8080`; the first
            whose labels a series has counts. By default the broker's own name, else `instance`.
        org_id: Tenant of Mimir (`X-Scope-OrgID`) or Thanos (`THANOS-TENANT`); empty for none.
        coarsest: Samples to take where Thanos has no raw ones: averages over up to 5 min, or an hour.
        accept_partial: Accept answers that lack what a store of Thanos or VictoriaMetrics has; a note says so. For a
            pair of servers that scrape the same brokers, one of which is down.
        secrets: Where secrets are.
        request_s: Longest time of one request, in seconds.
        attempts: Attempts per request after temporary failures.
        back_off_s: Pause before the second attempt, in seconds; doubled each time.
        answer_bytes: Largest size of one answer; a longer one is asked for in halves.
    """

    url: str = ""
    matchers: str = ""
    broker_names: tuple[str, ...] = ()
    org_id: str = ""
    coarsest: Coarsest = "raw"
    accept_partial: bool = False
    secrets: PrometheusSecrets = field(default_factory=PrometheusSecrets)
    request_s: float = 120.0
    attempts: int = 4
    back_off_s: float = 0.5
    answer_bytes: int = 256 << 20

    def check(self) -> None:
        """Refuse options that cannot be carried out.

        Raises:
            CaptureError: Naming the option.
        """
        check_url(self.url, "--prometheus", path=True, remedy=_URL_REMEDY)
        if self.matchers.strip() and not _MATCHERS.fullmatch(self.matchers):
            raise CaptureError(
                f"{self.matchers[:80]!r} is not a list of label matchers.",
                where="--matchers",
                remedy='Write cluster="east",job=~"broker.*".',
            )
        if self.org_id and not _TENANT.fullmatch(self.org_id):
            raise CaptureError("This is not a valid tenant.", where="--org-id", remedy="Use its configured name.")
        if self.coarsest not in get_args(Coarsest):
            raise CaptureError(f"{self.coarsest!r} is not known.", where="--coarsest", remedy="Use raw, 5m or 1h.")
        if self.secrets.login_file is not None and self.secrets.token_file is not None:
            raise CaptureError(
                "Both a token and a login are given.", where="--login-file", remedy="Use the one that the server wants."
            )
        for name in ("request_s", "attempts", "back_off_s", "answer_bytes"):
            if not 0 < getattr(self, name) < float("inf"):
                raise CaptureError(
                    f"{getattr(self, name)} is not above 0.", where=name, remedy="Use a positive number."
                )
        self.rules()

    def rules(self) -> tuple[BrokerRule, ...]:
        """Return the rules of `broker_names`.

        Raises:
            CaptureError: One is none.
        """
        try:
            return tuple(BrokerRule(one) for one in self.broker_names)
        except FormatError as error:
            raise CaptureError(error.what, where="--broker-names", remedy=error.remedy) from error
