"""Whom the server answers, and security headers: what Streamlit does not do by itself."""

import logging
import re
import secrets
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planner.cluster.errors import PlannerError
from planner.cluster.host_names import allowed_name, host_name
from planner.cluster.units import DAY_S
from planner.web.uploads import Uploads

SCRIPT = "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("drawer.js", "back.js"))
"""The only script of ours: the drawer of small screens, and steps of the browser's history."""


def _inline_scripts() -> str:
    """Return the hashes of the scripts that are not files: those inside Streamlit's index page, and ours."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_bytes()
    found = [*re.findall(rb"<script>(.*?)</script>", page, re.DOTALL), SCRIPT.encode()]
    return " ".join(f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in found)


# Streamlit and Plotly set styles of elements; scripts are files of this server alone, and none is evaluated.
_POLICY = "; ".join(
    (
        "default-src 'self'",
        f"script-src 'self' {_inline_scripts()}",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
COOKIE = "planner-browser"
"""Names a browser by a random number, so that its next visit begins with what it looked at last."""
_COOKIE_S = 365 * DAY_S
_LOG = logging.getLogger(__name__)
_HIDDEN = ("/_stcore/metrics", "/_stcore/agent")
"""Addresses that reveal other visitors, or that let a program drive the pages."""


def allowed_hosts() -> tuple[str, ...]:
    """Return the names of `server.allowedHosts`; others are reported in the log and left out."""
    names = []
    for given in st.get_option("server.allowedHosts"):
        try:
            names.append(allowed_name(given, "server.allowedHosts"))
        except PlannerError as error:
            _LOG.warning("%s", error)
    return tuple(names)


def _is_same_origin(origin: str | None, host: str, *, is_secure: bool) -> bool:
    """Say whether a page of this server, or no page at all, opens a WebSocket.

    A proxy may end TLS, so that a connection that is not secure here can be one of an `https` page; not the other way.
    """
    if origin is None or origin in st.get_option("server.corsAllowedOrigins"):
        return True
    scheme, _, named = origin.partition("://")
    return named == host and scheme in ({"https"} if is_secure else {"http", "https"})


_UNKNOWN = PlainTextResponse(
    "This host name is not allowed. The administrator of this server can allow it with --allow NAME or with"
    " allowedHosts in .streamlit/config.toml.",
    403,
)


_NOTHING = PlainTextResponse("Not found", 404)


class SecurityHeaders:
    """ASGI middleware that answers under known names alone, and adds the headers to every HTTP answer.

    A web page elsewhere whose name was turned to this machine (DNS rebinding) is refused, since `server.allowedHosts`
    does not have its name; so is a WebSocket that a page of another origin opens, on another port of this machine too.
    Pages load nothing from elsewhere, cannot be framed, and a link's query (which names a snapshot) is sent to nobody.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._uploads = Uploads(app)
        self._allowed = allowed_hosts()

    def _is_known(self, host: str) -> bool:
        """Say whether a `Host` header has a name that is allowed; `*.` stands for any name before the rest."""
        name = host_name(host)
        return any(
            known in {"*", name} or (known.startswith("*.") and name.endswith(known[1:]))
            for known in self._allowed
            if name
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to the answer."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer[name] = value
                is_page = answer.get("content-type", "").startswith("text/html")
                if is_page and f"{COOKIE}=" not in Headers(scope=scope).get("cookie", ""):
                    named = f"{COOKIE}={secrets.token_hex(16)}"
                    answer.append("set-cookie", f"{named}; Path=/; Max-Age={_COOKIE_S}; HttpOnly; SameSite=Lax")
            await send(message)

        kind = scope["type"]
        if kind in {"http", "websocket"}:
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            if kind == "http" and not self._is_known(host):
                await _UNKNOWN(scope, receive, with_headers)
                return
            is_secure = scope.get("scheme") == "wss"
            is_same = _is_same_origin(headers.get("origin"), host, is_secure=is_secure)
            if kind == "websocket" and not (self._is_known(host) and is_same):
                await send({"type": "websocket.close", "code": 1008})
                return
            if kind == "http" and any(hidden in scope["path"] for hidden in _HIDDEN):
                await _NOTHING(scope, receive, with_headers)
                return
            if kind == "http" and scope["method"] in {"PUT", "POST"}:
                await self._uploads.take(scope, receive, with_headers, headers.get("content-length", ""))
                return
        await self._app(scope, receive, with_headers if kind == "http" else send)
