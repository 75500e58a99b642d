"""Tokens of OAuth2 client credentials: asked of the issuer, kept in memory until they expire."""

import asyncio
import ssl
import time
import warnings

import httpx
from oauthlib.oauth2 import BackendApplicationClient, OAuth2Error

from planner.capture.credentials import ClientKey, read_issuer_answer
from planner.capture.options import CaptureOptions, check_url
from planner.cluster.errors import CaptureError, PlannerError

_MAX_BYTES = 256 << 10
_EARLY_S = 60.0
_OK = 200


class TokenSource:
    """Gives the token of the moment."""

    def __init__(self, http: httpx.AsyncClient, key: ClientKey, options: CaptureOptions) -> None:
        self._http = http
        self._key = key
        self._options = options
        self._token = ""
        self._expires_s = 0.0
        self._lock = asyncio.Lock()

    async def token(self) -> str:
        """Return a token that is valid for the next minute, unless the issuer gives shorter ones.

        Raises:
            CaptureError: The issuer cannot be reached, or refuses.
        """
        async with self._lock:
            if not self._token or time.monotonic() > self._expires_s:
                self._token, lifetime_s = await self._fetch()
                self._expires_s = time.monotonic() + max(lifetime_s - _EARLY_S, lifetime_s / 2)
            return self._token

    async def _fetch(self) -> tuple[str, float]:
        discovery = self._key.discovery_url
        found = read_issuer_answer(await self._ask("GET", discovery), discovery)
        endpoint = found.get("token_endpoint")
        if not isinstance(endpoint, str):
            raise CaptureError("The answer has no token_endpoint.", where=discovery, remedy="Check issuer_url.")
        scheme, _, rest = endpoint.partition("://")
        check_url(f"{scheme}://{rest.partition('/')[0]}", "token_endpoint")
        if scheme != "https" and discovery.startswith("https"):
            raise CaptureError("The token endpoint does not use https.", where=discovery, remedy="Check issuer_url.")
        credentials = self._options.credentials
        client = BackendApplicationClient(self._key.client_id, scope=credentials.oauth2_scope or None)
        wanted = {"audience": credentials.oauth2_audience} if credentials.oauth2_audience else {}
        form = client.prepare_request_body(
            include_client_id=True, client_secret=self._key.client_secret, scope=credentials.oauth2_scope, **wanted
        )
        answer = await self._ask("POST", endpoint, form)
        text = answer.decode("utf-8", "replace")
        try:
            read_issuer_answer(answer, endpoint)  # oauthlib takes for granted that it is an object
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a scope other than the one asked for is the issuer's choice
                token = client.parse_request_body_response(text)
        except (OAuth2Error, PlannerError, ValueError, TypeError) as error:
            raise CaptureError(
                f"The issuer returned no token ({type(error).__name__}).",
                where=endpoint,
                remedy="Check the client, secret, audience and scope.",
            ) from None
        secret, lifetime = token.get("access_token"), token.get("expires_in")
        if not isinstance(secret, str) or not secret.isascii() or not secret.isprintable():
            raise CaptureError("The issuer returned no token.", where=endpoint, remedy="Check the issuer.")
        return secret, float(lifetime) if isinstance(lifetime, int | float) and lifetime > 0 else 0.0

    async def _ask(self, method: str, url: str, form: str | None = None) -> bytes:
        headers = {"Accept": "application/json"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        seconds = self._options.limits.request_s
        body = b""
        try:
            async with (
                asyncio.timeout(seconds),
                self._http.stream(method, url, headers=headers, content=form) as response,
            ):
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > _MAX_BYTES:
                        break
                status = response.status_code
        except TimeoutError:
            raise CaptureError(
                f"The issuer did not answer in {seconds:g} s.", where=url, remedy="Try again later."
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, ConnectionError) as error:
            raise CaptureError(
                f"The issuer cannot be reached ({type(error).__name__}).", where=url, remedy="Check issuer_url."
            ) from None
        if len(body) > _MAX_BYTES or (form is None and status != _OK):
            raise CaptureError(
                f"The issuer answered with HTTP {status}, or the answer is too long.",
                where=url,
                remedy="Check issuer_url.",
            ) from None
        return body
