"""Whom the server answers, and security headers: what Streamlit does not do by itself."""

from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Streamlit's own scripts and Plotly need inline styles and evaluated code; everything comes from this server.
_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
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


def _is_known(host: str) -> bool:
    """Say whether a `Host` header has a name of `server.allowedHosts`; `*.` stands for any name before the rest."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    allowed = [known.lower() for known in st.get_option("server.allowedHosts")]
    return any(
        known in {"*", name} or (known.startswith("*.") and name.endswith(known[1:])) for known in allowed if name
    )


def _is_same_origin(origin: str | None, host: str) -> bool:
    """Say whether a page of this server, or no page at all, opens a WebSocket."""
    try:
        return origin in {None, *st.get_option("server.corsAllowedOrigins")} or urlsplit(origin).netloc == host
    except ValueError:
        return False


_UNKNOWN = PlainTextResponse(
    "This server does not answer under this name. Whoever runs it can add the name: --allow NAME, or allowedHosts in"
    " .streamlit/config.toml.",
    403,
)


class SecurityHeaders:
    """ASGI middleware that answers under known names alone, and adds the headers to every HTTP answer.

    A web page elsewhere whose name was turned to this machine (DNS rebinding) is refused, since `server.allowedHosts`
    does not have its name; so is a WebSocket that a page of another origin opens, on another port of this machine too.
    Pages load nothing from elsewhere, cannot be framed, and a link's query (which names a snapshot) is sent to nobody.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to the answer."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        kind = scope["type"]
        if kind in {"http", "websocket"}:
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            if kind == "http" and not _is_known(host):
                await _UNKNOWN(scope, receive, with_headers)
                return
            if kind == "websocket" and not (_is_known(host) and _is_same_origin(headers.get("origin"), host)):
                await send({"type": "websocket.close", "code": 1008})
                return
        await self._app(scope, receive, with_headers if kind == "http" else send)
