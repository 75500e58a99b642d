"""Whom the server answers, how much it holds for them, and security headers: what Streamlit does not do by itself."""

import re
import secrets
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager


def _inline_scripts() -> str:
    """Return the hashes of the scripts inside of Streamlit's index page, the only ones that are no file of its own."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_bytes()
    found = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
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
_COOKIE_S = 365 * 86_400
_HIDDEN = ("/_stcore/metrics", "/_stcore/agent")
"""What tells of other visitors, or drives the pages for a program."""
_UPLOADS = "/_stcore/upload_file/"
_MOST_UPLOADED_BYTES = 600 << 20
_MOST_OF_A_SESSION_BYTES = 300 << 20


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


_NOTHING = PlainTextResponse("Not found", 404)
_TOO_MUCH = PlainTextResponse("There are too many uploads at once. Try again in a minute.", 413)


def _held_bytes(session: str) -> tuple[int, int]:
    """Return how much uploads of one session and of all take, until pages have read them."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    kept = list(manager.file_storage.items()) if isinstance(manager, MemoryUploadedFileManager) else []
    sizes = {of: sum(len(file.data) for file in list(files.values())) for of, files in kept}
    return sizes.get(session, 0), sum(sizes.values())


class SecurityHeaders:
    """ASGI middleware that answers under known names alone, and adds the headers to every HTTP answer.

    A web page elsewhere whose name was turned to this machine (DNS rebinding) is refused, since `server.allowedHosts`
    does not have its name; so is a WebSocket that a page of another origin opens, on another port of this machine too.
    Pages load nothing from elsewhere, cannot be framed, and a link's query (which names a snapshot) is sent to nobody.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._incoming_bytes = 0

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
            if kind == "http" and not _is_known(host):
                await _UNKNOWN(scope, receive, with_headers)
                return
            if kind == "websocket" and not (_is_known(host) and _is_same_origin(headers.get("origin"), host)):
                await send({"type": "websocket.close", "code": 1008})
                return
            if kind == "http" and any(hidden in scope["path"] for hidden in _HIDDEN):
                await _NOTHING(scope, receive, with_headers)
                return
            if kind == "http" and scope["method"] in {"PUT", "POST"}:
                await self._upload(scope, receive, with_headers, headers.get("content-length", ""))
                return
        await self._app(scope, receive, with_headers if kind == "http" else send)

    async def _upload(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        """Take in a body, if there is room for what it says to be; one that does not say it is not taken in."""
        _, _, path = scope["path"].partition(_UPLOADS)
        size = int(length) if length.isascii() and length.isdecimal() else _MOST_UPLOADED_BYTES + 1
        mine, held = _held_bytes(path.partition("/")[0])
        if mine + size > _MOST_OF_A_SESSION_BYTES or held + self._incoming_bytes + size > _MOST_UPLOADED_BYTES:
            await _TOO_MUCH(scope, receive, send)
            return
        self._incoming_bytes += size
        try:
            await self._app(scope, receive, send)
        finally:
            self._incoming_bytes -= size
