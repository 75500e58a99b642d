"""The admin REST API of one broker, as far as the tests of the real cluster use it."""

import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

import httpx

Json: TypeAlias = Any


class AdminError(Exception):
    """A broker refused a request.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text[:500]}")
        self.status = status


class Answer(NamedTuple):
    """What came back: status, body, the address that answered in the end, and when, in ms since 1970."""

    status: int
    body: bytes
    address: str
    time_ms: int


@dataclass(frozen=True)
class Admin:
    """Asks one broker, and whom it sends us to.

    Attributes:
        url: Address of its web service.
        token: JSON web token; empty for none.
        tls: How to check certificates, and which one to show; None for HTTP.
    """

    url: str
    token: str = ""
    tls: ssl.SSLContext | None = field(default=None, compare=False)

    def send(
        self, path: str, *, method: str = "GET", body: Json = None, query: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request, follow redirects, and return the answer whatever its status."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        verify: ssl.SSLContext | bool = False if self.tls is None else self.tls  # without TLS nothing is to verify
        with httpx.Client(headers=headers, verify=verify, trust_env=False, follow_redirects=True, timeout=90) as client:
            got = client.request(method, self.url + path, params=query, json=body)
        return Answer(got.status_code, got.content, str(got.url), time.time_ns() // 1_000_000)

    def ask(self, path: str, *, method: str = "GET", body: Json = None, query: Mapping[str, str] | None = None) -> Json:
        """Return the answer as JSON; None when it is empty.

        Raises:
            AdminError: The status is no success.
        """
        answer = self.send(f"/admin/v2{path}", method=method, body=body, query=query)
        if not httpx.codes.is_success(answer.status):
            raise AdminError(answer.status, answer.body.decode("utf-8", "replace"))
        return json.loads(answer.body) if answer.body.strip() else None

    def create_namespace(self, namespace: str, bundles: int) -> None:
        tenant = namespace.partition("/")[0]
        if tenant not in self.ask("/tenants"):
            clusters = [name for name in self.ask("/clusters") if name != "global"]
            self.ask(f"/tenants/{tenant}", method="PUT", body={"adminRoles": [], "allowedClusters": clusters})
        self.ask(f"/namespaces/{namespace}", method="PUT", body={"bundles": {"numBundles": bundles}})

    def create_topic(self, topic: str, partitions: int = 0) -> None:
        domain, _, name = topic.partition("://")
        tail = "/partitions" if partitions else ""
        self.ask(f"/{domain}/{quote(name)}{tail}", method="PUT", body=partitions or None)

    def set_dynamic(self, settings: Mapping[str, object]) -> None:
        for name, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            self.ask(f"/brokers/configuration/{name}/{quote(text, safe='')}", method="POST")

    def clear_dynamic(self, names: Sequence[str]) -> None:
        for name in names:
            self.ask(f"/brokers/configuration/{name}", method="DELETE")

    def leader(self) -> str:
        return str(self.ask("/brokers/leaderBroker")["brokerId"])

    def brokers(self) -> list[str]:
        return list(self.ask("/brokers"))

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        return tuple(int(text, 16) for text in self.ask(f"/namespaces/{namespace}/bundles")["boundaries"])

    def owned(self, cluster: str, broker: str) -> set[str]:
        """Return the bundles that a broker owns; it has to be asked itself, or redirects to itself."""
        return set(self.ask(f"/brokers/{cluster}/{broker}/ownedNamespaces"))

    def lookup(self, topic: str) -> str:
        """Return the broker URL of a topic; its bundle gets an owner by that."""
        domain, _, name = topic.partition("://")
        answer = self.send(f"/lookup/v2/topic/{domain}/{quote(name)}")
        if not httpx.codes.is_success(answer.status):
            raise AdminError(answer.status, answer.body.decode("utf-8", "replace"))
        found = json.loads(answer.body)
        return str(found.get("brokerUrl") or found["brokerUrlTls"])

    def split(self, namespace: str, bundle: str, *, algorithm: str = "", positions: Sequence[int] | None = None) -> int:
        """Ask for a split and return the HTTP status."""
        query = {"splitAlgorithmName": algorithm} if algorithm else {}
        body = None if positions is None else list(positions)
        path = f"/admin/v2/namespaces/{namespace}/{bundle}/split"
        return self.send(path, method="PUT", body=body, query=query).status

    def unload(self, namespace: str, bundle: str, destination: str = "") -> int:
        """Ask for an unload and return the HTTP status."""
        query = {"destinationBroker": destination} if destination else {}
        return self.send(f"/admin/v2/namespaces/{namespace}/{bundle}/unload", method="PUT", query=query).status
