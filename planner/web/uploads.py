"""How much of uploads the server takes in: for each session, for all together, and for how long."""

import asyncio
import logging
from collections import Counter
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

PATH: Final = "/_stcore/upload_file/"
"""Path of an upload before its session."""

MOST_BYTES: Final = 600 << 20
"""Bytes of all sessions that are held or have arrived."""

MOST_OF_A_SESSION_BYTES: Final = 300 << 20
"""Bytes of one session that are held, or announced by uploads under way."""

PAUSE_S = 30.0
"""Time to wait in which at least `LEAST_BYTES` must arrive."""

LEAST_BYTES: Final = 32 << 10
"""Bytes that must arrive in `PAUSE_S`: a line of 10 kbit/s does."""

_LOG = logging.getLogger(__name__)

# A connection whose body is not read to its end is of no further use.
_ENDS = {"connection": "close"}
_TOO_MUCH = PlainTextResponse("Too many concurrent uploads. Try again in a minute.", 413, _ENDS)
_TOO_SLOW = PlainTextResponse("The upload timed out. Upload the file again.", 408, _ENDS)


class _EndedError(Exception):
    """An upload under way is ended with this answer."""

    def __init__(self, answer: PlainTextResponse) -> None:
        super().__init__(bytes(answer.body).decode())
        self.answer = answer


def _held_bytes(session: str) -> tuple[int, int]:
    """Return how much uploads of one session and of all take, until pages have read them."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    kept = list(manager.file_storage.items()) if isinstance(manager, MemoryUploadedFileManager) else []
    sizes = {of: sum(len(file.data) for file in list(files.values())) for of, files in kept}
    return sizes.get(session, 0), sum(sizes.values())


class Uploads:
    """Takes in the bodies of requests.

    What a body says to be counts for its session alone; the room of all is taken by what has arrived, so that a
    session that announces much and sends nothing keeps no other one out. A body that pauses is ended.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._announced_bytes: Counter[str] = Counter()
        self._arrived_bytes = 0

    async def take(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        """Pass a request on with its body, if there is room for it; one that does not say how long it is, is refused.

        Args:
            scope: The request.
            receive: Gives its body.
            send: Takes the answer.
            length: What it says how many bytes its body has.
        """
        session = scope["path"].partition(PATH)[2].partition("/")[0]
        size = int(length) if length.isascii() and length.isdecimal() else MOST_BYTES + 1
        mine, held = _held_bytes(session)
        of_session = mine + self._announced_bytes[session] + size
        if of_session > MOST_OF_A_SESSION_BYTES or held + self._arrived_bytes + size > MOST_BYTES:
            await _TOO_MUCH(scope, receive, send)
            return
        body, is_answered = _Body(self, receive), False

        async def answer(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        self._announced_bytes[session] += size
        try:
            await self._app(scope, body.receive, answer)
        except _EndedError as ended:
            _LOG.warning("An upload was ended after %d of %s bytes: %s", body.arrived_bytes, length, ended)
            if not is_answered:
                await ended.answer(scope, receive, send)
        except ClientDisconnect:
            _LOG.warning("An upload broke off after %d of %s bytes.", body.arrived_bytes, length)
        finally:
            self._announced_bytes -= Counter({session: size})  # which drops sessions without any
            self._arrived_bytes -= body.arrived_bytes

    def reserve(self, size: int) -> None:
        """Take room for what has arrived.

        Raises:
            _EndedError: There is none.
        """
        if _held_bytes("")[1] + self._arrived_bytes + size > MOST_BYTES:
            raise _EndedError(_TOO_MUCH)
        self._arrived_bytes += size


class _Body:
    """The body of one upload, while it arrives."""

    def __init__(self, uploads: Uploads, receive: Receive) -> None:
        self._uploads = uploads
        self._receive = receive
        self._waited_s = 0.0
        self._lately_bytes = 0
        self.arrived_bytes = 0

    async def receive(self) -> Message:
        """Return the next part.

        Raises:
            _EndedError: It does not come, or there is no room for it.
        """
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        try:
            async with asyncio.timeout(max(PAUSE_S - self._waited_s, 0.0)):
                message = await self._receive()
        except TimeoutError:
            raise _EndedError(_TOO_SLOW) from None
        size = len(message.get("body", b""))
        self._uploads.reserve(size)
        self.arrived_bytes += size
        self._waited_s += now_s() - began_s
        self._lately_bytes += size
        if self._lately_bytes >= LEAST_BYTES:
            self._waited_s, self._lately_bytes = 0.0, 0
        return message
